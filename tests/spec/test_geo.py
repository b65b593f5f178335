"""The public grid: what a cell is, how cells nest, where the globe ends."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.codes.label_form import find_level_form
from incrowd.measure.labels import find_ambiguous_labels
from incrowd.spec.geo import build_geo_hierarchy, count_cells, locate_cell
from incrowd.spec.hierarchies import Geo


def grid(*sizes: str, **sides: int | str) -> Geo:
    decimals = tuple(map(Decimal, sizes))
    edges: Any = {name: Decimal(side) for name, side in sides.items()}
    return Geo(lat="lat", lon="lon", sizes=decimals, **edges)


WORLD = grid("1", "5", "15")
DEGREES = st.decimals(-90, 90, places=5)


@given(lat=DEGREES, lon=st.decimals(-180, 180, places=5))
def test_every_place_on_the_globe_has_a_listed_square_at_every_level(
    lat: Decimal, lon: Decimal
) -> None:
    hierarchy = build_geo_hierarchy(WORLD)
    label = locate_cell(WORLD, f"{lat} {lon}")
    (code,) = hierarchy.encode([label]).tolist()
    assert code < len(hierarchy.values)
    for level in range(3):
        written = hierarchy.labels[level][hierarchy.groups[level][code]]
        assert written is not None
        (south, north), (west, east) = map(read_side, written.split(", "))
        assert south <= lat < north or (lat == north == 90)
        assert west <= lon < east or (lon == 180 and west == -180)


def read_side(part: str) -> tuple[Decimal, Decimal]:
    """Return the ends of a side, as signed degrees."""
    ends, side = part.split(" ")
    low, high = map(Decimal, ends.split(".."))
    return (low, high) if side in "NE" else (-high, -low)


def test_the_world_has_each_square_once() -> None:
    hierarchy = build_geo_hierarchy(WORLD)
    assert hierarchy.size == 180 * 360 == count_cells(WORLD)
    assert [len({row[at] for row in hierarchy.list_rows()}) for at in range(4)] == [
        64800, 36 * 72, 12 * 24, 1,
    ]  # fmt: skip
    assert not find_ambiguous_labels(hierarchy)
    forms = [find_level_form(hierarchy, level) for level in range(4)]
    assert forms == ["squares", "squares", "squares", "nothing"]


def test_an_area_may_cross_the_date_line() -> None:
    fiji = grid("1", "5", south=-20, north=-15, west=177, east=-178)
    rows = build_geo_hierarchy(fiji).list_rows()
    easts = dict.fromkeys(row[0].split(", ")[1] for row in rows)
    assert list(easts) == [
        "177..178 E", "178..179 E", "179..180 E", "179..180 W", "178..179 W",
    ]  # fmt: skip
    assert locate_cell(fiji, "-17 180") == locate_cell(fiji, "-17 -180") == "16..17 S, 179..180 W"
    assert locate_cell(fiji, "-17 181") == "16..17 S, 178..179 W"


def test_edges_belong_to_the_north_and_the_east() -> None:
    fine = grid("0.05", "0.25", south=0, north=1, west=0, east=1)
    assert locate_cell(fine, "0.05 0.10") == "0.05..0.10 N, 0.10..0.15 E"
    assert locate_cell(fine, "-0.05 -0.10") == "0.00..0.05 S, 0.05..0.10 W"
    assert locate_cell(fine, "0.1 0.15000000000000002") == "0.10..0.15 N, 0.15..0.20 E"
    assert locate_cell(fine, "0 -0.0") == "0.00..0.05 N, 0.00..0.05 E"


def test_an_area_lists_the_squares_that_it_touches_and_no_others() -> None:
    part = grid("0.25", south="0.3", north="0.5", west="-0.3", east="0.1")
    rows = build_geo_hierarchy(part).list_rows()
    assert [row[0] for row in rows] == [
        "0.25..0.50 N, 0.25..0.50 W", "0.25..0.50 N, 0.00..0.25 W", "0.25..0.50 N, 0.00..0.25 E",
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["nan 1", "1 inf", "91 1", "1 361", "x y", "1e400 1"])
def test_what_is_no_place_is_outside(text: str) -> None:
    assert locate_cell(WORLD, text) == "outside the grid"


def test_a_label_is_itself() -> None:
    label = "52..53 N, 13..14 E"
    assert locate_cell(WORLD, label) == label
    assert locate_cell(WORLD, None) is None
