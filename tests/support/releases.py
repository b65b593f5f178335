"""What tests of releases share: a spec of sample voters, and how to publish them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import polars as pl
from jinja2 import TemplateError
from support.make import make

from incrowd.codes.values import reading_order
from incrowd.errors import IncrowdError
from incrowd.methods.base import published
from incrowd.methods.safe.auto import decided, drawn
from incrowd.methods.safe.scheme import Scheme
from incrowd.privacy.events import SafeRelease
from incrowd.privacy.split import Split
from incrowd.publication import Release
from incrowd.release.certificate import FILE, PAGE, README, Certificate
from incrowd.release.pages import make_pages
from incrowd.spec.build import Declared
from incrowd.spec.file import SpecFile, parse
from incrowd.spec.release import SafeSpec

COLUMNS = """
columns:
  first_name: {role: identifier}
  last_name: {role: identifier}
  email: {role: identifier}
  zip: {role: quasi, hierarchy: {mask: {length: 5}}}
  sex: {role: quasi, hierarchy: {groups: {Person: [female, male]}}}
  birth_year: {role: quasi, hierarchy: {intervals: {from: 1900, to: 2026, widths: [2, 4, 8, 16]}}}
  race: {role: sensitive, hierarchy: {flat: {values: [White, Hispanic, Black, Asian, Other]}}}
  height: {role: drop}
"""
LEVELS = "levels: {zip: 3, sex: 0, birth_year: 4, race: 0}"
USUAL = f"release: {{method: safe, epsilon: 1, delta: 1.0e-6, {LEVELS}}}"


def spec(release: str = USUAL, columns: str = COLUMNS, more: str = "") -> SpecFile:
    return parse(f"{more}\n{columns}\n{release}\n")


def decided_by(
    file: SpecFile, *roles: str, size: int | None = None
) -> tuple[Scheme, tuple[str, ...]]:
    assert isinstance(file.spec.release, SafeSpec)
    release, draw_reasons = drawn(file.spec.release)
    scheme, reasons = decided(release, Declared(published(file.spec, *roles)), size)
    return scheme, (*reasons, *draw_reasons)


def pairs_of(split: Split) -> tuple[SafeRelease, ...]:
    """What a table may be drawn with, all of it samples."""
    found = tuple(draw for draw in split.draws if isinstance(draw, SafeRelease))
    assert found == split.draws
    return found


def released(
    voters: pl.DataFrame, folder: Path, release: str = USUAL, *,
    by: Callable[..., Release] = make, **more: Any,
) -> Release:  # fmt: skip
    return by(voters, spec(release), output=folder, **more)


def files(folder: Path) -> list[str]:
    return sorted(
        path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()
    )


def forge(folder: Path, certificate: Certificate) -> None:
    """Put a certificate in a release as a careful liar would: the pages for readers tell the same.

    Where there are no words for what it claims, the pages stay as they were.
    """
    (folder / FILE).write_bytes(certificate.canonical())
    with suppress(IncrowdError, LookupError, ValueError, ArithmeticError, TemplateError):
        made = make_pages(certificate)
        for name in (README, PAGE):
            (folder / name).write_bytes(made[name])


def stated(certificate: Certificate) -> dict[str, str]:
    """The sentences of a statement, by their keys."""
    return {sentence.key: sentence.text for sentence in certificate.guarantee.statement}


def in_order(frame: pl.DataFrame) -> pl.DataFrame:
    """Rows in the order of what they show, as a release has them."""
    order = sorted(range(len(frame)), key=lambda at: tuple(map(reading_order, frame.row(at))))
    return frame[order]
