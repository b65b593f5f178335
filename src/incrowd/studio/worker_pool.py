"""Other processes that do what takes long, so that pages stay alive: looks at tables, and releases.

A hand keeps the tables that it was last asked about open, and remembers what it counted of them:
so the same kind of question goes to the same hand. One that dies, whatever it met, is replaced;
whoever waits for its answer is told so, and the studio goes on.

**Remembered counts.** A table that remembers what was counted of it: a check after a change counts
only the rest.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from functools import lru_cache
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from incrowd.engine.table import RowsPerId, Table, Tally
from incrowd.errors import IncrowdError

if TYPE_CHECKING:
    from incrowd.spec.value_format import ValueFormat

MOST_KEPT = 200_000  # distinct values of a column whose counts are kept


class CachedTable:
    """A table of a file that does not change. What is not remembered is asked of the table itself.

    Columns with very many values are counted anew each time, since their counts take much room.
    """

    def __init__(self, table: Table) -> None:
        self._table = table
        self._known: dict[tuple[str, tuple[str, ...]], Any] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._table, name)

    def _compute_once(self, name: str, columns: Sequence[str], count: Callable[[], T]) -> T:
        key = name, tuple(columns)
        if key not in self._known:
            self._known[key] = count()
        once: T = self._known[key]
        return once

    def rows(self) -> int:
        """Return the number of rows."""
        return self._compute_once("rows", (), self._table.rows)

    def count_distinct(self, columns: Sequence[str]) -> int:
        """Count the distinct tuples of some columns."""
        return self._compute_once("distinct", columns, lambda: self._table.count_distinct(columns))

    def count_people(self, column: str) -> int:
        """Count the people that a column identifies."""
        return self._compute_once("people", (column,), lambda: self._table.count_people(column))

    def count_rows_per_id(self, column: str) -> RowsPerId:
        """Count the ids of a column, and the rows that share one."""
        return self._compute_once(
            "rows per id", (column,), lambda: self._table.count_rows_per_id(column)
        )

    def count_missing(self, column: str) -> int:
        """Count the rows that have no value in a column."""
        return self._compute_once("missing", (column,), lambda: self._table.count_missing(column))

    def iter_tallies(self, columns: Sequence[str]) -> Iterator[Tally]:
        """Yield distinct tuples with counts."""
        key = "tallies", tuple(columns)
        if key in self._known:
            yield from self._known[key]
            return
        tallies: list[Tally] | None = []
        size = 0
        for tally in self._table.iter_tallies(columns):
            size += len(tally.counts)
            if tallies is not None:
                tallies = [*tallies, tally] if size <= MOST_KEPT else None
            yield tally
        if tallies is not None:
            self._known[key] = tallies


T = TypeVar("T")
CRASHED = "The process that reads the table ended unexpectedly. Try again."


class _PendingAnswer(Future[T]):
    """An answer that is waited for; it cannot be canceled while a process is at work on it."""

    inner: Future[T]

    def cancel(self) -> bool:
        """Cancel it, if it has not begun."""
        return self.inner.cancel() and super().cancel()


class WorkerPool:
    """Processes that answer questions about tables."""

    def __init__(self, number: int = 2) -> None:
        self._lock, self._closed = threading.Lock(), False
        self._pools: list[ProcessPoolExecutor | None] = [None] * number
        self._waiting = [0] * number  # questions of each that are not answered

    def submit_task(self, task: Callable[..., T], *arguments: Any, same: bool = False) -> Future[T]:
        """Run a task in another process; it and its arguments have to be plain.

        Where a process is lost, all that wait for it are lost with it: each is asked once more.
        ``same`` asks the hand that always gets such questions, and knows what it counted for them;
        else the one that has the least to do is asked.
        """
        pending_answer: _PendingAnswer[T] = _PendingAnswer()
        self._send_task(pending_answer, task, arguments, same=same, again=True)
        return pending_answer

    def _send_task(
        self, pending_answer: _PendingAnswer[T], task: Callable[..., T],
        arguments: tuple[Any, ...], *, same: bool, again: bool,
    ) -> None:  # fmt: skip
        with self._lock:
            hands = range(len(self._pools))
            hand = 0 if same else min(hands, key=lambda number: (self._waiting[number], -number))
            pending_answer.inner = self._submit_to_worker(hand, task, arguments)
            self._waiting[hand] += 1

        def handle_answer(inner: Future[T]) -> None:
            with self._lock:
                self._waiting[hand] -= 1
            if pending_answer.done() or inner.cancelled():
                return
            error = inner.exception()
            if isinstance(error, BrokenProcessPool) and again and not self._closed:
                self._send_task(pending_answer, task, arguments, same=same, again=False)
            elif error is not None:
                pending_answer.set_exception(error)
            else:
                pending_answer.set_result(inner.result())

        def handle_done(inner: Future[T]) -> None:
            # Whoever tells that a pool is broken holds its lock, for which a new question waits.
            if not inner.cancelled() and isinstance(inner.exception(), BrokenProcessPool):
                threading.Thread(target=handle_answer, args=(inner,), daemon=True).start()
            else:
                handle_answer(inner)

        pending_answer.inner.add_done_callback(handle_done)

    def _submit_to_worker(
        self, hand: int, task: Callable[..., T], arguments: tuple[Any, ...]
    ) -> Future[T]:
        pool = self._pools[hand]
        if pool is not None:
            try:
                return pool.submit(task, *arguments)
            except BrokenProcessPool:
                pool.shutdown(wait=False)
        pool = ProcessPoolExecutor(
            1, multiprocessing.get_context("spawn"), initializer=_set_up_worker
        )
        self._pools[hand] = pool
        return pool.submit(task, *arguments)

    def close(self) -> None:
        """End all processes."""
        self._closed = True  # what is lost now is not asked again
        if any(self._pools):
            for process in multiprocessing.active_children():
                process.terminate()
        for pool in self._pools:
            if pool is not None:
                pool.shutdown(wait=True, cancel_futures=True)


def _set_up_worker() -> None:
    """Ignore interrupts, which are for the studio, and end when the studio ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_exit_with_studio, daemon=True).start()


