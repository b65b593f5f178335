"""A (k,epsilon)-release from a file: what is measured on it, and what is only simulated."""

from __future__ import annotations

import json
from itertools import permutations
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from support.cli import run_successfully
from support.findings import list_codes
from support.heights import draw_heights, get_noise, make_height_spec, make_height_table

from incrowd.evaluation.evaluate import evaluate
from incrowd.measure.evaluation import Evaluation
from incrowd.measure.noise_loss import FRESH, NOT_MEASURED, NoiseEvaluation
from incrowd.privacy.randomness import SeededRandomness
from incrowd.publication import publish

FILE = make_height_spec("k: 5, epsilon: 2")


def measured(
    original: pl.DataFrame, released: pl.DataFrame, identity: str | None = None
) -> NoiseEvaluation:
    noise_evaluation = evaluate(
        original, released, FILE, identity=identity, bits=SeededRandomness(1)
    )
    assert isinstance(noise_evaluation, Evaluation)
    assert noise_evaluation.noise is not None
    return noise_evaluation.noise


def test_a_file_with_the_true_values_is_told_to_hold_them() -> None:
    original = draw_heights(1000)
    result = measured(original, original.drop("person").sample(fraction=1, shuffle=True, seed=1))
    column = result.columns["x"]
    assert column.measured_error is None  # nothing says which row is whose
    assert column.least_error == 0
    assert column.rows_as_original == column.rows_compared == 1000
    assert (result.linking, result.linking_shared) == (None, None)
    assert list_codes(result.findings) == ["TRUE_VALUES_PUBLISHED"]
    named = measured(original, original, "person")
    assert named.columns["x"].measured_error == 0
    assert named.columns["x"].unchanged == 1000
    assert named.linking is not None
    assert named.linking.mean == 1
    assert "TRUE_VALUES_OF_PEOPLE" in list_codes(named.findings)


def test_one_class_with_the_true_values_is_found_among_noisy_ones() -> None:
    original = draw_heights(400)
    bare = pl.col("group") == "b"
    released = original.with_columns(x=pl.when(bare).then("x").otherwise(pl.col("x") + 0.05))
    released = released.with_columns(x=pl.when(bare).then("x").otherwise(pl.col("x") + 30))
    result = measured(original, released.drop("person"))
    assert result.columns["x"].rows_as_original == 100
    (finding,) = result.findings
    assert finding.code == "TRUE_VALUES_IN_CLASSES"
    assert finding.values == {"rows": 100, "compared": 400}


def test_what_is_measured_does_not_change_with_the_simulation() -> None:
    """It is of the file: another file, another figure; another simulation, the same."""
    original = draw_heights(600)
    item = original.with_columns(x=pl.col("x") + 100).drop("person")
    two = original.with_columns(x=pl.col("x") + 200).drop("person")
    assert measured(original, item).columns["x"].least_error == pytest.approx(100)
    assert measured(original, two).columns["x"].least_error == pytest.approx(200)
    again = evaluate(original, item, FILE, bits=SeededRandomness(2)).noise
    assert again is not None
    assert again.columns == measured(original, item).columns
    assert again.simulated != measured(original, item).simulated


def test_the_least_error_is_that_of_the_best_assignment(tmp_path: Path) -> None:
    """By all assignments of a small table; and never above the error of the true one."""
    draw = np.random.default_rng(3)
    for rows in (6, 7):
        original = make_height_table(draw.integers(0, 40, rows).tolist(), "a")
        values = draw.integers(-20, 60, 6).tolist()
        released = pl.DataFrame({"group": ["a"] * 6, "x": values})
        best = min(
            sum(abs(x - y) for x, y in zip(values, order, strict=False)) / 6
            for order in permutations(original["x"].to_list())
        )
        least_error = measured(original, released).columns["x"].least_error
        assert least_error is not None
        assert least_error == pytest.approx(best) if rows == 6 else least_error <= best
    people = draw_heights(1500)
    release = publish(people, FILE, output=tmp_path / "out", bits=SeededRandomness(4))
    both = people.join(release.data, on="person", suffix="_released")
    truth = float((both["x"] - both["x_released"]).abs().mean())  # type: ignore[arg-type]
    least = measured(people, release.data).columns["x"].least_error
    assert least is not None
    assert 0 < least <= truth


def test_rows_that_no_original_fits_are_not_compared() -> None:
    original = draw_heights(200).filter(pl.col("group") != "c")
    released = pl.DataFrame({"group": ["a", "c", "c"], "x": [170.0, 170.0, None]})
    result = measured(original, released)
    assert result.columns["x"].rows_compared == 1
    assert result.columns["x"].nulls == 1
    (finding,) = [item for item in result.findings if item.code == "VALUES_NOT_COMPARED"]
    assert finding.values == {"values": 1}


def test_a_column_that_the_release_lacks_is_not_measured() -> None:
    original = draw_heights(200)
    result = measured(original, original.select("group"))
    assert result.columns == {}
    assert "NOISY_COLUMN_MISSING" in list_codes(result.findings)


def test_a_release_tells_what_was_measured_and_what_was_simulated(tmp_path: Path) -> None:
    release = publish(draw_heights(600), FILE, output=tmp_path / "out", bits=SeededRandomness(4))
    noise = get_noise(release)
    assert noise.linking is not None
    assert noise.linking.runs == 1  # the rows of the release itself
    assert noise.simulated is not None
    assert noise.simulated.linking.runs == 30
    assert noise.simulated.note == FRESH
    again = measured(draw_heights(600), release.data, "person")
    assert again.linking == noise.linking
    assert again.linking_shared == noise.linking_shared
    assert again.columns["x"].measured_error == pytest.approx(noise.columns["x"].measured_error)
    assert again.columns["x"].unchanged == noise.columns["x"].unchanged


def test_the_terminal_and_json_call_a_simulation_one(tmp_path: Path) -> None:
    original = draw_heights(300)
    original.write_csv(tmp_path / "people.csv")
    original.drop("person").write_csv(tmp_path / "true.csv")
    text = """
columns:
  group: {role: quasi, hierarchy: {groups: {all: [a, b, c, d]}}}
  person: {role: identifier}
  x: {role: noisy, precision: 0.1}
release: {method: k-epsilon, k: 5, epsilon: 2}
"""
    (tmp_path / "spec.yaml").write_text(text, encoding="utf-8")
    where = ["--original", str(tmp_path / "people.csv"), "--spec", str(tmp_path / "spec.yaml")]
    output = run_successfully("evaluate", *where, "--released", str(tmp_path / "true.csv"), "-v")
    message = " ".join(output.split())
    assert "warning Column 'x': the release holds its true values" in message
    assert "Noise in x mean absolute error at least 0" in message
    assert "Linked rows not measured" in message
    assert NOT_MEASURED in message
    got = run_successfully("evaluate", *where, "--released", str(tmp_path / "true.csv"), "--json")
    result = json.loads(got)["noise"]
    assert result["linking"] is None
    assert result["columns"]["x"]["measured_error"] is None
    assert result["simulated"]["note"] == NOT_MEASURED
    where += ["--released", str(tmp_path / "people.csv"), "--id", "person"]
    message = " ".join(run_successfully("evaluate", *where).split())
    assert "Noise in x mean relative error 0 %" in message
    assert "Linked rows 100 % of rows, measured" in message
    assert "warning Column 'x': every row shows its true value" in message
