"""Mondrian with free labels: sets of values, from the spec to what attackers and verify read."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import incrowd as ic
from incrowd.codes.set_label import parse_set

COLUMNS = {
    "age": {"role": "quasi", "hierarchy": {"intervals": {"from": 0, "to": 99, "widths": [10]}}},
    "job": {"role": "quasi", "hierarchy": {"groups": {
        "office": ["clerk", "sales, retail", "manager"], "field": ["farmer", "driver", "guard"]}}},
    "zip": {"role": "quasi", "hierarchy": {"mask": {"length": 3}}},
    "illness": {"role": "sensitive", "diversity": {"distinct": 2}, "closeness": {"equal": 0.6}},
}  # fmt: skip
JOBS = ["clerk", "sales, retail", "manager", "farmer", "driver", "guard"]


def make_table() -> pl.DataFrame:
    draw = np.random.default_rng(5)
    return pl.DataFrame(
        {
            "age": draw.integers(18, 80, 600),
            "job": draw.choice(JOBS, 600, p=[0.45, 0.05, 0.05, 0.35, 0.05, 0.05]),
            "zip": draw.choice(["100", "101", "200"], 600),
            "illness": draw.choice(["flu", "cold", "gout"], 600),
        }
    )


def publish_classes(folder: Path, more: str = "") -> ic.Release:
    release = {"method": "k-anonymity", "k": 5, "algorithm": "mondrian", "format": "csv"}
    settings = {**release, **json.loads(more or "{}")}
    return ic.publish(make_table(), {"columns": COLUMNS, "release": settings}, output=folder)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("free") / "release"
    publish_classes(path, '{"labels": "free"}')
    return path


@pytest.mark.filterwarnings("ignore::incrowd.IncrowdWarning")
def test_sets_lose_less_and_every_row_is_in_its_class(folder: Path, tmp_path: Path) -> None:
    spec = {"columns": COLUMNS, "release": {"method": "k-anonymity", "k": 5}}
    plain = publish_classes(tmp_path / "plain")
    free = ic.evaluate(make_table(), folder, spec)
    assert free.loss < plain.evaluation.loss
    published = pl.read_csv(folder / "data.csv", infer_schema=False)
    sets = [parse_set(label) for label in published["job"].unique()]
    assert any(values is not None and "sales, retail" in values for values in sets)
    classes = published.group_by("age", "job", "zip").agg(
        pl.len().alias("rows"), pl.col("illness").n_unique().alias("illnesses")
    )
    assert min(classes["rows"].to_list()) >= 5
    assert min(classes["illnesses"].to_list()) >= 2
    assert set(published["zip"]) <= {"100", "101", "200", "10*", "1**", "2**", "20*", "***"}


def test_verify_accepts_it_and_finds_a_set_that_no_release_would_show(folder: Path) -> None:
    assert ic.verify(folder) == []
    certificate = json.loads((folder / "certificate.json").read_text(encoding="utf-8"))
    assert certificate["parameters"]["labels"] == "free"
    assert certificate["scheme"]["job"]["labels"] == "sets"
    text = (folder / "README.md").read_text(encoding="utf-8")
    assert "`{a, b}` is one of the values a and b" in text
    label = next(
        label
        for label in pl.read_csv(folder / "data.csv", infer_schema=False)["job"].unique()
        if parse_set(label)
    )
    values = parse_set(label)
    assert values is not None
    from incrowd.codes.axis import Axis
    from incrowd.codes.hierarchy import build_from_rows
    from incrowd.release.verify_data import _make_label_check

    rows = [line.split(";") for line in (folder / "scheme/job.csv").read_text().splitlines()]
    is_allowed = _make_label_check(Axis(build_from_rows(rows), ordered=False), "job", is_free=True)
    assert is_allowed(label)
    assert not is_allowed(label.replace(", ", ","))
    assert not is_allowed("{clerk, pilot}")


def test_attacks_read_sets(folder: Path) -> None:
    spec = {"columns": COLUMNS, "release": {"method": "k-anonymity", "k": 5}}
    report = ic.attack(make_table(), folder, spec, only=("linkage", "inference"), tries=50)
    linkage = next(estimate for estimate in report.estimates if estimate.attack == "linkage")
    assert linkage.success.value <= 0.5


@pytest.mark.parametrize("algorithm", ["ola", "suppress", "duplicate"])
def test_free_labels_need_classes_that_are_cut(tmp_path: Path, algorithm: str) -> None:
    more = json.dumps({"labels": "free", "algorithm": algorithm})
    with pytest.raises(ic.IncrowdError, match="`labels: free` needs `algorithm: mondrian`"):
        publish_classes(tmp_path / "no", more)
