"""Publishing with boxes that were cut privately, end to end."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from support.pinned_randomness import PinnedRandomness
from support.releases import get_statement
from support.unjudged import publish_unjudged

from incrowd.curate.demo_tables import make_demo_table
from incrowd.errors import IncrowdError
from incrowd.measure.evaluation import Evaluation
from incrowd.publication import publish
from incrowd.release.verify import verify
from incrowd.spec.file import parse_spec

SPEC = """
columns:
  first_name: {role: identifier}
  last_name: {role: identifier}
  email: {role: identifier}
  zip: {role: quasi, hierarchy: {intervals: {from: 32000, to: 34999, widths: [100, 1000]}}}
  sex: {role: quasi, hierarchy: {groups: {Person: [female, male]}}}
  birth_year: {role: quasi, hierarchy: {intervals: {from: 1900, to: 2026, widths: [2, 4, 8, 16]}}}
  race: {role: quasi, hierarchy: {flat: {values: [White, Hispanic, Black, Asian, Other]}}}
  height: {role: drop}
release: {scheme: mondrian, epsilon: 1, delta: 1.0e-6MORE}
"""


def test_a_release_by_safe_mondrian(tmp_path: Path) -> None:
    voters = make_demo_table("voters", rows=20_000)
    result = publish(
        voters.to_frame(), parse_spec(SPEC.replace("MORE", "")), output=tmp_path / "out",
        bits=PinnedRandomness(3),
    )  # fmt: skip
    assert verify(tmp_path / "out") == []
    assert isinstance(result.evaluation, Evaluation)
    assert result.evaluation.loss < 0.6
    kinds = [event["kind"] for event in result.certificate.events]
    assert kinds == ["selection"] * 3 + ["one of"]
    assert result.certificate.parameters["search_epsilon"] == pytest.approx(0.15)
    assert "ε = 0.15" in get_statement(result.certificate)["generalization"]
    sizes = result.data.group_by(pl.all()).len()["len"]
    assert sizes.min() >= result.certificate.k


def test_a_column_whose_levels_are_limited_is_not_cut(tmp_path: Path) -> None:
    voters = make_demo_table("voters", rows=20_000)
    result = publish_unjudged(
        voters.to_frame(),
        parse_spec(SPEC.replace("MORE", ", levels: {sex: 0, birth_year: [4, 5]}")),
        output=tmp_path / "out",
        bits=PinnedRandomness(3),
    )
    assert verify(tmp_path / "out") == []
    outcome = {name: column.level for name, column in result.certificate.table.scheme.items()}
    assert (outcome["sex"], outcome["zip"], outcome["race"]) == (0, None, None)
    assert outcome["birth_year"] in (4, 5)
    every = "levels: {sex: 0, birth_year: [4, 5], zip: 1, race: [0, 1]}"
    with pytest.raises(IncrowdError, match="without `levels`. Use `scheme: search`"):
        publish_unjudged(
            voters.to_frame(), parse_spec(SPEC.replace("MORE", f", {every}")), output=tmp_path / "n"
        )


def test_a_column_that_does_not_list_its_values_stays_at_its_level(tmp_path: Path) -> None:
    """A box of values met would reach as far as they do, and so tell of them."""
    voters = make_demo_table("voters", rows=20_000)
    masked = SPEC.replace("MORE", "").replace(
        "{intervals: {from: 32000, to: 34999, widths: [100, 1000]}}", "{mask: {length: 5}}"
    )
    result = publish_unjudged(
        voters.to_frame(), parse_spec(masked), output=tmp_path / "out", bits=PinnedRandomness(3)
    )
    assert verify(tmp_path / "out") == []
    scheme = result.certificate.table.scheme
    level = scheme["zip"].level
    assert level is not None
    assert {name: column.level for name, column in scheme.items() if name != "zip"} == {
        "sex": None, "birth_year": None, "race": None,
    }  # fmt: skip
    levels_shown = {value.count("*") for value in result.data["zip"].unique()}
    assert levels_shown <= {level}
    assert result.data["birth_year"].n_unique() > 4  # some were cut further
    only = "columns: {zip: {role: quasi, hierarchy: {mask: {length: 5}}}}"
    with pytest.raises(IncrowdError, match="needs a column with listed values"):
        publish_unjudged(
            voters.to_frame().select("zip"),
            parse_spec(f"{only}\nrelease: {{scheme: mondrian, epsilon: 1, delta: 1.0e-6}}"),
            output=tmp_path / "no",
        )
