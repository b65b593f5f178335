"""The privacy budget of one table, and everything spent from it, in an SQLite file.

A spend is booked, durably, before anything is drawn: after a crash the ledger may hold a
spend that nobody has seen, but never misses one that somebody could have. Bookings are
serialized by the database, so two publishers cannot both spend the last of a budget. All of
them protect the same unit: what protects a row and what protects a person do not add up.

A spend is an *unplanned release* or a *planned block*: a number of releases whose events are
fixed before the first of them. The events of a block compose tightly. Blocks and unplanned
releases add their epsilons and their deltas, which stays valid where parameters are chosen after
earlier results; :mod:`incrowd.privacy.filter` has the proof.
"""

from __future__ import annotations

import datetime as dt
import json
import math
import secrets
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from incrowd.errors import IncrowdError, Refusal, check_at_least_zero, check_fraction, check_whole
from incrowd.privacy.amplification import Guarantee
from incrowd.privacy.events import Composition, Event, SampledEvent, parse_event, serialize_event
from incrowd.privacy.filter import (
    Charge,
    charge_guarantee,
    charge_share,
    charges_fit,
    repeat_event,
    separate_sampling,
    sum_charges,
)
from incrowd.release.entries import Booking, LedgerBudget, Spend, format_guarantee

_TABLES = """
CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS budgets
    (number INTEGER PRIMARY KEY, day TEXT NOT NULL, epsilon REAL NOT NULL, delta REAL NOT NULL);
CREATE TABLE IF NOT EXISTS spends
    (number INTEGER PRIMARY KEY, day TEXT NOT NULL, event TEXT NOT NULL);
"""
# What a spend takes from the budget, and of how many releases a planned block is. Ledgers of an
# earlier version lack these columns. One of them that reads the event of a block counts all of it.
_COLUMNS = {
    "epsilon": "REAL", "delta": "REAL", "inside_epsilon": "REAL", "inside_delta": "REAL",
    "releases": "INTEGER",
}  # fmt: skip
_USES = """
CREATE TABLE IF NOT EXISTS uses
    (number INTEGER PRIMARY KEY, day TEXT NOT NULL, spend INTEGER NOT NULL)
"""
MOST_RELEASES = 1000  # of a planned block

ONE_ROW = "one row"


def name_person_unit(column: str) -> str:
    """Return the unit of releases that use one row for each value of a column."""
    return f"one person, by the column '{column}'"


class BudgetError(Refusal):
    """The privacy budget does not allow the request."""


