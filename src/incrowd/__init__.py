"""Incrowd publishes tables about people so that each person hides in a crowd, provably."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from incrowd.curate.check import check
    from incrowd.curate.confirm import confirm
    from incrowd.curate.cumulate import RunningTotals, cumulate
    from incrowd.curate.deposit import describe
    from incrowd.curate.draft.draft import draft
    from incrowd.curate.recommend import recommend_method
    from incrowd.curate.rehearse import rehearse
    from incrowd.curate.risk_assessment import risk
    from incrowd.curate.survey_weights import calibrate
    from incrowd.curate.synthesize import synthesize
    from incrowd.curate.table_plan import plan_tables
    from incrowd.engine.source import spark_engine
    from incrowd.errors import IncrowdError, IncrowdWarning, ParameterError, UnsolvableError
    from incrowd.evaluation.attacks.attack import attack
    from incrowd.evaluation.audit.audit import audit
    from incrowd.evaluation.comparison import compare
    from incrowd.evaluation.evaluate import evaluate, information_loss
    from incrowd.measure.linkage import linking_risk
    from incrowd.methods.expect import expect
    from incrowd.privacy.accountant import Accountant, BasicAccountant
    from incrowd.privacy.amplification import Guarantee, amplify_guarantee, invert_amplification
    from incrowd.privacy.events import (
        Coin,
        Composition,
        GaussianCounts,
        GeometricCounts,
        Mechanism,
        OneOf,
        PersonCounts,
        RowCounts,
        SafeRelease,
        SampledEvent,
        Selection,
        SeriesCounts,
        ShiftedCounts,
    )
    from incrowd.privacy.plan import Plan, plan
    from incrowd.privacy.plan_counts import CountsPlan
    from incrowd.privacy.sample import Definition, delta
    from incrowd.privacy.sample_inverse import beta, crowd_size, epsilon
    from incrowd.privacy.smooth import SmoothBound, delta_sampling, expected_failures, smooth_bound
    from incrowd.publication import publish
    from incrowd.release.ledger import Ledger
    from incrowd.verification import verify

__version__ = "0.1.0"

_HOMES = {
    "engine.source": ("spark_engine",),
    "errors": ("IncrowdError", "IncrowdWarning", "ParameterError", "UnsolvableError"),
    "measure.linkage": ("linking_risk",),
    "privacy.accountant": ("Accountant", "BasicAccountant"),
    "privacy.amplification": ("Guarantee", "invert_amplification", "amplify_guarantee"),
    "privacy.sample": ("Definition", "delta"),
    "privacy.events": (
        "Coin", "Composition", "GaussianCounts", "GeometricCounts", "Mechanism", "OneOf",
        "PersonCounts", "RowCounts", "SafeRelease", "SampledEvent", "Selection", "SeriesCounts",
        "ShiftedCounts",
    ),
    "privacy.sample_inverse": ("beta", "crowd_size", "epsilon"),
    "privacy.plan": ("Plan", "plan"),
    "privacy.plan_counts": ("CountsPlan",),
    "privacy.smooth": ("SmoothBound", "delta_sampling", "expected_failures", "smooth_bound"),
    "release.ledger": ("Ledger",),
    "verification": ("verify",),
    "evaluation.attacks.attack": ("attack",),
    "evaluation.audit.audit": ("audit",),
    "curate.check": ("check",),
    "curate.confirm": ("confirm",),
    "curate.cumulate": ("RunningTotals", "cumulate"),
    "curate.deposit": ("describe",),
    "curate.draft.draft": ("draft",),
    "curate.recommend": ("recommend_method",),
    "evaluation.comparison": ("compare",),
    "evaluation.evaluate": ("evaluate", "information_loss"),
    "methods.expect": ("expect",),
    "publication": ("publish",),
    "curate.rehearse": ("rehearse",),
    "curate.risk_assessment": ("risk",),
    "curate.survey_weights": ("calibrate",),
    "curate.synthesize": ("synthesize",),
    "curate.table_plan": ("plan_tables",),
}  # fmt: skip


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used: a command pays for what it needs alone."""
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"incrowd.{home}"), name)
    raise AttributeError(f"module 'incrowd' has no attribute '{name}'")


def __dir__() -> list[str]:
    """Return the public names, whether they are loaded already or not."""
    return [*__all__, "__version__"]


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
    "PersonCounts",
    "Plan",
    "RowCounts",
    "RunningTotals",
    "SafeRelease",
    "SampledEvent",
    "Selection",
    "SeriesCounts",
    "ShiftedCounts",
    "SmoothBound",
    "UnsolvableError",
    "amplify_guarantee",
    "attack",
    "audit",
    "beta",
    "calibrate",
    "check",
    "compare",
    "confirm",
    "crowd_size",
    "cumulate",
    "delta",
    "delta_sampling",
    "describe",
    "draft",
    "epsilon",
    "evaluate",
    "expect",
    "expected_failures",
    "information_loss",
    "invert_amplification",
    "linking_risk",
    "plan",
    "plan_tables",
    "publish",
    "recommend_method",
    "rehearse",
    "risk",
    "smooth_bound",
    "spark_engine",
    "synthesize",
    "verify",
]
