"""What a folder holds, by table: specs, and the releases that were made by each.

Nothing is remembered besides the files: a spec names its table, and the private folder of a release
says by which spec it was made. A release without such a folder stands by itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from incrowd.cli.guarantee import describe_guarantee, is_reassuring
from incrowd.errors import IncrowdError
from incrowd.release.certificate import FILE, Certificate
from incrowd.release.folder import locate_curator_folder
from incrowd.release.verify import read_certificate

_LARGEST_ORIGIN = 20_000_000  # bytes


@dataclass(frozen=True)
class PastRelease:
    """A release of the folder, and what its private folder says of it.

    ``spec_file`` and ``spec`` are empty where that is not known.
    """

    folder: Path
    certificate: Certificate
    spec_file: str = ""
    spec: str = ""
    ledger: str | None = None
    entry: int | None = None

    @property
    def name(self) -> str:
        """The name of its folder."""
        return self.folder.name

    @property
    def promise(self) -> str:
        """Its guarantee, in short."""
        return describe_guarantee(self.certificate)

    @property
    def is_reassuring(self) -> bool:
        """Whether its guarantee may be shown in the color of success."""
        return is_reassuring(self.certificate)

    @property
    def rows(self) -> int:
        """The number of rows of its files."""
        return sum(table.release.rows for table in self.certificate.tables)

    @property
    def report(self) -> Path:
        """Where its private report lies, if it was kept."""
        return locate_curator_folder(self.folder) / "report.html"

    @property
    def has_report(self) -> bool:
        """Whether its private report is there, and a file."""
        return self.report.is_file() and not self.report.is_symlink()

    @property
    def table(self) -> str:
        """The table that its spec names; empty where that is not known."""
        return _read_table_name(self.spec)


@dataclass
class ProjectSpec:
    """A spec of the folder, with the releases that were made by it, the latest first."""

    name: str
    releases: list[PastRelease] = field(default_factory=list)
    exists: bool = True


@dataclass
class ProjectTable:
    """A table, with its specs; ``exists`` says whether its file is in the folder."""

    name: str
    specs: list[ProjectSpec] = field(default_factory=list)
    exists: bool = False

    @property
    def number(self) -> int:
        """The number of its releases."""
        return sum(len(spec.releases) for spec in self.specs)


def list_projects(
    files: Iterable[tuple[Path, str]], releases: Iterable[PastRelease]
) -> tuple[list[ProjectTable], list[PastRelease]]:
    """Return the tables of a folder with specs and releases, and the releases of no known spec.

    Args:
        files: Tables and specs, each with its kind.
        releases: The releases of the folder, the latest first.
    """
    tables: dict[str, ProjectTable] = {}
    specs: dict[str, ProjectSpec] = {}
    for path, kind in files:
        if kind == "table":
            tables.setdefault(path.name, ProjectTable(path.name)).exists = True
            continue
        table_name = _read_table_of_spec(path, path.stat().st_mtime_ns)
        specs[path.name] = ProjectSpec(path.name)
        tables.setdefault(table_name, ProjectTable(table_name)).specs.append(specs[path.name])
    others = []
    for release in releases:
        if release.spec_file not in specs and not release.table:
            others.append(release)
            continue
        if release.spec_file not in specs:
            specs[release.spec_file] = ProjectSpec(release.spec_file, exists=False)
            home = tables.setdefault(release.table, ProjectTable(release.table))
            home.specs.append(specs[release.spec_file])
        specs[release.spec_file].releases.append(release)
    return sorted(tables.values(), key=lambda table: (-table.number, table.name.lower())), others


def list_past_releases(folders: Iterable[Path]) -> list[PastRelease]:
    """Return the releases of some folders, the latest first; those that cannot be read are not."""
    releases = list(_iterate_releases(folders))
    return sorted(releases, key=lambda x: (x.certificate.date, _read_time(x.folder)), reverse=True)


def _iterate_releases(folders: Iterable[Path]) -> Iterator[PastRelease]:
    for folder in folders:
        try:
            certificate = _read_certificate(folder, (folder / FILE).stat().st_mtime_ns)
        except (IncrowdError, OSError):
            continue
        yield PastRelease(folder, certificate, **_read_origin(folder))


@lru_cache(maxsize=500)
def _read_certificate(folder: Path, _changed: int) -> Certificate:
    return read_certificate(folder)


def _read_time(folder: Path) -> int:
    return (folder / FILE).stat().st_mtime_ns


def _read_origin(folder: Path) -> dict[str, Any]:
    """Return what the private folder of a release says of its origin; nothing if it is not ours."""
    path = locate_curator_folder(folder) / "origin.json"
    try:
        if path.is_symlink() or path.stat().st_size > _LARGEST_ORIGIN:
            return {}
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(content, dict):
        return {}
    spec_file, spec = content.get("spec_file"), content.get("spec")
    ledger, entry = content.get("ledger"), content.get("entry")
    if not isinstance(spec_file, str) or not isinstance(spec, str):
        return {}
    return {
        "spec_file": Path(spec_file).name, "spec": spec,
        "ledger": ledger if isinstance(ledger, str) else None,
        "entry": entry if isinstance(entry, int) else None,
    }  # fmt: skip


@lru_cache(maxsize=500)
def _read_table_of_spec(path: Path, _changed: int) -> str:
    try:
        return _read_table_name(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        return ""


def _read_table_name(spec: str) -> str:
    """Return the table that a spec names, from its line alone; addresses without a password."""
    line = next((line for line in spec.splitlines() if line.startswith("table:")), "")
    try:
        name = YAML(typ="safe").load(line).get("table") if line else ""
    except (YAMLError, AttributeError):
        return ""
    return name if isinstance(name, str) else ""
