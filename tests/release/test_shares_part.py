"""Shares beside the rows: estimates that sum to one, and errors that hold."""

from __future__ import annotations

import csv
from fractions import Fraction

import numpy as np
import pytest

from incrowd.anonymize.declared_counts import measure_counts
from incrowd.codes.hierarchy import build_from_rows
from incrowd.privacy.randomness import SeededRandomness
from incrowd.release.formulas import unescape_formula
from incrowd.release.shares_part import (
    RowsByValue,
    ShareTable,
    estimate_shares,
    find_lost_shares,
    list_shown_rows,
    list_values,
    write_shares,
)

TREE = build_from_rows([("a", "g", "*"), ("b", "g", "*"), ("c", "h", "*")])


def make_table(counts: list[int], epsilon: float = 0.1) -> ShareTable:
    values: list[str | None] = [f"v{at}" for at in range(len(counts))]
    return ShareTable(column="x", level=0, epsilon=epsilon, values=values, counts=counts)


@pytest.mark.parametrize("counts", [[100, 0, -30], [5, 5], [-4, -9, -1], [0, 0], [1, 10_000]])
def test_shares_are_shares_whatever_was_measured(counts: list[int]) -> None:
    estimate = estimate_shares(make_table(counts), 1)
    assert estimate.shares.min() >= 0
    assert estimate.shares.sum() == pytest.approx(1)
    assert (estimate.errors > 0).all()


def test_counts_that_are_whole_already_stay() -> None:
    estimate = estimate_shares(make_table([60, 30, 10]), 1)
    assert estimate.shares.tolist() == pytest.approx([0.6, 0.3, 0.1])


@pytest.mark.parametrize("true", [[9000, 600, 400], [300] * 20, [5000, 0, 0, 0, 60]])
@pytest.mark.parametrize("rows", [1, 3])
def test_the_error_covers_the_truth_in_19_of_20(true: list[int], rows: int) -> None:
    """Over 800 draws of seeded bits; two thirds of the error would not."""
    counts, bits = np.array(true, dtype=np.int64), SeededRandomness(11)
    covered, narrower, total = 0, 0, 0
    for _ in range(800):
        noisy = measure_counts(counts, epsilon=Fraction(1, 10), rows=rows, bits=bits)
        estimate = estimate_shares(make_table(noisy.tolist()), rows)
        distance = np.abs(estimate.shares - counts / counts.sum())
        large = counts > 200  # estimates of small ones are cut at 0, and nearer
        covered += int((distance <= estimate.errors)[large].sum())
        narrower += int((distance <= estimate.errors / 1.5)[large].sum())
        total += int(large.sum())
    assert covered / total > 0.93
    if large.all():  # sets of zeros make the others nearer than is claimed
        assert narrower / total < 0.91


def test_a_value_that_the_rows_lose_is_found() -> None:
    table = make_table([9000, 600, 400]).model_copy(
        update={"shown": [RowsByValue(file="data.parquet", rows=[8990, 590, 10])]}
    )
    lost = find_lost_shares([table], 1)
    assert [(each.value, each.file) for each in lost if each.shown < each.estimate] == [
        ("v2", "data.parquet")
    ]
    close = table.model_copy(
        update={"shown": [RowsByValue(file="data.parquet", rows=[9010, 590, 400])]}
    )
    assert find_lost_shares([close], 1) == []


def test_rows_are_counted_by_the_values_of_a_coarser_level() -> None:
    codes = np.array([0, 1, 2, 3, 4], dtype=np.int32)
    counts = np.array([5, 6, 7, 8, 9], dtype=np.int64)
    assert list_values(TREE, 1) == ["g", "h", None, "*"]
    assert list_shown_rows(TREE, (0, 1), (codes, counts)) == [11, 7, 8, 9]
    assert list_shown_rows(TREE, (0, 0), (codes, counts)) == [5, 6, 7, 8, 9]
    assert list_shown_rows(TREE, (1, 0), (codes[:2], counts[:2])) is None


def test_the_file_lists_every_value() -> None:
    text = write_shares(make_table([90, -5, 15]), 1).decode()
    lines = text.splitlines()
    assert lines[0] == "value,count,share,error_95"
    assert [line.split(",")[:2] for line in lines[1:]] == [["v0", "90"], ["v1", "-5"], ["v2", "15"]]
    assert lines[2].split(",")[2] == "0.000000"


def test_values_are_escaped_as_the_rows_are() -> None:
    values = ["=a", "'=a", "-5", "b", None]
    table = ShareTable(column="x", level=0, epsilon=0.1, values=values, counts=[1, 2, 3, 4, 5])
    for is_escaped in (False, True):
        lines = list(
            csv.reader(write_shares(table, 1, is_escaped=is_escaped).decode().splitlines())
        )
        cells = [unescape_formula(line[0]) if is_escaped else line[0] for line in lines[1:]]
        assert cells == ["=a", "'=a", "-5", "b", ""]
        assert (lines[1][0], lines[2][0]) == (("'=a", "''=a") if is_escaped else ("=a", "'=a"))
