"""What a release can be expected to show of a table that nobody has looked at yet.

Two tables are assumed. In the *skewed* one the i-th value of a column, in the order of its
declaration, is 1/i times as frequent as the first; in the *concentrated* one 1/i**2 times. Columns
are independent. Of fourteen public tables of people, the groups of four to twelve columns at
informative levels had between 0.4 and 1.2 of the entropy of the skewed table, 0.74 in the mean, and
0.7 is about that of the concentrated one: real columns depend on each other, and are concentrated.
(Were all values equally frequent, hardly a table would be large enough; "even" is for comparison.)
Of an open domain nobody knows the values: each character of a mask is distributed like this by
itself, and other columns are taken to have ``OPEN_VALUES`` values.

Rows fall into cells; how many cells there are, and how large, follows from the shares of the
groups of each column alone: the logarithm of a cell's share is a sum over columns, so its
distribution is a convolution, done on a grid. The number of rows of a cell is taken to be
Poisson. These are expectations of assumed tables: no data are used, and nothing is promised.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from incrowd.arrays import Floats, Places
from incrowd.codes.hierarchy import Hierarchy
from incrowd.spec.hierarchies import Mask

Assumption: TypeAlias = Literal["even", "skewed", "concentrated"]
ASSUMPTIONS: tuple[Assumption, ...] = ("concentrated", "skewed")
_POWERS: dict[Assumption, float] = {"even": 0, "skewed": 1, "concentrated": 2}
OPEN_VALUES = 10
_MOST_KINDS = 4000  # of groups that are alike in size
PER_NAT = 20  # points of the grid for each factor of e
_LEAST = 1e-4  # cells with fewer rows in the mean are not shown
_DENSE = 4000
Levels: TypeAlias = dict[str, int]
Waves: TypeAlias = npt.NDArray[np.complex128]


@dataclass(frozen=True, eq=False)
class GroupShares:
    """The groups of a column at one level: the logarithm of the share of each kind of them.

    ``mass`` is the share of all rows that lie in groups of each kind; it adds up to 1.
    """

    logs: Floats
    mass: Floats

    @staticmethod
    def from_shares(shares: Floats) -> GroupShares:
        """Return groups by their shares."""
        shares = shares[shares > 0]
        return GroupShares(np.minimum(np.log(shares), 0.0), shares)

    @property
    def is_single(self) -> bool:
        """Whether there is only one group, which tells nothing."""
        return len(self.logs) == 1 and bool(self.logs[0] > -1e-9)


def compute_shares(values: int, assumption: Assumption) -> Floats:
    """Return the shares of so many values."""
    plain = np.arange(1, values + 1, dtype=np.float64) ** -_POWERS[assumption]
    shares: Floats = plain / plain.sum()
    return shares


def build_group_shares(hierarchy: Hierarchy, level: int, assumption: Assumption) -> GroupShares:
    """Return the groups of a listed domain at a level."""
    values = len(hierarchy.values)
    shares = _sum_by_place(hierarchy.groups[level][:values], compute_shares(values, assumption))
    return GroupShares.from_shares(shares)


def build_mask_shares(mask: Mask, level: int, assumption: Assumption) -> GroupShares:
    """Return the groups of a mask that hides ``level`` characters."""
    return _build_text_shares(len(set(mask.alphabet)), mask.length - level, assumption)


@lru_cache(maxsize=256)
def _build_text_shares(letters: int, length: int, assumption: Assumption) -> GroupShares:
    """Return the groups of texts of so many characters; of many kinds near ones are joined.

    Sizes are then off by a factor that is small beside how much they differ.
    """
    if not length:
        return GroupShares(np.zeros(1), np.ones(1))
    text_shares = _build_text_shares(letters, length - 1, assumption)
    letter_shares = GroupShares.from_shares(compute_shares(letters, assumption))
    logs: Floats = np.add.outer(text_shares.logs, letter_shares.logs).ravel()
    mass: Floats = np.multiply.outer(text_shares.mass, letter_shares.mass).ravel()
    kinds, at = np.unique(np.round(logs, 6), return_inverse=True)
    if len(kinds) > _MOST_KINDS:
        wide = float(np.ptp(kinds)) / _MOST_KINDS
        kinds, at = np.unique(np.floor(logs / wide), return_inverse=True)
        kinds = (kinds + 0.5) * wide
    return GroupShares(kinds, _sum_by_place(at, mass))


def _sum_by_place(places: npt.NDArray[np.integer], mass: Floats, min_length: int = 0) -> Floats:
    """Return the mass at each place."""
    return np.bincount(places, weights=mass, minlength=min_length).astype(np.float64)


@dataclass(frozen=True)
class PublishedShare:
    """The share of rows that are published, how likely not a single one is, and how many groups."""

    rows: float
    empty: float
    groups: float


class _PublishChances:
    """The chance that a cell is published, and a row of it, by the mean number of its rows.

    Means lie on the same grid as shares, so that one table does for tables of any size.
    """

    def __init__(self, likely: Callable[[Floats], Floats]) -> None:
        top = _GRID[min(int(np.searchsorted(likely(_GRID), 1 - 1e-9)), len(_GRID) - 1)]
        dense = top <= _DENSE
        n = np.arange(0.0, top + 1) if dense else np.unique(np.geomspace(1, top, _DENSE).round())
        chance, wide = likely(n), np.gradient(n)
        self._first = math.floor(math.log(_LEAST) * PER_NAT)
        last = math.ceil(math.log(top + 8 * math.sqrt(top) + 8) * PER_NAT)
        means = np.exp(np.arange(self._first, last) / PER_NAT)
        factorials = np.array([math.lgamma(count + 1) for count in n.tolist()])  # their logarithms
        poisson = np.exp(np.outer(np.log(means), n) - means[:, None] - factorials) * wide
        self._shown, self._met = (
            np.minimum(mass @ chance + np.maximum(1 - mass.sum(axis=1), 0.0), 1.0)
            for mass in (poisson, poisson * n / means[:, None])
        )

    def look_up(self, places: Places) -> tuple[Floats, Floats]:
        """Return both, at places of the grid; nothing is shown below it, everything above it."""
        inside = np.clip(places - self._first, 0, len(self._met) - 1)
        above, below = places - self._first >= len(self._met), places < self._first
        return tuple(  # type: ignore[return-value]
            np.where(below, 0.0, np.where(above, 1.0, chances[inside]))
            for chances in (self._shown, self._met)
        )


def round_up_points(points: float) -> int:
    """Return a power of 2 of at least so many points."""
    return 1 << max(math.ceil(math.log2(points)), 6)


_GRID = np.unique(np.geomspace(1, 10_000_000, 600).round())


@dataclass(frozen=True)
class SearchAim:
    """What a search makes large, besides rows: the detail of columns, by a power.

    ``detail`` has for each column the mean detail of its values at each level, from 0 to 1, and
    ``weights`` what the column counts.
    """

    power: int
    detail: Mapping[str, Mapping[int, float]]
    weights: Mapping[str, float]

    def score(self, levels: Levels, informative: Collection[str], rows: float) -> float:
        """Return the expected score: as :mod:`incrowd.anonymize.safe_search` weighs cells."""
        total = sum(self.weights.values())
        detail = sum(self.weights[name] * self.detail[name][at] for name, at in levels.items())
        suppressed = sum(self.weights[name] for name in levels if name not in informative)
        return float(rows * (detail / total) ** self.power * (1 - suppressed / total / 2))


class TableForecast:
    """What tables with these columns can be expected to publish, at any levels and size.

    ``columns`` has for each column the groups of each level that it may take; a cell of n rows is
    shown with probability ``likely(n)``.
    """

    def __init__(
        self, columns: Mapping[str, Mapping[int, GroupShares]], likely: Callable[[Floats], Floats]
    ) -> None:
        self._columns, self._chances = columns, _PublishChances(likely)
        self._points = self._count_points()
        self._waves = {
            (name, level): np.fft.rfft(self._put_on_grid(group_shares))
            for name, levels in columns.items()
            for level, group_shares in levels.items()
        }

    def _count_points(self) -> int:
        """Return how many points a grid needs, for the smallest cells that there can be."""
        smallest_log = sum(self._find_smallest_log(name) for name in self._columns)
        return round_up_points((-smallest_log + 2) * PER_NAT + 2 * len(self._columns))

    def _find_smallest_log(self, name: str) -> float:
        """Return the logarithm of the smallest share of a group of a column."""
        return min(float(group_shares.logs.min()) for group_shares in self._columns[name].values())

    def _put_on_grid(self, group_shares: GroupShares) -> Floats:
        """Return the mass at each grid point, shared between neighbors so that means are kept."""
        place = -group_shares.logs * PER_NAT
        below = np.floor(place).astype(np.int64)
        part = place - below
        lower = _sum_by_place(below, group_shares.mass * (1 - part), self._points)
        return lower + _sum_by_place(below + 1, group_shares.mass * part, self._points)

    def predict_share(self, levels: Levels, size: float) -> PublishedShare:
        """Return what is published of so many rows at these levels."""
        return self._predict_share(*self._find_cells(levels), round(math.log(size) * PER_NAT))

    def _find_cells(self, levels: Levels) -> tuple[Places, Floats]:
        """Return the cells of a scheme: the places of their shares on the grid, and their rows."""
        waves = [self._waves[name, level] for name, level in levels.items()]
        return self._find_wave_cells(np.prod(waves, axis=0))

    def _find_wave_cells(self, wave: Waves) -> tuple[Places, Floats]:
        mass = np.maximum(np.fft.irfft(wave, self._points), 0.0)
        kinds = np.flatnonzero(mass > 1e-12)
        return kinds, mass[kinds] / mass[kinds].sum()

    def _predict_share(self, kinds: Places, mass: Floats, size: int) -> PublishedShare:
        chances, met = self._chances.look_up(size - kinds)
        # Of each kind there are as many cells as its rows are times the share of one.
        cells = mass * np.exp(kinds / PER_NAT)
        log_empty = float((cells * np.log1p(-np.minimum(chances, 1 - 1e-15))).sum())
        return PublishedShare(
            rows=float((mass * met).sum()),
            empty=math.exp(log_empty),
            groups=float((cells * chances).sum()),
        )

    def predict_pair_distance(self, levels: Levels, size: float, names: Collection[str]) -> float:
        """Return how far suppressed rows move the shares of one or two columns, at these levels.

        That is the total variation distance between the groups of all rows and those of published
        rows. A row is published by the size of its cell, so of all groups with one share the same
        part is, and the distance is half the sum over shares of how far this part is from its mean.
        It is 1 where less than one row is expected to be published.
        """
        place = round(math.log(size) * _PER_NAT)
        waves = {name: self._waves[name, level] for name, level in levels.items()}
        ones = np.ones_like(next(iter(waves.values())))
        pair = math.prod((waves[name] for name in names), start=ones)
        rest = math.prod((wave for name, wave in waves.items() if name not in names), start=ones)
        kinds, mass = self._find_wave_cells(pair)
        others, other_mass = self._find_wave_cells(rest)
        both = 2 * self._points
        _, met = self._chances.look_up(place - np.arange(both))
        rest_wave = np.fft.rfft(_sum_by_place(others, other_mass, both))
        # The chance of a row by the share of its pair: a mean over the cells of all other columns.
        parts = np.fft.irfft(np.fft.rfft(met) * np.conj(rest_wave), both)[kinds]
        mean = float(mass @ parts)
        return float(mass @ np.abs(parts / mean - 1)) / 2 if mean * size >= 1 else 1.0

    @property
    def coarsest_levels(self) -> Levels:
        """The highest level of each column."""
        return {name: max(levels) for name, levels in self._columns.items()}

    def list_informative_columns(self, levels: Levels) -> tuple[str, ...]:
        """Return the columns of which something is published at these levels."""
        return tuple(name for name, at in levels.items() if not self._columns[name][at].is_single)

    def find_informative_levels(self) -> Levels:
        """Return the coarsest levels that show something of every column that can show it."""
        return {
            name: max(
                [at for at, group_shares in levels.items() if not group_shares.is_single]
                or [max(levels)]
            )
            for name, levels in self._columns.items()
        }

    def find_finest_levels(self, size: float, share: float) -> Levels:
        """Return the finest levels that publish so large a share of the rows, one step at a time.

        Each step makes one column finer, the one that costs the fewest rows; columns of which
        nothing is shown yet go first.
        """
        levels, place = self.coarsest_levels, round(math.log(size) * PER_NAT)
        while True:
            candidates = []
            for name, cells in self._iterate_finer_cells(levels):
                is_single = self._columns[name][levels[name]].is_single
                candidates.append((is_single, self._predict_share(*cells, place).rows, name))
            fitting = [candidate for candidate in candidates if candidate[1] >= share]
            if not fitting:
                return levels
            name = max(fitting)[2]
            levels = {**levels, name: levels[name] - 1}

    def find_chosen_levels(self, size: float, aim: SearchAim) -> Levels:
        """Return about the levels that a search chooses, one step at a time.

        Each step makes one column finer, the one with which rows and detail score most, as long as
        the score rises. A search also weighs steps that go together, and has noise.
        """
        levels, place, best = self.coarsest_levels, round(math.log(size) * PER_NAT), 0.0
        while True:
            steps = []
            for name, cells in self._iterate_finer_cells(levels):
                rows = self._predict_share(*cells, place).rows
                after = {**levels, name: levels[name] - 1}
                score = aim.score(after, self.list_informative_columns(after), rows)
                steps.append((score, name))
            if not steps or max(steps)[0] <= best:
                return levels
            best, name = max(steps)
            levels = {**levels, name: levels[name] - 1}

    def _iterate_finer_cells(self, levels: Levels) -> Iterator[tuple[str, tuple[Places, Floats]]]:
        """Yield each column that can be one level finer, with the cells of that scheme."""
        for name, other_waves in self._iterate_leave_one_out(levels):
            if (name, levels[name] - 1) in self._waves:
                finer = self._waves[name, levels[name] - 1]
                yield name, self._find_wave_cells(other_waves * finer)

    def _iterate_leave_one_out(self, levels: Levels) -> Iterator[tuple[str, Waves]]:
        """Yield for each column the product of all others."""
        waves = [self._waves[name, level] for name, level in levels.items()]
        ones = np.ones_like(waves[0])
        after = [ones, *itertools.accumulate(reversed(waves), np.multiply)][-2::-1]
        before = ones
        for name, wave, rest in zip(levels, waves, after, strict=True):
            yield name, before * rest
            before = before * wave

    def find_table_size(self, levels: Levels, share: float) -> float:
        """Return about the smallest size of which such a share is published at these levels."""
        cells = self._find_cells(levels)
        low, high = 0, PER_NAT * 40
        if self._predict_share(*cells, high).rows < share:
            return math.inf
        while high - low > 1:
            middle = (low + high) // 2
            is_enough = self._predict_share(*cells, middle).rows >= share
            low, high = (low, middle) if is_enough else (middle, high)
        return math.exp(high / PER_NAT)
