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
    whole: CountedTable,
    parts: Sequence[tuple[Sequence[str], PublishedTable]],
    each: Sequence[Evaluation],
) -> Evaluation:
    """Compare slices with the table: their columns with what these show, and each by itself."""
    axes = whole.axes
    by_name = dict(zip(whole.names, axes, strict=True))
    best: dict[frozenset[str], tuple[bool, int]] = {}
    seen: dict[frozenset[str], tuple[float, int | None, int | None]] = {}
    for number, ((names, shown), own) in enumerate(zip(parts, each, strict=True), 1):
        inside = whole.select_columns(names)
        telling = _find_informative_columns(inside, shown)
        pair = build_pair(inside, [by_name[name] for name in names], shown)
        for item in compute_associations(pair):
            both = frozenset((item.first, item.second))
            tells = both <= telling
            if (tells, own.rows_released) > best.get(both, (False, -1)):
                best[both] = (tells, own.rows_released)
                seen[both] = (item.released, number, None) if tells else (0.0, None, number)
    survivals = [
        Survival(
            association.first, association.second, association.original,
            *seen.get(frozenset((association.first, association.second)), (0.0, None, None)),
        )
        for association in compute_associations(build_pair(whole, axes, _make_empty_release(whole)))
    ]  # fmt: skip
    columns = tuple(tuple(names) for names, _ in parts)
    return Evaluation(
        rows_original=whole.frequencies.total,
        rows_released=sum(own.rows_released for own in each),
        suppressed=sum(own.suppressed for own in each),
        surplus=sum(own.surplus for own in each),
        classes=sum(own.classes for own in each),
        smallest_class=min((own.smallest_class for own in each if own.classes), default=0),
        loss=float(np.average([own.loss for own in each], weights=[*map(len, columns)])),
        lost=find_lost_in_slices(columns, [own.lost for own in each]),
        slices=tuple(each),
        columns=columns,
        associations=tuple(survivals),
        association_error=float(np.mean([abs(x.original - x.released) for x in survivals])),
    )


def find_lost_in_slices(columns: Sequence[Sequence[str]], each: Sequence[LostValues]) -> LostValues:
    """Find what is lost in every slice that could show it; of a value, where it lost least."""
    names = dict.fromkeys(name for some in columns for name in some)
    nothing = tuple(
        name
        for name in names
        if all(name in lost.nothing_shown for some, lost in _select_slices(name, columns, each))
    )
    lists = ([lost.values for lost in each], [lost.pairs for lost in each])
    values, pairs = (_find_least_lost(item, columns, each) for item in lists)
    return LostValues(values, pairs, nothing_shown=nothing)


def _select_slices(
    name: str, columns: Sequence[Sequence[str]], each: Sequence[LostValues]
) -> list[tuple[Sequence[str], LostValues]]:
    return [(some, lost) for some, lost in zip(columns, each, strict=True) if name in some]


def _find_least_lost(
    lists: Sequence[Sequence[LostValue]],
    columns: Sequence[Sequence[str]],
    each: Sequence[LostValues],
) -> tuple[LostValue, ...]:
    """Return the values that every slice lost that shows something of their columns."""
    met: dict[tuple[tuple[str, ...], tuple[str | None, ...]], list[LostValue]] = {}
    for first in (item for some in lists for item in some):
        met.setdefault((first.columns, first.labels), []).append(first)
    least_lost = []
    for (names, _), some in met.items():
        able = [
            1
            for own, lost in zip(columns, each, strict=True)
            if {*names} <= {*own} - {*lost.nothing_shown}
        ]
        if len(able) == len(some):
            least_lost.append(min(some, key=lambda one: one.lost))
    return tuple(sorted(least_lost, key=lambda one: (-one.lost, -one.rows, one.name)))


def _find_informative_columns(part: CountedTable, shown: PublishedTable) -> set[str]:
    """Return the columns that show more than one label in the rows of a slice."""
    informative_columns = set()
    for at, (name, hierarchy) in enumerate(zip(part.names, part.hierarchies, strict=True)):
        used = {shown.labels[at][code] for code in np.unique(shown.frequencies.codes[:, at])}
        if len({ROOT if label == hierarchy.root else label for label in used}) > 1:
            informative_columns.add(name)
    return informative_columns


def _make_empty_release(whole: CountedTable) -> PublishedTable:
    """Return a release that shows no row."""
    rows = whole.frequencies
    return PublishedTable(
        ((),) * len(whole.names), replace(rows, codes=rows.codes[:0], counts=rows.counts[:0])
    )
