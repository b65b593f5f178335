"""Snippets that are run when the site is built, so that no page shows what is not so.

``{console}`` runs commands, ``{python}`` a block of Python, ``{file}`` writes a file; all in the
page's own :class:`~incrowd_site.session.Session`, in the order of the page. What fails is a
warning, and the build of this site takes warnings as errors. After the first failure of a page
the rest of it is not run: it would fail by it.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.directives.code import container_wrapper
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from incrowd_site.session import WIDTH, BlockResult, Session, split_commands

logger = logging.getLogger(__name__)

RUN = "incrowd_run"  # marks a block of code that was run, or says why not

_LANGUAGES = {
    ".yaml": "yaml", ".yml": "yaml", ".json": "json", ".py": "python", ".toml": "toml",
    ".sh": "bash", ".sql": "sql",
}  # fmt: skip
# What a page may not show without running it
_RUNNABLE = {
    "console", "shell", "shell-session", "sh", "bash", "zsh", "python", "python3", "py", "pycon",
    "doctest", "ipython", "ipython3",
}  # fmt: skip


class _PageSessions:
    """The sessions of the pages that are being read, and which of them have failed."""

    def __init__(self) -> None:
        self._open: dict[str, Session] = {}
        self.failed: set[str] = set()

    def get_session(self, page: str) -> Session:
        if page not in self._open:
            self._open[page] = Session(page)
        return self._open[page]

    def close_session(self, page: str) -> None:
        if page in self._open:
            self._open.pop(page).close()
        self.failed.discard(page)

    def close_all(self, *_: object) -> None:
        for page in list(self._open):
            self.close_session(page)


_PAGES = _PageSessions()


class Snippet(SphinxDirective):
    """What the directives of code share: options, the page's session, blocks of text."""

    has_content = True

    @property
    def session(self) -> Session:
        """That of the page."""
        return _PAGES.get_session(self.env.docname)

    @property
    def source(self) -> str:
        """What stands in the block."""
        return "\n".join(self.content)

    @property
    def has_failed(self) -> bool:
        """Whether an earlier block of the page has failed."""
        return self.env.docname in _PAGES.failed

    def fail_build(self, message: str) -> None:
        """Make the build fail, and leave the rest of the page alone."""
        logger.warning("%s", message, location=self.get_location(), type="snippet")
        _PAGES.failed.add(self.env.docname)

    def make_block(self, text: str, language: str, *classes: str) -> nodes.literal_block:
        """Return a block of code of which somebody made sure that it tells the truth."""
        block = nodes.literal_block(text, text, language=language, classes=list(classes))
        block[RUN] = True
        self.set_source_info(block)
        return block

    def add_caption(self, block: nodes.literal_block, caption: str, *classes: str) -> nodes.Node:
        """Return a block with a line above it."""
        whole = container_wrapper(self, block, caption)
        whole["classes"].extend(classes)
        return whole

    def make_unrun_block(self, language: str) -> list[nodes.Node]:
        """Return a block that cannot be run here, with the reason."""
        reason = self.options["display"]
        line = nodes.paragraph("", "", nodes.Text(f"not run here: {reason}"), classes=["not-run"])
        return [self.make_block(self.source, language), line]

    def make_output_block(self, output: str) -> list[nodes.Node]:
        """Output in a block of its own, if there is any; long sentences are wrapped."""
        text = self.shorten_output(output)
        is_long = any(len(line) > 2 * WIDTH for line in text.splitlines())
        return (
            [self.make_block(text, "text", "output", *(["wrap"] if is_long else []))]
            if text
            else []
        )

    def shorten_output(self, output: str) -> str:
        """Output as far as it is to be shown."""
        lines = output.rstrip("\n").split("\n") if output.strip("\n") else []
        most = self.options.get("show")
        if most is not None and len(lines) > most:
            lines = [*lines[:most], "…"] if most else []
        return "\n".join(line.rstrip() for line in lines)


