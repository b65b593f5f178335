"""What lies on a desk: tables, their specs, and where they may come from."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from incrowd.errors import IncrowdError
from incrowd.spec.file import read_spec_file
from incrowd.spec.problem import SpecError
from incrowd.studio.open_spec import get_table_title
from incrowd.studio.workspace import Workspace, remove_stale_uploads

CSV = "age,town\n" + "".join(f"{20 + at % 40},{'ab'[at % 2]}\n" for at in range(80))


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Workspace]:
    """The desk of a folder with one table."""
    (tmp_path / "people.csv").write_text(CSV)
    workspace = Workspace(tmp_path)
    yield workspace
    workspace.remove_uploads()


def test_the_spec_is_a_file_from_the_first_moment_on(desk: Workspace) -> None:
    work = desk.start_from_table("people.csv")
    assert work.path == desk.home / "people.yaml"
    assert read_spec_file(work.path).spec.table == "people.csv"
    assert desk.find_open_spec(work.name) is work


def test_a_second_spec_has_another_name(desk: Workspace) -> None:
    assert desk.start_from_table("people.csv").path.name == "people.yaml"
    assert desk.start_from_table("people.csv").path.name == "people-2.yaml"


def test_changes_are_saved_and_can_be_undone(desk: Workspace) -> None:
    work = desk.start_from_table("people.csv")
    before = work.path.read_text()
    work.apply_changes({("columns", "age", "role"): "drop", ("columns", "age", "hierarchy"): None,
                 ("columns", "age", "confirm"): None})  # fmt: skip
    assert read_spec_file(work.path).spec.columns["age"].role == "drop"
    work.undo_change()
    assert work.path.read_text() == before
    work.undo_change()  # nothing is left to undo
    assert work.path.read_text() == before


def test_what_is_no_spec_changes_nothing(desk: Workspace) -> None:
    work = desk.start_from_table("people.csv")
    before = work.path.read_text()
    with pytest.raises(SpecError, match="must be"):
        work.apply_changes({("columns", "age", "role"): "nonsense"})
    assert work.path.read_text() == before
    assert work.file.text() == before
    assert work.past == []


def test_an_upload_is_named_by_its_own_name_and_goes(desk: Workspace) -> None:
    landed = desk.make_upload_path("C:\\Users\\me\\own.csv")
    landed.write_text(CSV)
    assert landed.stat().st_mode & 0o077 == 0 or landed.parent.stat().st_mode & 0o077 == 0
    work = desk.start_from_table(str(landed))
    assert work.file.spec.table == "own.csv"
    assert work.path == desk.home / "own.yaml"
    assert work.read_table().rows() == 80
    desk.remove_uploads()
    assert not landed.exists()


@pytest.mark.parametrize("name", ["", "..", ".hidden", "a/..", "a\0b.csv", "a\nb.csv"])
def test_an_upload_needs_a_name(desk: Workspace, name: str) -> None:
    with pytest.raises(IncrowdError, match="is not a file name"):
        desk.make_upload_path(name)


def test_a_path_is_text(desk: Workspace) -> None:
    with pytest.raises(IncrowdError, match="is not a file name"):
        desk.resolve_path("people.csv\0.yaml")


def test_what_a_killed_studio_left_is_removed_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    desk = Workspace(tmp_path)
    alive = desk.make_upload_path("alive.csv")
    alive.touch()
    for name in ("incrowd-studio-killed", "incrowd-studio-begun", "another"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "in-use").touch()
    (tmp_path / "incrowd-studio-begun" / "in-use").unlink()
    (tmp_path / "incrowd-studio-link").symlink_to(tmp_path / "another")
    remove_stale_uploads()
    assert alive.exists()
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {alive.parents[1].name, "incrowd-studio-begun", "incrowd-studio-link", "another"}
    assert (tmp_path / "another" / "in-use").exists()
    desk.remove_uploads()


def test_a_spec_is_resumed_with_its_table(desk: Workspace) -> None:
    first = desk.start_from_table("people.csv")
    again = desk.open_spec(first.path)
    assert again.file.text() == first.file.text()
    assert again.place == str(desk.home / "people.csv")


def test_a_spec_may_not_lead_elsewhere(desk: Workspace, tmp_path: Path) -> None:
    spec = desk.home / "away.yaml"
    spec.write_text("table: ../elsewhere.csv\ncolumns: {a: {role: drop}}\n")
    with pytest.raises(IncrowdError, match="is outside"):
        desk.open_spec(spec)
    (tmp_path.parent / "elsewhere.csv").write_text("a\n1\n")
    free = Workspace(desk.home, anywhere=True)
    assert free.open_spec(spec).read_table().rows() == 1
    free.remove_uploads()


def test_a_hierarchy_may_not_lie_elsewhere(desk: Workspace, tmp_path: Path) -> None:
    (tmp_path.parent / "ages.csv").write_text("1;*\n")
    spec = desk.home / "away.yaml"
    spec.write_text(
        "table: people.csv\n"
        "columns: {age: {role: quasi, hierarchy: {csv: ../ages.csv}}, town: {role: drop}}\n"
    )
    with pytest.raises(IncrowdError, match="is outside"):
        desk.open_spec(spec)


def test_the_shelf_has_tables_and_specs_and_nothing_else(desk: Workspace) -> None:
    desk.start_from_table("people.csv")
    for name in ("notes.md", "other.yaml", ".people.csv"):
        (desk.home / name).write_text("a: 1\n")
    assert [(path.name, kind) for path, kind in desk.list_project_files()] == [
        ("people.csv", "table"), ("people.yaml", "spec"),
    ]  # fmt: skip


def test_titles() -> None:
    assert get_table_title("/a/b.csv.gz") == "b"
    assert get_table_title("postgresql://me:secret@host/base#public.patients") == "public.patients"
