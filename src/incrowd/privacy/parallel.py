"""Parallel composition: releases of disjoint parts of a table cost the largest part, not the sum.

**Premise.** Every unit lies in one part: a unit is one person within one period, and a part is one
period. A release of a part reads the rows of that part alone, which is checked on the table before
it is booked. Releases without a part read any rows.

**Claim.** Let the releases without a part and those of part p together satisfy (epsilon_p, delta_p)
for each p, and without any part (epsilon_0, delta_0). Then all releases together satisfy
(max epsilon_p, max delta_p), the maximum over the parts and over none.

**Proof.** Two tables that differ by one unit differ in one part, p, say. In the order in which
releases were made, each one of another part reads equal rows of both tables, and what was released
before; so, given what was released before, it has the same law on both. It multiplies the
probability of any outcome by the same factor on both sides: it is post-processing with randomness
of its own. What remains are the releases of p and those without a part, chosen by results so far,
which satisfy (epsilon_p, delta_p) by premise. Both numbers only grow in the maximum.

It would be false for a person who has rows in several parts: to them, releases of all those parts
add up. So the parts of a ledger need a unit that names the period.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from incrowd.privacy.amplification import Guarantee
from incrowd.privacy.filter import Charge, charges_fit, sum_charges

PartCharge: TypeAlias = tuple[str | None, Charge]  # the part, or None for any rows


def list_unit_charges(charges: Sequence[PartCharge]) -> list[list[Charge]]:
    """Return for each part, and for a unit in none of them, the charges that it may bear."""
    parts = dict.fromkeys(part for part, _ in charges if part is not None)
    return [[charge for part, charge in charges if part in (None, name)] for name in (None, *parts)]


def total_charges(charges: Sequence[PartCharge]) -> Guarantee:
    """Return what all charges satisfy together: added within a part, the largest over parts."""
    totals = [sum_charges(unit_charges) for unit_charges in list_unit_charges(charges)]
    return Guarantee(max(total.epsilon for total in totals), max(total.delta for total in totals))


def part_charges_fit(charges: Sequence[PartCharge], budget: Guarantee) -> bool:
    """Return whether the charges of every part are within a budget."""
    return all(charges_fit(unit_charges, budget) for unit_charges in list_unit_charges(charges))
