"""Whether the fineness of labels follows other columns, held against linear programs and plants."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.optimize import linprog
from support.findings import list_codes

from incrowd.codes.counted_table import PublishedTable
from incrowd.codes.frequency import Frequencies, merge_tuples
from incrowd.engine.count import count_tuples
from incrowd.engine.source import open_table
from incrowd.measure.fineness import (
    FinenessExample,
    _AxisPieces,
    _bound_distance,
    _compute_distance,
    _LabelRows,
    find_examples,
    find_selection,
)
from incrowd.measure.label_evaluation import locate_tuples
from incrowd.privacy.randomness import SeededRandomness
from incrowd.publication import publish
from incrowd.spec.build import ColumnHierarchies
from incrowd.spec.file import SpecFile, parse_spec

SPEC = """
columns:
  status:
    role: quasi
    hierarchy: {groups: {present: [married, partner], absent: [single, widowed]}}
  income: {role: quasi, hierarchy: {flat: {values: [low, high]}}}
"""
COARSE = {"married": "present", "partner": "present", "single": "absent", "widowed": "absent"}


def people(rows: int = 6000, seed: int = 1) -> pl.DataFrame:
    """Of the married half earn much, of the others a fifth."""
    draw = np.random.default_rng(seed)
    status = draw.choice(list(COARSE), rows, p=[0.4, 0.1, 0.3, 0.2])
    high = draw.random(rows) < np.where(status == "married", 0.5, 0.2)
    return pl.DataFrame({"status": status, "income": np.where(high, "high", "low")})


def looked_at(original: pl.DataFrame, released: pl.DataFrame) -> list[FinenessExample]:
    columns = dict(parse_spec(SPEC).spec.columns)
    table = count_tuples(open_table(original), ColumnHierarchies(columns))
    labels = [released[name].unique().to_list() for name in columns]
    codes = [
        [texts.index(value) for value in released[name]]
        for name, texts in zip(columns, labels, strict=True)
    ]
    ones = np.ones(len(released), dtype=np.int64)
    published = PublishedTable(tuple(labels), merge_tuples(np.array(codes, dtype=np.int32).T, ones))
    axes = table.axes
    points, _, covers = locate_tuples(table, axes, published)
    examples = find_examples(
        table.names, points, table.frequencies.counts, covers, published.frequencies
    )
    points, _, covers = locate_tuples(table, axes, published)
    assert bool(examples) == bool(find_selection(table, published, points, covers))
    return examples


def shown_finely(
    table: pl.DataFrame, fine: np.ndarray[tuple[int], np.dtype[np.bool_]]
) -> pl.DataFrame:
    coarse = pl.col("status").replace_strict(COARSE)
    return table.with_columns(
        status=pl.when(pl.lit(pl.Series(fine))).then("status").otherwise(coarse)
    )


def test_fineness_that_follows_another_column_is_named() -> None:
    """Who earns little is shown as married, who earns much as present: all married earn little."""
    table = people()
    (result,) = looked_at(table, shown_finely(table, (table["income"] == "low").to_numpy()))
    assert (result.column, result.other, result.value) == ("status", "income", "low")
    assert (result.label, result.coarse) == ("married", "present")
    assert result.released == 1
    married = table.filter(pl.col("status") == "married")
    assert result.original == pytest.approx((married["income"] == "low").mean())
    assert result.rows == int((married["income"] == "low").sum())
    assert result.distance == pytest.approx(1 - result.original)
    assert str(result).startswith(
        f"100 % of the {result.rows:,} rows published as 'married' have 'low'"
    )


def test_fineness_by_chance_is_not(tmp_path: Path) -> None:
    """Two hundred tables in which a coin decides; a wrong allowance would name some."""
    for seed in range(200):
        rows = (60, 300, 1500)[seed % 3]
        table = people(rows, seed)
        coin = np.random.default_rng(seed + 1000).random(rows) < 0.3
        assert looked_at(table, shown_finely(table, coin)) == []


def test_one_level_for_a_column_is_none_of_it() -> None:
    """Nothing stands beside something coarser, whoever is left out."""
    table = people()
    assert looked_at(table, table.filter(pl.col("income") == "low")) == []


def test_half_of_it_is_found_too_and_the_worst_comes_first() -> None:
    table = people()
    draw = np.random.default_rng(5)
    chance = np.where(table["income"] == "low", 0.9, 0.4)
    (result,) = looked_at(table, shown_finely(table, draw.random(len(table)) < chance))
    assert result.label == "married"
    assert 0.6 < result.released < 0.8
    assert result.original == pytest.approx(0.5, abs=0.03)


def test_labels_that_are_coarse_in_the_other_column_are_read_to_the_best(tmp_path: Path) -> None:
    """Where income is shown as * it may be anything, and nothing is blamed on it."""
    table = people()
    low = (table["income"] == "low").to_numpy()
    hidden = shown_finely(table, low).with_columns(income=pl.lit("*"))
    assert looked_at(table, hidden) == []


def by_program(low: list[int], high: list[int], shares: list[float], truth: list[float]) -> float:
    """The smallest total variation, as a linear program: 1 less what can be matched."""
    pairs = [(a, b) for a in range(len(low)) for b in range(len(truth)) if low[a] <= b <= high[a]]
    rows = np.zeros((len(low) + len(truth), len(pairs)))
    for at, (a, b) in enumerate(pairs):
        rows[a, at] = rows[len(low) + b, at] = 1
    result = linprog(-np.ones(len(pairs)), A_ub=rows, b_ub=[*shares, *truth], method="highs")
    return float(1 + result.fun)


def test_the_distance_is_the_smallest_of_all_readings() -> None:
    draw = np.random.default_rng(7)
    for _ in range(150):
        labels, places = int(draw.integers(1, 7)), int(draw.integers(2, 9))
        ends = np.sort(draw.integers(0, places, (labels, 2)), axis=1)
        rows = draw.integers(1, 20, labels)
        truth = draw.dirichlet(np.full(places, 0.5))
        pieces = _AxisPieces.__new__(_AxisPieces)
        pieces.first, pieces.last = ends[:, 0], ends[:, 1]
        label_rows = _LabelRows(np.arange(labels, dtype=np.int32), rows)
        expected = by_program(
            ends[:, 0].tolist(), ends[:, 1].tolist(), (rows / rows.sum()).tolist(), truth.tolist()
        )
        assert _compute_distance(pieces, label_rows, truth) == pytest.approx(expected, abs=1e-9)
        assert _bound_distance(pieces, label_rows, truth) >= expected - 1e-9


def cut_spec(release: str) -> SpecFile:
    return parse_spec(
        "columns:\n"
        "  age: {role: quasi, hierarchy: {intervals: {from: 0, to: 63, widths: [4, 16]}}}\n"
        "  town: {role: quasi, hierarchy: {groups: {n: [a, b, c, d], s: [e, f, g, h]}}}\n"
        "  ill: {role: quasi, hierarchy: {flat: {values: [no, yes]}}}\n"
        f"release: {{{release}}}\n"
    )


def uneven(rows: int = 4000) -> pl.DataFrame:
    draw = np.random.default_rng(3)
    ill = draw.random(rows) < 0.3
    age = np.where(ill, draw.integers(0, 64, rows), draw.integers(0, 8, rows))
    return pl.DataFrame(
        {
            "age": age,
            "town": draw.choice(list("abcdefgh"), rows),
            "ill": np.where(ill, "yes", "no"),
        }
    )


def test_every_release_by_cuts_carries_the_warning(tmp_path: Path) -> None:
    budget = "epsilon: 2, delta: 1.0e-5"
    cut = publish(
        uneven(), cut_spec(f"{budget}, scheme: mondrian"), output=tmp_path / "cut",
        bits=SeededRandomness(1),
    )  # fmt: skip
    assert "LABELS_CUT_LOCALLY" in list_codes(cut.findings)
    page = (tmp_path / "cut.curator" / "report.html").read_text()
    assert "LABELS_CUT_LOCALLY" in page
    certificate = (tmp_path / "cut" / "certificate.json").read_text()
    assert "Labels of different levels may occur side by side in:" in certificate
    assert "total variation" not in certificate  # what was measured is for the curator alone
    for scheme in ("search", "auto"):
        release = publish(
            uneven(), cut_spec(f"{budget}, scheme: {scheme}"), output=tmp_path / scheme,
            bits=SeededRandomness(1),
        )  # fmt: skip
        assert "LABELS_CUT_LOCALLY" not in list_codes(release.findings)
    sliced = publish(
        uneven(), cut_spec(f"{budget}, scheme: mondrian, slices: 2"), output=tmp_path / "slices",
        bits=SeededRandomness(1),
    )  # fmt: skip
    assert list_codes(sliced.findings).count("LABELS_CUT_LOCALLY") == 1
    assert "LABELS_CUT_LOCALLY" in (tmp_path / "slices.curator" / "report.html").read_text()


def test_local_recoding_of_classes_is_looked_at_too(tmp_path: Path) -> None:
    release = publish(
        uneven(), cut_spec("method: k-anonymity, k: 20, algorithm: mondrian"),
        output=tmp_path / "out",
    )  # fmt: skip
    (result,) = (
        finding for finding in release.findings if finding.code == "FINENESS_DEPENDS_ON_COLUMNS"
    )
    assert "'age': " in result.message
    levels = publish(uneven(), cut_spec("method: k-anonymity, k: 20"), output=tmp_path / "ola")
    assert "FINENESS_DEPENDS_ON_COLUMNS" not in list_codes(levels.findings)
    empty = Frequencies(np.zeros((0, 2), np.int32), np.zeros(0, np.int64))
    table = count_tuples(open_table(people()), ColumnHierarchies(parse_spec(SPEC).spec.columns))
    axes = table.axes
    nothing = PublishedTable(((), ()), empty)
    points, _, covers = locate_tuples(table, axes, nothing)
    assert find_selection(table, nothing, points, covers) == ()


def test_a_single_column_is_compared_with_none() -> None:
    axis = count_tuples(
        open_table(people().select("status")),
        ColumnHierarchies({"status": parse_spec(SPEC).spec.columns["status"]}),
    )
    codes = np.array([[0], [1]], dtype=np.int32)
    published = PublishedTable(
        (("married", "present"),), Frequencies(codes, np.array([60, 40], dtype=np.int64))
    )
    points, _, covers = locate_tuples(axis, axis.axes, published)
    assert find_selection(axis, published, points, covers) == ()
