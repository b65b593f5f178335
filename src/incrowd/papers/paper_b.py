"""Paper B (Holohan and others) computed again: (k,epsilon)-anonymity, its error, risk and cost.

Every random draw comes from a seed, so that two runs agree in everything but run times.
:func:`reproduce` writes the tables, the figures, the numbers behind them, and a page.
"""

from __future__ import annotations

import math
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import numpy.typing as npt

from incrowd.anonymize import kepsilon
from incrowd.anonymize.kepsilon import Mask, Noise, Steps
from incrowd.anonymize.recoding import Boxes, boxes, cost, positions
from incrowd.engine.count import Rows, count_rows
from incrowd.errors import Floats
from incrowd.evaluating import axes_of
from incrowd.folder import fill
from incrowd.grouping import Classes, classes, lattice_of
from incrowd.measure.linking import Estimate, linking_risk, repeated
from incrowd.noisy import NoisyRows, expected_error, noisy_rows
from incrowd.papers import paper_b_data as paper
from incrowd.papers.paper_b_data import (
    ALGORITHMS, Cell, Comparison, DataSet, Grid, Grouped, Numbers, Times, Widened,
)  # fmt: skip
from incrowd.privacy.randomness import Randomness, SeededRandomness
from incrowd.spec import Column, Release

FIGURES = 9
STEPS = 2 * 3 + 2 * 3 * len(paper.FULL.ks) + 3 + FIGURES
QUICK_STEPS = 2 * 3 + 2 * 3 * len(paper.QUICK.ks) + 3 + FIGURES
TIMED = 3  # of so many repetitions the shortest counts
COMPARED_K, COMPARED_EPSILON = 10, 8.0  # the setting of Figure 2
UNIFORM = 0.05
_POINTS = 101


def release_of(algorithm: str, k: int) -> Release:
    """The search for classes as the paper has it: OLA chooses among minimal nodes by precision."""
    ola = {"suppression": paper.SUPPRESSION, "loss": "precision", "candidates": "minimal"}
    given = {"method": "k-epsilon", "epsilon": 1.0, "algorithm": algorithm, "k": k}
    return Release.model_validate(given | (ola if algorithm == "ola" else {}))


def seeded(*what: object) -> Randomness:
    """Random bits that the names of an experiment decide, whatever ran before it."""
    return SeededRandomness(zlib.crc32("/".join(map(str, what)).encode()))


def grouping(rows: Rows, columns: dict[str, Column], algorithm: str, k: int) -> Classes:
    """The rows in classes of at least k."""
    axes = axes_of(rows.counted, columns)
    return classes(rows, axes, columns, release_of(algorithm, k), bits=seeded(algorithm, k))


def shown(data: DataSet, rows: Rows, algorithm: str, k: int) -> tuple[Classes, NoisyRows]:
    """The classes of a data set and the rows in them, with noise for epsilon = 1."""
    found = grouping(rows, {**data.quasi, data.attribute: data.noisy}, algorithm, k)
    noisy = noisy_rows(rows, found, {data.attribute: data.noisy}, release_of(algorithm, k))
    return found, noisy


# Figures 3 to 6 --------------------------------------------------------------------------


