"""Rules on sensitive columns, and limits and weights of others, as forms state them."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from incrowd.errors import IncrowdError
from incrowd.spec.file import SpecFile, parse_spec
from incrowd.studio.class_rule_form import read_rules, set_limits, set_rules

SPEC = """
columns:
  age: {role: quasi, hierarchy: {intervals: {from: 0, to: 99, widths: [10, 50]}}}
  sex: {role: quasi, hierarchy: {flat: {values: [f, m]}}}
  illness: {role: sensitive, diversity: {recursive: {c: 3, l: 4}}}
release: {method: k-anonymity, k: 5}
"""


def changed(form: Mapping[str, str], name: str = "illness") -> SpecFile:
    file = parse_spec(SPEC)
    return file.with_entries(set_rules(file, name, form))


def test_rules_are_set_and_removed_and_others_stay() -> None:
    file = changed({"diversity.distinct": "3", "closeness.equal": "0,2", "likeness.basic": ""})
    column = file.spec.columns["illness"]
    assert column.diversity is not None
    assert column.diversity.distinct == 3
    assert column.diversity.recursive is not None  # no field states it: it stays
    assert column.closeness is not None
    assert column.closeness.equal == 0.2
    assert column.likeness is None
    assert read_rules(file, "illness")["closeness.equal"] == "0.2"
    removed = file.with_entries(set_rules(file, "illness", {"closeness.equal": " "}))
    assert removed.spec.columns["illness"].closeness is None
    assert removed.spec.columns["illness"].diversity == column.diversity


@pytest.mark.parametrize(
    ("form", "name", "words"),
    [
        ({"diversity.distinct": "2,5"}, "illness", "whole number; got '2,5'"),
        ({"diversity.distinct": "two"}, "illness", "must be a number; got 'two'"),
        ({"diversity.distinct": "2"}, "age", "no sensitive column 'age'"),
        ({"closeness.equal": "2"}, "illness", "less than or equal to 1|at most 1"),
    ],
)
def test_what_is_no_rule_is_refused(form: Mapping[str, str], name: str, words: str) -> None:
    with pytest.raises(IncrowdError, match=words):
        changed(form, name)


def test_limits_and_weights() -> None:
    file = parse_spec(SPEC)
    form = {"low0": "1", "high0": "", "weight0": "2,5", "low1": "", "high1": "0", "weight1": ""}
    limited = file.with_entries(set_limits(file, form))
    release = limited.spec.release
    assert release is not None
    assert release.levels == {"age": (1, 3), "sex": 0}
    assert limited.spec.columns["age"].weight == 2.5
    free = {"low0": "", "high0": "", "weight0": "1", "low1": "", "high1": "", "weight1": ""}
    opened = limited.with_entries(set_limits(limited, free))
    assert opened.spec.release is not None
    assert opened.spec.release.levels == {}
    assert "weight" not in opened.text()
    with pytest.raises(IncrowdError, match="finest level is above the coarsest"):
        set_limits(file, {"low0": "2", "high0": "1"})
