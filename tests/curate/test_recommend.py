"""Forecasts of each method, against releases of tables that are as the forecast assumes."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl
import pytest
from support.pinned_randomness import PinnedRandomness
from support.unjudged import publish_unjudged

from incrowd.curate.check import check
from incrowd.curate.recommend import MethodForecast, Recommendation, recommend_method
from incrowd.engine.source import open_table
from incrowd.methods.expect import expect
from incrowd.privacy.randomness import Randomness, SystemRandomness
from incrowd.spec.build import ColumnHierarchies
from incrowd.spec.file import load_spec

AGE = {"role": "quasi", "hierarchy": {"intervals": {"from": 0, "to": 79, "widths": [5, 10, 40]}}}


def flat(values: int, role: str = "quasi") -> dict[str, Any]:
    return {"role": role, "hierarchy": {"flat": {"values": [f"v{at}" for at in range(values)]}}}


def describe(columns: dict[str, Any], **more: Any) -> dict[str, Any]:
    release = {"method": "safe", "epsilon": 1.0, "delta": 1e-6, "draw": "counts"}
    return {"columns": columns, "release": release, **more}


NARROW = {"sex": flat(2), "region": flat(4), "age": AGE, "job": flat(6)}
WIDE = {f"c{at}": flat(2 + at % 4) for at in range(10)}


def draw_concentrated(columns: dict[str, Any], size: int) -> pl.DataFrame:
    """Independent columns, the i-th value 1 / i**2 times as frequent as the first."""
    draws, data = np.random.default_rng(11), {}
    for name, column in columns.items():
        listed = column["hierarchy"].get("flat", {}).get("values", list(range(80)))
        shares = np.arange(1, len(listed) + 1) ** -2.0
        places = draws.choice(len(listed), size, p=shares / shares.sum())
        data[name] = [listed[place] for place in places.tolist()]
    return pl.DataFrame(data)


def recommend(columns: dict[str, Any], size: int) -> Recommendation:
    recommendation = recommend_method(load_spec(describe(columns)), size=size)
    assert recommendation is not None
    return recommendation


def get_forecast(recommendation: Recommendation, method: str) -> MethodForecast:
    (forecast,) = (x for x in recommendation.forecasts if x.method == method)
    return forecast


@pytest.mark.parametrize(("columns", "size"), [(NARROW, 20_000), (NARROW, 3_000), (WIDE, 5_000)])
def test_counts_keep_about_what_is_forecast(columns: dict[str, Any], size: int) -> None:
    """A release weighs rows against detail by itself: it keeps as many columns, or nearly."""
    forecast = get_forecast(recommend(columns, size), "counts")
    release = publish_unjudged(draw_concentrated(columns, size), describe(columns))
    data = release.data
    assert isinstance(data, pl.DataFrame)
    informative = sum(data[name].n_unique() > 1 for name in columns)
    assert abs(informative - forecast.informative) <= max(1, len(columns) // 5)
    assert data.height / size == pytest.approx(forecast.rows, abs=0.2)


@pytest.mark.parametrize(("columns", "size"), [(NARROW, 3_000), (WIDE, 5_000)])
def test_shares_of_synthetic_rows_are_within_the_forecast(
    columns: dict[str, Any], size: int
) -> None:
    """At most a few of some dozens of values may lie outside; each does with 5 % at most."""
    forecast = get_forecast(recommend(columns, size), "synthetic")
    table = draw_concentrated(columns, size)
    spec = describe(columns)
    spec["release"] = {"method": "synthetic", "epsilon": 1.0, "delta": 1e-6}
    data = publish_unjudged(table, spec).data
    assert isinstance(data, pl.DataFrame)
    errors = [
        abs(
            (table[name].cast(pl.String) == value).mean()
            - (data[name].cast(pl.String) == value).mean()
        )
        for name in columns
        for value in table[name].cast(pl.String).unique().to_list()
    ]
    sampling = 1 / np.sqrt(size)  # rows are drawn from the model
    assert np.mean(np.array(errors) > forecast.error + sampling) <= 0.1
    assert forecast.error < 0.2  # or the test says nothing


def test_the_method_follows_from_columns_and_size() -> None:
    assert recommend({"sex": flat(2), "region": flat(4)}, 5_000).method == "counts"
    assert recommend(WIDE, 5_000).method == "synthetic"
    assert recommend(WIDE | {"x": flat(40)}, 120).method == "k-anonymity"
    sizes = [
        get_forecast(recommend(WIDE, size), "counts").informative for size in (300, 3_000, 30_000)
    ]
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[-1]


def test_groups_that_lose_more_than_a_seventh_of_the_rows_give_way_to_synthetic_rows() -> None:
    """Five ordered columns keep enough of 12,000 people, seven do not."""

    def ordered(values: int) -> dict[str, Any]:
        listed = [str(at) for at in range(values)]
        return {"role": "quasi", "hierarchy": {"order": {"values": listed, "runs": [2]}}}

    columns = {f"c{at}": ordered(values) for at, values in enumerate((5, 4, 6, 6, 6, 4, 5))}
    few = dict(list(columns.items())[:5])
    for chosen, method in ((few, "counts"), (columns, "synthetic")):
        recommendation = recommend(chosen, 12_000)
        assert recommendation.method == method
        assert (get_forecast(recommendation, "counts").rows > 0.85) == (method == "counts")


def measure_pairs(table: pl.DataFrame, released: pl.DataFrame, hierarchies: Any) -> float:
    """The mean distance of pairs of columns at the published labels; 1 where nothing is shown."""
    distances = []
    for pair in combinations(hierarchies, 2):
        if min(released[name].n_unique() for name in pair) < 2:
            distances.append(1.0)
            continue
        before, after = (
            Counter(zip(*(frame[name].to_list() for name in pair), strict=True))
            for frame in (relabel(table, released, hierarchies), released)
        )
        cells = {*before, *after}
        distances.append(
            sum(abs(before[x] / table.height - after[x] / released.height) for x in cells) / 2
        )
    return float(np.mean(distances))


def relabel(table: pl.DataFrame, released: pl.DataFrame, hierarchies: Any) -> pl.DataFrame:
    """The table at the levels of its release: of each column, the one that has all its labels."""
    columns = {}
    for name, hierarchy in hierarchies.items():
        codes = hierarchy.encode(table[name].cast(pl.String).to_list())
        labels = {*released[name].cast(pl.String).to_list()}
        level = next(
            at for at, listed in enumerate(hierarchy.labels) if labels <= {*map(str, listed)}
        )
        listed = [hierarchy.labels[level][place] for place in hierarchy.groups[level][codes]]
        columns[name] = listed
    return pl.DataFrame(columns).cast(released.schema)


ORDERED = {
    f"c{at}": {
        "role": "quasi",
        "hierarchy": {"order": {"values": [str(x) for x in range(values)], "runs": [2]}},
    }
    for at, values in enumerate((5, 4, 6, 6, 6, 4, 5))
}


@pytest.mark.parametrize(
    ("columns", "size", "method"),
    [
        (NARROW, 3_000, "counts"), (WIDE, 5_000, "counts"), (WIDE, 30_000, "counts"),
        (ORDERED, 12_000, "counts"), (NARROW, 3_000, "k-anonymity"), (WIDE, 1_500, "k-anonymity"),
    ],
)  # fmt: skip
def test_pairs_of_columns_are_as_far_off_as_forecast(
    columns: dict[str, Any], size: int, method: str
) -> None:
    forecast = get_forecast(recommend(columns, size), method)
    table, spec = draw_concentrated(columns, size), describe(columns)
    if method == "k-anonymity":
        spec["release"] = {"method": "k-anonymity", "k": 5, "suppression": 0.05}
    file = load_spec(spec)
    declared = ColumnHierarchies(file.spec.columns)
    hierarchies = {name: declared.get_hierarchy(name, tuple) for name in columns}
    distances = []
    for seed in range(4):  # a search shows a column more or less by the draw
        bits: Randomness = PinnedRandomness(seed) if method == "counts" else SystemRandomness()
        released = publish_unjudged(table, spec, bits=bits).data
        assert isinstance(released, pl.DataFrame)
        distances.append(measure_pairs(table, released, hierarchies))
    measured = float(np.mean(distances))
    assert forecast.two_way is not None
    assert measured == pytest.approx(forecast.two_way, abs=0.06)


def test_columns_with_too_many_values_are_named_before_anything_is_spent() -> None:
    amount = {
        "role": "quasi",
        "hierarchy": {"intervals": {"from": 0, "to": 79999, "widths": [2500, 10000, 40000]}},
    }
    columns = WIDE | {"balance": amount}
    recommendation = recommend(columns, 9_000)
    assert recommendation.method == "synthetic"
    assert "within ranges of balance relations are lost" in recommendation.reason
    assert get_forecast(recommendation, "synthetic").fine == ("balance",)
    assert "relations are lost" not in recommend(WIDE, 9_000).reason


def test_relations_with_rare_values_are_named_where_noise_can_hide_them() -> None:
    """Noise of a pair of 0.02 left the model of a value of 7 % or lost it, by the draw."""
    columns = {f"w{name}": column for name, column in WIDE.items()} | ORDERED
    for size, is_named in ((20_000, True), (300_000, False)):
        recommendation = recommend(columns, size)
        two_way = get_forecast(recommendation, "synthetic").two_way
        assert recommendation.method == "synthetic"
        assert two_way is not None
        assert (0.01 < two_way <= 0.05) == is_named
        assert ("vary from draw to draw" in recommendation.reason) == is_named


def test_few_groups_of_all_columns_are_better_than_rows_without_relations() -> None:
    """Four columns of a thousand people, one of ages: nine groups, and noise of a pair of 0.1."""
    columns = {"class": flat(3), "sex": flat(2), "survived": flat(2), "age": AGE}
    recommendation = recommend(columns, 900)
    counts, synthetic = (get_forecast(recommendation, x) for x in ("counts", "synthetic"))
    assert counts.two_way is not None
    assert synthetic.two_way is not None
    assert counts.two_way < synthetic.two_way
    assert counts.groups is not None
    assert counts.groups < 10
    assert recommendation.method == "counts"
    assert "few and coarse" in recommendation.reason
    assert "of the rows, those with rare values, are suppressed" in recommendation.reason


def test_a_single_column_has_no_pairs() -> None:
    forecasts = recommend({"sex": flat(2)}, 5_000).forecasts
    assert {x.method: x.two_way for x in forecasts if x.groups} == {
        "counts": None, "k-anonymity": None,
    }  # fmt: skip


def test_no_size_no_recommendation() -> None:
    assert recommend_method(describe(NARROW)) is None
    assert recommend_method(describe(NARROW, size="public")) is None
    assert recommend_method(describe(NARROW, size=900)) is not None


def test_sensitive_columns_count_as_published_by_k_anonymity() -> None:
    forecast = get_forecast(recommend(NARROW | {"ill": flat(3, "sensitive")}, 3_000), "k-anonymity")
    assert forecast.columns == 5


def test_check_says_what_is_recommended_whatever_the_values() -> None:
    spec, notes = describe(WIDE, size=5_000), []
    for table in (draw_concentrated(WIDE, 400), draw_concentrated(WIDE, 60)):
        findings = check(open_table(table), spec)
        notes += [str(x) for x in findings if x.code == "METHOD_RECOMMENDED"]
    assert len(notes) == 2
    assert notes[0] == notes[1]
    assert "Recommended method for 5,000 people: synthetic" in notes[0]


def test_tables_of_every_two_columns_are_forecast_by_the_noise_of_their_cells() -> None:
    """The error of the table with the most noise, as the method itself plans it."""
    size = 3_000
    forecast = get_forecast(recommend(NARROW, size), "tables")
    spec = describe(NARROW)
    spec["release"] = {"method": "tables", "epsilon": 1.0, "delta": 1e-6, "all": 2}
    table = draw_concentrated(NARROW, size)
    assert forecast.informative == 4
    assert 0 < forecast.error < 0.1
    wide = recommend({f"c{at}": flat(2) for at in range(21)}, size)
    assert "tables" not in [x.method for x in wide.forecasts]
    assert expect(table, {**spec, "size": size}).findings()[0].values["error"] == pytest.approx(
        forecast.error * size, abs=1
    )


def test_counts_beside_the_rows_exclude_no_method_from_the_forecasts() -> None:
    """Only `safe` takes `rare: keep`; the others are forecast without it."""
    with_shares = {**NARROW, "job": {**NARROW["job"], "rare": "keep"}}
    forecasts = {x.method: x for x in recommend(with_shares, 20_000).forecasts}
    plain = {x.method: x for x in recommend(NARROW, 20_000).forecasts}
    assert forecasts.keys() == plain.keys() == {"counts", "synthetic", "tables", "k-anonymity"}
    for method in ("synthetic", "tables", "k-anonymity"):
        assert forecasts[method] == plain[method]
