"""The model as a function of what was measured: fitted again from it, by whoever checks a release.

While tables are chosen, models are fitted in rounds, each from the one before. The last model must
not depend on that path: it is fitted from the measurements alone, twice. The first fit tells cells
that are well above their noise from the others; the second one follows them closely
(:mod:`incrowd.anonymize.synthetic.fit`). Both minimize a strictly convex function, so that two
machines find the same model up to where they stop.

**Claim.** Two models that are fitted so differ, in each table that they hold, by at most
:data:`TOLERANCE` in sum (a - b)^2 / (a + 1) over the cells, a and b their counts.

**Proof sketch.** Near its minimum the objective is half a quadratic form H, and a fit ends where
the objective may still fall by ``FINAL_GAP`` / 2: both lie within sqrt(FINAL_GAP) of the minimum in
the norm of H, and within 2 sqrt(FINAL_GAP) of each other. The counts of a table change with the
parameters by the table's block of N Cov, which is at most H and at most diag(counts). So the sum
over cells of the squared difference over the count is at most 4 FINAL_GAP, well within the
tolerance. Where the fit runs out of steps first, both have made the same steps.

The gap is small because few rows are measured more precisely than to the root of a count: a fit
that ends at 0.9 may miss a count of 700 by 20, where the noise is 8. Where single columns are known
better still, the last fit goes on. Its gap bounds the sum of (a - b)^2 / a, with a the counts at
the minimum. By Cauchy and Schwarz, a table of n rows is then off by a total variation distance of
at most (gap / n)^0.5 / 2. The gap is such that this is at most half of what noise does to a single
column, on average, but not below ``LEAST_GAP``.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence

from incrowd.anonymize.synthetic.domain import Domain
from incrowd.anonymize.synthetic.measurement import Measurement, TableEstimate
from incrowd.anonymize.synthetic.model import Model
from incrowd.anonymize.synthetic.released import Key, Released
from incrowd.anonymize.synthetic.stage import ROUND_GAP, ROUND_STEPS

FINAL_GAP = 0.05
LEAST_GAP = 0.001
FINAL_STEPS = 2000
TOLERANCE = 4.0


def fit_measurements(
    domain: Domain, measurements: Sequence[Measurement], aside: Collection[Key]
) -> Model:
    """Fit the model of measurements; tables ``aside`` are measured and not held by it."""
    released = Released(domain)
    for measurement in measurements:
        released.add(measurement)
        key = measurement.columns, measurement.levels
        if key in aside:
            released.set_aside(*key)
        elif len(measurement.columns) > 1:
            released.hold(*key)
    first = released.fit_model(gap=ROUND_GAP, steps=ROUND_STEPS)
    gap = find_final_gap(first.rows, released.estimates().values())
    return released.fit_model(gap=gap, steps=FINAL_STEPS)


def find_final_gap(rows: float, estimates: Iterable[TableEstimate]) -> float:
    """Return the gap at which the last fit ends, by the noise of single columns; see the module."""
    one_ways = [estimate for estimate in estimates if len(estimate.columns) == 1]
    deviations = [table.cells.size * table.precision**-0.5 for table in one_ways]
    distance = math.sqrt(2 / math.pi) * sum(deviations) / len(deviations) / (2 * rows)
    return min(FINAL_GAP, max(LEAST_GAP, float(rows * distance**2)))
