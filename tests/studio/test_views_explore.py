"""The room of exploration, asked as a browser without JavaScript asks it."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from support.inline_studio import FormBrowser, open_studio

from incrowd.curate import explore as module
from incrowd.curate.explore import Exploration, explore_schemes
from incrowd.engine.source import open_spec_table
from incrowd.spec.file import read_spec_file

pytestmark = pytest.mark.usefixtures("settled_once")

SPEC = """
table: people.csv
columns:
  name: {role: identifier}
  age: {role: quasi, hierarchy: {intervals: {from: 0, to: 15, widths: [4, 8]}}}
  <b>sex</b>: {role: quasi, hierarchy: {flat: {values: [f, m]}}}
  height: {role: drop}
release: {method: k-anonymity, k: 4}
"""


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[FormBrowser]:
    people = pl.DataFrame(
        {
            "name": [f"person {i}" for i in range(90)],
            "age": [i * i % 16 if i % 2 else i * 7 % 13 for i in range(90)],
            "<b>sex</b>": ["f" if i % 3 else "m" for i in range(90)],
            "height": [150.5 + i % 9 for i in range(90)],
        }
    )
    people.write_csv(tmp_path / "people.csv")
    (tmp_path / "people.yaml").write_text(SPEC)
    with open_studio(tmp_path, table="people.yaml") as studio:
        yield studio


def explored(tmp_path: Path) -> Exploration:
    file = read_spec_file(tmp_path / "people.yaml")
    return explore_schemes(file, open_spec_table(file))


def levels(tmp_path: Path) -> object:
    release = read_spec_file(tmp_path / "people.yaml").spec.release
    return release.levels if release is not None else None


def test_one_row_of_each_person_is_judged_and_that_is_said(
    browser: FormBrowser, tmp_path: Path
) -> None:
    words = "uses one row per person"
    assert words not in browser.get(f"{browser.room}/explore")
    pl.DataFrame(
        {"name": [f"person {i // 2}" for i in range(90)], "age": [i % 16 for i in range(90)],
         "<b>sex</b>": ["f" if i % 3 else "m" for i in range(90)], "height": [1.5] * 90}
    ).write_csv(tmp_path / "people.csv")  # fmt: skip
    (tmp_path / "people.yaml").write_text(f"unit: {{id: name}}\n{SPEC}")
    with open_studio(tmp_path, table="people.yaml") as again:
        page = again.get(f"{again.room}/explore")
        assert words in page
        assert "of 45 rows" in page


def test_every_scheme_is_a_link_to_its_figures(browser: FormBrowser, tmp_path: Path) -> None:
    page = browser.get(f"{browser.room}/explore")
    result = explored(tmp_path)
    assert result.best is not None
    links = re.findall(r'<a href="(\?scheme=[0-9.]+)" id="node-', page)
    assert len(links) == len(result.schemes) == 8
    assert "Scheme chosen by the search" in page
    assert f"<dd>{result.best.loss:.4f}</dd>" in page
    other = result.schemes[1]
    page = browser.get(f"{browser.room}/explore?scheme={'.'.join(map(str, other.levels))}")
    assert "Selected scheme" in page
    assert f"<dd>{other.loss:.4g}</dd>" in page
    assert "<b>sex</b>" not in page


def test_a_scheme_is_picked_and_let_go(browser: FormBrowser, tmp_path: Path) -> None:
    other = explored(tmp_path).schemes[1]
    name = ".".join(map(str, other.levels))
    page = browser.post(f"{browser.room}/explore/take", levels=name)
    assert levels(tmp_path) == dict(zip(("age", "<b>sex</b>"), other.levels, strict=True))
    assert "Scheme of the release" in page
    assert len(re.findall(r'id="node-', page)) == 8
    page = browser.post(f"{browser.room}/explore/again")
    assert levels(tmp_path) == {}
    assert "Use the search again" not in page


@pytest.mark.parametrize("name", ["", "1", "1.2.3", "x.y", "9.9"])
def test_what_is_no_scheme_is_refused(browser: FormBrowser, tmp_path: Path, name: str) -> None:
    browser.get(f"{browser.room}/explore?scheme={name}&level0=x&level1=77")
    if name != "9.9":  # levels that a ladder does not have are said when it is searched
        browser.post(f"{browser.room}/explore/take", 422, levels=name)
        assert levels(tmp_path) == {}


def test_filters_leave_the_schemes_with_a_level(browser: FormBrowser) -> None:
    page = browser.get(f"{browser.room}/explore?level0=2")
    assert len(re.findall(r'id="node-2\.', page)) == 2
    assert len(re.findall(r'id="node-', page)) == 2


def test_pairs_of_k_and_epsilon_are_shown_and_taken(browser: FormBrowser, tmp_path: Path) -> None:
    browser.post(f"{browser.room}/privacy/method", method="k-epsilon")
    page = browser.get(f"{browser.room}/explore")
    assert "needs a noisy column" in html.unescape(page)
    browser.post(f"{browser.room}/data/role", column="height", role="noisy")
    assert "Declare a `precision`" in html.unescape(browser.get(f"{browser.room}/explore"))
    browser.post(f"{browser.room}/privacy/noisy", column="height", precision="0.5")
    page = browser.get(f"{browser.room}/explore")
    assert "The spec has k = 4 and ε = 2" in page
    assert "k = 10, ε = 0.5" in page
    page = browser.get(f"{browser.room}/explore?k=10&epsilon=0.5")
    assert "Use this pair" in page
    page = browser.post(f"{browser.room}/explore/pair", k="10", epsilon="0.5")
    assert "This pair is in the spec." in page
    release = read_spec_file(tmp_path / "people.yaml").spec.release
    assert release is not None
    assert release.k == 10


def test_for_a_safe_release_nothing_is_tried_and_a_rehearsal_is_offered(
    browser: FormBrowser,
) -> None:
    browser.post(f"{browser.room}/privacy/method", method="safe")
    page = browser.get(f"{browser.room}/explore")
    assert "Why the real table is not used here" in page
    assert "rows published from" not in page
    page = browser.post(f"{browser.room}/explore/rehearse", size="3,000")
    assert "from 3,000 generated people" in page
    assert "Most frequent rows" in page
    browser.post(f"{browser.room}/explore/rehearse", 422, size="0")
    browser.post(f"{browser.room}/explore/rehearse", 422, size="9999999999")


def test_cuts_have_no_schemes(browser: FormBrowser) -> None:
    browser.post(f"{browser.room}/privacy/settings", algorithm="mondrian")
    assert "has no schemes" in html.unescape(browser.get(f"{browser.room}/explore"))


def test_of_a_large_lattice_the_schemes_that_are_asked_for_are_looked_at(
    browser: FormBrowser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        module.explore_schemes, "__kwdefaults__", {"most": 1, "progress": lambda *_: None}
    )
    wide = SPEC.replace("to: 15, widths: [4, 8]", "to: 255, widths: [2, 4, 8, 16, 32, 64, 128]")
    (tmp_path / "wide.yaml").write_text(wide)
    browser.post("/open", place="wide.yaml")
    room = browser.address.rpartition("/")[0]
    page = browser.get(f"{room}/explore")
    listed = set(re.findall(r'id="node-([0-9.]+)"', page))
    missing = {f"{age}.{sex}" for age in range(9) for sex in range(2)} - listed
    assert " of 18 schemes" in page
    age, sex = missing.pop().split(".")
    page = browser.get(f"{room}/explore?level0={age}&level1={sex}")
    assert re.findall(r'id="node-([0-9.]+)"', page) == [f"{age}.{sex}"]
    assert "All 1 schemes with these levels were evaluated" in page
    assert "any level" in page


def test_schemes_are_ranked_in_words_and_stand_side_by_side(
    browser: FormBrowser, tmp_path: Path
) -> None:
    page = browser.get(f"{browser.room}/explore")
    holding = [scheme for scheme in explored(tmp_path).schemes if scheme.holds]
    names = re.findall(r'name="beside" value="([\d.]+)"', page)
    assert names == [".".join(map(str, scheme.levels)) for scheme in holding[:12]]
    two = "&".join(f"beside={name}" for name in (names[0], names[1], names[1], "9.9"))
    beside = html.unescape(browser.get(f"{browser.room}/explore?{two}"))
    table = beside.partition('id="beside-title"')[2].partition("</table>")[0]
    assert table.count('<th scope="col">Scheme') == 2
    assert f"90, {90 - holding[0].suppressed}" in table
    assert "Side by side" not in browser.get(f"{browser.room}/explore?beside={names[0]}")


def test_limits_narrow_the_search_and_risk_is_shown_by_sets(
    browser: FormBrowser, tmp_path: Path
) -> None:
    page = browser.get(f"{browser.room}/explore")
    risk_table = html.unescape(page).partition('id="sets-title"')[2]
    assert risk_table.index("age, <b>sex</b>") < risk_table.index('<tr><th scope="row"><b>sex')
    fields: dict[str, Any] = {"low0": "1", "high0": "", "weight0": "3", "low1": "", "high1": ""}
    browser.post(f"{browser.room}/explore/limits", **fields)
    assert levels(tmp_path) == {"age": (1, 3)}
    spec = read_spec_file(tmp_path / "people.yaml").spec
    assert spec.columns["age"].weight == 3
    refused = browser.post(f"{browser.room}/explore/limits", 422, low0="2", high0="1")
    assert "finest level is above" in html.unescape(refused)


def test_costs_and_benefits_rank_the_schemes(browser: FormBrowser, tmp_path: Path) -> None:
    assert "Costs and benefits" in browser.get(f"{browser.room}/explore")
    refused = browser.post(f"{browser.room}/explore/payout", 422, benefit="9")
    assert "Missing: Your loss" in html.unescape(refused)
    amounts: dict[str, Any] = {
        "benefit": "100",
        "publisher_loss": "90",
        "attacker_gain": "90",
        "attack_cost": "4",
    }
    page = html.unescape(browser.post(f"{browser.room}/explore/payout", **amounts, attacker=""))
    result = explored(tmp_path)
    assert result.loss == "payout"
    assert "The first loses least (payout)" in page
    assert "Undo: costs and benefits" in page
    names = re.findall(r'name="beside" value="([\d.]+)"', page)
    assert result.best is not None
    assert names[0] == ".".join(map(str, result.best.levels))
    assert "in place of a measure of loss" in browser.get(f"{browser.room}/privacy")
    browser.post(f"{browser.room}/undo")
    release = read_spec_file(tmp_path / "people.yaml").spec.release
    assert getattr(release, "payout", 0) is None
    browser.post(f"{browser.room}/privacy/settings", algorithm="mondrian")
    assert "Costs and benefits" not in browser.get(f"{browser.room}/explore")


def test_rules_stand_where_a_method_has_classes(browser: FormBrowser, tmp_path: Path) -> None:
    browser.post(f"{browser.room}/data/role", column="height", role="sensitive")
    page = browser.get(f"{browser.room}/explore")
    for name in ("diversity.recursive.c", "likeness.enhanced", "disclosure.present", "aggregate"):
        assert f'name="{name}"' in page, name
    assert 'name="linked"' not in page
    form: dict[str, Any] = {
        "column": "height",
        "diversity.recursive.c": "2",
        "diversity.recursive.l": "2",
    }
    page = html.unescape(browser.post(f"{browser.room}/explore/rules", **form))
    assert "2 set" in page
    assert "Undo: ℓ-diversity of 'height'" in page
    browser.post(f"{browser.room}/privacy/settings", algorithm="suppress")
    page = browser.get(f"{browser.room}/explore")
    assert 'name="linked"' in page
    assert "does not support rules on classes" in page
    assert 'name="diversity.recursive.c"' in page  # what is set can be removed
    assert 'name="likeness.basic"' not in page
    browser.post(f"{browser.room}/explore/limits", weight0="2,5", weight1="")
    assert read_spec_file(tmp_path / "people.yaml").spec.columns["age"].weight == 2.5
    browser.post(f"{browser.room}/privacy/method", method="k-epsilon")
    page = browser.get(f"{browser.room}/explore")
    assert 'name="diversity.distinct"' in page
    assert 'id="limits"' not in page
