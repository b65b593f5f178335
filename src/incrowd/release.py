"""The one orchestrator: a table and a spec go in, a release comes out.

The walk: settle k and beta; book the spend; group the table once at the chosen levels; thin
the counts by beta and cut them at k; write cells, scheme, certificate and the curator's
report into a draft folder; let it appear.
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
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from incrowd import __version__
from incrowd.anonymize.frequency import Frequencies, merged
from incrowd.anonymize.safe import safe
from incrowd.builders import build, is_open, write_rows
from incrowd.certificate import (
    FILE,
    Certificate,
    Data,
    Guarantee,
    SchemeColumn,
    parameters_of,
    sha256_of,
    statement,
)
from incrowd.engine import Table, TableError
from incrowd.engine.count import Counted, count
from incrowd.engine.local import from_cells
from incrowd.engine.source import open_table
from incrowd.errors import IncrowdError
from incrowd.evaluating import Evaluation, evaluate
from incrowd.folder import fill
from incrowd.ledger import Ledger, seen_before
from incrowd.planning import plan
from incrowd.privacy.accountant import Accountant
from incrowd.privacy.events import Event, SafeRelease, Sampled, as_dict
from incrowd.privacy.randomness import Randomness, SystemRandomness, realised
from incrowd.report.page import Page
from incrowd.spec import Column, PersonId, Spec
from incrowd.specfile import SpecFile, load, parse

COUNT = "count"


@dataclass(frozen=True, eq=False)
class Release:
    """What was released, its certificate, and what only the curator may see.

    ``folder`` holds the files. Where none was asked for, it is a temporary one that goes
    when the release does.
    """

    certificate: Certificate
    evaluation: Evaluation
    table: Table
    warnings: tuple[str, ...]
    folder: Path

    @property
    def data(self) -> Any:
        """The released rows as a data frame."""
        return self.table.frame()

    def report(self) -> Page:
        """The curator's report. It is private."""
        return Page((self.folder / "curator" / "report.html").read_text(encoding="utf-8"))

    def _repr_html_(self) -> str:
        known = self.certificate
        return f"<p>{known.release.rows:,} rows. {known.guarantee.statement}</p>"


def publish(
    table: Any,
    spec: SpecFile | Path | str | Mapping[str, Any],
    *,
    output: Path | str | None = None,
    ledger: Ledger | Path | str | None = None,
    key: Ed25519PrivateKey | None = None,
    bits: Randomness | None = None,
    step: Callable[[str], None] = lambda _: None,
) -> Release:
    """Publish a safe release of a table, into a folder that does not exist yet.

    ``table`` is whatever :func:`incrowd.engine.source.open_table` takes, or None for the one
    that the spec names; ``spec`` is a file, its path, or its content. ``step`` hears of each
    step before it is taken. Everything that can be refused is refused before the ledger is
    touched, and the ledger is booked before the data are.
    """
    if output is None:
        home = Path(tempfile.mkdtemp(prefix="incrowd-"))
        made = publish(table, spec, output=home / "release", ledger=ledger, key=key, bits=bits)
        weakref.finalize(made, shutil.rmtree, home, ignore_errors=True)
        return made
    output, file = Path(output), _spec_file(spec)
    ledger = Ledger(Path(ledger)) if isinstance(ledger, str | Path) else ledger
    bits = bits or SystemRandomness()
    columns = _published(file.spec)
    levels = _levels(file, columns)
    events, guarantee = _settled(file.spec)
    if ledger is not None:
        ledger.allow(events)  # before the table is so much as opened; booked below
    if table is None and file.spec.table is None:
        raise IncrowdError("The spec names no table. Add 'table: FILE'.")
    source = open_table(file.spec.table if table is None else table, folder=file.folder)
    _refuse_unknown(file.spec, source)
    with fill(output) as draft, ThreadPoolExecutor(2) as beside:
        # Loading what draws the report, and hashing the table, go beside the counting.
        beside.submit(import_module, "incrowd.report.curator")
        if ledger is not None:
            step("book")
            ledger.book(events)
        warnings = beside.submit(_warnings, source, ledger, bits)
        step("count")
        if isinstance(file.spec.unit, PersonId):
            source = source.one_row_each(file.spec.unit.id, bits)
        counted = count(source, columns, folder=file.folder, levels=levels).by_label()
        step("draw")
        known = parameters_of(events)
        k, beta = int(known["k"]), known["beta"]
        released = safe(counted.frequencies, k=k, beta=beta, bits=bits)
        evaluation = evaluate(counted, released, k=k, beta=beta)
        step("write")
        data = _cells(file.spec, columns, counted, released)
        written = _write_data(file.spec, data, released, draft)
        scheme = _write_scheme(counted, columns, draft)
        certificate = _certified(file.spec, events, guarantee, scheme, written, bits, key)
        (draft / FILE).write_bytes(certificate.canonical())
        step("report")
        _write_curator(draft / "curator", certificate, evaluation)
        noticed = warnings.result()
        step("appear")
    return Release(certificate, evaluation, data, noticed, output)


