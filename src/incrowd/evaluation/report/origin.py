"""What a release was made by, for the curator's report: the spec, and the ledger after it."""

from __future__ import annotations

from dataclasses import dataclass

from incrowd.privacy.amplification import Guarantee
from incrowd.release.ledger_entries import RULE, Booking

_LONGEST = 100_000  # characters of a spec that are shown


@dataclass(frozen=True)
class LedgerStatus:
    """What a ledger says after a release: its budget, what is booked, and how this one was.

    ``in_spec`` says whether the spec names the ledger.
    """

    name: str
    budget: Guarantee
    total: Guarantee
    booking: Booking
    releases: int
    in_spec: bool = False

    @property
    def remaining_budget(self) -> Guarantee:
        """What may still be spent."""
        return Guarantee(
            max(self.budget.epsilon - self.total.epsilon, 0.0),
            max(self.budget.delta - self.total.delta, 0.0),
        )

    @property
    def rule(self) -> str:
        """The rule of composition that holds."""
        return RULE


@dataclass(frozen=True)
class ReleaseOrigin:
    """The spec as text, what its file is called, and the ledger if there is one.

    ``unused`` rows belong to people of whom another row was used, or have no id.
    """

    spec: str
    name: str = "spec.yaml"
    signed: bool = False
    standing: LedgerStatus | None = None
    unused: int = 0

    def as_dict(self) -> dict[str, str | bool | int | None]:
        """Return what led to the release as plain values, for JSON."""
        return {
            "spec_file": self.name,
            "spec": self.spec,
            "signed": self.signed,
            "ledger": None if self.standing is None else self.standing.name,
            "entry": None if self.standing is None else self.standing.releases,
        }

    @property
    def shown_spec(self) -> str:
        """The spec, or as much of it as a page should have."""
        if len(self.spec) <= _LONGEST:
            return self.spec
        return f"{self.spec[:_LONGEST]}\n# ... {len(self.spec) - _LONGEST:,} more characters"

    @property
    def command(self) -> str:
        """What makes such a release again."""
        named = self.standing is not None and not self.standing.in_spec
        ledger = f" --ledger {self.standing.name}" if self.standing is not None and named else ""
        return (
            f"incrowd publish {self.name} -o FOLDER{ledger}{' --sign KEY' if self.signed else ''}"
        )
