"""Generated households and their people, in two tables, and a spec of both."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

VALUES = {
    "region": ["east", "north", "south", "west"], "tenure": ["owner", "tenant"],
    "age": ["0-17", "18-64", "65+"], "sex": ["f", "m"],
}  # fmt: skip
OWN = ("region", "tenure")
PERSONAL = ("age", "sex")
Pair = dict[str, pl.DataFrame]


def make_census(number: int = 2500, *, seed: int = 5) -> Pair:
    draws = np.random.default_rng(seed)
    member = np.repeat(np.arange(number), draws.integers(1, 6, number))
    households = {name: draws.choice(VALUES[name], number) for name in OWN}
    people = {name: draws.choice(VALUES[name], len(member)) for name in PERSONAL}
    return {
        "people": pl.DataFrame({"household": member, **people}),
        "households": pl.DataFrame({"household": np.arange(number), **households}),
    }


def make_spec(rows: int = 3, **release: Any) -> dict[str, Any]:
    tree = {"groups": {"up": ["north", "west"], "down": ["east", "south"]}}
    hierarchies = {name: {"flat": {"values": values}} for name, values in VALUES.items()}
    hierarchies["region"] = tree
    return {
        "household": {"columns": list(OWN)},
        "unit": {"id": "household", "rows": rows, "protects": "household"},
        "columns": {
            "household": {"role": "identifier"},
            **{name: {"role": "quasi", "hierarchy": hierarchies[name]} for name in VALUES},
        },
        "release": {"method": "safe", "epsilon": 1.0, "delta": 1e-6, "rows": "counted", **release},
    }
