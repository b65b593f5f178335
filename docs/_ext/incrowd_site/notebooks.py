"""Notebooks as pages: kept without outputs, run when the site is built.

A notebook is read as a page of Markdown whose code cells are blocks of Python in one session, as
:mod:`incrowd_site.snippets` runs them; a value that knows how it looks in a notebook, and figures
of Matplotlib, are shown as such. No kernel is started and nothing else is needed.
"""

from __future__ import annotations

import base64
import html
import io
import json
import sys
from typing import Any, ClassVar

from docutils import nodes
from myst_parser.parsers.sphinx_ import MystParser
from sphinx.application import Sphinx

from incrowd_site.session import BlockResult
from incrowd_site.snippets import PythonDirective

_FENCE = "`" * 8


class NotebookCellDirective(PythonDirective):
    """A block of Python that shows its value as a notebook does."""

    option_spec: ClassVar[dict[str, Any]] = {}

    def render_result(self, done: BlockResult) -> list[nodes.Node]:
        """Return printed text; then the value, in HTML if it has that; then figures."""
        drawn = _collect_figures()
        rich = getattr(type(done.value), "_repr_html_", None)
        text = done.output if rich is None and not drawn else done.printed
        output_block = self.make_output_block(text)
        if rich is not None:
            output_block.append(
                nodes.raw("", f'<div class="rich">{rich(done.value)}</div>', format="html")
            )
        return [*output_block, *(nodes.raw("", item, format="html") for item in drawn)]


def _collect_figures() -> list[str]:
    """Return the figures that a cell has left open, as pictures with what their titles say."""
    plots = sys.modules.get("matplotlib.pyplot")
    if plots is None:
        return []
    figures = []
    for number in plots.get_fignums():
        figure, file = plots.figure(number), io.BytesIO()
        figure.savefig(file, format="svg", bbox_inches="tight")
        titles = [figure.get_suptitle(), *(axes.get_title() for axes in figure.axes)]
        labels = [f"{axes.get_ylabel()} against {axes.get_xlabel()}" for axes in figure.axes]
        told = html.escape(
            "; ".join(item for item in [*titles, *labels] if item.strip()), quote=True
        )
        data = base64.b64encode(file.getvalue()).decode()
        figures.append(
            f'<p><img class="drawn" alt="{told}" src="data:image/svg+xml;base64,{data}"></p>'
        )
    plots.close("all")
    return figures


def convert_notebook(notebook: str, name: str) -> str:
    """Return a notebook as a page: its cells in order, and a link to the notebook itself."""
    parts = []
    for cell in json.loads(notebook)["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
        elif cell["cell_type"] == "code" and source.strip():
            parts.append(f"{_FENCE}{{notebook-cell}}\n{source}\n{_FENCE}")
    return "\n\n".join([*parts, f"{{download}}`This page as a notebook <{name}>`"])


class NotebookParser(MystParser):
    """Reads ``.ipynb`` files."""

    supported: ClassVar[tuple[str, ...]] = ("notebook",)  # type: ignore[misc]

    def parse(self, inputstring: str, document: nodes.document) -> None:
        """Turn the notebook into Markdown, and read that."""
        name = f"{document.settings.env.docname.rsplit('/', 1)[-1]}.ipynb"
        super().parse(convert_notebook(inputstring, name), document)


def setup(app: Sphinx) -> None:
    """Let the site have notebooks."""
    app.add_directive("notebook-cell", NotebookCellDirective)
    app.add_source_suffix(".ipynb", "notebook")
    app.add_source_parser(NotebookParser)
