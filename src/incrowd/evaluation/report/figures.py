"""Charts as SVG text, for pages that link to nothing: numbers and names in, markup out.

The same input gives the same text, byte by byte. Names may be any text: each is one line,
shortened to its room by an estimate that is rather too wide, and escaped; where it was
shortened, and at every mark, a tooltip says the whole of it. The text is well-formed XML.
A chart scales to the width that its page leaves it.
"""

from __future__ import annotations

import itertools
import math
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

from incrowd.findings import format_percent
from incrowd.release.crowd import Crowd

_WIDTH, _SHOWN = 480, 620  # of a chart in its own units, and on a wide page in pixels
_SIZE = 12  # of letters
_INK, _AXIS, _GRID, _NOTHING = "#333333", "#888888", "#e6e6e6", "#f0f0f0"
_LONGEST_NAME, _LONGEST_NAME_OF_MAP, _LONGEST_NAME_OF_PAIRS = 190, 130, 120
_PAIRS = 400  # the width of pairs of bars
PAIR = ("#b7c9dd", "#0b4f8a")  # before, after
_MOST_NUMBERS = 20  # columns of a heat map up to which each number is written into its square
_BLUES = (
    (247, 251, 255), (222, 235, 247), (198, 219, 239), (158, 202, 225), (107, 174, 214),
    (66, 146, 198), (33, 113, 181), (8, 81, 156), (8, 48, 107),
)  # fmt: skip
_UNIT = {place / 5: f"{place / 5:.1f}" for place in range(6)}
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


@dataclass(frozen=True)
class Series:
    """Bars of one color, one for each group; those that are missing at the end are 0."""

    label: str
    color: str
    values: Sequence[int]


@dataclass(frozen=True)
class Point:
    """A point of a square; ``href`` is where it leads, ``color`` its own where it has one."""

    name: str
    x: float
    y: float
    color: str = ""
    href: str = ""


def draw_grouped_bars(
    groups: Sequence[str], series: Sequence[Series], *, title: str, across: str, up: str
) -> str:
    """Draw bars of counts, side by side in each group."""
    ticks = _make_count_ticks(
        max((max(each_series.values, default=0) for each_series in series), default=0)
    )
    left = 34 + max(_estimate_width(text) for text in ticks.values())
    step = (_WIDTH - left - 8) / max(len(groups), 1)
    longest = max((_estimate_width(name) for name in groups), default=0)
    turned = longest > step - 6
    high, top = 170, 30
    below = 0.71 * longest + 14 if turned else 20
    canvas = _Canvas(_WIDTH, top + high + below + 22)
    for value, text in ticks.items():
        y = top + high * (1 - value / max(ticks))
        canvas.draw_line(left, y, _WIDTH - 8, y, _GRID if value else _AXIS)
        canvas.draw_text(left - 6, y + 4, text, anchor="end")
    bar = 0.8 * step / max(len(series), 1)
    for number, first in enumerate(series):
        for place, (name, value) in enumerate(zip(groups, first.values, strict=False)):
            tall = high * value / max(ticks)
            x = left + step * (place + 0.1) + bar * number
            tooltip = f"{name}: {value:,} {first.label}"
            canvas.draw_rectangle(x, top + high - tall, bar, tall, first.color, tooltip)
    for place in range(0, len(groups), math.ceil(20 / step)):
        x, y = left + step * (place + 0.5), top + high + 15
        if turned:
            canvas.draw_text(x + 4, y - 2, groups[place], anchor="end", turn=-45)
        else:
            canvas.draw_text(x, y, groups[place])
    canvas.draw_text((left + _WIDTH) / 2, canvas.height - 8, across)
    canvas.draw_text(13, top + high / 2, up, turn=-90)
    _draw_legend(canvas, {each_series.label: each_series.color for each_series in series})
    return canvas.to_svg(title, f"Bars: {up} by {across}.", _SHOWN)


