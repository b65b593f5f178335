"""The command that opens the studio.

**The link.** Open a browser on the studio's link without showing the link to other users.

The arguments of a program are shown to every user of the machine. So the browser is not given the
link, which holds the token, but a file that only its user can read and that leads there.
"""

from __future__ import annotations

import html
import ipaddress
import os
import shutil
import signal
import socket
import stat
from pathlib import Path
from typing import Annotated

import typer

from incrowd.cli.options import number_option, parse_number
from incrowd.cli.terminal import print_text
from incrowd.errors import IncrowdError, check_whole

_PREFIX = "studio-"
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={link}"><title>Incrowd studio</title></head>
<body><p><a href="{link}">Open the studio</a></p></body></html>
"""


class RedirectFile:
    """A private page that leads to a link; it is removed once the link was used."""

    def __init__(self, link: str) -> None:
        import tempfile

        from incrowd.studio.private_files import create_private

        self._folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=_find_private_parent()))
        self.path = self._folder / "open.html"
        with create_private(self.path) as file:
            file.write(_PAGE.format(link=html.escape(link)).encode("utf-8"))

    def open_in_browser(self) -> None:
        """Open the page in a browser."""
        import webbrowser

        webbrowser.open(self.path.as_uri())

    def remove(self) -> None:
        """Remove the page."""
        shutil.rmtree(self._folder, ignore_errors=True)


def _find_private_parent() -> str | None:
    """Return the user's runtime folder, else the state folder; None for that of temporary files."""
    from incrowd.release.history import get_state_folder
    from incrowd.studio.private_files import FOLDER_MODE

    runtime_folder = os.environ.get("XDG_RUNTIME_DIR")
    if runtime_folder and _is_private(Path(runtime_folder)):
        return runtime_folder
    folder = get_state_folder()
    try:
        folder.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
    except OSError:
        return None
    return str(folder) if os.access(folder, os.W_OK) else None


def _is_private(folder: Path) -> bool:
    """Return whether a folder is the user's, and nobody else's."""
    try:
        private = folder.stat()
    except OSError:
        return False
    if not hasattr(os, "getuid"):
        return False
    return private.st_uid == os.getuid() and not stat.S_IMODE(private.st_mode) & 0o077


def studio(
    table: Annotated[
        str | None, typer.Argument(metavar="FILE", help="Table or spec to open first.")
    ] = None,
    folder: Annotated[
        Path,
        typer.Option(
            "--folder",
            "-f",
            metavar="FOLDER",
            help="Folder of specs and releases. Default: the current folder.",
        ),
    ] = Path(),
    sample: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Open a fictional table first: voters, patients or census."
        ),
    ] = None,
    port: Annotated[str, number_option("Port; 0 chooses a free one.")] = "0",
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Address to listen on.")
    ] = "127.0.0.1",
    anywhere: Annotated[
        bool, typer.Option("--anywhere", help="Allow files outside the folder.")
    ] = False,
    browser: Annotated[bool, typer.Option(help="Open a browser. Default: yes.")] = True,
) -> None:
    """Open the studio: from a table to a verified release, in a browser."""
    if not folder.is_dir():
        raise IncrowdError(f"'{folder}' is not a folder. Create it, or name another one.")
    serve_pages(
        folder, host=host, port=int(check_whole("port", parse_number("port", port), 0)),
        browser=browser, anywhere=anywhere, table=table, sample=sample,
    )  # fmt: skip


def serve_pages(
    folder: Path, *, host: str = "127.0.0.1", port: int = 0, browser: bool = True,
    anywhere: bool = False, table: str | None = None, sample: str | None = None,
    only_verify: bool = False,
) -> None:  # fmt: skip
    """Serve the pages of the studio, or those that verify releases alone, until it is ended."""
    try:
        import uvicorn

        from incrowd.studio.access import Sessions
        from incrowd.studio.connection_limits import make_config
        from incrowd.studio.server import Studio, make_app
        from incrowd.studio.workspace import remove_stale_uploads
    except ModuleNotFoundError as error:
        if error.name and error.name.split(".")[0] in ("starlette", "uvicorn"):
            raise IncrowdError(
                "The studio needs starlette and uvicorn: pip install 'incrowd[studio]'."
            ) from error
        raise
    listens = _open_socket(host, port)
    named = f"[{host}]" if ":" in host else host
    address = f"{named}:{listens.getsockname()[1]}"
    if not ipaddress.ip_address(host).is_loopback:
        print_text(f"Everyone who can reach {address} and has the link can read your tables.")

    page: RedirectFile | None = None

    def report_link(token: str, twice: bool) -> None:
        if page is not None:
            page.remove()
        if twice:
            print_text("A link was used twice. The browser that used it first is logged out.")
        print_text(f"For another browser: http://{address}/?token={token}")

    remove_stale_uploads()
    sessions = Sessions(report_link)
    app = make_app(
        Studio(folder, anywhere=anywhere, table=table, sample=sample, only_verify=only_verify),
        sessions,
        _list_hosts(address, host),
    )
    link = f"http://{address}/?token={sessions.token}"
    name = "page that verifies releases" if only_verify else "studio"
    print_text(f"The {name} of {folder.resolve().name or folder.resolve()} is open: {link}")
    print_text(f"The link works once. Ctrl-C ends the {'page' if only_verify else 'studio'}.")
    if hasattr(signal, "SIGHUP"):  # a terminal that is closed ends the studio as Ctrl-C does
        signal.signal(signal.SIGHUP, lambda *_given: signal.raise_signal(signal.SIGTERM))
    try:
        if browser:
            page = RedirectFile(link)
            page.open_in_browser()
        uvicorn.Server(make_config(app)).run(sockets=[listens])
    finally:
        if page is not None:
            page.remove()


def _open_socket(host: str, port: int) -> socket.socket:
    try:
        version = ipaddress.ip_address(host).version
    except ValueError as error:
        raise IncrowdError(
            f"'{host}' is not an IP address. For this machine, use 127.0.0.1."
        ) from error
    listener = socket.socket(socket.AF_INET6 if version == 6 else socket.AF_INET)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(128)  # so that a browser that is quicker than we are waits
    except (OSError, OverflowError) as error:
        listener.close()
        raise IncrowdError(f"Cannot listen on {host}, port {port}: {error}.") from error
    return listener


def _list_hosts(address: str, host: str) -> list[str]:
    """Return the addresses that the studio answers to."""
    hosts = [address]
    if ipaddress.ip_address(host).is_loopback:
        hosts.append(f"localhost:{address.rpartition(':')[2]}")
    return hosts
