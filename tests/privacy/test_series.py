"""A series of counts, enumerated: nothing is above the accounted delta, planted faults are."""

from __future__ import annotations

import hmac
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

import numpy as np
import pytest

from incrowd.privacy.accountant import Accountant
from incrowd.privacy.counts import build_event_law, sample_gaussian_noise
from incrowd.privacy.events import (
    GaussianCounts,
    GeometricCounts,
    PersonCounts,
    SeriesCounts,
    ShiftedCounts,
    parse_event,
    serialize_event,
)
from incrowd.privacy.randomness import KeyedRandomness
from incrowd.privacy.series import (
    build_series_spread,
    compute_reach,
    compute_total_error,
    list_noise_weights,
    list_shares,
    sample_series_noise,
)
from incrowd.privacy.split import split_for_counts
from incrowd.privacy.split_series import split_for_series

KEY = bytes(32)
Law = dict[tuple[Fraction | int | None, ...], float]


def list_basic_noise(event: SeriesCounts) -> list[tuple[Fraction, float]]:
    law = build_event_law(event.grid_event)
    return [(Fraction(x, 8), float(law.tail[abs(x)])) for x in range(-law.reach, law.reach + 1)]


def measure_divergence(p: Law, q: Law, epsilon: float) -> float:
    return sum(max(x - math.exp(epsilon) * q.get(key, 0.0), 0.0) for key, x in p.items())


class SeriesLaw:
    """All releases of a series for one cell: the distribution of what is shown."""

    def __init__(self, event: SeriesCounts, k: int = 1, weights: Sequence[Fraction] = ()) -> None:
        self.event, self.k = event, k
        self.weights = weights or list_noise_weights(event.of)
        self.basic = list_basic_noise(event)

    def list_noise(self) -> Iterator[tuple[tuple[Fraction, ...], float]]:
        for draws in itertools.product(self.basic, repeat=self.event.of):
            yield tuple(x for x, _ in draws), math.prod(p for _, p in draws)

    def show(self, people: int, number: int, noise: Fraction) -> Fraction | int | None:
        rounded = people + math.floor(noise + Fraction(1, 2))
        reach = compute_reach(self.event, number)
        return rounded if people and rounded >= reach + self.k else None

    def __call__(self, counts: Sequence[int]) -> Law:
        law: Law = {}
        for z, chance in self.list_noise():
            noise = [
                sum((self.weights[t - s] * z[s - 1] for s in range(1, t + 1)), start=Fraction(0))
                for t in range(1, self.event.of + 1)
            ]
            key = tuple(self.show(counts[t], t + 1, x) for t, x in enumerate(noise))
            law[key] = law.get(key, 0.0) + chance
        return law

    def compute_usage(self, tables: Sequence[tuple[int, ...]], claimed: object = None) -> float:
        """The largest divergence over the claimed delta, of tables with a person more or fewer."""
        accountant, usage = Accountant(claimed or self.event), 0.0  # type: ignore[arg-type]
        laws = {counts: self(counts) for counts in tables}
        for counts, at in itertools.product(tables, range(self.event.of)):
            more = tuple(n + (t == at) for t, n in enumerate(counts))
            laws.setdefault(more, self(more))
            for epsilon in (0.0, 0.3, 0.8, 1.5, 3.0):
                delta = accountant.delta(epsilon=epsilon)
                for p, q in ((laws[counts], laws[more]), (laws[more], laws[counts])):
                    usage = max(usage, measure_divergence(p, q, epsilon) / delta)
        return usage


def test_shares_and_weights_are_inverse_and_near_the_square_root() -> None:
    for of in range(2, 17):
        shares, weights = list_shares(of), list_noise_weights(of)
        for i in range(of):
            product = sum(Fraction(shares[j], 8) * weights[i - j] for j in range(i + 1))
            assert product == (i == 0)
        for j, share in enumerate(shares):
            assert abs(share / 8 - math.comb(2 * j, j) / 4**j) <= 1 / 16
    assert list_shares(8) == (8, 4, 3, 3, 2, 2, 2, 2)


