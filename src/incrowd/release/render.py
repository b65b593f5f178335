"""Pages from templates."""

from __future__ import annotations

from functools import cache
from typing import Any

import jinja2


def render(package: str, template: str, **values: Any) -> str:
    """Return a page from a template of a package; a missing value is an error."""
    return environment(package).get_template(template).render(zip=zip, **values)


@cache
def environment(package: str) -> jinja2.Environment:
    """Return the templates in a package's folder of templates."""
    return jinja2.Environment(
        loader=jinja2.PackageLoader(package, "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
