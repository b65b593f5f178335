"""The curator's report: what was kept, suppressed and lost. Private."""

from __future__ import annotations

import io
from typing import Any

import matplotlib as mpl
from markupsafe import Markup
from matplotlib.figure import Figure

from incrowd.certificate import Certificate
from incrowd.evaluating import Evaluation
from incrowd.outcome import Outcome
from incrowd.report.page import render

_STYLE: dict[Any, Any] = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.hashsalt": "incrowd",
    "legend.frameon": False,
}


def report(certificate: Certificate, evaluation: Outcome | Evaluation) -> str:
    """The report as one HTML page without links to anything else."""
    with mpl.rc_context(_STYLE):
        if isinstance(evaluation, Outcome):
            return _outcome(certificate, evaluation)
        return _evaluation(certificate, evaluation)


def _outcome(certificate: Certificate, outcome: Outcome) -> str:
    return render(
        "incrowd.report",
        "curator.html",
        certificate=certificate,
        outcome=outcome,
        sizes=_drawn(_sizes(outcome.sizes_original, outcome.sizes_released, "cell")),
        columns=_drawn(_columns(outcome.detail_by_column)),
    )


def _evaluation(certificate: Certificate, found: Evaluation) -> str:
    detail = {name: 1 - lost for name, lost in found.precision_by_column.items()}
    return render(
        "incrowd.report",
        "evaluation.html",
        certificate=certificate,
        found=found,
        sizes=_drawn(_sizes(found.risk.sizes_original, found.risk.sizes, "class")),
        columns=_drawn(_columns(detail)),
        associations=_drawn(_associations(found)),
    )


def _sizes(original: list[int], released: list[int], what: str) -> Figure:
    """Rows by the size of their cell or class, before and after."""
    figure = Figure(figsize=(7.5, 3.4), layout="constrained")
    axes = figure.subplots()
    longest = max(len(original), len(released), 1)
    names = [_range(place) for place in range(longest)]
    for shift, sizes, colour, label in (
        (-0.2, original, "#b7c9dd", "in the table"),
        (0.2, released, "#0b4f8a", "released"),
    ):
        filled = [*sizes, *[0] * (longest - len(sizes))]
        axes.bar([x + shift for x in range(longest)], filled, width=0.4, color=colour, label=label)
    axes.set_xticks(range(longest), names, rotation=45, ha="right")
    axes.set(xlabel=f"alike rows (size of the {what})", ylabel="rows")
    axes.legend()
    return figure


def _columns(detail: dict[str, float]) -> Figure:
    """How much detail each column keeps in the rows that are shown."""
    names = list(detail)[::-1]
    figure = Figure(figsize=(7.5, 0.6 + 0.36 * len(names)), layout="constrained")
    axes = figure.subplots()
    axes.barh(names, [detail[name] for name in names], color="#2a9d8f")
    axes.set(xlim=(0, 1), xlabel="detail kept in the rows shown (1: the value itself, 0: nothing)")
    return figure


def _associations(found: Evaluation) -> Figure:
    """Cramér's V of each pair of columns, in the table and as released."""
    figure = Figure(figsize=(4.2, 4.2), layout="constrained")
    axes = figure.subplots()
    axes.plot([0, 1], [0, 1], color="#bbbbbb", linewidth=1)
    pairs = found.utility.associations
    axes.scatter(
        [pair.original for pair in pairs], [pair.released for pair in pairs], color="#0b4f8a", s=18
    )
    axes.set(xlim=(0, 1), ylim=(0, 1), xlabel="association in the table", ylabel="as released")
    return figure


def _drawn(figure: Figure) -> Markup:
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    text = buffer.getvalue()
    return Markup(text[text.index("<svg") :])  # noqa: S704 - our own drawing


def _range(place: int) -> str:
    low, high = 2**place, 2 ** (place + 1) - 1
    return str(low) if low == high else f"{low:,}-{high:,}"
