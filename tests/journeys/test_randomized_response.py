"""Columns of categories under k-epsilon: randomized response, from a spec to files that verify."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from support.findings import list_verify_messages
from support.releases import forge_certificate
from support.slice_tables import load_certificate
from support.unjudged import publish_unjudged

from incrowd.curate.rehearse import rehearse
from incrowd.errors import IncrowdError
from incrowd.evaluation.evaluate import evaluate
from incrowd.privacy.randomness import SeededRandomness
from incrowd.publication import publish
from incrowd.release.verify import verify

HEALTH = {"role": "noisy", "values": ["good", "fair", "poor"]}


def draw_people(number: int = 3000) -> pl.DataFrame:
    rng = np.random.default_rng(6)
    return pl.DataFrame(
        {
            "region": rng.choice(["north", "south"], number),
            "health": rng.choice(["good", "fair", "poor"], number, p=[0.7, 0.2, 0.1]),
            "income": rng.integers(10, 90, number) * 100,
        }
    )


def make_spec(health: dict[str, Any] | None = None, **release: Any) -> dict[str, Any]:
    region = {"role": "quasi", "hierarchy": {"flat": {"values": ["north", "south"]}}}
    return {
        "columns": {"region": region, "health": health or HEALTH, "income": {"role": "drop"}},
        "release": {"method": "k-epsilon", "k": 5, "epsilon": 2, **release},
    }


def test_a_release_with_categories_alone(tmp_path: Path) -> None:
    people = draw_people()
    spec = make_spec()
    release = publish(people, spec, output=tmp_path / "out", bits=SeededRandomness(3))
    assert [x for x in list_verify_messages(tmp_path / "out") if "seed" not in x.lower()] == []
    certificate = json.loads((tmp_path / "out/certificate.json").read_text(encoding="utf-8"))
    matrix = certificate["randomized"]["health"]
    keep, other = matrix["keep"], (1 - matrix["keep"]) / 2
    assert matrix["values"] == ["good", "fair", "poor"]
    assert math.log(keep / other) == pytest.approx(2)
    (sentence,) = [
        x for x in certificate["guarantee"]["statement"] if "Randomized response" in x["text"]
    ]
    assert "at most e^2." in sentence["text"]
    shares = dict(
        pl.read_parquet(tmp_path / "out/data.parquet")["health"].value_counts(normalize=True).rows()
    )
    for value, share in (("good", 0.7), ("fair", 0.2), ("poor", 0.1)):
        estimate = (shares[value] - other) / (keep - other)  # as README.md tells readers
        assert estimate == pytest.approx(share, abs=0.05)
    readme = (tmp_path / "out/README.md").read_text(encoding="utf-8")
    assert "(f − q) / (p − q)" in readme
    noise = release.evaluation.noise
    assert noise is not None
    loss = noise.categories["health"]
    assert loss.keep == keep
    assert loss.epsilon == 2.0
    assert loss.unchanged is not None
    assert loss.unchanged / 3000 == pytest.approx(keep, abs=0.04)
    assert "Randomized categories" in (tmp_path / "out.curator/report.html").read_text("utf-8")
    later = evaluate(people, tmp_path / "out", spec).noise
    assert later is not None
    assert later.categories["health"].shares == loss.shares
    assert later.categories["health"].unchanged is None


def test_epsilon_is_shared_by_weight(tmp_path: Path) -> None:
    spec = make_spec({**HEALTH, "weight": 3})
    spec["columns"]["income"] = {"role": "noisy"}
    publish_unjudged(draw_people(200), spec, output=tmp_path / "out")
    assert verify(tmp_path / "out") == []
    certificate = load_certificate(tmp_path / "out")
    assert certificate.randomized is not None
    assert certificate.randomized["health"].epsilon == 1.5
    assert list(certificate.noisy) == ["income"]


def test_values_that_are_not_listed(tmp_path: Path) -> None:
    people = draw_people(100).with_columns(
        health=pl.when(pl.int_range(100) < 5).then(None).otherwise("health")
    )
    with pytest.raises(IncrowdError, match="a missing value is not among `values`"):
        publish_unjudged(people, make_spec())
    with pytest.raises(IncrowdError, match="'poor' is not among `values`"):
        publish_unjudged(draw_people(100), make_spec({**HEALTH, "values": ["good", "fair"]}))
    publish_unjudged(people, make_spec({**HEALTH, "other": "unknown"}), output=tmp_path / "out")
    assert verify(tmp_path / "out") == []
    certificate = load_certificate(tmp_path / "out")
    assert certificate.randomized is not None
    assert certificate.randomized["health"].values == ["good", "fair", "poor", "unknown"]
    assert pl.read_parquet(tmp_path / "out/data.parquet")["health"].null_count() == 0


def test_verify_recomputes_what_a_response_costs(tmp_path: Path) -> None:
    publish_unjudged(draw_people(100), make_spec(), output=tmp_path / "out")
    certificate = load_certificate(tmp_path / "out")
    assert certificate.randomized is not None
    response = certificate.randomized["health"]
    for change, message in (
        ({"keep": 0.8}, "cost more than ε = 2"),
        ({"values": ["good", "fair", "none"]}, "none of its certified categories"),
    ):
        changed = certificate.model_copy(
            update={"randomized": {"health": response.model_copy(update=change)}}
        )
        forge_certificate(tmp_path / "out", changed.with_statement().with_seal())
        assert any(message in text for text in list_verify_messages(tmp_path / "out"))


@pytest.mark.parametrize(
    ("health", "release", "message"),
    [
        ({**HEALTH, "values": ["good"]}, {}, "two categories or more"),
        ({**HEALTH, "precision": 1}, {}, "`precision` is for numbers"),
        ({"role": "sensitive", "values": ["a", "b"]}, {}, "`values` is for role `noisy`"),
        (HEALTH, {"method": "k-anonymity", "epsilon": None}, "`noisy` is for `method: k-epsilon`"),
    ],
)
def test_mistakes(health: dict[str, Any], release: dict[str, Any], message: str) -> None:
    with pytest.raises(IncrowdError, match=message):
        publish_unjudged(draw_people(50), make_spec(health, **release))


def test_fictional_people_have_the_declared_categories(tmp_path: Path) -> None:
    spec = make_spec()
    path = tmp_path / "spec.json"
    path.write_text(json.dumps(spec), encoding="utf-8")
    rehearse(path, size=300, output=tmp_path / "out")
    assert set(pl.read_parquet(tmp_path / "out/data.parquet")["health"]) <= {"good", "fair", "poor"}
