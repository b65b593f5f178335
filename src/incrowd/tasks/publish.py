"""Publish: a table and a spec go in, a release comes out.

The walk: the method settles what it promises; the table is opened, checked and counted; the
spend, if there is one, is booked; only then is anything drawn. The method makes the rows; they
are measured and attacked; data, scheme, certificate and the curator's report are written into
drafts; they appear.
"""

from __future__ import annotations

import shutil
import tempfile
import warnings
import weakref
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from incrowd.arrays import Progress, Step
from incrowd.attacks.own import attack_own
from incrowd.engine.source import catalogue, engine_for, open_for
from incrowd.engine.table import Engine, Table, TableError
from incrowd.errors import IncrowdWarning
from incrowd.measure.evaluation import Evaluation
from incrowd.methods.base import Walk, refuse_outside
from incrowd.methods.registry import method_of
from incrowd.privacy.amplification import Guarantee
from incrowd.privacy.events import Event
from incrowd.privacy.randomness import Randomness, SystemRandomness
from incrowd.release.certificate import Certificate
from incrowd.release.entries import Booking
from incrowd.release.examples import Examples, example_columns, examples, some_rows
from incrowd.release.folder import fill_both
from incrowd.release.history import Recognised
from incrowd.release.ledger import Ledger
from incrowd.release.origin import Origin, Standing
from incrowd.release.page import Page
from incrowd.release.write import write, write_curator
from incrowd.spec.file import SpecFile, SpecSource, taken
from incrowd.spec.model import PersonId, Spec
from incrowd.tasks.budget import (
    book_release,
    ledger_of,
    refuse_without_events,
    refuse_without_ledger,
)
from incrowd.tasks.check import weak_promises
from incrowd.tasks.classify import classified
from incrowd.tasks.expect import expect
from incrowd.tasks.exposure import refuse_exposures
from incrowd.tasks.people import choose_key, draw_rows, write_key

NEARLY_NOTHING = 0.05  # of rows, or of pairs of columns

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


