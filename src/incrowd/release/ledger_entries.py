"""What a ledger holds: budgets, and what was booked."""

from __future__ import annotations

import math
from dataclasses import dataclass

from incrowd.privacy.amplification import Guarantee
from incrowd.privacy.events import Event
from incrowd.privacy.filter import Charge
from incrowd.privacy.presentation import format_parameter

PARALLEL_RULE = (
    "Entries of one part add up with those without a part; over parts the largest sum counts, "
    "because every unit lies in one part."
)
RULE = (
    "Releases of a planned block compose tightly. Blocks and unplanned releases add their ε and "
    "their δ, even if their parameters are chosen after earlier results."
)


@dataclass(frozen=True)
class LedgerBudget:
    """A privacy budget of a table, and the day it was set.

    Attributes:
        epsilon: Epsilon of all releases together.
        delta: Delta of all releases together.
        day: The day, in ISO form.
    """

    epsilon: float
    delta: float
    day: str = ""


@dataclass(frozen=True)
class Spend:
    """An entry of a ledger: an unplanned release, or a planned block.

    Attributes:
        number: The number of the entry.
        day: The day it was booked, in ISO form.
        event: The event of the release, or of each release of the block.
        charge: What the entry takes from the budget.
        releases: Number of planned releases of a block; None for an unplanned release.
        used: Number of releases that were made.
        part: The part of the table that was released; None for releases of any rows.
        parts: The parts that a series has released, in this order.
    """

    number: int
    day: str
    event: Event
    charge: Charge
    releases: int | None = None
    used: int = 1
    part: str | None = None
    parts: tuple[str, ...] = ()

    @property
    def part_charge(self) -> tuple[str | None, Charge]:
        """The charge with its part."""
        return self.part, self.charge

    @property
    def guarantee(self) -> Guarantee:
        """The (epsilon, delta) of the entry by itself."""
        return self.charge.guarantee

    @property
    def remaining_releases(self) -> int:
        """The number of planned releases that are not made yet."""
        return 0 if self.releases is None else self.releases - self.used


@dataclass(frozen=True)
class Booking:
    """How a release is booked: unplanned, or as one of a planned block.

    Attributes:
        number: The number of the entry.
        charge: What the entry takes from the budget.
        release: The place of the release in its block.
        releases: Number of releases of the block.
        is_first: Whether the block is booked with this release, as that of a series is.
    """

    number: int
    charge: Charge
    release: int | None = None
    releases: int | None = None
    is_first: bool = False

    @property
    def is_planned(self) -> bool:
        """Whether the release is one of a planned block."""
        return self.release is not None

    @property
    def is_paid(self) -> bool:
        """Whether the release takes nothing of the budget, because its block has."""
        return self.is_planned and not self.is_first

    def as_dict(self) -> dict[str, int | float | bool | None]:
        """Return the booking as plain values, for JSON."""
        guarantee = self.charge.guarantee
        return {
            "entry": self.number, "planned": self.is_planned, "release": self.release,
            "releases": self.releases, "epsilon": guarantee.epsilon, "delta": guarantee.delta,
        }  # fmt: skip

    def __str__(self) -> str:
        if self.is_planned:
            return f"release {self.release} of {self.releases} of planned block {self.number}"
        return f"unplanned release, (ε, δ) = {format_guarantee(self.charge.guarantee)}"


def format_guarantee(guarantee: Guarantee) -> str:
    """Return an (epsilon, delta) of spends in short, rounded up."""
    epsilon = guarantee.epsilon
    epsilon_text = "inf" if math.isinf(epsilon) else format_parameter("epsilon", epsilon, 4)
    return f"({epsilon_text}, {format_parameter('delta', guarantee.delta, 3)})"


def format_remaining(guarantee: Guarantee) -> str:
    """Return what is left of an (epsilon, delta) in short, rounded down."""
    epsilon = format_parameter("left", guarantee.epsilon, 4)
    return f"({epsilon}, {format_parameter('left', guarantee.delta, 3)})"
