"""What the snippets of one page share: a folder, a shell's surroundings, names of Python.

Nothing here knows Sphinx. A command that is a plain call of ``incrowd`` runs in this process, as
the entry point would run it: loading the libraries once instead of for every command is what
makes a site with hundreds of them affordable. Everything else is given to bash.
"""

from __future__ import annotations

import ast
import builtins
import io
import linecache
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import textwrap
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

WIDTH = 88  # columns of the terminal that readers are shown
SECONDS = 300  # after which a command counts as failed

_SHELL = re.compile(r"[|&;<>()$`*?\[\]{}~!\n\\]")  # a shell would do something about these
_ALONE = ("studio", "audit")  # commands that start processes of their own
_COLORS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@dataclass(frozen=True)
class CommandOutput:
    """What a command wrote to either stream, and its exit status."""

    output: str
    status: int


@dataclass(frozen=True)
class BlockResult:
    """What a block of Python printed, the value of its last expression, and what it raised."""

    printed: str
    value: object = None
    raised: Exception | None = None
    trace: str = ""

    @property
    def output(self) -> str:
        """What a reader who types the block sees."""
        shown = self.printed
        if self.value is not None:
            shown += f"{self.value!r}\n"
        if self.raised is not None:
            shown += f"{type(self.raised).__name__}: {self.raised}\n"
        return shown


