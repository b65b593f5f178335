"""How long a private search takes, against the number of schemes and of distinct tuples.

    python benchmarks/search.py DATA
    python benchmarks/search.py --columns 12

DATA is a folder with the Adult table in ARX's form; the other tables are made. Each time stands
beside that of counting the tuples of one scheme. ``--columns`` searches a table of 200,000 rows and
so many columns, up to 16, for noisy counts and for a sample, by a fixed seed: run it with
``PYTHONPATH`` set to the ``src`` folder of two versions in turn, and compare the scheme and the
seconds of the processor. As by default, the finest levels are left out of very many schemes.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np

from incrowd.anonymize.lattice import Lattice, Rollups
from incrowd.anonymize.safe_search import make_ramp, search_scheme
from incrowd.codes.counted_table import CountedTable
from incrowd.codes.frequency import merge_tuples
from incrowd.codes.hierarchy import build_from_rows
from incrowd.engine.count import count_tuples
from incrowd.engine.source import open_table
from incrowd.privacy.events import SafeRelease
from incrowd.privacy.randomness import SeededRandomness, SystemRandomness
from incrowd.privacy.split import split_for_samples
from incrowd.spec.build import ColumnHierarchies
from incrowd.spec.model import Column


def count_adult(data: Path) -> CountedTable:
    """Return the table, counted by its values."""
    table = open_table(next(x for x in data.glob("*.csv") if "_hierarchy_" not in x.name))
    stem = next(x.stem for x in data.glob("*.csv") if "_hierarchy_" not in x.name)
    columns = {
        name: Column.model_validate(
            {"role": "quasi", "hierarchy": {"csv": str(data / f"{stem}_hierarchy_{name}.csv")}}
        )
        for name in table.columns
    }
    return count_tuples(table, ColumnHierarchies(columns))


def make_full_lattice(counted_table: CountedTable) -> Lattice:
    """All schemes."""
    return Lattice(
        (0,) * len(counted_table.names), tuple(h.height - 1 for h in counted_table.hierarchies)
    )


def choose_scheme(
    rollups: Rollups, lattice: Lattice, pairs: Sequence[SafeRelease], epsilon: Fraction
) -> tuple[tuple[int, ...], SafeRelease]:
    """Return the scheme and the pair of one search."""
    scheme = search_scheme(
        rollups, lattice, [make_ramp(pair.k, pair.beta) for pair in pairs],
        epsilon=epsilon, power=1, weights=np.ones(len(lattice.low)), bits=SystemRandomness(),
    )  # fmt: skip
    return scheme.levels, SafeRelease(scheme.ramp.k, scheme.ramp.beta)


def make_counted_table(rows: int, sizes: Sequence[int], seed: int = 0) -> CountedTable:
    """Return a table of people who do not exist, with so many values in each column."""
    draw = np.random.default_rng(seed)
    hierarchies, codes = [], []
    for size in sizes:
        widths = [width for width in (2, 4, 8) if size // width > 1]
        spans = [[str(v), *(f"{w}:{v // w}" for w in widths), "*"] for v in range(size)]
        hierarchies.append(build_from_rows(spans))
        shares = 1 / np.arange(1, size + 1) ** 0.7
        codes.append(draw.choice(size, rows, p=shares / shares.sum()))
    tuples = merge_tuples(np.column_stack(codes).astype(np.int32), np.ones(rows, dtype=np.int64))
    names = tuple(f"c{at}" for at in range(len(sizes)))
    return CountedTable(names, tuple(hierarchies), (0,) * len(sizes), tuples)


def time_search(name: str, counted_table: CountedTable) -> None:
    """Time the time of one search, beside counting the tuples of one scheme."""
    split = split_for_samples(epsilon=1.0, delta=1e-6, selections=[0.05])
    pairs = [draw for draw in split.draws if isinstance(draw, SafeRelease)]
    rollups = Rollups(counted_table.hierarchies, counted_table.frequencies)
    lattice = make_full_lattice(counted_table)
    start = time.perf_counter()
    rollups.count_cells(tuple(level // 2 for level in lattice.high))
    once = time.perf_counter() - start
    start = time.perf_counter()
    choose_scheme(rollups, lattice, pairs, Fraction(1, 20))
    seconds = time.perf_counter() - start
    print(
        f"{name:12}{len(counted_table.frequencies):12,} tuples{lattice.size:10,} schemes"
        f"{seconds:8.2f} s{seconds / once:10,.0f} times one scheme"
    )


SIZES = (96, 64, 12, 10, 9, 6, 5, 2, 2, 2, 3, 3, 12, 6, 5, 2)
MOST, CROWD = 300_000, 19


def time_many_columns(columns: int) -> None:
    """Time a search by a fixed seed, of counts and of a sample."""
    counted_table = make_counted_table(200_000, SIZES[:columns])
    split = split_for_samples(epsilon=1.0, delta=1e-6, selections=[0.05])
    pairs = [draw for draw in split.draws if isinstance(draw, SafeRelease)]
    lattice = make_full_lattice(counted_table)
    low = list(lattice.low)
    while columns > 12 and lattice.size > MOST:  # the finest of the column with the most levels
        at = max(range(columns), key=lambda at: lattice.high[at] - low[at])
        low[at] += 1
        lattice = Lattice(tuple(low), lattice.high)
    for draw, ramps in (
        ("counts", [make_ramp(CROWD, 1.0)]),
        ("sample", [make_ramp(pair.k, pair.beta) for pair in pairs]),
    ):
        rollups = Rollups(counted_table.hierarchies, counted_table.frequencies)
        start = time.process_time()
        choice = search_scheme(
            rollups, lattice, ramps,
            epsilon=Fraction(1, 20), power=1, weights=np.ones(columns), bits=SeededRandomness(1),
        )  # fmt: skip
        seconds = time.process_time() - start
        levels = "".join(map(str, choice.levels))
        print(
            f"{columns} columns, {draw}: {lattice.size:,} schemes, {choice.scored:,} scored, "
            f"{seconds:.2f} s, levels {levels}, k = {choice.ramp.k}"
        )


def main() -> None:
    if sys.argv[1] == "--columns":
        time_many_columns(int(sys.argv[2]))
        return
    time_search("Adult", count_adult(Path(sys.argv[1])))
    six, eight = (96, 64, 48, 32, 24, 16), (96, 64, 48, 32, 24, 12, 8, 2)
    for sizes in (six, eight):
        for rows in (100_000, 1_000_000):
            time_search("made", make_counted_table(rows, sizes))
    time_search("made", make_counted_table(1_000_000, (96, 64, 48, 32, 24, 16, 12, 8)))


if __name__ == "__main__":
    main()
