"""Check a release from its folder alone: hash, values, crowds, guarantee, signature."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from pydantic import ValidationError

from incrowd.anonymize.frequency import Counts
from incrowd.builders import read_rows
from incrowd.certificate import FILE, Certificate, SchemeColumn, sha256_of
from incrowd.engine import Table
from incrowd.engine.source import open_table
from incrowd.errors import IncrowdError
from incrowd.hierarchy import ROOT, from_rows
from incrowd.release import COUNT
from incrowd.spec import Hierarchies

_LARGEST = 64 << 20


def verify(folder: Path) -> list[str]:
    """Everything that is wrong with a release; an empty list says that it holds.

    Nothing but the folder is needed. A certificate can be checked, but only a signature by a
    key that the reader trusts tells who wrote it.
    """
    if not folder.is_dir():
        raise IncrowdError(f"'{folder}' is no folder. Name the folder of a release.")
    try:
        certificate = read_certificate(folder)
    except IncrowdError as error:
        return [str(error)]
    found = certificate.problems()
    found += _strangers(folder, certificate)
    for path, digest in _files(certificate):
        if not (folder / path).is_file():
            found.append(f"The file '{path}' is missing.")
        elif sha256_of(folder / path) != digest:
            found.append(f"The file '{path}' was changed: its hash does not fit.")
    try:
        found += _data(folder, certificate)
    except (IncrowdError, ValueError, TypeError, KeyError, OverflowError, re.error) as error:
        found.append(f"The data cannot be checked: {error}")
    return found


def read_certificate(folder: Path) -> Certificate:
    """The certificate of a release; raises if there is none or it is not well-formed."""
    path = folder / FILE
    try:
        if path.stat().st_size > _LARGEST:
            raise IncrowdError("The certificate is too large to be one.")
        text = path.read_bytes()
    except OSError as error:
        raise IncrowdError(f"There is no certificate: {error.strerror}.") from error
    try:
        certificate = Certificate.model_validate_json(text)
        canonical = certificate.canonical()
    except ValidationError as error:
        detail = error.errors()[0]
        where = ".".join(str(part) for part in detail["loc"])
        raise IncrowdError(f"The certificate is not valid: {where}: {detail['msg']}.") from error
    except (ValueError, RecursionError) as error:
        raise IncrowdError(f"The certificate is not valid: {error}.") from error
    if canonical != text:
        raise IncrowdError("The certificate is not written in its canonical form.")
    return certificate


def _files(certificate: Certificate) -> Iterator[tuple[str, str]]:
    yield certificate.release.file, certificate.release.sha256
    for column in certificate.scheme.values():
        if column.file is not None:
            yield column.file, column.sha256 or ""


def _strangers(folder: Path, certificate: Certificate) -> list[str]:
    known = {FILE, *(path for path, _ in _files(certificate))}
    found = []
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and name not in known and not name.startswith("curator/"):
            found.append(f"The file '{name}' is not covered by the certificate.")
    return found


def _data(folder: Path, certificate: Certificate) -> list[str]:
    """Every value at its level, every class a crowd, every number as certified."""
    release, found = certificate.release, []
    table = open_table(folder / release.file, empty=True)
    names = list(certificate.scheme)
    expected = [*names, COUNT] if release.form == "weighted" else names
    if sorted(table.columns) != sorted(expected):
        return [f"The data have the columns {', '.join(table.columns)}, not those of the scheme."]
    for name in names:
        allowed = _allowed(folder, certificate.scheme[name])
        strange = sorted(str(value) for value in table.values(name) if not allowed(value))
        if strange:
            level = certificate.scheme[name].level
            found.append(f"'{strange[0]}' in column '{name}' is no value of level {level}.")
    sizes = _sizes(table, names, weighted=release.form == "weighted")
    k = int(certificate.parameters.get("k", 0))
    small = int((sizes < k).sum())
    if small:
        found.append(
            f"{small} class(es) are smaller than k = {k}; the smallest has {sizes.min()} row(s)."
        )
    counted = (int(sizes.sum()), len(sizes), int(sizes.min()) if len(sizes) else 0)
    if counted != (release.rows, release.classes, release.smallest_class):
        certified = f"{release.rows}, {release.classes} and {release.smallest_class}"
        found.append(
            f"The data have {counted[0]} rows in {counted[1]} classes, the smallest of "
            f"{counted[2]}; the certificate says {certified}."
        )
    return found


def _sizes(table: Table, names: list[str], *, weighted: bool) -> Counts:
    """How many rows each class has."""
    if not weighted:
        parts = [tally.counts for tally in table.tallies(names)]
        return np.concatenate([np.zeros(0, dtype=np.int64), *parts])
    sizes = []
    for tally in table.tallies([*names, COUNT]):
        if (tally.counts > 1).any():
            raise IncrowdError("a class stands in several rows of a weighted release")
        sizes += [int(str(tally.values[-1][code])) for code in tally.codes[:, -1].tolist()]
    return np.array(sizes, dtype=np.int64)


def _allowed(folder: Path, column: SchemeColumn) -> Callable[[object], bool]:
    """Which values a column may show at its level."""
    if column.file is not None:
        if ".." in Path(column.file).parts or Path(column.file).is_absolute():
            raise IncrowdError("a scheme file lies outside the folder")
        hierarchy = from_rows(read_rows(folder / column.file), other=column.other)
        labels = set(hierarchy.labels[column.level])
        return lambda value: value in labels
    declared = Hierarchies.model_validate(column.rule)
    if declared.mask is not None:
        mask, hidden = declared.mask, column.level
        letters = f"[{re.escape(mask.alphabet)}]{{{mask.length - hidden}}}"
        stars = re.escape(ROOT * hidden)
        shown = re.compile(letters + stars if mask.hide == "right" else stars + letters)
        always = {ROOT * mask.length, column.other}
        if hidden < mask.length:
            always.add(None)
        return lambda value: (
            value in always or (isinstance(value, str) and shown.fullmatch(value) is not None)
        )
    if declared.flat is None:
        raise IncrowdError("a column has neither a listed hierarchy nor a known rule")
    if column.level == 0:
        return lambda value: value is None or isinstance(value, str)
    return lambda value: value == ROOT
