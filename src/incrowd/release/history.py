"""Which tables were released before, and under which ledgers; kept in the user's state folder.

Releases of one table add up, whoever counts them. A ledger counts those that are booked in it; this
history notices those that are not: made without a ledger, or under another one. It holds keyed
fingerprints, never a table's name or content.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from incrowd.engine.table import Fingerprints, Table
from incrowd.findings import Finding, make_finding

if TYPE_CHECKING:
    from incrowd.release.ledger import Ledger

WITHOUT_LEDGER = ""


def get_state_folder() -> Path:
    """Return where the history is kept: below ``XDG_STATE_HOME``, or else ``~/.local/state``."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "incrowd"


class History:
    """What is remembered. Where there is no place to remember in, ``usable`` is False."""

    def __init__(self) -> None:
        self._folder = get_state_folder()
        self.key, self.usable = b"", True
        rows = self._run_query("SELECT value FROM about WHERE name = 'key'")
        if rows:
            self.key = bytes.fromhex(rows[0][0])

    def has_earlier_release(self, fingerprint: str, *, ledger: str = WITHOUT_LEDGER) -> bool:
        """Return whether a table was released in a way that this ledger does not count.

        Without a ledger, that is any release of it.
        """
        rows = self._run_query("SELECT ledger FROM released WHERE fingerprint = ?", fingerprint)
        ledgers = {row[0] for row in rows}
        return bool(ledgers if ledger == WITHOUT_LEDGER else ledgers - {ledger})

    def remember_release(self, fingerprint: str, *, ledger: str = WITHOUT_LEDGER) -> bool:
        """Remember that a table is released, under a ledger or under none.

        The answer is that of :meth:`has_earlier_release`; of two who ask at once, one is told of
        the other.
        """
        query = "SELECT ledger FROM released WHERE fingerprint = ?"
        insert = "INSERT OR IGNORE INTO released VALUES (?, ?)"
        try:
            with self._open_database() as database:
                ledgers = {row[0] for row in database.execute(query, (fingerprint,))}
                database.execute(insert, (fingerprint, ledger))
        except (OSError, sqlite3.Error):
            self.usable = False
            return False
        return bool(ledgers if ledger == WITHOUT_LEDGER else ledgers - {ledger})

    def _run_query(self, statement: str, *values: str) -> list[tuple[str, ...]]:
        """Return what the history answers; nothing where it cannot be used."""
        try:
            with self._open_database() as database:
                return database.execute(statement, values).fetchall()
        except (OSError, sqlite3.Error):
            self.usable = False
            return []

    @contextmanager
    def _open_database(self) -> Iterator[sqlite3.Connection]:
        """Open one transaction that excludes all others, so that nothing is forgotten in a race."""
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
                key = secrets.token_hex(32)
                database.execute("INSERT INTO about VALUES ('key', ?)", (key,))
            yield database
            database.execute("COMMIT")


def name_ledger(key: bytes) -> str:
    """Return what a ledger is called here, by its secret key."""
    return hashlib.sha256(key).hexdigest()


class ReleaseHistory:
    """What is known of earlier releases of one table: by its ledger, and on this machine.

    The fingerprints that recognize the table are computed in the background, until
    :meth:`wait_for_fingerprints`. A context, since that work must end. Nothing is known or
    remembered of a rehearsal, whose table is made up.

    Args:
        table: The table that is released.
        ledger: The ledger that its releases are booked in, if there is one.
        is_accounted: Whether releases like this one have a finite privacy loss.
        is_rehearsal: Whether the table is made up.
        is_part: Whether the table is one part of several that share the ledger.

    """

    def __init__(
        self,
        table: Table,
        ledger: Ledger | None,
        *,
        is_accounted: bool,
        is_rehearsal: bool = False,
        is_part: bool = False,
    ) -> None:
        self._is_part = is_part
        self._ledger, self._is_accounted = ledger, is_accounted
        self._history = None if is_rehearsal else History()
        key = ledger.key() if ledger is not None else b""
        self._name = name_ledger(key) if ledger is not None else WITHOUT_LEDGER
        keys = {} if self._history is None else {"history": self._history.key}
        self._fingerprints = Fingerprints(table, keys | ({"ledger": key} if ledger else {}))

    def __enter__(self) -> ReleaseHistory:
        return self

    def __exit__(self, *error: object) -> None:
        self._fingerprints.__exit__(*error)

    def wait_for_fingerprints(self) -> None:
        """Have the fingerprints, or raise what prevents them, before anything is booked."""
        self._fingerprints.wait()

    def find_earlier_releases(self) -> list[Finding]:
        """Find a table that changed under its ledger, and releases that it does not count."""
        if self._history is None:
            return []
        ledger, earlier_releases = self._ledger, []
        if (
            ledger is not None
            and not self._is_part
            and not ledger.recognizes_table(self._fingerprints["ledger"])
        ):
            earlier_releases.append(make_finding("TABLE_CHANGED"))
        if self._history.has_earlier_release(self._fingerprints["history"], ledger=self._name):
            earlier_releases.append(self._earlier_release())
        if not self._history.usable:
            earlier_releases.append(make_finding("HISTORY_NOT_WRITABLE"))
        return earlier_releases

    def remember_release(self, findings: Sequence[Finding]) -> list[Finding]:
        """Remember that the table is released; find a release that came in between."""
        if self._history is None:
            return []
        late = self._history.remember_release(self._fingerprints["history"], ledger=self._name)
        earlier = self._earlier_release()
        return [earlier] if late and earlier not in findings else []

    def _earlier_release(self) -> Finding:
        if self._ledger is not None:
            return make_finding("RELEASED_OUTSIDE_LEDGER")
        if self._is_accounted:
            return make_finding("RELEASED_BEFORE")
        return make_finding("RELEASED_BEFORE_UNBOUNDED")
