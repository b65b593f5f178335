"""The command ``incrowd``, run in this process as a shell would run it in one of its own."""

from __future__ import annotations

import subprocess
import sys
import warnings
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO

import pytest

from incrowd.cli.main import main


@dataclass(frozen=True)
class CommandResult:
    """How a command ended, and what it wrote."""

    returncode: int
    stdout: str
    stderr: str


def run_command(*arguments: str, columns: int = 500) -> CommandResult:
    """``incrowd`` with these arguments, at no terminal."""
    out, err = StringIO(), StringIO()
    with (
        pytest.MonkeyPatch.context() as patch,
        warnings.catch_warnings(),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        warnings.simplefilter("default")  # said, as a shell shows them, and no errors
        patch.setattr(sys, "argv", ["incrowd", *arguments])
        patch.setenv("COLUMNS", str(columns))
        with pytest.raises(SystemExit) as end:
            main()
    assert isinstance(end.value.code, int)
    return CommandResult(end.value.code, out.getvalue(), err.getvalue())


def wait_for_step(process: subprocess.Popen[str], step: str) -> None:
    """Read what a process says of what to expect, until it pauses at a step."""
    assert process.stdout is not None
    text = process.stdout.readline()
    while text and not text.startswith("paused at "):
        text = process.stdout.readline()
    assert text == f"paused at {step}\n"


def run_successfully(*arguments: str, columns: int = 500) -> str:
    """What a command says that succeeds and complains of nothing."""
    process = run_command(*arguments, columns=columns)
    assert process.returncode == 0, process.stderr
    assert process.stderr == ""
    return process.stdout
