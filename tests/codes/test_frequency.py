from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.codes.frequency import Frequencies, join_frequencies, map_levels, merge_tuples
from incrowd.codes.hierarchy import build_from_rows


def as_counter(frequencies: Frequencies) -> Counter[tuple[int, ...]]:
    pairs = zip(frequencies.codes.tolist(), frequencies.counts.tolist(), strict=True)
    return Counter({tuple(codes): count for codes, count in pairs})


tables = st.integers(1, 4).flatmap(
    lambda width: st.lists(
        st.tuples(*[st.integers(0, 5)] * width, st.integers(1, 9)), min_size=1, max_size=60
    )
)


def frequencies(rows: list[tuple[int, ...]]) -> Frequencies:
    table = np.array(rows, dtype=np.int64)
    return merge_tuples(table[:, :-1].astype(np.int32), table[:, -1])


@given(rows=tables)
def test_merging_adds_the_counts_of_equal_tuples(rows: list[tuple[int, ...]]) -> None:
    expected: Counter[tuple[int, ...]] = Counter()
    for *codes, count in rows:
        expected[tuple(codes)] += count
    merged = frequencies(rows)
    assert as_counter(merged) == expected
    assert len(merged) == len(expected)
    assert merged.codes.tolist() == sorted(merged.codes.tolist())


@given(rows=tables, data=st.data())
def test_rolling_up_equals_counting_at_the_target_level(
    rows: list[tuple[int, ...]], data: st.DataObject
) -> None:
    width = len(rows[0]) - 1
    lookup = st.lists(st.integers(0, 3), min_size=6, max_size=6)
    maps = [np.array(data.draw(lookup), dtype=np.int32) for _ in range(width)]
    direct = frequencies(
        [(*(int(maps[at][row[at]]) for at in range(width)), row[-1]) for row in rows]
    )
    assert as_counter(frequencies(rows).roll_up(maps)) == as_counter(direct)


def test_many_wide_columns_do_not_overflow() -> None:
    draw = np.random.default_rng(3)
    codes = draw.integers(0, 1_000_000, (400, 12)).astype(np.int32)
    doubled = merge_tuples(np.vstack([codes, codes[::-1]]), np.ones(800, dtype=np.int64))
    assert len(doubled) == 400
    assert set(doubled.counts.tolist()) == {2}
    assert doubled.codes.tolist() == sorted(codes.tolist())


def test_parts_join() -> None:
    first, second = frequencies([(1, 2, 3)]), frequencies([(1, 2, 4), (0, 0, 1)])
    assert as_counter(join_frequencies([first, second])) == {(1, 2): 7, (0, 0): 1}


def test_maps_between_levels_follow_the_hierarchy() -> None:
    hierarchy = build_from_rows([("a", "x", "*"), ("b", "x", "*"), ("c", "y", "*")])
    (lookup,) = map_levels([hierarchy], [1], [2])
    assert {hierarchy.labels[2][code] for code in lookup} == {"*"}
    (lookup,) = map_levels([hierarchy], [0], [1])
    assert [hierarchy.labels[1][code] for code in lookup] == ["x", "x", "y", None, "*"]


def test_no_map_leads_to_a_finer_level() -> None:
    """It would put all rows of a group on one of its values."""
    hierarchy = build_from_rows([("a", "x", "*"), ("b", "x", "*"), ("c", "y", "*")])
    (lookup,) = map_levels([hierarchy], [1], [1])
    assert lookup.tolist() == list(range(len(hierarchy.labels[1])))
    with pytest.raises(ValueError, match="level 1 have no groups of level 0"):
        map_levels([hierarchy, hierarchy], [0, 1], [1, 0])
