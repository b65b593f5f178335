"""One body of tests for every engine: the ``make_table`` fixture is run once per engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pytest

from incrowd.engine.source import local_engine
from incrowd.engine.table import Table

MakeTable = Callable[[Mapping[str, Sequence[object]]], Table]


@pytest.fixture(params=["local"])
def make_table(request: pytest.FixtureRequest) -> MakeTable:
    """A function from columns to a table of the engine under test."""
    return {"local": local_engine().from_columns}[request.param]
