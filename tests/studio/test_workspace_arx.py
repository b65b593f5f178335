"""A project of ARX opens as a spec: dropped, or chosen from the folder."""

from __future__ import annotations

import html
import stat
import zipfile
from pathlib import Path

import pytest
from support.arx_project import write_project
from support.inline_studio import open_studio

from incrowd.errors import IncrowdError
from incrowd.spec.file import read_spec_file
from incrowd.studio import archive
from incrowd.studio.workspace import Workspace


def test_a_project_of_the_folder_becomes_a_spec(tmp_path: Path) -> None:
    write_project(tmp_path / "clinic.deid")
    with open_studio(tmp_path) as browser:
        home = browser.get("/")
        assert 'value="clinic.deid"' in home
        page = html.unescape(browser.post("/open", place="clinic.deid"))
        assert browser.address.endswith("/person")
        assert "'clinic.deid' is now the spec 'clinic.yaml'. Without an equal here" in page
        assert "privacy model: (0.1,0.5)-presence" in page
        room = browser.address.rpartition("/")[0]
        assert "240 rows" in html.unescape(browser.get(f"{room}/columns"))
    spec = read_spec_file(tmp_path / "clinic.yaml").spec
    assert spec.table == "clinic.arx/clinic.csv"
    assert spec.columns["sex"].role == "quasi"
    unpacked = tmp_path / "clinic.arx"
    modes = {stat.S_IMODE(path.stat().st_mode) for path in [unpacked, *unpacked.iterdir()]}
    assert modes == {0o700, 0o600}


def test_a_dropped_project_is_unpacked_and_the_upload_removed(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    desk = Workspace(home)
    upload = desk.make_upload_path("clinic.deid")
    write_project(upload)
    work = desk.start_from_arx(upload)
    assert work.path == home / "clinic.yaml"
    assert "listed at the end of the spec" in work.notice
    with pytest.raises(IncrowdError, match="'clinic.arx' exists in the folder already"):
        desk.start_from_arx(upload)
    assert sorted(path.name for path in home.iterdir()) == ["clinic.arx", "clinic.yaml"]
    desk.remove_uploads()


@pytest.mark.parametrize("content", [b"no zip", b""])
def test_what_is_no_project_leaves_nothing(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "broken.deid").write_bytes(content)
    with open_studio(tmp_path) as browser:
        assert "Save it again in ARX" in html.unescape(
            browser.post("/open", 422, place="broken.deid")
        )
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("broken")] == [
        "broken.deid"
    ]


def test_a_project_that_would_fill_the_disk_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "SMALL_BYTES", 100_000)
    project = write_project(tmp_path / "clinic.deid")
    with zipfile.ZipFile(project, "a", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("data/input_subset.csv", "0" * 20_000_000)
    with pytest.raises(IncrowdError, match="too large when unpacked"):
        Workspace(tmp_path).start_from_arx(project)
    assert not (tmp_path / "clinic.arx").exists()
