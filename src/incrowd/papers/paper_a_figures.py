"""The figures of paper A, drawn from our own numbers, and one figure of our own.

Each of the paper's figures has two panels with the same axes: the paper's delta on the
left, the tight delta on the right.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from incrowd.arrays import Floats
from incrowd.privacy import sample_inverse
from incrowd.privacy.accountant import Accountant, BasicAccountant
from incrowd.privacy.events import SafeRelease
from incrowd.privacy.sample import Definition, delta
from incrowd.privacy.smooth import smooth_bound
from incrowd.privacy.tails import log_pmf

DEFINITIONS: tuple[Definition, Definition] = ("paper", "tight")
_PANEL_TITLES = {"paper": "the paper's δ", "tight": "tight δ"}
_COLORS = ("#0b4f8a", "#2a9d8f", "#e9a23b", "#d1495b", "#6a4c93")
_STYLE: dict[Any, Any] = {
    "figure.dpi": 100,
    "savefig.dpi": 150,
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "svg.hashsalt": "incrowd",
}


@dataclass(frozen=True)
class Figure:
    """A named figure, what it shows in words, and the function that draws it.

    The page shows a ``single`` panel no wider than it needs to be.
    """

    name: str
    title: str
    words: str
    draw: Callable[[], Canvas]
    single: bool = False


def save_figure(figure: Figure, folder: Path) -> None:
    """Write a figure as SVG and PNG, the same bytes every time."""
    with mpl.rc_context(_STYLE):
        canvas = figure.draw()
        canvas.savefig(folder / f"{figure.name}.svg", metadata={"Date": None})
        canvas.savefig(folder / f"{figure.name}.png", metadata={"Software": None})


def _make_panels(**axes: Any) -> tuple[Canvas, Sequence[Axes]]:
    canvas = Canvas(figsize=(10, 4.2), layout="constrained")
    panels = canvas.subplots(1, 2, sharex=True, sharey=True)
    for panel, definition in zip(panels, DEFINITIONS, strict=True):
        panel.set(title=_PANEL_TITLES[definition], **axes)
        panel.tick_params(labelleft=True)
    return canvas, panels


def _add_legend(canvas: Canvas, panels: Sequence[Axes]) -> Canvas:
    """Add one legend for both panels, beside them: the labels are the same."""
    handles, labels = panels[0].get_legend_handles_labels()
    canvas.legend(handles, labels, loc="outside right center", fontsize=9)
    return canvas


def _draw_inverse_delta(pairs: Sequence[tuple[int, float]], *, top: float) -> Canvas:
    """Draw 1/delta against epsilon for several (k, beta)."""
    canvas, panels = _make_panels(
        xlabel="ε", ylabel="1 / δ", yscale="log", xlim=(0, 2), ylim=(1, top)
    )
    for panel, definition in zip(panels, DEFINITIONS, strict=True):
        for color, (k, beta) in zip(_COLORS, pairs, strict=False):
            lower_bound = -math.log1p(-beta) if definition == "paper" else 0.0
            epsilons = np.linspace(lower_bound, 2, 161)[1 if definition == "paper" else 0 :]
            deltas = delta(k=k, beta=beta, epsilon=epsilons, definition=definition)
            panel.plot(epsilons, 1 / deltas, color=color, label=f"k = {k}, β = {beta:g}")
    return _add_legend(canvas, panels)


def _draw_tail() -> Canvas:
    """Draw one cell at its worst size: which outcomes count, and how much of each."""
    k, beta, epsilon = 6, 0.2, 0.25
    g = 1 - (1 - beta) * math.exp(-epsilon)
    canvas, panels = _make_panels(xlabel="rows of the cell in the sample, j", ylabel="probability")
    for panel, definition in zip(panels, DEFINITIONS, strict=True):
        n = math.ceil(k / g) - 1 if definition == "paper" else math.ceil((k - 1) / g)
        j = np.arange(0.0, n + 1)
        ones = np.ones_like(j)
        pmf = np.exp(log_pmf(j, n * ones, beta * ones, (1 - beta) * ones))
        share = np.ones_like(j)
        if definition == "tight":
            share = math.exp(epsilon) / (1 - beta) * (j / n - g)
        counted_mass = np.where((j >= k) & (j > g * n), pmf * share, 0.0)
        panel.bar(j, pmf, width=0.85, color="#b7c9dd", label=f"Binomial({n}, {beta:g})")
        label = f"counts for δ = {counted_mass.sum():.3f}"
        panel.bar(j, counted_mass, width=0.85, color="#d1495b", label=label)
        for x, name in ((beta * n, "βn"), (g * n, "γn")):
            panel.axvline(x, color="#444444", linewidth=1, linestyle="--")
            panel.text(x + 0.15, 0.27, name, va="top")
        panel.set(xlim=(-0.6, 14), ylim=(0, 0.28))
        panel.legend(loc="center right", fontsize=9)
    return canvas


def _draw_epsilon_for_k() -> Canvas:
    """Draw the epsilon that k buys at delta <= 1e-6."""
    canvas, panels = _make_panels(xlabel="k", ylabel="ε with δ ≤ 1e-6", xlim=(0, 100), ylim=(0, 2))
    sizes = np.arange(1, 101)
    for panel, definition in zip(panels, DEFINITIONS, strict=True):
        for color, beta in zip(_COLORS, (0.05, 0.1, 0.2, 0.3, 0.4), strict=True):
            epsilons = sample_inverse.epsilon(k=sizes, beta=beta, delta=1e-6, definition=definition)
            finite = np.where(np.isinf(epsilons), np.nan, epsilons)
            panel.plot(sizes, finite, color=color, label=f"β = {beta:g}")
    return _add_legend(canvas, panels)


def _draw_smooth_bound() -> Canvas:
    """Draw how fast delta falls beyond its starting point: f(z)."""
    k, beta = 20, 0.2
    canvas, panels = _make_panels(xlabel="z = ε / ε₀", ylabel="f(z)", yscale="log", xlim=(1, 4))
    panels[0].set_title("Chernoff bound on the paper's δ, over its value at z = 1")
    panels[1].set_title("tight δ, over its value at z = 1")
    z = np.linspace(1, 4, 121)
    for color, start in zip(_COLORS, (0.25, 0.5, 0.75, 1.0, 1.5), strict=True):
        label = f"ε₀ = {start:g}"
        panels[0].plot(
            z, smooth_bound(k=k, beta=beta, epsilon=start).f(z), color=color, label=label
        )
        curve: Floats = delta(k=k, beta=beta, epsilon=start * z)
        panels[1].plot(z, curve / curve[0], color=color, label=label)
    return _add_legend(canvas, panels)


def _draw_composition() -> Canvas:
    """Draw epsilon against the number of releases: summed, and composed."""
    canvas = Canvas(figsize=(7, 4.4), layout="constrained")
    panel = canvas.subplots()
    counts = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128]
    events = [[SafeRelease(k=20, beta=0.1)] * m for m in counts]
    basic = [BasicAccountant(event).epsilon(delta=1e-6) for event in events]
    tight = [Accountant(event).epsilon(delta=1e-6) for event in events]
    for costs, color, label, offset in (
        (basic, _COLORS[3], "sum of the tight ε of each release", (-24, 7)),
        (tight, _COLORS[0], "composed by the accountant", (2, -15)),
    ):
        panel.plot(counts, costs, "o-", color=color, markersize=4, label=label)
        for m in (16, 64):
            cost = costs[counts.index(m)]
            label = f"{cost:.1f}" if cost > 1 else f"{cost:.2f}"
            panel.annotate(label, (m, cost), offset, textcoords="offset points")
    panel.set(
        xscale="log",
        yscale="log",
        xlabel="releases of the same table (k = 20, β = 0.1, δ = 1e-6 in all)",
        ylabel="ε",
    )
    panel.set_xticks([1, 4, 16, 64], ["1", "4", "16", "64"])
    panel.set_yticks([0.2, 0.5, 1, 2, 5, 10, 20], ["0.2", "0.5", "1", "2", "5", "10", "20"])
    panel.minorticks_off()
    panel.legend(loc="upper left")
    return canvas


FIGURES: tuple[Figure, ...] = (
    Figure(
        "figure-1",
        "Figure 1: which outcomes count for δ",
        "One cell of the worst size for k = 6, β = 0.2, ε = 0.25. The paper counts every outcome "
        "beyond γn in full; (ε, δ)-privacy needs only the part by which its probability exceeds "
        "e^ε times that of the neighboring table.",
        _draw_tail,
    ),
    Figure(
        "figure-2",
        "Figure 2: 1/δ against ε for several k at β = 0.2",
        "A larger k makes δ smaller almost exponentially. The paper's bound starts at "
        "ε = −ln(1 − β) = 0.223; the tight one holds from ε = 0.",
        lambda: _draw_inverse_delta([(k, 0.2) for k in (5, 10, 20, 30, 50)], top=1e32),
    ),
    Figure(
        "figure-3",
        "Figure 3: 1/δ against ε for several β at k = 20",
        "Sampling fewer rows makes δ smaller at the same k.",
        lambda: _draw_inverse_delta([(20, beta) for beta in (0.05, 0.1, 0.2, 0.3, 0.4)], top=1e26),
    ),
    Figure(
        "figure-4",
        "Figure 4: pairs (k, β) of similar strength",
        "Each doubling of β asks for a larger k: 15, 22, 35, 60.",
        lambda: _draw_inverse_delta([(15, 0.05), (22, 0.1), (35, 0.2), (60, 0.4)], top=1e22),
    ),
    Figure(
        "figure-5",
        "Figure 5: very small k at β = 0.025",
        "With k = 1 nothing is suppressed and all protection comes from sampling: δ stays at "
        "about β. From k = 2 on, suppression adds to it.",
        lambda: _draw_inverse_delta([(k, 0.025) for k in range(1, 6)], top=1e9),
    ),
    Figure(
        "figure-6",
        "Figure 6: ε against k at δ ≤ 1e-6",
        "The ε that a given k buys. Below some k no ε will do, because a cell of exactly k rows "
        "is published whole with probability β^k.",
        _draw_epsilon_for_k,
    ),
    Figure(
        "figure-7",
        "Figure 7: f(z) for k = 20, β = 0.2",
        "The smooth bound: how fast δ falls as ε grows beyond ε₀. Graver violations are rarer by "
        "orders of magnitude, down to a floor: a cell of exactly k rows is drawn whole with "
        "probability β^k, and that no ε excuses. As the paper observed, the curve for ε₀ = 0.25 "
        "cuts through the others. (The paper does not print its β.)",
        _draw_smooth_bound,
    ),
    Figure(
        "figure-8",
        "Ours: ε against the number of releases",
        "Sixteen releases with fresh samples cost 0.48, not 4.0; sixty-four cost 0.91, not 18.4.",
        _draw_composition,
        single=True,
    ),
)
