"""What tests of slices share: a table of six columns, and how to publish it in slices."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from support.pinned_randomness import PinnedRandomness
from support.releases import forge_certificate
from support.unjudged import publish_unjudged

from incrowd.publication import Release
from incrowd.release.certificate import Certificate, Slice
from incrowd.spec.file import parse_spec

COLUMNS = """
columns:
  name: {role: drop}
  a: {role: quasi, hierarchy: {flat: {values: [0, 1, 2, 3]}}}
  b: {role: quasi, hierarchy: {groups: {low: [0, 1], high: [2, 3]}}}
  c: {role: quasi, hierarchy: {flat: {values: [0, 1, 2]}}}
  d: {role: sensitive, hierarchy: {flat: {values: [0, 1, 2]}}}
  e: {role: quasi, hierarchy: {intervals: {from: 0, to: 39, widths: [5, 10]}}}
  z: {role: quasi, hierarchy: {mask: {length: 5}}}
"""
NAMES = ("a", "b", "c", "d", "e", "z")
BASE = "epsilon: 1, delta: 1.0e-6"
DECLARED = "slices: [[b, a], [z, e, d], [b, c, d]]"
CHOSEN = "slices: {columns: 2, tables: 4}"
COVERING = "slices: 3"
ROWS = 3000
LEVELS = "levels: {a: 0, b: 0, c: 0, d: 0, e: 2, z: 4}"


def make_sliced_people() -> pl.DataFrame:
    """b follows a, and d follows c; the rest is independent."""
    draw = np.random.default_rng(5)
    a, c = draw.integers(0, 4, ROWS), draw.integers(0, 3, ROWS)
    return pl.DataFrame(
        {
            "name": [f"person {i}" for i in range(ROWS)],
            "a": a,
            "b": np.where(draw.random(ROWS) < 0.8, a, draw.integers(0, 4, ROWS)),
            "c": c,
            "d": np.where(draw.random(ROWS) < 0.9, c, draw.integers(0, 3, ROWS)),
            "e": draw.integers(0, 40, ROWS),
            "z": draw.integers(10_000, 10_030, ROWS).astype(str),
        }
    )


def publish_slices(
    people: pl.DataFrame, folder: Path, more: str, base: str = BASE, columns: str = COLUMNS,
    *, by: Callable[..., Release] = publish_unjudged, **rest: Any,
) -> Release:  # fmt: skip
    file = parse_spec(f"{columns}\nrelease: {{{base}, {more}}}\n")
    return by(people, file, output=folder, **{"bits": PinnedRandomness(7), **rest})


def read_slice(folder: Path, table: Slice) -> pl.DataFrame:
    """The rows of one slice as text, with how often each tuple occurs in ``count``."""
    path = folder / table.release.file
    rows = pl.read_csv(path, infer_schema=False) if path.suffix == ".csv" else pl.read_parquet(path)
    if table.release.form == "counted":
        assert len(rows) == table.release.classes
        return rows.with_columns(pl.col("count").cast(pl.Int64))
    return rows.group_by(rows.columns, maintain_order=True).len("count")


def load_certificate(folder: Path) -> Certificate:
    return Certificate.model_validate_json((folder / "certificate.json").read_bytes())


def change_certificate(folder: Path, **changes: Any) -> None:
    """A certificate with changes whose seal fits, as somebody who knows the code would write it."""
    changed = load_certificate(folder).model_copy(update=changes).with_seal()
    forge_certificate(folder, changed)
