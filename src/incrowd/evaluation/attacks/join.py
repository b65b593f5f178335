"""The join of two tables by means of a release: what links what one knows of a person to the rest.

An attacker has two tables about the same people and nothing to join them by: one has some columns
of the release, the other has others. For each half of a record he looks up the released row that is
nearest, the one that fits in most of the half's columns. If both halves of a person are nearest to
the same row, the row joins them.

Of rows that are equally near he takes any, for each half by itself.

Claim: if X and Y are the rows nearest to the two halves, they meet with chance
|X and Y| / (|X| |Y|). Proof: each row of X is taken with 1 / |X|, each of Y with 1 / |Y|,
independently; so each row of both is the one that both take with 1 / (|X| |Y|).

(One random order for both halves would let them meet more often, |X and Y| / |X or Y|. But it does
so most where rows are vague and fit everybody, and then a meeting joins nobody.)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from incrowd.arrays import Bools, Codes, Floats, Places
from incrowd.errors import ParameterError
from incrowd.evaluation.attacks.view import AttackerView, People
from incrowd.measure.estimate import CONFIDENCE, Estimate, Rate
from incrowd.measure.prediction import use_one_thread

ATTACK = "join"
_CELLS = 10_000_000  # pairs of a person and a class that are held at once

Halves = tuple[Sequence[int], Sequence[int]]  # the columns of each of the two tables


def join_by_nearest(
    seen: AttackerView,
    halves: Halves,
    targets: People,
    control: People | None,
    *,
    rng: np.random.Generator,
    confidence: float = CONFIDENCE,
) -> Estimate:
    """Join what is known of each target in two tables, by the nearest released row of each half.

    ``control`` are people who are not in the table. To guess is to take a random row for each half:
    they are the same with chance 1 / rows.
    """
    names = [", ".join(seen.names[at] for at in half) for half in halves]
    return Estimate(
        attack=ATTACK,
        name=f"{len(halves[0])} and {len(halves[1])} columns",
        knows=f"two tables of the same people: {names[0]}; and {names[1]}",
        success=Rate.from_chances(
            compute_join_chances(seen, halves, targets.points), rng, confidence
        ),
        guess=Rate.from_value(1 / max(seen.rows, 1)),
        control=None
        if control is None
        else Rate.from_chances(compute_join_chances(seen, halves, control.points), rng, confidence),
        says="Both halves of a person's record match the same published row.",
    )


def compute_join_chances(seen: AttackerView, halves: Halves, points: Codes) -> Floats:
    """Return how likely both halves of each person meet in one row; 0 where no row is shown."""
    if not halves[0] or not halves[1] or set(halves[0]) & set(halves[1]):
        raise ParameterError("halves", "be two lists of different columns", halves)
    join_chances = np.zeros(len(points))
    if not len(seen):
        return join_chances
    every = sorted({*halves[0], *halves[1]})
    both = seen.select_columns(every)[0].count_fitting_rows(points[:, every])
    parts = [(list(half), *seen.select_columns(half)) for half in halves]
    first, second = (part.count_fitting_rows(points[:, half]) for half, part, _ in parts)
    # The rows that fit both halves wholly are those that fit in all columns.
    join_chances = both / np.maximum(first.astype(np.float64) * second, 1)
    lost = np.flatnonzero((first == 0) | (second == 0))
    size, rows = max(1, _CELLS // len(seen)), seen.counts.astype(np.float64)
    for start in range(0, len(lost), size):
        some = points[lost[start : start + size]]
        first_nearest, second_nearest = (
            _find_nearest_classes(part, at, some[:, half]) for half, part, at in parts
        )
        with use_one_thread():
            met, near, close = (  # as floats, which are multiplied faster and are exact here
                meets.astype(np.float64) @ rows
                for meets in (first_nearest & second_nearest, first_nearest, second_nearest)
            )
        join_chances[lost[start : start + size]] = met / np.maximum(near * close, 1)
    return join_chances


def _find_nearest_classes(part: AttackerView, at: Places, points: Codes) -> Bools:
    """Return whether each class (across) is one of the nearest to each half (down).

    ``part`` are the half's own classes, ``at`` which of them each class is.
    """
    nearest_classes = np.zeros((len(points), len(part)), dtype=bool)
    for near in part.find_nearest(points):
        people = np.repeat(np.arange(near.part.start, near.part.stop), np.diff(near.ends))
        nearest_classes[people, near.place] = True
    return nearest_classes[:, at]
