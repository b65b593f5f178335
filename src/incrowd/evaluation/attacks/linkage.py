"""Linkage: the released row that is made of a person is looked for.

The attacker knows some columns of a person, looks for the released rows that fit best, and names
one of them at random. Rows alike cannot be told apart, so with s rows that fit he is right with
probability 1/s if the person's row is among them. People not in the table have no row that could
be found, so there is no control; how often the attacker would name a row of them as surely, and be
wrong, is said beside it.

Of a differentially private release that is the control. Without a person's row nearly the same
comes out, and a row that fits would be named as surely: that one is named is then not told by the
person's row, and a success is one by the count of heads alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import comb

import numpy as np

from incrowd.arrays import Codes, Floats
from incrowd.codes.frequency import Frequencies
from incrowd.evaluation.attacks.view import AttackerView, People
from incrowd.measure.estimate import CONFIDENCE, Estimate, Rate

_SUBSETS = 300  # up to so many choices of columns are all tried
_COMPARISONS = 2_000_000_000  # of people with classes, while choices of columns are tried
_FEWEST, _MOST = 50, 500  # people that choices of columns are tried on


def attack_linkage(
    seen: AttackerView,
    people: People,
    *,
    known_columns: Sequence[int],
    everybody: Frequencies | None = None,
    control: People | None = None,
    errors: float = 0.0,
    private: bool = False,
    rng: np.random.Generator,
    confidence: float = CONFIDENCE,
) -> Estimate:
    """Name the row of each person, knowing ``known_columns``, each value wrong by ``errors``.

    Claim: the chance of a person is ``d * |own and near| / |own| / |near|``, in rows, where ``own``
    are the rows that fit the person in truth in all columns and ``near`` those that fit the
    attacker's knowledge best. For the person's row, if it is there, is any of the own ones; it has
    to be among the near ones; and of those one is picked. Without errors own lies within near. Of n
    people of ``everybody`` who share a class of which s rows are shown, the person's row is there
    with probability d = min(1, s / n), since rows alike are drawn alike; where labels overlap, or
    nothing is known of everybody, d is the chance to be drawn at all. A ``private`` release is one
    that is differentially private.
    """
    there = _compute_presence(seen, everybody)
    chances = _compute_chances(seen, people, known_columns, errors, there, rng)
    details = {"expected": float(chances.mean()) if len(chances) else 0.0}
    words, outside = "The matched row belongs to the person.", None
    if control is not None:
        noisy_control = control.with_errors(errors, rng) if errors else control
        sure = _compute_certainty(
            seen.select_columns(known_columns)[0], noisy_control.points[:, list(known_columns)]
        )
        details["named_outside"] = float(sure.mean()) if len(sure) else 0.0
        words += (
            " People outside the table are matched as confidently with probability "
            f"{details['named_outside']:.2g}."
        )
        outside = Rate.from_chances(sure, rng, confidence) if private else None
    listed = ", ".join(seen.names[at] for at in known_columns)
    knowledge = f"{listed} of each person"
    if errors:
        knowledge += f", each value wrong with probability {errors:g}"
    return Estimate(
        attack="linkage",
        name="all quasi-identifiers"
        if len(known_columns) == len(seen.names)
        else f"{len(known_columns)} columns",
        knows=knowledge,
        success=Rate.from_chances(chances, rng, confidence),
        guess=Rate.from_value(1 / max(seen.rows, 1)),
        control=outside,
        says=words,
        details={**details},
    )


def _compute_presence(seen: AttackerView, everybody: Frequencies | None) -> Floats:
    """Return for each class the chance that the row of a person of it is in the release."""
    homes = None if everybody is None else seen.find_class(everybody.codes)
    if everybody is None or homes is None:
        return np.full(len(seen), seen.drawn)
    inside = homes >= 0
    class_sizes = np.bincount(homes[inside], everybody.counts[inside], len(seen))
    return np.minimum(1.0, seen.counts / np.maximum(class_sizes, 1))


def find_worst_columns(
    seen: AttackerView, people: People, number: int, *, rng: np.random.Generator
) -> tuple[int, ...]:
    """Find the columns, so many of them, by which most people are found.

    All choices are tried where they are few; else columns are added one by one, each time the one
    that helps the attacker most. They are tried on some of the people: try the outcome on others.
    """
    width = len(seen.names)
    listed = comb(width, number) <= _SUBSETS
    tried = comb(width, number) if listed else number * width
    fewer = _COMPARISONS // max(tried * len(seen) * number, 1)
    some = people.sample_people(min(max(fewer, _FEWEST), _MOST), rng)

    is_published = _compute_certainty(seen, some.points) > 0

    def link_by(columns: tuple[int, ...]) -> float:
        part, _ = seen.select_columns(columns)
        return float(
            (_compute_certainty(part, some.points[:, list(columns)]) * is_published).mean()
        )

    if listed:
        return max(combinations(range(width), number), key=link_by)
    chosen: tuple[int, ...] = ()
    for _ in range(number):
        others = [at for at in range(width) if at not in chosen]
        chosen = max(((*chosen, at) for at in others), key=link_by)
    return tuple(sorted(chosen))


def _compute_chances(
    seen: AttackerView,
    people: People,
    known_columns: Sequence[int],
    errors: float,
    there: Floats,
    rng: np.random.Generator,
) -> Floats:
    """Return the chance that each person's row is named."""
    part, becomes = seen.select_columns(known_columns)
    points = (people.with_errors(errors, rng) if errors else people).points[:, list(known_columns)]
    near, members = np.zeros(len(people)), [np.zeros(0, dtype=np.int64)]
    for nearest in part.find_nearest(points):
        near[nearest.part] = nearest.sum_weights(part.counts)
        members.append((nearest.person + nearest.part.start) * len(part) + nearest.place)
    named = np.concatenate(members)
    chances = np.zeros(len(people))
    for nearest in seen.find_nearest(people.points):
        fitting = nearest.most[nearest.person] == len(seen.names)
        both = (nearest.person + nearest.part.start) * len(part) + becomes[nearest.place]
        rows = seen.counts[nearest.place] * fitting
        fitting_rows = np.bincount(nearest.person, rows, len(nearest.most))
        inside = rows * np.isin(both, named) * there[nearest.place]
        shared = np.bincount(nearest.person, inside, len(nearest.most))
        chances[nearest.part] = shared / np.maximum(fitting_rows, 1)
    return chances / np.maximum(near, 1)


def _compute_certainty(seen: AttackerView, points: Codes) -> Floats:
    """Return how sure the attacker is of the row named: one over the rows that fit wholly."""
    sure = np.zeros(len(points))
    for nearest in seen.find_nearest(points):
        rows = nearest.sum_weights(seen.counts)
        fits_fully = (nearest.most == len(seen.names)) & (rows > 0)
        sure[nearest.part] = np.where(fits_fully, 1 / np.maximum(rows, 1), 0.0)
    return sure
