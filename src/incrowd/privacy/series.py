"""A series of counts: a table that grows period by period, with noise that is planned for all.

**Mechanism.** Scheme and cells are fixed before the first release. In period t = 1, ..., T the
numbers x_t of people in each cell are counted, a person in at most m cells. Let c_0, c_1, ... be
the coefficients of (1 - y)^(-1/2), 1, 1/2, 3/8, 5/16, ..., each rounded to eighths, and d those of
the inverse, so that sum over j of c_j d_(i-j) is 0 for i > 0. Each cell has basic noise z_1, ...,
z_T, drawn independently: an eighth of a discrete Gaussian of variance 64 v, truncated at 8 r.
Release t has

    n_t = round(sum over s <= t of d_(t-s) z_s),     x_t + n_t where that is at least R_t + k,

R_t = floor(r sum of |d_0|, ..., |d_(t-1)| + 1/2) the most that n_t can be.

**Claim.** Whoever is in one period alone, in up to m cells, loses by all T releases together no
more than by m independent series of pairs (8 z, 8 z + 8 c_j), j = 0, ..., T - 1, as in
:mod:`incrowd.privacy.shifted`. What is asked of later periods may depend on earlier results. Every
cell that is shown has at least k people in that period, for certain.

*Proof.* Write w_t = sum over s <= t of c_(t-s) x_s + z_t for a cell. It lies on the grid of eighths
whatever x is, since the c are eighths; so does z_t: the support of w_t tells nothing of x. By the
inverse, x_t + sum of d_(t-s) z_s = sum of d_(t-s) w_s, and rounding commutes with the whole x_t:
all releases are functions of w_1, ..., w_T. Let the person be in period t. Until then both tables
have the same w. Given w_1, ..., w_(u-1) alike, the other people of period u >= t are alike, too,
though they may depend on what was released, and w_u differs by c_(u-t) in at most m cells, all in
one direction, with z_u still to be drawn. So its pair dominates the conditional law of each step,
for every past, and pairs compose adaptively. At most T - t + 1 of the pairs are met; the others
only add. A cell without people in period t has n_t <= R_t < R_t + k and is not shown, as if it were
looked at. A shown cell has x_t >= k.

The basic noise must be drawn on the grid of the c: whole numbers would leave the parity of x_1 in
sight from the second release on. And a period must be released once, with the number of its turn:
two releases of one period, of tables that differ, would show the difference.

**Running totals.** The sum of releases 1 to t has the noise sum over s of e_(t-s) z_s, e_i the
sum of d_0, ..., d_i, and t roundings. With c the square root of the prefix sums, e is c, so the
largest standard deviation is sqrt(v) sqrt(sum of c_j^2), and v grows in proportion to sum of c_j^2:
1.724 times the noise of one release planned by itself for T = 8, where a plain sum has 2.828.
Without the rounding to eighths it were 1.718.

**Randomness.** Basic noise of earlier periods is drawn again from a key that the curator keeps. If
it came out otherwise (a key that is lost, another version of the sampler), later releases would
carry fresh noise for it, which hides more and not less; only the totals were worse.

People who are in several periods are several units: n of them together are (n epsilon, delta
(e^(n epsilon) - 1) / (e^epsilon - 1))-differentially private, by going from table to table.
"""

from __future__ import annotations

import hmac
import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np

from incrowd.arrays import Counts, Floats
from incrowd.privacy.counts import NoiseSpread, sample_gaussian_noise
from incrowd.privacy.events import SERIES_GRID, SeriesCounts, ShiftedCounts
from incrowd.privacy.presentation import read_as_decimal
from incrowd.privacy.randomness import KeyedRandomness

LARGEST_DOMAIN = 1 << 20  # cells of a series, which all draw noise
_ROUNDED = 1 / 12  # the variance of a rounding


@cache
def list_shares(of: int) -> tuple[int, ...]:
    """Return how far a person moves the basic noise of each later release, in eighths.

    >>> list_shares(8)
    (8, 4, 3, 3, 2, 2, 2, 2)
    """
    share, shares = Fraction(1), []
    for j in range(of):
        shares.append(math.floor(share * SERIES_GRID + Fraction(1, 2)))
        share = share * (2 * j + 1) / (2 * j + 2)
    return tuple(shares)


