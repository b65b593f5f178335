"""Safe Mondrian: the cells of a scheme cut further, privately.

**Cuts.** A cell is a box over the declared domain: a run of values on an ordered column, a group
of the tree on any other. It may stay as it is, or be cut along one column: at the middle of its
run, or into the parts of its group (null, and what is outside the domain, apart). No cut depends
on where the rows lie, so where a box ends does not depend on anybody's value. That holds for
listed domains: on an axis of values met, a group would reach as far as those do. So a column that
does not list its values is no axis here; its cells stay at their level.

**Choice.** Each cell has one candidate per column, and staying. A candidate scores the sum over
the resulting cells of w psi(rows), as in :mod:`incrowd.anonymize.safe_search`: adding a row raises
every candidate of its own cell by 0 to W D, and touches no other cell. So report noisy max with
that sensitivity in every cell at once satisfies epsilon (cells are disjoint, and each row is in
one); several rounds compose. Staying gets a bonus that depends on epsilon and on the number of
columns alone, half of what the noise of all columns is likely to add: a cut that is worth nothing
is still taken now and then.

Cells without rows are not looked at. What they would be cut into shows nowhere, since nothing
of them is released; so leaving them out changes no output.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from incrowd.anonymize.safe_search import Ramp, W, weigh_detail
from incrowd.arrays import Codes, Counts, Floats, Members
from incrowd.codes.axis import Axis
from incrowd.codes.frequency import number_tuples
from incrowd.privacy.randomness import Randomness
from incrowd.privacy.selection import sample_one_sided_noise

_RELUCTANCE = 0.5  # a cut must gain this share of what the columns' noise is likely to add


@dataclass(frozen=True, eq=False)
class CellPartition:
    """Boxes over the declared domain, and the one that each point lies in.

    ``beside`` is what each cell keeps in columns that are no axes, of the detail of all columns.
    """

    low: Codes
    high: Codes
    members: Members
    beside: Floats


def cut_cells(
    axes: Sequence[Axis],
    points: Codes,
    counts: Counts,
    cells: CellPartition,
    *,
    ramp: Ramp,
    epsilons: Sequence[Fraction],
    power: int,
    shares: Floats,
    bits: Randomness,
) -> CellPartition:
    """Cut every cell once for each epsilon, or leave it: private at the epsilons' sum.

    ``shares`` are what the axes weigh of all columns, whose shares add up to 1.
    """
    is_done = np.zeros(len(cells.low), dtype=bool)
    for epsilon in epsilons:
        cells, is_done = _CutRound(axes, points, counts, cells, ramp, power, shares).cut_cells(
            epsilon, is_done, bits
        )
    return cells


class _CutRound:
    """One cut of every cell."""

    def __init__(
        self,
        axes: Sequence[Axis],
        points: Codes,
        counts: Counts,
        cells: CellPartition,
        ramp: Ramp,
        power: int,
        shares: Floats,
    ) -> None:
        self._axes, self._points, self._counts, self._cells = axes, points, counts, cells
        self._ramp, self._power, self._shares = ramp, power, shares
        self._kept = np.column_stack(
            [
                share * (1 - axis.compute_cost(cells.low[:, at], cells.high[:, at]))
                for at, (axis, share) in enumerate(zip(axes, shares, strict=True))
            ]
        )
        # Column by column: a cell's detail is the same float whatever cells stand beside it.
        self._whole = cells.beside
        for column_detail in self._kept.T:
            self._whole = self._whole + column_detail

    def cut_cells(
        self, epsilon: Fraction, is_done: npt.NDArray[np.bool_], bits: Randomness
    ) -> tuple[CellPartition, npt.NDArray[np.bool_]]:
        """Return the cells after the cut, and which of them stay as they are from now on."""
        number, columns = len(self._cells.low), len(self._axes)
        scores = np.zeros((number, columns + 1), dtype=np.int64)
        possible = np.zeros((number, columns + 1), dtype=bool)
        for at in range(columns):
            possible[:, at] = self._cells.low[:, at] < self._cells.high[:, at]
            scores[:, at] = self._score_cuts(self._find_parts(at), at)
        rows = np.bincount(self._cells.members, self._counts, minlength=number).astype(np.int64)
        scores[:, columns] = self._weigh_detail(self._whole) * self._ramp.compute_psi(rows)
        possible[:, columns] = True
        sensitivity = W * self._ramp.d
        bonus = math.ceil(_RELUCTANCE * sensitivity / float(epsilon) * math.log(columns + 1))
        scores[:, columns] += bonus
        noise = sample_one_sided_noise(
            scores.size, sensitivity=sensitivity, epsilon=epsilon, bits=bits
        ).reshape(scores.shape)
        noisy = np.where(possible, scores + noise, np.iinfo(np.int64).min)
        chosen_columns = np.where(is_done, columns, np.argmax(noisy, axis=1))
        return self._apply_cuts(chosen_columns, columns)

    def _weigh_detail(self, detail: Floats) -> Counts:
        return weigh_detail(detail, self._power)

    def _find_parts(self, at: int) -> npt.NDArray[np.int64]:
        """Return for each point the part of its cell it would fall in if the column were cut."""
        axis, position = self._axes[at], self._points[:, at]
        low = self._cells.low[self._cells.members, at]
        high = self._cells.high[self._cells.members, at]
        if not axis.ordered:
            return axis.find_parts(position, axis.find_levels(low, high)).astype(np.int64)
        values = axis.hierarchy.null
        middle = (low + np.minimum(high, values - 1)) // 2
        return np.where(position >= values, 2 + position - values, position > middle)

    def _find_runs(
        self, cells: Members, parts: npt.NDArray[np.int64], at: int
    ) -> tuple[Codes, Codes]:
        """Return from where to where parts of cells reach on the column that was cut."""
        axis = self._axes[at]
        low, high = self._cells.low[cells, at], self._cells.high[cells, at]
        values = axis.hierarchy.null
        if axis.ordered:
            middle = (low + np.minimum(high, values - 1)) // 2
            first = np.select([parts == 0, parts == 1], [low, middle + 1], values + parts - 2)
            last = np.select(
                [parts == 0, parts == 1], [middle, np.minimum(high, values - 1)], values + parts - 2
            )
            return first.astype(np.int32), last.astype(np.int32)
        return axis.find_runs(
            np.maximum(axis.find_levels(low, high) - 1, 0), parts.astype(np.int32)
        )

    def _score_cuts(self, parts: npt.NDArray[np.int64], at: int) -> Counts:
        """Return what cutting each cell along a column scores."""
        width = int(parts.max(initial=0)) + 1
        distinct, place = np.unique(self._cells.members * width + parts, return_inverse=True)
        rows = np.bincount(place, self._counts).astype(np.int64)
        cells, part = distinct // width, distinct % width
        low, high = self._find_runs(cells, part, at)
        cut_detail = self._shares[at] * (1 - self._axes[at].compute_cost(low, high))
        detail = self._whole[cells] - self._kept[cells, at] + cut_detail
        gains = self._weigh_detail(detail) * self._ramp.compute_psi(rows)
        scores = np.zeros(len(self._cells.low), dtype=np.int64)
        np.add.at(scores, cells, gains)
        return scores

    def _apply_cuts(
        self, chosen_columns: npt.NDArray[np.int64], columns: int
    ) -> tuple[CellPartition, npt.NDArray[np.bool_]]:
        """Return the cells that the chosen cuts make."""
        members = self._cells.members
        part = np.zeros(len(members), dtype=np.int64)
        for at in range(columns):
            places = chosen_columns[members] == at
            if places.any():
                part[places] = self._find_parts(at)[places]
        numbers = number_tuples(np.column_stack([members, part]).astype(np.int32))
        _, starts, place = np.unique(numbers, return_index=True, return_inverse=True)
        cells, parts = members[starts], part[starts]
        low, high = self._cells.low[cells].copy(), self._cells.high[cells].copy()
        for at in range(columns):
            places = np.flatnonzero(chosen_columns[cells] == at)
            if len(places):
                low[places, at], high[places, at] = self._find_runs(
                    cells[places], parts[places], at
                )
        partition = CellPartition(low, high, place, self._cells.beside[cells])
        return partition, chosen_columns[cells] == columns
