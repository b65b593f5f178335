"""The curator's report and its figures: what went out, is promised, was lost, is risked. Private.

Every figure is one of evaluation.json, of attacks.json, or of the certificate: one computation,
shown twice. What was not measured, as where cells are on other machines, is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from markupsafe import Markup, escape

from incrowd.evaluation.report.figures import (
    PAIR,
    IntervalMark,
    Point,
    Series,
    draw_crowd,
    draw_grouped_bars,
    draw_heat_map,
    draw_horizontal_bars,
    draw_intervals,
    draw_paired_bars,
    draw_scatter,
)
from incrowd.evaluation.report.origin import ReleaseOrigin
from incrowd.evaluation.report.summary import describe_burden, summarize_release
from incrowd.findings import Finding
from incrowd.measure.estimate import AttackReport
from incrowd.measure.evaluation import Evaluation
from incrowd.measure.subgroups import Subgroup, measure_burden
from incrowd.privacy.draw_parameters import get_threshold
from incrowd.release.certificate import Certificate
from incrowd.release.crowd import make_crowd
from incrowd.release.examples import Examples
from incrowd.release.pages import describe_protected_people, describe_strength, list_success_rates
from incrowd.release.render import render_page
from incrowd.release.statement import TECHNICAL

_MOST_COLUMNS = 40  # whose distributions are drawn
_NOTHING, _SUPPRESSED = "nothing", "suppressed"


def render_report(
    certificate: Certificate,
    evaluation: Evaluation,
    reasons: Sequence[str] = (),
    findings: Sequence[Finding] = (),
    examples: Examples | None = None,
    attacked: AttackReport | None = None,
    origin: ReleaseOrigin | None = None,
) -> str:
    """Return the report as one HTML page without links to anything else."""
    standing = None if origin is None else origin.standing
    unused = 0 if origin is None else origin.unused
    report = summarize_release(
        certificate,
        evaluation,
        attacked=attacked,
        findings=findings,
        standing=standing,
        unused=unused,
    )
    return render_page(
        "incrowd.evaluation.report", "report.html",
        certificate=certificate, found=evaluation, reasons=reasons, findings=findings,
        examples=examples, attacked=attacked, origin=origin, summary=report,
        crowd=_draw_crowd(certificate), chances=list_success_rates(certificate),
        strength=describe_strength(certificate), people=describe_protected_people(certificate),
        technical=TECHNICAL, describe_level=partial(_describe_level, certificate),
        tables=list(_summarize_tables(certificate, evaluation, examples)),
        attacks=draw_safely(lambda: _draw_attacks(attacked)), **_draw_figures(evaluation),
    )  # fmt: skip


def _describe_level(certificate: Certificate, name: str, level: int) -> str:
    """Return what a level of a column shows, in the words of the certificate."""
    shows = next(
        (table.scheme[name].shows for table in certificate.tables if name in table.scheme), []
    )
    return shows[level] if level < len(shows) else f"level {level}"


def _draw_figures(evaluation: Evaluation) -> dict[str, Any]:
    """Draw everything that is drawn from the evaluation."""
    sizes = _list_sizes(evaluation)
    associations = [] if evaluation.utility is None else evaluation.utility.associations
    pairs = sorted(evaluation.associations, key=lambda pair: -pair.original)
    return {
        "sizes": None if sizes is None else draw_safely(lambda: _draw_sizes(*sizes)),
        "detail": draw_safely(lambda: _draw_detail(evaluation))
        if _list_detail(evaluation)
        else None,
        "associations": draw_safely(lambda: _draw_associations(evaluation))
        if associations
        else None,
        "pairs": pairs,
        "together": sum(pair.slice is not None for pair in pairs),
        "silent": [pair for pair in pairs if pair.silent is not None],
        "survival": draw_safely(lambda: _draw_survival(evaluation)) if pairs else None,
        "distributions": [
            (
                name,
                draw_safely(partial(_draw_distribution, name, groups, rows)) if groups else None,
            )
            for name, groups, rows in _list_groups(evaluation)
        ],
    }


# The guarantee --------------------------------------------------------------------------------


@dataclass(frozen=True)
class _CrowdFigure:
    people: int
    each: int
    drawing: Markup


def _draw_crowd(certificate: Certificate) -> _CrowdFigure:
    """Draw the crowd that is shown more often than not; of classes, the least that is shown."""
    number = max(
        (
            float(parameters["k"]) / float(parameters["beta"])
            if "beta" in parameters
            else float(get_threshold(parameters) if "r" in parameters else parameters.get("k", 1))
            for parameters in (table.parameters for table in certificate.tables)
        ),
        default=1.0,
    )
    crowd = make_crowd(number, "people" if certificate.rows_per_group == 1 else "rows")
    title = f"A group of {crowd.words}"
    return _CrowdFigure(
        crowd.people, crowd.each, draw_safely(lambda: draw_crowd(crowd, title=title))
    )


# What was lost --------------------------------------------------------------------------------


@dataclass(frozen=True)
class _ColumnSummary:
    """What one column of a table shows, and what it lost."""

    name: str
    level: str
    words: str
    detail: float | None = None
    loss: float | None = None
    distance: float | None = None
    silent: bool = False


@dataclass(frozen=True)
class _TableSummary:
    """One released file: its columns, its subgroups, and on whom its suppression falls."""

    file: str
    own: Evaluation
    columns: list[_ColumnSummary]
    groups: list[Subgroup]
    overall: float
    sentence: str
    parameters: dict[str, float | str]


def _summarize_tables(
    certificate: Certificate, evaluation: Evaluation, examples: Examples | None
) -> Iterator[_TableSummary]:
    each = evaluation.slices or (evaluation,)
    for number, (table, part) in enumerate(zip(certificate.tables, each, strict=True)):
        words = examples.of_slices[number] if examples and examples.of_slices else {}
        hit = measure_burden(part.subgroups)
        groups = [
            subgroup for subgroup in part.subgroups if subgroup.hidden is not None and subgroup.rows
        ]
        yield _TableSummary(
            table.release.file,
            part,
            list(_summarize_columns(certificate, number, part, words)),
            sorted(groups, key=lambda subgroup: (-(subgroup.share or 0.0), subgroup.rows)),
            hit.overall if hit is not None else 0.0,
            describe_burden(hit),
            table.parameters,
        )


def _summarize_columns(
    certificate: Certificate, number: int, evaluation: Evaluation, words: dict[str, str]
) -> Iterator[_ColumnSummary]:
    detail = _list_detail(evaluation)
    distances = evaluation.utility.distance_by_column if evaluation.utility is not None else {}
    for name, column in certificate.tables[number].scheme.items():
        silent = name in evaluation.lost.nothing_shown or column.labels == _NOTHING
        yield _ColumnSummary(
            name,
            "any" if column.level is None else str(column.level),
            _SUPPRESSED if silent else words.get(name, str(column.labels)),
            detail.get(name), evaluation.loss_by_column.get(name), distances.get(name), silent,
        )  # fmt: skip
    for name in certificate.kept:
        aggregate = certificate.aggregates.get(name)
        if aggregate:
            yield _ColumnSummary(name, "", f"{aggregate} of each class")
        else:
            yield _ColumnSummary(name, "", "original values", 1.0)
    for name, response in (certificate.randomized or {}).items():
        yield _ColumnSummary(name, "", f"randomized, kept with probability {response.keep:.4f}")
    for name, grid in certificate.noisy.items():
        yield _ColumnSummary(name, "", f"values with noise, in steps of {grid.step}")


def _list_detail(evaluation: Evaluation) -> dict[str, float]:
    """Return how much detail each column keeps in the rows that are shown."""
    if evaluation.detail_by_column:
        return evaluation.detail_by_column
    return {name: 1 - lost for name, lost in evaluation.precision_by_column.items()}


def _list_sizes(evaluation: Evaluation) -> tuple[list[int], list[int], str] | None:
    if evaluation.risk is not None:
        return evaluation.risk.sizes_original, evaluation.risk.sizes, "class"
    return (
        (evaluation.sizes_original, evaluation.sizes_released, "group")
        if evaluation.sizes_original
        else None
    )


def _draw_sizes(original: list[int], released: list[int], what: str) -> str:
    """Draw rows by the size of their cell or class, before and after."""
    longest = max(len(original), len(released), 1)
    return draw_grouped_bars(
        [_format_range(place) for place in range(longest)],
        [Series("table", PAIR[0], original), Series("release", PAIR[1], released)],
        title=f"Rows by the size of their {what}, in the table and in the release",
        across=f"{what} size (rows), by category",
        up="rows in the category",
    )


def _draw_detail(evaluation: Evaluation) -> str:
    """Draw how much detail each column keeps in the rows that are shown."""
    return draw_horizontal_bars(
        _list_detail(evaluation),
        color="#2a9d8f",
        title="Detail of each column",
        across="detail in the published rows (1: the value itself, 0: suppressed)",
    )


# What it is still good for --------------------------------------------------------------------


def _list_groups(evaluation: Evaluation) -> Iterator[tuple[str, list[Subgroup], tuple[int, int]]]:
    """Yield the groups of each column, with rows before and after; of slices, the largest's.

    A column that shows nothing has none: shares of its one label say nothing.
    """
    best: dict[str, tuple[int, Evaluation]] = {}
    for part in evaluation.slices or (evaluation,):
        for name in dict.fromkeys(subgroup.column for subgroup in part.subgroups):
            several = (
                sum(
                    subgroup.column == name and subgroup.released > 0 for subgroup in part.subgroups
                )
                > 1
            )
            weight = part.rows_released if several else -1
            if weight > best.get(name, (-2, part))[0]:
                best[name] = weight, part
    for name, (_, part) in list(best.items())[:_MOST_COLUMNS]:
        silent = name in part.lost.nothing_shown
        groups = (
            [] if silent else [subgroup for subgroup in part.subgroups if subgroup.column == name]
        )
        yield name, groups, (part.rows_original, part.rows_released)


def _draw_distribution(name: str, groups: Sequence[Subgroup], rows: tuple[int, int]) -> str:
    """Draw the share of each group of a column, in the table and as released."""
    shares: dict[str, tuple[float, float]] = {}
    for group in groups:
        label = "null" if group.label is None else group.label
        label = f"{label} " if label in shares else label
        shares[label] = group.rows / max(rows[0], 1), group.released / max(rows[1], 1)
    return draw_paired_bars(
        shares, labels=("table", "release"), title=f"{name}, in the table and in the release"
    )


def _draw_associations(evaluation: Evaluation) -> str:
    """Draw Cramér's V of each pair of columns, in the table and as released."""
    pairs = evaluation.utility.associations if evaluation.utility is not None else []
    return draw_scatter(
        [Point(f"{pair.first}, {pair.second}", pair.original, pair.released) for pair in pairs],
        color=PAIR[1],
        title="Associations of pairs of columns",
        across="Cramér's V in the table",
        up="Cramér's V in the release",
    )


