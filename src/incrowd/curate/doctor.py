"""What is installed here: libraries, extras, and what they need around them.

Libraries are looked up in the metadata of what is installed; none is loaded for it. What Incrowd
needs is read from its own metadata, so that nothing is listed twice.
"""

from __future__ import annotations

import os
import platform
import tempfile
import webbrowser
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from packaging.requirements import Requirement

import incrowd

if TYPE_CHECKING:
    from incrowd.engine.java import JavaRuntime

# What each extra is for; those of developers are not listed.
PURPOSES = {
    "excel": "workbooks of tables of counts",
    "geo": "hexagons by coordinates",
    "pandas": "pandas data frames",
    "papers": "figures of the papers, `incrowd reproduce`",
    "postgres": "PostgreSQL tables",
    "sdmx": "tables of counts as SDMX",
    "spark": "Apache Spark tables",
    "statistics": "SAS, Stata and SPSS files",
    "studio": "web app, `incrowd studio`",
}
_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


@dataclass(frozen=True)
class InstalledPackage:
    """A library: the version that is installed, if it is, and those that fit."""

    name: str
    version: str | None
    needs: str
    fits: bool

    @property
    def problem(self) -> str:
        """What is wrong with it; empty if nothing is."""
        if self.version is None:
            return f"{self.name} is missing"
        return "" if self.fits else f"{self.name} {self.version} does not fit {self.needs}"


@dataclass(frozen=True)
class Extra:
    """Libraries that are installed for one purpose."""

    name: str
    purpose: str
    packages: tuple[InstalledPackage, ...]

    @property
    def is_installed(self) -> bool:
        """Whether all of its libraries are there, in versions that fit."""
        return all(package.fits for package in self.packages)

    @property
    def command(self) -> str:
        """The command that installs it."""
        return f"pip install 'incrowd[{self.name}]'"


@dataclass(frozen=True)
class StateFolder:
    """The folder that remembers which tables were released before."""

    folder: str
    writable: bool


@dataclass(frozen=True)
class Machine:
    """Where Incrowd runs; memory is in bytes. What could not be found out is None."""

    python: str
    system: str
    cores: int
    memory: int | None
    java: JavaRuntime | None
    browser: str | None
    state: StateFolder | None


@dataclass(frozen=True)
class Diagnosis:
    """All that was found. ``problems`` are those of what every release needs."""

    packages: tuple[InstalledPackage, ...]
    extras: tuple[Extra, ...]
    machine: Machine
    problems: tuple[str, ...]
    tried: bool

    @property
    def is_working(self) -> bool:
        """Whether all that every release needs is there; extras do not matter."""
        return not self.problems

    def as_dict(self) -> dict[str, Any]:
        """Return the diagnosis as plain values, for JSON."""
        extras = [
            {**asdict(extra), "installed": extra.is_installed, "command": extra.command}
            for extra in self.extras
        ]
        return {
            "incrowd": incrowd.__version__,
            "folder": _get_package_folder(),
            **asdict(self.machine),
            "packages": [asdict(package) for package in self.packages],
            "extras": extras,
            "tried": self.tried,
            "works": self.is_working,
            "problems": list(self.problems),
        }

    def format_lines(self) -> Iterator[str]:
        """Yield the diagnosis as lines of text."""
        machine = self.machine
        memory = f", {machine.memory / 2**30:.1f} GiB of memory" if machine.memory else ""
        yield f"incrowd {incrowd.__version__} in {_get_package_folder()}"
        yield f"Python {machine.python} on {machine.system}, {machine.cores} cores{memory}"
        yield ""
        yield "Required:"
        for package in self.packages:
            yield f"  {package.name:<14}{package.problem or package.version}"
        yield ""
        yield "Extras:"
        for extra in self.extras:
            problems = [package.problem for package in extra.packages if package.problem]
            versions = [f"{package.name} {package.version}" for package in extra.packages]
            yield f"  {extra.name:<14}{extra.purpose}: {', '.join(problems or versions)}"
            if problems:
                yield f"  {'':<14}{extra.command}"
        yield ""
        yield "System:"
        if (java := machine.java) is not None:
            yield f"  {'Java':<14}{java.problem or f'{java.version}, fits Spark'}"
        yield f"  {'browser':<14}{machine.browser or 'none; the studio prints a link'}"
        if machine.state is not None:
            lost = "" if machine.state.writable else "not "
            yield f"  {'state':<14}{machine.state.folder}, {lost}writable"
            if lost:
                yield f"  {'':<14}Repeated releases of a table go unnoticed. Set XDG_STATE_HOME."
        yield ""
        if self.tried and self.is_working:
            yield "Published and verified a fictional table."
        yield from self.problems or ["All required libraries are installed."]


