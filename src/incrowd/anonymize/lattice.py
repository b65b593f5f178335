"""The lattice of full-domain schemes, and the classes at any of its nodes.

A node gives every column one level. Coarser nodes have larger classes, so everything that
holds for small classes at a node is inherited by all finer nodes; the searches live on that.
NodeClasses are rolled up from the distinct tuples at level 0; the table is never read again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from incrowd.arrays import Bools, Codes, Counts, Floats
from incrowd.codes.frequency import Frequencies
from incrowd.codes.frequency import number_tuples as named
from incrowd.codes.hierarchy import Hierarchy
from incrowd.errors import IncrowdError, ParameterError
from incrowd.measure.diversity import SensitiveColumn

Node = tuple[int, ...]
MOST_NODES = 20_000_000  # that are listed; OLA searches a larger lattice in part
SEARCH_SECONDS = 60.0  # of that search, where the spec says nothing
_DENSEST = 1 << 23  # so many cells are counted in place rather than sorted
_SPARSE = 4  # with so many cells for each tuple, buckets are tried before cells are counted
_MIXED = np.uint64(0x9E3779B97F4A7C15)  # odd: its multiples spread over the highest bits
_TABLES = 1 << 10  # lookups that are kept: 32 megabytes at most
_BUNDLED = 1 << 12  # columns are looked up together while their values make so many pairs, or fewer


@dataclass(frozen=True)
class Lattice:
    """All nodes between two nodes, both included.

    Arrays over the nodes have one axis for each column that may take several levels, so that
    there may be more columns than an array has axes.
    """

    low: Node
    high: Node

    def refuse_large(self) -> None:
        """Refuse more nodes than can be listed."""
        if self.size > MOST_NODES:
            raise ParameterError(
                "levels",
                f"leave at most {MOST_NODES:,} schemes to search",
                self.size,
                "Narrow `levels`, publish fewer columns, or use `slices` (safe) or "
                "`algorithm: mondrian` (k-anonymity).",
            )

    @cached_property
    def _free_columns(self) -> tuple[int, ...]:
        """The columns that have an axis: those with several levels, or else the first."""
        columns = (at for at, low in enumerate(self.low) if low < self.high[at])
        return tuple(columns) or (0,)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """How many levels the columns that have an axis may take."""
        return tuple(self.high[at] - self.low[at] + 1 for at in self._free_columns)

    @cached_property
    def size(self) -> int:
        """The number of nodes."""
        return math.prod(self.shape)

    def sum_levels(self, columns: Sequence[Sequence[float] | Floats]) -> Floats:
        """Return the sum over columns, at each node, of values that each level of a column has.

        Each column lists them from its lowest level on, up to some level.
        """
        return self.fold_levels(columns, np.add, 0.0)

    def fold_levels(
        self, columns: Sequence[Sequence[float] | Floats], combine: np.ufunc, start: float
    ) -> Floats:
        """Return the same with another operation in place of the sum, from ``start`` on."""
        grid = np.full((), start)
        for at, values in enumerate(columns):
            free = at in self._free_columns
            grid = combine.outer(grid, values) if free else combine(grid, values[0])
        return grid

    def sum_levels_at(
        self,
        columns: Sequence[Sequence[float] | Floats],
        levels: Sequence[npt.NDArray[np.signedinteger[Any]]],
    ) -> Floats:
        """Return what :meth:`sum_levels` does at some nodes, by their levels along each axis."""
        total = np.zeros(len(levels[0]))
        axes = iter(levels)
        for at, values in enumerate(columns):
            total += np.asarray(values)[next(axes)] if at in self._free_columns else values[0]
        return total

    def get_node(self, place: int) -> Node:
        """Return the node at a place, counted flat, of an array that has the lattice's shape."""
        node = list(self.low)
        for at, up in zip(self._free_columns, np.unravel_index(place, self.shape), strict=True):
            node[at] += int(up)
        return tuple(node)

    def slice_finer(self, node: Node) -> tuple[slice, ...]:
        """Return the places of all nodes that are nowhere coarser, the node itself among them."""
        return tuple(slice(0, up + 1) for up in self.locate_node(node))

    def slice_coarser(self, node: Node) -> tuple[slice, ...]:
        """Return the places of all nodes that are nowhere finer, the node itself among them."""
        return tuple(slice(up, None) for up in self.locate_node(node))

    def locate_node(self, node: Node) -> Node:
        """Return where the node is in an array that has the lattice's shape."""
        return tuple(node[at] - self.low[at] for at in self._free_columns)

    def iterate_children(self, node: Node) -> Iterator[Node]:
        """Yield the nodes one level finer in one column."""
        for at, level in enumerate(node):
            if level > self.low[at]:
                yield (*node[:at], level - 1, *node[at + 1 :])

    def iterate_neighbors(self, node: Node) -> Iterator[Node]:
        """Yield the nodes one level finer in one column, and those also one coarser in another."""
        for child in self.iterate_children(node):
            yield child
            for at, level in enumerate(child):
                if level < self.high[at] and child[at] == node[at]:
                    yield (*child[:at], level + 1, *child[at + 1 :])


