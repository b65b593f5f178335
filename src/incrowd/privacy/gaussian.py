"""Gaussian measurements whose parts of one budget may depend on earlier results.

A measurement adds discrete Gaussian noise of one whole variance to every whole number of a query.
A row more moves the query by a vector of some squared length D^2. A part of the budget, a number
tau above 0, buys the variance ceil(D^2 / tau) + 3 (:func:`whole_variance`).

**Claim.** Let queries and parts be chosen in any way from public knowledge and earlier results,
such that the parts never sum to more than B. The results together are dominated by one number with
normal noise: N(sqrt(B), 1) against N(0, 1), read at e^-1e-15 times any threshold on P / Q, for at
most 10^9 measured numbers.

**Proof, one measurement.** Write g_s for the normal density of variance s, and theta_s(t) for the
sum of g_s(z - t) over whole z. By Poisson's summation formula theta_s(t) is 1 + 2 sum_{k >= 1}
e^(-2 pi^2 s k^2) cos(2 pi k t), so it differs from 1 by at most 2.0001 e^(-2 pi^2 s): for s >= 3 by
less than h = 4e-26. Let x be a whole number, v the variance, and consider this randomized rounding
of a normal variable of variance v - 3: draw X from N(x, v - 3), then a whole y with probability
g_3(y - X) / theta_3(X). Normal densities convolve to normal densities, so y has the probability
g_v(y - x) times a factor between 1 / (1 + h) and 1 / (1 - h). The discrete Gaussian of variance v
around x gives it g_v(y - x) / theta_v(0). So the two laws are within a factor 1 + 3h of each other
at every y: they are exchanged for each other below, and the factors counted. But for them, a
measurement is rounded from N(x, (v - 3) I), independently for each number and by a rule that does
not know x: it is post-processing. Scaled to variance 1, a row moves the mean by a vector a of
squared length |a|^2 = D^2 / (v - 3) <= tau.

**Proof, all together.** Fix two tables that differ by a row; Q is the law on one and P that on the
other. Let W be a Brownian motion on [0, B], without drift under Q and with drift 1 under P. Given
W(B), its path has the same law under both (a bridge), and W(B) / sqrt(B) is N(0, 1) or N(sqrt(B),
1): the whole path is post-processing of that one number. From the path every measurement can be
made, in order, with the law that it has on the respective table. Suppose that time t has been
used, which depends on earlier results alone. The next measurement moves the mean by a, which they
determine as well, with |a|^2 <= tau <= B - t. Increments after t are independent of what was used,
so the next one of duration |a|^2, over |a|, is N(0, 1) under Q and N(|a|, 1) under P. Put it along
the direction of a, and independent normal numbers along all others: that is N(0, I) or N(a, I).
Add the mean that Q has, and round. Choices and other events between measurements, each dominated
by a pair of its own whatever came before, are made from draws of those pairs in the same way; so
everything together is dominated by the product of this pair with theirs, and composes as
independent events do.

**The remainder.** At most 10^9 numbers, each with a factor of at most 1 + 3h either way, change a
probability by a factor of at most e^z, z = 1.2e-16. So what is released has
delta(epsilon) <= e^z delta_normal(epsilon - 2 z): the profile is read at epsilon - 1e-15 and
rounded up.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from incrowd.arrays import Floats
from incrowd.errors import ParameterError
from incrowd.privacy.profile import Profile

ROUNDING_VARIANCE = 3
LARGEST_MEASURED = 10**9
_REMAINDER = 1e-15


def whole_variance(squared_length: int, part: Fraction) -> int:
    """Return the variance of the noise that a part of the budget buys; see the module's claim."""
    if not part > 0 or squared_length < 1:
        raise ParameterError("part", "be above 0, for a query that a row moves", float(part))
    return math.ceil(squared_length / part) + ROUNDING_VARIANCE


def of_measurements(information: float) -> Profile:
    """Return the profile of all measurements of one budget of information.

    With mu its root and Q the normal tail, delta = Q(a) - e^epsilon Q(a + mu) where
    a = epsilon / mu - mu / 2. With the normal density g and Q = g R, e^epsilon g(a + mu) = g(a):
    the difference is g(a) (R(a) - R(a + mu)), in which no large number multiplies a small one. It
    is alike for both directions.
    """
    mu = math.sqrt(information) * (1 + 1e-15)  # delta grows with it

    def either(epsilon: Floats) -> Floats:
        return normal_delta(epsilon - _REMAINDER, mu)

    # Past it delta is below 1e-300.
    return Profile(either, either, 38 * mu + mu * mu / 2)


def normal_delta(epsilon: Floats, mu: float) -> Floats:
    """Return the delta of N(mu, 1) against N(0, 1) at each epsilon, rounded up."""
    from scipy.special import erfcx, ndtr

    a = epsilon / mu - mu / 2
    with np.errstate(under="ignore", over="ignore"):
        density = np.exp(-np.minimum(a * a / 2, 740.0)) / math.sqrt(2 * math.pi)
        further = math.sqrt(math.pi / 2) * erfcx((a + mu) / math.sqrt(2))
        near = math.sqrt(math.pi / 2) * erfcx(np.maximum(a, 0.0) / math.sqrt(2))
        tail = np.where(a < 0, ndtr(-a), density * near)
        # a < 0 and a + mu far below 0 does not occur for epsilon >= 0: a + mu >= mu / 2 - 1e-12.
        excess = np.where(a < 0, tail - density * further, density * (near - further))
    # The difference is off by a few units in the last place of its parts, and the exponent a^2 / 2
    # by a few of its own.
    slack = 1e-15 * (a * a + 20)
    delta: Floats = np.clip((excess + 1e-14 * tail) * (1 + slack) + 1e-300, 0.0, 1.0)
    return delta
