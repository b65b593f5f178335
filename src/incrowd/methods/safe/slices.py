"""The slices that a spec asks for: declared, every two columns together, or to be chosen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from math import comb

import numpy as np

from incrowd.anonymize import safe_slices
from incrowd.anonymize.slice_rule import SliceRule
from incrowd.codes.counted_table import CountedTable
from incrowd.codes.frequency import Frequencies, map_levels
from incrowd.codes.hierarchy import Hierarchy
from incrowd.errors import IncrowdError
from incrowd.methods.safe.draw import CellDraw
from incrowd.methods.safe.remote_counts import RemoteCountedTable
from incrowd.privacy.randomness import Randomness
from incrowd.spec.dependency import NO_DEPENDENCIES, ColumnDependencies
from incrowd.spec.slices import Slices, Slicing

USUAL_TABLES = 16
_FEW_GROUPS = 8


class Slicer:
    """Slices of some columns; what can be refused without the table is refused at once.

    ``tables`` is how many there are (1 where none are asked for), ``choices`` how many private
    choices it takes to put them together, ``reason`` why. Slices that are not declared have no
    column together with others that determine it, by the ``dependencies`` of the spec.
    """

    def __init__(
        self,
        slices: Slices,
        columns: tuple[str, ...],
        dependencies: ColumnDependencies = NO_DEPENDENCIES,
    ) -> None:
        self._columns = columns
        self._rule = _build_rule(columns, dependencies)
        self._known: list[tuple[str, ...]] = []
        self._most = len(columns)
        self.tables, self.choices, self.reason = 1, 0, ""
        if isinstance(slices, Slicing):
            self._plan_slices(slices)
        elif slices:
            self._known = _order_declared(slices, columns)
            self.tables = len(slices)

    @property
    def known_slices(self) -> list[tuple[str, ...]]:
        """The columns of each slice as far as they are settled; else some of as many columns."""
        return self._known or [self._columns[: self._most]]

    def _plan_slices(self, slicing: Slicing) -> None:
        columns, width = len(self._columns), slicing.columns
        if columns <= width:
            raise IncrowdError(
                f"Slices: {width} columns per slice, but only {columns} columns in all. Use "
                "smaller slices, or remove `slices`."
            )
        pairs = int(np.count_nonzero(self._rule.list_separate_pairs())) // 2
        if not pairs:
            raise IncrowdError(
                "Slices: each published column is a function of each other one (`function_of`). "
                "Publish one of them, and give the others the role `drop`."
            )
        fewest, at_least = len(self._rule.compute_sizes(width)), pairs / comb(width, 2)
        limit = math.inf if slicing.tables == "all" else slicing.tables or max(USUAL_TABLES, fewest)
        if limit < fewest:
            apart = ", with functions of others apart" if self._rule.dependent_columns else ""
            raise IncrowdError(
                f"Slices: {columns} columns need at least {fewest} tables of {width}{apart}, but "
                f"`tables` is {limit}. Use more tables or larger slices."
            )
        cover = safe_slices.cover_pairs(self._rule, width) if at_least <= limit else []
        if 0 < len(cover) <= limit:
            self._known = [tuple(self._columns[at] for at in part) for part in cover]
            self.tables = len(cover)
            which = "pair of columns"
            if pairs < comb(columns, 2):
                which += " but functions of each other"
            self.reason = f"Slices: {len(cover)} tables cover every {which}; choosing them is free."
            return
        tables = int(limit)
        self._most, self.tables = width, tables
        self.choices = safe_slices.count_choices(self._rule, width, tables)
        self.reason = (
            f"Slices: the columns of {tables} tables were chosen privately, pairs with a strong "
            "association first."
        )

    def choose_slices(
        self,
        table: CountedTable | RemoteCountedTable,
        epsilons: Sequence[Fraction],
        bits: Randomness,
        draws: Sequence[CellDraw],
        *,
        rows: int = 1,
    ) -> list[tuple[str, ...]]:
        """Choose the columns of each slice; private at the sum of the epsilons.

        ``draws`` are what each slice may be drawn with. They are settled before the table is
        seen, so the crowd from which a cell may survive is known. ``rows`` is the largest number of
        rows of one person.
        """
        if not self.choices:
            return self._known
        threshold = min(draw.ramp.a for draw in draws)
        if isinstance(table, CountedTable):
            slices = safe_slices.choose_slices(
                _roll_up_roughly(table),
                self._most,
                self.tables,
                epsilons=epsilons,
                bits=bits,
                threshold=threshold,
                rows=rows,
                rule=self._rule,
            )
        else:
            score = _measure_dependences(table, threshold)
            slices = safe_slices.choose_slices_by_score(
                score, self._rule, self._most, self.tables, epsilons=epsilons, bits=bits, rows=rows
            )
        return [tuple(table.names[at] for at in part) for part in slices]


def _build_rule(columns: tuple[str, ...], dependencies: ColumnDependencies) -> SliceRule:
    """Return the dependencies by places; columns that are not published stand behind the others."""
    sources = dependencies.sources
    every = [*columns, *sources, *(name for listed in sources.values() for name in listed)]
    places = {name: at for at, name in enumerate(dict.fromkeys(every))}
    functions = [
        (places[name], {places[source] for source in listed}) for name, listed in sources.items()
    ]
    return SliceRule(len(columns), functions)


def _order_declared(
    slices: Sequence[tuple[str, ...]], columns: tuple[str, ...]
) -> list[tuple[str, ...]]:
    """Return declared slices, their columns in the order of the spec."""
    for part in slices:
        for name in part:
            if name not in columns:
                raise IncrowdError(
                    f"Column '{name}': a slice names it, but it is not published. Give it the role "
                    "`quasi` or `sensitive`."
                )
    missing = [name for name in columns if not any(name in part for part in slices)]
    if missing:
        raise IncrowdError(
            f"Column '{missing[0]}': it is in no slice. Add it to one, or give it the role `drop`."
        )
    return [tuple(name for name in columns if name in part) for part in slices]


def _roll_up_roughly(table: CountedTable) -> Frequencies:
    """Roll tuples up to rough levels: with many groups, chance alone makes associations."""
    levels = [_find_rough_level(hierarchy) for hierarchy in table.hierarchies]
    return table.frequencies.roll_up(map_levels(table.hierarchies, table.levels, levels))


def _measure_dependences(table: RemoteCountedTable, threshold: int) -> dict[tuple[int, int], int]:
    """Measure the dependence of every two columns at rough levels, two columns at a time."""
    rough = replace(
        table, levels=tuple(_find_rough_level(hierarchy) for hierarchy in table.hierarchies)
    )
    column_rows = []
    for at, (hierarchy, level) in enumerate(zip(rough.hierarchies, rough.levels, strict=True)):
        column, rows = rough.column(at), np.zeros(len(hierarchy.labels[level]), dtype=np.int64)
        rows[column.frequencies.codes[:, 0]] = column.frequencies.counts
        column_rows.append(rows)
    total = int(column_rows[0].sum())
    dependences = {}
    for first_column, second_column in combinations(range(len(table.names)), 2):
        cells = rough.collect_above([first_column, second_column], threshold)
        rows, columns = (
            column_rows[first_column][cells.codes[:, 0]],
            column_rows[second_column][cells.codes[:, 1]],
        )
        dependences[first_column, second_column] = safe_slices.compute_cell_dependence(
            cells.counts, rows, columns, total, threshold
        )
    return dependences


def _find_rough_level(hierarchy: Hierarchy) -> int:
    """Return the finest level with few groups, or the one below the root; no data decide it."""
    top = hierarchy.height - 1 - hierarchy.is_rooted
    for level in range(top):
        groups = (
            hierarchy.size ** (1 - level / (hierarchy.height - 1))
            if hierarchy.open
            else len(hierarchy.labels[level]) - 2  # null, and what is outside
        )
        if groups <= _FEW_GROUPS:
            return level
    return max(top, 0)
