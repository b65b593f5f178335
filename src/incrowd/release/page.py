"""An HTML page that can be saved, and shows itself in a notebook."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Page:
    """A whole HTML page, without links to anything else."""

    html: str

    def save(self, path: Path | str) -> None:
        """Write the page to a file."""
        Path(path).write_text(self.html, encoding="utf-8")

    def _repr_html_(self) -> str:
        return self.html
