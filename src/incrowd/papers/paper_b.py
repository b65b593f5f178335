"""Paper B (Holohan and others) computed again: (k,epsilon)-anonymity, its error, risk and cost.

Every random draw comes from a seed, so that two runs agree in everything but run times.
:func:`reproduce` writes the tables, the figures, the numbers behind them, and a page.
"""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from incrowd.anonymize import k_epsilon
from incrowd.arrays import Floats, Steps
from incrowd.codes.axis import ClassBounds, bound_classes, locate_points
from incrowd.codes.counted_table import DistinctRows
from incrowd.engine.count import count_tuples_with_kept
from incrowd.measure.linkage import compute_run_mean, linking_risk
from incrowd.methods.k_anonymity.classes import EquivalenceClasses, make_lattice
from incrowd.methods.k_epsilon.loss import compute_expected_error
from incrowd.methods.k_epsilon.rows import NoisyRows, make_noisy_rows
from incrowd.papers import paper_b_data as paper
from incrowd.papers.paper_b_data import (
    DataSet,
    ExperimentGrid,
    group_noisy_rows,
    group_rows,
    make_release_spec,
    make_seeded_bits,
)
from incrowd.privacy.k_epsilon import ClassNoise, make_laplace_noise, split_epsilon
from incrowd.release.folder import fill_folder
from incrowd.spec.build import ColumnHierarchies
from incrowd.spec.model import Column
from incrowd.spec.release import KEpsilonSpec

if TYPE_CHECKING:
    from incrowd.papers.paper_a_figures import Figure

T = TypeVar("T")
FIGURES = 9
STEPS = 2 * 3 + 2 * 3 * len(paper.FULL.ks) + 3 + FIGURES
QUICK_STEPS = 2 * 3 + 2 * 3 * len(paper.QUICK.ks) + 3 + FIGURES
TIMED = 3  # of so many repetitions the shortest counts
COMPARED_K, COMPARED_EPSILON = 10, 8.0  # the setting of Figure 2
UNIFORM = 0.05
_POINTS = 101
_FAR = 1 << 29  # steps; no class is as wide, and twice as much fits into 32 bits


# Figures 3 to 6 --------------------------------------------------------------------------


class ClassLayout:
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
        self.widths = k_epsilon.compute_diameters(self.steps, self.members, data.classes)
        self.inverse = 1 / np.abs(self.steps)
        self._set_neighbors()
        self._set_ranks(self.steps[self.starts])

    def _set_neighbors(self) -> None:
        """Set the next smaller and larger values of the class, and the rows of each value."""
        differences = np.diff(self.steps)
        inside = self.members[1:] == self.members[:-1]
        new = np.append(True, (differences != 0) | ~inside)
        value, starts = np.cumsum(new) - 1, np.flatnonzero(new)
        infinity = np.iinfo(np.int64).max
        gaps = np.where(inside, differences, infinity)[starts[1:] - 1]
        value_rows = np.bincount(value)
        self.below, self.above = np.append(infinity, gaps)[value], np.append(gaps, infinity)[value]
        self.alike = value_rows[value]
        self.alike_below = np.append(0, value_rows)[value]
        self.alike_above = np.append(value_rows, 0)[value + 1]

    def _set_ranks(self, lowest: Steps) -> None:
        """Set for every step of every class how many rows of all lie before it, in this order."""
        lengths = self.widths + 2
        begins = np.cumsum(lengths) - lengths
        # Of each row: where its class begins, where that ends, and where its value is.
        self.first = begins[self.members].astype(np.int32)
        self.last = (begins + self.widths + 1)[self.members].astype(np.int32)
        self.place = (begins - lowest)[self.members].astype(np.int32) + self.steps.astype(np.int32)
        place_rows = np.bincount(self.place, minlength=int(lengths.sum()))
        self.before = (np.cumsum(place_rows) - place_rows).astype(np.int32)

    def compute_linking_risk(self, noise: Steps) -> tuple[float, float]:
        """Compute the linking risk of a run: ties as successes, and ties shared."""
        double = 2 * noise
        won = (double <= self.above) & (-double <= self.below)
        ties = self.alike + np.where(double == self.above, self.alike_above, 0)
        ties += np.where(-double == self.below, self.alike_below, 0)
        return float(won.mean()), float((won / ties).mean())

    def count_kept_rows(self, noise: Steps, radii: Sequence[Floats], *, k: int) -> list[int]:
        """Count the rows that confidence-based k-anonymity keeps, for each list of radii."""
        at = self.place + np.clip(noise, -_FAR, _FAR).astype(np.int32)
        kept_rows = []
        for radius in radii:
            reach = np.minimum(np.floor(radius), _FAR).astype(np.int32)[self.members]
            low = np.minimum(np.maximum(at - reach, self.first), self.last)
            high = np.minimum(np.maximum(at + reach + 1, self.first), self.last)
            within = self.before[high] - self.before[low]
            good = (within == 0) | (within >= k)
            rows_left = np.add.reduceat(good, self.starts, dtype=np.int64)
            kept_rows.append(int(rows_left[rows_left >= k].sum()))
        return kept_rows


