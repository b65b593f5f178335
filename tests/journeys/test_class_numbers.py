"""Means and medians of classes, and groups of near rows: end to end, and figures of other tools."""

from __future__ import annotations

import statistics
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from support.findings import list_verify_messages
from support.releases import forge_certificate
from support.slice_tables import load_certificate
from support.unjudged import publish_unjudged

from incrowd.errors import IncrowdError
from incrowd.evaluation.evaluate import evaluate
from incrowd.publication import publish
from incrowd.release.verify import verify

QUASI = ("region", "age")
COLUMNS: dict[str, Any] = {
    "region": {"role": "quasi", "hierarchy": {"flat": {"values": ["north", "south"]}}},
    "age": {
        "role": "quasi",
        "hierarchy": {"intervals": {"from": 0, "to": 79, "widths": [10, 20, 40]}},
    },
    "income": {"role": "sensitive", "aggregate": "mean"},
    "wealth": {"role": "sensitive", "aggregate": "median"},
    "job": {"role": "sensitive"},
}


def draw_people(number: int = 400) -> pl.DataFrame:
    rng = np.random.default_rng(4)
    age = rng.integers(0, 80, number)
    income = np.round(rng.lognormal(9, 0.5, number) * (1 + age / 80))
    wealth = np.round(income * rng.lognormal(0, 0.4, number), 1)
    return pl.DataFrame(
        {
            "region": rng.choice(["north", "south"], number), "age": age,
            "income": [None if at % 9 == 0 else int(x) for at, x in enumerate(income)],
            "wealth": wealth, "job": rng.choice(["a", "b", "c"], number),
        }
    )  # fmt: skip


def make_spec(algorithm: str, k: int = 5, **columns: Any) -> dict[str, Any]:
    release = {"method": "k-anonymity", "k": k, "algorithm": algorithm}
    return {"columns": {**COLUMNS, **columns}, "release": release}


@pytest.mark.parametrize("algorithm", ["ola", "mondrian", "cluster", "mdav"])
def test_each_class_shows_one_number_of_its_rows(tmp_path: Path, algorithm: str) -> None:
    people = draw_people()
    release = publish_unjudged(people, make_spec(algorithm), output=tmp_path / "out")
    assert verify(tmp_path / "out") == []
    assert release is not None
    data = pl.read_parquet(tmp_path / "out/data.parquet")
    classes = defaultdict(list)
    for row in data.iter_rows(named=True):
        classes[row["region"], row["age"]].append((row["income"], row["wealth"]))
    assert len(classes) > 3
    for numbers in classes.values():
        assert len(numbers) >= 5
        assert len(set(numbers)) == 1 or algorithm == "mdav"
    combinations = data.group_by("region", "age", "income", "wealth").len()["len"]
    assert combinations.min() >= 5  # type: ignore[operator]
    if algorithm != "ola":
        assert data.height == people.height


def test_numbers_of_classes_by_hand(tmp_path: Path) -> None:
    """Every class by its labels: the mean and median of its rows, over those that have a value."""
    people = draw_people()
    spec = make_spec("ola", 5)
    spec["release"] |= {"levels": {"region": 0, "age": 2}, "suppression": 0.0}
    publish_unjudged(people, spec, output=tmp_path / "out")
    released: dict[tuple[str, str], tuple[Any, Any]] = {}
    for row in pl.read_parquet(tmp_path / "out/data.parquet").iter_rows(named=True):
        released[row["region"], row["age"]] = (row["income"], row["wealth"])
    originals = defaultdict(list)
    for row in people.iter_rows(named=True):
        low = row["age"] // 20 * 20
        originals[row["region"], f"{low}-{low + 19}"].append((row["income"], row["wealth"]))
    assert set(released) == set(originals)
    for label, pairs in originals.items():
        incomes = [income for income, _ in pairs if income is not None]
        assert released[label][0] == pytest.approx(statistics.mean(incomes))
        assert released[label][1] == pytest.approx(
            statistics.median([wealth for _, wealth in pairs])
        )


def test_a_mean_of_few_values_is_not_shown(tmp_path: Path) -> None:
    people = pl.DataFrame(
        {
            "region": ["north"] * 6 + ["south"] * 6, "age": [30] * 12,
            "income": [100, *[None] * 5, *range(6)], "wealth": [1.0] * 12, "job": ["a"] * 12,
        }
    )  # fmt: skip
    publish_unjudged(people, make_spec("mondrian"), output=tmp_path / "out")
    data = pl.read_parquet(tmp_path / "out/data.parquet")
    by_region = {row["region"]: row["income"] for row in data.iter_rows(named=True)}
    assert by_region == {"north": None, "south": 2.5}


