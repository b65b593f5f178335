"""Counts of rows of people with several, enumerated: at most so many of a person count in a cell.

All of it stays within the accounted delta and reaches it; planted faults do not stay there.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction

import pytest
from support.people import (
    People,
    PeopleProblem,
    Person,
    count_people_by_cell,
    list_bounded,
    list_neighbor_people,
)
from support.people_law import PeopleLaw
from support.search_law import FOUR, THREE, TWO, Cells, Distribution, compute_divergence

from incrowd.anonymize import safe_counts
from incrowd.anonymize.lattice import Lattice, Node
from incrowd.anonymize.safe_search import make_ramp
from incrowd.privacy.accountant import Accountant
from incrowd.privacy.draw_parameters import CountsEvent, compute_threshold
from incrowd.privacy.events import (
    Event,
    GaussianCounts,
    GeometricCounts,
    PersonCounts,
    RowCounts,
    ShiftedCounts,
)

A, B, C, D = (0,), (1,), (2,), (3,)
RAMPS = (make_ramp(2, 1.0),)
LEVEL, LEVELS, HIGH = Lattice((0,), (0,)), Lattice((0,), (1,)), Lattice((0,), (2,))
PAIR = PeopleProblem((TWO,), LEVEL, RAMPS, rows=2, per_group=2)
TRIPLE = PeopleProblem((TWO,), LEVEL, RAMPS, rows=3, per_group=2)
WHOLE = PeopleProblem((TWO,), LEVEL, RAMPS, rows=3, per_group=3)
CHOSEN = PeopleProblem((TWO,), LEVELS, RAMPS, rows=3, per_group=2)
TREE = PeopleProblem((THREE,), HIGH, RAMPS, rows=3, per_group=2)
KINDS: list[Person] = [(A,), (B,), (A, B), (A, A), (A, A, B), (A, A, A)]


@pytest.mark.parametrize(
    ("problem", "event", "kinds", "most", "least"),
    [
        (PAIR, GeometricCounts(2, 0.7), [(A, A), (A,)], 6, 0.999),
        (PAIR, GaussianCounts(2, 3.0), [(A, A), (A,), (A, A, B)], 5, 0.999),
        (TRIPLE, GeometricCounts(1, 1.0), KINDS, 4, 0.999),
        (TRIPLE, GaussianCounts(2, 4.0), [(A, A, B)], 5, 0.999),
        (WHOLE, GaussianCounts(2, 4.0), [(A, A, A), (A, A, B)], 4, 0.999),
        (CHOSEN, GeometricCounts(1, 1.0), KINDS, 3, 0.3),
        (TREE, GaussianCounts(1, 1.0), [(A, A, B), (A, C), (C, C), (A, B, C)], 3, 0.3),
    ],
)
def test_counts_of_rows_stay_within_the_accounted_delta_and_reach_it(
    problem: PeopleProblem, event: CountsEvent, kinds: list[Person], most: int, least: float
) -> None:
    law = PeopleLaw(problem, Fraction(1, 2), event, 1)
    assert least < law.compute_usage(list_neighbor_people(kinds, most)) <= 1 + 1e-9


def test_every_published_cell_has_rows_of_k_different_people() -> None:
    k, event, shown_with_fewest = 2, GeometricCounts(1, 1.0), math.inf
    law = PeopleLaw(PAIR, Fraction(1, 2), event, k)
    kinds: list[Person] = [(A,), (A, A), (A, B), (B, B)]
    for size in range(1, 5):
        for people in itertools.combinations_with_replacement(kinds, size):
            for bounded, _ in list_bounded(people, 2):
                true = dict(count_people_by_cell(PAIR, bounded, (0,)))
                for cells in law.show_cells(law.count_cells(bounded, (0,))):
                    for code, count in cells:
                        assert count >= compute_threshold(event.r, k, 2) == 4
                        shown_with_fewest = min(shown_with_fewest, true[code])
    assert shown_with_fewest == k


def test_k_counted_in_rows_would_publish_cells_of_fewer_people(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Planted: the threshold is r + k, and two rows of one person pass for two people."""
    people: People = ((A, A),)

    def list_shown() -> list[Cells]:
        law = PeopleLaw(PAIR, Fraction(1, 2), GeometricCounts(1, 1.0), 2)
        return [cells for cells in law.show_cells(law.count_cells(people, (0,))) if cells]

    assert list_shown() == []
    monkeypatch.setattr(safe_counts, "compute_threshold", lambda r, k, _per_group: r + k)
    assert list_shown()


class RowsUncut(PeopleLaw):
    """All used rows of a person count in a cell."""

    def count_cells(self, people: People, node: Node) -> Cells:
        return count_people_by_cell(self.problem, people, node, per_group=99)


