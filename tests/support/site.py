"""The site of the project: built whole, once for all tests, or a page of it made for a test."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
STRICT = ("-q", "-W", "--keep-going", "-n", "-E")


@dataclass(frozen=True)
class SiteBuild:
    """How a build ended, what it complained of, and where its pages are."""

    status: int
    complaints: str
    pages: Path


def build_site(source: Path, target: Path, *more: str) -> SiteBuild:
    """Build pages as ``make docs`` does, with the settings of the site."""
    command = [sys.executable, "-m", "sphinx", *STRICT, "-c", str(ROOT / "docs"), *more]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    process = subprocess.run(
        [*command, str(source), str(target)],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return SiteBuild(process.returncode, process.stderr, target)


def build_page(folder: Path, text: str, *more: str) -> SiteBuild:
    """A site of one page, without its looks; public names are those of a module that has none."""
    source = folder / "pages"
    source.mkdir(parents=True, exist_ok=True)
    (source / "index.md").write_text(f"# A page\n\n{text}\n", encoding="utf-8")
    settings = ("-b", "dummy", "-D", "incrowd_public=incrowd_site", *more)
    return build_site(source, folder / "built", *settings)


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> SiteBuild:
    """The whole site; who comes second waits for who came first."""
    shared = tmp_path_factory.getbasetemp()
    shared = shared.parent if "PYTEST_XDIST_WORKER" in os.environ else shared
    target, log = shared / "site", shared / "site.txt"
    with (shared / "site.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not log.exists():
            build = build_site(ROOT / "docs", target, "-b", "html")
            log.write_text(f"{build.status}\n{build.complaints}", encoding="utf-8")
    status, _, complaints = log.read_text(encoding="utf-8").partition("\n")
    return SiteBuild(int(status), complaints, target)
