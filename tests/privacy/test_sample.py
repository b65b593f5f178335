"""delta: against the paper's table, exact rationals, fifty digits, and its own laws."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.exact import compute_mp_divergences, compute_mp_tail, make_neighbors

from incrowd.papers.paper_a import compute_table_1
from incrowd.privacy.sample import delta, log_absent_divergence, log_present_divergence

SMALL = [
    (k, Fraction(beta), Fraction(t))
    for k in (1, 2, 3, 5)
    for beta in ("1/10", "1/4", "1/2", "9/10", "99/100")
    for t in ("1", "21/20", "11/10", "3/2", "2", "4", "12")
]


def worst_cell_sizes(k: int, beta: Fraction, t: Fraction) -> range:
    """All cell sizes up to far beyond where either divergence can be largest."""
    h = 1 - (1 - beta) * t
    return range(1, min(int(2 * k / h) if h > 0 else 0, 450) + int(3 * k / beta) + 8)


@pytest.mark.parametrize(("k", "beta", "t"), SMALL)
def test_both_directions_equal_brute_force_over_all_cells(
    k: int, beta: Fraction, t: Fraction
) -> None:
    pairs = [make_neighbors(n, k, beta) for n in worst_cell_sizes(k, beta, t)]
    present = max(pair.compute_divergence(t) for pair in pairs)
    absent = max(pair.swap_sides().compute_divergence(t) for pair in pairs)
    arguments = (np.array([float(k)]), np.array([float(beta)]), np.array([math.log(t)]))
    assert math.exp(log_present_divergence(*arguments)[0]) == pytest.approx(
        float(present), rel=1e-10
    )
    # At the border, where it comes to 0, it is rounded up by some units in the last place of 1.
    assert math.exp(log_absent_divergence(*arguments)[0]) == pytest.approx(
        float(absent), rel=1e-9, abs=1e-14
    )
    reported = delta(k=k, beta=float(beta), epsilon=math.log(t))
    assert float(max(present, absent)) * (1 - 1e-12) <= reported


def test_the_direction_of_the_absent_can_be_the_larger() -> None:
    k, beta, t = 21, Fraction(19, 20), Fraction(21, 20)
    arguments = (np.array([21.0]), np.array([0.95]), np.array([math.log(t)]))
    assert log_absent_divergence(*arguments)[0] > log_present_divergence(*arguments)[0] + 1e-3
    sizes = worst_cell_sizes(k, beta, t)
    worst = max(make_neighbors(n, k, beta).swap_sides().compute_divergence(t) for n in sizes)
    assert delta(k=21, beta=0.95, epsilon=math.log(t)) == pytest.approx(float(worst), rel=1e-9)


@pytest.mark.parametrize(
    ("k", "beta", "t"), [(k, beta, t) for k, beta, t in SMALL if t * (1 - beta) >= 1]
)
def test_the_papers_delta_equals_brute_force_over_all_cells(
    k: int, beta: Fraction, t: Fraction
) -> None:
    pairs = [make_neighbors(n, k, beta) for n in range(1, int(6 * k / beta) + 12)]
    strict = max(pair.compute_bad_mass(t, ties=False) for pair in pairs)
    weak = max(pair.compute_bad_mass(t, ties=True) for pair in pairs)
    epsilon = math.nextafter(math.log(t), math.inf)
    claimed = delta(k=k, beta=float(beta), epsilon=epsilon, definition="paper")
    assert float(strict) <= claimed <= float(weak) * (1 + 1e-10)


@pytest.mark.parametrize(("beta", "t"), [(0.5, 2), (0.5, 4), (0.25, 2), (0.75, 8), (0.125, 4)])
@pytest.mark.parametrize("k", [3, 6, 9, 15])
def test_a_tie_of_the_papers_delta_is_decided_upwards(k: int, beta: float, t: int) -> None:
    """Here g n is whole for some n, and rounding must not push the outcome j = g n out."""
    pairs = [make_neighbors(n, k, Fraction(beta)) for n in range(1, int(4 * k / beta))]
    weak = max(pair.compute_bad_mass(Fraction(t), ties=True) for pair in pairs)
    for epsilon in (math.log(t), math.nextafter(math.log(t), 9)):
        assert delta(k=k, beta=beta, epsilon=epsilon, definition="paper") >= float(weak)


@pytest.mark.parametrize("beta", [1e-4, 0.01, 0.3, 0.9, 0.99])
@pytest.mark.parametrize("k", [1, 2, 20, 500, 10_000])
def test_fifty_digits_over_the_whole_range(k: int, beta: float) -> None:
    for epsilon in (0.0, 0.003, 0.2, 1.0, 4.0, 20.0):
        g = 1 - (1 - beta) * math.exp(-epsilon)
        h = 1 - (1 - beta) * math.exp(epsilon)
        sizes = {math.ceil((k - 1) / x) + shift for x in (g, h) if x > 0 for shift in (-1, 0, 1)}
        values = [
            direction
            for n in sizes
            if max(n, 1) * beta < 1e6
            for direction in compute_mp_divergences(max(n, 1), k, beta, epsilon)
        ]
        with mpmath.workdps(50):
            exact = max(values)
            claimed = delta(k=k, beta=beta, epsilon=epsilon)
            assert exact <= claimed
            assert claimed <= max(exact * (1 + mpmath.mpf("1e-8")), mpmath.mpf("2.3e-308"))


@pytest.mark.parametrize(
    ("k", "beta", "epsilon"), [(500, 0.3, 0.5), (10_000, 0.05, 0.1), (7, 1e-4, 2)]
)
def test_no_other_cell_size_is_worse(k: int, beta: float, epsilon: float) -> None:
    """The closed form looks at one n; here are its neighbors, near and far."""
    best = math.ceil((k - 1) / (1 - (1 - beta) * math.exp(-epsilon)))
    claimed = delta(k=k, beta=beta, epsilon=epsilon)
    for n in (k, int(best * 0.9), best - 2, best - 1, best, best + 1, best + 2, int(best * 1.1)):
        assert max(compute_mp_divergences(n, k, beta, epsilon)) <= claimed


@pytest.mark.parametrize(
    ("k", "beta", "epsilon"), [(500, 0.3, 0.7), (1000, 0.01, 0.0103), (60, 0.4, 0.6)]
)
def test_the_papers_delta_to_fifty_digits(k: int, beta: float, epsilon: float) -> None:
    g = 1 - (1 - beta) * math.exp(-epsilon)
    exact = max(compute_mp_tail(j, math.ceil(j / g) - 1, beta) for j in range(k, k + 40))
    claimed = delta(k=k, beta=beta, epsilon=epsilon, definition="paper")
    assert exact <= claimed <= exact * (1 + mpmath.mpf("1e-8"))


def test_table_1_of_the_paper() -> None:
    """Each printed value is ours rounded or cut to three digits."""
    cells = compute_table_1()
    assert len(cells) == 18
    for cell in cells:
        unit = 10.0 ** (math.floor(math.log10(cell.printed)) - 2)
        assert -0.51 * unit <= cell.paper - cell.printed <= unit, cell
        assert abs(cell.ratio - 1) < 0.0025


def test_reference_values_of_the_tight_delta() -> None:
    deltas = delta(k=20, beta=0.1, epsilon=[0.25, 0.5, 1, 2])
    assert [f"{x:.3e}" for x in deltas] == ["6.310e-08", "2.632e-11", "2.761e-15", "4.871e-19"]


def test_an_array_is_the_same_as_its_elements() -> None:
    k = np.array([[5], [20], [300]])
    epsilon = np.array([0.3, 0.7, 2.0, 9.0])
    for definition in ("tight", "paper"):
        deltas = delta(k=k, beta=0.2, epsilon=epsilon, definition=definition)
        assert deltas.shape == (3, 4)
        for i, size in enumerate((5, 20, 300)):
            for j, at in enumerate(epsilon):
                alone = delta(k=size, beta=0.2, epsilon=float(at), definition=definition)
                assert deltas[i, j] == pytest.approx(alone, rel=1e-12)


def test_a_vanishing_delta_is_not_reported_as_nothing() -> None:
    assert delta(k=10_000, beta=1e-4, epsilon=20.0) == np.finfo(float).tiny


def test_a_whole_g_n_of_the_paper_counts_although_rounding_would_drop_it() -> None:
    """g = 0.6 and n = 5 up to rounding: P[Binomial(5, 0.2) >= 3] = 0.05792 counts."""
    assert delta(k=3, beta=0.2, epsilon=math.log(2), definition="paper") >= 0.05792


def test_far_outside_the_usual_range_nothing_breaks() -> None:
    floor = delta(k=5, beta=0.1, epsilon=700.0)
    assert delta(k=5, beta=0.1, epsilon=5000.0) == floor == pytest.approx(1e-5)
    assert delta(k=10_000, beta=1e-40, epsilon=0.0) > 0
    both = [np.array([1000.0]), np.array([1e-13]), np.array([0.0])]
    assert log_absent_divergence(*both) == pytest.approx(log_present_divergence(*both), rel=1e-9)
    for beta in (0.1, 0.2, 0.3):  # the paper's own limit, however it is rounded
        delta(k=5, beta=beta, epsilon=-math.log(1 - beta), definition="paper")


rates = st.floats(-9, 5).map(lambda x: 1 / (1 + math.exp(-x)))
sizes = st.integers(1, 400)
budgets = st.floats(0, 6)


@given(k=sizes, beta=rates, epsilon=budgets)
def test_tight_is_never_above_the_papers(k: int, beta: float, epsilon: float) -> None:
    epsilon = max(epsilon, -math.log1p(-beta) + 1e-12)
    tight = delta(k=k, beta=beta, epsilon=epsilon)
    assert tight <= delta(k=k, beta=beta, epsilon=epsilon, definition="paper") * (1 + 1e-9)


@given(k=sizes, beta=rates, epsilon=budgets, more=st.floats(1e-6, 2))
def test_delta_falls_in_epsilon_and_in_k_and_grows_in_beta(
    k: int, beta: float, epsilon: float, more: float
) -> None:
    bound = delta(k=k, beta=beta, epsilon=epsilon) * (1 + 1e-9)
    assert delta(k=k, beta=beta, epsilon=epsilon + more) <= bound
    assert delta(k=k + 1, beta=beta, epsilon=epsilon) <= bound
    assert delta(k=k, beta=beta / (1 + more), epsilon=epsilon) <= bound


@given(k=sizes, beta=rates, epsilon=budgets, more=st.floats(1e-6, 2))
def test_the_papers_delta_falls_in_epsilon_and_in_k(
    k: int, beta: float, epsilon: float, more: float
) -> None:
    epsilon = max(epsilon, -math.log1p(-beta) + 1e-12)
    bound = delta(k=k, beta=beta, epsilon=epsilon, definition="paper") * (1 + 1e-9)
    assert delta(k=k, beta=beta, epsilon=epsilon + more, definition="paper") <= bound
    assert delta(k=k + 1, beta=beta, epsilon=epsilon, definition="paper") <= bound
