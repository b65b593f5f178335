"""The one orchestrator: a table and a spec go in, a release comes out.

The walk: the method settles what it promises; the table is opened, checked and counted; the
spend, if there is one, is booked; only then is anything drawn. The method makes the rows; data,
scheme, certificate and the curator's report are written into drafts; they appear.
"""

from __future__ import annotations

import datetime as dt
import json
import shutil
import tempfile
import weakref
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from html import escape
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import quote

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from incrowd import __version__
from incrowd.arrays import Progress, Step
from incrowd.codes.counted import Rows
from incrowd.engine.source import open_table
from incrowd.engine.table import Table, TableError
from incrowd.errors import IncrowdError
from incrowd.measure.evaluation import Evaluation
from incrowd.measure.outcome import Outcome
from incrowd.measure.slices import Sliced
from incrowd.methods.base import Made, Method, Product, Recoded, refuse_outside
from incrowd.methods.k_anonymity.method import KAnonymity
from incrowd.methods.k_epsilon.method import KEpsilon
from incrowd.methods.safe.method import Safe
from incrowd.privacy.events import Composition, Event, as_dict
from incrowd.privacy.randomness import Randomness, SystemRandomness
from incrowd.release.certificate import (
    FILE,
    FORMAT,
    SEEDED,
    SYSTEM,
    Certificate,
    Data,
    Guarantee,
    SchemeColumn,
    Slice,
    sha256_of,
)
from incrowd.release.folder import fill_both
from incrowd.release.formulas import escaped
from incrowd.release.ledger import ONE_ROW, Ledger, unit_of_id
from incrowd.release.memory import WITHOUT_LEDGER, Memory, name_of
from incrowd.release.page import Page
from incrowd.spec.arx import write_rows
from incrowd.spec.build import is_open
from incrowd.spec.file import SpecFile, taken
from incrowd.spec.model import PersonId, Spec
from incrowd.spec.release import CommonSpec
from incrowd.tasks.check import weak_promises


