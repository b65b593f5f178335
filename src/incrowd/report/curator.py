"""The curator's report: what was kept, suppressed and lost. Private."""

from __future__ import annotations

import io
from typing import Any

import matplotlib as mpl
from markupsafe import Markup
from matplotlib.figure import Figure

from incrowd.certificate import Certificate
from incrowd.evaluating import Evaluation
from incrowd.report.page import render

_STYLE: dict[Any, Any] = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.hashsalt": "incrowd",
    "legend.frameon": False,
}


def report(certificate: Certificate, evaluation: Evaluation) -> str:
    """The report as one HTML page without links to anything else."""
    with mpl.rc_context(_STYLE):
        sizes, columns = _sizes(evaluation), _columns(evaluation)
    return render(
        "incrowd.report",
        "curator.html",
        certificate=certificate,
        evaluation=evaluation,
        sizes=Markup(sizes),  # noqa: S704 - our own drawing
        columns=Markup(columns),  # noqa: S704
    )


def _sizes(evaluation: Evaluation) -> str:
    """Rows by the size of their cell, before and after."""
    figure = Figure(figsize=(7.5, 3.4), layout="constrained")
    axes = figure.subplots()
    longest = max(len(evaluation.sizes_original), len(evaluation.sizes_released), 1)
    names = [_range(place) for place in range(longest)]
    for shift, sizes, colour, label in (
        (-0.2, evaluation.sizes_original, "#b7c9dd", "in the table"),
        (0.2, evaluation.sizes_released, "#0b4f8a", "released"),
    ):
        filled = [*sizes, *[0] * (longest - len(sizes))]
        axes.bar([x + shift for x in range(longest)], filled, width=0.4, color=colour, label=label)
    axes.set_xticks(range(longest), names, rotation=45, ha="right")
    axes.set(xlabel="alike rows (size of the cell)", ylabel="rows")
    axes.legend()
    return _svg(figure)


def _columns(evaluation: Evaluation) -> str:
    """How much detail each column keeps in the rows that are shown."""
    names = list(evaluation.detail_by_column)
    figure = Figure(figsize=(7.5, 0.6 + 0.36 * len(names)), layout="constrained")
    axes = figure.subplots()
    axes.barh(
        names[::-1], [evaluation.detail_by_column[name] for name in names[::-1]], color="#2a9d8f"
    )
    axes.set(xlim=(0, 1), xlabel="detail kept in the rows shown (1: the value itself, 0: nothing)")
    return _svg(figure)


def _range(place: int) -> str:
    low, high = 2**place, 2 ** (place + 1) - 1
    return str(low) if low == high else f"{low:,}-{high:,}"


def _svg(figure: Figure) -> str:
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    text = buffer.getvalue()
    return text[text.index("<svg") :]
