"""Releases on a Spark cluster, beside the same pipelines written by hand in Spark SQL.

    PYTHONPATH=src python benchmarks/spark.py [--rows 1000000 10000000] [--workers 1 2]
        [--ways counts k-anonymity] [--repeat 3] [--cache DIR] [--output FILE] [--quick]

A master and workers of one core each are started on the loopback address. For each number of
workers and of rows, one session runs every release ours and by hand, in turn, after one run of each
that is not timed; the medians are told, of seconds on the clock and of seconds of processors, which
other work of the machine changes less. Both write the released rows as Parquet. By hand means no
more than that: recode, group, draw with ``rand()``, drop what is rare, join back where rows differ
(a plain join: no hint to broadcast, no grouping of equal rows).
A search is not written by hand: the levels that ours chose are given to it. ``search`` is told
twice: ``search`` counts by hand at these levels at once, as if they were known; ``search-fine``
counts tuples of values first, as whoever looks for levels has to, and rolls these up. Ours is the
whole of `publish`: it also hashes all columns to recognize the table, draws from bits that nobody
can know, evaluates, attacks, certifies and reports. Tables of people who do not exist are made
once, in the folder of ``--cache``: seven columns, one file for each two million rows.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any

import numpy as np

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

BLOCK = 2_000_000  # rows of a file
MEMORY = 3  # gigabytes of each worker, and of the driver
RACES, PARTIES = ["White", "Hispanic", "Black", "Asian", "Other"], ["D", "R", "N"]
WIDTHS = [1, 2, 4, 8, 16]
FIRST, LAST = 1900, 2026
COLUMNS = f"""
columns:
  id: {{role: identifier}}
  zip: {{role: quasi, hierarchy: {{mask: {{length: 5}}}}}}
  sex: {{role: quasi, hierarchy: {{groups: {{Person: [female, male]}}}}}}
  birth_year: {{role: quasi, hierarchy: {{intervals: {{from: {FIRST}, to: {LAST}, widths: {WIDTHS[1:]}}}}}}}
  race: {{role: quasi, hierarchy: {{flat: {{values: [{", ".join(RACES)}]}}}}}}
  party: {{role: PARTY}}
  height: {{role: HEIGHT}}
