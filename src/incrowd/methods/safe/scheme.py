"""The schemes of a safe release: fixed, searched for, or cut further; and a table by each.

A scheme is given a table's tuples and what it may spend, and makes the product. Whatever it can
refuse, it refuses when it is made, without the table.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from incrowd.anonymize.lattice import Lattice, Rollups, lattice_between
from incrowd.anonymize.safe_mondrian import Cells, cut
from incrowd.anonymize.safe_search import Chosen, search
from incrowd.arrays import Codes, Floats
from incrowd.codes.axis import Axis, positions
from incrowd.codes.counted import Counted, Shown
from incrowd.codes.frequency import Frequencies, keys, merged
from incrowd.engine.table import Table
from incrowd.errors import IncrowdError
from incrowd.findings import make_finding
from incrowd.measure.loss import normalised
from incrowd.methods.base import MakeContext, cells
from incrowd.methods.safe.draw import Draw, draws
from incrowd.methods.safe.spread import SpreadCounted, SpreadRollups, counted
from incrowd.privacy.randomness import Randomness
from incrowd.privacy.rounded import as_written
from incrowd.privacy.split import Split
from incrowd.release.product import Apart, Product
from incrowd.spec.build import Declared
from incrowd.spec.release import SafeSpec, Slicing

SEARCH_SHARE = 0.05
SMALL = ((2_000, 0.2), (10_000, 0.1))  # below so many people, so much of epsilon
ROUNDS = 2
POWERS = {"rows": 1, "balanced": 2, "detail": 3}


def search_share(size: int | None) -> float:
    """The share of epsilon that a choice spends, by how many people the curator says there are.

    The noise of a choice is of as many rows however many there are: in a small table it drowns what
    it chooses by. In steps, so that what is spent, which is published, tells no more than the step.
    The steps were settled by trials on generated tables of 300 to 4,000 rows.
    """
    known = math.inf if size is None else size
    return next((share for below, share in SMALL if known < below), SEARCH_SHARE)


class Scheme(Protocol):
    """A way to generalise the columns of a table, and to draw its sample."""

    def shares(self) -> tuple[float, ...]:
        """What each of its private choices spends, as a share of epsilon; none if it has none."""
        ...

    def limits(self, names: tuple[str, ...]) -> dict[str, tuple[int, int]]:
        """The lowest and highest level that some of the columns may have."""
        ...

    def counted(self, table: Table) -> Counted | SpreadCounted:
        """The tuples that it works on."""
        ...

    def product(
        self, whole: Counted | SpreadCounted, split: Split, context: MakeContext
    ) -> Product:
        """The rows to be published; ``whole`` may have some of the columns only."""
        ...


class Fixed:
    """By the levels of the spec, which depend on no data."""

    def __init__(self, release: SafeSpec, declared: Declared) -> None:
        self._release, self._declared = release, declared
        self._levels = _levels(release, declared)

    def shares(self) -> tuple[float, ...]:
        """Nothing is chosen from the table."""
        return ()

    def limits(self, names: tuple[str, ...]) -> dict[str, tuple[int, int]]:
        """One level each."""
        return {name: (self._levels[name], self._levels[name]) for name in names}

    def counted(self, table: Table) -> Counted | SpreadCounted:
        """The table at the levels of the scheme: of a large one, far fewer tuples."""
        return counted(table, self._declared, list(self._levels.values()))

    def product(
        self, whole: Counted | SpreadCounted, split: Split, context: MakeContext
    ) -> Product:
        """Draw, drop what is rare."""
        (draw,) = draws(split, self._release, context.bits)
        levels = tuple(self._levels[name] for name in whole.names)
        return _by_levels(whole.rolled(levels), self._declared, self._release, draw, context)


class Searched:
    """By levels, and a pair of k and beta, that the table has chosen privately.

    The choice is made on the whole table, before and apart from the sample that is published:
    chosen from that sample, it would tell of the rows that are in it.
    """

    def __init__(
        self,
        release: SafeSpec,
        declared: Declared,
        limits: dict[str, int | tuple[int, int]] | None = None,
        *,
        size: int | None = None,
    ) -> None:
        self._release, self._declared, self._share = release, declared, search_share(size)
        self._limits = self._release.levels if limits is None else limits
        self._target = release.target
        if self._target is not None:
            self._limits = {**self._limits, self._target: self._finest(self._target)}
        for names in (*((name,) for name in declared.names), *self._widest()):
            self.lattice(names).refuse_large()  # as levels that there are not are refused

    def _finest(self, target: str) -> int:
        """The finest level that a target may have: its values are what the others tell of."""
        level = self._limits.get(target, 0)
        return level if isinstance(level, int) else level[0]

    def _widest(self) -> list[tuple[str, ...]]:
        """The columns that may be searched together; where it is open which, the worst of them."""
        slices = self._release.slices
        if isinstance(slices, Slicing):
            deep = sorted(self._declared.names, key=lambda name: -self.lattice((name,)).size)
            return [tuple(deep[: slices.columns])]
        return list(slices) or [self._declared.names]

    def lattice(self, names: tuple[str, ...]) -> Lattice:
        """The schemes that are searched, for some of the columns."""
        return lattice_between(names, [self._declared.height(name) for name in names], self._limits)

    def shares(self) -> tuple[float, ...]:
        """One choice."""
        return (self._share,)

    def limits(self, names: tuple[str, ...]) -> dict[str, tuple[int, int]]:
        """Those of the lattice."""
        lattice = self.lattice(names)
        return dict(zip(names, zip(lattice.low, lattice.high, strict=True), strict=True))

    def counted(self, table: Table) -> Counted | SpreadCounted:
        """The table at level 0."""
        return counted(table, self._declared)

    def product(
        self, whole: Counted | SpreadCounted, split: Split, context: MakeContext
    ) -> Product:
        """Search, roll up, draw, drop what is rare."""
        chosen, draw = self._chosen(whole, split, context)
        return self._leveled(whole, chosen, draw, context)

    def _leveled(
        self, whole: Counted | SpreadCounted, chosen: Chosen, draw: Draw, context: MakeContext
    ) -> Product:
        rolled = whole.rolled(chosen.levels)
        return _by_levels(rolled, self._declared, self._release, draw, context)

    def _chosen(
        self, whole: Counted | SpreadCounted, split: Split, context: MakeContext
    ) -> tuple[Chosen, Draw]:
        """The scheme, and what it is drawn with."""
        context.step("search")
        among = {draw.ramp: draw for draw in draws(split, self._release, context.bits)}
        rollups = (
            SpreadRollups(whole, min(one.a for one in among))
            if isinstance(whole, SpreadCounted)
            else Rollups(whole.hierarchies, whole.frequencies)
        )
        chosen = search(
            rollups,
            self.lattice(whole.names),
            list(among),
            epsilon=as_written(split.selections[0]),
            power=self._power,
            weights=self._weights(whole.names),
            bits=context.bits,
            target=None if self._target is None else whole.names.index(self._target),
            progress=context.progress,
        )
        return chosen, among[chosen.ramp]

    @property
    def _power(self) -> int:
        return POWERS[self._release.objective or "rows"]

    def _weights(self, names: Sequence[str]) -> Floats:
        return np.array([self._declared.columns[name].weight for name in names])


class Cut(Searched):
    """Safe Mondrian: a scheme is chosen as above, and its cells are cut further, privately.

    Only along columns that list their values: a box of values that nobody listed would reach
    as far as the values met. Other columns stay at the level that was chosen, and so do those
    whose levels the spec limits.
    """

    def __init__(
        self,
        release: SafeSpec,
        declared: Declared,
        limits: dict[str, int | tuple[int, int]] | None = None,
        *,
        size: int | None = None,
    ) -> None:
        super().__init__(release, declared, limits, size=size)
        if not any(self.cuts(name) for name in declared.names):
            raise IncrowdError(
                "`scheme: mondrian` needs a column with listed values and without `levels`. Use "
                "`scheme: search`."
            )

    def cuts(self, name: str) -> bool:
        """Whether a column may be cut."""
        return not self._declared.is_open(name) and name not in self._release.levels

    def shares(self) -> tuple[float, ...]:
        """The search, and each round of cuts, in equal parts."""
        return (self._share,) * (1 + ROUNDS)

    def counted(self, table: Table) -> Counted:
        """The table at level 0, which has to be here to be cut."""
        return self.require_local(super().counted(table))

    @staticmethod
    def require_local(found: Counted | SpreadCounted) -> Counted:
        """Return tuples that are here; refuse others before anything is spent.

        Whether cells are cut is published. If tables with too many tuples were rolled up without
        cuts, how many tuples there are would decide it.
        """
        if isinstance(found, SpreadCounted):
            raise IncrowdError(
                "Table: too many distinct tuples for `scheme: mondrian` on one machine. Use "
                "`scheme: search`, or fewer or coarser columns."
            )
        return found

    def product(
        self, whole: Counted | SpreadCounted, split: Split, context: MakeContext
    ) -> Product:
        """Search, cut the cells, draw, drop below k."""
        whole = self.require_local(whole)
        chosen, draw = self._chosen(whole, split, context)
        axes = {
            at: contiguous(axis)
            for at, (name, axis) in enumerate(zip(whole.names, whole.axes, strict=True))
            if self.cuts(name)
        }
        if not axes:  # of a slice, perhaps, none of whose columns can be cut
            return self._leveled(whole, chosen, draw, context)
        boxes = self._cut(axes, whole, chosen, split, context.bits)
        context.step("draw")
        labels, codes = _looks(axes, boxes, whole, chosen.levels)
        drawn = draw.shown(merged(codes, whole.frequencies.counts), context.bits)
        levels = [None if at in axes else level for at, level in enumerate(chosen.levels)]
        return Product(
            data=cells(
                dict(zip(whole.names, labels, strict=True)), drawn,
                weighted=self._release.rows == "counted", engine=context.engine,
            ),
            original=whole,
            shown=Shown(labels, drawn, tuple(levels), draw.noise),
            columns=self._declared.columns,
            axes=tuple(axes.get(at, axis) for at, axis in enumerate(whole.axes)),
            parameters=draw.parameters,
            findings=(make_finding("LABELS_CUT_LOCALLY"),),
        )  # fmt: skip

    def _cut(
        self,
        axes: dict[int, Axis],
        whole: Counted,
        chosen: Chosen,
        split: Split,
        bits: Randomness,
    ) -> Cells:
        """The cells of the chosen scheme, cut further."""
        weights = self._weights(whole.names)
        shares = weights / weights.sum()
        return cut(
            list(axes.values()),
            positions(list(axes.values()), whole.frequencies.codes[:, list(axes)]),
            whole.frequencies.counts,
            _cells_of(axes, whole, chosen.levels, shares),
            ramp=chosen.ramp,
            epsilons=[as_written(epsilon) for epsilon in split.selections[1:]],
            power=self._power,
            shares=shares[list(axes)],
            bits=bits,
        )


def _looks(
    axes: dict[int, Axis], boxes: Cells, whole: Counted, levels: Sequence[int]
) -> tuple[tuple[Sequence[str | None], ...], Codes]:
    """The labels of each column, and for each tuple which of them it shows."""
    labels: list[Sequence[str | None]] = []
    codes = np.zeros_like(whole.frequencies.codes)
    for at, (hierarchy, level) in enumerate(zip(whole.hierarchies, levels, strict=True)):
        if at in axes:
            place = list(axes).index(at)
            texts, own = axes[at].labels(boxes.low[:, place], boxes.high[:, place])
            labels.append(texts)
            codes[:, at] = own[boxes.members]
        else:
            labels.append(hierarchy.labels[level])
            group = hierarchy.groups[level][whole.frequencies.codes[:, at]]
            codes[:, at] = hierarchy.by_label(level)[group]
    return tuple(labels), codes


def _by_levels(
    whole: Counted | SpreadCounted,
    declared: Declared,
    release: SafeSpec,
    draw: Draw,
    context: MakeContext,
) -> Product:
    """The cells of a scheme of levels, drawn; what is rare is dropped."""
    context.step("draw")
    here, drawn, apart = _drawn(whole, draw, context.bits, release.target)
    labels = [
        hierarchy.labels[level]
        for hierarchy, level in zip(here.hierarchies, here.levels, strict=True)
    ]
    looks = dict(zip(here.names, labels, strict=True))
    return Product(
        data=cells(looks, drawn, weighted=release.rows == "counted", engine=context.engine),
        original=here,
        shown=Shown(tuple(labels), drawn, here.levels, draw.noise),
        columns=declared.columns,
        axes=here.axes,
        parameters=draw.parameters,
        crowd=draw.crowd,
        target=release.target,
        apart=apart,
    )


def _drawn(
    whole: Counted | SpreadCounted, draw: Draw, bits: Randomness, target: str | None
) -> tuple[Counted, Frequencies, Apart | None]:
    """The cells by what they show; those that are shown; and what is known of cells not here."""
    if isinstance(whole, Counted):
        here = whole.by_label()
        return here, draw.shown(here.frequencies, bits), None
    found = whole.drawn(draw, bits)
    here = Counted(whole.names, whole.hierarchies, whole.levels, found.original)
    held = None
    if target is not None:
        held = whole.column(whole.names.index(target)).by_label().frequencies
    return here, found.shown, Apart(found.rest, whole.some(), held)


def contiguous(axis: Axis) -> Axis:
    """The axis, taken for a tree where some group of its hierarchy is no run of neighbours."""
    return axis if axis.ordered and axis.has_runs else Axis(axis.hierarchy, ordered=False)


def _cells_of(
    axes: dict[int, Axis], whole: Counted, levels: Sequence[int], shares: Floats
) -> Cells:
    """The cells of a scheme as boxes over the declared domain of some columns."""
    groups = np.column_stack(
        [h.groups[level][whole.frequencies.codes[:, at]]
         for at, (h, level) in enumerate(zip(whole.hierarchies, levels, strict=True))]
    ).astype(np.int32)  # fmt: skip
    _, first, place = np.unique(keys(groups), return_index=True, return_inverse=True)
    groups = groups[first]
    low, high, beside = [], [], np.zeros(len(groups))
    for at, level in enumerate(levels):
        if at in axes:
            one, other = axes[at].runs(np.full(len(groups), level), groups[:, at])
            low.append(one)
            high.append(other)
        else:
            lost = normalised(whole.hierarchies[at])[level]
            beside += shares[at] * (1 - lost[groups[:, at]])
    return Cells(np.column_stack(low), np.column_stack(high), place, beside)


def _levels(release: SafeSpec, declared: Declared) -> dict[str, int]:
    """The levels of the spec; half way up, rounded down, where it names none."""
    given = release.levels
    levels = {}
    for name in declared.names:
        height = declared.height(name)
        level = given.get(name, (height - 1) // 2)
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
