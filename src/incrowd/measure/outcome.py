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
from incrowd.codes.hierarchy import Hierarchy
from incrowd.codes.values import canonicalize_value
from incrowd.findings import Finding, make_finding
from incrowd.measure.evaluation import Advice, Evaluation, LabelEvaluation, Shift
from incrowd.measure.label_evaluation import measure_utility
from incrowd.measure.labels import MOST_BINS
from incrowd.measure.loss import compute_normalized_costs
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


def evaluate_outcome(
    counted: CountedTable,
    released: Frequencies,
    *,
    crowd: float,
    target: str | None = None,
    noise: CountNoise | None = None,
    rest: SuppressedCells | None = None,
    before: Frequencies | None = None,
) -> Evaluation:
    """Compare a release with the table it was made from, both at the levels of the release.

    Cells of ``crowd`` rows survive as often as not. Rare labels of a ``target`` lie in smaller
    cells, so that fewer of their rows are shown: how many is said for each. Of a table whose cells
    are elsewhere ``counted`` has those that are shown, ``rest`` tells of the others, and ``before``
    has the rows of each label of the target; utility and subgroups are not measured there.
    ``noise`` is what is known of that in the counts.
    """
    apart = rest or SuppressedCells(0, 0, 0, ())
    rows = counted.frequencies.total + apart.rows
    kept, missing, surplus = compare_frequencies(counted.frequencies, released)
    missing += apart.rows
    lost = (
        LostValues()
        if rest is not None
        else find_lost_labels(counted, build_published_table(counted, released))
    )
    inner, losses = {}, {}
    for at, (name, hierarchy, level) in enumerate(
        zip(counted.names, counted.hierarchies, counted.levels, strict=True)
    ):
        inner[name] = _compute_loss(hierarchy, level, released, at)
        own = _compute_loss(hierarchy, level, kept, at)
        every = rows + surplus  # so that no loss is above 1
        losses[name] = (kept.total * own + missing + surplus) / every if every else 1.0
    return Evaluation(
        rows_original=rows,
        rows_released=released.total,
        suppressed=missing,
        surplus=surplus,
        classes=len(released),
        smallest_class=int(released.counts.min()) if len(released) else 0,
        loss=float(np.mean(list(losses.values()))),
        loss_by_column=losses,
        cells_original=len(counted.frequencies) + apart.cells,
        cells_released=len(released),
        likely_share=(_count_likely_rows(counted.frequencies, crowd) + apart.likely) / max(rows, 1),
        detail_by_column={name: 1 - loss for name, loss in inner.items()},
        sizes_original=_add_histograms(_count_by_size(counted.frequencies), apart.sizes),
        sizes_released=_count_by_size(released),
        advice=_make_advice(counted, crowd) if rest is None else [],
        lost=lost,
        subgroups=group_by_levels(counted, released) if rest is None else [],
        utility=None
        if rest is not None or len(lost.nothing_shown) == len(counted.names)
        else measure_utility(
            drop_columns(build_level_pair(counted, released, noise), lost.nothing_shown)
        ),
        target=target,
        shifts=[] if target is None else _compute_shifts(counted, released, target, before),
    )


# What labels alone can tell, and an outcome by levels does not measure.
_BY_LABELS = {
    "precision_by_column",
    "losses",
    "risk",
    "noise",
    "search",
    "utility",
    "utility_of_values",
}


def measure_at_levels(
    found: LabelEvaluation,
    original: CountedTable,
    shown: PublishedTable,
    *,
    crowd: float,
    target: str | None,
) -> LabelEvaluation:
    """Add all that :func:`evaluate_outcome` measures to an evaluation by labels.

    ``shown`` is read at the levels of the release, so that the figures are those of the release
    when it was made. What labels told of utility is ``utility_of_values``.
    """
    levels = tuple(level for level in shown.levels if level is not None)
    table = original.roll_up(levels).merge_labels()
    maps = []
    for hierarchy, level, labels in zip(table.hierarchies, levels, shown.labels, strict=True):
        places = {label: code for code, label in reversed([*enumerate(hierarchy.labels[level])])}
        texts = [x if isinstance(x, str) else canonicalize_value(x) for x in labels]
        maps.append(np.array([places[text] for text in texts], dtype=np.int32))
    own = evaluate_outcome(
        table, shown.frequencies.roll_up(maps), crowd=crowd, target=target, noise=shown.noise
    )
    useful_ = found.utility if own.utility is None else own.utility
    names = {item.name for item in fields(Evaluation)} - _BY_LABELS
    return replace(
        found,
        **{name: getattr(own, name) for name in names},
        utility=replace(useful_, accuracy=found.utility.accuracy),
        utility_of_values=None if own.utility is None else found.utility,
    )


