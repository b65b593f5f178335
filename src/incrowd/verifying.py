"""Check a release from its folder alone: hash, values, crowds, guarantee, signature."""

from __future__ import annotations

import re
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import numpy as np
from pydantic import ValidationError

from incrowd.anonymize.frequency import Counts
from incrowd.builders import read_rows
from incrowd.certificate import FILE, Certificate, SchemeColumn, sha256_of
from incrowd.engine import Coder, Table
from incrowd.engine.source import open_table
from incrowd.errors import IncrowdError
from incrowd.hierarchy import ROOT, from_rows
from incrowd.release import COUNT
from incrowd.spec import Hierarchies
from incrowd.values import canonical

_LARGEST = 64 << 20


def verify(folder: Path | str) -> list[str]:
    """Everything that is wrong with a release; an empty list says that it holds.

    Nothing but the folder is needed. A certificate can be checked, but only a signature by a
    key that the reader trusts tells who wrote it.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise IncrowdError(f"'{folder}' is no folder. Name the folder of a release.")
    try:
        certificate = read_certificate(folder)
    except IncrowdError as error:
        return [str(error)]
    found = [*certificate.problems(), *_strangers(folder, certificate)]
    intact = not found
    for path, digest in _files(certificate):
        if not _is_file(folder / path):
            found.append(f"The file '{path}' is missing.")
        elif sha256_of(folder / path) != digest:
            found.append(f"The file '{path}' was changed: its hash does not fit.")
        else:
            continue
        intact = False
    if not intact:  # what was changed is not worth reading, and may do harm
        return found
    try:
        return _data(folder, certificate)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001 - whatever a made-up file can cause
        reason = (str(error).splitlines() or [repr(error)])[0]
        return [f"The data cannot be checked: {reason}"]


def read_certificate(folder: Path) -> Certificate:
    """The certificate of a release; raises if there is none or it is not well-formed."""
    path = folder / FILE
    if not _is_file(path):
        raise IncrowdError(f"There is no certificate '{FILE}' in '{folder}'.")
    if path.stat().st_size > _LARGEST:
        raise IncrowdError("The certificate is too large to be one.")
    text = path.read_bytes()
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
    """What does not belong in a release: links, odd names, files that nothing covers."""
    found = []
    for name, column in certificate.scheme.items():
        if column.file not in (None, f"scheme/{quote(name, safe=' ')}.csv"):
            return [f"The scheme of '{name}' is in the wrong place."]
    known = {FILE, "scheme", "curator", *(path for path, _ in _files(certificate))}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        private = name.startswith("curator/") and not path.is_symlink()
        regular = path.is_dir() if name in ("scheme", "curator") else _is_file(path)
        if not private and (name not in known or path.is_symlink() or not regular):
            found.append(f"'{name}' is not covered by the certificate.")
    return found


def _is_file(path: Path) -> bool:
    """Whether there is a file, not a link, a folder or a pipe."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


def _data(folder: Path, certificate: Certificate) -> list[str]:
    """Every value at its level, every class a crowd, every number as certified."""
    release, found = certificate.release, []
    table = open_table(folder / release.file, empty=True, delimiter=",")
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
    counted = (sum(sizes.tolist()), len(sizes), int(sizes.min()) if len(sizes) else 0)
    if counted != (release.rows, release.classes, release.smallest_class):
        certified = f"{release.rows}, {release.classes} and {release.smallest_class}"
        found.append(
            f"The data have {counted[0]} rows in {counted[1]} classes, the smallest of "
            f"{counted[2]}; the certificate says {certified}."
        )
    return found


def _sizes(table: Table, names: list[str], *, weighted: bool) -> Counts:
    """How many rows each class has."""
    places = {name: {value: at for at, value in enumerate(table.values(name))} for name in names}

    def coder(name: str) -> Coder:
        return lambda values: np.array([places[name].get(value, 0) for value in values], np.int32)

    if not table.rows():
        return np.zeros(0, dtype=np.int64)
    classes = table.count(names, {name: coder(name) for name in names})
    if not weighted:
        return classes.counts
    if (classes.counts > 1).any():
        raise IncrowdError("a class stands in several rows of a weighted release")
    sizes = []
    for tally in table.tallies([*names, COUNT]):
        texts = [str(value) for value in tally.values[-1]]
        if not all(re.fullmatch(r"[1-9]\d{0,14}", text) for text in texts):
            raise IncrowdError("a count is no whole number from 1")
        sizes += [int(texts[code]) for code in tally.codes[:, -1].tolist()]
    return np.array(sizes, dtype=np.int64)


def _allowed(folder: Path, column: SchemeColumn) -> Callable[[object], bool]:
    """Which values a column may show at its level."""
    if column.file is not None:
        hierarchy = from_rows(read_rows(folder / column.file, ";"), other=column.other)
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
        return lambda value: canonical(value) == value
    return lambda value: value == ROOT
