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
from incrowd.anonymize.objectives import Objective, make_objective
from incrowd.anonymize.ola import NoSchemeError, find_optimal_node
from incrowd.arrays import Floats, Progress
from incrowd.codes.counted_table import DistinctRows
from incrowd.engine.table import Table
from incrowd.errors import IncrowdError
from incrowd.measure.loss import LossName
from incrowd.measure.payout import PayoutModel
from incrowd.methods.k_anonymity.class_rules import list_protected
from incrowd.methods.k_anonymity.classes import (
    count_suppressible,
    make_lattice,
    make_rollups,
)
from incrowd.methods.k_anonymity.method import KAnonymity
from incrowd.methods.k_anonymity.payout import make_payout_model
from incrowd.methods.people import draw_rows
from incrowd.privacy.randomness import SystemRandomness
from incrowd.spec.file import SpecFile
from incrowd.spec.model import PersonId
from incrowd.spec.release import ClassesSpec, KAnonymitySpec

MOST_SCHEMES = 5_000  # of which all are looked at,
_MOST_TUPLES = 300_000_000  # unless they would take more looks at a tuple than this


@dataclass(frozen=True)
class SchemeFigures:
    """One scheme: a level for each column, and what it would give.

    ``holds`` says whether it is k-anonymous, with every rule kept, within the rows that may be
    suppressed. ``smallest`` is the smallest class that is shown and ``risk`` one over it: the
    highest chance of whoever knows somebody's values to name the right row; ``mean_risk`` is the
    mean of that chance over all rows shown. Where no class is shown all three are 0. ``payout`` is
    what it pays, if the spec has a `payout`; the loss is then the missing share of the highest.
    """

    levels: Node
    loss: float
    suppressed: int
    classes: int
    smallest: int
    risk: float
    mean_risk: float
    holds: bool
    payout: float | None = None


@dataclass(frozen=True)
class ExploredColumn:
    """A column that is generalized, the levels it may take, and what each of them shows."""

    name: str
    low: int
    high: int
    words: tuple[str, ...]


@dataclass(frozen=True)
class Exploration:
    """Schemes with their figures, the best first; those that do not hold come last.

    ``size`` is how many schemes there are, ``limit`` how many rows may be suppressed. ``rows`` are
    those that are judged: ``one_row_each`` says that one row of each person is, the one that
    :func:`incrowd.publish` uses. ``chosen`` are the levels that the spec has fixed, if it fixes
    that of every column.
    """

    columns: tuple[ExploredColumn, ...]
    schemes: tuple[SchemeFigures, ...]
    size: int
    rows: int
    k: int
    limit: int
    loss: str
    chosen: Node | None
    one_row_each: bool = False
    people: bool = False

    @property
    def is_complete(self) -> bool:
        """Whether every scheme was looked at."""
        return len(self.schemes) == self.size

    @property
    def best(self) -> SchemeFigures | None:
        """The scheme of least loss that holds; None where none does."""
        first = self.schemes[0] if self.schemes else None
        return first if first is not None and first.holds else None

    def find_scheme(self, levels: Node) -> SchemeFigures | None:
        """Return a scheme by its levels; None if it was not evaluated."""
        return next((scheme for scheme in self.schemes if scheme.levels == levels), None)

    def describe_scheme(self, scheme: SchemeFigures) -> dict[str, str]:
        """Describe what each column would show."""
        pairs = zip(self.columns, scheme.levels, strict=True)
        return {column.name: column.words[level] for column, level in pairs}

    def as_dict(self) -> dict[str, Any]:
        """Return the exploration as plain values, for JSON; an unbounded loss is null."""
        fields = asdict(self)
        for scheme in fields["schemes"]:
            scheme["loss"] = scheme["loss"] if math.isfinite(scheme["loss"]) else None
        return {**fields, "whole": self.is_complete}


