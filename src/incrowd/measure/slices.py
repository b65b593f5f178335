"""Which associations between columns survive where they are released in slices; for the curator.

A reader of slices sees the association of two columns in a slice that has both and shows something
of both: more than one label each. Of all other pairs the reader knows nothing, and takes their
columns to be independent. Where numbers of rows have noise, the reader allows for it as
:mod:`incrowd.measure.association` says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from incrowd.codes.counted_table import CountedTable, PublishedTable
from incrowd.codes.hierarchy import ROOT
from incrowd.measure.association import compute_associations
from incrowd.measure.evaluation import Evaluation, Survival
from incrowd.measure.label_evaluation import build_pair
from incrowd.measure.lost_values import LostValue, LostValues


def compare_slices(
    table: CountedTable,
    parts: Sequence[tuple[Sequence[str], PublishedTable]],
    evaluations: Sequence[Evaluation],
) -> Evaluation:
    """Compare slices with the table: their columns with what these show, and each by itself."""
    axes = table.axes
    by_name = dict(zip(table.names, axes, strict=True))
    best: dict[frozenset[str], tuple[bool, int]] = {}
    best_values: dict[frozenset[str], tuple[float, int | None, int | None]] = {}
    for number, ((names, published), evaluation) in enumerate(
        zip(parts, evaluations, strict=True), 1
    ):
        inside = table.select_columns(names)
        telling = _find_informative_columns(inside, published)
        pair = build_pair(inside, [by_name[name] for name in names], published)
        for association in compute_associations(pair):
            pair_names = frozenset((association.first, association.second))
            is_informative = pair_names <= telling
            if (is_informative, evaluation.rows_released) > best.get(pair_names, (False, -1)):
                best[pair_names] = (is_informative, evaluation.rows_released)
                best_values[pair_names] = (
                    (association.released, number, None) if is_informative else (0.0, None, number)
                )
    survivals = [
        Survival(
            association.first, association.second, association.original,
            *best_values.get(frozenset((association.first, association.second)), (0.0, None, None)),
        )
        for association in compute_associations(build_pair(table, axes, _make_empty_release(table)))
    ]  # fmt: skip
    columns = tuple(tuple(names) for names, _ in parts)
    return Evaluation(
        rows_original=table.frequencies.total,
        rows_released=sum(evaluation.rows_released for evaluation in evaluations),
        suppressed=sum(evaluation.suppressed for evaluation in evaluations),
        surplus=sum(evaluation.surplus for evaluation in evaluations),
        classes=sum(evaluation.classes for evaluation in evaluations),
        smallest_class=min(
            (evaluation.smallest_class for evaluation in evaluations if evaluation.classes),
            default=0,
        ),
        loss=float(
            np.average(
                [evaluation.loss for evaluation in evaluations], weights=[*map(len, columns)]
            )
        ),
        lost=find_lost_in_slices(columns, [evaluation.lost for evaluation in evaluations]),
        slices=tuple(evaluations),
        columns=columns,
        associations=tuple(survivals),
        association_error=float(np.mean([abs(x.original - x.released) for x in survivals])),
    )


def find_lost_in_slices(
    columns: Sequence[Sequence[str]], losses: Sequence[LostValues]
) -> LostValues:
    """Find what is lost in every slice that could show it; of a value, where it lost least."""
    names = dict.fromkeys(name for slice_columns in columns for name in slice_columns)
    suppressed_columns = tuple(
        name
        for name in names
        if all(
            name in lost.nothing_shown
            for slice_columns, lost in _select_slices(name, columns, losses)
        )
    )
    lists = ([lost.values for lost in losses], [lost.pairs for lost in losses])
    values, pairs = (_find_least_lost(lost_lists, columns, losses) for lost_lists in lists)
    return LostValues(values, pairs, nothing_shown=suppressed_columns)


def _select_slices(
    name: str, columns: Sequence[Sequence[str]], losses: Sequence[LostValues]
) -> list[tuple[Sequence[str], LostValues]]:
    return [
        (slice_columns, lost)
        for slice_columns, lost in zip(columns, losses, strict=True)
        if name in slice_columns
    ]


def _find_least_lost(
    lists: Sequence[Sequence[LostValue]],
    columns: Sequence[Sequence[str]],
    losses: Sequence[LostValues],
) -> tuple[LostValue, ...]:
    """Return the values that every slice lost that shows something of their columns."""
    met: dict[tuple[tuple[str, ...], tuple[str | None, ...]], list[LostValue]] = {}
    for value in (value for values in lists for value in values):
        met.setdefault((value.columns, value.labels), []).append(value)
    least_lost = []
    for (names, _), values in met.items():
        able = [
            1
            for slice_columns, lost in zip(columns, losses, strict=True)
            if {*names} <= {*slice_columns} - {*lost.nothing_shown}
        ]
        if len(able) == len(values):
            least_lost.append(min(values, key=lambda value: value.lost))
    return tuple(sorted(least_lost, key=lambda value: (-value.lost, -value.rows, value.name)))


def _find_informative_columns(part: CountedTable, published: PublishedTable) -> set[str]:
    """Return the columns that show more than one label in the rows of a slice."""
    informative_columns = set()
    for at, (name, hierarchy) in enumerate(zip(part.names, part.hierarchies, strict=True)):
        used_labels = {
            published.labels[at][code] for code in np.unique(published.frequencies.codes[:, at])
        }
        if len({ROOT if label == hierarchy.root else label for label in used_labels}) > 1:
            informative_columns.add(name)
    return informative_columns


def _make_empty_release(table: CountedTable) -> PublishedTable:
    """Return a release that shows no row."""
    rows = table.frequencies
    return PublishedTable(
        ((),) * len(table.names), replace(rows, codes=rows.codes[:0], counts=rows.counts[:0])
    )
