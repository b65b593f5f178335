"""People by sets of tuples: whatever is merged, each person counts once per tuple, or so often."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.anonymize.person_rollups import PeopleRollups
from incrowd.codes.frequency import Frequencies
from incrowd.codes.hierarchy import build_from_rows
from incrowd.codes.person_sets import PeopleTable, group_by_person, merge_codes

TREE = build_from_rows([("a", "g", "*"), ("b", "g", "*"), ("c", "h", "*"), ("d", "h", "*")])
FLAT = build_from_rows([("x",), ("y",), ("z",)])
Rows = list[tuple[int, tuple[int, int]]]

ROWS = st.lists(
    st.tuples(st.integers(0, 6), st.tuples(st.integers(0, 3), st.integers(0, 2))),
    min_size=1,
    max_size=80,
)


def make_table(rows: Rows, per_group: int = 1) -> PeopleTable:
    codes, places = merge_codes(np.array([row for _, row in rows], dtype=np.int32))
    members = np.array([person for person, _ in rows], dtype=np.int64)
    sets = group_by_person(members, places, len(codes), per_group=per_group)
    frequencies = Frequencies(codes, sets.counts)
    return PeopleTable(("t", "f"), (TREE, FLAT), (0, 0), frequencies, sets)


def count_people(
    rows: Rows, levels: tuple[int, int], per_group: int = 1
) -> dict[tuple[int, ...], int]:
    people: dict[tuple[int, ...], Counter[int]] = defaultdict(Counter)
    for person, row in rows:
        cell = tuple(
            int(tree.groups[level][code])
            for tree, level, code in zip((TREE, FLAT), levels, row, strict=True)
        )
        people[cell][person] += 1
    return {
        cell: sum(min(number, per_group) for number in members.values())
        for cell, members in people.items()
    }


def list_counts(frequencies: Frequencies) -> dict[tuple[int, ...], int]:
    pairs = zip(frequencies.codes.tolist(), frequencies.counts.tolist(), strict=True)
    counts = {tuple(code): count for code, count in pairs}
    assert list(counts) == sorted(counts)
    return counts


@settings(max_examples=80)
@given(rows=ROWS, per_group=st.integers(1, 4))
def test_people_count_as_often_as_they_may_at_every_level_and_in_every_part(
    rows: Rows, per_group: int
) -> None:
    table = make_table(rows, per_group)
    assert table.people == len({person for person, _ in rows})
    rollups = PeopleRollups(table.hierarchies, table.frequencies.codes, table.sets)
    for first in range(3):
        true = count_people(rows, (first, 0), per_group)
        rolled = table.roll_up((first, 0))
        assert list_counts(rolled.frequencies) == true
        keys, people, entries = rollups.count_cells_with_rows((first, 0))
        codes = rollups.decode_keys((first, 0), keys)
        assert list_counts(Frequencies(codes, people)) == true
        assert (entries >= people).all()
        staged = rollups.roll_up_to((first, 0))
        keys, people, entries = staged.count_cells_with_rows((2, 0))
        top = Frequencies(staged.decode_keys((2, 0), keys), people)
        assert list_counts(top) == count_people(rows, (2, 0), per_group)
        assert int(entries.sum()) == sum(count_people(rows, (0, 0), per_group).values())
        back = rolled.represent_by_values().roll_up((first, 0))
        assert list_counts(back.frequencies) == true
    alone = table.select_columns(["f"])
    by_cell = count_people(rows, (2, 0), per_group)
    by_second = {cell[1:]: number for cell, number in by_cell.items()}
    assert list_counts(alone.frequencies) == by_second


@settings(max_examples=60)
@given(
    rows=ROWS,
    more=st.lists(st.integers(0, 11), min_size=1, max_size=6),
    per_group=st.integers(1, 4),
)
def test_a_person_moves_cells_by_no_more_than_the_rows_and_each_by_as_many_as_count(
    rows: Rows, more: list[int], per_group: int
) -> None:
    person = [(99, (code % 4, code % 3)) for code in more]
    before, after = make_table(rows, per_group), make_table([*rows, *person], per_group)
    for first in range(3):
        old = list_counts(before.roll_up((first, 0)).frequencies)
        new = list_counts(after.roll_up((first, 0)).frequencies)
        moved = [new[cell] - old.get(cell, 0) for cell in new]
        assert set(moved) <= set(range(per_group + 1))
        assert 1 <= sum(moved) <= len(more)


def test_many_tuples_of_one_person_are_sorted_and_wide_sets_stay_apart() -> None:
    rows: Rows = [(person, (code % 4, code % 3)) for person in range(3) for code in range(12)]
    rows += [(3, (0, 0))]
    for first, per_group in itertools.product(range(3), (1, 2, 3, 7)):
        table = make_table(rows, per_group)
        counts = list_counts(table.roll_up((first, 0)).frequencies)
        assert counts == count_people(rows, (first, 0), per_group)
    wide = group_by_person(
        np.repeat(np.arange(2), 9), np.tile(np.arange(9) * 100_000, 2), 1_000_000
    )
    assert wide.people == 2
    keys = np.zeros(1_000_000, dtype=np.int64)
    assert int(wide.count_once(keys).sum()) == 2
