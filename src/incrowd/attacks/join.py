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
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from incrowd.arrays import Bools, Codes, Counts, Floats, Places
from incrowd.attacks.seen import People, Seen
from incrowd.errors import ParameterError
from incrowd.measure.estimate import CONFIDENCE, Estimate, Rate

ATTACK = "join"
_CELLS = 10_000_000  # pairs of a person and a class that are held at once

Halves = tuple[Sequence[int], Sequence[int]]  # the columns of each of the two tables


def by_nearest(
    seen: Seen,
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
        success=Rate.drawn(chances(seen, halves, targets.points), rng, confidence),
        guess=Rate.known(1 / max(seen.rows, 1)),
        control=None
        if control is None
        else Rate.drawn(chances(seen, halves, control.points), rng, confidence),
        says="The same released row is taken for both halves of a person's record.",
    )


def chances(seen: Seen, halves: Halves, points: Codes) -> Floats:
    """How likely the two halves of each person meet in one row; 0 where no row is shown."""
    if not halves[0] or not halves[1] or set(halves[0]) & set(halves[1]):
        raise ParameterError("halves", "be two lists of different columns", halves)
    found = np.zeros(len(points))
    if not len(seen):
        return found
    parts = [_Half(list(half), *seen.part(half)) for half in halves]
    size = max(1, _CELLS // len(seen))
    for start in range(0, len(points), size):
        some = points[start : start + size]
        one, other = sorted((part.nearest(some) for part in parts), key=lambda near: near.pairs)
        person, classes = one.classes()
        met = other.holds()[person, other.half.at[classes]]
        both = np.bincount(person[met], seen.counts[classes[met]], minlength=len(some))
        # These are whole numbers far below 2**53, and exact.
        each = one.rows.astype(np.float64) * other.rows
        found[start : start + size] = both / np.maximum(each, 1)
    return found


@dataclass(frozen=True, eq=False)
class _Half:
    """One table's ``columns``, the ``part`` of a release that has them, and how they hang together.

    Class i of the release is class ``at[i]`` of the part.
    """

    columns: list[int]
    part: Seen
    at: Places

    def nearest(self, points: Codes) -> _Nearest:
        """The part's classes that are nearest to what the table has of some people."""
        near = list(self.part.near(points[:, self.columns]))
        person = np.concatenate([one.person + one.part.start for one in near])
        place = np.concatenate([one.place for one in near])
        rows = np.concatenate([one.sums(self.part.counts) for one in near])
        return _Nearest(self, person, place, rows)

    @cached_property
    def sizes(self) -> Counts:
        """How many classes of the release each class of the part is."""
        return np.bincount(self.at, minlength=len(self.part))

    @cached_property
    def order(self) -> Places:
        """The classes of the release, those of one class of the part one after the other."""
        return np.argsort(self.at, kind="stable")


@dataclass(frozen=True, eq=False)
class _Nearest:
    """Pairs of a ``person`` and a ``place``, a class of the half's part that is one of the nearest.

    ``rows`` is how many rows are nearest to each person.
    """

    half: _Half
    person: Places
    place: Places
    rows: Counts

    @property
    def pairs(self) -> int:
        """How many pairs :meth:`classes` has."""
        return int(self.half.sizes[self.place].sum())

    def classes(self) -> tuple[Places, Places]:
        """All pairs of a person and a class of the release that is one of the nearest."""
        sizes = self.half.sizes
        number, starts = sizes[self.place], (np.cumsum(sizes) - sizes)[self.place]
        within = np.arange(int(number.sum())) - np.repeat(np.cumsum(number) - number, number)
        return np.repeat(self.person, number), self.half.order[np.repeat(starts, number) + within]

    def holds(self) -> Bools:
        """Whether each class of the part (across) is one of the nearest to each person (down)."""
        found = np.zeros((len(self.rows), len(self.half.part)), dtype=bool)
        found[self.person, self.place] = True
        return found