def draw_horizontal_bars(
    values: Mapping[str, float], *, color: str, title: str, across: str
) -> str:
    """Draw a bar from 0 to 1 for each name."""
    names = {name: _shorten_name(name, _LONGEST_NAME) for name in values}
    left = 14 + max((_estimate_width(short) for short in names.values()), default=0)
    wide, row, top = _WIDTH - left - 18, 21, 6
    bottom = top + row * len(names)
    canvas = _Canvas(_WIDTH, bottom + 46)
    for value, text in _UNIT.items():
        x = left + wide * value
        canvas.draw_line(x, top, x, bottom, _GRID)
        canvas.draw_text(x, bottom + 16, text)
    for place, (name, short) in enumerate(names.items()):
        y, value = top + row * place, values[name]
        canvas.draw_rectangle(left, y + 3, wide * value, row - 6, color, f"{name}: {value:.3f}")
        canvas.draw_text(left - 6, y + row / 2 + 4, short, anchor="end", full_text=name)
    canvas.draw_line(left, top, left, bottom, _AXIS)
    middle = min(left + wide / 2, _WIDTH - 8 - _estimate_width(across) / 2)
    canvas.draw_text(middle, bottom + 37, across)
    return canvas.to_svg(title, f"A bar for each column: {across}.", _SHOWN)


def draw_paired_bars(
    rows: Mapping[str, tuple[float, float]], *, labels: tuple[str, str], title: str
) -> str:
    """Draw for each name two bars, one above the other: shares of all, before and after."""
    names = {name: _shorten_name(name, _LONGEST_NAME_OF_PAIRS) for name in rows}
    left = 14 + max((_estimate_width(short) for short in names.values()), default=0)
    ticks = _make_share_ticks(max((value for pair in rows.values() for value in pair), default=0.0))
    wide, row, top = _PAIRS - left - 40, 23, 26
    bottom = top + row * len(names)
    canvas = _Canvas(_PAIRS, bottom + 22)
    for value, text in ticks.items():
        x = left + wide * value / max(ticks)
        canvas.draw_line(x, top, x, bottom, _GRID if value else _AXIS)
        canvas.draw_text(x, bottom + 16, text)
    for place, (name, short) in enumerate(names.items()):
        y = top + row * place
        canvas.draw_text(left - 6, y + row / 2 + 4, short, anchor="end", full_text=name)
        for line, (label, color, value) in enumerate(zip(labels, PAIR, rows[name], strict=True)):
            tooltip = f"{name}, {label}: {format_percent(value)}"
            tall = (row - 7) / 2
            canvas.draw_rectangle(
                left, y + 3 + line * tall, wide * value / max(ticks), tall, color, tooltip
            )
    _draw_legend(canvas, dict(zip(labels, PAIR, strict=True)))
    listing = "; ".join(
        f"{name} {format_percent(before)}, {format_percent(after)}"
        for name, (before, after) in rows.items()
    )
    return canvas.to_svg(title, f"Shares of rows, {labels[0]} and {labels[1]}: {listing}.", _PAIRS)


def draw_crowd(crowd: Crowd, *, title: str) -> str:
    """Draw a crowd as little people."""
    wide, high = crowd.size
    canvas = _Canvas(wide + 4, high + 4)
    for x, y in crowd.places:
        canvas.draw_person(x + 2, y + 2, PAIR[1])
    return canvas.to_svg(title, crowd.words, canvas.width)


@dataclass(frozen=True)
class IntervalMark:
    """A share with its interval; ``label`` says of what."""

    label: str
    color: str
    value: float
    low: float
    high: float


