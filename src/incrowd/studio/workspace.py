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

from incrowd.curate.draft.draft import draft, draft_from_arx_project, format_source
from incrowd.engine.address import is_address, parse_address
from incrowd.engine.source import open_joined_table, open_table
from incrowd.errors import IncrowdError
from incrowd.spec.file import SpecFile, parse_spec, read_spec_file
from incrowd.studio.archive import refuse_large_archive
from incrowd.studio.open_spec import TABLES, FileState, OpenSpec, get_table_title
from incrowd.studio.private_files import FILE_MODE, FOLDER_MODE, write_private

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # there are no such locks on Windows
    fcntl = None

SPECS = (".yaml", ".yml")
PROJECTS = (".deid",)  # of ARX
_PREFIX, _MARK = "incrowd-studio-", "in-use"


class UnconfirmedConnectionError(IncrowdError):
    """A table lies in a database: the user has to agree before anything is contacted."""

    def __init__(self, address: str) -> None:
        super().__init__("The table is in a database. Confirm the connection first.")
        self.address = address


class OpenSpecs:
    """All open specs of a studio, each once, whichever browsers have opened it."""

    def __init__(self) -> None:
        self._by_name: dict[str, OpenSpec] = {}
        self._names: dict[Path, str] = {}
        self._lock = threading.Lock()

    def find_by_name(self, name: str) -> OpenSpec | None:
        """Return an open spec by its name."""
        return self._by_name.get(name)

    def find_by_path(self, path: Path) -> OpenSpec | None:
        """Return the open spec of a file."""
        return self._by_name.get(self._names.get(path.resolve(), ""))

    def list_specs(self) -> list[OpenSpec]:
        """Return all open specs."""
        return list(self._by_name.values())

    def add_spec(self, work: OpenSpec, replaced: OpenSpec | None = None) -> OpenSpec:
        """Add an open spec; return the one that its file has already, unless it is replaced."""
        with self._lock:
            existing = self.find_by_path(work.path)
            if existing is not None and existing is not replaced:
                return existing
            if replaced is not None:
                work.name = replaced.name  # pages that show the old one go on with the new one
            self._by_name[work.name] = work
            self._names[work.path.resolve()] = work.name
            return work


