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
from pathlib import Path

import numpy as np

SPEC = {
    "zip": {"mask": {"length": 5}},
    "sex": {"groups": {"Person": ["female", "male"]}},
    "birth_year": {"intervals": {"from": 1900, "to": 2026, "widths": [2, 4, 8]}},
    "race": {"flat": {"values": ["White", "Black", "Hispanic", "Asian", "Other"]}},
    "party": {"flat": {"values": ["D", "R", "N"]}},
}


def make(path: Path, rows: int, block: int = 5_000_000) -> None:
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


def bare(path: Path) -> int:
    import polars as pl

    frame = pl.scan_parquet(path).group_by(list(SPEC)).len().collect(engine="streaming")
    return len(frame)


def ours(path: Path) -> int:
    from incrowd.engine.count import count
    from incrowd.engine.source import open_table
    from incrowd.spec import Column

    columns = {
        name: Column.model_validate({"role": "quasi", "hierarchy": hierarchy})
        for name, hierarchy in SPEC.items()
    }
    return len(count(open_table(path), columns).frequencies)


def measured(way: str, path: Path) -> tuple[float, float, int]:
    command = [sys.executable, __file__, "--way", way, str(path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return float(done[0]), float(done[1]), int(done[2])


def main() -> None:
    if sys.argv[1:2] == ["--way"]:
        start = time.perf_counter()
        tuples = {"bare": bare, "ours": ours}[sys.argv[2]](Path(sys.argv[3]))
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(time.perf_counter() - start, memory, tuples)
        return
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000_000
    with tempfile.TemporaryDirectory() as folder:
        path = Path(sys.argv[2]) if len(sys.argv) > 2 else Path(folder) / "table.parquet"
        if not path.exists():
            make(path, rows)
        runs = [(measured("bare", path), measured("ours", path)) for _ in range(3)]
    (bare_s, bare_gb, tuples), (our_s, our_gb, our_tuples) = (
        min(side) for side in zip(*runs, strict=True)
    )
    print(f"{tuples:,} distinct tuples ({our_tuples:,} by Incrowd)")
    print(f"{'bare Polars group-by':24}{bare_s:8.2f} s{bare_gb:8.2f} GB")
    print(f"{'Incrowd count':24}{our_s:8.2f} s{our_gb:8.2f} GB   {our_s / bare_s:.2f} times")


if __name__ == "__main__":
    main()
