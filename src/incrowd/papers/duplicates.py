"""A group of identical rows is one person: the duplicate attack on k-Duplication (paper A).

The attacker has a register: names, and some columns of everybody, in the table or not. For each
group of rows that is published he takes the people of the register whom it fits, names one of them
at random, and says the whole record: what is shown, and where several values are, one at random.
He is right if the person named has exactly this record.

**Claim.** Against k-Duplication he is right for every group whose known columns are those of one
person in the register: the group is that person's record, unchanged. That there are k rows of it
does not make anybody hide among them.

**Claim.** Of people not in the table he is right no more often than the known columns allow. Nor
of those in it, against a safe release: every group there is a public cell that fits many.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from incrowd.arrays import Bools, Codes
from incrowd.codes.axis import ClassBounds
from incrowd.measure.estimate import Estimate, Rate


def attack_duplicates(
    shown: ClassBounds,
    members: Codes,
    others: Codes,
    *,
    known: Sequence[int],
    name: str,
    rng: np.random.Generator,
) -> Estimate:
    """Estimate for how many groups the attacker names the person and the whole record.

    ``members`` are the people of the table, ``others`` people like them who are not in it; both are
    in the register. For ``control`` the register has the others alone. ``guess`` names anybody, and
    says what somebody like them has in the columns that are not known.
    """
    register = np.concatenate([members, others])
    groups = len(shown.sizes)
    named = register[rng.integers(0, len(register), groups)]
    duplicates = others[rng.integers(0, len(others), groups)]
    duplicates[:, list(known)] = named[:, list(known)]
    return Estimate(
        attack="duplicates",
        name=name,
        knows=f"{len(known)} of {members.shape[1]} columns of everybody, in the table or not",
        success=Rate.from_hits(int(_check_guesses(shown, register, known, rng).sum()), groups),
        guess=Rate.from_hits(int((named == duplicates).all(axis=1).sum()), groups),
        control=Rate.from_hits(int(_check_guesses(shown, others, known, rng).sum()), groups),
        says="The identical rows are one person's record: the name, and every column.",
        details={"rows in a group": float(shown.sizes.mean()) if groups else 0.0},
    )


def _check_guesses(
    shown: ClassBounds, register: Codes, known: Sequence[int], rng: np.random.Generator
) -> Bools:
    """Return for each group whether the person named has the guessed record."""
    columns = list(known)
    some = register[:, columns]
    right = np.zeros(len(shown.sizes), dtype=bool)
    for at, (low, high) in enumerate(zip(shown.low, shown.high, strict=True)):
        fits = ((low[columns] <= some) & (some <= high[columns])).all(axis=1)
        result = np.flatnonzero(fits)
        if len(result):
            person = register[result[rng.integers(len(result))]].copy()
            text = rng.integers(low, high + 1)
            text[columns] = person[columns]
            right[at] = (person == text).all()
    return right
