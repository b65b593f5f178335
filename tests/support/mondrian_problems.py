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
    MondrianProblem,
)

from incrowd.anonymize.safe_search import Ramp, make_ramp

# Small tables: every table of a few rows.

ONCE, HALF, TWICE = Fraction(1), Fraction(1, 2), Fraction(2)
NUMERALS = ("0", "1", "2", "3")
XY = ("x", "y")


def make_cut_problem(
    *columns: str, start: Sequence[int], pair: tuple[int, float], **more: Any
) -> MondrianProblem:
    """Cuts by themselves, from a scheme that depends on no data."""
    epsilons = (ONCE, *more.pop("rounds", (HALF, HALF)))
    return MondrianProblem(columns, tuple(start), (make_ramp(*pair),), epsilons, **more)


PLAIN = make_cut_problem(NUMBERS, start=[2], pair=(2, 0.5))
# Problem, the values of each column, and rows at most.
SMALL = [
    (PLAIN, [NUMERALS], 5),
    (make_cut_problem(NUMBERS, start=[1], pair=(1, 0.25), rounds=(HALF, ONCE)), [NUMERALS], 4),
    (
        make_cut_problem(NUMBERS, start=[2], pair=(1, 0.5), rounds=(ONCE, HALF)),
        [("0", "3", None, "9")],
        4,
    ),
    (
        make_cut_problem(
            TREE, start=[2], pair=(2, 0.5), rounds=(HALF, TWICE), objective="balanced"
        ),
        [("a", "b", "c", None)],
        4,
    ),
    (
        make_cut_problem(
            f"weight: 3, {TREE}", PAIR, start=[1, 1], pair=(1, 0.25), objective="detail"
        ),
        [("a", "c"), XY],
        3,
    ),
    (
        make_cut_problem(NUMBERS, PAIR, start=[2, 1], pair=(2, 0.5), rounds=(ONCE, ONCE)),
        [("0", "3"), XY],
        3,
    ),
    (
        # What fits no mask is shown as if it did.
        make_cut_problem(NUMBERS, f"other: 1*, {MASK}", start=[2, 1], pair=(2, 0.5)),
        [("0", "1"), ("00", "10", "q")],
        3,
    ),
    (
        make_cut_problem(TREE, PAIR, start=[1, 1], pair=(2, 0.5), levels="0: 1"),
        [("a", "b", "c"), XY],
        3,
    ),
    (
        make_cut_problem(NUMBERS, start=[2], pair=(2, 0.5), rounds=(HALF, HALF, HALF)),
        [("0", "1", "3")],
        4,
    ),
]


# Crowds: so many rows that the release alone tells little, and the choices count.

SLIGHT = f"weight: 0.001, {NUMBERS}"


def make_crowded_problem(first: Fraction, second: Fraction) -> MondrianProblem:
    """A column that decides nearly all scores, beside one that may win all the same."""
    return MondrianProblem(
        (SLIGHT, PAIR), (2, 1), (Ramp(20, 0.5, 60, 1000, 1000),), (ONCE, first, second)
    )
