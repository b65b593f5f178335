"""Utility on two scales: at published levels, and by value."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl
import pytest

from incrowd.cli.evaluation_facts import print_evaluation
from incrowd.evaluation.evaluate import evaluate
from incrowd.publication import publish
from incrowd.spec.file import parse_spec


@pytest.mark.parametrize("release", ["method: k-anonymity, k: 2", "epsilon: 5, delta: 1.0e-3"])
def test_every_release_by_levels_is_measured_on_both_scales(
    release: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Labels of a mask keep their shares; digits that it hides are spread over all values."""
    codes = ["01"] * 500 + ["02"] * 100
    original = pl.DataFrame({"zip": codes, "sex": ["f", "f", "m", "m"] * 150})
    file = parse_spec(
        "columns:\n  zip: {role: quasi, hierarchy: {mask: {length: 2}}}\n"
        "  sex: {role: quasi, hierarchy: {flat: {values: [f, m]}}}\n"
        f"release: {{{release}, levels: {{zip: 1, sex: 0}}}}\n"
    )
    publish(original, file, output=tmp_path / "out")
    evaluation = evaluate(original, tmp_path / "out", file)
    scales = evaluation.utility_by_scale
    assert list(scales) == ["at published levels", "by value"]
    distances = [utility.distance_by_column["zip"] for utility in scales.values()]
    assert distances[0] == 0.0
    assert distances[1] > 0.3
    print_evaluation(evaluation)
    page = " ".join(capsys.readouterr().out.split())
    assert "distance at published levels distance by value" in page
    assert re.search(r"median error \S+ % at published levels, \S+ % by value", page)


def test_labels_of_several_levels_have_one_scale() -> None:
    original = pl.DataFrame({"zip": ["11", "12", "21", "22"] * 10})
    released = pl.DataFrame({"zip": ["11", "12", "2*", "2*"] * 10})
    spec = parse_spec("columns: {zip: {role: quasi, hierarchy: {mask: {length: 2}}}}")
    evaluation = evaluate(original, released, spec)
    assert list(evaluation.utility_by_scale) == ["by value"]
