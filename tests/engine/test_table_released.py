"""A release by every method, with the engine of its table from the first row to the last."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from support.unjudged import publish_unjudged

from incrowd.engine.source import local_engine
from incrowd.engine.table import Engine, Table, TableError
from incrowd.errors import ParameterError
from incrowd.release.verify import verify

ROWS = 600
PEOPLE: dict[str, Sequence[object]] = {
    "name": [f"n{at}" for at in range(ROWS)],
    "sex": [("female", "male")[at % 2] for at in range(ROWS)],
    "age": [20 + at * 7 % 40 if at % 50 else None for at in range(ROWS)],
    "ill": [("flu", "cold", "=none", None)[at // 3 % 4] for at in range(ROWS)],
    "height": [150 + at * 11 % 45 for at in range(ROWS)],
}
SEX = {"role": "quasi", "hierarchy": {"groups": {"person": ["female", "male"]}}}
AGE = {"role": "quasi", "hierarchy": {"intervals": {"from": 0, "to": 99, "widths": [10, 50]}}}
FLAT = {"flat": {"values": ["flu", "cold", "=none"]}}
METHODS: dict[str, dict[str, Any]] = {
    "safe": {
        "columns": {"ill": {"role": "sensitive", "hierarchy": FLAT}},
        "release": {
            "method": "safe", "epsilon": 1, "delta": 1e-4, "levels": {"sex": 0, "age": 2, "ill": 1},
        },
    },
    "search": {
        "columns": {"ill": {"role": "sensitive", "hierarchy": FLAT}},
        "release": {"method": "safe", "epsilon": 2, "delta": 1e-4, "scheme": "search"},
    },
    "k-anonymity": {"release": {"method": "k-anonymity", "k": 5}},
    "mondrian": {"release": {"method": "k-anonymity", "k": 5, "algorithm": "mondrian"}},
    "k-epsilon": {
        "columns": {"height": {"role": "noisy", "precision": 1}},
        "release": {"method": "k-epsilon", "k": 5, "epsilon": 1},
    },
}  # fmt: skip


WRITTEN: list[dict[str, str]] = [
    {}, {"format": "csv", "formulas": "escape"}, {"rows": "counted"},
]  # fmt: skip
CASES = [  # rows with noise have no weights
    (method, more)
    for method in METHODS
    for more in WRITTEN
    if not (method == "k-epsilon" and "rows" in more)
]


def spec(method: str, **release: Any) -> dict[str, Any]:
    result = METHODS[method]
    columns = {
        "name": {"role": "identifier"}, "sex": SEX, "age": AGE, "ill": {"role": "sensitive"},
        "height": {"role": "drop"},
    }  # fmt: skip
    return {
        "columns": columns | result.get("columns", {}),
        "release": result["release"] | release,
    }


@pytest.mark.parametrize(("method", "more"), CASES, ids=str)
def test_a_release_is_made_by_the_engine_of_its_table(
    engine: Engine, tmp_path: Path, method: str, more: dict[str, str]
) -> None:
    release = publish_unjudged(
        engine.from_columns(PEOPLE), spec(method, **more), output=tmp_path / "out"
    )
    (table,) = release.tables
    assert table.engine is engine
    assert release.certificate.table.release.rows > 0
    if "rows" not in more:
        assert table.rows() == release.certificate.table.release.rows
    assert verify(tmp_path / "out") == []


def test_one_row_of_each_person_is_published(engine: Engine, tmp_path: Path) -> None:
    twice = {name: [*values, *values] for name, values in PEOPLE.items()}
    request = spec("k-anonymity") | {"unit": {"id": "name"}}
    release = publish_unjudged(engine.from_columns(twice), request, output=tmp_path / "out")
    assert 0 < release.certificate.table.release.rows <= ROWS
    assert verify(tmp_path / "out") == []


def test_the_same_rows_are_released_whatever_engine_counts_them(
    engine: Engine, tmp_path: Path
) -> None:
    def shown(table: Table, folder: str) -> bytes:
        publish_unjudged(table, spec("k-anonymity"), output=tmp_path / folder)
        return (tmp_path / folder / "data.parquet").read_bytes()

    local_table = local_engine().from_columns(PEOPLE)
    assert shown(engine.from_columns(PEOPLE), "one") == shown(local_table, "other")


def test_the_engine_that_is_given_opens_the_table(engine: Engine, tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    engine.from_columns(PEOPLE).write(path)
    request = spec("k-anonymity")
    release = publish_unjudged(path, request, engine=engine)
    assert release.tables[0].engine is engine
    release = publish_unjudged(None, request | {"table": str(path)}, engine=engine)
    assert release.tables[0].engine is engine
    with pytest.raises(TableError, match="Cannot read a table from a builtins.int"):
        publish_unjudged(42, request)
    with pytest.raises(ParameterError, match="'engine' parameter must be an engine"):
        publish_unjudged(path, request, engine="local")
