"""What pages promise that the builder of the site does not check by itself."""

from __future__ import annotations

import json
import re
from pathlib import Path

import polars as pl
import pytest

DOCS = Path(__file__).parents[2] / "docs"


def test_the_list_of_tasks_has_every_task() -> None:
    pages = (DOCS / "howto").glob("*.md")
    tasks = [name for page in pages for name in _targets(page.read_text(encoding="utf-8"))]
    listed = re.findall(r"\(#(howto-[\w-]+)\)", (DOCS / "howto/index.md").read_text("utf-8"))
    assert sorted(listed) == sorted(tasks)
    assert len(tasks) >= 30


def test_every_page_says_first_who_it_is_for() -> None:
    for page in DOCS.rglob("*.md"):
        if page == DOCS / "index.md":
            continue
        text = re.sub(r"^\([\w-]+\)=\n", "", page.read_text(encoding="utf-8"))
        title, first = text.split("\n\n")[:2]
        assert title.startswith("# "), page
        assert first.startswith("For "), f"{page} says in its first lines: {first[:80]}"


# Words of the vocabulary take their place: group, count, noise, hierarchy, publish, recipient
DIALECT = re.compile(
    r"\b(alike|off by a few|told|ladders?|whoever|nobody's|everybody|made[- ]up|says no|coarsen\w*|"
    r"neighbour\w*|generalis\w*|recognis\w*|rows too many|is shown|are shown|for nothing)\b",
    re.I,
)


def test_pages_use_the_vocabulary() -> None:
    result = [
        f"{page.relative_to(DOCS)}: {match[0]}"
        for page in DOCS.rglob("*.md")
        for match in DIALECT.finditer(_prose(page.read_text(encoding="utf-8")))
    ]
    assert result == []


def _prose(page: str) -> str:
    """Return a page without code, names of tests and targets of links."""
    return re.sub(
        r"```\{(?:console|python|file).*?```|`[^`]*`|\]\([^)]*\)|\(\S+\)=|\.\./\S+",
        "",
        page,
        flags=re.S,
    )


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


def test_the_code_for_test_data_takes_numbers_dates_and_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A release shows numbers as numbers, and one of counted rows has a column of counts."""
    page = (DOCS / "howto" / "testdata.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```\{python\}\n(.*?)```", page, re.S)
    (code,) = (block for block in blocks if "def value_within" in block)
    labels = {
        "age": [61, 44, None],
        "weight": ["[20.5, 60)", "[60, 100]", "*"],
        "seen": ["2021-03", "2021", None],
        "zip": ["48***", "4****", "*"],
        "count": [2, 1, 3],
    }
    (tmp_path / "release").mkdir()
    pl.DataFrame(labels).write_parquet(tmp_path / "release" / "data.parquet")
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {}
    exec(code, namespace)
    frame = namespace["made"]
    assert isinstance(frame, pl.DataFrame)
    assert frame["age"].to_list() == [61, 61, 44, None, None, None]
    assert "count" not in frame.columns
    assert all(re.fullmatch(r"48\d{3}", text) for text in frame["zip"][:2])
    assert all(20.5 <= float(text) <= 60 for text in frame["weight"][:2])
    assert frame["seen"].to_list()[:3] == ["2021-03", "2021-03", "2021"]
