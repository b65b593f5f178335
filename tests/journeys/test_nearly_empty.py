"""A release that shows hardly anything says so, and its exit status is that of an empty one."""

from __future__ import annotations

import json
import random
from pathlib import Path

import polars as pl
from support.cli import run_command

SPEC = """\
table: t.csv
columns:
  town: {role: quasi, hierarchy: flat}
  sex: {role: quasi, hierarchy: flat}
release: {method: safe, epsilon: 1.0, delta: 1.0e-6, draw: counts, scheme: fixed, levels: {LEVELS}}
"""


def release(folder: Path, levels: str) -> tuple[int, str, dict[str, object]]:
    """Publish 3,000 people of whom 60 live in one town and all others nearly alone."""
    draw = random.Random(1)
    towns = ["Ulm" if at < 60 else f"hamlet {at}" for at in range(3000)]
    sexes = [draw.choice(["f", "m"]) for _ in towns]
    pl.DataFrame({"town": towns, "sex": sexes}).write_csv(folder / "t.csv")
    (folder / "spec.yaml").write_text(SPEC.replace("{LEVELS}", levels), encoding="utf-8")
    done = run_command("publish", str(folder / "spec.yaml"), "-o", str(folder / "out"), "--json")
    return done.returncode, done.stderr, json.loads(done.stdout)


def test_a_release_of_a_few_rows_ends_as_an_empty_one(tmp_path: Path) -> None:
    status, text, summary = release(tmp_path, "{town: 0, sex: 1}")
    assert status == 4
    assert "are published, less than 5 %" in text
    assert "5 %" in text
    assert (summary["empty"], summary["nearly_empty"]) == (False, True)


def test_a_release_of_most_rows_is_done(tmp_path: Path) -> None:
    status, text, summary = release(tmp_path, "{town: 1, sex: 0}")
    assert (status, summary["nearly_empty"]) == (0, False)
    assert "Hardly" not in text
