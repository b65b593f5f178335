"""Pages from templates."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from incrowd.findings import format_percent

if TYPE_CHECKING:
    import jinja2
    from markupsafe import Markup


@dataclass(frozen=True)
class Page:
    """A complete HTML page that loads nothing from elsewhere."""

    html: str

    def save(self, path: Path | str) -> None:
        """Write the page to a file."""
        Path(path).write_text(self.html, encoding="utf-8")

    def _repr_html_(self) -> str:
        return self.html


def render_page(package: str, template: str, **values: Any) -> str:
    """Return a page from a template of a package; a missing value is an error."""
    return make_environment(package).get_template(template).render(zip=zip, **values)


def mark_code(text: object) -> Markup:
    """Return a message as HTML, with what stands between backticks as code.

    >>> str(mark_code("Use `a < b`."))
    'Use <code>a &lt; b</code>.'
    """
    from markupsafe import Markup, escape

    return Markup(re.sub("`([^`]+)`", r"<code>\1</code>", str(escape(str(text)))))  # noqa: S704


@cache
def make_environment(package: str) -> jinja2.Environment:
    """Return the templates in a package's folder of templates."""
    import jinja2

    from incrowd.release.compiled_templates import CompiledTemplates

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(package, "templates"),
        bytecode_cache=None if sys.dont_write_bytecode else CompiledTemplates(),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        optimized=False,  # to fold constants takes longer than to fill a page once
    )
    environment.filters |= {"percent": format_percent, "mark_code": mark_code}
    return environment
