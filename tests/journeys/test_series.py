"""A table that grows: each quarter is released once, and running totals come with their errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from pyspark.sql import SparkSession
from support.cli import run_command
from support.unjudged import publish_unjudged

import incrowd as ic
from incrowd.curate.check import find_refusals
from incrowd.engine.spark.engine import SparkEngine
from incrowd.errors import IncrowdError
from incrowd.privacy.amplification import Guarantee
from incrowd.privacy.randomness import SeededRandomness
from incrowd.release.certificate import Certificate
from incrowd.release.ledger import BudgetError, Ledger
from incrowd.release.verify import verify
from incrowd.spec.file import load_spec

WARDS = ["ear", "eye", "heart", "lung"]
OF = 3


def make_quarter(number: int, people: int = 2500) -> pl.DataFrame:
    draws = np.random.default_rng(number)
    rows = 2 * people
    return pl.DataFrame(
        {
            "patient": [f"p{at}" for at in draws.integers(0, people, rows)],
            "quarter": [f"Q{number}"] * rows,
            "ward": draws.choice(WARDS, rows, p=[0.5, 0.3, 0.195, 0.005]),
        }
    )


def make_spec(number: int, **release: Any) -> dict[str, Any]:
    return {
        "unit": {
            "id": "patient", "rows": 3, "period": {"column": "quarter", "every": "value"},
        },
        "part": {"column": "quarter", "value": f"Q{number}"},
        "columns": {
            "patient": {"role": "identifier"}, "quarter": {"role": "drop"},
            "ward": {"role": "quasi", "hierarchy": {"flat": {"values": WARDS}}},
        },
        "release": {
            "method": "safe", "epsilon": 1.0, "delta": 1e-6, "levels": {"ward": 0},
            "rows": "counted", "series": {"of": OF}, **release,
        },
    }  # fmt: skip


@pytest.fixture(scope="module")
def quarters(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("series")
    ledger = Ledger(home / "visits.ledger")
    ledger.set_budget(epsilon=1.2, delta=2e-6)
    for number in range(1, OF + 1):
        out = home / f"q{number}"
        publish_unjudged(make_quarter(number), make_spec(number), output=out, ledger=ledger)
    return home


def test_each_release_verifies_alone_and_the_ledger_has_the_series_once(quarters: Path) -> None:
    ledger = Ledger(quarters / "visits.ledger")
    (series,) = ledger.spends()
    assert (series.releases, series.used, series.parts) == (3, 3, ("Q1", "Q2", "Q3"))
    assert ledger.total() == Guarantee(1.0, 1e-6)
    names = set()
    for number in range(1, OF + 1):
        assert not verify(quarters / f"q{number}")
        text = (quarters / f"q{number}" / "certificate.json").read_bytes()
        certificate = Certificate.model_validate_json(text)
        names.add(certificate.parameters["series"])
        assert certificate.parameters["series_number"] == number
        sentences = {item.key: item.text for item in certificate.guarantee.statement}
        assert f"release {number} of a series of 3" in sentences["series"]
        assert "with n = 3 (3, 1.11074e-05)" in sentences["period"]
    assert len(names) == 1


def test_a_period_is_released_once_and_no_release_follows_the_last(quarters: Path) -> None:
    ledger = Ledger(quarters / "visits.ledger")
    with pytest.raises(BudgetError, match="Each period is released once"):
        publish_unjudged(make_quarter(2), make_spec(2), ledger=ledger)
    with pytest.raises(BudgetError, match="planned for 3 releases and made all of them"):
        publish_unjudged(make_quarter(4), make_spec(4), ledger=ledger)
    assert len(ledger.spends()) == 1


def test_running_totals_lie_within_their_errors(quarters: Path) -> None:
    totals = ic.cumulate([quarters / f"q{number}" for number in (3, 1, 2)])
    assert [(period.period, period.groups) for period in totals.periods] == [
        ("Q1", 3), ("Q2", 3), ("Q3", 3)
    ]  # fmt: skip
    assert totals.guarantee == Guarantee(1.0, 1e-6)
    true = dict.fromkeys(WARDS, 0)
    for number, period in enumerate(totals.periods, 1):
        people = make_quarter(number).group_by("ward").agg(pl.col("patient").n_unique())
        true = {ward: true[ward] + n for ward, n in people.sort("ward").iter_rows()}
        lines = totals.data.filter(pl.col("through") == f"Q{number}")
        for ward, total in lines.select("ward", "total").iter_rows():
            # The three rows of each person are a little less than all.
            assert -0.2 * true[ward] - period.bound <= total - true[ward] <= period.bound
    assert totals.data["standard_error"].unique().sort().to_list() == pytest.approx(
        sorted({round(period.error, 2) for period in totals.periods})
    )
    single = ic.cumulate([quarters / "q1", quarters / "q3"])
    assert single.periods[0].error < single.periods[1].error


def test_the_command_writes_totals_and_refuses_strangers(quarters: Path, tmp_path: Path) -> None:
    folders = [str(quarters / f"q{number}") for number in range(1, OF + 1)]
    result = run_command("cumulate", *folders, "-o", str(tmp_path / "totals.csv"))
    assert result.returncode == 0
    assert "Wrote 9 running totals" in result.stdout
    assert "(1, 1e-06)-differential privacy for a person within one period" in result.stdout
    assert pl.read_csv(tmp_path / "totals.csv")["total"].min() > 300  # type: ignore[operator]
    again = run_command("cumulate", *folders, "-o", str(tmp_path / "totals.csv"))
    assert "exists already" in again.stderr
    as_json = run_command("cumulate", *folders, "-o", str(tmp_path / "t.parquet"), "--json")
    assert len(json.loads(as_json.stdout)["periods"]) == OF
    with pytest.raises(IncrowdError, match="two releases or more"):
        ic.cumulate(folders[:1])
    with pytest.raises(IncrowdError, match="the period Q1 is there twice"):
        ic.cumulate([folders[0], folders[0]])
    altered = tmp_path / "altered"
    altered.mkdir()
    for file in (quarters / "q2").rglob("*"):
        if file.is_file():
            (altered / file.relative_to(quarters / "q2")).parent.mkdir(exist_ok=True)
            (altered / file.relative_to(quarters / "q2")).write_bytes(file.read_bytes())
    (altered / "README.md").write_text("other", encoding="utf-8")
    with pytest.raises(IncrowdError, match="it does not hold"):
        ic.cumulate([folders[0], altered])


def test_releases_of_two_series_or_without_one_do_not_mix(quarters: Path, tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "other.ledger")
    ledger.set_budget(epsilon=2.0, delta=2e-6)
    publish_unjudged(make_quarter(2), make_spec(2), output=tmp_path / "q2", ledger=ledger)
    with pytest.raises(IncrowdError, match="not of the series of 'q1'"):
        ic.cumulate([quarters / "q1", tmp_path / "q2"])
    for number in (1, 2):
        spec = make_spec(number, series=None)
        publish_unjudged(make_quarter(number), spec, output=tmp_path / f"plain{number}")
    with pytest.raises(IncrowdError, match="not of the series"):
        ic.cumulate([quarters / "q1", tmp_path / "plain2"])
    plain = ic.cumulate([tmp_path / "plain1", tmp_path / "plain2"])
    first, second = (period.error for period in plain.periods)
    assert second == pytest.approx(first * 2**0.5)


@pytest.mark.parametrize(
    "change",
    [{"series_number": 4.0}, {"series_number": 1.0}, {"series": "beautiful"}, {"series_of": 8.0}],
)
def test_a_certificate_that_tells_of_another_turn_is_refused(
    quarters: Path, tmp_path: Path, change: dict[str, Any]
) -> None:
    content = json.loads((quarters / "q2/certificate.json").read_text(encoding="utf-8"))
    content["parameters"] |= change
    certificate = Certificate.model_validate(content)
    (tmp_path / "out").mkdir()
    for file in (quarters / "q2").iterdir():
        if file.is_file():
            (tmp_path / "out" / file.name).write_bytes(file.read_bytes())
    path = tmp_path / "out/certificate.json"
    path.write_bytes(certificate.with_seal().to_canonical_json())
    codes = {finding.code for finding in verify(tmp_path / "out")}
    assert codes & {"PARAMETERS_DIFFER", "STATEMENT_DIFFERS", "EVENTS_INVALID"}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"scheme": "search", "levels": {}}, "needs `draw: counts` and `scheme: fixed`"),
        ({"draw": "sample"}, "needs `draw: counts`"),
        ({"releases": 4}, "`series` excludes `releases`"),
        ({"already_sampled": 0.1}, "`series` excludes `already_sampled`"),
        ({"epsilon": None}, "needs a budget"),
    ],
)
def test_what_a_series_does_not_have_is_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(IncrowdError, match=words):
        publish_unjudged(make_quarter(1), make_spec(1, **change))


def test_a_series_of_few_rows_says_that_single_releases_are_better(tmp_path: Path) -> None:
    spec = make_spec(1)
    spec["unit"]["rows"] = 1
    ledger = Ledger(tmp_path / "few.ledger")
    ledger.set_budget(epsilon=1.0, delta=1e-6)
    release = publish_unjudged(make_quarter(1), spec, output=tmp_path / "out", ledger=ledger)
    assert release.certificate.rows_per_person == 1
    assert not verify(tmp_path / "out")
    assert "SERIES_NOISIER" in {finding.code for finding in find_refusals(load_spec(spec))}
    spec["unit"]["rows"] = 3
    assert "SERIES_NOISIER" not in {finding.code for finding in find_refusals(load_spec(spec))}


def test_a_series_needs_a_ledger_a_period_and_listed_values() -> None:
    with pytest.raises(IncrowdError, match="needs a ledger, which counts its releases"):
        publish_unjudged(make_quarter(1), make_spec(1))
    spec = make_spec(1)
    with pytest.raises(IncrowdError, match="`series` needs a unit within one period"):
        publish_unjudged(make_quarter(1), {**spec, "unit": {"id": "patient"}, "part": None})
    spec["columns"]["ward"]["hierarchy"] = "flat"
    with pytest.raises(IncrowdError, match="a series needs listed values"):
        publish_unjudged(make_quarter(1), spec)


def test_both_engines_make_the_same_release(tmp_path: Path, spark_session: SparkSession) -> None:
    """Everybody has few enough rows that all are used; the driver draws the rest."""
    assert spark_session is not None
    visits = make_quarter(1, people=300).unique()
    visits.write_parquet(tmp_path / "visits.parquet")
    for name, engine in (("local", None), ("spark", SparkEngine())):
        ledger = Ledger(tmp_path / f"{name}.ledger")
        ledger.set_budget(epsilon=1.0, delta=1e-6)
        spec = make_spec(1)
        spec["unit"]["rows"] = 4
        publish_unjudged(
            tmp_path / "visits.parquet", spec, output=tmp_path / name, ledger=ledger,
            bits=SeededRandomness(5), engine=engine,
        )  # fmt: skip
    files = [(tmp_path / name / "data.parquet").read_bytes() for name in ("local", "spark")]
    assert files[0] == files[1]