class Layout:
    """One noisy column laid out by class and value, so that a run costs a few passes over it.

    A row is linked if its noise leaves it at most half way to the next value on that side; how
    many originals lie in an interval is read from a list of counts for every step of a class.
    """

    def __init__(self, data: NoisyRows) -> None:
        (column,) = data.columns
        order = np.lexsort((column.steps, data.members))
        self.members, self.steps = data.members[order], column.steps[order]
        self.starts = np.searchsorted(self.members, np.arange(data.classes))
        self.sizes = np.bincount(self.members, minlength=data.classes)
        self.widths = kepsilon.diameters(self.steps, self.members, data.classes)
        self.inverse = 1 / np.abs(self.steps)
        self._neighbours()
        self._ranks(self.steps[self.starts])

    def _neighbours(self) -> None:
        """Next smaller and larger values of the class, and how many rows have each value."""
        apart = np.diff(self.steps)
        inside = self.members[1:] == self.members[:-1]
        new = np.append(True, (apart != 0) | ~inside)
        value, first = np.cumsum(new) - 1, np.flatnonzero(new)
        far = np.iinfo(np.int64).max
        gaps = np.where(inside, apart, far)[first[1:] - 1]
        alike = np.bincount(value)
        self.below, self.above = np.append(far, gaps)[value], np.append(gaps, far)[value]
        self.alike = alike[value]
        self.alike_below = np.append(0, alike)[value]
        self.alike_above = np.append(alike, 0)[value + 1]

    def _ranks(self, lowest: Steps) -> None:
        """For every step of every class how many rows of all lie before it, in this order."""
        lengths = self.widths + 2
        begins = np.cumsum(lengths) - lengths
        # The place of each row's value, of the step before all, and of the step behind all.
        self.first = begins[self.members]
        self.place = (self.first + self.steps - lowest[self.members]).astype(np.int32)
        self.last = (self.first + self.widths[self.members] + 1).astype(np.int32)
        self.first = self.first.astype(np.int32)
        held = np.bincount(self.place, minlength=int(lengths.sum()))
        self.before = (np.cumsum(held) - held).astype(np.int32)

    def linked(self, noise: Steps) -> tuple[float, float]:
        """The linking risk of a run: ties as successes, and ties shared."""
        double = 2 * noise
        won = (double <= self.above) & (-double <= self.below)
        ties = self.alike + np.where(double == self.above, self.alike_above, 0)
        ties += np.where(-double == self.below, self.alike_below, 0)
        return float(won.mean()), float((won / ties).mean())

    def kept(self, noise: Steps, radii: Floats, *, k: int) -> Mask:
        """Which rows confidence-based k-anonymity keeps."""
        most = np.int64(1 << 30)
        reach = np.minimum(np.floor(radii), most).astype(np.int64)[self.members]
        at = self.place + noise
        low = np.clip(at - reach, self.first, self.last)
        high = np.clip(at + reach + 1, self.first, self.last)
        within = self.before[high] - self.before[low]
        good = (within == 0) | (within >= k)
        left = np.add.reduceat(good, self.starts, dtype=np.int64)
        return np.asarray(good & (left >= k)[self.members])


def noises(widths: Steps, epsilons: Sequence[float]) -> list[tuple[int, Noise]]:
    """For each epsilon its noise, and how many times the smallest epsilon it is."""
    exact = [kepsilon.shares(epsilon, [1.0])[0] for epsilon in epsilons]
    times = [epsilon / min(exact) for epsilon in exact]
    assert all(ratio.denominator == 1 for ratio in times)
    pairs = zip(times, exact, strict=True)
    return [(int(ratio), kepsilon.laplace(widths, epsilon)) for ratio, epsilon in pairs]


def drawn(
    layout: Layout, every: Sequence[tuple[int, Noise]], bits: Randomness
) -> Iterator[Steps]:
    """The noise of one run for each epsilon, from one draw.

    Claim: for each epsilon, alone, exactly the noise that it asks for. If X is geometric with
    ratio q, X // m is geometric with ratio q^m. With a fair sign, where a negative zero is
    drawn again, that is the noise for m times the epsilon; a negative zero of the finer noise
    would be one of the coarser as well.
    """
    (finest,) = (noise for times, noise in every if times == 1)
    fine = finest.draw(layout.members, bits)
    size, negative = np.abs(fine), fine < 0
    for times, noise in every:
        coarse = size // times
        again = np.flatnonzero(negative & (coarse == 0))
        found = np.where(negative, -coarse, coarse)
        found[again] = noise.draw(layout.members[again], bits)
        yield found


def measure(
    data: DataSet, rows: Rows, algorithm: str, k: int, grid: Grid
) -> tuple[Grouped, list[Cell]]:
    """Group once, then run after run for every epsilon and confidence."""
    found, noisy = shown(data, rows, algorithm, k)
    layout = Layout(noisy)
    every = noises(layout.widths, grid.epsilons)
    bits = seeded(data.paper, algorithm, k)
    kinds = 3 + len(grid.confidences)
    values = np.empty((grid.runs, len(every), kinds))
    for run in range(grid.runs):
        for at, noise in enumerate(drawn(layout, every, bits)):
            error = float((np.abs(noise) * layout.inverse).mean())
            lost = [
                (~layout.kept(noise, every[at][1].radius(confidence), k=k)).sum() / data.rows
                for confidence in grid.confidences
            ]
            values[run, at] = (error, *layout.linked(noise), *lost)
    cells = []
    (column,) = noisy.columns
    for at, epsilon in enumerate(grid.epsilons):
        spread = [_estimate(values[:, at, kind]) for kind in range(kinds)]
        predicted = expected_error(replace(column, noise=every[at][1]), noisy.members)
        lost_by = dict(zip(grid.confidences, spread[3:], strict=True))
        cells.append(Cell(data.paper, algorithm, k, epsilon, predicted, *spread[:3], lost_by))
    return _grouped(data, algorithm, k, found, layout), cells


