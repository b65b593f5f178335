"""Publish: a table and a spec go in, a release comes out.

The walk: the method plans what it guarantees and spends; the table is loaded, checked and counted;
the spend, if there is one, is booked; only then is anything drawn. The method makes the rows; data,
scheme and certificate are written; last, the release is judged for the curator. All files are
drafts until everything is there.
"""

from __future__ import annotations

import shutil
import tempfile
import warnings
import weakref
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from incrowd.arrays import Progress, Step
from incrowd.engine.source import choose_engine, get_people, open_spec_table
from incrowd.engine.table import Engine, Table
from incrowd.errors import IncrowdWarning
from incrowd.evaluation.judge import Judge, judge, write_judgment
from incrowd.evaluation.report.origin import LedgerStatus, ReleaseOrigin
from incrowd.evaluation.report.private_dossier import write_private_dossier
from incrowd.findings import Finding, make_finding
from incrowd.methods.base import MakeContext, Method, refuse_outside_domain
from incrowd.methods.expect import expect
from incrowd.methods.exposure import find_weak_parameters, refuse_exposures
from incrowd.methods.people import choose_key, draw_rows, write_key
from incrowd.methods.registry import make_method
from incrowd.methods.safe_harbor import find_violations
from incrowd.methods.spec_ledger import (
    book_release,
    require_events,
    require_ledger,
    resolve_ledger,
)
from incrowd.methods.table_fit import refuse_errors, refuse_unfit_table
from incrowd.privacy.amplification import Guarantee
from incrowd.privacy.randomness import Randomness, SystemRandomness
from incrowd.privacy.series import SeriesTurn
from incrowd.release.folder import fill_folders, locate_curator_folder
from incrowd.release.history import ReleaseHistory
from incrowd.release.ledger import Ledger
from incrowd.release.ledger_entries import Booking
from incrowd.release.metadata.assertions import Assertions, total_ledger
from incrowd.release.product import MethodResult
from incrowd.release.release import Release
from incrowd.release.shares_pages import find_share_losses
from incrowd.release.write import write_release
from incrowd.spec.about import About
from incrowd.spec.file import SpecFile, SpecSource, load_spec
from incrowd.spec.model import PersonId
from incrowd.spec.release import ReleaseSpec, SafeSpec

__all__ = ["Release", "RunContext", "make_release", "publish", "publish_into"]

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


def publish(
    table: Any,
    spec: SpecSource,
    *,
    output: Path | str | None = None,
    curator: Path | str | None = None,
    ledger: Ledger | Path | str | None = None,
    key: Ed25519PrivateKey | None = None,
    bits: Randomness | None = None,
    engine: Engine | None = None,
    step: Step = lambda _: None,
    progress: Progress = lambda _done, _all: None,
) -> Release:
    """Publish a table with a privacy guarantee, and return the release.

    Everything that can be refused is refused before the ledger is booked, and the ledger is booked
    before anything is drawn.

    Args:
        table: A path, a PostgreSQL address, or a data frame of pandas, Polars, Arrow or Spark; None
            for the table that the spec names. Of a spec with a ``household``, a mapping of
            ``"people"`` and ``"households"``.
        spec: Path of a spec, its YAML text, a mapping, or a confirmed draft
            (:func:`incrowd.confirm`).
        output: Folder for the release; it must not exist, or be empty. None writes nothing;
            ``release.save`` does so later.
        curator: Folder for the private report; by default ``NAME.curator`` beside ``output``.
        ledger: The ledger that books the release, if the spec names none.
        key: Private key that signs the certificate.
        bits: Source of random bits, for tests. A seeded release is not private, and says so.
        engine: The engine that opens the table; by default the one for tables of its kind.
        step: Called with the name of each step before it is taken.
        progress: Called with the done and the total amount of work of a long search.

    Returns:
        The release, with data, certificate, findings, and the private evaluation and report.

    Raises:
        IncrowdError: The spec is invalid, or the table does not fit it.
        BudgetError: The ledger does not allow the release.

    Warns:
        IncrowdWarning: Once per finding of the release; ``release.findings`` lists them, too.

    Examples:
        >>> import polars as pl
        >>> import incrowd as ic
        >>> people = pl.DataFrame({"sex": ["female", "male"] * 500})
        >>> sex = {"role": "quasi", "hierarchy": {"flat": {"values": ["female", "male"]}}}
        >>> asked = {"method": "safe", "epsilon": 1.0, "delta": 1e-6}
        >>> release = ic.publish(people, {"columns": {"sex": sex}, "release": asked})
        >>> release.certificate.guarantee.epsilon
        1.0
        >>> sorted(release.data["sex"].unique())
        ['female', 'male']
    """
    file = load_spec(spec)
    ledger = resolve_ledger(file, ledger)

    def make(folder: Path) -> Release:
        run = RunContext(
            table, file, folder, None if curator is None else Path(curator), ledger, key,
            bits or SystemRandomness(), engine, step, progress,
        )  # fmt: skip
        return make_release(run)

    release = publish_into(output, make)
    for finding in release.findings:
        warnings.warn(IncrowdWarning(finding), stacklevel=2)
    return release