@dataclass(frozen=True, eq=False)
class Release:
    """What was released, its certificate, and what only the curator may see.

    ``folder`` holds the files to be handed out, ``curator`` the private ones. Where none was
    asked for, they are temporary and go when the release does; :meth:`save` keeps them. ``booking``
    says how a ledger has booked the release, if one has; ``library`` whose data frames it was
    given; ``examples`` are some rows before and after, and ``unused`` how many rows were not used
    because the unit is a person; both are private as the report is.
    """

    certificate: Certificate
    evaluation: Evaluation
    tables: tuple[Table, ...]
    warnings: tuple[str, ...]
    folder: Path
    curator: Path
    booking: Booking | None
    reasons: tuple[str, ...] = ()
    library: str = "polars"
    examples: Examples | None = None
    unused: int = 0

    @property
    def booked(self) -> bool:
        """Whether a ledger has counted the release."""
        return self.booking is not None

    @property
    def empty(self) -> bool:
        """Whether not a single row is shown."""
        return not any(table.release.rows for table in self.certificate.tables)

    @property
    def nearly_empty(self) -> bool:
        """Whether hardly anything is shown; see :func:`describe_emptiness`."""
        return bool(describe_emptiness(self.certificate, self.evaluation))

    @property
    def data(self) -> Any:
        """The released rows as a data frame; of slices, a list of them.

        Who gave a pandas data frame gets one, who gave a table on Spark one of Spark, anybody else
        a Polars one.
        """
        frames = [table.frame() for table in self.tables]
        if self.library == "pandas":
            frames = [frame.to_pandas() for frame in frames]
        return frames if self.certificate.slices is not None else frames[0]

    def report(self) -> Page:
        """The curator's report. It is private."""
        return Page((self.curator / "report.html").read_text(encoding="utf-8"))

    def save(self, folder: Path | str, *, curator: Path | str | None = None) -> Path:
        """Copy the release into a folder that does not exist yet or is empty.

        What only the curator may see goes beside it (NAME.curator), or where ``curator`` says.
        """
        public = Path(folder)
        private = curator_folder(public) if curator is None else Path(curator)
        with fill_both(public, private) as (draft, hidden):
            shutil.copytree(self.folder, draft, dirs_exist_ok=True)
            shutil.copytree(self.curator, hidden, dirs_exist_ok=True)
        return public

    def save_table(self, name: str) -> tuple[str, ...]:
        """Save the released rows as a table of Spark's catalogue; slices as NAME_1, NAME_2, ...

        The answer are the names. What the table holds is what the files hold, in no order.
        """
        home, several = catalogue(self.tables[0].engine), len(self.tables) > 1
        names = [f"{name}_{number}" for number in range(1, len(self.tables) + 1)]
        names = names if several else [name]
        for one in names:
            home.refuse_name(one)
        for one, table in zip(names, self.tables, strict=True):
            home.save(table, one)
        return tuple(names)

    def __repr__(self) -> str:
        rows = " + ".join(f"{table.release.rows:,}" for table in self.certificate.tables)
        known = self.certificate.guarantee
        budget = (
            "" if known.epsilon is None else f", epsilon {known.epsilon:g}, delta {known.delta:g}"
        )
        return f"<Release of {rows} rows: {known.kind}{budget}; {self.folder}>"

    def _repr_html_(self) -> str:
        rows = " + ".join(f"{table.release.rows:,}" for table in self.certificate.tables)
        sentences = (escape(one.text) for one in self.certificate.guarantee.statement)
        items = "".join(f"<li>{text}</li>" for text in sentences)
        return f"<p>{rows} rows.</p><ol>{items}</ol>"


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
    booked before anything is drawn. What whoever publishes should know is warned of, and kept in
    ``Release.warnings``.
    """
    release = released(
        table, spec, output=output, curator=curator,
        ledger=ledger, key=key, bits=bits, engine=engine, step=step, progress=progress,
    )  # fmt: skip
    for text in release.warnings:
        warnings.warn(text, IncrowdWarning, stacklevel=2)
    return release


def released(
    table: Any,
    spec: SpecSource,
    *,
    output: Path | str | None,
    curator: Path | str | None,
    ledger: Ledger | Path | str | None,
    key: Ed25519PrivateKey | None,
    bits: Randomness | None,
    engine: Engine | None,
    step: Step,
    progress: Progress,
    rehearsal: bool = False,
) -> Release:
    """What :func:`publish` does, without a word of warning.

    A ``rehearsal`` is of a table that was made up: nothing is remembered of it, and its
    certificate says so.
    """
    if output is None:
        home = Path(tempfile.mkdtemp(prefix="incrowd-"))
        try:
            release = released(
                table, spec, output=home / "release", curator=curator,
                ledger=ledger, key=key, bits=bits, engine=engine, step=step, progress=progress,
                rehearsal=rehearsal,
            )  # fmt: skip
        except BaseException:
            shutil.rmtree(home, ignore_errors=True)
            raise
        weakref.finalize(release, shutil.rmtree, home, ignore_errors=True)
        return release
    output, file = Path(output), taken(spec)
    curator = curator_folder(output) if curator is None else Path(curator)
    ledger = None if rehearsal else ledger_of(file, ledger)
    bits = bits or SystemRandomness()

    library = type(table).__module__.partition(".")[0]
    method, asked = method_of(file), file.spec.release
    assert asked is not None
    spend: list[Event] = method.events
    if ledger is not None:  # before the table is so much as opened
        refuse_without_events(asked.method, spend)
        book_release(file, method, ledger.allow)
    elif not rehearsal:
        refuse_without_ledger(file)
    engine = engine or engine_for(table)
    source = whole = open_for(file, table, engine=engine)
    _refuse_unfit(file.spec, source)
    exposed = refuse_exposures(file.spec, source)
    with (
        _Spend(output) as spent,
        fill_both(output, curator) as (draft, private),
        ThreadPoolExecutor(4) as workers,  # the table is hashed while it is counted
    ):
        recognised = None if rehearsal else Recognised(source, ledger, workers)
        step("count")
        counted = method.count(source)
        refuse_outside(counted)
        if recognised is not None:
            recognised.wait()
        step("book")
        if ledger is not None:
            spent.booking = book_release(file, method, ledger.book)
        known = exposed + _seeded(bits) + _warn_of_last(ledger, spent.booking)
        if recognised is not None:
            known += recognised.warnings(accounted=bool(spend))
        rows_key, unused = None, 0
        if isinstance(file.spec.unit, PersonId):
            unused = source.rows()
            rows_key = choose_key(file.spec, bits, rehearsal=rehearsal)
            source = draw_rows(source, file.spec, bits, rows_key)
            counted = method.count(source)
            unused -= source.rows()
        made = method.make(counted, Walk(bits, source.engine, step, progress))
        before = workers.submit(some_rows, source, example_columns(made.products[0]))
        step("measure")
        evaluation, measured = made.measured()
        evaluation = evaluation.with_accuracy(classified(made, counted))
        step("attack")
        attacked = attack_own(made, counted)
        step("write")
        certificate = write(draft, made, asked, private=bits.private, key=key, rehearsal=rehearsal)
        step("report")
        seen = examples(made.products, before.result())
        weak = weak_promises(asked, made.promise.epsilon, made.promise.delta)
        weak += [words] if (words := describe_emptiness(certificate, evaluation)) else []
        weak += expect(whole, file).doubts() if file.spec.size is not None else []
        if rows_key is not None:
            write_key(private, certificate, rows_key)
        write_curator(
            private, certificate, evaluation, made.reasons, (*known, *weak, *measured), seen,
            attacked,
            _origin(file, ledger, spent.booking, signed=key is not None, unused=unused),
        )  # fmt: skip
        step("appear")
        if recognised is not None:
            known += recognised.remember(known, accounted=bool(spend))
    return Release(
        certificate=certificate,
        evaluation=evaluation,
        tables=tuple(product.table for product in made.products),
        warnings=(*known, *weak, *measured),
        folder=output,
        curator=curator,
        booking=spent.booking,
        reasons=made.reasons,
        library=library,
        examples=seen,
        unused=unused,
    )


def describe_emptiness(certificate: Certificate, found: Evaluation) -> str:
    """Say that hardly anything is shown: less than 5 % of rows, or of pairs of columns in slices.

    Nothing of a release that shows more, or nothing at all. Of a sample, rows are those drawn.
    """
    if not any(table.release.rows for table in certificate.tables):
        return ""
    if certificate.slices is not None:
        shown = sum(pair.slice is not None for pair in found.associations)
        every, what = len(found.associations), "pairs of columns"
    else:
        drawn = certificate.parameters.get("beta", 1.0)
        rate = float(drawn) if isinstance(drawn, float) else 1.0
        shown, every, what = found.rows_released, round(found.rows_original * rate), "rows"
    if shown >= NEARLY_NOTHING * every:
        return ""
    return (
        f"Hardly anything is published: {shown:,} of {every:,} {what}, less than "
        f"{NEARLY_NOTHING:.0%}. Publish fewer or coarser columns."
    )


def curator_folder(folder: Path) -> Path:
    """Return where the private part of a release lies, unless somebody chose another place."""
    return folder.resolve().with_name(f"{folder.resolve().name}.curator")


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


def _seeded(bits: Randomness) -> tuple[str, ...]:
    if bits.private:
        return ()
    return ("The random numbers come from a seed: this release is NOT private.",)


def _warn_of_last(ledger: Ledger | None, booking: Booking | None) -> tuple[str, ...]:
    """A warning where delta of the ledger does not suffice for a second release like this one."""
    if ledger is None or booking is None or booking.planned:
        return ()
    charge, budget = booking.charge, ledger.budget()
    if ledger.total([charge]).delta <= budget.delta:
        return ()
    words = (
        f"No further release with δ = {charge.guarantee.delta:g} fits under '{ledger.path.name}', "
        f"whatever its ε: unplanned releases add their δ's, and the budget has {budget.delta:g} in "
        "all. Give each release a part of it, or plan several in advance: incrowd ledger plan."
    )
    return (words,)


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
        if name not in table.columns and column.role != "drop":
            raise TableError(f"The column '{name}' of the spec is not in the table.")
    if isinstance(spec.unit, PersonId) and not spec.unit.without_id:
        missing = table.missing(spec.unit.id)
        if missing:
            raise TableError(
                f"{missing:,} rows have no id in the column '{spec.unit.id}', so nobody can say "
                "whose they are. Give them one, or leave them out: unit: {id: "
                f"{spec.unit.id}, without_id: drop}}."
            )