class ChargedAsPeople(PeopleLaw):
    """Rows are counted, and charged as if a person moved each cell by one."""

    @property
    def events(self) -> list[Event]:
        return [PersonCounts(self.event, self.problem.rows)]


class DistanceOne(PeopleLaw):
    """As many cells as the rows fill are charged, at a distance of one in place of c."""

    @property
    def events(self) -> list[Event]:
        cells = -(-self.problem.rows // self.problem.per_group)
        return [ShiftedCounts(self.event, 1)] * cells


class OneCellCharged(PeopleLaw):
    """The distance is right, but rows beyond the first cell are not charged."""

    @property
    def events(self) -> list[Event]:
        return [ShiftedCounts(self.event, self.problem.per_group)]


@pytest.mark.parametrize("event", [GeometricCounts(1, 1.0), GaussianCounts(2, 4.0)])
@pytest.mark.parametrize(
    ("planted", "problem", "kinds", "most"),
    [
        (RowsUncut, TRIPLE, [(A,), (A, A, A)], 5),
        (ChargedAsPeople, PAIR, [(A,), (A, A)], 5),
        (DistanceOne, PAIR, [(A,), (A, A)], 5),
        (OneCellCharged, TRIPLE, [(A, A, B), (B, B)], 4),
    ],
)
def test_planted_faults_are_not_covered(
    planted: Callable[..., PeopleLaw],
    problem: PeopleProblem,
    event: CountsEvent,
    kinds: list[Person],
    most: int,
) -> None:
    pairs = list(list_neighbor_people(kinds, most))
    assert planted(problem, Fraction(1, 2), event, 1).compute_usage(pairs) > 1.02
    assert PeopleLaw(problem, Fraction(1, 2), event, 1).compute_usage(pairs) <= 1 + 1e-9


class OneRowSearched(PeopleLaw):
    """The noise of the search is that of one row per person."""

    def __init__(self, problem: PeopleProblem, epsilon: Fraction, event: CountsEvent, k: int):
        super().__init__(problem, epsilon, event, k)
        self.rate *= problem.rows


class SearchedByAllRows(PeopleLaw):
    """Schemes are scored by all rows of a person, though few of them are used for the cells."""

    def bound_rows(self, people: People) -> list[tuple[People, float]]:
        return [(people, 1.0)]


FULL: Person = (A, A, B, B, C, C, D, D)


@pytest.mark.parametrize(
    ("planted", "rows", "kinds", "most"),
    [
        (OneRowSearched, 4, [(A, A, B, B), (A, B)], 3),
        (SearchedByAllRows, 2, [FULL, (A, A)], 2),
    ],
)
def test_a_search_moves_by_the_rows_that_are_used_and_no_more(
    planted: Callable[..., PeopleLaw], rows: int, kinds: list[Person], most: int
) -> None:
    """The choice alone: the largest change of its log-probabilities, against its epsilon.

    A person moves cells by no more than the rows that are used, however many count in one cell.
    """
    problem = PeopleProblem((FOUR,), LEVELS, RAMPS, rows=rows, per_group=2)
    epsilon, pairs = Fraction(2), list(list_neighbor_people(kinds, most))

    def measure_loss(law: PeopleLaw) -> float:
        def choose(people: People) -> list[float]:
            parts = [(law.compute_choices(x), weight) for x, weight in law.bound_rows(people)]
            return [sum(part[at] * w for part, w in parts) for at in range(len(problem.nodes))]

        return max(
            abs(math.log(p / q))
            for first, other in pairs
            for p, q in zip(choose(first), choose(other), strict=True)
        )

    quiet = GaussianCounts(1, 200.0)
    assert measure_loss(PeopleLaw(problem, epsilon, quiet, 1)) <= float(epsilon) + 1e-9
    assert measure_loss(planted(problem, epsilon, quiet, 1)) > float(epsilon) * 1.02


def test_rows_are_charged_in_every_table_of_a_release() -> None:
    """Two slices: a person may lie differently in each, and both are charged at the worst."""
    event, others = GeometricCounts(1, 1.0), ((A, A),) * 3
    law = PeopleLaw(PAIR, Fraction(1, 2), event, 1)
    with_person, without = law((*others, (A, A))), law(others)

    def square(p: Distribution) -> Distribution:
        pairs = itertools.product(p.items(), repeat=2)
        return {(0, (*a[1], ((9,), 9), *b[1])): x * y for (a, x), (b, y) in pairs}

    for epsilon in (0.2, 0.5, 1.5):
        true = compute_divergence(square(with_person), square(without), epsilon)
        twice = Accountant([RowCounts(event, 2, 2)] * 2).delta(epsilon=epsilon)
        assert 0.999 * twice < true <= twice * (1 + 1e-9)
        assert true > Accountant([RowCounts(event, 2, 2)]).delta(epsilon=epsilon) * 1.1
