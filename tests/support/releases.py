"""What tests of releases share: a spec of sample voters, and how to publish them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import polars as pl
from jinja2 import TemplateError
from support.unjudged import publish_unjudged

from incrowd.codes.values import make_sort_key
from incrowd.errors import IncrowdError
from incrowd.methods.base import published_columns
from incrowd.methods.safe.auto import choose_draw, choose_scheme
from incrowd.methods.safe.scheme import SafeScheme
from incrowd.privacy.events import SafeRelease
from incrowd.privacy.split import BudgetSplit
from incrowd.publication import Release
from incrowd.release.certificate import FILE, PAGE, README, Certificate
from incrowd.release.pages import make_pages
from incrowd.spec.build import ColumnHierarchies
from incrowd.spec.file import SpecFile, parse_spec
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


def make_voter_spec(release: str = USUAL, columns: str = COLUMNS, more: str = "") -> SpecFile:
    return parse_spec(f"{more}\n{columns}\n{release}\n")


def choose_scheme_by(
    file: SpecFile, *roles: str, size: int | None = None
) -> tuple[SafeScheme, tuple[str, ...]]:
    assert isinstance(file.spec.release, SafeSpec)
    release, draw_reasons = choose_draw(file.spec.release)
    scheme, reasons = choose_scheme(
        release, ColumnHierarchies(published_columns(file.spec, *roles)), size
    )
    return scheme, (*reasons, *draw_reasons)


def list_sample_draws(split: BudgetSplit) -> tuple[SafeRelease, ...]:
    """What a table may be drawn with, all of it samples."""
    sample_draws = tuple(draw for draw in split.draws if isinstance(draw, SafeRelease))
    assert sample_draws == split.draws
    return sample_draws


def publish_voters(
    voters: pl.DataFrame, folder: Path, release: str = USUAL, *,
    by: Callable[..., Release] = publish_unjudged, **more: Any,
) -> Release:  # fmt: skip
    return by(voters, make_voter_spec(release), output=folder, **more)


def list_files(folder: Path) -> list[str]:
    return sorted(
        path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()
    )


def forge_certificate(folder: Path, certificate: Certificate) -> None:
    """Put a certificate in a release as a careful liar would: the pages for readers tell the same.

    Where there are no words for what it claims, the pages stay as they were.
    """
    (folder / FILE).write_bytes(certificate.to_canonical_json())
    with suppress(IncrowdError, LookupError, ValueError, ArithmeticError, TemplateError):
        pages = make_pages(certificate)
        for name in (README, PAGE):
            (folder / name).write_bytes(pages[name])


def recertify(folder: Path, **changes: Any) -> None:
    """Write a certificate with changes whose seal fits, as somebody who knows the code would."""
    certificate = Certificate.model_validate_json((folder / FILE).read_bytes())
    changed = certificate.model_copy(update={**changes, "signature": None}).with_seal()
    forge_certificate(folder, changed)


def get_statement(certificate: Certificate) -> dict[str, str]:
    """The sentences of a statement, by their keys."""
    return {sentence.key: sentence.text for sentence in certificate.guarantee.statement}


def sort_rows(frame: pl.DataFrame) -> pl.DataFrame:
    """Rows in the order of what they show, as a release has them."""
    order = sorted(range(len(frame)), key=lambda at: tuple(map(make_sort_key, frame.row(at))))
    return frame[order]