class Ledger:
    """The privacy budget of one table, and every release that was booked on it.

    A ledger is one SQLite file. Two processes cannot both spend the last of the budget. After a
    crash the ledger may hold a spend without a release, and never lacks one.

    Args:
        path: The file. It is created when a budget is set.

    Examples:
        >>> import tempfile
        >>> from pathlib import Path
        >>> import incrowd as ic
        >>> ledger = ic.Ledger(Path(tempfile.mkdtemp()) / "people.ledger")
        >>> ledger.set_budget(epsilon=2.0, delta=2e-6)
        >>> booking = ledger.book([ic.Mechanism(epsilon=0.5, delta=1e-6)])
        >>> ledger.remaining_budget()
        Guarantee(epsilon=1.5, delta=1e-06)
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def set_budget(self, *, epsilon: float, delta: float, raising: bool = False) -> None:
        """Set the budget of all releases together. Earlier budgets stay on record.

        Args:
            epsilon: Epsilon of the budget.
            delta: Delta of the budget.
            raising: Allow a larger budget than before. People were promised the old one.

        Raises:
            BudgetError: The budget is larger than before, and ``raising`` is not given.
            ParameterError: A parameter is out of range.
        """
        known = (
            float(check_at_least_zero("epsilon", epsilon)),
            float(check_fraction("delta", delta)),
        )
        with self._open_transaction(create=True) as database:
            old = self._read_budgets(database)
            if old and not raising and (known[0] > old[-1].epsilon or known[1] > old[-1].delta):
                raise BudgetError(
                    f"Ledger '{self.path.name}': ({known[0]:g}, {known[1]:g}) would raise the "
                    f"budget of ({old[-1].epsilon:g}, {old[-1].delta:g}). Confirm it with --raise "
                    "(raising=True); it stays on record."
                )
            database.execute(
                "INSERT INTO budgets (day, epsilon, delta) VALUES (?, ?, ?)", (_get_today(), *known)
            )

    def budget(self) -> LedgerBudget:
        """Return what may be spent in all, by the latest decision."""
        with self._open_database() as database:
            return self._read_budget(database)

    def budgets(self) -> list[LedgerBudget]:
        """Return all decisions on the budget, the oldest first."""
        with self._open_database() as database:
            return self._read_budgets(database)

    def unit(self) -> str | None:
        """Return what every release under this ledger protects; None before the first."""
        with self._open_database() as database:
            return self._read_about(database).get("unit")

    def set_unit(self, unit: str) -> None:
        """Set the unit of privacy of a ledger that an older version made.

        Args:
            unit: :data:`ONE_ROW`, or the result of :func:`name_person_unit`.
        """
        with self._open_transaction() as database:
            self._refuse_unit(database, unit, told=True)
            database.execute("INSERT OR IGNORE INTO about VALUES ('unit', ?)", (unit,))

    def spends(self) -> list[Spend]:
        """Return everything that was booked, the oldest first."""
        with self._open_database() as database:
            return self._read_spends(database)

    def match_sampling(self, event: Event) -> Event:
        """Return an event with the sampling rate that all other releases share, if they do."""
        rates = {spend.charge.rate for spend in self.spends()}
        rate = rates.pop() if len(rates) == 1 else None
        return event if rate is None else SampledEvent(event, rate)

    def total(self, more: Iterable[Charge] = ()) -> Guarantee:
        """Return the (epsilon, delta) of everything booked, and of some more charges.

        Args:
            more: Further charges to include.

        Returns:
            The guarantee of all entries together.
        """
        return sum_charges([*(spend.charge for spend in self.spends()), *more])

    def remaining_budget(self) -> Guarantee:
        """Return what the budget leaves for further blocks and unplanned releases."""
        with self._open_database() as database:
            budget = self._read_budget(database)
            total = sum_charges([spend.charge for spend in self._read_spends(database)])
        left = (max(all_ - spent, 0.0) for all_, spent in zip(
            (budget.epsilon, budget.delta), (total.epsilon, total.delta), strict=True
        ))  # fmt: skip
        return Guarantee(*left)

    def allows_charges(self, more: Iterable[Charge]) -> bool:
        """Return whether the budget allows charges in addition to everything booked.

        Args:
            more: The charges.
        """
        budget = self.budget()
        charges = [*(spend.charge for spend in self.spends()), *more]
        return charges_fit(charges, Guarantee(budget.epsilon, budget.delta))

    def compute_charge(self, events: Iterable[Event], guarantee: Guarantee | None = None) -> Charge:
        """Compute what events would take from the budget as an unplanned release.

        Without a guarantee, delta is what the events need at any epsilon. Where that lowers
        epsilon, it also gets the delta of the first budget, halved once for each entry up to this
        one. That depends on nothing which a result could influence after the entry was booked.

        Args:
            events: The events of the release.
            guarantee: The (epsilon, delta) that the events are certified to satisfy.

        Returns:
            The charge.
        """
        with self._open_database() as database:
            return self._compute_charge(database, _combine_events(list(events)), guarantee)

    def allow(
        self, events: Iterable[Event], *, unit: str = ONE_ROW, guarantee: Guarantee | None = None,
        planned: bool = False,
    ) -> Booking:  # fmt: skip
        """Return how events would be booked, without booking them.

        Args:
            events: The events of the release.
            unit: The unit of privacy: :data:`ONE_ROW`, or the result of :func:`name_person_unit`.
            guarantee: The (epsilon, delta) that the events are certified to satisfy.
            planned: Refuse a release that belongs to no planned block.

        Raises:
            BudgetError: The budget does not allow the release.
        """
        with self._open_database() as database:
            return self._allow_event(
                database, _combine_events(list(events)), unit, guarantee, planned
            )

    def book(
        self, events: Iterable[Event], *, unit: str = ONE_ROW, guarantee: Guarantee | None = None,
        planned: bool = False,
    ) -> Booking:  # fmt: skip
        """Book the events of one release.

        If a planned block of exactly these events has a release left, that one is used. Otherwise
        the release is unplanned.

        Args:
            events: The events of the release.
            unit: The unit of privacy: :data:`ONE_ROW`, or the result of :func:`name_person_unit`.
            guarantee: The (epsilon, delta) that the events are certified to satisfy; see
                :meth:`compute_charge`.
            planned: Refuse a release that belongs to no planned block.

        Returns:
            How the release was booked.

        Raises:
            BudgetError: The budget does not allow the release. Nothing is booked.
        """
        event = _combine_events(list(events))
        with self._open_transaction() as database:
            booking = self._allow_event(database, event, unit, guarantee, planned)
            if booking.is_planned:
                database.execute(
                    "INSERT INTO uses (day, spend) VALUES (?, ?)", (_get_today(), booking.number)
                )
            else:
                self._insert_spend(database, event, booking.charge, unit)
        return booking

    def plan(
        self, event: Event, *, releases: int, guarantee: Guarantee, unit: str = ONE_ROW
    ) -> Spend:
        """Book a planned block: several releases of one event, fixed in advance.

        The whole block is spent at once.

        Args:
            event: The event of each release.
            releases: Number of releases.
            guarantee: The (epsilon, delta) of all of them together, composed tightly.
            unit: The unit of privacy: :data:`ONE_ROW`, or the result of :func:`name_person_unit`.

        Returns:
            The entry of the ledger.

        Raises:
            BudgetError: The budget does not allow the block. Nothing is booked.
        """
        number = int(check_whole("releases", releases))
        if number > MOST_RELEASES:
            raise IncrowdError(
                f"A planned block has at most {MOST_RELEASES:,} releases. Plan fewer."
            )
        charge = charge_guarantee(repeat_event(event, number), guarantee)
        with self._open_transaction() as database:
            self._refuse_unit(database, unit)
            self._refuse_over_budget(database, charge, f"this block of {number} releases")
            self._insert_spend(database, event, charge, unit, number)
            return self._read_spends(database)[-1]

    def _allow_event(
        self, database: sqlite3.Connection, event: Event, unit: str, guarantee: Guarantee | None,
        planned: bool,
    ) -> Booking:  # fmt: skip
        self._refuse_unit(database, unit)
        spends = self._read_spends(database)
        for spend in spends:
            if spend.remaining_releases and spend.event == event:
                return Booking(spend.number, spend.charge, spend.used + 1, spend.releases)
        if planned:
            self._refuse_unplanned(spends, event)
        charge = self._compute_charge(database, event, guarantee)
        self._refuse_over_budget(database, charge, "this release")
        return Booking(len(spends) + 1, charge)

    def _compute_charge(
        self, database: sqlite3.Connection, event: Event, guarantee: Guarantee | None
    ) -> Charge:
        if guarantee is not None:
            return charge_guarantee(event, guarantee)
        return charge_share(
            event, self._get_delta_share(database, len(self._read_spends(database)) + 1)
        )

    def _get_delta_share(self, database: sqlite3.Connection, number: int) -> float:
        """Return the delta of an entry without a stated guarantee, by its number."""
        self._read_budget(database)
        return math.ldexp(self._read_budgets(database)[0].delta, -number)

    def _insert_spend(
        self, database: sqlite3.Connection, event: Event, charge: Charge, unit: str,
        releases: int | None = None,
    ) -> None:  # fmt: skip
        database.execute("INSERT OR IGNORE INTO about VALUES ('unit', ?)", (unit,))
        whole = event if releases is None else Composition([event] * releases)
        database.execute(
            "INSERT INTO spends (day, event, epsilon, delta, inside_epsilon, inside_delta, "
            "releases) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (_get_today(), json.dumps(serialize_event(whole)), *_list_points(charge), releases),
        )

    def _refuse_unit(self, database: sqlite3.Connection, unit: str, told: bool = False) -> None:
        about = self._read_about(database).get("unit")
        if about is None and self._read_spends(database) and not told:
            raise BudgetError(
                f"Ledger '{self.path.name}': its unit is not recorded, and nothing was released. "
                f"Set it: incrowd ledger unit {self.path} --row, or --id COLUMN"
            )
        if about not in (None, unit):
            raise BudgetError(
                f"Ledger '{self.path.name}': its releases protect {about}, not {unit}, and nothing "
                "was released. Use one unit per table and ledger."
            )

    def _refuse_unplanned(self, spends: list[Spend], event: Event) -> None:
        used = [spend for spend in spends if spend.releases is not None and spend.event == event]
        why = "no planned block of such releases"
        if used:
            last = used[-1]
            why = f"made all {last.releases} releases of planned block {last.number}"
        raise BudgetError(
            f"Ledger '{self.path.name}': it has {why}, and nothing was released. Plan "
            f"{'another one' if used else 'it'}: incrowd ledger plan {self.path} --spec SPEC"
        )

    def _refuse_over_budget(self, database: sqlite3.Connection, charge: Charge, what: str) -> None:
        budget = self._read_budget(database)
        past = [spend.charge for spend in self._read_spends(database)]
        if charges_fit([*past, charge], Guarantee(budget.epsilon, budget.delta)):
            return
        total, spent = sum_charges([*past, charge]), sum_charges(past)
        limits = f"the budget of '{self.path.name}' is ({budget.epsilon:g}, {budget.delta:g})"
        if spent.delta >= budget.delta:
            raise BudgetError(
                f"Ledger '{self.path.name}': δ is used up, and nothing was released. "
                f"(ε, δ) = {format_guarantee(spent)} is booked by {_count_entries(past)}, and "
                f"{limits}."
            )
        if math.isinf(total.epsilon):
            raise BudgetError(
                f"Ledger '{self.path.name}': no ε suffices for {what} at the remaining δ "
                f"({limits}). Use a smaller δ; nothing was released."
            )
        raise BudgetError(
            f"Ledger '{self.path.name}': with {what} the total would be (ε, δ) = "
            f"{format_guarantee(total)}, but {limits}; {format_guarantee(spent)} is booked by "
            f"{_count_entries(past)}. "
            "Use a smaller ε or δ; nothing was released."
        )

    def key(self) -> bytes:
        """Return the ledger's own secret, for fingerprints of tables."""
        with self._open_database() as database:
            return bytes.fromhex(self._read_about(database)["key"])

    def recognizes_table(self, fingerprint: str) -> bool:
        """Return whether a table is the one that was released first under this ledger.

        Args:
            fingerprint: Made with the :meth:`key` of the ledger. The first one is remembered.
        """
        with self._open_transaction() as database:
            database.execute(
                "INSERT OR IGNORE INTO about VALUES ('fingerprint', ?)", (fingerprint,)
            )
            return self._read_about(database)["fingerprint"] == fingerprint

    @contextmanager
    def _open_database(self, *, create: bool = False) -> Iterator[sqlite3.Connection]:
        if not create and not self.path.exists():
            raise IncrowdError(
                f"Ledger '{self.path}': not found. Create it: incrowd ledger budget {self.path} "
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
    def _open_transaction(self, *, create: bool = False) -> Iterator[sqlite3.Connection]:
        """Open one transaction that excludes all other writers from its first step on."""
        with self._open_database(create=create) as database:
            database.execute("BEGIN IMMEDIATE")
            try:
                if create:
                    for statement in _TABLES.split(";")[:-1]:
                        database.execute(statement)
                    database.execute(
                        "INSERT OR IGNORE INTO about VALUES ('key', ?)", (secrets.token_hex(32),)
                    )
                self._add_columns(database)
                yield database
            except BaseException:
                database.execute("ROLLBACK")
                raise
            database.execute("COMMIT")

    def _add_columns(self, database: sqlite3.Connection) -> None:
        """Bring a ledger of an earlier version up to date; keep what its spends are read as."""
        column_names = _list_column_names(database)
        for name, kind in _COLUMNS.items():
            if name not in column_names:
                database.execute(f"ALTER TABLE spends ADD COLUMN {name} {kind}")
        database.execute(_USES)
        rows = database.execute("SELECT number FROM spends WHERE epsilon IS NULL").fetchall()
        numbers = {number for (number,) in rows}
        for spend in self._read_spends(database) if numbers else ():
            if spend.number in numbers:
                database.execute(
                    "UPDATE spends SET epsilon = ?, delta = ?, inside_epsilon = ?, "
                    "inside_delta = ? WHERE number = ?",
                    (*_list_points(spend.charge), spend.number),
                )

    def _read_about(self, database: sqlite3.Connection) -> dict[str, str]:
        return dict(database.execute("SELECT name, value FROM about").fetchall())

    def _read_budget(self, database: sqlite3.Connection) -> LedgerBudget:
        ledger_budget = self._read_budgets(database)
        if not ledger_budget:
            raise IncrowdError(
                f"Ledger '{self.path}': it has no budget. Set one: incrowd ledger budget"
            )
        return ledger_budget[-1]

    def _read_budgets(self, database: sqlite3.Connection) -> list[LedgerBudget]:
        rows = database.execute("SELECT epsilon, delta, day FROM budgets ORDER BY number")
        return [LedgerBudget(*row) for row in rows]

    def _read_spends(self, database: sqlite3.Connection) -> list[Spend]:
        """Return all entries; what an earlier version booked is read as unplanned releases."""
        known, uses = _list_column_names(database), {}
        if set(_COLUMNS) <= known:
            uses = dict(database.execute("SELECT spend, COUNT(*) FROM uses GROUP BY spend"))
        columns = ", ".join(name if name in known else f"NULL AS {name}" for name in _COLUMNS)
        rows = database.execute(
            f"SELECT number, day, event, {columns} FROM spends ORDER BY number"  # noqa: S608
        )
        return [self._make_spend(database, row, uses.get(row[0], 0)) for row in rows.fetchall()]

    def _make_spend(self, database: sqlite3.Connection, row: tuple[Any, ...], used: int) -> Spend:
        number, day, text, epsilon, delta, inside_epsilon, inside_delta, releases = row
        event = parse_event(json.loads(text))
        if epsilon is None:
            charge = charge_share(event, self._get_delta_share(database, number))
        else:
            charge = Charge(
                Guarantee(epsilon, delta), Guarantee(inside_epsilon, inside_delta),
                separate_sampling(event)[1],
            )  # fmt: skip
        if releases is None:
            return Spend(number, day, event, charge)
        if not isinstance(event, Composition) or len(event.events) != releases:
            raise IncrowdError(f"Ledger '{self.path}': block {number} is damaged. Restore a copy.")
        return Spend(number, day, event.events[0], charge, releases, used)


def _count_entries(charges: list[Charge]) -> str:
    return "1 entry" if len(charges) == 1 else f"{len(charges)} entries"


def _combine_events(events: list[Event]) -> Event:
    """Return the events of one release as one entry."""
    return events[0] if len(events) == 1 else Composition(events)


def _list_points(charge: Charge) -> tuple[float, float, float, float]:
    guarantee, inside = charge.guarantee, charge.inside
    return guarantee.epsilon, guarantee.delta, inside.epsilon, inside.delta


def _list_column_names(database: sqlite3.Connection) -> set[str]:
    return {row[1] for row in database.execute("PRAGMA table_info(spends)")}


def _get_today() -> str:
    return dt.datetime.now(dt.UTC).date().isoformat()
