"""Explore the schemes of a k-anonymous release: what each would lose, suppress and risk.

Every figure is read from the table, for the curator alone. Of a lattice of some thousands of
schemes each one is looked at; of a larger one the best, those one level from it, and those on the
way from it to the finest and to the coarsest scheme.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from incrowd.anonymize.lattice import Lattice, Node, Rollups
from incrowd.anonymize.objectives import Objective, objective
from incrowd.anonymize.ola import NoSchemeError, optimal
from incrowd.arrays import Floats, Progress
from incrowd.codes.counted import Rows
from incrowd.engine.table import Table
from incrowd.errors import IncrowdError
from incrowd.measure.loss import LossName
from incrowd.methods.k_anonymity.classes import (
    lattice_of,
    protected_of,
    rollups_of,
    suppressible,
)
from incrowd.methods.k_anonymity.method import KAnonymity
from incrowd.methods.people import draw_rows
from incrowd.privacy.randomness import SystemRandomness
from incrowd.spec.file import SpecFile
from incrowd.spec.model import PersonId
from incrowd.spec.release import ClassesSpec, KAnonymitySpec

MOST_SCHEMES = 5_000  # of which all are looked at,
_MOST_TUPLES = 300_000_000  # unless they would take more looks at a tuple than this


@dataclass(frozen=True)
class Scheme:
    """One scheme: a level for each column, and what it would give.

    ``holds`` says whether it is k-anonymous, with every rule kept, within the rows that may be
    suppressed. ``smallest`` is the smallest class that is shown and ``risk`` one over it: the
    highest chance of whoever knows somebody's values to name the right row; ``mean_risk`` is the
    mean of that chance over all rows shown. Where no class is shown all three are 0.
    """

    levels: Node
    loss: float
    suppressed: int
    classes: int
    smallest: int
    risk: float
    mean_risk: float
    holds: bool


@dataclass(frozen=True)
class Column:
    """A column that is generalised, the levels it may take, and what each of them shows."""

    name: str
    low: int
    high: int
    words: tuple[str, ...]


@dataclass(frozen=True)
class Explored:
    """Schemes with their figures, the best first; those that do not hold come last.

    ``size`` is how many schemes there are, ``limit`` how many rows may be suppressed. ``rows`` are
    those that are judged: ``one_row_each`` says that one row of each person is, the one that
    :func:`incrowd.publish` uses. ``chosen`` are the levels that the spec has fixed, if it fixes
    that of every column.
    """

    columns: tuple[Column, ...]
    schemes: tuple[Scheme, ...]
    size: int
    rows: int
    k: int
    limit: int
    loss: LossName
    chosen: Node | None
    one_row_each: bool = False

    @property
    def whole(self) -> bool:
        """Whether every scheme was looked at."""
        return len(self.schemes) == self.size

    @property
    def best(self) -> Scheme | None:
        """The scheme of least loss that holds; None where none does."""
        first = self.schemes[0] if self.schemes else None
        return first if first is not None and first.holds else None

    def at(self, levels: Node) -> Scheme | None:
        """A scheme by its levels; None if it was not looked at."""
        return next((one for one in self.schemes if one.levels == levels), None)

    def words(self, scheme: Scheme) -> dict[str, str]:
        """What each column would show."""
        pairs = zip(self.columns, scheme.levels, strict=True)
        return {column.name: column.words[level] for column, level in pairs}

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain values, for JSON; a loss without bounds is null."""
        known = asdict(self)
        for one in known["schemes"]:
            one["loss"] = one["loss"] if math.isfinite(one["loss"]) else None
        return {**known, "whole": self.whole}


