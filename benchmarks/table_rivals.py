"""Tables of counts beside the cell-key method and suppression, on one made-up table.

    PYTHONPATH=src python benchmarks/table_rivals.py [--seeds 5]

60,000 people live in 40 regions of 8 districts; an office asks for region x age x sex with totals.

- tables: `method: tables` at (1, 1e-6): the published whole counts.
- cell keys: each person has a random key below 2^20; the keys of a cell, totals among them, add up
  to one that picks a change of variance 2 and at most 5 by its quantile. Cells without people stay
  empty, no count falls below 0.
- suppression: inner cells of 1 to 9 people are hidden, then the smallest others, until no line of
  inner cells along an axis, whose total is published, has exactly one hidden cell. (Tools that
  solve for the least loss hide less, and protect against intervals besides.)

Errors are mean absolute ones; a suppressed cell has none and is counted apart. "Does not add up" is
the mean distance between a published total of a region and the sum of its published cells.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy.stats import norm

import incrowd as ic

Numbers = npt.NDArray[np.float64]
REGIONS, AGES, SEXES, PEOPLE = 40, 10, 2, 60_000
SHAPE = REGIONS, AGES, SEXES


@dataclass
class Published:
    """Inner cells and totals of regions as a method publishes them; hidden cells are nan."""

    cells: Numbers
    totals: Numbers


def make_people(seed: int) -> npt.NDArray[np.int64]:
    """Return region, age and sex of each person."""
    rng = np.random.default_rng(seed)
    region = (REGIONS * rng.beta(1, 2.5, PEOPLE)).astype(np.int64)
    age = np.minimum((AGES * rng.beta(2, 3, PEOPLE) + region % 3 * 0.5).astype(np.int64), AGES - 1)
    return np.stack([region, age, rng.integers(0, SEXES, PEOPLE)])


def count_cells(people: npt.NDArray[np.int64], weights: Numbers | None = None) -> Numbers:
    """Return the number of people, or the sum of their weights, in each inner cell."""
    places = np.ravel_multi_index(tuple(people), SHAPE)
    sums = np.bincount(places, weights, minlength=int(np.prod(SHAPE)))
    return sums.reshape(SHAPE).astype(np.float64)


def publish_tables(people: npt.NDArray[np.int64]) -> Published:
    """Publish by `method: tables`."""
    ages = {"intervals": {"from": 0, "to": AGES - 1}}
    regions = {"intervals": {"from": 0, "to": REGIONS - 1, "widths": [5]}}
    sexes = {"intervals": {"from": 0, "to": SEXES - 1}}
    hierarchies = {"region": regions, "age": ages, "sex": sexes}
    spec = {
        "columns": {
            name: {"role": "quasi", "hierarchy": hierarchy}
            for name, hierarchy in hierarchies.items()
        },
        "release": {
            "method": "tables", "epsilon": 1.0, "delta": 1e-6, "missing": "excluded",
            "tables": [["region", "age", "sex"]], "totals": True,
        },
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as home:
        table = pl.DataFrame(people.T, schema=list(hierarchies), orient="row")
        release = ic.publish(table, spec, output=Path(home) / "out")
        lines = release.data
    inner = lines.filter(pl.all_horizontal(pl.col(f"{name}_level") == 0 for name in hierarchies))
    cells = inner.sort([f"{name}_code" for name in hierarchies])["count"].to_numpy()
    top = lines.filter(
        (pl.col("region_level") == 0)
        & pl.all_horizontal(pl.col(f"{name}_level") > 0 for name in ("age", "sex"))
    )
    totals = top.sort("region_code")["count"].to_numpy()
    return Published(cells.reshape(SHAPE).astype(np.float64), totals.astype(np.float64))


def publish_by_keys(people: npt.NDArray[np.int64], seed: int) -> Published:
    """Publish by cell keys."""
    rng = np.random.default_rng(seed)
    keys: Numbers = rng.integers(0, 1 << 20, size=(people.shape[1],)).astype(np.float64)

    def change(counts: Numbers, sums: Numbers) -> Numbers:
        quantile = (sums % (1 << 20) + 0.5) / (1 << 20)
        steps = np.clip(np.round(norm.ppf(quantile) * np.sqrt(2)), -5, 5)
        return np.where(counts > 0, np.maximum(counts + steps, 0), 0)

    counts, sums = count_cells(people), count_cells(people, keys)
    by_region = change(counts.sum(axis=(1, 2)), sums.sum(axis=(1, 2)))
    return Published(change(counts, sums), by_region)


def publish_suppressed(counts: Numbers) -> Published:
    """Publish with small cells hidden, and others that would give them away."""
    hidden = (counts > 0) & (counts < 10)
    changed = True
    while changed:
        changed = False
        for axis in range(counts.ndim):
            alone = hidden.sum(axis=axis) == 1
            for place in np.argwhere(alone):
                at = place.tolist()
                line = (*at[:axis], slice(None), *at[axis:])
                if hidden[line].sum() != 1:
                    continue
                open_counts = np.where(hidden[line], np.inf, counts[line])
                hidden[line][int(np.argmin(open_counts))] = True
                changed = True
    return Published(np.where(hidden, np.nan, counts), counts.sum(axis=(1, 2)))


def describe(published: Published, counts: Numbers) -> list[float]:
    """Return the figures of one publication."""
    is_hidden = np.isnan(published.cells)
    totals = counts.sum(axis=(1, 2))
    apart = np.abs(published.cells.sum(axis=(1, 2)) - published.totals)
    return [
        float(np.nanmean(np.abs(published.cells - counts))),
        float(np.abs(published.totals - totals).mean()),
        float(is_hidden.mean()),
        float(counts[is_hidden].sum() / counts.sum()),
        float(np.nanmean(apart)) if not is_hidden.any() else 0.0,
    ]


def main() -> None:
    """Print the mean figures of all methods."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    figures: dict[str, list[list[float]]] = {"tables": [], "cell keys": [], "suppression": []}
    for seed in range(options.seeds):
        people = make_people(seed)
        counts = count_cells(people)
        figures["tables"].append(describe(publish_tables(people), counts))
        figures["cell keys"].append(describe(publish_by_keys(people, seed), counts))
        figures["suppression"].append(describe(publish_suppressed(counts), counts))
    print("| | error of cells | of totals | cells hidden | people in them | does not add up |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, rows in figures.items():
        cell, total, hidden, people, apart = np.mean(rows, axis=0)
        print(f"| {name} | {cell:.2f} | {total:.2f} | {hidden:.1%} | {people:.1%} | {apart:.1f} |")


if __name__ == "__main__":
    main()
