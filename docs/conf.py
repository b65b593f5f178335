"""How the site is built: ``make docs``, which takes every warning as an error."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "_ext"))

from incrowd import __version__  # noqa: E402

logging.getLogger("matplotlib").setLevel(logging.WARNING)  # that it looked for fonts is no news

project = "Incrowd"
author = "The Incrowd authors"
release = version = __version__
language = "en"

extensions = [
    "myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton", "incrowd_site",
]  # fmt: skip
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
copybutton_exclude = ".linenos, .go"
copybutton_copy_empty_lines = False

# Kinds of values by the names that they have in the code, not by all that these stand for, or
# because the code imports them for checks of types alone
autodoc_type_aliases = {
    name: name.rsplit(".", 1)[-1]
    for name in (
        "npt.ArrayLike", "Floats", "Steps", "Members", "Step", "Progress", "Event", "CountsEvent",
        "Definition", "Ed25519PrivateKey", "SpecSource",
    )
}  # fmt: skip
# Types stand in the list of parameters, so that signatures stay short
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented_params"
napoleon_numpy_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False
autodoc_preserve_defaults = True
autodoc_member_order = "bysource"
autodoc_class_signature = "mixed"
python_use_unqualified_type_names = True
add_module_names = False
nitpick_ignore_regex = [
    # What other libraries and the language define
    ("py:class", r"Path|(numpy|collections|pathlib|typing|cryptography|datetime|polars)\..*"),
    ("py:class", "|".join(autodoc_type_aliases.values())),
    # A docstring may name where more stands; modules within are not part of the reference
    ("py:(mod|func|meth|attr|data)", r"incrowd\.\w+\..*"),
]
