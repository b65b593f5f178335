"""Safe k-anonymization on counts: thin by beta, drop what is left fewer than k times.

Claim. Let the frequencies count the tuples of a table at levels that do not depend on it.
Then the result has the distribution of (k, beta)-SDGS (Li, Qardaji, Su, Algorithm 4): draw
every row with probability beta, generalize, drop the tuples that occur fewer than k times.
Rows of one cell are alike, so drawing them one by one and counting is one
Binomial(count, beta) draw per cell; cells are drawn independently because rows are.
Dropped cells leave no trace here. (Codes of an open domain depend on the values met, so who
writes the cells out must not show them or their order.)
"""

from __future__ import annotations

import numpy as np

from incrowd.codes.frequency import Frequencies
from incrowd.privacy.randomness import Randomness, sample_binomial


def sample_cells(frequencies: Frequencies, *, k: int, beta: float, bits: Randomness) -> Frequencies:
    """Return the cells that a safe release publishes, with the rows published of each."""
    sample_counts = sample_binomial(frequencies.counts, beta, bits)
    return drop_small_cells(Frequencies(frequencies.codes, sample_counts), k=k)


def drop_small_cells(frequencies: Frequencies, *, k: int) -> Frequencies:
    """Return the cells of at least k rows: k-DGS (Algorithm 3), which by itself is no privacy."""
    places = np.flatnonzero(frequencies.counts >= k)
    return Frequencies(frequencies.codes[places], frequencies.counts[places])
