"""Compiled templates, kept beside the templates as Python keeps its compiled modules.

To compile the pages of a small release takes a tenth of it. Whoever can write to ``__pycache__``
could change the modules there as well; where the folder belongs to somebody else, nothing is kept.
"""

from __future__ import annotations

import hashlib
import os
import sys
from contextlib import suppress
from pathlib import Path

import jinja2
from jinja2.bccache import Bucket


class CompiledTemplates(jinja2.BytecodeCache):
    """Templates compiled by this Python and this Jinja, each with the checksum of its source."""

    def get_cache_key(self, name: str, filename: str | None = None) -> str:
        """Return the path of a template; nothing if it is not a file, and is not kept."""
        return super().get_cache_key(name, filename) if filename is None else filename

    def load_bytecode(self, bucket: Bucket) -> None:
        """Load what was compiled, if it is there and whole."""
        with suppress(OSError, EOFError, ValueError), _locate(bucket).open("rb") as file:
            bucket.load_bytecode(file)

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep what was compiled; a reader sees all of it or nothing."""
        path = _locate(bucket)
        draft = path.with_name(f"{path.name}.{os.getpid()}")
        with suppress(OSError):
            path.parent.mkdir(exist_ok=True)
            draft.write_bytes(bucket.bytecode_to_string())
            draft.replace(path)


def _locate(bucket: Bucket) -> Path:
    """Return the file of a template, named by everything but its source that it depends on."""
    environment, template = bucket.environment, Path(bucket.key)
    settings = (
        jinja2.__version__, sys.implementation.cache_tag, environment.trim_blocks,
        environment.lstrip_blocks, environment.keep_trailing_newline, environment.optimized,
        callable(environment.autoescape), environment.finalize is None,
    )  # fmt: skip
    digest = hashlib.sha256(repr(settings).encode()).hexdigest()[:16]
    return template.parent / "__pycache__" / f"{template.name}.{digest}.compiled"
