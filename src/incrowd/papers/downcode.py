"""Downcoding (Cohen, 2022): finer records out of generalized ones, because they are minimal.

**The people.** In each village k people are in the table. In every further column a village has a
group of two values, a usual and an unusual one. Most people have the usual value everywhere. Each
person is different with probability 1/k; who is has either value of each column, by a fair coin.

**The attack.** A minimal recoder publishes each village as one class, and a column is general there
only if it had to be. The attacker sees for each column the value (then all have it) or the group
(then somebody has the unusual one). He says: k - 1 people have the usual value everywhere, and one
has the unusual value in exactly the columns that are general. Where even the group is hidden, he
takes any. He is right if that is the village, record by record, and finer than what was published.

**Claim.** Against any minimal recoder that shows a village as a class of its own, he is right with
probability at least k q (1 - q)^(k - 1), where q = (1 - 2^-d) / k for d columns: more than a third
from four columns on. Proof. A person departs from the usual record with probability q. If exactly
one person of the village does, then each column in which the person has the usual value is the
same for all k and shown (else the class could be specialized, and would not be minimal), and each
of the others is not; so what he says is true. And (1 - q)^(k - 1) >= (1 - 1/k)^(k - 1) > 1/e, while
(1 - 1/16) / e > 1/3. (If nobody departs there is nothing to make finer. If some do, more than one
but not all, he is wrong: he says k - 1 usual records. If all do, he may be right.)

**Claim.** People of the same village who are not in the table are as he says with probability at
most 2^-d, whatever the release tells about the village. Proof. He says one record k - 1 times and
another one once. At least one of them departs, in certain columns; a person has just that record
with probability 2^-d / k, and there are k people who may be the one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from incrowd.arrays import Codes, Counts, Places
from incrowd.codes.hierarchy import Hierarchy, build_from_rows
from incrowd.measure.estimate import Estimate, Rate
from incrowd.papers.minimal_recoder import RecodedClasses

USUAL, UNUSUAL = 0, 1  # the code of a value is twice its group's, and one more if it is unusual


@dataclass(frozen=True, eq=False)
class Villages:
    """Villages with k people each: the group of each column, and who departs where.

    ``groups[v, j]`` is the group of village v in column j; ``members[v, i, j]`` and
    ``others[v, i, j]`` say whether person i has the unusual value. The others are not in the table.
    """

    groups: Codes
    members: Codes
    others: Codes
    width: int

    @classmethod
    def draw_villages(
        cls, number: int, *, k: int, columns: int, width: int, rng: np.random.Generator
    ) -> Villages:
        """Draw so many villages, their groups among ``width`` in each column."""

        def draw_people() -> Codes:
            is_different = rng.random((number, k, 1)) * k < 1
            return (is_different & (rng.random((number, k, columns)) < 0.5)).astype(np.int32)

        groups = rng.integers(0, width, (number, columns)).astype(np.int32)
        return cls(groups, draw_people(), draw_people(), width)

    @property
    def k(self) -> int:
        """The number of people of each village."""
        return int(self.members.shape[1])

    @cached_property
    def codes(self) -> Codes:
        """The table: village and values of each person in it, by codes of level 0."""
        number, k, columns = self.members.shape
        values = (2 * self.groups[:, None, :] + self.members).reshape(number * k, columns)
        return np.column_stack([np.repeat(np.arange(number), k), values]).astype(np.int32)

    @cached_property
    def hierarchies(self) -> tuple[Hierarchy, ...]:
        """Villages below a root; in each further column values, groups of two, a root."""
        number, columns = self.groups.shape
        places = build_from_rows([(f"village {v}", "*") for v in range(number)])
        pairs = [(f"{g}{side}", f"{g}", "*") for g in range(self.width) for side in "ab"]
        return (places, *[build_from_rows(pairs)] * columns)


def compute_departure_chance(k: int, columns: int) -> float:
    """Compute the probability that just one person of a village departs; see the module.

    >>> round(compute_departure_chance(5, 8), 4)
    0.4096
    >>> compute_departure_chance(1000, 4) > 1 / 3
    True
    """
    q = (1 - 2.0**-columns) / k
    return float(k * q * (1 - q) ** (k - 1))


def attack_by_downcoding(
    published: RecodedClasses, villages: Villages, *, name: str, rng: np.random.Generator
) -> Estimate:
    """Estimate for how many villages all records are found, finer than published.

    ``control`` asks the same of people of the villages who are not in the table; ``guess`` knows
    the villages and how many people each has in the table, and says what is likely.
    """
    number, k, columns = villages.members.shape
    hits = control = guess = 0
    for village in range(number):
        levels, codes = _choose_shown_row(published, village, columns, rng)
        hidden = rng.integers(0, villages.width, columns)
        groups = np.select([levels == 0, levels == 1], [codes // 2, codes], hidden)
        departing = levels > 0
        # A value that is shown is everybody's; in a general column it is the one person's.
        usual = np.where(levels == 0, codes % 2, USUAL)
        odd = np.where(departing, UNUSUAL, usual)
        text = 2 * groups + np.vstack([np.tile(usual, (k - 1, 1)), odd])
        base_codes = 2 * villages.groups[village]
        finer = bool(departing.any())
        hits += finer and _has_same_records(text, base_codes + villages.members[village])
        control += finer and _has_same_records(text, base_codes + villages.others[village])
        likely = np.tile(2 * rng.integers(0, villages.width, columns), (k, 1))
        guess += _has_same_records(likely, base_codes + villages.members[village])
    return Estimate(
        attack="downcoding",
        name=name,
        knows="how the people of a village differ, and that nothing is more general than needed",
        success=Rate.from_hits(hits, number),
        guess=Rate.from_hits(guess, number),
        control=Rate.from_hits(control, number),
        says="All records of a village are found as they were, finer than they were published.",
        details={"chance by the proof, if minimal": compute_departure_chance(k, columns)},
    )


def _choose_shown_row(
    published: RecodedClasses, village: int, columns: int, rng: np.random.Generator
) -> tuple[Codes, Codes]:
    """Return what is shown of a village: its own class, or one that may hold it."""
    places, at = published.codes[:, 0], published.levels[:, 0]
    candidates = np.flatnonzero((at == 0) & (places == village))
    if not len(candidates):
        candidates = np.flatnonzero(at > 0)
    if not len(candidates):
        return np.full(columns, 2, dtype=np.int32), np.zeros(columns, dtype=np.int32)
    weights = published.counts[candidates] / published.counts[candidates].sum()
    row = int(rng.choice(candidates, p=weights))
    return published.levels[row, 1:], published.codes[row, 1:]


def _has_same_records(first: Codes | Places, second: Codes) -> bool:
    """Return whether two lists of records are the same, in any order."""
    return bool(sorted(first.tolist()) == sorted(second.tolist()))


def make_level_classes(levels: Sequence[int], codes: Codes, counts: Counts) -> RecodedClasses:
    """Return cells that are all published at the same levels, as in a safe release."""
    return RecodedClasses(np.tile(np.array(levels, dtype=np.int32), (len(codes), 1)), codes, counts)
