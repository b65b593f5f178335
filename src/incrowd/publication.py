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
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from incrowd.arrays import Progress, Step
from incrowd.engine.source import engine_for, open_for
from incrowd.engine.table import Engine, Table, TableError
from incrowd.errors import IncrowdWarning
from incrowd.evaluation.judge import Judge, judge, write_judgment
from incrowd.evaluation.report.origin import Origin, Standing
from incrowd.findings import Finding, make_finding
from incrowd.methods.base import Method, Walk, refuse_outside
from incrowd.methods.expect import expect
from incrowd.methods.exposure import refuse_exposures
from incrowd.methods.outlay import (
    book_release,
    ledger_of,
    refuse_without_events,
    refuse_without_ledger,
)
from incrowd.methods.people import choose_key, draw_rows, write_key
from incrowd.methods.registry import method_of
from incrowd.methods.weak_guarantee import find_weak_parameters
from incrowd.privacy.amplification import Guarantee
from incrowd.privacy.randomness import Randomness, SystemRandomness
from incrowd.release.entries import Booking
from incrowd.release.folder import fill_both
from incrowd.release.history import Recognised
from incrowd.release.ledger import Ledger
from incrowd.release.release import Release, curator_folder
from incrowd.release.write import write
from incrowd.spec.file import SpecFile, SpecSource, taken
from incrowd.spec.model import PersonId, Spec
from incrowd.spec.release import ReleaseSpec

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
    """Publish a table, into a folder that does not exist yet or is empty.

    ``table`` is whatever :func:`incrowd.engine.source.open_table` takes, or None for the one
    that the spec names; ``engine`` opens it, by default the one for tables of its kind. ``spec``
    is a file, its path, its content, or a draft that is confirmed (:func:`incrowd.confirm`). What
    only the curator may see goes into ``curator``, by default beside the release (NAME.curator).
    ``step`` hears of each step before it is taken, ``progress`` how much of a long search is
    decided. ``ledger`` is the one that the spec names; give it where the spec names none.
    Everything that can be refused is refused before the ledger is touched, and the ledger is
    booked before anything is drawn. Findings are warned of, and kept in ``Release.findings``.
    """
    file = taken(spec)
    ledger = ledger_of(file, ledger)

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
    def private(self) -> Path:
        """The folder of what only the curator may see."""
        return self.curator or curator_folder(self.output)


def make_release(run: RunContext) -> Release:
    """Make, write and judge one release; see :func:`publish`. Nobody is warned aloud."""
    file, bits, ledger = run.file, run.bits, run.ledger
    method = _plan(run)
    source = whole = open_for(file, run.table, engine=run.engine or engine_for(run.table))
    _refuse_unfit(file.spec, source)
    findings = [*refuse_exposures(file.spec, source)]
    with ExitStack() as opened:
        spent = opened.enter_context(_Spend(run.output))
        draft, private = opened.enter_context(fill_both(run.output, run.private))
        workers = opened.enter_context(ThreadPoolExecutor(2))  # hashing goes beside counting
        recognised = None if run.rehearsal else Recognised(source, ledger, workers)
        run.step("count")
        counted = method.count(source)
        refuse_outside(counted)
        if recognised is not None:
            recognised.wait()

        run.step("book")
        if ledger is not None:
            spent.booking = book_release(file, method, ledger.book)
        findings += [*_find_seed(bits), *_find_last(ledger, spent.booking)]
        if recognised is not None:
            findings += recognised.findings(accounted=bool(method.events))

        rows_key, unused = None, 0
        if isinstance(file.spec.unit, PersonId):
            rows_key = choose_key(file.spec, bits, rehearsal=run.rehearsal)
            source = draw_rows(whole, file.spec, bits, rows_key)
            unused = whole.rows() - source.rows()
            counted = method.count(source)
        made = method.make(counted, Walk(bits, source.engine, run.step, run.progress))

        run.step("write")
        certificate = write(
            draft, made, _release_spec(file), private=bits.private, key=run.key,
            rehearsal=run.rehearsal,
        )  # fmt: skip
        if rows_key is not None:
            write_key(private, certificate, rows_key)

        judgment = run.judge(made, counted, source, certificate, step=run.step)
        run.step("report")
        findings += find_weak_parameters(
            file.spec.release, made.promise.epsilon, made.promise.delta
        )
        findings += expect(whole, file).warnings() if file.spec.size is not None else []
        origin = _origin(file, ledger, spent.booking, signed=run.key is not None, unused=unused)
        write_judgment(
            private, certificate, judgment, reasons=made.reasons, findings=findings, origin=origin
        )
        run.step("appear")
        if recognised is not None:
            findings += recognised.remember(tuple(findings), accounted=bool(method.events))
    return Release(
        certificate=certificate,
        evaluation=judgment.evaluation,
        tables=tuple(product.table for product in made.products),
        findings=(*findings, *judgment.findings),
        folder=run.output,
        curator=run.private,
        booking=spent.booking,
        reasons=made.reasons,
        library=type(run.table).__module__.partition(".")[0],
        examples=judgment.examples,
        unused=unused,
    )