def build_lattice(
    names: Sequence[str], heights: Sequence[int], levels: Mapping[str, int | tuple[int, int]]
) -> Lattice:
    """Return the schemes within the levels that are fixed, or given as lowest and highest."""
    low, high = [], []
    for name, height in zip(names, heights, strict=True):
        bounds = levels.get(name, (0, height - 1))
        lowest, highest = (bounds, bounds) if isinstance(bounds, int) else bounds
        if highest >= height:
            raise IncrowdError(
                f"Column '{name}': level {highest} does not exist, the highest is {height - 1}. "
                "Lower it under `levels`."
            )
        low.append(lowest)
        high.append(highest)
    return Lattice(tuple(low), tuple(high))


@dataclass(frozen=True, eq=False)
class NodeClasses:
    """The classes at a node: how many rows each has, and which of them must be suppressed.

    ``lost`` marks the classes that do not satisfy what is asked. ``surely`` marks those of
    them whose parts, at any finer node, do not satisfy it either.
    """

    keys: npt.NDArray[np.int64]
    sizes: Counts
    lost: Bools
    surely: Bools

    @property
    def suppressed(self) -> int:
        """The rows of the classes that must be suppressed."""
        return int(self.sizes[self.lost].sum())

    @property
    def surely_suppressed(self) -> int:
        """The rows that must be suppressed at every finer node as well."""
        return int(self.sizes[self.surely].sum())


