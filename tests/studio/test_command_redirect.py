"""The link of the studio reaches the user's browser, and no other user of the machine."""

from __future__ import annotations

import re
import stat
import time
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from support.studio import WAIT, RunningStudio, StudioBrowser

from incrowd.studio.command import RedirectFile


def test_the_token_is_on_no_command_line(tmp_path: Path) -> None:
    """The browser gets a file that only the user can read; it goes when the link was used."""
    state = tmp_path / "state"
    for folder in (tmp_path / "home", state):
        folder.mkdir(mode=0o700)
    seen, program = tmp_path / "seen", tmp_path / "browser"
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {seen}.part\nmv {seen}.part {seen}\n')
    program.chmod(0o755)
    running = RunningStudio(tmp_path / "home", state, browser=program)
    try:
        end = time.monotonic() + WAIT
        while not seen.exists() and time.monotonic() < end:
            time.sleep(0.02)
        address = seen.read_text().strip()
        assert running.wait_for_link().partition("token=")[2] not in address
        assert address.startswith("file://")
        page = Path(unquote(urlsplit(address).path))
        assert page.is_relative_to(state)
        assert stat.S_IMODE(page.stat().st_mode) == 0o600
        assert stat.S_IMODE(page.parent.stat().st_mode) == 0o700
        result = re.search(r'url=(http://[^"]+)"', page.read_text())
        assert result is not None
        assert result[1] == running.wait_for_link()
        assert running.open_browser().get("/").status == 200
        assert not page.exists()
        assert not page.parent.exists()
        assert StudioBrowser(running.host).get(result[1].partition(running.host)[2]).status == 403
    finally:
        running.stop()


@pytest.mark.parametrize("mode", [0o700, 0o755])
def test_a_runtime_folder_of_others_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int
) -> None:
    runtime = tmp_path / "runtime"
    runtime.mkdir()
    runtime.chmod(mode)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    page = RedirectFile("http://127.0.0.1:1/?token=a&b")
    assert page.path.is_relative_to(runtime) == (mode == 0o700)
    assert stat.S_IMODE(page.path.parent.stat().st_mode) == 0o700
    assert "token=a&amp;b" in page.path.read_text()
    page.remove()
    assert not page.path.exists()