def publish_into(output: Path | str | None, make: Callable[[Path], Release]) -> Release:
    """Call ``make`` with the folder to publish into.

    Without a folder, it is a temporary one that goes when the release does.
    """
    if output is not None:
        return make(Path(output))
    home = Path(tempfile.mkdtemp(prefix="incrowd-"))
    try:
        release = make(home / "release")
    except BaseException:
        shutil.rmtree(home, ignore_errors=True)
        raise
    weakref.finalize(release, shutil.rmtree, home, ignore_errors=True)
    return release


@dataclass(frozen=True)
class RunContext:
    """What one release is made with.

    ``table`` is None for the one that the spec names, ``curator`` None for the folder beside
    ``output``. A ``rehearsal`` is of a table that was made up: nothing is remembered of it, and its
    certificate says so. ``judge`` finds out what the curator's report says; nothing that is
    published depends on it.
    """

    table: Any
    file: SpecFile
    output: Path
    curator: Path | None = None
    ledger: Ledger | None = None
    key: Ed25519PrivateKey | None = None
    bits: Randomness = field(default_factory=SystemRandomness)
    engine: Engine | None = None
    step: Step = lambda _: None
    progress: Progress = lambda _done, _all: None
    rehearsal: bool = False
    judge: Judge = judge

    @property
    def private_folder(self) -> Path:
        """The folder of what only the curator may see."""
        return self.curator or locate_curator_folder(self.output)


def make_release(run: RunContext) -> Release:
    """Make, write and judge one release; see :func:`publish`. Findings are returned with it."""
    method = _plan_method(run)
    source = open_spec_table(run.file, run.table, engine=run.engine or choose_engine(run.table))
    refuse_unfit_table(run.file.spec, source)
    findings = [*refuse_exposures(run.file.spec, source)]
    refuse_errors(find_violations(run.file.spec, source))
    with ExitStack() as opened:
        spent = opened.enter_context(_SpendGuard(run.output))
        draft, private = opened.enter_context(fill_folders(run.output, run.private_folder))
        history = opened.enter_context(_open_history(run, method, source))

        run.step("count")
        counts = method.count(source, by_row=isinstance(run.file.spec.unit, PersonId))
        refuse_outside_domain(counts)
        history.wait_for_fingerprints()

        run.step("book")
        if run.ledger is not None:
            spent.booking = book_release(run.file, method, run.ledger.book)
        findings += [*_find_seed(run.bits), *_find_last_release(run.ledger, spent.booking)]
        findings += history.find_earlier_releases()

        people = _choose_people(run, source)
        counts = counts if people.rows is source else method.count(people.rows)
        turn = _take_turn(run, spent.booking)
        context = MakeContext(run.bits, source.engine, run.step, run.progress, turn)
        outcome = method.make(counts, context)

        run.step("write")
        assertions = _collect_assertions(run, spent.booking)
        certificate = write_release(
            draft, outcome, _get_release_spec(run.file), private=run.bits.private, key=run.key,
            rehearsal=run.rehearsal, assertions=assertions, metadata=run.file.spec.describe,
        )  # fmt: skip
        if people.key is not None:
            write_key(private, certificate, people.key)

        judgment = run.judge(outcome, counts, people.rows, certificate, step=run.step)
        run.step("report")
        findings += _find_weaknesses(run, source, outcome)
        findings += find_share_losses(certificate.shares or (), certificate.rows_per_person)
        origin = _describe_origin(run, spent.booking, people.unused)
        write_judgment(
            private,
            certificate,
            judgment,
            reasons=outcome.reasons,
            findings=findings,
            origin=origin,
        )
        if "dossier" in run.file.spec.describe:
            write_private_dossier(private, certificate, assertions)
        run.step("appear")
        findings += history.remember_release(findings)
    return Release(
        certificate=certificate,
        evaluation=judgment.evaluation,
        tables=outcome.tables,
        findings=(*findings, *judgment.findings),
        folder=run.output,
        curator=run.private_folder,
        booking=spent.booking,
        reasons=outcome.reasons,
        library=type(get_people(run.table)).__module__.partition(".")[0],
        examples=judgment.examples,
        unused=people.unused,
    )


