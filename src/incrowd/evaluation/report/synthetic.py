"""The curator's report on synthetic rows. It is private."""

from __future__ import annotations

from collections.abc import Sequence

from incrowd.evaluation.report.figures import PAIR, Point, draw_scatter
from incrowd.evaluation.report.origin import ReleaseOrigin
from incrowd.evaluation.report.report import (
    draw_associations,
    draw_attacks,
    draw_distributions,
    draw_safely,
)
from incrowd.findings import Finding
from incrowd.measure.estimate import AttackReport
from incrowd.measure.synthetic import MOST_PAIRS, MOST_TRIPLES, RARE, CellShare, SyntheticEvaluation
from incrowd.release.certificate import Certificate
from incrowd.release.pages import describe_protected_people, describe_strength, list_success_rates
from incrowd.release.render import render_page

_LISTED = 20


def report_synthetic(
    certificate: Certificate,
    evaluation: SyntheticEvaluation,
    findings: Sequence[Finding] = (),
    attacked: AttackReport | None = None,
    origin: ReleaseOrigin | None = None,
) -> str:
    """Return the report as one HTML page without links to anything else."""
    worst = sorted(evaluation.distance_by_pair, key=lambda pair: -pair.distance)
    assert evaluation.utility is not None
    return render_page(
        "incrowd.evaluation.report", "synthetic.html",
        certificate=certificate, part=certificate.synthetic, found=evaluation, findings=findings,
        attacked=attacked, origin=origin, strength=describe_strength(certificate),
        people=describe_protected_people(certificate), chances=list_success_rates(certificate),
        worst=worst[:_LISTED], cells=evaluation.cells[:_LISTED], rare=RARE,
        values=evaluation.values[:_LISTED], subgroups=evaluation.subgroup_distances[:_LISTED],
        columns=sorted(evaluation.distance_by_column.items(), key=lambda entry: -entry[1]),
        samples={"pairs": MOST_PAIRS, "triples": MOST_TRIPLES},
        attacks=draw_attacks(attacked), distributions=draw_distributions(evaluation),
        associations=draw_associations(evaluation) if evaluation.utility.associations else None,
        shares=draw_safely(lambda: _draw_cells(evaluation.cells)) if evaluation.cells else None,
        equal=describe_equal_rows(evaluation),
    )  # fmt: skip


def _draw_cells(cells: Sequence[CellShare]) -> str:
    """Draw the share of pairs of values, in the table and in the rows."""
    points = [
        Point(
            ", ".join(
                f"{name} = {'null' if value is None else value}"
                for name, value in zip(cell.columns, cell.values, strict=True)
            ),
            cell.original,
            cell.released,
        )
        for cell in cells
    ]
    return draw_scatter(
        points,
        color=PAIR[1],
        title="Shares of pairs of values",
        across="share in the table",
        up="share in the synthetic rows",
    )


def describe_equal_rows(evaluation: SyntheticEvaluation) -> str:
    """Return what the number of equal rows says, beside the number that chance explains."""
    equal = evaluation.equal_rows
    if not equal.equal:
        return "No published row equals a row of the table."
    if equal.expected is None:
        return "The model is not known, so the number expected by chance is not known either."
    if equal.equal <= 1.1 * equal.expected + 3 * max(equal.expected, 1) ** 0.5:
        return (
            "That is no more than chance explains: common combinations of values occur in every "
            "table that resembles yours."
        )
    return (
        "That is more than the second draw has: frequent combinations of values may be more "
        "frequent in the table than in the model. The guarantee holds in any case."
    )
