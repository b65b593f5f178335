"""The privacy budget of one table, and every event spent from it, in an SQLite file.

A spend is booked, durably, before anything is drawn: after a crash the ledger may hold a
spend that nobody has seen, but never misses one that somebody could have. Bookings are
serialised by the database, so two publishers cannot both spend the last of a budget. All of
them protect the same unit: what protects a row and what protects a person do not add up.
"""

from __future__ import annotations

import datetime as dt
import json
import math
import secrets
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from incrowd.errors import IncrowdError, Refusal, check_at_least_zero, check_fraction
from incrowd.privacy.accountant import Accountant
from incrowd.privacy.events import Composition, Event, Sampled, as_dict, from_dict
from incrowd.privacy.rounded import rounded

_TABLES = """
CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS budgets
    (number INTEGER PRIMARY KEY, day TEXT NOT NULL, epsilon REAL NOT NULL, delta REAL NOT NULL);
CREATE TABLE IF NOT EXISTS spends
    (number INTEGER PRIMARY KEY, day TEXT NOT NULL, event TEXT NOT NULL);
"""


ONE_ROW = "one row"


def unit_of_id(column: str) -> str:
    """The unit of releases that use one row for each value of a column."""
    return f"one person, by the column '{column}'"


class BudgetError(Refusal):
    """The budget does not allow what was asked: the answer is no."""


@dataclass(frozen=True)
class Budget:
    """What may be spent on a table in all, and the day that it was decided."""

    epsilon: float
    delta: float
    day: str = ""


@dataclass(frozen=True)
class Spend:
    """One event that was booked."""

    number: int
    day: str
    event: Event


