"""People published whole: what a delta by itself lets through (paper A, section 6).

Delta-sampling publishes each row with probability delta. It is (0, delta)-private, and yet of n
people it is expected to show n delta completely; no larger epsilon makes that any rarer. The
attacker reads the rows that show a single value in every column.

**Claim.** A person whose record nobody else has is published whole with probability delta exactly;
so the number of those published is Binomial(n, delta). A release whose finest step holds several
values shows nobody whole.
"""

from __future__ import annotations

import numpy as np

from incrowd.arrays import Bools, Codes
from incrowd.codes.axis import ClassBounds
from incrowd.codes.frequency import number_tuples
from incrowd.measure.estimate import Estimate, Rate


def attack_full_disclosure(
    published: ClassBounds,
    members: Codes,
    others: Codes,
    *,
    name: str,
    rng: np.random.Generator,
    bound: float | None = None,
) -> Estimate:
    """Estimate the share of people whose whole record is shown, as theirs or another's.

    ``members`` are the people of the table, ``others`` people like them who are not in it.
    ``guess`` says for each person the record of somebody like them.
    """
    single = (published.low == published.high).all(axis=1)
    rows = published.low[single]
    estimate = others[rng.integers(0, len(others), len(members))]
    hits = int(_find_among(members, rows).sum())
    return Estimate(
        attack="published whole",
        name=name,
        knows="nothing",
        success=Rate.from_hits(hits, len(members)),
        guess=Rate.from_hits(int((members == estimate).all(axis=1).sum()), len(members)),
        control=Rate.from_hits(int(_find_among(others, rows).sum()), len(others)),
        says="Every column of a person stands in the release as it is.",
        bound=bound,
        details={"people published whole": float(hits)},
    )


def _find_among(points: Codes, rows: Codes) -> Bools:
    """Find which points are among some rows."""
    numbers = number_tuples(np.concatenate([points, rows]))
    return np.isin(numbers[: len(points)], numbers[len(points) :])
