"""Calibrate the weights of a released table to known totals, from what is published alone."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from incrowd.arrays import Codes, Floats
from incrowd.codes.counted_table import COUNT
from incrowd.codes.values import canonicalize_value, parse_number
from incrowd.engine.count import make_value_coder, read_positive_numbers
from incrowd.engine.source import open_table
from incrowd.engine.table import Engine, Table, TableError
from incrowd.errors import IncrowdError, ParameterError
from incrowd.measure.calibration import CalibratedWeights, Margin, rake_weights
from incrowd.release.certificate import FILE, Certificate

WEIGHT = "weight"


@dataclass(frozen=True, eq=False)
class CalibratedTable:
    """A released table with calibrated weights.

    Attributes:
        table: The table, with its weights in the last column.
        weight: Name of that column.
        rounds: How often all margins were scaled.
        smallest_factor: Smallest ratio of a calibrated weight to the given one.
        largest_factor: Largest ratio.
    """

    table: Table
    weight: str
    rounds: int
    smallest_factor: float
    largest_factor: float

    @property
    def data(self) -> Any:
        """The rows as a data frame."""
        return self.table.to_frame()

    def write(self, path: Path | str) -> None:
        """Write the table as CSV, Parquet or Arrow, by the ending of the name."""
        self.table.write(Path(path))


def calibrate(
    released: Any,
    totals: Mapping[str, Any],
    *,
    weight: str | None = None,
    engine: Engine | None = None,
) -> CalibratedTable:
    """Calibrate weights of a released table, so that they add up to known totals.

    It uses what is published, and public totals. So the guarantee of the release covers the
    result, whatever the method, and recipients can do it as well.

    Args:
        released: A released table or its folder. A table with counts has one weight for each row
            that it stands for.
        totals: For each column whose totals are known, a mapping from its labels to totals, or a
            CSV file with a label and a total in each line.
        weight: The column of weights to start from; it is replaced. By default all rows have equal
            weights, and a column ``weight`` is added.
        engine: The engine that opens the table.

    Returns:
        The table with its weights, and how far they moved.

    Raises:
        IncrowdError: A total has no rows, rows have no total, or no weights meet all totals.

    Examples:
        >>> import polars as pl
        >>> import incrowd as ic
        >>> released = pl.DataFrame({"region": ["north", "north", "south"]})
        >>> result = ic.calibrate(released, {"region": {"north": 300, "south": 50}})
        >>> result.data["weight"].to_list()
        [150.0, 150.0, 50.0]
    """
    if not totals:
        raise ParameterError("totals", "name a column or more with known totals", {})
    table = open_table(_find_file(released), engine=engine)
    names = [*table.columns]
    start = weight or WEIGHT
    if weight is None and WEIGHT in names:
        raise ParameterError(
            "weight", f"name the column of weights, as the table has a column '{WEIGHT}'", None
        )
    for name in [*totals, *([weight] if weight else [])]:
        if name not in names:
            raise TableError(f"Column '{name}': not in the released table. Correct the name.")
    values = {name: list(table.values(name)) for name in names}
    coders = {name: make_value_coder(listed) for name, listed in values.items()}
    frequencies = table.gather_columns(names).count(names, coders)
    codes = {name: frequencies.codes[:, at] for at, name in enumerate(names)}
    rows = frequencies.counts
    if COUNT in names:
        rows = rows * read_positive_numbers(COUNT, values[COUNT])[codes[COUNT]].astype(np.int64)
    start_weights = np.ones(len(rows))
    if weight is not None:
        start_weights = read_positive_numbers(weight, values[weight])[codes[weight]]
    margins = [
        _make_margin(name, source, values[name], codes[name]) for name, source in totals.items()
    ]
    raked = rake_weights(start_weights, rows, margins)
    columns: dict[str, Any] = {
        name: np.repeat(np.array(values[name], dtype=object)[codes[name]], frequencies.counts)
        .tolist()
        for name in names
        if name != weight
    }  # fmt: skip
    columns[start] = np.repeat(raked.weights, frequencies.counts)
    return _make_table(table.engine.from_columns(columns), start, raked)


def _make_table(table: Table, name: str, raked: CalibratedWeights) -> CalibratedTable:
    return CalibratedTable(table, name, raked.rounds, raked.smallest_factor, raked.largest_factor)


def _find_file(released: Any) -> Any:
    """Return the table of a release folder; anything else is a table already."""
    if hasattr(released, "certificate") and hasattr(released, "data"):
        return released.data
    if isinstance(released, str | Path) and (Path(released) / FILE).is_file():
        folder = Path(released)
        certificate = Certificate.model_validate_json((folder / FILE).read_bytes())
        if len(certificate.tables) > 1:
            raise IncrowdError("Release: it has several tables. Name the file of one.")
        return folder / certificate.tables[0].release.file
    return released


def _make_margin(name: str, source: Any, values: list[object], codes: Codes) -> Margin:
    """Return the margin of a column; every row needs a total, every total a row."""
    totals = dict(source) if isinstance(source, Mapping) else read_totals(name, Path(source))
    by_text = {canonicalize_value(label): float(total) for label, total in totals.items()}
    labels = sorted({text for text in by_text if text is not None})
    places = {text: at for at, text in enumerate(labels)}
    members = np.full(len(values), -1, dtype=np.int64)
    for at, value in enumerate(values):
        text = canonicalize_value(value)
        members[at] = -1 if text is None else places.get(text, -1)
    bad = np.flatnonzero(members[codes] < 0)
    if len(bad):
        value = values[int(codes[bad[0]])]
        text_of = "null" if value is None else f"'{value}'"
        raise IncrowdError(
            f"Column '{name}': rows show {text_of}, which has no total. Add its total."
        )
    sums: Floats = np.array([by_text[text] for text in labels])
    return Margin(name, members[codes], labels, sums)


def read_totals(name: str, path: Path) -> dict[str, float]:
    """Read labels and totals from a CSV file, with or without a header."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = [line for line in csv.reader(file) if any(cell.strip() for cell in line)]
    except OSError as error:
        raise IncrowdError(f"Totals of '{name}': cannot read '{path}': {error.strerror}.") from None
    totals: dict[str, float] = {}
    for number, line in enumerate(lines, 1):
        total = parse_number(canonicalize_value(line[1])) if len(line) == 2 else None
        if total is None and number == 1 and len(line) == 2:
            continue  # a header
        if total is None:
            raise IncrowdError(
                f"Totals of '{name}': line {number} of '{path}' is not a label and a number. "
                "Write one label and one total in each line."
            )
        if line[0] in totals:
            raise IncrowdError(f"Totals of '{name}': '{line[0]}' occurs twice. Remove one.")
        totals[line[0]] = float(total)
    if not totals:
        raise IncrowdError(f"Totals of '{name}': '{path}' has no total. Add one for each label.")
    return totals
