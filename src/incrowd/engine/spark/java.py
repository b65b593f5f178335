"""The Java that Spark needs: whether it is there, and of which version."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from incrowd.engine.table import TableError

NEEDED = 17
_PATIENCE = 30  # seconds for java to say its version; on a busy machine it may take some
_REMEDY = (
    f"Install Java {NEEDED} or later (Debian and Ubuntu: openjdk-17-jre-headless), "
    "or let JAVA_HOME name the folder of one."
)


def refuse_without_java() -> None:
    """Raise ``TableError`` unless the Java that Spark would start is version 17 or later.

    Like Spark, it takes that of ``JAVA_HOME``, and the one on the path only where ``JAVA_HOME`` is
    not set. It runs ``java -version`` and starts no Spark.
    """
    home = os.environ.get("JAVA_HOME")
    path = str(Path(home, "bin")) if home else None
    java = shutil.which("java", path=path)
    if java is None and home:
        raise TableError(f"Spark needs Java: JAVA_HOME is {home}, without bin/java. {_REMEDY}")
    if java is None:
        raise TableError(
            f"Spark needs Java: there is none on the PATH, and JAVA_HOME is not set. {_REMEDY}"
        )
    version = _version(java)
    number = major(version)
    if number is None:
        raise TableError(f"Spark needs Java: {java} does not say its version. {_REMEDY}")
    if number < NEEDED:
        raise TableError(
            f"Spark needs Java {NEEDED} or later: {java} is version {version}. {_REMEDY}"
        )


def major(version: str) -> int | None:
    """The number of a release of Java: 8 of 1.8.0_392, 17 of 17.0.15, 25 of 25-ea."""
    match = re.match(r"(?:1\.)?(\d+)(?![^._+-])", version)
    return int(match[1]) if match else None


def _version(java: str) -> str:
    """What a java says its version is; nothing where it says none."""
    try:
        done = subprocess.run(  # noqa: S603 - the java that Spark itself would run
            [java, "-version"], stdin=subprocess.DEVNULL, capture_output=True,
            timeout=_PATIENCE, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return ""
    said = (done.stderr + done.stdout).decode(errors="replace")
    match = re.search(r'version "([^"]+)"', said)
    return match[1] if match else ""
