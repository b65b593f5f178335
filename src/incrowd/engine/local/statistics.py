"""Files of SAS, Stata and SPSS."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from incrowd.codes.values import canonicalize_value
from incrowd.engine.local.excel import narrow_columns
from incrowd.engine.table import TableError, TableOrigin

_READERS = {
    ".sas7bdat": "read_sas7bdat",
    ".xpt": "read_xport",
    ".dta": "read_dta",
    ".sav": "read_sav",
    ".zsav": "read_sav",
    ".por": "read_por",
}
STATISTICS = frozenset(_READERS)


def open_statistics(path: Path) -> tuple[pl.LazyFrame, TableOrigin]:
    """Open a table as its program shows it: labels for codes, days, times, missing as null.

    Descriptions of columns are the origin's labels; values with labels have the order of their
    codes, unless the file calls them nominal.
    """
    try:
        import pyreadstat
    except ImportError as error:
        raise TableError(
            f"{path.suffix} files need an extra. Install it: pip install 'incrowd[statistics]'."
        ) from error
    read = getattr(pyreadstat, _READERS[path.suffix.lower()])
    try:
        columns, metadata = read(str(path), output_format="dict")
        frame = pl.DataFrame(
            [
                _make_column(name, list(values), metadata.variable_value_labels.get(name, {}))
                for name, values in columns.items()
            ]
        )
    except Exception as error:  # the reader's errors have no common base
        reason = str(error).splitlines()[0]
        raise TableError(f"Cannot read '{path.name}' as {path.suffix[1:]}: {reason}") from error
    labels = {name: text for name, text in metadata.column_names_to_labels.items() if text}
    measures = getattr(metadata, "variable_measure", {})
    orders = {
        name: tuple(
            dict.fromkeys(text for _, text in sorted(value_labels.items(), key=_code_sort_key))
        )
        for name, value_labels in metadata.variable_value_labels.items()
        if measures.get(name) != "nominal" and frame.schema.get(name) == pl.String
    }
    return narrow_columns(frame).lazy(), TableOrigin(labels=labels, orders=orders)


def _code_sort_key(pair: tuple[Any, str]) -> tuple[bool, float, str]:
    """Return a key that sorts labels by their codes: numbers by size, then texts."""
    code = pair[0]
    is_text = isinstance(code, str)
    return is_text, 0.0 if is_text else float(code), str(code)


def _make_column(name: str, values: Sequence[Any], labels: Mapping[Any, str]) -> pl.Series:
    """Make a column; it is text if any value has a label, and a code without one stays."""
    if not any(value in labels for value in set(values)):
        return pl.Series(name, values, strict=False)
    texts = {value: labels.get(value) or canonicalize_value(value) for value in set(values)}
    return pl.Series(name, [texts[value] for value in values], dtype=pl.String)
