"""A picture of intervals: a ruler with the bounds of each level, and handles to move them."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from incrowd.spec.hierarchies import Intervals
from incrowd.studio.ladder import MOST_CUTS, shown

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


def ruler(declared: Intervals) -> Ruler:
    """The picture of intervals."""
    low, high, step = declared.low, declared.high, declared.step
    end = high + step  # so that the last interval has its place

    def x(value: Decimal) -> float:
        return round(EDGE + float((value - low) / (end - low)) * WIDE, 2)

    by = "cuts" if declared.cuts else "widths"
    tracks = []
    count = len(declared.cuts or declared.widths)
    for at in range(count):
        y = (count - 1 - at) * TALL + 6
        if declared.cuts:
            cuts = declared.cuts[at]
            bounds = tuple(x(cut) for cut in cuts if low < cut <= high)
            handles = tuple(Handle(i, shown(cut), x(cut)) for i, cut in enumerate(cuts)
                            if low < cut <= high)  # fmt: skip
            name, dense = f"{len(bounds) + 1} intervals", len(cuts) > MOST_CUTS
        else:
            width = declared.widths[at]
            every = int((high - low) // width)
            dense = every > 2 * MOST_CUTS
            bounds = () if dense else tuple(x(low + width * i) for i in range(1, every + 1))
            first = low + width
            handles = (Handle(0, shown(first), x(min(first, end))),)
            name = f"width {shown(width)}"
        tracks.append(Track(at + 1, y, name, bounds, () if dense and by == "cuts" else handles,
                            dense))  # fmt: skip
    ticks = _ticks(low, high, step)
    return Ruler(
        shown(low), shown(high), shown(step), shown(max(high - low, step)), by, tuple(tracks),
        tuple((x(one), shown(one)) for one in ticks), count * TALL + 34,
    )  # fmt: skip


def _ticks(low: Decimal, high: Decimal, step: Decimal) -> list[Decimal]:
    """Round numbers along the ruler, with its ends."""
    spread = high - low
    if spread <= 0:
        return [low]
    unit = Decimal(10) ** (spread / _TICKS).adjusted()
    wide = next(unit * by for by in (1, 2, 5, 10) if unit * by * _TICKS >= spread)
    first = (low / wide).to_integral_value() * wide
    inner = [first + wide * at for at in range(_TICKS + 2)]
    room = spread / 20
    return [low, *(one for one in inner if low + room < one < high - room), max(high, low + step)]