def measure_setting(
    data: DataSet, algorithm: str, k: int, rows: DistinctRows, grid: ExperimentGrid
) -> tuple[paper.ClassSummary, list[paper.ResultCell]]:
    """Group once, then run after run for every epsilon and confidence."""
    setting, noisy = group_noisy_rows(data, rows, algorithm, k)
    layout = ClassLayout(noisy)
    noises = paper.make_noises(layout.widths, grid.epsilons)
    bits = make_seeded_bits(data.paper, algorithm, k)
    kinds = 3 + len(grid.confidences)
    values = np.empty((grid.runs, len(noises), kinds))
    for run in range(grid.runs):
        for at, noise in enumerate(paper.draw_nested_noise(layout.members, noises, bits)):
            error = float((np.abs(noise) * layout.inverse).mean())
            radii = [noises[at][1].compute_radius(confidence) for confidence in grid.confidences]
            kept_rows = layout.count_kept_rows(noise, radii, k=k)
            lost = [(len(layout.steps) - rows_left) / data.rows for rows_left in kept_rows]
            values[run, at] = (error, *layout.compute_linking_risk(noise), *lost)
    cells = []
    (column,) = noisy.columns
    for at, epsilon in enumerate(grid.epsilons):
        spread = [compute_run_mean(values[:, at, kind]) for kind in range(kinds)]
        predicted_error = compute_expected_error(
            replace(column, noise=noises[at][1]), noisy.members
        )
        lost_by = dict(zip(grid.confidences, spread[3:], strict=True))
        mean, risk, tie_share = spread[:3]
        cells.append(
            paper.ResultCell(
                data.paper, algorithm, k, epsilon, predicted_error, mean, risk, tie_share, lost_by
            )
        )
    return _summarize_classes(data, algorithm, k, setting, layout), cells


def _summarize_classes(
    data: DataSet, algorithm: str, k: int, classes: EquivalenceClasses, layout: ClassLayout
) -> paper.ClassSummary:
    n = len(layout.steps)
    return paper.ClassSummary(
        data=data.paper,
        algorithm=algorithm,
        k=k,
        levels=classes.levels,
        suppressed=1 - n / data.rows,
        classes=len(layout.sizes),
        smallest=int(layout.sizes.min()),
        prosecutor=len(layout.sizes) / n,
        spread=float((layout.widths[layout.members] * layout.inverse).mean()),
    )


# Figures 1, 7 and 8 ----------------------------------------------------------------------


def measure_time(work: Callable[[], T]) -> tuple[float, T]:
    """Return the least processor time of some repetitions, in seconds, and their result."""
    times = []
    for _ in range(TIMED):
        start = time.process_time()
        outcome = work()
        times.append(time.process_time() - start)
    return min(times), outcome


