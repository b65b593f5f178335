"""What fails on Spark: one line each, nothing left behind, and a spend that is booked or is not."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest
from support.cli import CommandResult, run_command
from support.cluster import SparkCluster, make_mount_command, start_cluster
from support.spark_runs import (
    WAIT,
    ExecutorLogs,
    make_arguments,
    make_ledger,
    restore_workers,
    run_incrowd,
    start_release,
    wait_until,
)  # fmt: skip

from incrowd.engine.spark.session import describe_failure
from incrowd.release.ledger import Ledger
from incrowd.release.verify import verify

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SPEC = """
table: table.parquet
columns:
  person: {role: identifier}
  group: {role: quasi, hierarchy: flat}
  x: {role: quasi, hierarchy: {intervals: {from: 0, to: 100000, widths: [1000, 10000]}}}
release: {method: safe, epsilon: 1, delta: 1.0e-6}
"""
IMPATIENT = {"spark.incrowd.patience": "2"}
PATIENT = {"spark.incrowd.patience": "6"}  # enough for executors to start
FULL = "a disk of the cluster is full. Make room in spark.local.dir of its workers"


@pytest.fixture(scope="module")
def on_disk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Specs and their table as files, for processes of their own."""
    folder, rows = tmp_path_factory.mktemp("disk"), 300_000
    draw = np.random.default_rng(1)
    table = pl.select(
        person=pl.arange(rows), group=pl.format("g{}", pl.arange(rows) % 8),
        x=pl.Series(draw.integers(0, 100_000, rows)),
    )  # fmt: skip
    table.write_parquet(folder / "table.parquet", row_group_size=20_000)
    (folder / "spec.yaml").write_text(SPEC)
    by_person = SPEC.replace("person: {role: identifier}", "person: {role: drop}")
    (folder / "by_person.yaml").write_text(f"unit: {{id: person}}\n{by_person}")
    return folder


@pytest.fixture
def book(tmp_path: Path) -> Ledger:
    """A ledger in the folder that gets the release."""
    return make_ledger(tmp_path / "ledger")


def refused(
    done: CommandResult | subprocess.CompletedProcess[str], book: Ledger, *, booked: bool = False
) -> str:
    """The one line that a command says that fails, after all that it must not have done."""
    assert done.returncode == 2, done.stdout + done.stderr
    assert done.stderr.startswith("incrowd: ")
    assert done.stderr.count("\n") == 1
    left = [path.name for path in book.path.parent.iterdir()]
    assert sorted(name for name in left if name != "state") == [book.path.name]
    assert len(book.spends()) == booked
    assert ("The spend is booked and counts" in done.stderr) == booked
    return done.stderr


def published(on_disk: Path, book: Ledger, *more: str, **environment: str) -> str:
    """What a release says that fails."""
    out, spent = book.path.parent / "out", ("--ledger", str(book.path))
    arguments = make_arguments(on_disk / "spec.yaml", out, *spent, *more, settings=IMPATIENT)
    return refused(run_incrowd(*arguments, environment=os.environ | environment), book)


def ended(process: subprocess.Popen[str]) -> subprocess.CompletedProcess[str]:
    out, err = process.communicate(timeout=WAIT)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def test_without_java(on_disk: Path, book: Ledger) -> None:
    folder = str(on_disk / "nothing")
    text = published(on_disk, book, PATH=folder, JAVA_HOME="")
    assert "Spark needs Java: there is none on the PATH, and JAVA_HOME is not set" in text


def test_with_an_old_java(on_disk: Path, book: Ledger) -> None:
    java = on_disk / "old" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    java.chmod(0o755)
    text = published(on_disk, book, JAVA_HOME=str(on_disk / "old"))
    assert f"Spark needs Java 17 or later: {java} is version 11.0.2. Install" in text


def test_without_pyspark(on_disk: Path, book: Ledger) -> None:
    """As in a Python that has it not: whoever imports it is told that there is none."""
    hidden = (
        "import sys\n"
        "class Hidden:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] in ('pyspark', 'py4j'):\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        "sys.meta_path.insert(0, Hidden())\n"
        "from incrowd.cli.main import main\n"
        "main()\n"
    )
    arguments = make_arguments(
        on_disk / "spec.yaml", book.path.parent / "out", "--ledger", str(book.path)
    )
    done = subprocess.run(
        [sys.executable, "-c", hidden, *arguments], capture_output=True, text=True, timeout=WAIT
    )
    text = refused(done, book)
    assert text == "incrowd: Spark needs an extra. Install it: pip install 'incrowd[spark]'.\n"


