"""A terminal: text that is safe to show, progress, and results as JSON."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import textwrap
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from threading import Timer
from typing import TYPE_CHECKING, Any, TextIO, TypeAlias

from incrowd.errors import IncrowdError
from incrowd.findings import Finding, Severity

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from incrowd.arrays import Progress, Step


Facts: TypeAlias = list[tuple[str, str]]


class StoppedError(IncrowdError):
    """Interrupted by the user, at a point of which there is more to say."""


_STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "yellow", Severity.NOTE: "dim"}
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def escape_controls(text: str) -> str:
    r"""Escape control characters, but for tabs and line breaks.

    Names and values come from anywhere; as they are, they could clear a terminal, hide what
    stands on it or turn it around.

    >>> escape_controls("a\x1b[2Jb")
    'a\\x1b[2Jb'
    """
    return _CONTROL.sub(lambda match: _escape_code(ord(match[0])), text)


def _escape_code(code: int) -> str:
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


def print_text(*texts: object, end: str = "\n", file: TextIO | None = None) -> None:
    """Print texts with control characters escaped; every plain line is printed by this."""
    print(escape_controls(" ".join(map(str, texts))), end=end, file=file)


def print_facts(facts: Iterable[tuple[str, str]], *, indent: int = 2, least: int = 0) -> None:
    """Print names and texts in two columns; a long text continues below its first word."""
    listed = [(name, text) for name, text in facts if text]
    width = max([least, *(len(name) for name, _ in listed)])
    for name, text in listed:
        print_wrapped(f"{name:<{width}}  {text}", indent=indent, hanging=width + 2)


def print_wrapped(text: str, *, indent: int = 0, hanging: int = 0) -> None:
    """Print a line, wrapped at the width of the terminal; in a pipe it stays one line."""
    print(_wrap(escape_controls(" " * indent + text), indent + hanging, _line_width(sys.stdout)))


def _wrap(text: str, hanging: int, width: int | None) -> str:
    """Return a line in several, the later ones indented; unchanged where no width is known."""
    if width is None or len(text) <= width:
        return text
    lines = textwrap.wrap(
        text, max(width, hanging + 20), subsequent_indent=" " * hanging, break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip
    return "\n".join(lines)


def _line_width(stream: TextIO) -> int | None:
    """Return the width of the terminal, or the one that COLUMNS asks for; None in a pipe."""
    if not stream.isatty() and not os.environ.get("COLUMNS"):
        return None
    return shutil.get_terminal_size().columns


def print_findings(findings: Iterable[Finding], *, stderr: bool = False, about: str = "") -> None:
    """Print one line for each finding: its severity, what it is about, message, remedy and code."""
    screen, stream = None, sys.stderr if stderr else sys.stdout
    colored = stream.isatty() or os.environ.get("FORCE_COLOR")
    for finding in findings:
        severity = f"{finding.severity.value:>7}"
        line = f"{severity}  {about}{'; '.join(str(finding).splitlines())} [{finding.code}]"
        wrapped = _wrap(escape_controls(line), len(severity) + 2, _line_width(stream))
        if not colored:  # then nothing has to be loaded for it
            print(wrapped, file=stream)
            continue
        screen = screen or make_console(stderr=stderr)
        screen.print(severity, style=_STYLES[finding.severity], end="")
        screen.print(wrapped.removeprefix(severity), markup=False, soft_wrap=True)


def write_output(text: str) -> None:
    """Print what is meant for another program: exactly, unless it goes to a terminal."""
    sys.stdout.write(escape_controls(text) if sys.stdout.isatty() else text)


def ask_choice(question: str, answers: Mapping[str, str]) -> str:
    """Ask until one of the answers is given; anything else lists them with their meanings.

    The end of the input is the last answer.
    """
    names = "/".join(answers)
    while True:
        print_text(f"{question} ({names}, ? for help): ", end="")
        sys.stdout.flush()
        line = sys.stdin.readline()
        if not line:
            print_text("")
            return list(answers)[-1]
        answer = line.strip().lower()[:1]
        if answer in answers:
            return answer
        print_facts(answers.items())


def make_console(*, stderr: bool = False) -> Console:
    """Make a console that shows text as it is, with control characters escaped."""
    from rich.console import Console

    class EscapingConsole(Console):
        def render_str(self, text: str, **more: Any) -> Text:
            return super().render_str(escape_controls(text), **more)

    return EscapingConsole(stderr=stderr, highlight=False, emoji=False)


DOING = {
    "count": "counting the table",
    "book": "booking the spend",
    "slice": "choosing slices",
    "search": "searching for a scheme",
    "recode": "recoding",
    "synthesize": "measuring tables and fitting a model",
    "tabulate": "measuring the tables",
    "draw": "drawing",
    "measure": "measuring",
    "attack": "attacking it",
    "write": "writing",
    "report": "drawing the report",
    "appear": "finishing",
}


@contextmanager
def show_progress(what: str) -> Iterator[tuple[Step, Progress]]:
    """Show a bar on a terminal, for work longer than a second; nothing in a pipe.

    It says the step that is being taken and, where that is known, how much of it is done.
    """
    if not sys.stderr.isatty():  # then nothing has to be loaded for it
        yield (lambda _step: None), (lambda _done, _all: None)
        return
    from rich.progress import Progress as Bar

    with Bar(console=make_console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None, visible=False)
        late = Timer(1, lambda: bar.update(task, visible=True))
        late.start()

        def begin_step(name: str) -> None:
            bar.reset(
                task, total=None, description=DOING.get(name, name), visible=bar.tasks[0].visible
            )

        def report_progress(done: int, all_: int) -> None:
            bar.update(task, completed=done, total=all_)

        try:
            yield begin_step, report_progress
        finally:
            late.cancel()


def add_test_pause(step: Step) -> Step:
    """Return a step that waits where a test asks for it, so that the process can be killed."""
    pause = os.environ.get("INCROWD_PAUSE_AT")

    def take_step(name: str) -> None:
        step(name)
        if name == pause:
            print_text(f"paused at {name}")
            sys.stdout.flush()
            for _ in range(6000):  # short sleeps: a signal just before a long one would not end it
                time.sleep(0.1)

    return take_step


@contextmanager
def show_steps(number: int) -> Iterator[Step]:
    """Show a bar on a terminal that advances by named steps; nothing in a pipe."""
    if not sys.stderr.isatty():  # before Rich 14.3 a disabled bar writes an empty line
        yield lambda _name: None
        return
    from rich.progress import Progress

    with Progress(console=make_console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting", total=number)
        yield lambda name: bar.update(task, advance=1, description=name)


def print_json(value: dict[str, Any]) -> None:
    """Print plain values as JSON."""
    print(json.dumps(value, allow_nan=False).replace("\x7f", "\\u007f"))
