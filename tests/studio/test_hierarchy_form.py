"""Forms of hierarchies: what they say comes back as it was, and cuts nest whatever is clicked."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.spec.build import build_hierarchy
from incrowd.spec.hierarchies import HierarchyChoice, Intervals
from incrowd.spec.model import Column
from incrowd.studio import hierarchy_form
from incrowd.studio.pictures import EDGE, WIDE, draw_ruler
from incrowd.studio.server import Form

DECLARED: list[dict[str, Any]] = [
    {"intervals": {"from": 0, "to": 89, "widths": [5, 10, 30], "open": "upper"}},
    {"intervals": {"from": -1.5, "to": 2, "step": 0.1, "cuts": [[-1, 0, 1], [0]]}},
    {"intervals": {"from": 1, "to": 6}},
    {"mask": {"length": 5}},
    {"mask": {"length": 3, "hide": "left", "alphabet": " ab,;"}},
    {"dates": {"from": "1900-01-01", "to": "2029-12-31"}},
    {
        "dates": {
            "from": "1990-02-01",
            "to": "1991-12-31",
            "levels": ["month"],
            "format": "%d/%m/%Y",
        }
    },
    {"order": {"values": ["low", "3", "true", ">50K"], "runs": [2]}},
    {"flat": {"values": ["<b>", "a, b", "yes"]}},
    {"flat": {}},
    {"countries": {"codes": "names"}},
    {"icd": {"version": 9}},
    {"postcodes": {"country": "NL"}},
    {"postcodes": {"country": "US"}},
    {
        "geo": {
            "lat": "a",
            "lon": "b",
            "sizes": [0.05, 1],
            "south": -20,
            "north": -15,
            "west": 177,
            "east": -178,
        }
    },
    {"geo": {"lat": "a", "lon": "b", "hexagons": [8, 6], "south": 52, "north": 53}},
    {"csv": {"file": "some/where.csv", "delimiter": "|"}},
]


def sent(fields: dict[str, Any]) -> Form:
    """What a browser sends of fields that show these values."""
    pairs = []
    for name, value in fields.items():
        pairs += [(name, item) for item in (value if isinstance(value, list) else [value])]
    return Form(pairs)


@pytest.mark.parametrize("declared", DECLARED, ids=str)
def test_a_form_that_is_sent_as_it_was_changes_nothing(declared: dict[str, Any]) -> None:
    before = HierarchyChoice.model_validate(declared)
    (kind,) = declared
    assert hierarchy_form.get_kind(before) == kind
    form = sent(hierarchy_form.make_form_fields(before.declaration))
    assert HierarchyChoice.model_validate(hierarchy_form.read_declaration(kind, form)) == before


def test_every_kind_of_the_spec_has_words() -> None:
    assert (
        set(hierarchy_form.KINDS) == set(hierarchy_form.ABOUT) == set(HierarchyChoice.model_fields)
    )


def test_what_is_no_number_is_left_to_the_spec_to_refuse() -> None:
    form = Form([("from", "abc"), ("to", ""), ("step", "1"), ("width", "5 "), ("width", "")])
    assert hierarchy_form.read_declaration("intervals", form) == {
        "intervals": {"from": "abc", "widths": [5]}
    }


def cuts(*levels: tuple[int, ...], high: int = 100) -> hierarchy_form.IntervalCuts:
    cut_levels = tuple(tuple(map(Decimal, level)) for level in levels)
    return hierarchy_form.IntervalCuts(Decimal(0), Decimal(high), Decimal(1), cut_levels)


def test_a_cut_moves_in_all_its_levels() -> None:
    got = cuts((18, 40, 65), (18, 65), (65,)).move_cut(Decimal(65), Decimal(67))
    assert got == cuts((18, 40, 67), (18, 67), (67,))
    assert got.move_cut(Decimal(40), Decimal(18)) == cuts((18, 67), (18, 67), (67,))
    assert got.move_cut(Decimal(67), Decimal(900)) == cuts((18, 40, 100), (18, 100), (100,))


def test_cuts_and_levels_come_and_go() -> None:
    got = cuts((20, 40, 60, 80), (40,))
    assert got.add_cut(1) == cuts((20, 40, 60, 80), (40, 80))  # one that the finer level has
    assert got.add_cut(0) == cuts((20, 40, 60, 80, 90), (40,))
    assert cuts((40,), (40,)).add_cut(1) == cuts((40, 70), (40, 70))
    assert got.remove_cut(0, Decimal(40)) == cuts((20, 60, 80))
    assert got.add_level() == got  # one cut has no second
    assert got.remove_level(1).add_level() == cuts((20, 40, 60, 80), (40, 80))
    assert cuts().add_level() == cuts((50,))


STEPS = st.integers(1, 30)
CLICKS = st.sampled_from(["move", "cut", "less", "level", "no level"])


@given(
    st.integers(1, 30), st.sampled_from(["0.1", "1", "5"]),
    st.lists(st.tuples(CLICKS, STEPS, STEPS)),
)  # fmt: skip
def test_whatever_is_clicked_can_be_built(steps: int, step: str, clicks: list[Any]) -> None:
    unit = Decimal(step)
    now = hierarchy_form.IntervalCuts(Decimal(-3), Decimal(-3) + unit * steps, unit, ())
    for what, a, b in clicks:
        at = a % len(now.levels) if now.levels else 0
        match what:
            case "move":
                now = now.move_cut(now.low + a * unit, now.low + b * unit)
            case "cut" if now.levels:
                now = now.add_cut(at)
            case "less" if now.levels:
                now = now.remove_cut(at, now.levels[at][b % len(now.levels[at])])
            case "level":
                now = now.add_level()
            case "no level":
                now = now.remove_level(at)
    base = Intervals.model_validate({"from": now.low, "to": now.high, "step": now.step})
    text = hierarchy_form.declare_cuts(base, now)
    build_hierarchy(Column.model_validate({"role": "quasi", "hierarchy": text}), folder=Path())


def test_widths_become_cuts_and_back() -> None:
    by = Intervals.model_validate({"from": 0, "to": 89, "widths": [1, 10, 30], "open": "upper"})
    cut = Intervals.model_validate(
        hierarchy_form.declare_cuts(by, hierarchy_form.compute_cuts(by))["intervals"]
    )
    assert cut.cuts == (tuple(map(Decimal, range(10, 90, 10))), (Decimal(30), Decimal(60)))
    assert cut.open == "upper"
    back = hierarchy_form.declare_widths(cut, hierarchy_form.compute_widths(cut))
    assert back == {"intervals": {"from": 0, "to": 89, "open": "upper", "widths": [10, 30]}}
    assert hierarchy_form.compute_next_width(by) == 60


def test_the_ruler_has_every_bound_in_its_place() -> None:
    ruler = draw_ruler(Intervals.model_validate({"from": 0, "to": 99, "widths": [1, 10, 50]}))
    fine, tens, halves = ruler.tracks
    assert halves.y < tens.y < fine.y
    assert len(fine.bounds) == 99
    assert len(tens.bounds) == 9
    assert halves.bounds == (EDGE + WIDE / 2,)
    assert [handle.value for handle in tens.handles] == ["10"]
    by = draw_ruler(Intervals.model_validate({"from": 0, "to": 99, "cuts": [[0, 18, 65], [65]]}))
    assert [handle.value for handle in by.tracks[0].handles] == ["18", "65"]
    assert by.tracks[0].handles[1].x == by.tracks[1].handles[0].x
    dense = draw_ruler(Intervals.model_validate({"from": 0, "to": 9999, "widths": [10]})).tracks[0]
    assert dense.dense
    assert not dense.bounds
    assert len(draw_ruler(Intervals.model_validate({"from": 5, "to": 5})).ticks) == 1
