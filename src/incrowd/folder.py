"""Fill a folder as a whole: it appears finished or not at all, even if the power fails."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from incrowd.errors import IncrowdError


@contextmanager
def fill(folder: Path, *, replacing: Sequence[str] = ()) -> Iterator[Path]:
    """Yield a draft folder; on success it takes the place of ``folder``.

    The draft lies beside the folder, is brought to the disk, and is then renamed, in one
    step. A folder that holds nothing but names of ``replacing`` is an earlier result and
    makes room. Anything else in the way is refused before any work is done.
    """
    folder = folder.absolute()
    _refuse_foreign(folder, replacing)
    prefix = f".{folder.name}.draft-"
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        for stale in folder.parent.glob(f"{prefix}*"):  # left by a run that was killed
            shutil.rmtree(stale, ignore_errors=True)
        draft = Path(tempfile.mkdtemp(prefix=prefix, dir=folder.parent))
    except OSError as error:
        raise IncrowdError(f"Cannot write to '{folder}': {error.strerror}.") from error
    try:
        yield draft
        draft.chmod(0o777 & ~_umask())
        _sync(draft)
        if folder.exists():
            shutil.rmtree(folder)
        draft.rename(folder)
        _sync_entry(folder.parent)
    except OSError as error:
        raise IncrowdError(f"Cannot write '{folder}': {error.strerror}.") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _refuse_foreign(folder: Path, replacing: Sequence[str]) -> None:
    if folder.is_dir():
        foreign = sorted(entry.name for entry in folder.iterdir() if entry.name not in replacing)
        if foreign:
            raise IncrowdError(
                f"The folder '{folder}' exists and holds '{foreign[0]}'. Name another folder; "
                "nothing was written."
            )
    elif folder.exists():
        raise IncrowdError(f"'{folder}' is a file. Name a folder; nothing was written.")


def _sync(folder: Path) -> None:
    """Bring every file and folder below to the disk."""
    for path, _, names in os.walk(folder):
        for name in names:
            _sync_entry(Path(path) / name)
        _sync_entry(Path(path))


def _sync_entry(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
