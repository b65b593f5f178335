"""Functions of others stand in no slice with what determines them, and every column has a place."""

from __future__ import annotations

import random
from collections.abc import Collection
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from incrowd.anonymize import safe_slices
from incrowd.anonymize.safe_slices import choose_slices_by_score, count_choices, cover_pairs
from incrowd.anonymize.slice_rule import SliceRule
from incrowd.privacy.randomness import SeededRandomness
from incrowd.spec.dependency import ColumnDependencies

Functions = list[tuple[int, frozenset[int]]]


def determines(functions: Functions, sources_given: Collection[int], target: int) -> bool:
    """Whether columns determine another, by the definition: closed under every function."""
    closed = set(sources_given)
    for _ in functions:
        for at, sources in functions:
            if sources <= closed:
                closed.add(at)
    return target in closed


def is_tautology(functions: Functions, part: Collection[int]) -> bool:
    return any(determines(functions, set(part) - {at}, at) for at in part)


def draw_functions(randomly: random.Random, columns: int) -> Functions:
    """Functions of one or two columns, some of which are not published, cycles among them."""
    functions = []
    for target in randomly.sample(range(columns), randomly.randint(1, columns - 1)):
        others = [at for at in range(columns + 2) if at != target]
        sources = frozenset(randomly.sample(others, randomly.randint(1, 2)))
        functions.append((target, sources))
    return functions


def test_a_rule_refuses_just_the_sets_with_functions_of_others() -> None:
    randomly = random.Random(1)
    verdicts = set()
    for _ in range(60):
        functions = draw_functions(randomly, 6)
        rule = SliceRule(6, functions)
        for size in (1, 2, 3, 4):
            for part in combinations(range(6), size):
                assert rule.allows(part) is not is_tautology(functions, part)
                verdicts.add(rule.allows(part))
    assert verdicts == {True, False}


def test_without_a_rule_sizes_are_even() -> None:
    assert SliceRule(7).compute_sizes(3) == [3, 2, 2]
    assert SliceRule(7).dependent_columns == ()


def test_a_year_and_its_dummies_take_as_many_slices_as_they_must() -> None:
    year = SliceRule(4, [(at, {0}) for at in (1, 2, 3)])
    assert year.compute_sizes(3) == [3, 3]  # the year alone, and its dummies
    assert year.compute_sizes(2) == [2, 2, 2]
    assert SliceRule(3, [(1, {0}), (2, {0}), (2, {1})]).compute_sizes(2) == [1, 1, 1]


class AnyPick:
    """A choice of any option, whatever its score: what a private choice may do."""

    def __init__(self, seed: int) -> None:
        self.randomly, self.spent = random.Random(seed), list[Fraction]()

    def __call__(self, values: Any, *, epsilon: Fraction, **more: Any) -> int:
        assert len(values) > 0
        self.spent.append(epsilon)
        return self.randomly.randrange(len(values))


def test_whatever_is_chosen_no_slice_is_a_tautology_and_every_column_has_a_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    randomly, shorter = random.Random(2), 0
    for seed in range(400):
        columns, limit = randomly.randint(4, 9), randomly.randint(2, 4)
        functions = draw_functions(randomly, columns)
        rule = SliceRule(columns, functions)
        if not rule.list_separate_pairs().any():
            continue
        sizes = rule.compute_sizes(limit)
        tables = len(sizes) + randomly.randint(0, 4)
        epsilons = [Fraction(at + 1) for at in range(count_choices(rule, limit, tables))]
        pick = AnyPick(seed)
        monkeypatch.setattr(safe_slices, "select_candidate", pick)
        score = dict.fromkeys(combinations(range(columns), 2), 1)
        slices = choose_slices_by_score(
            score, rule, limit, tables, epsilons=epsilons, bits=SeededRandomness(1)
        )
        assert len(slices) == tables
        assert all(0 < len(part) <= limit for part in slices)
        assert not any(is_tautology(functions, part) for part in slices)
        early = [at for part in slices[: len(sizes)] for at in part]
        assert sorted(early) == list(range(columns))
        assert pick.spent == epsilons[: len(pick.spent)]  # none twice
        shorter += len(pick.spent) < len(epsilons)
    assert shorter > 20  # slices that ended early


def test_packing_that_ignores_the_rest_leaves_a_column_without_place() -> None:
    """Two columns of the same thing, and two others: the others must not be put together first."""
    rule = SliceRule(4, [(1, {0})])
    assert rule.compute_sizes(2) == [2, 2]
    assert rule.allows((2, 3))
    assert not rule.leaves_room((2, 3), (0, 1), [2, 2])
    assert rule.leaves_room((0, 3), (1, 2), [2, 2])
    assert not rule.leaves_room((0, 2, 3), (1,), [4, 1, 1])  # nothing is left for the last


def test_every_two_columns_that_may_stand_together_do() -> None:
    randomly = random.Random(3)
    for _ in range(80):
        columns, limit = randomly.randint(3, 8), randomly.randint(2, 4)
        functions = draw_functions(randomly, columns)
        slices = cover_pairs(SliceRule(columns, functions), limit)
        assert not any(is_tautology(functions, part) for part in slices)
        assert {at for part in slices for at in part} == set(range(columns))
        together = {pair for part in slices for pair in combinations(part, 2)}
        apart = {
            pair for pair in combinations(range(columns), 2) if is_tautology(functions, pair)
        }  # fmt: skip
        assert together == set(combinations(range(columns), 2)) - apart


def test_a_rule_of_two_columns_tries_few_beginnings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 171 columns there are 14,535 pairs; packing is tried for those that differ by the rule."""
    tried = []
    leaves_room = SliceRule.leaves_room

    def watched(rule: SliceRule, *rest: Any) -> bool:
        tried.append(rest)
        return leaves_room(rule, *rest)

    monkeypatch.setattr(SliceRule, "leaves_room", watched)
    rule = SliceRule(60, [(1, {0}), (2, {0})])
    score = dict.fromkeys(combinations(range(60), 2), 1)
    epsilons = [Fraction(1)] * count_choices(rule, 3, 20)
    choose_slices_by_score(score, rule, 3, 20, epsilons=epsilons, bits=SeededRandomness(1))
    assert len(tried) < 20 * 30


def test_dependencies_by_name_say_what_the_rule_says() -> None:
    dependencies = ColumnDependencies({"y81": ("year",), "decade": ("year",), "odd": ("y81",)})
    assert dependencies.find_determined(("year", "y81", "age")) == ["y81"]
    assert dependencies.find_determined(("year", "odd")) == ["odd"]  # through y81
    assert dependencies.find_determined(("y81", "decade")) == []
    assert dependencies.find_sources("odd", ("year", "age")) == ["year"]
    both = ColumnDependencies({"a": ("b",), "b": ("a",)})
    assert both.find_determined(("a", "b")) == ["a", "b"]
    total = ColumnDependencies({"total": ("part", "rest")})
    assert total.find_determined(("total", "part")) == []
    assert total.find_determined(("total", "part", "rest")) == ["total"]
    assert np.array_equal(SliceRule(3, [(2, {0, 1})]).list_separate_pairs(), ~np.eye(3, dtype=bool))
