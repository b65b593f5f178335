"""Lines of released files, block by block: what stands there, and what no release writes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from incrowd.engine.released_lines import LineBlock, iter_line_blocks, read_whole_numbers


def write_lines(path: Path, columns: dict[str, list[object]]) -> Path:
    frame = pl.DataFrame(columns)
    frame.write_csv(path) if path.suffix == ".csv" else frame.write_parquet(path)
    return path


def read_block(path: Path, values: list[object]) -> LineBlock:
    (block,) = iter_line_blocks(write_lines(path, {"n": values, "other": ["x"] * len(values)}))
    return block


@pytest.fixture(params=["table.csv", "table.parquet"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Where to write a table, in each form."""
    return tmp_path / str(request.param)


def test_blocks_are_the_lines_in_order(path: Path) -> None:
    write_lines(path, {"text": ["a", "b", None, "a", "=1"], "n": [1, 2, 3, 4, 5]})
    blocks = list(iter_line_blocks(path, 2))
    assert [(x.start, len(x)) for x in blocks] == [(0, 2), (2, 2), (4, 1)]
    assert blocks[0].headers == ["text", "n"]
    assert [x.list_values("text") for x in blocks] == [["a", "b"], [None, "a"], ["=1"]]
    assert np.concatenate([x.read_whole("n") for x in blocks]).tolist() == [1, 2, 3, 4, 5]
    assert blocks[1].find_missing("text").tolist() == [True, False]


def test_texts_and_numbers_are_compared(path: Path) -> None:
    write_lines(path, {"text": ["a", None, "b"], "n": [0, 10, 2]})
    (block,) = iter_line_blocks(path)
    labels = ["b", None, "a"]
    assert block.has_texts("text", labels, np.array([2, 1, 0]))
    assert not block.has_texts("text", labels, np.array([2, 1, 2]))
    assert not block.has_texts("text", labels, np.array([2, 0, 0]))
    assert block.has_numbers("n", np.array([0, 10, 2]))
    assert not block.has_numbers("n", np.array([0, 1, 2]))
    assert not block.has_numbers("text", np.array([0, 10, 2]))
    assert block.has_texts("n", ["0", "10", "2"], np.arange(3)) == block.is_text
    renamed = block.rename(["label", "number"])
    assert renamed.headers == ["label", "number"]
    assert renamed.has_numbers("number", np.array([0, 10, 2]))


@pytest.mark.parametrize("values", [["01"], ["1.0"], ["-0"], ["+1"], [" 1"], ["1e3"], ["x"]])
def test_a_text_that_is_no_whole_number_is_refused(tmp_path: Path, values: list[object]) -> None:
    block = read_block(tmp_path / "table.csv", ["1", *values])
    with pytest.raises(ValueError, match="no whole number"):
        block.read_whole("n", signed=True)


@pytest.mark.parametrize("values", [[1.0], ["1"], [True]])
def test_another_type_is_refused(tmp_path: Path, values: list[object]) -> None:
    with pytest.raises(ValueError, match="'n' does not hold whole numbers"):
        read_block(tmp_path / "table.parquet", values).read_whole("n")


def test_negative_numbers_are_read_only_where_they_are_allowed(path: Path) -> None:
    block = read_block(path, [-3, 4])
    assert block.read_whole("n", signed=True).tolist() == [-3, 4]
    with pytest.raises(ValueError, match="'-3' is no whole number from 0"):
        block.read_whole("n")


def test_decimals_have_so_many_digits(path: Path) -> None:
    block = read_block(path, [0.125, -1.5, None, 20.0])
    assert block.read_decimals("n", 3).tolist() == [0.125, -1.5, 0.0, 20.0]
    assert block.read_decimals("n", 5).tolist() == [0.125, -1.5, 0.0, 20.0]
    with pytest.raises(ValueError, match="'0.1234' is no number with 3 digits"):
        read_block(path, [0.5, 0.1234]).read_decimals("n", 3)


@pytest.mark.parametrize("value", ["1", "1.50", "01.5", ".5", "-0.0", "1e2", "nan", "1.2345"])
def test_a_decimal_that_is_written_in_another_way_is_refused(tmp_path: Path, value: str) -> None:
    block = read_block(tmp_path / "table.csv", ["1.5", value])
    with pytest.raises(ValueError, match="no number with 3 digits"):
        block.read_decimals("n", 3)


HIDDEN = [
    "558482.027800000000000019640229123456789", "0" * 500 + "558482.0278", "558482.0278e0",
    "5584820278e-4", "558482.02780", "+558482.0278", "558482.0278 ", "558482", "1e5", "0.0000001",
    "-0.0", "-0.0000000", "inf", "nan", "1" * 30 + ".0", "558482.0277999999999999",
]  # fmt: skip


@pytest.mark.parametrize("digits", [3, 4, 7])
@pytest.mark.parametrize("value", HIDDEN)
def test_of_many_spellings_of_a_number_one_is_read(tmp_path: Path, digits: int, value: str) -> None:
    """What texts of one number differ in could carry hidden values."""
    block = read_block(tmp_path / "table.csv", ["1.5", value])
    with pytest.raises(ValueError, match=f"is no number with {digits} digits"):
        block.read_decimals("n", digits)


def test_each_number_is_read_as_the_writer_spells_it(path: Path) -> None:
    draws = np.random.default_rng(3)
    sizes = 10.0 ** draws.integers(-7, 12, 5000)
    numbers = np.round(draws.normal(size=5000) * sizes, 7) + 0.0
    numbers = np.append(numbers, [1e-7, 1e-5, 0.001, 1e16, 1e22, 0.0])
    numbers = numbers[np.round(numbers, 7) == numbers]
    assert len(numbers) > 4000
    write_lines(path, {"n": numbers.tolist(), "other": ["x"] * len(numbers)})
    (block,) = iter_line_blocks(path)
    assert block.read_decimals("n", 7).tolist() == numbers.tolist()


def test_measured_numbers_are_whole_numbers_of_these_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_lines(tmp_path / "table.parquet", {"a": [0, 0, 1], "b": [5, -6, 7]})
    monkeypatch.setattr("incrowd.engine.released_lines.BLOCK_LINES", 2)
    parts = list(read_whole_numbers(path, ("a", "b")))
    assert [len(a) for a, _ in parts] == [2, 1]
    assert np.concatenate([b for _, b in parts]).tolist() == [5, -6, 7]
    with pytest.raises(ValueError, match="the columns are a, b"):
        list(read_whole_numbers(path, ("b", "a")))
    write_lines(path, {"a": [0, 0, 1], "b": [5.0, 6.0, 7.0]})
    with pytest.raises(ValueError, match="'b' does not hold whole numbers"):
        list(read_whole_numbers(path, ("a", "b")))
    write_lines(path, {"a": [0, 0, 1], "b": [5, 6, None]})
    with pytest.raises(ValueError, match="'b' does not hold whole numbers"):
        list(read_whole_numbers(path, ("a", "b")))
