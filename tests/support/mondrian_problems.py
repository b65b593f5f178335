"""Small tables and crowds on which safe Mondrian is enumerated."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from support.mondrian_law import (
    MASK,
    NUMBERS,
    PAIR,
    TREE,
    Problem,
)

from incrowd.anonymize.safe_search import Ramp, ramp

# Small tables: every table of a few rows.

ONCE, HALF, TWICE = Fraction(1), Fraction(1, 2), Fraction(2)
NUMERALS = ("0", "1", "2", "3")
XY = ("x", "y")


def alone(*columns: str, start: Sequence[int], pair: tuple[int, float], **more: Any) -> Problem:
    """Cuts by themselves, from a scheme that depends on no data."""
    epsilons = (ONCE, *more.pop("rounds", (HALF, HALF)))
    return Problem(columns, tuple(start), (ramp(*pair),), epsilons, **more)


PLAIN = alone(NUMBERS, start=[2], pair=(2, 0.5))
# Problem, the values of each column, and rows at most.
SMALL = [
    (PLAIN, [NUMERALS], 5),
    (alone(NUMBERS, start=[1], pair=(1, 0.25), rounds=(HALF, ONCE)), [NUMERALS], 4),
    (alone(NUMBERS, start=[2], pair=(1, 0.5), rounds=(ONCE, HALF)), [("0", "3", None, "9")], 4),
    (
        alone(TREE, start=[2], pair=(2, 0.5), rounds=(HALF, TWICE), objective="balanced"),
        [("a", "b", "c", None)],
        4,
    ),
    (
        alone(f"weight: 3, {TREE}", PAIR, start=[1, 1], pair=(1, 0.25), objective="detail"),
        [("a", "c"), XY],
        3,
    ),
    (alone(NUMBERS, PAIR, start=[2, 1], pair=(2, 0.5), rounds=(ONCE, ONCE)), [("0", "3"), XY], 3),
    (
        # What fits no mask is shown as if it did.
        alone(NUMBERS, f"other: 1*, {MASK}", start=[2, 1], pair=(2, 0.5)),
        [("0", "1"), ("00", "10", "q")],
        3,
    ),
    (
        alone(TREE, PAIR, start=[1, 1], pair=(2, 0.5), levels="0: 1"),
        [("a", "b", "c"), XY],
        3,
    ),
    (alone(NUMBERS, start=[2], pair=(2, 0.5), rounds=(HALF, HALF, HALF)), [("0", "1", "3")], 4),
]


# Crowds: so many rows that the release alone tells little, and the choices count.

SLIGHT = f"weight: 0.001, {NUMBERS}"


def crowded(first: Fraction, second: Fraction) -> Problem:
    """A column that decides nearly all scores, beside one that may win all the same."""
    return Problem((SLIGHT, PAIR), (2, 1), (Ramp(20, 0.5, 60, 1000, 1000),), (ONCE, first, second))
