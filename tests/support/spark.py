"""Spark for tests: one session for each process of tests, and one cluster."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.cluster import SparkCluster, start_cluster
from support.java_archive import list_java_options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FIXTURES = frozenset({"spark_cluster", "spark_session"})
SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "1g",
    # half the processor's time for queries that are short: nothing is compiled for them
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def mark_spark(item: pytest.Item) -> bool:
    """Mark a test whose arguments are made by Spark, so that ``-m "not spark"`` leaves it out.

    A test that asks for Spark in any other way, as one of an engine does, carries the mark itself.
    """
    if FIXTURES.intersection(getattr(item, "fixturenames", ())):
        item.add_marker(pytest.mark.spark)
    return item.get_closest_marker("spark") is not None


@pytest.fixture(scope="session")
def spark_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session on this machine with two cores, which all tests of a process share."""
    session = start_session(tmp_path_factory.mktemp("spark"), list_java_options())
    yield session
    stop_session(session)


def start_session(folder: Path, java_options: Sequence[str]) -> SparkSession:
    """Start a session on this machine with two cores. A task that fails is tried once more."""
    from pyspark.sql import SparkSession

    # read when the session starts; each is what a machine without a network needs, too
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    paths = [str(Path(__file__).parent.parent), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))  # tasks find what tests share
    builder = SparkSession.builder.master("local[2,2]").appName("incrowd-tests")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    builder = builder.config("spark.driver.extraJavaOptions", " ".join(java_options))
    builder = builder.config("spark.sql.warehouse.dir", str(folder / "warehouse"))
    session = builder.config("spark.local.dir", str(folder / "local")).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def stop_session(session: SparkSession) -> None:
    """Stop a session, and wait until its process of Java has ended."""
    gateway = session.sparkContext._gateway
    assert gateway is not None
    session.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()  # by which Java knows that it is not needed any more
    gateway.proc.wait()


@pytest.fixture(scope="session")
def spark_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    """A cluster of two workers. A test that kills one starts another before it ends."""
    with start_cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster
