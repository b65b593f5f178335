"""Counting distinct tuples of a large Parquet table, beside a bare Polars group-by.

    python benchmarks/count.py [ROWS] [FILE]

Makes a table of ROWS rows (100 million by default) if FILE does not exist, and runs each way
in a process of its own, in turn, for time and peak memory.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from incrowd.spec.build import ColumnHierarchies

SPEC = {
    "zip": {"mask": {"length": 5}},
    "sex": {"groups": {"Person": ["female", "male"]}},
    "birth_year": {"intervals": {"from": 1900, "to": 2026, "widths": [2, 4, 8]}},
    "race": {"flat": {"values": ["White", "Black", "Hispanic", "Asian", "Other"]}},
    "party": {"flat": {"values": ["D", "R", "N"]}},
}


def write_table(path: Path, rows: int, block: int = 5_000_000) -> None:
    """Write a table of people who do not exist, block by block."""
    import pyarrow as pa
    from pyarrow import parquet

    draw = np.random.default_rng(0)
    zips = np.array([f"{z:05d}" for z in draw.choice(np.arange(32000, 35000), 900, replace=False)])
    races = np.array(["White", "Black", "Hispanic", "Asian", "Other"])
    writer = None
    for start in range(0, rows, block):
        n = min(block, rows - start)
        part = pa.table(
            {
                "zip": zips[draw.integers(0, 900, n)],
                "sex": np.array(["female", "male"])[draw.integers(0, 2, n)],
                "birth_year": draw.integers(1920, 2006, n).astype(np.int16),
                "race": races[draw.choice(5, n, p=[0.6, 0.15, 0.17, 0.03, 0.05])],
                "party": np.array(["D", "R", "N"])[draw.integers(0, 3, n)],
            }
        )
        writer = writer or parquet.ParquetWriter(path, part.schema, compression="zstd")
        writer.write_table(part, row_group_size=1_000_000)
    assert writer is not None
    writer.close()


def count_by_polars(path: Path, _: Path) -> int:
    """Return what one would write by hand."""
    import polars as pl

    frame = pl.scan_parquet(path).group_by(list(SPEC)).len().collect(engine="streaming")
    return len(frame)


def count_by_incrowd(path: Path, _: Path) -> int:
    """From the file to codes of the hierarchies with counts."""
    from incrowd.engine.count import count_tuples
    from incrowd.engine.source import open_table
    from incrowd.spec.model import Column

    columns = {
        name: Column.model_validate({"role": "quasi", "hierarchy": hierarchy})
        for name, hierarchy in SPEC.items()
    }
    return len(count_tuples(open_table(path), ColumnHierarchies(columns)).frequencies)


Way = Callable[[Path, Path], int]


def compare_ways(
    script: str, ways: dict[str, Way], rows: int
) -> dict[str, tuple[float, float, int]]:
    """Return the best of three runs of each way: seconds, peak gigabytes, and what it returned.

    Each run is a process of its own, in turn. With ``--way NAME`` this is such a process.
    """
    if sys.argv[1:2] == ["--way"]:
        with tempfile.TemporaryDirectory() as folder:
            start = time.perf_counter()
            answer = ways[sys.argv[2]](Path(sys.argv[3]), Path(folder))
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
            print(time.perf_counter() - start, memory, answer)
        sys.exit()
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else rows
    best: dict[str, tuple[float, float, int]] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(sys.argv[2]) if len(sys.argv) > 2 else Path(folder) / "table.parquet"
        if not path.exists():
            write_table(path, rows)
        for way in [*ways] * 3:
            command = [sys.executable, script, "--way", way, str(path)]
            output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            seconds, memory_, answer_ = output.split()
            run = (float(seconds), float(memory_), int(answer_))
            best[way] = min(best.get(way, run), run)
    return best


def print_comparison(
    best: dict[str, tuple[float, float, int]], unit: str, base: str, ours: str
) -> None:
    """Print the ways side by side, and below the time of ``ours`` over that of ``base``."""
    for way, (seconds, memory, answer) in best.items():
        print(f"{way:24}{seconds:8.2f} s{memory:8.2f} GB{answer:14,} {unit}")
    print(f"{ours} / {base}: {best[ours][0] / best[base][0]:.2f}")


if __name__ == "__main__":
    ways: dict[str, Way] = {
        "bare Polars group-by": count_by_polars,
        "Incrowd count": count_by_incrowd,
    }
    print_comparison(compare_ways(__file__, ways, 100_000_000), "distinct tuples", *ways)
