"""The implemented mechanism, as a distribution: exactly on tiny tables, statistically on others."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from support.search_law import FixedCoins

from incrowd.anonymize.safe_sample import sample_cells
from incrowd.codes.frequency import Frequencies, merge_tuples
from incrowd.privacy.accountant import Accountant
from incrowd.privacy.events import SafeRelease
from incrowd.privacy.randomness import SystemRandomness

FALSE_ALARM = 1e-6
Output = tuple[tuple[tuple[int, ...], int], ...]


def table(*cells: int) -> Frequencies:
    """So many rows in cell 0, cell 1, ..."""
    codes = np.arange(len(cells), dtype=np.int32)[:, None]
    counts = np.array(cells, dtype=np.int64)
    return Frequencies(codes[counts > 0], counts[counts > 0])


def distribution(frequencies: Frequencies, k: int, beta: Fraction) -> dict[Output, Fraction]:
    """The exact distribution of outputs of the implemented mechanism, over all its coins."""
    outcome: dict[Output, Fraction] = {}
    rows = frequencies.total
    for coins in itertools.product((True, False), repeat=rows):
        result = sample_cells(frequencies, k=k, beta=float(beta), bits=FixedCoins(coins))
        output: Output = tuple(
            (tuple(codes), count)
            for codes, count in zip(result.codes.tolist(), result.counts.tolist(), strict=True)
        )
        weight = beta ** sum(coins) * (1 - beta) ** (rows - sum(coins))
        outcome[output] = outcome.get(output, Fraction(0)) + weight
    return outcome


def divergence(p: dict[Output, Fraction], q: dict[Output, Fraction], t: Fraction) -> Fraction:
    return sum(
        (max(p.get(x, Fraction(0)) - t * q.get(x, Fraction(0)), Fraction(0)) for x in {*p, *q}),
        Fraction(0),
    )


@pytest.mark.parametrize(
    ("k", "beta"), [(1, "1/4"), (2, "1/4"), (2, "1/2"), (3, "3/4"), (4, "1/2")]
)
def test_all_outputs_on_neighboring_tables_stay_within_the_accounted_delta(
    k: int, beta: str
) -> None:
    rate = Fraction(beta)
    accountant = Accountant(SafeRelease(k, float(rate)))
    bystanders = 2  # rows of another cell, which must not matter
    outputs = [distribution(table(n, bystanders), k, rate) for n in range(10)]
    for t in (Fraction(1), Fraction(11, 10), Fraction(2), Fraction(5)):
        claimed = accountant.delta(epsilon=math.log(t))
        worst = Fraction(0)
        for absent, present in itertools.pairwise(outputs):
            worst = max(worst, divergence(present, absent, t), divergence(absent, present, t))
        assert float(worst) <= claimed * (1 + 1e-12)
        if k <= 3 and t >= 2:  # the worst cell is within reach, so the claim is attained too
            assert float(worst) == pytest.approx(claimed, rel=1e-9)


def p_value(seen: Counter[int], releases: int, count: int, beta: float, k: int) -> float:
    """Chi-square of how often a cell showed each number, against Binomial(count, beta) cut at k."""
    pmf = stats.binom.pmf(np.arange(count + 1), count, beta)
    cut = np.append(pmf[:k].sum(), pmf[k:]) * releases
    observed = np.array([seen[0], *(seen[j] for j in range(k, count + 1))], dtype=float)
    if sum(seen[j] for j in range(1, k)):
        return 0.0  # a number that must never be shown
    common = cut >= 10
    observed = np.append(observed[common], observed[~common].sum())
    cut = np.append(cut[common], max(cut[~common].sum(), 1e-9))
    return float(stats.chisquare(observed, cut * observed.sum() / cut.sum()).pvalue)


def test_counts_follow_the_binomial_cut_at_k_and_nothing_close_to_it() -> None:
    count, beta, k, releases = 50, 0.3, 12, 150_000
    # many cells of one size are as good as many releases of one cell
    cells = merge_tuples(np.arange(releases, dtype=np.int32)[:, None], np.full(releases, count))
    result = sample_cells(cells, k=k, beta=beta, bits=SystemRandomness())
    seen = Counter(result.counts.tolist())
    seen[0] = releases - len(result)
    assert p_value(seen, releases, count, beta, k) > FALSE_ALARM
    assert p_value(seen, releases, count, beta * 1.02, k) < FALSE_ALARM
    assert p_value(seen, releases, count, beta, k + 1) < FALSE_ALARM
    assert p_value(seen, releases, count, beta, k - 1) < FALSE_ALARM


def test_two_releases_share_no_sample() -> None:
    cells = merge_tuples(np.arange(50_000, dtype=np.int32)[:, None], np.full(50_000, 30))
    bits = SystemRandomness()
    releases = []
    for _ in range(2):
        result = sample_cells(cells, k=1, beta=0.5, bits=bits)
        counts = np.zeros(50_000)
        counts[result.codes[:, 0]] = result.counts
        releases.append(counts)
    correlation = float(np.corrcoef(releases[0], releases[1])[0, 1])
    assert abs(correlation) * math.sqrt(50_000) < 5


def test_the_order_is_that_of_the_codes_and_nothing_else() -> None:
    draw = np.random.default_rng(1)
    codes = draw.integers(0, 4, (500, 3)).astype(np.int32)
    counts = draw.integers(1, 9, 500)
    tuples = merge_tuples(codes, counts)
    turned = draw.permutation(500)
    two = merge_tuples(codes[turned], counts[turned])
    first = sample_cells(tuples, k=2, beta=0.9, bits=FixedCoins((True,) * tuples.total))
    second = sample_cells(two, k=2, beta=0.9, bits=FixedCoins((True,) * tuples.total))
    assert first.codes.tolist() == second.codes.tolist() == sorted(first.codes.tolist())
    assert first.counts.tolist() == second.counts.tolist()
