"""Judge a release that was just made: measure it, attack it, and write the private report.

Making a release calls none of this; publishing calls :func:`judge` once, when data and certificate
are written. What is found is for the curator alone.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from incrowd.arrays import Step
from incrowd.engine.table import Table
from incrowd.evaluation.attacks.quick import quick_attacks
from incrowd.evaluation.classify import measure_accuracy
from incrowd.evaluation.report.origin import Origin
from incrowd.evaluation.synthetic import measure_synthetic, try_attacks
from incrowd.findings import Finding
from incrowd.measure.estimate import Attacked
from incrowd.measure.evaluation import Evaluation
from incrowd.measure.synthetic import SyntheticEvaluation
from incrowd.release.certificate import Certificate
from incrowd.release.examples import Examples, example_columns, examples, some_rows
from incrowd.release.product import Made
from incrowd.release.release import find_emptiness


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
    if made.synthetic is not None:
        return _judge_synthetic(made, step)
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


def _judge_synthetic(made: Made, step: Step) -> Judgment:
    """Measure and attack synthetic rows; none of them stands for a row of the table."""
    step("measure")
    evaluation, findings = measure_synthetic(made)
    step("attack")
    return Judgment(evaluation, try_attacks(made), None, findings)


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
    if isinstance(judgment.evaluation, SyntheticEvaluation):
        from incrowd.evaluation.report.synthetic import report_synthetic

        page = report_synthetic(
            certificate, judgment.evaluation, (*findings, *judgment.findings), judgment.attacked,
            origin,
        )  # fmt: skip
        (folder / "report.html").write_text(page, encoding="utf-8")
        return
    page = report(
        certificate, judgment.evaluation, reasons, (*findings, *judgment.findings),
        judgment.examples, judgment.attacked, origin,
    )  # fmt: skip
    (folder / "report.html").write_text(page, encoding="utf-8")
