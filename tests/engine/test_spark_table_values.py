"""Values on Spark are the same where Spark takes them for the same; no row is lost or doubled."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest

from incrowd.arrays import Codes
from incrowd.engine.spark.cells import add_codes
from incrowd.engine.spark.engine import SparkEngine
from incrowd.engine.spark.tasks import ClassTask, TaskRandomness
from incrowd.engine.table import ChunkResult, ClassChunk
from incrowd.errors import IncrowdError, ParameterError
from incrowd.privacy.randomness import Randomness, SeededRandomness

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture
def in_berlin(spark_session: SparkSession) -> Iterator[SparkSession]:
    """A session that shows times as in Berlin, where some hours do not exist."""
    spark_session.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    yield spark_session
    spark_session.conf.set("spark.sql.session.timeZone", "UTC")


def _coded(values: Sequence[object]) -> Codes:
    return np.arange(len(values), dtype=np.int32)


@pytest.mark.parametrize("kind", ["double", "float"])
def test_a_person_whose_id_is_zero_with_either_sign_has_one_row(
    spark_session: SparkSession, kind: str
) -> None:
    rows = [(0.0, 1), (-0.0, 2), (0.0, 3), (-0.0, 4), (1.0, 5)]
    table = SparkEngine().open(spark_session.createDataFrame(rows, f"id {kind}, v int"))
    for seed in range(8):
        assert table.choose_row_per_person("id", SeededRandomness(seed)).rows() == 2


def test_text_is_its_characters_whatever_its_collation(spark_session: SparkSession) -> None:
    frame = spark_session.sql(
        "select c collate utf8_lcase as c, n from values ('a', 1), ('A', 2), ('b', 3) as t(c, n)"
    )
    table = SparkEngine().open(frame)
    assert sorted(map(str, table.values("c"))) == ["A", "a", "b"]
    assert table.choose_row_per_person("c", SeededRandomness(1)).rows() == 3
    assert add_codes(table, ["c"], {"c": _coded}).count() == 3


@pytest.mark.usefixtures("spark_session")
def test_a_column_of_nothing_loses_no_row() -> None:
    frame = pl.DataFrame({"c": pl.Series([None] * 9, dtype=pl.Null), "n": range(9)})
    table = SparkEngine().open(frame)
    assert add_codes(table, ["c"], {"c": _coded}).count() == 9


def test_times_without_a_zone_are_coded_in_a_session_with_another(
    in_berlin: SparkSession,
) -> None:
    times = [dt.datetime(2024, 3, 31, 2, 30), dt.datetime(2024, 3, 31, 3, 30), None]
    frame = in_berlin.createDataFrame([(time,) for time in times], "c timestamp_ntz")
    coded = add_codes(SparkEngine().open(frame), ["c"], {"c": _coded})
    assert sorted(row["k0"] for row in coded.select("k0").collect()) == [0, 1, 2]


def test_rows_that_differ_in_an_interval_have_an_order(spark_session: SparkSession) -> None:
    """Else which of them is chosen would differ from one evaluation to the next."""
    frame = spark_session.range(6).selectExpr("'p' as id", "make_dt_interval(0, 0, 0, id) as d")
    chosen = set()
    for parts in (1, 2, 3, 6):
        table = SparkEngine().open(frame.repartition(parts, "d"))
        result = table.choose_row_per_person("id", SeededRandomness(3)).to_frame().collect()
        chosen.add(result[0]["d"])
    assert len(chosen) == 1


def test_names_that_differ_in_case_alone_are_two_columns(spark_session: SparkSession) -> None:
    table = SparkEngine().open(
        spark_session.createDataFrame([(1, 2)], "x int, y int").toDF("a", "A")
    )
    assert [list(table.gather_columns([name]).values(name)) for name in ("a", "A")] == [[1], [2]]


def _refusing(_chunk: ClassChunk, _bits: Randomness) -> ChunkResult:
    raise ParameterError("precision", "be above 0", 0)


def test_an_error_of_a_task_arrives_in_its_own_words() -> None:
    import pickle

    import pyarrow as pa

    task = ClassTask(_refusing, (), 0, TaskRandomness(1))
    batch = pa.RecordBatch.from_arrays([pa.array([0, 0], pa.int64())], names=["m"])
    (message_batch,) = list(task(iter([batch])))
    error = pickle.loads(message_batch.column("told")[0].as_py())
    assert isinstance(error, IncrowdError)
    assert "'precision' parameter must be above 0" in str(error)
