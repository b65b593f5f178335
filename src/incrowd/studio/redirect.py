"""Open a browser on the studio's link without naming the link to anybody else.

The arguments of a program are shown to every user of the machine. So the browser is not given the
link, which holds the token, but a file that only its user can read and that leads there.
"""

from __future__ import annotations

import html
import os
import shutil
import stat
import tempfile
import webbrowser
from pathlib import Path

from incrowd.release.history import state_folder
from incrowd.studio.private import FOLDER_MODE, create_private

_PREFIX = "studio-"
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={link}"><title>Incrowd studio</title></head>
<body><p><a href="{link}">Open the studio</a></p></body></html>
"""


class RedirectFile:
    """A private page that leads to a link; it is removed once the link was used."""

    def __init__(self, link: str) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=_private_parent()))
        self.path = self._folder / "open.html"
        with create_private(self.path) as file:
            file.write(_PAGE.format(link=html.escape(link)).encode("utf-8"))

    def open(self) -> None:
        """Have a browser open the page."""
        webbrowser.open(self.path.as_uri())

    def remove(self) -> None:
        """Remove the page."""
        shutil.rmtree(self._folder, ignore_errors=True)


def _private_parent() -> str | None:
    """Return the user's runtime folder, else the state folder; None for that of temporary files."""
    own = os.environ.get("XDG_RUNTIME_DIR")
    if own and _is_private(Path(own)):
        return own
    folder = state_folder()
    try:
        folder.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
    except OSError:
        return None
    return str(folder) if os.access(folder, os.W_OK) else None


def _is_private(folder: Path) -> bool:
    """Whether a folder is the user's, and nobody else's."""
    try:
        known = folder.stat()
    except OSError:
        return False
    if not hasattr(os, "getuid"):
        return False
    return known.st_uid == os.getuid() and not stat.S_IMODE(known.st_mode) & 0o077
