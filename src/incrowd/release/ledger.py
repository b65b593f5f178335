"""The privacy budget of one table: what may be booked on it, and what was.

A spend is booked, durably, before anything is drawn: after a crash the ledger may hold a
spend that nobody has seen, but never misses one that somebody could have. Bookings are
serialized by the file (:mod:`incrowd.release.ledger_file`), so two publishers cannot both spend
the last of a budget. All of them protect the same unit: what protects a row and what protects a
person do not add up.

A spend is an *unplanned release* or a *planned block*: a number of releases whose events are
fixed before the first of them. The events of a block compose tightly. Blocks and unplanned
releases add their epsilons and their deltas, which stays valid where parameters are chosen after
earlier results; :mod:`incrowd.privacy.filter` has the proof.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Sized
from pathlib import Path

from incrowd.errors import IncrowdError, Refusal, check_at_least_zero, check_fraction, check_whole
from incrowd.privacy.amplification import Guarantee
from incrowd.privacy.events import Composition, Event, SampledEvent, SeriesCounts
from incrowd.privacy.filter import (
    Charge,
    charge_guarantee,
    charge_share,
    repeat_event,
)
from incrowd.privacy.parallel import part_charges_fit, total_charges
from incrowd.privacy.presentation import format_parameter
from incrowd.release.ledger_entries import Booking, LedgerBudget, Spend, format_guarantee
from incrowd.release.ledger_file import LedgerRecords, open_records, open_transaction

MOST_RELEASES = 1000  # of a planned block

ONE_ROW = "one row"
PERIOD_UNIT = "one person within one "  # how the name of such a unit begins


def name_person_unit(column: str) -> str:
    """Return the unit of releases that use one row for each value of a column."""
    return f"one person, by the column '{column}'"


def name_period_unit(column: str, every: str, period: str) -> str:
    """Return the unit of releases that protect a person within one period of another column."""
    return f"{PERIOD_UNIT}{every} of '{period}', by the column '{column}'"


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

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)

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
        budget = (
            float(check_at_least_zero("epsilon", epsilon)),
            float(check_fraction("delta", delta)),
        )
        with open_transaction(self.path, create=True) as records:
            old = records.read_budgets()
            if old and not raising and (budget[0] > old[-1].epsilon or budget[1] > old[-1].delta):
                raise BudgetError(
                    f"Ledger '{self.path.name}': ({budget[0]:g}, {budget[1]:g}) would raise the "
                    f"budget of ({old[-1].epsilon:g}, {old[-1].delta:g}). Confirm it with --raise "
                    "(raising=True); it stays on record."
                )
            records.insert_budget(*budget)

    def budget(self) -> LedgerBudget:
        """Return what may be spent in all, by the latest decision."""
        with open_records(self.path) as records:
            return records.read_budget()

    def budgets(self) -> list[LedgerBudget]:
        """Return all decisions on the budget, the oldest first."""
        with open_records(self.path) as records:
            return records.read_budgets()

    def unit(self) -> str | None:
        """Return the unit of privacy of all releases; None until it is set or one is booked."""
        with open_records(self.path) as records:
            return records.read_about().get("unit")

    def set_unit(self, unit: str) -> None:
        """Set the unit of privacy before the first release, which would set it otherwise.

        Args:
            unit: :data:`ONE_ROW`, or the result of :func:`name_person_unit`.

        Raises:
            BudgetError: The unit is set already, to another one.
        """
        with open_transaction(self.path) as records:
            self._refuse_unit(records, unit)
            records.insert_about("unit", unit)

    def spends(self) -> list[Spend]:
        """Return everything that was booked, the oldest first."""
        with open_records(self.path) as records:
            return records.read_spends()

    def match_sampling(self, event: Event) -> Event:
        """Return an event with the sampling rate that all other releases share, if they do."""
        rates = {spend.charge.rate for spend in self.spends()}
        rate = rates.pop() if len(rates) == 1 else None
        return event if rate is None else SampledEvent(event, rate)

    def total(self, more: Iterable[Charge] = (), *, part: str | None = None) -> Guarantee:
        """Return the (epsilon, delta) of everything booked, and of some more charges.

        Entries of one part add up with those without a part; over parts the largest sum counts.

        Args:
            more: Further charges to include.
            part: The part that they are of.

        Returns:
            The guarantee of all entries together.
        """
        booked = [spend.part_charge for spend in self.spends()]
        return total_charges([*booked, *((part, charge) for charge in more)])

    def remaining_budget(self) -> Guarantee:
        """Return what the budget leaves for further blocks and unplanned releases."""
        with open_records(self.path) as records:
            budget = records.read_budget()
            total = total_charges([spend.part_charge for spend in records.read_spends()])
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
        booked = [spend.part_charge for spend in self.spends()]
        charges = [*booked, *((None, charge) for charge in more)]
        return part_charges_fit(charges, Guarantee(budget.epsilon, budget.delta))

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
        with open_records(self.path) as records:
            return self._compute_charge(records, _combine_events(list(events)), guarantee)

    def allow(
        self, events: Iterable[Event], *, unit: str = ONE_ROW, guarantee: Guarantee | None = None,
        planned: bool = False, part: str | None = None,
    ) -> Booking:  # fmt: skip
        """Return how events would be booked, without booking them.

        Args:
            events: The events of the release.
            unit: The unit of privacy: :data:`ONE_ROW`, or the result of :func:`name_person_unit`.
            guarantee: The (epsilon, delta) that the events are certified to satisfy.
            planned: Refuse a release that belongs to no planned block.
            part: The part of the table that is released, where every unit lies in one.

        Raises:
            BudgetError: The budget does not allow the release.
        """
        with open_records(self.path) as records:
            return self._allow_event(
                records, _combine_events(list(events)), unit, guarantee, planned, part
            )

    def book(
        self, events: Iterable[Event], *, unit: str = ONE_ROW, guarantee: Guarantee | None = None,
        planned: bool = False, part: str | None = None,
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
            part: The part of the table that is released. Every unit must lie in one part, and the
                unit must name the period: see :mod:`incrowd.privacy.parallel`.

        Returns:
            How the release was booked.

        Raises:
            BudgetError: The budget does not allow the release. Nothing is booked.
        """
        event = _combine_events(list(events))
        with open_transaction(self.path) as records:
            booking = self._allow_event(records, event, unit, guarantee, planned, part)
            if not booking.is_paid:
                records.insert_about("unit", unit)
                records.insert_spend(
                    event, booking.charge, booking.releases,
                    None if booking.is_planned else part,
                )  # fmt: skip
            if booking.is_planned:
                records.insert_use(booking.number, part)
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
        if isinstance(event, SeriesCounts):
            raise IncrowdError(
                "A series is booked as a whole by its first release. Publish it: incrowd publish"
            )
        number = int(check_whole("releases", releases))
        if number > MOST_RELEASES:
            raise IncrowdError(
                f"A planned block has at most {MOST_RELEASES:,} releases. Plan fewer."
            )
        charge = charge_guarantee(repeat_event(event, number), guarantee)
        with open_transaction(self.path) as records:
            self._refuse_unit(records, unit)
            self._refuse_over_budget(records, charge, f"this block of {number} releases")
            records.insert_about("unit", unit)
            records.insert_spend(event, charge, number)
            return records.read_spends()[-1]

    def _allow_event(
        self, records: LedgerRecords, event: Event, unit: str, guarantee: Guarantee | None,
        planned: bool, part: str | None,
    ) -> Booking:  # fmt: skip
        self._refuse_unit(records, unit)
        if part is not None and not unit.startswith(PERIOD_UNIT):
            raise BudgetError(
                f"Ledger '{self.path.name}': part '{part}' needs a unit within one period, and "
                f"this one is {unit}: a person may have rows in several parts."
            )
        spends = records.read_spends()
        if isinstance(event, SeriesCounts):
            return self._allow_turn(records, spends, event, guarantee, part)
        for spend in spends:
            if spend.remaining_releases and spend.event == event and part is None:
                return Booking(spend.number, spend.charge, spend.used + 1, spend.releases)
        if planned:
            self._refuse_unplanned(spends, event)
        charge = self._compute_charge(records, event, guarantee)
        self._refuse_over_budget(records, charge, "this release", part)
        return Booking(len(spends) + 1, charge)

    def _allow_turn(
        self, records: LedgerRecords, spends: list[Spend], event: SeriesCounts,
        guarantee: Guarantee | None, part: str | None,
    ) -> Booking:  # fmt: skip
        """Allow the next release of a series; the first one books all of it, for every part.

        A part is released once: see :mod:`incrowd.privacy.series`.
        """
        place = f"Ledger '{self.path.name}'"
        if part is None:
            raise BudgetError(f"{place}: a release of a series needs its part, and has none.")
        series = next((spend for spend in spends if spend.event == event), None)
        if series is None:
            charge = self._compute_charge(records, event, guarantee)
            self._refuse_over_budget(records, charge, f"this series of {event.of} releases")
            return Booking(len(spends) + 1, charge, 1, event.of, is_first=True)
        if part in series.parts:
            raise BudgetError(
                f"{place}: '{part}' is release {series.parts.index(part) + 1} of series "
                f"{series.number}, and nothing was released. Each period is released once: a "
                "second release with the same noise would show what has changed. Publish the next "
                "period."
            )
        if not series.remaining_releases:
            raise BudgetError(
                f"{place}: series {series.number} was planned for {event.of} releases and made all "
                f"of them; nothing was released. Begin another series under a new ledger: its "
                "periods are others, so the two do not add up."
            )
        return Booking(series.number, series.charge, series.used + 1, event.of)

    def _compute_charge(
        self, records: LedgerRecords, event: Event, guarantee: Guarantee | None
    ) -> Charge:
        if guarantee is not None:
            return charge_guarantee(event, guarantee)
        return charge_share(event, self._get_delta_share(records, len(records.read_spends()) + 1))

    def _get_delta_share(self, records: LedgerRecords, number: int) -> float:
        """Return the delta of an entry without a stated guarantee, by its number."""
        records.read_budget()
        return math.ldexp(records.read_budgets()[0].delta, -number)

    def _refuse_unit(self, records: LedgerRecords, unit: str) -> None:
        about = records.read_about().get("unit")
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

    def _refuse_over_budget(
        self, records: LedgerRecords, charge: Charge, what: str, part: str | None = None
    ) -> None:
        budget = records.read_budget()
        past = [spend.part_charge for spend in records.read_spends()]
        if part is not None:  # only what meets the units of this part is in its way
            past = [(name, charge) for name, charge in past if name in (None, part)]
        if part_charges_fit([*past, (part, charge)], Guarantee(budget.epsilon, budget.delta)):
            return
        total = total_charges([*past, (part, charge)])
        spent = total_charges(past)
        by = f"(ε, δ) = {format_guarantee(spent)} is booked by {_count_entries(past)}"
        limits = f"the budget of '{self.path.name}' is ({budget.epsilon:g}, {budget.delta:g})"
        if spent.delta >= budget.delta:
            raise BudgetError(
                f"Ledger '{self.path.name}': δ is used up, and nothing was released. "
                f"{by}, and {limits}.{self._suggest_raise(budget, total)}"
            )
        if spent.epsilon >= budget.epsilon and charge.guarantee.epsilon > 0:
            raise BudgetError(
                f"Ledger '{self.path.name}': no ε is left, and nothing was released. {by}, and "
                f"{limits}.{self._suggest_raise(budget, total)}"
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

    def _suggest_raise(self, budget: LedgerBudget, total: Guarantee) -> str:
        """Return the command that would allow a total; nothing where no epsilon suffices."""
        if math.isinf(total.epsilon):
            return ""
        epsilon = format_parameter("epsilon", max(budget.epsilon, total.epsilon), 4)
        delta = format_parameter("delta", max(budget.delta, total.delta), 3)
        return (
            " If those responsible agree: incrowd ledger budget "
            f"{shlex.quote(str(self.path))} --epsilon {epsilon} --delta {delta} --raise"
        )

    def key(self) -> bytes:
        """Return the ledger's own secret, for fingerprints of tables."""
        with open_records(self.path) as records:
            return bytes.fromhex(records.read_about()["key"])

    def recognizes_table(self, fingerprint: str) -> bool:
        """Return whether a table is the one that was released first under this ledger.

        Args:
            fingerprint: Made with the :meth:`key` of the ledger. The first one is remembered.
        """
        with open_transaction(self.path) as records:
            records.insert_about("fingerprint", fingerprint)
            return records.read_about()["fingerprint"] == fingerprint


def _count_entries(charges: Sized) -> str:
    return "1 entry" if len(charges) == 1 else f"{len(charges)} entries"


def _combine_events(events: list[Event]) -> Event:
    """Return the events of one release as one entry."""
    return events[0] if len(events) == 1 else Composition(events)
