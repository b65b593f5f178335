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

    def roll_up(self, maps: Sequence[Codes]) -> Frequencies:
        """Return the frequencies after mapping each column's codes; equal tuples are merged."""
        columns = [lookup[self.codes[:, at]] for at, lookup in enumerate(maps)]
        return merge_tuples(np.column_stack(columns).astype(np.int32), self.counts)


def merge_tuples(codes: Codes, counts: Counts) -> Frequencies:
    """Return frequencies from tuples that may repeat."""
    if not len(counts):
        return Frequencies(codes, counts)
    numbers = number_tuples(codes)
    order = np.argsort(numbers, kind="stable")
    sorted_numbers = numbers[order]
    starts = np.flatnonzero(np.append(True, sorted_numbers[1:] != sorted_numbers[:-1]))
    return Frequencies(codes[order[starts]], np.add.reduceat(counts[order], starts))


def compare_frequencies(
    original: Frequencies, released: Frequencies
) -> tuple[Frequencies, int, int]:
    """Return the rows that both have, tuple by tuple, and how many are missing and surplus."""
    codes = np.concatenate([original.codes, released.codes])
    zeros = [np.zeros(len(table), dtype=np.int64) for table in (original, released)]
    before = merge_tuples(codes, np.concatenate([original.counts, zeros[1]]))
    after = merge_tuples(codes, np.concatenate([zeros[0], released.counts]))
    common = Frequencies(before.codes, np.minimum(before.counts, after.counts))
    return common, before.total - common.total, after.total - common.total


def join_frequencies(parts: Iterable[Frequencies]) -> Frequencies:
    """Return the frequencies of several parts of a table, together."""
    tables = list(parts)
    codes = np.concatenate([part.codes for part in tables])
    return merge_tuples(codes, np.concatenate([part.counts for part in tables]))


def map_levels(
    hierarchies: Sequence[Hierarchy], low: Sequence[int], high: Sequence[int]
) -> list[Codes]:
    """Return for each column the map from its codes at one level to those at a higher level.

    Raises:
        ValueError: If a level is below that of the codes, of which nothing tells its groups.
    """
    maps = []
    for hierarchy, start, end in zip(hierarchies, low, high, strict=True):
        if start > end:
            raise ValueError(f"codes of level {start} have no groups of level {end}")
        lookup = np.zeros(len(hierarchy.labels[start]), dtype=np.int32)
        lookup[hierarchy.groups[start]] = hierarchy.groups[end]
        maps.append(lookup)
    return maps


def number_tuples(codes: Codes) -> npt.NDArray[np.int64]:
    """Return one number per tuple, in the order of the tuples; ranks where numbers overflow."""
    return pack_columns(list(codes.T), len(codes))


def pack_columns(columns: Sequence[npt.NDArray[np.integer]], rows: int) -> npt.NDArray[np.int64]:
    """Return the same for columns of whole numbers from 0 on."""
    packed = np.zeros(rows, dtype=np.int64)
    size = 1
    for column in columns:
        width = int(column.max(initial=0)) + 1
        if size * width >= 2**62:
            packed = np.unique(packed, return_inverse=True)[1].astype(np.int64)
            size = int(packed.max()) + 1
        packed = packed * width + column
        size *= width
    return packed
