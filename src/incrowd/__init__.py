"""Incrowd publishes tables about people so that each person hides in a crowd, provably."""

from incrowd.errors import IncrowdError, ParameterError, UnsolvableError
from incrowd.planning import Plan, plan
from incrowd.privacy.accountant import Accountant, BasicAccountant
from incrowd.privacy.binomial import Definition, delta
from incrowd.privacy.events import Composition, Mechanism, SafeRelease, Sampled, Selection
from incrowd.privacy.inverse import beta, crowd_size, epsilon
from incrowd.privacy.sampling import Guarantee, allowed, amplified
from incrowd.privacy.smooth import Smooth, delta_sampling, expected_failures, smooth_bound

__version__ = "0.1.0"

__all__ = [
    "Accountant",
    "BasicAccountant",
    "Composition",
    "Definition",
    "Guarantee",
    "IncrowdError",
    "Mechanism",
    "ParameterError",
    "Plan",
    "SafeRelease",
    "Sampled",
    "Selection",
    "Smooth",
    "UnsolvableError",
    "allowed",
    "amplified",
    "beta",
    "crowd_size",
    "delta",
    "delta_sampling",
    "epsilon",
    "expected_failures",
    "plan",
    "smooth_bound",
]
