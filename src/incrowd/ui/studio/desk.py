"""What lies on the desk of one browser: tables that are on their way to a release.

A work is a table and its spec. The spec is a file in the folder of the project from the first
moment on, saved after each change, whole or not at all; earlier texts are kept, to go back to. What
a browser has uploaded lies in a private folder that goes when the studio ends; the spec names it by
its own name, as if it lay beside it. What a studio that was killed has left, the next one removes.
"""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from incrowd.engine.address import is_address, take_apart
from incrowd.engine.source import open_for, open_table
from incrowd.engine.table import Table
from incrowd.errors import IncrowdError
from incrowd.spec.file import Place, SpecFile, load, parse
from incrowd.tasks.confirm import save
from incrowd.tasks.draft.draft import Draft, draft, shown_source

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # there are no such locks on Windows
    fcntl = None

TABLES = (
    ".parquet", ".csv", ".tsv", ".txt", ".csv.gz", ".xlsx", ".xls", ".ods", ".arrow", ".feather",
    ".sav", ".dta", ".sas7bdat",
)  # fmt: skip
SPECS = (".yaml", ".yml")
_STEPS_BACK = 100
_PREFIX, _MARK = "incrowd-studio-", "in-use"


@dataclass(eq=False)
class Work:
    """A table on its way to a release, and the spec that says how.

    ``place`` is where the table is read from: a path, or an address with its password.
    """

    name: str
    place: str
    table: Table
    file: SpecFile
    guessed: Draft
    past: list[str] = field(default_factory=list)
    kept: dict[Any, Any] = field(default_factory=dict)  # what rooms have found out
    lock: threading.RLock = field(default_factory=threading.RLock)

    @property
    def path(self) -> Path:
        """Where its spec lies."""
        assert self.file.path is not None
        return self.file.path

    @property
    def title(self) -> str:
        """What it is called: by its table."""
        return title_of(self.place)

    def change(
        self, changes: Mapping[Place, Any], *, check: Callable[[SpecFile], object] | None = None
    ) -> None:
        """Change entries of the spec, and save it; refuses what is no spec, and changes nothing.

        ``check`` may refuse more, by what it raises.
        """
        with self.lock:
            file = self.file.changed_at(changes)
            if check is not None:
                check(file)
            self._take(file)

    def rewrite(self, text: str) -> None:
        """Take another text as the spec, and save it."""
        with self.lock:
            self._take(parse(text, path=self.file.path))

    def go_back(self) -> None:
        """Undo the last change."""
        with self.lock:
            if self.past:
                self.file = parse(self.past.pop(), path=self.file.path)
                save(self.file)

    def _take(self, file: SpecFile) -> None:
        before = self.file.text()
        if file.text() == before:
            return
        save(file)
        self.past = [*self.past, before][-_STEPS_BACK:]
        self.file = file

    def read(self) -> Table:
        """The table as the spec says that it is written."""
        return open_for(self.file, self.table)


