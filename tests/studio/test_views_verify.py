"""Zip files from anybody: nothing is written elsewhere, and none fills the disk."""

from __future__ import annotations

import stat
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.inline_studio import FormBrowser, open_studio

from incrowd.studio import archive
from incrowd.studio.views import history


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[FormBrowser]:
    """A browser on a studio of an empty folder."""
    (tmp_path / "home").mkdir()
    with open_studio(tmp_path / "home") as studio:
        yield studio


def packed(
    browser: FormBrowser, tmp_path: Path, *entries: tuple[str | zipfile.ZipInfo, str]
) -> str:
    """What the page says of a zip file."""
    with zipfile.ZipFile(tmp_path / "home" / "r.zip", "w", zipfile.ZIP_DEFLATED) as file:
        for name, text in entries:
            file.writestr(name, text)
    return browser.post("/verify/folder", status=422, folder="r.zip")


@pytest.mark.parametrize("name", ["../out.txt", "a/../../out.txt", "..\\out.txt", "/tmp/out.txt"])
def test_a_file_of_a_zip_stays_in_its_folder(
    browser: FormBrowser, tmp_path: Path, name: str
) -> None:
    text = packed(browser, tmp_path, ("certificate.json", "{}"), (name, "x"))
    assert "is not a valid path in a folder" in text


def test_what_unpacks_to_far_more_than_it_is_is_refused(
    browser: FormBrowser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "SMALL_BYTES", 1_000_000)
    text = packed(browser, tmp_path, ("data.csv", "0" * 2_000_000))
    assert "is too large when unpacked" in text
    monkeypatch.setattr(archive, "MOST_FILES", 3)
    text = packed(browser, tmp_path, *((f"{at}", "") for at in range(4)))
    assert "is too large when unpacked" in text


def test_a_link_in_a_zip_leads_nowhere(browser: FormBrowser, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text('{"secret": 1}')
    link = zipfile.ZipInfo("certificate.json")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "home" / "r.zip", "w") as file:
        file.writestr(link, str(tmp_path / "secret"))
    text = browser.post("/verify/folder", folder="r.zip")
    assert "is not verified" in text
    assert "Invalid JSON" in text  # the path of the link, and not what is there


def test_a_link_of_the_folder_leads_nowhere(browser: FormBrowser, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "home" / "link").symlink_to(tmp_path / "outside")
    assert "is outside" in browser.post("/verify/folder", status=422, folder="link")


def test_a_fault_has_a_page_and_the_studio_goes_on(
    browser: FormBrowser, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_home: Path) -> list[history.LedgerSummary]:
        raise ZeroDivisionError

    monkeypatch.setattr(history, "summarize_ledgers", broken)
    assert "A fault of ours" in browser.get("/history", status=500)
    assert "Verify a release" in browser.get("/verify")