_COMMON: dict[str, Any] = {
    "hide": directives.flag,
    "show": directives.nonnegative_int,
    "display": directives.unchanged_required,
}


class ConsoleDirective(Snippet):
    """Shell commands, each with what it prints."""

    option_spec: ClassVar[dict[str, Any]] = {**_COMMON, "exit": directives.nonnegative_int}

    def run(self) -> list[nodes.Node]:
        """Run the commands and show them with their output."""
        try:
            lines = split_commands(self.source)
        except ValueError as error:
            if "display" not in self.options:
                raise self.error(str(error)) from error
            lines = []
        if "display" in self.options:
            return self.make_unrun_block("console")
        shown: list[str] = []
        for number, line in enumerate(lines, 1):
            if self.has_failed:
                return []
            wanted = self.options.get("exit", 0) if number == len(lines) else 0
            ran = self.session.run_command(line)
            if ran.status != wanted:
                self.fail_build(
                    f"the command '{line}' ended with {ran.status}, not {wanted}:\n{ran.output}"
                )
            output = self.shorten_output(ran.output)
            # Whoever prints something is set off from what follows, so that commands are seen
            shown.append(f"$ {line}\n{output}\n" if output else f"$ {line}")
        text = "\n".join(shown).rstrip("\n")
        return [] if "hide" in self.options else [self.make_block(text, "console")]


class PythonDirective(Snippet):
    """A block of Python with what it prints, the value of its last expression, or its error."""

    option_spec: ClassVar[dict[str, Any]] = {**_COMMON, "raises": directives.unchanged_required}

    def run(self) -> list[nodes.Node]:
        """Run the block and show it with its output."""
        if "display" in self.options:
            return self.make_unrun_block("python")
        if self.has_failed:
            return []
        done = self.session.run_python(self.source)
        raised = type(done.raised).__name__ if done.raised is not None else None
        wanted = self.options.get("raises")
        if raised != wanted and done.raised is not None:
            self.fail_build(f"the block raised {raised}:\n{done.trace}")
        elif raised != wanted:
            self.fail_build(f"the block was to raise {wanted}, and raised nothing")
        if "hide" in self.options:
            return []
        return [self.make_block(self.source, "python"), *self.render_result(done)]

    def render_result(self, done: BlockResult) -> list[nodes.Node]:
        """Return what is put below the block."""
        return self.make_output_block(done.output)


class FileDirective(Snippet):
    """A file of the page's folder, shown with its name."""

    required_arguments = 1
    final_argument_whitespace = True
    option_spec: ClassVar[dict[str, Any]] = {"hide": directives.flag}

    def run(self) -> list[nodes.Node]:
        """Write the file and show it."""
        name = self.arguments[0].strip()
        try:
            self.session.write_file(name, self.source + "\n")
        except ValueError as error:
            raise self.error(str(error)) from error
        if "hide" in self.options:
            return []
        language = _LANGUAGES.get(PurePosixPath(name).suffix, "text")
        return [self.add_caption(self.make_block(self.source, language), f"`{name}`", "file")]


def _refuse_unrun_code(app: Sphinx, doctree: nodes.document) -> None:
    """Refuse code that is shown and not run; then the page's folder is not needed any more."""
    for block in doctree.findall(nodes.literal_block):
        text = block.astext()
        looks = any(line.startswith(("$ ", ">>> ")) for line in text.splitlines())
        if not block.get(RUN) and (block.get("language") in _RUNNABLE or looks):
            logger.warning(
                "this code is shown and not run; use a {console} or {python} block, if need be "
                "with ':display: reason'",
                location=block, type="snippet",
            )  # fmt: skip
    _PAGES.close_session(app.env.docname)


def setup(app: Sphinx) -> None:
    """Give the site its directives of code."""
    app.add_directive("console", ConsoleDirective)
    app.add_directive("python", PythonDirective)
    app.add_directive("file", FileDirective)
    app.connect("doctree-read", _refuse_unrun_code)
    app.connect("build-finished", _PAGES.close_all)
