"""Distinct tuples with counts, the one structure that every algorithm works on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from incrowd.arrays import Codes, Counts
from incrowd.codes.hierarchy import Hierarchy


@dataclass(frozen=True, eq=False)
class Frequencies:
    """``counts[i]`` rows of the table have the codes ``codes[i]``, one code per column.

    Tuples are distinct and in ascending order of their codes.
    """

    codes: Codes
    counts: Counts

    @property
    def total(self) -> int:
        """The number of rows counted."""
        return int(self.counts.sum())

    def __len__(self) -> int:
        return len(self.counts)

    def rolled(self, maps: Sequence[Codes]) -> Frequencies:
        """The frequencies after mapping the codes of each column; equal tuples are merged."""
        columns = [lookup[self.codes[:, at]] for at, lookup in enumerate(maps)]
        return merged(np.column_stack(columns).astype(np.int32), self.counts)


def merged(codes: Codes, counts: Counts) -> Frequencies:
    """Frequencies from tuples that may repeat."""
    if not len(counts):
        return Frequencies(codes, counts)
    named = keys(codes)
    order = np.argsort(named, kind="stable")
    ordered = named[order]
    first = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    return Frequencies(codes[order[first]], np.add.reduceat(counts[order], first))


def compared(original: Frequencies, released: Frequencies) -> tuple[Frequencies, int, int]:
    """The rows that both have, tuple by tuple; how many are missing, how many too many."""
    codes = np.concatenate([original.codes, released.codes])
    nothing = [np.zeros(len(one), dtype=np.int64) for one in (original, released)]
    before = merged(codes, np.concatenate([original.counts, nothing[1]]))
    after = merged(codes, np.concatenate([nothing[0], released.counts]))
    both = Frequencies(before.codes, np.minimum(before.counts, after.counts))
    return both, before.total - both.total, after.total - both.total


def joined(parts: Iterable[Frequencies]) -> Frequencies:
    """Frequencies of several parts of a table, together."""
    listed = list(parts)
    codes = np.concatenate([part.codes for part in listed])
    return merged(codes, np.concatenate([part.counts for part in listed]))


def between(
    hierarchies: Sequence[Hierarchy], low: Sequence[int], high: Sequence[int]
) -> list[Codes]:
    """For each column, the map from its codes at one level to those at a higher level."""
    maps = []
    for hierarchy, start, end in zip(hierarchies, low, high, strict=True):
        lookup = np.zeros(len(hierarchy.labels[start]), dtype=np.int32)
        lookup[hierarchy.groups[start]] = hierarchy.groups[end]
        maps.append(lookup)
    return maps


def keys(codes: Codes) -> npt.NDArray[np.int64]:
    """One number per tuple, in the order of the tuples; ranks where numbers would overflow."""
    return packed(list(codes.T), len(codes))


def packed(columns: Sequence[npt.NDArray[np.integer]], rows: int) -> npt.NDArray[np.int64]:
    """The same of columns of whole numbers from 0 on."""
    found = np.zeros(rows, dtype=np.int64)
    size = 1
    for column in columns:
        width = int(column.max(initial=0)) + 1
        if size * width >= 2**62:
            found = np.unique(found, return_inverse=True)[1].astype(np.int64)
            size = int(found.max()) + 1
        found = found * width + column
        size *= width
    return found
