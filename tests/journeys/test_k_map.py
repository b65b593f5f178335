"""k that counts people of a population: fewer rows per class, with the assumption stated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from support.unjudged import publish_unjudged

import incrowd as ic
from incrowd.curate.explore import explore_schemes
from incrowd.engine.source import open_table
from incrowd.measure.k_map import derive_sample_threshold
from incrowd.release.parameters import METHODS, check_parameters
from incrowd.spec.file import load_spec

COLUMNS = {
    "region": {"role": "quasi", "hierarchy": {"flat": {"values": ["n", "s", "i"]}}},
    "age": {"role": "quasi", "hierarchy": {"intervals": {"from": 0, "to": 99, "widths": [5, 20]}}},
}


def sample(rows: int = 2000) -> pl.DataFrame:
    draw = np.random.default_rng(1)
    region = draw.choice(["n", "s", "i"], rows, p=[0.6, 0.38, 0.02])
    return pl.DataFrame({"region": region, "age": draw.integers(0, 100, rows)})


def make_spec(**release: Any) -> dict[str, Any]:
    return {"columns": COLUMNS, "release": {"method": "k-anonymity", "k": 10, **release}}


@pytest.mark.parametrize("algorithm", ["ola", "mondrian", "suppress"])
def test_classes_have_the_rows_that_stand_for_k_people(algorithm: str, tmp_path: Path) -> None:
    settings = {"levels": {"age": 1}} if algorithm == "suppress" else {}
    spec = make_spec(population=20_000, algorithm=algorithm, **settings)
    release = publish_unjudged(sample(), spec, output=tmp_path / "out")
    least = derive_sample_threshold(10, 0.1)
    assert least == 4  # exact binomial law, in tests/measure/test_k_map.py
    parameters = release.certificate.parameters
    assert (parameters["k"], parameters["map_k"], parameters["population"]) == (4, 10, 20_000)
    (table,) = release.certificate.tables
    assert 4 <= table.release.smallest_class < 10
    texts = [sentence.text for sentence in release.certificate.guarantee.statement]
    assert any("simple random sample of 20,000 people" in text for text in texts)
    assert any("This release is 4-anonymous" in text for text in texts)
    assert ic.verify(tmp_path / "out") == []


def test_a_larger_share_of_the_population_needs_more_rows() -> None:
    for population, least in ((2_000_000, 2), (20_000, 4), (4_000, 8), (2_000, 10)):
        release = publish_unjudged(sample(), make_spec(population=population))
        assert release.certificate.parameters["k"] == least
        assert least == derive_sample_threshold(10, 2000 / population)


def test_exploring_judges_the_same_classes() -> None:
    spec = make_spec(population=20_000)
    exploration = explore_schemes(load_spec(spec), open_table(sample()))
    release = publish_unjudged(sample(), spec)
    levels = tuple(column.level for column in release.certificate.tables[0].scheme.values())
    assert exploration.k == 4
    assert exploration.best is not None
    assert exploration.best.levels == levels


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"map_k": 3.0}, "'k' is larger than 'map_k'"),
        ({"population": None}, "belong together"),
        ({"population": 0.5}, "'population' is no whole number"),
    ],
)
def test_a_certificate_cannot_claim_more_people_than_its_classes_stand_for(
    change: dict[str, float | None], words: str
) -> None:
    release = publish_unjudged(sample(), make_spec(population=20_000))
    both: dict[str, Any] = {**release.certificate.parameters, **change}
    parameters = {name: value for name, value in both.items() if value is not None}
    with pytest.raises(ValueError, match=words):
        check_parameters(parameters, METHODS["k-anonymity"], ["region", "age"], [])


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"population": 1999}, "2,000 rows, more than `population: 1999`"),
        ({"population": 5000, "algorithm": "duplicate"}, "`population` needs classes of rows"),
        (
            {"population": 5000, "algorithm": "suppress", "reading": "wildcard"},
            "`population` needs classes of rows",
        ),
    ],
)
def test_mistakes_are_named(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ic.IncrowdError, match=words):
        publish_unjudged(sample(), make_spec(**settings))
