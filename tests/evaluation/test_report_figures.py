"""Charts: exact marks, whatever the names are, and nothing but known elements of SVG."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.evaluation.report.figures import (
    Point,
    Series,
    draw_grouped_bars,
    draw_heat_map,
    draw_horizontal_bars,
    draw_scatter,
)

KNOWN = {"svg", "title", "desc", "rect", "line", "a", "circle", "text"}
HOSTILE = [
    "</title></svg><script>alert(1)</script>",
    '"><img src=x onerror="alert(1)">',
    "a\nb\x00\x1b[2J\ud800\ufffe",
    "$x^2$",
    "地域" * 90,
    "\u202eدخل الأسرة",
    "W" * 10_000,
    "&amp;<!--]]>",
    "",
]


def bars(name: str) -> str:
    several = [Series("before", "#b7c9dd", [1, 20]), Series(name, "#0b4f8a", [3])]
    return draw_grouped_bars([name, "b"], several, title=name, across="size", up="rows")


def columns(name: str) -> str:
    return draw_horizontal_bars(
        {name: 0.25, f"{name}2": 1.0}, color="#2a9d8f", title=name, across="detail"
    )


def points(name: str) -> str:
    several = [Point(name, 0.0, 1.0), Point("b", 0.5, 0.25)]
    return draw_scatter(several, color="#0b4f8a", title=name, across="before", up="after")


def squares(name: str) -> str:
    values = {(0, 1): 0.0, (1, 0): 0.75}
    return draw_heat_map([name, f"{name}2"], values, title=name, scale="V")


CHARTS = [bars, columns, points, squares]


def parsed(text: str) -> ElementTree.Element:
    result = ElementTree.fromstring(text)
    assert {
        item.tag.removeprefix("{http://www.w3.org/2000/svg}") for item in result.iter()
    } <= KNOWN
    return result


def elements(text: str, tag: str) -> list[ElementTree.Element]:
    return list(parsed(text).iter(f"{{http://www.w3.org/2000/svg}}{tag}"))


def marks(text: str, tag: str, color: str) -> list[dict[str, float]]:
    return [
        {key: float(value) for key, value in item.attrib.items() if key != "fill"}
        for item in elements(text, tag)
        if item.get("fill") == color
    ]


def words(text: str) -> list[str]:
    return [item.text or "" for item in elements(text, "text")]


@pytest.mark.parametrize("chart", CHARTS)
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_text(chart: Callable[[str], str], name: str) -> None:
    figure = chart(name)
    parsed(figure).iter()
    assert "<script" not in figure
    assert "<img" not in figure
    figure.encode()
    assert figure == chart(name)
    assert all("\n" not in text for text in words(figure))


@given(st.sampled_from(CHARTS), st.text(alphabet=st.characters()))
def test_any_name_makes_well_formed_xml(chart: Callable[[str], str], name: str) -> None:
    parsed(chart(name))


@pytest.mark.parametrize("chart", CHARTS)
def test_a_chart_says_what_it_is_and_scales(chart: Callable[[str], str]) -> None:
    figure = parsed(chart("income & more"))
    assert figure.get("role") == "img"
    assert "income & more" in (figure[0].text or "")
    assert figure[1].text
    _, _, wide, tall = map(float, (figure.get("viewBox") or "").split())
    size = float(figure.get("width") or 0), float(figure.get("height") or 0)
    assert size[0] / size[1] == pytest.approx(wide / tall, rel=0.01)
    for item in figure.iter():
        x, y = float(item.get("x") or 0), float(item.get("y") or 0)
        assert 0 <= x <= x + float(item.get("width", 0)) * (item is not figure) <= wide
        assert 0 <= y <= y + float(item.get("height", 0)) * (item is not figure) <= tall


def test_bars_stand_on_the_axis_and_are_as_high_as_their_counts() -> None:
    before, after = Series("before", "#aaaaaa", [0, 250, 1000]), Series("after", "#0b4f8a", [500])
    figure = draw_grouped_bars(
        ["1", "2-3", "4-7"], [before, after], title="", across="size", up="rows"
    )
    old = marks(figure, "rect", "#aaaaaa")[:3]  # the last is the legend's
    new = marks(figure, "rect", "#0b4f8a")[:1]
    highest = old[2]["height"]
    assert [item["height"] for item in old] == pytest.approx([0, highest / 4, highest], abs=0.1)
    assert new[0]["height"] == pytest.approx(highest / 2, abs=0.1)
    bottoms = {round(item["y"] + item["height"], 1) for item in old + new}
    assert len(bottoms) == 1
    assert new[0]["x"] == pytest.approx(old[0]["x"] + old[0]["width"], abs=0.11)
    assert [text for text in words(figure) if text[0].isdigit()] == [
        "0", "200", "400", "600", "800", "1,000", "1", "2-3", "4-7",
    ]  # fmt: skip
    assert {"before", "after", "size", "rows"} <= set(words(figure))


@pytest.mark.parametrize("highest", [0, 1, 2, 5, 6, 7, 99, 101, 12_345, 10**9])
def test_ticks_are_round_and_reach_the_highest(highest: int) -> None:
    series = [Series("", "#aaaaaa", [highest])]
    texts = words(draw_grouped_bars([""], series, title="", across="", up=""))
    ticks = [int(text.replace(",", "")) for text in texts if text]
    steps = {later - earlier for earlier, later in itertools.pairwise(ticks)}
    assert ticks[0] == 0
    assert ticks[-1] >= highest
    assert 2 <= len(ticks) <= 6
    assert len(steps) == 1
    assert str(steps.pop()).rstrip("0") in ("1", "2", "5")


def test_many_groups_leave_room_between_their_labels() -> None:
    groups = [f"{2**place:,}-{2 ** (place + 1) - 1:,}" for place in range(34)]
    figure = draw_grouped_bars(
        groups, [Series("n", "#aaaaaa", [1] * 34)], title="", across="size", up="rows"
    )
    turned = [item for item in elements(figure, "text") if "-45" in item.get("transform", "")]
    places = [float(item.get("x") or 0) for item in turned]
    assert min(b - a for a, b in itertools.pairwise(places)) >= 20
    assert turned[0].text == groups[0]


def test_a_bar_of_a_column_is_as_long_as_its_share() -> None:
    figure = draw_horizontal_bars(
        {"a": 1.0, "b": 0.25, "c": 0.0}, color="#2a9d8f", title="", across="detail"
    )
    result = marks(figure, "rect", "#2a9d8f")
    full_width = result[0]["width"]
    assert [item["width"] for item in result] == pytest.approx(
        [full_width, full_width / 4, 0], abs=0.1
    )
    assert [item["y"] for item in result] == sorted(item["y"] for item in result)  # in their order
    assert [text for text in words(figure) if text in "abc"] == ["a", "b", "c"]
    assert words(figure)[:6] == ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]


def test_points_lie_where_their_numbers_are() -> None:
    several = [
        Point("a", 0, 0),
        Point("b", 1, 1),
        Point("c", 0.5, 0.2),
        Point("d", float("nan"), 0),
    ]
    figure = draw_scatter(several, color="#0b4f8a", title="", across="before", up="after")
    low, high, other = marks(figure, "circle", "#0b4f8a")
    side = high["cx"] - low["cx"]
    assert low["cy"] - high["cy"] == side > 0
    assert other["cx"] == pytest.approx(low["cx"] + side / 2)
    assert other["cy"] == pytest.approx(low["cy"] - side / 5)


def test_a_heat_map_writes_numbers_and_leaves_what_is_unknown_grey() -> None:
    values = {(0, 1): 0.0, (1, 0): 0.5, (2, 0): 1.0}
    figure = draw_heat_map(["a", "b", "c"], values, title="in the table", scale="V")
    gray, *others = [item for item in elements(figure, "rect") if item.get("fill") != "#ffffff"]
    assert gray.get("fill") == "#f0f0f0"
    # the ends and the middle of Blues, as Matplotlib has them
    assert [item.get("fill") for item in others[:3]] == ["#f7fbff", "#6baed6", "#08306b"]
    assert [item.text for item in elements(figure, "text") if item.get("font-size") == "9"] == [
        ".00", ".50", "1.00",
    ]  # fmt: skip
    places = [(float(item.get("y") or 0), float(item.get("x") or 0)) for item in others[:3]]
    (top, right), (middle, left), (bottom, _) = places
    assert top < middle < bottom
    assert left < right
    assert words(figure).count("c") == 2
    many = [f"c{number}" for number in range(21)]
    assert ".50" not in words(draw_heat_map(many, {(0, 1): 0.5}, title="", scale="V"))


def test_a_long_name_is_cut_and_told_in_full() -> None:
    name = "the age of a person on the day of the first interview, in years"
    figure = columns(name)
    cut = next(text for text in words(figure) if text.endswith("…"))
    assert name.startswith(cut[:-1])
    assert 12 < len(cut) < 40
    assert name in [item.text for item in elements(figure, "title")]


def test_nothing_to_show_is_still_a_chart() -> None:
    parsed(draw_grouped_bars([], [], title="", across="", up=""))
    parsed(draw_horizontal_bars({}, color="#2a9d8f", title="", across=""))
    parsed(draw_scatter([], color="#0b4f8a", title="", across="", up=""))
    parsed(draw_heat_map([], {}, title="", scale=""))


def test_a_scatter_with_its_own_ranges_has_links_and_no_diagonal() -> None:
    several = [
        Point("first", 0.1, 30.0, href="?k=5&epsilon=2"), Point("<last>", 0.03, 7.5, "#c2571a"),
    ]  # fmt: skip
    figure = draw_scatter(
        several, color="#0b4f8a", title="t", across="loss", up="risk", most=(0.1, 30.0)
    )
    root = parsed(figure)
    assert root.get("role") == "group"
    links = [element for element in root.iter() if element.tag.endswith("}a")]
    assert [link.get("href") for link in links] == ["?k=5&epsilon=2"]
    assert [link.get("aria-label") for link in links] == ["first: 0.100, 30.000"]
    dots = [element for element in root.iter() if element.tag.endswith("circle")]
    assert {dot.get("fill") for dot in dots} == {"#0b4f8a", "#c2571a"}
    assert "#bbbbbb" not in figure
    texts = [element.text for element in root.iter() if element.tag.endswith("text")]
    assert {"0.1", "30", "0"} <= set(texts)
    assert 'role="img"' in draw_scatter(several[1:], color="#0b4f8a", title="", across="", up="")


@pytest.mark.parametrize("highest", [1e-9, 0.0301, 0.2, 1.0, 1.0001, 7.3, 99.0, 100.0, 12345.0])
def test_ticks_of_any_range_are_few_and_round(highest: float) -> None:
    point = [Point("", highest, highest)]
    root = parsed(
        draw_scatter(point, color="#0b4f8a", title="", across="", up="", most=(highest, highest))
    )
    lines = [element for element in root.iter() if element.tag.endswith("line")]
    assert 4 <= len(lines) <= 14
    (dot,) = (element for element in root.iter() if element.tag.endswith("circle"))
    assert float(dot.get("cy") or 0) >= 9.9
