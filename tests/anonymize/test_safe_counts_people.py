"""Counts of people with several rows, enumerated: rows are chosen, a scheme is chosen, cells are
drawn. All of it stays within the accounted delta and reaches it; planted faults do not stay there.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.people import (
    People,
    PeopleProblem,
    Person,
    count_people_by_cell,
    list_bounded,
    list_neighbor_people,
)
from support.people_law import PeopleLaw, add_up, run_search
from support.search_law import (
    FOUR,
    THREE,
    TWO,
    Cells,
    Distribution,
    compute_divergence,
)

from incrowd.anonymize.lattice import Lattice, Node
from incrowd.anonymize.safe_search import W, make_ramp
from incrowd.privacy.accountant import Accountant
from incrowd.privacy.draw_parameters import CountsEvent
from incrowd.privacy.events import (
    Composition,
    Event,
    GaussianCounts,
    GeometricCounts,
    PersonCounts,
    Selection,
)
from incrowd.privacy.randomness import SeededRandomness
from incrowd.privacy.selection import sample_one_sided_noise
from incrowd.privacy.split import split_for_counts


@pytest.mark.parametrize(("rows", "r"), [(1, 14), (2, 27), (3, 39), (4, 45), (11, 75)])
def test_the_bound_of_the_noise_by_rows_per_person(rows: int, r: int) -> None:
    split = split_for_counts(epsilon=1.0, delta=1e-6, rows=rows)
    assert split.draws[-1].r == r  # type: ignore[union-attr]
    assert Accountant(split.events).delta(epsilon=1.0) <= 1e-6
    if rows > 1:
        (event,) = split.events
        assert isinstance(event, PersonCounts)
        assert event.rows == rows
        assert isinstance(event.event, GeometricCounts if rows == 2 else GaussianCounts)


def test_several_rows_cost_as_many_tables_of_one_row() -> None:
    event = GaussianCounts(20, 30.0)
    for epsilon in (0.2, 1.0, 3.0):
        together = Accountant(PersonCounts(event, 3)).delta(epsilon=epsilon)
        assert together == Accountant([event] * 3).delta(epsilon=epsilon)
    sampled = Accountant([Selection(0.1), PersonCounts(event, 3)]).epsilon(delta=1e-4)
    assert sampled == Accountant([Selection(0.1), *[event] * 3]).epsilon(delta=1e-4)


# The whole: rows of each person, scheme, cells.

A, B, C, D = (0,), (1,), (2,), (3,)
KINDS: list[Person] = [(A,), (B,), (A, B), (A, A), (A, A, B)]
RAMPS = (make_ramp(2, 1.0),)
FIXED = PeopleProblem((TWO,), Lattice((0,), (0,)), RAMPS)
CHOSEN = PeopleProblem((TWO,), Lattice((0,), (1,)), RAMPS)
TREE = PeopleProblem((THREE,), Lattice((0,), (2,)), RAMPS)
WIDE = PeopleProblem((FOUR,), Lattice((0,), (1,)), RAMPS)


@pytest.mark.parametrize(
    ("problem", "event", "kinds", "most", "least"),
    [
        (FIXED, GeometricCounts(1, 1.0), KINDS, 4, 0.999),
        (FIXED, GaussianCounts(1, 1.5), KINDS, 4, 0.999),
        (FIXED, GeometricCounts(2, 0.7), [(A, B), (A,)], 6, 0.999),
        (CHOSEN, GeometricCounts(1, 1.0), KINDS, 4, 0.6),
        (TREE, GaussianCounts(1, 1.0), [(A, B), (A, C), (C,), (A, B, C)], 3, 0.3),
    ],
)
def test_counts_of_people_stay_within_the_accounted_delta_and_reach_it(
    problem: PeopleProblem, event: CountsEvent, kinds: list[Person], most: int, least: float
) -> None:
    law = PeopleLaw(problem, Fraction(1, 2), event, 1)
    assert least < law.compute_usage(list_neighbor_people(kinds, most)) <= 1 + 1e-9


def test_every_published_cell_has_k_different_people() -> None:
    law, k = PeopleLaw(FIXED, Fraction(1, 2), GeometricCounts(1, 1.0), 2), 2
    shown_with_fewest = math.inf
    for size in range(1, 5):
        for people in itertools.combinations_with_replacement([(A,), (A, A), (A, B), (B, B)], size):
            for bounded, _ in list_bounded(people, 2):
                true = dict(count_people_by_cell(FIXED, bounded, (0,)))
                for cells in law.show_cells(law.count_cells(bounded, (0,))):
                    for code, _ in cells:
                        shown_with_fewest = min(shown_with_fewest, true[code])
    assert shown_with_fewest == k


class RowsCounted(PeopleLaw):
    """No deduplication: two rows of a person in one cell count twice."""

    def count_cells(self, people: People, node: Node) -> Cells:
        single = tuple((row,) for person in people for row in person)
        return count_people_by_cell(self.problem, single, node)


def test_k_counted_in_rows_would_publish_cells_of_fewer_people() -> None:
    """Planted: two rows of one person pass for two people, and stand there alone."""
    people: People = ((A, A),)
    law, planted = (
        kind(FIXED, Fraction(1, 2), GeometricCounts(1, 1.0), 2) for kind in (PeopleLaw, RowsCounted)
    )
    assert [cells for cells in law.show_cells(law.count_cells(people, (0,))) if cells] == []
    assert [cells for cells in planted.show_cells(planted.count_cells(people, (0,))) if cells]


def test_parts_do_not_compose_in_parallel_for_a_person_who_is_in_two() -> None:
    """Planted: two parts are charged as the larger one, and somebody has a row in each."""
    event, others = GeometricCounts(1, 1.0), ((A,),) * 3
    law = PeopleLaw(FIXED, Fraction(1, 2), event, 1)

    def release_both(first: People, second: People) -> Distribution:
        pairs = itertools.product(law(first).items(), law(second).items())
        return {(0, (*a[1], ((9,), 9), *b[1])): x * y for (a, x), (b, y) in pairs}

    present, absent = (*others, (A,)), others
    for epsilon in (0.5, 1.5):
        charged = Accountant(event).delta(epsilon=epsilon)
        in_one = compute_divergence(
            release_both(present, others), release_both(absent, others), epsilon
        )
        assert in_one <= charged * (1 + 1e-9)
        in_two = compute_divergence(
            release_both(present, present), release_both(absent, absent), epsilon
        )
        assert in_two > charged * 1.1


class RowsChosenLater(PeopleLaw):
    """Schemes are scored by all rows of a person, and rows are chosen for the cells alone."""

    def __call__(self, people: People) -> Distribution:
        distribution: Distribution = {}
        choices = list(zip(self.problem.nodes, self.compute_choices(people), strict=True))
        for bounded, weight in self.bound_rows(people):
            for number, (node, share) in enumerate(choices):
                for cells, chance in self.show_cells(self.count_cells(bounded, node)).items():
                    key = number, cells
                    distribution[key] = distribution.get(key, 0.0) + weight * share * chance
        return distribution


class RowsUnbounded(PeopleLaw):
    """All rows of each person are used."""

    def bound_rows(self, people: People) -> Iterable[tuple[People, float]]:
        return [(people, 1.0)]


class OneRowCharged(PeopleLaw):
    """The noise of the cells is charged as if each person were in one."""

    @property
    def events(self) -> list[Event]:
        return [self.event]


class OneRowSearched(PeopleLaw):
    """The noise of the search is that of one row per person."""

    def __init__(self, problem: PeopleProblem, epsilon: Fraction, event: CountsEvent, k: int):
        super().__init__(problem, epsilon, event, k)
        self.rate *= problem.rows


MANY: Person = (A, B, C, D)
QUIET = GaussianCounts(1, 200.0)  # its delta is large, so that a choice must be seen beside it


@pytest.mark.parametrize(
    ("planted", "problem", "kinds", "most"),
    [
        (RowsCounted, FIXED, [(A, A), (B,)], 4),
        (RowsUnbounded, PeopleProblem((THREE,), Lattice((0,), (0,)), RAMPS), [(A, B, C)], 4),
        (OneRowCharged, FIXED, KINDS, 4),
    ],
)
def test_planted_faults_are_not_covered(
    planted: Callable[..., PeopleLaw], problem: PeopleProblem, kinds: list[Person], most: int
) -> None:
    event, pairs = GeometricCounts(1, 1.0), list(list_neighbor_people(kinds, most))
    assert planted(problem, Fraction(1, 2), event, 1).compute_usage(pairs) > 1.02
    assert PeopleLaw(problem, Fraction(1, 2), event, 1).compute_usage(pairs) <= 1 + 1e-9


@pytest.mark.parametrize("planted", [RowsChosenLater, OneRowSearched])
def test_a_search_by_more_rows_than_are_charged_is_not_covered(
    planted: Callable[..., PeopleLaw],
) -> None:
    """The choice alone: the largest change of its log-probabilities, against its epsilon."""
    epsilon, kinds = Fraction(2), [MANY, (A, B)]
    pairs = list(list_neighbor_people(kinds, 3))

    def measure_loss(law: PeopleLaw) -> float:
        def choose(people: People) -> list[float]:
            if isinstance(law, RowsChosenLater):
                return law.compute_choices(people)
            parts = [(law.compute_choices(x), weight) for x, weight in law.bound_rows(people)]
            return [sum(part[at] * w for part, w in parts) for at in range(len(WIDE.nodes))]

        return max(
            abs(math.log(p / q))
            for first, other in pairs
            for p, q in zip(choose(first), choose(other), strict=True)
        )

    assert measure_loss(PeopleLaw(WIDE, epsilon, QUIET, 1)) <= float(epsilon) + 1e-9
    assert measure_loss(planted(WIDE, epsilon, QUIET, 1)) > float(epsilon) * 1.02


def test_rows_per_person_are_charged_in_every_table_of_a_release() -> None:
    """Two slices: whoever is in two cells of each moves four."""
    event, others = GeometricCounts(1, 1.0), ((A, B),) * 3
    law = PeopleLaw(FIXED, Fraction(1, 2), event, 1)
    with_person, without = law((*others, (A, B))), law(others)

    def square(p: Distribution) -> Distribution:
        pairs = itertools.product(p.items(), repeat=2)
        return {(0, (*a[1], ((9,), 9), *b[1])): x * y for (a, x), (b, y) in pairs}

    split = split_for_counts(epsilon=1.0, delta=1e-3, rows=2, tables=2)
    assert [part.rows for part in split.events] == [2, 2]  # type: ignore[union-attr]
    for epsilon in (0.5, 1.5):
        true = compute_divergence(square(with_person), square(without), epsilon)
        assert true <= Accountant([PersonCounts(event, 2)] * 2).delta(epsilon=epsilon) * (1 + 1e-9)
        assert true > Accountant([PersonCounts(event, 2)]).delta(epsilon=epsilon) * 1.1
        composed = Composition([PersonCounts(event, 2)] * 2)
        assert true > Accountant(composed).delta(epsilon=epsilon) * 0.999


# The search finds what full evaluation finds, whatever it passes over.


@settings(max_examples=60)
@given(data=st.data())
def test_the_search_over_people_finds_what_full_evaluation_finds(data: st.DataObject) -> None:
    trees = tuple(data.draw(st.lists(st.sampled_from([TWO, THREE, FOUR]), min_size=1, max_size=3)))
    rows = data.draw(st.integers(2, 9))
    target = data.draw(st.sampled_from([None, 0])) if len(trees) > 1 else None
    high = tuple(0 if at == target else tree.height - 1 for at, tree in enumerate(trees))
    ramps = tuple(
        make_ramp(k, 1.0)
        for k in data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=2, unique=True))
    )
    problem = PeopleProblem(
        trees, Lattice((0,) * len(trees), high), ramps, data.draw(st.integers(1, 3)),
        target=target, rows=rows, per_group=data.draw(st.integers(1, min(rows, 3))),
        counts=data.draw(st.sampled_from([(), (40, 9, 5, 3, 0, 0)])),
    )  # fmt: skip
    row = st.tuples(*(st.integers(0, len(tree.values) - 1) for tree in trees))
    kinds = data.draw(st.lists(st.lists(row, min_size=1, max_size=rows), min_size=1, max_size=6))
    people = tuple(tuple(kind) for kind in kinds for _ in range(data.draw(st.integers(1, 12))))
    epsilon = data.draw(st.sampled_from([Fraction(1, 100), Fraction(1), Fraction(10**8)]))
    seed = data.draw(st.integers(0, 99))
    choice = run_search(problem, people, epsilon, SeededRandomness(seed))
    slope = max(ramp.d for ramp in ramps)
    values = problem.target_values
    sensitivity = rows * (W * slope if values is None else values.compute_sensitivity(W, slope))
    noise = sample_one_sided_noise(
        len(ramps) * problem.lattice.size, sensitivity=sensitivity, epsilon=epsilon,
        bits=SeededRandomness(seed),
    )[problem.places]  # fmt: skip
    detail = problem.make_detail(people[0])
    best = None
    for number, (ramp, node) in enumerate(itertools.product(ramps, problem.nodes)):
        cells = count_people_by_cell(problem, people, node, per_group=problem.per_group)
        codes = np.array([code for code, _ in cells], dtype=np.int32)
        psi = ramp.compute_psi(np.array([count for _, count in cells], dtype=np.int64))
        score = add_up(codes, detail.weigh_cells(codes, node), psi, problem, ramp)
        noisy = score + int(noise[number])
        if best is None or noisy > best[0]:
            best = (noisy, node, ramp)
    assert best is not None
    assert (choice.levels, choice.ramp) == best[1:]
