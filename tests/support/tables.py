"""What tests of tables of counts share: residents of regions, and specs of their tables."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from incrowd.release.certificate import Certificate
from incrowd.spec.file import SpecFile, parse_spec

COLUMNS = """
columns:
  id: {role: identifier}
  region: {role: quasi, hierarchy: {groups: {All: {North: [N1, N2], South: [S1, S2, "=S3"]}}}}
  sex: {role: quasi, hierarchy: {flat: {values: [female, male]}}}
  age: {role: quasi, hierarchy: {intervals: {from: 0, to: 99, widths: [10, 50]}}}
  diagnosis: {role: sensitive, other: elsewhere, hierarchy: {flat: {values: [a, b, c]}}}
"""
BUDGET = "method: tables, epsilon: 1, delta: 1.0e-6"
TABLES = "tables: [[sex, region], {columns: [diagnosis, age, sex], levels: {age: 1}, weight: 2}]"


def make_spec(release: str = f"{BUDGET}, {TABLES}", *, more: str = "") -> SpecFile:
    """Return a spec of tables of residents."""
    return parse_spec(f"{COLUMNS}{more}\nrelease: {{{release}}}\n")


def make_residents(rows: int = 3000, seed: int = 1, *, visits: int = 1) -> pl.DataFrame:
    """Return residents; one in twenty has a diagnosis that is not declared, some have none."""
    draw = np.random.default_rng(seed)
    diagnosis = draw.choice(["a", "b", "z"], rows, p=[0.7, 0.25, 0.05]).tolist()
    return pl.DataFrame(
        {
            "id": [f"p{at // visits}" for at in range(rows)],
            "region": draw.choice(
                ["N1", "N2", "S1", "S2", "=S3"], rows, p=[0.5, 0.2, 0.1, 0.1, 0.1]
            ),
            "sex": draw.choice(["female", "male"], rows),
            "age": draw.integers(0, 80, rows),
            "diagnosis": [None if at % 50 == 0 else x for at, x in enumerate(diagnosis)],
        }
    )


def read_table(folder: Path, file: str) -> pl.DataFrame:
    """Return a released table as whoever reads it has it."""
    if file.endswith(".csv"):
        return pl.read_csv(folder / file)
    return pl.read_parquet(folder / file)


def read_finest(folder: Path, certificate: Certificate, at: int) -> pl.DataFrame:
    """Return the finest cells of a released table."""
    part = certificate.tabulation
    assert part is not None
    entry, file = part.tables[at], certificate.tables[at].release.file
    table = read_table(folder, file)
    for name, level in zip(entry.columns, entry.levels, strict=True):
        table = table.filter(pl.col(f"{name}_level") == level)
    return table