@cache
def list_noise_weights(of: int) -> tuple[Fraction, ...]:
    """Return what the noise of a release has of its own basic noise, and of each one before.

    >>> [str(weight) for weight in list_noise_weights(4)]
    ['1', '-1/2', '-1/8', '-1/8']
    """
    shares = [Fraction(share, SERIES_GRID) for share in list_shares(of)]
    weights = [Fraction(1)]
    for i in range(1, of):
        weights.append(
            -sum((shares[j] * weights[i - j] for j in range(1, i + 1)), start=Fraction(0))
        )
    return tuple(weights)


def list_steps(event: SeriesCounts) -> list[ShiftedCounts]:
    """Return the pairs that dominate a series for one cell of a person."""
    return [ShiftedCounts(event.grid_event, share) for share in list_shares(event.of)]


def compute_reach(event: SeriesCounts, number: int) -> int:
    """Return the most that the noise of a release can be, by its number in the series."""
    bound = event.r * sum(map(abs, list_noise_weights(event.of)[:number]), start=Fraction(0))
    return math.floor(bound + Fraction(1, 2))


def build_series_spread(event: SeriesCounts, number: int) -> NoiseSpread:
    """Return the spread of the noise of one release, to a thousandth.

    The sum of many basic noises is taken for a normal variable, rounded and cut at its reach.
    """
    weights = list_noise_weights(event.of)[:number]
    variance = event.variance * float(sum(weight**2 for weight in weights))
    return _round_normal(variance, compute_reach(event, number))


def _round_normal(variance: float, reach: int) -> NoiseSpread:
    from scipy.special import ndtr

    edges = (np.arange(reach + 2, dtype=np.float64) - 0.5) / math.sqrt(variance)
    tail: Floats = ndtr(-edges[:-1]) - ndtr(-edges[1:])
    return NoiseSpread(tail / (2 * tail.sum() - tail[0]))


@dataclass(frozen=True)
class TotalError:
    """How far off a running total is.

    Attributes:
        spread: Its standard deviation.
        bound: The most that it can be off.
    """

    spread: float
    bound: int


def compute_total_error(event: SeriesCounts, numbers: Iterable[int]) -> TotalError:
    """Return the error of a sum over some releases of a series, by their numbers."""
    weights, chosen = list_noise_weights(event.of), sorted(set(numbers))
    sums = [
        sum((weights[number - s] for number in chosen if number >= s), start=Fraction(0))
        for s in range(1, max(chosen) + 1)
    ]
    variance = event.variance * float(sum(share**2 for share in sums)) + len(chosen) * _ROUNDED
    bound = event.r * sum(map(abs, sums), start=Fraction(0)) + Fraction(len(chosen), 2)
    return TotalError(math.sqrt(variance), math.floor(bound))


@dataclass(frozen=True)
class SeriesTurn:
    """A release of a series: its number, and the key that draws the noise of all of them."""

    number: int
    key: bytes

    def bind(self, domain: bytes) -> SeriesTurn:
        """Return the turn in a series of one scheme: another scheme has noise of its own."""
        return SeriesTurn(self.number, hmac.digest(self.key, domain, "sha256"))

    @property
    def name(self) -> str:
        """A name that all releases of the series share, and that tells nothing of the key."""
        return hmac.digest(self.key, b"name of the series", "sha256").hex()[:16]


def sample_series_noise(event: SeriesCounts, number: int, cells: int, key: bytes) -> Counts:
    """Draw the noise of one release for so many cells, the same whenever the key is the same.

    Whole numbers all the way: the weights have a common denominator of at most 8^15, and the sum
    stays below 2^62.
    """
    weights = list_noise_weights(event.of)[:number]
    scale = math.lcm(*(weight.denominator for weight in weights)) * SERIES_GRID
    assert 4 * scale * event.r < 2**62
    grid, total = event.grid_event, np.zeros(cells, dtype=np.int64)
    for at, weight in enumerate(weights):
        if not weight:
            continue
        bits = KeyedRandomness(hmac.digest(key, b"basic noise %d" % (number - at), "sha256"))
        basic = sample_gaussian_noise(cells, read_as_decimal(grid.variance), grid.r, bits)
        total += basic * int(weight * scale // SERIES_GRID)
    return (2 * total + scale) // (2 * scale)
