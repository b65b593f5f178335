"""Templates: compiled once, wherever that can be kept, and never out of date."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

# Renders a page, and tells how many templates were compiled for it.
CODE = """
import jinja2
from incrowd.release.render import render
compiled = []
once = jinja2.Environment.compile
jinja2.Environment.compile = lambda *a, **k: compiled.append(a) or once(*a, **k)
print(render("made", "page.html", x="<"), len(compiled))
"""


@pytest.fixture
def templates(tmp_path: Path) -> Path:
    """The templates of a package, of which one uses another."""
    folder = tmp_path / "made" / "templates"
    folder.mkdir(parents=True)
    (folder.parent / "__init__.py").touch()
    (folder / "page.html").write_text("{% include 'part.html' %}{{ x }}")
    (folder / "part.html").write_text("a")
    return folder


def rendered(templates: Path, *options: str) -> str:
    """What a new process renders, that was told of compiled modules what ``options`` say alone."""
    code = f"import sys; sys.path.insert(0, {str(templates.parent.parent)!r}){CODE}"
    told = ("PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX")
    done = subprocess.run(
        [sys.executable, *options, "-c", code], capture_output=True, text=True, check=True,
        env={name: value for name, value in os.environ.items() if name not in told},
    )  # fmt: skip
    return done.stdout.strip()


def test_a_template_is_compiled_again_only_when_it_has_changed(templates: Path) -> None:
    assert rendered(templates) == "a&lt; 2"
    assert rendered(templates) == "a&lt; 0"
    (templates / "part.html").write_text("b")
    assert rendered(templates) == "b&lt; 1"
    for kept in (templates / "__pycache__").iterdir():
        kept.write_bytes(b"")  # as after a full disk
    assert rendered(templates) == "b&lt; 2"


def test_where_nothing_can_be_kept_templates_are_compiled_each_time(templates: Path) -> None:
    for _ in range(2):
        assert rendered(templates, "-B") == "a&lt; 2"
    assert not (templates / "__pycache__").exists()
    (templates / "__pycache__").touch()  # no folder: nothing can be written there, nor read
    assert rendered(templates) == "a&lt; 2"
