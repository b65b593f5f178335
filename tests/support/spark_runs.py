"""The command ``incrowd publish`` in a process of its own, on a cluster, and what it leaves."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from support.cluster import SparkCluster
from support.java_archive import list_java_options

from incrowd.release.ledger import Ledger

JAVA_OPTIONS = " ".join(list_java_options())
SETTINGS = {
    "spark.driver.extraJavaOptions": JAVA_OPTIONS,
    "spark.driver.memory": "1g",
    "spark.executor.extraJavaOptions": JAVA_OPTIONS,
    "spark.executor.memory": "700m",  # which fits into a worker of tests
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
}
WAIT = 300.0  # seconds, on a busy machine


def make_arguments(
    spec: Path, output: Path, *more: str, settings: Mapping[str, str] | None = None
) -> list[str]:
    """The arguments of ``incrowd`` that publish on Spark."""
    all_settings = SETTINGS | dict(settings or {})
    options = [
        part for name, value in all_settings.items() for part in ("--conf", f"{name}={value}")
    ]
    return ["publish", str(spec), "-o", str(output), "--engine", "spark", *more, *options]


def run_incrowd(
    *arguments: str, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """How a command ends that runs in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "incrowd", *arguments],
        env=dict(environment or os.environ), capture_output=True, text=True, timeout=WAIT,
    )  # fmt: skip


def start_release(
    cluster: SparkCluster,
    spec: Path,
    output: Path,
    *more: str,
    settings: Mapping[str, str] | None = None,
) -> subprocess.Popen[str]:
    """A release that is being made on a cluster."""
    arguments = make_arguments(spec, output, "--master", cluster.master, *more, settings=settings)
    return subprocess.Popen(
        [sys.executable, "-m", "incrowd", *arguments],
        env=cluster.make_environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def wait_until(ready: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    """Return when something is so; fails where the process ends first, or nothing happens."""
    end = time.monotonic() + WAIT
    while not ready():
        if process.poll() is not None or time.monotonic() > end:
            process.kill()
            out, err = process.communicate()
            raise AssertionError(f"It ended ({process.returncode}) too early: {out}{err}")
        time.sleep(0.02)


def list_finished_tasks(log: str) -> set[str]:
    """The numbers of the tasks that an executor has finished, by its log."""
    return set(re.findall(r"Finished task \S+ in stage \S+ \(TID (\d+)\)", log))


def list_running_tasks(log: str) -> set[str]:
    """The numbers of the tasks that an executor has begun and not finished."""
    return set(
        re.findall(r"Running task \S+ in stage \S+ \(TID (\d+)\)", log)
    ) - list_finished_tasks(log)


def has_repeated_task(log: str) -> bool:
    """Whether an executor has run a task, or a stage, that was tried before."""
    return bool(
        re.search(r"Running task (\d+\.[1-9]\d* in stage|\d+\.\d+ in stage \d+\.[1-9])", log)
    )


@contextmanager
def restore_workers(cluster: SparkCluster) -> Iterator[None]:
    """Start as many workers at the end of the block as were killed in it."""
    count = len(cluster.list_live_workers())
    try:
        yield
    finally:
        for _ in range(count - len(cluster.list_live_workers())):
            cluster.start_worker()
        cluster.wait_for_workers(count)


class ExecutorLogs:
    """What executors of a cluster write from now on."""

    def __init__(self, cluster: SparkCluster) -> None:
        self.cluster = cluster
        self._before = {
            at: len(cluster.read_executor_log(at)) for at in cluster.list_live_workers()
        }

    def read_log(self, worker: int) -> str:
        """What the executors of a worker have written."""
        return self.cluster.read_executor_log(worker)[self._before[worker] :]

    def count_finished(self) -> int:
        """How many tasks were finished."""
        return sum(len(list_finished_tasks(self.read_log(at))) for at in self._before)

    def list_busy_workers(self) -> list[int]:
        """The workers that live and run a task."""
        return [
            at for at in self.cluster.list_live_workers() if list_running_tasks(self.read_log(at))
        ]

    def kill_busy_worker(self, process: subprocess.Popen[str], *, after: int) -> list[int]:
        """Kill a worker that runs a task when so many are finished; the workers that are left."""
        wait_until(
            lambda: self.count_finished() >= after and bool(self.list_busy_workers()), process
        )
        self.cluster.kill_worker(self.list_busy_workers()[0])
        return self.cluster.list_live_workers()


def make_ledger(path: Path) -> Ledger:
    """A ledger that bears some releases."""
    book = Ledger(path)
    book.set_budget(epsilon=10, delta=1e-4)
    return book
