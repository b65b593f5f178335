"""A release as files: data, scheme, certificate; and, private, the report and its numbers.

The numbers are in evaluation.json and attacks.json.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np

from incrowd import __version__
from incrowd.codes.label_form import Form
from incrowd.privacy.draw_parameters import ROWS_PER_PERSON
from incrowd.privacy.events import serialize_event
from incrowd.release.certificate import (
    FILE,
    FORMAT,
    SEEDED,
    SYSTEM,
    AbsentLabels,
    Certificate,
    ReleasedFile,
    SchemeColumn,
    Slice,
    hash_file,
)
from incrowd.release.event_parameters import tabulation_parameters
from incrowd.release.formulas import escape_formula
from incrowd.release.metadata.assertions import Assertions
from incrowd.release.pages import make_pages
from incrowd.release.parameters import Parameters
from incrowd.release.product import ColumnRecoding, MethodResult, Product
from incrowd.release.scheme_words import describe_listed, describe_rule, find_absent
from incrowd.release.shares_combined import CombinedRows, find_combined_level
from incrowd.release.shares_part import RowsByValue, ShareTable, list_shown_rows, list_values
from incrowd.release.synthetic_part import FOLDER, MeasuredTable, SyntheticPart, SyntheticProduct
from incrowd.spec.about import MetadataFormat
from incrowd.spec.arx import format_rows
from incrowd.spec.build import is_open
from incrowd.spec.release import CommonSpec

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


def write_release(
    draft: Path,
    outcome: MethodResult,
    spec: CommonSpec,
    *,
    private: bool,
    key: Ed25519PrivateKey | None,
    rehearsal: bool = False,
    assertions: Assertions | None = None,
    metadata: Sequence[MetadataFormat] = (),
) -> Certificate:
    """Write data, scheme, certificate and the pages for readers.

    ``private`` if the random bits were nobody's to know; a ``rehearsal`` if the table was made up.
    ``assertions`` are what the curator says, ``metadata`` the formats to describe the release in.
    """
    assertions = assertions or Assertions()
    (draft / "scheme").mkdir()
    fields = _write_data(draft, outcome, spec)
    certificate = Certificate(
        format=FORMAT,
        incrowd=__version__,
        method=spec.method,
        date=dt.datetime.now(dt.UTC).date().isoformat(),
        guarantee=outcome.promise,
        events=[serialize_event(event) for event in outcome.events],
        randomness=SYSTEM if private else SEEDED,
        rehearsal=rehearsal or None,
        assertions=None if assertions.is_empty else assertions.compute_hash(),
        metadata=list(dict.fromkeys(metadata)) or None,
        **fields,
    ).with_statement()
    certificate = certificate.with_seal() if key is None else certificate.with_signature(key)
    (draft / FILE).write_bytes(certificate.to_canonical_json())
    for name, page in make_pages(certificate).items():
        (draft / name).parent.mkdir(exist_ok=True)
        (draft / name).write_bytes(page)
    if certificate.assertions is not None or certificate.metadata:
        from incrowd.release.metadata.files import write_metadata  # which few releases need

        write_metadata(draft, certificate, assertions)
    return certificate


def _write_data(draft: Path, outcome: MethodResult, spec: CommonSpec) -> dict[str, Any]:
    """Write the data of a release; return the fields of its certificate that describe it."""
    if outcome.tabulation is not None:
        from incrowd.release.tables_write import write_tabulation

        tables, part = write_tabulation(draft, outcome.tabulation, spec)
        parameters = tabulation_parameters(outcome.events)
        return {"tabulation": part, **_describe_files(tables, parameters or {})}
    several = len(outcome.products) > 1
    tables = [
        _write_table(
            draft, product.file_name or (f"data-{number}" if several else "data"), spec, product
        )
        for number, product in enumerate(outcome.products, 1)
    ]
    first = outcome.products[0]
    synthetic = (
        None if outcome.synthetic is None else _write_measured_tables(draft, outcome.synthetic)
    )
    return {
        "kept": list(first.kept), "noisy": first.noisy, "shares": _count_shares(outcome, tables),
        "combined": _combine_files(outcome, tables),
        "randomized": first.randomized or None, "synthetic": synthetic, "layout": outcome.layout,
        "links": outcome.links,
        **_describe_files(tables, outcome.parameters if several else first.parameters),
    }  # fmt: skip


def _count_shares(outcome: MethodResult, tables: list[Slice]) -> list[ShareTable] | None:
    """Return the columns counted beside the tables, with the rows that show each value."""
    share_tables = [
        share.model_copy(update={"shown": _count_shown(outcome, tables, share.column, share.level)})
        for share in outcome.shares
    ]
    return share_tables or None


def _combine_files(outcome: MethodResult, tables: list[Slice]) -> list[CombinedRows] | None:
    """Return the columns that several files of noisy counts show, by one number per value.

    A person with several rows counts once in each group, so that files which group differently
    count the people of a value differently: there is no one number.
    """
    parameters = {**outcome.parameters, **tables[0].parameters}
    is_single = len(tables) == 1 or outcome.layout is not None
    if is_single or "r" not in parameters or ROWS_PER_PERSON in parameters:
        return None
    recodings: dict[str, list[ColumnRecoding]] = {}
    for product in outcome.products:
        for name, recoding in product.scheme.items():
            recodings.setdefault(name, []).append(recoding)
    combined = []
    for name in sorted({*recodings} - {share.column for share in outcome.shares}):
        hierarchy = recodings[name][0].hierarchy
        levels = [recoding.level for recoding in recodings[name] if recoding.level is not None]
        level = find_combined_level(hierarchy, levels)
        if level is not None and not is_open(recodings[name][0].column):
            files = _count_shown(outcome, tables, name, level)
            values = list_values(hierarchy, level)
            combined.append(CombinedRows(column=name, level=level, values=values, files=files))
    return combined or None


def _count_shown(
    outcome: MethodResult, tables: list[Slice], column: str, level: int
) -> list[RowsByValue]:
    """Count the rows of each value in the files that tell the values of a level apart."""
    parts = []
    for table, product in zip(tables, outcome.products, strict=True):
        recoding = product.scheme.get(column)
        if recoding is None or recoding.level is None:
            continue
        frequencies, at = product.shown.frequencies, list(product.scheme).index(column)
        rows = list_shown_rows(
            recoding.hierarchy, (recoding.level, level),
            (frequencies.codes[:, at], frequencies.counts),
        )  # fmt: skip
        if rows is not None:
            parts.append(RowsByValue(file=table.release.file, rows=rows))
    return parts


def _describe_files(tables: list[Slice], parameters: Parameters) -> dict[str, Any]:
    """Return the fields of a certificate on its files: one table, or slices."""
    if len(tables) > 1:
        return {"parameters": parameters, "slices": tables}
    (only,) = tables
    return {"parameters": parameters, "scheme": only.scheme, "release": only.release}


def _write_table(draft: Path, name: str, spec: CommonSpec, product: Product) -> Slice:
    """Write one table and its scheme."""
    path = draft / f"{name}.{spec.format}"
    data = product.table if spec.format == "parquet" else product.data  # in a text all is text
    data = data.respell_texts(escape_formula) if spec.formulas else data
    data.write(path)
    suppresses = spec.method != "synthetic"
    return Slice(
        parameters=product.parameters,
        scheme={
            column: write_scheme(
                column,
                recoded,
                draft,
                form=_find_label_form(column, recoded, product),
                absent=_find_absent_labels(column, recoded, product) if suppresses else None,
            )
            for column, recoded in product.scheme.items()
        },
        release=ReleasedFile(
            file=path.name,
            form=spec.rows,
            sha256=hash_file(path),
            rows=product.rows,
            classes=product.classes,
            smallest_class=product.smallest_class,
            formulas="escaped" if spec.formulas else None,
        ),
    )


def _find_label_form(name: str, recoded: ColumnRecoding, product: Product) -> Form:
    """Return the form of the labels of a column, as they are written."""
    mixed = recoded.form == "numbers" and name not in product.numbers
    return "numbers or text" if mixed else recoded.form


def _find_absent_labels(
    name: str, recoded: ColumnRecoding, product: Product
) -> AbsentLabels | None:
    """Return the listed labels that no row shows; values met in an open domain are not listed."""
    if is_open(recoded.column):
        return None
    at = list(product.scheme).index(name)
    labels = product.shown.labels[at]
    used = np.unique(product.shown.frequencies.codes[:, at]).tolist()
    return find_absent(recoded.hierarchy, recoded.level, {labels[code] for code in used})


def write_scheme(
    name: str,
    recoded: ColumnRecoding,
    draft: Path,
    *,
    form: Form,
    absent: AbsentLabels | None = None,
) -> SchemeColumn:
    """Write the recoding applied: as an ARX file where the domain is listed, else as a rule.

    The values met in an open domain are facts about the table and are not written.
    """
    column = recoded.column
    rule = column.hierarchy if is_open(column) else None
    words = describe_listed(recoded.hierarchy, recoded.level) if rule is None else (
        describe_rule(rule)
    )  # fmt: skip
    scheme: dict[str, Any] = {
        "level": recoded.level, "ordered": recoded.ordered, "other": column.other, "labels": form,
        "shows": words.shows, "sizes": words.sizes, "open_ends": words.open_ends,
        "absent": absent,
    }  # fmt: skip
    if rule is not None:
        return SchemeColumn(rule=rule.model_dump(mode="json", exclude_none=True), **scheme)
    path = f"scheme/{quote(name, safe=' ')}.csv"
    (draft / path).write_text(format_rows(recoded.hierarchy), encoding="utf-8")
    return SchemeColumn(file=path, sha256=hash_file(draft / path), **scheme)


def _write_measured_tables(draft: Path, product: SyntheticProduct) -> SyntheticPart:
    """Write a file for each measured table; return the part of the certificate that lists them."""
    from incrowd.release.measured import CountEstimates, write_measured

    (draft / FOLDER).mkdir()
    estimates = CountEstimates(product.measured, product.columns)
    listed = []
    for number, table in enumerate(product.measured):
        file = f"{FOLDER}/{number:03d}.csv"
        text = write_measured(table, estimates).encode()
        (draft / file).write_bytes(text)
        listed.append(
            MeasuredTable(
                file=file,
                sha256=hash_file(draft / file),
                columns=list(table.columns),
                levels=list(table.levels),
                centered=[table.columns[axis] for axis in table.centered],
                variances=list(table.variances),
                held=table.held,
            )
        )
    return product.part.model_copy(update={"measured": listed})
