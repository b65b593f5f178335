"""Releases as zip files: packed without anything else, unpacked without filling the disk."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import time
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from incrowd.errors import IncrowdError
from incrowd.release.certificate import FILE, Certificate
from incrowd.release.pages import make_pages
from incrowd.release.tables_part import MEASURED_FILE
from incrowd.release.verify import read_certificate
from incrowd.studio.private_files import create_private, make_private_folders

MOST_FILES = 10_000
SMALL_BYTES, MOST_TIMES = 256 << 20, 200  # what any file may hold, and how many times its own size
_BLOCK = 1 << 20


def pack_release(folder: Path, target: Path) -> None:
    """Write the files of a release into a zip file: those that its certificate names, no others.

    Each is the certified file itself: a link or a file with other content is refused, since it
    could be any file of the curator.
    """
    if folder.is_symlink() or not _is_regular(folder / FILE):
        raise IncrowdError(f"'{folder.name}' is not a release folder: it is or contains a link.")
    certificate = read_certificate(folder)
    with (
        create_private(target) as file,
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as packed,
    ):
        for name, digest in _list_files(folder, certificate):
            _pack_file(packed, folder, name, digest)


def _list_files(folder: Path, certificate: Certificate) -> Iterator[tuple[str, str]]:
    """Yield the name of each file of a release, and its digest."""
    yield FILE, hashlib.sha256((folder / FILE).read_bytes()).hexdigest()
    for name, text in make_pages(certificate).items():
        yield name, hashlib.sha256(text).hexdigest()
    for table in certificate.tables:
        yield table.release.file, table.release.sha256
        for column in table.scheme.values():
            if column.file is not None:
                yield column.file, column.sha256 or ""
    for measured in certificate.synthetic.measured if certificate.synthetic else ():
        yield measured.file, measured.sha256
    if certificate.tabulation is not None:
        yield MEASURED_FILE, certificate.tabulation.measured
        for export in certificate.tabulation.exports:
            yield export.file, export.sha256


def _pack_file(packed: zipfile.ZipFile, folder: Path, name: str, digest: str) -> None:
    seen = hashlib.sha256()
    with open_regular_file(folder, name) as source:
        day = time.localtime(os.fstat(source.fileno()).st_mtime)[:6]
        entry = zipfile.ZipInfo(f"{folder.name}/{name}", max(day, (1980, 1, 1, 0, 0, 0)))
        entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
        with packed.open(entry, "w", force_zip64=True) as target:
            while part := source.read(_BLOCK):
                seen.update(part)
                target.write(part)
    if seen.hexdigest() != digest:
        raise IncrowdError(
            f"The file '{name}' is not the one that was certified. Verify '{folder.name}'."
        )


def open_regular_file(folder: Path, name: str) -> BinaryIO:
    """Open a file below a folder; one that is a link, or is reached by one, is refused."""
    path = _resolve_below(folder, name)
    steps = [path, *path.parents][: len(path.relative_to(folder).parts)]
    no_link = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        if any(step.is_symlink() for step in steps):
            raise IncrowdError(f"'{name}' in '{folder.name}' is a link and is not published.")
        opened = os.open(path, os.O_RDONLY | no_link | getattr(os, "O_BINARY", 0))
    except OSError as error:
        raise IncrowdError(f"Cannot read '{name}' of '{folder.name}': {error.strerror}.") from error
    if not stat.S_ISREG(os.fstat(opened).st_mode):
        os.close(opened)
        raise IncrowdError(f"'{name}' in '{folder.name}' is not a file and is not published.")
    return os.fdopen(opened, "rb")


def _is_regular(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


def unpack_release(path: Path, folder: Path) -> None:
    """Unpack a zip file into a private folder; on any failure the folder is removed.

    What it says of its sizes is not relied on: bytes are counted as they are written.
    """
    try:
        with zipfile.ZipFile(path) as packed:
            entries = [entry for entry in packed.infolist() if not entry.is_dir()]
            size = sum(entry.file_size for entry in entries)
            left = max(SMALL_BYTES, MOST_TIMES * path.stat().st_size)
            if len(entries) > MOST_FILES or size > left:
                raise _make_size_error(path)
            if size > shutil.disk_usage(folder).free:
                raise IncrowdError(f"'{path.name}' is too large for the free disk space.")
            for first in entries:
                left -= _unpack_file(packed, first, folder, left, path)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, zlib.error) as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise IncrowdError(f"'{path.name}' is not a readable zip file: {error}.") from error
    except FileExistsError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise IncrowdError(f"'{path.name}' contains two files with the same name.") from error
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def refuse_large_archive(path: Path) -> None:
    """Refuse a zip file that would fill the disk; one that cannot be read is left to its reader.

    No entry unpacks to more than it states: :mod:`zipfile` stops there.
    """
    try:
        with zipfile.ZipFile(path) as packed:
            size = sum(entry.file_size for entry in packed.infolist())
    except (zipfile.BadZipFile, NotImplementedError, OSError):
        return
    if size > max(SMALL_BYTES, MOST_TIMES * path.stat().st_size):
        raise IncrowdError(
            f"'{path.name}' is too large when unpacked. Use `incrowd init --arx` if you trust it."
        )


def _unpack_file(
    packed: zipfile.ZipFile, entry: zipfile.ZipInfo, folder: Path, left: int, path: Path
) -> int:
    """Unpack one file of at most ``left`` bytes; return its size."""
    target, size = make_path_below(folder, entry.filename), 0
    with packed.open(entry) as source, create_private(target) as file:
        while part := source.read(_BLOCK):
            size += len(part)
            if size > left:
                raise _make_size_error(path)
            file.write(part)
    return size


def _make_size_error(path: Path) -> IncrowdError:
    return IncrowdError(
        f"'{path.name}' is too large when unpacked. If you trust it, unpack it into the folder of "
        "the project and verify that."
    )


def make_path_below(folder: Path, name: str) -> Path:
    """Return the place of a file below a private folder, and make the folders that lead there."""
    path = _resolve_below(folder, name)
    make_private_folders(folder, path.parent.relative_to(folder))
    return path


def _resolve_below(folder: Path, name: str) -> Path:
    """Return a path below a folder; refuse one that leads elsewhere."""
    parts = PurePosixPath(name.replace("\\", "/")).parts
    if not parts or any(part in ("..", "/", "") or "\0" in part for part in parts):
        raise IncrowdError(f"'{name}' is not a valid path in a folder.")
    return folder.joinpath(*parts)
