"""Judging synthetic rows again, from their folder or from a file of any tool."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from support.synthetic import BUDGET, make_patients, make_spec

import incrowd as ic
from incrowd.cli.evaluation_facts import print_evaluation
from incrowd.cli.synthetic_rows import list_synthetic_facts
from incrowd.engine.source import local_engine
from incrowd.errors import IncrowdError
from incrowd.evaluation import other_methods
from incrowd.evaluation.report.synthetic import report_synthetic
from incrowd.evaluation.synthetic import list_apart, measure_synthetic
from incrowd.measure.synthetic import SyntheticEvaluation
from incrowd.methods.base import MakeContext
from incrowd.methods.registry import make_method
from incrowd.privacy.randomness import SeededRandomness
from incrowd.release.release import Release
from incrowd.spec.file import parse_spec

_SPEC = make_spec(f"{BUDGET}, target: smoker, values: drawn")


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Release]:
    """Publish patients with nulls, dates, drawn numbers, keys and a sensitive column."""
    folder = tmp_path_factory.mktemp("synthetic") / "out"
    with pytest.warns(ic.IncrowdWarning):
        yield ic.publish(make_patients(), _SPEC, output=folder, bits=SeededRandomness(1))


def _evaluation(release: Release) -> SyntheticEvaluation:
    assert isinstance(release.evaluation, SyntheticEvaluation)
    return release.evaluation


def _evaluate(release: Release, **how: object) -> SyntheticEvaluation:
    evaluation = ic.evaluate(make_patients(), release, _SPEC, **how)  # type: ignore[arg-type]
    assert isinstance(evaluation, SyntheticEvaluation)
    return evaluation


def test_a_folder_is_judged_as_it_was_when_it_was_published(release: Release) -> None:
    first, again = _evaluation(release), _evaluate(release)
    assert again.distance_by_column == first.distance_by_column
    assert {"diagnosis", "smoker"} <= {*again.distance_by_column}
    for name in ("distance_by_pair", "distance_by_triple", "values", "cells", "others"):
        assert getattr(again, name) == getattr(first, name), name
    assert again.equal_rows == first.equal_rows
    assert again.utility == first.utility
    assert again.utility is not None
    assert again.utility.accuracy is not None
    assert again.utility.accuracy.target == "smoker"
    path = release.curator / "evaluation.json"
    stored = json.loads(path.read_text())
    assert stored["equal_rows"]["expected"] == again.equal_rows.expected
    assert "loss" not in stored


def test_rows_of_any_tool_are_judged_without_a_model(release: Release) -> None:
    data = pl.read_parquet(release.folder / "data.parquet")
    evaluation = ic.evaluate(make_patients(), data, _SPEC, target="sex")
    assert isinstance(evaluation, SyntheticEvaluation)
    assert evaluation.distance_by_column == _evaluation(release).distance_by_column
    assert evaluation.equal_rows.expected is None
    assert evaluation.utility is not None
    assert evaluation.utility.accuracy is not None
    assert evaluation.utility.accuracy.target == "sex"
    with pytest.raises(IncrowdError, match="'diagnosis': not in the released table"):
        ic.evaluate(make_patients(), data.drop("diagnosis"), _SPEC)


def test_another_spec_and_options_that_do_not_apply_are_refused(release: Release) -> None:
    other = _SPEC.with_entry(("columns", "diagnosis", "hierarchy"), {"flat": {"values": ["c"]}})
    with pytest.raises(IncrowdError, match="'diagnosis': the spec and the release declare"):
        ic.evaluate(make_patients(), release, other)
    with pytest.raises(IncrowdError, match="--id applies"):
        _evaluate(release, identity="patient")
    with pytest.raises(IncrowdError, match="do not apply to synthetic rows"):
        ic.attack(make_patients(), release, _SPEC, knows=2)


def test_the_terminal_shows_what_applies(
    release: Release, capsys: pytest.CaptureFixture[str]
) -> None:
    print_evaluation(_evaluation(release))
    output = capsys.readouterr().out
    for words in ("Shares, 1-way", "Shares, 2-way", "Shares, 3-way", "Associations", "Range counts",
                  "expected by chance", "AUC", "\ndiagnosis ", "K-anonymity, k = 5"):  # fmt: skip
        assert words in output, words
    for words in ("Missing", "Surplus", "Groups", "Information loss", "Reidentification", "Unique"):
        assert words not in output, words


def test_a_folder_is_attacked_by_all_that_applies(release: Release) -> None:
    report = ic.attack(make_patients(), release, _SPEC, tries=300, seed=1)
    assert [estimate.attack for estimate in report.estimates] == [
        "linkage", "join", "singling-out", "inference", "inference", "membership",
    ]  # fmt: skip
    text = json.dumps(report.as_dict())
    assert "class" not in text.replace("classes", "class").split("Attacks on published groups")[0]
    member = report.estimates[-1]
    assert member.bound is not None
    assert member.success.low <= member.bound
    (estimate,) = ic.attack(
        make_patients(), release, _SPEC, only=["linkage"], control=make_patients(500, seed=9)
    ).estimates
    assert estimate.control is not None
    assert estimate.control.tries == 500


def test_other_methods_are_run_on_the_same_table(
    release: Release, monkeypatch: pytest.MonkeyPatch
) -> None:
    synthetic_rows, counts, classes = _evaluation(release).others
    assert synthetic_rows.pair_distance == _evaluation(release).mean_pair_distance
    assert synthetic_rows.informative == synthetic_rows.columns == 9
    for other_method in (counts, classes):
        assert other_method.problem is None, other_method.problem
        assert other_method.rows is not None
        assert other_method.informative == 9 - len(other_method.suppressed)
    assert counts.pair_distance is None or counts.pair_distance > synthetic_rows.pair_distance  # type: ignore[operator]

    def refuse(_file: object) -> None:
        raise IncrowdError("no such method")

    monkeypatch.setattr(other_methods, "make_method", refuse)
    problems = [other_method.problem for other_method in _evaluate(release).others]
    assert problems == [None, "no such method", "no such method"]
    monkeypatch.undo()
    monkeypatch.setattr(other_methods, "_MOST_SEARCHED", (1, 1))
    quick = _evaluate(release).others[1]
    assert counts.searched
    assert not quick.searched
    assert quick.rows is not None
    assert quick.rows > 0.8
    assert 0 < len(quick.suppressed) < 9
    monkeypatch.setattr(other_methods, "_MOST_TUPLES", 10)
    assert len(_evaluate(release).others) == 1


def test_the_report_has_every_part(release: Release) -> None:
    page = (release.curator / "report.html").read_text()
    for part in ("guarantee", "equal", "attacks", "shares", "pairs", "subgroups", "utility",
                 "others", "budget"):  # fmt: skip
        assert f'id="{part}"' in page, part
        assert f'href="#{part}"' in page or part == "reproduce", part
    equal = _evaluation(release).equal_rows
    assert f"{equal.expected:,} published rows equal a row of that draw" in page
    assert "k-anonymity, k = 5" in page
    assert "could not be drawn" not in page
    assert "AUC" in page
    for words in ("re-identification", "suppressed rows", "homogeneous"):
        assert words not in page.lower(), words
    assert Path(release.curator, "attacks.json").is_file()


def test_a_table_of_one_column_has_no_lines_of_pairs(capsys: pytest.CaptureFixture[str]) -> None:
    spec = parse_spec(
        "columns:\n  x: {role: quasi, hierarchy: {intervals: {from: 1, to: 50, widths: [10]}}}\n"
        "release: {method: synthetic, epsilon: 1.0, delta: 1.0e-6}"
    )
    table = pl.DataFrame({"x": [*range(1, 51)] * 4})
    with pytest.warns(ic.IncrowdWarning):
        release = ic.publish(table, spec, bits=SeededRandomness(1))
    evaluation = ic.evaluate(table, release, spec)
    print_evaluation(evaluation)
    output = capsys.readouterr().out
    assert "Shares, 1-way" in output
    for words in ("Shares, 2-way", "Values", "Associations", "all 1 columns"):
        assert words not in output, words
    assert _evaluation(release).largest_error is None
    attacks = ic.attack(table, release, spec, tries=50, seed=1).estimates
    assert [estimate.attack for estimate in attacks] == ["linkage", "singling-out", "membership"]
    assert attacks[1].name == "by 1 column of a row"


def test_columns_that_were_not_measured_with_the_target_are_named() -> None:
    method = make_method(make_spec(f"{BUDGET}, target: smoker, tables: [[sex, smoker]]"))
    counts = method.count(local_engine().open(make_patients(300)))
    outcome = method.make(counts, MakeContext(SeededRandomness(1), local_engine()))
    assert outcome.synthetic is not None
    pairs = [table for table in outcome.synthetic.measured if {*table.columns} == {"sex", "smoker"}]
    single = [table for table in outcome.synthetic.measured if len(table.columns) <= 1]
    shortened = replace(outcome, synthetic=replace(outcome.synthetic, measured=(*single, *pairs)))
    evaluation = measure_synthetic(shortened)[0]
    others = [name for name in evaluation.distance_by_column if name not in ("sex", "smoker")]
    columns = ", ".join(others)
    advice = f"Not measured with the target: {columns}. Add `tables: [[pregnant, smoker]]`."
    assert evaluation.target_advice == advice
    assert ("Target", advice) in list_synthetic_facts(evaluation)
    assert list_apart(replace(outcome, synthetic=None)) == ()


def test_the_report_names_them(release: Release) -> None:
    evaluation = _evaluation(release)
    part = release.certificate.synthetic
    assert part is not None
    measured = {
        name for table in part.measured if "smoker" in table.columns for name in table.columns
    }
    assert {*evaluation.apart_from_target} == {*part.columns} - measured
    assert _evaluate(release).apart_from_target == evaluation.apart_from_target
    apart = replace(evaluation, apart_from_target=("region",))
    page = report_synthetic(release.certificate, apart)
    assert "Not measured with the target: region. Add `tables: [[region, smoker]]`." in page
    without = report_synthetic(release.certificate, replace(evaluation, apart_from_target=()))
    assert "Not measured with the target" not in without
