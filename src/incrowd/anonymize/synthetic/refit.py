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
that ends at 0.9 may miss a count of 700 by 20, where the noise is 8.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from incrowd.anonymize.synthetic.domain import Domain
from incrowd.anonymize.synthetic.measurement import Measurement
from incrowd.anonymize.synthetic.model import Model
from incrowd.anonymize.synthetic.released import Key, Released
from incrowd.anonymize.synthetic.stage import ROUND_GAP, ROUND_STEPS

FINAL_GAP = 0.05
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
    released.fit_model(gap=ROUND_GAP, steps=ROUND_STEPS)
    return released.fit_model(gap=FINAL_GAP, steps=FINAL_STEPS)