def _plan(run: RunContext) -> Method:
    """Plan what is guaranteed and spent; refuse what the ledger does not allow."""
    method = method_of(run.file)
    if run.ledger is not None:  # before the table is so much as opened
        refuse_without_events(_release_spec(run.file).method, method.events)
        book_release(run.file, method, run.ledger.allow)
    elif not run.rehearsal:
        refuse_without_ledger(run.file)
    return method


def _release_spec(file: SpecFile) -> ReleaseSpec:
    assert file.spec.release is not None
    return file.spec.release


@dataclass
class _Spend:
    """Whether the spend of a release is booked; whatever ends the release after that says so."""

    output: Path
    booking: Booking | None = None

    def __enter__(self) -> _Spend:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None and self.booking is not None:
            what = "the release is there" if self.output.exists() else "nothing was released"
            error.add_note(f"The spend is booked and counts, and {what}.")


def _find_seed(bits: Randomness) -> tuple[Finding, ...]:
    return () if bits.private else (make_finding("RANDOMNESS_SEEDED"),)


def _find_last(ledger: Ledger | None, booking: Booking | None) -> tuple[Finding, ...]:
    """Find a ledger whose delta does not suffice for a second release like this one."""
    if ledger is None or booking is None or booking.planned:
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


def _origin(
    file: SpecFile, ledger: Ledger | None, booking: Booking | None, *, signed: bool, unused: int
) -> Origin:
    """What the report says of the spec, and of the ledger after this release."""
    standing = None
    if ledger is not None and booking is not None:
        budget, spends = ledger.budget(), ledger.spends()
        standing = Standing(
            ledger.path.name, Guarantee(budget.epsilon, budget.delta), ledger.total(), booking,
            releases=sum(spend.used for spend in spends), in_spec=file.spec.ledger is not None,
        )  # fmt: skip
    name = file.path.name if file.path is not None else "spec.yaml"
    return Origin(file.text(), name, signed, standing, unused)


def _refuse_unfit(spec: Spec, table: Table) -> None:
    """Refuse a table whose columns are not those of the spec, or whose people cannot be told."""
    for name in table.columns:
        if name not in spec.columns:
            raise TableError(f"The column '{name}' of the table has no role in the spec.")
    for name, column in spec.columns.items():
        if name not in table.columns and column.role not in ("drop", "key"):
            raise TableError(f"The column '{name}' of the spec is not in the table.")
    if isinstance(spec.unit, PersonId) and not spec.unit.without_id:
        missing = table.missing(spec.unit.id)
        if missing:
            raise TableError(
                f"{missing:,} rows have no id in the column '{spec.unit.id}', so nobody can say "
                "whose they are. Give them one, or leave them out: unit: {id: "
                f"{spec.unit.id}, without_id: drop}}."
            )
