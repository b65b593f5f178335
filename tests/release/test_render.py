"""Templates: text is escaped, and a missing value is an error."""

from __future__ import annotations

from pathlib import Path

import pytest
from jinja2 import UndefinedError

from incrowd.release.render import make_environment, render_page


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A package with templates, of which one uses another."""
    name = f"rendered_{tmp_path.name}"  # modules and environments are kept by their names
    folder = tmp_path / name / "templates"
    folder.mkdir(parents=True)
    (folder.parent / "__init__.py").touch()
    (folder / "page.html").write_text("{% include 'part.html' %}{{ x }}")
    (folder / "part.html").write_text("a")
    monkeypatch.syspath_prepend(str(tmp_path))
    return name


def test_a_value_is_text_and_a_missing_one_an_error(package: str) -> None:
    assert render_page(package, "page.html", x="<") == "a&lt;"
    with pytest.raises(UndefinedError, match="'x' is undefined"):
        render_page(package, "page.html")


def test_compiled_templates_are_kept_and_never_trusted_beyond_their_source(
    package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.dont_write_bytecode", False)
    folder = tmp_path / package / "templates"
    assert render_page(package, "page.html", x="b") == "ab"
    compiled = sorted((folder / "__pycache__").iterdir())
    assert [path.name.split(".")[0] for path in compiled] == ["page", "part"]

    def render_anew() -> str:
        make_environment.cache_clear()
        return render_page(package, "page.html", x="b")

    compiled[0].write_bytes(compiled[0].read_bytes()[:-9])  # as if another process were cut off
    assert render_anew() == "ab"
    with monkeypatch.context() as patch:
        patch.setattr("jinja2.Environment.compile", refuse_to_compile)
        assert render_anew() == "ab"
    (folder / "part.html").write_text("c")
    assert render_anew() == "cb"


def refuse_to_compile(*_: object) -> None:
    raise AssertionError("compiled again")
