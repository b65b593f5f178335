"""Make a release without judging it, for tests of how a release is made."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from incrowd.arrays import Step
from incrowd.engine.table import Table
from incrowd.evaluation.judge import Judgment
from incrowd.measure.estimate import AttackReport
from incrowd.measure.evaluation import Evaluation
from incrowd.measure.tables import TablesEvaluation
from incrowd.methods.spec_ledger import resolve_ledger
from incrowd.publication import RunContext, make_release, publish_into
from incrowd.release.certificate import Certificate, ReleasedFile
from incrowd.release.product import MethodResult
from incrowd.release.release import Release
from incrowd.spec.file import SpecSource, load_spec

if TYPE_CHECKING:
    from incrowd.release.ledger import Ledger


def publish_unjudged(
    table: Any,
    spec: SpecSource,
    *,
    output: Path | str | None = None,
    ledger: Ledger | Path | str | None = None,
    **more: Any,
) -> Release:
    """Publish as :func:`incrowd.publish` does, but measure and attack nothing.

    What is published is the same. Of the evaluation only numbers of rows are known, and nobody is
    warned aloud. A test of what is measured, reported or warned of calls ``publish``.
    """
    file = load_spec(spec)
    booked = resolve_ledger(file, ledger)
    options = {name: value for name, value in more.items() if value is not None}

    def walk(folder: Path) -> Release:
        return make_release(
            RunContext(table, file, folder, ledger=booked, judge=skip_judging, **options)
        )

    return publish_into(output, walk)


def skip_judging(
    outcome: MethodResult, counts: object, source: Table, certificate: Certificate, *, step: Step
) -> Judgment:
    """Return a judgment that found nothing out; its loss is no number, and equal to none."""
    if certificate.tabulation is not None:
        tabulated = TablesEvaluation(
            rows_original=source.rows(), rows_released=0, suppressed=0, classes=0,
            smallest_class=0, loss=math.nan,
        )  # fmt: skip
        return Judgment(tabulated, AttackReport((), 0, 0), None, ())
    each = [_count_rows(table.release, source.rows()) for table in certificate.tables]
    judgment = each[0]
    if certificate.slices is not None:
        names = tuple(tuple(table.scheme) for table in certificate.slices)
        judgment = replace(
            judgment,
            rows_released=sum(evaluation.rows_released for evaluation in each),
            classes=sum(evaluation.classes for evaluation in each),
            slices=tuple(each),
            columns=names,
            association_error=math.nan,
        )
    return Judgment(judgment, AttackReport((), 0, 0), None, ())


def _count_rows(table: ReleasedFile, rows: int) -> Evaluation:
    return Evaluation(
        rows_original=rows,
        rows_released=table.rows,
        suppressed=0,
        classes=table.classes,
        smallest_class=table.smallest_class,
        loss=math.nan,
    )
