"""The tests that pages name, as pages of the site, so that the link of a claim opens its test."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.builders.html import StandaloneHTMLBuilder
from sphinx.environment import BuildEnvironment


def make_test_link(env: BuildEnvironment, path: str, name: str) -> str:
    """Where a page finds a test: its file as a page, which is then made, and its place there."""
    get_named_tests(env).add(path)
    page = env.app.builder.get_relative_uri(env.docname, path.removesuffix(".py"))
    return f"{page}#{name}" if name else page


def get_named_tests(env: BuildEnvironment) -> set[str]:
    """Return the files of tests that pages have named so far."""
    named_tests: set[str] = vars(env).setdefault("incrowd_tests", set())
    return named_tests


def find_function_lines(text: str) -> dict[str, int]:
    """Return the line, from 0, at which each function of a file begins, its decorators included."""
    function_lines: dict[str, int] = {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(item.lineno for item in node.decorator_list)])
            function_lines.setdefault(node.name, first - 1)
    return function_lines


def add_anchors(text: str, highlighted: str) -> str:
    """Highlighted source, with a place to link to at the beginning of each function."""
    before, opening, rest = highlighted.partition("<pre>")
    lines = rest.split("\n")
    for name, at in find_function_lines(text).items():
        lines[at] = f'<span id="{escape(name)}"></span>{lines[at]}'
    return before + opening + "\n".join(lines)


def make_test_pages(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Return a page for each file of tests that was named."""
    if not isinstance(app.builder, StandaloneHTMLBuilder):
        return
    for path in sorted(get_named_tests(app.env)):
        text = (Path(app.config.incrowd_repository) / path).read_text("utf-8")
        code = app.builder.highlighter.highlight_block(text, "python")
        body = f"<h1>{escape(path)}</h1>\n{add_anchors(text, code)}"
        yield path.removesuffix(".py"), {"title": path, "body": body}, "page.html"


def setup(app: Sphinx) -> None:
    """Make the pages when all others are read."""
    app.connect("html-collect-pages", make_test_pages)
