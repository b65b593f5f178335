"""Rehearsals: the whole journey by a spec alone, which nobody can take for a release."""

from __future__ import annotations

import builtins
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from support.cli import run_command
from support.findings import list_verify_messages
from support.readers import load_certificate, read_readme, reseal_certificate

from incrowd.curate.draft.draft import draft
from incrowd.curate.rehearse import rehearse
from incrowd.engine.source import open_table
from incrowd.errors import IncrowdError
from incrowd.methods.fictional import make_fictional_table
from incrowd.publication import Release
from incrowd.spec.file import SpecFile, parse_spec, read_spec_file

pytestmark = pytest.mark.usefixtures("settled_once")

SAID = "This is a dry run of a fictional table; it guarantees nothing."
COLUMNS = """
columns:
  who: {role: identifier}
  gone: {role: drop}
  sex: {role: quasi, hierarchy: {flat: {values: [a, b]}}, confirm: [role, hierarchy]}
  age: {role: quasi, hierarchy: {intervals: {from: -5, to: 34, widths: [5, 20]}}}
  zip: {role: quasi, hierarchy: {mask: {length: 3, alphabet: "0123"}}}
  job: {role: quasi, hierarchy: flat}
  race: {role: quasi, hierarchy: {csv: race.csv}, confirm: [hierarchy]}
  born: {role: quasi, hierarchy: {dates: {from: 2020-01-01, to: 2021-12-31}},
         written: {nulls: ["?"], dates: day-month-year}}
  ill: {role: sensitive, hierarchy: {flat: {values: [x, y, z]}}, written: {nulls: ["NA"]}}
"""
SAFE = "epsilon: 1, delta: 1.0e-6"
NAMES = {"sex", "age", "zip", "job", "race", "born", "ill"}


@pytest.fixture(autouse=True)
def empty_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The record of what was released is neither read nor written by any rehearsal."""
    state = tmp_path / "record"
    state.mkdir()
    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    yield
    assert list(state.iterdir()) == []


def spec(folder: Path, release: str = SAFE, columns: str = COLUMNS, more: str = "") -> SpecFile:
    """A spec whose table is not there."""
    (folder / "race.csv").write_text("red;warm;*\nblue;cold;*\ngreen;cold;*\n", encoding="utf-8")
    path = folder / "spec.yaml"
    text = f"table: nowhere.parquet\n{more}\n{columns}\nrelease: {{{release}}}\n"
    path.write_text(text, encoding="utf-8")
    return read_spec_file(path)


def assert_rehearsed(release: Release, folder: Path) -> None:
    certificate = release.certificate
    assert certificate.rehearsal is True
    assert certificate.guarantee.statement[0].key == "rehearsal"
    assert f"1. {certificate.guarantee.statement[0].text}" in read_readme(folder)
    assert list_verify_messages(folder) == [SAID]
    assert load_certificate(folder) == certificate
    assert not release.is_booked


# What a rehearsal can do -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "release",
    [
        SAFE,
        f"{SAFE}, draw: sample",
        f"{SAFE}, draw: sample, scheme: mondrian",
        f"{SAFE}, slices: [[sex, zip], [age, race, born], [job, ill]]",
        f"{SAFE}, rows: counted, format: csv",
        "method: k-anonymity, k: 5",
        "method: k-anonymity, k: 5, algorithm: mondrian",
        "method: k-anonymity, k: 5, suppressed: starred, suppression: 0.1",
    ],
)
def test_every_method_is_rehearsed_by_a_draft_without_its_table(
    tmp_path: Path, release: str
) -> None:
    done = rehearse(spec(tmp_path, release), size=4000, output=tmp_path / "out")
    assert_rehearsed(done, tmp_path / "out")
    tables = done.certificate.tables
    assert {name for table in tables for name in table.scheme} | set(done.certificate.kept) == NAMES
    assert not done.is_empty
    assert (tmp_path / "out.curator" / "report.html").exists()


def test_noise_is_rehearsed_within_its_bounds(tmp_path: Path) -> None:
    columns = """
columns:
  sex: {role: quasi, hierarchy: {flat: {values: [a, b]}}}
  weight: {role: noisy, precision: 0.5, bounds: [40, 160], confirm: [bounds, precision]}
  height: {role: noisy, precision: 1}
