"""A wide table as registries and surveys have it: few columns that identify, many answers."""

from __future__ import annotations

import numpy as np
import polars as pl

ANSWERS = np.array(["never", "rarely", "sometimes", "often", "always"])


def make_questionnaires(rows: int = 600, columns: int = 171) -> pl.DataFrame:
    """Draw people with an id, a place, an age and so many columns in all, by a fixed seed."""
    rng = np.random.default_rng(37)
    table: dict[str, object] = {
        "respondent": [f"R{at:05d}" for at in range(rows)],
        "postcode": [f"{10115 + 13 * int(x)}" for x in rng.integers(0, 40, rows)],
        "sex": np.where(rng.random(rows) < 0.5, "female", "male"),
        "age": rng.integers(18, 90, rows),
        "diagnosis": rng.choice(["none", "asthma", "diabetes", "migraine"], rows),
    }
    for at in range(columns - len(table)):
        kind = at % 6
        if kind < 3:
            table[f"answer_{at:03d}"] = ANSWERS[rng.integers(0, 5, rows)]
        elif kind == 3:
            table[f"lab_{at:03d}"] = np.round(rng.lognormal(2, 0.4, rows), 1)
        elif kind == 4:
            table[f"had_{at:03d}"] = np.where(rng.random(rows) < 0.2, "yes", "no")
        else:
            visits = pl.Series(rng.poisson(2, rows))
            missing = pl.Series(rng.random(rows) < 0.1)
            table[f"visits_{at:03d}"] = pl.select(pl.when(~missing).then(visits)).to_series()
    return pl.DataFrame(table)
