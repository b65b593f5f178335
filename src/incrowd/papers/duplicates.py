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
    published: ClassBounds,
    members: Codes,
    others: Codes,
    *,
    known_columns: Sequence[int],
    name: str,
    rng: np.random.Generator,
) -> Estimate:
    """Estimate for how many groups the attacker names the person and the whole record.

    ``members`` are the people of the table, ``others`` people like them who are not in it; both are
    in the register. For ``control`` the register has the others alone. ``guess`` names anybody, and
    says what somebody like them has in the columns that are not known.
    """
    register = np.concatenate([members, others])
    groups = len(published.sizes)
    named_people = register[rng.integers(0, len(register), groups)]
    duplicates = others[rng.integers(0, len(others), groups)]
    duplicates[:, list(known_columns)] = named_people[:, list(known_columns)]
    return Estimate(
        attack="duplicates",
        name=name,
        knows=(
            f"{len(known_columns)} of {members.shape[1]} columns of everybody, in the table or not"
        ),
        success=Rate.from_hits(
            int(_check_guesses(published, register, known_columns, rng).sum()), groups
        ),
        guess=Rate.from_hits(int((named_people == duplicates).all(axis=1).sum()), groups),
        control=Rate.from_hits(
            int(_check_guesses(published, others, known_columns, rng).sum()), groups
        ),
        says="The identical rows are one person's record: the name, and every column.",
        details={"rows in a group": float(published.sizes.mean()) if groups else 0.0},
    )


def _check_guesses(
    published: ClassBounds, register: Codes, known_columns: Sequence[int], rng: np.random.Generator
) -> Bools:
    """Return for each group whether the person named has the guessed record."""
    columns = list(known_columns)
    register_part = register[:, columns]
    is_right = np.zeros(len(published.sizes), dtype=bool)
    for at, (low, high) in enumerate(zip(published.low, published.high, strict=True)):
        fits = ((low[columns] <= register_part) & (register_part <= high[columns])).all(axis=1)
        matches = np.flatnonzero(fits)
        if len(matches):
            person = register[matches[rng.integers(len(matches))]].copy()
            text = rng.integers(low, high + 1)
            text[columns] = person[columns]
            is_right[at] = (person == text).all()
    return is_right
