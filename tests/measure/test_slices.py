"""Which associations survive in slices, held against the textbook."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from support.slice_tables import (
    LEVELS,
    make_sliced_people,
    publish_slices,
    read_slice,
)

from incrowd.cli.evaluation_facts import describe_pairs
from incrowd.codes.counted_table import CountedTable, PublishedTable
from incrowd.codes.frequency import merge_tuples
from incrowd.engine.count import count_tuples
from incrowd.engine.source import open_table
from incrowd.measure.evaluation import Evaluation
from incrowd.measure.slices import compare_slices
from incrowd.publication import publish
from incrowd.spec.build import ColumnHierarchies
from incrowd.spec.file import parse_spec


@pytest.fixture(scope="module")
def people() -> pl.DataFrame:
    return make_sliced_people()


# Which associations survive.


@dataclass(frozen=True, eq=False)
class Made:
    """A slice made by hand."""

    names: str
    shown: PublishedTable
    evaluation: Evaluation


def phi(counts: Sequence[int]) -> float:
    """Cramér's V of two columns of two values, by the textbook: 00, 01, 10, 11."""
    a, b, c, d = counts
    below = (a + b) * (c + d) * (a + c) * (b + d)
    return abs(a * d - b * c) / math.sqrt(below) if below else 0.0


Cells = dict[tuple[str, ...], int]


def by_hand(table: CountedTable, names: str, cells: Cells) -> Made:
    """A slice that shows certain labels so often."""
    labels: list[str] = ["0", "1", "*"]
    codes = np.array([[labels.index(x) for x in cell] for cell in cells], dtype=np.int32)
    published = PublishedTable(
        (labels,) * len(names), merge_tuples(codes, np.array(list(cells.values())))
    )
    rows, sizes = table.frequencies.total, list(cells.values())
    evaluation = Evaluation(
        rows_original=rows, rows_released=sum(sizes), suppressed=rows - sum(sizes),
        classes=len(sizes), smallest_class=min(sizes), loss=0.1 * len(names),
    )  # fmt: skip
    return Made(names, published, evaluation)


def pairs_of(values: Sequence[int]) -> Cells:
    return dict(zip(itertools.product("01", repeat=2), values, strict=True))


@pytest.fixture(scope="module")
def four() -> CountedTable:
    """Forty rows of four columns: b follows a, c follows b less, d is on its own."""
    rows = [
        (a, b, c, d)
        for (a, b, c), n in zip(
            itertools.product((0, 1), repeat=3), (6, 3, 1, 2, 2, 1, 2, 3), strict=True
        )
        for d in (0, 1)
        for _ in range(n)
    ]
    frame = pl.DataFrame(rows, schema=list("abcd"), orient="row")
    flat = "{role: quasi, hierarchy: {flat: {values: [0, 1]}}}"
    file = parse_spec("columns: {" + ", ".join(f"{name}: {flat}" for name in "abcd") + "}")
    return count_tuples(open_table(frame), ColumnHierarchies(file.spec.columns))


def survived(four: CountedTable, parts: Sequence[Made]) -> Evaluation:
    published = [(tuple(part.names), part.shown) for part in parts]
    return compare_slices(four, published, [part.evaluation for part in parts])


def test_survival_is_what_the_textbook_says(four: CountedTable) -> None:
    counts = {"ab": (9, 1, 3, 8), "bc": (4, 4, 1, 5), "cd": (3, 3, 6, 0)}
    result = survived(four, [by_hand(four, names, pairs_of(n)) for names, n in counts.items()])
    original = {
        pair: phi([int(four.frequencies.counts[
            (four.frequencies.codes[:, "abcd".index(pair[0])] == x)
            & (four.frequencies.codes[:, "abcd".index(pair[1])] == y)
        ].sum()) for x in (0, 1) for y in (0, 1)])
        for pair in ("ab", "ac", "ad", "bc", "bd", "cd")
    }  # fmt: skip
    assert original["ab"] == pytest.approx(phi((18, 6, 6, 10)))
    assert original["ad"] == 0.0
    assert [association.first + association.second for association in result.associations] == list(
        original
    )
    for survival in result.associations:
        pair = survival.first + survival.second
        assert survival.original == pytest.approx(original[pair], abs=1e-12)
        if pair in counts:
            assert survival.released == pytest.approx(phi(counts[pair]), abs=1e-12)
            assert survival.slice == 1 + list(counts).index(pair)
        else:  # nothing is known of them, and that is said
            assert survival.released == 0.0
            assert survival.slice is None
    errors = [abs(original[pair] - phi(counts.get(pair, (0, 0, 0, 0)))) for pair in original]
    assert result.association_error == pytest.approx(sum(errors) / 6)
    assert result.rows_original == 40
    assert result.rows_released == 21 + 14 + 12
    assert result.columns == (("a", "b"), ("b", "c"), ("c", "d"))


