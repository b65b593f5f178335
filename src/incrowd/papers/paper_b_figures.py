"""The figures of paper B, drawn from our own numbers, and what they say about its findings.

Rows of panels are algorithms, columns are data sets. A verdict is a condition on the numbers.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from incrowd.papers import paper_b_data as paper
from incrowd.papers.paper_a_figures import Figure, save_figure
from incrowd.papers.paper_b_data import (
    ALGORITHMS,
    CONFIDENCE,
    SHOWN,
    PaperFinding,
    PaperNumbers,
    ResultCell,
    WidenedResult,
)

__all__ = ["NAMES", "check_findings", "list_figures", "save_figure"]
NAMES = tuple(f"figure-{number}" for number in ("1", "1b", "2", "3", "4", "5", "6", "7", "8"))
TABLES = tuple(paper.TABLE_3_PRINTED)
_BLUE, _RED, _ORANGE, _GREY = "#0b4f8a", "#d1495b", "#e9a23b", "#888888"
_LEVEL: dict[str, Any] = {"color": "#444444", "linewidth": 0.9, "linestyle": (0, (4, 3))}


def _make_panel_grid(**axes: Any) -> tuple[Canvas, dict[tuple[str, str], Axes]]:
    """Make a row of panels for each algorithm, a column for each data set."""
    canvas = Canvas(figsize=(11, 6.6), layout="constrained")
    panels = canvas.subplots(len(ALGORITHMS), len(TABLES), sharex=True, sharey="row")
    panels_by_name = {}
    for row, name in zip(panels, ALGORITHMS, strict=True):
        for panel, data in zip(row, TABLES, strict=True):
            panel.set(title=f"{_format_data_name(data)}: {SHOWN[name]}", xscale="log", **axes)
            panel.label_outer()
            panels_by_name[name, data] = panel
    return canvas, panels_by_name


def _format_data_name(data: str) -> str:
    return f"{data}, {'weight' if data == 'Michigan' else 'height'}"


def _set_ticks(panels: Iterable[Axes], values: Sequence[float]) -> None:
    for panel in panels:
        panel.set_xticks(values, [f"{value:g}" for value in values])
        panel.minorticks_off()


def _set_percent_axis(panels: Iterable[Axes]) -> None:
    for panel in panels:
        panel.yaxis.set_major_formatter(lambda y, _: f"{100 * y:g} %")


def _choose_shades(count: int) -> list[Any]:
    return list(mpl.colormaps["viridis"](np.linspace(0.0, 0.88, count)))


def _add_legend(canvas: Canvas, panel: Axes, title: str | None = None) -> Canvas:
    handles, labels = panel.get_legend_handles_labels()
    canvas.legend(handles, labels, loc="outside right center", fontsize=9, title=title)
    return canvas


def _select_records(records: Iterable[Any], **criteria: Any) -> list[Any]:
    """Return the records with these values, in their order."""
    return [
        x for x in records if all(getattr(x, name) == value for name, value in criteria.items())
    ]


def _draw_quasi_loss(numbers: PaperNumbers) -> Canvas:
    canvas, panels = _make_panel_grid(xlabel="k", ylabel="precision lost")
    for (algorithm, data), panel in panels.items():
        widened_results: list[WidenedResult] = _select_records(
            numbers.widened, algorithm=algorithm, data=data
        )
        ks = [x.k for x in widened_results]
        for values, color, name in (
            ([x.attribute_loss for x in widened_results], _RED, "height or weight\nas a k-quasi"),
            ([x.loss_widened for x in widened_results], _ORANGE, "the other k-quasis\nthen"),
            ([x.loss for x in widened_results], _BLUE, "the k-quasis under\n(k,ε)-anonymity"),
        ):
            below: dict[str, Any] = {"linewidth": 4, "alpha": 0.7} if color == _ORANGE else {}
            panel.plot(ks, values, "o-", markersize=4, color=color, label=name, **below)
    for panel in panels.values():
        panel.set_ylim(bottom=0)
    _set_ticks(panels.values(), numbers.grid.ks)
    return _add_legend(canvas, next(iter(panels.values())))


def _draw_attribute_error(numbers: PaperNumbers) -> Canvas:
    canvas, panels = _make_panel_grid(xlabel="k", ylabel="mean relative error", yscale="log")
    epsilons = [epsilon for epsilon in numbers.grid.epsilons if epsilon >= 2]
    for (algorithm, data), panel in panels.items():
        widened_results: list[WidenedResult] = _select_records(
            numbers.widened, algorithm=algorithm, data=data
        )
        ks = [x.k for x in widened_results]
        for epsilon, color in zip(epsilons, _choose_shades(len(epsilons)), strict=True):
            cells = _select_records(numbers.cells, algorithm=algorithm, data=data, epsilon=epsilon)
            label = f"(k,ε), ε = {epsilon:g}"
            panel.plot(ks, [x.predicted_error for x in cells], "-", color=color, label=label)
        middle, label = (
            [x.midpoint_error for x in widened_results],
            "as a k-quasi:\nmiddle of the\ninterval",
        )
        panel.plot(ks, middle, "o-", markersize=4, color=_RED, label=label)
    _set_ticks(panels.values(), numbers.grid.ks)
    _set_percent_axis(panels.values())
    return _add_legend(canvas, next(iter(panels.values())))


def _draw_noise_kinds(numbers: PaperNumbers) -> Canvas:
    canvas = Canvas(figsize=(11, 6.6), layout="constrained")
    panels = canvas.subplots(2, len(TABLES), sharey=True)
    for at, comparison in enumerate(numbers.compared):
        above, below = panels[0][at], panels[1][at]
        errors, small_errors = (
            100 * np.array(comparison.errors),
            100 * np.array(comparison.small_errors),
        )
        above.plot(errors, comparison.by_class, color=_BLUE, label="Laplace by class")
        above.plot(errors, comparison.overall, color=_RED, label="Laplace for the whole column")
        label = f"Laplace, ε = {comparison.matching_epsilon:g}"
        below.plot(small_errors, comparison.laplace, color=_BLUE, label=label)
        below.plot(
            small_errors, comparison.uniform, ":", color=_ORANGE, linewidth=2, label="uniform, ±5 %"
        )
        above.set(title=_format_data_name(comparison.data), ylim=(0, 1.02))
        for panel in (above, below):
            panel.set(xlabel="relative error in %", xlim=(0, None))
            panel.legend(loc="lower right", fontsize=9)
        for panel in panels[:, 0]:
            panel.set_ylabel("share of rows up to there")
    return canvas


def _draw_curves(
    numbers: PaperNumbers, along: str, panels: dict[tuple[str, str], Axes],
    value: Callable[[ResultCell], Any], line: Callable[[ResultCell], float] | None = None,
) -> list[Any]:  # fmt: skip
    """Draw a curve for each k over epsilon, or for each epsilon over k, with intervals."""
    parameter = "k" if along == "epsilon" else "epsilon"
    parameter_values = numbers.grid.ks if parameter == "k" else numbers.grid.epsilons
    colors = _choose_shades(len(parameter_values))
    for (algorithm, data), panel in panels.items():
        for parameter_value, color in zip(parameter_values, colors, strict=True):
            cells = _select_records(
                numbers.cells, algorithm=algorithm, data=data, **{parameter: parameter_value}
            )
            x = [getattr(cell, along) for cell in cells]
            estimates = [value(cell) for cell in cells]
            mean = np.array([y.mean for y in estimates])
            reach = [mean - [y.low for y in estimates], [y.high for y in estimates] - mean]
            label = f"k = {parameter_value}" if parameter == "k" else f"ε = {parameter_value:g}"
            positive = np.where(mean > 0, mean, np.nan)
            style: dict[str, Any] = {"color": color, "markersize": 3.5, "capsize": 2}
            panel.errorbar(x, positive, reach, fmt="o" if line else "o-", label=label, **style)
            if line:
                panel.plot(x, [line(cell) for cell in cells], color=color, linewidth=1)
    _set_percent_axis(panels.values())
    _set_ticks(panels.values(), numbers.grid.ks if along == "k" else numbers.grid.epsilons)
    return colors


def _draw_error(numbers: PaperNumbers, along: str) -> Canvas:
    name = "k" if along == "k" else "ε"
    canvas, panels = _make_panel_grid(xlabel=name, ylabel="mean relative error", yscale="log")
    _draw_curves(numbers, along, panels, lambda cell: cell.error, lambda cell: cell.predicted_error)
    for panel in panels.values():
        panel.axhline(0.05, **_LEVEL)
    return _add_legend(canvas, next(iter(panels.values())), "dots measured,\nlines predicted")


def _draw_linking(numbers: PaperNumbers) -> Canvas:
    canvas, panels = _make_panel_grid(
        xlabel="ε", ylabel="rows linked", yscale="log", ylim=(5e-4, 1.1)
    )
    colors = _draw_curves(numbers, "epsilon", panels, lambda cell: cell.linking)
    edge = 1.7 * max(numbers.grid.epsilons)
    for panel in panels.values():
        panel.axhline(0.05, **_LEVEL)
        for k, color in zip(numbers.grid.ks, colors, strict=True):
            panel.plot(edge, 1 / k, "<", color=color, markersize=6)
    return _add_legend(canvas, next(iter(panels.values())), "triangles: 1/k")


def _draw_confidence(numbers: PaperNumbers) -> Canvas:
    canvas, panels = _make_panel_grid(
        xlabel="k", ylabel="rows suppressed", yscale="log", ylim=(2e-5, 1)
    )
    _draw_curves(numbers, "k", panels, lambda cell: cell.suppressed[CONFIDENCE])
    for (algorithm, data), panel in panels.items():
        panel.axhline(0.02, **_LEVEL)
        summaries = _select_records(numbers.grouped, algorithm=algorithm, data=data)
        if algorithm == "ola":
            suppressed_shares = [x.suppressed or np.nan for x in summaries]
            panel.plot(
                [x.k for x in summaries],
                suppressed_shares,
                color=_GREY,
                linewidth=2.5,
                label="by OLA itself",
            )
    return _add_legend(canvas, next(iter(panels.values())))


def _draw_times(numbers: PaperNumbers, algorithm: str) -> Canvas:
    canvas = Canvas(figsize=(11, 3.8), layout="constrained")
    panels = canvas.subplots(1, len(TABLES))
    places = np.arange(len(numbers.grid.ks))
    for panel, data in zip(panels, TABLES, strict=True):
        widened_results: list[WidenedResult] = _select_records(
            numbers.widened, algorithm=algorithm, data=data
        )
        for shift, times, parts in (
            (-0.21, [x.times for x in widened_results], (_GREY, _BLUE, "#2a9d8f")),
            (0.21, [x.times_widened for x in widened_results], ("#bbbbbb", _RED, "none")),
        ):
            base = np.zeros(len(widened_results))
            wide = "" if shift < 0 else ", with the attribute"
            for name, color in zip(("count", "search", "noise"), parts, strict=True):
                high = np.array([getattr(time, name) for time in times])
                label = None if color == "none" else f"{name}{wide}"
                panel.bar(places + shift, high, 0.4, bottom=base, color=color, label=label)
                base = base + high
        for place, x in zip(places, widened_results, strict=True):
            top = max(x.times.total, x.times_widened.total)
            ratio = x.times_widened.search / x.times.search
            panel.annotate(f"×{ratio:.1f}", (place, top), (0, 3), textcoords="offset points",
                           ha="center", fontsize=9)  # fmt: skip
        panel.set(title=_format_data_name(data), xlabel="k")
        panel.set_xticks(places, [str(k) for k in numbers.grid.ks])
        panel.set_ylim(0, 1.12 * max(panel.get_ylim()))
        panel.grid(axis="x", visible=False)
    panels[0].set_ylabel("processor seconds")
    return _add_legend(canvas, panels[0], "× search, with\nover without")


def list_figures(numbers: PaperNumbers) -> tuple[Figure, ...]:
    """Return all figures, in the order of the page."""
    panels: tuple[tuple[str, Callable[[PaperNumbers], Canvas]], ...] = (
        ("Figure 1: height or weight as one more k-quasi", _draw_quasi_loss),
        ("Figure 1, in errors: the same as a reader sees it", _draw_attribute_error),
        ("Figure 2: kinds of noise", _draw_noise_kinds),
        ("Figure 3: error against k", partial(_draw_error, along="k")),
        ("Figure 4: error against ε", partial(_draw_error, along="epsilon")),
        ("Figure 5: linking risk against ε", _draw_linking),
        ("Figure 6: suppression for 99 % confidence against k", _draw_confidence),
        ("Figure 7: run time with Mondrian", partial(_draw_times, algorithm="mondrian")),
        ("Figure 8: run time with OLA", partial(_draw_times, algorithm="ola")),
    )
    return tuple(
        Figure(name, title, "", partial(draw, numbers))
        for name, (title, draw) in zip(NAMES, panels, strict=True)
    )


# What they say ---------------------------------------------------------------------------


Check = Callable[[PaperNumbers, str], tuple[bool, str]]


def _format_percent(share: float, digits: int = 1) -> str:
    return f"{100 * share:.{digits}f}\u00a0%"


def _format_span(values: Iterable[float], unit: str = "\u00a0%", digits: str = ".3g") -> str:
    low, high = min(listing := list(values)), max(listing)
    scale = 100 if unit == "\u00a0%" else 1
    ends = [f"{scale * low:{digits}}", f"{scale * high:{digits}}"]
    return f"{ends[0]}{unit}" if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}{unit}"


def _check_dimensionality(numbers: PaperNumbers, data: str) -> tuple[bool, str]:
    widened_results: list[WidenedResult] = _select_records(
        numbers.widened, data=data, algorithm="ola"
    )
    hit = [x for x in widened_results if x.attribute_loss >= 0.8 or x.loss_widened > 1.2 * x.loss]
    lost_ks = [x.k for x in widened_results if x.attribute_loss >= 0.8]
    return len(hit) == len(widened_results), (
        f"at {len(hit)} of {len(widened_results)} k the attribute loses at least 0.8 of its "
        "precision "
        f"(k = {', '.join(map(str, lost_ks)) or 'none'}) or the others lose over a fifth more"
    )


def _check_mondrian_loss(numbers: PaperNumbers, data: str) -> tuple[bool, str]:
    widened_results: list[WidenedResult] = _select_records(
        numbers.widened, data=data, algorithm="mondrian"
    )
    savings = [1 - x.loss / (x.loss_widened or 1) for x in widened_results]
    return min(savings) > 0, f"they lose {_format_span(savings)} less"


def _check_mondrian_error(numbers: PaperNumbers, data: str) -> tuple[bool, str]:
    largest = max(numbers.grid.epsilons)
    cells: list[ResultCell] = _select_records(
        numbers.cells, data=data, algorithm="mondrian", epsilon=largest
    )
    widened_results: list[WidenedResult] = _select_records(
        numbers.widened, data=data, algorithm="mondrian"
    )
    pairs = list(zip([x.predicted_error for x in cells], widened_results, strict=True))
    fits = [x.k for error, x in pairs if error <= x.midpoint_error]
    return len(fits) == len(widened_results), (
        f"{_format_span(error for error, _ in pairs)} at ε = {largest:g}, the largest tried, "
        f"against {_format_span(x.midpoint_error for x in widened_results)}; no larger at "
        f"{len(fits)} of {len(widened_results)} k"
    )


def _check_global_noise(numbers: PaperNumbers, data: str) -> tuple[bool, str]:
    (comparison,) = _select_records(numbers.compared, data=data)
    pairs = zip(comparison.by_class, comparison.overall, strict=True)
    return all(by_class >= overall for by_class, overall in pairs), (
        f"mean error {_format_percent(comparison.mean_by_class)} by class, "
        f"{_format_percent(comparison.mean_overall)} overall"
    )


def _check_inverse_error(numbers: PaperNumbers, data: str) -> tuple[bool, str]:
    products: dict[tuple[str, int], list[float]] = {}
    for cell in _select_records(numbers.cells, data=data):
        products.setdefault((cell.algorithm, cell.k), []).append(cell.epsilon * cell.error.mean)
    worst = max(max(product) / min(product) - 1 for product in products.values())
    return worst < 0.05, f"ε times the error varies by at most {_format_percent(worst)} over ε"


def _check_prediction(numbers: PaperNumbers, data: str) -> tuple[bool, str]:
    records = _select_records(numbers.cells, data=data)
    inside = sum(cell.error.low <= cell.predicted_error <= cell.error.high for cell in records)
    deviations = [abs(cell.error.mean - cell.predicted_error) for cell in records]
    reach = [cell.error.high - cell.error.mean for cell in records]
    largest = max(x / cell.predicted_error for x, cell in zip(deviations, records, strict=True))
    beyond = sum(x > 2 * y for x, y in zip(deviations, reach, strict=True))
    return beyond == 0, (
        f"in {inside} of {len(records)} settings the prediction lies in the 95 % interval, in "
        f"{beyond} beyond twice its reach; the largest deviation is {_format_percent(largest, 2)}"
    )


def _check_small_error(numbers: PaperNumbers, data: str) -> tuple[bool, str]:
    small_cells = [cell for cell in _select_records(numbers.cells, data=data) if cell.epsilon >= 8]
    by = {
        e: _format_span(c.error.mean for c in _select_records(small_cells, epsilon=e))
        for e in {c.epsilon for c in small_cells}
    }
    words = "; ".join(f"{by[epsilon]} at ε = {epsilon:g}" for epsilon in sorted(by))
    return all(cell.error.mean < 0.05 for cell in small_cells), words


def _check_attainability(numbers: PaperNumbers, data: str) -> tuple[bool, str]:
    words, good = [], True
    for algorithm in ALGORITHMS:
        result_cells: list[ResultCell] = _select_records(
            numbers.cells, data=data, algorithm=algorithm
        )
        moderate = [c for c in result_cells if 10 <= c.k <= 50 and 0.5 <= c.epsilon <= 8]
        low = [c for c in moderate if c.linking.mean < 0.05]
        good &= bool(low)
        best = min(low, key=lambda c: c.error.mean, default=None)
        words.append(
            f"{SHOWN[algorithm]}: {len(low)} of {len(moderate)} settings"
            + (
                f", of which k = {best.k} with ε = {best.epsilon:g} has the least error, "
                f"{_format_percent(best.error.mean)}, at a risk of "
                f"{_format_percent(best.linking.mean)}"
                if best
                else ""
            )
        )
    return good, "; ".join(words)


def _check_risk_decrease(numbers: PaperNumbers, data: str) -> tuple[bool, str]:
    cells = {(c.algorithm, c.k, c.epsilon): c for c in _select_records(numbers.cells, data=data)}
    ks, epsilons = numbers.grid.ks, numbers.grid.epsilons
    pairs = [
        (cells[a, k, e], cells[a, larger, e])
        for a in ALGORITHMS for k, larger in itertools.pairwise(ks) for e in epsilons
    ] + [
        (cells[a, k, larger], cells[a, k, e])
        for a in ALGORITHMS for k in ks for e, larger in itertools.pairwise(epsilons)
    ]  # fmt: skip
    rises = sum(after.linking.low > before.linking.high for before, after in pairs)
    fine = len(pairs) - rises
    return rises == 0, f"{fine} of {len(pairs)} steps to a larger k or smaller ε do not raise it"


def _check_confidence(numbers: PaperNumbers, data: str) -> tuple[bool, str]:
    cells = [cell for cell in _select_records(numbers.cells, data=data) if cell.epsilon <= 1]
    largest = max(cell.suppressed[CONFIDENCE].mean for cell in cells)
    ola_suppressed = {
        x.k: x.suppressed for x in _select_records(numbers.grouped, data=data, algorithm="ola")
    }
    ola = _select_records(cells, algorithm="ola")
    settings = sum(ola_suppressed[c.k] + c.suppressed[CONFIDENCE].mean <= 0.05 for c in ola)
    words = (
        f"at most {_format_percent(largest, 2)} for ε ≤ 1; "
        f"with OLA's own at most 5 % in {settings} of {len(ola)}"
    )
    return largest < 0.02, f"{words} settings"


def _check_run_time(
    numbers: PaperNumbers, data: str, algorithm: str = "ola", part: str = "search"
) -> tuple[bool, str]:
    widened_results: list[WidenedResult] = _select_records(
        numbers.widened, data=data, algorithm=algorithm
    )
    ratios = [getattr(x.times_widened, part) / getattr(x.times, part) for x in widened_results]
    good = min(ratios) >= 2 if algorithm == "ola" else max(ratios) < 1
    return good, f"{_format_span(ratios, ' times', '.1f')} as long with the attribute as without"


CHECKS: tuple[tuple[str, str, Check], ...] = (
    ("curse", "figure-1", _check_dimensionality),
    ("mondrian-loss", "figure-1", _check_mondrian_loss),
    ("mondrian-error", "figure-1b", _check_mondrian_error),
    ("global", "figure-2", _check_global_noise),
    ("predicted", "figure-3", _check_prediction),
    ("inverse", "figure-4", _check_inverse_error),
    ("small-error", "figure-4", _check_small_error),
    ("attainable", "figure-5", _check_attainability),
    ("falls", "figure-5", _check_risk_decrease),
    ("confident", "figure-6", _check_confidence),
    ("mondrian-slower", "figure-7", partial(_check_run_time, algorithm="mondrian", part="total")),
    ("faster", "figure-8", _check_run_time),
    ("faster-whole", "figure-8", partial(_check_run_time, part="total")),
)


def check_findings(numbers: PaperNumbers) -> tuple[PaperFinding, ...]:
    """Check every finding of the paper against our numbers."""
    findings = []
    for key, figure, check in CHECKS:
        checks = {data: check(numbers, data) for data in TABLES}
        agrees = {data: bool(good) for data, (good, _) in checks.items()}
        descriptions = {data: words for data, (_, words) in checks.items()}
        findings.append(PaperFinding(key, figure, agrees, descriptions))
    return tuple(findings)
