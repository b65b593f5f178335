"""Counts of rows of people with several, from the spec to the checked release."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from pyspark.sql import SparkSession
from support.cli import run_command, run_successfully
from support.unjudged import publish_unjudged

import incrowd as ic
from incrowd.curate.check import find_refusals
from incrowd.curate.person_rows import compare_rows_per_group, compare_rows_per_person
from incrowd.engine.local.engine import ENGINE
from incrowd.engine.spark.engine import SparkEngine
from incrowd.errors import IncrowdError
from incrowd.evaluation.attacks.laws import CountLaw, law_from_parameters
from incrowd.privacy.randomness import SeededRandomness
from incrowd.release.certificate import Certificate
from incrowd.release.verify import verify
from incrowd.spec.file import load_spec

WARDS = ["ear", "eye", "heart", "lung"]


def make_visits(people: int = 3000, *, most: int = 6, seed: int = 3) -> pl.DataFrame:
    """Visits of people who mostly come back to the same ward."""
    draws = np.random.default_rng(seed)
    person = np.repeat(np.arange(people), np.minimum(draws.geometric(0.3, people), most))
    usual = draws.integers(0, 4, people)[person]
    ward = np.where(draws.random(len(person)) < 0.8, usual, draws.integers(0, 4, len(person)))
    sex = draws.integers(0, 2, people)[person]
    columns = {"sex": [["f", "m"][at] for at in sex], "ward": [WARDS[at] for at in ward]}
    return pl.DataFrame({"patient": [f"P{number:05d}" for number in person], **columns})


def make_spec(most: int, per_group: int, **release: Any) -> dict[str, Any]:
    tree = {"groups": {"head": ["ear", "eye"], "chest": ["heart", "lung"]}}
    return {
        "unit": {"id": "patient", "rows": most, "per_group": per_group},
        "columns": {
            "patient": {"role": "identifier"},
            "sex": {"role": "quasi", "hierarchy": {"flat": {"values": ["f", "m"]}}},
            "ward": {"role": "quasi", "hierarchy": tree},
        },
        "release": {"method": "safe", "epsilon": 1.0, "delta": 1e-6, **release},
    }


def count_rows(visits: pl.DataFrame, per_group: int, columns: list[str]) -> pl.DataFrame:
    """The rows of each group, up to so many of a person."""
    each = visits.group_by(*columns, "patient").len().with_columns(pl.col("len").clip(0, per_group))
    return each.group_by(columns).agg(pl.col("len").sum().alias("true"))


@pytest.mark.parametrize(("per_group", "ward"), [(2, 0), (3, 0), (2, 1)])
def test_each_count_is_one_of_rows_and_off_by_the_noise_alone(
    tmp_path: Path, per_group: int, ward: int
) -> None:
    """Everybody has so few rows that all are used; they are cut at the levels of the release."""
    visits = make_visits()
    spec = make_spec(6, per_group, levels={"sex": 0, "ward": ward}, rows="counted")
    release = publish_unjudged(visits, spec, output=tmp_path / "out")
    r = int(release.certificate.parameters["r"])
    if ward:
        visits = visits.with_columns(
            pl.col("ward").is_in(WARDS[:2]).replace_strict({True: "head", False: "chest"})
        )
    counts = count_rows(visits, per_group, ["sex", "ward"])
    published = pl.read_parquet(tmp_path / "out/data.parquet")
    both = published.join(counts, on=["sex", "ward"])
    assert len(both) == len(published) == len(counts)
    errors = (both["count"].cast(pl.Int64) - both["true"].cast(pl.Int64)).abs()
    assert errors.max() <= r  # type: ignore[operator]
    for other in (1, 6):  # neither of people nor of all rows
        wrong = published.join(count_rows(visits, other, ["sex", "ward"]), on=["sex", "ward"])
        assert (wrong["count"].cast(pl.Int64) - wrong["true"].cast(pl.Int64)).abs().max() > r  # type: ignore[operator]
    assert release.certificate.threshold == r + 4 * per_group + 1
    assert not verify(tmp_path / "out")


def test_report_and_evaluate_agree_and_recipients_are_told(tmp_path: Path) -> None:
    visits, spec = make_visits(), make_spec(3, 2)
    release = ic.publish(visits, spec, output=tmp_path / "out")
    evaluation = ic.evaluate(visits, release, spec)
    assert release.evaluation is not None
    assert evaluation.rows_original == release.evaluation.rows_original
    assert evaluation.suppressed == release.evaluation.suppressed
    assert evaluation.loss == pytest.approx(release.evaluation.loss)
    texts = {sentence.key: sentence.text for sentence in release.certificate.guarantee.statement}
    assert "up to 2 of one person count in each group; k counts people" in texts["unit"]
    assert "the rows of at least 5 different people" in texts["k_anonymity"]
    assert "c (k − 1) + 1" in texts["noise_law"]
    for name in ("README.md", "certificate.html"):
        page = (tmp_path / "out" / name).read_text(encoding="utf-8")
        assert "Counts are numbers of used rows" in page
        assert "Counts are numbers of people" not in page
    report = (tmp_path / "out.curator/report.html").read_text(encoding="utf-8")
    assert "Noisy counts of rows by group" in report
    assert "Up to 2 of them count in each group" in report
    assert f"A group of {release.certificate.threshold} rows" in report
    assert "rows to be published" in ic.expect(None, spec).summarize()
    law = law_from_parameters(release.certificate.parameters)
    assert isinstance(law, CountLaw)
    assert law.threshold == release.certificate.threshold


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"rows_per_group": 1.0}, "PARAMETERS_DIFFER"),
        ({"rows_per_group": None}, "PARAMETERS_DIFFER"),
        ({"rows_per_group": 3.0}, "PARAMETERS_DIFFER"),
        ({"rows_per_person": 2.0}, "PARAMETERS_DIFFER"),
        ({"r": 39.0}, "PARAMETERS_DIFFER"),
        ({"event": {"per_group": 1}}, "EVENTS_INVALID"),
        ({"event": {"rows": 2}}, "PARAMETERS_DIFFER"),
        ({"both": {"rows": 4}}, "GUARANTEE_FALSE"),
        ({"both": {"per_group": 3}}, "GUARANTEE_FALSE"),
    ],
)
def test_a_certificate_that_charges_less_is_refused(
    tmp_path: Path, change: dict[str, Any], code: str
) -> None:
    spec = make_spec(3, 2, levels={"sex": 0, "ward": 0}, rows="counted")
    publish_unjudged(make_visits(200), spec, output=tmp_path / "out")
    path = tmp_path / "out/certificate.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    assert content["parameters"]["r"] == 40.0
    assert not verify(tmp_path / "out")
    if "event" in change:
        content["events"][0] |= change["event"]
    elif "both" in change:
        content["events"][0] |= change["both"]
        ((name, number),) = change["both"].items()
        content["parameters"][{"rows": "rows_per_person"}.get(name, "rows_per_group")] = number
    elif None in change.values():
        del content["parameters"]["rows_per_group"]
    else:
        content["parameters"] |= change
    altered = Certificate.model_validate(content).with_statement().with_seal()
    path.write_bytes(altered.to_canonical_json())
    assert code in {finding.code for finding in verify(tmp_path / "out")}


@pytest.mark.parametrize(
    ("unit", "release", "words"),
    [
        ({"per_group": 5}, {}, "exceeds `rows`"),
        ({"rows": 16, "per_group": 9}, {}, "`per_group` of at most 8"),
        ({}, {"method": "k-anonymity", "k": 5}, "`per_group` above 1 is for"),
        ({}, {"draw": "sample"}, "needs `draw: counts`"),
    ],
)
def test_what_cannot_count_rows_is_refused_with_the_reason(
    unit: dict[str, Any], release: dict[str, Any], words: str
) -> None:
    spec = make_spec(4, 2)
    spec["unit"] |= unit
    spec["release"] = release if "k" in release else {**spec["release"], **release}
    with pytest.raises(IncrowdError, match=words):
        publish_unjudged(make_visits(50), spec)


def test_a_series_does_not_count_rows() -> None:
    spec = make_spec(4, 2, levels={"sex": 0, "ward": 0}, series={"of": 4})
    spec["unit"]["period"] = {"column": "visit", "every": "quarter"}
    spec["part"] = {"column": "visit", "value": "2026-Q1"}
    spec["columns"]["visit"] = {"role": "drop"}
    with pytest.raises(IncrowdError, match="planned for counts of people"):
        load_spec(spec)


def test_check_and_plan_say_what_counting_rows_costs() -> None:
    file = load_spec(make_spec(4, 2, levels={"sex": 0, "ward": 0}))
    people, two, *more = compare_rows_per_group(file)
    assert (people.per_group, people.counted_unit, people.crowd) == (1, "people", 50)
    assert (two.per_group, two.counted_unit, two.crowd) == (2, "rows", 62)
    assert [cost.per_group for cost in more] == [3, 4]
    assert two.crowd < more[0].crowd < more[1].crowd
    (finding,) = [x for x in find_refusals(file) if x.code == "ROWS_COUNTED"]
    assert "62 rows" in finding.message
    assert "50 people" in finding.message
    costs = {cost.rows: cost for cost in compare_rows_per_person(file, typical=3)}
    assert (costs[1].counted_unit, costs[4].counted_unit) == ("people", "rows")
    assert costs[4].crowd == two.crowd
    assert "ROWS_COUNTED" not in {
        x.code for x in find_refusals(load_spec(make_spec(4, 1, levels={"sex": 0, "ward": 0})))
    }


def test_the_plan_of_the_command_is_the_plan(tmp_path: Path) -> None:
    command = ("plan", "--draw", "counts", "--epsilon", "1", "--delta", "1e-6")
    got = json.loads(run_successfully(*command, "--rows", "4", "--per-group", "2", "--json"))
    assert got == ic.plan(draw="counts", epsilon=1, delta=1e-6, rows=4, per_group=2).as_dict()
    assert "62 rows" in run_successfully(*command, "--rows", "4", "--per-group", "2")
    refused = run_command("plan", "--epsilon", "1", "--delta", "1e-6", "--per-group", "2")
    assert "--per-group applies to counts only" in refused.stderr
    spec = make_spec(4, 2, levels={"sex": 0, "ward": 0})
    (tmp_path / "spec.yaml").write_text(json.dumps(spec), encoding="utf-8")
    printed = run_successfully("plan", "--spec", str(tmp_path / "spec.yaml"))
    assert "Counting rows instead of people, with rows: 4:" in printed
    costs = json.loads(run_successfully("plan", "--spec", str(tmp_path / "spec.yaml"), "--json"))
    assert [cost["crowd"] for cost in costs["per_group"]][:2] == [50, 62]


def test_running_totals_do_not_add_rows_to_people(tmp_path: Path) -> None:
    flat = {"flat": {"values": WARDS}}
    columns = {"patient": {"role": "identifier"}, "year": {"role": "drop"}}
    spec: dict[str, Any] = {
        "columns": {**columns, "ward": {"role": "quasi", "hierarchy": flat}},
        "release": {"method": "safe", "epsilon": 1.0, "delta": 1e-6, "levels": {"ward": 0}},
    }
    for year, per_group in (("2024", 2), ("2025", 2), ("2026", 1)):
        period = {"column": "year", "every": "value"}
        spec["unit"] = {"id": "patient", "rows": 3, "per_group": per_group, "period": period}
        spec["part"] = {"column": "year", "value": year}
        visits = make_visits(900).drop("sex").with_columns(year=pl.lit(year))
        publish_unjudged(visits, spec, output=tmp_path / year)
    totals = ic.cumulate([tmp_path / "2024", tmp_path / "2025"])
    assert [period.groups for period in totals.periods] == [4, 4]
    with pytest.raises(IncrowdError, match="it counts people, but '2025' counts up to 2 rows"):
        ic.cumulate([tmp_path / "2025", tmp_path / "2026"])


def test_slices_charge_every_table(tmp_path: Path) -> None:
    spec = make_spec(4, 2, slices=[["sex"], ["ward"]])
    release = publish_unjudged(make_visits(), spec, output=tmp_path / "out")
    kinds = [event["events"][1]["kind"] for event in release.certificate.events]
    assert kinds == ["row counts", "row counts"]
    assert not verify(tmp_path / "out")


def test_a_ledger_adds_up_what_rows_cost(tmp_path: Path) -> None:
    ledger = ic.Ledger(tmp_path / "visits.ledger")
    ledger.set_budget(epsilon=2.0, delta=1e-5)
    spec = make_spec(4, 2, levels={"sex": 0, "ward": 0})
    for name in ("first", "second"):
        publish_unjudged(make_visits(300), spec, output=tmp_path / name, ledger=ledger)
    event = ic.RowCounts(ic.GeometricCounts(53, 0.25), rows=4, per_group=2)
    together = ic.Accountant([event] * 2).epsilon(delta=1e-5)
    assert ledger.total().epsilon == pytest.approx(together, rel=1e-3)


def test_both_engines_make_the_same_release(tmp_path: Path, spark_session: SparkSession) -> None:
    """Everybody has few enough rows that all are used; the driver draws the rest."""
    visits, spec = make_visits(400, most=4), make_spec(4, 2)
    visits.write_parquet(tmp_path / "visits.parquet")
    path, spark = tmp_path / "visits.parquet", SparkEngine()
    assert spark_session is not None
    for name, engine in (("local", None), ("spark", spark)):
        publish_unjudged(
            path, spec, output=tmp_path / name, bits=SeededRandomness(5), engine=engine
        )
    files = [(tmp_path / name / "data.parquet").read_bytes() for name in ("local", "spark")]
    assert files[0] == files[1]
    counts = [
        sorted(map(tuple, engine.open(path).code_people("patient", ["ward"], coders, alike=2)[1]))
        for engine in (ENGINE, spark)
        for coders in ({"ward": lambda met: np.array([WARDS.index(x or "ear") for x in met])},)
    ]
    assert len(counts[0]) == visits.height > len(counts[1])