class Rollups:
    """The classes at any node, from the distinct tuples at level 0.

    ``sensitive_columns`` say what must hold, besides k, of sensitive values inside each class.
    """

    def __init__(
        self,
        hierarchies: Sequence[Hierarchy],
        frequencies: Frequencies,
        sensitive_columns: Sequence[SensitiveColumn] = (),
    ) -> None:
        self.hierarchies = tuple(hierarchies)
        self.frequencies = frequencies
        self.protected = tuple(sensitive_columns)
        self.total = frequencies.total
        self._wide: dict[Node, Codes] = {}
        self._tables: dict[tuple[tuple[int, int, int], ...], npt.NDArray[np.int64]] = {}
        self._widths = [[len(labels) for labels in hierarchy.labels] for hierarchy in hierarchies]
        self._bundles = _bundle_columns(
            [len(hierarchy.groups[0]) for hierarchy in hierarchies], len(frequencies)
        )
        self._places = [self._locate_tuples(bundle) for bundle in self._bundles]
        is_unweighted = bool((frequencies.counts == 1).all())
        self._weights = None if is_unweighted else frequencies.counts.astype(np.float64)

    @property
    def is_monotone(self) -> bool:
        """Whether a class that satisfies everything still does when any other class joins it."""
        return all(rule.monotone for column in self.protected for rule in column.rules)

    @property
    def is_closed(self) -> bool:
        """Whether the union of classes that satisfy everything does so, too."""
        return all(rule.closed for column in self.protected for rule in column.rules)

    def count_classes(self, node: Node, *, k: int, limit: int | None = None) -> NodeClasses | None:
        """Return the classes at a node; None if over ``limit`` rows surely must be suppressed.

        Where there are many cells, tuples are first thrown into few buckets. A bucket of
        fewer than k rows holds only classes of fewer than k rows, so what lies in small
        buckets bounds what must be suppressed from below; mostly that decides.
        """
        keys, cells = self._make_keys(node)
        if (
            limit is not None
            and cells > _SPARSE * len(keys)
            and self._exceeds_limit(keys, k, limit)
        ):
            return None
        groups = self._group_keys(keys, cells, k=k, limit=limit, with_places=bool(self.protected))
        if groups is None:
            return None
        class_keys, sizes, at = groups
        surely = sizes < k
        lost = surely
        for column in self.protected:
            spread = column.count_values(at, self.frequencies.counts, classes=len(sizes))
            for rule in column.rules:
                fails = ~rule.check_classes(spread, column.overall)
                lost = lost | fails
                if rule.monotone:
                    surely = surely | fails
        classes = NodeClasses(class_keys, sizes, lost, surely)
        if limit is not None and classes.surely_suppressed > limit:
            return None
        return classes

    def count_cells(self, node: Node) -> tuple[npt.NDArray[np.int64], Counts]:
        """Return the keys of the cells of a node, and their rows."""
        groups = self._group_keys(*self._make_keys(node), with_places=False)
        assert groups is not None
        return groups[:2]

    def count_cells_with_rows(self, node: Node) -> tuple[npt.NDArray[np.int64], Counts, Counts]:
        """Return the keys of the cells of a node, what they count, and what their parts may count.

        The counts of the cells of any finer node add up, within a cell, to at most the latter.
        """
        keys, counts = self.count_cells(node)
        return keys, counts, counts

    def roll_up_to(self, node: Node) -> Rollups:
        """Return the same for a node and all that are coarser, from the cells of the node.

        One tuple of level 0 stands for each cell: whichever it is, it has the cell's groups.
        """
        cell_keys, sizes = self.count_cells(node)
        codes = self.decode_keys(node, cell_keys)
        for at, level in enumerate(node):
            group = self.hierarchies[at].groups[level]
            member = np.zeros(self._count_level_groups(at, level), dtype=np.int32)
            member[group] = np.arange(len(group))
            codes[:, at] = member[codes[:, at]]
        return Rollups(self.hierarchies, Frequencies(codes, sizes))

    def bound_cells(self, node: Node) -> int:
        """Return how many cells a node may have, whatever the tuples are."""
        return math.prod(self._widths[at][level] for at, level in enumerate(node))

    def count_groups(self, at: int) -> list[int]:
        """Return how many groups a column has at each level."""
        return self._widths[at]

    def decode_keys(self, node: Node, keys: npt.NDArray[np.int64]) -> Codes:
        """Return the codes, at the levels of the node, of classes named by their keys."""
        if node in self._wide:
            return self._wide[node][keys]
        columns = []
        for at in reversed(range(len(node))):
            width = self._count_level_groups(at, node[at])
            keys, code = np.divmod(keys, width) if width > 1 else (keys, np.zeros_like(keys))
            columns.append(code)
        return np.column_stack(columns[::-1]).astype(np.int32)

    def find_members(self, node: Node, classes: NodeClasses) -> npt.NDArray[np.int64]:
        """Return for each tuple of level 0 the place of its class in ``classes``."""
        return self.locate_cells(node, classes.keys)

    def locate_cells(self, node: Node, keys: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return for each tuple of level 0 the place of its cell among all keys of the node."""
        return np.searchsorted(keys, self._make_keys(node)[0])

    @cached_property
    def rows_by_code(self) -> list[Floats]:
        """For each column, how many rows have each code of level 0."""
        counts = self.frequencies.counts
        return [
            np.bincount(codes, weights=counts, minlength=len(hierarchy.groups[0])).astype(float)
            for codes, hierarchy in zip(self.frequencies.codes.T, self.hierarchies, strict=True)
        ]

    def compute_entropies(self) -> list[list[float]]:
        """Return for each column the entropy of its groups per level: how far it parts the rows."""
        entropies = []
        for value_counts, hierarchy in zip(self.rows_by_code, self.hierarchies, strict=True):
            column = []
            for group in hierarchy.groups:
                rows = np.bincount(group, weights=value_counts)
                shares = rows[rows > 0] / max(self.total, 1)
                column.append(float(-(shares * np.log(shares)).sum()))
            entropies.append(column)
        return entropies

    def compute_column_means(self, costs: Sequence[Sequence[Floats]]) -> list[Floats]:
        """Return for each column the mean over all rows of a cost per code, at each level."""
        return [
            np.array(
                [
                    float((cost[group] * value_counts).sum()) / self.total
                    for cost, group in zip(column, hierarchy.groups, strict=True)
                ]
            )
            for value_counts, column, hierarchy in zip(
                self.rows_by_code, costs, self.hierarchies, strict=True
            )
        ]

    def _locate_tuples(self, bundle: Sequence[int]) -> npt.NDArray[np.intp]:
        """Return for each tuple the place of its level-0 codes among all of the bundled columns."""
        places = np.zeros(len(self.frequencies), dtype=np.intp)
        for at in bundle:
            places *= len(self.hierarchies[at].groups[0])
            places += self.frequencies.codes[:, at]
        return places

    def _count_level_groups(self, at: int, level: int) -> int:
        return self._widths[at][level]

    def _make_keys(self, node: Node) -> tuple[npt.NDArray[np.int64], int]:
        """Return one number per tuple that names its class, in code order; and their range."""
        widths = [self._widths[at][level] for at, level in enumerate(node)]
        cells = math.prod(widths)
        if cells >= 2**62:
            return self._number_cells(node)
        strides = [1] * len(node)
        for at in reversed(range(len(node) - 1)):
            strides[at] = strides[at + 1] * widths[at + 1]
        keys: npt.NDArray[np.int64] | None = None
        for bundle, places in zip(self._bundles, self._places, strict=True):
            if all(widths[at] == 1 for at in bundle):
                continue
            bundle_keys = np.take(self._get_key_table(bundle, node, strides), places, mode="clip")
            keys = bundle_keys if keys is None else np.add(keys, bundle_keys, out=keys)
        if keys is None:
            keys = np.zeros(len(self.frequencies), dtype=np.int64)
        return keys, cells

    def _get_key_table(
        self, bundle: Sequence[int], node: Node, strides: Sequence[int]
    ) -> npt.NDArray[np.int64]:
        """Return what the level-0 codes of some columns add to the key, for all possible codes.

        A search goes from node to node in steps of one column, so most are asked for again.
        """
        key = tuple((at, node[at], strides[at]) for at in bundle)
        if key in self._tables:
            return self._tables[key]
        first, *other_columns = (
            self.hierarchies[at].groups[node[at]] * np.int64(strides[at]) for at in bundle
        )
        table: npt.NDArray[np.int64] = first
        for column in other_columns:
            table = (table[:, None] + column).reshape(-1)
        if len(table) <= _BUNDLED:
            if len(self._tables) >= _TABLES:
                self._tables.clear()
            self._tables[key] = table
        return table

    def _number_cells(self, node: Node) -> tuple[npt.NDArray[np.int64], int]:
        """Return the same where such numbers would overflow: cells met, numbered in order."""
        columns = [
            hierarchy.groups[level][codes]
            for hierarchy, level, codes in zip(
                self.hierarchies, node, self.frequencies.codes.T, strict=True
            )
        ]
        codes = np.column_stack(columns).astype(np.int32)
        if not len(codes):
            return np.zeros(0, dtype=np.int64), 1
        _, starts, place = np.unique(named(codes), return_index=True, return_inverse=True)
        self._wide[node] = codes[starts]
        return place.astype(np.int64), len(starts)

    def _exceeds_limit(self, keys: npt.NDArray[np.int64], k: int, limit: int) -> bool:
        """Return whether too many rows lie in small buckets, whichever cells share one."""
        bits = min(max((2 * len(keys)).bit_length(), 10), 20)
        buckets = keys.view(np.uint64) * _MIXED
        buckets >>= np.uint64(64 - bits)
        bucket_rows = np.bincount(buckets.view(np.int64), weights=self._weights)
        return float(bucket_rows.sum(where=bucket_rows < k)) > limit

    def _group_keys(
        self,
        keys: npt.NDArray[np.int64],
        cells: int,
        *,
        with_places: bool,
        k: int = 0,
        limit: int | None = None,
    ) -> tuple[npt.NDArray[np.int64], Counts, npt.NDArray[np.int64]] | None:
        """Return the distinct keys, their rows, and (if asked) where each tuple's key is.

        None if more than ``limit`` rows have cells of fewer than k, where that is told early.
        """
        if not len(keys):
            empty = np.zeros(0, dtype=np.int64)
            return empty, empty, empty
        if cells <= max(min(_DENSEST, 16 * len(keys)), 1 << 12):
            key_rows = np.bincount(keys, weights=self._weights, minlength=cells)
            if limit is not None and float(key_rows.sum(where=key_rows < k)) > limit:
                return None
            distinct = np.flatnonzero(key_rows > 0)
            sizes = key_rows[distinct].astype(np.int64)
        elif self._weights is None:  # each tuple is one row: where it stood does not matter
            sorted_keys = np.sort(keys)
            starts = np.flatnonzero(np.append(True, sorted_keys[1:] != sorted_keys[:-1]))
            distinct = sorted_keys[starts]
            sizes = np.diff(starts, append=len(keys))
        else:
            order = np.argsort(keys)
            sorted_keys = keys[order]
            starts = np.flatnonzero(np.append(True, sorted_keys[1:] != sorted_keys[:-1]))
            distinct = sorted_keys[starts]
            sizes = np.add.reduceat(self.frequencies.counts[order], starts)
        at = np.searchsorted(distinct, keys) if with_places else np.zeros(0, dtype=np.int64)
        return distinct, sizes, at


def _bundle_columns(sizes: Sequence[int], tuples: int) -> list[list[int]]:
    """Return columns to look up together: in few bundles, none of too many combinations.

    Where there are few tuples, to list combinations costs more than to look up once more.
    """
    limit = min(_BUNDLED, tuples)
    bundles: list[tuple[int, list[int]]] = []
    for at in sorted(range(len(sizes)), key=lambda at: -sizes[at]):
        for place, (size, bundle) in enumerate(bundles):
            if size * sizes[at] <= limit:
                bundles[place] = (size * sizes[at], [*bundle, at])
                break
        else:
            bundles.append((sizes[at], [at]))
    return [sorted(bundle) for _, bundle in bundles]
