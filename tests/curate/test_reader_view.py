"""What readers will see: from the spec and fictional people alone, and of what was published."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from incrowd.curate.reader_view import ReaderColumn, ReaderView, foresee_release, view_release
from incrowd.engine.source import open_table
from incrowd.errors import IncrowdError
from incrowd.publication import publish
from incrowd.spec.file import SpecFile, parse_spec

COLUMNS = """
table: nowhere.csv
columns:
  name: {role: identifier}
  sex: {role: quasi, hierarchy: {flat: {values: [f, m]}}}
  age: {role: quasi, hierarchy: {intervals: {from: 0, to: 99, widths: [5, 10, 50]}},
        confirm: [hierarchy], written: {decimal: ","}}
  town: {role: sensitive, hierarchy: {groups: {North: [a, b], South: [c, d]}}}
release: {method: METHOD}
"""


def make_spec(release: str) -> SpecFile:
    return parse_spec(COLUMNS.replace("method: METHOD", release))


SAFE = "method: safe, epsilon: 1, delta: 1.0e-6"


def test_a_dry_run_reads_no_table() -> None:
    view = foresee_release(make_spec(SAFE), people=50_000)  # 'nowhere.csv' is not there
    assert [column.name for column in view.columns] == ["sex", "age", "town"]
    assert view.left_out == ("name",)
    assert view.people == 50_000
    assert view.rows is not None
    assert view.rows > 0.9
    assert view.lost == ()  # no value of a fictional table is named


def test_too_few_people_are_not_good() -> None:
    view = foresee_release(make_spec(SAFE), people=10)  # below every threshold
    assert (view.verdict, view.rows) == ("bad", 0)
    assert view.list_columns("nothing")


def test_without_a_number_of_people_nothing_is_foreseen() -> None:
    with pytest.raises(IncrowdError, match="number of people is missing"):
        foresee_release(make_spec(SAFE))


@pytest.fixture(scope="module")
def people() -> pl.DataFrame:
    rows = range(900)
    return pl.DataFrame({
        "name": [f"person {at}" for at in rows],
        "sex": ["fm"[at % 2] for at in rows],
        "age": [at * 7 % 100 for at in rows],
        "town": ["abcd"[at * at % 4] for at in rows],
    })  # fmt: skip


def test_classes_are_tried_on_the_table_itself(people: pl.DataFrame) -> None:
    file = make_spec("method: k-anonymity, k: 5")
    view = foresee_release(file, table=open_table(people))
    release = publish(people, file.with_all_confirmed())
    assert view == view_release(file, release)  # what is foreseen is what comes
    assert view.people is None
    by_name = {column.name: column for column in view.columns}
    assert by_name["town"].state == "unchanged"
    assert by_name["age"].state == "coarse"
    assert by_name["age"].shows
    with pytest.raises(IncrowdError, match="table is missing"):
        foresee_release(file)


def test_what_was_published_says_what_is_gone(people: pl.DataFrame) -> None:
    file = parse_spec(make_spec(SAFE).text().replace("to: 99", "to: 9999"))
    release = publish(people, file.with_all_confirmed())
    view = view_release(file, release)
    assert view.rows == min(release.evaluation.share, 1)
    assert tuple(view.list_columns("nothing")) == release.evaluation.lost.nothing_shown


@pytest.mark.parametrize("method", ["synthetic", "tables"])
def test_methods_without_groups_show_every_column(method: str) -> None:
    more = ", all: 2" if method == "tables" else ""
    file = make_spec(f"method: {method}, epsilon: 1, delta: 1.0e-6{more}")
    many, few = (foresee_release(file, people=size) for size in (1_000_000, 30))
    assert many.list_columns("unchanged") == ["sex", "age", "town"]
    assert (many.verdict, few.verdict) == ("good", "doubtful")
    assert many.error != ""


def test_only_what_shows_all_columns_and_most_rows_is_good() -> None:
    column = ReaderColumn("a", "unchanged", "unchanged")
    silent = ReaderColumn("b", "nothing", "suppressed")
    good = ReaderView((column, column, column), (), 0.95)
    assert good.verdict == "good"
    assert replace(good, rows=0.89).verdict == "doubtful"
    assert replace(good, rows=0.49).verdict == "bad"
    assert replace(good, lost=("c = 1",)).verdict == "doubtful"
    assert replace(good, columns=(column, column, silent)).verdict == "doubtful"
    assert replace(good, columns=(column, silent)).verdict == "bad"
    assert "2 of 3 columns" in replace(good, columns=(column, column, silent)).headline


def test_noise_as_large_as_the_values_is_not_good() -> None:
    """Readers see how large errors are, and how often a category is another one."""
    spec = """
    table: nowhere.csv
    columns:
      sex: {role: quasi, hierarchy: {flat: {values: [f, m]}}}
      income: {role: noisy}
      health: {role: noisy, values: [good, poor]}
    release: {method: k-epsilon, k: 5, epsilon: EPSILON}
    """
    rows = range(400)
    people = open_table(
        pl.DataFrame({
            "sex": ["f" if at % 2 else "m" for at in rows],
            "income": [1000 + at * 37 % 900 for at in rows],
            "health": ["good" if at % 3 else "poor" for at in rows],
        })
    )  # fmt: skip
    loud = foresee_release(parse_spec(spec.replace("EPSILON", "0.1")), table=people)
    columns = {column.name: column for column in loud.columns}
    assert columns["income"].is_vague
    assert columns["income"].shows.startswith("error ")
    assert columns["health"].shows == "own category in 51 % of rows"  # e^.05 / (1 + e^.05)
    assert loud.verdict == "doubtful"
    assert "noise as large as the values in income" in loud.headline
    quiet = foresee_release(parse_spec(spec.replace("EPSILON", "40")), table=people)
    assert quiet.verdict == "good"
    assert not any(column.is_vague for column in quiet.columns)