def draw_intervals(rows: Mapping[str, Sequence[IntervalMark]], *, title: str, across: str) -> str:
    """Draw for each name, below it, some shares from 0 to 1 with their intervals."""
    left, top = 14, 28
    wide, row = _WIDTH - left - 18, 20 + 9 * max((len(marks) for marks in rows.values()), default=0)
    bottom = top + row * len(rows)
    canvas = _Canvas(_WIDTH, bottom + 46)
    for value, text in _UNIT.items():
        x = left + wide * value
        canvas.draw_line(x, top, x, bottom, _GRID if value else _AXIS)
        canvas.draw_text(x, bottom + 16, text)
    for place, (name, marks) in enumerate(rows.items()):
        y = top + row * place
        canvas.draw_text(
            left + 6, y + 13, _shorten_name(name, wide), anchor="start", full_text=name
        )
        for line, mark in enumerate(marks):
            middle = y + 22 + 9 * line
            tooltip = f"{name}, {mark.label}: {mark.value:.3f} ({mark.low:.3f} to {mark.high:.3f})"
            reach = max(wide * (mark.high - mark.low), 1.0)
            canvas.draw_rectangle(
                left + wide * mark.low, middle - 1.5, reach, 3, mark.color, tooltip
            )
            canvas.draw_dot(left + wide * mark.value, middle, 3.5, mark.color, tooltip)
    _draw_legend(canvas, {mark.label: mark.color for marks in rows.values() for mark in marks})
    canvas.draw_text(left + wide / 2, bottom + 37, across)
    return canvas.to_svg(title, f"Shares with their intervals: {across}.", _SHOWN)


def _draw_legend(canvas: _Canvas, colors: Mapping[str, str]) -> None:
    """Draw what the colors stand for, at the upper right."""
    x = canvas.width - 8.0
    for label, color in reversed(list(colors.items())):
        x -= _estimate_width(label)
        canvas.draw_text(x, 16, label, anchor="start")
        canvas.draw_rectangle(x - 17, 6, 12, 12, color)
        x -= 34


def draw_scatter(
    points: Sequence[Point], *, color: str, title: str, across: str, up: str,
    most: tuple[float, float] | None = None,
) -> str:  # fmt: skip
    """Draw points in a square from 0 to 1, with the line on which both are the same.

    With ``most`` both axes go from 0 to a round number above these, each to its own, and there is
    no such line.
    """
    ticks = (_UNIT, _UNIT) if most is None else (_make_ticks(most[0]), _make_ticks(most[1]))
    left = max(54, 32 + max(_estimate_width(text) for text in ticks[1].values()))
    top, side = 10, 250
    canvas = _Canvas(left + side + 16, top + side + 46)
    wide, high = max(ticks[0]), max(ticks[1])
    for value, text in ticks[0].items():
        x = left + side * value / wide
        canvas.draw_line(x, top, x, top + side, _GRID if value else _AXIS)
        canvas.draw_text(x, top + side + 16, text)
    for value, text in ticks[1].items():
        y = top + side * (1 - value / high)
        canvas.draw_line(left, y, left + side, y, _GRID if value else _AXIS)
        canvas.draw_text(left - 6, y + 4, text, anchor="end")
    if most is None:
        canvas.draw_line(left, top + side, left + side, top, "#bbbbbb")
    for point in points:
        if math.isfinite(point.x) and math.isfinite(point.y):
            x, y = left + side * point.x / wide, top + side * (1 - point.y / high)
            tooltip = f"{point.name}: {point.x:.3f}, {point.y:.3f}"
            canvas.draw_dot(x, y, 4 if point.href else 3, point.color or color, tooltip, point.href)
    canvas.draw_text(left + side / 2, canvas.height - 9, across)
    canvas.draw_text(14, top + side / 2, up, turn=-90)
    return canvas.to_svg(
        title, f"A point for each pair: {across}, {up}.", round(canvas.width * 1.25)
    )


