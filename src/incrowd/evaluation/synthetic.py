"""Judge synthetic rows: distances to their table, a classifier, attacks, and other methods."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec

from incrowd.evaluation.attacks.synthetic import attack_synthetic
from incrowd.findings import Finding
from incrowd.measure.estimate import AttackReport
from incrowd.measure.label_evaluation import build_pair
from incrowd.measure.prediction import Accuracy, compute_accuracy
from incrowd.measure.synthetic import OtherMethods, SyntheticEvaluation
from incrowd.measure.utility import limit_tuples
from incrowd.methods.synthetic.product import RowsProduct
from incrowd.privacy.plan_counts import USUAL_K, plan_counts
from incrowd.release.product import MethodResult

TRIES = 1000
_TUPLES = 5_000  # that a classifier learns from in a second


def measure_synthetic(made: MethodResult) -> tuple[SyntheticEvaluation, tuple[Finding, ...]]:
    """Measure synthetic rows beside their table, and what other methods would have kept."""
    product = _product(made)
    result = product.measure()
    assert result.utility is not None
    utility = replace(result.utility, accuracy=measure_accuracy(product))
    whole = replace(result, utility=utility, others=compare_methods(made))
    return whole, product.findings


def _product(made: MethodResult) -> RowsProduct:
    (product,) = made.products
    assert isinstance(product, RowsProduct)
    return product


def measure_accuracy(product: RowsProduct) -> Accuracy | None:
    """Train a classifier on the rows, for the target or else the first sensitive column.

    A release that is paid for must not fail by it.
    """
    names = [name for name, column in product.columns.items() if column.role == "sensitive"]
    target = product.target or next(iter(names), None)
    if target is None or len(product.original.names) < 2 or find_spec("sklearn") is None:
        return None
    original, shown = product.original, product.shown
    try:
        some = replace(original, frequencies=limit_tuples(original.frequencies, _TUPLES, 1))
        rows = replace(shown, frequencies=limit_tuples(shown.frequencies, _TUPLES, 2))
        return compute_accuracy(
            build_pair(some, some.axes, rows.drop_unused_labels()), target=target
        )
    except Exception:  # noqa: BLE001 - whatever a table can do to a classifier
        return None


def compare_methods(made: MethodResult) -> OtherMethods:
    """Return what counts of whole rows, and k-anonymity, would have kept of the same columns.

    At their finest values: a row is kept that stands in a group which the method publishes more
    often than not.
    """
    counts = _product(made).original.frequencies.counts
    rows = max(int(counts.sum()), 1)
    promise = made.promise
    assert promise.epsilon is not None
    crowd = plan_counts(epsilon=promise.epsilon, delta=promise.delta).crowd
    return OtherMethods(
        crowd=int(crowd),
        counts=float(counts[counts >= crowd].sum() / rows),
        k=USUAL_K,
        k_anonymity=float(counts[counts >= USUAL_K].sum() / rows),
    )


def try_attacks(made: MethodResult) -> AttackReport:
    """Attack synthetic rows; what cannot be tried is said."""
    try:
        return attack_synthetic(made, _product(made).second_rows, tries=TRIES)
    except Exception as error:  # noqa: BLE001 - whatever a table can do to an attack
        reason = (str(error).splitlines() or [""])[0]
        words = f"The attacks could not be made ({type(error).__name__}: {reason[:200]})."
        return AttackReport((), 0, 0, (words,))
