"""Tables of counts of a table on Spark: the driver draws, so a seed gives the same bytes."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from pyspark.sql import SparkSession
from support.tables import BUDGET, COLUMNS, TABLES, make_residents
from support.unjudged import publish_unjudged

import incrowd as ic
from incrowd.engine.spark.engine import SparkEngine
from incrowd.privacy.randomness import SeededRandomness
from incrowd.spec.file import parse_spec

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("few", [False, True], ids=["here", "on the cluster"])
def test_the_same_bytes_as_on_this_machine(
    few: bool, spark_session: SparkSession, tmp_path: Path
) -> None:
    """Also where distinct tuples stay on the cluster, and every table is counted there."""
    residents = make_residents(800).drop("id")
    income = [None if at % 30 == 0 else str(at * 97 % 40_000) for at in range(800)]
    residents = residents.with_columns(pl.Series("income", income))
    summed = "{columns: [region], sum: {column: income, bounds: [0, 30000], step: 10}}]"
    release = f"{BUDGET}, {TABLES[:-1]}, {summed}, missing: excluded"
    spec = parse_spec(f"{COLUMNS}  income: {{role: noisy}}\nrelease: {{{release}}}\n")
    spec = spec.with_entry(("columns", "id"), None)
    engine = SparkEngine(most_tuples=150) if few else SparkEngine()
    publish_unjudged(residents, spec, output=tmp_path / "local", bits=SeededRandomness(5))
    publish_unjudged(
        spark_session.createDataFrame(residents.to_pandas()), spec, output=tmp_path / "spark",
        bits=SeededRandomness(5), engine=engine,
    )  # fmt: skip
    for path in (tmp_path / "local").rglob("*"):
        if path.is_file():
            other = tmp_path / "spark" / path.relative_to(tmp_path / "local")
            assert other.read_bytes() == path.read_bytes()
    assert [finding.code for finding in ic.verify(tmp_path / "spark")] == ["RELEASE_SEEDED"]
