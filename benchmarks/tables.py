"""Tables that add up: their errors beside the optimum, independent noise and slices; time, memory.

    python benchmarks/tables.py [--adult DATA] [--part PART]

All at epsilon = 1, delta = 1e-6. PART is one of these; without it all but the commands:

- optimum: the root mean squared error of what is asked for over that of ResidualPlanner, by its
  formulas, at the same budget; and over that of independent noise per table.
- slices: the root mean squared error of all cells of made-up tables: estimates and whole counts,
  beside independent noise per table, and the noisy counts of slices, which suppress small cells.
- adult: all pairs of the nine columns of Adult, from a folder DATA with it in ARX's form: the mean
  total variation of estimates, whole counts, slices with noisy counts, synthetic rows, and
  independent columns.
- bias: how far whole counts of small true counts are too large.
- threeway: all three-way tables of 20 columns with 4 to 20 values, a million rows.
- wide: one table of 3,000 x 10 x 2 x 75 x 10 cells with totals, five million rows.
- publish-threeway, publish-wide: the commands `incrowd publish` and `incrowd verify` on these
  tables, a million rows each, from a cold start; the wide one takes minutes and 3 GB on disk.

Seconds are of the processor. "kept" is the root mean squared error of whole counts over that of
estimates, by the number of columns of a margin.
"""

from __future__ import annotations

import argparse
import csv
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, combinations
from pathlib import Path

import numpy as np
import polars as pl

from incrowd.anonymize.safe_counts import draw_noisy_counts
from incrowd.anonymize.synthetic import synthesize
from incrowd.anonymize.synthetic.domain import Domain, TableCounter, make_column
from incrowd.anonymize.tables.estimate import estimate_tables
from incrowd.anonymize.tables.measure import measure_residuals
from incrowd.anonymize.tables.plan import compare_independent, plan_tables
from incrowd.anonymize.tables.tabulate import CodeTables
from incrowd.anonymize.tables.whole import make_whole
from incrowd.anonymize.tables.workload import RequestedTable, TableAxis, Workload
from incrowd.arrays import Codes, Counts, Floats
from incrowd.codes.frequency import Frequencies
from incrowd.privacy.events import GaussianCounts, GeometricCounts
from incrowd.privacy.information import plan_information
from incrowd.privacy.randomness import Randomness, SeededRandomness, SystemRandomness
from incrowd.privacy.split import split_for_counts

EPSILON, DELTA = 1.0, 1e-6
INFORMATION = plan_information(epsilon=EPSILON, delta=DELTA, choices=0).information


def list_all(sizes: Sequence[int], ways: int) -> Workload:
    """Return all tables of so many columns."""
    axes = tuple(TableAxis(f"c{at}", size) for at, size in enumerate(sizes))
    tables = combinations(range(len(sizes)), ways)
    return Workload(axes, tuple(RequestedTable(x, (0,) * ways) for x in tables))


def compute_optimum(sizes: Sequence[int], ways: int) -> float:
    """Return the least sum of variances of ResidualPlanner: (sum of the roots of costs)^2 / B."""
    tables = list(combinations(range(len(sizes)), ways))
    subsets = {x for t in tables for n in range(ways + 1) for x in combinations(t, n)}
    needs = dict.fromkeys(subsets, 0.0)
    for table in tables:
        cells = math.prod(sizes[x] for x in table)
        for subset in chain.from_iterable(combinations(table, n) for n in range(ways + 1)):
            noise = math.prod((sizes[x] - 1) / sizes[x] for x in subset)
            others = math.prod(sizes[x] ** -2 for x in table if x not in subset)
            needs[subset] += cells * noise**2 * others
    return sum(math.sqrt(x) for x in needs.values()) ** 2 / INFORMATION


