from __future__ import annotations

import os
from pathlib import Path

import pytest

from incrowd.engine import java
from incrowd.engine.java import parse_major_version, require_java
from incrowd.engine.table import TableError

NOTE = "Picked up JAVA_TOOL_OPTIONS: -Dversion=1"
pytestmark = pytest.mark.skipif(os.name != "posix", reason="fake javas are scripts of a shell")


def fake(folder: Path, script: str) -> Path:
    """A java in ``folder/bin`` that runs a script."""
    path = folder / "bin" / "java"
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def saying(version: str) -> str:
    """A script that says its version as java does, and fails if asked for anything else."""
    lines = f'{NOTE}\\nopenjdk version "{version}" 2025-04-15\\nOpenJDK Server VM\\n'
    return f"[ \"$*\" = -version ] || exit 3\nprintf '{lines}' >&2"


@pytest.fixture(autouse=True)
def no_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "path" / "bin"))


@pytest.mark.parametrize(
    ("version", "number"),
    [
        ("1.8.0_392", 8), ("9", 9), ("11.0.2", 11), ("17.0.15", 17), ("17.0.15+6", 17), ("21", 21),
        ("25-ea", 25), ("25_1", 25), ("", None), ("ea", None), ("17x", None),
    ],
)  # fmt: skip
def test_versions_are_read(version: str, number: int | None) -> None:
    assert parse_major_version(version) == number


@pytest.mark.parametrize("version", ["17.0.15", "21", "25-ea"])
def test_java_that_spark_takes(tmp_path: Path, version: str) -> None:
    fake(tmp_path / "path", saying(version))
    require_java()


@pytest.mark.parametrize("version", ["1.8.0_392", "11.0.2", "16.0.2"])
def test_an_old_java_is_named(tmp_path: Path, version: str) -> None:
    path = fake(tmp_path / "path", saying(version))
    with pytest.raises(TableError, match=f"17 or later: {path} is version {version}\\. Install"):
        require_java()


def test_no_java_at_all() -> None:
    with pytest.raises(TableError) as caught:
        require_java()
    text = str(caught.value)
    assert "none on the PATH, and JAVA_HOME is not set" in text
    assert "openjdk-17-jre-headless" in text
    assert "\n" not in text


def test_java_home_goes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in Spark: what is on the path does not count where JAVA_HOME is set."""
    fake(tmp_path / "path", saying("17.0.15"))
    old = fake(tmp_path / "old", saying("11.0.2"))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "old"))
    with pytest.raises(TableError, match=f"{old} is version 11.0.2"):
        require_java()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    with pytest.raises(TableError, match=f"JAVA_HOME is {tmp_path / 'nowhere'}, without bin/java"):
        require_java()
    fake(tmp_path / "new", saying("21"))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "new"))
    monkeypatch.setenv("PATH", "")
    require_java()


@pytest.mark.parametrize("script", ["exit 1", "echo hello", "exec /bin/sleep 60"])
def test_a_java_that_says_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    path = fake(tmp_path / "path", script)
    monkeypatch.setattr(java, "_PATIENCE", 0.3)
    with pytest.raises(TableError, match=f"{path} does not say its version"):
        require_java()