@pytest.mark.parametrize(
    ("event", "tables", "least"),
    [
        (SeriesCounts(1, 0.3, 2), [(0, 0), (1, 3), (8, 8), (9, 1), (1, 0)], 0.99),
        (SeriesCounts(2, 1.0, 2), [(12, 12), (3, 12)], 0.99),
    ],
)
def test_a_series_stays_within_the_accounted_delta_and_reaches_it(
    event: SeriesCounts, tables: list[tuple[int, ...]], least: float
) -> None:
    """The worst person enters first: the rounding of what is shown costs nothing but precision."""
    law = SeriesLaw(event)
    assert law.compute_usage(tables) <= 1 + 1e-9
    exact = ExactSeriesLaw(event)
    assert least < exact.compute_usage(tables[-2:]) <= 1 + 1e-9


class ExactSeriesLaw(SeriesLaw):
    """What the releases are functions of: nothing is rounded and nothing is hidden."""

    def show(self, people: int, number: int, noise: Fraction) -> Fraction | int | None:
        return people + noise


class WholeNoise(ExactSeriesLaw):
    """Planted: basic noise of whole people, off the grid of what it hides."""

    def __init__(self, event: SeriesCounts) -> None:
        super().__init__(event)
        law = build_event_law(GaussianCounts(event.r, event.variance))
        self.basic = [(Fraction(x), float(law.tail[abs(x)])) for x in range(-event.r, event.r + 1)]


class PeriodTwice(ExactSeriesLaw):
    """Planted: the first period is released twice, by the tables before and after a correction."""

    def __call__(self, counts: Sequence[int]) -> Law:
        law: Law = {}
        for z, chance in self.list_noise():
            key = (counts[0] + z[0], 9 + z[0])
            law[key] = law.get(key, 0.0) + chance
        return law


class AdaptiveLaw(ExactSeriesLaw):
    """The other people of the second period depend on what the first release has shown."""

    def __call__(self, counts: Sequence[int]) -> Law:
        law: Law = {}
        for z, chance in self.list_noise():
            first = counts[0] + z[0]
            others = 5 * (math.floor(8 * first) % 3)
            key = (first, counts[1] + others + z[1] + self.weights[1] * z[0])
            law[key] = law.get(key, 0.0) + chance
        return law


def test_later_periods_may_depend_on_earlier_results() -> None:
    usage = AdaptiveLaw(SeriesCounts(2, 1.0, 2)).compute_usage([(9, 9)])
    assert 0.99 < usage <= 1 + 1e-9


@pytest.mark.parametrize("planted", [WholeNoise, PeriodTwice])
def test_planted_faults_of_a_series_are_not_covered(
    planted: Callable[[SeriesCounts], SeriesLaw],
) -> None:
    assert planted(SeriesCounts(2, 1.0, 2)).compute_usage([(9, 9)]) > 1.5


def test_more_releases_than_were_planned_are_not_covered() -> None:
    """A series of 2, used a third time: the first person is seen through three releases."""
    planned, longer = SeriesCounts(1, 0.3, 2), SeriesCounts(1, 0.3, 3)
    tables = [(9, 9, 9)]
    assert ExactSeriesLaw(longer).compute_usage(tables) <= 1 + 1e-9
    assert ExactSeriesLaw(longer).compute_usage(tables, planned) > 1.05


def test_a_shown_cell_has_k_people_in_its_period() -> None:
    event, k = SeriesCounts(1, 0.3, 2), 2
    fewest = math.inf
    for counts in itertools.product(range(6), repeat=2):
        for key in SeriesLaw(event, k)(counts):
            fewest = min([fewest, *(n for n, count in zip(counts, key, strict=True) if count)])
    assert fewest == k


