"""Titles above the header of a table, as people put them into sheets and text files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from incrowd.codes.values import canonical, iso_day, number

LOOKED_AT = 50  # so many rows tell where the header is

Cells = Sequence[str | None]


@dataclass(frozen=True)
class Titled:
    """The row that holds the header, and the rows above it that hold a title; from 1."""

    header: int
    titles: tuple[int, ...]

    @property
    def note(self) -> str:
        """What whoever opened the table should know."""
        first, last = self.titles[0], self.titles[-1]
        what = f"Row {first} looks" if first == last else f"Rows {first} to {last} look"
        return (
            f"{what} like a title; row {self.header} was read as the header. --header names "
            "another."
        )


def under_title(rows: Mapping[int, Cells]) -> Titled | None:
    """The header among the first rows, by their numbers, if a title stands above it.

    Rows of a title fill at most half as many cells as most rows of the table do. What follows on
    them must look like a header: different texts, no number and no day among them, and a row
    below. A wrong guess would take somebody's row for names of columns, so that in doubt there
    is no title.
    """
    texts = {
        at: found
        for at, cells in rows.items()
        if (found := [text for cell in cells if (text := canonical(cell))])
    }
    filled = sorted(len(found) for found in texts.values())
    width = filled[3 * len(filled) // 4] if filled else 0
    if width < 2:
        return None
    header = next(at for at, found in texts.items() if 2 * len(found) > width)
    titles = tuple(at for at in texts if at < header)
    if not titles or header == max(texts) or not _names(texts[header]):
        return None
    if width == 2 and not canonical(rows[titles[0]][0]):
        return None  # a header whose first column, that of row numbers, has no name
    return Titled(header, titles)


def _names(texts: Sequence[str]) -> bool:
    """Whether texts can be the names of columns."""
    values = any(number(text) is not None or iso_day(text) for text in texts)
    return not values and len(set(texts)) == len(texts)
