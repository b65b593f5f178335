"""Which tables were released before, and under which ledgers; kept in the user's state folder.

Releases of one table add up, whoever counts them. A ledger counts those that are booked in it; this
history notices those that are not: made without a ledger, or under another one. It holds keyed
fingerprints, never a table's name or content.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import sqlite3
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from incrowd.engine.table import Table
from incrowd.findings import Finding, make_finding
from incrowd.release.ledger import Ledger

WITHOUT_LEDGER = ""


def state_folder() -> Path:
    """Where the history is kept: below ``XDG_STATE_HOME``, or else ``~/.local/state``."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "incrowd"


class History:
    """What is remembered. Where there is no place to remember in, ``usable`` is False."""

    def __init__(self) -> None:
        self._folder = state_folder()
        self.key, self.usable = b"", True
        rows = self._ask("SELECT value FROM about WHERE name = 'key'")
        if rows:
            self.key = bytes.fromhex(rows[0][0])

    def earlier(self, fingerprint: str, *, ledger: str = WITHOUT_LEDGER) -> bool:
        """Whether a table was released in a way that this ledger does not count.

        Without a ledger, that is any release of it.
        """
        rows = self._ask("SELECT ledger FROM released WHERE fingerprint = ?", fingerprint)
        ledgers = {row[0] for row in rows}
        return bool(ledgers if ledger == WITHOUT_LEDGER else ledgers - {ledger})

    def remember(self, fingerprint: str, *, ledger: str = WITHOUT_LEDGER) -> bool:
        """Remember that a table is released, under a ledger or under none.

        The answer is that of :meth:`earlier`; of two who ask at once, one is told of the other.
        """
        query = "SELECT ledger FROM released WHERE fingerprint = ?"
        insert = "INSERT OR IGNORE INTO released VALUES (?, ?)"
        try:
            with self._open() as database:
                known = {row[0] for row in database.execute(query, (fingerprint,))}
                database.execute(insert, (fingerprint, ledger))
        except (OSError, sqlite3.Error):
            self.usable = False
            return False
        return bool(known if ledger == WITHOUT_LEDGER else known - {ledger})

    def _ask(self, statement: str, *values: str) -> list[tuple[str, ...]]:
        """What the history answers; nothing where it cannot be used."""
        try:
            with self._open() as database:
                return database.execute(statement, values).fetchall()
        except (OSError, sqlite3.Error):
            self.usable = False
            return []

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """One transaction that excludes all others, so that nothing is forgotten in a race."""
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / "released.db"
        with closing(sqlite3.connect(path, timeout=60, isolation_level=None)) as database:
            path.chmod(0o600)
            database.execute("BEGIN IMMEDIATE")
            database.execute("CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value TEXT)")
            database.execute(
                "CREATE TABLE IF NOT EXISTS released (fingerprint TEXT, ledger TEXT, "
                "PRIMARY KEY (fingerprint, ledger))"
            )
            if not database.execute("SELECT 1 FROM about").fetchone():
                self._begin(database)
            yield database
            database.execute("COMMIT")

    def _begin(self, database: sqlite3.Connection) -> None:
        """A key of its own, or what an older version remembered in a file of text."""
        old: dict[str, object] = {}
        with suppress(OSError, ValueError):
            old = json.loads((self._folder / "released.json").read_text())
        key, tables = old.get("key"), old.get("tables")
        listed = tables if isinstance(key, str) and isinstance(tables, list) else []
        database.execute(
            "INSERT INTO about VALUES ('key', ?)", (key if listed else secrets.token_hex(32),)
        )
        database.executemany(
            "INSERT OR IGNORE INTO released VALUES (?, ?)",
            [(str(mark), WITHOUT_LEDGER) for mark in listed],
        )


def name_of(key: bytes) -> str:
    """What a ledger is called here, by its secret key."""
    return hashlib.sha256(key).hexdigest()


class Recognised:
    """A table that may have been released before: its fingerprints, taken in the background."""

    def __init__(self, table: Table, ledger: Ledger | None, workers: ThreadPoolExecutor) -> None:
        self._ledger, self._history = ledger, History()
        self._table, self._workers = table, workers
        key = ledger.key() if ledger is not None else b""
        self._name = name_of(key) if ledger is not None else WITHOUT_LEDGER
        self._keys = {"history": self._history.key} | ({"ledger": key} if ledger else {})
        self._marks: dict[str, Future[str]] = {}
        if not table.hash_when_counted():
            self._begin()

    def _begin(self) -> None:
        for name, key in self._keys.items():
            if name not in self._marks:
                self._marks[name] = self._workers.submit(self._table.fingerprint, key)

    def wait(self) -> None:
        """Have the fingerprints, or whatever prevents them, before anything is booked."""
        self._begin()
        for mark in self._marks.values():
            mark.result()

    def findings(self, *, accounted: bool) -> tuple[Finding, ...]:
        """Return what to tell the curator."""
        found = []
        if self._changed():
            found.append(make_finding("TABLE_CHANGED"))
        mark = self._marks["history"].result()
        if self._history.earlier(mark, ledger=self._name):
            found.append(self._earlier(accounted))
        if not self._history.usable:
            found.append(make_finding("HISTORY_NOT_WRITABLE"))
        return tuple(found)

    def remember(self, known: tuple[Finding, ...], *, accounted: bool) -> tuple[Finding, ...]:
        """Remember that the table is released; report a release that came in between."""
        earlier = self._earlier(accounted)
        late = self._history.remember(self._marks["history"].result(), ledger=self._name)
        return (earlier,) if late and earlier not in known else ()

    def _changed(self) -> bool:
        if self._ledger is None:
            return False
        return not self._ledger.recognises(self._marks["ledger"].result())

    def _earlier(self, accounted: bool) -> Finding:
        if self._ledger is not None:
            return make_finding("RELEASED_OUTSIDE_LEDGER")
        if accounted:
            return make_finding("RELEASED_BEFORE")
        return make_finding("RELEASED_BEFORE_UNBOUNDED")