def test_a_master_that_does_not_answer(on_disk: Path, book: Ledger) -> None:
    text = published(on_disk, book, "--master", "spark://127.0.0.1:1")
    assert "Spark master 'spark://127.0.0.1:1': not reachable (Connection refused)." in text


@pytest.fixture(scope="module")
def lone_master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    """A master without workers."""
    with start_cluster(tmp_path_factory.mktemp("lone"), workers=0) as cluster:
        yield cluster


def test_a_master_without_workers(on_disk: Path, book: Ledger, lone_master: SparkCluster) -> None:
    text = published(
        on_disk, book, "--master", lone_master.master, **lone_master.make_environment()
    )
    assert f"Spark master '{lone_master.master}': no executor within" in text
    assert "within 2 seconds" in text


@pytest.mark.parametrize("booked", [False, True])
def test_all_workers_are_lost(
    on_disk: Path, book: Ledger, spark_cluster: SparkCluster, booked: bool
) -> None:
    """While rows are counted; and after the spend is booked, while one row each is counted."""
    watched = ExecutorLogs(spark_cluster)
    with (
        restore_workers(spark_cluster),
        start_release(
            spark_cluster, on_disk / "by_person.yaml", book.path.parent / "out",
            "--ledger", str(book.path), settings=PATIENT,
        ) as process,
    ):  # fmt: skip
        wait_until(lambda: bool(book.spends() if booked else watched.list_busy_workers()), process)
        for worker in spark_cluster.list_live_workers():
            spark_cluster.kill_worker(worker)
        text = refused(ended(process), book, booked=booked)
    assert "all executors were lost, and none came back. Are the workers running?" in text


def can_mount(folder: Path) -> bool:
    tried = subprocess.run([*make_mount_command(folder, 1), "true"], capture_output=True)
    return tried.returncode == 0


def test_a_full_disk_of_an_executor(on_disk: Path, book: Ledger, lone_master: SparkCluster) -> None:
    if not can_mount(on_disk):  # then it is as if the executor had failed so
        assert describe_failure(OSError("java.io.IOException: No space left on device")).startswith(
            FULL
        )
        return
    worker = lone_master.start_worker(scratch=1)
    try:
        lone_master.wait_for_workers(1)
        with start_release(
            lone_master, on_disk / "spec.yaml", book.path.parent / "out", "--ledger", str(book.path)
        ) as process:
            text = refused(ended(process), book)
    finally:
        lone_master.kill_worker(worker)
    assert FULL in text


@pytest.mark.parametrize(
    ("expression", "kind"),
    [
        ("map('a', id)", "map<string,bigint>"),
        ("parse_json('1')", "variant"),
        ("make_ym_interval(1, 2)", "interval year to month"),
    ],
)
def test_a_kind_of_column_that_only_spark_has(
    spark_session: SparkSession, book: Ledger, expression: str, kind: str
) -> None:
    """It is refused in a word where it is to be published, and left out where it is dropped."""
    folder = book.path.parent
    frame = spark_session.sql(f"SELECT id % 4 AS group, {expression} AS odd FROM range(1000)")
    frame.createOrReplaceTempView("incrowd_odd")
    columns = "table: incrowd_odd\ncolumns:\n  group: {role: quasi, hierarchy: flat}\n  odd: "
    release = "release: {method: safe, epsilon: 1, delta: 1.0e-6}\n"
    kept_spec, dropped_spec = folder.parent / f"{folder.name}-shown.yaml", folder / "dropped.yaml"
    kept_spec.write_text(f"{columns}{{role: quasi, hierarchy: flat}}\n{release}")
    options = ("-o", str(folder / "out"), "--ledger", str(book.path), "--engine", "spark")
    text = refused(run_command("publish", str(kept_spec), *options), book)
    assert f"Column 'odd': it holds {kind}, not single values." in text
    dropped_spec.write_text(f"{columns}{{role: drop}}\n{release}")
    done = run_command("publish", str(dropped_spec), *options)
    assert done.returncode == 0, done.stderr
    assert verify(folder / "out") == []
    assert len(book.spends()) == 1
