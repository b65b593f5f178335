"""What the curator asserts about a release, as the file that a certificate holds the hash of."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, ValidationError

from incrowd.errors import IncrowdError
from incrowd.spec.about import About

if TYPE_CHECKING:
    from incrowd.release.ledger import Ledger

FOLDER = "metadata"
ASSERTIONS = f"{FOLDER}/assertions.json"


class LedgerTotal(BaseModel):
    """What the ledger of a table says after a release: the releases so far, and their total."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    releases: int
    epsilon: float
    delta: float
    budget_epsilon: float
    budget_delta: float


def total_ledger(ledger: Ledger) -> LedgerTotal:
    """Return what a ledger says now."""
    total, budget = ledger.total(), ledger.budget()
    return LedgerTotal(
        releases=sum(spend.used for spend in ledger.spends()),
        epsilon=total.epsilon, delta=total.delta,
        budget_epsilon=budget.epsilon, budget_delta=budget.delta,
    )  # fmt: skip


class Assertions(BaseModel):
    """All that a release says of itself and cannot prove."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    about: About = About()
    ledger: LedgerTotal | None = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing is asserted."""
        return self.ledger is None and not self.about.list_stated()

    def list_stated(self) -> tuple[str, ...]:
        """Return the names of what is asserted."""
        return (*self.about.list_stated(), *(["ledger"] if self.ledger is not None else []))

    def to_bytes(self) -> bytes:
        """Write it in the one way, as :data:`ASSERTIONS` holds it."""
        plain = self.model_dump(mode="json", exclude_defaults=True)
        text = json.dumps(plain, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False)
        return text.encode() + b"\n"

    def compute_hash(self) -> str:
        """Return the SHA-256 of the file, in hexadecimal."""
        return hashlib.sha256(self.to_bytes()).hexdigest()


def parse_assertions(content: bytes) -> Assertions:
    """Read what :meth:`Assertions.to_bytes` has written; raise if it is anything else."""
    try:
        assertions = Assertions.model_validate_json(content)
    except (ValidationError, ValueError) as error:
        raise IncrowdError(f"File '{ASSERTIONS}': not valid. Get it again.") from error
    if assertions.to_bytes() != content:
        raise IncrowdError(f"File '{ASSERTIONS}': not as Incrowd writes it. Get it again.")
    return assertions
