"""Tables to be published, made on this machine, and how their files are written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from incrowd.arrays import Bools, Codes
from incrowd.codes.frequency import Frequencies, merge_tuples
from incrowd.engine.local import parquet
from incrowd.engine.local.table import LocalTable, make_inner_names, write_file_atomically
from incrowd.engine.table import Coder


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
            path, lambda draft: parquet.write_parquet(draft, self._coded, self._plain, self._order)
        )


def drop_unused_labels(texts: Sequence[object], codes: Codes) -> tuple[list[object], Any]:
    """Return the labels that occur, and small codes for them."""
    used_codes, at = np.unique(codes, return_inverse=True)
    return [texts[code] for code in used_codes.tolist()], at.astype(
        np.min_scalar_type(len(used_codes))
    )


def mask_nulls(plain: Mapping[str, tuple[np.ndarray[Any, Any], Bools]]) -> dict[str, pl.Series]:
    """Return plain columns with nulls where their masks say so."""
    return {
        name: pl.select(pl.when(~pl.Series(null)).then(pl.Series(values))).to_series()
        for name, (values, null) in plain.items()
    }


def _choose_label_type(values: Sequence[object]) -> type[pl.DataType] | None:
    """Return the type of text, or None if the values are of another kind."""
    return pl.String if all(isinstance(x, str | None) for x in values) else None
