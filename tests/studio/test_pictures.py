"""The picture of schemes: where they stand, which are drawn, which are joined."""

from __future__ import annotations

import itertools

from incrowd.curate.explore import Exploration, ExploredColumn, SchemeFigures
from incrowd.studio.pictures import MOST, draw_lattice, format_levels, parse_levels, select_schemes


def explored(*heights: int, bad: int = 0) -> Exploration:
    """All schemes of so many levels, of which those that climb less than ``bad`` do not hold."""
    schemes = [
        SchemeFigures(
            levels, sum(levels) / sum(heights), 9 if sum(levels) < bad else 0, 3, 5, 0.2, 0.1,
            sum(levels) >= bad,
        )
        for levels in itertools.product(*(range(height) for height in heights))
    ]  # fmt: skip
    columns = tuple(
        ExploredColumn(f"c{at}", 0, height - 1, tuple(map(str, range(height))))
        for at, height in enumerate(heights)
    )
    ordered = tuple(
        sorted(schemes, key=lambda scheme: (not scheme.holds, scheme.loss, scheme.levels))
    )
    return Exploration(columns, ordered, len(schemes), 100, 5, 5, "normalized", None)


def test_levels_go_into_addresses_and_back() -> None:
    assert parse_levels(format_levels((0, 12, 3))) == (0, 12, 3)
    assert (
        parse_levels("")
        == parse_levels("1.x")
        == parse_levels("1..2")
        == parse_levels("-1.2")
        == ()
    )


def test_coarser_schemes_stand_higher_and_none_on_another() -> None:
    result = explored(4, 3)
    picture = draw_lattice(result, result.schemes, (0, 0))
    assert len(picture.dots) == 12
    assert len({(dot.x, dot.y) for dot in picture.dots}) == 12
    by_height = {sum(dot.scheme.levels): dot.y for dot in picture.dots}
    assert [by_height[height] for height in sorted(by_height)] == sorted(
        by_height.values(), reverse=True
    )
    assert all(0 < dot.x < picture.wide and 0 < dot.y < picture.high for dot in picture.dots)
    assert {height: y for y, height in picture.rows} == by_height


def test_lines_join_schemes_one_level_apart() -> None:
    result = explored(4, 3)
    assert len(draw_lattice(result, result.schemes, (0, 0)).lines) == 3 * 3 + 4 * 2
    many = explored(6, 6, 6)
    picture = draw_lattice(many, many.schemes, (1, 1, 1))
    assert len(many.schemes) == 216
    assert len(picture.lines) == 3 * 36 * 5  # few enough for all of them
    more = explored(7, 7, 7)
    assert len(draw_lattice(more, more.schemes, (1, 1, 1)).lines) == 6


def test_of_very_many_schemes_the_best_are_drawn_and_the_one_looked_at() -> None:
    result = explored(10, 10, 10, bad=12)
    last = result.schemes[-1].levels
    picture = draw_lattice(result, result.schemes, last)
    assert MOST <= len(picture.dots) <= MOST + 1
    assert picture.fitting == 1000
    names = {dot.scheme.levels for dot in picture.dots}
    assert last in names
    assert {scheme.levels for scheme in result.schemes[:200]} <= names
    assert {dot.scheme.holds for dot in picture.dots} == {True, False}


def test_shades_tell_how_little_is_lost() -> None:
    result = explored(5, 5, bad=3)
    shades = {dot.scheme.levels: dot.shade for dot in draw_lattice(result, result.schemes, ()).dots}
    assert result.best is not None
    assert shades[result.best.levels] == 0
    assert shades[4, 4] == 4


def test_filters_leave_the_schemes_with_these_levels() -> None:
    result = explored(4, 3, 2)
    assert {scheme.levels for scheme in select_schemes(result, {0: 2, 2: 1})} == {
        (2, x, 1) for x in range(3)
    }
    assert len(select_schemes(result, {})) == 24
    assert not draw_lattice(result, select_schemes(result, {0: 9}), ()).dots
