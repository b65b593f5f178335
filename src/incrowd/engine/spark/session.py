"""The Spark session that holds tables, and what its failures mean, each in one sentence."""

from __future__ import annotations

import math
import os
import re
import socket
import sys
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any

from incrowd.engine.java import require_java
from incrowd.engine.table import TableError
from incrowd.errors import IncrowdError, ParameterError

_REACH_SECONDS = 5.0
_PATIENCE, _USUAL_SECONDS = "spark.incrowd.patience", 60.0
# Spark warns of pandas, which it asks for and which is not used.
warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)

_OURS = {
    "spark.app.name": "incrowd",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.maxResultSize": "0",  # the bound of distinct tuples is the limit
    "spark.sql.session.timeZone": "UTC",
}
_JAVA_CLASS = re.compile(r"^:\s*(?:[\w$]+\.)*[\w$]+(?::\s+|$)")
# What a failure says somewhere, and what it means. The first that fits is told.
_MEANINGS = {
    "No space left on device": (
        "a disk of the cluster is full. Make room in spark.local.dir of its workers, or add some"
    ),
    "removed our application": (
        "the master has given the application up: its executors keep failing. Look at their logs"
    ),
    "ExecutorLostFailure": (
        "an executor was lost, and its work with it, too often. Look at the logs of the workers: "
        "mostly they had too little memory (spark.executor.memory)"
    ),
    "SPARK_JOB_CANCELLED": "all executors were lost, and none came back. Are the workers running?",
    "stopped SparkContext": "the Spark session has ended. Did the master end it?",
    "SparkContext was shut down": "the Spark session was ended while it worked",
    "OutOfMemoryError": (
        "a Java process ran out of memory. Give the driver or the executors more: "
        "spark.driver.memory, spark.executor.memory"
    ),
    "No module named 'incrowd": (
        "the executors cannot import incrowd. Install it there, in the Python that PYSPARK_PYTHON "
        "names"
    ),
    "ModuleNotFoundError": (
        "the Python of the executors lacks a package that incrowd needs. Install incrowd there, "
        "in the Python that PYSPARK_PYTHON names"
    ),
    "PYTHON_VERSION_MISMATCH": (
        "the executors run another version of Python than this machine. Set PYSPARK_PYTHON"
    ),
    "PATH_NOT_FOUND": "there is no such path for the cluster",
    "TABLE_OR_VIEW_NOT_FOUND": "it is no path, and there is no such table in the catalog",
    "CSV header does not conform": "its files have different headers",
    "MALFORMED_RECORD_IN_PARSING": (
        "a row has more or fewer fields than the header. Is a delimiter unquoted, or the wrong one?"
    ),
}


def start_session(master: str | None = None, settings: Mapping[str, str] | None = None) -> Any:
    """Return the active session, or a new one at a master (by default on all local cores).

    The setting ``spark.incrowd.patience`` is how many seconds a cluster may be without any
    executor, at the start or while it works, before it is given up; 60 by default.
    """
    from pyspark.sql import SparkSession as session_kind  # noqa: N813 - it has no other name

    active = session_kind.getActiveSession()
    if active is not None:
        if master is not None and active.conf.get("spark.master", master) != master:
            raise TableError(
                f"A Spark session is active at '{active.conf.get('spark.master')}'. Stop it, or "
                f"drop the master '{master}'."
            )
        return active
    request = dict(settings or {})
    seconds = parse_patience(request.get(_PATIENCE))
    require_java()
    place = master or request.get("spark.master") or os.environ.get("SPARK_MASTER") or "local[*]"
    _refuse_unreachable_master(place)
    configuration = {**_OURS, "spark.master": place}
    if place.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        configuration["spark.ui.enabled"] = "false"
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        configuration["spark.driver.memory"] = f"{_compute_driver_memory()}m"
    configuration |= request
    if "spark.pyspark.python" in request:  # which only Spark's own launcher reads
        os.environ["PYSPARK_PYTHON"] = request["spark.pyspark.python"]
    builder = session_kind.builder
    for name, value in configuration.items():
        builder = builder.config(name, value)
    with explain_failures("start Spark"), _silence_java_log(loud="spark.log.level" in request):
        session = builder.getOrCreate()
        if "spark.log.level" not in request:
            session.sparkContext.setLogLevel("OFF")
    if place.startswith("spark://"):
        _await_worker(session, place, seconds)
    return session


