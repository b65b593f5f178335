"""A release whose scheme pays the publisher most: explored, published, evaluated, refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from support.cli import run_successfully

import incrowd as ic
from incrowd.curate.explore import explore_schemes
from incrowd.engine.source import open_table
from incrowd.errors import IncrowdError
from incrowd.evaluation.evaluate import evaluate
from incrowd.measure.individual_risk import compute_individual_risk
from incrowd.release.release import Release
from incrowd.spec.file import load_spec

COLUMNS = {
    "region": {"role": "quasi", "hierarchy": {"flat": {"values": ["n", "s", "i", "w"]}}},
    "age": {"role": "quasi", "hierarchy": {"intervals": {"from": 0, "to": 63, "widths": [8, 32]}}},
}
PAYOUT = {"benefit": 100, "publisher_loss": 900, "attacker_gain": 60, "attack_cost": 4}


def sample(rows: int = 900) -> pl.DataFrame:
    draw = np.random.default_rng(5)
    region = draw.choice(["n", "s", "i", "w"], rows, p=[0.5, 0.3, 0.15, 0.05])
    return pl.DataFrame({"region": region, "age": draw.integers(0, 64, rows)})


def make_spec(columns: dict[str, Any] = COLUMNS, **release: Any) -> dict[str, Any]:
    settings = {"method": "k-anonymity", "k": 3, "payout": PAYOUT, **release}
    return {"columns": columns, "release": settings}


def list_levels(release: Release) -> tuple[int | None, ...]:
    return tuple(entry.level for entry in release.certificate.table.scheme.values())


def sum_payout(released: pl.DataFrame, fraction: float = 1.0) -> float:
    """What a release pays, class by class from its labels: 2 bits of region, 6 of age."""
    total = 0.0
    for (region, age), rows in released.group_by("region", "age"):
        covered = 4 if region == "*" else 1
        low, _, high = str(age).partition("-")
        width = 64 if age == "*" else int(high or low) - int(low) + 1
        chance = float(compute_individual_risk([len(rows)], [len(rows) / fraction])[0])
        attack = 900 * chance if 60 * chance > 4 else 0
        total += len(rows) * (100 * (1 - np.log2(covered * width) / 8) - attack)
    return total


@pytest.mark.parametrize("population", [None, 9_000])
def test_the_scheme_published_pays_most(population: int | None, tmp_path: Path) -> None:
    spec = make_spec()
    if population:
        spec = make_spec(population=population, payout={**PAYOUT, "attacker": "journalist"})
    release = ic.publish(sample(), spec, output=tmp_path / "out")
    payout = release.evaluation.payout
    assert payout is not None
    pays = sum_payout(release.data, 900 / population if population else 1.0)
    assert payout.total == pytest.approx(pays)
    assert payout.total == pytest.approx(payout.benefit - payout.cost)
    assert payout.cost == pytest.approx(900 * payout.reidentified)
    assert payout.maximum == 900 * 100
    search = release.evaluation.search
    assert search is not None
    assert search.measure == "payout"
    assert search.loss == pytest.approx(1 - payout.total / payout.maximum)
    exploration = explore_schemes(load_spec(spec), open_table(sample()))
    assert exploration.is_complete
    assert exploration.loss == "payout"
    holding = [scheme.payout for scheme in exploration.schemes if scheme.holds]
    assert payout.total == pytest.approx(max(x for x in holding if x is not None))
    assert exploration.best is not None
    assert exploration.best.levels == list_levels(release)
    read_again = evaluate(sample(), tmp_path / "out", load_spec(spec))
    assert read_again.payout == payout
    assert ic.verify(tmp_path / "out") == []


def test_a_population_is_the_attackers_only_if_the_spec_says_so() -> None:
    released = ic.publish(sample(), make_spec(population=9_000))
    payout = released.evaluation.payout
    assert payout is not None
    assert payout.total == pytest.approx(sum_payout(released.data))


def test_without_amounts_nothing_is_measured() -> None:
    spec = make_spec()
    del spec["release"]["payout"]
    assert ic.publish(sample(), spec).evaluation.payout is None
    (first, *_) = explore_schemes(load_spec(spec), open_table(sample())).schemes
    assert first.payout is None


def test_weights_of_columns_count() -> None:
    """Where age counts nearly nothing, it is generalized, and region is not."""
    columns = {
        "region": {**COLUMNS["region"], "weight": 1000},
        "age": {**COLUMNS["age"], "weight": 0.001},
    }
    region, age = list_levels(ic.publish(sample(), make_spec(columns)))
    assert region == 0
    assert age is not None
    assert age > 0


def test_people_with_several_rows_are_refused() -> None:
    table = sample().with_columns(id=pl.Series(range(900)) // 2)
    columns = {**COLUMNS, "id": {"role": "identifier"}}
    spec = {**make_spec(columns), "unit": {"id": "id", "rows": 2}}
    with pytest.raises(IncrowdError, match="`payout` counts rows as people"):
        ic.publish(table, spec)


def test_commands_and_the_report_show_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    sample().write_csv("table.csv")
    Path("spec.yaml").write_text(json.dumps({"table": "table.csv", **make_spec()}))
    run_successfully("publish", "spec.yaml", "-o", "out")
    total = json.loads(Path("out.curator/evaluation.json").read_text())["payout"]["total"]
    assert f"{total:,.0f}" in run_successfully("explore", "spec.yaml")
    report = Path("out.curator/report.html").read_text()
    assert f"<td>payout</td><td>{total:,.0f}</td>" in report
    files = ["--original", "table.csv", "--released", "out", "--spec", "spec.yaml"]
    assert f"{total:,.0f}, " in run_successfully("evaluate", *files)
