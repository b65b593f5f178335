"""What a ledger holds: budgets, and what was booked."""

from __future__ import annotations

import math
from dataclasses import dataclass

from incrowd.privacy.amplification import Guarantee
from incrowd.privacy.events import Event
from incrowd.privacy.filter import Charge
from incrowd.privacy.rounded import rounded

RULE = (
    "Releases of a planned block compose tightly. Blocks and unplanned releases add their ε and "
    "their δ, even if their parameters are chosen after earlier results."
)


@dataclass(frozen=True)
class Budget:
    """What may be spent on a table in all, and the day that it was decided."""

    epsilon: float
    delta: float
    day: str = ""


@dataclass(frozen=True)
class Spend:
    """An entry of a ledger: an unplanned release, or a planned block.

    ``event`` is that of the release, or of each release of the block. Of a block, ``releases`` says
    how many were planned and ``used`` how many were made; of an unplanned release they are None
    and 1.
    """

    number: int
    day: str
    event: Event
    charge: Charge
    releases: int | None = None
    used: int = 1

    @property
    def guarantee(self) -> Guarantee:
        """The (epsilon, delta) of the entry by itself."""
        return self.charge.guarantee

    @property
    def left(self) -> int:
        """The number of planned releases that are not made yet."""
        return 0 if self.releases is None else self.releases - self.used


@dataclass(frozen=True)
class Booking:
    """How a release is booked: as an unplanned one, or as one of a planned block.

    ``number`` is that of the entry; ``release`` of ``releases`` the place in the block.
    """

    number: int
    charge: Charge
    release: int | None = None
    releases: int | None = None

    @property
    def planned(self) -> bool:
        """Whether the release is one of a planned block, which is paid for already."""
        return self.release is not None

    def as_dict(self) -> dict[str, int | float | bool | None]:
        """The booking as plain values, for JSON."""
        known = self.charge.guarantee
        return {
            "entry": self.number, "planned": self.planned, "release": self.release,
            "releases": self.releases, "epsilon": known.epsilon, "delta": known.delta,
        }  # fmt: skip

    def __str__(self) -> str:
        if self.planned:
            return f"release {self.release} of {self.releases} of planned block {self.number}"
        return f"unplanned release, (ε, δ) = {write_pair(self.charge.guarantee)}"


def write_pair(guarantee: Guarantee) -> str:
    """Return an (epsilon, delta) of spends in short, rounded up."""
    epsilon = guarantee.epsilon
    shown = "inf" if math.isinf(epsilon) else rounded("epsilon", epsilon, 4)
    return f"({shown}, {rounded('delta', guarantee.delta, 3)})"


def write_left(guarantee: Guarantee) -> str:
    """Return what is left of an (epsilon, delta) in short, rounded down."""
    return f"({rounded('left', guarantee.epsilon, 4)}, {rounded('left', guarantee.delta, 3)})"
