"""All measures of a released table by its labels in one: loss, risk and utility.

It works on any file whose labels the spec's hierarchies explain, whoever made it. A row that shows
``*`` in every quasi column is suppressed, and so is one that was not drawn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from incrowd.arrays import Codes, Floats
from incrowd.codes.axis import Axis
from incrowd.codes.counted_table import CountedTable, PublishedTable
from incrowd.codes.frequency import Frequencies, compare_frequencies, merge_tuples
from incrowd.codes.hierarchy import ROOT
from incrowd.codes.values import canonicalize_value
from incrowd.errors import check_choice
from incrowd.findings import Finding
from incrowd.measure import prediction, utility
from incrowd.measure.association import compute_associations, compute_mean_error
from incrowd.measure.evaluation import LabelEvaluation, Losses, Utility
from incrowd.measure.labels import LabelCover, assign_bins, read_labels, read_level
from incrowd.measure.loss import (
    compute_average_class_size,
    compute_discernibility,
    compute_entropy_scale,
)
from incrowd.measure.lost_values import KeptRows, find_lost_labels
from incrowd.measure.prediction import use_one_thread
from incrowd.measure.risk import compute_risk
from incrowd.measure.subgroups import group_by_labels, group_kept_columns

Covered: TypeAlias = tuple[list[Codes], list[Floats], list[LabelCover]]  # see :func:`locate_tuples`


def evaluate_labels(
    original: CountedTable,
    axes: Sequence[Axis],
    shown: PublishedTable,
    *,
    kept: int = 0,
    target: str | None = None,
    held_out: Frequencies | None = None,
    stars: bool = True,
    known: Covered | None = None,
    beside: KeptRows | None = None,
) -> LabelEvaluation:
    """Compare what is published with the original, counted at level 0.

    With ``stars``, rows that show ``*`` everywhere are taken not to be shown. The last
    ``kept`` columns are shown as they are: they are no part of loss and risk, only of utility.
    With a ``target`` column, a classifier is trained on the release and tested on original
    rows: on ``held_out`` (codes of level 0), which the release has not seen, or on a part of
    the original. ``known`` is what :func:`locate_tuples` says of them, where that is known;
    ``beside`` are both tables with columns that are kept as they are, whose values may be lost as
    others are.
    """
    if target is not None:
        check_choice("target", target, original.names)
    points, held, covers = locate_tuples(original, axes, shown) if known is None else known
    quasi = len(axes) - kept
    whole = _drop_starred_rows(shown.frequencies, covers[:quasi]) if stars else shown.frequencies
    released = merge_tuples(whole.codes[:, :quasi], whole.counts)
    rows = original.frequencies.total
    pair = _make_pair(original, axes, points, covers, replace(shown, frequencies=whole))
    if beside is not None and stars:
        beside = replace(beside, after=_drop_starred_rows(beside.after, covers[:quasi]))
    points_ = np.column_stack(points[:quasi]).astype(np.int32)
    fitting = merge_tuples(points_, original.frequencies.counts)
    names, covers, held = original.names[:quasi], covers[:quasi], held[:quasi]
    both, missing, surplus = _compare_rows(original, shown, released)
    by_column = {
        name: (_sum_weighted(both, at, item.loss) + missing + surplus)
        / max(both.total + missing + surplus, 1)
        for at, (name, item) in enumerate(zip(names, covers, strict=True))
    }
    precisions = [_sum_weighted(released, at, item.precision) for at, item in enumerate(covers)]
    return LabelEvaluation(
        rows_original=rows,
        rows_released=released.total,
        suppressed=missing,
        surplus=surplus,
        classes=len(released),
        smallest_class=int(released.counts.min()) if len(released) else 0,
        loss=float(np.mean(list(by_column.values()))),
        loss_by_column=by_column,
        precision_by_column={
            name: total / max(released.total, 1)
            for name, total in zip(names, precisions, strict=True)
        },
        losses=_compute_losses(released, covers, held, precisions, rows),
        risk=compute_risk(fitting, released, covers),
        utility=_evaluate_utility(
            pair, quasi, target, None if held_out is None else _bin_frequencies(axes, held_out)
        ),
        lost=find_lost_labels(original, replace(shown, frequencies=released), beside),
        subgroups=[
            *group_by_labels(
                names, axes[:quasi], points_, original.frequencies.counts, released, covers
            ),
            *(
                group_kept_columns(beside.kept, beside.before, beside.after, quasi)
                if beside
                else ()
            ),
        ],
    )


def _compare_rows(
    original: CountedTable, shown: PublishedTable, released: Frequencies
) -> tuple[Frequencies, int, int]:
    """Return the rows shown rightly, and how many are missing and surplus: cell by cell.

    Of rows that were not counted with noise none is too many, and their number alone tells how
    many are missing. So it is where labels of several levels stand side by side.
    """
    quasi = released.codes.shape[1]
    if shown.noise is None or shown.is_local:
        return released, max(original.frequencies.total - released.total, 0), 0
    before, after = [], []
    for hierarchy, labels, level in zip(
        original.hierarchies[:quasi], shown.labels[:quasi], shown.levels[:quasi], strict=True
    ):
        assert level is not None
        texts = [x if isinstance(x, str) else canonicalize_value(x) for x in labels]
        places = {text: at for at, text in reversed([*enumerate(texts)])}
        groups = [
            places.get(label, len(texts) + at)  # beyond: labels of which nothing is shown
            for at, label in enumerate(hierarchy.labels[level])
        ]
        before.append(np.array(groups, dtype=np.int32)[hierarchy.groups[level]])
        after.append(np.array([places[text] for text in texts], dtype=np.int32))
    codes = original.frequencies.codes[:, :quasi]
    every = Frequencies(codes, original.frequencies.counts).roll_up(before)
    both, missing, surplus = compare_frequencies(every, released.roll_up(after))
    seen = np.flatnonzero(both.counts)
    return Frequencies(both.codes[seen], both.counts[seen]), missing, surplus


def build_pair(
    original: CountedTable, axes: Sequence[Axis], shown: PublishedTable
) -> utility.TablePair:
    """Return the original and what is published of it, as the measures of utility take them."""
    points, _, covers = locate_tuples(original, axes, shown)
    return _make_pair(original, axes, points, covers, shown)


def _make_pair(
    original: CountedTable,
    axes: Sequence[Axis],
    points: list[Codes],
    covers: list[LabelCover],
    shown: PublishedTable,
) -> utility.TablePair:
    return utility.TablePair(
        original.names,
        merge_tuples(_bin_points(axes, points), original.frequencies.counts),
        shown.frequencies,
        tuple(cover.shares for cover in covers),
        tuple(axis.ordered for axis in axes),
        shown.noise,
    )


def locate_tuples(original: CountedTable, axes: Sequence[Axis], shown: PublishedTable) -> Covered:
    """Return where tuples lie on each axis, the rows at each place, and what labels cover."""
    points = [axis.positions[original.frequencies.codes[:, at]] for at, axis in enumerate(axes)]
    held = [
        np.bincount(
            column, weights=original.frequencies.counts, minlength=len(axis.positions)
        ).astype(float)
        for column, axis in zip(points, axes, strict=True)
    ]
    covers = [
        read_labels(name, axis, texts, rows, level)
        for name, axis, texts, rows, level in zip(
            original.names,
            axes,
            shown.labels,
            held,
            shown.levels or [None] * len(axes),
            strict=True,
        )
    ]
    return points, held, covers


def _bin_points(axes: Sequence[Axis], points: Sequence[Codes]) -> Codes:
    columns = [
        assign_bins(axis).astype(np.int32)[column]
        for axis, column in zip(axes, points, strict=True)
    ]
    return np.column_stack(columns).astype(np.int32)


def _bin_frequencies(axes: Sequence[Axis], frequencies: Frequencies) -> Frequencies:
    points = [axis.positions[frequencies.codes[:, at]] for at, axis in enumerate(axes)]
    return merge_tuples(_bin_points(axes, points), frequencies.counts)


def _drop_starred_rows(frequencies: Frequencies, covers: Sequence[LabelCover]) -> Frequencies:
    """Return the rows that show something; all of them, as one class, where none does."""
    stars = [item.starred[frequencies.codes[:, at]] for at, item in enumerate(covers)]
    shown = np.flatnonzero(~np.all(stars, axis=0))
    if not len(shown):
        return frequencies
    return Frequencies(frequencies.codes[shown], frequencies.counts[shown])


def _sum_weighted(released: Frequencies, at: int, values: Floats) -> float:
    return float((values[released.codes[:, at]] * released.counts).sum())


def _compute_losses(
    released: Frequencies,
    covers: Sequence[LabelCover],
    held: Sequence[Floats],
    precisions: Sequence[float],
    rows: int,
) -> Losses:
    missing = max(rows - released.total, 0)
    whole = max(rows, released.total, 1)
    lost = []
    for at, (result, values) in enumerate(zip(covers, held, strict=True)):
        floor, ceiling = compute_entropy_scale(values)
        bits = _sum_weighted(released, at, np.log2(np.maximum(result.rows, 1))) + missing * ceiling
        spread = (ceiling - floor) * whole
        lost.append(max((bits - floor * whole) / spread, 0.0) if spread > 0 else 0.0)
    size = compute_average_class_size(released.counts)
    return Losses(
        precision=float(np.mean([(total + missing) / whole for total in precisions])),
        entropy=float(np.mean(lost)),
        discernibility=compute_discernibility(released.counts, missing, whole),
        average_class_size=size if np.isfinite(size) else None,
    )


def _evaluate_utility(
    whole: utility.TablePair, quasi: int, target: str | None, held_out: Frequencies | None
) -> Utility:
    """Measure utility; all but the accuracy is about the generalized columns alone."""
    pair = whole
    if quasi < len(whole.names):
        pair = utility.TablePair(
            whole.names[:quasi],
            merge_tuples(whole.original.codes[:, :quasi], whole.original.counts),
            merge_tuples(whole.released.codes[:, :quasi], whole.released.counts),
            whole.shares[:quasi],
            whole.ordered[:quasi],
            whole.noise,
        )
    accuracy = None
    if target is not None:
        accuracy = prediction.compute_accuracy(whole, target=target, held_out=held_out)
    return measure_utility(pair, accuracy)


def measure_utility(
    pair: utility.TablePair,
    accuracy: prediction.Accuracy | None = None,
    *,
    asked: int | None = None,
) -> Utility:
    """Measure what can be learned from a release; ``asked`` is how many random counts to ask."""
    with use_one_thread():
        result = compute_associations(pair)
        queries = (
            utility.measure_query_errors(pair)
            if asked is None
            else utility.measure_query_errors(pair, count=asked)
        )
        distances = utility.compute_distances(pair)
    return Utility(
        distance_by_column=distances,
        associations=result,
        association_error=compute_mean_error(result),
        query_error=queries.median_error,
        query_error_mean=queries.mean_error,
        accuracy=accuracy,
    )


def assign_levels(
    original: CountedTable, shown: PublishedTable, known: Mapping[str, int]
) -> tuple[PublishedTable, tuple[Finding, ...]]:
    """Return what is published with the levels that it is read at, and any findings.

    A level that is known counts where the labels of the column are labels of it, but for ``*``.
    """
    levels, published_tables = list[int | None](), list[Finding]()
    columns = zip(original.names, original.hierarchies, shown.labels, strict=False)
    for name, hierarchy, labels in columns:
        level = known.get(name)
        texts = {x if isinstance(x, str) else canonicalize_value(x) for x in labels} - {ROOT}
        if level is None or level >= hierarchy.height or texts - {*hierarchy.labels[level]}:
            level, doubts = read_level(name, hierarchy, labels)
            published_tables += doubts
        levels.append(level)
    return replace(shown, levels=tuple(levels)), tuple(published_tables)
