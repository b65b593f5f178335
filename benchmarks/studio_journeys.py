"""How many clicks and seconds a table takes to a verified release in the studio, in Chromium.

    PYTHONPATH=src python benchmarks/studio_journeys.py [JOURNEY ...]

Journeys: csv, panel, tables, synthetic, wide, classes; all by default. A click is a click, a choice
in a list, a filled-in field or a file that is picked. Seconds are those of the clock from the first
click to the verdict, with a person who does not think: the pages decide. Every card of the queue is
confirmed as it is drafted. Needs Chromium and Playwright, as the tests of the studio do.
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))

from support.questionnaires import make_questionnaires
from support.studio import RunningStudio
from support.web import settle_page

if TYPE_CHECKING:
    from playwright.sync_api import Page


class Curator:
    """Clicks, and counts the clicks."""

    def __init__(self, page: Page) -> None:
        self.page, self.clicks = page, 0

    def click(self, selector: str) -> None:
        """Click something, and wait until the page has nothing to follow."""
        self.page.click(selector)
        self._finish()

    def choose(self, selector: str, value: str) -> None:
        """Choose an entry of a list."""
        self.page.select_option(selector, value)
        self._finish()

    def check(self, selector: str) -> None:
        """Check a box or a button of several."""
        self.page.check(selector, force=True)
        self._finish()

    def enter(self, selector: str, text: str) -> None:
        """Fill in a field."""
        self.page.fill(selector, text)
        self.page.press(selector, "Tab")
        self._finish()

    def open_table(self, path: Path) -> None:
        """Pick a file, and confirm who a person is."""
        self.page.set_input_files("input[data-pick]", path)
        self.page.wait_for_url("**/person")
        self._finish()
        self.page.click("#confirm-unit")
        self.page.wait_for_url(re.compile("/(data|columns)$"))  # the latter of a wide table
        self._finish()

    def open_room(self, name: str) -> None:
        """Go to a room by its link."""
        self.page.click(f"nav.steps a[href$='/{name}']")
        self.page.wait_for_url(f"**/{name}")
        self._finish()

    def confirm_all(self) -> None:
        """Confirm card after card of the queue."""
        self.open_room("confirm")
        while self.page.locator("#yes").count():
            card_text = self.page.inner_text("#queue")
            self.page.click("#yes")
            self.page.wait_for_function(
                "text => document.getElementById('queue').innerText != text", arg=card_text
            )
            self._finish()

    def drop_columns(self, *texts: str) -> None:
        """Drop all columns with one of some texts in their name, in the table of columns."""
        for text in texts:
            self.page.fill("#find", text)
            self.page.wait_for_selector(f"#listed tbody tr:first-child th:has-text('{text}')")
            self.clicks += 1
            self.check("#all")  # what was selected before stays selected
        self.choose("#all-role", "drop")
        self.page.click("#do-role")
        self.page.wait_for_selector("#undo-button:has-text('role of')")
        self._finish()

    def publish(self) -> None:
        """Publish, and verify the release."""
        self.open_room("publish")
        self.page.click("#publish")
        self.page.wait_for_selector("#download")
        self._finish()
        self.page.click("#verify")
        self.page.wait_for_selector(".verdict.fine, .verdict.doubtful")
        self._finish()

    def _finish(self) -> None:
        settle_page(self.page)
        self.clicks += 1


def take_csv(curator: Curator, folder: Path) -> None:
    """Publish a file as users bring it: semicolons, decimal commas, missing values."""
    path = folder / "Patienten.csv"
    lines = ["Name;Geburtsdatum;Gewicht;Geschlecht;PLZ;Diagnose;Raucher"]
    rng = np.random.default_rng(1)
    for at in range(2_000):
        born = "" if at % 50 == 0 else f"{1 + at % 28:02}.{1 + at % 12:02}.{1940 + at % 60}"
        ill = ["gesund", "Asthma", "Diabetes"][rng.integers(3)]
        lines.append(
            f"Person {at};{born};{60 + at % 40},{at % 10};{'mw'[at % 2]};{10115 + at % 30};{ill};"
            f"{'ja' if at % 3 else 'nein'}"
        )
    path.write_text("\n".join(lines), encoding="cp1252")
    curator.open_table(path)
    curator.confirm_all()
    curator.publish()


def take_panel(curator: Curator, folder: Path) -> None:
    """Publish three visits of each of 1,000 patients; the patient is protected."""
    rng = np.random.default_rng(2)
    patients = np.repeat(np.arange(1_000), 3)
    visits = pl.DataFrame(
        {
            "patient": [f"P{at:04}" for at in patients],
            "sex": np.where(patients % 2, "m", "f"),
            "arm": np.where(patients % 3 > 0, "drug", "placebo"),
            "dose": rng.integers(1, 5, len(patients)),
        }
    )
    visits.write_csv(folder / "visits.csv")
    curator.open_table(folder / "visits.csv")
    curator.confirm_all()
    curator.publish()


def _make_towns(path: Path) -> Path:
    rng = np.random.default_rng(3)
    people = {
        "town": rng.choice(["north", "south", "west"], 3_000),
        "smoker": rng.choice(["no", "yes"], 3_000),
        "weekday": rng.choice(["mon", "tue", "wed", "thu", "fri"], 3_000),
    }
    pl.DataFrame(people).write_csv(path)
    return path


def take_tables(curator: Curator, folder: Path) -> None:
    """Publish two tables of counts, their columns clicked."""
    curator.open_table(_make_towns(folder / "towns.csv"))
    curator.confirm_all()
    curator.open_room("privacy")
    curator.check("input[name=method][value=tables]")
    for columns in ((0, 1), (1, 2)):
        for column in columns:
            curator.check(f"#table-column-{column}")
        curator.click("#do-add")
    curator.publish()


def take_synthetic(curator: Curator, folder: Path) -> None:
    """Publish synthetic rows, recommended for training a model."""
    curator.open_table(_make_towns(folder / "rows.csv"))
    curator.confirm_all()
    curator.open_room("privacy")
    curator.check("#purpose-model")
    curator.check("input[name=method][value=synthetic]")
    curator.publish()


def take_wide(curator: Curator, folder: Path) -> None:
    """Publish synthetic rows of 171 columns; the column with an open domain is dropped."""
    make_questionnaires(823).write_csv(folder / "survey.csv")
    curator.open_table(folder / "survey.csv")
    curator.drop_columns("postcode")
    curator.confirm_all()
    curator.open_room("privacy")
    curator.check("input[name=method][value=synthetic]")
    curator.publish()


def take_classes(curator: Curator, folder: Path) -> None:
    """Publish five of 171 columns by k-anonymity with distinct ℓ-diversity of 2."""
    make_questionnaires(823).write_csv(folder / "registry.csv")
    curator.open_table(folder / "registry.csv")
    curator.drop_columns("answer_", "had_", "visits_", "lab_")
    curator.confirm_all()
    curator.open_room("privacy")
    curator.check("input[name=method][value=k-anonymity]")
    curator.open_room("explore")
    curator.enter("input[name='diversity.distinct']", "2")
    curator.click("#set-rules-0")
    curator.publish()


JOURNEYS: dict[str, Callable[[Curator, Path], None]] = {
    "csv": take_csv, "panel": take_panel, "tables": take_tables, "synthetic": take_synthetic,
    "wide": take_wide, "classes": take_classes,
}  # fmt: skip


@contextmanager
def open_studio_page(**settings: object) -> Iterator[tuple[Page, RunningStudio]]:
    """Yield a page of a new studio in a folder of its own, and the studio."""
    from playwright.sync_api import sync_playwright

    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        raise SystemExit("Chromium is missing. Install the package chromium.")
    with tempfile.TemporaryDirectory() as home, sync_playwright() as driver:
        folder = Path(home, "studies")
        folder.mkdir()
        running = RunningStudio(folder, Path(home, "state"))
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        context = browser.new_context(**settings)  # type: ignore[arg-type]
        context.set_default_timeout(300_000)
        page = context.new_page()
        page.goto(running.wait_for_link())
        yield page, running
        browser.close()
        running.stop()


def main(names: list[str]) -> None:
    """Take each journey in a studio of its own."""
    print("journey       clicks  seconds")
    for name in names or JOURNEYS:
        with (
            tempfile.TemporaryDirectory() as files,
            open_studio_page(viewport={"width": 1280, "height": 900}) as (page, _),
        ):
            settle_page(page)
            curator, start = Curator(page), time.perf_counter()
            JOURNEYS[name](curator, Path(files))
            print(f"{name:14}{curator.clicks:6}{time.perf_counter() - start:9.1f}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
