"""The page for recipients: it verifies releases, and serves nothing else."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.formats import FORMATS
from support.inline_studio import FormBrowser
from support.studio import WAIT

import incrowd.studio.views as views
from incrowd.studio.server import Studio


def test_only_verification_is_routed(tmp_path: Path) -> None:
    paths = {
        getattr(route, "path", "") for route in views.routes(Studio(tmp_path, only_verify=True))
    }
    assert paths == {"/", "/verify", "/verify/folder", "/verify/file", "/verify/set"}


@pytest.mark.parametrize("place", ["counts-fixed", "."])
def test_a_recipient_verifies_a_release_in_a_browser(tmp_path: Path, place: str) -> None:
    command = [sys.executable, "-m", "incrowd", "verify", str(FORMATS / "1" / place), "--serve"]
    state = {"XDG_STATE_HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path), "BROWSER": "true"}
    process = subprocess.Popen(
        command, env=os.environ | state, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        assert process.stdout is not None
        link = re.search(r"http://127.0.0.1:(\d+)/\?token=(\S+)", process.stdout.readline())
        assert link is not None
        browser = FormBrowser(int(link[1]), link[2])
        page = browser.get("/verify")
        assert "counts-fixed" in page
        assert "/history" not in page
        browser.get("/history", 404)
        browser.get("/desk/x/data", 404)
        browser.post("/verify/folder", folder="counts-fixed")
        text = browser.get(browser.address)
        for _ in range(400):
            if "data-follow" not in text:
                break
            text = browser.get(browser.address)
        assert "counts-fixed is verified" in text
        assert "Verify another release" in text
        browser.post("/verify/folder", 422, folder="/etc")
    finally:
        process.terminate()
        process.communicate(timeout=WAIT)
