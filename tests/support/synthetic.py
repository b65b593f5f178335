"""What tests of synthetic rows share: patients with related columns, and specs of their release."""

from __future__ import annotations

import datetime as dt

import numpy as np
import polars as pl

from incrowd.spec.file import SpecFile, parse_spec

REGIONS = [f"region {number}" for number in range(1, 9)]
COLUMNS = f"""
columns:
  patient: {{role: PATIENT}}
  sex: {{role: quasi, hierarchy: {{flat: {{values: [female, male]}}}}}}
  pregnant: {{role: quasi, hierarchy: {{flat: {{values: [yes, no]}}}}}}
  age: {{role: quasi, hierarchy: {{intervals: {{from: 0, to: 99, step: 5, widths: [10, 50]}}}}}}
  smoker: {{role: quasi, hierarchy: {{flat: {{values: [true, false]}}}}}}
  region: {{role: quasi, other: elsewhere, hierarchy: {{order: {{values: {REGIONS}, runs: [2]}}}}}}
  admitted: {{role: quasi, hierarchy: {{dates:
    {{from: 2020-01-01, to: 2021-06-30, levels: [month, quarter]}}}}}}
  discharged: {{role: quasi, hierarchy: {{dates:
    {{from: 2020-01-01, to: 2021-06-30, levels: [quarter, year], format: "%d.%m.%Y"}}}}}}
  weight: {{role: quasi, precision: 0.5, hierarchy: {{intervals: {{from: 0, to: 150, step: 2.5,
    widths: [10, 50]}}}}}}
  diagnosis: {{role: sensitive, hierarchy: {{flat: {{values: ["=a", "@b", c]}}}}}}
"""
RULES = (
    "rules: [{if: {sex: male}, then: {pregnant: no}}, {never: {age: null}}, "
    "{order: [admitted, discharged]}]"
)
BUDGET = "method: synthetic, epsilon: 1, delta: 1.0e-6"


def make_spec(release: str = BUDGET, *, role: str = "key", more: str = "") -> SpecFile:
    """Return a spec of synthetic patients."""
    columns = COLUMNS.replace("PATIENT", role)
    return parse_spec(f"{columns}{more}\nrelease: {{{release}}}\n")


def make_patients(rows: int = 2000, seed: int = 1, *, visits: int = 1) -> pl.DataFrame:
    """Return patients: pregnancy depends on sex and age, smoking and weight on age."""
    draw = np.random.default_rng(seed)
    age = np.clip(draw.normal(45, 20, rows), 0, 99).astype(int)
    sex = draw.choice(["female", "male"], rows)
    fertile = (sex == "female") & (age > 17) & (age < 45)
    day = draw.integers(0, 500, rows)
    first = dt.date(2020, 1, 1)
    return pl.DataFrame(
        {
            "patient": [f"p{at // visits}" for at in range(rows)],
            "sex": sex,
            "pregnant": np.where(fertile & (draw.random(rows) < 0.3), "yes", "no"),
            "age": age,
            "smoker": draw.random(rows) < np.where(age < 30, 0.5, 0.1),
            "region": [
                "abroad" if at % 50 == 0 else REGIONS[number]
                for at, number in enumerate(draw.integers(0, 8, rows).tolist())
            ],
            "admitted": [first + dt.timedelta(int(at)) for at in day],
            "discharged": [
                None if at % 20 == 0 else (first + dt.timedelta(int(at + 10))).strftime("%d.%m.%Y")
                for at in day
            ],
            "weight": np.round(draw.normal(75, 12, rows) + age / 10, 1),
            "diagnosis": draw.choice(["=a", "@b", "c"], rows, p=[0.6, 0.3, 0.1]),
        }
    )