def build_published_table(counted: CountedTable, released: Frequencies) -> PublishedTable:
    """Return a release by the levels that it was counted at."""
    labels = [
        hierarchy.labels[level]
        for hierarchy, level in zip(counted.hierarchies, counted.levels, strict=True)
    ]
    return PublishedTable(tuple(labels), released, counted.levels)


def build_level_pair(
    counted: CountedTable, released: Frequencies, noise: CountNoise | None
) -> TablePair:
    """Return a table and its release at the levels of the release: every label is a bin.

    Of a column with more than 256 labels neighbors share a bin.
    """
    ordered, shares, maps = [], [], []
    for at, (hierarchy, level) in enumerate(zip(counted.hierarchies, counted.levels, strict=True)):
        used = np.unique(np.append(counted.frequencies.codes[:, at], released.codes[:, at]))
        bins = min(len(used), MOST_BINS)
        lookup = np.zeros(len(hierarchy.labels[level]), dtype=np.int32)
        lookup[used] = np.arange(len(used), dtype=np.int64) * bins // max(len(used), 1)
        maps.append(lookup)
        ordered.append(hierarchy.ordered)
        shares.append(np.eye(max(bins, 1)))
    before, after = counted.frequencies.roll_up(maps), released.roll_up(maps)
    return TablePair(counted.names, before, after, tuple(shares), tuple(ordered), noise)


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


def _add_histograms(one: Sequence[int], other: Sequence[int]) -> list[int]:
    """Return two histograms as one, without empty ends."""
    summed = [a + b for a, b in zip_longest(one, other, fillvalue=0)]
    last = max((at for at, rows in enumerate(summed) if rows), default=-1)
    return summed[: last + 1]


def _compute_shifts(
    counted: CountedTable, released: Frequencies, target: str, held: Frequencies | None
) -> list[Shift]:
    """Return the rows of each label of a column, before and after."""
    at = counted.names.index(target)
    labels = counted.hierarchies[at].labels[counted.levels[at]]
    first = (held.codes[:, 0], held.counts) if held else (
        counted.frequencies.codes[:, at], counted.frequencies.counts,
    )  # fmt: skip
    before, after = (
        np.bincount(codes, weights=rows, minlength=len(labels)).astype(int)
        for codes, rows in (first, (released.codes[:, at], released.counts))
    )
    return [
        Shift(label, int(original), int(shown))
        for label, original, shown in zip(labels, before, after, strict=True)
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


def _make_advice(counted: CountedTable, crowd: float) -> list[Advice]:
    """Return for each column that can be coarser what that would do, the best first."""
    advices = []
    for at, (name, hierarchy) in enumerate(zip(counted.names, counted.hierarchies, strict=True)):
        level = counted.levels[at] + 1
        if level >= hierarchy.height:
            continue
        target = [*counted.levels[:at], level, *counted.levels[at + 1 :]]
        rolled = counted.frequencies.roll_up(
            map_levels(counted.hierarchies, counted.levels, target)
        )
        advices.append(
            Advice(name, level, _count_likely_rows(rolled, crowd) / max(rolled.total, 1))
        )
    return sorted(advices, key=lambda advice: -advice.likely_share)


def _count_by_size(frequencies: Frequencies) -> list[int]:
    """Return rows in cells of size 1, 2-3, 4-7, 8-15, ... (entry i: sizes from 2**i)."""
    if not len(frequencies):
        return []
    place = np.floor(np.log2(frequencies.counts)).astype(int)
    return [int(x) for x in np.bincount(place, weights=frequencies.counts)]