"""
    release = "method: k-epsilon, k: 5, epsilon: 1"
    done = rehearse(spec(tmp_path, release, columns), size=300, output=tmp_path / "out")
    assert_rehearsed(done, tmp_path / "out")
    assert set(done.certificate.noisy) == {"weight", "height"}
    weights = (
        make_fictional_table(spec(tmp_path, release, columns), 2000)
        .to_frame()["weight"]
        .cast(float)
    )
    assert 40 <= weights.min() < 45
    assert 155 < weights.max() <= 160


@pytest.mark.parametrize("unit", ["{id: who}", "{id: who, without_id: drop}"])
def test_people_are_told_by_their_id(tmp_path: Path, unit: str) -> None:
    file = spec(tmp_path, more=f"unit: {unit}")
    done = rehearse(file, size=2000, output=tmp_path / "out")
    assert_rehearsed(done, tmp_path / "out")
    assert done.certificate.guarantee.unit == "one person"
    frame = make_fictional_table(file, 50).to_frame()
    assert frame["who"].n_unique() == len(frame) == 50


def test_an_id_that_is_shown_otherwise_or_dropped_is_still_one(tmp_path: Path) -> None:
    columns = (
        "columns: {who: {role: drop}, sex: {role: quasi, hierarchy: {flat: {values: [a, b]}}}}"
    )
    file = spec(tmp_path, "method: k-anonymity, k: 5", columns, more="unit: {id: who}")
    assert_rehearsed(rehearse(file, size=100, output=tmp_path / "out"), tmp_path / "out")


def test_made_up_values_are_those_of_the_domain(tmp_path: Path) -> None:
    """And the i-th is 1/i times as frequent as the first: red, blue and green are 6 to 3 to 2."""
    frame = make_fictional_table(spec(tmp_path), 11_000).to_frame()
    assert set(frame.columns) == {"who", *NAMES}
    assert set(frame["race"]) == {"red", "blue", "green"}
    counts = [int((frame["race"] == value).sum()) for value in ("red", "blue", "green")]
    for count, expected in zip(counts, (6000, 3000, 2000), strict=True):
        assert abs(count - expected) < 6 * expected**0.5
    assert frame["zip"].str.contains("^[0-3]{3}$").all()
    assert frame["age"].cast(int).is_between(-5, 34).all()
    assert frame["born"].str.contains(r"^202[01]-\d\d-\d\d$").all()
    assert frame["job"].n_unique() == 10
    assert frame["who"].n_unique() == 11_000


@pytest.mark.parametrize("role", ["drop", "identifier"])
def test_places_are_made_up_without_their_coordinates(tmp_path: Path, role: str) -> None:
    columns = f"""
columns:
  lat: {{role: {role}}}
  lon: {{role: {role}}}
  place:
    role: quasi
    hierarchy:
      geo: {{lat: lat, lon: lon, sizes: [1, 5], south: 0, north: 10, west: 0, east: 10}}
"""
    file = spec(tmp_path, "method: k-anonymity, k: 5", columns)
    assert make_fictional_table(file, 20).columns == ("place",)
    assert_rehearsed(rehearse(file, size=500, output=tmp_path / "out"), tmp_path / "out")


def test_two_rehearsals_differ(tmp_path: Path) -> None:
    file = spec(tmp_path)
    item, two = (make_fictional_table(file, 500).to_frame() for _ in range(2))
    assert not item.equals(two)


def test_a_draft_of_a_table_is_rehearsed_as_it_is(tmp_path: Path) -> None:
    """Straight from init, with nothing confirmed and the table taken away."""
    table = pl.DataFrame({"n": range(400), "sex": ["a", "b"] * 200, "age": [20, 30, 40, 50] * 100,
                          "day": ["2020-03-04", "2020-05-06"] * 200})  # fmt: skip
    text = draft(open_table(table), name="nowhere.csv").yaml()
    (tmp_path / "spec.yaml").write_text(text, encoding="utf-8")
    file = read_spec_file(tmp_path / "spec.yaml")
    assert file.spec.unconfirmed_entries
    assert_rehearsed(rehearse(file, size=3000, output=tmp_path / "out"), tmp_path / "out")


def test_without_a_folder_it_is_temporary(tmp_path: Path) -> None:
    done = rehearse(spec(tmp_path), size=1000)
    folder = done.folder
    assert list_verify_messages(folder) == [SAID]
    del done
    assert not folder.exists()


# What it never opens ---------------------------------------------------------------------------


def test_the_table_and_the_record_are_never_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table that is there is not looked at, however it is opened, and no key is made."""
    file = spec(tmp_path)
    trap = tmp_path / "nowhere.parquet"
    trap.write_bytes(b"PAR1 nobody reads this")
    opened: list[str] = []
    plain = builtins.open

    def watched(name: Any, *rest: Any, **more: Any) -> Any:
        opened.append(os.fspath(name) if not isinstance(name, int) else "")
        return plain(name, *rest, **more)

    monkeypatch.setattr(builtins, "open", watched)
    before = trap.stat().st_atime_ns
    done = rehearse(file, size=1000, output=tmp_path / "out")
    assert_rehearsed(done, tmp_path / "out")
    assert not [name for name in opened if "nowhere" in str(name)]
    assert trap.stat().st_atime_ns == before


# How many people -------------------------------------------------------------------------------


def test_the_size_is_that_of_the_spec_unless_another_is_given(tmp_path: Path) -> None:
    release = "method: k-anonymity, k: 1, algorithm: mondrian"
    columns = "columns: {sex: {role: quasi, hierarchy: {flat: {values: [a, b]}}}}"
    stated = spec(tmp_path, release, columns, more="size: 321")
    for size, rows in ((None, 321), (54, 54)):
        done = rehearse(stated, size=size, output=tmp_path / f"out{rows}")
        assert done.certificate.table.release.rows == rows


