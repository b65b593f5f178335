"""Columns as positions on a line, and boxes over them: what local recoding shows.

Every column becomes an axis. Values that have an order keep it; values of a tree are laid
out so that each of its groups is a run of neighbors. A class then is a box, from a lowest
to a highest position on each axis, and shows the interval itself on an ordered axis, or the
smallest group of the tree that holds the run. With free labels it shows on a tree the set of the
values that it has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from incrowd.arrays import Codes, Counts, Floats, Members
from incrowd.codes.hierarchy import Hierarchy
from incrowd.codes.interval_label import SpanLabeler
from incrowd.codes.set_label import format_set, parse_set
from incrowd.errors import IncrowdError

_KEPT = 64  # of long hierarchies, which many columns of a table may share


@dataclass(frozen=True, eq=False)
class Axis:
    """A column laid out on a line. Null and what is outside the domain come last."""

    hierarchy: Hierarchy
    ordered: bool

    @cached_property
    def positions(self) -> Codes:
        """The position of each code of level 0."""
        places = np.empty(len(self._codes), dtype=np.int32)
        places[self._codes] = np.arange(len(self._codes), dtype=np.int32)
        return places

    @cached_property
    def _codes(self) -> Codes:
        """The code of level 0 at each position."""
        hierarchy = self.hierarchy
        if not self.ordered:
            return np.lexsort(hierarchy.groups).astype(np.int32)  # the top level counts most
        return np.append(hierarchy.line, [hierarchy.null, hierarchy.outside]).astype(np.int32)

    @cached_property
    def _groups(self) -> npt.NDArray[np.int32]:
        """The code at each level (rows) of each position (columns)."""
        return np.stack([group[self._codes] for group in self.hierarchy.groups])

    def find_levels(self, low: Codes, high: Codes) -> npt.NDArray[np.int64]:
        """Return the lowest level whose groups hold each run; the height where none does."""
        levels = np.zeros(len(low), dtype=np.int64)
        for group in self._groups:
            levels += group[low] != group[high]
        return levels

    def find_parts(self, positions: Codes, levels: npt.NDArray[np.int64]) -> Codes:
        """Return the group of each position one level below the given one."""
        return self._groups[np.maximum(levels - 1, 0), positions]

    def find_runs(self, levels: npt.NDArray[np.int64], codes: Codes) -> tuple[Codes, Codes]:
        """Return the first and last position of each group, given by its level and code."""
        first, last = self._ends
        nodes = self._offsets[levels] + codes
        return first[nodes], last[nodes]

    @cached_property
    def _ends(self) -> tuple[Codes, Codes]:
        """The first and last position of each group, all levels counted through."""
        first = np.full(self._offsets[-1], len(self._codes), dtype=np.int32)
        last = np.full(self._offsets[-1], -1, dtype=np.int32)
        places = np.arange(len(self._codes), dtype=np.int32)
        for level, group in enumerate(self._groups):
            np.minimum.at(first, self._offsets[level] + group, places)
            np.maximum.at(last, self._offsets[level] + group, places)
        return first, last

    @property
    def has_runs(self) -> bool:
        """Whether every group of values is a run of neighbors on this axis."""
        values = len(self.hierarchy.values)
        first, last = self._ends
        for level, group in enumerate(self._groups[:-1]):
            sizes = np.bincount(group[:values], minlength=len(self.hierarchy.labels[level]))
            span = slice(self._offsets[level], self._offsets[level + 1])
            if ((last[span] - first[span] + 1 != sizes) & (sizes > 0)).any():
                return False
        return True

    def compute_cost(self, low: Codes, high: Codes) -> Floats:
        """Return the normalized loss of each run: 0 for a single value, 1 for everything."""
        if not self.ordered:
            return self._tree_cost[self._find_nodes(low, high)]
        is_mixed = (high >= self.hierarchy.null) & (low < high)
        wide = np.where(is_mixed, 1.0, self.hierarchy.normalize_loss(high - low + 1))
        is_single = low == high
        return np.where(is_single, self._single_costs[low], wide)

    @cached_property
    def _single_costs(self) -> Floats:
        """What a single position costs: nothing, but for what is outside and shown as the root."""
        return self.hierarchy.normalize_loss(self.hierarchy.count_covered(0)[self._codes])

    @cached_property
    def _offsets(self) -> npt.NDArray[np.int64]:
        """Where the codes of each level begin, if all levels' codes are counted through."""
        widths = [len(labels) for labels in self.hierarchy.labels]
        return np.cumsum([0, *widths])

    @cached_property
    def _tree_cost(self) -> Floats:
        sizes = [self.hierarchy.count_covered(level) for level in range(self.hierarchy.height)]
        return np.append(self.hierarchy.normalize_loss(np.concatenate(sizes)), 1.0)

    def _find_nodes(self, low: Codes, high: Codes) -> npt.NDArray[np.int64]:
        """Return the group that holds each run, numbered across levels; the last means none."""
        levels = self.find_levels(low, high)
        inside = np.minimum(levels, self.hierarchy.height - 1)
        nodes = self._offsets[levels] + self._groups[inside, low]
        return np.where(levels < self.hierarchy.height, nodes, self._offsets[-1])

    def make_labels(self, low: Codes, high: Codes) -> tuple[list[str | None], Codes]:
        """Return the distinct labels, and which of them each run shows."""
        width = len(self._codes)
        runs, at = np.unique(low.astype(np.int64) * width + high, return_inverse=True)
        texts = self._make_texts((runs // width).astype(np.int32), (runs % width).astype(np.int32))
        label_codes: dict[str | None, int] = {}
        places = np.array(
            [label_codes.setdefault(text, len(label_codes)) for text in texts], dtype=np.int32
        )
        return list(label_codes), places[at]

    def _make_texts(self, low: Codes, high: Codes) -> list[str | None]:
        hierarchy = self.hierarchy
        if not self.ordered:
            names = [text for labels in hierarchy.labels for text in labels] + [hierarchy.root]
            return [names[node] for node in self._find_nodes(low, high).tolist()]
        texts: list[str | None] = []
        for first, last in zip(low.tolist(), high.tolist(), strict=True):
            if first == last:
                texts.append(hierarchy.labels[0][hierarchy.groups[0][self._codes[first]]])
            elif last >= hierarchy.null:
                texts.append(hierarchy.root)
            else:
                ends = (hierarchy.values[self._codes[x]] for x in (first, last))
                texts.append(self.spans(*ends))
        return texts

    def make_set_labels(self, points: Codes, members: Members) -> tuple[list[str | None], Codes]:
        """Return the distinct labels of sets of values, and which of them each class shows.

        ``points`` are positions, ``members`` the class of each, from 0. See :meth:`describe_set`.
        """
        self._refuse_braces()
        width = len(self._codes)
        pairs = np.unique(members.astype(np.int64) * width + points)
        starts = np.searchsorted(pairs // width, np.arange(int(members.max()) + 1))
        places_by_class = np.split((pairs % width).astype(np.int32), starts[1:])
        known_labels: dict[bytes, int] = {}
        label_codes: dict[str | None, int] = {}
        codes = np.zeros(len(starts), dtype=np.int32)
        for member, places in enumerate(places_by_class):
            key = places.tobytes()
            if key not in known_labels:
                label = self.describe_set(places)
                known_labels[key] = label_codes.setdefault(label, len(label_codes))
            codes[member] = known_labels[key]
        return list(label_codes), codes

    def describe_set(self, places: Codes) -> str | None:
        """Return the label of some positions, which are in order and all different.

        That is the label of the group whose values they all are, or else the set itself. Null, or
        what is outside the domain, beside other values has the smallest group that holds them all.
        """
        hierarchy = self.hierarchy
        values = len(hierarchy.values)
        (group_label,) = self._make_texts(places[:1], places[-1:])
        codes = self._codes[places]
        if len(places) == 1 or int(codes.max()) >= values:
            return group_label
        level = int(self.find_levels(places[:1], places[-1:])[0])
        group_size = values
        if level < hierarchy.height:
            groups = hierarchy.groups[level]
            group_size = int((groups[:values] == groups[codes[0]]).sum())
        if len(places) == group_size:
            return group_label
        return format_set(hierarchy.values[code] for code in codes.tolist())

    def _refuse_braces(self) -> None:
        """Refuse labels that would be taken for sets of values."""
        for label in (label for labels in self.hierarchy.labels for label in labels):
            if label is not None and parse_set(label) is not None:
                raise IncrowdError(
                    f"`labels: free` writes sets of values in braces, and '{label}' is a label of "
                    "a hierarchy. Rename it, or remove `labels: free`."
                )

    @cached_property
    def spans(self) -> SpanLabeler:
        """How runs of its values are called."""
        return _make_labeler(self.hierarchy)


@lru_cache(maxsize=_KEPT)
def _make_labeler(hierarchy: Hierarchy) -> SpanLabeler:
    """Return how runs of values are called: with no dash where a group would share its label.

    Files of other tools have groups such as 20-24 that hold 21 to 25.
    """
    spans = SpanLabeler(hierarchy.values)
    if spans.dash and _misnames_run(hierarchy):
        spans.dash = False
    return spans


def _misnames_run(hierarchy: Hierarchy) -> bool:
    """Return whether a group is called like a run of values that it does not hold."""
    values = len(hierarchy.values)
    positions = np.empty(values, dtype=np.int64)
    positions[hierarchy.line] = np.arange(values)
    place_by_value = dict(zip(hierarchy.values, positions.tolist(), strict=True))
    for labels, groups in zip(hierarchy.labels[1:], hierarchy.groups[1:], strict=True):
        sizes = np.bincount(groups[:values], minlength=len(labels))
        first = np.full(len(labels), values)
        np.minimum.at(first, groups[:values], positions)
        for label, size, start in zip(labels, sizes.tolist(), first.tolist(), strict=True):
            low, _, high = (label or "").partition("-")
            begin, end = place_by_value.get(low), place_by_value.get(high)
            if begin is None or end is None or not size or end <= begin:
                continue
            if (begin, end - begin + 1) != (start, size):
                return True
    return False


@dataclass(frozen=True, eq=False)
class ClassBounds:
    """Classes: from where to where each reaches on each axis, and how many rows it has."""

    low: Codes
    high: Codes
    sizes: Counts


def locate_points(axes: Sequence[Axis], codes: Codes) -> Codes:
    """Return tuples of codes of level 0 as points."""
    return np.column_stack([axis.positions[codes[:, at]] for at, axis in enumerate(axes)])


def bound_classes(points: Codes, counts: Counts, members: Members) -> ClassBounds:
    """Return the smallest box around each class; ``members`` is each point's class, from 0."""
    order = np.argsort(members, kind="stable")
    starts = np.flatnonzero(np.append(True, np.diff(members[order]) > 0))
    sorted_points = points[order]
    return ClassBounds(
        np.minimum.reduceat(sorted_points, starts, axis=0),
        np.maximum.reduceat(sorted_points, starts, axis=0),
        np.add.reduceat(counts[order], starts),
    )


def compute_class_cost(
    axes: Sequence[Axis], bounds: ClassBounds, weights: Floats | None = None
) -> Floats:
    """Return the normalized loss of a row of each class: the (weighted) mean over columns."""
    shares = np.ones(len(axes)) if weights is None else weights
    total = np.zeros(len(bounds.sizes))
    for at, axis in enumerate(axes):
        total += shares[at] * axis.compute_cost(bounds.low[:, at], bounds.high[:, at])
    return total / shares.sum()  # type: ignore[no-any-return]
