"""A safe release of a large Parquet table, beside the pipeline one would write by hand.

    python benchmarks/safe.py [ROWS] [FILE]

The hand-written pipeline draws every row with numpy's random numbers, recodes, counts,
keeps the classes that are large enough by a semi-join, and writes. Ours groups, draws the
counts from AES-CTR bits, cuts, writes, and adds certificate, scheme and report. Each runs in
a process of its own, in turn.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from count import make

K, BETA = 14, 0.2537
SPEC = f"""
columns:
  zip: {{role: quasi, hierarchy: {{mask: {{length: 5}}}}}}
  sex: {{role: quasi, hierarchy: {{groups: {{Person: [female, male]}}}}}}
  birth_year: {{role: quasi, hierarchy: {{intervals: {{from: 1900, to: 2026, widths: [2, 4, 8]}}}}}}
  race: {{role: quasi, hierarchy: {{flat: {{values: [White, Black, Hispanic, Asian, Other]}}}}}}
  party: {{role: quasi, hierarchy: {{flat: {{values: [D, R, N]}}}}}}
release:
  {{k: {K}, beta: {BETA}, epsilon: 1, levels: {{zip: 2, sex: 0, birth_year: 3, race: 0, party: 0}}}}
"""


def by_hand(path: Path, folder: Path) -> int:
    """Scan, draw, recode, count, semi-join, write."""
    import numpy as np
    import polars as pl

    rows = pl.scan_parquet(path).select(pl.len()).collect().item()
    coins = pl.Series(np.random.default_rng().random(rows) < BETA)
    columns = ["zip", "sex", "birth_year", "race", "party"]
    start = (pl.col("birth_year") - 1900) // 8 * 8 + 1900
    drawn = (
        pl.scan_parquet(path)
        .filter(coins)
        .with_columns(
            zip=pl.col("zip").str.slice(0, 3) + "**",
            birth_year=start.cast(pl.String) + "-" + (start + 7).cast(pl.String),
        )
        .collect(engine="streaming")
        .lazy()
    )
    large = drawn.group_by(columns).len().filter(pl.col("len") >= K)
    drawn.join(large, on=columns, how="semi").sink_parquet(folder / "data.parquet")
    return pl.scan_parquet(folder / "data.parquet").select(pl.len()).collect().item()  # type: ignore[no-any-return]


def ours(path: Path, folder: Path) -> int:
    """The whole of `publish`."""
    from incrowd.release import publish
    from incrowd.specfile import parse

    return publish(path, parse(SPEC), output=folder / "release").certificate.release.rows


def measured(way: str, path: Path) -> tuple[float, float, int]:
    command = [sys.executable, __file__, "--way", way, str(path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return float(done[0]), float(done[1]), int(done[2])


def main() -> None:
    """Measure both ways and print them side by side."""
    if sys.argv[1:2] == ["--way"]:
        with tempfile.TemporaryDirectory() as folder:
            start = time.perf_counter()
            rows = {"hand": by_hand, "ours": ours}[sys.argv[2]](Path(sys.argv[3]), Path(folder))
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
            print(time.perf_counter() - start, memory, rows)
        return
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 30_000_000
    with tempfile.TemporaryDirectory() as folder:
        path = Path(sys.argv[2]) if len(sys.argv) > 2 else Path(folder) / "table.parquet"
        if not path.exists():
            make(path, rows)
        runs = [(measured("hand", path), measured("ours", path)) for _ in range(3)]
    (hand_s, hand_gb, hand_rows), (our_s, our_gb, our_rows) = (
        min(side) for side in zip(*runs, strict=True)
    )
    print(f"{'hand-written Polars':24}{hand_s:8.2f} s{hand_gb:8.2f} GB{hand_rows:14,} rows written")
    print(f"{'incrowd publish':24}{our_s:8.2f} s{our_gb:8.2f} GB{our_rows:14,} rows written")
    print(f"ratio {our_s / hand_s:.2f}")


if __name__ == "__main__":
    main()
