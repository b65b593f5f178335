"""A folder takes the place of another as a whole, and what fails on the way loses neither."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from incrowd.errors import IncrowdError
from incrowd.release.folder import fill_folder, recover_folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "out"
    place.mkdir()
    (place / "data").write_text("earlier")
    return place


def replace_folder(folder: Path) -> None:
    with fill_folder(folder, replacing=["data"]) as draft:
        (draft / "data").write_text("later")


def list_names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_folder_is_replaced_and_nothing_is_left_over(folder: Path) -> None:
    replace_folder(folder)
    assert (folder / "data").read_text() == "later"
    assert list_names(folder.parent) == ["out"]


@pytest.mark.parametrize("error", [PermissionError("no"), KeyboardInterrupt()])
@pytest.mark.parametrize("step", ["out", ".out.draft-"])
def test_what_fails_on_the_way_leaves_the_earlier_folder(
    folder: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, step: str
) -> None:
    """Moving the earlier folder aside fails, or moving the draft into its place does."""
    rename = Path.rename

    def fail(path: Path, target: Path) -> Path:
        if path.parent == folder.parent and path.name.startswith(step):
            raise error
        return rename(path, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", fail)
        with pytest.raises((IncrowdError, KeyboardInterrupt)):
            replace_folder(folder)
    assert (folder / "data").read_text() == "earlier"
    assert list_names(folder.parent) == ["out"]


def make_dead_process() -> int:
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        return child.pid


def test_a_folder_that_a_killed_process_moved_aside_comes_back(folder: Path) -> None:
    home = folder.parent / f".out.earlier-{make_dead_process()}-abc"
    home.mkdir()
    folder.rename(home / "out")
    recover_folder(folder)
    assert (folder / "data").read_text() == "earlier"
    assert list_names(folder.parent) == ["out"]


def test_a_folder_in_the_place_of_one_moved_aside_is_kept_and_so_is_that(folder: Path) -> None:
    home = folder.parent / f".out.earlier-{make_dead_process()}-abc"
    home.mkdir()
    folder.rename(home / "out")
    folder.mkdir()
    (folder / "data").write_text("later")
    recover_folder(folder)
    assert (folder / "data").read_text() == "later"
    assert (home / "out" / "data").read_text() == "earlier"


def test_what_a_running_process_moved_aside_is_left_alone(folder: Path) -> None:
    home = folder.parent / f".out.earlier-{os.getpid()}-abc"
    home.mkdir()
    folder.rename(home / "out")
    recover_folder(folder)
    assert not folder.exists()
