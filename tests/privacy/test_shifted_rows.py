"""Counts of rows, up to so many of one person in a cell: every way in which they can lie."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from fractions import Fraction

import numpy as np
import pytest

from incrowd.arrays import Floats
from incrowd.errors import ParameterError
from incrowd.privacy.accountant import Accountant, BasicAccountant
from incrowd.privacy.counts import build_event_law
from incrowd.privacy.draw_parameters import CountsEvent, compute_threshold
from incrowd.privacy.events import (
    MOST_PARTITIONS,
    GaussianCounts,
    GeometricCounts,
    PersonCounts,
    RowCounts,
    SampledEvent,
    Selection,
    ShiftedCounts,
    describe_event,
    find_most_per_group,
    parse_event,
    serialize_event,
)
from incrowd.privacy.partition import count_partitions, list_partitions
from incrowd.privacy.plan import plan
from incrowd.privacy.split import split_for_counts

LAWS: list[CountsEvent] = [
    GeometricCounts(2, 0.4),
    GeometricCounts(4, 1.5),
    GaussianCounts(3, 2.0),
    GaussianCounts(4, 30.0),
]
EPSILONS = (0.0, 0.2, 0.7, 1.5, 3.0, 6.0)


def build_joint_laws(event: CountsEvent, shifts: Iterable[int]) -> tuple[Floats, Floats]:
    """The noise of some cells, without the person's rows and with them, outcome by outcome."""
    tail = build_event_law(event).tail
    law = np.concatenate([tail[:0:-1], tail])
    first, second = np.ones(1), np.ones(1)
    for shift in shifts:
        pad = np.zeros(shift)
        first = np.multiply.outer(first, np.concatenate([law, pad])).ravel()
        second = np.multiply.outer(second, np.concatenate([pad, law])).ravel()
    return first, second


def list_all_shifts(rows: int, per_group: int) -> list[tuple[int, ...]]:
    """Every vector that a person can move cells by, smaller sums and other orders included."""
    return [
        shifts
        for shifts in itertools.product(range(per_group + 1), repeat=rows)
        if 0 < sum(shifts) <= rows
    ]


@pytest.mark.parametrize("event", LAWS)
@pytest.mark.parametrize(("rows", "per_group"), [(2, 2), (3, 2), (3, 3), (4, 2)])
def test_no_way_to_lie_costs_more_than_is_accounted_and_one_costs_as_much(
    event: CountsEvent, rows: int, per_group: int
) -> None:
    accountant = Accountant(RowCounts(event, rows, per_group))
    distinct = {tuple(sorted(filter(None, x))) for x in list_all_shifts(rows, per_group)}
    laws = [build_joint_laws(event, shifts) for shifts in distinct]
    shares = []
    for epsilon in EPSILONS:
        true = max(
            float(np.maximum(p - math.exp(epsilon) * q, 0).sum())
            for first, second in laws
            for p, q in ((first, second), (second, first))
        )
        shares.append(true / accountant.delta(epsilon=epsilon))
    assert max(shares) <= 1 + 1e-9
    assert max(shares) > 0.999


@pytest.mark.parametrize("event", [GeometricCounts(40, 0.4), GaussianCounts(60, 150.0)])
def test_the_profile_is_that_of_the_worst_way_at_every_epsilon(event: CountsEvent) -> None:
    accountant = Accountant(RowCounts(event, 5, 3))
    ways = [Accountant([ShiftedCounts(event, s) for s in p]) for p in list_partitions(5, 3)]
    for epsilon in (0.1, 0.5, 1.2, 2.2):
        worst = max(way.delta(epsilon=epsilon) for way in ways)
        assert accountant.delta(epsilon=epsilon) == pytest.approx(worst, rel=1e-6)
    assert accountant.delta(epsilon=0.5) > Accountant(PersonCounts(event, 5)).delta(epsilon=0.5)


def test_geometric_noise_costs_its_own_epsilon_for_each_row() -> None:
    event = RowCounts(GeometricCounts(40, 0.25), rows=4, per_group=2)
    worst = 2 * build_event_law(event.event).compute_tail(39)  # two rows in each of two cells
    assert Accountant(event).delta(epsilon=1.0) == pytest.approx(worst, rel=1e-9)
    assert Accountant(event).delta(epsilon=0.9) > 10 * worst
    assert BasicAccountant(event).epsilon(delta=1.001 * worst) <= 1.0
    assert BasicAccountant(event).epsilon(delta=0.999 * worst) == math.inf


