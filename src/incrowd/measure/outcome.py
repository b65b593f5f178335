"""What a safe release kept and lost, at its own levels, for the curator alone.

None of this is covered by the guarantee.

**Search.** How good the scheme of a search is: the best of all, or by how much it may miss that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from itertools import zip_longest

import numpy as np

from incrowd.codes.counted_table import CountedTable, CountNoise, PublishedTable, SuppressedCells
from incrowd.codes.frequency import Frequencies, compare_frequencies, map_levels, merge_tuples
from incrowd.codes.hierarchy import ROOT, Hierarchy
from incrowd.codes.values import canonicalize_value
from incrowd.findings import Finding, format_percent, make_finding
from incrowd.measure.evaluation import Advice, Evaluation, LabelEvaluation, Shift, Utility
from incrowd.measure.label_evaluation import measure_utility
from incrowd.measure.labels import MOST_BINS
from incrowd.measure.loss import compute_normalized_costs, compute_release_loss
from incrowd.measure.lost_values import LostValues, find_lost_labels
from incrowd.measure.subgroups import group_by_levels
from incrowd.measure.utility import TablePair


@dataclass(frozen=True)
class SearchResult:
    """The result of a search for the scheme of least loss.

    The scheme loses ``loss``, by the measure named; no scheme that was allowed loses less than
    ``least``. It is the ``optimum`` where the two are one, as whenever the search came to its end.
    """

    measure: str
    loss: float
    least: float
    optimum: bool
    schemes: int
    looked_at: int

    @property
    def description(self) -> str:
        """That the scheme is the best, in a sentence; nothing where it may not be."""
        if not self.optimum:
            return ""
        return f"No other of {self.schemes:,} schemes has a smaller loss ({self.measure})."

    def findings(self) -> tuple[Finding, ...]:
        """Return that the search was stopped, if it was; figures rounded to the safe side."""
        if self.optimum:
            return ()
        finding = make_finding(
            "SEARCH_STOPPED", looked_at=self.looked_at, schemes=self.schemes, measure=self.measure,
            loss=math.ceil(1e4 * self.loss) / 1e4,
            least=max(math.floor(1e4 * self.least) / 1e4, 0.0),
        )  # fmt: skip
        return (finding,)


@dataclass(frozen=True)
class SuppressionResult:
    """The outcome of suppressing single cells.

    ``cells`` are the suppressed cells of each column, of ``rows`` rows. With the weights of the
    columns they are a ``share`` of all cells, 0 to 1; with the same guarantee it is nowhere less
    than ``least``.
    """

    cells: dict[str, int]
    rows: int
    share: float
    least: float

    @property
    def total(self) -> int:
        """The number of suppressed cells."""
        return sum(self.cells.values())

    @property
    def description(self) -> str:
        """How many cells are suppressed, and how many have to be, in a sentence."""
        size = self.rows * len(self.cells)
        text = f"{self.total:,} of {size:,} cells are suppressed ({format_percent(self.share)}"
        if self.share <= self.least * (1 + 1e-9):
            return f"{text} by weight), the least that this guarantee allows."
        least = format_percent(self.least)
        return f"{text} by weight); this guarantee takes at least {least}."


def evaluate_outcome(
    table: CountedTable,
    released: Frequencies,
    *,
    crowd: float,
    target: str | None = None,
    noise: CountNoise | None = None,
    remote_cells: SuppressedCells | None = None,
    before: Frequencies | None = None,
) -> Evaluation:
    """Compare a release with the table it was made from, both at the levels of the release.

    Cells of ``crowd`` rows survive as often as not. Rare labels of a ``target`` lie in smaller
    cells, so that fewer of their rows are shown: how many is said for each. Of a table whose cells
    are elsewhere ``table`` has those that are shown, ``remote_cells`` tells of the others, and
    ``before`` has the rows of each label of the target; utility and subgroups are not measured
    there. ``noise`` is what is known of that in the counts.
    """
    suppressed_cells = remote_cells or SuppressedCells(0, 0, 0, ())
    rows = table.frequencies.total + suppressed_cells.rows
    common, missing, surplus = compare_frequencies(table.frequencies, released)
    missing += suppressed_cells.rows
    lost = (
        LostValues()
        if remote_cells is not None
        else find_lost_labels(table, build_published_table(table, released))
    )
    inner, losses = {}, {}
    for at, (name, hierarchy, level) in enumerate(
        zip(table.names, table.hierarchies, table.levels, strict=True)
    ):
        inner[name] = _compute_loss(hierarchy, level, released, at)
        costs = compute_normalized_costs(hierarchy)[level][common.codes[:, at]]
        losses[name] = compute_release_loss(costs, common.counts, missing=missing, surplus=surplus)
    return Evaluation(
        rows_original=rows,
        rows_released=released.total,
        suppressed=missing,
        surplus=surplus,
        classes=len(released),
        smallest_class=int(released.counts.min()) if len(released) else 0,
        loss=float(np.mean(list(losses.values()))),
        loss_by_column=losses,
        cells_original=len(table.frequencies) + suppressed_cells.cells,
        cells_released=len(released),
        likely_share=(_count_likely_rows(table.frequencies, crowd) + suppressed_cells.likely)
        / max(rows, 1),
        detail_by_column={name: 1 - loss for name, loss in inner.items()},
        sizes_original=_add_histograms(_count_by_size(table.frequencies), suppressed_cells.sizes),
        sizes_released=_count_by_size(released),
        advice=_make_advice(table, crowd) if remote_cells is None else [],
        lost=lost,
        subgroups=group_by_levels(table, released) if remote_cells is None else [],
        utility=None
        if remote_cells is not None or len(lost.nothing_shown) == len(table.names)
        else measure_utility(
            drop_columns(build_level_pair(table, released, noise), lost.nothing_shown)
        ),
        target=target,
        shifts=[] if target is None else _compute_shifts(table, released, target, before),
    )


# What labels alone can tell, and an outcome by levels does not measure; utility they tell apart.
_BY_LABELS = {
    "precision_by_column",
    "losses",
    "risk",
    "noise",
    "search",
    "weighted",
    "numbers",
    "payout",
    "suppression",
    "utility",
    "utility_of_values",
    "utility_of_levels",
}
# What is known when both are done: how labels were read, and, of several tables, their comparison.
_AFTERWARDS = {
    "missing_columns",
    "readings",
    "slices",
    "columns",
    "associations",
    "association_error",
}


def measure_at_levels(
    evaluation: LabelEvaluation,
    original: CountedTable,
    published: PublishedTable,
    *,
    crowd: float,
    target: str | None,
) -> LabelEvaluation:
    """Add all that :func:`evaluate_outcome` measures to an evaluation by labels.

    ``published`` is read at the levels of the release, so that the figures are those of the release
    when it was made. What labels told of utility is ``utility_of_values``.
    """
    table, released = _roll_up(original, published)
    outcome = evaluate_outcome(
        table,
        released,
        crowd=crowd,
        target=target,
        noise=published.noise,
    )
    useful_ = evaluation.utility if outcome.utility is None else outcome.utility
    names = {field.name for field in fields(Evaluation)} - _BY_LABELS - _AFTERWARDS
    return replace(
        evaluation,
        **{name: getattr(outcome, name) for name in names},
        utility=replace(useful_, accuracy=evaluation.utility.accuracy),
        utility_of_values=None if outcome.utility is None else evaluation.utility,
    )


def measure_utility_of_levels(
    original: CountedTable, published: PublishedTable, silent: Sequence[str]
) -> Utility | None:
    """Measure utility with labels as bins; None unless each column is published at one level.

    Rows that show ``*`` everywhere are not shown, and ``silent`` columns show nothing.
    """
    if published.is_local or len(silent) == len(original.names):
        return None
    codes = published.frequencies.codes
    starred = [np.array([x == ROOT for x in labels], dtype=bool) for labels in published.labels]
    hidden = [flags[codes[:, at]] for at, flags in enumerate(starred)]
    visible = ~np.logical_and.reduce(hidden)
    rows = Frequencies(codes[visible], published.frequencies.counts[visible])
    table, released = _roll_up(original, replace(published, frequencies=rows))
    return measure_utility(drop_columns(build_level_pair(table, released, published.noise), silent))


def _roll_up(original: CountedTable, published: PublishedTable) -> tuple[CountedTable, Frequencies]:
    """Return both tables at the levels of the release, with one code for equal labels."""
    levels = tuple(level for level in published.levels if level is not None)
    table = original.roll_up(levels).merge_labels()
    maps = []
    for hierarchy, level, labels in zip(table.hierarchies, levels, published.labels, strict=True):
        places = {label: code for code, label in reversed([*enumerate(hierarchy.labels[level])])}
        texts = [x if isinstance(x, str) else canonicalize_value(x) for x in labels]
        # A label that the level does not have is one of rows that were left out: `*`.
        maps.append(np.array([places.get(text, 0) for text in texts], dtype=np.int32))
    return table, published.frequencies.roll_up(maps)


def build_published_table(table: CountedTable, released: Frequencies) -> PublishedTable:
    """Return a release by the levels that it was counted at."""
    labels = [
        hierarchy.labels[level]
        for hierarchy, level in zip(table.hierarchies, table.levels, strict=True)
    ]
    return PublishedTable(tuple(labels), released, table.levels)


def build_level_pair(
    table: CountedTable, released: Frequencies, noise: CountNoise | None
) -> TablePair:
    """Return a table and its release at the levels of the release: every label is a bin.

    Of a column with more than 256 labels neighbors share a bin.
    """
    ordered, shares, maps = [], [], []
    for at, (hierarchy, level) in enumerate(zip(table.hierarchies, table.levels, strict=True)):
        used_codes = np.unique(np.append(table.frequencies.codes[:, at], released.codes[:, at]))
        bins = min(len(used_codes), MOST_BINS)
        lookup = np.zeros(len(hierarchy.labels[level]), dtype=np.int32)
        lookup[used_codes] = (
            np.arange(len(used_codes), dtype=np.int64) * bins // max(len(used_codes), 1)
        )
        maps.append(lookup)
        ordered.append(hierarchy.ordered)
        shares.append(np.eye(max(bins, 1)))
    before, after = table.frequencies.roll_up(maps), released.roll_up(maps)
    return TablePair(table.names, before, after, tuple(shares), tuple(ordered), noise)


def drop_columns(pair: TablePair, names: Sequence[str]) -> TablePair:
    """Return a table and its release without some columns.

    A column that shows nothing has one label: by it alone, it would look as if nothing was lost.
    """
    if not names:
        return pair
    places = [at for at, name in enumerate(pair.names) if name not in names]
    return TablePair(
        tuple(pair.names[at] for at in places),
        merge_tuples(pair.original.codes[:, places], pair.original.counts),
        merge_tuples(pair.released.codes[:, places], pair.released.counts),
        tuple(pair.shares[at] for at in places),
        tuple(pair.ordered[at] for at in places),
        pair.noise,
    )


def _add_histograms(first: Sequence[int], second: Sequence[int]) -> list[int]:
    """Return two histograms as one, without empty ends."""
    total = [a + b for a, b in zip_longest(first, second, fillvalue=0)]
    last = max((at for at, rows in enumerate(total) if rows), default=-1)
    return total[: last + 1]


def _compute_shifts(
    table: CountedTable, released: Frequencies, target: str, before_rows: Frequencies | None
) -> list[Shift]:
    """Return the rows of each label of a column, before and after."""
    at = table.names.index(target)
    labels = table.hierarchies[at].labels[table.levels[at]]
    original_column = (before_rows.codes[:, 0], before_rows.counts) if before_rows else (
        table.frequencies.codes[:, at], table.frequencies.counts,
    )  # fmt: skip
    before, after = (
        np.bincount(codes, weights=rows, minlength=len(labels)).astype(int)
        for codes, rows in (original_column, (released.codes[:, at], released.counts))
    )
    return [
        Shift(label, int(original), int(published))
        for label, original, published in zip(labels, before, after, strict=True)
        if original
    ]


def _compute_loss(hierarchy: Hierarchy, level: int, released: Frequencies, at: int) -> float:
    """Return the mean of (a - 1) / (m - 1) over the rows shown, a of m leaves covered; or 1."""
    if not released.total:
        return 1.0
    lost = compute_normalized_costs(hierarchy)[level]
    return float(np.average(lost[released.codes[:, at]], weights=released.counts))


def _count_likely_rows(frequencies: Frequencies, crowd: float) -> int:
    """Return the rows in cells that are at least as large as the crowd that likely survives."""
    return int(frequencies.counts[frequencies.counts >= crowd].sum())


def _make_advice(table: CountedTable, crowd: float) -> list[Advice]:
    """Return for each column that can be coarser what that would do, the best first."""
    advices = []
    for at, (name, hierarchy) in enumerate(zip(table.names, table.hierarchies, strict=True)):
        level = table.levels[at] + 1
        if level >= hierarchy.height:
            continue
        target = [*table.levels[:at], level, *table.levels[at + 1 :]]
        coarser = table.frequencies.roll_up(map_levels(table.hierarchies, table.levels, target))
        advices.append(
            Advice(name, level, _count_likely_rows(coarser, crowd) / max(coarser.total, 1))
        )
    return sorted(advices, key=lambda advice: -advice.likely_share)


def _count_by_size(frequencies: Frequencies) -> list[int]:
    """Return rows in cells of size 1, 2-3, 4-7, 8-15, ... (entry i: sizes from 2**i)."""
    if not len(frequencies):
        return []
    place = np.floor(np.log2(frequencies.counts)).astype(int)
    return [int(x) for x in np.bincount(place, weights=frequencies.counts)]
