"""Safe k-anonymization on counts: thin by beta, drop what is left fewer than k times.

Claim. Let the frequencies count the tuples of a table at levels that do not depend on it.
Then the result has the distribution of (k, beta)-SDGS (Li, Qardaji, Su, Algorithm 4): draw
every row with probability beta, generalise, drop the tuples that occur fewer than k times.
Rows of one cell are alike, so drawing them one by one and counting is one
Binomial(count, beta) draw per cell; cells are drawn independently because rows are.
Dropped cells leave no trace here. (Codes of an open domain depend on the values met, so who
writes the cells out must not show them or their order.)
"""

from __future__ import annotations

import numpy as np

from incrowd.codes.frequency import Frequencies
from incrowd.privacy.randomness import Randomness, thinned


def safe(frequencies: Frequencies, *, k: int, beta: float, bits: Randomness) -> Frequencies:
    """The cells that a safe release shows, with the number of rows shown of each."""
    drawn = thinned(frequencies.counts, beta, bits)
    return threshold(Frequencies(frequencies.codes, drawn), k=k)


def threshold(frequencies: Frequencies, *, k: int) -> Frequencies:
    """The cells of at least k rows: k-DGS (Algorithm 3), which by itself is no privacy."""
    kept = np.flatnonzero(frequencies.counts >= k)
    return Frequencies(frequencies.codes[kept], frequencies.counts[kept])
