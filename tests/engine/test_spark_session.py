"""What failures of Spark mean, by the texts that Spark itself says."""

from __future__ import annotations

import pytest

from incrowd.engine.spark.session import describe_failure, parse_patience
from incrowd.errors import ParameterError

CALLED = "An error occurred while calling o46.collectToPython.\n: "
ABORTED = f"{CALLED}org.apache.spark.SparkException: Job aborted due to stage failure: "
LOST = (
    "Task 1 in stage 0.0 failed 4 times, most recent failure: Lost task 1.3 in stage 0.0 (TID 9) "
)
TRACE = "\n\tat org.apache.spark.scheduler.DAGScheduler.failJob(DAGScheduler.scala:2935)\n"


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        (
            f"{ABORTED}{LOST}(127.0.0.1 executor 1): java.io.IOException: No space left on device",
            "a disk of the cluster is full",
        ),
        (
            f"{CALLED}org.apache.spark.SparkException: [SPARK_JOB_CANCELLED] Job 0 cancelled as "
            "part of cancellation of all jobs SQLSTATE: XXKDA",
            "all executors were lost, and none came back",
        ),
        (
            "An error occurred while calling None.org.apache.spark.sql.classic.SparkSession.\n"
            ": java.lang.IllegalStateException: Cannot call methods on a stopped SparkContext.\n"
            "This stopped SparkContext was created at:",
            "the Spark session has ended",
        ),
        (
            f"{ABORTED}Master removed our application: FAILED",
            "the master has given the application up",
        ),
        (
            f"{ABORTED}{LOST}(127.0.0.1 executor 3): ExecutorLostFailure (executor 3 exited caused "
            "by one of the running tasks) Reason: Command exited with code 137",
            "an executor was lost, and its work with it, too often",
        ),
        (
            f"{ABORTED}{LOST}(127.0.0.1 executor 3): org.apache.spark.api.python.PythonException: "
            "ModuleNotFoundError: No module named 'incrowd'",
            "the executors cannot import incrowd",
        ),
        (
            f"{ABORTED}{LOST}(127.0.0.1 executor 3): org.apache.spark.api.python.PythonException: "
            "ModuleNotFoundError: No module named 'pyarrow'",
            "the Python of the executors lacks a package",
        ),
        (
            f"{ABORTED}{LOST}(127.0.0.1 executor 3): java.lang.OutOfMemoryError: Java heap space",
            "a Java process ran out of memory",
        ),
        (
            f"{CALLED}org.apache.spark.SparkException: Job 3 cancelled because SparkContext was "
            "shut down",
            "the Spark session was ended while it worked",
        ),
    ],
)  # fmt: skip
def test_what_spark_says_is_told_in_words(text: str, meaning: str) -> None:
    failure = describe_failure(RuntimeError(text + TRACE))
    assert failure.startswith(meaning)
    assert "\n" not in failure


def test_what_nobody_foresaw_is_told_in_the_words_of_spark() -> None:
    """Neither the call nor the place in Spark's own code says anything to a user."""
    failure = describe_failure(
        RuntimeError(f"{CALLED}org.apache.spark.SparkException: The moon is full.{TRACE}")
    )
    assert failure == "The moon is full"
    assert (
        describe_failure(RuntimeError("[MOON_FULL] Not tonight.\n== SQL =="))
        == "[MOON_FULL] Not tonight"
    )
    assert describe_failure(RuntimeError("")) == "RuntimeError"


@pytest.mark.parametrize("error", [ConnectionRefusedError("x"), EOFError()])
def test_a_driver_without_its_java(error: Exception) -> None:
    assert describe_failure(error).startswith("the Java process of the driver has ended")


def test_patience_is_a_number_of_seconds() -> None:
    assert parse_patience(None) == 60
    assert parse_patience("2.5") == 2.5
    for wrong in ("0", "-1", "nan", "inf", "soon", ""):
        with pytest.raises(ParameterError, match="patience' parameter must be a number of seconds"):
            parse_patience(wrong)
