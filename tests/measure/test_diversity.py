"""Rules on sensitive values, against their definitions in exact arithmetic."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from incrowd.measure.diversity import (
    AlphaRule,
    ClosenessRule,
    DisclosureRule,
    DistinctRule,
    DiversityRule,
    EntropyRule,
    HierarchyClosenessRule,
    LikenessRule,
    RecursiveRule,
    SensitiveColumn,
    ShareRule,
    check_rules,
    compute_disclosure,
    compute_distance,
    compute_gain,
    compute_hierarchy_distance,
)

Spread = list[int]
widths = st.integers(1, 5)
TIE = 1e-9  # a bound that is met but for this much may go either way


def spreads(width: int) -> st.SearchStrategy[Spread]:
    return st.lists(st.integers(0, 6), min_size=width, max_size=width).filter(any)


def exact(inside: Spread, overall: Spread, *, ordered: bool) -> Fraction:
    """The least work that turns one distribution into the other, moved as the distance says."""
    if len(overall) == 1:
        return Fraction(0)
    class_shares = [Fraction(x, sum(inside)) for x in inside]
    table_shares = [Fraction(x, sum(overall)) for x in overall]
    if not ordered:
        return sum(
            (max(x - y, Fraction(0)) for x, y in zip(class_shares, table_shares, strict=True)),
            Fraction(0),
        )
    # along a line, the cheapest plan serves the places from left to right
    work, at, supply = Fraction(0), 0, class_shares[0]
    for place, demand in enumerate(table_shares):
        need = demand
        while need:
            while not supply:
                at += 1
                supply = class_shares[at]
            moved = min(need, supply)
            work += moved * abs(place - at)
            need, supply = need - moved, supply - moved
    return work / (len(overall) - 1)


def perplexity(inside: Spread) -> float:
    """How many equally frequent values have the same entropy."""
    rows = sum(inside)
    return math.exp(math.fsum(-x / rows * math.log(x / rows) for x in inside if x))


@settings(max_examples=80)
@given(data=st.data(), width=widths, bound=st.sampled_from([1, 1.5, 2, 2.5, 3]))
def test_rules_against_their_definitions(data: st.DataObject, width: int, bound: float) -> None:
    overall = data.draw(spreads(width))
    classes = data.draw(st.lists(spreads(width), min_size=1, max_size=5))
    spread, total = np.array(classes), np.array(overall)
    assert DistinctRule(bound).check_classes(spread, total).tolist() == [
        sum(x > 0 for x in inside) >= bound for inside in classes
    ]
    for satisfied, inside in zip(
        EntropyRule(bound).check_classes(spread, total), classes, strict=True
    ):
        assert bool(satisfied) == (perplexity(inside) >= bound - TIE)
    for ordered in (False, True):
        away = [exact(inside, overall, ordered=ordered) for inside in classes]
        assert compute_distance(spread, total, ordered=ordered) == pytest.approx(
            [float(x) for x in away]
        )
        for t in (0.0, 0.125, 0.25, 0.5, float(away[0])):
            expected = [float(x) <= t + TIE for x in away]
            assert (
                ClosenessRule(t, ordered=ordered).check_classes(spread, total).tolist() == expected
            )


@pytest.mark.parametrize(
    ("inside", "least", "holds"),
    [
        ((5, 5, 0), 2, True),  # exactly two equally frequent values
        ((7, 7, 7), 3, True),
        ((5, 6, 0), 2, False),  # two values, but not equally frequent
        ((1, 0, 0), 1, True),
        ((10, 10, 1), 2, True),
        ((97, 1, 2), 2, False),
    ],
)
def test_entropy_that_meets_its_bound_exactly(
    inside: tuple[int, ...], least: float, holds: bool
) -> None:
    assert EntropyRule(least).check_classes(np.array([inside]), np.array([9, 9, 9])).tolist() == [
        holds
    ]


def test_closeness_as_in_the_paper() -> None:
    """Li and others' salaries 3K to 11K: {3K, 4K, 5K} is 0.375 away, {6K, 8K, 11K} 0.167."""
    overall = np.ones(9, dtype=np.int64)
    lowest = np.array([[1, 1, 1, 0, 0, 0, 0, 0, 0]])
    middle = np.array([[0, 0, 0, 1, 0, 1, 0, 0, 1]])
    assert compute_distance(lowest, overall, ordered=True) == pytest.approx([0.375])
    assert compute_distance(middle, overall, ordered=True) == pytest.approx([1 / 6])
    assert compute_distance(lowest, overall, ordered=False) == pytest.approx([2 / 3])
    assert ClosenessRule(0.375, ordered=True).check_classes(lowest, overall).all()
    assert not ClosenessRule(0.374, ordered=True).check_classes(lowest, overall).any()