def _exit_with_studio() -> None:
    """End when the studio has ended, however it did."""
    studio = multiprocessing.parent_process()
    if studio is not None:
        studio.join()
        os._exit(0)


@lru_cache(maxsize=4)
def _open_cached_table(
    place: str, sheet: str | None, header: int | None, _stamp: tuple[int, int]
) -> Any:
    from incrowd.engine.source import open_table
    from incrowd.studio.worker_pool import CachedTable

    return CachedTable(open_table(place, sheet=sheet, header=header))


@lru_cache(maxsize=4)
def _join_cached_table(
    place: str, sheet: str | None, header: int | None, stamp: tuple[int, int], joined: _Joined
) -> Any:
    """Return a table with the columns of its households, as both files have them."""
    from incrowd.engine.source import open_table
    from incrowd.studio.worker_pool import CachedTable

    table = _open_cached_table(place, sheet, header, stamp)
    households = open_table(joined.place)
    read = None if joined.written is None else joined.written.make_reader()
    return CachedTable(table.join_table(joined.column, households, joined.other_column, read))


@lru_cache(maxsize=4)
def _read_cached_table(
    place: str, sheet: str | None, header: int | None, stamp: tuple[int, int],
    declared: tuple[tuple[str, str], ...], joined: _Joined | None = None,
) -> Any:  # fmt: skip
    """Return a table as a spec says that its columns are written."""
    from incrowd.engine.source import read_as_declared
    from incrowd.spec.model import Column
    from incrowd.studio.worker_pool import CachedTable

    if joined is None:
        table = _open_cached_table(place, sheet, header, stamp)
    else:
        table = _join_cached_table(place, sheet, header, stamp, joined)
    columns = {name: Column.model_validate_json(text) for name, text in declared}
    read = read_as_declared(table, columns)
    return table if read is table else CachedTable(read)


@lru_cache(maxsize=4)
def _parse_cached_spec(text: str, path: str) -> Any:
    """Return a spec; each column of a wide table asks for the same one."""
    from incrowd.spec.file import parse_spec

    return parse_spec(text, path=Path(path))


@dataclass(frozen=True)
class _Joined:
    """A table of households that is joined to one of people, by a column of each.

    ``written`` says how both write their ids.
    """

    place: str
    stamp: tuple[int, int]
    column: str
    other_column: str
    written: ValueFormat | None


@dataclass(frozen=True)
class SpecSnapshot:
    """A table and a spec as they are sent to another process."""

    place: str
    text: str
    path: str
    sheet: str | None
    header: int | None

    def open_raw_table(self) -> Any:
        """Return the table, as the file has it."""
        return _open_cached_table(self.place, self.sheet, self.header, _read_file_stamp(self.place))

    def parse_spec(self) -> Any:
        """Return the spec alone."""
        return _parse_cached_spec(self.text, self.path)

    def open_spec_and_table(self) -> tuple[Any, Any]:
        """Return the spec, and the table as it says that it is written."""
        file = self.parse_spec()
        places = file.spec.places
        declared = {
            name: column.model_dump_json(
                by_alias=True, exclude_defaults=True, include={"role", "written", "hierarchy"}
            )
            for name, column in file.spec.columns.items()
            if column.written is not None or name in places
        }
        return file, _read_cached_table(
            self.place, self.sheet, self.header, _read_file_stamp(self.place),
            tuple(declared.items()), _find_joined(file),
        )  # fmt: skip

    def open_uncached(self) -> tuple[Any, Any]:
        """Return the spec and its table, of which nothing is cached."""
        from incrowd.engine.source import open_spec_table, open_table

        file = self.parse_spec()
        return file, open_spec_table(
            file, open_table(self.place, sheet=self.sheet, header=self.header)
        )


