"""Plans for counts: the crowd of a budget, and the budget of a crowd."""

from __future__ import annotations

from typing import Any

import pytest

import incrowd as ic
from incrowd.errors import IncrowdError, ParameterError, UnsolvableError
from incrowd.privacy.accountant import Accountant
from incrowd.privacy.counts import build_geometric_law
from incrowd.privacy.plan_counts import CountsPlan, plan_counts


@pytest.mark.parametrize(
    ("epsilon", "k", "crowd", "always"),
    [(0.5, 1, 26, 51), (1, 1, 15, 29), (1, 5, 19, 33), (2, 3, 10, 17)],
)
def test_the_crowd_of_a_budget(epsilon: float, k: int, crowd: int, always: int) -> None:
    counts = plan_counts(epsilon=epsilon, delta=1e-6, k=k)
    assert (counts.crowd, counts.certain_crowd, counts.r) == (crowd, always, crowd - k)
    assert counts.law.compute_tail(counts.r + k - crowd) > 0.5
    assert counts.law.compute_tail(counts.r + k - always) == 1.0
    assert 0.95 <= counts.law.find_error_bound(0.95) <= counts.r


def test_k_is_five_where_nobody_says_it() -> None:
    assert plan_counts(epsilon=1, delta=1e-6).k == 5


def test_the_error_of_a_count_holds_for_95_of_100_cells() -> None:
    counts = plan_counts(epsilon=1, delta=1e-6)
    law = build_geometric_law(1.0, 14)
    inside = law.compute_tail(-counts.error) - law.compute_tail(counts.error + 1)
    less = law.compute_tail(1 - counts.error) - law.compute_tail(counts.error)
    assert inside >= 0.95 > less


def test_the_budget_of_a_crowd() -> None:
    by_epsilon = plan_counts(crowd=19, delta=1e-6)
    assert by_epsilon.crowd == 19
    assert by_epsilon.epsilon == pytest.approx(0.927026, abs=2e-6)
    assert plan_counts(epsilon=by_epsilon.epsilon - 1e-4, delta=1e-6).crowd == 20
    by_delta = plan_counts(crowd=19, epsilon=1.0)
    assert by_delta.delta == pytest.approx(build_geometric_law(1.0, 14).min_delta, rel=1e-5)
    assert by_delta.delta >= build_geometric_law(1.0, 14).min_delta
    assert Accountant(by_delta.noise).delta(epsilon=1.0) <= by_delta.delta


@pytest.mark.parametrize("arguments", [{"delta": 1e-6}, {"epsilon": 1.0}])
def test_the_budget_of_a_crowd_for_several_tables(arguments: dict[str, float]) -> None:
    counts = plan_counts(crowd=50, releases=4, **arguments)  # type: ignore[arg-type]
    assert counts.crowd <= 50
    events = [counts.noise] * 4
    assert Accountant(events).delta(epsilon=counts.epsilon) <= counts.delta
    assert counts.epsilon == pytest.approx(1.0, rel=0.03)


def test_a_plan_asks_for_counts() -> None:
    result = ic.plan(draw="counts", epsilon=1, delta=1e-6)
    assert isinstance(result, CountsPlan)
    assert result == plan_counts(epsilon=1, delta=1e-6)
    assert ic.plan(epsilon=1, delta=1e-6) == ic.plan(epsilon=1, delta=1e-6, draw="sample")
    assert set(result.as_dict()) == {
        "k", "r", "crowd", "always", "error", "epsilon", "delta", "noise", "noise_epsilon",
        "chance", "releases", "rows",
    }  # fmt: skip
    assert (
        "Groups of 19 or more people are published with probability above 1/2" in result.describe()
    )
    assert "groups of 33 or more always" in str(result)
    assert "noise_variance" in ic.plan(draw="counts", epsilon=1, delta=1e-6, releases=4).as_dict()
    assert "<th>crowd</th><td>19</td>" in result._repr_html_()


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"epsilon": 1}, IncrowdError, "needs two of epsilon, delta and crowd. Got epsilon."),
        ({"epsilon": 1, "delta": 1e-6, "crowd": 20}, IncrowdError, "leave out the one to solve"),
        ({"delta": 1e-6, "crowd": 5}, ParameterError, "crowd.*be above k = 5"),
        ({"delta": 1e-12, "crowd": 6, "releases": 300}, UnsolvableError, "Use a larger crowd"),
        (
            {"epsilon": 1, "delta": 1e-6, "beta": 0.1},
            ParameterError,
            "beta.*counts, which keep",
        ),
        (
            {"epsilon": 1, "delta": 1e-6, "keep": 0.1},
            ParameterError,
            "keep.*counts, which keep",
        ),
        ({"epsilon": 1, "delta": 1e-6, "definition": "paper"}, ParameterError, "definition"),
        ({"epsilon": 1, "delta": 1e-6, "k": 0}, ParameterError, "k"),
    ],
)
def test_what_a_plan_for_counts_refuses(
    arguments: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        ic.plan(draw="counts", **arguments)


def test_a_crowd_is_for_counts_alone() -> None:
    with pytest.raises(ParameterError, match="be given with draw='counts' only"):
        ic.plan(epsilon=1, delta=1e-6, crowd=20)  # type: ignore[call-overload]