"""  # noqa: E501 - a line of a spec
FLAT = "quasi, hierarchy: {flat: {values: [D, R, N]}}"
LEVELS = "levels: {zip: 2, sex: 0, birth_year: 3, race: 0, party: 0}"
K, BETA, EPSILON, NOISE_EPSILON = 14, 0.2537, 1.0, 2.0
DROP, NOISY = "drop", "noisy, precision: 0.1, bounds: [100, 230]"
QUASI = ["zip", "sex", "birth_year", "race"]


@dataclass(frozen=True)
class SparkWay:
    """A release: what its spec says, and the pipeline by hand that it stands beside."""

    release: str
    by_hand: Callable[[DataFrame, dict[str, int], int], DataFrame]
    party: str = FLAT
    height: str = DROP

    @property
    def spec(self) -> str:
        """The whole spec."""
        columns = COLUMNS.replace("PARTY", self.party).replace("HEIGHT", self.height)
        return f"{columns}release: {{{self.release}}}\n"


@dataclass
class RunMeasurements:
    """What was measured of one way on one table: seconds of each run, and of each step of ours."""

    workers: int
    rows: int
    way: str
    ours: list[float] = field(default_factory=list)
    by_hand: list[float] = field(default_factory=list)
    ours_cpu: list[float] = field(default_factory=list)
    by_hand_cpu: list[float] = field(default_factory=list)
    released: tuple[int, int] = (0, 0)  # rows
    steps: dict[str, list[float]] = field(default_factory=dict)


def write_table(folder: Path, rows: int) -> None:
    """Write a table of people who do not exist, file by file."""
    import polars as pl

    draft = folder.with_suffix(".draft")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    draw = np.random.default_rng(0)
    zips = pl.Series([f"{z:05d}" for z in draw.choice(np.arange(32004, 34998), 900, replace=False)])
    crowded = 1 / np.arange(3, 903) ** 0.8  # populations follow a power law
    ages = 1 / (1 + np.exp((np.arange(18, 101) - 74) / 6.5))
    shares = {len(zips): crowded, 83: ages, 5: np.array([0.62, 0.18, 0.14, 0.025, 0.035])}

    def places(n: int, width: int) -> Any:
        weights = shares.get(width, np.ones(width))
        ends = np.cumsum(weights / weights.sum())[:-1]
        return np.searchsorted(ends, draw.random(n)).astype(np.uint32)

    for number, start in enumerate(range(0, rows, BLOCK)):
        n = min(BLOCK, rows - start)
        male, age = places(n, 2), places(n, 83)
        tall = np.where(male, 175.7, 162.1) + 7 * draw.standard_normal(n)
        pl.DataFrame({
            "id": draw.integers(0, 2**40, n),
            "zip": zips.gather(places(n, len(zips))),
            "sex": pl.Series(["female", "male"]).gather(male),
            "birth_year": (LAST - 18 - age.astype(np.int64)).astype(np.int16),
            "race": pl.Series(RACES).gather(places(n, 5)),
            "party": pl.Series(PARTIES).gather(places(n, 3)),
            "height": tall.clip(120, 220).round(1),
        }).write_parquet(draft / f"part-{number:03d}.parquet", row_group_size=500_000)  # fmt: skip
    draft.rename(folder)


def recode_columns(levels: dict[str, int]) -> dict[str, Column]:
    """Columns at levels of their hierarchies, as one would write them."""
    from pyspark.sql import functions as F  # noqa: N812

    def shown(name: str, level: int) -> Column:
        if name == "zip" and 0 < level < 5:
            return F.concat(F.substring("zip", 1, 5 - level), F.lit("*" * level))
        if name == "birth_year" and 0 < level < len(WIDTHS):
            width = WIDTHS[level]
            low = F.floor((F.col(name) - FIRST) / width) * width + FIRST
            return F.concat(low.cast("string"), F.lit("-"), (low + width - 1).cast("string"))
        return F.col(name) if level == 0 else F.lit("*")

    return {name: shown(name, level) for name, level in levels.items()}


def repeat_cells(cells: DataFrame, columns: list[str]) -> DataFrame:
    """Cells as rows, as many as they count."""
    from pyspark.sql import functions as F  # noqa: N812

    rows = cells.withColumn("row", F.explode(F.sequence(F.lit(1), F.col("n").cast("int"))))
    return rows.select(*columns)


def draw_laplace(scale: Column | float) -> Column:
    """Noise from numbers that Spark draws."""
    from pyspark.sql import functions as F  # noqa: N812

    coin = F.rand() - 0.5
    spread = scale if not isinstance(scale, float) else F.lit(scale)
    return -spread * F.signum(coin) * F.log(1 - 2 * F.abs(coin))


def publish_sample(frame: DataFrame, levels: dict[str, int], least: int) -> DataFrame:
    """Draw rows, recode, count, keep what is large enough, repeat."""
    from pyspark.sql import functions as F  # noqa: N812

    sample = frame.where(F.rand() < BETA).select(*_alias_columns(recode_columns(levels)))
    cells = sample.groupBy(*levels).agg(F.count(F.lit(1)).alias("n")).where(F.col("n") >= least)
    return repeat_cells(cells, list(levels))


def publish_counts(frame: DataFrame, levels: dict[str, int], least: int) -> DataFrame:
    """Recode, count, add noise, keep what is large enough, repeat."""
    from pyspark.sql import functions as F  # noqa: N812

    cells = frame.select(*_alias_columns(recode_columns(levels))).groupBy(*levels).count()
    noisy = cells.withColumn("n", F.round(F.col("count") + draw_laplace(1 / EPSILON)))
    return repeat_cells(noisy.where(F.col("n") >= least), list(levels))


def publish_searched(frame: DataFrame, levels: dict[str, int], least: int) -> DataFrame:
    """Count tuples of values, from which levels are chosen; recode, add up, and so on."""
    from pyspark.sql import functions as F  # noqa: N812

    place = f"{tempfile.mkdtemp(prefix='spark-bench-')}/fine"
    frame.groupBy(*levels).count().write.parquet(place)  # to be looked at for levels
    fine = frame.sparkSession.read.parquet(place)
    cells = fine.select(*_alias_columns(recode_columns(levels)), "count").groupBy(*levels)
    noisy = cells.agg(F.sum("count").alias("count"))
    noisy = noisy.withColumn("n", F.round(F.col("count") + draw_laplace(1 / EPSILON)))
    return repeat_cells(noisy.where(F.col("n") >= least), list(levels))


def publish_k_anonymous(frame: DataFrame, levels: dict[str, int], least: int) -> DataFrame:
    """Recode, count classes, keep the rows of those that are large enough."""
    from pyspark.sql import functions as F  # noqa: N812

    rows = frame.select(*_alias_columns(recode_columns(levels)), "party")
    classes = rows.groupBy(*levels).count().where(F.col("count") >= least)
    return rows.join(classes, list(levels), "left_semi")


def publish_noisy(frame: DataFrame, levels: dict[str, int], least: int) -> DataFrame:
    """Return the same with noise on the heights, as wide as those of the class."""
    from pyspark.sql import functions as F  # noqa: N812

    rows = frame.select(*_alias_columns(recode_columns(levels)), "party", "height")
    width = F.max("height") - F.min("height")
    classes = rows.groupBy(*levels).agg(F.count(F.lit(1)).alias("n"), width.alias("w"))
    joined = rows.join(classes.where(F.col("n") >= least), list(levels))
    height = F.round(F.col("height") + draw_laplace(F.col("w") / NOISE_EPSILON), 1)
    return joined.select(*levels, "party", height.alias("height"))


def _alias_columns(columns: dict[str, Column]) -> Iterator[Column]:
    return (column.alias(name) for name, column in columns.items())


CLASSES = "k: 10, algorithm: ola"
SEARCH = f"epsilon: {EPSILON}, delta: 1.0e-6, scheme: search"
WAYS = {
    "sample": SparkWay(f"k: {K}, beta: {BETA}, epsilon: {EPSILON}, {LEVELS}", publish_sample),
    "counts": SparkWay(
        f"epsilon: {EPSILON}, delta: 1.0e-6, draw: counts, {LEVELS}", publish_counts
    ),
    "search": SparkWay(SEARCH, publish_counts),
    "search-fine": SparkWay(SEARCH, publish_searched),
    "k-anonymity": SparkWay(
        f"method: k-anonymity, {CLASSES}", publish_k_anonymous, party="sensitive"
    ),
    "k-epsilon": SparkWay(
        f"method: k-epsilon, epsilon: {NOISE_EPSILON}, {CLASSES}",
        publish_noisy,
        party="sensitive",
        height=NOISY,
    ),
}


class StepTimer:
    """How long each step takes, from its beginning to that of the next."""

    def __init__(self) -> None:
        self._at: list[tuple[str, float]] = [("open", time.perf_counter())]

    def __call__(self, name: str) -> None:
        """Call a step begins."""
        self._at.append((name, time.perf_counter()))

    def sum_seconds(self) -> dict[str, float]:
        """Return the seconds of each, when the last has ended."""
        ends = [*(at for _, at in self._at[1:]), time.perf_counter()]
        result: dict[str, float] = {}
        for (name, begun), end in zip(self._at, ends, strict=True):
            result[name] = result.get(name, 0.0) + end - begun
        return result


class ProcessorClock:
    """Seconds of processors that the cluster and this process have used, with all they started.

    What a process had used when it was last seen stays counted after it has ended: Spark ends
    idle workers in Python, and nobody inherits their time. So it is looked at every half second.
    """

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str], int] = {}
        self._lock = Lock()
        Thread(target=self._poll_usage, daemon=True).start()

    def _poll_usage(self) -> None:
        while True:
            self.measure_used()
            time.sleep(0.5)

    def measure_used(self) -> float:
        """Return the seconds so far; they never become fewer."""
        stats = {}
        for path in Path("/proc").glob("[0-9]*/stat"):
            with suppress(OSError):
                stats[path.parent.name] = path.read_text().rpartition(")")[2].split()
        # The cluster's processes and this one were started by one process, each with a session of
        # its own, in which all stay that they start.
        ours = {pid for pid, parts in stats.items() if int(parts[1]) == os.getppid()}
        with self._lock:
            for pid, parts in stats.items():
                if parts[3] in ours:
                    self._seen[pid, parts[19]] = int(parts[11]) + int(parts[12])
            return sum(self._seen.values()) / os.sysconf("SC_CLK_TCK")


@contextmanager
def measure_time(
    processors: ProcessorClock, seconds: list[float], cpu: list[float]
) -> Iterator[None]:
    """Add how long something takes."""
    used, start = processors.measure_used(), time.perf_counter()
    yield
    seconds.append(time.perf_counter() - start)
    cpu.append(processors.measure_used() - used)


def start_session(master: str) -> tuple[SparkSession, float]:
    """Return a session at a master, and how long it took to start and to run a first query."""
    from incrowd.engine.source import spark_engine

    start = time.perf_counter()
    settings = {
        "spark.driver.host": "127.0.0.1", "spark.driver.memory": f"{MEMORY}g",
        "spark.executor.memory": f"{MEMORY}g", "spark.ui.enabled": "false",
    }  # fmt: skip
    engine: Any = spark_engine(master, settings)
    spark_session: SparkSession = engine.session
    spark_session.range(1000).count()
    return spark_session, time.perf_counter() - start


def measure_way(
    spark: SparkSession, path: Path, run: RunMeasurements, repeat: int, processors: ProcessorClock
) -> None:
    """Time one way, ours and by hand in turn."""
    from incrowd.engine.source import spark_engine
    from incrowd.publication import publish
    from incrowd.spec.file import parse_spec

    way = WAYS[run.way]
    for _ in range(repeat):
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with measure_time(processors, run.ours, run.ours_cpu):
                steps = StepTimer()
                release = publish(
                    path, parse_spec(way.spec),
                    output=Path(folder) / "ours", engine=spark_engine(), step=steps,
                )  # fmt: skip
                for step, seconds in steps.sum_seconds().items():
                    run.steps.setdefault(step, []).append(seconds)
            table = release.certificate.table
            levels = {
                column: column_scheme.level or 0 for column, column_scheme in table.scheme.items()
            }
            with measure_time(processors, run.by_hand, run.by_hand_cpu):
                read = spark.read.parquet(str(path))
                hand = way.by_hand(read, levels, release.certificate.threshold)
                hand.write.parquet(f"{folder}/hand")
            run.released = table.release.rows, spark.read.parquet(f"{folder}/hand").count()


def run_measurements(arguments: argparse.Namespace) -> None:
    """Everything that is measured in one session; each run goes to the standard output."""
    spark, seconds = start_session(arguments.master)
    print(json.dumps({"start": seconds}), flush=True)
    processors = ProcessorClock()
    smallest = arguments.cache / f"people-{min(arguments.rows)}"
    for name in arguments.ways:
        measure_way(spark, smallest, RunMeasurements(arguments.cluster, 0, name), 1, processors)
    for rows in arguments.rows:
        for name in arguments.ways:
            run = RunMeasurements(arguments.cluster, rows, name)
            path = arguments.cache / f"people-{rows}"
            measure_way(spark, path, run, arguments.repeat, processors)
            print(json.dumps({"run": asdict(run)}), flush=True)
    spark.stop()


def print_run(run: RunMeasurements) -> None:
    """Print a line for one way on one table, and one for its steps."""
    times = [run.ours, run.by_hand, run.ours_cpu, run.by_hand_cpu]
    ours, hand, ours_cpu, hand_cpu = map(statistics.median, times)
    rows = f"{run.released[0]:,} and {run.released[1]:,}"
    print(
        f"{run.workers:7}{run.rows:14,}  {run.way:12}{ours:7.1f}{hand:9.1f}{ours / hand:7.2f}"
        f"{ours_cpu:9.1f}{hand_cpu:9.1f}{ours_cpu / hand_cpu:7.2f}  {rows}"
    )
    steps = {step: statistics.median(times) for step, times in run.steps.items()}
    text = ", ".join(f"{step} {seconds:.1f}" for step, seconds in steps.items() if seconds >= 0.05)
    print(" " * 23 + text, flush=True)


@contextmanager
def start_cluster(workers: int) -> Iterator[tuple[str, dict[str, str]]]:
    """Return a cluster: its address, and the environment of a process that connects."""
    from support import cluster

    cluster.MEMORY = MEMORY
    with (
        tempfile.TemporaryDirectory(prefix="spark-bench-") as folder,
        cluster.start_cluster(Path(folder), workers) as running,
    ):
        yield running.master, running.make_environment() | {"XDG_STATE_HOME": folder}


def main(arguments: argparse.Namespace) -> None:
    """Make the tables, start each cluster, tell what is measured."""
    import pyspark

    for rows in arguments.rows:
        if not (arguments.cache / f"people-{rows}").exists():
            write_table(arguments.cache / f"people-{rows}", rows)
    about = {
        "cores": os.cpu_count(), "spark": pyspark.__version__, "python": platform.python_version(),
        "gigabytes of each worker": MEMORY, "repeat": arguments.repeat,
    }  # fmt: skip
    print(about)
    print(" " * 37 + "seconds" + " " * 18 + "of processors")
    print(f"workers{'rows':>14}  release     " + "   ours  by hand  ratio" * 2 + "  rows released")
    runs: list[RunMeasurements] = []
    starts: dict[int, float] = {}
    for workers in arguments.workers:
        with start_cluster(workers) as (master, environment):
            command = [
                sys.executable, __file__, "--master", master, "--cluster", str(workers),
                "--repeat", str(arguments.repeat), "--cache", str(arguments.cache),
                "--rows", *map(str, arguments.rows), "--ways", *arguments.ways,
            ]  # fmt: skip
            child = subprocess.Popen(
                command, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True
            )
            assert child.stdout is not None
            for line in child.stdout:
                message = json.loads(line)
                starts |= {workers: message["start"]} if "start" in message else {}
                if "run" in message:
                    runs.append(RunMeasurements(**message["run"]))
                    print_run(runs[-1])
            if child.wait():
                sys.exit(child.returncode)
        print(f"a session at {workers} workers starts in {starts[workers]:.1f} s")
        if arguments.output:
            result = {"about": about, "starts": starts, "runs": [asdict(run) for run in runs]}
            arguments.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def parse_options() -> argparse.Namespace:
    """Return what the command line says."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 10_000_000])
    parser.add_argument("--workers", type=int, nargs="+", default=[2])
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir(), "spark-bench"))
    parser.add_argument("--output", type=Path)
    parser.add_argument("--quick", action="store_true", help="100,000 rows, once")
    parser.add_argument("--master", help=argparse.SUPPRESS)
    parser.add_argument("--cluster", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.quick:
        args.rows, args.repeat = [100_000], 1
    return args


if __name__ == "__main__":
    options = parse_options()
    if options.master:
        run_measurements(options)
    else:
        main(options)
