"""How well a release that was just made still predicts its target; for the curator's report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec

from incrowd.codes.counted import Rows
from incrowd.evaluation.attacks.quick import with_kept
from incrowd.measure.evaluation import pair_of
from incrowd.measure.outcome import pair_at
from incrowd.measure.prediction import Accuracy, accuracy
from incrowd.measure.utility import Pair, limited
from incrowd.release.product import Made, Product

_MOST_VALUES = 32  # of a column that is predicted
_ROWS = 2_000_000  # of a release whose kept columns are read again
_TUPLES = 5_000  # distinct ones; of a table that has more, so many random rows stand for all


def measure_accuracy(made: Made, counted: object) -> Accuracy | None:
    """What a classifier learns from a release, beside the table; None where there is no target.

    The target is the one that the spec names or, of classes, the first sensitive column with few
    values that is kept. Without scikit-learn, of slices, of an empty release and of a table that is
    elsewhere nothing is measured. A release that is paid for must not fail by it.
    """
    if len(made.products) != 1 or find_spec("sklearn") is None:
        return None
    (product,) = made.products
    if product.apart is not None or not product.rows:
        return None
    try:
        return _of(product, counted)
    except Exception:  # noqa: BLE001 - whatever a table can do to a classifier
        return None


def _of(product: Product, counted: object) -> Accuracy | None:
    if product.crowd is not None:
        if product.target is None:
            return None
        pair = pair_at(product.original, product.shown.frequencies, product.shown.noise)
        return accuracy(_fewer(pair), target=product.target)
    if not isinstance(counted, Rows) or product.rows > _ROWS:
        return None
    target = _sensitive(product.kept, counted)
    if target is None:
        return None
    original, shown = with_kept(product, counted, (target,))
    # Only labels that are learnt from are read.
    some = replace(shown, frequencies=limited(shown.frequencies, _TUPLES, seed=2)).used()
    return accuracy(_fewer(pair_of(original, original.axes, some)), target=target)


def _fewer(pair: Pair) -> Pair:
    """A table and a release of it, with no more tuples than are learnt from in a second."""
    return replace(
        pair,
        original=limited(pair.original, _TUPLES, seed=1),
        released=limited(pair.released, _TUPLES, seed=2),
    )


def _sensitive(kept: Sequence[str], counted: Rows) -> str | None:
    few = (name for name in kept if 2 <= len(counted.kept[name]) <= _MOST_VALUES)
    return next(few, None)
