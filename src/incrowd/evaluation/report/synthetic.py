"""The curator's report on synthetic rows. It is private."""

from __future__ import annotations

from collections.abc import Sequence

from incrowd.evaluation.report.origin import ReleaseOrigin
from incrowd.evaluation.report.report import draw_attacks
from incrowd.findings import Finding
from incrowd.measure.estimate import AttackReport
from incrowd.measure.synthetic import SyntheticEvaluation
from incrowd.release.certificate import Certificate
from incrowd.release.pages import describe_protected_people, describe_strength, list_success_rates
from incrowd.release.render import render_page

_MOST_PAIRS = 25


def report_synthetic(
    certificate: Certificate,
    found: SyntheticEvaluation,
    findings: Sequence[Finding] = (),
    attacked: AttackReport | None = None,
    origin: ReleaseOrigin | None = None,
) -> str:
    """Return the report as one HTML page without links to anything else."""
    worst = sorted(found.distance_by_pair, key=lambda one: -one.distance)
    return render_page(
        "incrowd.evaluation.report", "synthetic.html",
        certificate=certificate, part=certificate.synthetic, found=found, findings=findings,
        attacked=attacked, origin=origin, strength=describe_strength(certificate),
        people=describe_protected_people(certificate), chances=list_success_rates(certificate),
        worst=worst[:_MOST_PAIRS], attacks=draw_attacks(attacked),
        columns=sorted(found.distance_by_column.items(), key=lambda one: -one[1]),
    )  # fmt: skip