class Workspace:
    """What one browser has opened. No other sees it, unless it opens the same spec."""

    def __init__(
        self, home: Path, *, anywhere: bool = False, works: OpenSpecs | None = None
    ) -> None:
        self.home, self._anywhere = home.resolve(), anywhere
        self._private = Path(tempfile.mkdtemp(prefix=_PREFIX))
        self._held = _lock_folder(self._private)
        self._works = works if works is not None else OpenSpecs()
        self._opened: dict[str, None] = {}  # names of works, in their order
        self.begun = False  # whether the browser has seen its first page
        self.kept: dict[Any, Any] = {}  # what rooms keep that belong to no work
        self._lock = threading.Lock()

    def list_open_specs(self) -> list[OpenSpec]:
        """Return all open specs of this browser, the latest first."""
        open_specs = (self._works.find_by_name(name) for name in reversed(self._opened))
        return [work for work in open_specs if work is not None]

    def find_open_spec(self, name: str) -> OpenSpec | None:
        """Return a spec that this browser has opened, by its name."""
        return self._works.find_by_name(name) if name in self._opened else None

    def resolve_path(self, text: str) -> Path:
        """Return a path that is given as text; refuse one that is not below the folder."""
        if "\0" in text:
            raise IncrowdError(f"'{text}' is not a file name.")
        path = (self.home / text).resolve()
        if not self._anywhere and not path.is_relative_to(self.home):
            raise IncrowdError(
                f"'{text}' is outside '{self.home}', the folder of the studio. Start the studio "
                "there, or with --anywhere."
            )
        return path

    def list_project_files(self) -> Iterator[tuple[Path, str]]:
        """Yield tables, specs and projects of ARX in the folder, each with its kind."""
        for path in sorted(self.home.iterdir(), key=lambda entry: entry.name.lower()):
            if path.is_file() and not path.name.startswith("."):
                if path.name.lower().endswith(TABLES):
                    yield path, "table"
                elif path.suffix.lower() in SPECS and _is_spec(path):
                    yield path, "spec"
                elif path.suffix.lower() in PROJECTS:
                    yield path, "project"

    def make_upload_path(self, name: str) -> Path:
        """Return where an upload is written: under its own name, in a private folder."""
        plain = Path(name.replace("\\", "/")).name.strip()
        if not plain.isprintable() or not plain or plain.startswith("."):
            raise IncrowdError(f"'{name}' is not a file name.")
        return self.make_private_folder() / plain

    def make_private_folder(self) -> Path:
        """Make a new private folder."""
        return Path(tempfile.mkdtemp(dir=self._private))

    def start_from_table(
        self, place: str, *, sheet: str | None = None, header: int | None = None,
        connect: bool = False,
    ) -> OpenSpec:  # fmt: skip
        """Begin with a table: a path below the folder, an uploaded file, or an address.

        ``connect`` says that the user has agreed to contact the database of an address.
        """
        if not is_address(place) and not Path(place).is_relative_to(self._private):
            place = str(self.resolve_path(place))
        _require_consent(place, connect=connect)
        table = open_table(place, sheet=sheet, header=header)
        uploaded = not is_address(place) and Path(place).is_relative_to(self._private)
        table_name = Path(place).name if uploaded else format_source(place, self.home)
        guessed = draft(table, name=table_name)
        file = self._save_new_spec(f"{get_table_title(place)}.yaml", guessed.yaml())
        assert file.path is not None
        state = FileState.read(file.path)
        work = OpenSpec(
            secrets.token_hex(8), place, table, file, guessed, state, self._require_paths_inside
        )
        return self._remember_spec(work)

    def start_from_arx(self, project: Path) -> OpenSpec:
        """Begin with a project file of ARX: its table and hierarchies are unpacked beside the spec.

        What has no equal here is listed in a notice, and in comments at the end of the spec.
        """
        refuse_large_archive(project)
        room, target = self.make_private_folder(), self.home / f"{project.stem}.arx"
        try:
            guessed = draft_from_arx_project(project, beside=room)
            unpacked = room / target.name
            unpacked.chmod(FOLDER_MODE)
            for path in unpacked.iterdir():
                path.chmod(FILE_MODE)
            if target.exists():
                raise IncrowdError(
                    f"'{target.name}' exists in the folder already, and the project is unpacked "
                    "there. Rename or remove it."
                )
            shutil.move(unpacked, target)
        finally:
            shutil.rmtree(room, ignore_errors=True)
        try:
            file = self._save_new_spec(f"{project.stem}.yaml", guessed.yaml())
            assert file.path is not None
            work = self.open_spec(file.path)
        except BaseException:
            shutil.rmtree(target, ignore_errors=True)
            raise
        entries = "; ".join(guessed.unmatched)
        work.notice = f"'{project.name}' is now the spec '{file.path.name}'. " + (
            f"Without an equal here, and listed at the end of the spec: {entries}."
            if entries
            else "Everything in it has an equal here."
        )
        return work

    def open_spec(self, spec: Path, *, connect: bool = False) -> OpenSpec:
        """Open a spec and the table that it names; a spec that is open is shared."""
        existing = self._works.find_by_path(spec)
        if existing is not None:
            existing.refresh()
            if not existing.conflict:
                return self._remember_spec(existing)
        state = FileState.read(spec)
        file = read_spec_file(spec)
        self._require_paths_inside(file)
        if file.spec.table is None:
            raise IncrowdError(f"'{spec.name}' names no table. Open the table instead.")
        named = file.spec.table
        place = named if is_address(named) else str(self.resolve_path(str(file.folder / named)))
        _require_consent(place, connect=connect)
        table = open_table(place, sheet=file.spec.sheet, header=file.spec.header)
        guessed = draft(table, name=file.spec.table)
        work = OpenSpec(
            secrets.token_hex(8), place, open_joined_table(file, table), file, guessed, state,
            self._require_paths_inside,
        )  # fmt: skip
        return self._remember_spec(work, replaced=existing)

    def _require_paths_inside(self, file: SpecFile) -> None:
        """Refuse a spec whose hierarchies, ledger or second table do not lie below the folder."""
        if file.spec.ledger is not None:
            self.resolve_path(str(file.folder / file.spec.ledger))
        if file.spec.household is not None and file.spec.household.table is not None:
            self.resolve_path(str(file.folder / file.spec.household.table))
        for column in file.spec.columns.values():
            if column.hierarchy is not None and column.hierarchy.csv is not None:
                self.resolve_path(str(file.folder / column.hierarchy.csv.file))

    def _remember_spec(self, work: OpenSpec, replaced: OpenSpec | None = None) -> OpenSpec:
        with self._lock:
            work = self._works.add_spec(work, replaced)
            self._opened.pop(work.name, None)
            self._opened[work.name] = None
        return work

    def _save_new_spec(self, name: str, text: str) -> SpecFile:
        """Write a new spec into the folder of the project, under a name that is free."""
        path, number = self.home / name, 1
        while True:
            file = parse_spec(text, path=path)
            try:
                write_private(path, file.text(), new=True)
            except FileExistsError:
                number += 1
                path = self.home / f"{Path(name).stem}-{number}.yaml"
            else:
                return file

    def remove_uploads(self) -> None:
        """Remove everything that was uploaded."""
        shutil.rmtree(self._private, ignore_errors=True)
        if self._held is not None:
            os.close(self._held)
            self._held = None


def _lock_folder(folder: Path) -> int | None:
    """Mark a folder as in use while this process lives: by a lock, which goes with it."""
    part = folder / f"{_MARK}.part"
    descriptor = os.open(part, os.O_CREAT | os.O_WRONLY, 0o600)
    if fcntl is not None:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    part.rename(folder / _MARK)  # so that nobody ever finds it without its lock
    return descriptor


def remove_stale_uploads() -> None:
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
    address = parse_address(place)
    if address.table and not address.doubtful:
        raise UnconfirmedConnectionError(place)


def _is_spec(path: Path) -> bool:
    """Return whether a YAML file looks like a spec."""
    try:
        with path.open(encoding="utf-8") as text:
            return any(line.startswith("columns:") for line in text)
    except (OSError, UnicodeDecodeError):
        return False