def test_of_slices_that_share_a_pair_the_largest_shows_it(four: CountedTable) -> None:
    few, many = (5, 1, 1, 5), (8, 4, 4, 8)
    triple: Cells = {(*pair, "0"): n for pair, n in pairs_of(many).items()}
    for order in ((0, 1), (1, 0)):
        parts = [by_hand(four, "ab", pairs_of(few)), by_hand(four, "abc", triple)]
        result = survived(four, [parts[at] for at in order])
        (first,) = (
            association
            for association in result.associations
            if (association.first, association.second) == ("a", "b")
        )
        assert first.released == pytest.approx(phi(many))
        assert first.slice == 1 + order.index(1)
        assert result.loss == pytest.approx((2 * 0.2 + 3 * 0.3) / 5)  # by columns
        (third,) = (
            association
            for association in result.associations
            if (association.first, association.second) == ("a", "c")
        )
        assert (third.released, third.slice) == (0.0, None)  # c shows one value
        assert third.silent == 1 + order.index(1)


def test_a_slice_that_shows_nothing_of_a_column_keeps_none_of_its_pairs(four: CountedTable) -> None:
    """Nor does it stand before a smaller one that shows both."""
    blank: Cells = {("0", "*", "0"): 20, ("1", "*", "1"): 10}
    alone = survived(four, [by_hand(four, "abc", blank), by_hand(four, "cd", pairs_of([1] * 4))])
    result = {
        association.first + association.second: association for association in alone.associations
    }
    for pair in ("ab", "bc"):
        assert (result[pair].slice, result[pair].silent, result[pair].released) == (None, 1, 0.0)
    assert (result["ac"].slice, result["ac"].silent) == (1, None)
    assert (result["ad"].slice, result["ad"].silent) == (None, None)
    text = describe_pairs(alone)
    assert text.startswith("2 of 6 pairs published together in a table; 2 more only with")
    both = survived(
        four, [by_hand(four, "abc", blank), by_hand(four, "ab", pairs_of((5, 1, 1, 5)))]
    )
    (first,) = (
        association
        for association in both.associations
        if (association.first, association.second) == ("a", "b")
    )
    assert (first.slice, first.silent) == (2, None)
    assert first.released == pytest.approx(phi((5, 1, 1, 5)))


def test_the_report_lists_them_apart(people: pl.DataFrame, tmp_path: Path) -> None:
    more = "slices: [[a, b], [b, c, d], [e, z]], scheme: fixed, beta: 0.5, levels: "
    levels = "{a: 0, b: 0, c: 1, d: 0, e: 0, z: 2}"
    release = publish_slices(people, tmp_path / "out", more + levels, by=publish)
    assert release.evaluation.slices
    silent = [
        association
        for association in release.evaluation.associations
        if association.silent is not None
    ]
    assert [(survival.first, survival.second) for survival in silent] == [
        ("b", "c"),
        ("c", "d"),
        ("e", "z"),
    ]
    page = (tmp_path / "out.curator" / "report.html").read_text()
    assert "In one file that suppresses one of the two, so not published either: " in page
    assert "b, c (file 2)" in page
    kept_pairs = sum(
        association.slice is not None for association in release.evaluation.associations
    )
    assert (kept_pairs, len(silent), len(release.evaluation.associations)) == (2, 3, 15)
    assert "2 of 15 pairs of columns occur in one file" in page


def test_what_is_hidden_is_taken_to_be_anything(four: CountedTable) -> None:
    """Rows that show * are spread over both values, which weakens the association."""
    cells: Cells = {("0", "0"): 6, ("1", "1"): 6, ("0", "*"): 4, ("*", "1"): 2}
    result = survived(four, [by_hand(four, "ab", cells), by_hand(four, "cd", pairs_of([1] * 4))])
    (first,) = (
        association
        for association in result.associations
        if (association.first, association.second) == ("a", "b")
    )
    assert first.released == pytest.approx(phi((8, 2 + 1, 0, 6 + 1)))


def test_survival_of_a_release_is_that_of_its_files(people: pl.DataFrame, tmp_path: Path) -> None:
    """At level 0 the association of two columns is the one in the file that shows them."""
    more = f"slices: [[a, b], [b, c, d], [e, z]], {LEVELS}, scheme: fixed, format: csv, beta: 0.5"
    release = publish_slices(people, tmp_path / "out", more, by=publish)
    assert release.evaluation.slices
    tables = [read_slice(tmp_path / "out", table) for table in release.certificate.tables]
    slice_by_pair = {("a", "b"): 0, ("b", "c"): 1, ("b", "d"): 1, ("c", "d"): 1}
    for association in release.evaluation.associations:
        pair = (association.first, association.second)
        assert association.slice == (slice_by_pair[pair] + 1 if pair in slice_by_pair else None)
        assert association.silent == (
            3 if pair == ("e", "z") else None
        )  # all zip codes begin alike
        if pair not in slice_by_pair:
            assert association.released == 0.0
        else:
            assert association.released == pytest.approx(
                cramer(tables[slice_by_pair[pair]], *pair), abs=1e-9
            )
            weighted = people.select(pl.col(*pair).cast(pl.String)).group_by(*pair).len("count")
            assert association.original == pytest.approx(cramer(weighted, *pair), abs=1e-9)


def cramer(table: pl.DataFrame, first: str, second: str) -> float:
    joint = table.pivot(second, index=first, values="count", aggregate_function="sum").fill_null(0)
    counts = joint.drop(first).to_numpy().astype(float)
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / counts.sum()
    squared = ((counts - expected) ** 2 / expected).sum() / counts.sum()
    return math.sqrt(squared / (min(counts.shape) - 1))
