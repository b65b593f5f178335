"""A person within a quarter: parts of a table, one ledger, parallel composition."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from support.unjudged import publish_unjudged

from incrowd.curate.rehearse import rehearse
from incrowd.errors import IncrowdError
from incrowd.privacy.amplification import Guarantee
from incrowd.privacy.events import Mechanism
from incrowd.privacy.filter import Charge
from incrowd.privacy.parallel import part_charges_fit, total_charges
from incrowd.release.ledger import BudgetError, Ledger, name_period_unit, name_person_unit
from incrowd.release.verify import verify
from incrowd.spec.file import load_spec
from incrowd.spec.period import EXAMPLES, find_first_day, name_period


def make_visits(quarter: int, rows: int = 3000) -> pl.DataFrame:
    draws = np.random.default_rng(quarter)
    first = dt.date(2026, 3 * quarter - 2, 1)
    return pl.DataFrame(
        {
            "patient": [f"p{at}" for at in draws.integers(0, 1200, rows)],
            "ward": draws.choice(["eye", "ear"], rows),
            "visit": [first + dt.timedelta(days=int(at)) for at in draws.integers(0, 85, rows)],
        }
    )


def make_spec(part: str, **more: Any) -> dict[str, Any]:
    return {
        "unit": {
            "id": "patient", "rows": 2, "period": {"column": "visit", "every": "quarter"},
        },
        "part": {"column": "visit", "value": part},
        "columns": {
            "patient": {"role": "identifier"}, "visit": {"role": "drop"},
            "ward": {"role": "quasi", "hierarchy": {"flat": {"values": ["eye", "ear"]}}},
        },
        "release": {"method": "safe", "epsilon": 1.0, "delta": 1e-6, "levels": {"ward": 0}},
        **more,
    }  # fmt: skip


def test_quarters_of_one_ledger_cost_the_largest_not_the_sum(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "visits.ledger")
    ledger.set_budget(epsilon=1.5, delta=1.5e-6)
    for quarter in (1, 2, 3, 4):
        out = tmp_path / f"q{quarter}"
        spec = make_spec(f"2026-Q{quarter}")
        release = publish_unjudged(make_visits(quarter), spec, output=out, ledger=ledger)
        assert not verify(out)
        assert "TABLE_CHANGED" not in {finding.code for finding in release.findings}
        texts = {item.key: item.text for item in release.certificate.guarantee.statement}
        assert "one person within one quarter" in texts["differential_privacy"]
        assert f"the period 2026-Q{quarter} alone" in texts["period"]
        assert "(4, 4e-06)" in texts["period"]
        assert release.certificate.guarantee.part == f"2026-Q{quarter}"
    assert ledger.total() == Guarantee(1.0, 1e-6)
    assert ledger.unit() == name_period_unit("patient", "quarter", "visit")
    assert [spend.part for spend in ledger.spends()] == [f"2026-Q{at}" for at in (1, 2, 3, 4)]
    with pytest.raises(BudgetError, match="is booked by 1 entry"):
        publish_unjudged(make_visits(2), make_spec("2026-Q2"), ledger=ledger)


def test_a_table_with_rows_of_another_part_is_refused_before_it_is_booked(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "visits.ledger")
    ledger.set_budget(epsilon=1.5, delta=1.5e-6)
    mixed = pl.concat([make_visits(2), make_visits(3).head(1)])
    undated = make_visits(2).with_columns(
        pl.when(pl.int_range(pl.len()) > 0).then("visit").alias("visit")
    )
    for table, words in ((mixed, "2026-Q3"), (undated, "no period")):
        with pytest.raises(IncrowdError, match=words):
            publish_unjudged(table, make_spec("2026-Q2"), ledger=ledger)
    assert not ledger.spends()


def test_a_ledger_takes_no_parts_for_people_who_may_be_in_two(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "people.ledger")
    ledger.set_budget(epsilon=1.5, delta=1.5e-6)
    with pytest.raises(BudgetError, match="rows in several parts"):
        ledger.book([Mechanism(1.0, 1e-6)], unit=name_person_unit("patient"), part="2026-Q1")
    with pytest.raises(BudgetError, match="rows in several parts"):
        ledger.book([Mechanism(1.0, 1e-6)], part="2026-Q1")
    unit = name_period_unit("patient", "quarter", "visit")
    ledger.book([Mechanism(1.0, 1e-6)], unit=unit, part="2026-Q1")
    with pytest.raises(BudgetError, match="protect one person within one quarter"):
        ledger.book([Mechanism(0.1, 1e-7)], unit=name_person_unit("patient"))


def make_charge(epsilon: float, delta: float) -> Charge:
    return Charge(Guarantee(epsilon, delta), Guarantee(epsilon, delta), None)


def test_entries_of_one_part_add_up_with_those_of_none() -> None:
    booked = [
        ("a", make_charge(1.0, 1e-6)), ("a", make_charge(0.25, 1e-7)),
        ("b", make_charge(0.5, 3e-6)), (None, make_charge(0.125, 1e-7)),
    ]  # fmt: skip
    total = total_charges(booked)
    assert total.epsilon == pytest.approx(1.375)
    assert total.delta == pytest.approx(3.1e-6)
    assert part_charges_fit(booked, Guarantee(1.375, 3.1e-6))
    assert not part_charges_fit(booked, Guarantee(1.37, 3.1e-6))
    assert not part_charges_fit(booked, Guarantee(1.375, 3e-6))
    alone = [(None, charge) for _, charge in booked]
    assert total_charges(alone).epsilon == pytest.approx(1.875)
    assert total_charges([]) == Guarantee(0.0, 0.0)


def test_an_older_file_gets_the_column_of_parts(tmp_path: Path) -> None:
    import sqlite3

    ledger = Ledger(tmp_path / "old.ledger")
    ledger.set_budget(epsilon=2, delta=2e-6)
    with sqlite3.connect(ledger.path) as database:
        database.execute("ALTER TABLE spends DROP COLUMN part")
    assert ledger.spends() == []
    ledger.book([Mechanism(1.0, 1e-6)], unit=name_period_unit("p", "year", "d"), part="2026")
    assert [spend.part for spend in ledger.spends()] == ["2026"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"part": None}, "publish one period at a time"),
        ({"unit": {"id": "patient"}}, "`part` needs a unit within one period"),
        ({"part": {"column": "ward", "value": "eye"}}, "Name the same column"),
        ({"part": {"column": "visit", "value": "2026Q5"}}, "Write it as 2026-Q3"),
        ({"release": {"method": "k-anonymity", "k": 5}}, "has no budget"),
    ],
)
def test_what_does_not_fit_together_is_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(IncrowdError, match=words):
        load_spec({**make_spec("2026-Q3"), **change})


def test_two_names_of_a_quarter_are_one_part() -> None:
    for text in ("2026Q3", "2026q3", "2026 Q3", "2026-Q3"):
        part = load_spec({**make_spec(text)}).spec.part
        assert part is not None
        assert part.value == "2026-Q3"


def test_a_dry_run_has_rows_of_the_part_alone() -> None:
    release = rehearse(make_spec("2026-Q3"), size=500)
    assert release.certificate.guarantee.part == "2026-Q3"


def test_each_period_has_its_name_and_its_first_day() -> None:
    for every, period in EXAMPLES.items():
        first = find_first_day(period, every)
        assert first is not None
        assert name_period(first, every) == period
        before = dt.date.fromisoformat(first) - dt.timedelta(days=1)
        assert name_period(before, every) != period
    for wrong in ("2026-Q5", "2026-13", "2026-7", "26", "2026-W60", "Q3"):
        assert all(find_first_day(wrong, every) is None for every in EXAMPLES)
