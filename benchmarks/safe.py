"""A safe release of a large Parquet table, beside the pipeline one would write by hand.

    python benchmarks/safe.py [ROWS] [FILE]

The hand-written pipeline draws every row with numpy's random numbers, recodes, counts,
keeps the classes that are large enough by a semi-join, and writes. Ours groups, draws the
counts from AES-CTR bits, cuts, writes, and adds certificate, scheme and report: by a sample of the
same rate, by counts, which keep all rows, and by both with one row for each class and its count.
Each runs in a process of its own, in turn. The ratio is that of the two samples, which have the
same rate and threshold and write the same kind of rows.
"""

from __future__ import annotations

from pathlib import Path

from count import Way, compare_ways, print_comparison

K, BETA = 14, 0.2537
SPEC = """
columns:
  zip: {role: quasi, hierarchy: {mask: {length: 5}}}
  sex: {role: quasi, hierarchy: {groups: {Person: [female, male]}}}
  birth_year: {role: quasi, hierarchy: {intervals: {from: 1900, to: 2026, widths: [2, 4, 8]}}}
  race: {role: quasi, hierarchy: {flat: {values: [White, Black, Hispanic, Asian, Other]}}}
  party: {role: quasi, hierarchy: {flat: {values: [D, R, N]}}}
"""
LEVELS = "levels: {zip: 2, sex: 0, birth_year: 3, race: 0, party: 0}"
SAMPLE = f"k: {K}, beta: {BETA}, epsilon: 1, {LEVELS}"
COUNTS = f"epsilon: 1, delta: 1.0e-6, draw: counts, {LEVELS}"


def publish_by_hand(path: Path, folder: Path) -> int:
    """Scan, draw, recode, count, semi-join, write."""
    import numpy as np
    import polars as pl

    rows = pl.scan_parquet(path).select(pl.len()).collect().item()
    coins = pl.Series(np.random.default_rng().random(rows) < BETA)
    columns = ["zip", "sex", "birth_year", "race", "party"]
    start = (pl.col("birth_year") - 1900) // 8 * 8 + 1900
    sample = (
        pl.scan_parquet(path)
        .filter(coins)
        .with_columns(
            zip=pl.col("zip").str.slice(0, 3) + "**",
            birth_year=start.cast(pl.String) + "-" + (start + 7).cast(pl.String),
        )
        .collect(engine="streaming")
        .lazy()
    )
    large = sample.group_by(columns).len().filter(pl.col("len") >= K)
    sample.join(large, on=columns, how="semi").sink_parquet(folder / "data.parquet")
    return pl.scan_parquet(folder / "data.parquet").select(pl.len()).collect().item()  # type: ignore[no-any-return]


def make_publisher(release: str) -> Way:
    """Return the whole of `publish`."""

    def ours(path: Path, folder: Path) -> int:
        from incrowd.publication import publish
        from incrowd.spec.file import parse_spec

        spec = parse_spec(f"{SPEC}release: {{{release}}}\n")
        return publish(path, spec, output=folder / "release").certificate.table.release.rows

    return ours


WAYS: dict[str, Way] = {
    "hand-written Polars": publish_by_hand,
    "incrowd, sample": make_publisher(SAMPLE),
    "incrowd, counts": make_publisher(COUNTS),
    "incrowd, sample, rows counted": make_publisher(f"{SAMPLE}, rows: counted"),
    "incrowd, counts, rows counted": make_publisher(f"{COUNTS}, rows: counted"),
}
COMPARED = ("hand-written Polars", "incrowd, sample")  # both write every row of a sample

if __name__ == "__main__":
    print_comparison(compare_ways(__file__, WAYS, 30_000_000), "rows written", *COMPARED)
