"""The whole way in a browser: a table becomes a verified release by clicks, or by keys alone."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.studio import RunningStudio
from support.web import find_violations, open_page, open_room, settle_page

from incrowd.curate.demo_tables import SPECS, make_demo_table
from incrowd.publication import publish
from incrowd.release.verify import verify
from incrowd.spec.file import parse_spec, read_spec_file

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ROOMS = ("person", "data", "hierarchies", "confirm", "privacy", "explore", "publish")


def test_the_sample_table_by_clicks(studio: RunningStudio, chromium: Browser) -> None:
    with open_page(chromium, studio) as page:
        page.click("button[value=voters]")
        page.wait_for_selector("#column-0 svg")
        settle_page(page)
        assert find_violations(page) == []
        page.select_option("#role-6", "drop")  # race
        page.wait_for_selector("#column-6.role-drop")
        spec = studio.folder / "voters.yaml"
        assert read_spec_file(spec).spec.columns["race"].role == "drop"
        page.click("footer button")  # undo
        page.wait_for_selector("#column-6.role-quasi")
        open_room(page, "hierarchies")
        page.click("#ladder-list a:has-text('birth_year')")
        page.wait_for_selector("#f-width-1")
        page.fill("#f-width-1", "5")
        page.press("#f-width-1", "Tab")
        page.wait_for_selector("#ladder-tree:has-text('5')")
        settle_page(page)
        assert find_violations(page) == []
        open_room(page, "privacy")
        page.fill("#epsilon", "2")
        page.press("#epsilon", "Tab")
        page.wait_for_selector("#statement:has-text('ε = 2 and')")
        settle_page(page)
        for name in ROOMS[4:]:
            open_room(page, name)
            assert find_violations(page) == [], name
        release = read_spec_file(spec).spec.release
        assert release is not None
        assert release.budget is not None
        assert release.budget.epsilon == 2
        page.click("#metadata")
        page.wait_for_url("**/metadata")  # with the script that hears of what is filled in
        page.fill("#title", "Voters by clicks")
        page.press("#title", "Tab")
        page.wait_for_selector("#stated:has-text('1 of 10 answered')")
        with page.expect_response("**/metadata"):  # what the change leads to
            page.check("#format-registry")
        assert find_violations(page) == []
        page.click("main a.button")
        page.wait_for_url("**/publish")
        settle_page(page)
        page.fill("#name", "by-clicks")
        page.click("#publish")
        page.wait_for_selector("#download")
        assert find_violations(page) == []
        assert verify(studio.folder / "by-clicks") == []
        record = (studio.folder / "by-clicks/metadata/registry.yaml").read_text(encoding="utf-8")
        assert "name: Voters by clicks" in record
        with page.expect_popup() as opened:
            page.click("#report")
        assert "Private" in opened.value.title()
        with page.expect_download() as loaded:
            page.click("#download")
        zipped = Path(loaded.value.path()).read_bytes()
        assert b"by-clicks/certificate.json" in zipped
        assert b"curator" not in zipped
        page.click("#verify")
        page.wait_for_selector(".verdict.fine")
        assert find_violations(page) == []
        page.click("nav.tools a[href='/history']")
        assert "by-clicks" in page.inner_text("main")
        assert find_violations(page) == []


@pytest.fixture
def patients(tmp_path: Path) -> Path:
    """A file as users bring it: semicolons, decimal commas, days of two forms of null."""
    path = tmp_path / "Patienten 2025.csv"
    lines = ["Name;Geburtsdatum;Gewicht;Geschlecht"]
    for at in range(400):
        born = "" if at % 50 == 0 else f"{1 + at % 28:02}.{1 + at % 12:02}.{1940 + at % 60}"
        lines.append(f"Person {at};{born};{60 + at % 40},{at % 10};{'mw'[at % 2]}")
    path.write_text("\n".join(lines), encoding="cp1252")
    return path


def test_a_file_as_users_bring_it_on_a_phone(
    studio: RunningStudio, chromium: Browser, patients: Path
) -> None:
    with open_page(
        chromium, studio, viewport={"width": 380, "height": 760}, color_scheme="dark"
    ) as page:
        page.set_input_files("input[data-pick]", patients)
        page.wait_for_url("**/person")
        settle_page(page)
        assert find_violations(page) == []
        for name in ROOMS:
            open_room(page, name)
            wide = page.evaluate("document.documentElement.scrollWidth")
            assert wide <= 380, name
            assert find_violations(page) == [], name
        assert "Confirm" in page.inner_text("#ready")
        assert page.is_disabled("#publish")
        file = studio.folder / "Patienten 2025.yaml"
        assert read_spec_file(file).spec.table == "Patienten 2025.csv"
        assert page.is_visible("#who-is-a-person")
        open_room(page, "person")
        page.click("#confirm-unit")
        page.wait_for_url("**/data")
        settle_page(page)
        assert not page.is_visible("#who-is-a-person")
        page.click("#confirm-all")
        page.wait_for_selector("#overview:has-text('on this page are confirmed')")
        left = list(read_spec_file(file).spec.unconfirmed_entries)  # what is left are ladders
        open_room(page, "hierarchies")
        page.click(f"#ladder-list a:has-text('{left[0]}')")
        for name in left:  # each leads to the next
            page.wait_for_selector(f"#ladder-title:has-text('{name}')")
            page.click("#confirm-ladder")
            page.wait_for_selector("#confirm-ladder", state="detached")
            if name != left[-1]:
                page.click("#next-confirm")
        assert read_spec_file(file).spec.unconfirmed_entries == {}
        open_room(page, "privacy")
        page.click("#new-ledger summary")
        page.click("#new-ledger-form button")
        page.wait_for_selector("#ledger:has-text('The ledger allows this release')")
        open_room(page, "publish")
        page.fill("#name", "on-a-phone")
        page.click("#publish")
        page.wait_for_selector("#download")
        assert find_violations(page) == []
        assert "Booked in the ledger Patienten 2025.ledger" in page.inner_text("#job")
        assert verify(studio.folder / "on-a-phone") == []
        page.click("#verify")
        page.wait_for_selector(".verdict.fine")


def test_releases_of_anybody_are_verified(
    studio: RunningStudio, chromium: Browser, tmp_path: Path
) -> None:
    """Handed in as a zip file or as a folder; what was changed is red, with the reason."""
    theirs = tmp_path / "theirs"
    publish(make_demo_table("patients", rows=3_000), parse_spec(SPECS["patients"]), output=theirs)
    packed = shutil.make_archive(str(tmp_path / "packed"), "zip", tmp_path, "theirs")
    with open_page(chromium, studio) as page:
        page.click("nav.tools a[href='/verify']")
        page.wait_for_url("**/verify")
        page.wait_for_load_state()  # a file that is picked before the script runs is not noticed
        page.set_input_files("input[accept='.zip']", packed)
        page.wait_for_selector(".verdict.fine")
        page.wait_for_load_state()
        page.set_input_files("input[webkitdirectory]", theirs)
        page.wait_for_selector(".verdict.fine:has-text('theirs is verified')")
        (theirs / "data.parquet").write_bytes(b"PAR1 and nothing more PAR1")
        page.wait_for_load_state()
        page.set_input_files("input[webkitdirectory]", theirs)
        page.wait_for_selector(".verdict.bad")
        assert "The file 'data.parquet' was changed" in page.inner_text(".verdict")
        assert find_violations(page) == []


def test_a_file_is_dropped(studio: RunningStudio, chromium: Browser) -> None:
    with open_page(chromium, studio) as page:
        rows = "".join(f"{20 + at % 40},{'ab'[at % 2]}\\n" for at in range(100))
        dropped = page.evaluate_handle(f"""() => {{
            const held = new DataTransfer();
            held.items.add(new File(["age,town\\n{rows}"], "dropped.csv"));
            return held;
        }}""")
        page.dispatch_event("[data-drop]", "drop", {"dataTransfer": dropped})
        page.wait_for_url("**/person")
        assert "dropped" in page.inner_text(".subject")


def test_the_keyboard_alone_suffices(studio: RunningStudio, chromium: Browser) -> None:
    """From the first page to a verified release: what is focused is always to be seen."""
    with open_page(chromium, studio) as page:

        def tab_to(selector: str) -> None:
            for _ in range(120):
                page.keyboard.press("Tab")
                if page.evaluate("s => document.activeElement.matches(s)", selector):
                    assert page.evaluate(
                        "getComputedStyle(document.activeElement).outlineStyle != 'none'"
                    )
                    return
            raise AssertionError(f"no key leads to {selector}")

        tab_to("button[value=patients]")
        page.keyboard.press("Enter")
        page.wait_for_url("**/data")
        settle_page(page)
        tab_to("#role-0")
        page.keyboard.press("d")  # drop, by its letter
        page.wait_for_selector("#column-0.role-drop")
        assert page.evaluate("document.activeElement.id") == "role-0"
        tab_to("a.button")
        page.keyboard.press("Enter")
        page.wait_for_url("**/hierarchies")
        tab_to("nav.steps a[href$='/publish']")
        page.keyboard.press("Enter")
        page.wait_for_url("**/publish")
        settle_page(page)
        tab_to("#name")
        page.keyboard.press("Control+A")
        page.keyboard.type("by-keys")
        tab_to("#publish")
        page.keyboard.press("Enter")
        page.wait_for_selector("#download")
        tab_to("#verify")
        page.keyboard.press("Enter")
        page.wait_for_selector(".verdict.fine")
    assert verify(studio.folder / "by-keys") == []


def test_two_tabs_on_one_spec(studio: RunningStudio, chromium: Browser) -> None:
    """What one has changed the other shows; a change by a page that is out of date is refused."""
    rows = "".join(f"{20 + at % 40},{'ab'[at % 2]}\n" for at in range(100))
    (studio.folder / "tabs.csv").write_text(f"age,town\n{rows}")
    spec = studio.folder / "tabs.yaml"
    with open_page(chromium, studio, refusals=True) as first:
        first.fill("#place", "tabs.csv")
        first.press("#place", "Enter")
        first.wait_for_url("**/person")
        settle_page(first)
        first.click("#confirm-unit")
        first.wait_for_url("**/data")
        settle_page(first)
        second = first.context.new_page()
        second.goto(first.url)
        settle_page(second)
        first.select_option("#role-0", "drop")
        first.wait_for_selector("#column-0.role-drop")
        second.select_option("#role-1", "sensitive")
        second.wait_for_selector("#problem:has-text('was changed elsewhere')")
        second.wait_for_selector("#column-0.role-drop")
        assert second.input_value("#role-1") == "quasi"  # what is shown is what is stored
        assert read_spec_file(spec).spec.columns["town"].role == "quasi"
        assert find_violations(second) == []
        second.select_option("#role-1", "drop")
        second.wait_for_selector("#column-1.role-drop")
        assert read_spec_file(spec).spec.columns["age"].role == "drop"
        text = spec.read_text().replace("role: drop", "role: identifier", 1)
        spec.write_text(text)
        second.reload()
        second.wait_for_selector("#notice:has-text('was read again')")
        assert second.input_value("#role-0") == "identifier"
        assert find_violations(second) == []
        spec.write_text("columns: [")
        first.reload()
        first.wait_for_selector("#replace")
        assert find_violations(first) == []
        assert spec.read_text() == "columns: ["
        first.click("#replace")
        first.wait_for_selector("#replace", state="detached")
        assert read_spec_file(spec).spec.columns["age"].role == "identifier"


def test_a_refused_change_goes_from_the_screen(studio: RunningStudio, chromium: Browser) -> None:
    with open_page(chromium, studio, refusals=True) as page:
        page.click("button[value=census]")
        page.wait_for_url("**/data")
        settle_page(page)
        role = page.input_value("#role-1")
        page.select_option("#role-1", "noisy")  # which a safe release cannot have
        page.wait_for_selector("#problem:has-text('noisy')")
        page.wait_for_function("role => document.getElementById('role-1').value == role", arg=role)
        open_room(page, "privacy")
        stored = page.input_value("#epsilon")
        page.fill("#epsilon", "-4")
        page.press("#epsilon", "Enter")
        page.wait_for_selector("#problem:not(:empty)")
        page.wait_for_function("it => document.getElementById('epsilon').value == it", arg=stored)
        page.select_option("#draw", "counts")
        page.wait_for_selector("#problem:empty", state="attached")
        settle_page(page)
        release = read_spec_file(studio.folder / "census.yaml").spec.release
        assert release is not None
        assert release.budget is not None
        assert f"{release.budget.epsilon:.12g}" == stored
