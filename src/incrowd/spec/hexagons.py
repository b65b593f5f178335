"""Places by their coordinates: cells of H3, a public grid of hexagons, each with an index.

The index of a cell tells the index of the larger one that it belongs to, so that levels nest
exactly. Outlines do not: the edges of a larger hexagon cut through some of its parts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType

from incrowd.codes.hierarchy import ROOT, HierarchyError
from incrowd.spec.hierarchies import Geo


def require_h3() -> ModuleType:
    """Return the library of the grid; refuse if it is not installed."""
    try:
        import h3
    except ImportError as error:
        raise HierarchyError(
            "`hexagons` need the extra `geo`. Install it: pip install 'incrowd[geo]'."
        ) from error
    library: ModuleType = h3
    return library


def locate_hexagon(lat: float, lon: float, resolution: int) -> str:
    """Return the index of the cell that holds a place."""
    index: str = require_h3().latlng_to_cell(lat, lon, resolution)
    return index


def list_hexagon_rows(declared: Geo, most: int) -> Iterator[tuple[str, ...]]:
    """Return the cells of an area in the order of their indexes, with the larger ones of each.

    They are all cells that the area touches, and may be some beside it. Raises
    :class:`HierarchyError` if they are more than ``most``.
    """
    library, (finest, *larger) = require_h3(), declared.hexagons
    area = _Area(
        float(declared.south), float(declared.north), float(declared.west), float(declared.width),
        library,
    )  # fmt: skip
    number = area.estimate_cells(finest)
    # Cells of one resolution differ in size, but none is twice as large as the average.
    cells = area.find_cells(finest, most) if number <= 2 * most else None
    if cells is None or len(cells) > most:
        number = max(number, len(cells or ()))
        raise HierarchyError(
            f"The area has about {number:,} hexagons of resolution {finest}, and {most:,} at most "
            "are listed. Declare a smaller area (`south`, `north`, `west`, `east`), or lower "
            "resolutions in `hexagons`."
        )
    return (
        (cell, *(library.cell_to_parent(cell, resolution) for resolution in larger), ROOT)
        for cell in sorted(cells)
    )


@dataclass(frozen=True)
class _Area:
    """A part of the globe in degrees; ``width`` goes from the west to the east."""

    south: float
    north: float
    west: float
    width: float
    library: ModuleType

    def estimate_cells(self, resolution: int) -> int:
        """Return the share of the area in all cells on the globe."""
        south, north = (math.sin(math.radians(lat)) for lat in (self.south, self.north))
        cells: int = self.library.get_num_cells(resolution)
        return math.ceil((north - south) / 2 * self.width / 360 * cells)

    def find_cells(self, resolution: int, most: int) -> set[str]:
        """Return the cells that touch the area; some of them, if they are more than ``most``.

        From the cell of the southwestern corner, neighbors that touch the area are followed. Every
        cell with a place in the area is found: a path from the corner to that place, within the
        area, leads from neighbor to neighbor through cells that touch it.
        """
        first = locate_hexagon(self.south, self.west, resolution)
        cells, met, queue = {first}, {first}, [first]
        while queue and len(cells) <= most:
            for cell in self.library.grid_disk(queue.pop(), 1):
                if cell not in met:
                    met.add(cell)
                    if self.may_touch(cell):
                        cells.add(cell)
                        queue.append(cell)
        return cells

    def may_touch(self, cell: str) -> bool:
        """Return whether the circle around a cell may touch the area; true wherever the cell does.

        The circle goes through the corner that is furthest from the center. Its latitudes end a
        radius away, and, unless it holds a pole, its longitudes where sin(difference) is
        sin(radius) / cos(latitude). The area is tested against both ranges.
        """
        lat, lon = center = self.library.cell_to_latlng(cell)
        corners = self.library.cell_to_boundary(cell)
        distances = (self.library.great_circle_distance(center, x, unit="rads") for x in corners)
        radius = max(distances) * 1.001  # more than rounding moves a place
        reach = math.degrees(radius)
        if not self.south - reach <= lat <= self.north + reach:
            return False
        if abs(lat) + reach >= 90:
            return True
        reach = math.degrees(math.asin(min(1.0, math.sin(radius) / math.cos(math.radians(lat)))))
        beyond_west: float = (lon - self.west + reach) % 360
        return beyond_west <= self.width + 2 * reach
