"""Planned errors of tables of counts, and the epsilon for an error."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from support.cli import run_command
from support.tables import BUDGET, TABLES, make_residents, make_spec
from support.unjudged import publish_unjudged

import incrowd as ic
from incrowd.errors import IncrowdError, ParameterError
from incrowd.privacy.accountant import Accountant
from incrowd.privacy.events import GaussianMeasurements
from incrowd.privacy.information import plan_information


def test_the_plan_says_what_the_certificate_says() -> None:
    plan = ic.plan_tables(make_spec())
    part = publish_unjudged(make_residents(50), make_spec()).certificate.tabulation
    assert part is not None
    for planned, certified in zip(plan.tables, part.tables, strict=True):
        assert planned.columns == tuple(certified.columns)
        assert planned.error == pytest.approx(1.96 * certified.rmse, rel=0.005)
    assert plan.tables[1].cells == 5 * 11 * 3


@pytest.mark.parametrize("error", [5.0, 30.0])
def test_the_epsilon_for_an_error_reaches_it_and_little_less_does_not(error: float) -> None:
    answer = ic.plan_tables(make_spec(), error=error)
    assert answer.largest <= error
    again = make_spec().with_entry(("release", "epsilon"), answer.epsilon)
    assert ic.plan_tables(again).largest <= error
    less = make_spec().with_entry(("release", "epsilon"), answer.epsilon * 0.97)
    assert ic.plan_tables(less).largest > error
    information = plan_information(epsilon=answer.epsilon, delta=1e-6, choices=0).information
    exact = Accountant([GaussianMeasurements(information)]).delta(epsilon=answer.epsilon)
    assert float(exact) <= 1e-6


def test_independent_noise_is_worse_at_the_same_budget() -> None:
    plan = ic.plan_tables(make_spec(f"{BUDGET}, all: 2"))
    assert all(table.independent > table.error for table in plan.tables)
    assert plan.independent_total > plan.total
    # With a part tau_i for each table and total, variances are 1 / tau_i
    alone = ic.plan_tables(make_spec(f"{BUDGET}, tables: [[sex]], totals: false"))
    information = plan_information(epsilon=1, delta=1e-6, choices=0).information
    assert alone.tables[0].independent == pytest.approx(1.96 / math.sqrt(information))


def test_totals_cost_the_cells_a_little_and_gain_more() -> None:
    release = f"{BUDGET}, tables: [[region, age, sex]]"
    with_totals = ic.plan_tables(make_spec(release))
    without = ic.plan_tables(make_spec(f"{release}, totals: false"))
    assert without.largest < with_totals.largest < 2 * without.largest
    assert with_totals.total < without.total / 2


def test_what_cannot_be_planned_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="be a number above 0"):
        ic.plan_tables(make_spec(), error=0)
    with pytest.raises(ParameterError, match="be reachable"):
        ic.plan_tables(make_spec(), error=1e-3)
    safe = make_spec("epsilon: 1, delta: 1.0e-6")
    with pytest.raises(IncrowdError, match="its method is not `tables`"):
        ic.plan_tables(safe)
    assert not list(tmp_path.iterdir())


def test_the_command_prints_errors_and_json(tmp_path: Path) -> None:
    spec = tmp_path / "spec.yaml"
    spec.write_text(make_spec(f"{BUDGET}, {TABLES}").text(), encoding="utf-8")
    text = run_command("plan", "--tables", str(spec), "--compare").stdout
    assert "diagnosis by age (level 1) by sex" in text
    assert "independent" in text
    answer = json.loads(
        run_command("plan", "--tables", str(spec), "--error", "20", "--json").stdout
    )
    assert answer["largest"] <= 20
    refused = run_command("plan", "--error", "20")
    assert refused.returncode == 2
    assert "belong to --tables" in refused.stderr
    excluded = run_command("plan", "--tables", str(spec), "--epsilon", "1")
    assert "excludes other options" in excluded.stderr
