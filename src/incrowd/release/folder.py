"""Fill a folder as a whole: it appears finished or not at all, even if the power fails."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

from incrowd.errors import IncrowdError


def locate_curator_folder(folder: Path) -> Path:
    """Return where the private part of a release lies, unless somebody chose another place."""
    return folder.resolve().with_name(f"{folder.resolve().name}.curator")


@contextmanager
def fill_folders(public: Path, private: Path) -> Iterator[tuple[Path, Path]]:
    """Yield two draft folders; on success the private one appears, then the public one.

    What is published is never there without its private part. Where the public one cannot
    appear, the private one goes again.
    """
    public, private = _resolve_folder(public), _resolve_folder(private)
    if private.is_relative_to(public) or public.is_relative_to(private):
        raise IncrowdError(
            f"Folder '{private}': it is private and must not lie inside '{public}', nor contain "
            "it. Name another folder."
        )
    appeared = False
    try:
        with fill_folder(public) as draft:
            with fill_folder(private, mode=0o700) as hidden:
                yield draft, hidden
            appeared = True
    except BaseException:
        if appeared and not public.exists():
            shutil.rmtree(private, ignore_errors=True)
        raise


@contextmanager
def fill_folder(
    folder: Path, *, replacing: Sequence[str] = (), mode: int = 0o755
) -> Iterator[Path]:
    """Yield a draft folder; on success it takes the place of ``folder``.

    The draft lies beside the folder, is brought to the disk, and is then renamed, in one
    step. A folder that holds nothing but names of ``replacing`` is an earlier result and
    makes room: it is moved aside, and deleted once the draft is in its place. If anything fails
    before, it is moved back; after a crash, :func:`recover_folder` does so. Anything else in the
    way is refused before any work is done.
    """
    folder = _resolve_folder(folder)
    recover_folder(folder)
    _refuse_foreign(folder, replacing)
    prefix = f".{folder.name}.draft-"
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        _remove_stale(folder.parent, prefix)
        draft = Path(tempfile.mkdtemp(prefix=f"{prefix}{os.getpid()}-", dir=folder.parent))
    except OSError as error:
        raise IncrowdError(f"Cannot write to '{folder}': {error.strerror}.") from error
    try:
        yield draft
        draft.chmod(mode)
        _sync_folder(draft)
        with _moved_aside(folder, replacing):
            draft.rename(folder)  # fails if a folder with something in it has appeared meanwhile
            _sync_entry(folder.parent)
    except OSError as error:
        raise IncrowdError(f"Cannot write '{folder}': {error.strerror}.") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)


@contextmanager
def _moved_aside(folder: Path, replacing: Sequence[str]) -> Iterator[None]:
    """Make room for what replaces a folder; give the room back where that fails."""
    if not replacing or not folder.exists():
        yield
        return
    _refuse_foreign(folder, replacing)
    home = Path(tempfile.mkdtemp(prefix=f"{_name_aside(folder)}{os.getpid()}-", dir=folder.parent))
    try:
        folder.rename(home / folder.name)
        yield
    except BaseException:
        _move_back(home, folder)
        raise
    shutil.rmtree(home, ignore_errors=True)


def recover_folder(folder: Path) -> None:
    """Bring back a folder that a killed process had moved aside and not replaced yet."""
    if not folder.parent.is_dir():
        return
    prefix = _name_aside(folder)
    for home in sorted(folder.parent.iterdir()):
        process = home.name.removeprefix(prefix).split("-")[0]
        if home.name.startswith(prefix) and process.isdigit() and _is_process_gone(process):
            _move_back(home, folder)


def _name_aside(folder: Path) -> str:
    return f".{folder.name}.earlier-"


def _move_back(home: Path, folder: Path) -> None:
    """Move a folder back to its place; where that is taken, it stays aside: nothing is lost."""
    earlier = home / folder.name
    if earlier.exists() and not folder.exists():
        earlier.rename(folder)
        _sync_entry(folder.parent)
    with suppress(OSError):  # it is not empty
        home.rmdir()


def _resolve_folder(folder: Path) -> Path:
    """Return where a folder really lies, whatever links lead there; refuse a link itself."""
    if folder.is_symlink():
        raise IncrowdError(f"'{folder}' is a link, and nothing was written. Name a folder.")
    return folder.resolve()


def _refuse_foreign(folder: Path, replacing: Sequence[str]) -> None:
    if folder.is_dir():
        foreign = sorted(entry.name for entry in folder.iterdir() if entry.name not in replacing)
        if foreign:
            raise IncrowdError(
                f"Folder '{folder}': it exists and holds '{foreign[0]}', so nothing was written. "
                "Name another folder."
            )
    elif folder.exists():
        raise IncrowdError(f"'{folder}' is a file, and nothing was written. Name a folder.")


def _sync_folder(folder: Path) -> None:
    """Bring every file and folder below to the disk; asked for together, disks do it together."""
    entries = [Path(path, name) for path, _, names in os.walk(folder) for name in (*names, "")]
    with ThreadPoolExecutor(16) as workers:
        for _ in workers.map(_sync_entry, entries):
            pass  # whatever went wrong is raised here


def _sync_entry(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _remove_stale(parent: Path, prefix: str) -> None:
    """Remove drafts whose process is gone: it was killed."""
    for draft in parent.iterdir():
        if draft.name.startswith(prefix):
            process = draft.name.removeprefix(prefix).split("-")[0]
            if process.isdigit() and _is_process_gone(process):
                shutil.rmtree(draft, ignore_errors=True)


def _is_process_gone(process: str) -> bool:
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False
