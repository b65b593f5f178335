"""The page of paper A's attacks: every one breaks its baseline, none a safe release."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from support.cli import run_command, run_successfully

from incrowd.measure.estimate import Estimate, compute_interval
from incrowd.papers import paper_a, paper_a_attacks, paper_b
from incrowd.papers.downcode import compute_departure_chance
from incrowd.papers.paper_a_attacks import Exhibit, run_attacks


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("paper") / "attacks"
    successfully = run_successfully("reproduce", "attacks", "-o", str(folder))
    assert "index.html" in successfully
    return folder


@pytest.fixture(scope="module")
def exhibits(folder: Path) -> list[dict[str, Any]]:
    stored = json.loads((folder / "numbers.json").read_text(encoding="utf-8"))
    assert stored["seed"] == paper_a_attacks.SEED
    return list(stored["exhibits"])


def test_everything_promised_is_written(folder: Path, exhibits: list[dict[str, Any]]) -> None:
    page = (folder / "index.html").read_text(encoding="utf-8")
    assert re.findall(r'src="([^"]+)"', page) == ["attacks.svg"]
    assert (folder / "attacks.svg").stat().st_size > 10_000
    assert (folder / "attacks.png").read_bytes().startswith(b"\x89PNG")
    assert len(list(folder.iterdir())) == 4
    assert page.count('<tr class="broken">') == 7
    assert page.count('<tr class="held">') == 10
    for exhibit in exhibits:
        assert f"<h2>{exhibit['title']}</h2>" in page
        for estimate in exhibit["broken"] + exhibit["held"]:
            success = estimate["success"]
            assert f"<td>{success['hits']} of {success['tries']}</td>" in page


def test_every_baseline_breaks_and_no_safe_release(exhibits: list[dict[str, Any]]) -> None:
    """Beyond the intervals, against both guessing and the control.

    The seed of the page is fixed. For another one, a correct program fails where two intervals of
    95 % miss each other though the shares are the same: below 0.01 for each of the ten.
    """
    assert len(exhibits) == len(paper_a_attacks.EXHIBITS)
    for exhibit in exhibits:
        for estimate in exhibit["broken"]:
            assert estimate["success"]["low"] > estimate["guess"]["high"], estimate["name"]
            assert estimate["success"]["low"] > estimate["control"]["high"], estimate["name"]
        for estimate in exhibit["held"]:
            success, control = estimate["success"], estimate["control"]
            assert success["low"] <= control["high"], estimate["name"]
            assert control["low"] <= success["high"], estimate["name"]
            assert estimate["bound"] is None or success["low"] <= estimate["bound"]


def test_the_figures_are_those_of_theory(exhibits: list[dict[str, Any]]) -> None:
    """Each of the two shares with an interval that misses the true one with probability 1e-6."""
    by_name = {x["name"]: x for exhibit in exhibits for x in exhibit["broken"]}
    assert by_name["clustering and local recoding"]["success"]["value"] == 1
    assert by_name["Mondrian, boxes from the data"]["success"]["value"] == 1
    assert by_name["20-Duplication"]["success"]["value"] > 0.99
    sampled = by_name["δ-sampling, δ = 0.005"]
    low, high = compute_interval(sampled["success"]["hits"], 10_000, 1 - 1e-6)
    assert low <= sampled["bound"] == 0.005 <= high
    finer = by_name["minimal local recoding"]
    assert finer["success"]["value"] > 1 / 3
    low, high = compute_interval(finer["success"]["hits"], finer["success"]["tries"], 1 - 1e-6)
    assert low <= compute_departure_chance(5, 8) <= high


def test_each_attack_is_heard_of_before_it_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    titles: list[str] = []

    def first(title: str, _: object) -> Exhibit:
        assert titles == [title]
        return Exhibit(title, "", (), ())

    monkeypatch.setattr(paper_a_attacks, "EXHIBITS", {"the first": first})
    assert [exhibit.title for exhibit in run_attacks(progress=titles.append)] == ["the first"]


def test_all_includes_the_attacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[Path] = []

    def write(folder: Path, **_: object) -> list[Estimate]:
        written.append(folder.relative_to(tmp_path))
        return []

    for paper in (paper_a, paper_b, paper_a_attacks):
        monkeypatch.setattr(paper, "reproduce", write)
    run_successfully("reproduce", "all", "-o", str(tmp_path))
    assert written == [Path("a"), Path("b"), Path("attacks")]


def test_the_attacks_take_no_table() -> None:
    process = run_command("reproduce", "attacks", "-o", "x", "--quick")
    assert process.returncode == 2
    assert "apply to paper b only" in process.stderr
