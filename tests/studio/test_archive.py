"""A zip file holds the release and nothing else; unpacking one leaves nothing behind."""

from __future__ import annotations

import os
import shutil
import struct
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.inline_studio import FormBrowser, open_studio
from support.unjudged import publish_unjudged

from incrowd.curate.demo_tables import SPECS, make_demo_table
from incrowd.errors import IncrowdError
from incrowd.release.verify import verify
from incrowd.spec.file import parse_spec
from incrowd.studio import archive


@pytest.fixture(scope="module")
def published_release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release."""
    folder = tmp_path_factory.mktemp("made") / "release"
    publish_unjudged(
        make_demo_table("patients", rows=2_000), parse_spec(SPECS["patients"]), output=folder
    )
    return folder


@pytest.fixture
def release(published_release: Path, tmp_path: Path) -> Path:
    """A copy of it in the folder of a project."""
    (tmp_path / "home").mkdir()
    (tmp_path / "secret.csv").write_text("name,diagnosis\nAnn,flu\n")
    return Path(shutil.copytree(published_release, tmp_path / "home" / "release"))


@pytest.fixture
def browser(
    release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[FormBrowser]:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    with open_studio(release.parent) as studio:
        yield studio


def test_a_release_is_packed_whole(release: Path, tmp_path: Path) -> None:
    archive.pack_release(release, tmp_path / "r.zip")
    with zipfile.ZipFile(tmp_path / "r.zip") as packed:
        packed.extractall(tmp_path / "out")
    assert verify(tmp_path / "out" / "release") == []


def test_synthetic_rows_are_packed_with_their_measured_tables(tmp_path: Path) -> None:
    folder = Path(__file__).parents[1] / "formats" / "1" / "synthetic"
    archive.pack_release(folder, tmp_path / "r.zip")
    with zipfile.ZipFile(tmp_path / "r.zip") as packed:
        packed.extractall(tmp_path / "out")
    assert verify(tmp_path / "out" / "synthetic") == []


def test_nothing_beside_the_release_is_packed(release: Path, tmp_path: Path) -> None:
    (release / "notes.txt").write_text("Ann has flu")
    (release / "link.csv").symlink_to(tmp_path / "secret.csv")
    (release / "away").symlink_to(tmp_path)
    archive.pack_release(release, tmp_path / "r.zip")
    with zipfile.ZipFile(tmp_path / "r.zip") as packed:
        names = packed.namelist()
    assert not [name for name in names if "notes" in name or "link" in name or "away" in name]


@pytest.mark.parametrize("kind", ["link", "hard link", "pipe", "folder", "changed"])
def test_a_file_that_is_not_the_certified_one_is_not_packed(
    release: Path, tmp_path: Path, kind: str
) -> None:
    data = release / "data.parquet"
    data = data if data.exists() else release / "data.csv"
    data.unlink()
    match kind:
        case "link":
            data.symlink_to(tmp_path / "secret.csv")
        case "hard link":
            os.link(tmp_path / "secret.csv", data)
        case "pipe":
            os.mkfifo(data)
        case "folder":
            data.mkdir()
        case "changed":
            data.write_text("name,diagnosis\nAnn,flu\n")
    with pytest.raises(IncrowdError, match=data.name):
        archive.pack_release(release, tmp_path / "r.zip")


def test_a_folder_of_links_is_not_followed(release: Path, tmp_path: Path) -> None:
    away = tmp_path / "scheme"
    shutil.move(release / "scheme", away)
    (release / "scheme").symlink_to(away)
    with pytest.raises(IncrowdError, match="is a link"):
        archive.pack_release(release, tmp_path / "r.zip")


def test_a_link_to_a_release_elsewhere_is_none_of_this_folder(
    browser: FormBrowser, release: Path, tmp_path: Path
) -> None:
    shutil.move(release, tmp_path / "elsewhere")
    release.symlink_to(tmp_path / "elsewhere")
    browser.get("/history/release.zip?of=release", status=404)


def test_a_refused_zip_leaves_nothing(browser: FormBrowser, release: Path, tmp_path: Path) -> None:
    (release / "README.md").unlink()
    before = files_below(tmp_path / "temporary")
    page = browser.get("/history/release.zip?of=release", status=422)
    assert "README.md" in page
    assert files_below(tmp_path / "temporary") == before


def files_below(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def bomb(path: Path, size: int) -> Path:
    """A small file that says of itself that it holds many bytes."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("certificate.json", "{}")
        with packed.open("data.csv", "w") as file:
            for _ in range(size >> 20):
                file.write(b"0" * (1 << 20))
    return path


def test_what_was_unpacked_goes_after_the_verdict(
    browser: FormBrowser, release: Path, tmp_path: Path
) -> None:
    bomb(release.parent / "r.zip", 8 << 20)
    before = files_below(tmp_path / "temporary")
    assert "is not verified" in browser.post("/verify/folder", folder="r.zip")
    assert files_below(tmp_path / "temporary") == before


def test_a_small_file_of_very_many_bytes_is_refused_before_it_is_unpacked(
    browser: FormBrowser, release: Path, tmp_path: Path
) -> None:
    size = bomb(release.parent / "r.zip", 400 << 20).stat().st_size
    assert size < 1 << 20
    before = files_below(tmp_path / "temporary")
    text = browser.post("/verify/folder", status=422, folder="r.zip")
    assert "is too large when unpacked" in text
    assert files_below(tmp_path / "temporary") == before


def test_a_file_that_lies_about_its_sizes_leaves_nothing(tmp_path: Path) -> None:
    path = bomb(tmp_path / "r.zip", 8 << 20)
    modest = path.read_bytes().replace(struct.pack("<I", 8 << 20), struct.pack("<I", 10))
    assert modest != path.read_bytes()
    path.write_bytes(modest)
    (tmp_path / "out").mkdir()
    with pytest.raises(IncrowdError, match="r.zip"):
        archive.unpack_release(path, tmp_path / "out")
    assert not (tmp_path / "out").exists()
