"""The figure of paper A's attacks: how often each succeeds, with its interval, beside guessing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure as Canvas

from incrowd.measure.estimate import Estimate
from incrowd.papers import paper_a_figures
from incrowd.papers.paper_a_attacks import Exhibit

_BROKEN, _HELD, _REST = "#d1495b", "#0b4f8a", "#777777"


def save_figure(exhibits: Sequence[Exhibit], name: str, folder: Path) -> None:
    """Write the figure as SVG and PNG, the same bytes every time."""
    figure = paper_a_figures.Figure(name, "Attacks", "", lambda: _draw_figure(exhibits))
    paper_a_figures.save_figure(figure, folder)


def _draw_figure(exhibits: Sequence[Exhibit]) -> Canvas:
    lines: list[tuple[str, Estimate, str]] = []
    for exhibit in exhibits:
        lines += [(_format_label(estimate), estimate, _BROKEN) for estimate in exhibit.broken]
        lines += [(_format_label(estimate), estimate, _HELD) for estimate in exhibit.held]
    canvas = Canvas(figsize=(9, 0.42 * len(lines) + 1.4), layout="constrained")
    panel = canvas.subplots()
    for at, (_, estimate, color) in enumerate(lines):
        rate, baseline = estimate.success, estimate.baseline
        panel.plot([baseline.low, baseline.high], [at + 0.22] * 2, color=_REST, linewidth=2)
        panel.plot(baseline.value, at + 0.22, "|", color=_REST, markersize=7)
        panel.plot([rate.low, rate.high], [at, at], color=color, linewidth=2)
        panel.plot(rate.value, at, "o", color=color, markersize=6)
    panel.plot([], [], "o-", color=_BROKEN, label="success against a baseline")
    panel.plot([], [], "o-", color=_HELD, label="success against a safe release")
    panel.plot([], [], "|-", color=_REST, label="guessing, or people not in the table")
    panel.set_yticks(range(len(lines)), [label for label, _, _ in lines])
    panel.invert_yaxis()
    panel.set(xlim=(-0.02, 1.02), xlabel="share of tries that succeed, with its 95 % interval")
    canvas.legend(loc="outside lower center", ncols=3, fontsize=9)
    return canvas


def _format_label(estimate: Estimate) -> str:
    return f"{estimate.attack}: {estimate.name}"
