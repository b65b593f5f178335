"""A log-linear model on a junction tree, with exact inference.

Each column sits in the model at one level; the leaves below a group of that level depend on the
group alone (:class:`Model`). A :class:`Structure` says which columns stand together and at which
levels; potentials, one table for each clique, turn it into probabilities.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from incrowd.anonymize.synthetic.domain import Columns, Domain, Levels, RulesError
from incrowd.anonymize.synthetic.tree import Graph, JunctionTree, build_tree, triangulate
from incrowd.arrays import Floats


@dataclass(frozen=True, eq=False)
class Structure:
    """A junction tree over a domain, with a level for each column."""

    domain: Domain
    levels: tuple[int, ...]
    tree: JunctionTree

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The number of groups of each column, at its level."""
        pairs = zip(self.domain.columns, self.levels, strict=True)
        return tuple(column.sizes[level] for column, level in pairs)

    @cached_property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shape of each clique's table."""
        return tuple(tuple(self.sizes[x] for x in clique) for clique in self.tree.cliques)

    def home(self, columns: Columns) -> int:
        """Return the smallest clique that holds all of some columns; -1 if none does."""
        members_needed = sum(1 << column for column in columns)
        return next((at for members, at in self._by_size if not members_needed & ~members), -1)

    @cached_property
    def _by_size(self) -> list[tuple[int, int]]:
        """The columns of each clique, as bits, and its number; the smallest clique first."""
        order = sorted(range(len(self.shapes)), key=lambda at: math.prod(self.shapes[at]))
        return [(sum(1 << x for x in self.tree.cliques[at]), at) for at in order]

    def expand(self, table: Floats, columns: Columns, clique: int) -> Floats:
        """Return a table of some columns, shaped to be broadcast over a clique."""
        inside = self.tree.cliques[clique]
        return table.reshape([self.sizes[x] if x in columns else 1 for x in inside])

    @cached_property
    def masks(self) -> tuple[Floats | None, ...]:
        """For each clique 1 where the rules allow a row, 0 elsewhere; None where all is allowed."""
        masks: list[Floats | None] = [None] * len(self.tree.cliques)
        for columns, allowed in self.domain.rules.items():
            for axis, column in enumerate(columns):
                starts = self.domain.columns[column].starts[self.levels[column]]
                allowed = np.take(allowed, starts, axis=axis)
            at = self.home(columns)
            mask = np.broadcast_to(
                self.expand(allowed.astype(np.float64), columns, at), self.shapes[at]
            )
            before = masks[at]
            masks[at] = mask.copy() if before is None else before * mask
        return tuple(masks)

    @cached_property
    def _sums(self) -> tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]:
        """The axes that are summed out from each clique, and from its parent, to its separator."""
        cliques, parents = self.tree.cliques, self.tree.parents
        return tuple(
            (
                _axes_without(cliques[at], separator),
                _axes_without(cliques[parents[at]], separator) if parents[at] >= 0 else (),
            )
            for at, separator in enumerate(self.tree.separators)
        )

    def calibrate(self, potentials: Sequence[Floats]) -> tuple[list[Floats], float]:
        """Return the probabilities of each clique's cells, and the logarithm of the partition sum.

        Raises:
            RulesError: if the rules leave no row.

        """
        tree = self.tree
        beliefs: list[Floats] = []
        log_sum = 0.0
        for potential, mask in zip(potentials, self.masks, strict=True):
            top = float(potential.max())
            log_sum += top
            belief = np.exp(potential - top)
            beliefs.append(belief if mask is None else belief * mask)
        messages: dict[int, Floats] = {}
        for at in reversed(tree.order[1:]):
            message = beliefs[at].sum(axis=self._sums[at][0])
            scale = float(message.max())
            if not scale > 0:
                raise RulesError("The rules contradict each other: no row obeys them all.")
            log_sum += math.log(scale)
            message /= scale
            messages[at] = message * scale
            beliefs[tree.parents[at]] *= self.expand(message, tree.separators[at], tree.parents[at])
        root = tree.order[0]
        total = float(beliefs[root].sum())
        if not total > 0:
            raise RulesError("The rules contradict each other: no row obeys them all.")
        log_sum += math.log(total)
        beliefs[root] /= total
        for at in tree.order[1:]:
            margin = beliefs[tree.parents[at]].sum(axis=self._sums[at][1])
            message = messages[at]
            ratio = np.divide(margin, message, out=np.zeros_like(margin), where=message > 0)
            beliefs[at] *= self.expand(ratio, tree.separators[at], at)
        return beliefs, log_sum


