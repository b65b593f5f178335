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
from incrowd.privacy.counts import gaussian_noise, geometric_noise
from incrowd.privacy.events import GaussianCounts, GeometricCounts
from incrowd.privacy.randomness import Randomness
from incrowd.privacy.rounded import as_written


def noisy_counts(
    frequencies: Frequencies,
    event: GeometricCounts | GaussianCounts,
    *,
    k: int,
    bits: Randomness,
) -> Frequencies:
    """The cells that are shown, with their noisy counts."""
    noisy = frequencies.counts + _noise(len(frequencies), event, bits)
    shown = np.flatnonzero(noisy >= event.r + k)
    return Frequencies(frequencies.codes[shown], noisy[shown])


def _noise(cells: int, event: GeometricCounts | GaussianCounts, bits: Randomness) -> Counts:
    if isinstance(event, GeometricCounts):
        return geometric_noise(cells, as_written(event.epsilon), event.r, bits)
    return gaussian_noise(cells, as_written(event.variance), event.r, bits)
