"""The payout model of a spec, for a table of known size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from incrowd.measure.payout import PayoutModel
from incrowd.spec.model import Column
from incrowd.spec.release import CommonSpec


def make_payout_model(
    release: CommonSpec | None, columns: Mapping[str, Column], names: Sequence[str], total: int
) -> PayoutModel | None:
    """Return what a table of ``total`` records pays by the spec; None if it does not say.

    ``names`` are the columns that are generalized.
    """
    payout = getattr(release, "payout", None)
    if payout is None:
        return None
    population = getattr(release, "population", None) if payout.attacker == "journalist" else None
    return PayoutModel(
        payout.benefit,
        payout.publisher_loss,
        payout.attacker_gain,
        payout.attack_cost,
        tuple(columns[name].weight for name in names),
        1.0 if population is None else min(total / population, 1.0),
    )
