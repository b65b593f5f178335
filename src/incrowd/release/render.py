"""Pages from templates, which are compiled once."""

from __future__ import annotations

import sys
from contextlib import suppress
from functools import cache
from importlib import import_module
from importlib.metadata import version
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any

import jinja2
from jinja2.bccache import Bucket


def render(package: str, template: str, **values: Any) -> str:
    """A page from a template in a package's folder of templates; a missing value is an error."""
    return _templates(package).get_template(template).render(zip=zip, **values)


@cache
def _templates(package: str) -> jinja2.Environment:
    folder = Path(import_module(package).__path__[0], "templates")
    return jinja2.Environment(
        loader=jinja2.PackageLoader(package, folder.name),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        bytecode_cache=_Compiled(folder),
    )


class _Compiled(jinja2.FileSystemBytecodeCache):
    """Compiled templates, where Python keeps compiled modules; to compile them takes long.

    Who may write there may write the package itself. Where nobody may, or Python was told not to
    write, they are compiled each time.
    """

    def __init__(self, templates: Path) -> None:
        kept = Path(cache_from_source(str(templates / "templates.py")))
        super().__init__(str(kept.parent), f"%s-{version('jinja2')}-{kept.name}")

    def load_bytecode(self, bucket: Bucket) -> None:
        """Load a compiled template; one of another source or another Python is none."""
        with suppress(OSError):
            super().load_bytecode(bucket)

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep a compiled template, if that is possible."""
        if not sys.dont_write_bytecode:
            with suppress(OSError):
                Path(self.directory).mkdir(parents=True, exist_ok=True)
                super().dump_bytecode(bucket)
