"""What the site of Incrowd adds to Sphinx, so that its pages cannot lie."""

from __future__ import annotations

from sphinx.application import Sphinx

from incrowd_site import claims, console_lexer, notebooks, page_style, reference, snippets, sources


def setup(app: Sphinx) -> dict[str, bool]:
    """Everything that the pages use. One process reads them: it changes folders as it goes."""
    for part in (snippets, console_lexer, notebooks, claims, reference, page_style, sources):
        part.setup(app)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
