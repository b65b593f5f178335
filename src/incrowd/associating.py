"""Which associations between columns survive where they are released in slices; for the curator.

A reader of slices sees the association of two columns in a slice that has both. Of columns that
stand in no slice together the reader knows nothing, and takes them to be independent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol

import numpy as np

from incrowd.anonymize.frequency import merged
from incrowd.anonymize.recoding import Axis
from incrowd.engine.count import Counted
from incrowd.evaluating import Evaluation, Shown, pair_of
from incrowd.measure import utility
from incrowd.outcome import Outcome


@dataclass(frozen=True)
class Survival:
    """Cramér's V of two columns in the table and as released, and the slice that shows it.

    Slices count from 1; None marks a pair that stands in no slice, whose V reads as 0.
    """

    first: str
    second: str
    original: float
    released: float
    slice: int | None


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


def part_of(whole: Counted, names: Sequence[str]) -> Counted:
    """The tuples of some of the columns."""
    places = [whole.names.index(name) for name in names]
    return replace(
        whole,
        names=tuple(names),
        hierarchies=tuple(whole.hierarchies[at] for at in places),
        levels=tuple(whole.levels[at] for at in places),
        frequencies=merged(whole.frequencies.codes[:, places], whole.frequencies.counts),
    )


def sliced(
    whole: Counted,
    axes: Sequence[Axis],
    parts: Sequence[Part],
) -> Sliced:
    """Hold slices against the table."""
    by_name = dict(zip(whole.names, axes, strict=True))
    shown: dict[frozenset[str], tuple[float, int]] = {}
    most: dict[frozenset[str], int] = {}
    for number, part in enumerate(parts, 1):
        names, own = tuple(part.scheme), part.evaluation
        assert part.shown is not None
        pair = pair_of(part_of(whole, names), [by_name[name] for name in names], part.shown)
        for found in utility.associations(pair):
            both = frozenset((found.first, found.second))
            if own.rows_released > most.get(both, -1):
                most[both], shown[both] = own.rows_released, (found.released, number)
    survivals = []
    for known in utility.associations(pair_of(whole, axes, _nothing(whole))):
        released, place = shown.get(frozenset((known.first, known.second)), (0.0, None))
        survivals.append(Survival(known.first, known.second, known.original, released, place))
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


def _nothing(whole: Counted) -> Shown:
    """A release that shows no row."""
    rows = whole.frequencies
    return Shown(
        ((),) * len(whole.names), replace(rows, codes=rows.codes[:0], counts=rows.counts[:0])
    )
