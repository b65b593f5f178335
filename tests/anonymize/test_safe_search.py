"""The private search: found exactly, and bounded in what one row moves."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.search_law import (
    TWO,
    SearchProblem,
    Table,
    compute_defined_scores,
    compute_scores,
    make_lattice_problem,
)

from incrowd.anonymize import refined_cells, scheme_boxes
from incrowd.anonymize import safe_search as module
from incrowd.anonymize.lattice import Lattice
from incrowd.anonymize.safe_search import W, make_ramp
from incrowd.codes.hierarchy import Hierarchy, build_from_rows
from incrowd.errors import ParameterError
from incrowd.privacy.randomness import SeededRandomness
from incrowd.privacy.selection import sample_one_sided_noise
from incrowd.spec.build import build_hierarchy
from incrowd.spec.model import Column

# Random problems.


@st.composite
def hierarchies(draw: st.DrawFn, most: int = 5) -> Hierarchy:
    """Up to ``most`` values in nested groups, with a root, with several tops, or values alone."""
    count = draw(st.integers(1, most))
    columns = [[f"v{i}" for i in range(count)]]
    for level in range(1, draw(st.integers(1, 4))):
        below = sorted(set(columns[-1]))
        groups = draw(st.lists(st.integers(0, 2), min_size=len(below), max_size=len(below)))
        parent = {label: f"{level}.{group}" for label, group in zip(below, groups, strict=True)}
        columns.append([parent[label] for label in columns[-1]])
    if draw(st.booleans()):
        columns.append(["*"] * count)
    other = draw(st.sampled_from([None, "other", "v0"]))
    return build_from_rows(list(zip(*columns, strict=True)), other=other)


@st.composite
def problems(draw: st.DrawFn) -> SearchProblem:
    trees = draw(st.lists(hierarchies(), min_size=1, max_size=3))
    low, high = [], []
    for hierarchy in trees:
        ends = sorted(draw(st.tuples(*[st.integers(0, hierarchy.height - 1)] * 2)))
        low.append(ends[0] if draw(st.booleans()) else 0)
        high.append(ends[1] if draw(st.booleans()) else hierarchy.height - 1)
    pairs = st.tuples(st.integers(1, 8), st.sampled_from([0.0004, 0.1, 0.25, 0.5, 0.7, 0.9]))
    ramps = [
        make_ramp(*pair) for pair in draw(st.lists(pairs, min_size=1, max_size=3, unique=True))
    ]
    weight = st.sampled_from([1.0, 1.0, 0.5, 3.0, 0.1])
    weights = draw(st.lists(weight, min_size=len(trees), max_size=len(trees)))
    power = draw(st.integers(1, 3))
    return SearchProblem(
        tuple(trees), Lattice(tuple(low), tuple(high)), tuple(ramps), power, tuple(weights)
    )


@st.composite
def tables(draw: st.DrawFn, problem: SearchProblem, most: int = 40) -> Table:
    """Rows of codes, null and outside among them, often repeated so that cells fill."""
    codes = st.tuples(*(st.integers(0, hierarchy.outside) for hierarchy in problem.hierarchies))
    distinct = draw(st.lists(codes, min_size=1, max_size=6))
    times = draw(
        st.lists(st.integers(0, most // 2), min_size=len(distinct), max_size=len(distinct))
    )
    return tuple(row for row, many in zip(distinct, times, strict=True) for _ in range(many))


TINY, USUAL, HUGE = Fraction(1, 1000), Fraction(1, 2), Fraction(10**8)


def search_by_boxes(patch: pytest.MonkeyPatch, data: st.DataObject) -> None:
    """Search box by box or not; with tuples merged always or not, and dropped always or not."""
    patch.setattr(module, "_BOXED", data.draw(st.sampled_from([0, 10**9])))
    patch.setattr(module, "_JOINTLY", 0)
    patch.setattr(refined_cells, "_FEWER", data.draw(st.sampled_from([0, 4])))
    patch.setattr(refined_cells, "_DENSE", data.draw(st.sampled_from([0, 1 << 12])))
    patch.setattr(refined_cells, "_ALIVE", data.draw(st.sampled_from([0.0, 0.7, 1.0])))
    patch.setattr(scheme_boxes, "_SMALL_BOX", data.draw(st.sampled_from([0, 8, 1 << 11])))
    patch.setattr(scheme_boxes, "_FEWEST", data.draw(st.sampled_from([1, 64])))
    patch.setattr(scheme_boxes, "_FIRST", data.draw(st.sampled_from([0, 3, 256])))


@settings(max_examples=50)
@given(data=st.data())
def test_the_search_finds_what_full_evaluation_finds(data: st.DataObject) -> None:
    """With noise of any size; with almost none (HUGE) ties are frequent, and the first wins."""
    problem = data.draw(problems())
    table = data.draw(tables(problem))
    epsilon = data.draw(st.sampled_from([TINY, USUAL, Fraction(20), HUGE]))
    seed = data.draw(st.integers(0, 2**32))
    sensitivity = W * max(ramp.d for ramp in problem.ramps)
    noise = sample_one_sided_noise(
        len(problem.ramps) * problem.lattice.size,
        sensitivity=sensitivity, epsilon=epsilon, bits=SeededRandomness(seed),
    )  # fmt: skip
    noisy = [
        score + int(x)
        for score, x in zip(
            compute_defined_scores(problem, table), noise[problem.places], strict=True
        )
    ]
    first = noisy.index(max(noisy))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_FEW", data.draw(st.sampled_from([0, 16])))
        patch.setattr(module, "_LISTED", data.draw(st.sampled_from([0, 2, 8])))  # 0: at once
        search_by_boxes(patch, data)
        search = problem.run_search(table, epsilon, SeededRandomness(seed))
    at = divmod(first, len(problem.nodes))
    assert (search.ramp, search.levels) == (problem.ramps[at[0]], problem.nodes[at[1]])
    assert 1 <= search.scored <= problem.lattice.size


@settings(max_examples=50)
@given(data=st.data())
def test_of_equal_noisy_scores_the_first_is_found(data: st.DataObject) -> None:
    """Noise that makes some candidates exactly equal, those among them that score nothing."""
    problem = data.draw(problems())
    true = compute_defined_scores(problem, table := data.draw(tables(problem)))
    size = len(true)
    equal = data.draw(st.lists(st.booleans(), min_size=size, max_size=size).filter(any))
    added = [max(true) - score if level else 0 for score, level in zip(true, equal, strict=True)]
    noisy = [score + more for score, more in zip(true, added, strict=True)]
    number, place = divmod(noisy.index(max(true)), len(problem.nodes))
    noise = np.zeros(len(problem.ramps) * problem.lattice.size, dtype=np.int64)
    noise[problem.places] = added
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "sample_one_sided_noise", lambda *_, **__: noise)
        patch.setattr(module, "_FEW", data.draw(st.sampled_from([0, 16])))
        patch.setattr(module, "_LISTED", data.draw(st.sampled_from([0, 2, 8])))  # 0: at once
        patch.setattr(module, "_FEWER", data.draw(st.sampled_from([0, 2])))  # 0: always in stages
        search_by_boxes(patch, data)
        search = problem.run_search(table, USUAL, SeededRandomness(0))
    assert (search.ramp, search.levels) == (problem.ramps[number], problem.nodes[place])


@settings(max_examples=30)
@given(data=st.data())
def test_a_row_raises_every_score_by_zero_to_the_sensitivity(data: st.DataObject) -> None:
    problem = data.draw(problems())
    table = data.draw(tables(problem))
    row = data.draw(
        st.tuples(*(st.integers(0, hierarchy.outside) for hierarchy in problem.hierarchies))
    )
    before, after = compute_scores(problem, table), compute_scores(problem, (*table, row))
    assert before == compute_defined_scores(problem, table)
    for number, first in enumerate(problem.ramps):
        span = slice(number * len(problem.nodes), (number + 1) * len(problem.nodes))
        for low, high in zip(before[span], after[span], strict=True):
            assert isinstance(low, int)
            assert 0 <= high - low <= W * first.d


def test_a_row_can_raise_a_score_by_the_whole_sensitivity() -> None:
    hierarchy = build_from_rows([("a", "*"), ("b", "*")])
    for k, beta in ((3, 0.5), (20, 0.85), (200, 0.3)):
        first = make_ramp(k, beta)
        problem = SearchProblem((hierarchy,), Lattice((0,), (1,)), (first,))
        at_foot = ((0,),) * first.a
        before, after = compute_scores(problem, at_foot), compute_scores(problem, (*at_foot, (0,)))
        assert before == [0, 0]
        assert after == [W * first.d, 0]


@pytest.mark.parametrize(("k", "beta"), [(1, 0.5), (3, 0.9), (14, 0.25), (196, 0.85), (5, 1e-3)])
def test_the_ramp_is_what_the_docstring_says(k: int, beta: float) -> None:
    ramp = make_ramp(k, beta)
    crowd = k / beta
    rows = np.arange(int(3 * crowd) + 5)
    psi = ramp.compute_psi(rows)
    assert psi[: ramp.a + 1].max() == 0
    assert ramp.a == pytest.approx(0.7 * crowd, abs=1)
    steps = np.diff(psi)
    assert steps.min() >= 0
    assert steps.max() == ramp.d
    share = psi[1:] / rows[1:]
    assert np.all(np.diff(share) >= 0)  # what bounds rest on
    assert ramp.b / 1024 == pytest.approx(beta, abs=5e-4)
    meets = int(np.argmax(psi[1:] == ramp.b * rows[1:])) + 1
    assert np.all(psi[meets:] == ramp.b * rows[meets:])
    if beta > 0.01:  # below, rates are rounded to few thousandths
        assert meets == pytest.approx(1.7 * crowd, rel=0.01, abs=2)


@settings(max_examples=30)
@given(data=st.data())
def test_bounds_never_fall_below_scores_whatever_was_scored(data: st.DataObject) -> None:
    problem = data.draw(problems())
    table = data.draw(tables(problem))
    true = np.zeros((len(problem.ramps), *problem.lattice.shape))
    true.flat[problem.places] = compute_scores(problem, table)
    state = problem.make_state(table)
    assert np.all(state._bound >= true)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_FEW", data.draw(st.sampled_from([-1, 16])))
        for node in data.draw(st.permutations(problem.nodes))[:6]:
            state._best = None  # the bounds are to hold whatever was found before
            state.score_node(node)
            assert np.all(state._bound >= true)


@settings(max_examples=30)
@given(data=st.data())
def test_bounds_of_listed_candidates_are_those_over_the_lattice(data: st.DataObject) -> None:
    """Whatever was scored before they were listed, and whatever is scored after it."""
    problem = data.draw(problems())
    table = data.draw(tables(problem))
    states = [problem.make_state(table) for _ in range(2)]
    order = data.draw(st.permutations(problem.nodes))[:6]
    listed_from = data.draw(st.integers(0, len(order)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_FEW", -1)
        for at, node in enumerate(order):
            for state, limit in zip(states, (10**9, 0), strict=True):
                state._best = (-1, node, problem.ramps[0])  # all may win
                patch.setattr(module, "_LISTED", limit)
                if at >= listed_from:
                    state.find_open_nodes(lambda _done, _all: None)
                state.score_node(node)
    plain, listing = states
    assert not plain._lists
    for number, listed in listing._lists.items():
        ups = np.unravel_index(listed.places, problem.lattice.shape)
        is_open = listed.bound > -np.inf
        bounds = plain._bound[number][ups]
        np.testing.assert_allclose(listed.bound[is_open], bounds[is_open], rtol=1e-12)
        assert not plain._closed[number][ups][is_open].any()


def test_a_bound_is_no_wider_than_what_it_promises() -> None:
    """A bound that never falls would make the search slow and this file blind to it."""
    hierarchy = build_from_rows([("a", "g", "*"), ("b", "g", "*"), ("c", "h", "*")])
    problem = SearchProblem((hierarchy,), Lattice((0,), (2,)), (make_ramp(10, 0.5),))
    table = ((0,),) * 40 + ((1,),) * 3 + ((2,),) * 12
    state = problem.make_state(table)
    state.score_node((2,))
    wide = state._bound.copy()
    state.score_node((1,))
    assert wide[0, 0] == pytest.approx(W * problem.ramps[0].b * len(table), rel=1e-6)
    assert state._bound[0, 0] < wide[0, 0]
    ramp = problem.ramps[0]
    tight = W * (
        int(ramp.compute_psi(np.array([43]))[0]) + int(ramp.compute_psi(np.array([12]))[0])
    )
    assert state._bound[0, 0] == pytest.approx(tight, rel=1e-6)


def test_what_cannot_win_is_not_scored() -> None:
    hierarchy = build_from_rows([(f"v{i}", f"g{i // 4}", f"h{i // 16}", "*") for i in range(64)])
    problem = SearchProblem((hierarchy,) * 3, Lattice((0, 0, 0), (3, 3, 3)), (make_ramp(50, 0.5),))
    draw = np.random.default_rng(1)
    table = tuple(tuple(int(x) for x in row) for row in draw.integers(0, 64, (3000, 3)))
    search = problem.run_search(table, Fraction(10), SeededRandomness(1))
    assert search.scored < problem.lattice.size / 2


def test_noise_is_drawn_for_every_candidate_whatever_the_table() -> None:
    """The words that are used up, and so the draws that follow, tell nothing of the table."""
    hierarchy = build_from_rows([("a", "g", "*"), ("b", "g", "*"), ("c", "h", "*")])
    problem = SearchProblem(
        (hierarchy,) * 2, Lattice((0, 0), (2, 2)), (make_ramp(2, 0.5), make_ramp(3, 0.8))
    )
    after = []
    for table in (((0, 0),) * 50, ((0, 1), (2, 2)), ((1, 2),) * 3):
        bits = SeededRandomness(5)
        problem.run_search(table, Fraction(1, 10), bits)
        after.append(bits.draw_words(4).tolist())
    assert after[0] == after[1] == after[2]


# Open domains: weights must not depend on the values that were met.


def open_problem(
    declared: object, values: Iterable[str], weights: tuple[float, float]
) -> SearchProblem:
    column = Column.model_validate({"role": "quasi", "hierarchy": declared})
    hierarchy = build_hierarchy(column, folder=Path(), values=values)
    return make_lattice_problem(hierarchy, TWO, pairs=[(2, 0.5)], weights=weights)


MASK = {"mask": {"length": 3, "alphabet": "012"}}
MASKED = ["".join(text) for text in itertools.product("012", repeat=3)]


@pytest.mark.parametrize(
    ("declared", "met", "weights"),
    [
        ("flat", ["a", "b"], (1.0, 1.0)),
        ("flat", ["a", "b", "c"], (1.0, 1.0)),
        (MASK, MASKED[:2], (1.0, 1.0)),
        (MASK, MASKED[:26], (13.0, 11.0)),
        (MASK, MASKED, (13.0, 11.0)),
    ],
)
def test_a_row_with_a_new_value_of_an_open_domain_lowers_no_score(
    declared: object, met: list[str], weights: tuple[float, float]
) -> None:
    before = open_problem(declared, met[:-1], weights)
    after = open_problem(declared, met, weights)
    table = ((0, 0),) * 30
    low = compute_scores(before, table)
    high = compute_scores(after, (*table, (len(met) - 1, 0)))
    for first, other in zip(low, high, strict=True):
        assert 0 <= other - first <= W * before.ramps[0].d


def test_an_empty_table_is_searched_like_any_other() -> None:
    """It neighbors a table of one row, so it must not fail where that one does not."""
    wide = build_from_rows([(f"v{i}", "*") for i in range(5000)])
    problem = make_lattice_problem(wide, pairs=[(2, 0.5)])
    search = problem.run_search(((7,),), USUAL, SeededRandomness(1))
    assert problem.run_search((), USUAL, SeededRandomness(1)) == search


def test_whether_a_search_is_refused_does_not_depend_on_the_table() -> None:
    wide = build_from_rows([(f"v{i}", f"g{i // 50}", "*") for i in range(300)])
    problem = make_lattice_problem(*[wide] * 8, pairs=[(50, 0.5)])
    alike = ((7,) * 8,) * 500
    spread = tuple(tuple((i * (j + 1)) % 300 for j in range(8)) for i in range(500))
    ends = []
    for table in (alike, spread):
        try:
            problem.run_search(table, Fraction(10), SeededRandomness(1))
        except ParameterError as error:
            ends.append(str(error))
        else:
            ends.append("found")
    assert ends[0] == ends[1]
