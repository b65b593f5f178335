"""Tables to be published, made on this machine, and how their files are written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from incrowd.arrays import Codes, Places
from incrowd.codes.frequency import Frequencies, merge_tuples
from incrowd.engine.local import parquet
from incrowd.engine.local.table import LocalTable, make_inner_names, write_file_atomically
from incrowd.engine.table import Coder, Plain, RowBlocks

BLOCK_ROWS = 1 << 20  # of a block, and of the group of rows that it is in a Parquet file
_KINDS = {np.int64: pl.Int64, np.float64: pl.Float64}


class PublishableTable(LocalTable):
    """A table to be published: columns of codes with few labels, and plain ones.

    Parquet takes the codes as they are, and the file holds nothing besides.
    """

    def __init__(
        self,
        coded_columns: Mapping[str, tuple[list[object], np.ndarray[Any, Any]]],
        plain: Mapping[str, pl.Series],
        order: Sequence[str],
    ) -> None:
        columns: dict[str, Any] = {name: codes for name, (_, codes) in coded_columns.items()}
        columns |= plain
        inner = make_inner_names(order)
        self._labels = {
            name: pl.Series(labels, dtype=_choose_label_type(labels), strict=False)
            for name, (labels, _) in coded_columns.items()
        }
        label_columns = []
        for name, texts in self._labels.items():
            places = list(range(len(texts)))
            label = pl.col(inner[name]).replace_strict(places, texts, return_dtype=texts.dtype)
            label_columns.append(label)
        frame = pl.LazyFrame({inner[name]: columns[name] for name in order}).with_columns(
            label_columns
        )
        super().__init__(frame.rename({new: name for name, new in inner.items() if name != new}))
        self._coded, self._plain, self._order = coded_columns, plain, order

    def values(self, column: str) -> Sequence[object]:
        """Return the distinct values of a column, null among them."""
        if column not in self._labels:
            return super().values(column)
        labels, codes = self._labels[column], self._coded[column][1]
        used_codes = np.flatnonzero(np.bincount(codes, minlength=len(labels)))
        return labels.gather(used_codes).unique(maintain_order=True).to_list()

    def count(self, columns: Sequence[str], coders: Mapping[str, Coder]) -> Frequencies:
        """Count distinct tuples of codes; labels are translated once, not in every row."""
        if not columns or not all(name in self._labels for name in columns):
            return super().count(columns, coders)
        codes = np.column_stack([self._coded[name][1].astype(np.int32) for name in columns])
        tuples = merge_tuples(codes, np.ones(len(codes), dtype=np.int64))
        return tuples.roll_up([coders[name](self._labels[name].to_list()) for name in columns])

    def convert_labels(self, labels: Mapping[str, Mapping[str, int | float]]) -> LocalTable:
        """Return the table with numbers for texts."""
        coded_columns = dict(self._coded)
        for name, numbers in labels.items():
            texts, codes = coded_columns[name]
            coded_columns[name] = ([numbers.get(text) for text in texts], codes)  # type: ignore[call-overload]
        return PublishableTable(coded_columns, self._plain, self._order)

    def write(self, path: Path) -> None:
        """Write Parquet, CSV or Arrow by the ending of the name; whole or not at all."""
        if path.suffix != ".parquet":
            super().write(path)
            return
        write_file_atomically(
            path,
            lambda draft: parquet.write_parquet(draft, [(self._coded, self._plain)], self._order),
        )


class BlockTable(LocalTable):
    """A table to be published whose rows are made block by block; see :class:`RowBlocks`.

    Polars asks for the blocks where it reads the table; Parquet is written from them as they come.
    """

    def __init__(self, blocks: RowBlocks) -> None:
        from polars.io.plugins import register_io_source  # few tables need it

        self._blocks, self._names = blocks, make_inner_names(blocks.order)
        frame = register_io_source(
            self._iter_frames,
            schema={
                inner: pl.String if name in blocks.labels else _KINDS[blocks.kinds[name]]
                for name, inner in self._names.items()
            },
        )
        super().__init__(
            frame.rename({new: name for name, new in self._names.items() if name != new})
        )
        self._row_count = blocks.rows

    def respell_texts(self, spell: Callable[[str], str]) -> BlockTable:
        """Return the table with every text and name written in another way; each text once."""
        blocks = self._blocks
        names = {name: spell(name) for name in blocks.order}

        def make(start: int, stop: int) -> tuple[Mapping[str, Places], Mapping[str, Plain]]:
            coded, plain = blocks.make(start, stop)
            return (
                {names[name]: codes for name, codes in coded.items()},
                {names[name]: values for name, values in plain.items()},
            )

        labels = {
            names[name]: [text and spell(text) for text in texts]
            for name, texts in blocks.labels.items()
        }
        kinds = {names[name]: kind for name, kind in blocks.kinds.items()}
        return self._remake(RowBlocks(blocks.rows, [*names.values()], labels, kinds, make))

    def write(self, path: Path) -> None:
        """Write Parquet, CSV or Arrow by the ending of the name; whole or not at all."""
        if path.suffix != ".parquet":
            super().write(path)
            return
        write_file_atomically(
            path, lambda draft: parquet.write_parquet(draft, self._iter_parts(), self._blocks.order)
        )

    def _remake(self, blocks: RowBlocks) -> BlockTable:
        """Return a table of other blocks, of the same engine."""
        return BlockTable(blocks)

    def _iter_parts(self, most: int | None = None) -> Iterator[parquet.RowPart]:
        """Yield labels and codes, and plain columns, of one block after the other."""
        blocks, rows = self._blocks, self._blocks.rows if most is None else most
        for start in range(0, max(rows, 1), BLOCK_ROWS):
            coded, plain = blocks.make(start, min(start + BLOCK_ROWS, rows))
            texts = {name: (blocks.labels[name], codes) for name, codes in coded.items()}
            yield texts, mask_nulls(plain)

    def _iter_frames(
        self,
        columns: list[str] | None,
        predicate: pl.Expr | None,
        most: int | None,
        _hint: int | None,
    ) -> Iterator[pl.DataFrame]:
        """Yield the blocks as Polars asks for them, with its names of the columns."""
        rows = self._blocks.rows if most is None else min(most, self._blocks.rows)
        for coded, plain in self._iter_parts(rows):
            series = {
                name: pl.Series(labels, dtype=pl.String).gather(codes)
                for name, (labels, codes) in coded.items()
            }
            series |= plain
            frame = pl.DataFrame({inner: series[name] for name, inner in self._names.items()})
            frame = frame if predicate is None else frame.filter(predicate)
            yield frame if columns is None else frame.select(columns)


def drop_unused_labels(texts: Sequence[object], codes: Codes) -> tuple[list[object], Any]:
    """Return the labels that occur, and small codes for them."""
    used_codes, at = np.unique(codes, return_inverse=True)
    return [texts[code] for code in used_codes.tolist()], at.astype(
        np.min_scalar_type(len(used_codes))
    )


def mask_nulls(plain: Mapping[str, Plain]) -> dict[str, pl.Series]:
    """Return plain columns with nulls where their masks say so."""
    return {
        name: pl.Series(values)
        if null is None
        else pl.select(pl.when(~pl.Series(null)).then(pl.Series(values))).to_series()
        for name, (values, null) in plain.items()
    }


def _choose_label_type(values: Sequence[object]) -> type[pl.DataType] | None:
    """Return the type of text, or None if the values are of another kind."""
    return pl.String if all(isinstance(x, str | None) for x in values) else None