def explore(
    file: SpecFile,
    table: Table,
    *,
    most: int = MOST_SCHEMES,
    progress: Progress = lambda _done, _all: None,
) -> Explored:
    """The schemes of a k-anonymous release, whatever is left to confirm in its spec.

    Where the spec fixes the level of every column, others are looked at all the same; limits that
    leave a choice are kept to.
    """
    if not isinstance(file.spec.release, KAnonymitySpec):
        raise IncrowdError(
            "Exploring is for `method: k-anonymity`: a safe release must not be chosen by its "
            "result. For `k-epsilon`, use: incrowd plan --spec SPEC."
        )
    method = KAnonymity(file.confirmed())
    release = method.columns.release
    if (release.algorithm or "ola") != "ola":
        raise IncrowdError(
            f"Algorithm '{release.algorithm}' has no schemes to explore. Use `algorithm: ola`."
        )
    rows = method.count(draw_rows(table, file.spec, SystemRandomness()))
    if not isinstance(rows, Rows):
        rows = rows.rows
    names, fixed = rows.counted.names, release.levels
    chosen = tuple(x for name in names if isinstance(x := fixed.get(name), int))
    settled = len(chosen) == len(names)
    if settled:
        release = release.model_copy(update={"levels": {}})
    lattice = lattice_of(rows, release)
    search = _Figures(rows, method, release, lattice)
    few = lattice.size <= most and lattice.size * len(search.rollups.frequencies) <= _MOST_TUPLES
    nodes = _every(lattice) if few else search.near_the_best()
    found = []
    listed = list(dict.fromkeys([*nodes, *([chosen] if settled else [])]))
    for at, node in enumerate(listed):
        progress(at, len(listed))
        found.append(search.scheme(node))
    declared = method.columns.declared
    return Explored(
        columns=tuple(
            Column(
                name, lattice.low[at], lattice.high[at],
                tuple(declared.words(name, level) for level in range(declared.height(name))),
            )
            for at, name in enumerate(names)
        ),
        schemes=tuple(sorted(found, key=lambda one: (not one.holds, one.loss, one.levels))),
        size=lattice.size,
        rows=search.rollups.total,
        one_row_each=isinstance(file.spec.unit, PersonId),
        k=search.k,
        limit=search.limit,
        loss=release.loss or "normalised",
        chosen=chosen if settled else None,
    )  # fmt: skip


def _every(lattice: Lattice) -> Iterator[Node]:
    return (lattice.at(place) for place in range(lattice.size))


class _Figures:
    """The figures of any scheme of a lattice."""

    def __init__(
        self, rows: Rows, method: KAnonymity, release: ClassesSpec, lattice: Lattice
    ) -> None:
        columns = {**method.columns.quasi, **method.columns.kept}
        protected = protected_of(rows, columns)
        self.rollups: Rollups = rollups_of(rows, protected)
        self.k, self._lattice = method.columns.k, lattice
        self.limit = suppressible(release, rows.frequencies.total)
        self._loss: LossName = release.loss or "normalised"
        self._weights: Floats = np.array([columns[name].weight for name in rows.counted.names])
        self._goal: Objective = objective(
            self._loss, lattice, self.rollups, limit=self.limit, weights=self._weights
        )

    def scheme(self, node: Node) -> Scheme:
        """What a scheme would give."""
        classes = self.rollups.classes(node, k=self.k)
        assert classes is not None
        shown = classes.sizes[~classes.lost]
        smallest = int(shown.min()) if len(shown) else 0
        return Scheme(
            levels=node,
            loss=self._goal.loss(node, classes),
            suppressed=classes.suppressed,
            classes=len(shown),
            smallest=smallest,
            risk=1 / smallest if smallest else 0.0,
            mean_risk=len(shown) / int(shown.sum()) if len(shown) else 0.0,
            holds=classes.suppressed <= self.limit,
        )

    def near_the_best(self) -> Iterator[Node]:
        """The best, all one level from it, and one way from it to either end.

        Where none holds, the coarsest stands for the best.
        """
        lattice = self._lattice
        try:
            best = optimal(
                self.rollups, lattice,
                k=self.k, limit=self.limit, loss=self._loss, weights=self._weights,
            ).levels  # fmt: skip
        except NoSchemeError:
            best = lattice.high
        yield best
        for node in _one_away(lattice, best):
            yield node
            yield from _one_away(lattice, node)
        yield from _way(best, lattice.low)
        yield from _way(best, lattice.high)


def _one_away(lattice: Lattice, node: Node) -> Iterator[Node]:
    """The nodes one level finer or coarser in one column."""
    yield from lattice.children(node)
    for at, level in enumerate(node):
        if level < lattice.high[at]:
            yield (*node[:at], level + 1, *node[at + 1 :])


def _way(start: Node, end: Node) -> Iterator[Node]:
    """From a node to one that is finer everywhere or coarser everywhere, level by level.

    At each step the column goes that is furthest from its end.
    """
    node = start
    while node != end:
        at = max(range(len(node)), key=lambda at: abs(end[at] - node[at]))
        step = 1 if end[at] > node[at] else -1
        node = (*node[:at], node[at] + step, *node[at + 1 :])
        yield node
