"""Distances of synthetic rows, by hand: values, pairs, triples, subgroups, equal rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
import polars as pl
import pytest

from incrowd.arrays import Codes
from incrowd.codes.counted_table import CountedTable, PublishedTable
from incrowd.engine.count import count_tuples
from incrowd.engine.source import local_engine
from incrowd.measure import synthetic
from incrowd.measure.label_evaluation import build_pair
from incrowd.measure.synthetic import (
    EqualRows,
    SyntheticEvaluation,
    evaluate_synthetic,
    mean_pair_distance,
)
from incrowd.spec.build import ColumnHierarchies
from incrowd.spec.file import parse_spec

_SPEC = parse_spec("""
columns:
  a: {role: quasi, hierarchy: {flat: {values: [x, y]}}}
  b: {role: quasi, hierarchy: {flat: {values: [p, q]}}}
  c: {role: sensitive, hierarchy: {flat: {values: [u, v]}}}
""")
_Columns: TypeAlias = Mapping[str, Sequence[str | None]]
_BEFORE: _Columns = {"a": ["x"] * 200 + ["y"] * 200, "b": (["p"] * 100 + ["q"] * 100) * 2,
           "c": ["u"] * 399 + [None]}  # fmt: skip
_AFTER: _Columns = {
    "a": ["x"] * 200 + ["y"] * 200,
    "b": ["p"] * 200 + ["q"] * 200,
    "c": ["u"] * 400,
}


def _count(columns: _Columns) -> CountedTable:
    table = local_engine().open(pl.DataFrame(columns))
    return count_tuples(table, ColumnHierarchies(_SPEC.spec.columns, _SPEC.folder))


def _shown(columns: _Columns) -> PublishedTable:
    table = _count(columns)
    labels = tuple(hierarchy.labels[0] for hierarchy in table.hierarchies)
    return PublishedTable(labels, table.frequencies, (0, 0, 0))


def _evaluate(again: Codes | None = None) -> SyntheticEvaluation:
    return evaluate_synthetic(_count(_BEFORE), _shown(_AFTER), again, queries=10)


def test_distances_are_those_by_hand() -> None:
    """Columns keep their shares but for one null, half of the rows of the pair a, b are wrong."""
    evaluation = _evaluate()
    assert evaluation.distance_by_column == pytest.approx({"a": 0, "b": 0, "c": 1 / 400})
    pairs = {(pair.first, pair.second): pair.distance for pair in evaluation.distance_by_pair}
    # A quarter each before; x, p and y, q a half each after.
    assert pairs == pytest.approx({("a", "b"): 0.5, ("a", "c"): 1 / 400, ("b", "c"): 1 / 400})
    (triple,) = evaluation.distance_by_triple
    assert triple.columns == ("a", "b", "c")
    assert triple.distance == pytest.approx(201 / 400)
    assert (evaluation.pairs, evaluation.triples) == (3, 1)


def test_cells_and_subgroups_name_where_the_rows_are_wrong() -> None:
    evaluation = _evaluate()
    assert {cell.error for cell in evaluation.cells[:3]} == {0.25}
    assert {cell.columns for cell in evaluation.cells[:3]} == {("a", "b")}
    worst = evaluation.subgroup_distances[0]
    # Within x, b is p for half of the people, and for all rows; c is right but for the null.
    assert worst.column in ("a", "b")
    assert worst.distance == pytest.approx((0.5 + 1 / 200) / 2)
    assert (worst.rows, worst.released) == (200, 200)
    assert all(subgroup.rows >= 100 for subgroup in evaluation.subgroup_distances)


def test_a_missing_value_is_null_in_both_and_never_a_star() -> None:
    values = [value for value in _evaluate().values if value.column == "c"]
    assert [value.value for value in values] == ["u"]
    same = evaluate_synthetic(_count(_BEFORE), _shown(_BEFORE), None, queries=10)
    assert same.distance_by_column["c"] == 0
    assert not same.findings()


def test_a_value_without_rows_is_described_by_nothing() -> None:
    lacking = _shown({"a": ["x"] * 9, "b": ["p"] * 9, "c": ["u"] * 9})
    evaluation = evaluate_synthetic(_count(_BEFORE), lacking, None, queries=10)
    distances = {(x.column, x.value): x.distance for x in evaluation.subgroup_distances}
    assert distances["a", "y"] == 1


def test_equal_rows_are_held_against_a_second_draw() -> None:
    before = _count(_BEFORE).frequencies
    assert _evaluate().equal_rows == EqualRows(equal=400, expected=None, unique=0, rows=400)
    second = np.repeat(before.codes[:1], 5, axis=0)
    equal = _evaluate(second).equal_rows
    assert equal.expected == int(
        _shown(_AFTER)
        .frequencies.counts[(_shown(_AFTER).frequencies.codes == before.codes[0]).all(axis=1)]
        .sum()
    )


def test_of_many_pairs_some_are_compared_and_all_are_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(synthetic, "MOST_PAIRS", 2)
    monkeypatch.setattr(synthetic, "MOST_TRIPLES", 0)
    evaluation = _evaluate()
    assert (len(evaluation.distance_by_pair), evaluation.pairs) == (2, 3)
    assert (len(evaluation.distance_by_triple), evaluation.triples) == (0, 1)
    assert evaluation.mean_triple_distance is None


def test_the_distance_of_labels_spreads_them_over_their_values() -> None:
    """Of `*` a reader takes values to be uniform; of rows as they are, the distance is exact."""
    table, published = _count(_BEFORE), _shown(_AFTER)
    exact = mean_pair_distance(build_pair(table, table.axes, published))
    assert exact == pytest.approx((0.5 + 2 / 400) / 3)
    stars = PublishedTable((("*",),) * 3, type(table.frequencies)(
        np.zeros((1, 3), np.int32), np.array([400])), (None, None, None))  # fmt: skip
    spread = mean_pair_distance(build_pair(table, table.axes, stars))
    # a and b are uniform already; of c, half of the rows are taken to be v.
    assert spread is not None
    assert 0.3 < spread < 0.45


def test_json_has_what_applies_and_nothing_else() -> None:
    document = _evaluate().as_dict()
    assert {"distance_by_triple", "cells", "subgroup_distances", "mean_pair_distance"} <= {
        *document
    }
    assert not {"loss", "risk", "suppressed", "surplus", "smallest_class", "lost"} & {*document}
