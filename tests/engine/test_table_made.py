"""Tables that an engine makes to be published: their rows, and nothing besides."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.tuples import count_table_rows, make_coder

from incrowd.arrays import Codes
from incrowd.engine.local import publishable
from incrowd.engine.released import find_hidden_content, open_released
from incrowd.engine.table import Coded, Engine, RowBlocks, Table


def codes(*values: int) -> Codes:
    return np.array(values, dtype=np.int32)


LABELS: dict[str, Coded] = {
    "sex": (["female", "male", "suppressed"], codes(0, 0, 1)),
    "zip": (["01***", None, '"a", b\n', "suppressed"], codes(0, 2, 1)),
}
PLACES = {"sex": make_coder(["female", "male"]), "zip": make_coder(["01***", '"a", b\n', None])}


def cells(engine: Engine, count_column: str | None = None) -> Table:
    return engine.from_cells(LABELS, np.array([3, 1, 2]), count_column=count_column)


def test_cells_are_repeated_as_often_as_they_count(engine: Engine) -> None:
    table = cells(engine)
    assert table.columns == ("sex", "zip")
    assert table.rows() == 6
    assert count_table_rows(table) == {
        ("female", "01***"): 3, ("female", '"a", b\n'): 1, ("male", None): 2,
    }  # fmt: skip


def test_what_is_made_is_counted_by_its_labels(engine: Engine) -> None:
    """Two codes may have one label, and a label none but rows that count nothing."""
    columns: dict[str, Coded] = {
        "sex": (["f", "m", "f"], codes(0, 1, 2, 1)),
        "zip": (["01", None], codes(0, 1, 0, 0)),
    }
    table = engine.from_cells(columns, np.array([3, 1, 2, 0]))
    assert sorted(table.values("sex"), key=str) == ["f", "m"]
    assert set(table.values("zip")) == {"01", None}
    coders = {"sex": make_coder(["f", "m"]), "zip": make_coder([None, "01"])}
    result = table.count(["zip", "sex"], coders)
    assert result.codes.tolist() == [[0, 1], [1, 0]]
    assert result.counts.tolist() == [1, 5]
    none = engine.from_cells({"sex": (["f"], codes(0))}, np.array([0]))
    assert list(none.values("sex")) == []


def test_or_they_are_written_once_with_their_counts(engine: Engine) -> None:
    table = cells(engine, "count")
    assert table.columns == ("sex", "zip", "count")
    assert count_table_rows(table) == {
        ("female", "01***", 3): 1, ("female", '"a", b\n', 1): 1, ("male", None, 2): 1,
    }  # fmt: skip


def rows(engine: Engine) -> Table:
    """Labels, and plain columns: numbers and days with nulls, in an order of their own."""
    null = np.array([False, True, False])
    days = np.array(["2020-02-29", "1970-01-01", "2021-01-01"], dtype="datetime64[D]")
    return engine.from_rows(
        LABELS,
        {"height": (np.array([1.5, 0.0, 2.0]), null), "seen": (days, null)},
        ["height", "sex", "zip", "seen"],
    )


def test_rows_are_as_they_are_given(engine: Engine) -> None:
    table = rows(engine)
    assert table.columns == ("height", "sex", "zip", "seen")
    result = {
        tuple(str(value) for value in row): count for row, count in count_table_rows(table).items()
    }
    assert result == {
        ("1.5", "female", "01***", "2020-02-29"): 1,
        ("None", "female", '"a", b\n', "None"): 1,
        ("2.0", "male", "None", "2021-01-01"): 1,
    }


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_a_file_holds_the_rows_and_nothing_besides(
    engine: Engine, tmp_path: Path, ending: str
) -> None:
    for number, table in enumerate((cells(engine), cells(engine, "count"), rows(engine))):
        path = tmp_path / f"{number}.{ending}"
        table.write(path)
        assert find_hidden_content(path) == []
        assert b"suppressed" not in path.read_bytes()
        written = open_released(path)
        assert written.columns == table.columns
        assert written.rows() == table.rows()
        assert written.has_ascending_rows(["sex", "zip"], PLACES)


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_a_table_may_have_no_rows(engine: Engine, tmp_path: Path, ending: str) -> None:
    empty: dict[str, Coded] = {name: (labels, codes()) for name, (labels, _) in LABELS.items()}
    table = engine.from_cells(empty, np.zeros(0, dtype=np.int64))
    path = tmp_path / f"table.{ending}"
    table.write(path)
    assert find_hidden_content(path) == []
    assert open_released(path).columns == ("sex", "zip")
    assert open_released(path).rows() == 0


TEXTS = ["female", None, '"a", b\n', "=1"]
ODD = "^x$"  # which Polars takes for a pattern


def blocks(engine: Engine, rows: int = 10) -> Table:
    """Row i has label i mod 4, its number, and its half, which is null in each third row."""

    def make(start: int, stop: int) -> tuple[dict[str, Codes], dict[str, Any]]:
        numbers = np.arange(start, stop)
        return {ODD: codes(*numbers % 4)}, {
            "half": (numbers / 2, numbers % 3 == 0),
            "n": (numbers, None),
        }

    kinds = {"n": np.int64, "half": np.float64}
    return engine.from_blocks(RowBlocks(rows, ["n", ODD, "half"], {ODD: TEXTS}, kinds, make))


def list_expected(rows: int = 10) -> list[tuple[object, ...]]:
    return [(n, TEXTS[n % 4], None if n % 3 == 0 else n / 2) for n in range(rows)]


@pytest.mark.parametrize("size", [1, 3, 10, 1000])
@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_rows_that_are_made_in_blocks_are_written_in_order(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str, size: int
) -> None:
    monkeypatch.setattr(publishable, "BLOCK_ROWS", size)
    path = tmp_path / f"table.{ending}"
    table = blocks(engine)
    table.write(path)
    assert table.columns == ("n", ODD, "half")
    assert table.rows() == 10
    assert find_hidden_content(path) == []
    (frame,) = open_released(path).iter_frames(100)
    expected = list_expected()
    if ending == "csv":
        expected = [tuple(None if x is None else str(x) for x in row) for row in expected]
    assert frame.rows() == expected
    assert [part.height for part in open_released(path).iter_frames(4)] == [4, 4, 2]


def test_what_goes_wrong_in_a_later_block_leaves_no_file(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publishable, "BLOCK_ROWS", 4)

    def make(start: int, stop: int) -> tuple[dict[str, Codes], dict[str, Any]]:
        if start:
            raise ZeroDivisionError
        return {}, {"n": (np.arange(start, stop), None)}

    table = engine.from_blocks(RowBlocks(9, ["n"], {}, {"n": np.int64}, make))
    with pytest.raises(ZeroDivisionError):
        table.write(tmp_path / "table.parquet")
    assert list(tmp_path.iterdir()) == []


def test_texts_of_blocks_are_respelled(engine: Engine, tmp_path: Path) -> None:
    table = blocks(engine).respell_texts(str.upper)
    assert table.columns == ("N", "^X$", "HALF")
    assert table.engine is engine
    table.write(tmp_path / "table.parquet")
    (frame,) = open_released(tmp_path / "table.parquet").iter_frames(100)
    assert frame.rows()[:2] == [(0, "FEMALE", None), (1, None, 0.5)]


def test_blocks_are_a_table_like_any_other(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publishable, "BLOCK_ROWS", 3)
    table = blocks(engine)
    assert count_table_rows(table) == dict.fromkeys(list_expected(), 1)
    assert set(table.values(ODD)) == set(TEXTS)
    assert table.head(4).rows() == 4
    assert count_table_rows(table.head(4)) == dict.fromkeys(list_expected(4), 1)
    assert len(blocks(engine, 0).values("n")) == 0
