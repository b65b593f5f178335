"""The laws of noise on whole numbers, and whether draws fit them."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy import stats

from incrowd.arrays import Floats

FALSE_ALARM = 1e-6


def compute_laplace_law(t: int, s: int, reach: int) -> Floats:
    q = math.exp(-s / t)
    law: Floats = np.exp(-np.abs(np.arange(-reach, reach + 1)) * s / t) * (1 - q) / (1 + q)
    return law


def compute_gaussian_law(sigma: float, reach: int) -> Floats:
    y = np.arange(-max(reach, int(40 * sigma)), max(reach, int(40 * sigma)) + 1)
    weights = np.exp(-(y**2) / (2 * sigma**2))
    middle = len(y) // 2
    law: Floats = weights[middle - reach : middle + reach + 1] / weights.sum()
    return law


def is_drawn_from(draws: npt.NDArray[np.int64], law: Floats) -> bool:
    """Whether a chi-square test accepts the draws; values are put together in about 40 groups."""
    reach = len(law) // 2
    inside = draws[np.abs(draws) <= reach]
    seen = np.bincount(inside + reach, minlength=len(law))
    group = np.minimum((np.cumsum(law) - law / 2) * 40, 39).astype(int)
    request = np.bincount(group, law) * len(draws)
    observed = np.bincount(group, seen)
    some = request > 0
    request, observed = request[some], observed[some]
    missing = len(draws) - len(inside)
    if missing > 20 + 10 * max(1 - law.sum(), 0) * len(draws):
        return False
    chance = stats.chi2.sf(((observed - request) ** 2 / request).sum(), max(len(request) - 1, 1))
    return bool(chance > FALSE_ALARM)
