"""The ledger of a spec: what it has left, and what a release by the spec would take of it."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from incrowd.errors import IncrowdError, check_whole
from incrowd.findings import Finding, make_finding
from incrowd.methods.base import Method
from incrowd.methods.registry import make_method
from incrowd.privacy.amplification import Guarantee
from incrowd.privacy.events import Composition, Event
from incrowd.privacy.filter import repeat_event
from incrowd.privacy.presentation import format_parameter
from incrowd.release.certificate import CertifiedGuarantee
from incrowd.release.ledger import (
    ONE_ROW,
    BudgetError,
    Ledger,
    name_period_unit,
    name_person_unit,
)
from incrowd.release.ledger_entries import Booking, Spend, format_guarantee, format_remaining
from incrowd.spec.file import SpecFile
from incrowd.spec.model import PersonId, Spec
from incrowd.spec.release import SafeSpec

_SQLITE = b"SQLite format 3\0"


def resolve_ledger(file: SpecFile, ledger: Ledger | Path | str | None = None) -> Ledger | None:
    """Return the ledger that a spec names, or the ``ledger`` one where it names none.

    The path of the spec is relative to the spec. The file is not opened; whatever opens it says how
    to make one that is missing. A given ledger that is another file than the spec's is refused: a
    release that one ledger counts is one that the other misses.
    """
    given_ledger = Ledger(Path(ledger)) if isinstance(ledger, str | Path) else ledger
    if file.spec.ledger is None:
        return given_ledger
    spec_ledger = Ledger(file.folder / file.spec.ledger)
    if given_ledger is not None and given_ledger.path.resolve() != spec_ledger.path.resolve():
        raise IncrowdError(
            f"Ledger: the spec names '{file.spec.ledger}', the command '{given_ledger.path}'. Drop "
            "--ledger, or change the spec: all releases of a table share one ledger."
        )
    return spec_ledger


def require_events(method: str, events: Sequence[Event]) -> None:
    """Refuse a ledger for a method that is not differentially private."""
    if not events:
        raise IncrowdError(
            f"Method '{method}' is not differentially private, so no ledger can account for it. "
            "Remove --ledger, and `ledger` from the spec."
        )


@dataclass(frozen=True)
class BudgetPreview:
    """A budget, what is spent of it, and what it comes to with one release more.

    Numbers are epsilons, and deltas where their name says so. ``after`` is None where nothing more
    was asked for, infinite where no epsilon would do. ``booking`` says how the ledger would book
    the release: as one of a planned block, or as an unplanned one. ``refused`` says why it would
    not; nothing if it would. ``releases`` are those made so far.
    """

    epsilon: float
    delta: float
    releases: int
    spent: float
    spent_delta: float
    after: float | None
    after_delta: float | None
    booking: Booking | None
    refused: str

    @property
    def remaining_epsilon(self) -> float:
        """The epsilon that may still be spent."""
        return max(self.epsilon - self.spent, 0.0)

    @property
    def remaining_delta(self) -> float:
        """The delta that may still be spent."""
        return max(self.delta - self.spent_delta, 0.0)

    @property
    def cost(self) -> float | None:
        """The epsilon that the release adds to what is spent; none if it is planned."""
        if self.after is None or math.isinf(self.after):
            return self.after
        return max(self.after - self.spent, 0.0)

    def findings(self) -> list[Finding]:
        """Return what the ledger has left, and how the release fits."""
        remaining = format_remaining(Guarantee(self.remaining_epsilon, self.remaining_delta))
        spent_guarantee = format_guarantee(Guarantee(self.spent, self.spent_delta))
        findings = [
            make_finding(
                "LEDGER_LEFT", epsilon=self.epsilon, delta=self.delta, spent=spent_guarantee,
                left=remaining, releases=self.releases,
            )
        ]  # fmt: skip
        if self.refused:
            findings.append(make_finding("LEDGER_REFUSED", problem=self.refused))
        elif self.booking is not None:
            article = "" if self.booking.is_planned else "an "
            findings.append(make_finding("LEDGER_FITS", booking=f"{article}{self.booking}"))
        return findings


def preview_budget(
    path: Path,
    events: Sequence[Event],
    unit: str = ONE_ROW,
    guarantee: Guarantee | None = None,
    *,
    planned: bool = False,
    part: str | None = None,
) -> BudgetPreview:
    """Return what a release of ``events`` would take of a ledger's budget; nothing is booked.

    ``guarantee`` is what they are certified to satisfy; without it see :meth:`Ledger.charge_of`.
    With ``planned`` only a release of a planned block will do.
    """
    ledger = Ledger(path)
    budget, spends, total = ledger.budget(), ledger.spends(), ledger.total()
    refusal, booking, after = "", None, None
    if events:
        try:
            booking = ledger.allow(
                events, unit=unit, guarantee=guarantee, planned=planned, part=part
            )
        except BudgetError as error:
            refusal = str(error)
        paid = booking is not None and booking.is_paid
        more = [] if paid else [ledger.compute_charge(events, guarantee)]
        after = ledger.total(more, part=part)
    return BudgetPreview(
        epsilon=budget.epsilon, delta=budget.delta, releases=sum(spend.used for spend in spends),
        spent=total.epsilon, spent_delta=total.delta,
        after=None if after is None else after.epsilon,
        after_delta=None if after is None else after.delta, booking=booking, refused=refusal,
    )  # fmt: skip


def preview_spec_budget(
    file: SpecFile, ledger: Ledger | None = None, *, method: Method | None = None
) -> BudgetPreview | None:
    """Return what a release by a spec would take of its ledger; None where it has no ledger.

    ``ledger`` is used where the spec names none. Nothing is read from the table.
    """
    book = resolve_ledger(file, ledger)
    release = file.spec.release
    if release is None:
        return None
    if book is None:
        require_ledger(file)
        return None
    method = method or make_method(file)
    require_events(release.method, method.events)
    return preview_budget(
        book.path, method.events, name_unit(file.spec), get_guarantee(method.promise),
        planned=release.planned_releases is not None, part=_get_part(file.spec),
    )  # fmt: skip


def book_release(file: SpecFile, method: Method, book: Callable[..., Booking]) -> Booking:
    """Book a release by a spec; ``book`` is :meth:`Ledger.book`, or ``allow`` to try it."""
    release = file.spec.release
    return book(
        method.events, unit=name_unit(file.spec), guarantee=get_guarantee(method.promise),
        planned=release is not None and release.planned_releases is not None,
        part=_get_part(file.spec),
    )  # fmt: skip


def _get_part(spec: Spec) -> str | None:
    """Return the part of the table that a release is of."""
    return None if spec.part is None else spec.part.value


def require_ledger(file: SpecFile) -> None:
    """Refuse a spec of planned releases that has no ledger to count them."""
    release = file.spec.release
    if isinstance(release, SafeSpec) and release.series is not None:
        raise IncrowdError(
            f"Spec: `series: {{of: {release.series.of}}}` needs a ledger, which counts its "
            "releases and keeps the key of its noise. Add `ledger: FILE`, then: incrowd ledger "
            "budget FILE --epsilon … --delta …"
        )
    if file.spec.release is not None and file.spec.release.planned_releases is not None:
        raise IncrowdError(
            f"Spec: `releases: {file.spec.release.planned_releases}` needs a ledger. Add `ledger: "
            "FILE`, "
            "then: incrowd ledger plan FILE --spec SPEC"
        )


def get_guarantee(promise: CertifiedGuarantee) -> Guarantee:
    """Return the (epsilon, delta) that a release will be certified with."""
    assert promise.epsilon is not None
    assert promise.delta is not None
    return Guarantee(promise.epsilon, promise.delta)


def plan_block(
    file: SpecFile, ledger: Ledger, *, releases: int | None = None, delta: float | None = None
) -> Spend:
    """Book a planned block of releases by a spec, all with the same events.

    Where the spec says ``releases``, its epsilon and delta are those of the whole block. Otherwise
    each of ``releases`` costs what the spec says, and the block costs the tight composition of all
    of them at ``delta``, by default the sum of their deltas.
    """
    book = resolve_ledger(file, ledger)
    assert book is not None
    method = make_method(file)
    assert file.spec.release is not None
    require_events(file.spec.release.method, method.events)
    number, spec_releases = releases, file.spec.release.planned_releases
    if spec_releases is not None and (releases not in (None, spec_releases) or delta is not None):
        raise IncrowdError(
            f"Spec: `releases: {spec_releases}` sets ε and δ of the whole block. Drop --releases "
            "and --delta, or change the spec."
        )
    if spec_releases is None and number is None:
        raise IncrowdError(
            "The number of releases is not given. Add --releases, or `releases` to the spec."
        )
    events = method.events
    event = events[0] if len(events) == 1 else Composition(events)
    number = spec_releases if number is None else int(check_whole("releases", number))
    assert number is not None
    joint_guarantee = method.joint_guarantee
    if joint_guarantee is None:
        joint_guarantee = _compose_guarantee(event, number, get_guarantee(method.promise), delta)
    return book.plan(event, releases=number, guarantee=joint_guarantee, unit=name_unit(file.spec))


def _compose_guarantee(
    event: Event, number: int, single: Guarantee, delta: float | None
) -> Guarantee:
    """Return what releases of one event satisfy together, epsilon rounded up to six digits."""
    if delta is None:
        delta = float(Fraction(repr(single.delta)) * number)
        if delta >= 1:
            raise IncrowdError(
                f"{number} releases with δ = {single.delta:g} guarantee nothing. Use a smaller δ."
            )
    from incrowd.privacy.accountant import Accountant

    epsilon = Accountant(repeat_event(event, number)).epsilon(delta=delta)
    if math.isinf(epsilon):
        raise IncrowdError(
            f"No ε suffices for {number} releases at δ = {delta:g}. Use a larger --delta, or fewer "
            "releases."
        )
    return Guarantee(float(format_parameter("epsilon", epsilon, 6)), delta)


def name_unit(spec: Spec) -> str:
    """Return what releases by a spec protect, as a ledger has it."""
    if not isinstance(spec.unit, PersonId):
        return ONE_ROW
    period = spec.unit.period
    if period is None:
        return name_person_unit(spec.unit.id)
    return name_period_unit(spec.unit.id, period.every, period.column)


def list_ledgers(folder: Path) -> list[Path]:
    """Return the ledgers in a folder, by name."""
    ledgers = (path for path in folder.iterdir() if path.is_file() and _is_ledger(path))
    return sorted(ledgers, key=lambda path: path.name.lower())


def _is_ledger(path: Path) -> bool:
    """Return whether a file is a ledger with a budget."""
    try:
        with path.open("rb") as file:
            if file.read(len(_SQLITE)) != _SQLITE:
                return False
        return bool(Ledger(path).budgets())
    except (OSError, IncrowdError, sqlite3.Error):
        return False
