"""Raking: the totals are met, and no weights that meet them are nearer."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import root

from incrowd.arrays import Floats
from incrowd.errors import IncrowdError
from incrowd.measure.calibration import Margin, rake_weights


def margin(name: str, members: list[int], totals: list[float]) -> Margin:
    labels = [f"{name}{at}" for at in range(len(totals))]
    return Margin(name, np.array(members), labels, np.array(totals))


def test_textbook_table() -> None:
    """Deming and Stephan's scaling by hand: one margin is a ratio, whatever the weights."""
    raked = rake_weights(
        np.array([2.0, 1.0, 1.0]), np.array([1, 2, 4]), [margin("r", [0, 0, 1], [80, 20])]
    )
    assert raked.weights.tolist() == pytest.approx([40, 20, 5])
    assert (raked.smallest_factor, raked.largest_factor) == pytest.approx((5, 20))


def solve_dual(weights: Floats, rows: Floats, margins: list[Margin]) -> Floats:
    """Another way to the same weights: the multipliers of the dual, by Newton's method.

    It is how survey packages calibrate by the raking distance: weights are d exp(x' lambda).
    """
    indicator = np.column_stack(
        [m.members == at for m in margins for at in range(len(m.totals))][: -len(margins) + 1]
    ).astype(float)
    totals = np.concatenate([m.totals for m in margins])[: indicator.shape[1]]
    solution = root(
        lambda x: indicator.T @ (rows * weights * np.exp(indicator @ x)) / totals - 1,
        np.zeros(indicator.shape[1]),
        tol=1e-13,
    )
    assert solution.success
    calibrated: Floats = weights * np.exp(indicator @ solution.x)
    return calibrated


@pytest.mark.parametrize("seed", range(4))
def test_weights_are_those_of_the_dual(seed: int) -> None:
    rng = np.random.default_rng(seed)
    first, second = rng.integers(0, 3, 60), rng.integers(0, 2, 60)
    weights, rows = rng.uniform(0.5, 4, 60), rng.integers(1, 5, 60)
    margins = [
        Margin("a", first, list("xyz"), np.array([300.0, 150.0, 250.0])),
        Margin("b", second, list("uv"), np.array([420.0, 280.0])),
    ]
    raked = rake_weights(weights, rows, margins).weights
    for each in margins:
        sums = np.bincount(each.members, weights=raked * rows)
        assert sums == pytest.approx(each.totals, rel=1e-9)
    assert raked == pytest.approx(solve_dual(weights, rows.astype(float), margins), rel=1e-7)


def test_no_weights_that_meet_the_totals_are_nearer() -> None:
    """Small moves that keep all totals increase the distance w log(w / d) - w + d."""
    rng = np.random.default_rng(9)
    members = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    weights = rng.uniform(1, 3, 4)
    raked = rake_weights(
        weights, np.ones(4, dtype=np.int64),
        [Margin("a", members[0], "xy", np.array([5.0, 7.0])),
         Margin("b", members[1], "uv", np.array([6.0, 6.0]))],
    ).weights  # fmt: skip

    def distance(w: Floats) -> float:
        return float((w * np.log(w / weights) - w + weights).sum())

    move = np.array([1.0, -1.0, -1.0, 1.0])  # the only one that keeps both margins
    for step in (1e-3, -1e-3):
        assert distance(raked + step * move) > distance(raked)


@pytest.mark.parametrize(
    ("margins", "words"),
    [
        ([margin("r", [0, 0], [80, 20])], "no row shows 'r1', which has a total"),
        ([margin("r", [0, 1], [80, 0])], "the total of 'r1' is not a positive number"),
        ([margin("r", [0, 1], [80, 20]), margin("s", [0, 1], [50, 60])], "their sums differ"),
        ([margin("r", [0, 1], [80, 20]), margin("s", [0, 1], [50, 50])], "no weights meet all"),
    ],
)
def test_impossible_totals_are_refused(margins: list[Margin], words: str) -> None:
    with pytest.raises(IncrowdError, match=words):
        rake_weights(np.ones(2), np.ones(2, dtype=np.int64), margins)


def test_no_rows_are_refused() -> None:
    nothing = np.array([], dtype=np.int64)
    with pytest.raises(IncrowdError, match="No rows to calibrate"):
        rake_weights(np.array([]), nothing, [Margin("r", nothing, ["x"], np.array([1.0]))])
