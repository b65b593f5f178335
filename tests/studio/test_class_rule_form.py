"""Rules on sensitive columns, and limits and weights of others, as forms state them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from incrowd.errors import IncrowdError
from incrowd.spec.file import SpecFile, parse_spec, read_spec_file
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


def test_recursive_diversity_and_presence_are_set_together(tmp_path: Path) -> None:
    """What is stated in two fields is one rule, and the spec has it as one would write it."""
    form = {"diversity.recursive.c": "4,5", "diversity.recursive.l": "3", "diversity.distinct": "2"}
    file = changed(form)
    column = file.spec.columns["illness"]
    assert column.diversity is not None
    assert column.diversity.recursive is not None
    assert (column.diversity.recursive.c, column.diversity.recursive.l) == (4.5, 3)
    assert column.diversity.distinct == 2
    texts = read_rules(file, "illness")
    assert (texts["diversity.recursive.c"], texts["diversity.recursive.l"]) == ("4.5", "3")
    again = file.with_entries(set_rules(file, "illness", texts))  # as the page sends it back
    assert again.spec == file.spec
    gone = file.with_entries(set_rules(file, "illness", dict.fromkeys(form, "")))
    assert gone.spec.columns["illness"].diversity is None
    study = file.with_entries(
        set_rules(file, "illness", {"presence.value": " yes ", "presence.most": "0,5"})
    )
    presence = study.spec.columns["illness"].presence
    assert presence is not None
    assert (presence.value, presence.least, presence.most) == ("yes", 0.0, 0.5)
    assert read_rules(study, "illness")["presence.least"] == ""
    path = tmp_path / "spec.yaml"
    path.write_text(study.text(), encoding="utf-8")
    assert read_spec_file(path).spec == study.spec  # `yes` stays a text


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ({"diversity.recursive.c": ""}, "needs both c and ℓ"),
        ({"diversity.recursive.l": ""}, "needs both c and ℓ"),
        ({"diversity.recursive.l": "1"}, "greater than or equal to 2|at least 2"),
        ({"presence.most": "0.5"}, "needs the value of members"),
        ({"presence.value": "yes"}, "needs a smallest or a largest share"),
        ({"presence.value": "yes", "presence.least": "0.6", "presence.most": "0.5"}, "Swap them"),
    ],
)
def test_half_a_rule_is_refused(form: Mapping[str, str], words: str) -> None:
    with pytest.raises(IncrowdError, match=words):
        changed(form)


def test_a_long_number_comes_back_as_it_was() -> None:
    """A form sends every field: none may lose digits on its way through the page."""
    file = changed({"closeness.equal": "0.123456789"})
    again = file.with_entries(set_rules(file, "illness", read_rules(file, "illness")))
    closeness = again.spec.columns["illness"].closeness
    assert closeness is not None
    assert closeness.equal == 0.123456789


def test_means_of_classes_and_linked_cells() -> None:
    plain = parse_spec(SPEC.replace(", diversity: {recursive: {c: 3, l: 4}}", ""))
    means = plain.with_entries(set_rules(plain, "illness", {"aggregate": "mean", "linked": "age"}))
    assert means.spec.columns["illness"].aggregate == "mean"
    assert means.spec.columns["illness"].linked == "age"
    values = means.with_entries(set_rules(means, "illness", {"aggregate": "", "linked": ""}))
    assert values.spec == plain.spec
    with pytest.raises(IncrowdError, match="one number per class"):
        changed({"aggregate": "mean"})  # beside a rule