def draw_heat_map(
    names: Sequence[str], values: Mapping[tuple[int, int], float], *, title: str, scale: str
) -> str:
    """Draw a square for each two names, by place; darker from 0 to 1, gray without a value."""
    few = len(names) <= _MOST_NUMBERS
    square, size = (26, _SIZE) if few else (13, 10)
    shorts = [_shorten_name(name, _LONGEST_NAME_OF_MAP, size) for name in names]
    longest = max((_estimate_width(short, size) for short in shorts), default=0)
    left, top, side = longest + 14, 26, square * len(names)
    below = top + side + 0.71 * (longest + size) + 8
    canvas = _Canvas(max(left + side + 8, 210), below + 24)
    canvas.draw_text(left, 16, title, anchor="start", size=13)
    canvas.draw_rectangle(left, top, side, side, _NOTHING)
    for (at, place), value in values.items():
        x, y = left + square * place, top + square * at
        tooltip = f"{names[at]}, {names[place]}: {value:.3f}" if few else ""
        canvas.draw_rectangle(x, y, square, square, _choose_blue(value), tooltip)
        if few:
            text, ink = f"{value:.2f}".removeprefix("0"), "#ffffff" if value > 0.5 else _INK
            canvas.draw_text(x + square / 2, y + square / 2 + 3, text, size=9, ink=ink)
    for place, (name, short) in enumerate(zip(names, shorts, strict=True)):
        middle = square * (place + 0.5)
        canvas.draw_text(left - 6, top + middle + 4, short, anchor="end", size=size, full_text=name)
        x, y = left + middle + 4, top + side + size
        canvas.draw_text(x, y, short, anchor="end", size=size, turn=-45, full_text=name)
    x = canvas.width - 90
    canvas.draw_text(x - 18, below + 12, scale, anchor="end")
    canvas.draw_text(x - 4, below + 12, "0", anchor="end")
    for place in range(20):
        canvas.draw_rectangle(x + 3.5 * place, below + 2, 4, 12, _choose_blue((place + 0.5) / 20))
    canvas.draw_text(x + 76, below + 12, "1", anchor="start")
    return canvas.to_svg(f"{scale}, {title}", "A square for each pair of columns.", canvas.width)


@dataclass
class _Canvas:
    """Marks on a white ground."""

    width: float
    height: float
    parts: list[str] = field(default_factory=list)

    def draw_line(self, x: float, y: float, to_x: float, to_y: float, ink: str) -> None:
        at = _format_attributes({"x1": x, "y1": y, "x2": to_x, "y2": to_y})
        self.parts.append(f'<line {at} stroke="{ink}"/>')

    def draw_rectangle(
        self, x: float, y: float, wide: float, tall: float, ink: str, tooltip: str = ""
    ) -> None:
        at = _format_attributes({"x": x, "y": y, "width": wide, "height": tall})
        self.parts.append(f'<rect {at} fill="{ink}">{_make_tooltip(tooltip)}</rect>')

    def draw_dot(
        self, x: float, y: float, radius: float, ink: str, tooltip: str, href: str = ""
    ) -> None:
        at = f'cx="{_format_number(x)}" cy="{_format_number(y)}" r="{_format_number(radius)}"'
        element = f'<circle {at} fill="{ink}">{_make_tooltip(tooltip)}</circle>'
        if href:
            element = (
                f'<a href="{_escape_text(href)}" aria-label="{_escape_text(tooltip)}">{element}</a>'
            )
        self.parts.append(element)

    def draw_person(self, x: float, y: float, ink: str) -> None:
        """Draw a little person in a room of 20 by 30."""
        at = f"{_format_number(x + 10)} {_format_number(y + 11)}"
        body = f"M{at}c-4.4 0-7 2.8-7 7v9h14v-9c0-4.2-2.6-7-7-7z"
        head = f'<circle cx="{_format_number(x + 10)}" cy="{_format_number(y + 5.5)}" r="4.2"/>'
        self.parts.append(f'<g fill="{ink}">{head}<path d="{body}"/></g>')

    def draw_text(
        self, x: float, y: float, words: str, *, anchor: str = "middle", turn: int = 0,
        size: int = _SIZE, ink: str = _INK, full_text: str = "",
    ) -> None:  # fmt: skip
        """Draw one line of words; ``full_text`` is what they may be short for."""
        more = (
            f' transform="rotate({turn} {_format_number(x)} {_format_number(y)})"' if turn else ""
        )
        more += f' font-size="{size}"' if size != _SIZE else ""
        more += f' fill="{ink}"' if ink != _INK else ""
        tooltip = _make_tooltip(full_text if full_text != words else "")
        at = f'x="{_format_number(x)}" y="{_format_number(y)}" text-anchor="{anchor}"'
        self.parts.append(f"<text {at}{more}>{_escape_text(words)}{tooltip}</text>")

    def to_svg(self, title: str, description: str, display_width: float) -> str:
        """Return the whole, ``display_width`` pixels wide where there is room."""
        wide, tall = _format_number(self.width), _format_number(self.height)
        size = _format_attributes(
            {"width": display_width, "height": display_width * self.height / self.width}
        )
        role = "group" if any(part.startswith("<a ") for part in self.parts) else "img"
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" role="{role}" {size} '
            f'viewBox="0 0 {wide} {tall}" font-family="system-ui, sans-serif" '
            f'font-size="{_SIZE}" fill="{_INK}">'
        )
        about = f"<title>{_escape_text(title)}</title><desc>{_escape_text(description)}</desc>"
        ground = f'<rect width="{wide}" height="{tall}" fill="#ffffff"/>'
        return "\n".join([head, about, ground, *self.parts, "</svg>"])


