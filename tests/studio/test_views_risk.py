"""The page of the risk before release, asked as a browser without JavaScript asks it."""

from __future__ import annotations

import html
import pickle
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from support.inline_studio import FormBrowser, open_studio

import incrowd as ic
from incrowd.errors import ParameterError

SPEC = """
table: people.csv
columns:
  age: {role: quasi, hierarchy: {intervals: {from: 0, to: 15, widths: [4, 8]}}}
  <b>sex</b>: {role: quasi, hierarchy: {flat: {values: [f, m]}}}
  home: {role: drop}
  stands_for: {role: weight}
release: {method: k-anonymity, k: 4}
"""


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[FormBrowser]:
    people = pl.DataFrame(
        {
            "age": [i * i % 16 if i % 2 else i * 7 % 13 for i in range(90)],
            "<b>sex</b>": ["f" if i % 3 else "m" for i in range(90)],
            "home": [i // 3 for i in range(90)],
            "stands_for": [10.0 + i % 2 for i in range(90)],
        }
    )
    people.write_csv(tmp_path / "people.csv")
    pl.concat([people.drop("home", "stands_for")] * 9).write_csv(tmp_path / "register.csv")
    (tmp_path / "people.yaml").write_text(SPEC)
    with open_studio(tmp_path, table="people.yaml") as studio:
        yield studio


def test_figures_are_those_of_the_command(browser: FormBrowser, tmp_path: Path) -> None:
    page = html.unescape(browser.get(f"{browser.room}/risk?household=home&k=3&sets=2"))
    result = ic.risk(spec=tmp_path / "people.yaml", household="home", k=3, largest_set=2)
    assert result.household is not None
    assert result.basis == "weights"
    for words in (
        f"{result.uniques} of 90", f"{result.household.expected:,.1f}",
        f"{100 * result.household.mean:.2f} %", "945 people, by survey weights", "Below 3",
        "Mean household risk", "SUDA",
    ):  # fmt: skip
        assert words in page, words
    sets = page.partition("sets-title")[2]
    assert "<td" in sets
    assert "age, <b>sex</b>" in sets.partition("</table>")[0]
    assert '<th scope="col"><b>sex' not in browser.get(f"{browser.room}/risk")  # it is escaped


def test_a_population_by_its_size_or_table(browser: FormBrowser) -> None:
    page = html.unescape(browser.get(f"{browser.room}/risk?register=register.csv"))
    assert "810 people, counted in the population table" in page  # in place of the weights
    assert "people.csv</option>" not in page
    assert "tells the household" in page
    for query, words in (
        ("population=many", "must be a whole number; got 'many'"),
        ("population=0", "at least 1; got '0'"),
        ("population=500&register=register.csv", "not both"),
        ("register=people.yaml", "no table 'people.yaml'"),
        ("register=../../etc/passwd", "no table '../../etc/passwd'"),
        ("weight=nobody", "no column 'nobody'"),
        ("household=age", "be none of the quasi-identifiers"),
    ):
        assert words in html.unescape(browser.get(f"{browser.room}/risk?{query}")), query


def test_every_combination_is_handed_out_to_the_curator(browser: FormBrowser) -> None:
    lines = browser.get(f"{browser.room}/risk/records.csv?population=9000").splitlines()
    assert lines[0].startswith("age,<b>sex</b>,rows,sample_frequency,population_frequency,risk")
    assert len(lines) > 10


def test_a_safe_spec_is_warned_and_one_without_quasi_is_told_so(browser: FormBrowser) -> None:
    browser.post(f"{browser.room}/privacy/method", method="safe")
    assert "Do not choose settings" in browser.get(f"{browser.room}/risk")
    for name in ("age", "<b>sex</b>"):
        browser.get(f"{browser.room}/data")
        browser.post(f"{browser.room}/data/role", column=name, role="drop")
    assert "no quasi-identifier" in browser.get(f"{browser.room}/risk")


def test_a_refused_parameter_comes_back_from_another_process() -> None:
    error = ParameterError("population", "be a number", "x", "Leave it out.")
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.name) == (ParameterError, str(error), "population")