@pytest.mark.parametrize("distance", [1, 2, 3, 7])
@pytest.mark.parametrize("event", [GeometricCounts(4, 0.7), GaussianCounts(4, 3.0)])
def test_a_count_moved_further_costs_what_enumeration_says(
    event: GeometricCounts | GaussianCounts, distance: int
) -> None:
    tail = build_event_law(event).tail
    p: Law = {(x,): float(tail[abs(x)]) for x in range(-event.r, event.r + 1)}
    q: Law = {(x + distance,): mass for (x,), mass in p.items()}  # type: ignore[operator]
    shifted = ShiftedCounts(event, distance)
    for epsilon in (0.0, 0.2, 0.7, 1.5, 4.0):
        true = max(measure_divergence(p, q, epsilon), measure_divergence(q, p, epsilon))
        claimed = Accountant(shifted).delta(epsilon=epsilon)
        assert true <= claimed * (1 + 1e-9) <= max(true, 1e-300) * (1 + 1e-8)
        if distance == 1:
            assert claimed == pytest.approx(Accountant(event).delta(epsilon=epsilon), rel=1e-9)
        else:
            nearer = ShiftedCounts(event, distance - 1)
            assert claimed >= Accountant(nearer).delta(epsilon=epsilon)


def test_several_rows_of_a_person_are_several_series() -> None:
    event = SeriesCounts(8, 6.0, 4, rows=3)
    once = SeriesCounts(8, 6.0, 4)
    for epsilon in (0.5, 1.5):
        delta = Accountant(event).delta(epsilon=epsilon)
        assert delta == Accountant([once] * 3).delta(epsilon=epsilon)
        steps = [ShiftedCounts(once.grid_event, share) for share in list_shares(4)]
        assert delta == Accountant(steps * 3).delta(epsilon=epsilon)
    assert parse_event(serialize_event(event)) == event


@pytest.mark.parametrize("rows", [3, 4, 11])
def test_eight_quarters_have_less_noise_in_the_running_total(rows: int) -> None:
    """Against a sum of eight releases by themselves, each with the noise of its own plan."""
    split = split_for_series(epsilon=1.0, delta=1e-6, of=8, rows=rows)
    assert isinstance(split.event, SeriesCounts)
    assert Accountant(split.events).delta(epsilon=1.0) <= 1e-6
    (alone,) = split_for_counts(epsilon=1.0, delta=1e-6, rows=rows).events
    assert isinstance(alone, PersonCounts)
    plain = math.sqrt(8 * build_event_law(alone.event).variance)
    worst = max(compute_total_error(split.event, range(1, t + 1)).spread for t in range(1, 9))
    assert worst <= 0.65 * plain


def test_noise_has_the_spread_it_claims_and_totals_theirs() -> None:
    """Standard deviations of 40,000 cells: 1.4 % off has a probability of 1e-4; seeded."""
    event, cells = SeriesCounts(20, 9.0, 4), 40_000
    noise = [sample_series_noise(event, t, cells, KEY) for t in range(1, 5)]
    for t, part in enumerate(noise, 1):
        spread = build_series_spread(event, t)
        assert abs(part).max() <= compute_reach(event, t) == spread.reach
        assert part.std() == pytest.approx(math.sqrt(spread.variance), rel=0.014)
        assert np.mean(abs(part) <= spread.find_error_bound(0.95)) > 0.947
        total = np.sum(noise[:t], axis=0)
        error = compute_total_error(event, range(1, t + 1))
        assert total.std() == pytest.approx(error.spread, rel=0.014)
        assert abs(total).max() <= error.bound
    later = noise[1] + noise[3]
    assert later.std() == pytest.approx(compute_total_error(event, (2, 4)).spread, rel=0.014)
    assert (sample_series_noise(event, 3, cells, KEY) == noise[2]).all()
    other = sample_series_noise(event, 3, cells, bytes([1]) * 32)
    assert abs(np.corrcoef(other, noise[2])[0, 1]) < 0.02


def test_noise_is_the_rounded_sum_of_basic_noises() -> None:
    """At the longest series, where denominators are largest; by fractions."""
    event, cells = SeriesCounts(200, 1500.0, 16), 40
    weights, grid = list_noise_weights(16), event.grid_event
    basic = [
        sample_gaussian_noise(
            cells, Fraction(grid.variance), grid.r,
            KeyedRandomness(hmac.digest(KEY, b"basic noise %d" % number, "sha256")),
        )
        for number in range(1, 17)
    ]  # fmt: skip
    noise = sample_series_noise(event, 16, cells, KEY)
    for cell in range(cells):
        exact = sum(weights[16 - s] * Fraction(int(basic[s - 1][cell]), 8) for s in range(1, 17))
        assert noise[cell] == math.floor(exact + Fraction(1, 2))
