"""The one source of random bits."""

from __future__ import annotations

import os
from typing import Protocol

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint64]


class Randomness(Protocol):
    """A stream of independent, uniform random bits."""

    def words(self, count: int) -> Words:
        """That many random 64-bit words, never seen before."""
        ...


class SystemRandomness:
    """Bits of the operating system's generator, fit for secrets."""

    def words(self, count: int) -> Words:
        """That many random 64-bit words, never seen before."""
        return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)


class SeededRandomness:
    """Bits that a seed decides: for tests and sample data, never for a release."""

    def __init__(self, seed: int) -> None:
        self._generator = np.random.default_rng(seed)

    def words(self, count: int) -> Words:
        """The next 64-bit words of the sequence that the seed decides."""
        return self._generator.integers(0, 2**64, size=count, dtype=np.uint64)