def _read_file_stamp(place: str) -> tuple[int, int]:
    """Return what changes with the file."""
    path = Path(place)
    if not path.exists():
        return 0, 0
    file_stamp = path.stat()
    return file_stamp.st_mtime_ns, file_stamp.st_size


def _find_joined(file: Any) -> _Joined | None:
    """Return the table of households that a spec names; None without one."""
    from incrowd.engine.source import get_id_format

    household, unit = file.spec.household, file.spec.unit
    if household is None or household.table is None:
        return None
    place = str(file.folder / household.table)
    written = get_id_format(file.spec)
    return _Joined(place, _read_file_stamp(place), unit.id, household.id or unit.id, written)


@dataclass
class PublishJob:
    """A release that is being made in a process of its own.

    ``step`` is where it is, ``done`` of ``all`` what is done of it. When it has ended, ``problem``
    says why it failed, if it did, and ``booked`` whether a ledger counts it all the same.
    """

    output: Path
    ledger: str | None = None  # that the spec names
    step: str = "begin"
    done: int = 0
    all: int = 0
    problem: str | None = None
    booked: bool = False
    ended: bool = False
    cancelled: bool = False
    result: dict[str, Any] = field(default_factory=dict)
    begun: float = field(default_factory=time.monotonic)
    _process: Any = None

    def start(self, *arguments: Any) -> None:
        """Start the process, and a thread that listens to it."""
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe(duplex=False)
        self._process = context.Process(
            target=_run_publish_job, args=(theirs, *arguments), daemon=False
        )
        self._process.start()
        theirs.close()
        threading.Thread(target=self._receive_messages, args=(ours,), daemon=True).start()

    @property
    def curator(self) -> Path:
        """Where what only the curator may see goes."""
        return self.output.with_name(f"{self.output.name}.curator")

    @property
    def process_id(self) -> int:
        """The number of its process."""
        return int(self._process.pid)

    @property
    def seconds(self) -> int:
        """How long it has been at work."""
        return int(time.monotonic() - self.begun)

    def cancel(self) -> None:
        """Interrupt it, as at a terminal; a process that does not end is killed."""
        if self.ended or self.cancelled:
            return
        self.cancelled = True
        self._process.terminate()
        threading.Thread(target=self._kill_if_alive, daemon=True).start()

    def _kill_if_alive(self) -> None:
        self._process.join(20)
        if self._process.is_alive():
            self._process.kill()

    def _receive_messages(self, ours: Connection) -> None:
        answered = False
        try:
            while True:
                kind, value = ours.recv()
                if kind == "step":
                    self.step, self.done, self.all = value, 0, 0
                elif kind == "progress":
                    self.done, self.all = value
                elif kind == "done":
                    self.result, answered = value, True
                    self.booked = bool(value["booked"])
                else:
                    self.problem, answered = value, True
        except (EOFError, OSError):
            pass
        self._process.join()
        if not answered:
            self.problem = self.problem or CRASHED
        self.ended = True


def _run_publish_job(theirs: Connection, subject: SpecSnapshot, output: str) -> None:
    """Publish, and report each step."""
    from incrowd.cli.results import detail_facts, private_facts, release_facts
    from incrowd.cli.terminal import add_test_pause
    from incrowd.curate.reader_view import view_release
    from incrowd.methods.spec_ledger import resolve_ledger
    from incrowd.publication import RunContext, make_release

    def raise_interrupt(_signal: int, _frame: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, raise_interrupt)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        theirs.send(("step", "open"))
        file, table = subject.open_uncached()
        run = RunContext(
            table, file, Path(output), ledger=resolve_ledger(file),
            step=add_test_pause(lambda name: theirs.send(("step", name))),
            progress=lambda done, every: theirs.send(("progress", (done, every))),
        )  # fmt: skip
        release = make_release(run)
        theirs.send(
            (
                "done",
                {
                    "booked": release.is_booked,
                    "findings": [*release.findings, *release.evaluation.lost.findings()],
                    "empty": release.is_empty,
                    "public": release_facts(release),
                    "details": detail_facts(release),
                    "private": private_facts(release),
                    "examples": release.examples,
                    "view": view_release(file, release),
                },
            )
        )
    except KeyboardInterrupt as error:
        text = hasattr(error, "__notes__")  # that it is booked, and that nothing was released
        words = "The release was canceled." + ("" if text else " Nothing was published.")
        theirs.send(("failed", _join_notes(words, error)))
    except IncrowdError as error:
        theirs.send(("failed", _join_notes(str(error), error)))
    except OSError as error:
        theirs.send(("failed", _join_notes(f"{error.strerror}: '{error.filename}'", error)))
    except Exception as error:  # noqa: BLE001 - whatever it is, the page has to say so
        theirs.send(("failed", _join_notes(f"Internal error: {error!r}", error)))


def _join_notes(words: str, error: BaseException) -> str:
    return " ".join([words, *getattr(error, "__notes__", [])])
