"""Error of published counts by the number of rows per person that a release uses.

python benchmarks/rows_per_person.py PEOPLE        a generated table of visits, median four rows
python benchmarks/rows_per_person.py PANEL.csv     the RAND health insurance panel of statsmodels
python benchmarks/rows_per_person.py PEOPLE --per-group 1 2 3    rows are counted, so many per group

Each count is held against the number of people who have a row in that group, as a share of all
people; or, with ``--per-group``, against the number of rows in that group, as a share of all rows.
A group that is not published counts as 0. Epsilon is 1, delta 1e-6, k 5 throughout.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import incrowd as ic
from incrowd.privacy.events import find_most_per_group

ROWS = (1, 2, 3, 4, 5, 6, 8, 12, 20)
WARDS = [f"ward {at}" for at in range(6)]
VISITS = (0, 1, 2, 3, 4, 6, 10)


def make_visits(people: int, typical: float = 3.4) -> pl.DataFrame:
    """Visits of generated people; with more visits come other wards."""
    draws = np.random.default_rng(1)
    rows = draws.geometric(1 - 2 ** (-1 / typical), people)
    person = np.repeat(np.arange(people), rows)
    age = np.clip(np.round(draws.normal(40, 20, people) + 6 * np.log1p(rows)), 0, 89)
    usual = draws.integers(0, 6, people)[person]
    seldom = np.array([0.35, 0.25, 0.15, 0.1, 0.1, 0.05])
    often = np.minimum(np.log1p(rows) / 4, 1)[person][:, None]
    law = np.cumsum(seldom * (1 - often) + seldom[::-1] * often, axis=1)
    ward = np.minimum((draws.random(len(person))[:, None] > law).sum(axis=1), 5)
    ward = np.where(draws.random(len(person)) < 0.3, usual, ward)
    return pl.DataFrame(
        {
            "person": person,
            "sex": np.array(["f", "m"])[draws.integers(0, 2, people)[person]],
            "age": [f"{int(x) // 10 * 10}s" for x in age[person]],
            "group": np.array(WARDS)[ward],
        }
    )


def read_panel(path: Path) -> pl.DataFrame:
    """Read years of people: sex, age by tens, and visits to a physician."""
    panel = pl.read_csv(path, infer_schema_length=None)
    visits = panel.get_column("mdvis").to_list()
    return panel.select(
        pl.col("zper").alias("person"),
        pl.when(pl.col("female") == 1).then(pl.lit("f")).otherwise(pl.lit("m")).alias("sex"),
        (pl.col("xage") // 10 * 10).cast(pl.Int64).cast(pl.String).add("s").alias("age"),
        pl.Series("group", [f"visits from {max(x for x in VISITS if x <= at)}" for at in visits]),
    )


def publish(table: pl.DataFrame, rows: int, per_group: int | None) -> tuple[float, int]:
    """Return the mean absolute error of a release as a share of people or rows, and its groups."""
    quasi = ("sex", "age", "group")
    columns: dict[str, Any] = {"person": {"role": "identifier"}}
    for name in quasi:
        values = table.get_column(name).unique().sort().to_list()
        columns[name] = {"role": "quasi", "hierarchy": {"flat": {"values": values}}}
    budget = {"method": "safe", "epsilon": 1.0, "delta": 1e-6, "k": 5, "rows": "counted"}
    spec = {
        "unit": {"id": "person", "rows": rows, "per_group": per_group or 1},
        "columns": columns,
        "release": {**budget, "levels": dict.fromkeys(quasi, 0)},
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = pl.DataFrame(ic.publish(table, spec).data)
    number = pl.col("person").n_unique() if per_group is None else pl.len()
    truth = table.group_by(quasi).agg(number.alias("true"))
    both = truth.join(data, on=quasi, how="left").with_columns(pl.col("count").fill_null(0))
    errors = (both["count"].cast(pl.Int64) - both["true"].cast(pl.Int64)).abs()
    return float(np.mean(errors.to_numpy())) / int(table.select(number).item()), len(data)


def main() -> None:
    """Print the error for each number of rows per person."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", help="a number of people, or the file of the panel")
    parser.add_argument("--repeat", type=int, default=3, help="releases per number of rows")
    parser.add_argument("--per-group", type=int, nargs="+", help="rows of a person per group")
    options = parser.parse_args()
    is_number = options.table.isdecimal()
    table = make_visits(int(options.table)) if is_number else read_panel(Path(options.table))
    sizes = table.group_by("person").len().get_column("len").to_numpy()
    print(
        f"{len(sizes):,} people, {len(table):,} rows; rows per person: median {np.median(sizes):g}"
    )
    unit = "people" if options.per_group is None else "rows"
    print(f"| rows per person | per group | mean error, share of {unit} | groups published |")
    print("| --- | --- | --- | --- |")
    for rows in ROWS:
        for per_group in options.per_group or [None]:
            if (per_group or 1) > find_most_per_group(rows):
                continue
            results = [publish(table, rows, per_group) for _ in range(options.repeat)]
            error, groups = (float(np.mean(part)) for part in zip(*results, strict=True))
            print(
                f"| {rows} | {per_group or '–'} | {100 * error:.3f} % | {groups:.0f} |", flush=True
            )


if __name__ == "__main__":
    main()
