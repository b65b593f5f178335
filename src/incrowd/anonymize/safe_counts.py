"""The counts of cells, each with noise of at most r, shown from r + k on.

Claim. Let the frequencies count the tuples of a table at levels that do not depend on it. Then what
is shown is differentially private as its event says (:mod:`incrowd.privacy.counts`), and every
cell that is shown has at least k rows in the table. Each cell draws noise of its own; cells
without rows are not among the frequencies, and show nothing.

**People with several rows.** Before any scheme is looked at, at most m rows of each person are
chosen, by random bits that belong to the row, so that what is chosen of a person depends on nobody
else. At every scheme a person counts once per cell (:mod:`incrowd.codes.person_sets`): the counts
are numbers of people, and the levels may depend on the table by a private choice before.

Claim. For two tables that differ by all rows of one person this is dominated by m independent pairs
(X, X + 1), X the noise of one cell: :class:`~incrowd.privacy.events.PersonCounts`. It is attained
where the person's rows lie in m cells, each of at least 2 r + k other people. Every cell that is
shown has at least k different people, for certain.

Proof. Choose the rows of all others, alike in both tables, and those of the person; given these,
the counts differ by a vector of zeros and at most m ones, in the one direction in which the tables
differ. Cells are drawn independently, and of each that differs what is shown is one function of
n + X or of n + 1 + X (:mod:`incrowd.privacy.counts`); so the pairs of at most m cells dominate it,
and further pairs only add. Averages over the rows chosen are no further apart, since divergences
are jointly convex. The result of a choice before decides which cells differ, not how many, so that
the pairs dominate whatever it was, and compose with it. Each direction is composed by itself: all m
shifts go the same way. A cell of n people is shown if n + X >= r + k, and X <= r.

It does not hold for rows in place of people (a shift of up to m in one cell costs what m cells of
group privacy do), nor for rows that are chosen for one scheme and not for another: a choice
among schemes would then be moved by more rows than m.

**Rows instead of people.** The rows are chosen in the same way, and at every scheme at most c of a
person count in one cell. The counts differ by a vector of numbers up to c that add up to at most m,
and cost what the worst of these vectors costs (:mod:`incrowd.privacy.shifted`). A cell is shown
from r + c (k - 1) + 1 on.

Claim. Every cell that is shown has rows of at least k different people, for certain.

Proof. The rows of k - 1 people count at most c (k - 1), and X <= r; so the noisy count of a cell
with fewer people is below the threshold.

It does not hold from r + k on: k rows may be those of k / c people. Nor may the rows of a person be
cut to c for one scheme and be counted without that cut at another.
"""

from __future__ import annotations

import numpy as np

from incrowd.arrays import Counts
from incrowd.codes.frequency import Frequencies
from incrowd.privacy.counts import sample_gaussian_noise, sample_geometric_noise
from incrowd.privacy.draw_parameters import compute_threshold
from incrowd.privacy.events import GaussianCounts, GeometricCounts
from incrowd.privacy.presentation import read_as_decimal
from incrowd.privacy.randomness import Randomness


def draw_noisy_counts(
    frequencies: Frequencies,
    event: GeometricCounts | GaussianCounts,
    *,
    k: int,
    bits: Randomness,
    per_group: int = 1,
) -> Frequencies:
    """Return the cells that are published, with their noisy counts.

    ``per_group`` is how many rows of one person count in a cell at most.
    """
    noisy = frequencies.counts + _sample_noise(len(frequencies), event, bits)
    places = np.flatnonzero(noisy >= compute_threshold(event.r, k, per_group))
    return Frequencies(frequencies.codes[places], noisy[places])


def _sample_noise(cells: int, event: GeometricCounts | GaussianCounts, bits: Randomness) -> Counts:
    if isinstance(event, GeometricCounts):
        return sample_geometric_noise(cells, read_as_decimal(event.epsilon), event.r, bits)
    return sample_gaussian_noise(cells, read_as_decimal(event.variance), event.r, bits)