def _draw_survival(evaluation: Evaluation) -> str:
    """Draw Cramér's V of every pair of columns, in the table and as the slices show it."""
    names = list(dict.fromkeys(name for columns in evaluation.columns for name in columns))
    places = {name: place for place, name in enumerate(names)}
    before: dict[tuple[int, int], float] = {}
    after: dict[tuple[int, int], float] = {}
    for pair in evaluation.associations:
        first, second = places[pair.first], places[pair.second]
        for both in ((first, second), (second, first)):
            before[both] = pair.original
            if pair.slice is not None:
                after[both] = pair.released
    return "\n".join(
        draw_heat_map(names, values, title=title, scale="Cramér's V")
        for title, values in (("table", before), ("release", after))
    )


def draw_attacks(attacked: AttackReport | None) -> Markup:
    """Draw the success of each attack; see ``_draw_attacks``."""
    return draw_safely(lambda: _draw_attacks(attacked))


def draw_associations(evaluation: Evaluation) -> Markup:
    """Draw Cramér's V of each pair of columns; see ``_draw_associations``."""
    return draw_safely(lambda: _draw_associations(evaluation))


def draw_distributions(evaluation: Evaluation) -> list[tuple[str, Markup]]:
    """Draw the share of each category of each column, in the table and in the release."""
    return [
        (name, draw_safely(partial(_draw_distribution, name, groups, rows)))
        for name, groups, rows in _list_groups(evaluation)
    ]


