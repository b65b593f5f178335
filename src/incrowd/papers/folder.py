"""Fill a folder as a whole: it appears finished or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from incrowd.errors import IncrowdError


@contextmanager
def fill(folder: Path, *, names: Sequence[str]) -> Iterator[Path]:
    """Yield a draft folder; on success it takes the place of ``folder``.

    A folder that already holds some of ``names`` and nothing else is an earlier result and
    is replaced. Anything else in the way is refused before any work is done.
    """
    folder = folder.absolute()
    _refuse_foreign(folder, names)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    except OSError as error:
        raise IncrowdError(f"Cannot write to '{folder}': {error.strerror}.") from error
    try:
        yield draft
        draft.chmod(0o777 & ~_umask())
        if folder.exists():
            shutil.rmtree(folder)
        draft.rename(folder)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise


def _refuse_foreign(folder: Path, names: Sequence[str]) -> None:
    if folder.is_dir():
        foreign = sorted(entry.name for entry in folder.iterdir() if entry.name not in names)
        if foreign:
            raise IncrowdError(
                f"The folder '{folder}' holds '{foreign[0]}', which is not from an earlier run. "
                "Name another folder; nothing was written."
            )
    elif folder.exists():
        raise IncrowdError(f"'{folder}' is a file. Name a folder; nothing was written.")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