def explore_schemes(
    file: SpecFile,
    table: Table,
    *,
    most: int = MOST_SCHEMES,
    progress: Progress = lambda _done, _all: None,
) -> Exploration:
    """Evaluate the schemes of a k-anonymous release, whatever is left to confirm.

    Where the spec fixes the level of every column, others are looked at all the same; limits that
    leave a choice are kept to.
    """
    if not isinstance(file.spec.release, KAnonymitySpec):
        raise IncrowdError(
            "Exploring is for `method: k-anonymity`: a safe release must not be chosen by its "
            f"result. For `k-epsilon`, use: incrowd plan --spec {file.shell_name}."
        )
    method = KAnonymity(file.with_all_confirmed())
    release = method.columns.release
    if (release.algorithm or "ola") != "ola":
        raise IncrowdError(
            f"Algorithm '{release.algorithm}' has no schemes to explore. Use `algorithm: ola`."
        )
    rows = method.count(draw_rows(table, file.spec, SystemRandomness()))
    if not isinstance(rows, DistinctRows):
        rows = rows.rows
    method = method.at_size(rows.frequencies.total)
    names, fixed = rows.counted.names, release.levels
    chosen = tuple(x for name in names if isinstance(x := fixed.get(name), int))
    settled = len(chosen) == len(names)
    if settled:
        release = release.model_copy(update={"levels": {}})
    lattice = make_lattice(rows, release)
    search = _SchemeEvaluator(rows, method, release, lattice)
    few = lattice.size <= most and lattice.size * len(search.rollups.frequencies) <= _MOST_TUPLES
    nodes = _list_nodes(lattice) if few else search.list_near_best()
    exploration = []
    listed = list(dict.fromkeys([*nodes, *([chosen] if settled else [])]))
    for at, node in enumerate(listed):
        progress(at, len(listed))
        exploration.append(search.evaluate_scheme(node))
    declared = method.columns.declared
    return Exploration(
        columns=tuple(
            ExploredColumn(
                name,
                lattice.low[at],
                lattice.high[at],
                tuple(
                    declared.describe_level(name, level) for level in range(declared.height(name))
                ),
            )
            for at, name in enumerate(names)
        ),
        schemes=tuple(
            sorted(exploration, key=lambda scheme: (not scheme.holds, scheme.loss, scheme.levels))
        ),
        size=lattice.size,
        rows=search.rollups.total,
        one_row_each=isinstance(file.spec.unit, PersonId) and file.spec.unit.rows == 1,
        people=rows.people is not None,
        k=search.k,
        limit=search.limit,
        loss=search.loss,
        chosen=chosen if settled else None,
    )


def _list_nodes(lattice: Lattice) -> Iterator[Node]:
    return (lattice.get_node(place) for place in range(lattice.size))


class _SchemeEvaluator:
    """The figures of any scheme of a lattice."""

    def __init__(
        self, rows: DistinctRows, method: KAnonymity, release: ClassesSpec, lattice: Lattice
    ) -> None:
        columns = {**method.columns.quasi, **method.columns.kept}
        protected = list_protected(rows, columns, method.columns.folder)
        self.rollups: Rollups = make_rollups(rows, protected)
        self.k, self._lattice = method.columns.k, lattice
        self.limit = count_suppressible(release, rows.frequencies.total)
        names = rows.counted.names
        self._payout = make_payout_model(release, columns, names, rows.frequencies.total)
        self._loss: LossName | PayoutModel = self._payout or release.loss or "normalized"
        self.loss = "payout" if isinstance(self._loss, PayoutModel) else self._loss
        self._weights: Floats = np.array([columns[name].weight for name in names])
        self._goal: Objective = make_objective(
            self._loss, lattice, self.rollups, limit=self.limit, weights=self._weights
        )

    def evaluate_scheme(self, node: Node) -> SchemeFigures:
        """Return what a scheme would give."""
        classes = self.rollups.count_classes(node, k=self.k)
        assert classes is not None
        sizes = classes.sizes[~classes.lost]
        smallest = int(sizes.min()) if len(sizes) else 0
        loss, payout = self._goal.compute_loss(node, classes), None
        if self._payout is not None:
            payout = (1 - loss) * self.rollups.total * self._payout.benefit
        return SchemeFigures(
            levels=node,
            loss=loss,
            suppressed=classes.suppressed,
            classes=len(sizes),
            smallest=smallest,
            risk=1 / smallest if smallest else 0.0,
            mean_risk=len(sizes) / int(sizes.sum()) if len(sizes) else 0.0,
            holds=classes.suppressed <= self.limit,
            payout=payout,
        )

    def list_near_best(self) -> Iterator[Node]:
        """Yield the best, all one level from it, and one path from it to either end.

        Where none holds, the coarsest stands for the best.
        """
        lattice = self._lattice
        try:
            best = find_optimal_node(
                self.rollups, lattice,
                k=self.k, limit=self.limit, loss=self._loss, weights=self._weights,
            ).levels  # fmt: skip
        except NoSchemeError:
            best = lattice.high
        yield best
        for node in _list_neighbors(lattice, best):
            yield node
            yield from _list_neighbors(lattice, node)
        yield from _walk_to_end(best, lattice.low)
        yield from _walk_to_end(best, lattice.high)


def _list_neighbors(lattice: Lattice, node: Node) -> Iterator[Node]:
    """Yield the nodes one level finer or coarser in one column."""
    yield from lattice.iterate_children(node)
    for at, level in enumerate(node):
        if level < lattice.high[at]:
            yield (*node[:at], level + 1, *node[at + 1 :])


def _walk_to_end(start: Node, end: Node) -> Iterator[Node]:
    """Yield the nodes from one to a finer or coarser one, level by level.

    At each step the column goes that is furthest from its end.
    """
    node = start
    while node != end:
        at = max(range(len(node)), key=lambda at: abs(end[at] - node[at]))
        step = 1 if end[at] > node[at] else -1
        node = (*node[:at], node[at] + step, *node[at + 1 :])
        yield node