@pytest.mark.parametrize(
    ("more", "message"), [("", "people is missing"), ("size: public", "would count the table")]
)
def test_without_a_size_there_is_one_clear_message(tmp_path: Path, more: str, message: str) -> None:
    with pytest.raises(IncrowdError, match=message):
        rehearse(spec(tmp_path, more=more), output=tmp_path / "out")
    done = run_command("rehearse", str(tmp_path / "spec.yaml"), "-o", str(tmp_path / "out"))
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "--size NUMBER" in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("size", [0, -1])
def test_nobody_is_nobody_to_rehearse_with(tmp_path: Path, size: int) -> None:
    with pytest.raises(IncrowdError, match="size"):
        rehearse(spec(tmp_path), size=size, output=tmp_path / "out")
    assert not (tmp_path / "out").exists()


# Nobody takes it for a release -----------------------------------------------------------------


def test_the_commands_say_that_it_is_a_rehearsal(tmp_path: Path) -> None:
    path = spec(tmp_path).path
    done = run_command("rehearse", str(path), "-o", str(tmp_path / "out"), "--size", "3000")
    assert done.returncode == 0, done.stderr
    first = done.stdout.splitlines()[0]
    assert "dry run" in first.lower()
    assert "fictional table" in first
    command = run_command("verify", str(tmp_path / "out"), columns=1000)
    assert command.returncode == 1
    assert SAID in command.stdout + command.stderr
    verdict = run_command("verify", str(tmp_path / "out"), "--json")
    assert verdict.returncode == 1
    assert json.loads(verdict.stdout)["ok"] is False
    again = run_command(
        "rehearse", str(path), "-o", str(tmp_path / "two"), "--size", "3000", "--json"
    )
    assert json.loads(again.stdout)["rehearsal"] is True


def test_a_rehearsal_that_shows_nothing_ends_as_an_empty_release_does(tmp_path: Path) -> None:
    path = spec(tmp_path).path
    done = run_command("rehearse", str(path), "-o", str(tmp_path / "out"), "--size", "3")
    assert done.returncode == 4
    assert load_certificate(tmp_path / "out").rehearsal is True


def test_a_rehearsal_cannot_be_renamed_without_its_words(tmp_path: Path) -> None:
    """Whoever takes the mark away has to write the statement again, and the page."""
    rehearse(spec(tmp_path), size=3000, output=tmp_path / "out")
    certificate = load_certificate(tmp_path / "out")
    bare = certificate.model_copy(update={"rehearsal": None}).with_seal()
    (tmp_path / "out" / "certificate.json").write_bytes(bare.to_canonical_json())
    problems = list_verify_messages(tmp_path / "out")
    assert "The statement differs from what the events guarantee." in problems
    assert "The file 'README.md' differs from the certificate." in problems


def test_made_up_rows_with_an_honest_looking_certificate_are_a_release_that_nobody_can_tell(
    tmp_path: Path,
) -> None:
    """A certificate tells what was done, not to whom; only a signature tells who says so."""
    rehearse(spec(tmp_path), size=3000, output=tmp_path / "out")
    certificate = load_certificate(tmp_path / "out")
    reseal_certificate(tmp_path / "out", certificate.model_copy(update={"rehearsal": None}))
    assert list_verify_messages(tmp_path / "out") == []


def test_older_formats_know_no_rehearsal(tmp_path: Path) -> None:
    rehearse(spec(tmp_path), size=3000, output=tmp_path / "out")
    certificate = load_certificate(tmp_path / "out")
    older = certificate.model_copy(update={"format": 3}).with_seal()
    (tmp_path / "out" / "certificate.json").write_bytes(older.to_canonical_json())
    assert len(list_verify_messages(tmp_path / "out")) == 1


def test_rehearse_is_not_for_a_spec_that_would_be_refused(tmp_path: Path) -> None:
    with pytest.raises(IncrowdError, match="release"):
        rehearse(parse_spec("columns: {x: {role: quasi, hierarchy: flat}}"), size=10)


def test_findings_about_fictional_people_say_so(tmp_path: Path) -> None:
    spec(tmp_path, "epsilon: 0.1, delta: 0.01, k: 20", more="size: 30")
    done = run_command("rehearse", str(tmp_path / "spec.yaml"), "-o", str(tmp_path / "dry"))
    lines = [line for line in done.stderr.splitlines() if line.endswith("]")]
    fictional = [line for line in lines if "In the fictional table: " in line]
    assert any("[RELEASE_LIKELY_EMPTY]" in line for line in fictional)
    assert [line for line in lines if "[DELTA_TOO_LARGE]" in line]
    assert not [line for line in fictional if "[DELTA_TOO_LARGE]" in line]
