"""Incrowd publishes tables about people so that each person hides in a crowd, provably."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from incrowd.errors import IncrowdError, IncrowdWarning, ParameterError, UnsolvableError
from incrowd.privacy.accountant import Accountant, BasicAccountant
from incrowd.privacy.amplification import Guarantee, allowed, amplified
from incrowd.privacy.binomial import Definition, delta
from incrowd.privacy.events import (
    Coin,
    Composition,
    GaussianCounts,
    GeometricCounts,
    Mechanism,
    OneOf,
    SafeRelease,
    Sampled,
    Selection,
)
from incrowd.privacy.inverse import beta, crowd_size, epsilon
from incrowd.privacy.plan import Plan, plan
from incrowd.privacy.plan_counts import CountsPlan
from incrowd.privacy.smooth import Smooth, delta_sampling, expected_failures, smooth_bound

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Names that need tables are loaded when they are first used."""
    homes = {
        "Ledger": "release.ledger",
        "attack": "tasks.attack",
        "audit": "tasks.audit",
        "check": "tasks.check",
        "draft": "tasks.draft.draft",
        "evaluate": "tasks.evaluate",
        "expect": "tasks.expect",
        "information_loss": "tasks.evaluate",
        "linking_risk": "measure.linkage",
        "publish": "tasks.publish",
        "rehearse": "tasks.rehearse",
        "spark_engine": "engine.source",
        "verify": "release.verify",
    }
    if name not in homes:
        raise AttributeError(f"module 'incrowd' has no attribute '{name}'")
    return getattr(import_module(f"incrowd.{homes[name]}"), name)


def __dir__() -> list[str]:
    """The public names, whether they are loaded already or not."""
    return [*__all__, "__version__"]


if TYPE_CHECKING:
    from incrowd.engine.source import spark_engine
    from incrowd.measure.linkage import linking_risk
    from incrowd.release.ledger import Ledger
    from incrowd.release.verify import verify
    from incrowd.tasks.attack import attack
    from incrowd.tasks.audit import audit
    from incrowd.tasks.check import check
    from incrowd.tasks.draft.draft import draft
    from incrowd.tasks.evaluate import evaluate, information_loss
    from incrowd.tasks.expect import expect
    from incrowd.tasks.publish import publish
    from incrowd.tasks.rehearse import rehearse

__all__ = [
    "Accountant",
    "BasicAccountant",
    "Coin",
    "Composition",
    "CountsPlan",
    "Definition",
    "GaussianCounts",
    "GeometricCounts",
    "Guarantee",
    "IncrowdError",
    "IncrowdWarning",
    "Ledger",
    "Mechanism",
    "OneOf",
    "ParameterError",
    "Plan",
    "SafeRelease",
    "Sampled",
    "Selection",
    "Smooth",
    "UnsolvableError",
    "allowed",
    "amplified",
    "attack",
    "audit",
    "beta",
    "check",
    "crowd_size",
    "delta",
    "delta_sampling",
    "draft",
    "epsilon",
    "evaluate",
    "expect",
    "expected_failures",
    "information_loss",
    "linking_risk",
    "plan",
    "publish",
    "rehearse",
    "smooth_bound",
    "spark_engine",
    "verify",
]
