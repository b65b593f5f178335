"""Groups by hand: rows that nest before nest after, and say what was meant."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.codes.hierarchy import build_from_rows
from incrowd.errors import IncrowdError
from incrowd.spec.arx import ArxRows
from incrowd.studio import group_edits

ROWS: ArxRows = [
    ("Oslo", "Norway", "Europe", "*"),
    ("Bonn", "Germany", "Europe", "*"),
    ("Ulm", "Germany", "Europe", "*"),
    ("Lima", "Peru", "America", "*"),
]


def test_values_move_to_a_group_that_is_there_and_belong_where_it_does() -> None:
    got = group_edits.move_to_group(ROWS, 1, {"Oslo", "Ulm"}, "Peru")
    assert got[0] == ("Oslo", "Peru", "America", "*")
    assert got[2] == ("Ulm", "Peru", "America", "*")
    assert got[1] == ROWS[1]


def test_a_new_group_belongs_to_what_its_first_member_did() -> None:
    got = group_edits.move_to_group(ROWS, 1, {"Lima", "Ulm"}, " Mine ")
    assert got[2] == ("Ulm", "Mine", "Europe", "*")
    assert got[3] == ("Lima", "Mine", "Europe", "*")
    build_from_rows(got)


def test_groups_of_groups() -> None:
    more = group_edits.add_level(ROWS)
    assert more[0] == ("Oslo", "Norway", "Europe", "Europe", "*")
    both = group_edits.move_to_group(more, 3, {"Europe", "America"}, "World")
    assert {row[3] for row in both} == {"World"}
    assert group_edits.remove_level(more, 3) == ROWS
    assert group_edits.list_levels(more) == range(1, 4)


def test_what_is_taken_out_is_a_group_of_its_own() -> None:
    got = group_edits.remove_from_groups(ROWS, 1, {"Ulm"})
    assert got[2] == ("Ulm", "Ulm", "Europe", "*")
    last = group_edits.list_groups(got, 1)[-1]
    assert last.is_single
    assert last.name == "Ulm"
    assert group_edits.rename_group(ROWS, 1, "Germany", "Peru")[1] == (
        "Bonn",
        "Peru",
        "America",
        "*",
    )


def test_values_come_and_go() -> None:
    got = group_edits.add_values(ROWS, ["Rome", "Ulm", "Rome", " "], "Germany")
    assert got[4:] == [("Rome", "Germany", "Europe", "*")]
    assert group_edits.add_values(ROWS, ["Rome"], "")[4] == ("Rome", "Rome", "Rome", "*")
    assert group_edits.remove_values(got, {"Rome"}) == ROWS
    wrong: list[Callable[[], ArxRows]] = [
        lambda: group_edits.add_values(ROWS, ["Ulm"], ""),
        lambda: group_edits.remove_values(ROWS, {row[0] for row in ROWS}),
        lambda: group_edits.move_to_group(ROWS, 1, set(), "x"),
        lambda: group_edits.move_to_group(ROWS, 1, {"Ulm"}, " "),
        lambda: group_edits.move_to_group(ROWS, 1, {"Paris"}, "x"),
        lambda: group_edits.remove_from_groups(ROWS, 1, set()),
    ]
    for item in wrong:
        with pytest.raises(IncrowdError):
            item()


def test_a_page_lists_some_members_and_says_how_many_there_are() -> None:
    rows: ArxRows = [(f"v{i}", f"g{i % 2}", "*") for i in range(1000)]
    listed_groups = group_edits.list_groups(rows, 1)
    assert sum(len(item.members) for item in listed_groups) == group_edits.MOST_SHOWN
    assert sum(len(item.members) + item.hidden for item in listed_groups) == 1000
    groups = group_edits.list_groups(rows, 1, "V99")
    assert sum(len(item.members) for item in groups) == 11
    assert group_edits.add_root([("a", "x"), ("b", "y")]) == [("a", "x", "*"), ("b", "y", "*")]


@given(st.lists(st.tuples(st.integers(1, 2), st.sets(st.integers(0, 3)), st.integers(0, 5))))
def test_levels_nest_whatever_is_put_where(clicks: list[tuple[int, set[int], int]]) -> None:
    rows = ROWS
    for level, chosen, name in clicks:
        members = {rows[at][level - 1] for at in chosen}
        if members:
            rows = group_edits.move_to_group(rows, level, members, f"group {name}")
        build_from_rows(rows)
    assert [row[0] for row in rows] == [row[0] for row in ROWS]
