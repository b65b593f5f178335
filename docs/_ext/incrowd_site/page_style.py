"""How finished pages look where the theme leaves it open.

Formulas are written in plain text, ``e^(x − 1)`` and ``P_n``, so that pages are readable as they
are and no library of formulas has to be loaded; here exponents are raised and indices lowered.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

_RAISED = re.compile(
    r"(?<=[\w)\]])\^(?:\((?P<whole>[^()]*(?:\([^()]*(?:\([^()]*\)[^()]*)*\)[^()]*)*)\)"
    r"|(?P<short>[−-]?\w+(?:\.\w+)*′?))"
    r"|(?<!\w)(?P<base>[A-Za-zψ])_(?:\{(?P<index>[^}]*)\}|(?P<letter>[a-z0-9]))(?!\w)"
)
# What scrolls sideways must be reachable by the keyboard
_SCROLLS = re.compile(r'<pre>|<div class="(?:table-wrapper[^"]*|rich)">')


def format_formulas(text: str) -> Iterator[nodes.Node]:
    """Return a text with its exponents and indices as such."""
    end = 0
    for item in _RAISED.finditer(text):
        yield nodes.Text(text[end : item.start()] + (item["base"] or ""))
        end = item.end()
        if item["base"]:
            index = item["index"] or item["letter"]
            yield nodes.subscript(index, index)
        else:
            exponent = item["whole"] or item["short"]
            yield nodes.superscript(exponent, exponent)
    yield nodes.Text(text[end:])


def _replace_formulas(_app: Sphinx, doctree: nodes.document) -> None:
    for text in list(doctree.findall(nodes.Text)):
        inside = text.parent
        plain = not isinstance(inside, nodes.literal | nodes.literal_block | nodes.raw)
        if plain and _RAISED.search(text.astext()):
            inside.replace(text, list(format_formulas(text.astext())))


def _add_tab_stops(
    _app: Sphinx, _page: str, _template: str, context: dict[str, Any], _doctree: object
) -> None:
    if "body" in context:
        context["body"] = _SCROLLS.sub(lambda one: f'{one[0][:-1]} tabindex="0">', context["body"])


def setup(app: Sphinx) -> None:
    """After the theme, which wraps tables."""
    app.connect("doctree-read", _replace_formulas)
    app.connect("html-page-context", _add_tab_stops, priority=900)
