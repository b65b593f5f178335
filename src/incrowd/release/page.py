"""An HTML page that can be saved, and shows itself in a notebook."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jinja2


@dataclass(frozen=True)
class Page:
    """A whole HTML page, without links to anything else."""

    html: str

    def save(self, path: Path | str) -> None:
        """Write the page to a file."""
        Path(path).write_text(self.html, encoding="utf-8")

    def _repr_html_(self) -> str:
        return self.html


def render(package: str, template: str, **values: Any) -> str:
    """A page from a template in a package's folder of templates; a missing value is an error."""
    return _templates(package).get_template(template).render(zip=zip, **values)


@cache
def _templates(package: str) -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.PackageLoader(package, "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