def _spec_file(spec: SpecFile | Path | str | Mapping[str, Any]) -> SpecFile:
    if isinstance(spec, SpecFile):
        return spec
    if isinstance(spec, Mapping):
        return parse(json.dumps(spec, default=str))
    return load(Path(spec))


def _published(spec: Spec) -> dict[str, Column]:
    """The columns that are published, all of them generalised; or the reason why not."""
    release = spec.release
    if release is None or release.method != "safe" or release.scheme not in (None, "fixed"):
        raise IncrowdError("Only 'release: {method: safe, scheme: fixed}' can be published so far.")
    if release.slices:
        raise IncrowdError("'slices' cannot be published so far. Publish one spec for each.")
    if spec.unconfirmed:
        listed = "; ".join(f"{name}: {', '.join(e)}" for name, e in spec.unconfirmed.items())
        raise IncrowdError(
            f"These entries were read from the data and nobody has confirmed them: {listed}. Put "
            "public knowledge in their place, then delete 'confirm'."
        )
    columns = {name: spec.columns[name] for name in spec.with_role("quasi", "sensitive")}
    for name, column in columns.items():
        if len(quote(name, safe=" ")) > 200:
            raise IncrowdError(f"The name of the column '{name[:40]}...' is too long for a file.")
        if column.hierarchy is None:
            raise IncrowdError(
                f"The column '{name}' is sensitive and has no hierarchy. A safe release "
                "generalises every column it publishes; give it one ('flat' will do), or drop it."
            )
    if not columns:
        raise IncrowdError("The spec publishes no column: give some the role 'quasi'.")
    if release.rows == "weighted" and COUNT in columns:
        raise IncrowdError(f"A weighted release has a column '{COUNT}'; rename yours.")
    return columns