def compare_widened(
    data: DataSet, rows: DistinctRows, algorithm: str, grid: ExperimentGrid
) -> Iterator[paper.WidenedResult]:
    """Measure what the epsilon-quasi as one more k-quasi loses, and how long it takes."""
    table, noisy = data.table, {data.attribute: data.noisy}
    counting, _ = measure_time(
        lambda: count_tuples_with_kept(table, ColumnHierarchies(data.quasi), (data.attribute,))
    )
    counting_wide, wide = measure_time(
        lambda: count_tuples_with_kept(table, ColumnHierarchies(data.widened), ())
    )
    for k in grid.ks:
        release = make_release_spec(algorithm, k)
        search, classes = measure_time(partial(group_rows, rows, data.quasi | noisy, algorithm, k))
        search_wide, wide_classes = measure_time(
            partial(group_rows, wide, data.widened, algorithm, k)
        )
        draw, _ = measure_time(partial(_draw_noise, rows, classes, noisy, release))
        proper, (width, error) = len(data.quasi), _compute_attribute_loss(data, wide, wide_classes)
        yield paper.WidenedResult(
            data.paper,
            algorithm,
            k,
            _compute_precision_loss(rows, classes, proper),
            _compute_precision_loss(wide, wide_classes, proper),
            width,
            error,
            float(wide.counted.frequencies.counts[~wide_classes.published_mask].sum() / data.rows),
            _count_schemes(rows, release),
            _count_schemes(wide, release),
            paper.RunTimes(counting, search, draw),
            paper.RunTimes(counting_wide, search_wide, 0.0),
        )


def _draw_noise(
    rows: DistinctRows, classes: EquivalenceClasses, noisy: dict[str, Column], release: KEpsilonSpec
) -> Steps:
    noisy_rows = make_noisy_rows(rows, classes, noisy, release)
    return noisy_rows.columns[0].noise.draw(noisy_rows.members, make_seeded_bits("time"))


def _count_schemes(rows: DistinctRows, release: KEpsilonSpec) -> int | None:
    """Count the schemes; None where recoding is local."""
    if release.algorithm != "ola":
        return None
    return make_lattice(rows, release).size


def _compute_precision_loss(rows: DistinctRows, classes: EquivalenceClasses, proper: int) -> float:
    """Compute the mean precision that the first, proper k-quasis lose, over the rows shown.

    paper.Numbers lose by the width of their interval where they have one of their own, by their
    level otherwise, as everything else does.
    """
    if classes.levels is not None:
        ladders = zip(classes.levels, rows.counted.hierarchies, strict=True)
        lost = [level / (hierarchy.height - 1) for level, hierarchy in ladders]
        return float(np.mean(lost[:proper]))
    bounds, lost = _compute_boxes(rows, classes), []
    for at, axis in enumerate(rows.counted.axes[:proper]):
        low, high, top = bounds.low[:, at], bounds.high[:, at], axis.hierarchy.height - 1
        narrow = (high - low) / max(axis.hierarchy.size - 1, 1)
        axis_loss = narrow if axis.ordered else np.minimum(axis.find_levels(low, high), top) / top
        lost.append(np.average(axis_loss, weights=bounds.sizes))
    return float(np.mean(lost))


def _compute_boxes(rows: DistinctRows, classes: EquivalenceClasses) -> ClassBounds:
    frequencies = rows.counted.frequencies
    points = locate_points(rows.counted.axes, frequencies.codes)
    return bound_classes(points, frequencies.counts, classes.members)


