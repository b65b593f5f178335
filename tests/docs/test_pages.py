"""What pages promise that the builder of the site does not check by itself."""

from __future__ import annotations

import json
import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def test_the_list_of_tasks_has_every_task() -> None:
    pages = (DOCS / "howto").glob("*.md")
    tasks = [name for page in pages for name in _targets(page.read_text(encoding="utf-8"))]
    listed = re.findall(r"\(#(howto-[\w-]+)\)", (DOCS / "howto/index.md").read_text("utf-8"))
    assert sorted(listed) == sorted(tasks)
    assert len(tasks) >= 30


def _targets(page: str) -> list[str]:
    return re.findall(r"^\((howto-[\w-]+)\)=$", page, re.M)


def test_notebooks_are_kept_without_outputs() -> None:
    notebooks = list((DOCS / "notebooks").glob("*.ipynb"))
    assert len(notebooks) >= 2
    for file in notebooks:
        cells = json.loads(file.read_text(encoding="utf-8"))["cells"]
        code = [cell for cell in cells if cell["cell_type"] == "code"]
        assert code
        assert not any(cell["outputs"] or cell["execution_count"] for cell in code), file.name
