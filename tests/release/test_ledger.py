"""Ledgers: what they protect, what may be spent, and releases that they do not count."""

from __future__ import annotations

import json
import shlex
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import polars as pl
import pytest
from support.cli import run_command, run_successfully
from support.findings import list_codes
from support.pinned_randomness import PinnedRandomness

import incrowd as ic
from incrowd.privacy.amplification import Guarantee
from incrowd.publication import Release, publish
from incrowd.release.history import History, name_ledger
from incrowd.release.ledger import ONE_ROW, BudgetError, Ledger, name_person_unit

COLUMNS = {
    "patient": {"role": "identifier"},
    "home": {"role": "identifier"},
    "x": {"role": "quasi", "hierarchy": {"flat": {"values": ["a", "b"]}}},
}
RELEASE = {"k": 20, "beta": 0.1, "delta": 1e-6, "levels": {"x": 0}}


def table(rows: int = 600) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "patient": [i // 2 for i in range(rows)],
            "home": [i // 4 for i in range(rows)],
            "x": ["a", "b"] * (rows // 2),
        }
    )


def made(
    folder: Path, unit: object = "one row per person", ledger: Ledger | None = None,
    people: pl.DataFrame | None = None,
) -> Release:  # fmt: skip
    spec = {"unit": unit, "columns": COLUMNS, "release": RELEASE}
    people = table() if people is None else people
    return publish(people, spec, output=folder, ledger=ledger, bits=PinnedRandomness(1))


def ledger(path: Path, epsilon: float = 5.0, delta: float = 1e-4) -> Ledger:
    book = Ledger(path)
    book.set_budget(epsilon=epsilon, delta=delta)
    return book


def test_releases_that_protect_different_units_are_not_added_up(tmp_path: Path) -> None:
    units: list[object] = ["one row per person", {"id": "patient"}, {"id": "home"}]
    for first in units:
        book = ledger(tmp_path / f"{units.index(first)}.ledger")
        made(tmp_path / f"first {units.index(first)}", first, book)
        for second in units:
            folder = tmp_path / f"{units.index(first)} {units.index(second)}"
            if second == first:
                made(folder, second, book)
                continue
            with pytest.raises(BudgetError, match="Use one unit per table and ledger"):
                made(folder, second, book)
            assert not folder.exists()
        assert len(book.spends()) == 2
    assert Ledger(tmp_path / "1.ledger").unit() == name_person_unit("patient")


def test_the_unit_can_be_set_before_the_first_release(tmp_path: Path) -> None:
    book = ledger(tmp_path / "table.ledger")
    assert book.unit() is None
    both = run_command("ledger", "unit", str(book.path), "--row", "--id", "x")
    assert (both.returncode, book.unit()) == (2, None)
    assert run_command("ledger", "unit", str(book.path), "--row").returncode == 0
    assert book.unit() == ONE_ROW
    with pytest.raises(BudgetError, match="Use one unit per table and ledger"):
        made(tmp_path / "out", {"id": "patient"}, book)
    made(tmp_path / "out", ledger=book)
    with pytest.raises(BudgetError, match="Use one unit per table and ledger"):
        book.set_unit(name_person_unit("patient"))


def test_a_raised_budget_is_confirmed_and_stays_on_record(tmp_path: Path) -> None:
    book = ledger(tmp_path / "table.ledger", epsilon=1, delta=1e-6)
    for epsilon, delta in ((1.1, 1e-6), (0.5, 1e-5)):
        with pytest.raises(BudgetError, match="would raise the budget of"):
            book.set_budget(epsilon=epsilon, delta=delta)
    book.set_budget(epsilon=0.5, delta=1e-6)  # to lower it takes nothing
    raised = ["ledger", "budget", str(book.path), "--epsilon", "2", "--delta", "1e-6"]
    assert run_command(*raised).returncode == 1
    assert book.budget().epsilon == 0.5
    assert run_command(*raised, "--raise").returncode == 0
    assert [item.epsilon for item in book.budgets()] == [1.0, 0.5, 2.0]
    output = run_successfully("ledger", "show", str(book.path))
    assert "(ε, δ) = (2, 1e-06), since" in output
    assert run_successfully("ledger", "show", str(book.path), "-v").count("Earlier budget") == 2
    successfully = run_successfully("ledger", "show", str(book.path), "--json")
    assert [item["epsilon"] for item in json.loads(successfully)["budgets"]] == [1.0, 0.5, 2.0]


def test_a_further_release_of_a_sample_is_asked_as_one(tmp_path: Path) -> None:
    book = ledger(tmp_path / "table.ledger")
    event = ic.SampledEvent(ic.SafeRelease(20, 0.1), 0.1)
    certified = Guarantee(ic.Accountant(event).epsilon(delta=1e-6), 1e-6)
    book.book([event], guarantee=certified)
    assert book.match_sampling(ic.SafeRelease(20, 0.1)) == event
    request = ("--k", "20", "--beta", "0.1", "--delta", "1e-6", "--json")
    answer = json.loads(run_successfully("ledger", "show", str(book.path), *request))
    assert answer["after_next_release"] == vars(
        book.total([book.compute_charge([event], certified)])
    )
    book.book([ic.SafeRelease(20, 0.1)])  # from here on nothing is amplified
    assert book.match_sampling(ic.SafeRelease(20, 0.1)) == ic.SafeRelease(20, 0.1)
    assert "nothing is amplified" in run_successfully("ledger", "show", str(book.path))


def test_a_table_is_recognized_however_it_was_released(tmp_path: Path) -> None:
    first, two = ledger(tmp_path / "one.ledger"), ledger(tmp_path / "two.ledger")
    assert made(tmp_path / "a", ledger=first).findings == ()
    assert made(tmp_path / "b", ledger=first).findings == ()  # counted there
    assert list_codes(made(tmp_path / "c").findings) == ["RELEASED_BEFORE"]
    for number in range(3):  # every time, not only the first
        for at, book in enumerate((first, two)):
            (warning,) = made(tmp_path / f"{number}{at}", ledger=book).findings
            assert warning.code == "RELEASED_OUTSIDE_LEDGER"
    other = table().with_columns(x=pl.lit("a"))
    assert made(tmp_path / "other", people=other).findings == ()


def test_a_memory_that_cannot_be_kept_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    assert not History().usable
    assert list_codes(made(tmp_path / "out").findings) == ["HISTORY_NOT_WRITABLE"]


REMEMBER = """
import sys
from incrowd.privacy.amplification import Guarantee
from incrowd.release.history import History
for number in range(40):
    History().remember_release(f"{sys.argv[1]} {number}")
"""


def test_nothing_is_forgotten_in_a_race(tmp_path: Path) -> None:
    racers = [subprocess.Popen([sys.executable, "-c", REMEMBER, name]) for name in ("ann", "bob")]
    assert [racer.wait() for racer in racers] == [0, 0]
    history = History()
    assert all(
        history.has_earlier_release(f"{name} {at}") for name in ("ann", "bob") for at in range(40)
    )
    assert history.has_earlier_release("ann 1", ledger=name_ledger(b"x"))
    assert not history.has_earlier_release("eve 1")


def test_a_ledger_without_a_budget_is_no_traceback(tmp_path: Path) -> None:
    book = ledger(tmp_path / "table.ledger")
    with closing(sqlite3.connect(book.path)) as database, database:
        database.execute("DELETE FROM budgets")
    with pytest.raises(ic.IncrowdError, match="has no budget"):
        made(tmp_path / "out", ledger=book)


def test_a_ledger_may_be_named_by_a_text(tmp_path: Path) -> None:
    path = tmp_path / "people.ledger"
    Ledger(str(path)).set_budget(epsilon=1.0, delta=1e-6)
    assert Ledger(str(path)).budget() == Ledger(path).budget()


def test_an_exhausted_budget_names_the_command_that_would_allow_the_release(tmp_path: Path) -> None:
    path = tmp_path / "my people.ledger"
    ledger = Ledger(path)
    ledger.set_budget(epsilon=1.0, delta=1e-5)
    ledger.book([ic.Mechanism(epsilon=1.0, delta=1e-6)])
    more = [ic.Mechanism(epsilon=0.5, delta=1e-6)]
    with pytest.raises(BudgetError, match="no ε is left") as refused:
        ledger.book(more)
    assert "smaller" not in str(refused.value)
    command = str(refused.value).partition("If those responsible agree: incrowd ")[2]
    run_successfully(*shlex.split(command))
    assert ledger.budget().delta == 1e-5
    ledger.book(more)
    with pytest.raises(BudgetError, match="no ε is left"):
        ledger.book(more)


def test_a_release_without_a_ledger_says_that_nothing_counts_it(tmp_path: Path) -> None:
    table().write_csv(tmp_path / "people.csv")
    spec = {"table": "people.csv", "columns": COLUMNS, "release": RELEASE}
    (tmp_path / "spec.yaml").write_text(json.dumps(spec))
    uncounted = "this release is not counted anywhere"
    path, ledger = str(tmp_path / "spec.yaml"), str(tmp_path / "people.ledger")
    assert uncounted in run_successfully("publish", path, "-o", str(tmp_path / "first"))
    dry_run = run_command("rehearse", path, "-o", str(tmp_path / "dry"), "--size", "600")
    assert uncounted not in dry_run.stdout
    run_successfully("ledger", "budget", ledger, "--epsilon", "9", "--delta", "1e-5")
    booked = run_command("publish", path, "-o", str(tmp_path / "next"), "--ledger", ledger)
    assert "booked as" in booked.stdout
    assert uncounted not in booked.stdout
