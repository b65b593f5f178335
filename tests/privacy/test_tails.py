from __future__ import annotations

import math
import random

import mpmath
import numpy as np
from scipy import stats
from support.exact import compute_mp_tail

from incrowd.arrays import Floats
from incrowd.privacy.tails import log_excess, log_pmf, log_shortfall, log_survival


def one(x: float) -> Floats:
    return np.array([x])


def test_log_pmf_agrees_with_sixty_digits() -> None:
    draw = random.Random(7)
    for _ in range(300):
        n = int(10 ** draw.uniform(0, 9))
        p = draw.choice([10 ** draw.uniform(-5, -0.01), 1 - 10 ** draw.uniform(-5, -0.01)])
        j = min(n, max(0, int(n * p * draw.uniform(0.7, 1.5) + draw.uniform(-2, 5))))
        with mpmath.workdps(60):
            exact = (
                mpmath.loggamma(n + 1)
                - mpmath.loggamma(j + 1)
                - mpmath.loggamma(n - j + 1)
                + j * mpmath.log(mpmath.mpf(p))
                + (n - j) * mpmath.log(1 - mpmath.mpf(p))
            )
            computed = log_pmf(one(j), one(n), one(p), one(1 - p))[0]
            # binomial.round_up allows for 1e-12 (1 + |log|), thirty times as much.
            assert abs(computed - exact) < 3e-14 * (1 + abs(exact)), (n, p, j)


def test_log_pmf_agrees_with_scipy_everywhere_on_small_n() -> None:
    for n in range(41):
        for p in (0.02, 0.5, 0.97):
            j = np.arange(n + 1.0)
            same = np.ones_like(j)
            computed = np.exp(log_pmf(j, n * same, p * same, (1 - p) * same))
            np.testing.assert_allclose(computed, stats.binom.pmf(j, n, p), rtol=1e-12)


def test_log_survival_is_an_upper_bound_and_close() -> None:
    for k, n, p in [(1, 1, 0.3), (20, 38, 0.2), (200, 1900, 0.1), (9000, 60_000, 0.14)]:
        with mpmath.workdps(50):
            exact = mpmath.log(compute_mp_tail(k, n, p))
            computed = log_survival(one(k), one(n), one(p), one(1 - p))[0]
            assert abs(computed - exact) < 3e-14 * (1 + abs(exact))


def test_log_excess_equals_the_sum_it_stands_for() -> None:
    for n, p, g in [
        (1, 0.3, 0.4),
        (7, 0.5, 0.5),
        (30, 0.1, 0.31),
        (50, 0.9, 0.95),
        (9, 0.2, 0.999),
    ]:
        exact = sum(
            math.comb(n, j) * p**j * (1 - p) ** (n - j) * max(j / n - g, 0.0) for j in range(n + 1)
        )
        computed = math.exp(log_excess(one(n), one(p), one(1 - p), one(g), one(1 - g))[0])
        assert math.isclose(computed, exact, rel_tol=1e-11)


def test_log_shortfall_equals_the_sum_it_stands_for() -> None:
    for n, p, h in [(1, 0.3, 0.2), (7, 0.5, 0.5), (30, 0.4, 0.11), (50, 0.9, 0.6), (9, 0.2, 1e-9)]:
        exact = sum(
            math.comb(n, j) * p**j * (1 - p) ** (n - j) * max(h - j / n, 0.0) for j in range(n + 1)
        )
        computed = math.exp(log_shortfall(one(n), one(p), one(1 - p), one(h))[0])
        assert math.isclose(computed, exact, rel_tol=1e-11)


def test_log_shortfall_past_whole_floats_is_the_poisson_limit() -> None:
    n, mean = 1e30, 12.0
    computed = math.exp(log_shortfall(one(n), one(mean / n), one(1.0), one(7.5 / n))[0])
    exact = sum(math.exp(-mean) * mean**j / math.factorial(j) * (7.5 - j) / n for j in range(8))
    assert math.isclose(computed, exact, rel_tol=1e-11)


def test_the_block_size_does_not_matter() -> None:
    """Many elements at once take smaller blocks than one alone; the sums are the same."""
    k = np.full(5000, 2000.0)
    g = np.linspace(0.1001, 0.2, 5000)
    n = np.ceil(k / g)
    together = log_excess(n, np.full(5000, 0.1), np.full(5000, 0.9), g, 1 - g)
    for i in (0, 17, 4999):
        alone = log_excess(n[i : i + 1], one(0.1), one(0.9), g[i : i + 1], 1 - g[i : i + 1])
        assert math.isclose(together[i], alone[0], rel_tol=1e-13)
