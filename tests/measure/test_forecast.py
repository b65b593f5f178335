"""What is expected of a table nobody has seen, against tables that were drawn as it assumes."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, poisson

from incrowd.arrays import Floats
from incrowd.measure.forecast import (
    ASSUMPTIONS,
    Assumption,
    GroupShares,
    PublishedShare,
    TableForecast,
    build_group_shares,
    build_mask_shares,
    compute_shares,
)
from incrowd.privacy.counts import build_event_law
from incrowd.privacy.events import GeometricCounts
from incrowd.spec.build import build_hierarchy
from incrowd.spec.hierarchies import Mask
from incrowd.spec.model import Column

Likely = Callable[[Floats], Floats]
RUNS = 300


def threshold(k: int) -> Likely:
    return lambda n: (n >= k).astype(float)


def sampled(k: int, beta: float) -> Likely:
    return lambda n: np.asarray(binom.sf(k - 1, np.round(n), beta))


def counted(k: int, r: int, epsilon: float) -> Likely:
    """A cell of n rows is shown where n + X >= r + k, X two-sided geometric from -r to r."""
    x = np.arange(-r, r + 1)
    law = np.exp(-epsilon * np.abs(x))
    law /= law.sum()
    return lambda n: np.array([law[size + x >= r + k].sum() if size >= 1 else 0.0 for size in n])


LIKELY: dict[str, Likely] = {
    "k-anonymity": threshold(5),
    "a larger k": threshold(20),
    "sample": sampled(8, 0.3),
    "counts": counted(3, 12, 1.0),
}


def outlook(shares: list[Floats], likely: Likely) -> TableForecast:
    """Columns of one level, with groups of these shares."""
    return TableForecast(
        {
            str(at): {0: GroupShares.from_shares(column_shares)}
            for at, column_shares in enumerate(shares)
        },
        likely,
    )


def cells_of(shares: list[Floats]) -> Floats:
    result = np.ones(1)
    for column_shares in shares:
        result = np.multiply.outer(result, column_shares).ravel()
    return result


def simulated(shares: list[Floats], likely: Likely, size: int, seed: int) -> tuple[Floats, float]:
    """The share of rows in cells that are shown, of many tables, and how often there is none."""
    draws, cells = np.random.default_rng(seed), cells_of(shares)
    rows, empty = np.zeros(RUNS), 0
    for run in range(RUNS):
        counts = draws.multinomial(size, cells / cells.sum()).astype(float)
        cell_rows = counts[counts > 0]
        is_published = draws.random(len(cell_rows)) < likely(cell_rows)
        rows[run] = cell_rows[is_published].sum() / size
        empty += not is_published.any()
    return rows, empty / RUNS


def poisson_rows(shares: list[Floats], likely: Likely, size: int) -> float:
    """The share of rows that are shown where every cell is Poisson, added up cell by cell."""
    cells, times = np.unique(np.round(cells_of(shares), 15), return_counts=True)
    n = np.arange(1.0, 2 * size + 50)
    chance = likely(n) * n / size
    pairs = zip(cells.tolist(), times.tolist(), strict=True)
    return float(sum(t * (poisson.pmf(n, size * p) @ chance) for p, t in pairs))


SCHEMES = st.lists(
    st.tuples(st.integers(2, 6), st.sampled_from(ASSUMPTIONS)), min_size=1, max_size=4
)


@settings(max_examples=40)
@given(SCHEMES, st.integers(20, 1500), st.sampled_from(sorted(LIKELY)))
def test_the_rows_that_are_shown_are_those_of_poisson_cells(
    scheme: list[tuple[int, Assumption]], size: int, name: str
) -> None:
    """The grid has a point for every five percent, so sizes are right to half of that."""
    shares = [compute_shares(*arguments) for arguments in scheme]
    result = outlook(shares, LIKELY[name]).predict_share(
        {str(at): 0 for at in range(len(shares))}, size
    )
    less, more = (poisson_rows(shares, LIKELY[name], round(size * x)) for x in (0.93, 1.07))
    assert less - 0.01 <= result.rows <= more + 0.01


@pytest.mark.parametrize("assumption", ASSUMPTIONS)
@pytest.mark.parametrize("name", sorted(LIKELY))
@pytest.mark.parametrize(("values", "size"), [((6, 4), 200), ((5, 5, 3), 900), ((12,), 120)])
def test_what_is_seen_is_what_tables_show(
    values: tuple[int, ...], size: int, name: str, assumption: Assumption
) -> None:
    """Within five standard errors of the mean of the tables drawn, and what the grid may add."""
    shares = [compute_shares(value, assumption) for value in values]
    levels = {str(at): 0 for at in range(len(values))}
    result = outlook(shares, LIKELY[name]).predict_share(levels, size)
    rows, empty = simulated(shares, LIKELY[name], size, seed=len(values) + size)
    assert abs(result.rows - rows.mean()) < 5 * rows.std() / RUNS**0.5 + 0.04
    assert abs(result.empty - empty) < 5 * (0.25 / RUNS) ** 0.5
    twice = outlook(shares, LIKELY[name]).predict_share(levels, 2 * size)
    if 0.1 < rows.mean() < 0.8:  # so that a wrong size would be seen
        assert abs(twice.rows - rows.mean()) > 0.05


@pytest.mark.parametrize("assumption", ASSUMPTIONS)
@pytest.mark.parametrize(
    ("name", "values"), [("k-anonymity", 40), ("a larger k", 10), ("sample", 8), ("counts", 10)]
)
def test_how_likely_nothing_is_shown(name: str, values: int, assumption: Assumption) -> None:
    """At sizes where it is neither certain nor excluded."""
    shares = [compute_shares(values, assumption)]
    checks = 0
    for size in (6, 8, 10, 14, 20, 30, 40, 60, 80, 120, 160, 200, 240):
        _, empty = simulated(shares, LIKELY[name], size, seed=size)
        if 0.1 < empty < 0.9:
            checks += 1
            result = outlook(shares, LIKELY[name]).predict_share({"0": 0}, size).empty
            assert abs(result - empty) < 5 * (0.25 / RUNS) ** 0.5 + 0.03
    assert checks >= 1


def test_the_law_of_counts_is_that_of_the_release() -> None:
    plain = np.exp(-1.0 * np.arange(13))
    law = build_event_law(GeometricCounts(r=12, epsilon=1.0))
    assert law.tail == pytest.approx(plain / (2 * plain.sum() - 1), rel=1e-9)


# Levels ----------------------------------------------------------------------------------------


def column(**hierarchy: Any) -> dict[str, dict[int, GroupShares]]:
    declared = Column.model_validate({"role": "quasi", "hierarchy": hierarchy})
    built = build_hierarchy(declared, folder=Path())
    return {
        assumption: {
            level: build_group_shares(built, level, assumption) for level in range(built.height)
        }
        for assumption in ASSUMPTIONS
    }


AGE = column(intervals={"from": 0, "to": 79, "widths": [5, 10, 40]})
SEX = column(flat={"values": ["a", "b"]})
PLACE = column(groups={"n": ["a", "b", "c"], "s": ["d", "e"], "w": ["f"]})


@pytest.mark.parametrize("assumption", ASSUMPTIONS)
def test_shares_of_groups_add_up_over_their_values(assumption: Assumption) -> None:
    plain = np.arange(1, 7) ** {"skewed": -1.0, "concentrated": -2.0}[assumption]
    plain /= plain.sum()
    result = PLACE[assumption][1]
    assert sorted(result.mass) == pytest.approx(
        sorted([plain[:3].sum(), plain[3:5].sum(), plain[5]])
    )
    assert np.exp(result.logs) == pytest.approx(result.mass)
    for level, first in PLACE[assumption].items():
        assert first.mass.sum() == pytest.approx(1)
        assert first.is_single == (level == 2)


@pytest.mark.parametrize("name", sorted(LIKELY))
@pytest.mark.parametrize("assumption", ASSUMPTIONS)
def test_more_people_never_make_levels_coarser(name: str, assumption: Assumption) -> None:
    table_forecast = TableForecast(
        {"age": AGE[assumption], "sex": SEX[assumption], "place": PLACE[assumption]}, LIKELY[name]
    )
    fineness, row_shares = [], []
    for size in np.geomspace(3, 3_000_000, 25):
        levels = table_forecast.find_finest_levels(size, 0.9)
        fineness.append(-sum(levels.values()))
        share = table_forecast.predict_share(levels, size)
        row_shares.append(share.rows)
        assert share.rows >= 0.9 or levels == table_forecast.coarsest_levels
    assert fineness == sorted(fineness)
    assert fineness[0] == -sum(table_forecast.coarsest_levels.values())
    assert fineness[-1] == 0
    rows = [
        table_forecast.predict_share({"age": 1, "sex": 0, "place": 1}, size).rows
        for size in (10, 100, 1e3, 1e4, 1e5)
    ]
    assert rows == sorted(rows)


@pytest.mark.parametrize("name", sorted(LIKELY))
@pytest.mark.parametrize("assumption", ASSUMPTIONS)
def test_the_size_that_it_takes_is_the_smallest_that_shows_enough(
    name: str, assumption: Assumption
) -> None:
    table_forecast = TableForecast({"age": AGE[assumption], "sex": SEX[assumption]}, LIKELY[name])
    sizes = []
    for share in (0.3, 0.6, 0.9, 0.99):
        size = table_forecast.find_table_size({"age": 2, "sex": 0}, share)
        assert table_forecast.predict_share({"age": 2, "sex": 0}, size * 1.01).rows >= share
        assert table_forecast.predict_share({"age": 2, "sex": 0}, size / 1.08).rows < share
        sizes.append(size)
    assert sizes == sorted(sizes)
    at_levels = [
        table_forecast.find_table_size({"age": level, "sex": 0}, 0.9) for level in (3, 2, 1, 0)
    ]
    assert at_levels == sorted(at_levels)


def test_what_shows_nothing_takes_more_people_than_there_are() -> None:
    table_forecast = TableForecast(
        {str(at): {0: GroupShares.from_shares(compute_shares(10, "even"))} for at in range(60)},
        threshold(5),
    )
    levels = {str(at): 0 for at in range(60)}
    assert table_forecast.find_table_size(levels, 0.9) == math.inf
    assert table_forecast.predict_share(levels, 1e9) == PublishedShare(0.0, 1.0, groups=0.0)


# Masks -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("assumption", ASSUMPTIONS)
@pytest.mark.parametrize("hidden", [0, 1, 2, 3])
def test_each_character_of_a_mask_is_a_column_of_its_own(
    hidden: int, assumption: Assumption
) -> None:
    mask_shares = build_mask_shares(
        Mask(length=3, alphabet="abca"), hidden, assumption
    )  # a stands twice
    every = cells_of([compute_shares(3, assumption)] * (3 - hidden))
    assert mask_shares.mass.sum() == pytest.approx(1)
    kinds, at = np.unique(np.round(np.log(every), 6), return_inverse=True)
    assert mask_shares.logs == pytest.approx(kinds, abs=1e-5)
    assert mask_shares.mass == pytest.approx(np.bincount(at, weights=every), rel=1e-5)
    assert mask_shares.is_single == (hidden == 3)


def test_a_long_mask_has_few_kinds_of_groups() -> None:
    assert len(build_mask_shares(Mask(length=24), 0, "even").logs) < 1000
    mask_shares = build_mask_shares(Mask(length=6), 2, "even")
    assert np.exp(mask_shares.logs) == pytest.approx([1e-4], rel=1e-4)


# Many columns ----------------------------------------------------------------------------------


@pytest.mark.parametrize("assumption", ASSUMPTIONS)
def test_many_columns_are_no_matter(assumption: Assumption) -> None:
    """Not a limit of time, but of growth: 86 columns have 2^86 cells and more."""
    columns = {f"{kind}{at}": shares[assumption] for at in range(29)
               for kind, shares in (("age", AGE), ("sex", SEX), ("place", PLACE))}  # fmt: skip
    del columns["place28"]
    start = time.process_time()
    table_forecast = TableForecast(columns, threshold(5))
    levels = table_forecast.find_finest_levels(1000, 0.9)
    assert time.process_time() - start < 20  # it takes one; every cell would take for ever
    assert len(levels) == 86
    assert table_forecast.predict_share(levels, 1000).rows >= 0.9
    assert 0 < len(table_forecast.list_informative_columns(levels)) < 86
    assert table_forecast.predict_share(dict.fromkeys(columns, 0), 1000).rows < 1e-3
    assert table_forecast.predict_share(table_forecast.find_informative_levels(), 1000).rows < 0.9
    assert set(
        table_forecast.list_informative_columns(table_forecast.find_informative_levels())
    ) == set(columns)


def test_a_long_mask_of_many_letters_is_expected_soon() -> None:
    """Its groups are too many to be told apart; those of near sizes are taken together."""
    from string import ascii_letters

    mask_shares = build_mask_shares(Mask(length=20, alphabet=ascii_letters), 0, "skewed")
    assert len(mask_shares.logs) <= 4001
    assert mask_shares.mass.sum() == pytest.approx(1.0)
    # The mean of the logarithm of a text's share is that of its characters, added up.
    letter_shares = compute_shares(len(ascii_letters), "skewed")
    entropy = 20 * float((letter_shares * np.log(letter_shares)).sum())
    assert float((mask_shares.mass * mask_shares.logs).sum()) == pytest.approx(entropy, rel=1e-3)


@pytest.mark.parametrize("names", [("c0", "c1"), ("c3", "c4"), ("c0",)])
def test_missing_rows_move_the_shares_of_pairs_as_simulated(names: tuple[str, ...]) -> None:
    """Ten tables whose cells of fewer than 20 rows are missing; bare missing rows are far off."""
    values, size = {"c0": 6, "c1": 4, "c2": 5, "c3": 3, "c4": 2}, 2_000
    shares = {name: compute_shares(number, "concentrated") for name, number in values.items()}
    columns = {name: {0: GroupShares.from_shares(shares[name])} for name in values}
    outlook = TableForecast(columns, lambda rows: np.where(rows >= 20, 1.0, 0.0))
    levels, draw = dict.fromkeys(values, 0), np.random.default_rng(1)
    distances, missing = [], []
    for _ in range(10):
        rows = np.column_stack([draw.choice(len(p), size, p=p) for p in shares.values()])
        _, cell, counts = np.unique(rows, axis=0, return_inverse=True, return_counts=True)
        is_published = counts[cell.ravel()] >= 20
        part = rows[:, [[*values].index(name) for name in names]]
        tuples, which = np.unique(part, axis=0, return_inverse=True)
        before = np.bincount(which.ravel(), minlength=len(tuples)) / size
        after = np.bincount(which.ravel()[is_published], minlength=len(tuples))
        distances.append(float(np.abs(before - after / is_published.sum()).sum() / 2))
        missing.append(1 - float(is_published.mean()))
    expected = outlook.predict_pair_distance(levels, size, names)
    assert expected == pytest.approx(np.mean(distances), abs=0.02)
    assert np.mean(missing) - expected > 0.1
    assert outlook.predict_pair_distance(levels, 10**9, names) < 1e-3
    assert outlook.predict_pair_distance(levels, 1, names) == 1.0  # no cell has 20 rows
