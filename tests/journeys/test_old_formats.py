"""Releases of every format of certificate, made by the version that wrote it, verify for good.

``formats/N`` holds folders as publishers handed them out. What is expected of each is said here;
a folder that is not named is to hold.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from incrowd.release.certificate import FORMAT, Certificate
from incrowd.release.verify import read_certificate, verify
from incrowd.ui.cli import main

FOLDERS = sorted(
    path for path in (Path(__file__).parents[1] / "formats").glob("*/*") if path.is_dir()
)
FALSE = {
    "1/already-sampled": ["the events give delta = 0.", "people know their own"],
    "1/seeded": ["NOT private", "holds 'curator', which is private"],
    "2/seeded": ["NOT private"],
    "3/seeded": ["NOT private"],
    "4/seeded": ["NOT private"],
    "4/rehearsal": ["This is a rehearsal"],
    "5/seeded": ["NOT private"],
    "5/rehearsal": ["This is a rehearsal"],
}


def name_of(folder: Path) -> str:
    return f"{folder.parent.name}/{folder.name}"


@pytest.mark.parametrize("folder", FOLDERS, ids=name_of)
def test_a_release_verifies_as_its_format_says(folder: Path) -> None:
    problems = verify(folder)
    expected = FALSE.get(name_of(folder), [])
    for words in expected:
        assert any(words in problem for problem in problems), problems
    if not expected:
        assert problems == []


def test_there_is_a_folder_of_every_method_in_every_format() -> None:
    for number in range(1, FORMAT + 1):
        certificates = [
            read_certificate(folder) for folder in FOLDERS if folder.parent.name == str(number)
        ]
        assert {known.method for known in certificates} == {"safe", "k-anonymity", "k-epsilon"}
        assert all((known.format or 1) == number for known in certificates)
        assert {known.slices is None for known in certificates} == {True, False}
        assert {known.signature is None for known in certificates} == {True, False}
        assert {table.release.form for known in certificates for table in known.tables} == {
            "expanded", "weighted",
        }  # fmt: skip
        assert {known.guarantee.unit for known in certificates} == {"one row", "one person"}


def test_what_format_2_knows_does_not_pass_as_format_1() -> None:
    folder = next(path for path in FOLDERS if name_of(path) == "1/safe-fixed")
    plain = json.loads((folder / "certificate.json").read_text())
    plain["guarantee"]["without_id"] = "dropped"
    with pytest.raises(ValueError, match="belongs to the unit 'one person' of format 2"):
        Certificate.model_validate_json(json.dumps(plain))


def test_the_command_says_what_an_old_format_does_not_show(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = next(path for path in FOLDERS if name_of(path) == "1/safe-fixed")
    monkeypatch.setattr(sys, "argv", ["incrowd", "verify", str(folder)])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 0
    assert "hidden bytes and the order of rows were not checked" in capsys.readouterr().out


def test_a_format_that_is_newer_than_this_version_is_named(tmp_path: Path) -> None:
    (tmp_path / "certificate.json").write_text(f'{{"format":{FORMAT + 1},"new":[]}}\n')
    (problem,) = verify(tmp_path)
    assert problem.startswith(f"The certificate is of format {FORMAT + 1}, and this version")
    (tmp_path / "certificate.json").write_text('{"format":0}\n')
    (problem,) = verify(tmp_path)
    assert problem.startswith("The certificate is not valid: format: ")
