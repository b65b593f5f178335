"""The lines of tables as they are written, and the measured numbers: made block by block.

A table may have more lines than are to be held as such. Its figures are held, an array each;
labels, levels and codes follow from the number of a line.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from incrowd.arrays import Counts, Places
from incrowd.engine.table import Engine, Plain, RowBlocks, Table
from incrowd.release.tables_column import locate_lines
from incrowd.release.tables_part import (
    DIGITS,
    FIGURES,
    NUMBER,
    RESIDUAL,
    SUM_FIGURES,
    WITHIN,
    CellSums,
    CellTable,
    compute_whole_means,
    list_headers,
)


def make_lines(cells: CellTable, hide_below: int | None, engine: Engine) -> Table:
    """Return a table as it is written: labels, levels and codes of each column, and figures."""
    flat_cells = _select_lines(cells, slice(None))
    labels = {
        name: list(dict.fromkeys(lines.labels))
        for name, lines in zip(cells.names, cells.lines, strict=True)
    }
    columns = [
        (
            name,
            _number_labels(lines.labels),
            lines.levels.astype(np.int64),
            lines.groups.astype(np.int64),
        )
        for name, lines in zip(cells.names, cells.lines, strict=True)
    ]

    def make(start: int, stop: int) -> tuple[Mapping[str, Places], Mapping[str, Plain]]:
        coded: dict[str, Places] = {}
        plain: dict[str, Plain] = {}
        places = locate_lines(cells.lines, start, stop)
        for (name, codes, levels, groups), along in zip(columns, places, strict=True):
            coded[name] = codes[along]
            plain[f"{name}_level"] = levels[along], None
            plain[f"{name}_code"] = groups[along], None
        figures = round_figures(_select_lines(flat_cells, slice(start, stop)))
        is_hidden = None if hide_below is None else figures["count"] < hide_below
        for name, numbers in figures.items():
            is_empty = None if name in ("sd", "sum_sd") else is_hidden
            if name == "mean":
                is_nobody = figures["count"] == 0
                is_empty = is_nobody if is_empty is None else is_empty | is_nobody
            plain[name] = numbers, is_empty
        return coded, plain

    headers = list_headers(cells.names, has_sums=cells.sums is not None)
    kinds: dict[str, type[np.int64 | np.float64]] = dict.fromkeys(headers, np.int64)
    kinds |= dict.fromkeys((*FIGURES[1:], *SUM_FIGURES), np.float64)
    if cells.sums is not None and not cells.sums.column.digits:
        kinds["sum"] = np.int64
    kinds = {name: kinds[name] for name in headers if name not in labels}
    rows = math.prod(map(len, cells.lines))
    return engine.from_blocks(RowBlocks(rows, headers, labels, kinds, make))


def _number_labels(labels: Sequence[str | None]) -> Places:
    """Return which of the different labels each is, by their first appearance."""
    places: dict[str | None, int] = {}
    return np.array([places.setdefault(label, len(places)) for label in labels], dtype=np.int64)


def _select_lines(cells: CellTable, lines: slice) -> CellTable:
    """Return the figures of some lines, one after the other."""

    def select(numbers: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(numbers).reshape(-1)[lines]

    sums = cells.sums
    if sums is not None:
        sums = replace(
            sums,
            steps=select(sums.steps),
            estimate=select(sums.estimate),
            sd=select(sums.sd),
            mean_low=select(sums.mean_low),
            mean_high=select(sums.mean_high),
        )
    return replace(
        cells,
        count=select(cells.count),
        estimate=select(cells.estimate),
        sd=select(cells.sd),
        sums=sums,
    )


def round_figures(cells: CellTable) -> dict[str, np.ndarray]:
    """Return the figures of a table as they are written, line by line."""
    estimate, sd = cells.estimate.ravel(), cells.sd.ravel()
    figures = {
        "estimate": estimate, "sd": sd, "low": estimate - WITHIN * sd,
        "high": estimate + WITHIN * sd,
    }  # fmt: skip
    rounded = {name: np.round(numbers, DIGITS) + 0.0 for name, numbers in figures.items()}
    more = {} if cells.sums is None else round_sums(cells.sums, cells.count)
    return {"count": cells.count.ravel(), **rounded, **more}


def round_sums(sums: CellSums, count: Counts) -> dict[str, np.ndarray]:
    """Return the figures of sums as they are written, line by line."""
    digits = sums.column.digits
    units = sums.column.compute_sums(count.ravel(), sums.steps.ravel())
    estimate, sd = sums.estimate.ravel(), sums.sd.ravel()
    figures = {
        "sum_estimate": estimate, "sum_sd": sd, "sum_low": estimate - WITHIN * sd,
        "sum_high": estimate + WITHIN * sd, "mean": compute_whole_means(units, count, digits),
        "mean_low": sums.mean_low.ravel(), "mean_high": sums.mean_high.ravel(),
    }  # fmt: skip
    rounded = {name: np.round(numbers, DIGITS + digits) + 0.0 for name, numbers in figures.items()}
    return {"sum": units / 10**digits if digits else units, **rounded}


def make_numbers(numbers: Sequence[Counts], engine: Engine) -> Table:
    """Return the measured numbers as one table, residual by residual."""
    flat_numbers = [np.ascontiguousarray(part).reshape(-1) for part in numbers]
    ends = np.cumsum([len(part) for part in flat_numbers])

    def make(start: int, stop: int) -> tuple[Mapping[str, Places], Mapping[str, Plain]]:
        places = np.arange(start, stop, dtype=np.int64)
        residuals = np.searchsorted(ends, places, side="right").astype(np.int64)
        parts = [
            flat_numbers[at][max(start - begin, 0) : max(stop - begin, 0)]
            for at in np.unique(residuals).tolist()
            for begin in [int(ends[at]) - len(flat_numbers[at])]
        ]
        joined = np.concatenate([np.zeros(0, dtype=np.int64), *parts]).astype(np.int64)
        return {}, {RESIDUAL: (residuals, None), NUMBER: (joined, None)}

    order, rows = [RESIDUAL, NUMBER], int(ends[-1])
    kinds: dict[str, type[np.int64 | np.float64]] = dict.fromkeys(order, np.int64)
    return engine.from_blocks(RowBlocks(rows, order, {}, kinds, make))
