"""The picture of a crowd: as many figures as people, or tens and hundreds of them."""

from __future__ import annotations

import pytest

from incrowd.release.crowd import make_crowd


@pytest.mark.parametrize(
    ("number", "people", "each", "figures"),
    [
        (1, 1, 1, 1), (5.0, 5, 1, 5), (18.0000000001, 18, 1, 18), (18.2, 19, 1, 19),
        (60, 60, 1, 60), (60.5, 61, 10, 7), (600, 600, 10, 60), (601, 601, 100, 7),
        (25904.4, 25905, 1000, 26), (0.2, 1, 1, 1),
    ],
)  # fmt: skip
def test_figures_stand_for_so_many_people(
    number: float, people: int, each: int, figures: int
) -> None:
    crowd = make_crowd(number)
    assert (crowd.people, crowd.each, len(crowd.places)) == (people, each, figures)


def test_figures_stand_inside_the_picture_and_apart() -> None:
    crowd = make_crowd(47)
    wide, high = crowd.size
    assert len(set(crowd.places)) == 47
    assert all(0 <= x < wide and 0 <= y < high for x, y in crowd.places)


def test_the_picture_has_words() -> None:
    assert make_crowd(1).words == "1 person"
    assert make_crowd(18).words == "18 people"
    assert make_crowd(1580).words == "1,580 people, each figure standing for 100"
