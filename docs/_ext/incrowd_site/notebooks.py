"""Notebooks as pages: their cells run in the page's session, in order, as other snippets do.

They are kept without outputs. What a cell prints, the value of its last expression and the
figures that it leaves open are put in when the site is built; a cell that fails makes the build
fail. A figure is described by ``alt`` in the metadata of its cell. No Jupyter is needed, and so
no kernel is started: a cell is plain Python.
"""

from __future__ import annotations

import base64
import io
import json
import re
import sys
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util import logging

from incrowd_site.snippets import Python

logger = logging.getLogger(__name__)


class Cell(Python):
    """A cell of a notebook: a block of Python, and the figures that it has drawn."""

    option_spec: ClassVar[dict[str, Any]] = {
        **Python.option_spec,
        "alt": directives.unchanged_required,
    }

    def run(self) -> list[nodes.Node]:
        """Run the block; show it, its output and its figures."""
        import matplotlib as mpl

        mpl.use("Agg")
        found = super().run()
        for picture in _open_figures():
            if "alt" not in self.options:
                self.fail("the cell draws a figure, and its metadata have no 'alt' for it")
            found.append(nodes.image(uri=picture, alt=self.options.get("alt", "")))
        return found


def _open_figures() -> list[str]:
    """The figures of pyplot as addresses that hold them; they are closed."""
    pyplot: Any = sys.modules.get("matplotlib.pyplot")
    found = []
    for number in pyplot.get_fignums() if pyplot else []:
        file = io.BytesIO()
        pyplot.figure(number).savefig(file, format="png", dpi=110, facecolor="white")
        found.append(f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}")
    if pyplot:
        pyplot.close("all")
    return found


def as_markdown(notebook: dict[str, Any]) -> str:
    """A notebook as a page of Markdown, each cell of code a ``{cell}`` block.

    >>> code = {"cell_type": "code", "source": ["1 + 1"], "outputs": [], "metadata": {}}
    >>> print(as_markdown({"cells": [{"cell_type": "markdown", "source": ["# Sum"]}, code]}))
    # Sum
    <BLANKLINE>
    ```{cell}
    1 + 1
    ```
    """
    parts = []
    for cell in notebook["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(text)
        elif cell["cell_type"] == "code":
            if cell["outputs"]:
                raise ValueError("a notebook is kept without outputs; clear them")
            runs = re.findall("`+", text)
            fence = "`" * max([3, *(len(run) + 1 for run in runs)])
            alt = cell["metadata"].get("alt")
            options = f":alt: {alt}\n" if alt else ""
            parts.append(f"{fence}{{cell}}\n{options}{text}\n{fence}")
    return "\n\n".join(parts)


def _read(app: Sphinx, page: str, source: list[str]) -> None:
    if app.env.doc2path(page).suffix == ".ipynb":
        try:
            source[0] = as_markdown(json.loads(source[0]))
        except (ValueError, KeyError) as error:
            logger.warning("%s", error, location=page, type="notebook")


def setup(app: Sphinx) -> None:
    """Read notebooks as pages."""
    app.add_source_suffix(".ipynb", "markdown")
    app.add_directive("cell", Cell)
    app.connect("source-read", _read)