def _compute_attribute_loss(
    data: DataSet, wide: DistinctRows, classes: EquivalenceClasses
) -> tuple[float, float]:
    """Compute the precision that the attribute loses as a k-quasi, and the midpoint's error."""
    frequencies, hierarchy = wide.counted.frequencies, wide.counted.hierarchies[-1]
    axis, codes, is_published = (
        wide.counted.axes[-1],
        frequencies.codes[:, -1],
        classes.published_mask,
    )
    if classes.levels is not None:
        group = hierarchy.groups[classes.levels[-1]]
        places = axis.positions[: hierarchy.size].astype(np.int64)
        low = np.full(len(group), hierarchy.size, dtype=np.int64)
        high = np.zeros(len(group), dtype=np.int64)
        np.minimum.at(low, group[: hierarchy.size], places)
        np.maximum.at(high, group[: hierarchy.size], places)
        low, high = low[group[codes]], high[group[codes]]
        loss = np.full(len(codes), classes.levels[-1] / (hierarchy.height - 1))
    else:
        bounds = _compute_boxes(wide, classes)
        low, high = bounds.low[classes.members, -1], bounds.high[classes.members, -1]
        loss = (high - low) / (hierarchy.size - 1)
    value = data.lowest + axis.positions[codes[is_published]]
    error = np.abs((low + high)[is_published] / 2 + data.lowest - value) / value
    weights = frequencies.counts[is_published]
    return float(np.average(loss[is_published], weights=weights)), float(
        np.average(error, weights=weights)
    )


# Figure 2 --------------------------------------------------------------------------------


def compare_noise(data: DataSet, rows: DistinctRows, grid: ExperimentGrid) -> paper.NoiseComparison:
    """Compare noise by class with noise for all alike, and with uniform noise."""
    k = COMPARED_K if COMPARED_K in grid.ks else grid.ks[-1]
    _, noisy = group_noisy_rows(data, rows, "ola", k)
    (column,) = noisy.columns
    steps, members, bits = column.steps, noisy.members, make_seeded_bits(data.paper, "compare")
    size = np.abs(steps).astype(np.float64)

    def make_laplace_pair(epsilon: float) -> tuple[ClassNoise, ClassNoise]:
        widths = k_epsilon.compute_diameters(steps, members, noisy.classes)
        exact, full_width = (
            split_epsilon(epsilon, [1.0])[0],
            int(steps.max() - steps.min()),
        )
        return make_laplace_noise(widths, exact), make_laplace_noise(
            np.full_like(widths, full_width), exact
        )

    narrow, wide = (noise.draw(members, bits) for noise in make_laplace_pair(COMPARED_EPSILON))
    matching = round(compute_expected_error(column, members) / (UNIFORM / 2), 2)
    laplace = make_laplace_pair(matching)[0].draw(members, bits)
    parts = (bits.draw_words(len(steps)) >> np.uint64(11)) / 2.0**53
    uniform = np.rint((2 * parts - 1) * UNIFORM * size).astype(np.int64)
    errors = [np.abs(noise) / size for noise in (narrow, wide, laplace, uniform)]
    error_grid = np.linspace(0, float(np.quantile(errors[1], 0.95)), _POINTS)
    small_error_grid = np.linspace(0, 3 * UNIFORM, _POINTS)
    risks = [
        linking_risk(classes=members, originals=[steps], released=[steps + noise]).risk
        for noise in (laplace, uniform)
    ]
    # Who can have become this value by uniform noise? Rounding moved it by half a step at most.
    released = (steps + uniform).astype(np.float64)
    low, high = (released - 0.5) / (1 + UNIFORM), (released + 0.5) / (1 - UNIFORM)
    candidates = k_epsilon.count_within(members, steps, low, high)
    excluded_share = 1 - candidates / np.bincount(members)[members]
    means = [float(error.mean()) for error in errors]
    return paper.NoiseComparison(
        data.paper,
        tuple(error_grid.tolist()),
        _compute_error_shares(errors[0], error_grid),
        _compute_error_shares(errors[1], error_grid),
        means[0],
        means[1],
        tuple(small_error_grid.tolist()),
        _compute_error_shares(errors[2], small_error_grid),
        _compute_error_shares(errors[3], small_error_grid),
        matching,
        means[2],
        means[3],
        risks[0],
        risks[1],
        float(excluded_share.mean()),
        float((candidates == 1).mean()),
    )


def _compute_error_shares(errors: Floats, points: Floats) -> tuple[float, ...]:
    """Compute the share of errors up to each point."""
    return tuple((np.searchsorted(np.sort(errors), points, side="right") / len(errors)).tolist())


# All of it -------------------------------------------------------------------------------


