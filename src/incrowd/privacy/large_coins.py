"""Coins whose probabilities are ratios of whole numbers that 64 bits do not hold."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from incrowd.arrays import Bools
from incrowd.privacy.randomness import Randomness, sample_below


def flip_large_exp(u: Sequence[int], t: int, bits: Randomness) -> Bools:
    """For each 0 <= u < t a coin that is true with probability exp(-u / t), exactly.

    The throws are those of :func:`incrowd.privacy.discrete_noise.flip_exp_coins`, for numbers of
    any size.
    """
    odd = np.zeros(len(u), dtype=bool)
    alive = np.arange(len(u))
    throw = 1
    while len(alive):
        go_on = _flip_fractions([u[at] for at in alive.tolist()], t, bits)
        if throw > 1:
            go_on &= sample_below(np.full(len(alive), throw, dtype=np.int64), bits) == 0
        odd[alive[~go_on]] = throw % 2 == 1
        alive = alive[go_on]
        throw += 1
    return odd


def _flip_fractions(u: Sequence[int], t: int, bits: Randomness) -> Bools:
    """For each 0 <= u < t a coin that is true with probability u / t, for numbers of any size.

    A uniform number of [0, 1) is compared with u / t digit by digit, a digit being a 64-bit
    word; only where the digits agree, hardly ever, is the next one drawn.
    """
    parts = [divmod(number << 64, t) for number in u]
    digits = np.array([part[0] for part in parts], dtype=np.uint64)
    words = bits.draw_words(len(parts))
    coins: Bools = words < digits
    equal = np.flatnonzero(words == digits)
    if len(equal):
        coins[equal] = _flip_fractions([parts[at][1] for at in equal.tolist()], t, bits)
    return coins
