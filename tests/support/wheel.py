"""The wheel, built and installed into an environment of its own that sees nothing of this tree."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Distributions:
    """What ``make dist`` makes: the source distribution, and the wheel that is built from it."""

    sdist: Path
    wheel: Path


def build_distributions(folder: Path) -> Distributions:
    """Build both with the tools that are installed; no index is asked."""
    subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)],
        check=True, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    (sdist,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return Distributions(sdist, wheel)


def list_requirements(name: str) -> Iterator[Requirement]:
    """What a distribution needs on this machine, without its extras."""
    for text in metadata.requires(name) or ():
        requirement = Requirement(text)
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            yield requirement


def collect_dependencies(first: list[Requirement]) -> dict[str, metadata.Distribution]:
    """The distributions that are needed, and those that they need in turn."""
    dependencies: dict[str, metadata.Distribution] = {}
    waiting = list(first)
    while waiting:
        requirement = waiting.pop()
        if canonicalize_name(requirement.name) not in dependencies:
            dependencies[canonicalize_name(requirement.name)] = metadata.distribution(
                requirement.name
            )
            waiting += list_requirements(requirement.name)
    return dependencies


@dataclass(frozen=True)
class WheelEnvironment:
    """A Python with a wheel in it."""

    folder: Path

    def run(self, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment with none of ours on its path."""
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        return subprocess.run(
            [str(self.folder / "bin" / arguments[0]), *arguments[1:]],
            cwd=cwd, env={**environment, "XDG_STATE_HOME": str(self.folder / "state")},
            capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip


def install_wheel(wheel: Path, folder: Path) -> WheelEnvironment:
    """An environment with a wheel, and of other libraries only those that the wheel asks for.

    These are links to what is installed here: what their versions are is not tried, only that
    nothing is used that is not asked for. The extras are not among them, nor is this tree.
    """
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    python = folder / "bin" / "python"
    subprocess.run(
        [
            sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet",
            "--disable-pip-version-check", "--no-deps", "--no-index", "--no-compile", str(wheel),
        ],
        check=True, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    (packages,) = folder.glob("lib/python*/site-packages")
    (distribution,) = metadata.distributions(name="incrowd", path=[str(packages)])
    first = [Requirement(text) for text in distribution.requires or ()]
    for dependency in collect_dependencies([x for x in first if not x.marker]).values():
        for name in {file.parts[0] for file in dependency.files or ()} - {"..", "__pycache__"}:
            if not (packages / name).exists():
                (packages / name).symlink_to(Path(str(dependency.locate_file(name))))
    return WheelEnvironment(folder)