class Session:
    """The folder, the shell and the names of one page, from its first snippet to its last."""

    def __init__(self, name: str) -> None:
        self._root = Path(tempfile.mkdtemp(prefix="incrowd-docs-")).resolve()
        self.folder = self._root / "work"
        self._directory = self.folder
        self._name = name
        self._blocks = 0
        self._names: dict[str, Any] = {"__name__": "__main__", "__builtins__": builtins}
        for folder in ("work", "state", "bin"):
            (self._root / folder).mkdir()
        command = self._root / "bin" / "incrowd"
        command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m incrowd "$@"\n')
        command.chmod(0o755)
        self._environment = {
            name: value for name, value in os.environ.items() if name not in ("FORCE_COLOR", "TERM")
        } | {
            "PATH": f"{command.parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
            "HOME": str(self._root),
            "XDG_STATE_HOME": str(self._root / "state"),
            # Where fonts were found before: to look for them again takes seconds
            "MPLCONFIGDIR": os.environ.get(
                "MPLCONFIGDIR", str(Path.home() / ".cache" / "matplotlib")
            ),
            "COLUMNS": str(WIDTH),
            "NO_COLOR": "1",
            "LC_ALL": "C.UTF-8",
            "MPLBACKEND": "agg",
        }

    def close(self) -> None:
        """Remove everything that the page wrote."""
        shutil.rmtree(self._root, ignore_errors=True)

    def write_file(self, path: str, text: str) -> None:
        """Write a file of the page's folder; a path that leads out of it is refused."""
        target = (self.folder / path).resolve()
        if not target.is_relative_to(self.folder):
            raise ValueError(f"'{path}' is not below the folder of the page")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")

    def run_command(self, line: str) -> CommandOutput:
        """Run a line as a shell would, where the line before has left it."""
        words = _parse_plain_call(line)
        ran = self._run_shell(line) if words is None else self._call_incrowd(words)
        lines = self._clean_output(ran.output).splitlines(keepends=True)
        return CommandOutput("".join(map(_wrap_line, lines)), ran.status)

    def run_python(self, source: str) -> BlockResult:
        """Run a block in the page's namespace."""
        self._blocks += 1
        name = f"<{self._name}, block {self._blocks}>"
        linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
        out = io.StringIO()
        value, raised, trace = None, None, ""
        with (
            self._enter_folder(),
            redirect_stdout(out),
            warnings.catch_warnings(record=True) as warned,
        ):
            warnings.simplefilter("default")
            warnings.filterwarnings("ignore", "FigureCanvasAgg is non-interactive")
            try:
                value = _evaluate_block(source, name, self._names)
            except Exception as error:  # noqa: BLE001 - a page shows it, or fails by it
                raised, trace = error, traceback.format_exc()
        told = {f"{item.category.__name__}: {item.message}\n": None for item in warned}
        printed = self._clean_output(out.getvalue() + "".join(told))
        return BlockResult(printed, value, raised, trace)

    def _call_incrowd(self, words: list[str]) -> CommandOutput:
        from incrowd.cli.main import main

        out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
        argv, stdin, status = sys.argv, sys.stdin, 0
        with (
            self._enter_folder(),
            warnings.catch_warnings(),
            redirect_stdout(out),
            redirect_stderr(out),
        ):
            warnings.simplefilter("default")
            sys.argv, sys.stdin = ["incrowd", *words], io.StringIO()
            try:
                main()
            except SystemExit as end:
                status = end.code if isinstance(end.code, int) else 1
            finally:
                sys.argv, sys.stdin = argv, stdin
        assert isinstance(out.buffer, io.BytesIO)
        return CommandOutput(out.buffer.getvalue().decode(), status)

    def _run_shell(self, line: str) -> CommandOutput:
        """Bash; the folder it ends in and what it exports are where the next command begins."""
        left = self._root / "left"
        script = f"trap 'pwd >{left}.pwd; env -0 >{left}.env' EXIT\n{line}\n"
        try:
            done = subprocess.run(  # noqa: S603 - the page's own command
                ["bash", "-c", script], cwd=self._directory, env=self._environment,  # noqa: S607
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                timeout=SECONDS, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired as late:
            shell = (late.output or b"").decode(errors="replace")
            return CommandOutput(f"{shell}\nstill running after {SECONDS} s\n", 124)
        if Path(f"{left}.pwd").exists():
            self._directory = Path(Path(f"{left}.pwd").read_text().rstrip("\n"))
            pairs = Path(f"{left}.env").read_text().split("\0")
            self._environment = dict(pair.split("=", 1) for pair in pairs if "=" in pair)
        return CommandOutput(done.stdout.decode(errors="replace"), done.returncode)

    @contextmanager
    def _enter_folder(self) -> Iterator[None]:
        """Work in the folder and surroundings of the page, for as long as it takes."""
        before, surroundings = Path.cwd(), dict(os.environ)
        os.chdir(self._directory)
        os.environ.clear()
        os.environ.update(self._environment)
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(surroundings)
            os.chdir(before)

    def _clean_output(self, output: str) -> str:
        """As a terminal shows it, and without the name of a folder that no reader has."""
        return _COLORS.sub("", output).replace(str(self._root), "~")


def _wrap_line(line: str) -> str:
    """Wrap a line as a terminal does, between words where there are any."""
    if len(line.rstrip("\n")) <= WIDTH:
        return line
    parts = textwrap.wrap(
        line, WIDTH, break_on_hyphens=False, replace_whitespace=False, expand_tabs=False
    )
    return "\n".join(parts) + line[len(line.rstrip("\n")) :]


def split_commands(text: str) -> list[str]:
    r"""Return the commands of a console block; a line that ends with ``\`` goes on.

    >>> commands("$ incrowd plan \\\n    --epsilon 1\n$ ls")
    ['incrowd plan \\\n    --epsilon 1', 'ls']
    """
    commands: list[str] = []
    goes_on = False
    for line in text.splitlines():
        if goes_on:
            commands[-1] += f"\n{line}"
        elif line.startswith("$ "):
            commands.append(line[2:])
        elif line.strip():
            raise ValueError(
                f"a line of a console block begins with '$ ', or goes on from one that ends with "
                f"a backslash; got '{line}'. What a command prints is put in when the page is built"
            )
        goes_on = line.endswith("\\")
    return commands


def _parse_plain_call(line: str) -> list[str] | None:
    """Return the arguments of a call of ``incrowd`` in which a shell has nothing to do.

    Else None.
    """
    joined = line.replace("\\\n", " ")
    if not joined.startswith("incrowd ") or "spark" in joined:
        return None
    try:
        words = shlex.split(joined, comments=True)
    except ValueError:
        return None
    bare = re.sub(r"'[^']*'", "", joined.split(" #", maxsplit=1)[0])
    return None if _SHELL.search(bare) or words[1:2] in [[item] for item in _ALONE] else words[1:]


def _evaluate_block(source: str, name: str, names: dict[str, Any]) -> object:
    """Run a block; the value of its last expression, as a notebook would show it."""
    tree = ast.parse(source, name)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, name, "exec"), names)  # noqa: S102 - the page's own code
    if not isinstance(last, ast.Expr):
        return None
    return eval(compile(ast.Expression(last.value), name, "eval"), names)  # noqa: S307
