"""Hierarchies: what is built from runs is what is built from rows."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.codes.hierarchy import HierarchyError, LabelRuns, build_from_rows, build_from_runs


@given(
    number=st.integers(1, 12),
    cuts=st.lists(st.sets(st.integers(1, 11)), max_size=3),
    other=st.none() | st.just("other"),
)
def test_runs_are_what_rows_are(number: int, cuts: list[set[int]], other: str | None) -> None:
    values = [str(at) for at in range(number)]
    levels, columns = [LabelRuns(values, [1] * number)], [values]
    for level, points in enumerate(cuts):
        edges = [0, *sorted(point for point in points if point < number), number]
        lengths = [end - start for start, end in itertools.pairwise(edges)]
        names = [f"{level}/{at}" for at in range(len(lengths))]
        levels.append(LabelRuns(names, lengths))
        columns.append(
            [name for name, length in zip(names, lengths, strict=True) for _ in range(length)]
        )
    rows = [(*row, "*") for row in zip(*columns, strict=True)]
    try:
        expected = build_from_rows(rows, other=other, exact=True)
    except HierarchyError as error:
        with pytest.raises(HierarchyError, match=re.escape(str(error))):
            build_from_runs(levels, other=other)
        return
    built = build_from_runs(levels, other=other)
    assert (built.values, built.labels, built.size) == (
        expected.values, expected.labels, expected.size,
    )  # fmt: skip
    assert all((a == b).all() for a, b in zip(built.groups, expected.groups, strict=True))
    assert [group.dtype for group in built.groups] == [group.dtype for group in expected.groups]