def _draw_attacks(attacked: AttackReport | None) -> str:
    """Draw success of each attack, beside guessing and beside people not in the table."""
    rows = {}
    for estimate in attacked.estimates if attacked is not None else ():
        marks = [
            ("people of the table", PAIR[1], estimate.success),
            ("guessing", "#999999", estimate.guess),
        ]
        marks += (
            [] if estimate.control is None else [("control group", "#e9a23b", estimate.control)]
        )
        rows[f"{estimate.attack}: {estimate.name}"] = [
            IntervalMark(label, color, rate.value, rate.low, rate.high)
            for label, color, rate in marks
        ]
    return draw_intervals(
        rows, title="Attacks on the release", across="share of successful attempts"
    )


def draw_safely(figure: Callable[[], str]) -> Markup:
    """Return a figure as SVG; where it cannot be drawn, a sentence: no release may fail by it."""
    try:
        return Markup(figure())  # noqa: S704 - our own drawing
    except Exception as error:  # noqa: BLE001 - whatever names and numbers can do to a drawing
        reason = (str(error).splitlines() or [""])[0]
        return escape(f"This figure could not be drawn ({type(error).__name__}: {reason[:200]}).")


def _format_range(place: int) -> str:
    low, high = 2**place, 2 ** (place + 1) - 1
    return str(low) if low == high else f"{low:,}-{high:,}"