def test_means_of_the_practice_guide(tmp_path: Path) -> None:
    """SDC practice guide (sdcMicro), multivariate microaggregation of six people in threes."""
    guide = pl.DataFrame(
        {
            "land": ["x"] * 6,
            "income": [2300, 2434, 2123, 2312, 6045, 2345],
            "expenditure": [1714, 1947, 1878, 1950, 4569, 1923],
            "wealth": [5.3, 7.4, 6.3, 8.0, 9.2, 7.8],
        }
    )
    numbers = {name: {"role": "sensitive", "aggregate": "mean"} for name in guide.columns[1:]}
    land = {"role": "quasi", "hierarchy": {"flat": {"values": ["x", "y"]}}}
    spec = {
        "columns": {"land": land, **numbers},
        "release": {"method": "k-anonymity", "k": 3, "algorithm": "mdav"},
    }
    publish_unjudged(guide, spec, output=tmp_path / "out")
    assert verify(tmp_path / "out") == []
    data = pl.read_parquet(tmp_path / "out/data.parquet").sort("income")
    released = [[round(x, 1) for x in row[1:]] for row in data.rows()]
    assert released == [[2285.7, 1846.3, 6.3]] * 3 + [[3567.3, 2814.0, 8.3]] * 3


@pytest.mark.parametrize(
    ("column", "algorithm", "message"),
    [
        (
            {"role": "quasi", "hierarchy": "flat", "aggregate": "mean"},
            "ola",
            "for role `sensitive`",
        ),
        (
            {"role": "sensitive", "aggregate": "mean", "diversity": {"distinct": 2}},
            "ola",
            "no rule",
        ),
        ({"role": "sensitive", "aggregate": "mean"}, "suppress", "does not support `algorithm"),
        ({"role": "sensitive", "aggregate": "mean"}, "ola", "'a' is not a number"),
    ],
)
def test_mistakes(column: dict[str, Any], algorithm: str, message: str) -> None:
    with pytest.raises(IncrowdError, match=message):
        publish_unjudged(draw_people(50), make_spec(algorithm, job=column))


def test_aggregates_are_for_classes() -> None:
    spec = make_spec("ola")
    spec["release"] = {"method": "safe", "epsilon": 1, "delta": 1e-6}
    with pytest.raises(IncrowdError, match="`aggregate` is for `method: k-anonymity`"):
        publish_unjudged(draw_people(50), spec)


@pytest.mark.parametrize(
    ("k", "message"), [(5, "Fewer than k = 5 rows show"), (1, "A class shows several numbers")]
)
def test_verify_sees_other_numbers_in_a_class(tmp_path: Path, k: int, message: str) -> None:
    job = {"role": "sensitive"}
    plain = {"income": {"role": "sensitive"}, "wealth": {"role": "sensitive"}, "job": job}
    spec = make_spec("ola", k, **plain)
    spec["release"]["levels"] = {"region": 1, "age": 3}
    publish_unjudged(draw_people(60), spec, output=tmp_path / "out")
    certificate = load_certificate(tmp_path / "out")
    changed = certificate.model_copy(
        update={"parameters": {**certificate.parameters, "number of a class in wealth": "mean"}}
    )
    forge_certificate(tmp_path / "out", changed.with_statement().with_seal())
    (finding,) = list_verify_messages(tmp_path / "out")
    assert message in finding


def test_what_becomes_of_numbers_is_measured(tmp_path: Path) -> None:
    people = draw_people()
    release = publish(people, make_spec("mdav", 3), output=tmp_path / "out")
    evaluation = release.evaluation
    assert evaluation.numbers is not None
    income, wealth = evaluation.numbers.columns
    assert income.mean_before == pytest.approx(people["income"].mean())
    assert wealth.variance_before == pytest.approx(people["wealth"].var())
    assert wealth.variance_after is not None
    assert wealth.variance_before is not None
    assert 0 < wealth.variance_after < wealth.variance_before
    assert income.il1s is not None
    assert 0 < income.il1s < 0.5
    (pair,) = evaluation.numbers.correlations
    assert pair.before == pytest.approx(
        people.drop_nulls().select(pl.corr("income", "wealth")).item()
    )
    later = evaluate(people, tmp_path / "out", make_spec("mdav", 3))
    assert later.numbers is not None
    assert later.numbers.columns[1].mean_after == pytest.approx(wealth.mean_after)
    assert later.numbers.il1s is None  # nobody knows which row is whose
    page = (tmp_path / "out.curator/report.html").read_text(encoding="utf-8")
    assert "Numbers by class" in page
