"""Releases of one table side by side: the figures are those of each by itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from support.cli import run_command, run_successfully
from support.unjudged import publish_unjudged

import incrowd as ic
from incrowd.evaluation.attacks.catalog import ATTACKS, QUICK
from incrowd.evaluation.comparison import FIGURES, compare, list_figures

QUASI = {
    "sex": {"role": "quasi", "hierarchy": {"flat": {"values": ["f", "m"]}}},
    "age": {
        "role": "quasi",
        "hierarchy": {"intervals": {"from": 0, "to": 99, "widths": [5, 20]}},
    },
    "ill": {"role": "sensitive", "hierarchy": {"flat": {"values": ["yes", "no"]}}},
}


def make_spec(**release: Any) -> dict[str, Any]:
    return {"columns": QUASI, "release": release}


def people(rows: int = 1500) -> pl.DataFrame:
    draw = np.random.default_rng(4)
    age = draw.integers(0, 100, rows)
    ill = np.where(draw.random(rows) < age / 120, "yes", "no")
    return pl.DataFrame({"sex": draw.choice(["f", "m"], rows), "age": age, "ill": ill})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table, its releases by three methods, a file without a certificate, and a spec."""
    place = tmp_path_factory.mktemp("releases")
    people().write_csv(place / "people.csv")
    anonymous = make_spec(method="k-anonymity", k=5)
    synthetic = make_spec(method="synthetic", epsilon=2.0, delta=1e-6)
    publish_unjudged(people(), anonymous, output=place / "k5")
    publish_unjudged(people(), make_spec(method="k-anonymity", k=60), output=place / "k60")
    publish_unjudged(
        people(), make_spec(method="safe", epsilon=2.0, delta=1e-6), output=place / "safe"
    )
    ic.publish(people(), synthetic, output=place / "rows")
    pl.DataFrame({"sex": ["*"] * 9, "age": ["*"] * 9, "ill": ["no"] * 9}).write_csv(
        place / "other.csv"
    )
    (place / "spec.yaml").write_text(json.dumps(anonymous))
    (place / "synthetic.yaml").write_text(json.dumps(synthetic))
    return place


def test_each_release_has_the_figures_that_it_has_alone(folder: Path) -> None:
    comparison = compare(
        folder / "people.csv", [folder / "k5", folder / "k60"], folder / "spec.yaml", seed=3
    )
    fine, coarse = comparison.releases
    for release in (fine, coarse):
        alone = ic.evaluate(folder / "people.csv", release.name, folder / "spec.yaml")
        assert release.figures == list_figures(alone)
        assert release.figures["loss"] == alone.loss
        attacks = ic.attack(
            folder / "people.csv", release.name, folder / "spec.yaml", seed=3, tries=500,
            only=[name for name in ATTACKS if name in QUICK],
        )  # fmt: skip
        assert release.attacks == attacks.estimates
    assert (fine.k, coarse.k, fine.epsilon) == (5, 60, None)
    assert fine.figures["loss"] < coarse.figures["loss"]  # type: ignore[operator]
    assert fine.figures["highest_risk"] > coarse.figures["highest_risk"]  # type: ignore[operator]
    assert not comparison.has_private
    assert comparison.as_dict()["warning"] is None


def test_methods_of_all_kinds_stand_side_by_side(folder: Path) -> None:
    """A figure that a release does not have is None; of a private one the choice is warned of."""
    releases = [folder / "safe", folder / "rows", folder / "other.csv"]
    specs = [folder / "spec.yaml", folder / "synthetic.yaml", folder / "spec.yaml"]
    comparison = compare(folder / "people.csv", releases, specs, tries=50)
    safe, rows, other = comparison.releases
    assert (safe.method, rows.method, other.method) == ("safe", "synthetic", None)
    assert safe.epsilon == 2.0
    assert rows.figures["loss"] is None
    assert rows.figures["pair_distance"] is not None
    assert other.figures["suppressed"] == pytest.approx(1 - 9 / 1500)
    assert comparison.has_private
    plain = json.loads(json.dumps(comparison.as_dict(), allow_nan=False))
    assert "must not be chosen by these figures" in plain["warning"]
    assert {kind.name for kind in FIGURES} == set(plain["releases"][0]["figures"])


def test_the_command_prints_a_column_for_each(folder: Path) -> None:
    arguments = ["--original", str(folder / "people.csv"), "--spec", str(folder / "spec.yaml")]
    both = [str(folder / "k5"), str(folder / "k60")]
    text = run_successfully("compare", *both, *arguments, "--no-attacks")
    (guarantees,) = [line for line in text.splitlines() if line.startswith("guarantee")]
    assert guarantees.split() == ["guarantee", "5-anonymity", "60-anonymity"]
    assert "linkage" not in text
    with_safe = run_successfully(
        "compare", *both, str(folder / "safe"), *arguments, "--tries", "50", "--seed", "1"
    )
    assert "(2, 1e-06)-DP" in with_safe
    assert "linkage: all quasi-identifiers" in with_safe
    assert "must not be chosen by these figures" in with_safe
    figures = json.loads(run_successfully("compare", *both, *arguments, "--no-attacks", "--json"))
    assert [release["k"] for release in figures["releases"]] == [5, 60]


def test_mistakes_are_named(folder: Path) -> None:
    table, spec = folder / "people.csv", folder / "spec.yaml"
    with pytest.raises(ic.ParameterError, match="be two or more releases"):
        compare(table, [folder / "k5"], spec)
    with pytest.raises(ic.ParameterError, match="one for each release"):
        compare(table, [folder / "k5", folder / "k60", folder / "safe"], [spec, spec])
    process = run_command("compare", "k5", "--original", "people.csv", "--spec", "spec.yaml")
    assert process.returncode == 2
    assert "Comparing needs two releases or more" in process.stderr
