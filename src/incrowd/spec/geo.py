"""Places by their coordinates: cells of a public grid, nested in larger ones.

Hexagons are those of :mod:`incrowd.spec.hexagons`. The grid of squares is that of whole multiples
of a size, in degrees, from 0 on: what a cell is depends on no table. A cell holds its southern and
western edges. Longitudes wrap at the date line, so that 180 and -180 are one, and 359 is -1; the
pole is in the northernmost cells.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from functools import lru_cache

from incrowd.codes.hierarchy import ROOT, Hierarchy, HierarchyError, build_from_rows
from incrowd.codes.values import canonicalize_value
from incrowd.spec.hexagons import list_hexagon_rows, locate_hexagon
from incrowd.spec.hierarchies import Geo

MOST_CELLS = 250_000  # that a grid lists at its finest size
OUTSIDE = "outside the grid"
_AROUND, _POLE = Decimal(360), Decimal(90)


def locate_cell(declared: Geo, text: object) -> str | None:
    """Return the label of the finest cell that holds coordinates, written ``52.51 13.38``.

    A label of a cell is itself; what is no place on the globe is outside the grid.

    >>> city = Geo(lat="lat", lon="lon", sizes=(Decimal("0.05"), Decimal(1)))
    >>> [locate_cell(city, text) for text in ("52.51 13.38", "-33.9 -70", "90 180")]
    ['52.50..52.55 N, 13.35..13.40 E', '33.85..33.90 S, 69.95..70.00 W', '89.95..90.00 N, \
179.95..180.00 W']
    >>> locate_cell(city, "91 13"), locate_cell(city, None)
    ('outside the grid', None)
    """
    parts = str(text).split() if text is not None else []
    if len(parts) != 2:
        return canonicalize_value(text)
    try:
        lat, lon = map(Decimal, parts)
    except InvalidOperation:
        return OUTSIDE
    if not (lat.is_finite() and lon.is_finite() and abs(lat) <= _POLE and abs(lon) <= _AROUND):
        return OUTSIDE
    if declared.hexagons:
        return locate_hexagon(float(lat), float(lon), declared.hexagons[0])
    size = declared.sizes[0]
    row = min(_divide(lat, size), _divide(_POLE, size) - 1)
    return write_cell(row, _wrap(_divide(lon, size), size), size)


def build_geo_hierarchy(declared: Geo, *, other: str | None = None) -> Hierarchy:
    """Return all cells of the declared part of the globe, with the larger ones they lie in."""
    return _build(declared, other)


@lru_cache(maxsize=8)
def _build(declared: Geo, other: str | None) -> Hierarchy:
    if declared.hexagons:
        rows = list_hexagon_rows(declared, MOST_CELLS)
        return build_from_rows(list(rows), other=other, exact=True)
    number = count_cells(declared)
    if number > MOST_CELLS:
        raise HierarchyError(
            f"The grid has {number:,} squares of {declared.sizes[0]}°, and {MOST_CELLS:,} at most "
            "are listed. Declare a smaller area (`south`, `north`, `west`, `east`), or larger "
            "`sizes`."
        )
    return build_from_rows(list(_list_rows(declared)), other=other, exact=True)


def count_cells(declared: Geo) -> int:
    """Return the number of squares of the finest size."""
    rows, columns = _find_ranges(declared)
    return len(rows) * len(columns)


def _find_ranges(declared: Geo) -> tuple[range, range]:
    """Return the rows, and the columns before they wrap, of the finest cells of the area."""
    size, (south, north) = declared.sizes[0], (declared.south, declared.north)
    west, east = declared.west, declared.west + declared.width
    return (
        range(_divide(south, size), -_divide(-north, size)),
        range(_divide(west, size), min(-_divide(-east, size), _divide(west + _AROUND, size))),
    )


def _list_rows(declared: Geo) -> Iterator[tuple[str, ...]]:
    """Yield the labels of each finest cell, level by level, from the south and the west."""
    finest = declared.sizes[0]
    ratios = [int(size / finest) for size in declared.sizes]
    rows, columns = _find_ranges(declared)
    steps = list(zip(declared.sizes, ratios, strict=True))
    easts = [
        [_write_part(_wrap(at, finest) // ratio, size, "EW") for size, ratio in steps]
        for at in columns
    ]
    for row in rows:
        norths = [_write_part(row // ratio, size, "NS") for size, ratio in steps]
        for parts in easts:
            yield (*(f"{n}, {e}" for n, e in zip(norths, parts, strict=True)), ROOT)


def _wrap(column: int, size: Decimal) -> int:
    """Return the column on the globe, from that west of the date line's eastern side on."""
    around = int(_AROUND / size)
    return (column + around // 2) % around - around // 2


def _divide(degrees: Decimal, size: Decimal) -> int:
    """Return the whole multiples of a size below a number of degrees, or equal to it."""
    quotient = degrees / size
    multiple = int(quotient)
    return multiple - 1 if quotient < multiple else multiple


def write_cell(row: int, column: int, size: Decimal) -> str:
    """Return the label of the cell in a row north of 0, and a column east of 0.

    >>> write_cell(-1, 2, Decimal("0.25"))
    '0.00..0.25 S, 0.50..0.75 E'
    """
    return f"{_write_part(row, size, 'NS')}, {_write_part(column, size, 'EW')}"


@lru_cache(maxsize=1 << 16)  # of millions of places, few differ in their row or their column
def _write_part(at: int, size: Decimal, sides: str) -> str:
    """Return the ends of a row or column, without a sign, and the side of 0 that it lies on."""
    low, high = at * size, (at + 1) * size
    digits = max(0, -int(size.normalize().as_tuple().exponent))
    if at < 0:
        low, high = -high, -low
    return f"{low:.{digits}f}..{high:.{digits}f} {sides[at < 0]}"
