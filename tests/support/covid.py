"""Tests for an infection, made up: 15,000 rows, 6 % positive, more of them with some insurers.

Several tests may be of one person. The columns are those that a hospital's laboratory keeps.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from incrowd.spec.file import SpecFile, parse_spec

ROWS = 15_000
CLINICS = [f"clinic {number:02d}" for number in range(40)]
INSURERS = ["commercial", "government", "unassigned", "self pay", "medical assistance", "charity"]
CLASSES = ["inpatient", "outpatient", "emergency", "recurring", "not applicable"]
GROUPS = ["patient", "client", "misc adult", "other adult", "unidentified"]

COLUMNS = f"""
columns:
  subject: {{role: identifier}}
  first_name: {{role: identifier}}
  last_name: {{role: identifier}}
  test: {{role: drop}}
  gender: {{role: quasi, hierarchy: {{flat: {{values: [female, male]}}}}}}
  age: {{role: quasi, hierarchy: {{intervals: {{from: 0, to: 99, widths: [5, 10, 20, 40]}}}}}}
  zip: {{role: quasi, hierarchy: {{mask: {{length: 5}}}}}}
  day: {{role: quasi, hierarchy: {{intervals: {{from: 0, to: 107, widths: [7, 14, 28]}}}}}}
  clinic: {{role: quasi, hierarchy: {{flat: {{values: [{", ".join(CLINICS)}]}}}}}}
  group: {{role: quasi, hierarchy: {{flat: {{values: [{", ".join(GROUPS)}]}}}}}}
  insurer: {{role: quasi, hierarchy: {{flat: {{values: [{", ".join(INSURERS)}]}}}}}}
  class: {{role: quasi, hierarchy: {{flat: {{values: [{", ".join(CLASSES)}]}}}}}}
  drive_through: {{role: quasi, hierarchy: {{flat: {{values: ["0", "1"]}}}}}}
  result: {{role: sensitive, hierarchy: {{flat: {{values: [negative, positive, invalid]}}}}}}
  ct_value: {{role: drop}}
  collected: {{role: drop}}
  verified: {{role: drop}}
"""
# As a search of the default release chooses: what varies little is shown, the rest is not.
FIXED = {
    "gender": 0, "age": 3, "zip": 5, "day": 4, "clinic": 1, "group": 1, "insurer": 0, "class": 0,
    "drive_through": 1, "result": 0,
}  # fmt: skip


def make_covid_table(rows: int = ROWS, seed: int = 1) -> pl.DataFrame:
    """The table; about a third of the rows are further tests of a person who is there already."""
    draw = np.random.default_rng(seed)
    insurer = draw.choice(len(INSURERS), rows, p=[0.52, 0.28, 0.12, 0.035, 0.025, 0.02])
    sick = draw.random(rows) < np.array([0.045, 0.06, 0.07, 0.14, 0.12, 0.10])[insurer]
    result = np.where(draw.random(rows) < 0.02, "invalid", np.where(sick, "positive", "negative"))
    class_ = draw.choice(len(CLASSES), rows, p=[0.3, 0.45, 0.15, 0.06, 0.04])
    return pl.DataFrame(
        {
            "subject": draw.integers(0, rows, rows),
            "first_name": [f"first {x}" for x in draw.integers(0, 800, rows)],
            "last_name": [f"last {x}" for x in draw.integers(0, 800, rows)],
            "test": np.arange(rows),
            "gender": draw.choice(["female", "male"], rows),
            "age": np.clip(draw.gamma(2.0, 12.0, rows), 0, 99).astype(int),
            "zip": [f"{x:05d}" for x in draw.integers(19000, 19400, rows)],
            "day": draw.integers(0, 108, rows),
            "clinic": [CLINICS[min(int(x), 39)] for x in draw.exponential(6.0, rows)],
            "group": [GROUPS[x] for x in draw.choice(5, rows, p=[0.82, 0.1, 0.04, 0.03, 0.01])],
            "insurer": [INSURERS[x] for x in insurer],
            "class": [CLASSES[x] for x in class_],
            "drive_through": draw.integers(0, 2, rows).astype(str),
            "result": result,
            "ct_value": draw.normal(44, 3, rows).round(1),
            "collected": draw.exponential(6.0, rows).round(1),
            "verified": draw.exponential(5.0, rows).round(1),
        }
    )


def make_covid_spec(release: str, unit: str = "one row per person") -> SpecFile:
    """A spec of the table; the unit may be ``{id: subject}``."""
    return parse_spec(f"unit: {unit}\n{COLUMNS}\nrelease: {{{release}}}\n")


def format_fixed_levels() -> str:
    """Levels of every column, as a release names them."""
    return f"levels: {{{', '.join(f'{name}: {level}' for name, level in FIXED.items())}}}"