def compute_numbers(
    adult: Path | None = None,
    quick: bool = False,
    progress: Callable[[str], None] = lambda _: None,
) -> tuple[list[DataSet], paper.PaperNumbers]:
    """Compute all numbers; timed runs alone, the rest on two threads."""
    grid = paper.QUICK if quick else paper.FULL
    sets = paper.make_data_sets(grid, adult)
    rows = {
        data.paper: count_tuples_with_kept(
            data.table, ColumnHierarchies(data.quasi), (data.attribute,)
        )
        for data in sets
    }
    wider: list[paper.WidenedResult] = []
    for data in sets:
        for algorithm in paper.ALGORITHMS:
            progress(f"{data.paper}: {data.attribute} as a k-quasi, {paper.SHOWN[algorithm]}")
            wider += compare_widened(data, rows[data.paper], algorithm, grid)
    tasks = list(itertools.product(sets, paper.ALGORITHMS, grid.ks))
    settings = []
    with ThreadPoolExecutor(2) as pool:
        waiting = [pool.submit(measure_setting, *task, rows[task[0].paper], grid) for task in tasks]
        for (data, algorithm, k), future in zip(tasks, waiting, strict=True):
            settings.append(future.result())
            progress(f"{data.paper}: {paper.SHOWN[algorithm]}, k = {k}")
    comparisons = []
    for data in sets:
        progress(f"{data.paper}: kinds of noise")
        comparisons.append(compare_noise(data, rows[data.paper], grid))
    summaries = tuple(group for group, _ in settings)
    cells = tuple(cell for _, setting_cells in settings for cell in setting_cells)
    return sets, paper.PaperNumbers(grid, summaries, cells, tuple(wider), tuple(comparisons))


def reproduce(
    output: Path,
    *,
    adult: Path | None = None,
    quick: bool = False,
    progress: Callable[[str], None] = lambda _: None,
) -> paper.PaperNumbers:
    """Write tables, figures (SVG and PNG), ``numbers.json`` and ``index.html`` to a folder.

    The folder appears whole or not at all; one that holds an earlier reproduction is
    replaced, one that holds anything else is left alone. ``adult`` is the real Adult table, to
    take the place of a sample. ``progress`` hears of each of the ``STEPS`` (if ``quick``, the
    ``QUICK_STEPS``) steps.
    """
    from incrowd.papers import paper_b_figures

    names = [f"{name}.{form}" for name in paper_b_figures.NAMES for form in ("svg", "png")]
    with fill_folder(output, replacing=[*names, "numbers.json", "index.html"]) as draft:
        sets, numbers = compute_numbers(adult, quick, progress)
        figures = paper_b_figures.list_figures(numbers)
        assert len(figures) == FIGURES
        for figure in figures:
            progress(figure.title)
            paper_b_figures.save_figure(figure, draft)
        findings = paper_b_figures.check_findings(numbers)
        (draft / "numbers.json").write_text(_format_json(numbers, findings), encoding="utf-8")
        (draft / "index.html").write_text(
            _render_page(sets, numbers, figures, findings), encoding="utf-8"
        )
    return numbers


def _format_json(numbers: paper.PaperNumbers, findings: Sequence[paper.PaperFinding]) -> str:
    verdicts = [asdict(finding) | {"verdict": finding.verdict} for finding in findings]
    return (
        json.dumps({"seed": paper.SEED, **asdict(numbers), "findings": verdicts}, indent=1) + "\n"
    )


def _render_page(
    sets: Sequence[DataSet],
    numbers: paper.PaperNumbers,
    figures: Sequence[Figure],
    findings: Sequence[paper.PaperFinding],
) -> str:
    from incrowd.release.render import render_page

    summaries = {(x.data, x.k): x for x in numbers.grouped if x.algorithm == "ola"}
    return render_page(
        "incrowd.papers", "paper_b.html", paper=paper, sets=sets, numbers=numbers,
        figures=figures, findings=findings, own=summaries, timed=TIMED,
    )  # fmt: skip