def print_optimum() -> None:
    """Print errors over those of the optimum, and over those of independent noise."""
    shapes = {
        "20 columns of 4 to 20": ([4 + 7 * x % 17 for x in range(20)], (1, 2, 3)),
        "Adult's columns": ([2, 74, 5, 7, 16, 41, 7, 14, 2], (1, 2, 3)),
        "5 columns of 100": ([100] * 5, (2, 3)),
        "3000 x 10 x 2 x 75 x 10": ([3000, 10, 2, 75, 10], (2, 5)),
    }
    for name, (sizes, choices) in shapes.items():
        for ways in choices:
            workload = list_all(sizes, ways)
            plan = plan_tables(workload, INFORMATION)
            cells = [math.prod(workload.shape(x.columns, x.levels)) for x in workload.tables]
            reached = sum(
                n * plan.mean_variance(x) for n, x in zip(cells, workload.tables, strict=True)
            )
            alone = np.dot(compare_independent(workload, INFORMATION), cells)
            best = compute_optimum(sizes, ways)
            print(
                f"{name:26} {ways}-way: RMSE / optimum {math.sqrt(reached / best):.4f}, "
                f"RMSE / independent noise {math.sqrt(reached / alone):.3f}, "
                f"RMSE {math.sqrt(reached / sum(cells)):.1f}"
            )


def print_adult(folder: Path, releases: int = 5) -> None:
    """Print the mean total variation of all pairs of Adult, by each method."""
    codes, levels = read_adult(folder)
    sizes = [len(level[0]) for level in levels]
    rows = len(codes)
    columns = list(codes.T)
    pairs = [(x, y) for x, y in combinations(range(len(sizes)), 2)]
    workload = list_all(sizes, 2)
    truth = CodeTables(workload, columns)
    exact = {x: truth(0, x, (0, 0)) for x in pairs}
    domain = Domain(tuple(make_column(level) for level in levels))

    def measure(tables: dict[tuple[int, int], Floats]) -> float:
        return float(np.mean([np.abs(tables[x] - exact[x]).sum() / 2 / rows for x in pairs]))

    errors: dict[str, list[float]] = {}

    def note(name: str, tables: dict[tuple[int, int], Floats]) -> None:
        errors.setdefault(name, []).append(measure(tables))

    for seed in range(releases):
        bits = SeededRandomness(seed)
        for totals in (False, True):
            plan = plan_tables(workload, INFORMATION, totals=totals)
            measured = measure_residuals(truth, plan, bits)
            estimates = dict(zip(pairs, estimate_tables(plan, measured), strict=True))
            released = make_whole(plan, measured)
            name = "tables, totals counted" if totals else "tables"
            note(f"{name}: estimates", estimates)
            note(f"{name}: counts", {x: released.count(x, (0, 0)).astype(float) for x in pairs})
        event = choose_noise(len(pairs))
        note("slices with noisy counts", {x: draw_slice(exact[x], event, bits) for x in pairs})
        for name, choices in (("synthetic rows", True), ("independent columns", False)):
            information = (
                synthesize.plan_synthesis(domain, epsilon=EPSILON, delta=DELTA)
                if choices
                else plan_information(epsilon=EPSILON, delta=DELTA, choices=0)
            )
            count = TableCounter(domain, codes)
            result = synthesize.synthesize(domain, count, information, bits=bits).rows
            tabulate = CodeTables(workload, list(result.T))
            scale = rows / len(result)
            note(name, {x: (tabulate(0, x, (0, 0)) * scale).astype(np.float64) for x in pairs})
    for name, values in errors.items():
        print(f"Adult, all pairs, {rows:,} rows: {name:36} {np.mean(values):.4f}")


def choose_noise(tables: int) -> GeometricCounts | GaussianCounts:
    """Return the noise of the counts of so many slices."""
    event = split_for_counts(epsilon=EPSILON, delta=DELTA, tables=tables).draws[0]
    assert isinstance(event, GeometricCounts | GaussianCounts)
    return event


def draw_slice(truth: Counts, event: GeometricCounts | GaussianCounts, bits: Randomness) -> Floats:
    """Return a table as a slice with noisy counts shows it; suppressed cells count as 0."""
    filled = np.argwhere(truth).astype(np.int32)
    frequencies = Frequencies(filled, truth[tuple(filled.T)])
    published = draw_noisy_counts(frequencies, event, k=1, bits=bits)
    cells = np.zeros(truth.shape)
    cells[tuple(published.codes.T)] = published.counts
    return cells


