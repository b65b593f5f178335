"""Project files of ARX, made here in the form that ARX writes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.arx_project import CRITERIA, DEFINITION, write_project
from support.cli import run_command, run_successfully

import incrowd as ic
from incrowd.curate.draft.draft import Draft, draft_from_arx_project
from incrowd.errors import IncrowdError
from incrowd.spec.file import parse_spec, read_spec_file


def draft_project(tmp_path: Path, criteria: tuple[str, ...] = CRITERIA, **more: str) -> Draft:
    project = write_project(tmp_path / "clinic.deid", criteria, **more)
    return draft_from_arx_project(project, beside=tmp_path)


def test_roles_hierarchies_models_and_settings_are_taken_over(tmp_path: Path) -> None:
    draft = draft_project(tmp_path)
    spec = parse_spec(draft.yaml()).spec
    assert {name: column.role for name, column in spec.columns.items()} == {
        "name": "identifier", "age": "quasi", "sex": "quasi", "ill": "sensitive",
        "day": "keep",
    }  # fmt: skip
    assert spec.columns["age"].weight == 1.5
    assert spec.columns["sex"].weight == 1.0
    assert spec.columns["age"].confirm == ("hierarchy",)
    ill = spec.columns["ill"]
    assert ill.diversity is not None
    assert ill.closeness is not None
    assert (ill.diversity.distinct, ill.closeness.equal) == (2, 0.6)
    assert ill.diversity.recursive is not None
    assert (ill.diversity.recursive.c, ill.diversity.recursive.l) == (4.0, 3)
    release = spec.release
    assert release is not None
    assert (release.method, release.k, release.levels) == ("k-anonymity", 3, {"age": (0, 1)})
    plain = release.model_dump()
    assert (plain["suppression"], plain["loss"]) == (0.04, "normalized")
    assert plain["suppressed"] == "starred"
    assert draft.unmatched == (
        "privacy model: (0.1,0.5)-presence",
        "format of 'day': dd.MM.yyyy",
    )
    assert "# Without an equal: format of 'day': dd.MM.yyyy" in draft.yaml()


def test_a_project_becomes_a_release(tmp_path: Path) -> None:
    """By the commands: init, confirm, publish, verify."""
    project = write_project(tmp_path / "clinic.deid")
    spec = tmp_path / "spec.yaml"
    text = run_successfully("init", "--arx", str(project), "-o", str(spec))
    assert "Without an equal here: privacy model: (0.1,0.5)-presence" in text
    assert "ARX hierarchies used: clinic_hierarchy_age.csv, clinic_hierarchy_sex.csv." in text
    confirmed = run_command("confirm", str(spec), "--unit", "--roles")
    assert confirmed.returncode in (0, 1)
    release = ic.publish(None, read_spec_file(spec), output=tmp_path / "out")
    assert set(release.data["sex"].unique()) <= {"f", "m", "*"}
    sizes = release.data.group_by("age", "sex").len()["len"]
    assert sizes.min() >= 3
    assert ic.verify(tmp_path / "out") == []


def test_differential_privacy_is_a_safe_release(tmp_path: Path) -> None:
    draft = draft_project(tmp_path, ("(1.0,1.0E-5)-DP", "5-anonymity"), metric="Precision")
    release = parse_spec(draft.yaml()).spec.release
    assert release is not None
    plain = release.model_dump()
    assert (plain["method"], plain["epsilon"], plain["delta"]) == ("safe", 1.0, 1e-5)
    assert "privacy model: 5-anonymity beside (ε,δ)-DP" in draft.unmatched


@pytest.mark.parametrize(
    ("criteria", "k"),
    [
        (("4-anonymity", "7-Anonymity"), 7),
        (("shannon-entropy-3.0-diversity for attribute 'ill'",), 3),
        (("0.5-disclosure privacy for attribute 'ill'",), 2),
        (("recursive-(2.0,4)-diversity for attribute 'ill'",), 4),
    ],
)
def test_k_is_the_largest_or_that_of_diversity(
    tmp_path: Path, criteria: tuple[str, ...], k: int
) -> None:
    release = parse_spec(draft_project(tmp_path, criteria).yaml()).spec.release
    assert release is not None
    assert release.k == k


def test_all_rules_on_sensitive_columns_are_taken_over(tmp_path: Path) -> None:
    text = DEFINITION.replace("<name>ill</name>", "<name>ill</name><ref>hierarchies/sex.csv</ref>")
    criteria = (
        "5-anonymity", "0.2-closeness with hierarchical ground-distance for attribute 'ill'",
        "basic-3.0-likeness for attribute 'ill'", "enhanced-2.0-likeness for attribute 'ill'",
        "1.5-disclosure privacy for attribute 'ill'",
    )  # fmt: skip
    draft = draft_project(tmp_path, criteria, definition=text)
    ill = parse_spec(draft.yaml()).spec.columns["ill"]
    assert ill.closeness is not None
    assert ill.likeness is not None
    assert ill.disclosure is not None
    assert ill.hierarchy is not None
    assert (ill.closeness.hierarchical, ill.disclosure.present) == (0.2, 1.5)
    assert (ill.likeness.basic, ill.likeness.enhanced) == (3.0, 2.0)
    assert draft.unmatched == ("format of 'day': dd.MM.yyyy",)


def test_what_is_not_known_is_listed(tmp_path: Path) -> None:
    text = DEFINITION.replace("<min>All</min>", "<min>1</min>").replace(
        "<name>ill</name>",
        "<name>ill</name><microAggregationFunction>Arithmetic mean</microAggregationFunction>",
    )
    draft = draft_project(
        tmp_path, ("k-map",), metric="Publisher payout (prosecutor)", definition=text
    )
    assert "quality model: Publisher payout (prosecutor)" in draft.unmatched
    assert "privacy model: k-map" in draft.unmatched
    assert "microaggregation of 'ill': Arithmetic mean" in draft.unmatched
    assert "level of 'sex': at least 1 (give both under `levels`)" in draft.unmatched
    assert "no k-anonymity in the project: k is set to 2" in draft.unmatched


def test_names_that_are_no_file_names_stay_in_the_folder(tmp_path: Path) -> None:
    text = DEFINITION.replace("<name>sex</name>", "<name>../sex</name>")
    draft = draft_project(tmp_path, definition=text)
    assert draft.used == ("clinic_hierarchy_age.csv", "clinic_hierarchy_2.csv")
    assert {path.name for path in (tmp_path / "clinic.arx").iterdir()} == {
        "clinic.csv", *draft.used,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"without": "data/input.csv"}, "it has no data/input.csv"),
        ({"without": "input/definition.xml"}, "it has no input/definition.xml"),
        ({"definition": "<definition>"}, "is not valid XML"),
        ({"definition": '<!DOCTYPE x [<!ENTITY a "b">]><definition/>'}, "has declarations"),
    ],
)
def test_broken_projects_leave_nothing_behind(
    tmp_path: Path, changes: dict[str, Any], words: str
) -> None:
    with pytest.raises(IncrowdError, match=words):
        draft_project(tmp_path, **changes)
    assert [path.name for path in tmp_path.iterdir()] == ["clinic.deid"]


def test_a_file_that_is_no_project(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("a\n1\n")
    with pytest.raises(IncrowdError, match="cannot be read"):
        draft_from_arx_project(tmp_path / "table.csv", beside=tmp_path)
    (tmp_path / "clinic.arx").mkdir()
    with pytest.raises(IncrowdError, match="exists already"):
        draft_project(tmp_path)
