"""What only the local engine does."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest
from support.tuples import count_table_rows, make_coder

from incrowd.engine.count import count_tuples
from incrowd.engine.local import table as local
from incrowd.engine.local.excel import narrow_columns
from incrowd.engine.released import open_released
from incrowd.engine.source import local_engine, open_table
from incrowd.spec.build import ColumnHierarchies
from incrowd.spec.model import Column


def test_tallies_in_parts_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where hardly any tuple repeats, the table is counted in parts; nothing else changes."""
    distinct: dict[str, Sequence[object]] = {
        "a": list(range(50)),
        "b": [f"x{i % 37:02}" for i in range(50)],
    }
    table = local_engine().from_columns(distinct)
    expected = count_table_rows(table)
    monkeypatch.setattr(local, "_PROBES", (10, 20))
    monkeypatch.setattr(local, "_PART_ROWS", 7)
    assert len(list(table.iter_tallies(["a", "b"]))) == 8
    assert count_table_rows(table) == expected
    column = Column.model_validate({"role": "quasi", "hierarchy": "flat"})
    counted_table = count_tuples(table, ColumnHierarchies({"a": column, "b": column}))
    assert (len(counted_table.frequencies), counted_table.frequencies.total) == (50, 50)


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_the_order_of_rows_is_told_by_codes(tmp_path: Path, ending: str) -> None:
    columns: dict[str, Sequence[object]] = {"a": ["y", "y", "x", None], "b": ["1", "2", "1", "1"]}
    local_engine().from_columns(columns).write(tmp_path / f"table.{ending}")
    table = open_released(tmp_path / f"table.{ending}")
    first, second = make_coder(["y", "x", None]), make_coder(["1", "2"])
    assert table.has_ascending_rows(["a", "b"], {"a": first, "b": second})
    assert not table.has_ascending_rows(["b", "a"], {"a": first, "b": second})
    assert not table.has_ascending_rows(["a"], {"a": make_coder(["x", "y", None])})


def test_a_table_is_recognized_whatever_pieces_it_lies_in() -> None:
    single_piece = pl.DataFrame({"a": list(range(5000)), "b": [str(x % 7) for x in range(5000)]})
    pieces = pl.concat([single_piece[:1234], single_piece[1234:]], rechunk=False)
    assert pieces.n_chunks() == 2
    marks = {open_table(frame).compute_fingerprint(b"key") for frame in (single_piece, pieces)}
    assert len(marks) == 1
    assert open_table(single_piece[:4999]).compute_fingerprint(b"key") not in marks


@pytest.mark.parametrize("name", ["^x$", "^.*$", "*", ""])
@pytest.mark.parametrize(
    "values", [[dt.datetime(2001, 2, 3, 4), None], [dt.datetime(2001, 2, 3)], [1.5, 2.0], ["?"]]
)
def test_a_name_that_looks_like_a_pattern_is_a_name(name: str, values: list[object]) -> None:
    table = local_engine().from_columns({name: values})
    assert table.columns == (name,)
    assert table.to_frame().get_column(name).to_list() == values
    assert {name: len(table.values(name))} == {name: len(values)}
    frame = pl.DataFrame({name: pl.Series(values)})
    assert narrow_columns(frame).columns == [name]