def print_slices() -> None:
    """Print the root mean squared error of cells of made-up tables, by each method."""
    mixed = [4 + 7 * x % 17 for x in range(20)]
    adult = [2, 74, 5, 7, 16, 41, 7, 14, 2]
    wide, wide_codes = make_wide(1_000_000)
    shapes = {
        "20 columns of 4 to 20": (list_all(mixed, 2), make_latent(mixed, 1_000_000), (2, 3)),
        "Adult's columns": (list_all(adult, 2), make_latent(adult, 30_162), (2, 3)),
        "5 columns of 100": (list_all([100] * 5, 2), make_latent([100] * 5, 1_000_000), (2, 3)),
        "3000 x 10 x 2 x 75 x 10": (wide, wide_codes, (2,)),
    }
    for name, (axes, codes, choices) in shapes.items():
        for ways in choices:
            print_shape(name, axes.axes, codes, ways)


def print_shape(name: str, axes: Sequence[TableAxis], codes: list[Codes], ways: int) -> None:
    """Print the errors of all tables of so many columns, by each method."""
    tables = combinations(range(len(axes)), ways)
    requested = tuple(RequestedTable(x, (0,) * ways) for x in tables)
    workload = Workload(tuple(replace(x, parents=()) for x in axes), requested)
    bits, event = SystemRandomness(), choose_noise(len(requested))
    plan, tabulate = plan_tables(workload, INFORMATION), CodeTables(workload, codes)
    measured = measure_residuals(tabulate, plan, bits)
    released = make_whole(plan, measured)
    squares, cells, hidden = np.zeros(3), 0, 0
    for table, estimate in zip(requested, estimate_tables(plan, measured), strict=True):
        truth = tabulate(0, table.columns, table.levels)
        sliced = draw_slice(truth, event, bits)
        figures = estimate, released.count(table.columns, table.levels), sliced
        squares += [float(((x - truth) ** 2).sum()) for x in figures]
        cells += truth.size
        hidden += int(((sliced == 0) & (truth > 0)).sum())
    sizes = [math.prod(workload.shape(x.columns, x.levels)) for x in requested]
    alone = np.dot(compare_independent(workload, INFORMATION), sizes)
    errors = np.sqrt([*squares, alone]) / math.sqrt(cells)
    print(
        f"{name:24} {ways}-way, {len(codes[0]):,} rows: RMSE of estimates {errors[0]:.1f}, "
        f"counts {errors[1]:.1f}, independent noise {errors[3]:.1f}, "
        f"slices {errors[2]:.1f} ({hidden / cells:.0%} of cells suppressed)",
        flush=True,
    )