RULES: list[DiversityRule] = [
    DistinctRule(1),
    DistinctRule(2),
    DistinctRule(3),
    EntropyRule(1.5),
    EntropyRule(2),
    EntropyRule(2.5),
    ClosenessRule(0.1),
    ClosenessRule(0.3),
    ClosenessRule(0.15, ordered=True),
    ClosenessRule(0.3, ordered=True),
    RecursiveRule(1.0, 2),
    RecursiveRule(3.0, 3),
    RecursiveRule(0.8, 2),
    AlphaRule(0.5),
    AlphaRule(0.7),
    LikenessRule(0.5),
    LikenessRule(1.0, enhanced=True),
    DisclosureRule(3.0),
    DisclosureRule(4.0),
    ShareRule(0, 0.2, 0.7),
    ShareRule(1, most=0.5),
    HierarchyClosenessRule(0.25, (np.array([0, 1, 2]), np.array([0, 0, 1]))),
]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("overall", [(9, 9, 9), (3, 10, 20), (40, 3, 7)])
def test_two_classes_that_satisfy_a_rule_satisfy_it_together(
    rule: DiversityRule, overall: tuple[int, int, int]
) -> None:
    """All pairs of classes of up to five rows of each of three values."""
    table = np.array(overall)
    every = np.array([x for x in itertools.product(range(6), repeat=3) if any(x)])
    holds = rule.check_classes(every, table)
    good = every[holds]
    assert len(good) > 0
    assert len(good) < len(every) or rule == DistinctRule(1)
    for spread in good:
        assert rule.check_classes(good + spread, table).all()
        if rule.monotone:
            assert rule.check_classes(every + spread, table).all()


@pytest.mark.parametrize(
    ("rule", "first", "second"),
    [
        (EntropyRule(2), (1, 1), (9, 0)),
        (ClosenessRule(0.3), (1, 1), (9, 0)),
        (ClosenessRule(0.3, ordered=True), (1, 1), (9, 0)),
        (RecursiveRule(2.0, 2), (1, 1), (9, 0)),
        (AlphaRule(0.6), (1, 1), (9, 0)),
        (LikenessRule(0.5), (1, 1), (9, 0)),
        (LikenessRule(0.5, enhanced=True), (1, 1), (9, 0)),
        (DisclosureRule(1.0), (1, 1), (9, 0)),
        (ShareRule(0, most=0.6), (1, 1), (9, 0)),
        (ShareRule(1, least=0.4), (1, 1), (9, 0)),
        (HierarchyClosenessRule(0.3, (np.array([0, 1]),)), (1, 1), (9, 0)),
    ],
)
def test_what_joins_a_class_may_break_a_rule_that_is_not_monotone(
    rule: DiversityRule, first: tuple[int, int], second: tuple[int, int]
) -> None:
    overall = np.array([20, 20])
    assert not rule.monotone
    assert rule.check_classes(np.array([first]), overall).all()
    assert not rule.check_classes(np.array([np.add(first, second)]), overall).any()


def test_counting_distinct_values_is_monotone() -> None:
    assert DistinctRule(3).monotone


