"""Fixtures of all tests: tables that are made once, and releases that take less time."""

from __future__ import annotations

from functools import partial
from io import StringIO
from typing import Any

import polars as pl
import pytest
from matplotlib.figure import Figure

from incrowd.measure import utility
from incrowd.tasks.sample import sample


@pytest.fixture(scope="session")
def voters() -> pl.DataFrame:
    frame: pl.DataFrame = sample("voters", rows=20_000).frame()
    return frame


@pytest.fixture(scope="session")
def patients() -> pl.DataFrame:
    frame: pl.DataFrame = sample("patients", rows=800).frame()
    hidden = pl.int_range(pl.len()) % 50 == 0  # some nulls, in all roles
    return frame.with_columns(
        pl.when(~hidden).then(pl.col(name)) for name in ("birth_year", "weight", "diagnosis")
    )


def _blank(_figure: Figure, file: StringIO, **_settings: Any) -> None:
    file.write("<svg></svg>")


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures are made but not drawn, which takes most of the time of a small release."""
    monkeypatch.setattr(Figure, "savefig", _blank)


@pytest.fixture
def quick(undrawn: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """No figure is drawn, and few queries are asked."""
    monkeypatch.setattr(utility, "queries", partial(utility.queries, count=20))
