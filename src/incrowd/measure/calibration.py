"""Calibrate survey weights to known totals, by raking.

**Raking** (Deming and Stephan 1940; Deville and Särndal 1992). Of all weights whose sums in each
group of each margin are the known totals, it finds those nearest to the given ones: with the least
sum of w log(w / d) - w + d. They are the given weights d times one factor for each group, and are
found by scaling one margin after the other until nothing changes.

Weights of a release are computed from what is published and from public totals alone, so that the
guarantee of the release holds for them as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from incrowd.arrays import Counts, Floats, Members
from incrowd.errors import IncrowdError

_ROUNDS, _CLOSE, _FAR = 2000, 1e-12, 1e-6


@dataclass(frozen=True, eq=False)
class Margin:
    """One column whose totals are known.

    ``members`` has the group of each entry, ``labels`` what each group is called, ``totals`` its
    total.
    """

    column: str
    members: Members
    labels: Sequence[str]
    totals: Floats


@dataclass(frozen=True, eq=False)
class CalibratedWeights:
    """Calibrated weights of entries, and how far they moved.

    Attributes:
        weights: The weight of each entry.
        rounds: How often all margins were scaled.
        smallest_factor: Smallest ratio of a calibrated weight to the given one.
        largest_factor: Largest ratio.
    """

    weights: Floats
    rounds: int
    smallest_factor: float
    largest_factor: float


def rake_weights(weights: Floats, rows: Counts, margins: Sequence[Margin]) -> CalibratedWeights:
    """Return the nearest weights that add up to the totals of all margins.

    Args:
        weights: The given weight of each entry, positive.
        rows: The rows of each entry.
        margins: The columns whose totals are known; all totals have one sum.
    """
    _refuse_impossible(rows, margins)
    raked = weights.astype(np.float64).copy()
    rounds, worst = 0, 1.0
    while worst > _CLOSE and rounds < _ROUNDS:
        rounds, worst = rounds + 1, 0.0
        for margin in margins:
            sums = np.bincount(margin.members, weights=raked * rows, minlength=len(margin.totals))
            factors = margin.totals / sums
            worst = max(worst, float(np.abs(factors - 1).max()))
            raked *= factors[margin.members]
    for margin in margins:
        sums = np.bincount(margin.members, weights=raked * rows, minlength=len(margin.totals))
        far = np.abs(sums / margin.totals - 1)
        if far.max() > _FAR:
            label = margin.labels[int(far.argmax())]
            raise IncrowdError(
                f"Column '{margin.column}': no weights meet all totals; '{label}' would add up to "
                f"{sums[far.argmax()]:,.0f}. Give fewer totals, or totals of coarser groups."
            )
    factors = raked / weights
    return CalibratedWeights(raked, rounds, float(factors.min()), float(factors.max()))


def _refuse_impossible(rows: Counts, margins: Sequence[Margin]) -> None:
    """Refuse totals that no weights can meet, by the group that prevents it."""
    if not len(rows) or not rows.sum():
        raise IncrowdError("No rows to calibrate. Nothing was published.")
    for margin in margins:
        bad = ~(np.isfinite(margin.totals) & (margin.totals > 0))
        if bad.any():
            label = margin.labels[int(bad.argmax())]
            raise IncrowdError(
                f"Column '{margin.column}': the total of '{label}' is not a positive number. "
                "Correct it, or leave the group out."
            )
        counts = np.bincount(margin.members, weights=rows, minlength=len(margin.totals))
        if not counts.all():
            label = margin.labels[int((counts == 0).argmax())]
            raise IncrowdError(
                f"Column '{margin.column}': no row shows '{label}', which has a total. Add its "
                "total to that of another group."
            )
    sums = [float(margin.totals.sum()) for margin in margins]
    if max(sums) > min(sums) * (1 + 1e-6):
        listed = ", ".join(
            f"{margin.column} {total:,.0f}" for margin, total in zip(margins, sums, strict=True)
        )
        raise IncrowdError(f"Totals: their sums differ ({listed}). Make them those of one day.")
