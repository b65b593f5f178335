"""The command, as it is run at a terminal that is not one."""

from __future__ import annotations

import os
import subprocess
import sys


def run(*arguments: str, columns: int = 100) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "incrowd", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        env={
            "COLUMNS": str(columns),
            "PATH": "/usr/bin:/bin",
            "PYTHONPATH": os.environ.get("PYTHONPATH", ""),  # the code under test, wherever it is
        },
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout
