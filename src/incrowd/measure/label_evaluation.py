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
    compute_release_loss,
)
from incrowd.measure.lost_values import KeptRows, find_lost_labels
from incrowd.measure.number_loss import NumberEvaluation, evaluate_numbers
from incrowd.measure.payout import PayoutModel, compute_payout
from incrowd.measure.prediction import use_one_thread
from incrowd.measure.risk import compute_risk
from incrowd.measure.subgroups import group_by_labels, group_kept_columns
from incrowd.measure.weighted import WeightedEvaluation, evaluate_weighted

Covered: TypeAlias = tuple[list[Codes], list[Floats], list[LabelCover]]  # see :func:`locate_tuples`


def evaluate_labels(
    original: CountedTable,
    axes: Sequence[Axis],
    published: PublishedTable,
    *,
    kept_count: int = 0,
    target: str | None = None,
    held_out: Frequencies | None = None,
    stars: bool = True,
    covered: Covered | None = None,
    kept_rows: KeptRows | None = None,
    payout: PayoutModel | None = None,
) -> LabelEvaluation:
    """Compare what is published with the original, counted at level 0.

    With ``stars``, rows that show ``*`` everywhere are taken not to be shown. The last
    ``kept_count`` columns are shown as they are: they are no part of loss and risk, only of
    utility. With a ``target`` column, a classifier is trained on the release and tested on original
    rows: on ``held_out`` (codes of level 0), which the release has not seen, or on a part of the
    original. ``covered`` is what :func:`locate_tuples` says of them, where that is known;
    ``kept_rows`` are both tables with columns that are kept as they are, whose values may be lost
    as others are. ``payout`` says what records pay.
    """
    if target is not None:
        check_choice("target", target, original.names)
    points, value_counts, covers = (
        locate_tuples(original, axes, published) if covered is None else covered
    )
    quasi = len(axes) - kept_count
    frequencies = (
        _drop_starred_rows(published.frequencies, covers[:quasi])
        if stars
        else published.frequencies
    )
    released = merge_tuples(frequencies.codes[:, :quasi], frequencies.counts)
    rows = original.frequencies.total
    pair = _make_pair(original, axes, points, covers, replace(published, frequencies=frequencies))
    if kept_rows is not None and stars:
        kept_rows = replace(kept_rows, after=_drop_starred_rows(kept_rows.after, covers[:quasi]))
    points_ = np.column_stack(points[:quasi]).astype(np.int32)
    fitting = merge_tuples(points_, original.frequencies.counts)
    names, covers, value_counts = original.names[:quasi], covers[:quasi], value_counts[:quasi]
    common, missing, surplus = _compare_rows(original, published, released)
    by_column = {
        name: compute_release_loss(
            cover.loss[common.codes[:, at]], common.counts, missing=missing, surplus=surplus
        )
        for at, (name, cover) in enumerate(zip(names, covers, strict=True))
    }
    precisions = [_sum_weighted(released, at, cover.precision) for at, cover in enumerate(covers)]
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
        losses=_compute_losses(released, covers, value_counts, precisions, rows),
        risk=compute_risk(fitting, released, covers),
        utility=_evaluate_utility(
            pair, quasi, target, None if held_out is None else _bin_frequencies(axes, held_out)
        ),
        weighted=_evaluate_weights(kept_rows, quasi),
        numbers=_evaluate_numbers(kept_rows, quasi),
        payout=None
        if payout is None
        else compute_payout(
            payout, released, original.hierarchies[:quasi], [cover.loss for cover in covers], rows
        ),
        lost=find_lost_labels(original, replace(published, frequencies=released), kept_rows),
        subgroups=[
            *group_by_labels(
                names, axes[:quasi], points_, original.frequencies.counts, released, covers
            ),
            *(
                group_kept_columns(kept_rows.kept, kept_rows.before, kept_rows.after, quasi)
                if kept_rows
                else ()
            ),
        ],
    )


def _evaluate_weights(kept_rows: KeptRows | None, first: int) -> WeightedEvaluation | None:
    """Return what survey weights estimate, where they are published; kept columns follow others."""
    if kept_rows is None or kept_rows.weight is None:
        return None
    return evaluate_weighted(
        kept_rows.weight, kept_rows.kept, kept_rows.before, kept_rows.after, first
    )


def _evaluate_numbers(kept_rows: KeptRows | None, first: int) -> NumberEvaluation | None:
    """Return what became of numbers that classes show by their mean or median."""
    if kept_rows is None or not kept_rows.aggregated:
        return None
    return evaluate_numbers(
        kept_rows.aggregated, kept_rows.kept, kept_rows.before, kept_rows.after, first,
        kept_rows.paired,
    )  # fmt: skip


def _compare_rows(
    original: CountedTable, published: PublishedTable, released: Frequencies
) -> tuple[Frequencies, int, int]:
    """Return the rows shown rightly, and how many are missing and surplus: cell by cell.

    Of rows that were not counted with noise none is too many, and their number alone tells how
    many are missing. So it is where labels of several levels stand side by side.
    """
    quasi = released.codes.shape[1]
    if published.noise is None or published.is_local:
        return released, max(original.frequencies.total - released.total, 0), 0
    before, after = [], []
    for hierarchy, labels, level in zip(
        original.hierarchies[:quasi],
        published.labels[:quasi],
        published.levels[:quasi],
        strict=True,
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
    table_cells = Frequencies(codes, original.frequencies.counts).roll_up(before)
    common, missing, surplus = compare_frequencies(table_cells, released.roll_up(after))
    nonzero = np.flatnonzero(common.counts)
    return Frequencies(common.codes[nonzero], common.counts[nonzero]), missing, surplus


def build_pair(
    original: CountedTable, axes: Sequence[Axis], published: PublishedTable
) -> utility.TablePair:
    """Return the original and what is published of it, as the measures of utility take them."""
    points, _, covers = locate_tuples(original, axes, published)
    return _make_pair(original, axes, points, covers, published)


def _make_pair(
    original: CountedTable,
    axes: Sequence[Axis],
    points: list[Codes],
    covers: list[LabelCover],
    published: PublishedTable,
) -> utility.TablePair:
    return utility.TablePair(
        original.names,
        merge_tuples(_bin_points(axes, points), original.frequencies.counts),
        published.frequencies,
        tuple(cover.shares for cover in covers),
        tuple(axis.ordered for axis in axes),
        published.noise,
    )


def locate_tuples(
    original: CountedTable, axes: Sequence[Axis], published: PublishedTable
) -> Covered:
    """Return where tuples lie on each axis, the rows at each place, and what labels cover."""
    points = [axis.positions[original.frequencies.codes[:, at]] for at, axis in enumerate(axes)]
    value_counts = [
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
            published.labels,
            value_counts,
            published.levels or [None] * len(axes),
            strict=True,
        )
    ]
    return points, value_counts, covers


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
    stars = [cover.starred[frequencies.codes[:, at]] for at, cover in enumerate(covers)]
    places = np.flatnonzero(~np.all(stars, axis=0))
    if not len(places):
        return frequencies
    return Frequencies(frequencies.codes[places], frequencies.counts[places])


def _sum_weighted(released: Frequencies, at: int, values: Floats) -> float:
    return float((values[released.codes[:, at]] * released.counts).sum())


def _compute_losses(
    released: Frequencies,
    covers: Sequence[LabelCover],
    value_counts: Sequence[Floats],
    precisions: Sequence[float],
    rows: int,
) -> Losses:
    missing = max(rows - released.total, 0)
    total_rows = max(rows, released.total, 1)
    lost = []
    for at, (cover, values) in enumerate(zip(covers, value_counts, strict=True)):
        floor, ceiling = compute_entropy_scale(values)
        bits = _sum_weighted(released, at, np.log2(np.maximum(cover.rows, 1))) + missing * ceiling
        spread = (ceiling - floor) * total_rows
        lost.append(max((bits - floor * total_rows) / spread, 0.0) if spread > 0 else 0.0)
    size = compute_average_class_size(released.counts)
    return Losses(
        precision=float(np.mean([(total + missing) / total_rows for total in precisions])),
        entropy=float(np.mean(lost)),
        discernibility=compute_discernibility(released.counts, missing, total_rows),
        average_class_size=size if np.isfinite(size) else None,
    )


def _evaluate_utility(
    full_pair: utility.TablePair, quasi: int, target: str | None, held_out: Frequencies | None
) -> Utility:
    """Measure utility; all but the accuracy is about the generalized columns alone."""
    pair = full_pair
    if quasi < len(full_pair.names):
        pair = utility.TablePair(
            full_pair.names[:quasi],
            merge_tuples(full_pair.original.codes[:, :quasi], full_pair.original.counts),
            merge_tuples(full_pair.released.codes[:, :quasi], full_pair.released.counts),
            full_pair.shares[:quasi],
            full_pair.ordered[:quasi],
            full_pair.noise,
        )
    accuracy = None
    if target is not None:
        accuracy = prediction.compute_accuracy(full_pair, target=target, held_out=held_out)
    return measure_utility(pair, accuracy)


def measure_utility(
    pair: utility.TablePair,
    accuracy: prediction.Accuracy | None = None,
    *,
    query_count: int | None = None,
) -> Utility:
    """Measure what can be learned from a release, by ``query_count`` random counts."""
    with use_one_thread():
        associations = compute_associations(pair)
        queries = (
            utility.measure_query_errors(pair)
            if query_count is None
            else utility.measure_query_errors(pair, count=query_count)
        )
        distances = utility.compute_distances(pair)
    return Utility(
        distance_by_column=distances,
        associations=associations,
        association_error=compute_mean_error(associations),
        query_error=queries.median_error,
        query_error_mean=queries.mean_error,
        accuracy=accuracy,
    )


def assign_levels(
    original: CountedTable, published: PublishedTable, declared_levels: Mapping[str, int]
) -> tuple[PublishedTable, tuple[Finding, ...]]:
    """Return what is published with the levels that it is read at, and any findings.

    A level that is known counts where the labels of the column are labels of it, but for ``*``.
    """
    levels, findings = list[int | None](), list[Finding]()
    columns = zip(original.names, original.hierarchies, published.labels, strict=False)
    for name, hierarchy, labels in columns:
        level = declared_levels.get(name)
        texts = {x if isinstance(x, str) else canonicalize_value(x) for x in labels} - {ROOT}
        if level is None or level >= hierarchy.height or texts - {*hierarchy.labels[level]}:
            level, doubts = read_level(name, hierarchy, labels)
            findings += doubts
        levels.append(level)
    return replace(published, levels=tuple(levels)), tuple(findings)
