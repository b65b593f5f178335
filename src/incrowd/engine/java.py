"""The Java that Spark needs: whether it is there, and of which version."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from incrowd.engine.table import TableError

NEEDED = 17
_PATIENCE = 30  # seconds for java to say its version; on a busy machine it may take some
_REMEDY = (
    f"Install Java {NEEDED} or later (Debian and Ubuntu: openjdk-17-jre-headless), "
    "or let JAVA_HOME name the folder of one."
)


@dataclass(frozen=True)
class JavaRuntime:
    """The Java that Spark would start, and why it cannot; ``problem`` is empty where it can."""

    path: str | None
    version: str
    problem: str


def find_java() -> JavaRuntime:
    """Look for the Java that Spark would start, and hold its version against what Spark needs.

    Like Spark, it takes that of ``JAVA_HOME``, and the one on the path only where ``JAVA_HOME`` is
    not set. It runs ``java -version`` and starts no Spark.
    """
    home = os.environ.get("JAVA_HOME")
    path = str(Path(home, "bin")) if home else None
    java = shutil.which("java", path=path)
    if java is None:
        where = (
            f"JAVA_HOME is {home}, without bin/java."
            if home
            else "there is none on the PATH, and JAVA_HOME is not set."
        )
        return JavaRuntime(None, "", f"Spark needs Java: {where} {_REMEDY}")
    version = _read_version(java)
    number = parse_major_version(version)
    problem = ""
    if number is None:
        problem = f"Spark needs Java: {java} does not say its version. {_REMEDY}"
    elif number < NEEDED:
        problem = f"Spark needs Java {NEEDED} or later: {java} is version {version}. {_REMEDY}"
    return JavaRuntime(java, version, problem)


def require_java() -> None:
    """Raise ``TableError`` unless the Java that Spark would start is version 17 or later."""
    problem = find_java().problem
    if problem:
        raise TableError(problem)


def parse_major_version(version: str) -> int | None:
    """Return the number of a release of Java: 8 of 1.8.0_392, 17 of 17.0.15, 25 of 25-ea."""
    match = re.match(r"(?:1\.)?(\d+)(?![^._+-])", version)
    return int(match[1]) if match else None


def _read_version(java: str) -> str:
    """Return what a java says its version is; nothing where it says none."""
    try:
        process = subprocess.run(  # noqa: S603 - the java that Spark itself would run
            [java, "-version"], stdin=subprocess.DEVNULL, capture_output=True,
            timeout=_PATIENCE, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return ""
    text = (process.stderr + process.stdout).decode(errors="replace")
    match = re.search(r'version "([^"]+)"', text)
    return match[1] if match else ""
