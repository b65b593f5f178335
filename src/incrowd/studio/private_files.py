"""Files that only the user who runs the studio may read: modes 0600 and 0700."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import BinaryIO

FILE_MODE, FOLDER_MODE = 0o600, 0o700


def create_private(path: Path) -> BinaryIO:
    """Open a new private file for writing; an existing file or link is never opened."""
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0)
    return os.fdopen(os.open(path, flags, FILE_MODE), "wb")


def write_private(path: Path, text: str, *, new: bool = False) -> None:
    """Write a text file; one that exists is replaced whole or not at all.

    A new file gets mode 0600; a file that is replaced keeps its mode.

    Args:
        path: The file.
        text: Its content.
        new: Raise :class:`FileExistsError` where the file exists, and leave it alone.

    """
    if new:
        with create_private(path) as file:
            file.write(text.encode("utf-8"))
        return
    part = path.with_name(f".{path.name}.{secrets.token_hex(6)}.part")
    try:
        with create_private(part) as file:
            file.write(text.encode("utf-8"))
        if path.exists():
            part.chmod(path.stat().st_mode & 0o777)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def make_private_folders(folder: Path, parents: Path) -> None:
    """Make the folder ``folder / parents`` with everything between them, private."""
    for part in parents.parts:
        folder = folder / part
        folder.mkdir(mode=FOLDER_MODE, exist_ok=True)
