"""The curator's report on tables of counts. It is private."""

from __future__ import annotations

from collections.abc import Sequence

from incrowd.evaluation.report.origin import ReleaseOrigin
from incrowd.findings import Finding
from incrowd.measure.estimate import AttackReport
from incrowd.measure.tables import TablesEvaluation
from incrowd.release.certificate import Certificate
from incrowd.release.pages import describe_protected_people, describe_strength, list_success_rates
from incrowd.release.render import render_page

_LISTED = 60


def report_tables(
    certificate: Certificate,
    evaluation: TablesEvaluation,
    findings: Sequence[Finding] = (),
    attacked: AttackReport | None = None,
    origin: ReleaseOrigin | None = None,
) -> str:
    """Return the report as one HTML page without links to anything else."""
    files = [table.release.file for table in certificate.tables]
    tables = list(zip(files, evaluation.tables, strict=False))  # none, where nothing was measured
    worst = sorted(tables, key=lambda entry: -entry[1].distance)
    return render_page(
        "incrowd.evaluation.report", "tables.html",
        certificate=certificate, part=certificate.tabulation, found=evaluation, findings=findings,
        attacked=attacked, origin=origin, strength=describe_strength(certificate),
        people=describe_protected_people(certificate), chances=list_success_rates(certificate),
        tables=worst[:_LISTED], biased=[entry for entry in worst if entry[1].bias is not None],
    )  # fmt: skip
