"""Shares below which values are lost: forecast without the table, held against releases."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from support.unjudged import publish_unjudged

from incrowd.curate.check import check
from incrowd.curate.rare_values import find_risk_of_values, find_values_at_risk
from incrowd.engine.source import open_table
from incrowd.spec.file import load_spec

SIZE = 12_000
SAFE = {"method": "safe", "epsilon": 1.0, "delta": 1e-6, "draw": "counts"}
RARE = [f"v{at}" for at in range(12)]


def flat(values: list[str]) -> dict[str, Any]:
    return {"role": "quasi", "hierarchy": {"flat": {"values": values}}}


def describe(release: dict[str, Any], **more: Any) -> dict[str, Any]:
    columns = {f"c{at}": flat(["a", "b", "c"]) for at in range(4)} | {"rare": flat(RARE)}
    return {"columns": columns, "release": release, **more}


def make_table(size: int = SIZE) -> pl.DataFrame:
    """Concentrated, independent columns; the rare one has values from 30 % to 0.05 %."""
    draw = np.random.default_rng(4)
    third = np.arange(1, 4) ** -2.0
    shares = 0.5 * 0.5 ** np.arange(12)
    columns = {
        f"c{at}": draw.choice(["a", "b", "c"], size, p=third / third.sum()) for at in range(4)
    }
    return pl.DataFrame({**columns, "rare": draw.choice(RARE, size, p=shares / shares.sum())})


@pytest.mark.parametrize("size", [12_000, 3_000])
def test_values_above_the_share_are_kept_and_others_lost(size: int) -> None:
    spec = describe(SAFE)
    risks = {risk.column: risk.share for risk in find_values_at_risk(spec, size=size)}
    table = make_table(size)
    data = publish_unjudged(table, spec).data
    assert isinstance(data, pl.DataFrame)
    assert 0.001 < risks["rare"] < 0.3
    for value in RARE:
        before = table.filter(pl.col("rare") == value).height
        after = data.filter(pl.col("rare") == value).height
        if before / size > 2.5 * risks["rare"]:
            assert after > 0.5 * before, value
        if before and before / size < risks["rare"] / 2.5:
            assert after < 0.5 * before, value


def test_more_people_lose_less_and_more_columns_lose_more() -> None:
    shares = [
        next(r.share for r in find_values_at_risk(describe(SAFE), size=size) if r.column == "rare")
        for size in (2_000, 10_000, 100_000)
    ]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] > shares[-1]
    synthetic = {"method": "synthetic", "epsilon": 1.0, "delta": 1e-6}
    (first, *_) = find_values_at_risk(describe(synthetic), size=10_000)
    assert 0 < first.share < 0.05


def test_no_size_no_risk_and_tables_lose_no_value() -> None:
    assert find_values_at_risk(describe(SAFE)) == ()
    tables = {"method": "tables", "epsilon": 1.0, "delta": 1e-6, "all": 2}
    assert find_values_at_risk(describe(tables), size=SIZE) == ()


def test_check_says_it_before_anything_is_spent_whatever_the_values() -> None:
    spec = describe(SAFE, size=SIZE)
    notes = [
        [str(x) for x in check(open_table(table), spec) if x.code == "VALUES_AT_RISK"]
        for table in (make_table(), make_table(500))
    ]
    assert len(notes[0]) == 1
    assert notes[0] == notes[1]
    assert "rare below " in notes[0][0]


def test_check_says_how_many_people_a_value_of_the_target_needs() -> None:
    columns = {"a": flat(["x", "y"]), "ill": flat(["no", "yes"])}
    release = {"method": "safe", "epsilon": 1.0, "delta": 1e-6, "target": "ill"}
    spec = load_spec({"columns": columns, "release": release, "size": 12_000})
    (finding,) = [x for x in find_risk_of_values(spec) if x.code == "TARGET_VALUES_AT_RISK"]
    assert finding.column == "ill"
    assert "fewer than 66 people have (0.5 % of 12,000)" in finding.message
    assert "within ±60 people" in finding.message  # ln 20 over a twentieth of epsilon
    without = {name: value for name, value in release.items() if name != "target"}
    spec = load_spec({"columns": columns, "release": without, "size": 12_000})
    assert "TARGET_VALUES_AT_RISK" not in {x.code for x in find_risk_of_values(spec)}


def test_where_rows_are_counted_a_value_of_the_target_needs_rows() -> None:
    columns = {"a": flat(["x", "y"]), "ill": flat(["no", "yes"]), "id": {"role": "identifier"}}
    release = {"method": "safe", "epsilon": 1.0, "delta": 1e-6, "target": "ill"}
    unit = {"id": "id", "rows": 4, "per_group": 2}
    spec = load_spec({"columns": columns, "release": release, "size": 12_000, "unit": unit})
    (finding,) = [x for x in find_risk_of_values(spec) if x.code == "TARGET_VALUES_AT_RISK"]
    assert " rows have may be lost" in finding.message
    assert "within ±120 rows" in finding.message
    assert "people" not in finding.message
    assert "12,000" not in finding.message  # that is people
