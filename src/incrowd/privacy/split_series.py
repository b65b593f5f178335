"""A budget for a series of counts: the basic noise of least bound that it allows."""

from __future__ import annotations

import math

from incrowd.errors import ParameterError, UnsolvableError
from incrowd.privacy.amplification import Guarantee
from incrowd.privacy.events import LARGEST_R, SERIES_GRID, SeriesCounts
from incrowd.privacy.plan_sample import find_smallest_whole
from incrowd.privacy.series import list_shares
from incrowd.privacy.split import BudgetSplit, guess_variance, is_within_budget

_LEAST_DELTA = 1e-300


def split_for_series(*, epsilon: float, delta: float, of: int, rows: int = 1) -> BudgetSplit:
    """Split a budget for all releases of a series: within (epsilon, delta), all together.

    The variance is found by the formulas of the unbounded law, the bound by the accountant.
    """
    if delta < _LEAST_DELTA:
        raise ParameterError("delta", f"be at least {_LEAST_DELTA:g} for counts", delta)
    shares = [share / SERIES_GRID for share in list_shares(of)]
    energy, distance = rows * sum(share**2 for share in shares), rows * sum(shares)
    guess = guess_variance(energy, distance, Guarantee(epsilon, delta))

    def split(r: int, variance: float) -> BudgetSplit:
        return BudgetSplit(epsilon, delta, SeriesCounts(r, variance, of, rows))

    if guess is not None and guess[0] <= 1_000_000 / SERIES_GRID**2:
        variance, start = guess
        r = find_smallest_whole(
            lambda r: is_within_budget(split(r, variance)), start, LARGEST_R // SERIES_GRID
        )
        if math.isfinite(r):
            return split(int(r), variance)
    raise UnsolvableError(
        f"No series of {of} releases reaches ε = {epsilon:g}, δ = {delta:g} (rows per person: "
        f"{rows}). Use a larger ε or δ, or fewer releases or rows."
    )
