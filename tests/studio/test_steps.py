"""The steps say what is done, open and blocked; Undo says what it undoes."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from incrowd.spec.file import parse_spec, read_spec_file
from incrowd.spec.model import Confirmable
from incrowd.studio import spec_edits, steps
from incrowd.studio.open_spec import OpenSpec
from incrowd.studio.server import ROOMS
from incrowd.studio.spec_changes import describe_changes
from incrowd.studio.steps import list_steps
from incrowd.studio.views import columns, publish
from incrowd.studio.workspace import Workspace


@pytest.fixture
def work(tmp_path: Path) -> OpenSpec:
    rows = "\n".join(f"p{at},{at % 60 + 20},{at % 40},{'mf'[at % 2]}" for at in range(300))
    (tmp_path / "people.csv").write_text(f"id,age,visits,sex\n{rows}\n")
    return Workspace(tmp_path).start_from_table("people.csv")


def states(work: OpenSpec) -> dict[str, str]:
    return {step.address: step.state for step in list_steps(work, ROOMS)}


def test_a_draft_is_open_and_publishing_blocked_until_all_is_confirmed(work: OpenSpec) -> None:
    assert states(work) == {
        "person": "open", "data": "open", "hierarchies": "", "confirm": "open", "privacy": "done",
        "explore": "", "publish": "blocked",
    }  # fmt: skip
    names = list(work.file.spec.columns)
    work.apply_changes(spec_edits.confirm_entries(work.file, names, ["role", "written"]))
    work.apply_changes(spec_edits.set_unit(""))
    assert states(work)["data"] == "done"
    assert states(work)["publish"] == "blocked"
    work.apply_changes(spec_edits.confirm_entries(work.file, names, ["hierarchy", "other"]))
    assert states(work)["publish"] == "open"
    words = {step.address: step.words for step in list_steps(work, ROOMS)}
    assert words["confirm"] == "done"


def test_every_entry_that_can_be_unconfirmed_has_a_page_and_words() -> None:
    entries = set(get_args(Confirmable))
    assert set(publish.ENTRIES) == set(columns.ENTRIES) == entries
    assert {entry for listed in steps.ENTRIES_OF_ROOMS.values() for entry in listed} == entries
    assert {address for _, address in publish.ENTRIES.values()} <= {room[0] for room in ROOMS}


def test_undo_says_what_it_undoes(work: OpenSpec) -> None:
    assert work.undo_words == ""
    work.apply_changes(spec_edits.set_role(work.file, work.guessed, "visits", "drop"))
    assert work.undo_words == "role of 'visits'"
    work.apply_changes(spec_edits.set_method(work.file, "k-anonymity"))
    assert work.undo_words == "method"
    work.apply_changes(spec_edits.set_release_fields(work.file, {"k": "7"}))
    assert work.undo_words == "k"
    work.undo_change()
    assert work.undo_words == "method"
    work.undo_change()
    work.undo_change()
    assert work.undo_words == ""


def test_several_columns_and_other_entries_in_words() -> None:
    columns = "columns:\n  a: {role: drop}\n  b: {role: drop}\n"
    before = parse_spec(columns)
    both = parse_spec(columns.replace("drop", "identifier"))
    assert describe_changes(both, before) == "role of 2 columns"
    assert describe_changes(parse_spec(f"{columns}size: 100\n"), before) == "number of people"
    assert describe_changes(before, before) == "layout"


@pytest.mark.parametrize("role", ["drop", "sensitive", "identifier"])
def test_the_fixed_level_of_a_column_that_is_not_generalized_any_more_goes(
    work: OpenSpec, role: str
) -> None:
    work.apply_changes(spec_edits.set_method(work.file, "k-anonymity"))
    names = work.file.spec.columns_with_role("quasi")
    work.apply_changes(spec_edits.fix_scheme(work.file, [1] * len(names)))
    work.apply_changes(spec_edits.set_role(work.file, work.guessed, "visits", role))
    release = read_spec_file(work.path).spec.release
    assert release is not None
    assert dict(release.levels) == {name: 1 for name in names if name != "visits"}
    assert "The fixed level of 'visits' was removed" in work.notice
    work.undo_change()
    release = read_spec_file(work.path).spec.release
    assert release is not None
    assert "visits" in release.levels


def test_a_fixed_level_that_a_hierarchy_has_lost_goes(work: OpenSpec) -> None:
    work.apply_changes(spec_edits.set_method(work.file, "k-anonymity"))
    work.apply_changes({("release", "levels"): {"age": 3}})
    work.apply_changes({("columns", "age", "hierarchy"): "flat"})
    release = read_spec_file(work.path).spec.release
    assert release is not None
    assert release.levels == {}
