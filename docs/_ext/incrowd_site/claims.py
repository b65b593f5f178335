"""Claims that name what stands behind them: the command of a figure, the test of a proof.

Both are looked up when the site is built; what does not exist makes the build fail.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective, SphinxRole

from incrowd_site.sources import make_test_link

logger = logging.getLogger(__name__)

_FILE = re.compile(r"(benchmarks|tests|docs|src)/[\w./-]+")


class MeasuredDirective(SphinxDirective):
    """Figures with the command that makes them; ``:on:`` says where they were made."""

    has_content = True
    required_arguments = 1
    final_argument_whitespace = True
    option_spec: ClassVar[dict[str, Any]] = {"on": directives.unchanged_required}

    def run(self) -> list[nodes.Node]:
        """Return what is nested, and a line below it."""
        command = " ".join(self.arguments[0].split())
        for problem in list_missing_names(command, Path(self.config.incrowd_repository)):
            logger.warning("%s", problem, location=self.get_location(), type="measured")
        line = nodes.paragraph("", "", nodes.Text("Measured by "), nodes.literal("", command))
        if where := self.options.get("on"):
            line += nodes.Text(f"; {where}")
        line["classes"] = ["measured-by"]
        whole = nodes.container("", *self.parse_content_to_nodes(), line, classes=["measured"])
        return [whole]


class CitedTestRole(SphinxRole):
    """A test by its path, or ``path::name``, which must exist."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Return the name as it is, linked to the test on a page of the site."""
        path, _, name = self.text.partition("::")
        file = Path(self.config.incrowd_repository) / path
        if not file.is_file() or (name and not _has_test(file, name)):
            logger.warning(
                "there is no test '%s'", self.text, location=self.get_location(), type="test"
            )
            return [nodes.literal("", self.text, classes=["test"])], []
        shown = nodes.literal("", self.text, classes=["test"])
        result = nodes.reference(
            "", "", shown, internal=True, refuri=make_test_link(self.env, path, name)
        )
        return [result], []


def _has_test(file: Path, name: str) -> bool:
    return re.search(rf"^\s*def {re.escape(name)}\(", file.read_text("utf-8"), re.M) is not None


def list_missing_names(command: str, repository: Path) -> list[str]:
    """List what a command names and does not exist: files, targets, commands."""
    words = shlex.split(command, comments=True)
    paths = [path[0] for path in _FILE.finditer(command)]
    problems = [
        f"'{command}' names '{path}', which does not exist"
        for path in paths
        if not (repository / path).exists()
    ]
    if words[:1] == ["make"]:
        rules = (repository / "Makefile").read_text("utf-8")
        problems += [
            f"'{command}' names '{target}', which make cannot make"
            for target in words[1:]
            if "=" not in target and not re.search(rf"^{re.escape(target)}:", rules, re.M)
        ]
    if words[:1] == ["incrowd"]:
        from typer.main import get_command

        from incrowd.cli.commands import build_parser

        if words[1:2] and words[1] not in getattr(get_command(build_parser()), "commands", {}):
            problems.append(f"'{command}' names '{words[1]}', which is no command")
    return problems


def setup(app: Sphinx) -> None:
    """Give the site its directive of figures and its role of tests."""
    app.add_config_value("incrowd_repository", "", "env", str)
    app.add_directive("measured", MeasuredDirective)
    app.add_role("test", CitedTestRole())
