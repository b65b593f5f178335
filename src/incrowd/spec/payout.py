"""What a release pays and what attacks on it cost, as a spec declares it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from incrowd.spec.base import SpecModel

Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class PublisherPayout(SpecModel):
    """Amounts per row, and what the attacker knows."""

    benefit: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    publisher_loss: Amount
    attacker_gain: Amount
    attack_cost: Amount
    attacker: Literal["prosecutor", "journalist"] | None = None

    def refuse_misfits(
        self, algorithm: str | None, loss: str | None, population: int | None
    ) -> None:
        """Refuse what a release declares and does not go with a payout."""
        if algorithm not in (None, "ola"):
            raise ValueError(f"`payout` is not a setting of `algorithm: {algorithm}`. Remove it.")
        if loss is not None:
            raise ValueError("`payout` takes the place of `loss`. Remove one of them.")
        if self.attacker == "journalist" and population is None:
            raise ValueError(
                "`attacker: journalist` needs the size of the population that the attacker knows. "
                "Add `population`, or remove `attacker`."
            )
