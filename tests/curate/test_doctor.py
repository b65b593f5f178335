"""The doctor, on machines that are made up: nothing is installed or removed for it."""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from support.cli import run_command, run_successfully

import incrowd
from incrowd.curate import doctor, rehearse
from incrowd.curate.doctor import Machine, StateFolder, describe_machine, diagnose_installation
from incrowd.engine.java import JavaRuntime

REQUIREMENTS = (
    "numpy>=2.0",
    "polars>=1.35.1",
    "colorama>=1; sys_platform == 'nowhere'",
    "pyspark<5,>=4.0; extra == 'spark'",
    "pandas>=2.2.2; extra == 'spark'",
    "starlette>=0.40; extra == 'studio'",
    "uvicorn>=0.30; extra == 'studio'",
    "pytest>=8; extra == 'test'",
)
EVERYTHING = {
    "numpy": "2.4.6", "polars": "2.1.0", "pyspark": "4.1.0", "pandas": "3.0.0",
    "starlette": "1.0.0", "uvicorn": "0.40.0",
}  # fmt: skip
MACHINE = Machine(
    python="3.12.1",
    system="Linux x86_64",
    cores=4,
    memory=8 << 30,
    java=JavaRuntime("/usr/bin/java", "17.0.15", ""),
    browser="firefox",
    state=StateFolder("/home/ada/.local/state/incrowd", writable=True),
)


def found(installed: dict[str, str], machine: Machine = MACHINE) -> doctor.Diagnosis:
    return diagnose_installation(
        requirements=lambda: REQUIREMENTS, version_of=installed.get, machine=lambda: machine
    )


def without(*names: str, **others: str) -> dict[str, str]:
    return {name: x for name, x in {**EVERYTHING, **others}.items() if name not in names}


def text(diagnosis: doctor.Diagnosis) -> str:
    return "\n".join(diagnosis.format_lines())


def test_all_is_there() -> None:
    seen = found(EVERYTHING)
    assert seen.is_working
    assert [package.name for package in seen.packages] == ["numpy", "polars"]
    message = text(seen)
    assert f"incrowd {incrowd.__version__} in " in message
    assert "Python 3.12.1 on Linux x86_64, 4 cores, 8.0 GiB of memory" in message
    assert "studio        web app, `incrowd studio`: starlette 1.0.0, uvicorn 0.40.0" in message
    assert "Java          17.0.15, fits Spark" in message
    assert "pip install" not in message
    assert message.endswith("All required libraries are installed.")


def test_an_extra_that_is_missing_comes_with_its_command_and_breaks_nothing() -> None:
    seen = found(without("starlette", "uvicorn", "pandas"))
    assert seen.is_working
    message = text(seen)
    assert (
        "studio        web app, `incrowd studio`: starlette is missing, uvicorn is missing"
        in message
    )
    assert "pip install 'incrowd[studio]'" in message
    assert "spark         Apache Spark tables: pandas is missing" in message
    assert "pip install 'incrowd[spark]'" in message
    extras = {extra["name"]: extra for extra in seen.as_dict()["extras"]}
    assert not extras["studio"]["installed"]
    assert extras["studio"]["command"] == "pip install 'incrowd[studio]'"


@pytest.mark.parametrize(("version", "fits"), [("3.5.1", False), ("4.0.0", True), ("5.0.0", False)])
def test_a_version_of_an_extra_that_does_not_fit(version: str, fits: bool) -> None:
    seen = found(without(pyspark=version))
    assert seen.is_working
    (spark,) = (extra for extra in seen.extras if extra.name == "spark")
    assert spark.is_installed == fits
    assert (f"pyspark {version} does not fit <5,>=4.0" in text(seen)) != fits


@pytest.mark.parametrize(
    ("installed", "problem"),
    [
        (without("polars"), "polars is missing: pip install 'polars>=1.35.1'."),
        (
            without(numpy="1.26.4"),
            "numpy 1.26.4 does not fit >=2.0: pip install 'numpy>=2.0'.",
        ),
    ],
)
def test_what_every_release_needs(installed: dict[str, str], problem: str) -> None:
    seen = found(installed)
    assert not seen.is_working
    assert seen.problems == (problem,)
    assert text(seen).endswith(problem)
    assert seen.as_dict()["problems"] == [problem]


def test_what_is_not_installed_as_a_package_is_not_said_to_work() -> None:
    seen = diagnose_installation(
        requirements=lambda: None, version_of=EVERYTHING.get, machine=lambda: MACHINE
    )
    assert not seen.is_working
    assert "not installed as a package" in seen.problems[0]


def test_what_is_around_it_breaks_nothing() -> None:
    old = "Spark needs Java 17 or later: /usr/bin/java is version 11.0.2. Install"
    around = replace(
        MACHINE,
        memory=None,
        java=JavaRuntime("/usr/bin/java", "11.0.2", old),
        browser=None,
        state=StateFolder("/nowhere", writable=False),
    )
    seen = found(EVERYTHING, around)
    assert seen.is_working
    message = text(seen)
    assert f"Java          {old}" in message
    assert "browser       none; the studio prints a link" in message
    assert "state         /nowhere, not writable" in message
    assert "memory" not in message


def test_every_extra_has_a_purpose() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert set(doctor.PURPOSES) == set(project["optional-dependencies"]) - {"test", "docs"}


def test_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = tmp_path / "jdk" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n", encoding="utf-8")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "not" / "yet"))
    seen = describe_machine()
    assert seen.cores >= 1
    assert seen.memory is None or seen.memory > 1 << 26
    assert seen.java is not None
    assert seen.java.version == "11.0.2"
    assert "17 or later" in seen.java.problem
    assert seen.state == StateFolder(str(tmp_path / "not" / "yet" / "incrowd"), writable=True)
    assert not (tmp_path / "not").exists()  # it looks, and leaves no trace
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    seen = describe_machine()
    assert seen.state is not None
    assert not seen.state.writable


def test_the_command_tries_a_release() -> None:
    diagnosis = json.loads(run_successfully("doctor", "--try", "--json"))
    assert (diagnosis["works"], diagnosis["problems"], diagnosis["tried"]) == (True, [], True)
    assert {"numpy", "polars", "typer"} <= {package["name"] for package in diagnosis["packages"]}


def test_a_release_that_cannot_be_made_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError("no library of that name")

    monkeypatch.setattr(rehearse, "rehearse", fail)
    done = run_command("doctor", "--try")
    assert done.returncode == 1
    assert done.stderr == ""
    assert "Publishing failed: OSError: no library of that name" in done.stdout
    assert "Published and verified" not in done.stdout
