"""Small changes of finished pages that the theme does not make."""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx

# What scrolls sideways must be reachable by the keyboard
_SCROLLS = re.compile(r'<pre>|<div class="(?:table-wrapper[^"]*|rich)">')


def _reachable(
    _app: Sphinx, _page: str, _template: str, context: dict[str, Any], _doctree: object
) -> None:
    if "body" in context:
        context["body"] = _SCROLLS.sub(lambda one: f'{one[0][:-1]} tabindex="0">', context["body"])


def setup(app: Sphinx) -> None:
    """After the theme, which wraps tables."""
    app.connect("html-page-context", _reachable, priority=900)
