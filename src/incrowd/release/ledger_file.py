"""The file of a ledger, an SQLite database: open it, read its records, add some.

Records are added in one transaction that excludes all other writers, and are on disk when it ends.
:mod:`incrowd.release.ledger` decides which ones may be added.
"""

from __future__ import annotations

import datetime as dt
import json
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from incrowd.errors import IncrowdError
from incrowd.privacy.amplification import Guarantee
from incrowd.privacy.events import Event, parse_event, serialize_event
from incrowd.privacy.filter import Charge, separate_sampling
from incrowd.release.ledger_entries import LedgerBudget, Spend

# A spend is an unplanned release or, with a number of `releases`, a planned block; `event` is that
# of each release. What it takes from the budget is (`epsilon`, `delta`); `inside_...` is without
# amplification by sampling. `uses` has a row for each release of a block that was made; of a
# series, with its part.
_TABLES = """
CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS budgets
    (number INTEGER PRIMARY KEY, day TEXT NOT NULL, epsilon REAL NOT NULL, delta REAL NOT NULL);
CREATE TABLE IF NOT EXISTS spends
    (number INTEGER PRIMARY KEY, day TEXT NOT NULL, event TEXT NOT NULL,
    epsilon REAL NOT NULL, delta REAL NOT NULL,
    inside_epsilon REAL NOT NULL, inside_delta REAL NOT NULL, releases INTEGER, part TEXT);
CREATE TABLE IF NOT EXISTS uses
    (number INTEGER PRIMARY KEY, day TEXT NOT NULL, spend INTEGER NOT NULL, part TEXT);
"""


_SPENDS = (
    "SELECT number, day, event, epsilon, delta, inside_epsilon, inside_delta, releases, part "
    "FROM spends ORDER BY number"
)
_SPENDS_WITHOUT_PARTS = (  # of files that are older than parts
    "SELECT number, day, event, epsilon, delta, inside_epsilon, inside_delta, releases, NULL "
    "FROM spends ORDER BY number"
)
_USES = "SELECT spend, part FROM uses ORDER BY number"
_USES_WITHOUT_PARTS = "SELECT spend, NULL FROM uses ORDER BY number"


class LedgerRecords:
    """The records of a ledger that is open."""

    def __init__(self, database: sqlite3.Connection, path: Path) -> None:
        self._database = database
        self._path = path

    def read_about(self) -> dict[str, str]:
        """Return what the ledger says of itself: its key, unit, and first table's fingerprint."""
        return dict(self._database.execute("SELECT name, value FROM about").fetchall())

    def insert_about(self, name: str, value: str) -> None:
        """Add what the ledger says of itself, unless it says it already."""
        self._database.execute("INSERT OR IGNORE INTO about VALUES (?, ?)", (name, value))

    def read_budget(self) -> LedgerBudget:
        """Return the latest budget; raise if there is none."""
        budgets = self.read_budgets()
        if not budgets:
            raise IncrowdError(
                f"Ledger '{self._path}': it has no budget. Set one: incrowd ledger budget"
            )
        return budgets[-1]

    def read_budgets(self) -> list[LedgerBudget]:
        """Return all budgets, the oldest first."""
        rows = self._database.execute("SELECT epsilon, delta, day FROM budgets ORDER BY number")
        return [LedgerBudget(*row) for row in rows]

    def insert_budget(self, epsilon: float, delta: float) -> None:
        """Add a budget, which is the latest."""
        self._database.execute(
            "INSERT INTO budgets (day, epsilon, delta) VALUES (?, ?, ?)",
            (_get_today(), epsilon, delta),
        )

    def read_spends(self) -> list[Spend]:
        """Return all entries, the oldest first."""
        uses: dict[int, list[str | None]] = {}
        statement = _USES if self._has_parts("uses") else _USES_WITHOUT_PARTS
        for spend, name in self._database.execute(statement):
            uses.setdefault(spend, []).append(name)
        has_parts = self._has_parts("spends")
        rows = self._database.execute(_SPENDS if has_parts else _SPENDS_WITHOUT_PARTS)
        spends = []
        for number, day, text, epsilon, delta, inside_epsilon, inside_delta, releases, part in rows:
            event = parse_event(json.loads(text))
            charge = Charge(
                Guarantee(epsilon, delta), Guarantee(inside_epsilon, inside_delta),
                separate_sampling(event)[1],
            )  # fmt: skip
            use_parts = uses.get(number, [])
            used = 1 if releases is None else len(use_parts)
            parts = tuple(name for name in use_parts if name is not None)
            spends.append(Spend(number, day, event, charge, releases, used, part, parts))
        return spends

    def _has_parts(self, table: str) -> bool:
        """Return whether the file is one that holds the part of each entry, or of each use."""
        columns = self._database.execute(f"PRAGMA table_info({table})")
        return any(name == "part" for _, name, *_ in columns)

    def insert_spend(
        self, event: Event, charge: Charge, releases: int | None = None, part: str | None = None
    ) -> None:
        """Add an unplanned release or, of several ``releases`` of one event, a planned block."""
        text = json.dumps(serialize_event(event))
        if not self._has_parts("spends"):
            self._database.execute("ALTER TABLE spends ADD COLUMN part TEXT")
        self._database.execute(
            "INSERT INTO spends (day, event, epsilon, delta, inside_epsilon, inside_delta, "
            "releases, part) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                _get_today(), text, charge.guarantee.epsilon, charge.guarantee.delta,
                charge.inside.epsilon, charge.inside.delta, releases, part,
            ),
        )  # fmt: skip

    def insert_use(self, number: int, part: str | None = None) -> None:
        """Add a release of a planned block; of a series, with its part."""
        if not self._has_parts("uses"):
            self._database.execute("ALTER TABLE uses ADD COLUMN part TEXT")
        self._database.execute(
            "INSERT INTO uses (day, spend, part) VALUES (?, ?, ?)", (_get_today(), number, part)
        )


@contextmanager
def open_records(path: Path) -> Iterator[LedgerRecords]:
    """Open a ledger to read it."""
    with _open_database(path, create=False) as database:
        yield LedgerRecords(database, path)


@contextmanager
def open_transaction(path: Path, *, create: bool = False) -> Iterator[LedgerRecords]:
    """Open one transaction that excludes all other writers from its first step on."""
    with _open_database(path, create=create) as database:
        database.execute("BEGIN IMMEDIATE")
        try:
            records = LedgerRecords(database, path)
            if create:
                for statement in _TABLES.split(";")[:-1]:
                    database.execute(statement)
                records.insert_about("key", secrets.token_hex(32))
            yield records
        except BaseException:
            database.execute("ROLLBACK")
            raise
        database.execute("COMMIT")


@contextmanager
def _open_database(path: Path, *, create: bool) -> Iterator[sqlite3.Connection]:
    if not create and not path.exists():
        raise IncrowdError(
            f"Ledger '{path}': not found. Create it: incrowd ledger budget {path} "
            "--epsilon 1 --delta 1e-6"
        )
    with ExitStack() as opened:
        try:
            database = sqlite3.connect(path, timeout=120, isolation_level=None)
            opened.callback(database.close)
            database.execute("PRAGMA synchronous = EXTRA")
        except sqlite3.Error as error:
            raise IncrowdError(f"Cannot open the ledger '{path}': {error}.") from error
        try:
            yield database
        except (sqlite3.DatabaseError, TypeError, KeyError, json.JSONDecodeError) as error:
            raise IncrowdError(f"Cannot use '{path}' as a ledger: {error}.") from error


def _get_today() -> str:
    return dt.datetime.now(dt.UTC).date().isoformat()
