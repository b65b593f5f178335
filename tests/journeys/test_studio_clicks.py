"""By clicks and keys: a panel on a phone, tables of counts, 171 columns, a stopped studio."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from support.questionnaires import make_questionnaires
from support.studio import RunningStudio
from support.web import find_violations, open_page, open_room, settle_page

from incrowd.release.verify import read_certificate, verify
from incrowd.spec.file import read_spec_file
from incrowd.spec.model import PersonId

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

PHONE = {"width": 390, "height": 844}


def open_table(page: Page, name: str) -> str:
    """Open a table of the folder; the address of its work."""
    page.fill("#place", name)
    page.press("#place", "Enter")
    page.wait_for_url("**/person")
    settle_page(page)
    return page.url.rpartition("/")[0]


def tab_to(page: Page, selector: str) -> None:
    """Reach something by the Tab key alone; it can be seen that it is focused."""
    for _ in range(150):
        page.keyboard.press("Tab")
        if page.evaluate("s => document.activeElement.matches(s)", selector):
            style = "getComputedStyle(document.activeElement).outlineStyle"
            assert page.evaluate(style) != "none", selector
            return
    raise AssertionError(f"no key leads to {selector}")


def confirm_cards(page: Page) -> None:
    """Answer every card of the queue by its key."""
    while page.locator("#yes").count():
        card_text = page.inner_text("#queue")
        page.keyboard.press("y")
        page.wait_for_function(
            "text => document.getElementById('queue').innerText != text", arg=card_text
        )
        settle_page(page)


def test_a_panel_by_keys_alone_on_a_phone(studio: RunningStudio, chromium: Browser) -> None:
    """Semicolons, decimal commas and three visits of each patient: the unit is the patient."""
    rng = np.random.default_rng(1)
    lines = ["Patient;Besuch;Geschlecht;Gruppe;Dosis"]
    for patient in range(700):
        fixed = f"{'mw'[patient % 2]};{'AB'[rng.integers(2)]}"
        doses = rng.integers(1, 5, 3)
        lines += [f"P{patient:04};{at + 1};{fixed};{doses[at]},5" for at in range(3)]
    (studio.folder / "Besuche.csv").write_text("\n".join(lines), encoding="cp1252")
    spec = studio.folder / "Besuche.yaml"
    with open_page(chromium, studio, viewport=PHONE, color_scheme="dark") as page:
        open_table(page, "Besuche.csv")
        assert "contradicts the counts" in page.inner_text("#unit-form")  # every row a person
        tab_to(page, "#confirm-unit")
        page.keyboard.press("Enter")
        page.wait_for_url("**/data")
        settle_page(page)
        unit = read_spec_file(spec).spec.unit
        assert isinstance(unit, PersonId)
        assert unit.id == "Patient"
        tab_to(page, "nav.steps a[href$='/confirm']")
        page.keyboard.press("Enter")
        page.wait_for_url("**/confirm")
        settle_page(page)
        assert find_violations(page) == []
        confirm_cards(page)
        assert read_spec_file(spec).spec.unconfirmed_entries == {}
        tab_to(page, "nav.steps a[href$='/privacy']")
        page.keyboard.press("Enter")
        page.wait_for_url("**/privacy")
        settle_page(page)
        tab_to(page, "#epsilon")
        page.keyboard.press("Control+A")
        page.keyboard.type("1,5")
        page.keyboard.press("Tab")
        page.wait_for_selector("#undo-button:has-text('Undo: ε')")
        page.wait_for_selector("#statement:has-text('ε = 1.5 and')")
        settle_page(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        assert find_violations(page) == []
        tab_to(page, "nav.steps a[href$='/publish']")
        page.keyboard.press("Enter")
        page.wait_for_url("**/publish")
        settle_page(page)
        tab_to(page, "#publish")
        page.keyboard.press("Enter")
        page.wait_for_selector("#download")
        folder = studio.folder / "Besuche-release"
        assert verify(folder) == []
        tab_to(page, "#release")
        page.keyboard.press("Enter")
        page.wait_for_selector("#sign")
        tab_to(page, "#sign")
        page.keyboard.press("Enter")
        page.wait_for_selector("#signed")
        assert find_violations(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    key = studio.folder / "signing-key.pub"
    assert verify(folder, key=str(key)) == []
    assert read_certificate(folder).guarantee.epsilon == 1.5


def test_tables_by_clicks_go_on_without_the_browser(
    studio: RunningStudio, chromium: Browser
) -> None:
    rng = np.random.default_rng(2)
    people = {
        "town": rng.choice(["north", "south", "west"], 900),
        "smoker": rng.choice(["no", "yes"], 900),
        "weekday": rng.choice(["mon", "tue", "wed", "thu", "fri"], 900),
    }
    pl.DataFrame(people).write_csv(studio.folder / "counts.csv")
    with open_page(chromium, studio) as page:
        open_table(page, "counts.csv")
        blocked = page.get_attribute("nav.steps a.is-blocked[href$='/publish']", "title")
        assert blocked == "confirm the entries first"
        page.click("#confirm-unit")
        page.wait_for_url("**/data")
        settle_page(page)
        open_room(page, "confirm")
        confirm_cards(page)
        open_room(page, "privacy")
        page.check("input[name=method][value=tables]")
        page.wait_for_selector("#undo-button:has-text('Undo: method')")
        settle_page(page)
        for column in (0, 1):
            page.check(f"#table-column-{column}")
        page.click("#do-add")
        page.wait_for_selector("table.requests th[scope=row]:has-text('town × smoker')")
        page.wait_for_selector("table.requests td:has-text('±')")
        settle_page(page)
        assert page.locator("table.requests tbody tr").count() == 1
        assert find_violations(page) == []
        open_room(page, "publish")
        page.fill("#name", "counts-by-clicks")
        page.click("#publish")
        page.wait_for_selector("#job")
    with open_page(chromium, studio) as page:  # whoever comes back finds it, done or in progress
        page.click("a[href$='of=counts-by-clicks']")
        page.wait_for_selector("#verify")
        assert find_violations(page) == []
        page.click("#verify")
        page.wait_for_selector(".verdict.fine")
        page.click("#back")
        page.wait_for_url("**/release?of=counts-by-clicks")
    assert verify(studio.folder / "counts-by-clicks") == []


def test_synthetic_rows_of_171_columns_are_planned(
    studio: RunningStudio, chromium: Browser
) -> None:
    """Every room shows its frame at once, and fills in what has to be computed."""
    make_questionnaires(240).write_csv(studio.folder / "answers.csv")
    with open_page(chromium, studio) as page:
        work = open_table(page, "answers.csv")
        page.goto(f"{work}/columns")
        settle_page(page)
        page.fill("#find", "postcode")  # its domain is open, which no model can have
        page.wait_for_selector("#listed tbody tr:first-child th:has-text('postcode')")
        page.check("#all")
        page.select_option("#all-role", "drop")
        page.click("#do-role")
        page.wait_for_selector("#undo-button:has-text(\"role of 'postcode'\")")
        settle_page(page)
        page.goto(f"{work}/privacy")
        page.check("input[name=method][value=synthetic]")
        page.wait_for_selector("#undo-button:has-text('Undo: method')")
        page.fill("#people", "5000")
        page.press("#people", "Enter")
        page.wait_for_selector("#readers .readers-head:has-text('all 169 columns')")
        page.wait_for_selector("#epsilon-picture .epsilon-grid")
        page.check("#purpose-model", force=True)
        page.wait_for_selector("#purpose .advice:has-text('Synthetic rows')")
        settle_page(page)
        assert "Published rows are synthetic" in page.inner_text("#statement")
        assert find_violations(page) == []
        for name in ("person", "data", "hierarchies", "confirm", "explore", "publish"):
            open_room(page, name)


def test_a_stopped_studio_says_so(chromium: Browser, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    rows = "".join(f"{20 + at % 40},{'ab'[at % 2]}\n" for at in range(100))
    (tmp_path / "home/few.csv").write_text(f"age,town\n{rows}")
    running = RunningStudio(tmp_path / "home", tmp_path / "state")
    context = chromium.new_context()
    try:
        context.set_default_timeout(60_000)
        page = context.new_page()
        page.goto(running.wait_for_link())
        work = open_table(page, "few.csv")
        page.goto(f"{work}/data")
        settle_page(page)
        running.stop()
        page.select_option("#role-0", "drop")
        page.wait_for_selector("#problem:has-text('The studio does not answer: it was stopped')")
    finally:
        context.close()
        running.process.kill()
