"""How the site is built: ``make docs``, which takes every warning as an error."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "_ext"))

from incrowd import __version__  # noqa: E402

project = "Incrowd"
author = "The Incrowd authors"
release = version = __version__
language = "en"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_copybutton", "incrowd_site"]
exclude_patterns = ["_ext", "_build"]
incrowd_repository = str(HERE.parent)

myst_enable_extensions = ["colon_fence", "deflist", "attrs_inline", "attrs_block"]
myst_heading_anchors = 4
suppress_warnings: list[str] = []
nitpicky = True

# Furo: light and dark by the reader's own setting, one column on a phone, prints well, and takes
# nothing from elsewhere (no fonts, no scripts of other hosts), so that it works from a folder.
# The theme of scientific Python would do as well; it is larger, and its top bar hides half of the
# seven sections behind a menu at the width of a laptop.
html_theme = "furo"
html_title = "Incrowd"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False
html_show_sourcelink = False

copybutton_prompt_text = "$ "
copybutton_line_continuation_character = "\\"
copybutton_exclude = ".linenos, .go, .gp"
