"""Judge a release that was just made: measure it, attack it, and write the private report.

Making a release calls none of this; publishing calls :func:`judge` once, when data and certificate
are written. What is found is for the curator alone.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from incrowd.arrays import Step
from incrowd.codes.counted_table import DistinctRows
from incrowd.engine.table import Table
from incrowd.evaluation.attacks.quick import add_kept_columns, quick_attacks
from incrowd.evaluation.report.origin import ReleaseOrigin
from incrowd.findings import Finding
from incrowd.measure.estimate import AttackReport
from incrowd.measure.evaluation import Evaluation
from incrowd.measure.label_evaluation import build_pair
from incrowd.measure.outcome import build_level_pair
from incrowd.measure.prediction import Accuracy, compute_accuracy
from incrowd.measure.utility import TablePair, limit_tuples
from incrowd.release.certificate import Certificate
from incrowd.release.examples import Examples, list_example_columns, make_examples, sample_rows
from incrowd.release.product import MethodResult, Product
from incrowd.release.release import find_emptiness

_MOST_VALUES = 32  # of a column that is predicted
_ROWS = 2_000_000  # of a release whose kept columns are read again
_TUPLES = 5_000  # distinct ones; of a table that has more, so many random rows stand for all


def measure_accuracy(outcome: MethodResult, counts: object) -> Accuracy | None:
    """Measure what a classifier learns from a release, beside the table; None if no target.

    The target is the one that the spec names or, of classes, the first sensitive column with few
    values that is kept. Of slices, of an empty release and of a table that is elsewhere
    nothing is measured. A release that is paid for must not fail by it.
    """
    if len(outcome.products) != 1:
        return None
    (product,) = outcome.products
    if product.apart is not None or not product.rows:
        return None
    try:
        return _measure_product(product, counts)
    except Exception:  # noqa: BLE001 - whatever a table can do to a classifier
        return None


def _measure_product(product: Product, counts: object) -> Accuracy | None:
    if product.crowd is not None:
        if product.target is None:
            return None
        pair = build_level_pair(product.original, product.shown.frequencies, product.shown.noise)
        return compute_accuracy(_limit_tuples(pair), target=product.target)
    if not isinstance(counts, DistinctRows) or product.rows > _ROWS:
        return None
    target = _choose_target(product.kept, counts)
    if target is None:
        return None
    original, published = add_kept_columns(product, counts, (target,))
    # Only labels that are learned from are read.
    some = replace(
        published, frequencies=limit_tuples(published.frequencies, _TUPLES, seed=2)
    ).drop_unused_labels()
    return compute_accuracy(_limit_tuples(build_pair(original, original.axes, some)), target=target)


def _limit_tuples(pair: TablePair) -> TablePair:
    """Return a table and a release of it, with few enough tuples to learn from in a second."""
    return replace(
        pair,
        original=limit_tuples(pair.original, _TUPLES, seed=1),
        released=limit_tuples(pair.released, _TUPLES, seed=2),
    )


def _choose_target(kept_names: Sequence[str], rows: DistinctRows) -> str | None:
    few = (name for name in kept_names if 2 <= len(rows.kept[name]) <= _MOST_VALUES)
    return next(few, None)


@dataclass(frozen=True, eq=False)
class Judgment:
    """What was found out about a release: figures, attacks, rows before and after, findings."""

    evaluation: Evaluation
    attacked: AttackReport
    examples: Examples | None
    findings: tuple[Finding, ...]


class Judge(Protocol):
    """What a publication calls once when data and certificate are written; see :func:`judge`."""

    def __call__(
        self,
        outcome: MethodResult,
        counts: object,
        source: Table,
        certificate: Certificate,
        *,
        step: Step,
    ) -> Judgment:
        """Find out about a release."""
        ...


def judge(
    outcome: MethodResult, counts: object, source: Table, certificate: Certificate, *, step: Step
) -> Judgment:
    """Measure and attack a release, beside the table that it was made from.

    Args:
        outcome: What the method made.
        counts: What the method counted of ``source``.
        source: The rows that the release was made from.
        certificate: The certificate of the release.
        step: Hears of each step before it is taken.

    """
    if outcome.synthetic is not None:
        return _judge_synthetic(outcome, source, step)
    if outcome.tabulation is not None:
        return _judge_tables(outcome, step)
    step("measure")
    evaluation, measured = outcome.measure()
    evaluation = evaluation.with_accuracy(measure_accuracy(outcome, counts))
    step("attack")
    for_dossier = "dossier" in (certificate.metadata or ())
    attacked = quick_attacks(outcome, counts, for_dossier=for_dossier)
    before = sample_rows(source, list_example_columns(outcome.products[0]))
    return Judgment(
        evaluation,
        attacked,
        make_examples(outcome.products, before),
        (*find_emptiness(certificate, evaluation), *measured),
    )


def _judge_synthetic(outcome: MethodResult, source: Table, step: Step) -> Judgment:
    """Measure and attack synthetic rows; none of them stands for a row of the table."""
    # It loads the whole synthesis, which no other method needs
    from incrowd.evaluation.synthetic import measure_synthetic, try_attacks

    step("measure")
    evaluation, findings = measure_synthetic(outcome, source)
    step("attack")
    return Judgment(evaluation, try_attacks(outcome), None, findings)


def _judge_tables(outcome: MethodResult, step: Step) -> Judgment:
    """Measure tables of counts; no line of them stands for a person."""
    from incrowd.evaluation.tables import describe_attacks, measure_tables

    step("measure")
    evaluation, findings = measure_tables(outcome)
    return Judgment(evaluation, describe_attacks(), None, findings)


def write_judgment(
    folder: Path,
    certificate: Certificate,
    judgment: Judgment,
    *,
    reasons: Sequence[str] = (),
    findings: Sequence[Finding] = (),
    origin: ReleaseOrigin | None = None,
) -> None:
    """Write the report and its figures into the curator's folder.

    Args:
        folder: Where to write evaluation.json, attacks.json, origin.json and report.html.
        certificate: The certificate of the release.
        judgment: What :func:`judge` found.
        reasons: Why the scheme was used.
        findings: What else the curator should know; the judgment's own come after them.
        origin: The spec, and the ledger after the release.

    """
    from incrowd.evaluation.report.report import render_report  # loads what draws it

    contents: list[tuple[str, Any]] = [
        ("evaluation.json", judgment.evaluation.as_dict()),
        ("attacks.json", judgment.attacked.as_dict()),
    ]
    contents += [("origin.json", origin.as_dict())] if origin is not None else []
    for name, content in contents:
        text = json.dumps(content, indent=2, sort_keys=True)
        (folder / name).write_text(text + "\n", encoding="utf-8")
    page = None
    if certificate.synthetic is not None:
        page = _report_synthetic(certificate, judgment, findings, origin)
    elif certificate.tabulation is not None:
        page = _report_tables(certificate, judgment, findings, origin)
    if page is None:
        page = render_report(
            certificate, judgment.evaluation, reasons, (*findings, *judgment.findings),
            judgment.examples, judgment.attacked, origin,
        )  # fmt: skip
    (folder / "report.html").write_text(page, encoding="utf-8")


def _report_synthetic(
    certificate: Certificate,
    judgment: Judgment,
    findings: Sequence[Finding],
    origin: ReleaseOrigin | None,
) -> str | None:
    """Return the report on synthetic rows; None where nothing of them was measured."""
    from incrowd.evaluation.report.synthetic import report_synthetic
    from incrowd.measure.synthetic import SyntheticEvaluation

    if not isinstance(judgment.evaluation, SyntheticEvaluation):
        return None
    return report_synthetic(
        certificate, judgment.evaluation, (*findings, *judgment.findings), judgment.attacked,
        origin,
    )  # fmt: skip


def _report_tables(
    certificate: Certificate,
    judgment: Judgment,
    findings: Sequence[Finding],
    origin: ReleaseOrigin | None,
) -> str | None:
    """Return the report on tables of counts."""
    from incrowd.evaluation.report.tables import report_tables
    from incrowd.measure.tables import TablesEvaluation

    assert isinstance(judgment.evaluation, TablesEvaluation)
    return report_tables(
        certificate, judgment.evaluation, (*findings, *judgment.findings), judgment.attacked,
        origin,
    )  # fmt: skip
