"""What publishing a table pays: a benefit for every record, less what its re-identification costs.

The model is that of Wan, Vorobeychik, Xia and others (2015), "A game theoretic framework for
analyzing re-identification risk", as ARX computes it. An attacker knows somebody's values and names
a record of the class that has them; the chance to be right is the same for all its records. The
attack is worth it where the attacker's gain times that chance exceeds the cost of an attack. A
published record then pays

    benefit * (1 - information loss) - publisher's loss * chance, or without the latter if no attack
    is worth it,

and a suppressed one nothing. The information loss of a record is that of its labels in bits, over
all bits: the sum of log(a) over that of log(m), where a label stands for a of m values. It is a
figure for a decision about money, and no guarantee: attackers may value a success more highly than
is assumed here, or know more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from incrowd.arrays import Counts, Floats
from incrowd.codes.frequency import Frequencies
from incrowd.codes.hierarchy import Hierarchy
from incrowd.measure.individual_risk import compute_individual_risk


@dataclass(frozen=True)
class PayoutModel:
    """Amounts of money per record, and what the attacker knows.

    ``weights`` say how much the bits of each generalized column count. With a ``fraction`` below 1
    the attacker knows a population of which the table is that share (the journalist's chance, by
    :mod:`incrowd.measure.individual_risk`), otherwise who is in the table (the prosecutor's, one
    over the size of the class).
    """

    benefit: float
    publisher_loss: float
    attacker_gain: float
    attack_cost: float
    weights: tuple[float, ...]
    fraction: float = 1.0

    def compute_chances(self, sizes: Counts) -> Floats:
        """Return the chance of an attack on classes of such sizes; 0 where none is worth it.

        >>> model = PayoutModel(1200, 300, 300, 4, (1.0,))
        >>> model.compute_chances(np.array([2, 74, 75])).round(4).tolist()
        [0.5, 0.0135, 0.0]
        """
        if self.fraction >= 1:
            # one division, so that a gain that equals the cost is no gain
            return np.where(self.attacker_gain / sizes > self.attack_cost, 1 / sizes, 0.0)
        chances = compute_individual_risk(sizes, sizes / self.fraction)
        return np.where(self.attacker_gain * chances > self.attack_cost, chances, 0.0)

    def count_reidentified(self, sizes: Counts) -> float:
        """Return how many records of published classes attackers are expected to identify."""
        return float((self.compute_chances(sizes) * sizes).sum())

    def weigh_columns(self, hierarchies: Sequence[Hierarchy]) -> Floats:
        """Return the share of each column in all bits; equal ones if no column has any."""
        bits = np.log2([max(hierarchy.size, 1) for hierarchy in hierarchies])
        weighted: Floats = bits * np.array(self.weights)
        if not weighted.sum():
            return np.full(len(weighted), 1 / len(weighted))
        return weighted / float(weighted.sum())


@dataclass(frozen=True)
class Payout:
    """What a release pays the publisher.

    Attributes:
        total: What all records pay, less what re-identifications cost; below 0 is a loss.
        maximum: What they would pay unchanged and without attacks.
        benefit: What they pay before that cost.
        attacked: Records that are worth an attack.
        reidentified: Records that attackers are expected to identify.
        cost: What these cost the publisher.
    """

    total: float
    maximum: float
    benefit: float
    attacked: int
    reidentified: float
    cost: float


def compute_bit_loss(covered: Floats, size: int) -> Floats:
    """Return log(a) / log(m) for labels that stand for a of m values.

    >>> compute_bit_loss(np.array([1.0, 2.0, 16.0]), 16).tolist()
    [0.0, 0.25, 1.0]
    """
    if size <= 1:
        return np.zeros(len(covered))
    bits: Floats = np.log2(np.maximum(covered, 1.0)) / np.log2(size)
    return bits


def compute_payout(
    model: PayoutModel,
    released: Frequencies,
    hierarchies: Sequence[Hierarchy],
    losses: Sequence[Floats],
    rows: int,
) -> Payout:
    """Return what a release of a table of ``rows`` pays.

    Args:
        model: The amounts.
        released: The published classes, by the labels of the generalized columns.
        hierarchies: One for each column.
        losses: The normalized loss of each label, by column.
        rows: The records of the table.
    """
    information = np.ones(len(released))
    shares = model.weigh_columns(hierarchies)
    for at, (hierarchy, loss) in enumerate(zip(hierarchies, losses, strict=True)):
        covered = 1 + loss * (hierarchy.size - 1)
        information -= shares[at] * compute_bit_loss(covered, hierarchy.size)[released.codes[:, at]]
    benefit = model.benefit * float((information * released.counts).sum())
    reidentified = model.count_reidentified(released.counts)
    cost = model.publisher_loss * reidentified
    is_attacked = model.compute_chances(released.counts) > 0
    return Payout(
        total=benefit - cost,
        maximum=model.benefit * rows,
        benefit=benefit,
        attacked=int(released.counts[is_attacked].sum()),
        reidentified=reidentified,
        cost=cost,
    )
