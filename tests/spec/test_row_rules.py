"""Rules of synthetic rows: the combinations of values that each form allows."""

from __future__ import annotations

from decimal import Decimal
from itertools import product

import pytest

from incrowd.errors import IncrowdError
from incrowd.spec.build import build_hierarchy
from incrowd.spec.file import parse_spec
from incrowd.spec.leaves import make_leaves
from incrowd.spec.row_rules import Rule, RuleError, allow_cells, expand_orders

COLUMNS = """
columns:
  sex: {role: quasi, hierarchy: {flat: {values: [male, female]}}}
  pregnant: {role: quasi, hierarchy: {flat: {values: [yes, no]}}}
  age: {role: quasi, hierarchy: {intervals: {from: 0, to: 9, widths: [5]}}}
  a: {role: quasi, hierarchy: {intervals: {from: 0, to: 2}}}
  b: {role: quasi, hierarchy: {intervals: {from: 0, to: 2}}}
  c: {role: quasi, hierarchy: {intervals: {from: 0, to: 4}}}
  first: {role: quasi, hierarchy: {dates: {from: 2020-01-01, to: 2020-04-30, levels: [month]}}}
  last: {role: quasi, hierarchy: {dates: {from: 2020-01-01, to: 2020-06-30, levels: [quarter]}}}
"""
FILE = parse_spec(COLUMNS)
HIERARCHIES = {
    name: build_hierarchy(column, folder=FILE.folder) for name, column in FILE.spec.columns.items()
}
LEAVES = {
    name: make_leaves(name, column, HIERARCHIES[name]) for name, column in FILE.spec.columns.items()
}


def allowed(rule: dict[str, object]) -> dict[tuple[str | None, ...], bool]:
    """By combination of values; null is None, and what is outside the domain is '?'."""
    parsed_rule = Rule.model_validate(rule)
    table = allow_cells(parsed_rule, HIERARCHIES, LEAVES)
    values = [[*HIERARCHIES[name].values, None, "?"] for name in parsed_rule.names]
    return dict(zip(product(*values), table.ravel().tolist(), strict=True))


def test_a_condition_and_its_consequence() -> None:
    result = allowed({"if": {"sex": "male"}, "then": {"pregnant": "no"}})
    assert [pair for pair, fine in result.items() if not fine] == [
        ("male", "yes"), ("male", None), ("male", "?"),
    ]  # fmt: skip


def test_a_combination_that_never_occurs_may_name_groups_and_null() -> None:
    result = allowed({"never": {"age": ["0-4", None], "sex": "male"}})
    assert {age for (age, sex), fine in result.items() if not fine and sex == "male"} == {
        "0", "1", "2", "3", "4", None,
    }  # fmt: skip
    assert all(fine for (_, sex), fine in result.items() if sex != "male")


def test_an_order_allows_what_some_points_of_the_leaves_obey() -> None:
    result = allowed({"order": ["first", "last"]})
    forbidden = [pair for pair, fine in result.items() if not fine]
    assert forbidden == [("2020-04", "2020-Q1")]


def test_a_sum_is_exact_and_missing_numbers_obey() -> None:
    result = allowed({"sum": ["a", "b"], "is": "c"})
    for (a, b, c), fine in result.items():
        are_numbers = None not in (a, b, c) and "?" not in (a, b, c)
        assert fine == (not are_numbers or int(a or 0) + int(b or 0) == int(c or 0))


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ({"never": {"sex": "malee"}}, "neither a value nor a group of the column 'sex'"),
        ({"order": ["sex", "age"]}, "neither numbers nor dates"),
        ({"sum": ["a", "first"], "is": "c"}, "not single numbers"),
        ({"never": {"sex": ["male", "female", None, "*"]}}, "allows no row"),
    ],
)
def test_rules_that_cannot_be_are_refused(rule: dict[str, object], words: str) -> None:
    with pytest.raises(RuleError, match=words):
        allowed(rule)


@pytest.mark.parametrize("rule", [{"if": {"sex": "male"}}, {"never": {}}, {}, {"order": ["sex"]}])
def test_half_a_rule_is_refused(rule: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="rule|at least"):
        Rule.model_validate(rule)


def test_points_of_leaves() -> None:
    spec = parse_spec(
        "columns:\n  x: {role: quasi, precision: 0.5, hierarchy: {intervals: "
        "{from: 0, to: 10, step: 2.5, open: upper}}}\nrelease: {method: synthetic, epsilon: 1, "
        "delta: 1.0e-6}"
    )
    column = spec.spec.columns["x"]
    leaves = make_leaves("x", column, build_hierarchy(column, folder=spec.folder))
    spans = [(low, high) for low, high in zip(leaves.lows, leaves.highs, strict=True)]
    assert spans == [(0, 4), (5, 9), (10, 14), (15, 19), (20, 20), (21, None)]
    assert [leaves.text(point) for point in (0, 3)] == ["0", "1.5"]
    assert (leaves.point("1.5"), leaves.point("1.2"), leaves.point("x")) == (3, None, None)
    odd = column.model_copy(update={"precision": Decimal(2)})
    with pytest.raises(IncrowdError, match="does not divide"):
        make_leaves("x", odd, build_hierarchy(column, folder=spec.folder))
    day = LEAVES["first"]
    assert (day.text(day.lows[1] or 0), day.text(day.highs[1] or 0)) == ("2020-02-01", "2020-02-29")


def test_orders_that_follow_are_rules_too_and_circles_are_refused() -> None:
    rules = [Rule(order=("a", "b")), Rule(order=("b", "c")), Rule(never={"sex": ("male",)})]
    assert [rule.order for rule in expand_orders(rules)] == [
        None, ("a", "b"), ("a", "c"), ("b", "c"),
    ]  # fmt: skip
    with pytest.raises(RuleError, match="before itself"):
        expand_orders([*rules, Rule(order=("c", "a"))])
