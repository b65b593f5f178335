"""Processes that work for the studio: what is cancelled or dies leaves nothing half done."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from pathlib import Path

import pytest
from support.process_kill import kill_process, kill_process_once
from support.studio import RunningStudio

from incrowd.release.ledger import Ledger
from incrowd.release.verify import verify
from incrowd.studio.worker_pool import CRASHED, PublishJob, SpecSnapshot, WorkerPool

SPEC = """
table: table.csv
columns:
  age: {role: quasi, hierarchy: {intervals: {from: 0, to: 99, widths: [10, 50]}}}
  sex: {role: quasi, hierarchy: {flat: {values: [f, m]}}}
release: {method: safe, epsilon: 1, delta: 1.0e-5}
"""
WAIT = 60.0


@pytest.fixture
def subject(tmp_path: Path) -> SpecSnapshot:
    """A table and its spec."""
    rows = "".join(f"{at % 90},{'fm'[at % 2]}\n" for at in range(900))
    (tmp_path / "table.csv").write_text(f"age,sex\n{rows}")
    return SpecSnapshot(str(tmp_path / "table.csv"), SPEC, str(tmp_path / "spec.yaml"), None, None)


@pytest.fixture
def book(tmp_path: Path) -> Ledger:
    """A ledger that bears some releases."""
    ledger = Ledger(tmp_path / "book.ledger")
    ledger.set_budget(epsilon=5, delta=1e-3)
    return ledger


def until(ready: Callable[[], bool]) -> None:
    end = time.monotonic() + WAIT
    while not ready() and time.monotonic() < end:
        time.sleep(0.01)
    assert ready()


def begun(
    subject: SpecSnapshot, book: Ledger | None, at: str | None, patch: pytest.MonkeyPatch
) -> PublishJob:
    """A release that waits at a step."""
    if at is not None:
        patch.setenv("INCROWD_PAUSE_AT", at)
    job = PublishJob(Path(subject.path).parent / "out")
    if book is not None:
        subject = replace(subject, text=f"ledger: {book.path.name}\n{subject.text}")
    job.start(subject, str(job.output))
    until(lambda: job.ended if at is None else job.step == at)
    return job


def left(subject: SpecSnapshot) -> set[str]:
    """What lies beside the table."""
    beside = {path.name for path in Path(subject.path).parent.iterdir()}
    return beside - {"table.csv", "state", "book.ledger"}


def test_a_release_is_made_and_told(
    subject: SpecSnapshot, book: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = begun(subject, book, None, monkeypatch)
    assert job.problem is None
    assert job.booked
    assert len(book.spends()) == 1
    assert verify(job.output) == []
    assert (job.curator / "report.html").exists()
    assert job.result["examples"].rows


def test_a_release_that_is_refused_says_why(
    subject: SpecSnapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path(subject.place).write_text("age\n1\n")
    job = begun(subject, None, None, monkeypatch)
    assert (job.problem or "").startswith("Column 'sex': it is in the spec, but not in the table.")


def test_cancelled_before_it_is_booked(
    subject: SpecSnapshot, book: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = begun(subject, book, "count", monkeypatch)
    job.cancel()
    until(lambda: job.ended)
    assert job.problem == "The release was canceled. Nothing was published."
    assert book.spends() == []
    assert left(subject) == set()


def test_cancelled_after_it_is_booked_it_says_so(
    subject: SpecSnapshot, book: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = begun(subject, book, "draw", monkeypatch)
    job.cancel()
    until(lambda: job.ended)
    assert job.problem is not None
    assert "The spend is booked and counts, and nothing was released." in job.problem
    assert len(book.spends()) == 1
    assert left(subject) == set()


def test_a_release_whose_process_dies(
    subject: SpecSnapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = begun(subject, None, "count", monkeypatch)
    os.kill(job.process_id, signal.SIGKILL)
    until(lambda: job.ended)
    assert job.problem == CRASHED
    assert not job.output.exists()


@pytest.fixture
def hands() -> Iterator[WorkerPool]:
    """Hands that go at the end."""
    pool = WorkerPool(1)
    yield pool
    pool.close()


def test_hands_that_die_are_replaced(hands: WorkerPool) -> None:
    with pytest.raises(BrokenProcessPool):
        hands.submit_task(kill_process).result(WAIT)
    assert hands.submit_task(len, "abc").result(WAIT) == 3


def test_what_is_lost_is_asked_once_more(hands: WorkerPool, tmp_path: Path) -> None:
    assert hands.submit_task(kill_process_once, tmp_path / "mark").result(WAIT) == "alive"


def test_what_has_not_begun_can_be_cancelled(hands: WorkerPool) -> None:
    first, second = hands.submit_task(time.sleep, 1.0), hands.submit_task(len, "abc")
    until(lambda: first.inner.running())  # type: ignore[attr-defined]
    third = hands.submit_task(len, "abcd")
    assert not first.cancel()
    assert third.cancel()
    assert third.cancelled()
    assert second.result(WAIT) == 3


def test_a_terminal_that_is_closed_removes_what_was_uploaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    running = RunningStudio(tmp_path, tmp_path / "state")
    answer = running.open_browser().send_request("PUT", "/upload?name=x.csv", b"age\n1\n2\n")
    assert answer.status == 200
    assert list(temporary.rglob("x.csv"))
    running.process.send_signal(signal.SIGHUP)
    running.process.wait(WAIT)
    assert list(temporary.rglob("x.csv")) == []
