"""Rows before and after: every column that is released is among them."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from support.pages import read_outline
from support.readers import publish_reader_table as made_by

from incrowd.cli.guarantee import describe_guarantee
from incrowd.codes.values import canonicalize_value
from incrowd.evaluation.report.summary import summarize_release
from incrowd.publication import Release, publish
from incrowd.release.examples import Examples
from incrowd.spec.file import parse_spec

pytestmark = pytest.mark.usefixtures("settled_once")
TABLE = pl.DataFrame(
    {
        "sex": ["f" if at % 2 else "m" for at in range(200)],
        "city": ["here", "there"] * 100,
        "sick": ["yes" if at % 5 == 0 else "no" for at in range(200)],
        "weight": [40.5 + at % 60 for at in range(200)],
    }
)
COLUMNS = """
columns:
  sex: {role: quasi, hierarchy: {flat: {values: [f, m]}}}
  city: {role: quasi, hierarchy: {flat: {values: [here, there]}}}
  sick: {role: sensitive}
  weight: {role: noisy, bounds: [40, 120], precision: 0.1}
"""


def made(folder: Path, release: str = "method: k-epsilon, k: 5, epsilon: 0.75") -> Release:
    return publish(TABLE, parse_spec(f"{COLUMNS}\nrelease: {{{release}}}"), output=folder / "out")


def texts(frame: pl.DataFrame) -> set[tuple[str | None, ...]]:
    """The rows of a table as a reader sees them."""
    return {tuple(map(canonicalize_value, row)) for row in frame.iter_rows()}


def examples_of(release: Release) -> Examples:
    assert release.examples is not None
    return release.examples


def test_sensitive_and_noisy_columns_stand_before_and_after(tmp_path: Path) -> None:
    release = made(tmp_path)
    result = examples_of(release)
    assert result.names == ("sex", "city", "sick", "weight")
    assert result.noisy == ("weight",)
    rows, released_rows = (texts(frame) for frame in (TABLE, release.data))
    assert len(result.rows) == 6
    for row in result.rows:
        assert tuple(row.before) in rows
        assert row.after is not None
        assert tuple(row.after) in released_rows
        assert row.after[2] == row.before[2]
    assert any(row.after is not None and row.after[3] != row.before[3] for row in result.rows)
    words = read_outline((release.curator / "report.html").read_text()).text
    assert "the value is that of any row of the same class" in words


def test_values_with_noise_are_not_the_least_of_each_class(tmp_path: Path) -> None:
    release = made(tmp_path)
    column = release.data["weight"].cast(float)
    weights = [float(row.after[3] or 0) for row in examples_of(release).rows if row.after]
    assert max(weights) > column.median()


def test_of_cuts_any_rows_of_the_release_are_shown_whole(tmp_path: Path) -> None:
    release = made(tmp_path, "method: k-epsilon, k: 5, epsilon: 0.75, algorithm: mondrian")
    result = examples_of(release)
    afters = [tuple(row.after) for row in result.rows if row.after]
    assert afters
    assert {*afters} <= texts(release.data)


@pytest.mark.parametrize("way", ["ola", "starred", "duplicate", "k-epsilon", "counts", "mondrian"])
def test_every_column_of_the_file_is_among_the_examples(tmp_path: Path, way: str) -> None:
    release = made_by(tmp_path / "out", way, by=publish)
    result = examples_of(release)
    assert {*result.names} == {*release.data.columns}
    for row in result.rows:
        assert len(row.before) == len(result.names)
        assert row.after is None or len(row.after) == len(result.names)


def test_of_a_class_that_is_not_shown_nothing_is_shown(tmp_path: Path) -> None:
    table = pl.DataFrame({"x": ["a"] * 50 + ["b"], "s": ["one"] * 50 + ["two"]})
    spec = parse_spec(
        "columns: {x: {role: quasi, hierarchy: {flat: {values: [a, b]}}}, s: {role: sensitive}}\n"
        "release: {method: k-anonymity, k: 5, levels: {x: 0}}"
    )
    result = examples_of(publish(table, spec, output=tmp_path / "out"))
    assert [(row.before, row.after) for row in result.rows] == [
        (["a", "one"], ["a", "one"]), (["b", "two"], None),
    ]  # fmt: skip


def test_the_card_of_a_release_with_noise_names_epsilon_and_delta(tmp_path: Path) -> None:
    release = made(tmp_path)
    words = " ".join(summarize_release(release.certificate, release.evaluation).guarantee.sentences)
    assert "ε = 0.75" in words
    assert "weight" in words
    assert "δ" not in words
    assert "ε = 0.75" in describe_guarantee(release.certificate)
    assert "ε = 0.75" in read_outline((release.curator / "report.html").read_text()).text
    release = made(
        tmp_path / "normal", "method: k-epsilon, k: 5, epsilon: 2, noise: gaussian, delta: 1.0e-5"
    )
    words = " ".join(summarize_release(release.certificate, release.evaluation).guarantee.sentences)
    assert "ε = 2 and δ = 1e-05" in words
