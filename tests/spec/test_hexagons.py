"""Cells of H3: every place of an area has a listed one, and its levels are those of the index."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import h3
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.codes.hierarchy import HierarchyError
from incrowd.codes.label_form import find_level_form, read_resolution
from incrowd.codes.level_words import describe_levels
from incrowd.spec.geo import build_geo_hierarchy, locate_cell
from incrowd.spec.hexagons import list_hexagon_rows
from incrowd.spec.hierarchies import Geo


def hexagons(*resolutions: int, **sides: str) -> Geo:
    edges: dict[str, Any] = {name: Decimal(side) for name, side in sides.items()}
    return Geo(lat="lat", lon="lon", hexagons=resolutions, **edges)


AREAS = {
    "city": hexagons(8, 6, 4, south="52.3", north="52.7", west="13", east="13.8"),
    "date line": hexagons(5, 3, 0, south="-20", north="-15", west="177", east="-178"),
    "north pole": hexagons(4, 2, south="86", north="90", west="10", east="50"),
    "south pole": hexagons(4, 3, south="-90", north="-87"),
    "line": hexagons(6, 5, south="10", north="10.0001", west="0", east="40"),
    "point": hexagons(3, 1, south="58.39", north="58.4", west="11", east="11.01"),  # in a pentagon
    "most of the globe": hexagons(2, 1, south="-89", north="89", west="-179", east="-180"),
    "globe": hexagons(2, 0),
}
PART = st.floats(0, 1)


@pytest.mark.parametrize("area", AREAS)
@given(up=PART, along=PART)
def test_every_place_of_an_area_has_a_listed_cell(area: str, up: float, along: float) -> None:
    declared = AREAS[area]
    hierarchy = build_geo_hierarchy(declared)
    lat = float(declared.south) + up * float(declared.north - declared.south)
    lon = float(declared.west) + along * float(declared.width)
    lon = (lon + 180) % 360 - 180
    label = locate_cell(declared, f"{lat!r} {lon!r}")
    assert label == h3.latlng_to_cell(lat, lon, declared.hexagons[0])
    (code,) = hierarchy.encode([label]).tolist()
    assert code < len(hierarchy.values)


@pytest.mark.parametrize("area", AREAS)
def test_levels_are_the_parents_of_the_index(area: str) -> None:
    declared = AREAS[area]
    rows = build_geo_hierarchy(declared).list_rows()
    cells = [row[0] for row in rows]
    assert cells == sorted(set(cells))
    for cell, *larger, root in rows:
        assert larger == [h3.cell_to_parent(cell, at) for at in declared.hexagons[1:]]
        assert root == "*"


def test_the_globe_has_each_cell_once() -> None:
    assert build_geo_hierarchy(AREAS["globe"]).size == h3.get_num_cells(2)


def test_an_area_lists_no_cell_that_lies_far_from_it() -> None:
    rows = build_geo_hierarchy(AREAS["city"]).list_rows()
    edge = h3.average_hexagon_edge_length(8, unit="km")
    for cell, *_ in rows:
        lat, lon = h3.cell_to_latlng(cell)
        nearest = min(max(lat, 52.3), 52.7), min(max(lon, 13), 13.8)
        assert h3.great_circle_distance((lat, lon), nearest, unit="km") < 2 * edge
    inside = [row for row in rows if 52.3 < h3.cell_to_latlng(row[0])[0] < 52.7]
    assert len(inside) > 0.9 * len(rows)


def test_the_limit_is_one_of_cells() -> None:
    number = len(list(list_hexagon_rows(AREAS["globe"], 5882)))
    assert number == 5882
    with pytest.raises(HierarchyError, match="about 5,882 hexagons of resolution 2, and 5,881 at"):
        list_hexagon_rows(AREAS["globe"], 5881)
    with pytest.raises(HierarchyError, match="about 569,707,381,193,162 hexagons of resolution 15"):
        build_geo_hierarchy(hexagons(15, 3))


def test_longitudes_wrap_and_what_is_no_place_is_outside() -> None:
    fiji = AREAS["date line"]
    assert locate_cell(fiji, "-17 180") == locate_cell(fiji, "-17 -180")
    assert locate_cell(fiji, "-17 182.5") == locate_cell(fiji, "-17 -177.5")
    for text in ("nan 1", "1 inf", "91 1", "1 361", "x y"):
        assert locate_cell(fiji, text) == "outside the grid"
    assert locate_cell(fiji, "859b5923fffffff") == "859b5923fffffff"
    assert locate_cell(fiji, None) is None


def test_forms_and_words_follow_from_the_labels() -> None:
    hierarchy = build_geo_hierarchy(AREAS["city"])
    forms = [find_level_form(hierarchy, level) for level in range(hierarchy.height)]
    assert forms == ["hexagons", "hexagons", "hexagons", "nothing"]
    words = describe_levels(hierarchy)
    for resolution, text in zip((8, 6, 4), words, strict=False):
        assert text.startswith(f"H3 hexagons of resolution {resolution} (such as 8{resolution}")


@pytest.mark.parametrize("resolution", range(16))
def test_the_resolution_of_an_index_is_read_as_h3_reads_it(resolution: int) -> None:
    for lat, lon in ((52.5, 13.4), (-33.9, -70.6), (90.0, 0.0), (0.0, 180.0)):
        assert read_resolution(h3.latlng_to_cell(lat, lon, resolution)) == resolution


PENTAGONS = {h3.get_base_cell_number(cell) for cell in h3.get_pentagons(0)}


@given(
    st.integers(0, 15), st.integers(0, 127),
    st.lists(st.integers(0, 6), min_size=15, max_size=15), st.booleans(), st.integers(0, 14),
)  # fmt: skip
def test_an_index_is_one_where_h3_says_so(
    resolution: int, base: int, digits: list[int], change: bool, at: int
) -> None:
    used = [*digits[:resolution], *[7] * (15 - resolution)]
    if change:
        used[at] = 7 - used[at]
    index = 1 << 59 | resolution << 52 | base << 45
    index |= sum(digit << 3 * (14 - place) for place, digit in enumerate(used))
    label = f"{index:x}"
    if next((digit for digit in used[:resolution] if digit), 0) == 1 and base in PENTAGONS:
        assert not h3.is_valid_cell(label)  # a pentagon lacks this part; the form need not see it
    else:
        assert (read_resolution(label) == resolution) == h3.is_valid_cell(label)


@pytest.mark.parametrize("label", ["", "881F1D4893FFFFF", "081f1d4893fffff", "881f1d4893ffff", "8"])
def test_other_texts_are_no_index(label: str) -> None:
    assert read_resolution(label) is None
