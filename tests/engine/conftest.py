"""One body of tests for every engine: what asks for ``engine`` is run once for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pytest

from incrowd.engine.source import local_engine, spark_engine
from incrowd.engine.table import Engine, Table

MakeTable = Callable[[Mapping[str, Sequence[object]]], Table]


@pytest.fixture(params=["local", pytest.param("spark", marks=pytest.mark.spark)])
def engine(request: pytest.FixtureRequest) -> Engine:
    """The engine under test."""
    if request.param == "local":
        return local_engine()
    request.getfixturevalue("spark_session")
    return spark_engine()


@pytest.fixture
def make_table(engine: Engine) -> MakeTable:
    """A function from columns to a table of the engine under test."""
    return engine.from_columns