class Ledger:
    """The budget and the spends of one table."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def set_budget(self, *, epsilon: float, delta: float, raising: bool = False) -> None:
        """Decide what may be spent in all. Earlier decisions stay on record.

        To allow more than before takes ``raising``: people were promised the old budget.
        """
        known = (
            float(check_at_least_zero("epsilon", epsilon)),
            float(check_fraction("delta", delta)),
        )
        with self._writing(create=True) as database:
            old = self._budgets(database)
            if old and not raising and (known[0] > old[-1].epsilon or known[1] > old[-1].delta):
                raise BudgetError(
                    f"The budget of '{self.path.name}' is epsilon = {old[-1].epsilon:g} at delta = "
                    f"{old[-1].delta:g}, and epsilon = {known[0]:g} at delta = {known[1]:g} would "
                    "raise it. To raise what may be learnt about people is a decision of its own: "
                    "confirm it with --raise (raising=True). It stays on record."
                )
            database.execute(
                "INSERT INTO budgets (day, epsilon, delta) VALUES (?, ?, ?)", (_today(), *known)
            )

    def budget(self) -> Budget:
        """What may be spent in all, by the latest decision."""
        with self._open() as database:
            return self._budget(database)

    def budgets(self) -> list[Budget]:
        """All decisions on the budget, the oldest first."""
        with self._open() as database:
            return self._budgets(database)

    def unit(self) -> str | None:
        """What every release under this ledger protects; None before the first."""
        with self._open() as database:
            return self._about(database).get("unit")

    def set_unit(self, unit: str) -> None:
        """Say what the releases protect, where a ledger of an older version does not."""
        with self._writing() as database:
            self._refuse_unit(database, unit, told=True)
            database.execute("INSERT OR IGNORE INTO about VALUES ('unit', ?)", (unit,))

    def spends(self) -> list[Spend]:
        """Everything that was booked, the oldest first."""
        with self._open() as database:
            return self._spends(database)

    def as_before(self, event: Event) -> Event:
        """An event as the table's others are: sampled, where all of them are at one rate."""
        rates = {
            part.rate if isinstance(part, Sampled) else None
            for spend in self.spends()
            for part in _parts(spend.event)
        }
        rate = rates.pop() if len(rates) == 1 else None
        return event if rate is None else Sampled(event, rate)

    def spent(self, more: Iterable[Event] = ()) -> float:
        """The epsilon of all spends, and of some more events, at the budget's delta."""
        events = [*(spend.event for spend in self.spends()), *more]
        return _cost(events, self.budget().delta)

    def allow(self, events: Iterable[Event], *, unit: str = ONE_ROW) -> None:
        """Raise :class:`BudgetError` if events would exceed the budget; book nothing."""
        with self._open() as database:
            self._refuse_unit(database, unit)
            self._refuse(database, list(events))

    def book(self, events: Iterable[Event], *, unit: str = ONE_ROW) -> None:
        """Book events, or raise :class:`BudgetError` and book nothing.

        ``unit`` is what they protect: :data:`ONE_ROW`, or what :func:`unit_of_id` says.
        """
        asked = list(events)
        with self._writing() as database:
            self._refuse_unit(database, unit)
            self._refuse(database, asked)
            database.execute("INSERT OR IGNORE INTO about VALUES ('unit', ?)", (unit,))
            database.executemany(
                "INSERT INTO spends (day, event) VALUES (?, ?)",
                [(_today(), json.dumps(as_dict(event))) for event in asked],
            )

    def _refuse_unit(self, database: sqlite3.Connection, unit: str, told: bool = False) -> None:
        known = self._about(database).get("unit")
        if known is None and self._spends(database) and not told:
            raise BudgetError(
                f"The ledger '{self.path.name}' was made by an older version and does not say what "
                "its releases protect. Say it once: incrowd ledger unit "
                f"{self.path} --row, or --id COLUMN. Nothing was released."
            )
        if known not in (None, unit):
            raise BudgetError(
                f"The releases under '{self.path.name}' protect {known}, not {unit}: they do not "
                "add up. Publish a table with one unit only, and keep its ledger for that. Nothing "
                "was released."
            )

    def _refuse(self, database: sqlite3.Connection, asked: list[Event]) -> None:
        budget = self._budget(database)
        past = [spend.event for spend in self._spends(database)]
        total = _cost([*past, *asked], budget.delta)
        if not total <= budget.epsilon:
            spent = _cost(past, budget.delta)
            if math.isinf(total):
                raise BudgetError(
                    f"The budget of '{self.path.name}' does not allow it: at delta = "
                    f"{budget.delta:g} no epsilon is enough for it together with what is booked "
                    f"({len(past)} release(s)), since each uses up some of delta whatever epsilon "
                    "is. Give the release a smaller 'delta'. Nothing was released."
                )
            raise BudgetError(
                f"The budget of '{self.path.name}' does not allow it: with this release epsilon "
                f"would be {rounded('epsilon', total, 4)} at delta = {budget.delta:g}, and "
                f"{budget.epsilon:g} is allowed. {rounded('epsilon', spent, 4)} is spent by "
                f"{len(past)} release(s), so {rounded('left', max(budget.epsilon - spent, 0), 4)} "
                "is left. Nothing was released."
            )

    def key(self) -> bytes:
        """The ledger's own secret, for fingerprints of tables."""
        with self._open() as database:
            return bytes.fromhex(self._about(database)["key"])

    def recognises(self, fingerprint: str) -> bool:
        """Whether a table is the one that was released first under this ledger.

        ``fingerprint`` is made with the ledger's :meth:`key`; the first one is remembered.
        """
        with self._writing() as database:
            database.execute(
                "INSERT OR IGNORE INTO about VALUES ('fingerprint', ?)", (fingerprint,)
            )
            return self._about(database)["fingerprint"] == fingerprint

    @contextmanager
    def _open(self, *, create: bool = False) -> Iterator[sqlite3.Connection]:
        if not create and not self.path.exists():
            raise IncrowdError(
                f"There is no ledger '{self.path}'. Make one: incrowd ledger budget {self.path} "
                "--epsilon 1 --delta 1e-6"
            )
        with ExitStack() as opened:
            try:
                database = sqlite3.connect(self.path, timeout=120, isolation_level=None)
                opened.callback(database.close)
                database.execute("PRAGMA synchronous = EXTRA")
            except sqlite3.Error as error:
                raise IncrowdError(f"Cannot open the ledger '{self.path}': {error}.") from error
            try:
                yield database
            except (sqlite3.DatabaseError, TypeError, KeyError, json.JSONDecodeError) as error:
                raise IncrowdError(f"Cannot use '{self.path}' as a ledger: {error}.") from error

    @contextmanager
    def _writing(self, *, create: bool = False) -> Iterator[sqlite3.Connection]:
        """One transaction that excludes all other writers from its first step on."""
        with self._open(create=create) as database:
            database.execute("BEGIN IMMEDIATE")
            try:
                if create:
                    for statement in _TABLES.split(";")[:-1]:
                        database.execute(statement)
                    database.execute(
                        "INSERT OR IGNORE INTO about VALUES ('key', ?)", (secrets.token_hex(32),)
                    )
                yield database
            except BaseException:
                database.execute("ROLLBACK")
                raise
            database.execute("COMMIT")

    def _about(self, database: sqlite3.Connection) -> dict[str, str]:
        return dict(database.execute("SELECT name, value FROM about").fetchall())

    def _budget(self, database: sqlite3.Connection) -> Budget:
        found = self._budgets(database)
        if not found:
            raise IncrowdError(f"The ledger '{self.path}' has no budget. Set one.")
        return found[-1]

    def _budgets(self, database: sqlite3.Connection) -> list[Budget]:
        rows = database.execute("SELECT epsilon, delta, day FROM budgets ORDER BY number")
        return [Budget(*row) for row in rows]

    def _spends(self, database: sqlite3.Connection) -> list[Spend]:
        rows = database.execute("SELECT number, day, event FROM spends ORDER BY number")
        return [Spend(number, day, from_dict(json.loads(event))) for number, day, event in rows]


def _cost(events: list[Event], delta: float) -> float:
    """The epsilon of events on one and the same table.

    Where the table is itself a sample, all of them see that one sample: amplification is for
    the whole composition, not for each event. Events that disagree about the sampling are
    counted without it. (Infinite where releases of exactly k rows alone, beta**k each and
    amplified, take up more than delta.)
    """
    rates, inner = set(), []
    for part in _parts(Composition(events)):
        rates.add(part.rate if isinstance(part, Sampled) else None)
        inner.append(part.event if isinstance(part, Sampled) else part)
    rate = rates.pop() if len(rates) == 1 else None
    whole: Event = Composition(inner) if rate is None else Sampled(Composition(inner), rate)
    return Accountant(whole).epsilon(delta=delta)


def _parts(event: Event) -> Iterator[Event]:
    """What an event is composed of, down to what was sampled."""
    if isinstance(event, Composition):
        for part in event.events:
            yield from _parts(part)
    else:
        yield event


def _today() -> str:
    return dt.datetime.now(dt.UTC).date().isoformat()
