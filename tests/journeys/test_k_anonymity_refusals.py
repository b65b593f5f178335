"""What k-anonymity refuses, and that a refusal or an interrupt leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import polars as pl
import pytest
from support.cli import wait_for
from support.patients import COLUMNS, SMALL, released
from support.releases import files

from incrowd.cli.main import main
from incrowd.errors import IncrowdError
from incrowd.spec.file import SpecError, parse

pytestmark = pytest.mark.usefixtures("quick")

REFUSED: list[tuple[str, str, str, str]] = [
    ("k: 30", "", "", "The table has 20 rows, fewer than k = 30"),
    ("suppression: 0", "", "", "must give 'k' under 'release'"),
    ("k: 5", "", ", diversity: {distinct: 4}", "'s' cannot satisfy"),
    ("k: 5", "", ", diversity: {entropy: 3.5}", "'s' cannot satisfy"),
    ("k: 5, algorithm: mondrian", "", ", diversity: {distinct: 4}", "'s' cannot satisfy"),
    ("k: 5, suppression: 0, levels: {x: 0}", "", "", "No scheme satisfies"),
    ("k: 5, suppression: 0, levels: {x: [0, 0]}", "", "", "No scheme satisfies"),
    ("k: 5, levels: {x: 2}", "", "", "Level 2 is asked for column 'x', but its highest is 1"),
    ("k: 5, levels: {x: [0, 7]}", "", "", "Level 7 is asked for column 'x'"),
    ("k: 5, levels: {s: 1}", "", ", hierarchy: flat", "'s'"),  # or it would be shown as it is
    ("k: 5, algorithm: cluster", "", ", diversity: {distinct: 2}", "do not go with"),
    ("k: 5, algorithm: duplicate", "", ", closeness: {equal: 0.5}", "do not go with"),
    ("k: 5", ", confirm: [role]", "", "nobody has confirmed"),
]


@pytest.mark.parametrize(("settings", "quasi", "sensitive", "part"), REFUSED)
def test_what_cannot_be_published_leaves_nothing(
    tmp_path: Path, settings: str, quasi: str, sensitive: str, part: str
) -> None:
    table = pl.DataFrame({"x": [f"v{i}" for i in range(20)], "s": ["p", "q", "r", "p"] * 5})
    with pytest.raises(IncrowdError) as error:
        released(table, tmp_path / "out", settings, SMALL % (quasi, sensitive))
    assert part in str(error.value)
    assert "\n" not in str(error.value)
    assert [path.name for path in tmp_path.iterdir() if path.name != "state"] == []


def test_a_noisy_column_and_a_ledger_are_refused(tmp_path: Path, patients: pl.DataFrame) -> None:
    noisy = COLUMNS.replace("weight: {role: sensitive}", "weight: {role: noisy, precision: 0.1}")
    with pytest.raises(IncrowdError, match="'weight' is noisy, which belongs to .*'k-epsilon'"):
        released(patients, tmp_path / "out", "k: 5", noisy)
    with pytest.raises(IncrowdError, match="not differentially private, so a ledger cannot"):
        released(patients, tmp_path / "out", "k: 5", ledger=tmp_path / "ledger")
    assert [path.name for path in tmp_path.iterdir() if path.name != "state"] == []


def test_no_quasi_column_is_refused(tmp_path: Path) -> None:
    with pytest.raises(IncrowdError, match="publishes no quasi column"):
        released(
            pl.DataFrame({"s": [1, 2]}), tmp_path / "out", "k: 2", "columns: {s: {role: sensitive}}"
        )


def test_a_failure_without_a_folder_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    with pytest.raises(IncrowdError, match="fewer than k"):
        released(pl.DataFrame({"x": ["a"], "s": [1]}), None, "k: 5", SMALL % ("", ""))
    assert list((tmp_path / "temporary").iterdir()) == []


def test_what_failed_was_not_released(tmp_path: Path) -> None:
    table = pl.DataFrame({"x": [f"v{i}" for i in range(20)], "s": ["p"] * 20})
    with pytest.raises(IncrowdError, match="No scheme"):
        released(table, tmp_path / "a", "k: 5, suppression: 0, levels: {x: 0}", SMALL % ("", ""))
    assert released(table, tmp_path / "b", "k: 5", SMALL % ("", "")).warnings == ()
    again = released(table, tmp_path / "c", "k: 5", SMALL % ("", ""))
    assert "was released before" in again.warnings[0]


# The spec ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("release", "sensitive", "part"),
    [
        ("method: k-anonymity, k: 5, cut: median", "", "'cut' does not belong to the algorithm"),
        ("method: k-anonymity, k: 5, algorithm: mondrian, loss: entropy", "", "'loss' does not"),
        ("method: k-anonymity, k: 5, algorithm: mondrian, levels: {x: 1}", "", "'levels' do not"),
        ("method: k-anonymity, k: 5, algorithm: cluster, suppression: 0.1", "", "'suppression' d"),
        ("method: k-anonymity, k: 5, algorithm: duplicate, candidates: all", "", "'candidates' do"),
        ("method: k-anonymity, k: 5, epsilon: 1", "", "'epsilon' does not belong to method"),
        ("method: k-anonymity, k: 5, beta: 0.1", "", "'beta' does not belong to method"),
        ("method: k-anonymity, k: 5, levels: {x: [2, 1]}", "", "levels of 'x' must rise"),
        ("method: k-anonymity, k: 5, levels: {y: 1}", "", "names the column 'y'"),
        ("method: k-anonymity, k: 0", "", "release.k"),
        ("method: k-anonymity, k: 5, suppression: 1.5", "", "release.suppression"),
        ("method: k-anonymity, k: 5, algorithm: mondrain", "", "did you mean 'mondrian'?"),
        ("method: safe, epsilon: 1, delta: 1.0e-6, algorithm: ola", "", "'algorithm' does not"),
        ("method: safe, epsilon: 1, delta: 1.0e-6, suppression: 0.1", "", "'suppression' does n"),
        ("method: k-anonymity, k: 5", "diversity", "'diversity' belongs to role 'sensitive'"),
        ("method: k-anonymity, k: 5", "closeness", "'closeness' belongs to role 'sensitive'"),
    ],
)
def test_what_does_not_go_together_is_said_once(release: str, sensitive: str, part: str) -> None:
    rule = f", {sensitive}: {{}}" if sensitive else ""
    with pytest.raises(SpecError) as error:
        parse(f"columns: {{x: {{role: quasi, hierarchy: flat{rule}}}}}\nrelease: {{{release}}}")
    (problem,) = error.value.problems
    assert part in str(problem)
    assert problem.line is not None


# The command ------------------------------------------------------------------------------------


@pytest.fixture
def on_disk(patients: pl.DataFrame, tmp_path: Path) -> Path:
    folder = tmp_path / "disk"
    folder.mkdir()
    patients.write_parquet(folder / "patients.parquet")
    settings = "release: {method: k-anonymity, k: 5, format: csv}"
    (folder / "spec.yaml").write_text(f"table: patients.parquet\n{COLUMNS}\n{settings}\n")
    return folder


def test_the_command_publishes_and_verifies(
    on_disk: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*arguments: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["incrowd", *arguments])
        with pytest.raises(SystemExit) as stop:
            main()
        shown = capsys.readouterr()
        return stop.value.code, shown.out + shown.err  # type: ignore[return-value]

    spec, out = str(on_disk / "spec.yaml"), on_disk / "out"
    code, said = run("publish", spec, "-o", str(out))
    assert code == 0
    for part in ("classes", "NOT differential privacy", "Suppressed", "Levels: zip "):
        assert part in said
    assert files(out) == [
        "README.md", "certificate.html", "certificate.json", "data.csv",
        "scheme/birth_year.csv", "scheme/sex.csv",
    ]  # fmt: skip
    code, said = run("verify", str(out))
    assert code == 0
    assert "NOT differential privacy" in said
    code, said = run("publish", spec, "-o", str(on_disk / "b"), "--ledger", str(on_disk / "l"))
    assert code == 2
    assert "without --ledger" in said
    assert not (on_disk / "b").exists()
    assert not (on_disk / "l").exists()


@pytest.mark.parametrize("step", ["count", "search", "write"])
def test_an_interrupt_leaves_nothing_behind(on_disk: Path, step: str) -> None:
    arguments = ["publish", str(on_disk / "spec.yaml"), "-o", str(on_disk / "out")]
    before = sorted(path.name for path in on_disk.iterdir())
    with subprocess.Popen(
        [sys.executable, "-m", "incrowd", *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "INCROWD_PAUSE_AT": step},
    ) as process:  # fmt: skip
        wait_for(process, step)
        process.send_signal(signal.SIGINT)
        _, complaint = process.communicate(timeout=60)
    assert process.returncode not in (0, 3)
    assert "Traceback" not in complaint
    assert sorted(path.name for path in on_disk.iterdir()) == before