@dataclass(frozen=True, eq=False)
class Release:
    """What was released, its certificate, and what only the curator may see.

    ``folder`` holds the files to be handed out, ``curator`` the private ones. Where none was
    asked for, they are temporary and go when the release does. ``booked`` says whether a ledger
    has counted the release.
    """

    certificate: Certificate
    evaluation: Outcome | Evaluation | Sliced
    tables: tuple[Table, ...]
    warnings: tuple[str, ...]
    folder: Path
    curator: Path
    booked: bool
    reasons: tuple[str, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether not a single row is shown."""
        return not any(table.release.rows for table in self.certificate.tables)

    @property
    def data(self) -> Any:
        """The released rows as a data frame; of slices, a list of them."""
        frames = [table.frame() for table in self.tables]
        return frames if self.certificate.slices is not None else frames[0]

    def report(self) -> Page:
        """The curator's report. It is private."""
        return Page((self.curator / "report.html").read_text(encoding="utf-8"))

    def _repr_html_(self) -> str:
        rows = " + ".join(f"{table.release.rows:,}" for table in self.certificate.tables)
        return f"<p>{rows} rows. {escape(self.certificate.guarantee.statement)}</p>"


def publish(
    table: Any,
    spec: SpecFile | Path | str | Mapping[str, Any],
    *,
    output: Path | str | None = None,
    curator: Path | str | None = None,
    ledger: Ledger | Path | str | None = None,
    key: Ed25519PrivateKey | None = None,
    bits: Randomness | None = None,
    step: Step = lambda _: None,
    progress: Progress = lambda _done, _all: None,
) -> Release:
    """Publish a table, into a folder that does not exist yet or is empty.

    ``table`` is whatever :func:`incrowd.engine.source.open_table` takes, or None for the one
    that the spec names; ``spec`` is a file, its path, or its content. What only the curator may
    see goes into ``curator``, by default beside the release (NAME.curator). ``step`` hears of
    each step before it is taken, ``progress`` how much of a long search is decided. Everything
    that can be refused is refused before the ledger is touched, and the ledger is booked before
    anything is drawn.
    """
    if output is None:
        home = Path(tempfile.mkdtemp(prefix="incrowd-"))
        try:
            release = publish(
                table, spec, output=home / "release", curator=curator,
                ledger=ledger, key=key, bits=bits, step=step, progress=progress,
            )  # fmt: skip
        except BaseException:
            shutil.rmtree(home, ignore_errors=True)
            raise
        weakref.finalize(release, shutil.rmtree, home, ignore_errors=True)
        return release
    output, file = Path(output), taken(spec)
    beside = output.resolve().with_name(f"{output.resolve().name}.curator")
    curator = beside if curator is None else Path(curator)
    ledger = Ledger(Path(ledger)) if isinstance(ledger, str | Path) else ledger
    bits = bits or SystemRandomness()
    method = _method(file, ledger)
    spend: list[Event] = method.events
    if len(spend) > 1:
        spend = [Composition(spend)]  # one release is one entry of the ledger
    if ledger is not None:
        ledger.allow(spend, unit=_unit(file.spec))  # before the table is so much as opened
    if table is None and file.spec.table is None:
        raise IncrowdError("The spec names no table. Add 'table: FILE'.")
    source = open_table(file.spec.table, folder=file.folder) if table is None else open_table(table)
    _refuse_unfit(file.spec, source)
    with (
        _Spend(output) as spent,
        fill_both(output, curator) as (draft, private),
        ThreadPoolExecutor(3) as workers,
    ):
        # Loading what draws the report, and hashing the table, go beside the counting.
        workers.submit(import_module, "incrowd.release.report")
        recognised = _Recognised(source, ledger, workers)
        step("count")
        counted = method.count(source)
        refuse_outside(counted.counted if isinstance(counted, Rows) else counted)
        recognised.wait()
        step("book")
        if ledger is not None:
            ledger.book(spend, unit=_unit(file.spec))
            spent.booked = True
        warnings = recognised.warnings(bits, accounted=bool(method.events))
        if isinstance(file.spec.unit, PersonId):
            source = source.one_row_each(file.spec.unit.id, bits)
            counted = method.count(source)
        made = method.make(counted, bits, step, progress)
        step("write")
        certificate = _write(draft, file.spec, method, made, bits, key)
        step("report")
        _write_curator(private, certificate, made)
        step("appear")
        warnings += recognised.remember(warnings, accounted=bool(method.events))
    known = certificate.guarantee
    warnings += tuple(weak_promises(file.spec.release, known.epsilon, known.delta))
    warnings += made.warnings
    tables = tuple(product.data for product in made.products)
    return Release(
        certificate, made.evaluation, tables, warnings, output, curator, spent.booked,
        made.reasons,
    )  # fmt: skip


@dataclass
class _Spend:
    """Whether the spend of a release is booked; whatever ends the release after that says so."""

    output: Path
    booked: bool = False

    def __enter__(self) -> _Spend:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None and self.booked:
            what = "the release is there" if self.output.exists() else "nothing was released"
            error.add_note(f"The spend is booked and counts, and {what}.")


def _unit(spec: Spec) -> str:
    return unit_of_id(spec.unit.id) if isinstance(spec.unit, PersonId) else ONE_ROW


def _method(file: SpecFile, ledger: Ledger | None) -> Method:
    release = file.spec.release
    if release is None:
        raise IncrowdError("The spec says nothing under 'release'. Say how to publish.")
    if release.method == "safe":
        return Safe(file)
    if ledger is not None:
        raise IncrowdError(
            f"The method '{release.method}' is not differentially private, so a ledger cannot "
            "account for it. Publish it without --ledger, knowing that it adds to no budget."
        )
    if release.method == "k-anonymity":
        return KAnonymity(file)
    return KEpsilon(file)


def promised(file: SpecFile) -> Guarantee:
    """What a release by this spec would promise; raises if it would be refused by any table."""
    return _method(file, None).guarantee()


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


class _Recognised:
    """A table that may have been released before: its fingerprints, taken in the background."""

    def __init__(self, table: Table, ledger: Ledger | None, workers: ThreadPoolExecutor) -> None:
        self._ledger, self._memory = ledger, Memory()
        self._ours: Future[str] | None = None
        key = ledger.key() if ledger is not None else b""
        self._name = name_of(key) if ledger is not None else WITHOUT_LEDGER
        if ledger is not None:
            self._ours = workers.submit(table.fingerprint, key)
        self._mark = workers.submit(table.fingerprint, self._memory.key)

    def wait(self) -> None:
        """Have the fingerprints, or whatever prevents them, before anything is booked."""
        for mark in filter(None, (self._ours, self._mark)):
            mark.result()

    def warnings(self, bits: Randomness, *, accounted: bool) -> tuple[str, ...]:
        """What to tell the curator."""
        found = []
        if not bits.private:
            found.append("The random numbers come from a seed: this release is NOT private.")
        if self._changed():
            found.append("The table has changed since its first release under this ledger.")
        mark = self._mark.result()
        if self._memory.earlier(mark, ledger=self._name):
            found.append(self._earlier(accounted))
        if not self._memory.usable:
            found.append(
                "Nothing can be remembered in the user's state folder, so that a second release "
                "of this table will not be noticed."
            )
        return tuple(found)

    def remember(self, warned: tuple[str, ...], *, accounted: bool) -> tuple[str, ...]:
        """Remember that the table is released; a release that came in between is told of."""
        said = self._earlier(accounted)
        late = self._memory.remember(self._mark.result(), ledger=self._name)
        return (said,) if late and said not in warned else ()

    def _changed(self) -> bool:
        if self._ledger is None or self._ours is None:
            return False
        return not self._ledger.recognises(self._ours.result())

    def _earlier(self, accounted: bool) -> str:
        if self._ledger is not None:
            return (
                "This table was released before without this ledger, which does not count that "
                "release. Releases of one table add up: keep one ledger for all of them."
            )
        before = "This table was released before."
        if accounted:
            return f"{before} Releases of one table add up: keep one --ledger for all of them."
        return f"{before} Releases of one table can be combined, and nothing bounds what they tell."


def _write(
    draft: Path,
    spec: Spec,
    method: Method,
    made: Made,
    bits: Randomness,
    key: Ed25519PrivateKey | None,
) -> Certificate:
    """Write data, scheme and certificate."""
    assert spec.release is not None
    (draft / "scheme").mkdir()
    several = len(made.products) > 1
    tables = [
        _write_table(draft, f"data-{number}" if several else "data", spec.release, product)
        for number, product in enumerate(made.products, 1)
    ]
    first = made.products[0]
    own: dict[str, Any] = {"parameters": made.parameters, "slices": tables} if several else {
        "parameters": first.parameters, "scheme": tables[0].scheme, "release": tables[0].release,
    }  # fmt: skip
    certificate = Certificate(
        format=FORMAT,
        incrowd=__version__,
        method=spec.release.method,
        date=dt.datetime.now(dt.UTC).date().isoformat(),
        guarantee=method.guarantee(),
        events=[as_dict(event) for event in method.events],
        kept=list(first.kept),
        noisy=first.noisy,
        randomness=SYSTEM if bits.private else SEEDED,
        **own,
    ).stated()
    certificate = certificate.sealed() if key is None else certificate.signed(key)
    (draft / FILE).write_bytes(certificate.canonical())
    return certificate


def _write_table(draft: Path, name: str, asked: CommonSpec, product: Product) -> Slice:
    """Write one table and its scheme."""
    path = draft / f"{name}.{asked.format}"
    data = product.data.respelled(escaped) if asked.formulas else product.data
    data.write(path)
    return Slice(
        parameters=product.parameters,
        scheme={
            column: _write_scheme(column, recoded, draft)
            for column, recoded in product.scheme.items()
        },
        release=Data(
            file=path.name,
            form=asked.rows,
            sha256=sha256_of(path),
            rows=product.rows,
            classes=product.classes,
            smallest_class=product.smallest_class,
            formulas="escaped" if asked.formulas else None,
        ),
    )


def _write_scheme(name: str, recoded: Recoded, draft: Path) -> SchemeColumn:
    """The recoding that was applied: as an ARX file where the domain is listed, else as a rule.

    The values met in an open domain are facts about the table and are not written.
    """
    column = recoded.column
    known: dict[str, Any] = {
        "level": recoded.level, "ordered": recoded.ordered, "other": column.other,
    }  # fmt: skip
    if is_open(column):
        assert column.hierarchy is not None
        rule = column.hierarchy.model_dump(mode="json", exclude_none=True)
        return SchemeColumn(rule=rule, **known)
    path = f"scheme/{quote(name, safe=' ')}.csv"
    (draft / path).write_text(write_rows(recoded.hierarchy), encoding="utf-8")
    return SchemeColumn(file=path, sha256=sha256_of(draft / path), **known)


def _write_curator(folder: Path, certificate: Certificate, made: Made) -> None:
    from incrowd.release.report import report

    text = json.dumps(made.evaluation.as_dict(), indent=2, sort_keys=True)
    (folder / "evaluation.json").write_text(text + "\n", encoding="utf-8")
    page = report(certificate, made.evaluation, made.reasons, made.warnings)
    (folder / "report.html").write_text(page, encoding="utf-8")
