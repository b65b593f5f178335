"""The counts of cells, each with noise of at most r, shown from r + k on.

Claim. Let the frequencies count the tuples of a table at levels that do not depend on it. Then what
is shown is differentially private as its event says (:mod:`incrowd.privacy.counts`), and every
cell that is shown has at least k rows in the table. Each cell draws noise of its own; cells
without rows are not among the frequencies, and show nothing.
"""

from __future__ import annotations

import numpy as np

from incrowd.arrays import Counts
from incrowd.codes.frequency import Frequencies
from incrowd.privacy.counts import sample_gaussian_noise, sample_geometric_noise
from incrowd.privacy.events import GaussianCounts, GeometricCounts
from incrowd.privacy.presentation import read_as_decimal
from incrowd.privacy.randomness import Randomness


def draw_noisy_counts(
    frequencies: Frequencies,
    event: GeometricCounts | GaussianCounts,
    *,
    k: int,
    bits: Randomness,
) -> Frequencies:
    """Return the cells that are published, with their noisy counts."""
    noisy = frequencies.counts + _sample_noise(len(frequencies), event, bits)
    places = np.flatnonzero(noisy >= event.r + k)
    return Frequencies(frequencies.codes[places], noisy[places])


def _sample_noise(cells: int, event: GeometricCounts | GaussianCounts, bits: Randomness) -> Counts:
    if isinstance(event, GeometricCounts):
        return sample_geometric_noise(cells, read_as_decimal(event.epsilon), event.r, bits)
    return sample_gaussian_noise(cells, read_as_decimal(event.variance), event.r, bits)