def _estimate(values: Floats) -> Estimate:
    each = iter(values.tolist())
    return repeated(lambda: float(next(each)), len(values))


def _grouped(
    data: DataSet, algorithm: str, k: int, found: Classes, layout: Layout
) -> Grouped:
    n = len(layout.steps)
    return Grouped(
        data=data.paper,
        algorithm=algorithm,
        k=k,
        levels=found.levels,
        suppressed=1 - n / data.rows,
        classes=len(layout.sizes),
        smallest=int(layout.sizes.min()),
        prosecutor=len(layout.sizes) / n,
        diameter_over_mean=float((layout.widths[layout.members] * layout.inverse).mean()),
    )


# Figures 1, 7 and 8 ----------------------------------------------------------------------


def timed(work: Callable[[], object], repetitions: int) -> float:
    """The shortest of some repetitions, in seconds."""
    found = []
    for _ in range(repetitions):
        start = time.perf_counter()
        work()
        found.append(time.perf_counter() - start)
    return min(found)


def widen(
    data: DataSet, rows: Rows, algorithm: str, grid: Grid, repetitions: int
) -> Iterator[Widened]:
    """The epsilon-quasi among the k-quasis: what that loses, and how long it takes."""
    table, names = data.table, (data.attribute,)
    every = {**data.quasi, data.attribute: data.noisy}
    wide = count_rows(table, data.widened, ())
    counts = timed(lambda: count_rows(table, data.quasi, names), repetitions)
    counts_wide = timed(lambda: count_rows(table, data.widened, ()), repetitions)
    for k in grid.ks:
        release, bits = release_of(algorithm, k), seeded("time")
        alone, both = grouping(rows, every, algorithm, k), grouping(wide, data.widened, algorithm, k)
        noisy_data, (width, error) = {data.attribute: data.noisy}, _attribute(data, wide, both)

        def noise(found: Classes = alone, release: Release = release) -> object:
            noisy = noisy_rows(rows, found, noisy_data, release)
            return noisy.columns[0].noise.draw(noisy.members, bits)

        search = timed(lambda k=k: grouping(rows, every, algorithm, k), repetitions)  # type: ignore[misc]
        search_wide = timed(lambda k=k: grouping(wide, data.widened, algorithm, k), repetitions)  # type: ignore[misc]
        counted = wide.counted.frequencies.counts
        yield Widened(
            data.paper, algorithm, k,
            _loss(rows, data.quasi, alone), _loss(wide, data.quasi, both), width, error,
            float(counted[~both.shown].sum() / data.rows),
            _nodes(rows, release), _nodes(wide, release),
            Times(counts, search, timed(noise, repetitions)), Times(counts_wide, search_wide, 0.0),
        )  # fmt: skip


def _loss(rows: Rows, quasi: dict[str, Column], found: Classes) -> float:
    """The mean precision lost by the k-quasis proper, over the rows shown."""
    if found.levels is not None:
        heights = [hierarchy.height for hierarchy in rows.counted.hierarchies]
        levels = zip(found.levels, heights, strict=True)
        return float(np.mean([level / (height - 1) for level, height in levels][: len(quasi)]))
    axes = axes_of(rows.counted, quasi | dict.fromkeys(rows.counted.names[len(quasi) :], _ANY))
    points = positions(axes, rows.counted.frequencies.codes)
    held = boxes(points, rows.counted.frequencies.counts, found.members)
    proper = Boxes(held.low[:, : len(quasi)], held.high[:, : len(quasi)], held.sizes)
    return float(np.average(cost(axes[: len(quasi)], proper), weights=held.sizes))
