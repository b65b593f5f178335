"""The folder by table: specs and releases find each other by files alone."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from support.unjudged import publish_unjudged

from incrowd.publication import publish
from incrowd.studio.projects import list_past_releases, list_projects
from incrowd.studio.views.releases import compare_specs
from incrowd.studio.views.verify import list_releases
from incrowd.studio.workspace import Workspace

SPEC = """table: people.csv
columns:
  x: {role: quasi, hierarchy: {flat: {values: [a, b]}}}
release: {method: safe, epsilon: 1, delta: 1.0e-6, levels: {x: 0}}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("home")
    pl.DataFrame({"x": ["a", "b"] * 200}).write_csv(home / "people.csv")
    (home / "people.yaml").write_text(SPEC)
    (home / "unused.csv").write_text("y\n1\n")
    publish(None, home / "people.yaml", output=home / "first")
    publish_unjudged(pl.read_csv(home / "people.csv"), SPEC_OBJECT, output=home / "alone")
    return home


SPEC_OBJECT = {
    "columns": {"x": {"role": "quasi", "hierarchy": {"flat": {"values": ["a", "b"]}}}},
    "release": {"method": "safe", "epsilon": 1, "delta": 1e-6, "levels": {"x": 0}},
}


def test_a_table_has_its_specs_and_releases(folder: Path) -> None:
    past = list_past_releases(list_releases(folder))
    assert {release.name for release in past} == {"first", "alone"}
    tables, others = list_projects(Workspace(folder).list_project_files(), past)
    assert [(table.name, table.exists, table.number) for table in tables][:1] == [
        ("people.csv", True, 1)
    ]
    assert {table.name for table in tables} == {"people.csv", "unused.csv"}
    (spec,) = tables[0].specs
    assert (spec.name, [release.name for release in spec.releases]) == ("people.yaml", ["first"])
    assert [release.name for release in others] == ["alone"]
    release = spec.releases[0]
    assert release.table == "people.csv"
    assert release.has_report
    assert release.spec == SPEC


@pytest.mark.parametrize(
    "content", ["{", "[]", "[" * 5000, json.dumps({"spec_file": 1, "spec": ""}), "null"]
)
def test_a_private_folder_that_is_not_ours_is_not_believed(folder: Path, content: str) -> None:
    origin = folder / "first.curator" / "origin.json"
    before = origin.read_text()
    try:
        origin.write_text(content)
        past = {release.name: release for release in list_past_releases(list_releases(folder))}
        assert past["first"].spec_file == ""
    finally:
        origin.write_text(before)


def test_a_spec_file_of_another_folder_is_only_a_name(folder: Path) -> None:
    origin = folder / "first.curator" / "origin.json"
    before = origin.read_text()
    try:
        origin.write_text(json.dumps({"spec_file": "../../etc/passwd", "spec": ""}))
        past = {release.name: release for release in list_past_releases(list_releases(folder))}
        assert past["first"].spec_file == "passwd"
    finally:
        origin.write_text(before)


def test_differences_of_specs_are_lines_with_their_kind() -> None:
    lines = compare_specs(SPEC, SPEC.replace("epsilon: 1", "epsilon: 2"))
    kinds = [kind for kind, _ in lines]
    assert kinds.count("added") == kinds.count("removed") == 1
    assert compare_specs(SPEC, SPEC) == []
