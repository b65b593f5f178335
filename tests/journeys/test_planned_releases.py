"""The ledger that a spec names, and releases that are planned in it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.cli import run_command, run_successfully

import incrowd as ic
from incrowd.errors import IncrowdError
from incrowd.release.ledger import Ledger
from incrowd.release.verify import verify

SPEC = """
table: people.csv
ledger: {ledger}
columns:
  x: {{role: quasi, hierarchy: {{flat: {{values: [a, b]}}}}}}
release: {{{release}}}
"""
PLANNED = "method: safe, epsilon: 2, delta: 1.0e-6, releases: 4, levels: {x: 0}"
ALONE = "method: safe, epsilon: 0.5, delta: 1.0e-6, levels: {x: 0}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "people.csv").write_text("x\n" + "a\nb\n" * 300)
    return tmp_path


def write_spec(folder: Path, release: str, ledger: str = "people.ledger") -> str:
    path = folder / "spec.yaml"
    path.write_text(SPEC.format(release=release, ledger=ledger))
    return str(path)


def test_planned_releases_from_the_plan_to_the_last(folder: Path) -> None:
    spec, book = write_spec(folder, PLANNED), Ledger(folder / "people.ledger")
    missing = run_command("publish", spec, "-o", str(folder / "out"))
    assert (missing.returncode, "incrowd ledger budget" in missing.stderr) == (2, True)
    checked = run_command("check", spec)
    assert (checked.returncode, "incrowd ledger budget" in checked.stdout) == (1, True)
    book.set_budget(epsilon=2.5, delta=2e-6)
    unplanned = run_command("publish", spec, "-o", str(folder / "out"))
    assert (unplanned.returncode, "incrowd ledger plan" in unplanned.stderr) == (1, True)
    successfully = run_successfully("ledger", "plan", str(book.path), "--spec", spec)
    assert "(ε, δ) = (2, 1e-06), all releases together" in successfully
    assert f"incrowd publish {spec} -o FOLDER" in successfully
    assert "release 1 of 4 of planned block 1" in run_successfully("check", spec)
    for at in range(1, 5):
        done = run_command("publish", spec, "-o", str(folder / f"{at}"))
        assert f"release {at} of 4 of planned block 1" in done.stdout
        assert verify(folder / f"{at}") == []
    assert vars(book.total()) == {"epsilon": 2.0, "delta": 1e-6}
    fifth = run_command("publish", spec, "-o", str(folder / "5"))
    assert (fifth.returncode, "made all 4 releases" in fifth.stderr) == (1, True)
    other = run_command("publish", write_spec(folder, ALONE), "-o", str(folder / "other"), "--json")
    assert json.loads(other.stdout)["booking"]["planned"] is False
    assert vars(book.total()) == {"epsilon": 2.5, "delta": 2e-6}
    output = run_successfully("ledger", "show", str(book.path))
    assert "planned block, 4 of 4 releases made" in output
    assert "unplanned release" in output
    refused = run_command("check", write_spec(folder, ALONE))
    assert (refused.returncode, "δ is used up" in refused.stdout) == (1, True)


def test_a_spec_without_releases_is_planned_by_their_number(folder: Path) -> None:
    spec = write_spec(folder, "method: safe, draw: sample, k: 14, beta: 0.28, delta: 1.0e-7")
    book = Ledger(folder / "people.ledger")
    book.set_budget(epsilon=2, delta=1e-6)
    assert run_command("ledger", "plan", str(book.path), "--spec", spec).returncode == 2
    run_successfully("ledger", "plan", str(book.path), "--spec", spec, "--releases", "4")
    (block,) = book.spends()
    tight = ic.Accountant([block.event] * 4).epsilon(delta=4e-7)
    assert block.guarantee.delta == 4e-7
    assert tight <= block.guarantee.epsilon <= tight * 1.0001
    release = ic.publish(None, spec)
    assert release.booking is not None
    assert release.booking.is_planned


def test_the_ledger_of_a_spec_is_the_only_one(folder: Path) -> None:
    spec = write_spec(folder, ALONE)
    for name in ("people.ledger", "other.ledger"):
        Ledger(folder / name).set_budget(epsilon=1, delta=2e-6)
    other = run_command(
        "publish", spec, "-o", str(folder / "o"), "--ledger", str(folder / "other.ledger")
    )
    assert (other.returncode, "Ledger: the spec names" in other.stderr) == (2, True)
    same = ic.publish(None, spec, ledger=folder / "people.ledger")
    assert same.is_booked
    run_successfully("rehearse", spec, "-o", str(folder / "dry"), "--size", "500")
    assert len(Ledger(folder / "people.ledger").spends()) == 1
    assert Ledger(folder / "other.ledger").spends() == []


def test_what_a_ledger_cannot_count_is_refused(folder: Path) -> None:
    Ledger(folder / "people.ledger").set_budget(epsilon=1, delta=2e-6)
    spec = write_spec(folder, "method: k-anonymity, k: 5")
    with pytest.raises(IncrowdError, match="no ledger can account for it"):
        ic.publish(None, spec)
    assert "no ledger can account" in run_command("check", spec).stdout
    alone = {
        "columns": {"x": {"role": "quasi", "hierarchy": {"flat": {"values": ["a", "b"]}}}},
        "release": {"epsilon": 2, "delta": 1e-6, "releases": 4, "levels": {"x": 0}},
    }
    with pytest.raises(IncrowdError, match="needs a ledger"):
        ic.publish(folder / "people.csv", alone)
