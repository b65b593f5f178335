"""Cells of a node, counted from those of a coarser node by the columns that are refined alone.

A search that goes down a lattice step by step knows for each tuple which cell it was in. The cells
one step finer are numbered within those: few numbers, so that they are counted in place, and only
the refined column is read. Cells of too few rows are given up, with their tuples.

Where several steps from a node are likely to be asked for, its tuples are merged once at the node
that takes all of them. What lies between is then counted from these fewer tuples.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from incrowd.anonymize.lattice import Node, Rollups
from incrowd.arrays import Codes, Counts, Floats, Places

_FEWER = 4  # times fewer possible cells than tuples make it worth to merge these
_DENSE = 1 << 12  # so many numbers, or half as many as tuples, are counted at once
_ALIVE = 0.7  # if a smaller part of the tuples is in cells that count, the others are dropped

Keys = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Refinement:
    """A column that goes from one level to a finer one."""

    at: int
    fine: int
    coarse: int


@dataclass(frozen=True, eq=False)
class _Division:
    """How a step divides groups: the part that each tuple is in, and the code of each part."""

    parts: npt.NDArray[np.unsignedinteger]
    width: int
    codes: Codes  # by group and part; 0 where a group has fewer parts


@dataclass(frozen=True, eq=False)
class _Tuples:
    """Tuples that cells are counted from; ``rows`` are their places in the table, None: all."""

    rows: Places | None
    weights: Floats | None
    size: int
    finest: Node

    def allows(self, steps: Sequence[Refinement]) -> bool:
        """Return whether the tuples are fine enough for some steps."""
        return all(step.fine >= self.finest[step.at] for step in steps)


@dataclass(frozen=True, eq=False)
class _Hop:
    """Steps taken at once; which of the numbers that cells may have then are those of cells."""

    steps: tuple[Refinement, ...]
    counting: Places
    numbers: int

    def locate(self, keys: Keys) -> Keys:
        """Return the cell of each tuple by its number; one past the last if it counts no more."""
        cells = np.full(self.numbers, len(self.counting), dtype=np.intp)
        cells[self.counting] = np.arange(len(self.counting))
        return cells[keys]


class Cells:
    """The cells of a node that count, with their rows, and their codes column by column."""

    def __init__(
        self, sizes: Counts, codes: Codes, parent: Cells | None = None, hops: Sequence[_Hop] = ()
    ) -> None:
        self.sizes, self.codes = sizes, codes
        self.parent, self.hops = parent, tuple(hops)
        self.wide: tuple[_Tuples, Keys] | None = None
        self.merged: tuple[_Tuples, Keys] | None = None
        self.unplaced: tuple[_Tuples, Keys, bool] | None = None  # numbers before the last hop

    def __len__(self) -> int:
        return len(self.sizes)


class CellRefiner:
    """Cells of more than ``threshold`` rows, counted step by step from those of the coarsest node.

    The cells of a node always stand in one order, by the cells they are parts of and then by part,
    whichever tuples they were counted from. So tuples are found in them without counting again.
    """

    def __init__(self, rollups: Rollups, low: Node, threshold: int) -> None:
        frequencies = rollups.frequencies
        is_unweighted = bool((frequencies.counts == 1).all())
        weights = None if is_unweighted else frequencies.counts.astype(np.float64)
        self._rollups, self._threshold = rollups, threshold
        self._all = _Tuples(None, weights, len(frequencies), low)
        self._divisions: dict[Refinement, _Division] = {}

    def count_coarsest(self, node: Node) -> Cells:
        """Return the cells of a node to start from."""
        keys, sizes = self._rollups.count_cells(node)
        counting = sizes > self._threshold
        codes = self._rollups.decode_keys(node, keys[counting])
        cells = Cells(sizes[counting], np.ascontiguousarray(codes.T))
        places = np.where(counting, np.cumsum(counting) - 1, len(cells))
        ids = places[self._rollups.locate_cells(node, keys)] if len(keys) else places
        cells.wide = _drop_lost(self._all, ids, len(cells))
        return cells

    def refine(
        self, cells: Cells, steps: Sequence[Refinement], soon: Sequence[Refinement]
    ) -> Cells:
        """Return the cells after some steps; ``soon`` are others that may be asked for next."""
        merged = self._find_merged(cells, steps, soon)
        tuples, ids = merged or self._find_wide(cells)
        sizes, codes, hops = cells.sizes, cells.codes, list[_Hop]()
        keys = ids
        for bundle in self._bundle_steps(steps, len(cells), tuples.size):
            if hops:
                ids = hops[-1].locate(keys)
            keys, width = self._number_parts(tuples, ids, bundle)
            possible = len(sizes) * width
            rows = np.bincount(keys, weights=tuples.weights, minlength=possible)[:possible]
            counting = np.flatnonzero(rows > self._threshold)
            hops.append(_Hop(tuple(bundle), counting, possible + width))
            sizes, codes = (
                rows[counting].astype(np.int64),
                self._find_codes(codes, bundle, counting),
            )
        refined = Cells(sizes, codes, cells, hops)
        refined.unplaced = (tuples, keys, merged is not None)
        return refined

    def _bundle_steps(
        self, steps: Sequence[Refinement], cells: int, tuples: int
    ) -> Iterator[Sequence[Refinement]]:
        """Yield steps that are taken at once, as long as that leaves few numbers."""
        limit = max(tuples // 2, _DENSE)
        bundle: list[Refinement] = []
        numbers = cells + 1
        for step in steps:
            width = self._get_division(step).width
            if bundle and numbers * width > limit:
                yield bundle
                bundle, numbers = [], cells + 1
            bundle.append(step)
            numbers *= width
        yield bundle

    def _number_parts(
        self, tuples: _Tuples, ids: Keys, steps: Sequence[Refinement]
    ) -> tuple[Keys, int]:
        """Return for each tuple the number of its part of its cell, and how many a cell has."""
        keys, width = ids, 1
        for step in steps:
            division = self._get_division(step)
            keys = keys * division.width
            keys += division.parts if tuples.rows is None else division.parts[tuples.rows]
            width *= division.width
        return keys, width

    def _find_codes(self, codes: Codes, steps: Sequence[Refinement], counting: Places) -> Codes:
        """Return the codes of parts of cells, by their numbers, from those of the cells."""
        cells, parts = counting, list[Places]()
        for step in reversed(steps):
            cells, part = np.divmod(cells, self._get_division(step).width)
            parts.append(part)
        finer = codes[:, cells]
        for step, part in zip(reversed(steps), parts, strict=True):
            finer[step.at] = self._get_division(step).codes[finer[step.at], part]
        return finer

    def _find_wide(self, cells: Cells) -> tuple[_Tuples, Keys]:
        """Return the tuples of the table, and the cell of each."""
        if cells.wide is None:
            if cells.unplaced is not None and not cells.unplaced[2]:
                tuples, keys, _ = cells.unplaced
                ids = cells.hops[-1].locate(keys)
                cells.unplaced = None
            else:
                assert cells.parent is not None
                tuples, ids = self._find_wide(cells.parent)
                for hop in cells.hops:
                    ids = hop.locate(self._number_parts(tuples, ids, hop.steps)[0])
            cells.wide = _drop_lost(tuples, ids, len(cells))
        return cells.wide

    def _find_merged(
        self, cells: Cells, steps: Sequence[Refinement], soon: Sequence[Refinement]
    ) -> tuple[_Tuples, Keys] | None:
        """Return merged tuples that are fine enough for some steps, if there are or may be any."""
        if cells.unplaced is not None and cells.unplaced[2]:
            tuples, keys, _ = cells.unplaced
            if tuples.allows(steps):
                cells.merged = _drop_lost(tuples, cells.hops[-1].locate(keys), len(cells))
            cells.unplaced = None
        if cells.merged is None or not cells.merged[0].allows(steps):
            cells.merged = self._merge_tuples(cells, steps, soon)
        return cells.merged

    def _merge_tuples(
        self, cells: Cells, steps: Sequence[Refinement], soon: Sequence[Refinement]
    ) -> tuple[_Tuples, Keys] | None:
        """Return the tuples merged after some steps and as many of the others as fit."""
        tuples, ids = self._find_wide(cells)
        numbers, included = len(cells) + 1, list[Refinement]()
        refined = {step.at for step in steps}
        for step in (*steps, *(step for step in soon if step.at not in refined)):
            width = self._get_division(step).width
            if numbers * width * _FEWER <= tuples.size:
                numbers *= width
                included.append(step)
            elif step.at in refined:
                return None
        if len(included) <= len(steps):
            return None
        keys, width = self._number_parts(tuples, ids, included)
        rows = np.bincount(keys, weights=tuples.weights, minlength=numbers)
        met = np.flatnonzero(rows[: len(cells) * width])
        places = np.zeros(numbers, dtype=np.intp)
        places[keys] = np.arange(tuples.size)  # any tuple of a cell has its codes
        finest = list(tuples.finest)
        for step in included:
            finest[step.at] = step.fine
        for at in range(len(finest)):
            if at not in {step.at for step in included}:
                finest[at] = self._rollups.hierarchies[at].height  # no step of it is allowed
        rows_at = places[met] if tuples.rows is None else tuples.rows[places[met]]
        merged = _Tuples(rows_at, rows[met].astype(np.float64), len(met), tuple(finest))
        return merged, met // width

    def _get_division(self, step: Refinement) -> _Division:
        if step not in self._divisions:
            hierarchy = self._rollups.hierarchies[step.at]
            fine, coarse = hierarchy.groups[step.fine], hierarchy.groups[step.coarse]
            parents = np.zeros(len(hierarchy.labels[step.fine]), dtype=np.intp)
            parents[fine] = coarse
            groups = len(hierarchy.labels[step.coarse])
            order = np.argsort(parents, kind="stable")
            starts = np.searchsorted(parents[order], np.arange(groups))
            part = np.empty(len(parents), dtype=np.intp)
            part[order] = np.arange(len(parents)) - starts[parents[order]]
            width = int(part.max()) + 1
            codes = np.zeros((groups, width), dtype=np.int32)
            codes[parents, part] = np.arange(len(parents))
            small = part.astype(np.min_scalar_type(width))
            parts = small[fine][self._rollups.frequencies.codes[:, step.at]]
            self._divisions[step] = _Division(parts, width, codes)
        return self._divisions[step]


def _drop_lost(tuples: _Tuples, ids: Keys, cells: int) -> tuple[_Tuples, Keys]:
    """Return the tuples without those in no cell that counts, if these are many."""
    is_alive = ids < cells
    if np.count_nonzero(is_alive) >= _ALIVE * tuples.size:
        return tuples, ids
    places = np.flatnonzero(is_alive)
    rows = places if tuples.rows is None else tuples.rows[places]
    weights = None if tuples.weights is None else tuples.weights[places]
    return _Tuples(rows, weights, len(places), tuples.finest), ids[places]
