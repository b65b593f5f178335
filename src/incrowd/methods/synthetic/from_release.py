"""Synthetic rows of a release by slices or tables: narrow tables become rows of all columns.

The counts of each slice or table take the place of measured tables. A model is fitted to them and
rows are drawn, all of it from the files of the release.

**Claim.** The rows satisfy the guarantee of the release, and cost nothing: they are computed from
it and from random numbers alone (post-processing).

What is suppressed counts as 0 in its slice, so that rare values become rarer. A column is shown at
the finest level that a slice has of it, by the labels that some slice shows. Columns that stand in
no slice together are independent, given the columns between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
import numpy.typing as npt

from incrowd.anonymize.synthetic.allocation import MODEL_CELLS
from incrowd.anonymize.synthetic.domain import Columns, Domain, Levels, make_column
from incrowd.anonymize.synthetic.fit import fit
from incrowd.anonymize.synthetic.measurement import TableEstimate
from incrowd.anonymize.synthetic.model import Model, make_structure
from incrowd.anonymize.synthetic.refit import FINAL_GAP, FINAL_STEPS
from incrowd.anonymize.synthetic.released import Released
from incrowd.anonymize.synthetic.rows import draw_rows
from incrowd.anonymize.synthetic.synthesize import TABLE_CELLS
from incrowd.arrays import Floats
from incrowd.codes.hierarchy import Hierarchy, build_from_rows
from incrowd.codes.values import canonicalize_value
from incrowd.engine.count import read_labels
from incrowd.engine.released import open_released
from incrowd.engine.source import local_engine
from incrowd.engine.table import Table
from incrowd.errors import IncrowdError
from incrowd.methods.synthetic.rows import PublishedColumn, make_tables
from incrowd.privacy.draw_parameters import build_noise_spread
from incrowd.release.certificate import Certificate, Slice
from incrowd.release.formulas import unescape_formula
from incrowd.release.tables_read import get_finest, read_cells, read_columns
from incrowd.spec.arx import read_rows


@dataclass(frozen=True, eq=False)
class SliceColumn:
    """A column of the slices: its hierarchy, and the finest level that a slice has of it."""

    hierarchy: Hierarchy
    finest: int

    @property
    def labels(self) -> tuple[str | None, ...]:
        """The labels of its finest level."""
        return self.hierarchy.labels[self.finest]

    @property
    def levels(self) -> list[npt.NDArray[np.int64]]:
        """The group of each label of the finest level, at that level and at those above."""
        first = np.zeros(len(self.labels), dtype=np.int64)
        groups = self.hierarchy.groups
        first[groups[self.finest][::-1]] = np.arange(len(groups[0]))[::-1]
        above = [group[first].astype(np.int64) for group in groups[self.finest + 1 :]]
        return [np.arange(len(self.labels)), *above]


@dataclass(frozen=True, eq=False)
class SliceTable:
    """The counts of one slice, along the labels of its levels, and the variance of a cell."""

    names: tuple[str, ...]
    levels: tuple[int, ...]
    counts: Floats
    variance: float


def synthesize_release(
    folder: Path, certificate: Certificate, *, rng: np.random.Generator
) -> tuple[Table, Table]:
    """Return rows of all columns of a release by slices, as text and as labels.

    ``certificate`` is that of the release in ``folder``, which has been verified.
    """
    if certificate.slices is None and certificate.tabulation is None:
        raise IncrowdError(
            f"'{folder}' is no release by slices or tables. To get synthetic rows of a table, "
            "publish it with 'method: synthetic'."
        )
    if certificate.layout is not None:
        raise IncrowdError(
            f"'{folder}' holds households and people, which are not columns of one table. To get "
            "synthetic rows, publish a table with 'method: synthetic'."
        )
    columns = read_slice_columns(folder, certificate)
    tables = (
        [_read_slice(folder, part, columns) for part in certificate.tables]
        if certificate.tabulation is None
        else _read_tables(folder, certificate, columns)
    )
    names = tuple(columns)
    published_labels = [_list_shown(name, column, tables) for name, column in columns.items()]
    domain = Domain(
        tuple(
            make_column([level[labels] for level in column.levels], labels)
            for column, labels in zip(columns.values(), published_labels, strict=True)
        )
    )
    model = fit_slices(domain, names, columns, tables)
    codes = domain.decode(draw_rows(model, max(round(model.rows), 1), rng))
    published = {
        name: PublishedColumn(column.labels, column.labels, codes[:, at])
        for at, (name, column) in enumerate(columns.items())
    }
    return make_tables(published, (), {}, names, local_engine())


def read_slice_columns(folder: Path, certificate: Certificate) -> dict[str, SliceColumn]:
    """Return the columns of the slices by name, each with its hierarchy and finest level."""
    levels: dict[str, list[int]] = {}
    hierarchies: dict[str, Hierarchy] = {}
    for part in certificate.tables:
        for name, column in part.scheme.items():
            if column.file is None or column.level is None:
                raise IncrowdError(
                    f"Column '{name}': a model cannot list its values, since its domain is open or "
                    "its labels are of several levels. Publish slices with listed values."
                )
            rows = read_rows(folder / column.file, ";", ours=True)
            hierarchies[name] = build_from_rows(rows, other=column.other, exact=True)
            levels.setdefault(name, []).append(column.level)
    return {
        name: SliceColumn(hierarchies[name], min(column_levels))
        for name, column_levels in levels.items()
    }


def _read_slice(folder: Path, part: Slice, columns: dict[str, SliceColumn]) -> SliceTable:
    """Return the counts of a slice; of a sample, scaled up to the table."""
    names = tuple(name for name in columns if name in part.scheme)
    levels = tuple(part.scheme[name].level or 0 for name in names)
    table = open_released(folder / part.release.file)
    if part.release.formulas:
        table = table.respell_texts(unescape_formula)
    published = read_labels(table, names, weighted=part.release.form != "expanded")
    axes = []
    for name, level, labels in zip(names, levels, published.labels, strict=True):
        places: dict[str | None, int] = {}
        for code, text in enumerate(columns[name].hierarchy.labels[level]):
            places.setdefault(text, code)
        axes.append(np.array([places[canonicalize_value(x)] if not isinstance(x, str)
                              else places[x] for x in labels], dtype=np.int64))  # fmt: skip
    shape = [len(columns[name].hierarchy.labels[level])
             for name, level in zip(names, levels, strict=True)]  # fmt: skip
    counts = np.zeros(shape)
    cells = tuple(axis[published.frequencies.codes[:, at]] for at, axis in enumerate(axes))
    np.add.at(counts, cells, published.frequencies.counts.astype(np.float64))
    if "beta" not in part.parameters:
        variance = build_noise_spread(part.parameters).variance
        return SliceTable(names, levels, counts, variance)
    beta = float(part.parameters["beta"])
    mean = float(counts.sum() / max((counts > 0).sum(), 1))
    return SliceTable(names, levels, counts / beta, max(mean * (1 - beta) / beta**2, 1.0))


def _read_tables(
    folder: Path, certificate: Certificate, columns: dict[str, SliceColumn]
) -> list[SliceTable]:
    """Return the finest cells of tables of counts, which have no threshold."""
    assert certificate.tabulation is not None
    declared, tables = read_columns(folder, certificate), []
    for at, entry in enumerate(certificate.tabulation.tables):
        cells = read_cells(folder, certificate, at, declared)
        finest = get_finest(cells)
        if finest is None:
            raise IncrowdError(
                f"'{folder}' hides numbers, and rows need all of them. Publish the tables without "
                "`hide_below`."
            )
        names = tuple(name for name in columns if name in entry.columns)
        order = [entry.columns.index(name) for name in names]
        levels = tuple(entry.levels[axis] for axis in order)
        counts = np.zeros(
            [len(columns[name].hierarchy.labels[level])
             for name, level in zip(names, levels, strict=True)]
        )  # fmt: skip
        places = [
            np.unique(columns[name].hierarchy.groups[level][declared[name].codes])
            for name, level in zip(names, levels, strict=True)
        ]
        counts[np.ix_(*places)] = np.transpose(finest, order)
        tables.append(SliceTable(names, levels, counts, max(entry.rmse**2, 1e-9)))
    return tables


def _list_shown(
    name: str, column: SliceColumn, tables: Sequence[SliceTable]
) -> npt.NDArray[np.int64]:
    """Return the finest labels of a column that some slice shows, as such or within a group."""
    published = np.zeros(len(column.labels), dtype=bool)
    for table in tables:
        if name in table.names:
            axis = table.names.index(name)
            others = tuple(at for at in range(len(table.names)) if at != axis)
            groups = column.levels[table.levels[axis] - column.finest]
            if groups.max() > 0:  # or else nothing is shown of the column
                published |= (table.counts.sum(axis=others) > 0)[groups]
    return np.flatnonzero(published) if published.any() else np.arange(len(published))


def fit_slices(
    domain: Domain,
    names: Sequence[str],
    columns: dict[str, SliceColumn],
    tables: Sequence[SliceTable],
) -> Model:
    """Fit a model to the slices: to each of them whole, or to its pairs where it is too large."""
    rows = max(max(float(table.counts.sum()) for table in tables), 1.0)
    released = Released(domain)
    margins: dict[tuple[Columns, Levels], list[tuple[Floats, float]]] = {}
    for table in tables:
        scaled = table.counts * (rows / max(float(table.counts.sum()), 1.0))
        places = tuple(names.index(name) for name in table.names)
        levels = tuple(
            _find_level(domain, place, level - columns[name].finest)
            for place, name, level in zip(places, table.names, table.levels, strict=True)
        )
        parts = [domain.columns[place] for place in places]
        groups = [
            columns[name].levels[level - columns[name].finest][
                model_column.codes[model_column.starts[at]]
            ]
            for name, level, model_column, at in zip(
                table.names, table.levels, parts, levels, strict=True
            )
        ]
        ordered = _order_axes(scaled, groups)
        subsets = _choose_tables(released, places, levels)
        for axes in [*combinations(range(len(places)), 1), *subsets]:
            others = tuple(axis for axis in range(len(places)) if axis not in axes)
            margin = ordered.sum(axis=others)
            key = tuple(places[axis] for axis in axes), tuple(levels[axis] for axis in axes)
            variance = table.variance * ordered.size / margin.size
            margins.setdefault(key, []).append((margin, 1 / variance))
    estimates = [_combine(key, some) for key, some in margins.items()]
    estimates += _add_leaves(domain, estimates, rows)
    structure = make_structure(domain, released.levels, released.graph)
    model, parameters = fit(structure, estimates, rows, gap=FINAL_GAP, steps=FINAL_STEPS)
    model, _ = fit(
        structure, estimates, rows, before=model, parameters=parameters, gap=FINAL_GAP,
        steps=FINAL_STEPS,
    )  # fmt: skip
    return model


def _find_level(domain: Domain, place: int, above: int) -> int:
    """Return the level of the model that is so many levels above the finest of a column.

    Levels that merge nothing, or everything, are none of the model: the next finer one stands for
    them.
    """
    numbers = domain.columns[place].level_numbers
    return max(at for at, number in enumerate(numbers) if number <= above)


def _order_axes(counts: Floats, groups: Sequence[npt.NDArray[np.int64]]) -> Floats:
    """Return counts along the groups of the model; several that share a count divide it."""
    for axis, codes in enumerate(groups):
        shares = 1 / np.bincount(codes, minlength=counts.shape[axis])[codes]
        shape = [-1 if at == axis else 1 for at in range(counts.ndim)]
        counts = np.take(counts, codes, axis=axis) * shares.reshape(shape)
    return counts


def _choose_tables(released: Released, places: Columns, levels: Levels) -> list[tuple[int, ...]]:
    """Return the tables of a slice that the model holds: its pairs, and a slice of three whole.

    Of a table of three columns a model takes only what its pairs do not tell.
    """
    everything = tuple(range(len(places)))
    subsets = [everything] if len(places) == 3 else []
    subsets += combinations(everything, 2)
    return [axes for axes in subsets if _hold(released, places, levels, axes)]


def _hold(released: Released, places: Columns, levels: Levels, axes: tuple[int, ...]) -> bool:
    key = tuple(places[axis] for axis in axes), tuple(levels[axis] for axis in axes)
    if released.domain.cells(*key) > TABLE_CELLS or not released.fits(*key, MODEL_CELLS):
        return False
    released.hold(*key)
    return True


def _combine(key: tuple[Columns, Levels], some: Sequence[tuple[Floats, float]]) -> TableEstimate:
    """Return the mean of tables of the same columns, weighted by their precision."""
    precision = sum(weight for _, weight in some)
    cells = sum((table * (weight / precision) for table, weight in some), np.zeros(()))
    return TableEstimate(*key, cells, precision, precision)


def _add_leaves(
    domain: Domain, estimates: Sequence[TableEstimate], rows: float
) -> list[TableEstimate]:
    """Return an even table, of hardly any precision, for columns without one of their values."""
    has = {
        estimate.columns
        for estimate in estimates
        if len(estimate.columns) == 1 and estimate.levels == (0,)
    }
    return [
        TableEstimate((at,), (0,), np.full(column.sizes[0], rows / column.sizes[0]), 1e-12, 1e-12)
        for at, column in enumerate(domain.columns)
        if (at,) not in has
    ]
