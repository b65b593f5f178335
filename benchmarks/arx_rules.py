"""Rules on sensitive columns beside ARX: the loss of the schemes that its tests expect, on Adult.

    python benchmarks/arx_rules.py DATA

DATA is a folder with the Adult table in ARX's form; ``occupation`` is sensitive. Which rows must be
suppressed at a scheme follows from the rule. ARX sums the losses of columns up as the geometric
mean of 1 + loss, less 1; that of its test of beta-likeness (TestAnonymizationBLikeness) stands
beside ours. Cell suppression is timed on a made table of 100,000 rows and twelve columns.
"""

from __future__ import annotations

import csv
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from incrowd.anonymize.cell_classes import suppress_cells
from incrowd.anonymize.suppression import list_patterns, suppress_by_row
from incrowd.codes.frequency import merge_tuples
from incrowd.engine.source import open_table
from incrowd.methods.k_anonymity.class_rules import list_protected
from incrowd.methods.k_anonymity.classes import make_rollups
from incrowd.methods.k_anonymity.method import KAnonymity
from incrowd.spec.file import load_spec

CASES: list[tuple[dict[str, float], tuple[int, ...], float]] = [
    ({"basic": 3}, (0, 3, 0, 0, 2, 0, 1, 0), 0.34883856157237925),
    ({"enhanced": 2}, (1, 4, 1, 1, 3, 2, 2, 0), 0.759176305345683),
    ({"basic": 1}, (1, 4, 0, 1, 3, 0, 2, 0), 0.6081345989904172),
    ({"enhanced": 10}, (0, 3, 0, 0, 3, 1, 2, 0), 0.3419039849540606),
    ({"basic": 5}, (0, 2, 0, 0, 2, 0, 1, 0), 0.23350465152356303),
]


def compute_geometric_loss(data: Path, likeness: dict[str, float], node: tuple[int, ...]) -> float:
    """Return the loss of a scheme in ARX's way."""
    with open(data / "adult.csv", encoding="utf-8") as file:
        names = next(csv.reader(file, delimiter=";"))
    columns: dict[str, Any] = {
        name: {"role": "quasi", "hierarchy": {"csv": str(data / f"adult_hierarchy_{name}.csv")}}
        for name in names
    }
    columns["occupation"] = {"role": "sensitive", "likeness": likeness}
    spec = {"columns": columns, "release": {"method": "k-anonymity", "k": 1}}
    method = KAnonymity(load_spec(spec))
    rows: Any = method.count(open_table(data / "adult.csv"))
    protected = list_protected(rows, {**method.columns.quasi, **method.columns.kept})
    rollups = make_rollups(rows, protected)
    classes = rollups.count_classes(node, k=1)
    assert classes is not None
    codes = rollups.decode_keys(node, classes.keys)
    losses = []
    for at, hierarchy in enumerate(rollups.hierarchies):
        covered = hierarchy.normalize_loss(hierarchy.count_covered(node[at]))[codes[:, at]]
        rows_lost = np.where(classes.lost, 1.0, covered) * classes.sizes
        losses.append(float(rows_lost.sum()) / rollups.total)
    return float(np.prod(np.array(losses) + 1) ** (1 / len(losses)) - 1)


def time_suppression(rows: int = 100_000, columns: int = 12, k: int = 5) -> None:
    """Print the cells that are suppressed of a made table, and the processor seconds it takes."""
    rng = np.random.default_rng(1)
    base = rng.integers(0, 30, rows)
    table = []
    for at in range(columns):
        values = int(rng.integers(2, 12))
        noise = np.minimum(rng.geometric(0.4, rows) - 1, values - 1)
        related = (base * (at + 3) + at) % values
        table.append(np.where(rng.random(rows) < 0.15, noise, related))
    tuples = merge_tuples(np.column_stack(table).astype(np.int32), np.ones(rows, dtype=np.int64))
    weights = np.ones(columns)
    start = time.process_time()
    classes = suppress_cells(tuples.codes, tuples.counts, k=k, weights=weights)
    middle = time.process_time()
    patterns = list_patterns(tuples.codes, weights)
    chosen = suppress_by_row(tuples.codes, tuples.counts, patterns, k=1, subsets={3: 10})
    cells = float((patterns.costs[chosen] * tuples.counts).sum())
    print(
        f"{rows:,} rows, {columns} columns, k = {k}: {classes.cost:,.0f} cells (at least "
        f"{classes.least:,.0f}), {middle - start:.2f} s"
    )
    print(f"any 3 columns fit 10 rows: {cells:,.0f} cells, {time.process_time() - middle:.2f} s")


def main() -> None:
    """Print all comparisons."""
    for likeness, node, expected in CASES:
        loss = compute_geometric_loss(Path(sys.argv[1]), likeness, node)
        print(f"likeness {likeness}: {loss:.10f}, ARX {expected:.10f}")
    time_suppression()


if __name__ == "__main__":
    main()