def _make_tooltip(text: str) -> str:
    return f"<title>{_escape_text(text)}</title>" if text else ""


def _escape_text(text: str) -> str:
    """Return text as one line of XML; what XML cannot say shows as a replacement character."""
    return escape(_NOT_XML.sub("\ufffd", " ".join(text.split())))


def _format_attributes(numbers: dict[str, float]) -> str:
    return " ".join(f'{name}="{_format_number(number)}"' for name, number in numbers.items())


def _format_number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _make_count_ticks(highest: int) -> dict[int, str]:
    """Return round numbers from 0 to one that is not below the highest, at most six."""
    steps = (base * 10**power for power in itertools.count() for base in (1, 2, 5))
    step = next(step for step in steps if 5 * step >= highest)
    top = step * max(math.ceil(highest / step), 1)
    return {value: f"{value:,}" for value in range(0, top + 1, step)}


def _make_share_ticks(highest: float) -> dict[float, str]:
    """Return round shares from 0 to one not below the highest, in percent; at most five."""
    highest = min(max(highest, 0.01), 1.0)
    step = next(
        step for step in (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.25) if 4 * step >= highest - 1e-9
    )
    number = max(math.ceil(highest / step - 1e-9), 1)
    return {place * step: f"{100 * place * step:g} %" for place in range(number + 1)}


def _make_ticks(highest: float) -> dict[float, str]:
    """Return round numbers from 0 to one that is not below the highest, at most six."""
    highest = highest if 0 < highest < math.inf else 1.0
    power = 10.0 ** (math.floor(math.log10(highest)) - 1)
    step = next(
        base * power for base in (1, 2, 5, 10, 20) if 5 * base * power >= highest * (1 - 1e-9)
    )
    number = max(math.ceil(highest / step - 1e-9), 1)
    return {place * step: f"{place * step:.3g}" for place in range(number + 1)}


def _choose_blue(value: float) -> str:
    """Return the color of a number from 0 to 1, between ColorBrewer's nine Blues."""
    place = min(max(value, 0.0), 1.0) * (len(_BLUES) - 1)
    low = min(int(place), len(_BLUES) - 2)
    pairs = zip(_BLUES[low], _BLUES[low + 1], strict=True)
    return "#" + "".join(f"{round(a + (b - a) * (place - low)):02x}" for a, b in pairs)


def _shorten_name(name: str, room: float, size: int = _SIZE) -> str:
    """Return a name on one line, cut where it would be wider than its room."""
    plain = " ".join(name.split())
    if len(plain) <= 400 and _estimate_width(plain, size) <= room:
        return plain
    widths = itertools.accumulate(_estimate_letter_widths(plain[:400]))
    fitting = sum(1 for width in widths if size * width <= room - size)
    return f"{plain[:fitting]}…"


def _estimate_width(text: str, size: int = _SIZE) -> float:
    """Return about how wide a text is in the reader's font, rather too much than too little."""
    return size * sum(_estimate_letter_widths(text))


def _estimate_letter_widths(text: str) -> Iterator[float]:
    """Yield the width of each letter, in units of its size."""
    for letter in text:
        kind = unicodedata.category(letter)
        if kind in ("Mn", "Me", "Cf"):
            yield 0.0
        elif kind == "So" or unicodedata.east_asian_width(letter) in "WF":
            yield 1.25 if kind == "So" else 1.05
        elif letter in "mwMW@%" or letter > "\u0590":
            yield 0.95
        elif letter in "ijlI.,:;|!'()[] ft-":
            yield 0.4
        else:
            yield 0.72 if letter.isupper() else 0.62