@given(
    rows=st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 1), st.integers(1, 4)),
        min_size=1,
        max_size=20,
    )
)
def test_classes_satisfy_the_rules_of_all_columns(rows: list[tuple[int, int, int, int]]) -> None:
    at, first, second, counts = (np.array(column) for column in zip(*rows, strict=True))
    class_numbers, number = np.unique(at, return_inverse=True)
    columns, expected = [], np.ones(len(class_numbers), dtype=bool)
    diversity_ruleses: list[tuple[DiversityRule, ...]] = [
        (DistinctRule(2), ClosenessRule(0.4)),
        (EntropyRule(1.2),),
    ]
    for codes, values, rules in zip((first, second), (3, 2), diversity_ruleses, strict=True):
        overall = [int(counts[codes == x].sum()) for x in range(values)]
        columns.append(SensitiveColumn(codes.astype(np.int32), np.array(overall), rules))
        spread = [
            [int(counts[(number == c) & (codes == x)].sum()) for x in range(values)]
            for c in range(len(class_numbers))
        ]
        assert (
            columns[-1].count_values(number, counts, classes=len(class_numbers)).tolist() == spread
        )
        for rule in rules:
            expected &= rule.check_classes(np.array(spread), np.array(overall))
    satisfied = check_rules(number, counts, classes=len(class_numbers), sensitive_columns=columns)
    assert satisfied.tolist() == expected.tolist()
    assert check_rules(number, counts, classes=len(class_numbers), sensitive_columns=[]).all()


# Recursive diversity, shares, likeness, disclosure, hierarchies -----------------------------------


@settings(max_examples=80)
@given(data=st.data(), width=st.integers(2, 5))
def test_rules_on_shares_against_their_definitions(data: st.DataObject, width: int) -> None:
    overall = [x + 1 for x in data.draw(spreads(width))]
    classes = data.draw(st.lists(spreads(width), min_size=1, max_size=5))
    spread, total = np.array(classes), np.array(overall)
    table_shares = [Fraction(x, sum(overall)) for x in overall]
    for number, inside in enumerate(classes):
        row = spread[number : number + 1]
        shares = [Fraction(x, sum(inside)) for x in inside]
        by_size = sorted(inside, reverse=True)
        for c, first in ((Fraction(1), 2), (Fraction(2), 3), (Fraction(1, 2), 2)):
            holds = by_size[0] < c * sum(by_size[first - 1 :])
            assert RecursiveRule(float(c), first).check_classes(row, total)[0] == holds
        for alpha in (Fraction(1, 2), Fraction(2, 3), max(shares)):
            assert AlphaRule(float(alpha)).check_classes(row, total)[0] == (max(shares) <= alpha)
        gain = float(max(q / p - 1 for q, p in zip(shares, table_shares, strict=True)))
        assert compute_gain(row, total, enhanced=False)[0] == pytest.approx(max(gain, 0.0))
        for beta in (0.3, 1.0, 2.5, max(gain, 0.1)):
            excess = [
                float(q / p - 1) - min(beta, -math.log(p))
                for q, p in zip(shares, table_shares, strict=True)
            ]
            if abs(max(excess)) > TIE:
                holds = max(excess) <= 0
                assert LikenessRule(beta, enhanced=True).check_classes(row, total)[0] == holds
            assert LikenessRule(beta).check_classes(row, total)[0] == (gain <= beta + TIE)
        logs = [
            abs(math.log2(q / p)) if q else math.inf
            for q, p in zip(shares, table_shares, strict=True)
        ]
        present = max(x for x in logs if x < math.inf)
        assert compute_disclosure(row, total, every=True)[0] == pytest.approx(max(logs))
        assert compute_disclosure(row, total, every=False)[0] == pytest.approx(present)
        for delta in (0.5, 1.0, 2.0):
            if abs(present - delta) > TIE:
                assert DisclosureRule(delta).check_classes(row, total)[0] == (max(logs) < delta)
                rule = DisclosureRule(delta, every=False)
                assert rule.check_classes(row, total)[0] == (present < delta)


def test_bounds_met_exactly() -> None:
    """Strict rules fail there, the others hold."""
    spread, overall = np.array([[4, 2, 2]]), np.array([2, 1, 5])
    assert not RecursiveRule(1.0, 2).check_classes(spread, overall)[0]
    assert RecursiveRule(1.01, 2).check_classes(spread, overall)[0]
    assert AlphaRule(0.5).check_classes(spread, overall)[0]
    assert LikenessRule(1.0).check_classes(spread, overall)[0]
    assert not LikenessRule(0.99).check_classes(spread, overall)[0]
    two = np.array([[1, 3]]), np.array([2, 2])
    assert not DisclosureRule(1.0).check_classes(*two)[0]
    assert DisclosureRule(1.0 + 1e-9).check_classes(*two)[0]