@pytest.mark.parametrize("event", LAWS)
def test_what_is_accounted_beside_other_events_is_no_less_than_by_itself(
    event: CountsEvent,
) -> None:
    rows = RowCounts(event, 3, 2)
    for epsilon in (0.3, 1.0):
        alone = Accountant(rows).delta(epsilon=epsilon)
        beside = Accountant([Selection(0.1), rows]).delta(epsilon=epsilon)
        assert beside >= alone * (1 - 1e-9)
        sampled = Accountant(SampledEvent(rows, 0.5)).delta(epsilon=epsilon)
        assert sampled <= alone
    assert Accountant(rows).epsilon(delta=0.99) <= Accountant([rows, rows]).epsilon(delta=0.99)


def test_partitions_are_all_of_them() -> None:
    for total, largest in [(1, 1), (4, 2), (7, 3), (11, 11)]:
        parts = list(list_partitions(total, largest))
        assert len(parts) == len(set(parts)) == count_partitions(total, largest)
        for part in parts:
            assert sum(part) == total
            assert max(part) <= largest
            assert list(part) == sorted(part, reverse=True)
    reached = {tuple(sorted(filter(None, x), reverse=True)) for x in list_all_shifts(4, 2)}
    assert set(list_partitions(4, 2)) == {x for x in reached if sum(x) == 4}


def test_an_event_is_read_back_and_described() -> None:
    event = RowCounts(GaussianCounts(90, 300.0), rows=4, per_group=2)
    assert parse_event(serialize_event(event)) == event
    assert "up to 4 rows of a person, up to 2 in a cell" in describe_event(event)
    with pytest.raises(ParameterError, match="hold nothing else"):
        parse_event({**serialize_event(event), "charged": 1})
    for rows, per_group in [(4, 1), (4, 5), (1, 1), (0, 2), (2.5, 2), (400, 2), (16, 9)]:
        with pytest.raises(ParameterError):
            RowCounts(GaussianCounts(90, 300.0), rows, per_group)  # type: ignore[arg-type]
    assert count_partitions(16, find_most_per_group(16)) <= MOST_PARTITIONS


@pytest.mark.parametrize(
    ("rows", "per_group", "r"),
    [(4, 1, 45), (2, 2, 27), (4, 2, 53), (4, 4, 55), (6, 2, 77), (8, 2, 89)],
)
def test_the_least_bound_of_the_noise_by_rows_that_count(rows: int, per_group: int, r: int) -> None:
    split = split_for_counts(epsilon=1.0, delta=1e-6, rows=rows, per_group=per_group)
    (event,) = split.events
    assert split.draws[-1].r == r  # type: ignore[union-attr]
    assert Accountant(event).delta(epsilon=1.0) <= 1e-6
    if per_group > 1:
        assert isinstance(event, RowCounts)
        assert (event.rows, event.per_group) == (rows, per_group)
        answer = plan(draw="counts", epsilon=1, delta=1e-6, rows=rows, per_group=per_group)
        assert answer.crowd == r + 4 * per_group + 1 == compute_threshold(r, 5, per_group)
        assert "rows" in answer.describe()


def test_a_plan_by_its_crowd_finds_the_budget_again() -> None:
    answer = plan(draw="counts", crowd=62, delta=1e-6, rows=4, per_group=2)
    assert answer.r == 53
    assert answer.epsilon == pytest.approx(1.0, rel=0.02)
    with pytest.raises(ParameterError, match="be at most rows = 3"):
        plan(draw="counts", epsilon=1, delta=1e-6, rows=3, per_group=4)
    with pytest.raises(ParameterError, match="be at most 8 of 16 rows"):
        plan(draw="counts", epsilon=1, delta=1e-6, rows=16, per_group=9)
    with pytest.raises(ParameterError, match="be 1 for a sample"):
        plan(epsilon=1, delta=1e-6, per_group=2)  # type: ignore[call-overload]
    with pytest.raises(ParameterError, match="be above 9 for k = 5"):
        plan(draw="counts", crowd=9, delta=1e-6, rows=4, per_group=2)


def test_fewer_than_k_people_never_reach_the_threshold() -> None:
    for r, k, per_group in itertools.product((1, 14), (1, 2, 5), (1, 2, 7)):
        threshold = compute_threshold(r, k, per_group)
        assert per_group * (k - 1) + r < threshold <= per_group * k + r
        assert Fraction(threshold) > r  # nothing is shown of a cell without rows
