"""The one source of random bits, and exact draws from them.

Every random decision of a release comes from a stream of independent uniform 64-bit words:
AES in counter mode under a key of the operating system. Draws are exact for the parameters
that are accounted: nothing is approximated in floating point.
"""

from __future__ import annotations

import math
import os
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np

from incrowd.arrays import Counts, Words
from incrowd.errors import check_fraction

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers import CipherContext

_BLOCK = 1 << 22
_LAST_WORD = np.uint64(2**64 - 1)


class Randomness(Protocol):
    """A stream of independent, uniform random bits."""

    @property
    def private(self) -> bool:
        """Whether nobody can know the bits, so that a release may rest on them."""
        ...

    def draw_words(self, count: int) -> Words:
        """Draw ``count`` random 64-bit words, never handed out before."""
        ...


class _KeyStream:
    """The key stream of AES-256 in counter mode: indistinguishable from uniform bits."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._zeros = bytes(8 * _BLOCK)

    @cached_property
    def _encryptor(self) -> CipherContext:
        # Not every release draws, and the library takes a while to load.
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        return Cipher(algorithms.AES256(self._key), modes.CTR(bytes(16))).encryptor()

    def draw_words(self, count: int) -> Words:
        """Draw ``count`` random 64-bit words, never handed out before."""
        stream = bytearray(8 * count + 15)
        view = memoryview(stream)
        for start in range(0, 8 * count, len(self._zeros)):
            size = min(len(self._zeros), 8 * count - start)
            self._encryptor.update_into(
                memoryview(self._zeros)[:size], view[start : start + size + 15]
            )
        return np.frombuffer(stream, dtype=np.uint64, count=count)


class SystemRandomness(_KeyStream):
    """Bits under a fresh key of the operating system, fit for a release."""

    private = True

    def __init__(self) -> None:
        super().__init__(os.urandom(32))


class KeyedRandomness(_KeyStream):
    """Bits under a key that somebody keeps, to draw them again; as private as the key is."""

    private = True

    def __init__(self, key: bytes) -> None:
        super().__init__(key)


class SeededRandomness(_KeyStream):
    """Bits that a seed decides: for tests, never for a release."""

    private = False

    def __init__(self, seed: int) -> None:
        super().__init__(seed.to_bytes(32, "little"))


def round_down_rate(beta: float) -> float:
    """Return the largest multiple of 2**-64 up to beta: the rate drawn with and accounted at.

    A float of at least 2**-11 is one already.
    """
    threshold = math.floor(Fraction(float(check_fraction("beta", beta))) * 2**64)
    if threshold == 0:
        check_fraction("beta", 0.0)
    return threshold / 2**64


def sample_binomial(counts: Counts, beta: float, bits: Randomness) -> Counts:
    """Draw an independent Binomial(count, beta) for each count, exactly.

    Claim: each draw is the number of count independent Bernoulli(realized(beta)) bits that
    are 1. A bit is 1 if a uniform 64-bit word is below realized(beta) 2**64, which has
    exactly that probability; every bit has a word of its own.
    """
    threshold = np.uint64(int(Fraction(round_down_rate(beta)) * 2**64))
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    successes = np.zeros(len(counts), dtype=np.int64)
    first = 0
    for start in range(0, total, _BLOCK):
        stop = min(start + _BLOCK, total)
        low = bits.draw_words(stop - start) < threshold
        # Counts first to last have words in this block; where each begins, it adds up its own.
        last = int(np.searchsorted(ends, stop, side="left"))
        begins = np.append(0, ends[first:last] - start)
        is_filled = np.diff(np.append(begins, stop - start)) > 0
        sums = np.add.reduceat(low, begins[is_filled], dtype=np.int64)
        successes[first : last + 1][is_filled] += sums
        first = last
    return successes


def sample_below(bounds: Counts, bits: Randomness) -> Counts:
    """Draw for each bound an independent, uniform whole number from 0 up to it, exclusive.

    Claim: uniform exactly. A 64-bit word is taken modulo the bound, unless it is among the
    last 2**64 mod bound words, which would favor small remainders; those are drawn again.
    """
    sizes = bounds.astype(np.uint64)
    words = bits.draw_words(len(sizes))
    samples = (words % sizes).astype(np.int64)
    # Those are fewer than the bound: hardly any word is near enough to be looked at.
    candidates = np.flatnonzero(words > _LAST_WORD - sizes)
    surplus = (_LAST_WORD % sizes[candidates] + np.uint64(1)) % sizes[candidates]
    rejected = candidates[words[candidates] > _LAST_WORD - surplus]
    if len(rejected):
        samples[rejected] = sample_below(bounds[rejected], bits)
    return samples


def sample_permutation(count: int, bits: Randomness) -> Counts:
    """Return the numbers from 0 up to count in a uniformly random order.

    Each number draws 64 random bits and they are sorted by them. Should two draw alike, all
    draw again, so that every order is equally likely.
    """
    while True:
        words = bits.draw_words(count)
        order = np.argsort(words)
        if (np.diff(words[order]) != 0).all():
            return order
