"""The reference is made from the code, and complains of what nobody has described."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.site import build_page

from incrowd.findings import catalog

CODE = '''
"""A module with public names."""
__all__ = ["Told", "documented", "silent", "undocumented"]

from typing import Annotated
import typer
from pydantic import BaseModel


class Told(BaseModel):
    """Described."""

    size: int
    shape: str = "round"

    def untold(self):
        return self.size


def documented():
    """Described."""


def undocumented():
    """Described, and has no entry."""


def silent():
    pass


class Wrong(Exception):
    """What may go wrong."""


class Worse(Wrong):
    pass


app = typer.Typer()


@app.command()
def go(fast: Annotated[bool, typer.Option(help="At once.")] = False, far: bool = False) -> None:
    """Go."""


@app.command()
def stay() -> None:
    pass


def command_line() -> typer.Typer:
    """Described, and has no entry."""
    return app
'''
PAGE = """
```{models} made:Told fields.toml
```

```{commands} made:command_line
```

```{errors} made:Wrong
```

```{eval-rst}
.. autofunction:: made.documented
.. autofunction:: made.silent
.. autoclass:: made.Told()
```
"""
FIELDS = '[Told]\ntext = "A model."\n[Told.fields]\nsize = "How large."\ncolor = "Which."\n'


def test_what_is_not_described_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "made.py").write_text(CODE, encoding="utf-8")
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "fields.toml").write_text(FIELDS, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    done = build_page(tmp_path, PAGE, "-D", "incrowd_public=made")
    assert done.status == 1, done.complaints
    for complaint in (
        "the public name 'undocumented' is not documented",
        "'silent' has no docstring",
        "'Told.untold' has no docstring",
        "'Told.shape' is not described",
        "'Told.color' is described, and no field",
        "'incrowd go' does not describe far",
        "the command 'incrowd stay' is not described",
        "'Worse' is not described",
    ):
        assert complaint in done.complaints
    assert "'documented'" not in done.complaints


def test_findings_are_listed_from_their_catalog(tmp_path: Path) -> None:
    page = "```{findings} incrowd.findings:catalog\n```"
    done = build_page(tmp_path, page, "-b", "html")
    assert done.status == 0, done.complaints
    text = (done.pages / "index.html").read_text(encoding="utf-8")
    for code in catalog():
        assert code in text