def find_version(name: str) -> str | None:
    """Return the version of a library by its metadata; None if it is not installed."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def read_requirements() -> Sequence[str] | None:
    """Return what Incrowd requires; None if it was not installed as a package."""
    try:
        return metadata.requires("incrowd") or []
    except metadata.PackageNotFoundError:
        return None


def diagnose_installation(
    *,
    requirements: Callable[[], Sequence[str] | None] = read_requirements,
    version_of: Callable[[str], str | None] = find_version,
    machine: Callable[[], Machine] | None = None,
    attempt: bool = False,
) -> Diagnosis:
    """Look at what is installed; with ``attempt``, also make a release and verify it.

    The release is a rehearsal: of made-up people, in a temporary folder, and nowhere remembered.
    """
    listed = requirements()
    needed = [Requirement(text) for text in listed or ()]
    packages = _list_packages(needed, "", version_of)
    extras = tuple(
        Extra(name, purpose, _list_packages(needed, name, version_of))
        for name, purpose in PURPOSES.items()
    )
    described_machine = (machine or describe_machine)()
    problems = [
        f"{package.problem}: pip install '{package.name}{package.needs}'."
        for package in packages
        if package.problem
    ]
    if listed is None:
        problems.append(
            "Incrowd is not installed as a package, so its requirements are unknown. Install it."
        )
    if find_spec("_sqlite3") is None:
        problems.append("This Python was built without sqlite3, which ledgers need.")
    if attempt:
        problems += _try_release()
    return Diagnosis(packages, extras, described_machine, tuple(problems), attempt)


def describe_machine() -> Machine:
    """Describe what Incrowd runs on, and what it would use there."""
    return Machine(
        python=platform.python_version(),
        system=f"{platform.system()} {platform.machine()}",
        cores=_count_cores(),
        memory=_measure_memory(),
        java=_find_java(),
        browser=_find_browser(),
        state=_check_state_folder(),
    )


def _list_packages(
    needed: Sequence[Requirement], extra: str, version_of: Callable[[str], str | None]
) -> tuple[InstalledPackage, ...]:
    """List the libraries of an extra, or, without a name, those that are always needed."""
    installed_packages = []
    for requirement in needed:
        always = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        if not (always if not extra else not always and _is_part_of_extra(requirement, extra)):
            continue
        version = version_of(requirement.name)
        fits = version is not None and requirement.specifier.contains(version, prereleases=True)
        installed_packages.append(
            InstalledPackage(requirement.name, version, str(requirement.specifier), fits)
        )
    return tuple(installed_packages)


def _is_part_of_extra(requirement: Requirement, extra: str) -> bool:
    return requirement.marker is not None and requirement.marker.evaluate({"extra": extra})


def _try_release() -> list[str]:
    """Make and verify a small release of fictional people, and return what went wrong."""
    spec = {
        "columns": {
            "city": {"role": "quasi", "hierarchy": {"flat": {"values": ["north", "south"]}}},
            "age": {
                "role": "quasi",
                "hierarchy": {"intervals": {"from": 0, "to": 100, "widths": [10, 50]}},
            },
        },
        "release": {"method": "safe", "epsilon": 1.0, "delta": 1e-6},
    }
    with tempfile.TemporaryDirectory() as folder:
        try:
            from incrowd.curate.rehearse import rehearse
            from incrowd.verification import verify

            release = rehearse(spec, size=1000, output=Path(folder, "release"))
            wrong = verify(release.folder)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is what was looked for
            return [f"Publishing failed: {type(error).__name__}: {error}"]
    return [
        f"Verification failed: {finding}"
        for finding in wrong
        if finding.code != "RELEASE_REHEARSED"
    ]


def _get_package_folder() -> str:
    return str(Path(incrowd.__file__).parent)


def _count_cores() -> int:
    """Count the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _measure_memory() -> int | None:
    """Return the memory of the machine, or what a container may use of it."""
    try:
        limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    except (AttributeError, OSError, ValueError):
        return None
    for path in _LIMITS:
        try:
            limits.append(int(Path(path).read_text(encoding="ascii")))
        except (OSError, ValueError):  # there is no such limit
            continue
    return min(limits)


def _find_java() -> JavaRuntime | None:
    """Find the Java that Spark would start; None where the search cannot be loaded."""
    try:
        from incrowd.engine.java import find_java
    except ImportError:  # a library is missing, and is listed as such
        return None
    return find_java()


def _find_browser() -> str | None:
    """Find the browser that the studio would open."""
    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        return None
    return str(getattr(browser, "name", "") or type(browser).__name__)


def _check_state_folder() -> StateFolder | None:
    """Check whether the state folder can be written to; None where that is not known."""
    try:
        from incrowd.release.history import get_state_folder
    except ImportError:  # a library is missing, and is listed as such
        return None
    folder = get_state_folder()
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    try:
        with tempfile.TemporaryFile(dir=there):
            writable = True
    except OSError:
        writable = False
    return StateFolder(str(folder), writable)
