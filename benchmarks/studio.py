"""How soon the studio is there, and how soon its pages answer, on a small and on a large table.

    PYTHONPATH=src python benchmarks/studio.py [--rows 30162 10000000] [--repeat 5]
    PYTHONPATH=src python benchmarks/studio.py --release 30000000

The command is started as a user starts it, and asked as a browser asks it. "answers" is the time
until the whole page after a click is there; "settled" until nothing on it is to follow any more
(figures that are solved, the check of the table). Tables are the sample ones: census for up to a
million rows, else voters. ``--release`` publishes a table of so many rows, and asks for pages all
the while.
"""

from __future__ import annotations

import argparse
import re
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))

from support.studio import RunningStudio, StudioBrowser

from incrowd.curate.demo_tables import SPECS, make_demo_table


def wait_until_settled(browser: StudioBrowser, path: str) -> float:
    """Return the seconds until a page has nothing to follow."""
    start = time.perf_counter()
    while "data-follow" in browser.get(path).text:
        time.sleep(0.02)
    return time.perf_counter() - start


def start_studio(folder: Path, state: Path) -> tuple[RunningStudio, float]:
    """Return a studio, and the seconds until its first page was there."""
    begun = time.perf_counter()
    running = RunningStudio(folder, state)
    browser = running.open_browser()
    assert browser.get("/").status == 200
    return running, time.perf_counter() - begun


def list_clicks(spec: str) -> dict[str, list[tuple[str, dict[str, str]]]]:
    """Return what is clicked, by name: room and form, in turn with what undoes it."""
    column, other = re.findall(r"^  (\w+): \{role: quasi", spec, re.M)[:2]
    result = re.search(r"^  (\w+):.*intervals: \{from: (\d+), to: (\d+)", spec, re.M)
    assert result is not None
    ladder, ends = result[1], {"from": result[2], "to": result[3]}
    return {
        "role of a column": [
            ("data/role", {"column": column, "role": role}) for role in ("drop", "quasi")
        ],
        "unit": [("person", {"unit": unit}) for unit in (other, "")],
        "widths of a ladder": [
            (f"hierarchies?column={ladder}", {"do": "ladder", **ends, "width": width})
            for width in "82"
        ],
        "epsilon": [
            ("privacy/settings", {"epsilon": f"{at / 16}", "delta": "1e-6"})
            for at in range(9, 29)  # each is solved once, and then known
        ],
    }


def print_page_times(browser: StudioBrowser, work: str, spec: str, repeat: int) -> None:
    """Tell how long pages and clicks take."""
    for room in ("data", "hierarchies", "privacy", "explore", "publish"):
        wait_until_settled(browser, f"{work}/{room}")
        times = []
        for _ in range(repeat):
            start = time.perf_counter()
            browser.get(f"{work}/{room}")
            times.append(time.perf_counter() - start)
        print(f"  page {room:18}{statistics.median(times):8.3f}")
    for name, forms in list_clicks(spec).items():
        answers, ends = [], []
        for at in range(repeat):
            path, fields = forms[at % len(forms)]
            start = time.perf_counter()
            answer = browser.post(f"{work}/{path}", **fields)
            assert answer.status == 303, answer.text  # the page it leads to was fetched, too
            answers.append(time.perf_counter() - start)
            ends.append(answers[-1] + wait_until_settled(browser, answer.place))
        figures = f"{statistics.median(answers):8.3f}{statistics.median(ends):10.3f}"
        print(f"  click {name:17}{figures}", flush=True)


def open_demo_table(running: RunningStudio, kind: str, rows: int) -> tuple[StudioBrowser, str]:
    """Return a sample table of so many rows with its spec, opened; its browser, and where it is."""
    make_demo_table(kind, rows=rows).write(running.folder / f"{kind}.parquet")
    (running.folder / f"{kind}.yaml").write_text(SPECS[kind], encoding="utf-8")
    browser = running.open_browser()
    return browser, browser.post("/open", place=f"{kind}.yaml").place.removesuffix("/data")


def measure_while_publishing(rows: int) -> None:
    """Publish a large table, and tell how soon pages and clicks are answered meanwhile."""
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home, "project")
        folder.mkdir()
        running, _ = start_studio(folder, Path(home, "state"))
        browser, work = open_demo_table(running, "voters", rows)
        wait_until_settled(browser, f"{work}/publish")
        start = time.perf_counter()
        pages: list[float] = []
        clicks: list[float] = []
        answer = browser.post(f"{work}/publish/begin", name="out")
        assert answer.status == 303, answer.text
        while "release.zip" not in (text := browser.get(f"{work}/publish").text):
            assert "data-follow" in text, text
            for room in ("data", "hierarchies", "privacy", "explore", "publish"):
                request = time.perf_counter()
                assert browser.get(f"{work}/{room}").status == 200
                pages.append(time.perf_counter() - request)
            request = time.perf_counter()
            epsilon = f"{1 + len(clicks) % 8 / 16}"
            browser.post(f"{work}/privacy/settings", epsilon=epsilon, delta="1e-6")
            clicks.append(time.perf_counter() - request)
            time.sleep(0.2)
        print(f"voters, {rows:,} rows: released in {time.perf_counter() - start:.1f} s")
        for name, times in (("pages", pages), ("clicks", clicks)):
            print(f"  {name:8}{len(times):6}  median {statistics.median(times):.3f}"
                  f"  longest {max(times):.3f}")  # fmt: skip
        running.stop()


def main(arguments: argparse.Namespace) -> None:
    """Start, open each table, click."""
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home, "project")
        folder.mkdir()
        starts = []
        for at in range(arguments.repeat):
            running, seconds = start_studio(folder, Path(home, f"state-{at}"))
            starts.append(seconds)
            if at < arguments.repeat - 1:
                running.stop()
        print(f"start, until the first page: {statistics.median(starts):.2f} s")
        print("seconds                  answers   settled")
        for rows in arguments.rows:
            kind = "census" if rows <= 1_000_000 else "voters"
            browser, work = open_demo_table(running, kind, rows)
            looked = wait_until_settled(browser, f"{work}/data")
            print(f"{kind}, {rows:,} rows: looked at in {looked:.2f}")
            print_page_times(browser, work, SPECS[kind], arguments.repeat)
        running.stop()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, nargs="+", default=[30_162, 10_000_000])
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--release", type=int, help="rows of a table to publish meanwhile")
    options = parser.parse_args()
    if options.release:
        measure_while_publishing(options.release)
    else:
        main(options)
