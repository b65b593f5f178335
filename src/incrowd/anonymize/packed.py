"""Nodes of a lattice kept in few whole numbers, so that one is compared with very many at once.

Each column has its bits in a word, and one bit above them that a level never sets. A node with
these bits set, minus another, keeps all of them exactly where no level is lower than the other's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

_BITS = 64


class PackedNodes:
    """Nodes with a number each; ``highest`` is the highest level of each column."""

    def __init__(self, highest: Sequence[int]) -> None:
        self._fields: list[tuple[int, int]] = []
        self._guards = [0]
        used = 0
        for level in highest:
            bits = level.bit_length() + 1
            if used + bits > _BITS:
                self._guards.append(0)
                used = 0
            self._fields.append((len(self._guards) - 1, used))
            used += bits
            self._guards[-1] |= 1 << (used - 1)
        self._kept = np.zeros((len(self._guards), 16), dtype=np.uint64)
        self._values = np.zeros(16)
        self._count = 0

    def add(self, node: Sequence[int], value: float = 0.0) -> None:
        """Keep one more."""
        if self._count == len(self._values):
            self._kept = np.concatenate([self._kept, np.zeros_like(self._kept)], axis=1)
            self._values = np.concatenate([self._values, np.zeros_like(self._values)])
        self._kept[:, self._count] = self._packed(node)
        self._values[self._count] = value
        self._count += 1

    def any_coarser(self, node: Sequence[int]) -> bool:
        """Whether one of them is nowhere finer than a node."""
        found = np.ones(self._count, dtype=bool)
        for kept, word, guard in self._words(node):
            found &= ((kept + np.uint64(guard - word)) & np.uint64(guard)) == guard
        return bool(found.any())

    def least_finer(self, node: Sequence[int]) -> float | None:
        """The least number of those that are nowhere coarser than a node, if there are any."""
        found = np.ones(self._count, dtype=bool)
        for kept, word, guard in self._words(node):
            found &= ((np.uint64(guard + word) - kept) & np.uint64(guard)) == guard
        values = self._values[: self._count][found]
        return float(values.min()) if len(values) else None

    def _words(self, node: Sequence[int]) -> Iterator[tuple[npt.NDArray[np.uint64], int, int]]:
        """For each word: those of the nodes kept, that of a node, and the bits never set."""
        return zip(self._kept[:, : self._count], self._packed(node), self._guards, strict=True)

    def _packed(self, node: Sequence[int]) -> list[int]:
        words = [0] * len(self._guards)
        for (word, shift), level in zip(self._fields, node, strict=True):
            words[word] |= level << shift
        return words