@contextmanager
def explain_failures(action: str) -> Iterator[None]:
    """Turn whatever fails on Spark into one sentence: what could not be done, and why.

    ``action`` follows the words 'Spark could not', or is the beginning of a sentence itself.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        with _watch_executors():
            yield
    except IncrowdError:
        raise
    except (PySparkException, Py4JError, ConnectionError, EOFError, ValueError) as error:
        text = action if action[0].isupper() else f"Spark could not {action}"
        raise TableError(f"{text}: {describe_failure(error)}.") from error


@contextmanager
def _watch_executors() -> Iterator[None]:
    """Watch that a working cluster has executors: without any, Spark would wait for ever."""
    context = _get_context()
    if context is None or not str(context.master).startswith("spark://"):
        yield
        return
    is_done, seconds = Event(), parse_patience(context._conf.get(_PATIENCE))

    def watch() -> None:
        alive = time.monotonic()
        while not is_done.wait(1.0):
            try:
                if context._jsc.sc().getExecutorMemoryStatus().size() > 1:
                    alive = time.monotonic()
                elif time.monotonic() - alive > seconds:
                    context.cancelAllJobs()  # again and again: a job may be about to begin
            except Exception:  # noqa: BLE001 - the session has ended, and whoever waits is told
                return

    watcher = Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        is_done.set()


def parse_patience(setting: str | None) -> float:
    """Return how many seconds a cluster may be without executors, by a setting, if any."""
    try:
        seconds = float(_USUAL_SECONDS if setting is None else setting)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < math.inf:
        raise ParameterError(_PATIENCE, "be a number of seconds above 0", setting)
    return seconds


def _get_context() -> Any:
    """Return the Spark context of this process, if it has one."""
    from pyspark import SparkContext

    return SparkContext._active_spark_context


def describe_failure(error: BaseException) -> str:
    """Return why something failed on Spark, in words."""
    text = str(error)
    for sign, meaning in _MEANINGS.items():
        if sign in text:
            return meaning
    if isinstance(error, ConnectionError | EOFError) or "Py4JNetworkError" in type(error).__name__:
        return "the Java process of the driver has ended. Had it too little memory?"
    # Of an exception in Java: ': its.class: what it says', after the call that failed.
    lines = [_JAVA_CLASS.sub("", line.strip()) for line in text.splitlines() if line.strip()]
    reason = next((line for line in lines if not line.startswith("An error occurred")), "")
    return (reason or type(error).__name__)[:300].rstrip(".")


def _refuse_unreachable_master(master: str) -> None:
    """Refuse a master that answers nobody at once; Spark itself would try for minutes."""
    if not master.startswith("spark://"):
        return
    troubles = []
    for place in master.removeprefix("spark://").split(","):
        host, _, port = place.rpartition(":")
        try:
            with socket.create_connection((host, int(port)), timeout=_REACH_SECONDS):
                return
        except (OSError, ValueError) as error:
            troubles.append(getattr(error, "strerror", None) or str(error))
    raise TableError(
        f"Spark master '{master}': not reachable ({troubles[0]}). Start it, or correct the address."
    )


def _await_worker(session: Any, master: str, seconds: float) -> None:
    """Wait for the first executor; without any, Spark itself would wait for ever."""
    end = time.monotonic() + seconds
    status = session.sparkContext._jsc.sc()
    while status.getExecutorMemoryStatus().size() < 2:  # one of them is the driver
        if time.monotonic() > end:
            session.stop()
            raise TableError(
                f"Spark master '{master}': no executor within {seconds:g} seconds. Start workers "
                "with enough free memory and cores."
            )
        time.sleep(0.1)


def _compute_driver_memory() -> int:
    """Return half the memory of this machine in megabytes, from 1 to 16 GB."""
    try:
        megabytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
    except (OSError, ValueError, AttributeError):  # elsewhere it is not told
        megabytes = 2048
    return max(1024, min(megabytes // 2, 16_384))


@contextmanager
def _silence_java_log(*, loud: bool) -> Iterator[None]:
    """Let the Java process that starts now write its log nowhere, unless it was asked for."""
    if loud:
        yield
        return
    sys.stderr.flush()
    saved, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        os.close(nowhere)
