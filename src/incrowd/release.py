"""The one orchestrator: a table and a spec go in, a release comes out.

The walk: the method settles what it promises; the spend, if there is one, is booked; the
method makes the rows; data, scheme, certificate and the curator's report are written into a
draft folder; it appears.
"""

from __future__ import annotations

import datetime as dt
import json
import shutil
import tempfile
import weakref
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from html import escape
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import quote

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from incrowd import __version__
from incrowd.associating import Sliced
from incrowd.builders import is_open, write_rows
from incrowd.certificate import FILE, Certificate, Data, SchemeColumn, Slice, sha256_of
from incrowd.classical import KAnonymity
from incrowd.engine import Table, TableError
from incrowd.engine.source import open_table
from incrowd.errors import IncrowdError
from incrowd.evaluating import Evaluation
from incrowd.folder import fill
from incrowd.ledger import Ledger, seen_before
from incrowd.noisy import KEpsilon
from incrowd.outcome import Outcome
from incrowd.privacy.events import Composition, Event, as_dict
from incrowd.privacy.randomness import Randomness, SystemRandomness
from incrowd.product import Made, Method, Product, Progress, Recoded, Step
from incrowd.report.page import Page
from incrowd.safely import Safe
from incrowd.spec import PersonId, Spec
from incrowd.spec import Release as Asked
from incrowd.specfile import SpecFile, taken


@dataclass(frozen=True, eq=False)
class Release:
    """What was released, its certificate, and what only the curator may see.

    ``folder`` holds the files. Where none was asked for, it is a temporary one that goes
    when the release does.
    """

    certificate: Certificate
    evaluation: Outcome | Evaluation | Sliced
    tables: tuple[Table, ...]
    warnings: tuple[str, ...]
    folder: Path
    reasons: tuple[str, ...] = ()

    @property
    def data(self) -> Any:
        """The released rows as a data frame; of slices, a list of them."""
        frames = [table.frame() for table in self.tables]
        return frames if self.certificate.slices is not None else frames[0]

    def report(self) -> Page:
        """The curator's report. It is private."""
        return Page((self.folder / "curator" / "report.html").read_text(encoding="utf-8"))

    def _repr_html_(self) -> str:
        rows = " + ".join(f"{table.release.rows:,}" for table in self.certificate.tables)
        return f"<p>{rows} rows. {escape(self.certificate.guarantee.statement)}</p>"


def publish(
    table: Any,
    spec: SpecFile | Path | str | Mapping[str, Any],
    *,
    output: Path | str | None = None,
    ledger: Ledger | Path | str | None = None,
    key: Ed25519PrivateKey | None = None,
    bits: Randomness | None = None,
    step: Step = lambda _: None,
    progress: Progress = lambda _done, _all: None,
) -> Release:
    """Publish a table, into a folder that does not exist yet.

    ``table`` is whatever :func:`incrowd.engine.source.open_table` takes, or None for the one
    that the spec names; ``spec`` is a file, its path, or its content. ``step`` hears of each
    step before it is taken, ``progress`` how much of a long search is decided. Everything that
    can be refused is refused before the ledger is touched, and the ledger is booked before the
    data are.
    """
    if output is None:
        home = Path(tempfile.mkdtemp(prefix="incrowd-"))
        try:
            release = publish(
                table, spec, output=home / "release",
                ledger=ledger, key=key, bits=bits, step=step, progress=progress,
            )  # fmt: skip
        except BaseException:
            shutil.rmtree(home, ignore_errors=True)
            raise
        weakref.finalize(release, shutil.rmtree, home, ignore_errors=True)
        return release
    output, file = Path(output), taken(spec)
    ledger = Ledger(Path(ledger)) if isinstance(ledger, str | Path) else ledger
    bits = bits or SystemRandomness()
    method = _method(file, ledger)
    spend: list[Event] = method.events
    if len(spend) > 1:
        spend = [Composition(spend)]  # one release is one entry of the ledger
    if ledger is not None:
        ledger.allow(spend)  # before the table is so much as opened; booked below
    if table is None and file.spec.table is None:
        raise IncrowdError("The spec names no table. Add 'table: FILE'.")
    source = open_table(file.spec.table, folder=file.folder) if table is None else open_table(table)
    _refuse_unknown(file.spec, source)
    with fill(output) as draft, ThreadPoolExecutor(2) as beside:
        # Loading what draws the report, and hashing the table, go beside the counting.
        beside.submit(import_module, "incrowd.report.curator")
        if ledger is not None:
            step("book")
            ledger.book(spend)
        warnings = beside.submit(_warnings, source, ledger, bits, bool(method.events))
        if isinstance(file.spec.unit, PersonId):
            source = source.one_row_each(file.spec.unit.id, bits)
        made = method.make(source, bits, step, progress)
        step("write")
        certificate = _write(draft, file.spec, method, made, bits, key)
        step("report")
        _write_curator(draft / "curator", certificate, made)
        noticed, remember = warnings.result()
        step("appear")
    remember()
    noticed = (*noticed, *(warning for product in made.products for warning in product.warnings))
    tables = tuple(product.data for product in made.products)
    return Release(certificate, made.evaluation, tables, noticed, output, made.reasons)


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


def refusal(file: SpecFile) -> str:
    """Why a release by this spec would be refused, whatever the table; nothing if it would not."""
    try:
        _method(file, None)
    except IncrowdError as error:
        return str(error)
    return ""


def _refuse_unknown(spec: Spec, table: Table) -> None:
    for name in table.columns:
        if name not in spec.columns:
            raise TableError(f"The column '{name}' of the table has no role in the spec.")
    for name, column in spec.columns.items():
        if name not in table.columns and column.role != "drop":
            raise TableError(f"The column '{name}' of the spec is not in the table.")


def _warnings(
    table: Table, ledger: Ledger | None, bits: Randomness, accounted: bool
) -> tuple[tuple[str, ...], Callable[[], None]]:
    """What to tell the custodian, and how to remember the table once it is released."""
    found, remember = [], _nothing
    if not bits.private:
        found.append("The randomness is seeded: this release is NOT private.")
    if ledger is not None:
        if not ledger.recognises(table.fingerprint):
            found.append("The table has changed since its first release under this ledger.")
        return tuple(found), remember
    seen, remember = seen_before(table.fingerprint)
    if seen:
        add_up = "Releases of one table add up: keep a --ledger for it."
        combine = "Releases of one table can be combined, and nothing bounds what they tell then."
        found.append(f"This table was released before. {add_up if accounted else combine}")
    return tuple(found), remember


def _nothing() -> None:
    """Remember nothing."""


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
        incrowd=__version__,
        method=spec.release.method,
        date=dt.datetime.now(dt.UTC).date().isoformat(),
        guarantee=method.guarantee(),
        events=[as_dict(event) for event in method.events],
        kept=list(first.kept),
        noisy=first.noisy,
        randomness="system" if bits.private else "seeded: not private",
        **own,
    )
    certificate = certificate.sealed() if key is None else certificate.signed(key)
    (draft / FILE).write_bytes(certificate.canonical())
    return certificate


def _write_table(draft: Path, name: str, asked: Asked, product: Product) -> Slice:
    """Write one table and its scheme."""
    path = draft / f"{name}.{asked.format}"
    product.data.write(path)
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
    from incrowd.report.curator import report

    folder.mkdir(mode=0o700)
    text = json.dumps(made.evaluation.as_dict(), indent=2, sort_keys=True)
    (folder / "evaluation.json").write_text(text + "\n", encoding="utf-8")
    page = report(certificate, made.evaluation, made.reasons)
    (folder / "report.html").write_text(page, encoding="utf-8")
