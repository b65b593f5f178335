"""What lies on the desk of one browser: tables that are on their way to a release.

The spec of a work is a file in the folder of the project from the first moment on. Browsers that
open the same spec share its work. What a browser has uploaded lies in a private folder that goes
when the studio ends; the spec names it by its own name, as if it lay beside it. What a studio that
was killed has left, the next one removes. No database is contacted before the user has agreed.
"""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from incrowd.curate.draft.draft import draft, shown_source
from incrowd.engine.address import is_address, take_apart
from incrowd.engine.source import open_table
from incrowd.errors import IncrowdError
from incrowd.spec.file import SpecFile, load, parse
from incrowd.studio.private import write_private
from incrowd.studio.work import TABLES, FileState, Work, title_of

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # there are no such locks on Windows
    fcntl = None

SPECS = (".yaml", ".yml")
_PREFIX, _MARK = "incrowd-studio-", "in-use"


class UnconfirmedConnectionError(IncrowdError):
    """A table lies in a database: the user has to agree before anything is contacted."""

    def __init__(self, address: str) -> None:
        super().__init__("The table lies in a database. Confirm the connection first.")
        self.address = address


class Works:
    """All works of a studio: one for each spec file, whichever browsers have opened it."""

    def __init__(self) -> None:
        self._by_name: dict[str, Work] = {}
        self._names: dict[Path, str] = {}
        self._lock = threading.Lock()

    def find(self, name: str) -> Work | None:
        """Return a work by its name."""
        return self._by_name.get(name)

    def find_spec(self, path: Path) -> Work | None:
        """Return the work of a spec file."""
        return self._by_name.get(self._names.get(path.resolve(), ""))

    def list_works(self) -> list[Work]:
        """Return all works."""
        return list(self._by_name.values())

    def add(self, work: Work, replaced: Work | None = None) -> Work:
        """Add a work; return the one that its spec file has already, unless it is replaced."""
        with self._lock:
            known = self.find_spec(work.path)
            if known is not None and known is not replaced:
                return known
            if replaced is not None:
                work.name = replaced.name  # pages that show the old one go on with the new one
            self._by_name[work.name] = work
            self._names[work.path.resolve()] = work.name
            return work


class Desk:
    """What one browser has opened. No other sees it, unless it opens the same spec."""

    def __init__(self, home: Path, *, anywhere: bool = False, works: Works | None = None) -> None:
        self.home, self._anywhere = home.resolve(), anywhere
        self._private = Path(tempfile.mkdtemp(prefix=_PREFIX))
        self._held = _hold(self._private)
        self._works = works if works is not None else Works()
        self._opened: dict[str, None] = {}  # names of works, in their order
        self.begun = False  # whether the browser has seen its first page
        self.kept: dict[Any, Any] = {}  # what rooms keep that belong to no work
        self._lock = threading.Lock()

    def works(self) -> list[Work]:
        """All works, the latest first."""
        found = (self._works.find(name) for name in reversed(self._opened))
        return [work for work in found if work is not None]

    def work(self, name: str) -> Work | None:
        """A work that this browser has opened, by its name."""
        return self._works.find(name) if name in self._opened else None

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

    def open(
        self, place: str, *, sheet: str | None = None, header: int | None = None,
        connect: bool = False,
    ) -> Work:  # fmt: skip
        """Begin with a table: a path below the folder, a landed upload, or an address.

        ``connect`` says that the user has agreed to contact the database of an address.
        """
        if not is_address(place) and not Path(place).is_relative_to(self._private):
            place = str(self.inside(place))
        _require_consent(place, connect=connect)
        table = open_table(place, sheet=sheet, header=header)
        uploaded = not is_address(place) and Path(place).is_relative_to(self._private)
        shown = Path(place).name if uploaded else shown_source(place, self.home)
        guessed = draft(table, name=shown)
        file = self._save_new(f"{title_of(place)}.yaml", guessed.yaml())
        assert file.path is not None
        state = FileState.read(file.path)
        made = Work(secrets.token_hex(8), place, table, file, guessed, state, self._allow)
        return self._put(made)

    def resume(self, spec: Path, *, connect: bool = False) -> Work:
        """Go on with a spec and the table that it names; a spec that is open is shared."""
        known = self._works.find_spec(spec)
        if known is not None:
            known.refresh()
            if not known.conflict:
                return self._put(known)
        state = FileState.read(spec)
        file = load(spec)
        self._allow(file)
        if file.spec.table is None:
            raise IncrowdError(f"'{spec.name}' names no table. Open the table instead.")
        named = file.spec.table
        place = named if is_address(named) else str(self.inside(str(file.folder / named)))
        _require_consent(place, connect=connect)
        table = open_table(place, sheet=file.spec.sheet, header=file.spec.header)
        guessed = draft(table, name=file.spec.table)
        made = Work(secrets.token_hex(8), place, table, file, guessed, state, self._allow)
        return self._put(made, replaced=known)

    def _allow(self, file: SpecFile) -> None:
        """Refuse a spec with a hierarchy or a ledger that does not lie below the folder."""
        if file.spec.ledger is not None:
            self.inside(str(file.folder / file.spec.ledger))
        for column in file.spec.columns.values():
            if column.hierarchy is not None and column.hierarchy.csv is not None:
                self.inside(str(file.folder / column.hierarchy.csv.file))

    def _put(self, work: Work, replaced: Work | None = None) -> Work:
        with self._lock:
            work = self._works.add(work, replaced)
            self._opened.pop(work.name, None)
            self._opened[work.name] = None
        return work

    def _save_new(self, name: str, text: str) -> SpecFile:
        """Write a new spec into the folder of the project, under a name that is free."""
        path, number = self.home / name, 1
        while True:
            file = parse(text, path=path)
            try:
                write_private(path, file.text(), new=True)
            except FileExistsError:
                number += 1
                path = self.home / f"{Path(name).stem}-{number}.yaml"
            else:
                return file

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


def _require_consent(place: str, *, connect: bool) -> None:
    """Ask before a database is contacted; an address that cannot be used is refused elsewhere."""
    if connect or not is_address(place):
        return
    known = take_apart(place)
    if known.table and not known.doubtful:
        raise UnconfirmedConnectionError(place)


def _is_spec(path: Path) -> bool:
    """Whether a YAML file looks like a spec."""
    try:
        with path.open(encoding="utf-8") as text:
            return any(line.startswith("columns:") for line in text)
    except (OSError, UnicodeDecodeError):
        return False
