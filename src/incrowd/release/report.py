"""The curator's report and its figures: what was kept, suppressed and lost. Private."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from markupsafe import Markup, escape
from matplotlib.figure import Figure

from incrowd.measure.evaluation import Evaluation
from incrowd.release.certificate import Certificate
from incrowd.release.page import render

_STYLE: dict[Any, Any] = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.hashsalt": "incrowd",
    "svg.fonttype": "none",  # text stays text, in whatever script
    "text.parse_math": False,  # a dollar in a name is a dollar
    "legend.frameon": False,
}

_MOST_NUMBERS = 20  # columns up to which each pair's number is written into its square
_LONGEST_NAME = 32


def report(
    certificate: Certificate,
    found: Evaluation,
    reasons: Sequence[str] = (),
    warnings_: Sequence[str] = (),
) -> str:
    """The report as one HTML page without links to anything else."""
    with mpl.rc_context(_STYLE):
        if found.slices:
            template, figures = "sliced.html", _of_slices(found)
        elif found.risk is not None:
            template, figures = "evaluation.html", _of_labels(found)
        else:
            template, figures = "curator.html", _of_levels(found)
        return render(
            "incrowd.release", template,
            certificate=certificate, found=found, reasons=reasons, warnings=warnings_, **figures,
        )  # fmt: skip


def _of_levels(found: Evaluation) -> dict[str, Any]:
    """The figures of a safe release by levels."""
    original, released = found.sizes_original, found.sizes_released
    return {
        "sizes": _drawn(lambda: _sizes(original, released, "cell")),
        "columns": _drawn(lambda: _columns(found.detail_by_column)),
    }


def _of_labels(found: Evaluation) -> dict[str, Any]:
    """The figures of what was measured by labels."""
    assert found.risk is not None
    original, released = found.risk.sizes_original, found.risk.sizes
    detail = {name: 1 - lost for name, lost in found.precision_by_column.items()}
    return {
        "sizes": _drawn(lambda: _sizes(original, released, "class")),
        "columns": _drawn(lambda: _columns(detail)),
        "associations": _drawn(lambda: _associations(found)),
    }


def _of_slices(found: Evaluation) -> dict[str, Any]:
    """The figures of slices, and their associations, the strongest first."""
    pairs = sorted(found.associations, key=lambda pair: -pair.original)
    return {
        "pairs": pairs,
        "shown": sum(pair.slice is not None for pair in pairs),
        "silent": [pair for pair in pairs if pair.silent is not None],
        "associations": _drawn(lambda: survival_figure(found)),
    }


def survival_figure(found: Evaluation) -> Figure:
    """Cramér's V of every pair of columns, in the table and as the slices show it."""
    names = list(dict.fromkeys(name for columns in found.columns for name in columns))
    size, shortened = len(names), [_short(name) for name in names]
    tables = {title: np.full((size, size), np.nan) for title in ("in the table", "as released")}
    for pair in found.associations:
        one, other = names.index(pair.first), names.index(pair.second)
        for at, place in ((one, other), (other, one)):
            tables["in the table"][at, place] = pair.original
            if pair.slice is not None:
                tables["as released"][at, place] = pair.released
    figure = Figure(figsize=(3 + 0.72 * size, 1.6 + 0.36 * size), layout="constrained")
    both = figure.subplots(1, 2, sharey=True)
    colours = mpl.colormaps["Blues"].with_extremes(bad="#f0f0f0")
    for axes, (title, values) in zip(both, tables.items(), strict=True):
        image = axes.imshow(values, vmin=0, vmax=1, cmap=colours)
        axes.set_title(title)
        axes.set_xticks(range(size), shortened, rotation=45, ha="right")
        axes.set_yticks(range(size), shortened)
        for at, place in np.argwhere(~np.isnan(values) & (size <= _MOST_NUMBERS)):
            value = values[at, place]
            axes.text(
                place, at, f"{value:.2f}".removeprefix("0"), ha="center", va="center", fontsize=7,
                color="white" if value > 0.5 else "#333333",
            )  # fmt: skip
    figure.colorbar(image, ax=both, shrink=0.7, label="Cramér's V")
    return figure


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
    axes.barh(range(len(names)), [detail[name] for name in names], color="#2a9d8f")
    axes.set_yticks(range(len(names)), [_short(name) for name in names])
    axes.set(xlim=(0, 1), xlabel="detail kept in the rows shown (1: the value itself, 0: nothing)")
    return figure


def _associations(found: Evaluation) -> Figure:
    """Cramér's V of each pair of columns, in the table and as released."""
    figure = Figure(figsize=(4.2, 4.2), layout="constrained")
    axes = figure.subplots()
    axes.plot([0, 1], [0, 1], color="#bbbbbb", linewidth=1)
    pairs = found.utility.associations if found.utility is not None else []
    axes.scatter(
        [pair.original for pair in pairs], [pair.released for pair in pairs], color="#0b4f8a", s=18
    )
    axes.set(xlim=(0, 1), ylim=(0, 1), xlabel="association in the table", ylabel="as released")
    return figure


def _short(name: str) -> str:
    """A name that leaves room for the figure."""
    plain = " ".join(name.split())
    return plain if len(plain) <= _LONGEST_NAME else f"{plain[: _LONGEST_NAME - 1]}…"


def _drawn(figure: Callable[[], Figure]) -> Markup:
    """A figure as SVG; where it cannot be drawn, a sentence: a release must not fail by it."""
    buffer = io.StringIO()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of characters that only the reader's fonts have
            figure().savefig(buffer, format="svg", metadata={"Date": None})
    except Exception as error:  # noqa: BLE001 - whatever names and numbers can do to a drawing
        reason = (str(error).splitlines() or [""])[0]
        return escape(f"This figure could not be drawn ({type(error).__name__}: {reason[:200]}).")
    text = buffer.getvalue()
    return Markup(text[text.index("<svg") :])  # noqa: S704 - our own drawing


def _range(place: int) -> str:
    low, high = 2**place, 2 ** (place + 1) - 1
    return str(low) if low == high else f"{low:,}-{high:,}"
