"""The curator's report and its figures: what was kept, suppressed and lost. Private."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from markupsafe import Markup, escape

from incrowd.measure.estimate import Attacked
from incrowd.measure.evaluation import Evaluation
from incrowd.release.certificate import Certificate
from incrowd.release.examples import Examples
from incrowd.release.figures import (
    Mark,
    Point,
    Series,
    grouped_bars,
    heat_map,
    horizontal_bars,
    intervals,
    scatter,
)
from incrowd.release.page import render


def report(
    certificate: Certificate,
    found: Evaluation,
    reasons: Sequence[str] = (),
    warnings_: Sequence[str] = (),
    examples: Examples | None = None,
    attacked: Attacked | None = None,
) -> str:
    """The report as one HTML page without links to anything else."""
    if found.slices:
        template, figures = "sliced.html", _of_slices(found)
    elif found.risk is not None:
        template, figures = "evaluation.html", _of_labels(found)
    else:
        template, figures = "curator.html", _of_levels(found)
    return render(
        "incrowd.release", template,
        certificate=certificate, found=found, reasons=reasons, warnings=warnings_,
        examples=examples, attacked=attacked, attacks=_drawn(lambda: _attacks(attacked)), **figures,
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
        "associations": _drawn(lambda: _survival(found)),
    }


def _survival(found: Evaluation) -> str:
    """Cramér's V of every pair of columns, in the table and as the slices show it."""
    names = list(dict.fromkeys(name for columns in found.columns for name in columns))
    places = {name: place for place, name in enumerate(names)}
    before: dict[tuple[int, int], float] = {}
    after: dict[tuple[int, int], float] = {}
    for pair in found.associations:
        one, other = places[pair.first], places[pair.second]
        for both in ((one, other), (other, one)):
            before[both] = pair.original
            if pair.slice is not None:
                after[both] = pair.released
    return "\n".join(
        heat_map(names, values, title=title, scale="Cramér's V")
        for title, values in (("in the table", before), ("as released", after))
    )


def _sizes(original: list[int], released: list[int], what: str) -> str:
    """Rows by the size of their cell or class, before and after."""
    longest = max(len(original), len(released), 1)
    return grouped_bars(
        [_range(place) for place in range(longest)],
        [Series("in the table", "#b7c9dd", original), Series("released", "#0b4f8a", released)],
        title=f"Rows by the size of their {what}, before and after",
        across=f"alike rows (size of the {what})",
        up="rows",
    )


def _columns(detail: dict[str, float]) -> str:
    """How much detail each column keeps in the rows that are shown."""
    return horizontal_bars(
        detail,
        colour="#2a9d8f",
        title="Detail that each column keeps",
        across="detail kept in the rows shown (1: the value itself, 0: nothing)",
    )


def _associations(found: Evaluation) -> str:
    """Cramér's V of each pair of columns, in the table and as released."""
    pairs = found.utility.associations if found.utility is not None else []
    return scatter(
        [Point(f"{pair.first}, {pair.second}", pair.original, pair.released) for pair in pairs],
        colour="#0b4f8a",
        title="Associations of pairs of columns",
        across="association in the table",
        up="as released",
    )


def _attacks(attacked: Attacked | None) -> str:
    """Success of each attack, beside guessing and beside people who are not in the table."""
    rows = {}
    for one in attacked.estimates if attacked is not None else ():
        marks = [("of the table", "#0b4f8a", one.success), ("guessing", "#bbbbbb", one.guess)]
        marks += [] if one.control is None else [("not in the table", "#e9a23b", one.control)]
        rows[f"{one.attack}: {one.name}"] = [
            Mark(label, colour, rate.value, rate.low, rate.high) for label, colour, rate in marks
        ]
    return intervals(
        rows, title="What was tried against the release", across="share of tries that succeed"
    )


def _drawn(figure: Callable[[], str]) -> Markup:
    """A figure as SVG; where it cannot be drawn, a sentence: a release must not fail by it."""
    try:
        return Markup(figure())  # noqa: S704 - our own drawing
    except Exception as error:  # noqa: BLE001 - whatever names and numbers can do to a drawing
        reason = (str(error).splitlines() or [""])[0]
        return escape(f"This figure could not be drawn ({type(error).__name__}: {reason[:200]}).")


def _range(place: int) -> str:
    low, high = 2**place, 2 ** (place + 1) - 1
    return str(low) if low == high else f"{low:,}-{high:,}"
