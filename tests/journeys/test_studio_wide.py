"""A table of 171 columns by clicks: roles of many at once, k-anonymity with ℓ-diversity."""

from __future__ import annotations

from typing import TYPE_CHECKING

from support.questionnaires import make_questionnaires
from support.studio import RunningStudio
from support.web import find_violations, open_page, settle_page

from incrowd.release.verify import verify
from incrowd.spec.file import read_spec_file

if TYPE_CHECKING:
    from playwright.sync_api import Browser


def test_171_columns_by_clicks(studio: RunningStudio, chromium: Browser) -> None:
    make_questionnaires(240).write_csv(studio.folder / "survey.csv")
    spec = studio.folder / "survey.yaml"
    with open_page(chromium, studio) as page:
        page.fill("#place", "survey.csv")
        page.press("#place", "Enter")
        page.wait_for_url("**/desk/**")
        work = "/".join(page.url.split("/")[:5])
        page.goto(f"{work}/columns")
        settle_page(page)
        assert find_violations(page) == []
        for text in ("answer_", "had_", "visits_", "lab_"):
            page.fill("#find", text)
            page.wait_for_selector(f"#listed tbody tr:first-child th:has-text('{text}')")
            page.check("#all")
        page.wait_for_selector("#selected:has-text('166 selected')")
        page.select_option("#all-role", "drop")
        page.click("#do-role")
        page.wait_for_selector("#undo-button:has-text('role of 166 columns')")
        settle_page(page)
        page.fill("#find", "")
        page.wait_for_selector("#listed p:has-text('171 of 171')")
        page.focus("#tick-1")  # by the keyboard: what remains, from the second to the fourth
        page.keyboard.press("ArrowUp")
        page.keyboard.press("ArrowDown")
        page.click("#all")  # clears what was selected before
        if page.is_checked("#all"):
            page.click("#all")
        page.wait_for_selector("#selected:has-text('0 selected')")
        page.focus("#tick-1")
        page.keyboard.press("Space")
        page.keyboard.press("Shift+ArrowDown")
        page.keyboard.press("Shift+ArrowDown")
        page.wait_for_selector("#selected:has-text('3 selected')")
        page.click("#do-confirm")
        settle_page(page)
        columns = read_spec_file(spec).spec.columns
        assert sum(column.role == "drop" for column in columns.values()) == 166
        page.goto(f"{work}/privacy")
        settle_page(page)
        page.check("input[value=k-anonymity]")
        page.wait_for_selector("#k")
        settle_page(page)
        page.goto(f"{work}/explore")
        page.wait_for_selector("#best-title")
        settle_page(page)
        page.fill("input[name='diversity.distinct']", "2")
        page.click("#set-rules-0")
        page.wait_for_selector("#undo-button:has-text('diversity')")
        settle_page(page)
        page.click("#beside-1")
        page.click("#beside-2")
        page.click("#put-beside")
        page.wait_for_selector("#beside-title")
        settle_page(page)
        assert find_violations(page) == []
        column = read_spec_file(spec).spec.columns["diagnosis"]
        assert column.diversity is not None
        assert column.diversity.distinct == 2
        page.goto(f"{work}/columns")
        settle_page(page)
        page.click("#all")
        page.click("#do-confirm")
        settle_page(page)
        page.goto(f"{work}/person")
        settle_page(page)
        if page.locator("#confirm-unit").count():
            page.click("#confirm-unit")
        settle_page(page)
        page.goto(f"{work}/confirm")
        settle_page(page)
        while page.locator("#yes").count():  # what was read from the data
            title = page.inner_text("#queue")
            page.click("#yes")
            settle_page(page)
            assert page.inner_text("#queue") != title
        assert read_spec_file(spec).spec.unconfirmed_entries == {}
        page.goto(f"{work}/publish")
        settle_page(page)
        page.fill("#name", "survey-by-clicks")
        page.click("#publish")
        page.wait_for_selector("#download")
        assert find_violations(page) == []
        assert verify(studio.folder / "survey-by-clicks") == []
        page.goto(f"{work.rpartition('/desk')[0]}/release?of=survey-by-clicks")
        page.wait_for_selector("#report")
        assert find_violations(page) == []
