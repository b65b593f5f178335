"""Benchmarks: what they import where, and what they compare."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


def test_a_peer_runs_in_an_environment_without_incrowd(tmp_path: Path) -> None:
    """pycanon stands for all peers: their environments hold what they need, and not us."""
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['incrowd'] = None\n")
    assert _anonymize("pycanon, check", tmp_path, {"PYTHONPATH": str(tmp_path)}) == 10


@pytest.mark.parametrize("way", ["incrowd", "incrowd publish"])
def test_our_ways_release_every_row(tmp_path: Path, way: str) -> None:
    assert _anonymize(way, tmp_path, {"XDG_STATE_HOME": str(tmp_path)}) == 10


def _anonymize(way: str, folder: Path, environment: dict[str, str]) -> int:
    """Return the rows that a way of ``kanonymity.py`` releases of ten."""
    table, ladder = folder / "t.csv", folder / "t_hierarchy_sex.csv"
    table.write_text("sex\n" + "female\nmale\n" * 5)
    ladder.write_text("female;*\nmale;*\n")
    job = {
        "name": "tiny", "table": str(table), "hierarchies": {"sex": str(ladder)},
        "algorithm": "ola", "k": 5, "checked": str(table),
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(BENCHMARKS / "kanonymity.py"),
         "--way", way, json.dumps(job)],
        capture_output=True, text=True, env={**os.environ, **environment},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-500:]
    *_, rows = json.loads(done.stdout.splitlines()[0])
    return int(rows)


def test_a_ratio_is_of_ways_that_do_the_same(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sample by hand is held against our sample, not against counts with each class once."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    monkeypatch.setattr(sys, "argv", ["safe.py"])
    safe = runpy.run_path(str(BENCHMARKS / "safe.py"))
    seconds = {way: (float(at), 0.5, 1000) for at, way in enumerate(safe["WAYS"], 3)}
    safe["print_comparison"](seconds, "rows", *safe["COMPARED"])
    last = capsys.readouterr().out.splitlines()[-1]
    assert safe["COMPARED"] == ("hand-written Polars", "incrowd, sample")
    assert f"{seconds['incrowd, sample'][0] / seconds['hand-written Polars'][0]:.2f}" in last
    assert "incrowd, sample" in last
    assert "hand-written Polars" in last
