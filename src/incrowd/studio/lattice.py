"""The lattice of schemes as a picture: where each scheme stands, and what it looks like."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from incrowd.anonymize.lattice import Node
from incrowd.curate.explore import Explored, Scheme

MOST = 400  # schemes that are drawn
_MOST_LINES = 600
_SHADES = 5
_WIDE, _ROW, _EDGE = 960, 46, 26


@dataclass(frozen=True)
class Dot:
    """A scheme in the picture; ``shade`` says how little it loses among those that hold, from 0."""

    scheme: Scheme
    name: str
    x: float
    y: float
    shade: int
    words: str


@dataclass(frozen=True)
class Picture:
    """The schemes by how many levels they climb: the finest at the bottom.

    ``lines`` join schemes one level apart, all of them where they are few, else those of the one
    that is looked at.
    """

    dots: tuple[Dot, ...]
    lines: tuple[tuple[float, float, float, float], ...]
    rows: tuple[tuple[float, int], ...]
    high: int
    radius: float
    fitting: int

    @property
    def wide(self) -> int:
        """How wide it is."""
        return _WIDE


def name_of(levels: Node) -> str:
    """Levels as an address has them."""
    return ".".join(map(str, levels))


def levels_of(name: str) -> Node:
    """Levels from an address; empty if they are none."""
    parts = name.split(".") if name else []
    return tuple(map(int, parts)) if all(one.isdecimal() for one in parts) else ()


def fitting(found: Explored, wanted: Mapping[int, int]) -> list[Scheme]:
    """The schemes that have the wanted levels of columns, by their places; the best first."""
    return [
        one for one in found.schemes
        if all(one.levels[at] == level for at, level in wanted.items())
    ]  # fmt: skip


def _drawn(schemes: Sequence[Scheme], looked_at: Node) -> list[Scheme]:
    """At most so many as can be seen: mostly those that hold, the best first."""
    good = [one for one in schemes if one.holds]
    bad = sorted((one for one in schemes if not one.holds), key=lambda one: one.suppressed)
    room = max(MOST - len(bad), MOST * 3 // 4)
    kept = good[:room]
    kept += bad[: MOST - len(kept)]
    if not any(one.levels == looked_at for one in kept):
        kept += [one for one in schemes if one.levels == looked_at]
    return kept


def picture(found: Explored, schemes: Sequence[Scheme], looked_at: Node) -> Picture:
    """The picture of some schemes, with the one that is looked at among them."""
    kept = _drawn(schemes, looked_at)
    by_height: dict[int, list[Scheme]] = {}
    for one in kept:
        by_height.setdefault(sum(one.levels), []).append(one)
    heights = sorted(by_height, reverse=True)
    widest = max((len(row) for row in by_height.values()), default=1)
    radius = max(min((_WIDE - 2 * _EDGE) / max(widest, 1) / 2.6, 9.0), 3.0)
    ranked = [one.levels for one in found.schemes if one.holds]
    shade = {levels: at * _SHADES // max(len(ranked), 1) for at, levels in enumerate(ranked)}
    dots, rows = [], []
    for at, height in enumerate(heights):
        y = _EDGE + at * _ROW
        rows.append((float(y), height))
        row = sorted(by_height[height], key=lambda one: one.levels)
        step = (_WIDE - 2 * _EDGE) / (len(row) + 1)
        for place, one in enumerate(row, 1):
            dots.append(Dot(
                one, name_of(one.levels), round(_EDGE + place * step, 1), float(y),
                shade.get(one.levels, 0), words_of(found, one),
            ))  # fmt: skip
    high = 2 * _EDGE + max(len(heights) - 1, 0) * _ROW
    lines = _lines(dots, looked_at)
    return Picture(tuple(dots), lines, tuple(rows), high, round(radius, 1), len(schemes))


def _lines(dots: Sequence[Dot], looked_at: Node) -> tuple[tuple[float, float, float, float], ...]:
    at = {dot.scheme.levels: dot for dot in dots}
    pairs = [
        (dot, at[above])
        for dot in dots
        for place in range(len(dot.scheme.levels))
        if (above := _raised(dot.scheme.levels, place)) in at
    ]
    if len(pairs) > _MOST_LINES:
        pairs = [
            pair for pair in pairs if looked_at in (pair[0].scheme.levels, pair[1].scheme.levels)
        ]
    return tuple((one.x, one.y, other.x, other.y) for one, other in pairs)


def _raised(levels: Node, place: int) -> Node:
    return (*levels[:place], levels[place] + 1, *levels[place + 1 :])


def words_of(found: Explored, one: Scheme) -> str:
    """A scheme in one line."""
    holds = "allowed" if one.holds else "suppresses too many rows"
    share = one.suppressed / max(found.rows, 1)
    levels = " ".join(map(str, one.levels))
    return f"Levels {levels}: {holds}, loss {one.loss:.3g}, {100 * share:.1f} % of rows suppressed"
