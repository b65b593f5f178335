"""Releases made on a cluster of which a worker dies: as if it had not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from support.cli import run_successfully
from support.cluster import SparkCluster
from support.spark_runs import (
    WAIT,
    ExecutorLogs,
    has_repeated_task,
    make_ledger,
    restore_workers,
    start_release,
    wait_until,
)

from incrowd.release.verify import read_certificate, verify

pytestmark = pytest.mark.spark

BLOCK, BLOCKS = 500_000, 20  # ten million rows, of which each block has the same
QUASI = ["region", "age", "sex", "job"]
GROUP = 250_000  # rows of a group in the file
SMALL_TASKS = {
    "spark.sql.files.maxPartitionBytes": "1m", "spark.sql.files.openCostInBytes": "0",
    # of so many rows it pays to compile what is done with them
    "spark.sql.codegen.factoryMode": "FALLBACK", "spark.sql.codegen.wholeStage": "true",
}  # fmt: skip
CLUSTER_SPEC = """
table: people.parquet
columns:
  region: {role: quasi, hierarchy: flat}
  age: {role: quasi, hierarchy: {intervals: {from: 0, to: 100, widths: [5, 20]}}}
  sex: {role: quasi, hierarchy: flat}
  job: {role: quasi, hierarchy: flat}
  source: {role: drop}
release: {method: safe, epsilon: 1, delta: 1.0e-9, levels: {region: 0, age: 1, sex: 0, job: 0}}
"""
NOISY_SPEC = """
table: noisy.parquet
columns:
  group: {role: quasi, hierarchy: flat}
  x: {role: noisy, bounds: [0, 1000]}
release: {method: k-epsilon, k: 20, epsilon: 2}
"""


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a spec and its table of ten million rows."""
    folder, draw = tmp_path_factory.mktemp("people"), np.random.default_rng(1)

    def skewed(values: int) -> pl.Series:
        return pl.Series((draw.random(BLOCK) ** 2 * values).astype(np.int16))

    block = pl.select(
        region=skewed(20), age=skewed(20) * 5, sex=skewed(2), job=skewed(12), source=skewed(3),
    )  # fmt: skip
    table = pl.concat([block] * BLOCKS)
    table.write_parquet(folder / "people.parquet", row_group_size=GROUP, compression="lz4")
    (folder / "spec.yaml").write_text(CLUSTER_SPEC)
    return folder


def low(column: str) -> pl.Expr:
    """The number that a label begins with: 5 of '5-9'."""
    return pl.col(column).cast(pl.String).str.extract(r"(\d+)").cast(pl.Int64)


def test_a_worker_dies_while_ten_million_rows_are_counted(
    spark_cluster: SparkCluster, people: Path, tmp_path: Path
) -> None:
    """The release holds, is booked once, and no count of it is off by more than noise."""
    book, out = make_ledger(tmp_path / "ledger"), tmp_path / "out"
    watched = ExecutorLogs(spark_cluster)
    with (
        restore_workers(spark_cluster),
        start_release(
            spark_cluster, people / "spec.yaml", out, "--ledger", str(book.path),
            settings=SMALL_TASKS,
        ) as process,
    ):  # fmt: skip
        left = watched.kill_busy_worker(process, after=3 * BLOCKS)  # which no two passes have
        assert not book.spends()  # so it was still being counted
        _, complained = process.communicate(timeout=WAIT)
    assert process.returncode == 0, complained
    assert [has_repeated_task(watched.read_log(at)) for at in left] == [True]
    assert verify(out) == []
    assert len(book.spends()) == 1
    assert (
        run_successfully("ledger", "show", str(book.path)).count("(1, 1e-09)  unplanned release")
        == 1
    )
    certified = read_certificate(out).parameters
    reach, least = float(certified["r"]), float(certified["k"])
    table = pl.scan_parquet(people / "people.parquet")
    true = table.group_by(*map(low, QUASI)).len("true").collect()
    data = pl.scan_parquet(out / "data.parquet")
    result = data.group_by(*map(low, QUASI)).len("shown").collect()
    both = true.join(result, on=QUASI, how="full", coalesce=True)
    assert both["true"].null_count() == 0
    hidden = both.filter(pl.col("shown").is_null())  # so many rows are shown whatever the noise
    assert (hidden["true"] < 2 * reach + least).all()
    off = both.drop_nulls().select(pl.col("true").cast(int) - pl.col("shown").cast(int))
    assert 0 < np.abs(off.to_series().to_numpy()).max() <= reach


def test_a_worker_dies_while_noise_is_drawn(spark_cluster: SparkCluster, tmp_path: Path) -> None:
    """The release holds, and each row of the table is there once, with noise."""
    draw = np.random.default_rng(2)
    rows = 200_000
    table = pl.DataFrame({
        "group": [f"g{at % 8}" for at in range(rows)],
        "x": draw.integers(0, 1000, rows),
    })  # fmt: skip
    table.write_parquet(tmp_path / "noisy.parquet", row_group_size=10_000)
    (tmp_path / "spec.yaml").write_text(NOISY_SPEC)
    out, watched = tmp_path / "out", ExecutorLogs(spark_cluster)
    with (
        restore_workers(spark_cluster),
        start_release(spark_cluster, tmp_path / "spec.yaml", out) as process,
    ):
        wait_until(
            lambda: any(map(spark_cluster.has_python_worker, spark_cluster.list_live_workers())),
            process,
        )
        drawing = next(filter(spark_cluster.has_python_worker, spark_cluster.list_live_workers()))
        spark_cluster.kill_worker(drawing)
        left = spark_cluster.list_live_workers()
        _, complained = process.communicate(timeout=WAIT)
    assert process.returncode == 0, complained
    assert [has_repeated_task(watched.read_log(at)) for at in left] == [True]
    assert verify(out) == []
    data = pl.read_parquet(out / "data.parquet")
    assert (
        data["group"]
        .value_counts(sort=True)
        .sort("group")
        .equals(table["group"].value_counts(sort=True).sort("group"))
    )
    changed = data.group_by("group").agg(pl.col("x").sort()).sort("group")["x"].to_list()
    before = table.group_by("group").agg(pl.col("x").sort()).sort("group")["x"].to_list()
    assert all(first != other for first, other in zip(changed, before, strict=True))
