"""What is left in a ledger, what a release would take of it, and which files are ledgers."""

from __future__ import annotations

import math
import sqlite3
from pathlib import Path

import pytest

from incrowd.errors import IncrowdError
from incrowd.methods.spec_ledger import list_ledgers, name_unit, preview_budget
from incrowd.privacy.amplification import Guarantee
from incrowd.privacy.events import Composition, GeometricCounts, SafeRelease
from incrowd.release.ledger import ONE_ROW, Ledger, name_person_unit
from incrowd.spec.file import parse_spec

EVENT = SafeRelease(20, 0.3)


def made(path: Path, epsilon: float = 3.0) -> Ledger:
    ledger = Ledger(path)
    ledger.set_budget(epsilon=epsilon, delta=1e-4)
    return ledger


def test_what_is_spent_and_left_before_and_after_a_release(tmp_path: Path) -> None:
    ledger = made(tmp_path / "book")
    certified = Guarantee(0.5, 2e-5)
    before = preview_budget(ledger.path, [EVENT], guarantee=certified)
    assert (before.releases, before.spent, before.remaining_epsilon, before.remaining_delta) == (
        0,
        0.0,
        3.0,
        1e-4,
    )
    assert (before.cost, before.after, before.after_delta) == (0.5, 0.5, 2e-5)
    assert not before.refused
    assert before.findings()[-1].code == "LEDGER_FITS"
    assert "an unplanned release" in before.findings()[-1].message
    assert ledger.spends() == []
    ledger.book([EVENT], guarantee=certified)
    after = preview_budget(ledger.path, [EVENT], guarantee=certified)
    assert (after.releases, after.spent, after.remaining_epsilon, after.cost) == (1, 0.5, 2.5, 0.5)
    assert (after.spent_delta, after.after_delta) == (2e-5, 4e-5)


def test_a_planned_release_costs_nothing_more(tmp_path: Path) -> None:
    ledger = made(tmp_path / "book")
    ledger.plan(EVENT, releases=2, guarantee=Guarantee(3.0, 1e-4))
    preview = preview_budget(ledger.path, [EVENT], guarantee=Guarantee(0.5, 1e-5), planned=True)
    assert (preview.cost, preview.remaining_epsilon, preview.releases) == (0.0, 0.0, 0)
    assert "release 1 of 2 of planned block 1" in str(preview.findings()[-1])


def test_what_does_not_fit_says_so(tmp_path: Path) -> None:
    ledger = made(tmp_path / "book", epsilon=0.01)
    result = preview_budget(ledger.path, [EVENT])
    assert "nothing was released" in result.refused
    assert result.after is not None
    assert result.after > 0.01


def test_what_no_epsilon_is_enough_for_costs_without_bounds(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "book")
    ledger.set_budget(epsilon=1, delta=1e-9)
    result = preview_budget(ledger.path, [SafeRelease(2, 0.5)])
    assert result.after == math.inf
    assert result.cost == math.inf
    assert result.refused


def test_releases_of_another_unit_are_refused(tmp_path: Path) -> None:
    ledger = made(tmp_path / "book", epsilon=100)
    ledger.book([EVENT])
    assert (
        "Use one unit per table and ledger"
        in preview_budget(ledger.path, [EVENT], name_person_unit("person")).refused
    )
    assert not preview_budget(ledger.path, [EVENT], ONE_ROW).refused


def test_without_events_nothing_is_asked(tmp_path: Path) -> None:
    result = preview_budget(made(tmp_path / "book").path, [])
    assert result.after is None
    assert result.cost is None


def test_several_events_are_one_release(tmp_path: Path) -> None:
    several = [GeometricCounts(20, 0.5), GeometricCounts(20, 0.5)]
    result = preview_budget(made(tmp_path / "book").path, several)
    other = made(tmp_path / "other")
    assert result.after == other.total([other.compute_charge([Composition(several)])]).epsilon


def test_the_unit_is_that_of_the_spec() -> None:
    columns = "columns: {a: {role: identifier}}"
    assert name_unit(parse_spec(columns).spec) == ONE_ROW
    assert name_unit(parse_spec(f"unit: {{id: a}}\n{columns}").spec) == name_person_unit("a")


def test_ledgers_are_found_by_what_they_hold(tmp_path: Path) -> None:
    made(tmp_path / "b.ledger")
    made(tmp_path / "A.sqlite")
    (tmp_path / "table.csv").write_text("a,b\n")
    (tmp_path / "SQLite format 3").write_bytes(b"SQLite format 3\0" + b"rubbish" * 99)
    sqlite3.connect(tmp_path / "other.db").execute("CREATE TABLE budgets (x)").connection.close()
    (tmp_path / "folder").mkdir()
    assert [path.name for path in list_ledgers(tmp_path)] == ["A.sqlite", "b.ledger"]


def test_a_ledger_that_is_missing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(IncrowdError, match="not found"):
        preview_budget(tmp_path / "none", [EVENT])
