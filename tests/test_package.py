"""What is handed out: wheel, source distribution, versions that are asked for, who made it.

The environment in which the wheel is tried links the libraries that are installed here; that all of
them can be installed from an index is seen by ``make wheel``.
"""

from __future__ import annotations

import json
import re
import subprocess
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version
from ruamel.yaml import YAML
from support.wheel import ROOT, Distributions, WheelEnvironment, build_distributions, install_wheel

import incrowd

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
FOR_DEVELOPERS = {"test", "docs"}

# Runs commands one after the other, and prints how each ended and what it complained of.
_COMMANDS = """
import json, sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from incrowd.cli.main import main

for arguments in json.loads(sys.argv[1]):
    sys.argv = ["incrowd", *arguments]
    said = StringIO()
    try:
        with redirect_stdout(StringIO()), redirect_stderr(said):
            main()
    except SystemExit as end:
        print(json.dumps([end.code, said.getvalue()]))
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Distributions:
    return build_distributions(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def environment(built: Distributions, tmp_path_factory: pytest.TempPathFactory) -> WheelEnvironment:
    return install_wheel(built.wheel, tmp_path_factory.mktemp("wheel") / "env")


def shipped(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as file:
        return {name for name in file.namelist() if name.startswith("incrowd/")}


def in_the_tree() -> set[str]:
    source = ROOT / "src"
    return {
        path.relative_to(source).as_posix()
        for path in (source / "incrowd").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_the_wheel_holds_every_file_of_the_package(built: Distributions, tmp_path: Path) -> None:
    assert shipped(built.wheel) == in_the_tree()
    assert "incrowd/py.typed" in shipped(built.wheel)
    less = tmp_path / "less.whl"
    with zipfile.ZipFile(built.wheel) as archive, zipfile.ZipFile(less, "w") as part:
        for name in archive.namelist():
            if name != "incrowd/evaluation/report/templates/report.html":
                part.writestr(name, archive.read(name))
    assert in_the_tree() - shipped(less) == {"incrowd/evaluation/report/templates/report.html"}


def test_the_source_distribution_holds_what_it_takes_and_no_more(built: Distributions) -> None:
    """That it suffices is seen by the wheel, which is built from it."""
    with tarfile.open(built.sdist) as file:
        names = {name.split("/", 1)[1] for name in file.getnames() if "/" in name}
    assert {name.split("/")[0] for name in names} == {
        ".gitignore", "CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "LICENSE", "Makefile",
        "PKG-INFO", "README.md", "SECURITY.md", "benchmarks", "constraints-oldest.txt",
        "constraints.txt", "docs", "pyproject.toml", "src", "tests",
    }  # fmt: skip
    if not (ROOT / ".git").exists():
        return
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert names - {"PKG-INFO"} <= set(listed.stdout.split("\0"))


def test_demo_and_verify_from_the_wheel(environment: WheelEnvironment, tmp_path: Path) -> None:
    code = "import incrowd; print(incrowd.__file__)"
    where = environment.run("python", "-c", code, cwd=tmp_path)
    assert Path(where.stdout.strip()).is_relative_to(environment.folder)
    done = environment.run("incrowd", "demo", "-o", "demo", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Verified all releases" in done.stdout
    assert "and 5-anonymity" in done.stdout
    assert (tmp_path / "demo" / "release.curator" / "report.html").stat().st_size > 10_000
    checked = environment.run("incrowd", "verify", "demo/release", cwd=tmp_path)
    assert (checked.returncode, checked.stderr) == (0, "")
    assert checked.stdout.startswith("Verified ")


def test_each_extra_that_is_missing_is_named(environment: WheelEnvironment, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("x,y\n" + "a,1\nb,2\n" * 30)
    (tmp_path / "t.sav").write_bytes(b"$FL2")
    (tmp_path / "spec.yaml").write_text(
        "table: t.csv\ncolumns:\n  x: {role: quasi, hierarchy: {flat: {values: [a, b]}}}\n"
        "  y: {role: quasi, hierarchy: {flat: {values: ['1', '2']}}}\n"
        "release: {method: k-anonymity, k: 2}\n"
    )
    (tmp_path / "places.csv").write_text("lat,lon\n52.5,13.4\n")
    (tmp_path / "places.yaml").write_text(
        "table: places.csv\ncolumns:\n  lat: {role: drop}\n  lon: {role: drop}\n"
        "  place: {role: quasi, hierarchy: {geo: {lat: lat, lon: lon, hexagons: [4, 2]}}}\n"
        "release: {method: k-anonymity, k: 2}\n"
    )
    (tmp_path / "book.yaml").write_text(
        "columns: {x: {role: quasi, hierarchy: {flat: {values: [a, b]}}}}\n"
        "release: {method: tables, epsilon: 1, delta: 1.0e-6, tables: [[x]], exports: [xlsx]}\n"
    )
    (tmp_path / "exchange.yaml").write_text(
        (tmp_path / "book.yaml").read_text().replace("[xlsx]", "[sdmx]")
    )
    commands = {
        "studio": ["studio", "--no-browser"],
        "spark": ["check", "spec.yaml", "--engine", "spark"],
        "postgres": ["init", "postgresql://user@localhost/base#people", "-o", "new.yaml"],
        "statistics": ["init", "t.sav", "-o", "new.yaml"],
        "papers": ["reproduce", "all", "-o", "papers"],
        "excel": ["plan", "--tables", "book.yaml"],
        "geo": ["check", "places.yaml"],
        "sdmx": ["plan", "--tables", "exchange.yaml"],
    }
    assert set(commands) | {"pandas"} | FOR_DEVELOPERS >= set(EXTRAS)  # who gives pandas has it
    request = json.dumps(list(commands.values()))
    done = environment.run("python", "-c", _COMMANDS, request, cwd=tmp_path)
    ends = [json.loads(line) for line in done.stdout.splitlines()]
    for (extra, _), (status, text) in zip(commands.items(), ends, strict=True):
        assert status == 2, (extra, text)
        assert re.fullmatch(rf"incrowd: .*: pip install 'incrowd\[{extra}\]'\.\n", text), text
    assert not (tmp_path / "papers").exists()
    seen = environment.run("incrowd", "doctor", "--json", cwd=tmp_path)
    result = json.loads(seen.stdout)
    assert (seen.returncode, result["works"], result["problems"]) == (0, True, [])
    assert not any(extra["installed"] for extra in result["extras"])


def test_the_oldest_versions_are_those_that_are_asked_for() -> None:
    bounds: dict[str, Version] = {}
    for extra, texts in {"": PROJECT["dependencies"], **EXTRAS}.items():
        for first in map(Requirement, texts):
            if extra not in FOR_DEVELOPERS:
                (least,) = (part.version for part in first.specifier if part.operator == ">=")
                assert bounds.setdefault(first.name, Version(least)) == Version(least), first.name
    lines = (ROOT / "constraints-oldest.txt").read_text(encoding="utf-8").splitlines()
    pinned = [line.split("==") for line in lines if not line.startswith("#")]
    assert {name: Version(version) for name, version in pinned} == bounds
    assert pinned == sorted(pinned)


def test_the_citation_names_the_version() -> None:
    citation = YAML(typ="safe").load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == incrowd.__version__
    assert citation["license"] == PROJECT["license"]
    assert citation["authors"] == [{"name": "The Incrowd developers"}]