def make_structure(domain: Domain, levels: Sequence[int], graph: Graph) -> Structure:
    """Return the structure for a graph of columns, each at a level."""
    sizes = [column.sizes[level] for column, level in zip(domain.columns, levels, strict=True)]
    return Structure(domain, tuple(levels), build_tree(triangulate(graph, sizes)))


def _axes_without(columns: Columns, remaining: Sequence[int]) -> tuple[int, ...]:
    return tuple(axis for axis, column in enumerate(columns) if column not in remaining)


@dataclass(frozen=True, eq=False)
class Model:
    """A fitted model: the probabilities of each clique, and of each leaf given its group.

    ``rows`` is the estimated number of rows. ``shares[x]`` holds, for each leaf of column x, its
    probability given its group at the column's level.
    """

    structure: Structure
    marginals: Sequence[Floats]
    shares: Sequence[Floats]
    rows: float
    gap: float = 0.0
    _messages: dict[tuple[int, Columns], tuple[Columns, Floats]] = field(default_factory=dict)

    def table(self, columns: Columns, levels: Levels) -> Floats:
        """Return the probabilities of any few columns at any levels, exactly."""
        structure = self.structure
        table = self._joint(columns)
        for axis, (column, level) in enumerate(zip(columns, levels, strict=True)):
            model_column, at = structure.domain.columns[column], structure.levels[column]
            if level > at:
                table = np.add.reduceat(table, model_column.runs(at, level), axis=axis)
            elif level < at:
                share = np.add.reduceat(self.shares[column], model_column.starts[level])
                shape = [-1 if other == axis else 1 for other in range(len(columns))]
                table = np.take(table, model_column.parents(level, at), axis=axis) * share.reshape(
                    shape
                )
        return table

    def _joint(self, columns: Columns) -> Floats:
        """Return the probabilities of some columns at their levels in the model."""
        tree = self.structure.tree
        home = self.structure.home(columns)
        if home >= 0:
            joint: Floats = self.marginals[home].sum(
                axis=_axes_without(tree.cliques[home], columns)
            )
            return joint
        top = self._meeting_place(columns)
        inside, table = self._collect(top, columns, conditional=False)
        return np.transpose(table, [inside.index(column) for column in columns])

    def _meeting_place(self, columns: Columns) -> int:
        """Return the clique farthest from the root that has all columns in or below it."""
        tree = self.structure.tree
        places = {tree.homes[column] for column in columns}
        while len(places) > 1:
            deepest = max(places, key=lambda at: tree.depths[at])
            places.discard(deepest)
            places.add(tree.parents[deepest])
        return places.pop()

    def _message(self, at: int, targets: Columns) -> tuple[Columns, Floats]:
        """P(targets | separator), of targets whose homes are in or below a clique."""
        key = (at, targets)
        if key not in self._messages:
            self._messages[key] = self._collect(at, targets, conditional=True)
        return self._messages[key]

    def _collect(self, at: int, targets: Columns, *, conditional: bool) -> tuple[Columns, Floats]:
        """Sum a clique's table, times the messages of its children, down to targets.

        If ``conditional``, given its separator, which stays; with the columns of the result's axes.
        """
        tree = self.structure.tree
        clique, separator = tree.cliques[at], tree.separators[at] if conditional else ()
        below: dict[int, list[int]] = {}
        for column in targets:
            if column not in clique:
                below.setdefault(self._child_towards(tree.homes[column], at), []).append(column)
        parts = [
            self._message(child, tuple(child_targets)) for child, child_targets in below.items()
        ]
        remaining = {*separator, *targets}.union(*(set(inside) for inside, _ in parts)) & set(
            clique
        )
        inside = tuple(column for column in clique if column in remaining)
        table = self.marginals[at].sum(axis=_axes_without(clique, inside))
        if conditional:
            margin = table.sum(axis=_axes_without(inside, separator), keepdims=True)
            shape = [n if x in separator else 1 for x, n in zip(inside, table.shape, strict=True)]
            margin = margin.reshape(shape)
            table = np.divide(table, margin, out=np.zeros_like(table), where=margin > 0)
        for number, (labels, message) in enumerate(parts):
            later = {column for other, _ in parts[number + 1 :] for column in other}
            needed = {*separator, *targets, *later}
            out = tuple(x for x in dict.fromkeys((*inside, *labels)) if x in needed)
            names = {x: n for n, x in enumerate(dict.fromkeys((*inside, *labels)))}
            operands = [names[x] for x in inside], [names[x] for x in labels]
            table = np.einsum(table, operands[0], message, operands[1], [names[x] for x in out])
            inside = out
        return inside, table

    def _child_towards(self, home: int, at: int) -> int:
        """Return the child of a clique below which a home lies."""
        tree = self.structure.tree
        while tree.parents[home] != at:
            home = tree.parents[home]
        return home
