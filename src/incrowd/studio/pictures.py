"""The lattice of schemes as a picture: where each scheme stands, and what it looks like.

**Ruler.** A picture of intervals: a ruler with the bounds of each level, and handles to move them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from incrowd.anonymize.lattice import Node
from incrowd.curate.explore import Exploration, SchemeFigures
from incrowd.findings import format_percent
from incrowd.spec.hierarchies import Intervals
from incrowd.studio.hierarchy_form import MOST_CUTS, format_decimal

WIDE = 720  # units of the picture from one end to the other
TALL = 34  # of one level
EDGE = 28  # left and right of it
_TICKS = 8


@dataclass(frozen=True)
class Handle:
    """What can be dragged: a cut, or the first bound of a level of even widths."""

    at: int
    value: str
    x: float


@dataclass(frozen=True)
class Track:
    """One level: its bounds, those that can be moved, and how it is called.

    A level with too many bounds is ``dense``: they are not drawn one by one.
    """

    level: int
    y: int
    name: str
    bounds: tuple[float, ...]
    handles: tuple[Handle, ...]
    dense: bool


@dataclass(frozen=True)
class Ruler:
    """The tracks, coarse ones on top, and a scale below them."""

    low: str
    high: str
    step: str
    spread: str
    by: str
    tracks: tuple[Track, ...]
    ticks: tuple[tuple[float, str], ...]
    tall: int


def draw_ruler(declared: Intervals) -> Ruler:
    """Draw the ruler of intervals."""
    low, high, step = declared.low, declared.high, declared.step
    end = high + step  # so that the last interval has its place

    def compute_x(value: Decimal) -> float:
        return round(EDGE + float((value - low) / (end - low)) * WIDE, 2)

    by = "cuts" if declared.cuts else "widths"
    tracks = []
    count = len(declared.cuts or declared.widths)
    for at in range(count):
        y = (count - 1 - at) * TALL + 6
        if declared.cuts:
            cuts = declared.cuts[at]
            bounds = tuple(compute_x(cut) for cut in cuts if low < cut <= high)
            handles = tuple(
                Handle(i, format_decimal(cut), compute_x(cut))
                for i, cut in enumerate(cuts)
                if low < cut <= high
            )
            name, dense = f"{len(bounds) + 1} intervals", len(cuts) > MOST_CUTS
        else:
            width = declared.widths[at]
            every = int((high - low) // width)
            dense = every > 2 * MOST_CUTS
            bounds = () if dense else tuple(compute_x(low + width * i) for i in range(1, every + 1))
            first = low + width
            handles = (Handle(0, format_decimal(first), compute_x(min(first, end))),)
            name = f"width {format_decimal(width)}"
        tracks.append(Track(at + 1, y, name, bounds, () if dense and by == "cuts" else handles,
                            dense))  # fmt: skip
    ticks = _choose_ticks(low, high, step)
    return Ruler(
        format_decimal(low),
        format_decimal(high),
        format_decimal(step),
        format_decimal(max(high - low, step)),
        by,
        tuple(tracks),
        tuple((compute_x(tick), format_decimal(tick)) for tick in ticks),
        count * TALL + 34,
    )


def _choose_ticks(low: Decimal, high: Decimal, step: Decimal) -> list[Decimal]:
    """Return round numbers along the ruler, with its ends."""
    spread = high - low
    if spread <= 0:
        return [low]
    unit = Decimal(10) ** (spread / _TICKS).adjusted()
    wide = next(unit * by for by in (1, 2, 5, 10) if unit * by * _TICKS >= spread)
    first = (low / wide).to_integral_value() * wide
    inner = [first + wide * at for at in range(_TICKS + 2)]
    room = spread / 20
    return [
        low,
        *(tick for tick in inner if low + room < tick < high - room),
        max(high, low + step),
    ]


MOST = 400  # schemes that are drawn
_MOST_LINES = 600
_SHADES = 5
_WIDE, _ROW, _EDGE = 960, 46, 26


@dataclass(frozen=True)
class SchemeDot:
    """A scheme in the picture; ``shade`` says how little it loses among those that hold, from 0."""

    scheme: SchemeFigures
    name: str
    x: float
    y: float
    shade: int
    words: str


@dataclass(frozen=True)
class LatticePicture:
    """The schemes by how many levels they climb: the finest at the bottom.

    ``lines`` join schemes one level apart, all of them where they are few, else those of the one
    that is looked at.
    """

    dots: tuple[SchemeDot, ...]
    lines: tuple[tuple[float, float, float, float], ...]
    rows: tuple[tuple[float, int], ...]
    high: int
    radius: float
    fitting: int

    @property
    def wide(self) -> int:
        """How wide it is."""
        return _WIDE


def format_levels(levels: Node) -> str:
    """Return levels as an address has them."""
    return ".".join(map(str, levels))


def parse_levels(name: str) -> Node:
    """Return levels from an address; empty if they are none."""
    parts = name.split(".") if name else []
    return tuple(map(int, parts)) if all(part.isdecimal() for part in parts) else ()


def select_schemes(
    exploration: Exploration, wanted_levels: Mapping[int, int]
) -> list[SchemeFigures]:
    """Return the schemes that have the wanted levels of columns, the best first."""
    return [
        scheme for scheme in exploration.schemes
        if all(scheme.levels[at] == level for at, level in wanted_levels.items())
    ]  # fmt: skip


def _choose_drawn_schemes(schemes: Sequence[SchemeFigures], looked_at: Node) -> list[SchemeFigures]:
    """Choose the schemes that are drawn: mostly those that hold, the best first."""
    good = [scheme for scheme in schemes if scheme.holds]
    bad = sorted(
        (scheme for scheme in schemes if not scheme.holds), key=lambda scheme: scheme.suppressed
    )
    room = max(MOST - len(bad), MOST * 3 // 4)
    drawn_schemes = good[:room]
    drawn_schemes += bad[: MOST - len(drawn_schemes)]
    if not any(scheme.levels == looked_at for scheme in drawn_schemes):
        drawn_schemes += [scheme for scheme in schemes if scheme.levels == looked_at]
    return drawn_schemes


def draw_lattice(
    exploration: Exploration, schemes: Sequence[SchemeFigures], looked_at: Node
) -> LatticePicture:
    """Draw some schemes, with the selected one among them."""
    drawn_schemes = _choose_drawn_schemes(schemes, looked_at)
    by_height: dict[int, list[SchemeFigures]] = {}
    for scheme in drawn_schemes:
        by_height.setdefault(sum(scheme.levels), []).append(scheme)
    heights = sorted(by_height, reverse=True)
    widest = max((len(row) for row in by_height.values()), default=1)
    radius = max(min((_WIDE - 2 * _EDGE) / max(widest, 1) / 2.6, 9.0), 3.0)
    ranked = [scheme.levels for scheme in exploration.schemes if scheme.holds]
    shade = {levels: at * _SHADES // max(len(ranked), 1) for at, levels in enumerate(ranked)}
    dots, rows = [], []
    for at, height in enumerate(heights):
        y = _EDGE + at * _ROW
        rows.append((float(y), height))
        row = sorted(by_height[height], key=lambda scheme: scheme.levels)
        step = (_WIDE - 2 * _EDGE) / (len(row) + 1)
        for place, scheme in enumerate(row, 1):
            dots.append(SchemeDot(
                scheme, format_levels(scheme.levels), round(_EDGE + place * step, 1), float(y),
                shade.get(scheme.levels, 0), describe_scheme(exploration, scheme),
            ))  # fmt: skip
    high = 2 * _EDGE + max(len(heights) - 1, 0) * _ROW
    lines = _draw_lines(dots, looked_at)
    return LatticePicture(tuple(dots), lines, tuple(rows), high, round(radius, 1), len(schemes))


def _draw_lines(
    dots: Sequence[SchemeDot], looked_at: Node
) -> tuple[tuple[float, float, float, float], ...]:
    at = {dot.scheme.levels: dot for dot in dots}
    pairs = [
        (dot, at[above])
        for dot in dots
        for place in range(len(dot.scheme.levels))
        if (above := _raise_level(dot.scheme.levels, place)) in at
    ]
    if len(pairs) > _MOST_LINES:
        pairs = [
            pair for pair in pairs if looked_at in (pair[0].scheme.levels, pair[1].scheme.levels)
        ]
    return tuple((first.x, first.y, other.x, other.y) for first, other in pairs)


def _raise_level(levels: Node, place: int) -> Node:
    return (*levels[:place], levels[place] + 1, *levels[place + 1 :])


def describe_scheme(exploration: Exploration, scheme: SchemeFigures) -> str:
    """Describe a scheme in one line: what each column shows, and its figures."""
    holds = "allowed" if scheme.holds else "suppresses too many rows"
    share = format_percent(scheme.suppressed / max(exploration.rows, 1))
    levels = "; ".join(
        f"{column.name} {column.words[level]}"
        for column, level in zip(exploration.columns, scheme.levels, strict=True)
    )
    return f"{levels}: {holds}, loss {scheme.loss:.3g}, {share} of rows suppressed"