def _levels(file: SpecFile, columns: dict[str, Column]) -> list[int]:
    """The levels of the spec; half way up, rounded down, where it names none."""
    assert file.spec.release is not None
    levels = []
    for name, column in columns.items():
        height = build(column, folder=file.folder).height
        level = file.spec.release.levels.get(name, (height - 1) // 2)
        if level >= height:
            raise IncrowdError(
                f"Level {level} is asked for column '{name}', but its highest is {height - 1}."
            )
        levels.append(level)
    return levels


def _settled(spec: Spec) -> tuple[list[Event], tuple[float, float]]:
    """The events and the (epsilon, delta) they guarantee, from what the spec gives of k, beta, ...

    With ``already_sampled`` the table is a sample of rate b, so drawing with beta draws from
    the population with b beta: that product is planned for.
    """
    release = spec.release
    assert release is not None
    b = release.already_sampled or 1.0
    k, rate = release.k, release.beta or release.keep
    budget = {"epsilon": release.epsilon, "delta": release.delta}
    if rate is not None and k is None:
        k = plan(beta=rate * b, **budget).k  # type: ignore[arg-type]
    elif rate is None:
        planned = plan(k=k, **budget)  # type: ignore[arg-type]
        k, rate = planned.k, planned.beta / b
        if rate > 0.99:  # more than there are rows: draw nearly all of them
            rate = 0.99
            k = release.k or plan(beta=rate * b, **budget).k  # type: ignore[arg-type]
    assert k is not None
    event: Event = SafeRelease(k, realised(rate))
    if release.already_sampled:
        event = Sampled(event, release.already_sampled)
    accountant = Accountant(event)
    if release.epsilon is not None:
        epsilon, delta = release.epsilon, accountant.delta(epsilon=release.epsilon)
        if release.delta is not None and delta > release.delta:
            raise IncrowdError(
                f"k = {k} and beta = {rate:g} give delta = {delta:.3g} at epsilon = {epsilon:g}, "
                f"more than the {release.delta:g} of the spec. Use a larger k or a smaller beta."
            )
    elif release.delta is not None:
        delta, epsilon = release.delta, accountant.epsilon(delta=release.delta)
    else:
        raise IncrowdError("The spec must give epsilon, delta or both under 'release'.")
    if not epsilon < float("inf"):
        raise IncrowdError(
            f"No epsilon reaches delta = {delta:g} with k = {k} and beta = {rate:g}."
        )
    return [event], (epsilon, delta)


def _refuse_unknown(spec: Spec, table: Table) -> None:
    for name in table.columns:
        if name not in spec.columns:
            raise TableError(f"The column '{name}' of the table has no role in the spec.")
    for name, column in spec.columns.items():
        if name not in table.columns and column.role != "drop":
            raise TableError(f"The column '{name}' of the spec is not in the table.")


def _warnings(table: Table, ledger: Ledger | None, bits: Randomness) -> tuple[str, ...]:
    found = []
    if not bits.private:
        found.append("The randomness is seeded: this release is NOT private.")
    if ledger is not None:
        if not ledger.recognises(table.fingerprint):
            found.append("The table has changed since its first release under this ledger.")
    elif seen_before(table.fingerprint):
        found.append(
            "This table was released before. Releases of one table add up: keep a --ledger for it."
        )
    return tuple(found)


def _cells(
    spec: Spec, columns: dict[str, Column], counted: Counted, released: Frequencies
) -> Table:
    """The released cells as a table, in an order that the cells themselves decide.

    Codes of an open domain come from the values met in the table, suppressed ones among them,
    so there labels are put in the order of their texts first.
    """
    assert spec.release is not None
    labels, codes = {}, released.codes.copy()
    for at, (name, hierarchy, level) in enumerate(
        zip(counted.names, counted.hierarchies, counted.levels, strict=True)
    ):
        texts = list(hierarchy.labels[level])
        if is_open(columns[name]):
            by_text = sorted(range(len(texts)), key=lambda code: (texts[code] is None, texts[code]))
            rank = np.empty(len(texts), dtype=np.int32)
            rank[by_text] = np.arange(len(texts))
            codes[:, at] = rank[codes[:, at]]
            texts = [texts[code] for code in by_text]
        labels[name] = texts
    cells = merged(codes, released.counts)
    shown = {name: (texts, cells.codes[:, at]) for at, (name, texts) in enumerate(labels.items())}
    weighted = COUNT if spec.release.rows == "weighted" else None
    return from_cells(shown, cells.counts, weighted=weighted)


def _write_data(spec: Spec, data: Table, released: Frequencies, draft: Path) -> Data:
    assert spec.release is not None
    name = f"data.{spec.release.format}"
    data.write(draft / name)
    smallest = int(released.counts.min()) if len(released) else 0
    return Data(
        file=name,  # type: ignore[arg-type]
        form=spec.release.rows,
        sha256=sha256_of(draft / name),
        rows=released.total,
        classes=len(released),
        smallest_class=smallest,
    )


def _write_scheme(
    counted: Counted, columns: dict[str, Column], draft: Path
) -> dict[str, SchemeColumn]:
    """The recoding that was applied: as an ARX file where the domain is listed, else as a rule.

    The values met in an open domain are facts about the table and are not written.
    """
    (draft / "scheme").mkdir()
    scheme = {}
    for name, hierarchy, level in zip(
        counted.names, counted.hierarchies, counted.levels, strict=True
    ):
        column = columns[name]
        if is_open(column):
            assert column.hierarchy is not None
            rule = column.hierarchy.model_dump(mode="json", exclude_none=True)
            scheme[name] = SchemeColumn(level=level, other=column.other, rule=rule)
            continue
        path = f"scheme/{quote(name, safe=' ')}.csv"
        (draft / path).write_text(write_rows(hierarchy), encoding="utf-8")
        scheme[name] = SchemeColumn(
            level=level, other=column.other, file=path, sha256=sha256_of(draft / path)
        )
    return scheme


def _certified(
    spec: Spec,
    events: list[Event],
    guarantee: tuple[float, float],
    scheme: dict[str, SchemeColumn],
    data: Data,
    bits: Randomness,
    key: Ed25519PrivateKey | None,
) -> Certificate:
    promised = Guarantee(
        kind="differential privacy",
        statement="",
        epsilon=guarantee[0],
        delta=guarantee[1],
        unit="one person" if isinstance(spec.unit, PersonId) else "one row",
    )
    promised = promised.model_copy(update={"statement": statement(events, promised)})
    certificate = Certificate(
        incrowd=__version__,
        method="safe",
        date=dt.datetime.now(dt.UTC).date().isoformat(),
        guarantee=promised,
        parameters=parameters_of(events),  # type: ignore[arg-type]
        events=[as_dict(event) for event in events],
        scheme=scheme,
        release=data,
        randomness="system" if bits.private else "seeded: not private",
    )
    return certificate.sealed() if key is None else certificate.signed(key)


def _write_curator(folder: Path, certificate: Certificate, evaluation: Evaluation) -> None:
    from incrowd.report.curator import report

    folder.mkdir(mode=0o700)
    text = json.dumps(evaluation.as_dict(), indent=2, sort_keys=True)
    (folder / "evaluation.json").write_text(text + "\n", encoding="utf-8")
    (folder / "report.html").write_text(report(certificate, evaluation), encoding="utf-8")