class Desk:
    """The works of one browser. No other sees them."""

    def __init__(self, home: Path, *, anywhere: bool = False) -> None:
        self.home, self._anywhere = home.resolve(), anywhere
        self._private = Path(tempfile.mkdtemp(prefix=_PREFIX))
        self._held = _hold(self._private)
        self._works: dict[str, Work] = {}
        self.begun = False  # whether the browser has seen its first page
        self.kept: dict[Any, Any] = {}  # what rooms keep that belong to no work
        self._lock = threading.Lock()

    def works(self) -> list[Work]:
        """All works, the latest first."""
        return list(self._works.values())[::-1]

    def work(self, name: str) -> Work | None:
        """A work by its name."""
        return self._works.get(name)

    def inside(self, text: str) -> Path:
        """A path that is given as text, below the folder of the project; refuses any other."""
        if "\0" in text:
            raise IncrowdError(f"'{text}' is no name of a file.")
        path = (self.home / text).resolve()
        if not self._anywhere and not path.is_relative_to(self.home):
            raise IncrowdError(
                f"'{text}' does not lie below '{self.home}', where the studio was started. Start "
                "it there, or with --anywhere."
            )
        return path

    def shelf(self) -> Iterator[tuple[Path, str]]:
        """The tables and specs of the project's folder, each with its kind."""
        for path in sorted(self.home.iterdir(), key=lambda one: one.name.lower()):
            if path.is_file() and not path.name.startswith("."):
                if path.name.lower().endswith(TABLES):
                    yield path, "table"
                elif path.suffix.lower() in SPECS and _is_spec(path):
                    yield path, "spec"

    def landing(self, name: str) -> Path:
        """Where an upload is to be written: under its own name, in a private folder."""
        plain = Path(name.replace("\\", "/")).name.strip()
        if not plain.isprintable() or not plain or plain.startswith("."):
            raise IncrowdError(f"'{name}' is no name of a file.")
        return self.room() / plain

    def room(self) -> Path:
        """A new private folder."""
        return Path(tempfile.mkdtemp(dir=self._private))

    def open(self, place: str, *, sheet: str | None = None, header: int | None = None) -> Work:
        """Begin with a table: a path below the folder, a landed upload, or an address."""
        if not is_address(place) and not Path(place).is_relative_to(self._private):
            place = str(self.inside(place))
        table = open_table(place, sheet=sheet, header=header)
        uploaded = not is_address(place) and Path(place).is_relative_to(self._private)
        shown = Path(place).name if uploaded else shown_source(place, self.home)
        guessed = draft(table, name=shown)
        path = self._free(f"{title_of(place)}.yaml")
        file = parse(guessed.yaml(), path=path)
        save(file)
        return self._put(Work(secrets.token_hex(8), place, table, file, guessed))

    def resume(self, spec: Path, place: str | None = None) -> Work:
        """Go on with a spec and the table that it names, or one that was uploaded for it."""
        file = load(spec)
        for column in file.spec.columns.values():
            if column.hierarchy is not None and column.hierarchy.csv is not None:
                self.inside(str(file.folder / column.hierarchy.csv.file))
        if place is None:
            if file.spec.table is None:
                raise IncrowdError(f"'{spec.name}' names no table. Open the table instead.")
            named = file.spec.table
            place = named if is_address(named) else str(self.inside(str(file.folder / named)))
        table = open_table(place, sheet=file.spec.sheet, header=file.spec.header)
        guessed = draft(table, name=file.spec.table)
        return self._put(Work(secrets.token_hex(8), place, table, file, guessed))

    def _put(self, work: Work) -> Work:
        with self._lock:
            self._works[work.name] = work
        return work

    def _free(self, name: str) -> Path:
        """A path for a new spec in the folder of the project."""
        path, number = self.home / name, 1
        while path.exists():
            number += 1
            path = self.home / f"{Path(name).stem}-{number}.yaml"
        return path

    def clear(self) -> None:
        """Remove everything that was uploaded."""
        shutil.rmtree(self._private, ignore_errors=True)
        if self._held is not None:
            os.close(self._held)
            self._held = None


def _hold(folder: Path) -> int | None:
    """Mark a folder as in use while this process lives: by a lock, which goes with it."""
    part = folder / f"{_MARK}.part"
    held = os.open(part, os.O_CREAT | os.O_WRONLY, 0o600)
    if fcntl is not None:
        fcntl.flock(held, fcntl.LOCK_EX)
    part.rename(folder / _MARK)  # so that nobody ever finds it without its lock
    return held


def remove_left() -> None:
    """Remove what was uploaded to studios that were killed, or lost with their machine."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        try:
            if fcntl is None or folder.is_symlink() or folder.stat().st_uid != os.getuid():
                continue
            with (folder / _MARK).open() as mark:
                fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:  # one that is in use, or being made, or another's
            continue


def title_of(place: str) -> str:
    """What a table is called: its file without the ending, or the table of a database."""
    if is_address(place):
        return take_apart(place).table.replace('"', "").replace("/", "-")
    name = Path(place).name
    ending = max((one for one in TABLES if name.lower().endswith(one)), key=len, default="")
    return name[: len(name) - len(ending)] or name


def _is_spec(path: Path) -> bool:
    """Whether a YAML file looks like a spec."""
    try:
        with path.open(encoding="utf-8") as text:
            return any(line.startswith("columns:") for line in text)
    except (OSError, UnicodeDecodeError):
        return False
