"""Take the pictures of the studio and of the report, in Chromium, from sample tables.

    PYTHONPATH=src python benchmarks/studio_pictures.py FOLDER [NAME ...]

- studio-data.png, studio-privacy.png: the sample of patients
- studio-confirm.png: a card of the queue, of a table as users bring it
- studio-columns.png: 171 columns of a survey as a table
- studio-explore.png: schemes of the census sample in words, three of them side by side
- studio-risk.png: the risk of the census sample before release, as a sample of a million people
- studio-release.png: a finished release, with all that belongs to it
- report.png: the first screen of the private report of the demo's release
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from PIL import Image
from studio_journeys import open_studio_page
from support.questionnaires import make_questionnaires
from support.web import open_room, settle_page

from incrowd.curate.demo_tables import SPECS, make_demo_table

if TYPE_CHECKING:
    from playwright.sync_api import Page

WIDTH = 1280


def open_demo(page: Page, studies: Path, kind: str, rows: int) -> None:
    """Open a sample table of so many rows, with its spec."""
    make_demo_table(kind, rows=rows).write(studies / f"{kind}.parquet")
    (studies / f"{kind}.yaml").write_text(SPECS[kind], encoding="utf-8")
    _open_file(page, f"{kind}.yaml")


def _open_file(page: Page, name: str) -> None:
    page.goto("/".join(page.url.split("/")[:3]))
    page.fill("#place", name)
    page.press("#place", "Enter")
    page.wait_for_url("**/desk/**")
    settle_page(page)


def show_data(page: Page, studies: Path) -> int:
    """Show the columns of a table as cards."""
    open_demo(page, studies, "patients", 20_000)
    open_room(page, "data")
    return 850


def show_privacy(page: Page, studies: Path) -> int:
    """Show the purpose, the methods, and what readers will see."""
    open_demo(page, studies, "patients", 100_000)
    open_room(page, "privacy")
    page.fill("#people", "100000")
    page.press("#people", "Enter")
    page.wait_for_selector("#readers .readers-head")
    page.check("#purpose-explore", force=True)
    page.wait_for_selector("#purpose .advice")
    page.wait_for_selector("#epsilon-picture .epsilon-grid")
    settle_page(page)
    return 1_330


def show_confirm(page: Page, studies: Path) -> int:
    """Show a card: what was read from the data must be public."""
    make_questionnaires(400, 24).write_csv(studies / "survey.csv")
    _open_file(page, "survey.csv")
    page.click("#confirm-unit")
    page.wait_for_url("**/data")
    settle_page(page)
    open_room(page, "confirm")
    while "range" not in page.inner_text("#card-title").lower():
        card_text = page.inner_text("#queue")
        page.click("#yes")
        page.wait_for_function(
            "text => document.getElementById('queue').innerText != text", arg=card_text
        )
        settle_page(page)
    return 1_010


def show_columns(page: Page, studies: Path) -> int:
    """Show 171 columns as a table."""
    make_questionnaires(823).write_csv(studies / "survey.csv")
    _open_file(page, "survey.csv")
    page.goto(f"{page.url.rpartition('/')[0]}/columns?sort=first")
    settle_page(page)
    return 850


def show_explore(page: Page, studies: Path) -> int:
    """Show schemes in words, and three of them side by side."""
    open_demo(page, studies, "census", 10_000)
    open_room(page, "privacy")
    page.check("input[name=method][value=k-anonymity]")
    page.wait_for_selector("#undo-button:has-text('Undo: method')")
    open_room(page, "explore")
    page.wait_for_selector("#best-title")
    for place in (1, 2, 3):
        page.click(f"#beside-{place}")
    page.click("#put-beside")
    page.wait_for_selector("#beside-title")
    settle_page(page)
    card = page.locator("section:has(> #beside-title)").bounding_box()
    assert card is not None
    scrolled = float(page.evaluate("scrollY"))
    return round(scrolled + card["y"] + card["height"] + 20)


def show_risk(page: Page, studies: Path) -> int:
    """Show the risk of a table before release."""
    open_demo(page, studies, "census", 10_000)
    page.goto(f"{page.url.rpartition('/')[0]}/risk?population=1000000")
    page.wait_for_selector("#records")
    settle_page(page)
    card = page.locator("section:has(> #columns-title)").bounding_box()
    assert card is not None
    return round(float(page.evaluate("scrollY")) + card["y"] + card["height"] + 20)


def show_release(page: Page, studies: Path) -> int:
    """Show a release with certificate, files, report and the difference of specs."""
    open_demo(page, studies, "patients", 20_000)
    for name, epsilon in (("patients-2024", "1"), ("patients-2025", "2")):
        open_room(page, "privacy")
        page.fill("#epsilon", epsilon)
        page.press("#epsilon", "Tab")
        page.wait_for_selector(f"#statement:has-text('ε = {epsilon} and')")
        settle_page(page)
        open_room(page, "publish")
        page.fill("#name", name)
        page.click("#publish")
        page.wait_for_selector("#release")
        if name == "patients-2024":
            page.click("#again")
            page.wait_for_selector("#publish")
    page.click("#release")
    page.wait_for_selector("#sign")
    page.click("#sign")
    page.wait_for_selector("#signed")
    page.click("details.difference >> nth=0")
    return 900


def show_report(page: Page, _studies: Path) -> int:
    """Show the private report of the sample of voters, as the demo publishes it."""
    page.click("button[value=voters]")
    page.wait_for_url("**/data")
    settle_page(page)
    open_room(page, "publish")
    page.click("#publish")
    page.wait_for_selector("#report")
    page.goto(f"{page.url.rpartition('/')[0]}/report")
    page.set_viewport_size({"width": 1_100, "height": 1_500})
    return 1_500


PICTURES: dict[str, Callable[[Page, Path], int]] = {
    "studio-data": show_data, "studio-privacy": show_privacy,
    "studio-confirm": show_confirm,
    "studio-columns": show_columns, "studio-explore": show_explore,
    "studio-risk": show_risk, "studio-release": show_release, "report": show_report,
}  # fmt: skip


def shrink_picture(path: Path) -> None:
    """Store a picture in 256 colors of its own, at a third of the size."""
    picture = Image.open(path).convert("RGB")
    colors = picture.quantize(method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    colors.save(path, optimize=True)


def main(folder: Path, names: list[str]) -> None:
    """Take each picture in a studio of its own, as tall as it is told."""
    for name in names or PICTURES:
        with open_studio_page(viewport={"width": WIDTH, "height": 850}) as (page, running):
            height = PICTURES[name](page, running.folder)
            width = page.evaluate("innerWidth")
            page.set_viewport_size({"width": width, "height": height})
            page.mouse.move(0, 0)
            page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
            path = folder / f"{name}.png"
            page.screenshot(path=path)
            shrink_picture(path)
            print(name, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