def read_adult(folder: Path) -> tuple[Codes, list[list[Codes]]]:
    """Return the codes of Adult's leaves, and the group of each leaf at each level."""
    with (folder / "adult.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter=";"))
    codes, levels = [], []
    for name in rows[0]:
        path = folder / f"adult_hierarchy_{name}.csv"
        with path.open(encoding="utf-8") as file:
            lines = [line[:-1] for line in csv.reader(file, delimiter=";")]  # without *
        places = {line[0]: at for at, line in enumerate(lines)}
        codes.append([places[row[name]] for row in rows])
        levels.append(
            [
                np.unique(labels, return_inverse=True)[1].astype(np.int32) if at else
                np.arange(len(lines), dtype=np.int32)
                for at, labels in enumerate(zip(*lines, strict=True))
            ]
        )  # fmt: skip
    return np.array(codes, dtype=np.int32).T, levels


def print_bias(releases: int = 200) -> None:
    """Print the mean of whole counts less the truth, by the true count."""
    axes = (TableAxis("region", 20), TableAxis("sex", 2), TableAxis("age", 10))
    table = RequestedTable((0, 1, 2), (0, 0, 0))
    values = np.array([0, 0, 0, 1, 2, 5, 10, 20, 50, 200])
    truth = np.random.default_rng(1).permutation(np.resize(values, 400)).reshape(20, 2, 10)
    places = np.repeat(np.arange(400), truth.ravel())
    codes = [x.astype(np.int32) for x in np.unravel_index(places, truth.shape)]
    workload = Workload(axes, (table,))
    plan = plan_tables(workload, INFORMATION, totals=True)
    tabulate = CodeTables(workload, codes)
    counts, bits = [], SeededRandomness(2)
    estimates = []
    for _ in range(releases):
        measured = measure_residuals(tabulate, plan, bits)
        counts.append(make_whole(plan, measured).count((0, 1, 2), (0, 0, 0)) - truth)
        estimates.append(estimate_tables(plan, measured)[0] - truth)
    deviation = math.sqrt(plan.mean_variance(table))
    print(f"region x sex x age, standard deviation of a cell {deviation:.1f}")
    for value in np.unique(values):
        bias, rough = (
            float(np.mean(x, axis=0)[truth == value].mean()) for x in (counts, estimates)
        )
        errors = [
            float(np.sqrt((np.array(x)[:, truth == value] ** 2).mean()))
            for x in (counts, estimates)
        ]
        print(
            f"true count {value:4}: bias of counts {bias:+.2f}, of estimates {rough:+.2f}; "
            f"RMSE {errors[0]:.2f}, {errors[1]:.2f}"
        )


class Stopwatch:
    """Prints seconds of the processor and on the clock, and memory, since the last step."""

    def __init__(self) -> None:
        """Start."""
        self._start = time.process_time(), time.time()

    def print_step(self, name: str) -> None:
        """Print what a step took."""
        now = time.process_time(), time.time()
        used, passed = (b - a for a, b in zip(self._start, now, strict=True))
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        print(f"{name:28} {used:7.1f} s ({passed:.0f} s on the clock), {memory:.2f} GB", flush=True)
        self._start = time.process_time(), time.time()


def print_large(name: str, workload: Workload, codes: list[Codes], *, totals: bool) -> None:
    """Print what a large workload takes, and the errors by the number of columns."""
    begin, watch = time.process_time(), Stopwatch()
    plan = plan_tables(workload, INFORMATION, totals=totals)
    tabulate = CodeTables(workload, codes)
    measured = measure_residuals(tabulate, plan, SystemRandomness())
    watch.print_step(f"{name}: plan and measure")
    for table in workload.tables:
        estimate_tables(plan, measured, [table])
    watch.print_step(f"{name}: estimates")
    released = make_whole(plan, measured)
    watch.print_step(f"{name}: whole counts")
    print(f"{name}: {time.process_time() - begin:.0f} s in all")
    for ways in range(len(workload.tables[0].columns) + 1):
        margins = sorted({y for x in workload.tables for y in combinations(x.columns, ways)})
        errors = []
        for columns in margins[:: max(len(margins) // 30, 1)]:
            table = RequestedTable(columns, (0,) * ways)
            truth = tabulate(0, columns, table.levels)
            (estimate,) = estimate_tables(plan, measured, [table])
            whole_counts = released.count(columns, table.levels)
            errors.append([float(((x - truth) ** 2).mean()) for x in (whole_counts, estimate)])
        counts, estimates = np.sqrt(np.mean(errors, axis=0))
        print(f"{name}, {ways} columns: RMSE {estimates:.1f} of estimates, {counts:.1f} of counts")


def make_latent(sizes: Sequence[int], rows: int = 1_000_000) -> list[Codes]:
    """Return columns that depend on a latent class, and some on each other."""
    rng = np.random.default_rng(1)
    latent = rng.integers(0, 6, rows)
    columns: list[Codes] = []
    for x, size in enumerate(sizes):
        ends = np.cumsum(rng.dirichlet(np.full(size, 0.5), 6), axis=1)
        values = (rng.random(rows)[:, None] > ends[latent]).sum(axis=1)
        values = np.minimum(values, size - 1).astype(np.int32)
        if x % 4 == 3:
            follows = rng.random(rows) < 0.5
            values[follows] = columns[x - 1][follows] * size // sizes[x - 1]
        columns.append(values)
    return columns


def make_wide(rows: int = 5_000_000) -> tuple[Workload, list[Codes]]:
    """Return a table of small regions in districts by four columns."""
    rng = np.random.default_rng(1)
    districts = (np.arange(3000) // 60).astype(np.int32)
    axes = (
        TableAxis("region", 3000, (districts,)), TableAxis("job", 10), TableAxis("sex", 2),
        TableAxis("age", 75), TableAxis("household", 10),
    )  # fmt: skip
    region = (3000 * rng.random(rows) ** 2).astype(np.int32)
    codes = [
        region,
        ((region % 7 + rng.integers(0, 4, rows)) % 10).astype(np.int32),
        rng.integers(0, 2, rows).astype(np.int32),
        (75 * rng.beta(2, 3, rows)).astype(np.int32),
        np.minimum(9, rng.geometric(0.4, rows) - 1).astype(np.int32),
    ]
    return Workload(axes, (RequestedTable((0, 1, 2, 3, 4), (0,) * 5),)), codes


def write_input(folder: Path, workload: Workload, codes: list[Codes], release: str) -> None:
    """Write a table of coded rows, and its spec."""
    columns = {}
    lines = []
    for axis, values in zip(workload.axes, codes, strict=True):
        labels = [f"{axis.name} {value}" for value in range(axis.size)]
        columns[axis.name] = pl.Series(labels).gather(values)
        groups = [[f"{axis.name} group {x}" for x in parents.tolist()] for parents in axis.parents]
        text = "".join(f"{';'.join(path)};*\n" for path in zip(labels, *groups, strict=True))
        (folder / f"{axis.name}.csv").write_text(text, encoding="utf-8")
        lines.append(f"  {axis.name}: {{role: quasi, hierarchy: {{csv: {axis.name}.csv}}}}\n")
    pl.DataFrame(columns).write_parquet(folder / "people.parquet")
    budget = f"method: tables, epsilon: {EPSILON}, delta: {DELTA:.1e}, missing: excluded"
    (folder / "spec.yaml").write_text(
        f"table: people.parquet\ncolumns:\n{''.join(lines)}release: {{{budget}, {release}}}\n",
        encoding="utf-8",
    )


def print_commands(name: str, workload: Workload, codes: list[Codes], release: str) -> None:
    """Print what publishing and verifying take, each in a process of its own."""
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home)
        write_input(folder, workload, codes, release)
        for arguments in (["publish", "spec.yaml", "-o", "out"], ["verify", "out"]):
            begin = time.time()
            process = subprocess.Popen(
                [sys.executable, "-m", "incrowd", *arguments], cwd=folder,
                stdout=subprocess.DEVNULL,
            )  # fmt: skip
            _, status, used = os.wait4(process.pid, 0)
            print(
                f"{name}, {arguments[0]}: {used.ru_utime + used.ru_stime:.0f} s "
                f"({time.time() - begin:.0f} s on the clock), {used.ru_maxrss / 1e6:.2f} GB, "
                f"status {os.waitstatus_to_exitcode(status)}",
                flush=True,
            )
        size = sum(path.stat().st_size for path in (folder / "out").rglob("*") if path.is_file())
        print(f"{name}: {size / 1e9:.2f} GB on disk")


def main() -> None:
    """Print all parts, or the one that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--adult", type=Path)
    parts = ("optimum", "slices", "adult", "bias", "threeway", "wide")
    commands = ("publish-threeway", "publish-wide")
    parser.add_argument("--part", choices=(*parts, *commands))
    options = parser.parse_args()
    chosen = parts if options.part is None else (options.part,)
    sizes = [4 + 7 * x % 17 for x in range(20)]
    if "optimum" in chosen:
        print_optimum()
    if "slices" in chosen:
        print_slices()
    if "adult" in chosen and options.adult:
        print_adult(options.adult)
    if "bias" in chosen:
        print_bias()
    if "threeway" in chosen:
        print_large("three-way", list_all(sizes, 3), make_latent(sizes), totals=False)
    if "wide" in chosen:
        workload, codes = make_wide()
        print_large("wide", workload, codes, totals=True)
    if "publish-threeway" in chosen:
        release = "all: 3, totals: false"
        print_commands("three-way", list_all(sizes, 3), make_latent(sizes), release)
    if "publish-wide" in chosen:
        workload, codes = make_wide(1_000_000)
        names = ", ".join(axis.name for axis in workload.axes)
        print_commands("wide", workload, codes, f"tables: [[{names}]], totals: true")


if __name__ == "__main__":
    main()
