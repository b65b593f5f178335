"""The recommended method on a terminal: a table of a few lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from incrowd.cli import terminal
from incrowd.errors import IncrowdError
from incrowd.findings import format_count

if TYPE_CHECKING:
    from incrowd.spec.file import SpecFile


def print_recommendation(file: SpecFile, size: int) -> None:
    """Print which method serves the columns at a size, and what each method would keep."""
    from incrowd.curate.recommend import recommend_method

    try:
        recommendation = recommend_method(file, size=size)
    except IncrowdError as error:
        terminal.print_text(f"No recommendation: {error}")
        return
    assert recommendation is not None
    people = format_count(size, "person", "people")
    terminal.print_wrapped(
        f"Recommended method for {people}: {recommendation.method}, because "
        f"{recommendation.reason}. Expected of each method:"
    )
    lines = recommendation.tabulate()
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = (f"{text:<{width}}" for text, width in zip(line, widths, strict=True))
        terminal.print_text(f"  {'  '.join(cells)}".rstrip())
