"""Synthetic rows of a table on Spark: the driver draws, so a seed gives the same bytes."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from support.synthetic import BUDGET, RULES, make_patients, make_spec
from support.unjudged import publish_unjudged

import incrowd as ic
from incrowd.engine.spark.engine import SparkEngine
from incrowd.privacy.randomness import SeededRandomness

pytestmark = pytest.mark.spark


def _list_files(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize("few", [False, True], ids=["here", "on the cluster"])
def test_the_same_bytes_as_on_this_machine(
    few: bool, spark_session: SparkSession, tmp_path: Path
) -> None:
    """Also where distinct tuples stay on the cluster, and every small table is counted there."""
    table = make_patients(800).drop("patient")
    spec = make_spec(f"{BUDGET}, values: drawn, {RULES}")
    for name in ("weight", "region", "diagnosis"):
        spec = spec.with_entry(("columns", name), {"role": "drop"})
    engine = SparkEngine(most_tuples=400) if few else SparkEngine()
    publish_unjudged(table, spec, output=tmp_path / "local", bits=SeededRandomness(5))
    publish_unjudged(
        spark_session.createDataFrame(table.to_pandas()), spec, output=tmp_path / "spark",
        bits=SeededRandomness(5), engine=engine,
    )  # fmt: skip
    assert _list_files(tmp_path / "spark") == _list_files(tmp_path / "local")
    assert [finding.code for finding in ic.verify(tmp_path / "spark")] == ["RELEASE_SEEDED"]
