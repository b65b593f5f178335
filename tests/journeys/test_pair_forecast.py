"""The forecast noise of a pair of columns, held against synthetic releases of generated tables."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from support.pinned_randomness import PinnedRandomness
from support.unjudged import publish_unjudged

from incrowd.curate.recommend import recommend_method
from incrowd.methods.synthetic.expect import LOST_RELATIONS

VALUES = ["a", "b", "c", "d"]


def make_table(rows: int, columns: int) -> pl.DataFrame:
    """Independent columns of concentrated values; the outcome follows the first in 9 of 10 rows."""
    draw = np.random.default_rng(rows + columns)
    frame = {
        f"c{at}": draw.choice(VALUES, rows, p=[0.5, 0.25, 0.15, 0.1]) for at in range(columns - 1)
    }
    follows = draw.random(rows) < 0.9
    outcome = np.where(follows, frame["c0"] != "a", draw.random(rows) < 0.5)
    return pl.DataFrame({**frame, "outcome": np.where(outcome, "yes", "no")})


def make_spec(columns: int, size: int) -> dict[str, Any]:
    listed = {
        f"c{at}": {"role": "quasi", "hierarchy": {"flat": {"values": VALUES}}}
        for at in range(columns - 1)
    }
    outcome = {"role": "sensitive", "hierarchy": {"flat": {"values": ["no", "yes"]}}}
    release = {"method": "synthetic", "epsilon": 1.0, "delta": 1e-6}
    return {"columns": {**listed, "outcome": outcome}, "release": release, "size": size}


def forecast_pair(columns: int, size: int) -> tuple[float, str]:
    recommendation = recommend_method(make_spec(columns, size))
    assert recommendation is not None
    (forecast,) = [x for x in recommendation.forecasts if x.method == "synthetic"]
    assert forecast.two_way is not None
    return forecast.two_way, recommendation.reason


def measure_pair(table: pl.DataFrame, released: pl.DataFrame, *names: str) -> float:
    """The total variation distance of the shares of two columns."""
    before, after = (
        Counter(zip(*(frame[name].to_list() for name in names), strict=True))
        for frame in (table, released)
    )
    cells = {*before, *after}
    return sum(abs(before[x] / table.height - after[x] / released.height) for x in cells) / 2


@pytest.mark.parametrize(("rows", "columns"), [(2_000, 6), (12_000, 6), (12_000, 16)])
def test_the_noise_of_measured_pairs_is_as_forecast(
    rows: int, columns: int, tmp_path: Path
) -> None:
    """Of all measured pairs of a release: within a factor of three, on the average."""
    table = make_table(rows, columns)
    release = publish_unjudged(
        table, make_spec(columns, rows), output=tmp_path / "out", bits=PinnedRandomness(1)
    )
    part = release.certificate.synthetic
    assert part is not None
    distances = []
    for measured in part.measured:
        if (
            len(measured.columns) != 2
            or "count" not in (listed := pl.read_csv(tmp_path / "out" / measured.file)).columns
        ):
            continue
        true = Counter(zip(*(table[name].to_list() for name in measured.columns), strict=True))
        gaps = [
            abs(row["count"] - true[tuple(row[name] for name in measured.columns)])
            for row in listed.to_dicts()
        ]
        distances.append(sum(gaps) / 2 / rows)
    assert distances
    expected, _ = forecast_pair(columns, rows)
    assert expected / 3 < float(np.mean(distances)) < expected * 3


@pytest.mark.parametrize(
    ("rows", "columns", "is_lost"), [(300, 24, True), (600, 30, True), (8_000, 12, False),
                                     (20_000, 24, False)],
)  # fmt: skip
def test_relations_are_said_to_be_lost_where_they_are(
    rows: int, columns: int, is_lost: bool
) -> None:
    """The one relation of a table, beside what independent columns would leave of it."""
    expected, reason = forecast_pair(columns, rows)
    assert (expected > LOST_RELATIONS) == is_lost
    table = make_table(rows, columns)
    shuffled = table.with_columns(pl.col("outcome").shuffle(seed=1))
    independent = measure_pair(table, shuffled, "c0", "outcome")
    remainders = []
    for seed in range(3):
        release = publish_unjudged(table, make_spec(columns, rows), bits=PinnedRandomness(seed))
        assert isinstance(release.data, pl.DataFrame)
        remainders.append(1 - measure_pair(table, release.data, "c0", "outcome") / independent)
    assert (float(np.mean(remainders)) < 0.5) == is_lost
    assert math.isfinite(expected)
    if not is_lost:
        assert "may be lost" not in reason
