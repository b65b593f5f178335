"""The commands that describe a release: questions on one screen, files, and what is asserted."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import pytest
from support.cli import run_command
from support.metadata import publish_described

SPEC = "columns:\n  a: {role: drop}\n"


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return publish_described("counts-csv", tmp_path_factory.mktemp("commands"))


def test_questions_stand_on_one_screen_and_answers_are_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text(SPEC)
    monkeypatch.setattr("sys.stdin", StringIO("1\nVoters\n4\nhelth\n4\nhealth\n99\n\n"))
    result = run_command("confirm", str(path), "--about")
    assert result.returncode == 0
    assert "about:\n  title: Voters\n  theme: health\n" in path.read_text()
    first, *_ = result.stdout.split("Number of a question")
    assert first.count("not stated") == 18
    assert len(first.splitlines()) <= 24
    assert "Did you mean 'health'?" in result.stdout
    assert "Name a number from 1 to 18." in result.stdout
    assert "describe: [croissant" in result.stdout


def test_verify_lists_what_is_asserted(described: Path) -> None:
    result = run_command("verify", str(described))
    assert result.returncode == 0
    assert "by the curator, and not proved: title, description" in result.stdout
    document = json.loads(run_command("verify", str(described), "--json").stdout)
    assert "epsilon_reason" in document["asserted"]


def test_a_release_is_described_later(described: Path, tmp_path: Path) -> None:
    result = run_command("describe", str(described), "-o", str(tmp_path / "files"))
    assert result.returncode == 0
    assert {path.name for path in (tmp_path / "files").iterdir()} >= {"dcat.ttl", "codebook.xml"}
    for path in (tmp_path / "files").iterdir():
        assert path.name in result.stdout
    again = run_command("describe", str(described), "-o", str(tmp_path / "files"))
    assert again.returncode == 2
    json_result = run_command(
        "describe", str(described), "-o", str(tmp_path / "one"), "--format", "dcat", "--json"
    )
    assert sorted(json.loads(json_result.stdout)["files"]) == [
        "assertions.json", "dcat.jsonld", "dcat.ttl",
    ]  # fmt: skip
