"""A release as metadata describe it: files, columns, labels, and what the curator asserts.

Everything comes from the certificate, from what it holds a hash of (the scheme, the names of the
columns in the released files) and from the curator's assertions; nothing from the original table.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, TypeAlias

from incrowd.codes.counted_table import COUNT
from incrowd.codes.hierarchy import ROOT
from incrowd.codes.household_type import HOUSEHOLD_KEY
from incrowd.codes.label_form import parse_number_label
from incrowd.engine.released import open_released
from incrowd.release.certificate import FILE, Certificate, SchemeColumn, Slice
from incrowd.release.formulas import escape_formula, unescape_formula
from incrowd.release.metadata.assertions import Assertions, LedgerTotal
from incrowd.release.shares_files import make_share_files
from incrowd.release.tables_part import MEASURED_FILE
from incrowd.spec.about import NOT_STATED, About
from incrowd.spec.arx import parse_rows, read_text

ColumnType: TypeAlias = Literal["text", "integer", "number", "date", "boolean", "any"]
_MOST_LABELS = 1000  # of a column that are listed; of more, the scheme file is named
_MEDIA_TYPES = {".parquet": "application/vnd.apache.parquet", ".csv": "text/csv"}


@dataclass(frozen=True)
class DescribedColumn:
    """A column of a released file: what it contains, its type, and its labels if they are few.

    ``labels`` are those that the column may show, in their declared order; ``more_labels`` says
    that others may occur (of an open domain, or too many to list).
    """

    name: str
    content: str
    type: ColumnType
    treatment: str
    labels: tuple[str, ...] = ()
    more_labels: bool = False
    hierarchy: str = ""
    rule: str = ""


@dataclass(frozen=True)
class DescribedFile:
    """A released file with its columns, in their order."""

    name: str
    sha256: str
    media_type: str
    rows: int
    classes: int
    columns: tuple[DescribedColumn, ...]

    @property
    def stem(self) -> str:
        """The name without its ending."""
        return self.name.partition(".")[0]


@dataclass(frozen=True)
class ReleaseDescription:
    """Everything that metadata say of a release.

    ``to_data`` leads from the folder of the metadata to the folder of the data.
    """

    certificate: Certificate
    assertions: Assertions
    files: tuple[DescribedFile, ...]
    hierarchies: dict[str, str]
    to_data: str

    @property
    def about(self) -> About:
        """What the curator asserts."""
        return self.assertions.about

    @property
    def ledger(self) -> LedgerTotal | None:
        """The ledger after the release, if one has booked it."""
        return self.assertions.ledger

    @property
    def title(self) -> str:
        """The title, or that none is stated."""
        return self.about.title or NOT_STATED

    @property
    def statement(self) -> list[str]:
        """The sentences of the statement."""
        return [sentence.text for sentence in self.certificate.guarantee.statement]

    @property
    def is_differentially_private(self) -> bool:
        """Whether the certificate states an epsilon and a delta."""
        return self.certificate.guarantee.epsilon is not None

    @cached_property
    def certificate_sha256(self) -> str:
        """The SHA-256 of the file of the certificate."""
        return hashlib.sha256(self.certificate.to_canonical_json()).hexdigest()

    def locate(self, path: str) -> str:
        """Return the path of a file of the release as seen from the metadata."""
        return f"{self.to_data}{path}"

    def list_other_files(self) -> Iterator[tuple[str, str, str]]:
        """Yield the files beside the data: path, hash and what each contains."""
        yield FILE, self.certificate_sha256, "the certificate: guarantee, parameters, hashes"
        for path, digest in self.hierarchies.items():
            yield path, digest, "the hierarchy of a column"
        for table in self.certificate.synthetic.measured if self.certificate.synthetic else ():
            yield table.file, table.sha256, "a measured table: noisy counts with their errors"
        for path, content, description in make_share_files(self.certificate):
            yield path, hashlib.sha256(content).hexdigest(), description
        if self.certificate.tabulation is not None:
            digest = self.certificate.tabulation.measured
            yield MEASURED_FILE, digest, "the measured numbers, with noise"
            for export in self.certificate.tabulation.exports:
                yield export.file, export.sha256, "the same numbers in another form"


def describe_release(
    folder: Path, certificate: Certificate, assertions: Assertions, *, to_data: str = ""
) -> ReleaseDescription:
    """Collect what metadata say of the release in a folder, whose files are as certified."""
    files = tuple(_describe_file(folder, certificate, table) for table in certificate.tables)
    hierarchies = {
        column.file: column.sha256 or ""
        for table in certificate.tables
        for _, column in sorted(table.scheme.items())
        if column.file is not None
    }
    return ReleaseDescription(certificate, assertions, files, hierarchies, to_data)


def _describe_file(folder: Path, certificate: Certificate, table: Slice) -> DescribedFile:
    release = table.release
    path = folder / release.file
    names = [
        unescape_formula(name) if release.formulas else name for name in open_released(path).columns
    ]
    return DescribedFile(
        release.file,
        release.sha256,
        _MEDIA_TYPES[path.suffix],
        release.rows,
        release.classes,
        tuple(_describe_column(folder, certificate, table, name) for name in names),
    )


def _describe_column(
    folder: Path, certificate: Certificate, table: Slice, name: str
) -> DescribedColumn:
    """Describe one column, under the name that the file gives it."""
    title = escape_formula(name) if table.release.formulas else name
    grid, scheme = certificate.noisy.get(name), table.scheme.get(name)
    part = certificate.synthetic
    if part is not None and name in part.keys:
        return DescribedColumn(
            title, "made-up numbers, in the order of the rows", "integer", "made up"
        )
    if part is not None and (key := (part.references or {}).get(name)) is not None:
        content = f"made-up references to the keys '{key.column}' of another release"
        return DescribedColumn(title, content, "integer", "made up")
    if certificate.tabulation is not None:
        return _describe_cells(title, name, scheme)
    if scheme is not None:
        return _describe_scheme(folder, certificate, table, name, scheme)
    if grid is not None:
        kind: ColumnType = "date" if grid.kind == "date" else "number"
        unit = " days" if grid.kind == "date" else ""
        bounds = f", from {grid.bounds[0]} to {grid.bounds[1]}" if grid.bounds else ""
        content = f"the original value with noise, in steps of {grid.step}{unit}{bounds}"
        return DescribedColumn(title, content, kind, "noise")
    if response := (certificate.randomized or {}).get(name):
        content = (
            f"a category by randomized response: the row's own with probability {response.keep}, "
            f"each other one with probability {response.other}"
        )
        return DescribedColumn(title, content, "text", "noise", tuple(response.values))
    if name == HOUSEHOLD_KEY and certificate.links is not None:
        content = "the key that links a household and its people: a number in random order"
        return DescribedColumn(title, content, "integer", "made up")
    if name == COUNT and table.release.form == "counted":
        content = "the number of rows of the group"
        return DescribedColumn(title, content, "integer", "count")
    if number := certificate.aggregates.get(name):
        content = f"the {number} of the values of its class, the same in all its rows"
        return DescribedColumn(title, content, "number", "class")
    return DescribedColumn(title, "the original value", "any", "unchanged")


def _describe_cells(title: str, name: str, scheme: SchemeColumn | None) -> DescribedColumn:
    """Describe a column of a table of counts: labels, a level, a code, or a figure."""
    if scheme is not None:
        content = "labels of all published levels of its hierarchy, and of the total"
        return DescribedColumn(
            title, content, "text", "generalized", (), True, scheme.file or "", ""
        )
    figures = {
        "estimate": "the unbiased estimate", "sd": "the standard deviation of the estimate",
        "low": "the lower end of the 95 % interval", "high": "the upper end of the 95 % interval",
    }  # fmt: skip
    if name in figures:
        return DescribedColumn(title, figures[name], "number", "count")
    if name == COUNT:
        return DescribedColumn(title, "the whole count of the cell", "integer", "count")
    what = "level of the label" if name.endswith("_level") else "number of the group in its level"
    return DescribedColumn(title, f"the {what}", "integer", "generalized")


def _describe_scheme(
    folder: Path, certificate: Certificate, table: Slice, name: str, scheme: SchemeColumn
) -> DescribedColumn:
    """Describe a column that has a hierarchy."""
    level, part = scheme.level, certificate.synthetic
    listed = "labels of several levels"
    if level is not None and level < len(scheme.shows):
        listed = scheme.shows[level]
    points = part.points.get(name) if part is not None else None
    if points is not None and points.drawn:
        listed = "values drawn within the labels of its hierarchy"
    labels, more = _list_labels(folder, scheme)
    labels = () if points is not None and points.drawn else labels
    kind = _find_type(certificate, table, name, labels)
    if table.release.formulas:
        labels = tuple(map(escape_formula, labels))
    return DescribedColumn(
        escape_formula(name) if table.release.formulas else name,
        listed,
        kind,
        "synthetic" if part is not None else "generalized",
        labels,
        more or not labels,
        scheme.file or "",
        "" if scheme.rule is None else json.dumps(scheme.rule, sort_keys=True),
    )


def _list_labels(folder: Path, scheme: SchemeColumn) -> tuple[tuple[str, ...], bool]:
    """Return the labels that a column may show, and whether there may be others."""
    if scheme.file is None:
        return (), True
    rows = parse_rows(read_text(folder / scheme.file, ours=True), scheme.file, ";", ours=True)
    if scheme.level is not None:
        listed = (row[min(scheme.level, len(row) - 1)] for row in rows)
    elif scheme.ordered:
        return (), True  # any interval may occur
    else:
        listed = (label for row in rows for label in row)
    labels = dict.fromkeys(listed)
    labels |= dict.fromkeys([scheme.other] if scheme.other is not None else [ROOT])
    return (tuple(labels), False) if len(labels) <= _MOST_LABELS else ((), True)


def _find_type(
    certificate: Certificate, table: Slice, name: str, labels: tuple[str, ...]
) -> ColumnType:
    """Return the type of a column in the released file, as far as the certificate tells."""
    part, scheme = certificate.synthetic, table.scheme[name]
    if part is not None:
        is_respelled = part.written is not None and name in part.written
        return "text" if is_respelled else part.types[name]
    if scheme.labels != "numbers" or scheme.level is None:
        return "text"
    is_whole = not any("." in label for label in labels if parse_number_label(label) is not None)
    return "integer" if labels and is_whole else "number"
