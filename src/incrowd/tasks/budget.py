"""What is left in the ledger of a table, and what a release by a spec would take of it."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from incrowd.errors import IncrowdError
from incrowd.privacy.events import Composition, Event
from incrowd.release.ledger import ONE_ROW, BudgetError, Ledger, unit_of_id
from incrowd.spec.model import PersonId, Spec

_SQLITE = b"SQLite format 3\0"


@dataclass(frozen=True)
class Outlay:
    """A budget, what is spent of it, and what it comes to with one release more.

    ``after`` is None where nothing more was asked for, infinite where no epsilon would do.
    ``refused`` says why the ledger would not book it; nothing if it would.
    """

    epsilon: float
    delta: float
    releases: int
    spent: float
    after: float | None
    refused: str

    @property
    def left(self) -> float:
        """What may still be spent."""
        return max(self.epsilon - self.spent, 0.0)

    @property
    def cost(self) -> float | None:
        """What the release adds to what is spent; releases compose to less than their sum."""
        if self.after is None or math.isinf(self.after):
            return self.after
        return max(self.after - self.spent, 0.0)


def outlay(path: Path, events: Sequence[Event], unit: str = ONE_ROW) -> Outlay:
    """What events would take of a ledger's budget; nothing is booked."""
    ledger = Ledger(path)
    allowed = ledger.budget()
    spend: list[Event] = [Composition(list(events))] if len(events) > 1 else list(events)
    refused = ""
    if spend:
        try:
            ledger.allow(spend, unit=unit)
        except BudgetError as error:
            refused = str(error)
    return Outlay(
        epsilon=allowed.epsilon, delta=allowed.delta, releases=len(ledger.spends()),
        spent=ledger.spent(), after=ledger.spent(spend) if spend else None, refused=refused,
    )  # fmt: skip


def unit_of(spec: Spec) -> str:
    """What releases by a spec protect, as a ledger has it."""
    return unit_of_id(spec.unit.id) if isinstance(spec.unit, PersonId) else ONE_ROW


def ledgers(folder: Path) -> list[Path]:
    """The ledgers in a folder, by name."""
    found = (path for path in folder.iterdir() if path.is_file() and _is_ledger(path))
    return sorted(found, key=lambda path: path.name.lower())


def _is_ledger(path: Path) -> bool:
    """Whether a file is a ledger with a budget."""
    try:
        with path.open("rb") as file:
            if file.read(len(_SQLITE)) != _SQLITE:
                return False
        return bool(Ledger(path).budgets())
    except (OSError, IncrowdError, sqlite3.Error):
        return False
