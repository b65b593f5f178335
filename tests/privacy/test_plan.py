from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import incrowd as ic
from incrowd.privacy.plan import plan_grid
from incrowd.privacy.plan_sample import ComposedSolver, choose_solver


def test_the_least_crowd_for_the_usual_budget() -> None:
    plan = ic.plan(epsilon=1, delta=1e-6)
    assert (plan.k, plan.beta) == (14, 0.2537)
    assert plan.crowd == pytest.approx(55.18, abs=0.01)
    assert ic.delta(k=plan.k, beta=plan.beta, epsilon=1.0) <= 1e-6


@pytest.mark.parametrize(("epsilon", "delta"), [(1, 1e-6), (0.1, 1e-9), (3, 1e-12), (0.5, 1e-4)])
def test_no_beta_of_a_fine_grid_gives_a_smaller_crowd(epsilon: float, delta: float) -> None:
    best = ic.plan(epsilon=epsilon, delta=delta).crowd
    rates = 1 / (1 + np.exp(-np.linspace(-8, 4, 3000)))
    crowds = ic.crowd_size(beta=rates, epsilon=epsilon, delta=delta) / rates
    assert best <= crowds.min() * 1.001


def test_keep_sets_beta_and_k_follows() -> None:
    plan = ic.plan(epsilon=1, delta=1e-6, keep=0.6)
    assert plan.beta == 0.6
    assert plan.k == ic.crowd_size(beta=0.6, epsilon=1, delta=1e-6) == 51
    assert plan.beta < 1  # above 1 - 1/e, where the paper proves nothing
    assert 1 - math.exp(-1) < ic.plan(epsilon=1, delta=1e-6, keep=0.85).beta


@given(
    k=st.integers(2, 60),
    beta=st.floats(0.02, 0.6),
    epsilon=st.floats(0.1, 3),
    definition=st.sampled_from(["tight", "paper"]),
)
def test_any_one_from_the_other_three(
    k: int, beta: float, epsilon: float, definition: ic.Definition
) -> None:
    if definition == "paper":
        epsilon = max(epsilon, -math.log1p(-beta) * 1.01)
    delta = ic.plan(k=k, beta=beta, epsilon=epsilon, definition=definition).delta
    assert delta == ic.delta(k=k, beta=beta, epsilon=epsilon, definition=definition)
    if delta < 1e-200 or delta > 0.99:
        return
    budget = {"delta": delta * (1 + 1e-9), "definition": definition}
    assert ic.plan(k=k, beta=beta, **budget).epsilon <= epsilon * (1 + 1e-9)  # type: ignore[call-overload]
    assert ic.plan(beta=beta, epsilon=epsilon, **budget).k <= k  # type: ignore[call-overload]
    assert ic.plan(k=k, epsilon=epsilon, **budget).beta >= beta * (1 - 1e-9)  # type: ignore[call-overload]


@settings(max_examples=8)
@given(releases=st.integers(2, 40), epsilon=st.floats(0.3, 3), beta=st.floats(0.03, 0.4))
def test_plans_for_many_releases_hold_by_the_accountant(
    releases: int, epsilon: float, beta: float
) -> None:
    plan = ic.plan(epsilon=epsilon, delta=1e-6, beta=beta, releases=releases)
    spent = ic.Accountant([ic.SafeRelease(plan.k, beta)] * releases).epsilon(delta=1e-6)
    assert spent <= epsilon
    if plan.k > 1:
        less = ic.Accountant([ic.SafeRelease(plan.k - 1, beta)] * releases).epsilon(delta=1e-6)
        assert less > epsilon
    assert plan.k <= ic.plan(epsilon=epsilon, delta=1e-6, beta=beta, releases=releases * 2).k


def test_each_unknown_of_sixteen_releases() -> None:
    free = ic.plan(epsilon=1, delta=1e-6, releases=16)
    assert free.crowd < 94
    event = [ic.SafeRelease(free.k, free.beta)] * 16
    assert ic.Accountant(event).epsilon(delta=1e-6) <= 1
    solved = ic.plan(epsilon=1, delta=1e-6, k=free.k, releases=16).beta
    assert free.beta <= solved <= free.beta * 1.002
    assert ic.plan(k=20, beta=0.1, delta=1e-6, releases=16).epsilon == pytest.approx(
        0.477, abs=2e-3
    )
    assert ic.plan(k=20, beta=0.1, epsilon=0.4775, releases=16).delta == pytest.approx(
        1e-6, rel=0.05
    )


def test_the_papers_definition_adds_up() -> None:
    plan = ic.plan(k=20, beta=0.1, epsilon=8, releases=16, definition="paper")
    assert plan.delta == pytest.approx(
        16 * ic.delta(k=20, beta=0.1, epsilon=0.5, definition="paper")
    )


def test_solvers_agree_for_one_release() -> None:
    composed = ComposedSolver(1)
    exact = choose_solver(1, "tight")
    assert composed.epsilon(20, 0.1, 1e-6) == pytest.approx(exact.epsilon(20, 0.1, 1e-6), rel=1e-9)
    assert composed.k(0.2, 1.0, 1e-6) == exact.k(0.2, 1.0, 1e-6)
    assert composed.beta(20, 1.0, 1e-6) == pytest.approx(exact.beta(20, 1.0, 1e-6), rel=1e-6)


def test_a_plan_shows_itself() -> None:
    plan = ic.plan(epsilon=1, delta=1e-6)
    assert "Groups of 56 or more people" in str(plan)
    assert "25.4 %" in str(plan)
    html = plan._repr_html_()
    assert html.startswith("<table>")
    assert "<td>14</td>" in html
    assert list(plan.as_dict()) == [
        "k", "beta", "epsilon", "delta", "definition", "crowd", "releases",
    ]  # fmt: skip


def test_a_grid_holds_the_same_answers_as_single_plans() -> None:
    grid = plan_grid("k", delta=1e-6, epsilon=0.7)
    assert 0.7 in grid.columns
    row, column = grid.rows.index(0.2), grid.columns.index(1)
    assert grid.cells[row][column] == 12
    impossible = plan_grid("epsilon", delta=1e-6)
    assert math.isinf(impossible.cells[impossible.rows.index(5)][impossible.columns.index(0.5)])
    assert plan_grid("k", delta=1e-6, definition="paper").as_dict()["cells"][-1][0] is None  # type: ignore[index]
