"""The schemes of a safe release: fixed, searched for, or cut further; and a table by each.

A scheme is given a table's tuples and what it may spend, and makes the product. Whatever it can
refuse, it refuses when it is made, without the table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from incrowd.anonymize.lattice import Lattice, build_lattice
from incrowd.anonymize.person_rollups import make_rollups
from incrowd.anonymize.safe_mondrian import CellPartition, cut_cells
from incrowd.anonymize.safe_search import ChosenScheme, Ramp, search_scheme
from incrowd.anonymize.target_score import TargetValues
from incrowd.arrays import Codes, Floats
from incrowd.codes.axis import Axis, locate_points
from incrowd.codes.counted_table import CountedTable, PublishedTable
from incrowd.codes.frequency import Frequencies, merge_tuples, number_tuples
from incrowd.codes.person_sets import PeopleTable
from incrowd.errors import IncrowdError
from incrowd.findings import make_finding
from incrowd.measure.loss import compute_normalized_costs
from incrowd.methods.base import MakeContext, make_cell_table
from incrowd.methods.safe.budget import compute_search_share
from incrowd.methods.safe.draw import CellDraw, make_draws
from incrowd.methods.safe.remote_counts import (
    RemoteCountedTable,
    RemoteRollups,
)
from incrowd.privacy.presentation import read_as_decimal
from incrowd.privacy.randomness import Randomness
from incrowd.privacy.split import BudgetSplit
from incrowd.release.product import Product, RemoteCells
from incrowd.spec.build import ColumnHierarchies
from incrowd.spec.release import SafeSpec
from incrowd.spec.slices import Slicing

ROUNDS = 2


class SafeScheme(Protocol):
    """A way to generalize the columns of a table, and to draw its sample."""

    def selection_shares(self) -> tuple[float, ...]:
        """Return what each of its private choices spends, as a share of epsilon; none if none."""
        ...

    def level_limits(self, names: tuple[str, ...]) -> dict[str, tuple[int, int]]:
        """Return the lowest and highest level that some of the columns may have."""
        ...

    def list_counted_levels(self) -> tuple[int, ...] | None:
        """Return the levels of the tuples that it works on; None for those of the values."""
        ...

    def make_product(
        self, table: CountedTable | RemoteCountedTable, split: BudgetSplit, context: MakeContext
    ) -> Product:
        """Make the rows to be published; ``table`` may have some of the columns only."""
        ...


class FixedScheme:
    """By the levels of the spec, which depend on no data."""

    def __init__(self, release: SafeSpec, declared: ColumnHierarchies) -> None:
        self._release, self._declared = release, declared
        self.levels = _list_levels(release, declared)

    def selection_shares(self) -> tuple[float, ...]:
        """Return no shares: nothing is chosen from the table."""
        return ()

    def level_limits(self, names: tuple[str, ...]) -> dict[str, tuple[int, int]]:
        """Return one level each."""
        return {name: (self.levels[name], self.levels[name]) for name in names}

    def list_counted_levels(self) -> tuple[int, ...]:
        """Return the levels of the scheme: a large table has far fewer tuples there."""
        return tuple(self.levels.values())

    def make_product(
        self, table: CountedTable | RemoteCountedTable, split: BudgetSplit, context: MakeContext
    ) -> Product:
        """Draw, drop what is rare."""
        (draw,) = make_draws(split, self._release, context.bits)
        levels = tuple(self.levels[name] for name in table.names)
        return draw_leveled_product(
            table.roll_up(levels), self._declared, self._release, draw, context
        )


class SearchedScheme:
    """By levels, and a pair of k and beta, that the table has chosen privately.

    The choice is made on the whole table, before and apart from the sample that is published:
    chosen from that sample, it would tell of the rows that are in it.
    """

    def __init__(
        self,
        release: SafeSpec,
        declared: ColumnHierarchies,
        limits: dict[str, int | tuple[int, int]] | None = None,
        *,
        size: int | None = None,
    ) -> None:
        self._release, self._declared = release, declared
        self._share = compute_search_share(size, has_target=release.target is not None)
        self._limits = self._release.levels if limits is None else limits
        self._target = release.target
        if self._target is not None:
            self._limits = {**self._limits, self._target: self._find_finest_level(self._target)}
        for names in (*((name,) for name in declared.names), *self._list_widest_columns()):
            self.make_lattice(names).refuse_large()  # as levels that there are not are refused

    def _find_finest_level(self, target: str) -> int:
        """Return the finest level that a target may have: the others tell of its values."""
        level = self._limits.get(target, 0)
        return level if isinstance(level, int) else level[0]

    def _list_widest_columns(self) -> list[tuple[str, ...]]:
        """Return columns that may be searched together; where that is open, the worst of them."""
        slices = self._release.slices
        if isinstance(slices, Slicing):
            deep = sorted(self._declared.names, key=lambda name: -self.make_lattice((name,)).size)
            return [tuple(deep[: slices.columns])]
        return list(slices) or [self._declared.names]

    def make_lattice(self, names: tuple[str, ...]) -> Lattice:
        """Return the schemes that are searched, for some of the columns."""
        return build_lattice(names, [self._declared.height(name) for name in names], self._limits)

    def selection_shares(self) -> tuple[float, ...]:
        """Return the share of one choice."""
        return (self._share,)

    def level_limits(self, names: tuple[str, ...]) -> dict[str, tuple[int, int]]:
        """Return those of the lattice."""
        lattice = self.make_lattice(names)
        return dict(zip(names, zip(lattice.low, lattice.high, strict=True), strict=True))

    def list_counted_levels(self) -> None:
        """Return None: schemes of any levels may be chosen."""

    def make_product(
        self, table: CountedTable | RemoteCountedTable, split: BudgetSplit, context: MakeContext
    ) -> Product:
        """Search, roll up, draw, drop what is rare."""
        scheme, draw = self._choose_scheme(table, split, context)
        return self._make_leveled_product(table, scheme, draw, context)

    def _make_leveled_product(
        self,
        table: CountedTable | RemoteCountedTable,
        scheme: ChosenScheme,
        draw: CellDraw,
        context: MakeContext,
    ) -> Product:
        coarse_table = table.roll_up(scheme.levels)
        return draw_leveled_product(coarse_table, self._declared, self._release, draw, context)

    def _choose_scheme(
        self, table: CountedTable | RemoteCountedTable, split: BudgetSplit, context: MakeContext
    ) -> tuple[ChosenScheme, CellDraw]:
        """Choose the scheme, and what it is drawn with."""
        context.step("search")
        among = {draw.ramp: draw for draw in make_draws(split, self._release, context.bits)}
        rollups = (
            RemoteRollups(table, min(ramp.a for ramp in among))
            if isinstance(table, RemoteCountedTable)
            else make_rollups(table)
        )
        scheme = search_scheme(
            rollups,
            self.make_lattice(table.names),
            list(among),
            epsilon=read_as_decimal(split.selections[0]),
            power=self._release.detail_power,
            weights=self._list_weights(table.names),
            bits=context.bits,
            target=self._weigh_target(table, among, context),
            rows=split.rows,
            progress=context.progress,
        )
        return scheme, among[scheme.ramp]

    def _weigh_target(
        self,
        table: CountedTable | RemoteCountedTable,
        ramps: Mapping[Ramp, CellDraw],
        context: MakeContext,
    ) -> TargetValues | None:
        """Return what the values of the target weigh, by what was measured of them.

        They weigh alike where nothing was, or only groups of many values (``rare: keep``).
        """
        if self._target is None:
            return None
        at, level = table.names.index(self._target), self._find_finest_level(self._target)
        hierarchy = table.hierarchies[at]
        if (self._target, level) not in context.measured:
            return TargetValues.from_labels(at, len(hierarchy.labels[level]))
        crowd = min(draw.crowd for draw in ramps.values())
        return TargetValues.from_counts(
            at, context.measured[self._target, level], crowd, hierarchy.map_equal_labels(level)
        )

    def _list_weights(self, names: Sequence[str]) -> Floats:
        return np.array([self._declared.columns[name].weight for name in names])


class MondrianScheme(SearchedScheme):
    """Safe Mondrian: a scheme is chosen as above, and its cells are cut further, privately.

    Only along columns that list their values: a box of values that nobody listed would reach
    as far as the values met. Other columns stay at the level that was chosen, and so do those
    whose levels the spec limits.
    """

    def __init__(
        self,
        release: SafeSpec,
        declared: ColumnHierarchies,
        limits: dict[str, int | tuple[int, int]] | None = None,
        *,
        size: int | None = None,
    ) -> None:
        super().__init__(release, declared, limits, size=size)
        if not any(self.allows_cut(name) for name in declared.names):
            raise IncrowdError(
                "`scheme: mondrian` needs a column with listed values and without `levels`. Use "
                "`scheme: search`."
            )

    def allows_cut(self, name: str) -> bool:
        """Return whether a column may be cut."""
        return not self._declared.is_open(name) and name not in self._release.levels

    def selection_shares(self) -> tuple[float, ...]:
        """Return the shares of the search and of each round of cuts, in equal parts."""
        return (self._share,) * (1 + ROUNDS)

    @staticmethod
    def require_local(table: CountedTable | RemoteCountedTable) -> CountedTable:
        """Return tuples that are here; refuse others before anything is spent.

        Whether cells are cut is published. If tables with too many tuples were rolled up without
        cuts, how many tuples there are would decide it.
        """
        if isinstance(table, RemoteCountedTable):
            raise IncrowdError(
                "Table: too many distinct tuples for `scheme: mondrian` on one machine. Use "
                "`scheme: search`, or fewer or coarser columns."
            )
        return table

    def make_product(
        self, table: CountedTable | RemoteCountedTable, split: BudgetSplit, context: MakeContext
    ) -> Product:
        """Search, cut the cells, draw, drop below k."""
        table = self.require_local(table)
        scheme, draw = self._choose_scheme(table, split, context)
        axes = {
            at: make_contiguous(axis)
            for at, (name, axis) in enumerate(zip(table.names, table.axes, strict=True))
            if self.allows_cut(name)
        }
        if not axes:  # of a slice, perhaps, none of whose columns can be cut
            return self._make_leveled_product(table, scheme, draw, context)
        boxes = self._cut_cells(axes, table, scheme, split, context.bits)
        context.step("draw")
        labels, codes = _label_tuples(axes, boxes, table, scheme.levels)
        published = draw.draw_published_cells(
            merge_tuples(codes, table.frequencies.counts), context.bits
        )
        levels = [None if at in axes else level for at, level in enumerate(scheme.levels)]
        return Product(
            data=make_cell_table(
                dict(zip(table.names, labels, strict=True)), published,
                weighted=self._release.rows == "counted", engine=context.engine,
            ),
            original=table,
            shown=PublishedTable(labels, published, tuple(levels), draw.noise),
            columns=self._declared.columns,
            axes=tuple(axes.get(at, axis) for at, axis in enumerate(table.axes)),
            parameters=draw.parameters,
            findings=(make_finding("LABELS_CUT_LOCALLY"),),
        )  # fmt: skip

    def _cut_cells(
        self,
        axes: dict[int, Axis],
        table: CountedTable,
        scheme: ChosenScheme,
        split: BudgetSplit,
        bits: Randomness,
    ) -> CellPartition:
        """Cut the cells of the chosen scheme further."""
        weights = self._list_weights(table.names)
        shares = weights / weights.sum()
        return cut_cells(
            list(axes.values()),
            locate_points(list(axes.values()), table.frequencies.codes[:, list(axes)]),
            table.frequencies.counts,
            _make_boxes(axes, table, scheme.levels, shares),
            ramp=scheme.ramp,
            epsilons=[read_as_decimal(epsilon) for epsilon in split.selections[1:]],
            power=self._release.detail_power,
            shares=shares[list(axes)],
            bits=bits,
        )


def _label_tuples(
    axes: dict[int, Axis], boxes: CellPartition, table: CountedTable, levels: Sequence[int]
) -> tuple[tuple[Sequence[str | None], ...], Codes]:
    """Return the labels of each column, and for each tuple which of them it shows."""
    labels: list[Sequence[str | None]] = []
    codes = np.zeros_like(table.frequencies.codes)
    for at, (hierarchy, level) in enumerate(zip(table.hierarchies, levels, strict=True)):
        if at in axes:
            place = list(axes).index(at)
            texts, places = axes[at].make_labels(boxes.low[:, place], boxes.high[:, place])
            labels.append(texts)
            codes[:, at] = places[boxes.members]
        else:
            labels.append(hierarchy.labels[level])
            group = hierarchy.groups[level][table.frequencies.codes[:, at]]
            codes[:, at] = hierarchy.map_equal_labels(level)[group]
    return tuple(labels), codes


def draw_leveled_product(
    table: CountedTable | RemoteCountedTable,
    declared: ColumnHierarchies,
    release: SafeSpec,
    draw: CellDraw,
    context: MakeContext,
) -> Product:
    """Draw the cells of a scheme of levels; drop what is rare."""
    context.step("draw")
    local_table, published, remote_cells = _draw_cells(table, draw, context.bits, release.target)
    labels = [
        hierarchy.labels[level]
        for hierarchy, level in zip(local_table.hierarchies, local_table.levels, strict=True)
    ]
    looks = dict(zip(local_table.names, labels, strict=True))
    return Product(
        data=make_cell_table(
            looks, published, weighted=release.rows == "counted", engine=context.engine
        ),
        original=local_table,
        shown=PublishedTable(tuple(labels), published, local_table.levels, draw.noise),
        columns=declared.columns,
        axes=local_table.axes,
        parameters=draw.parameters,
        crowd=draw.crowd,
        target=release.target,
        apart=remote_cells,
    )


def _draw_cells(
    table: CountedTable | RemoteCountedTable, draw: CellDraw, bits: Randomness, target: str | None
) -> tuple[CountedTable, Frequencies, RemoteCells | None]:
    """Return the cells by what they show; those shown; and what is known of cells not here."""
    if isinstance(table, CountedTable):
        merged_table = table.merge_labels()
        local_table = merged_table.plain if isinstance(merged_table, PeopleTable) else merged_table
        return local_table, draw.draw_published_cells(local_table.frequencies, bits), None
    cells = table.draw_cells(draw, bits)
    local_table = CountedTable(table.names, table.hierarchies, table.levels, cells.original)
    target_rows = None
    if target is not None:
        target_rows = table.column(table.names.index(target)).merge_labels().frequencies
    return local_table, cells.shown, RemoteCells(cells.rest, table.collect_sample(), target_rows)


def make_contiguous(axis: Axis) -> Axis:
    """Return the axis, taken for a tree where some group of its hierarchy is no run."""
    return axis if axis.ordered and axis.has_runs else Axis(axis.hierarchy, ordered=False)


def _make_boxes(
    axes: dict[int, Axis], table: CountedTable, levels: Sequence[int], shares: Floats
) -> CellPartition:
    """Return the cells of a scheme as boxes over the declared domain of some columns."""
    groups = np.column_stack(
        [h.groups[level][table.frequencies.codes[:, at]]
         for at, (h, level) in enumerate(zip(table.hierarchies, levels, strict=True))]
    ).astype(np.int32)  # fmt: skip
    _, starts, place = np.unique(number_tuples(groups), return_index=True, return_inverse=True)
    groups = groups[starts]
    low, high, other_detail = [], [], np.zeros(len(groups))
    for at, level in enumerate(levels):
        if at in axes:
            first_positions, last_positions = axes[at].find_runs(
                np.full(len(groups), level), groups[:, at]
            )
            low.append(first_positions)
            high.append(last_positions)
        else:
            lost = compute_normalized_costs(table.hierarchies[at])[level]
            other_detail += shares[at] * (1 - lost[groups[:, at]])
    return CellPartition(np.column_stack(low), np.column_stack(high), place, other_detail)


def _list_levels(release: SafeSpec, declared: ColumnHierarchies) -> dict[str, int]:
    """Return the levels of the spec; half way up, rounded down, where it names none."""
    spec_levels = release.levels
    levels = {}
    for name in declared.names:
        height = declared.height(name)
        level = spec_levels.get(name, (height - 1) // 2)
        if not isinstance(level, int):
            raise IncrowdError(
                f"Column '{name}': a fixed scheme needs one level, not a range. Set one level."
            )
        if level >= height:
            raise IncrowdError(
                f"Column '{name}': level {level} does not exist, the highest is {height - 1}. "
                "Lower it under `levels`."
            )
        levels[name] = level
    return levels
