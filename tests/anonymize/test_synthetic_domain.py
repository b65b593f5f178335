"""Columns with nested levels, rules about them, and counts of small tables."""

from __future__ import annotations

import numpy as np
import pytest
from support.small_domains import nested, related_rows, small_domain

from incrowd.anonymize.synthetic.domain import (
    Domain,
    RulesError,
    TableCounter,
    column_of,
    make_column,
)
from incrowd.codes.hierarchy import build_from_rows
from incrowd.errors import ParameterError


def test_groups_are_runs_and_codes_come_back() -> None:
    column = make_column([[0, 1, 2, 3, 4], [1, 0, 1, 0, 2], [0, 0, 0, 0, 1], [0, 0, 0, 0, 0]])
    assert column.sizes == (5, 3, 2)  # the root says nothing
    for group in column.groups:
        assert (np.diff(group) >= 0).all()
    assert column.level_numbers == (0, 1, 2)
    domain = Domain((column,))
    codes = np.array([[3], [0], [4], [2]], dtype=np.int32)
    assert (domain.decode(domain.encode(codes)) == codes).all()


def test_a_level_that_does_not_nest_is_refused() -> None:
    with pytest.raises(ParameterError, match="level 2"):
        make_column([[0, 1, 2, 3], [0, 0, 1, 1], [0, 1, 1, 1]])


def test_null_and_outside_are_leaves_only_if_asked_for() -> None:
    hierarchy = build_from_rows([("a", "x", "*"), ("b", "x", "*"), ("c", "y", "*")])
    assert column_of(hierarchy).sizes == (5, 4)
    plain = column_of(hierarchy, null=False, outside=False)
    assert plain.sizes == (3, 2)
    with pytest.raises(ParameterError, match="column 0"):
        Domain((plain,)).encode(np.array([[hierarchy.null]], dtype=np.int32))


def test_tables_are_counted_at_any_level_from_rows_and_from_tuples() -> None:
    domain = small_domain()
    codes = related_rows(domain, 500, 1)
    tuples, counts = np.unique(codes, axis=0, return_counts=True)
    by_rows = TableCounter(domain, codes)
    by_tuples = TableCounter(domain, tuples, counts)
    assert int(by_rows((), ())) == int(by_tuples((), ())) == 500
    fine = by_rows((1, 3), (0, 0))
    assert fine.sum() == 500
    for levels in ((0, 0), (1, 0), (1, 2)):
        table = by_tuples((1, 3), levels)
        assert (table == by_rows((1, 3), levels)).all()
        assert (table == domain.roll_up(fine, (1, 3), (0, 0), levels)).all()


def test_rules_need_the_level_at_which_they_can_be_told() -> None:
    allowed = np.ones((6, 2), dtype=bool)
    allowed[2:4, 1] = False  # one group of level 1
    columns = (make_column(nested(6, 2)), make_column(nested(2)))
    assert Domain(columns, {(0, 1): allowed}).rule_levels == (1, 0)
    allowed[0, 1] = False
    assert Domain(columns, {(0, 1): allowed}).rule_levels == (0, 0)
    with pytest.raises(RulesError):
        Domain(columns, {(0, 1): np.zeros((6, 2), dtype=bool)})
