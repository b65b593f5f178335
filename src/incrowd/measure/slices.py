"""Which associations between columns survive where they are released in slices; for the curator.

A reader of slices sees the association of two columns in a slice that has both and shows something
of both: more than one label each. Of all other pairs the reader knows nothing, and takes their
columns to be independent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol

import numpy as np

from incrowd.codes.axis import Axis
from incrowd.codes.counted import Counted, Shown
from incrowd.codes.hierarchy import ROOT
from incrowd.measure import utility
from incrowd.measure.evaluation import Evaluation, pair_of
from incrowd.measure.outcome import Outcome


@dataclass(frozen=True)
class Survival:
    """Cramér's V of two columns in the table and as released, and the slice that shows it.

    Slices count from 1; None marks a pair that no slice shows, whose V reads as 0. If such a pair
    does stand together in a slice, but that shows one and the same label of a column in all rows
    (``*``, say), ``silent`` is that slice.
    """

    first: str
    second: str
    original: float
    released: float
    slice: int | None
    silent: int | None = None


@dataclass(frozen=True)
class Sliced:
    """What several narrow tables keep, one by one and together.

    ``loss`` is the mean over slices, each by its number of columns; ``association_error`` the
    mean difference of V over all pairs of columns.
    """

    rows_original: int
    slices: tuple[Outcome | Evaluation, ...]
    columns: tuple[tuple[str, ...], ...]
    loss: float
    associations: tuple[Survival, ...]
    association_error: float

    @property
    def rows_released(self) -> int:
        """The rows of all slices."""
        return sum(one.rows_released for one in self.slices)

    def as_dict(self) -> dict[str, Any]:
        """The evaluation as plain values, for JSON."""
        return asdict(self)


class Part(Protocol):
    """A slice."""

    @property
    def scheme(self) -> Mapping[str, object]:
        """Its columns."""
        ...

    @property
    def shown(self) -> Shown | None:
        """What they show."""
        ...

    @property
    def evaluation(self) -> Outcome | Evaluation:
        """What it keeps by itself."""
        ...


def sliced(
    whole: Counted,
    axes: Sequence[Axis],
    parts: Sequence[Part],
) -> Sliced:
    """Hold slices against the table."""
    by_name = dict(zip(whole.names, axes, strict=True))
    best: dict[frozenset[str], tuple[bool, int]] = {}
    shown: dict[frozenset[str], tuple[float, int | None, int | None]] = {}
    for number, part in enumerate(parts, 1):
        names, own = tuple(part.scheme), part.evaluation
        assert part.shown is not None
        inside = whole.part(names)
        telling = _telling(inside, part.shown)
        pair = pair_of(inside, [by_name[name] for name in names], part.shown)
        for found in utility.associations(pair):
            both, tells = (
                frozenset((found.first, found.second)),
                telling >= {found.first, found.second},
            )
            if (tells, own.rows_released) > best.get(both, (False, -1)):
                best[both] = (tells, own.rows_released)
                shown[both] = (found.released, number, None) if tells else (0.0, None, number)
    survivals = []
    for known in utility.associations(pair_of(whole, axes, _nothing(whole))):
        seen = shown.get(frozenset((known.first, known.second)), (0.0, None, None))
        survivals.append(Survival(known.first, known.second, known.original, *seen))
    columns = tuple(tuple(part.scheme) for part in parts)
    losses = [part.evaluation.loss for part in parts]
    return Sliced(
        rows_original=whole.frequencies.total,
        slices=tuple(part.evaluation for part in parts),
        columns=columns,
        loss=float(np.average(losses, weights=[len(names) for names in columns])),
        associations=tuple(survivals),
        association_error=float(np.mean([abs(x.original - x.released) for x in survivals])),
    )


def _telling(part: Counted, shown: Shown) -> set[str]:
    """The columns that show more than one label in the rows of a slice."""
    found = set()
    for at, (name, hierarchy) in enumerate(zip(part.names, part.hierarchies, strict=True)):
        used = {shown.labels[at][code] for code in np.unique(shown.frequencies.codes[:, at])}
        if len({ROOT if label == hierarchy.root else label for label in used}) > 1:
            found.add(name)
    return found


def _nothing(whole: Counted) -> Shown:
    """A release that shows no row."""
    rows = whole.frequencies
    return Shown(
        ((),) * len(whole.names), replace(rows, codes=rows.codes[:0], counts=rows.counts[:0])
    )
