"""Small worlds for attacks to be tried on, and random bits out of a generator."""

from __future__ import annotations

import numpy as np

from incrowd.arrays import Codes
from incrowd.privacy.randomness import Randomness, SeededRandomness

SIZES = (60, 80, 50, 40, 10)


def make_bits(rng: np.random.Generator) -> Randomness:
    return SeededRandomness(int(rng.integers(2**62)))


def draw_people(number: int, rng: np.random.Generator) -> Codes:
    """People of five independent columns with so many values each."""
    return np.column_stack([rng.integers(0, size, number) for size in SIZES]).astype(np.int32)
