"""What tests of k-anonymity share: sample patients, and how to publish and read them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import polars.selectors as cs
from support.unjudged import publish_unjudged

from incrowd.publication import Release
from incrowd.spec.file import parse_spec

COLUMNS = """
columns:
  first_name: {role: identifier}
  last_name: {role: identifier}
  email: {role: drop}
  zip: {role: quasi, hierarchy: {mask: {length: 5}}}
  sex: {role: quasi, hierarchy: {groups: {Person: [female, male]}}}
  birth_year: {role: quasi, hierarchy: {intervals: {from: 1900, to: 2026, widths: [4, 8, 16, 32]}}}
  weight: {role: sensitive}
  diagnosis: {role: sensitive}
"""
QUASI = ["zip", "sex", "birth_year"]
KEPT = ["weight", "diagnosis"]
ALGORITHMS = ["ola", "mondrian", "cluster", "duplicate"]


def publish_patients(
    table: Any, folder: Path | None, release: str = "k: 5", columns: str = COLUMNS, *,
    by: Callable[..., Release] = publish_unjudged, **more: Any,
) -> Release:  # fmt: skip
    file = parse_spec(f"{columns}\nrelease: {{method: k-anonymity, {release}}}\n")
    return by(table, file, output=folder, **more)


def read_released_rows(folder: Path) -> pl.DataFrame:
    """The file as any reader would."""
    path = folder / "data.parquet"
    return pl.read_parquet(path) if path.exists() else pl.read_csv(folder / "data.csv")


def convert_for_pycanon(frame: pl.DataFrame) -> pd.DataFrame:
    """As pycanon wants it: text without nulls, rows from 0."""
    if "count" in frame.columns:
        frame = frame.select(pl.exclude("count").repeat_by("count")).explode(cs.all())
    result: pd.DataFrame = frame.to_pandas().reset_index(drop=True)
    return result.astype(str).fillna("null")


def count_shown_rows(frame: pl.DataFrame) -> Counter[tuple[object, ...]]:
    return Counter(frame.iter_rows())


# What is refused -------------------------------------------------------------------------------

SMALL = "columns: {x: {role: quasi, hierarchy: flat%s}, s: {role: sensitive%s}}"
