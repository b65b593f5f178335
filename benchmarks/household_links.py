"""Households and people in one release: what two tables publish, and what linked ones would.

python benchmarks/household_links.py [HOUSEHOLDS]

A linked release (`linked: true`) publishes whole households: k must agree in their own values and
in those of all their people. Households are generated: couples and single people with children,
whose values go together as they do in life. Epsilon is 1, delta 1e-6, k 5 throughout; levels are
the finest.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np
import polars as pl

import incrowd as ic

OWN = ("region", "tenure", "building")
PERSONAL = ("age", "sex", "work")
SETTINGS = (
    (OWN[:1], PERSONAL[:1]), (OWN[:2], PERSONAL[:2]), (OWN, PERSONAL),
    (OWN, ("decade", "sex", "work")),
)  # fmt: skip
BUDGET = {"method": "safe", "epsilon": 1.0, "delta": 1e-6, "k": 5, "rows": "counted"}
MEMBERS = 5


def make_census(number: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return households and their people; the phase of life decides much of both."""
    draws = np.random.default_rng(2)
    phase = draws.choice(3, number, p=[0.35, 0.4, 0.25])  # young, with children, old
    has_house = draws.random(number) < np.array([0.2, 0.6, 0.5])[phase]
    households = pl.DataFrame(
        {
            "household": np.arange(number),
            "region": draws.choice(["north", "east", "south", "west"], number),
            "tenure": np.where(draws.random(number) < 0.2 + 0.6 * has_house, "owner", "tenant"),
            "building": np.where(has_house, "house", "flat"),
        }
    )
    adults = 1 + (draws.random(number) < np.array([0.4, 0.8, 0.5])[phase]).astype(int)
    children = np.where(phase == 1, draws.choice([1, 2, 3], number, p=[0.45, 0.4, 0.15]), 0)
    years = np.array([draws.integers(18, 40, number), draws.integers(25, 55, number),
                      draws.integers(65, 95, number)])[phase, np.arange(number)]  # fmt: skip
    rows: list[tuple[Any, ...]] = []
    for at in range(number):
        first, is_old = int(draws.integers(2)), phase[at] == 2
        for place in range(adults[at]):
            same_sex = draws.random() < 0.03
            sex = first if place == 0 or same_sex else 1 - first
            age = years[at] + int(draws.integers(-3, 4)) * place
            work = "none" if draws.random() < (0.95 if is_old else 0.2) else "work"
            rows.append((at, "65+" if is_old else "18-64", "fm"[sex], work, f"{age // 10}0s"))
        rows += [
            (at, "0-17", "fm"[int(draws.integers(2))], "school", f"{draws.integers(18) // 10}0s")
            for _ in range(children[at])
        ]
    names = ["household", *PERSONAL, "decade"]
    return households, pl.DataFrame(rows, schema=names, orient="row")


def make_columns(table: pl.DataFrame, names: tuple[str, ...]) -> dict[str, Any]:
    """Return the entries of columns that list the values met."""
    return {
        name: {"role": "quasi", "hierarchy": {"flat": {"values": sorted(table[name].unique())}}}
        for name in names
    }


def make_spec(households: pl.DataFrame, people: pl.DataFrame) -> dict[str, Any]:
    """Return a spec of both tables at the finest levels."""
    shared, personal = tuple(households.columns[1:]), tuple(people.columns[1:])
    names, joined = (*shared, *personal), people.join(households, on="household")
    return {
        "household": {"columns": list(shared)},
        "unit": {"id": "household", "rows": MEMBERS, "protects": "household"},
        "columns": {"household": {"role": "identifier"}, **make_columns(joined, names)},
        "release": {**BUDGET, "levels": dict.fromkeys(names, 0)},
    }


def publish_linked(households: pl.DataFrame, people: pl.DataFrame, draw: str) -> float:
    """Return the share of households that are published whole; of a sample, of those drawn."""
    spec = make_spec(households, people)
    spec["household"]["linked"] = True
    spec["release"] |= {"rows": "expanded", "draw": draw}
    if draw == "sample":
        spec["release"].pop("k")
    release = ic.publish({"people": people, "households": households}, spec)
    first = release.evaluation.slices[0]
    if draw == "sample":
        rate = float(release.certificate.tables[0].parameters["beta"])
        return first.rows_released / (rate * first.rows_original)
    return 1 - first.suppressed / first.rows_original


def publish_two_tables(households: pl.DataFrame, people: pl.DataFrame) -> tuple[float, float]:
    """Return the share of households, and of pairs of a household and a group, published."""
    both = {"people": people, "households": households}
    evaluation = ic.publish(both, make_spec(households, people)).evaluation
    first, second = (1 - part.suppressed / part.rows_original for part in evaluation.slices)
    return first, second


def main() -> None:
    """Print a table of shares, one column for each number of columns."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("households", type=int, nargs="?", default=50_000)
    warnings.simplefilter("ignore")
    households, people = make_census(parser.parse_args().households)
    lines: dict[str, list[float]] = {}
    for shared, personal in SETTINGS:
        own_table = households.select("household", *shared)
        person_table = people.select("household", *personal)
        for draw in ("counts", "sample"):
            share = publish_linked(own_table, person_table, draw)
            lines.setdefault(f"linked, {draw}", []).append(share)
        both = publish_two_tables(own_table, person_table)
        for name, share in zip(("households", "people"), both, strict=True):
            lines.setdefault(f"two tables, {name}", []).append(share)
    for name, shares in lines.items():
        print(f"| {name} | " + " | ".join(f"{100 * share:.1f} %" for share in shares) + " |")


if __name__ == "__main__":
    main()