def _plan_method(run: RunContext) -> Method:
    """Plan what is guaranteed and spent; refuse what the ledger does not allow."""
    method = make_method(run.file)
    if run.ledger is not None:  # before the table is so much as opened
        require_events(_get_release_spec(run.file).method, method.events)
        book_release(run.file, method, run.ledger.allow)
    elif not run.rehearsal:
        require_ledger(run.file)
    return method


def _open_history(run: RunContext, method: Method, source: Table) -> ReleaseHistory:
    """Begin to recognize the table; hashing goes beside counting."""
    return ReleaseHistory(
        source, run.ledger, is_accounted=bool(method.events), is_rehearsal=run.rehearsal,
        is_part=run.file.spec.part is not None,
    )  # fmt: skip


@dataclass(frozen=True)
class _People:
    """The rows that a release is made from, the key that chose them, and the number left out."""

    rows: Table
    key: bytes | None = None
    unused: int = 0


def _choose_people(run: RunContext, source: Table) -> _People:
    """Choose the rows of each person that are used, where a person may have several."""
    spec = run.file.spec
    if not isinstance(spec.unit, PersonId):
        return _People(source)
    key = choose_key(spec, run.bits, rehearsal=run.rehearsal)
    rows = draw_rows(source, spec, run.bits, key)
    return _People(rows, key, source.rows() - rows.rows())


def _take_turn(run: RunContext, booking: Booking | None) -> SeriesTurn | None:
    """Return the turn of a release of a series; None of any other.

    The key of the noise belongs to the ledger. Of seeded bits the seed decides it, and a rehearsal
    is the first release.
    """
    release = _get_release_spec(run.file)
    if not isinstance(release, SafeSpec) or release.series is None:
        return None
    number = 1 if booking is None or booking.release is None else booking.release
    if run.ledger is None or booking is None or not run.bits.private:
        return SeriesTurn(number, run.bits.draw_words(4).tobytes())
    return SeriesTurn(number, run.ledger.key()).bind(b"series %d" % booking.number)


def _find_weaknesses(run: RunContext, source: Table, outcome: MethodResult) -> list[Finding]:
    """Find parameters that guarantee little, and expectations that promise little."""
    weak = find_weak_parameters(
        run.file.spec.release, outcome.promise.epsilon, outcome.promise.delta
    )
    expected = expect(source, run.file).warnings() if run.file.spec.size is not None else []
    return [*weak, *expected]


def _collect_assertions(run: RunContext, booking: Booking | None) -> Assertions:
    """Collect what the curator says of the release; of a described one, what the ledger says."""
    spec, total = run.file.spec, None
    if spec.describe and run.ledger is not None and booking is not None:
        total = total_ledger(run.ledger)
    return Assertions(about=spec.about or About(), ledger=total)


def _get_release_spec(file: SpecFile) -> ReleaseSpec:
    assert file.spec.release is not None
    return file.spec.release


@dataclass
class _SpendGuard:
    """Whether the spend of a release is booked; whatever ends the release after that says so."""

    output: Path
    booking: Booking | None = None

    def __enter__(self) -> _SpendGuard:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None and self.booking is not None:
            what = "the release is there" if self.output.exists() else "nothing was released"
            error.add_note(f"The spend is booked and counts, and {what}.")


def _find_seed(bits: Randomness) -> tuple[Finding, ...]:
    return () if bits.private else (make_finding("RANDOMNESS_SEEDED"),)


def _find_last_release(ledger: Ledger | None, booking: Booking | None) -> tuple[Finding, ...]:
    """Find a ledger whose delta does not suffice for a second release like this one."""
    if ledger is None or booking is None or booking.is_planned:
        return ()
    charge, budget = booking.charge, ledger.budget()
    if ledger.total([charge]).delta <= budget.delta:
        return ()
    return (
        make_finding(
            "LEDGER_DELTA_USED_UP", ledger=ledger.path.name, delta=charge.guarantee.delta,
            budget=budget.delta,
        ),
    )  # fmt: skip


def _describe_origin(run: RunContext, booking: Booking | None, unused: int) -> ReleaseOrigin:
    """Describe the spec, and the ledger after this release, for the report."""
    file, ledger, standing = run.file, run.ledger, None
    if ledger is not None and booking is not None:
        budget, spends = ledger.budget(), ledger.spends()
        standing = LedgerStatus(
            ledger.path.name, Guarantee(budget.epsilon, budget.delta), ledger.total(), booking,
            releases=sum(spend.used for spend in spends), in_spec=file.spec.ledger is not None,
        )  # fmt: skip
    name = file.path.name if file.path is not None else "spec.yaml"
    return ReleaseOrigin(file.text(), name, run.key is not None, standing, unused)