def test_disclosure_of_the_values_present_is_not_closed() -> None:
    """A class without a value brings its share in the union below the bound."""
    rule, overall = DisclosureRule(1.0, every=False), np.array([6, 2])
    parts = np.array([[11, 2], [9, 0]])
    assert rule.check_classes(parts, overall).all()
    assert not rule.check_classes(parts.sum(axis=0)[None], overall).any()
    assert not rule.closed
    assert all(other.closed for other in RULES)


@pytest.mark.parametrize("seed", range(12))
def test_hierarchical_distance_is_the_least_work(seed: int) -> None:
    """Against linear programming over all plans, with the distances of the paper."""
    rng = np.random.default_rng(seed)
    width = int(rng.integers(3, 7))
    groups = [np.arange(width, dtype=np.int32)]
    for _ in range(int(rng.integers(1, 3))):
        coarser = rng.integers(0, 3, size=int(groups[-1].max()) + 1)
        groups.append(np.unique(coarser, return_inverse=True)[1][groups[-1]].astype(np.int32))
    levels = len(groups)  # the root is above the last
    distance = np.array(
        [[sum(group[a] != group[b] for group in groups) / levels for b in range(width)]
         for a in range(width)]
    )  # fmt: skip
    spread = rng.integers(0, 6, size=(4, width)) + np.eye(4, width, dtype=np.int64)
    overall = rng.integers(1, 9, width)
    spread[:, 0] += 1
    measured = compute_hierarchy_distance(spread, overall, groups)
    for inside, value in zip(spread, measured, strict=True):
        plan = linprog(
            distance.ravel(),
            A_eq=np.vstack([np.kron(np.eye(width), np.ones(width)), np.tile(np.eye(width), width)]),
            b_eq=np.concatenate([inside / inside.sum(), overall / overall.sum()]),
        )
        assert value == pytest.approx(plan.fun, abs=1e-9)


def test_one_level_is_the_equal_distance() -> None:
    rng = np.random.default_rng(1)
    spread, overall = rng.integers(1, 6, size=(5, 4)), rng.integers(1, 9, 4)
    flat = compute_hierarchy_distance(spread, overall, [np.arange(4, dtype=np.int32)])
    assert flat == pytest.approx(compute_distance(spread, overall, ordered=False))


def test_presence_against_its_definition() -> None:
    """Every class of up to four rows of each of three values, in exact arithmetic."""
    every = np.array([x for x in itertools.product(range(5), repeat=3) if any(x)])
    for place, least, most in ((0, 0.25, 0.5), (2, 0.0, 1 / 3), (1, 0.6, 1.0)):
        holds = ShareRule(place, least, most).check_classes(every, every.sum(axis=0))
        for spread, answer in zip(every.tolist(), holds.tolist(), strict=True):
            share = Fraction(spread[place], sum(spread))
            bounds = Fraction(least), Fraction(1, 3) if most == 1 / 3 else Fraction(most)
            if place == 1:
                bounds = Fraction(3, 5), Fraction(1)
            assert answer == (bounds[0] <= share <= bounds[1])


def test_figures_of_pycanon() -> None:
    """pyCANON 1.0's tests on a table of pupils: a lone value of one row in 72, and (.5, 5).

    It reports the smaller of gain and bound, ln 72; a share of 72 times that in the table exceeds
    the enhanced bound, so that no beta of enhanced likeness admits such a class here.
    """
    lone, overall = np.array([[1, 0]]), np.array([1, 71])
    gain = float(compute_gain(lone, overall, enhanced=False)[0])
    bound = -math.log(overall[0] / overall.sum())
    assert gain == pytest.approx(71)
    assert min(gain, bound) == pytest.approx(4.276666119016055)
    assert compute_gain(lone, overall, enhanced=True)[0] == np.inf
    classes = np.array([[3, 3, 0], [2, 2, 1]])
    assert classes.sum(axis=1).min() == 5
    assert AlphaRule(0.5).check_classes(classes, classes.sum(axis=0)).all()
    assert not AlphaRule(0.49).check_classes(classes, classes.sum(axis=0)).all()
