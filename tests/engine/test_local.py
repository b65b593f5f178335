"""What only the local engine does."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from engine.test_table import rows_of

from incrowd.engine.count import count
from incrowd.engine.local import table as local
from incrowd.engine.source import local_engine
from incrowd.spec.build import Declared
from incrowd.spec.model import Column


def test_tallies_in_parts_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where hardly any tuple repeats, the table is counted in parts; nothing else changes."""
    distinct: dict[str, Sequence[object]] = {
        "a": list(range(50)),
        "b": [f"x{i % 37:02}" for i in range(50)],
    }
    table = local_engine().from_columns(distinct)
    whole = rows_of(table)
    monkeypatch.setattr(local, "_PROBES", (10, 20))
    monkeypatch.setattr(local, "_PART_ROWS", 7)
    assert len(list(table.tallies(["a", "b"]))) == 8
    assert rows_of(table) == whole
    column = Column.model_validate({"role": "quasi", "hierarchy": "flat"})
    counted = count(table, Declared({"a": column, "b": column}))
    assert (len(counted.frequencies), counted.frequencies.total) == (50, 50)
