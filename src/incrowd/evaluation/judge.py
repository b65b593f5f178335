"""Judge a release that was just made: measure it, attack it, and write the private report.

Making a release calls none of this; publishing calls :func:`judge` once, when data and certificate
are written. What is found is for the curator alone.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

from incrowd.arrays import Step
from incrowd.codes.counted import Rows
from incrowd.engine.table import Table
from incrowd.evaluation.attacks.quick import quick_attacks, with_kept
from incrowd.evaluation.report.origin import Origin
from incrowd.findings import Finding
from incrowd.measure.estimate import Attacked
from incrowd.measure.evaluation import Evaluation, pair_of
from incrowd.measure.outcome import pair_at
from incrowd.measure.prediction import Accuracy, accuracy
from incrowd.measure.utility import Pair, limited
from incrowd.release.certificate import Certificate
from incrowd.release.examples import Examples, example_columns, examples, some_rows
from incrowd.release.product import Made, Product
from incrowd.release.release import find_emptiness

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


@dataclass(frozen=True, eq=False)
class Judgment:
    """What was found out about a release: figures, attacks, rows before and after, findings."""

    evaluation: Evaluation
    attacked: Attacked
    examples: Examples | None
    findings: tuple[Finding, ...]


class Judge(Protocol):
    """What a publication calls once when data and certificate are written; see :func:`judge`."""

    def __call__(
        self, made: Made, counted: object, source: Table, certificate: Certificate, *, step: Step
    ) -> Judgment:
        """Find out about a release."""
        ...


def judge(
    made: Made, counted: object, source: Table, certificate: Certificate, *, step: Step
) -> Judgment:
    """Measure and attack a release, beside the table that it was made from.

    Args:
        made: What the method made.
        counted: What the method counted of ``source``.
        source: The rows that the release was made from.
        certificate: The certificate of the release.
        step: Hears of each step before it is taken.

    """
    step("measure")
    evaluation, measured = made.measured()
    evaluation = evaluation.with_accuracy(measure_accuracy(made, counted))
    step("attack")
    attacked = quick_attacks(made, counted)
    before = some_rows(source, example_columns(made.products[0]))
    return Judgment(
        evaluation,
        attacked,
        examples(made.products, before),
        (*find_emptiness(certificate, evaluation), *measured),
    )


def write_judgment(
    folder: Path,
    certificate: Certificate,
    judgment: Judgment,
    *,
    reasons: Sequence[str] = (),
    findings: Sequence[Finding] = (),
    origin: Origin | None = None,
) -> None:
    """Write the report and its figures into the curator's folder.

    Args:
        folder: Where to write evaluation.json, attacks.json and report.html.
        certificate: The certificate of the release.
        judgment: What :func:`judge` found.
        reasons: Why the scheme was used.
        findings: What else the curator should know; the judgment's own come after them.
        origin: The spec, and the ledger after the release.

    """
    from incrowd.evaluation.report.report import report  # loads what draws it

    for name, found in (
        ("evaluation.json", judgment.evaluation.as_dict()),
        ("attacks.json", judgment.attacked.as_dict()),
    ):
        text = json.dumps(found, indent=2, sort_keys=True)
        (folder / name).write_text(text + "\n", encoding="utf-8")
    page = report(
        certificate, judgment.evaluation, reasons, (*findings, *judgment.findings),
        judgment.examples, judgment.attacked, origin,
    )  # fmt: skip
    (folder / "report.html").write_text(page, encoding="utf-8")
