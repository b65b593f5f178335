"""A work: a table on its way to a release, and the spec file that says how.

There is one work for each spec file, whoever has opened it. What is shown is what the file holds:
a page carries the version of the spec that it shows, and a change that comes from a page with
another version is refused. A file that another program has changed is read again before anything
is shown or written, and is never overwritten unless the user asks for it.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from incrowd.curate.draft.draft import Draft
from incrowd.engine.address import is_address, parse_address
from incrowd.engine.source import open_spec_table
from incrowd.engine.table import Table
from incrowd.errors import IncrowdError
from incrowd.spec.file import SpecFile, parse_spec, read_spec_file
from incrowd.spec.problem import Place
from incrowd.studio.private_files import write_private
from incrowd.studio.spec_changes import describe_changes
from incrowd.studio.spec_edits import find_stale_levels

TABLES = (
    ".parquet", ".csv", ".tsv", ".txt", ".csv.gz", ".xlsx", ".xls", ".ods", ".arrow", ".feather",
    ".sav", ".dta", ".sas7bdat",
)  # fmt: skip


def get_table_title(place: str) -> str:
    """Return the name of a table: its file without the ending, or the table of a database."""
    if is_address(place):
        return parse_address(place).table.replace('"', "").replace("/", "-")
    name = Path(place).name
    ending = max(
        (suffix for suffix in TABLES if name.lower().endswith(suffix)), key=len, default=""
    )
    return name[: len(name) - len(ending)] or name


_STEPS_BACK = 100


class StaleError(IncrowdError):
    """A change comes from a page that does not show the spec as it is now."""


@dataclass(frozen=True)
class FileState:
    """What a file holds, and what tells cheaply that it may hold something else."""

    marks: tuple[int, ...]
    digest: str

    @classmethod
    def read(cls, path: Path) -> FileState:
        """Read the state of a file; of one that does not exist, an empty state."""
        try:
            file_state = path.stat()
            content = path.read_bytes()
        except OSError:
            return cls((), "")
        return cls(_read_marks(file_state), _compute_digest(content))

    def has_changed(self, path: Path) -> bool:
        """Return whether the file has another size, time or place than it had."""
        try:
            return _read_marks(path.stat()) != self.marks
        except OSError:
            return self.marks != ()


def _read_marks(status: Any) -> tuple[int, ...]:
    return status.st_mtime_ns, status.st_size, status.st_ino


def _compute_digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


_TABLE = ("table", "sheet", "header", "household")  # entries of a spec that say what is read


@dataclass(eq=False)
class OpenSpec:
    """A table on its way to a release, and the spec that says how.

    ``place`` is where the table is read from: a path, or an address with its password.
    ``notice`` says that the file was read again, ``conflict`` why the file on disk cannot be used;
    until that is settled nothing can be changed. ``allow`` refuses specs that lead elsewhere.
    """

    name: str
    place: str
    table: Table
    file: SpecFile
    guessed: Draft
    state: FileState
    allow: Callable[[SpecFile], object] = lambda _file: None
    past: list[str] = field(default_factory=list)
    kept: dict[Any, Any] = field(default_factory=dict)  # what rooms have found out
    lock: threading.RLock = field(default_factory=threading.RLock)
    notice: str = ""
    conflict: str = ""

    @property
    def path(self) -> Path:
        """Where its spec lies."""
        assert self.file.path is not None
        return self.file.path

    @property
    def title(self) -> str:
        """What it is called: by its table."""
        return get_table_title(self.place)

    @property
    def version(self) -> str:
        """A name for the spec as it is now: pages carry it, and changes must name it."""
        return _compute_digest(self.file.text().encode("utf-8"))[:16]

    def require_version(self, version: str) -> None:
        """Refuse a change by a page that does not show the spec as it is now."""
        self.refresh()
        if self.conflict:
            raise StaleError(self.conflict)
        if version != self.version:
            raise StaleError(
                f"Not changed: '{self.path.name}' was changed elsewhere after this page was shown. "
                "The page now shows the current spec. Repeat the change if you still want it."
            )

    def refresh(self) -> None:
        """Read the spec again if another program has changed its file."""
        if not self.lock.acquire(blocking=False):
            return  # a change is being made, which looks at the file itself
        try:
            if self.state.has_changed(self.path):
                self._reload_spec(FileState.read(self.path))
        finally:
            self.lock.release()

    def _reload_spec(self, state: FileState) -> None:
        same = state.digest == self.state.digest
        if same and not self.conflict:
            self.state = state  # it was touched
            return
        name = self.path.name
        try:
            file = read_spec_file(self.path)
            self.allow(file)
        except IncrowdError as error:
            problem = f"'{name}' was changed by another program and cannot be used"
            self._set_conflict(
                state, f"{problem}: {error}" if state.marks else f"'{name}' was removed."
            )
            return
        old, new = self.file.spec, file.spec
        if any(getattr(old, name) != getattr(new, name) for name in _TABLE):
            self._set_conflict(
                state, f"'{name}' was changed by another program and now names another table."
            )
            return
        if file.text() != self.file.text():
            self.past = [*self.past, self.file.text()][-_STEPS_BACK:]
            self.notice = f"'{name}' was changed by another program and was read again."
        self.file, self.state, self.conflict = file, state, ""

    def _set_conflict(self, state: FileState, conflict: str) -> None:
        """Refuse changes until the file is usable again, or is replaced."""
        self.state, self.notice = state, ""
        self.conflict = (
            f"{conflict} Nothing can be changed here until you correct the file, reload it, "
            "or replace it with the spec that is shown."
        )

    def overwrite_file(self) -> None:
        """Write the spec that is shown over the file, whatever it holds."""
        with self.lock:
            self._write_spec(self.file)
            self.notice = self.conflict = ""

    def apply_changes(
        self, changes: Mapping[Place, Any], *, check: Callable[[SpecFile], object] | None = None,
        undo: bool = True,
    ) -> None:  # fmt: skip
        """Change entries of the spec, and save it; refuse what is no spec, unchanged.

        ``check`` may refuse more, by what it raises. Without ``undo`` the change is no step back.
        """
        with self.lock:
            file = self.file.with_entries(changes)
            if check is not None:
                check(file)
            stale = find_stale_levels(file)
            if stale:
                places: dict[Place, None] = {("release", "levels", name): None for name in stale}
                left = set(file.spec.release.levels) - set(stale) if file.spec.release else set()
                file = file.with_entries(places if left else {("release", "levels"): None})
            past = self.past
            self._accept_spec(file)
            self.past = self.past if undo else past
            if stale:
                self.notice = (
                    f"The fixed level of {', '.join(map(repr, stale))} was removed from the spec: "
                    "the column has no such level any more. Undo brings it back."
                )

    def replace_text(self, text: str) -> None:
        """Take another text as the spec, and save it."""
        with self.lock:
            self._accept_spec(parse_spec(text, path=self.file.path))

    @property
    def undo_words(self) -> str:
        """What Undo would take back, in a few words; empty where there is nothing to undo."""
        if not self.past:
            return ""
        key = "undo", self.past[-1], self.file.text()
        if self.kept.get("undo key") != key:
            self.kept["undo key"] = key
            self.kept["undo words"] = describe_changes(
                self.file, parse_spec(self.past[-1], path=self.file.path)
            )
        words: str = self.kept["undo words"]
        return words

    def undo_change(self) -> None:
        """Undo the last change; the ledger stays, or releases would go uncounted."""
        with self.lock:
            if self.past:
                file = parse_spec(self.past[-1], path=self.file.path)
                if file.spec.ledger != self.file.spec.ledger:
                    file = file.with_entry(("ledger",), self.file.spec.ledger)
                self._save_spec(file)
                self.past.pop()
                self.file = file

    def _accept_spec(self, file: SpecFile) -> None:
        before = self.file.text()
        if file.text() == before:
            return
        self._save_spec(file)
        self.past = [*self.past, before][-_STEPS_BACK:]
        self.file = file

    def _save_spec(self, file: SpecFile) -> None:
        """Write a spec to its file, unless another program has changed that meanwhile."""
        state = FileState.read(self.path)
        if self.conflict or state.digest != self.state.digest:
            self._reload_spec(state)
            raise StaleError(
                f"Not changed: another program has just changed '{self.path.name}'. "
                "Check the page and repeat the change."
            )
        self._write_spec(file)
        self.notice = ""

    def _write_spec(self, file: SpecFile) -> None:
        write_private(self.path, file.text())
        # The digest is that of the text, so that what others write from now on is noticed.
        self.state = FileState(
            _read_marks(self.path.stat()), _compute_digest(file.text().encode("utf-8"))
        )

    def read_table(self) -> Table:
        """Return the table as the spec says that it is written."""
        return open_spec_table(self.file, self.table)
