"""The same release on Spark: identical where this machine draws, else equal in law."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession
from support.cli import run_command
from support.findings import list_verify_messages

from incrowd.curate.check import check
from incrowd.engine.source import local_engine, open_spec_table, open_table
from incrowd.engine.spark.engine import SparkEngine
from incrowd.engine.table import TooManyTuplesError
from incrowd.errors import IncrowdError
from incrowd.evaluation.attacks.attack import attack
from incrowd.evaluation.evaluate import evaluate
from incrowd.privacy.randomness import SeededRandomness
from incrowd.publication import Release, publish
from incrowd.release.ledger import Ledger
from incrowd.spec.file import read_spec_file

pytestmark = pytest.mark.spark

ROWS = 6000
DRAW = np.random.default_rng(5)
PEOPLE: dict[str, Any] = {
    "person": [f"p{at % 5000}" for at in range(ROWS)],
    "zip": [f"{32000 + int(x)}" for x in DRAW.gamma(2, 8, ROWS)],
    "sex": DRAW.choice(["female", "male"], ROWS).tolist(),
    "age": [None if x > 95 else int(x) for x in DRAW.integers(18, 99, ROWS)],
    "ill": DRAW.choice(["flu", "cold", "none", " "], ROWS, p=[0.2, 0.2, 0.5, 0.1]).tolist(),
    "height": DRAW.normal(170, 9, ROWS).round(1).tolist(),
}
QUASI: dict[str, Any] = {
    "zip": {"role": "quasi", "hierarchy": {"mask": {"length": 5}}},
    "sex": {"role": "quasi", "hierarchy": {"groups": {"person": ["female", "male"]}}},
    "age": {"role": "quasi", "hierarchy": {"intervals": {"from": 0, "to": 99, "widths": [5, 20]}}},
}
ILL = {"role": "sensitive", "hierarchy": {"flat": {"values": ["flu", "cold", "none"]}}}
SAFE = {"method": "safe", "epsilon": 2, "delta": 1e-4}
RELEASES: dict[str, dict[str, Any]] = {
    "sample": SAFE | {"draw": "sample", "levels": {"zip": 2, "sex": 0, "age": 1, "ill": 0}},
    "counts": SAFE | {"draw": "counts", "levels": {"zip": 2, "sex": 0, "age": 1, "ill": 0}},
    "search": SAFE | {"scheme": "search"},
    "target": SAFE | {"scheme": "search", "target": "ill"},
    "mondrian": SAFE | {"scheme": "mondrian", "draw": "sample"},
    "slices": SAFE | {"scheme": "search", "slices": {"columns": 2, "tables": 3}},
    "ola": {"method": "k-anonymity", "k": 5},
    "starred": {"method": "k-anonymity", "k": 5, "suppressed": "starred", "format": "csv"},
    "cuts": {"method": "k-anonymity", "k": 5, "algorithm": "mondrian"},
}
# What is spread stays on the cluster: distinct tuples of level 0 are about 5,000.
SPREAD = ("search", "slices")


def spec(release: dict[str, Any], **more: Any) -> dict[str, Any]:
    safe = release["method"] == "safe"
    columns = {
        "person": {"role": "identifier"}, **copy.deepcopy(QUASI),
        "ill": ILL if safe else {"role": "sensitive"}, "height": {"role": "drop"},
    }  # fmt: skip
    return {"columns": columns | more.pop("columns", {}), "release": release, **more}


def files(release: Release) -> dict[str, bytes]:
    result = sorted(release.folder.glob("data*"))
    return {path.name: path.read_bytes() for path in result}


@pytest.fixture(scope="module")
def engine(spark_session: SparkSession) -> SparkEngine:
    return SparkEngine()


@pytest.mark.parametrize("name", RELEASES)
def test_a_seed_makes_the_same_files_here_and_on_spark(engine: SparkEngine, name: str) -> None:
    request = spec(RELEASES[name])
    local, remote = (
        publish(home.from_columns(PEOPLE), request, bits=SeededRandomness(7))
        for home in (local_engine(), engine)
    )
    assert files(local) == files(remote)
    assert local.certificate.parameters == remote.certificate.parameters
    assert local.evaluation == remote.evaluation
    assert list_verify_messages(remote.folder) == [
        "The random numbers came from a seed: this release is NOT private."
    ]


@pytest.mark.parametrize("name", SPREAD)
def test_a_search_on_the_cluster_chooses_what_one_here_does(
    spark_session: SparkSession, name: str
) -> None:
    """Tuples stay there, but cells of the chosen levels fit here, so that draws are made here."""
    few = {"levels": {"zip": [2, 4], "sex": 0}}  # schemes: each of them is counted there
    request = spec(RELEASES[name] | few)
    local = publish(local_engine().from_columns(PEOPLE), request, bits=SeededRandomness(7))
    far = SparkEngine(most_tuples=2500)
    with pytest.raises(TooManyTuplesError):
        list(far.from_columns(PEOPLE).iter_tallies(["zip", "sex", "age", "ill"]))
    remote = publish(far.from_columns(PEOPLE), request, bits=SeededRandomness(7))
    assert files(local) == files(remote)


def test_cells_that_are_too_many_are_drawn_on_executors(spark_session: SparkSession) -> None:
    for draw in ("sample", "counts"):
        request = spec(SAFE | {"draw": draw, "levels": {"zip": 1, "sex": 1, "age": 1, "ill": 1}})
        remote = publish(SparkEngine(most_tuples=40).from_columns(PEOPLE), request)
        assert list_verify_messages(remote.folder) == []
        local = publish(local_engine().from_columns(PEOPLE), request)
        item, other = local.evaluation, remote.evaluation
        assert other.rows_original == item.rows_original == ROWS
        assert other.cells_original == item.cells_original
        assert (item.cells_original or 0) > 48  # more than fit here
        assert other.likely_share == item.likely_share
        assert other.sizes_original == item.sizes_original
        # Two draws of one law: the rows shown are within six deviations of each other.
        assert abs(other.rows_released - item.rows_released) < 6 * np.sqrt(2 * ROWS * 0.25) + 100
        assert other.suppressed == ROWS - other.rows_released + other.surplus


def test_rows_of_classes_are_joined_where_they_are_too_many(spark_session: SparkSession) -> None:
    """Classes are formed of quasi columns alone; kept ones would be too many tuples to be here."""
    request = spec(
        {"method": "k-anonymity", "k": 5, "levels": {"zip": 3}},
        columns={"height": {"role": "sensitive"}},
    )
    local = publish(local_engine().from_columns(PEOPLE), request)
    remote = publish(SparkEngine(most_tuples=5000).from_columns(PEOPLE), request)
    assert files(local) == files(remote)
    # Of columns that are kept, groups are counted only where all tuples are here.
    groups = [subgroup for subgroup in local.evaluation.subgroups if subgroup.level is not None]
    # and no classifier is trained on them
    assert local.evaluation.utility is not None
    utility = replace(local.evaluation.utility, accuracy=None)
    assert replace(local.evaluation, subgroups=groups, utility=utility) == remote.evaluation


def test_cuts_of_tuples_that_are_not_here_are_refused_before_anything_is_spent(
    spark_session: SparkSession, tmp_path: Path
) -> None:
    ledger = Ledger(tmp_path / "table.ledger")
    ledger.set_budget(epsilon=3, delta=1e-3)
    table, request = SparkEngine(most_tuples=40).from_columns(PEOPLE), spec(RELEASES["mondrian"])
    with pytest.raises(IncrowdError, match="too many distinct tuples for `scheme: mondrian`"):
        publish(table, request, ledger=ledger, output=tmp_path / "out")
    assert ledger.spends() == []
    assert not (tmp_path / "out").exists()


def test_noise_is_drawn_on_executors_by_its_law(engine: SparkEngine) -> None:
    """Of 6,000 values 0 and one of 100 in a class, all get Laplace noise of scale 100 / epsilon."""
    request = spec(
        {"method": "k-epsilon", "k": 5, "epsilon": 0.5},
        columns={
            "zip": {"role": "drop"}, "age": {"role": "drop"}, "ill": {"role": "drop"},
            "height": {"role": "noisy", "precision": 1},
        },
    )  # fmt: skip
    people = PEOPLE | {"height": [100 if at < 4 else 0 for at in range(ROWS)]}
    table = engine.from_columns({**people, "sex": ["female"] * 3000 + ["male"] * 3000})
    release = publish(table, request)
    assert list_verify_messages(release.folder) == []
    result = open_table(release.folder / "data.parquet").to_frame()
    noise = result.filter(result["sex"] == "female")["height"].to_numpy().astype(float)
    # E|X| = 200 with a deviation of 200 / sqrt(3000) = 3.7; a scale off by a tenth is 5.4 off.
    assert abs(np.abs(noise).mean() - 200) < 17
    assert abs(np.median(noise)) < 20
    assert (result.filter(result["sex"] == "male")["height"] == 0).all()  # a single value, no noise
    assert "VALUES_WITHOUT_NOISE" in [finding.code for finding in release.findings]


def test_what_noise_did_is_measured_where_the_rows_are(engine: SparkEngine) -> None:
    request = spec(
        {"method": "k-epsilon", "k": 20, "epsilon": 2, "confidence": 0.9},
        columns={"height": {"role": "noisy", "precision": 0.1}},
    )
    local, remote = (
        publish(home.from_columns(PEOPLE), request, bits=SeededRandomness(4)).evaluation
        for home in (local_engine(), engine)
    )
    assert local.noise is not None
    assert remote.noise is not None
    first, other = local.noise.columns["height"], remote.noise.columns["height"]
    assert other.expected_error == pytest.approx(first.expected_error)
    assert other.mean_scale == pytest.approx(first.mean_scale)
    assert other.measured_error == pytest.approx(first.measured_error, rel=0.1)
    assert other.classes_without_noise == first.classes_without_noise
    risks = [noise.simulated.linking for noise in (local.noise, remote.noise) if noise.simulated]
    assert risks[1].mean == pytest.approx(risks[0].mean, rel=0.15)
    assert remote.noise.suppressed_by_confidence == pytest.approx(
        local.noise.suppressed_by_confidence,
        rel=0.3,  # whole classes at a time
    )


def test_a_bad_value_is_told_by_the_driver(engine: SparkEngine) -> None:
    people = PEOPLE | {"height": ["tall", *map(str, PEOPLE["height"][1:])]}
    request = spec(
        {"method": "k-epsilon", "k": 20, "epsilon": 2},
        columns={"height": {"role": "noisy", "precision": 0.1}},
    )
    with pytest.raises(
        IncrowdError, match="Column 'height': 'tall' is neither a number nor a date"
    ):
        publish(engine.from_columns(people), request)


def test_each_person_is_one_row(engine: SparkEngine) -> None:
    release = publish(engine.from_columns(PEOPLE), spec(RELEASES["counts"], unit={"id": "person"}))
    assert list_verify_messages(release.folder) == []
    assert release.evaluation.rows_original == 5000


def test_a_frame_of_spark_is_all_it_takes(spark_session: SparkSession, tmp_path: Path) -> None:
    frame = SparkEngine().from_columns(PEOPLE).to_frame()
    request = spec(RELEASES["counts"])
    release = publish(frame, request, output=tmp_path / "out")
    assert type(release.data).__module__.startswith("pyspark")
    rows = release.evaluation.rows_released
    assert release.data.count() == rows
    assert [item.code for item in check(frame, request) if item.severity == "error"] == []
    measured = evaluate(frame, release, request)
    assert measured.rows_released == rows
    assert measured.rows_original == ROWS
    tried = attack(frame, release, request, only=("linkage",), tries=200, seed=1)
    assert tried.estimates[0].success.value < 0.1


def test_a_release_goes_back_into_the_catalog(spark_session: SparkSession) -> None:
    release = publish(SparkEngine().from_columns(PEOPLE), spec(RELEASES["slices"]))
    try:
        names = release.save_table("shown")
        assert names == ("shown_1", "shown_2", "shown_3")
        for name, table in zip(names, release.certificate.tables, strict=True):
            assert spark_session.table(name).count() == table.release.rows
        with pytest.raises(IncrowdError, match="Table 'shown_1': it exists in the catalog"):
            release.save_table("shown")
        saved = publish("shown_1", _copied(spark_session, "shown_1"), engine=SparkEngine())
        assert saved.evaluation.rows_original == release.certificate.tables[0].release.rows
    finally:
        for number in (1, 2, 3):
            spark_session.sql(f"DROP TABLE IF EXISTS shown_{number}")


def test_only_spark_keeps_tables_by_name() -> None:
    with pytest.raises(IncrowdError, match="saved by name on Spark only"):
        publish(local_engine().from_columns(PEOPLE), spec(RELEASES["counts"])).save_table("shown")


def _copied(session: SparkSession, name: str) -> dict[str, Any]:
    """A spec of a table whose columns it knows by name alone."""
    flat = {"role": "quasi", "hierarchy": {"flat": {}}}
    columns = dict.fromkeys(session.table(name).columns, flat)
    return {"columns": columns, "release": {"method": "k-anonymity", "k": 2}}


def test_the_ledger_knows_the_table_in_any_order(
    spark_session: SparkSession, tmp_path: Path
) -> None:
    engine = SparkEngine()
    frame = engine.from_columns(PEOPLE).to_frame()
    marks = {
        engine.open(item).compute_fingerprint(b"key")
        for item in (frame, frame.repartition(5), frame.orderBy("age"), frame.select("*"))
    }
    assert len(marks) == 1
    others = {
        engine.open(item).compute_fingerprint(b"key")
        for item in (
            frame.limit(ROWS - 1),
            frame.union(frame.limit(1)),
            frame.withColumnRenamed("age", "years"),
            frame.withColumn("age", frame["age"].cast("double")),
            frame.replace("p7", "p8", subset=["person"]),
            frame.fillna({"age": 0}),
        )
    }
    assert len(others - marks) == 6


def test_a_spec_is_drafted_for_a_table_of_the_catalog(
    spark_session: SparkSession, engine: SparkEngine, tmp_path: Path
) -> None:
    """What is guessed is what a local file of the same rows gives; its name stays its name."""
    people = {name: PEOPLE[name] for name in ("person", "age")}
    engine.from_columns(people).to_frame().createOrReplaceTempView("drafted_people")
    local_engine().from_columns(people).write(tmp_path / "people.parquet")
    remote, local = tmp_path / "there.yaml", tmp_path / "here.yaml"
    done = run_command("init", "drafted_people", "-o", str(remote), "--engine", "spark")
    assert (done.returncode, done.stderr) == (0, "")
    assert run_command("init", str(tmp_path / "people.parquet"), "-o", str(local)).returncode == 0
    text = remote.read_text(encoding="utf-8")
    assert "\ntable: drafted_people\n" in text
    assert text == local.read_text(encoding="utf-8").replace("people.parquet", "drafted_people")
    assert open_spec_table(read_spec_file(remote), engine=engine).columns == tuple(people)
    lost = run_command("init", "drafted_people", "-o", str(tmp_path / "lost.yaml"))
    assert lost.returncode == 2
    assert "File 'drafted_people': not found" in lost.stderr
    assert "--engine spark" in lost.stderr
    assert not (tmp_path / "lost.yaml").exists()
