"""Survey weights through a release: published or not, estimated with, and refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from support.unjudged import publish_unjudged

import incrowd as ic
from incrowd.measure.weighted import estimate_mean

COLUMNS = {
    "region": {
        "role": "quasi", "hierarchy": {"flat": {"values": ["north", "south", "islands"]}},
    },
    "income": {"role": "sensitive"},
    "w": {"role": "weight"},
}  # fmt: skip


def survey(rows: int = 600) -> pl.DataFrame:
    """A survey whose islands are too few to be published."""
    draw = np.random.default_rng(8)
    region = np.array(["north"] * (rows // 2) + ["south"] * (rows // 2 - 5) + ["islands"] * 5)
    weight = np.select([region == "north", region == "south"], [310.0, 240.5], 35.0)
    return pl.DataFrame({"region": region, "income": draw.integers(10, 60, rows), "w": weight})


def make_spec(columns: dict[str, Any] = COLUMNS, **release: Any) -> dict[str, Any]:
    return {"columns": columns, "release": release}


def test_k_anonymity_publishes_weights_and_estimates_with_them() -> None:
    table = survey()
    spec = make_spec(method="k-anonymity", k=20, levels={"region": 0})
    with pytest.warns(ic.IncrowdWarning):
        release = ic.publish(table, spec)
    assert set(release.data["w"].unique()) == {310.0, 240.5}
    weighted = release.evaluation.weighted
    assert weighted is not None
    assert weighted.total_before == pytest.approx(table["w"].sum())
    assert weighted.total_after == pytest.approx(release.data["w"].sum())
    (income,) = weighted.estimates
    ones = np.ones(len(table), dtype=np.int64)
    by_hand = estimate_mean(table["income"].to_numpy().astype(float), table["w"].to_numpy(), ones)
    assert (income.before, income.before_error) == pytest.approx(by_hand)
    data = release.data
    ones = np.ones(len(data), dtype=np.int64)
    after = estimate_mean(data["income"].to_numpy().astype(float), data["w"].to_numpy(), ones)
    assert (income.after, income.after_error) == pytest.approx(after)
    assert ic.evaluate(table, release, spec).weighted == weighted
    assert "Weighted estimates" in release.report().html
    assert [finding.code for finding in release.findings if "WEIGHT" in finding.code] == [
        "WEIGHTS_ARE_RARE"
    ]


def test_released_weights_calibrate_to_totals_that_suppression_lost() -> None:
    release = publish_unjudged(
        survey(), make_spec(method="k-anonymity", k=20, levels={"region": 0})
    )
    totals = {"region": {"north": 95_000, "south": 71_000}}
    data = ic.calibrate(release, totals, weight="w").data
    assert dict(data.group_by("region").agg(pl.col("w").sum()).iter_rows()) == pytest.approx(
        totals["region"]
    )


@pytest.mark.parametrize("method", ["safe", "synthetic"])
def test_private_methods_do_not_publish_weights(method: str) -> None:
    columns = {name: COLUMNS[name] for name in ("region", "w")}
    table = survey().drop("income")
    spec = make_spec(columns, method=method, epsilon=2.0, delta=1e-6)
    release = (ic.publish if method == "synthetic" else publish_unjudged)(table, spec)
    assert "w" not in release.data.columns
    assert "WEIGHT_NOT_PUBLISHED" in [finding.code for finding in ic.check(table, spec)]


def test_the_role_is_what_risk_takes() -> None:
    result = ic.risk(survey(), make_spec(method="k-anonymity", k=20))
    assert result.basis == "weights"
    assert result.population == pytest.approx(survey()["w"].sum())


def test_weights_that_are_none_are_refused() -> None:
    table = survey().with_columns(w=pl.when(pl.col("income") > 58).then(None).otherwise("w"))
    with pytest.raises(ic.IncrowdError, match="Column 'w': 'None' is not a positive number"):
        publish_unjudged(table, make_spec(method="k-anonymity", k=5))


def test_only_one_column_is_the_weight() -> None:
    columns = {**COLUMNS, "v": {"role": "weight"}}
    with pytest.raises(ic.IncrowdError, match="only one column can have the role `weight`"):
        publish_unjudged(
            survey().with_columns(v="w"), make_spec(columns, method="k-anonymity", k=5)
        )
