"""Judge synthetic rows: distances to their table, a classifier, attacks, and other methods."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from incrowd.codes.frequency import Frequencies, merge_tuples
from incrowd.engine.table import Table
from incrowd.evaluation.attacks.synthetic import attack_synthetic
from incrowd.evaluation.other_methods import compare_methods
from incrowd.findings import Finding
from incrowd.measure.estimate import AttackReport
from incrowd.measure.label_evaluation import build_pair
from incrowd.measure.labels import assign_bins
from incrowd.measure.prediction import Accuracy, compute_accuracy
from incrowd.measure.synthetic import SyntheticEvaluation
from incrowd.measure.utility import limit_tuples
from incrowd.methods.synthetic.product import RowsProduct
from incrowd.release.product import MethodResult

TRIES = 1000
_TUPLES = 5_000  # that a classifier learns from in a second


def measure_synthetic(
    outcome: MethodResult, source: Table | None = None, *, held_out: Frequencies | None = None
) -> tuple[SyntheticEvaluation, tuple[Finding, ...]]:
    """Measure synthetic rows beside their table, and what other methods would have kept.

    Args:
        outcome: the rows, with their table.
        source: the rows of the table, for other methods; without it these are not compared.
        held_out: rows that are not in the table, to test a classifier on, by codes of level 0.

    """
    product = get_rows(outcome)
    evaluation = product.measure()
    assert evaluation.utility is not None
    utility = replace(evaluation.utility, accuracy=measure_accuracy(product, held_out))
    evaluation = replace(
        evaluation, utility=utility, target=product.target, apart_from_target=list_apart(outcome)
    )
    if source is not None and product.file is not None:
        tuples = len(product.original.frequencies)
        evaluation = replace(
            evaluation, others=compare_methods(product.file, source, evaluation, tuples)
        )
    return evaluation, product.findings


def list_apart(outcome: MethodResult) -> tuple[str, ...]:
    """Return the columns that no measured table has together with the target.

    None where there is no target, or no measured table is known.
    """
    product = get_rows(outcome)
    target = product.target
    if target is None or outcome.synthetic is None:
        return ()
    together = [table.columns for table in outcome.synthetic.measured if target in table.columns]
    measured = {target}.union(*together)
    return tuple(name for name in product.original.names if name not in measured)


def get_rows(outcome: MethodResult) -> RowsProduct:
    """Return the only product of synthetic rows."""
    (product,) = outcome.products
    assert isinstance(product, RowsProduct)
    return product


def measure_accuracy(product: RowsProduct, held_out: Frequencies | None = None) -> Accuracy | None:
    """Train a classifier on the rows, for the target or else the first sensitive column.

    A release that is paid for must not fail by it.
    """
    names = [name for name, column in product.columns.items() if column.role == "sensitive"]
    target = product.target or next(iter(names), None)
    if target is None or len(product.original.names) < 2:
        return None
    original, published = product.original, product.shown
    unseen = None
    if held_out is not None:
        bins = [assign_bins(axis)[held_out.codes[:, at]] for at, axis in enumerate(original.axes)]
        unseen = merge_tuples(np.column_stack(bins).astype(np.int32), held_out.counts)
    try:
        some = replace(original, frequencies=limit_tuples(original.frequencies, _TUPLES, 1))
        rows = replace(published, frequencies=limit_tuples(published.frequencies, _TUPLES, 2))
        return compute_accuracy(
            build_pair(some, some.axes, rows.drop_unused_labels()), target=target, held_out=unseen
        )
    except Exception:  # noqa: BLE001 - whatever a table can do to a classifier
        return None


def try_attacks(outcome: MethodResult) -> AttackReport:
    """Attack synthetic rows; what cannot be tried is said."""
    try:
        return attack_synthetic(outcome, tries=TRIES)
    except Exception as error:  # noqa: BLE001 - whatever a table can do to an attack
        reason = (str(error).splitlines() or [""])[0]
        words = f"The attacks could not be made ({type(error).__name__}: {reason[:200]})."
        return AttackReport((), 0, 0, (words,))
