"""Titles above a header are told from headers; in doubt there is none."""

from __future__ import annotations

import pytest

from incrowd.engine.local.text import Cells, TitledHeader, find_titled_header

N = None


@pytest.mark.parametrize(
    ("rows", "header", "titles"),
    [
        ([["Patients", N, N], ["id", "age", "zip"], ["1", "39", "x"]], 2, (1,)),
        ([["Patients", N], ["id", "age"], ["1", "39"]], 2, (1,)),
        ([[N, "Patients", N], [N, N, N], ["id", "age", "zip"], ["1", "2", "3"]], 3, (1,)),
        ([["A"], ["by", "us"], ["a", "b", "c", "d"], ["1", "2", "3", "4"]], 3, (1, 2)),
        ([["A"], ["b"], ["c"], ["x", "y", "z"], ["1", "2", "3"]], 4, (1, 2, 3)),
        ([["T", N, N], [N, "a", "b"], ["r1", "x", "y"], ["r2", "x", "y"]], 2, (1,)),
        # Rows with few values below the header are no titles.
        ([["T", N, N], ["a", "b", "c"], ["1", N, N], ["1", "2", "3"], ["1", "2", "4"]], 2, (1,)),
    ],
)  # fmt: skip
def test_a_title_is_noticed(rows: list[Cells], header: int, titles: tuple[int, ...]) -> None:
    assert find_titled_header(dict(enumerate(rows, start=1))) == TitledHeader(header, titles)


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [[N, N]],
        [["a"], ["1"], ["2"]],
        [["id", "age"], ["1", "39"]],
        [["id", "age", "zip"], ["1", N, N], ["2", N, N]],
        # Row numbers without a name, by number or by text.
        [[N, "age"], ["1", "39"], ["2", "40"]],
        [[N, "age"], ["r1", "old"], ["r2", "young"]],
        # What follows is no header: numbers, a day, the same twice, nothing below.
        [["id", N, N], ["1", "39", "x"], ["2", "39", "x"]],
        [["id", N, N], ["a", "2020-02-29", "x"], ["b", "2020-02-29", "x"]],
        [["id", N, N], ["a", "a", "x"], ["b", "b", "x"]],
        [["Patients", N, N], ["id", "age", "zip"]],
        # One long row, as of remarks, tells nothing about the others.
        [["id", "age"], *[["1", "39"]] * 9, ["x", "y", "see", "there", "too"]],
    ],
)
def test_in_doubt_there_is_no_title(rows: list[Cells]) -> None:
    assert find_titled_header(dict(enumerate(rows, start=1))) is None


def test_a_note_names_the_rows() -> None:
    assert TitledHeader(3, (1,)).note == (
        "Row 1 looks like a title; row 3 was read as the header. --header names another."
    )
    assert TitledHeader(5, (1, 2, 4)).note.startswith(
        "Rows 1 to 4 look like a title; row 5 was read"
    )
