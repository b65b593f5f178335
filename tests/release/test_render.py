"""Templates: text is escaped, and a missing value is an error."""

from __future__ import annotations

from pathlib import Path

import pytest
from jinja2 import UndefinedError

from incrowd.release.render import render_page


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A package with templates, of which one uses another."""
    folder = tmp_path / "rendered_package" / "templates"
    folder.mkdir(parents=True)
    (folder.parent / "__init__.py").touch()
    (folder / "page.html").write_text("{% include 'part.html' %}{{ x }}")
    (folder / "part.html").write_text("a")
    monkeypatch.syspath_prepend(str(tmp_path))
    return "rendered_package"


def test_a_value_is_text_and_a_missing_one_an_error(package: str) -> None:
    assert render_page(package, "page.html", x="<") == "a&lt;"
    with pytest.raises(UndefinedError, match="'x' is undefined"):
        render_page(package, "page.html")
