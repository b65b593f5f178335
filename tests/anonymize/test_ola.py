"""Optimal and minimal nodes, against a search of every node, row by row from the definitions."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.brute_lattice import ROOT, RULES, LabelRows, LatticeCase, Record, lattice_cases

from incrowd.anonymize.lattice import Lattice, Node, Rollups
from incrowd.anonymize.objectives import ClassSizeLoss, SeparableLoss, make_objective
from incrowd.anonymize.ola import NoSchemeError, find_minimal_nodes, find_optimal_node
from incrowd.codes.frequency import merge_tuples
from incrowd.codes.hierarchy import build_from_rows
from incrowd.errors import ParameterError
from incrowd.measure.diversity import DistinctRule, DiversityRule, EntropyRule
from incrowd.measure.loss import LOSSES, LossName, compute_entropy_costs


def check_optimal(case: LatticeCase) -> None:
    within = {
        node: judged for node in case.nodes if (judged := case.judge_node(node))[0] <= case.limit
    }
    search = {"k": case.k, "limit": case.limit, "loss": case.name, "weights": case.shares}
    if not within:
        with pytest.raises(NoSchemeError, match=f"k = {case.k} and at most {case.limit} rows"):
            find_optimal_node(case.make_rollups(), case.lattice, **search)  # type: ignore[arg-type]
        return
    optimum = find_optimal_node(case.make_rollups(), case.lattice, **search)  # type: ignore[arg-type]
    assert optimum.levels in within
    suppressed, loss = within[optimum.levels]
    assert optimum.suppressed == suppressed
    assert optimum.loss == pytest.approx(loss, abs=1e-9)
    assert optimum.loss == pytest.approx(min(loss for _, loss in within.values()), abs=1e-9)
    assert 1 <= optimum.evaluated <= case.lattice.size
    if case.name in ("discernibility", "class-size"):  # of whole numbers, so ties are exact
        for child in case.lattice.iterate_children(optimum.levels):
            assert child not in within or within[child][1] > loss


@settings(max_examples=60)
@given(case=lattice_cases())
def test_no_node_loses_less_than_the_optimal_one(case: LatticeCase) -> None:
    check_optimal(case)


@settings(max_examples=50)
@given(case=lattice_cases(ruled=True))
def test_no_node_loses_less_where_sensitive_values_are_protected(case: LatticeCase) -> None:
    check_optimal(case)


def check_minimal(case: LatticeCase) -> None:
    judged = {node: case.judge_node(node) for node in case.nodes}
    within = {node for node, (suppressed, _) in judged.items() if suppressed <= case.limit}
    expected = {
        node
        for node in within
        if not any(
            other != node and all(x <= y for x, y in zip(other, node, strict=True))
            for other in within
        )
    }
    search = {"k": case.k, "limit": case.limit, "loss": case.name, "weights": case.shares}
    if not within:
        with pytest.raises(NoSchemeError):
            find_minimal_nodes(case.make_rollups(), case.lattice, **search)  # type: ignore[arg-type]
        return
    minimal = find_minimal_nodes(case.make_rollups(), case.lattice, **search)  # type: ignore[arg-type]
    assert {scheme.levels for scheme in minimal} == expected
    assert len(minimal) == len(expected)
    for scheme in minimal:
        assert scheme.suppressed == judged[scheme.levels][0]
        assert scheme.loss == pytest.approx(judged[scheme.levels][1], abs=1e-9)
        assert 1 <= scheme.evaluated <= case.lattice.size
    losses = [scheme.loss for scheme in minimal]
    assert losses == sorted(losses)


@settings(max_examples=50)
@given(case=lattice_cases())
def test_minimal_nodes_are_all_that_have_no_finer_one(case: LatticeCase) -> None:
    check_minimal(case)


@given(case=lattice_cases(ruled=True))
def test_minimal_nodes_where_sensitive_values_are_protected(case: LatticeCase) -> None:
    if case.limit and not all(isinstance(rule, DistinctRule) for rule in case.rules):
        with pytest.raises(ParameterError, match="'candidates' .*suppression: 0"):
            find_minimal_nodes(case.make_rollups(), case.lattice, k=case.k, limit=case.limit)
        case.limit = 0
    check_minimal(case)


def check_bounds(case: LatticeCase, pairs: list[tuple[Node, Node]]) -> None:
    """What the ends of a box tell of all its nodes must be true, and tight where it may be."""
    rollups = case.make_rollups()
    goal = make_objective(case.name, case.lattice, rollups, limit=case.limit, weights=case.shares)
    for low, high in pairs:
        classes = rollups.count_classes(high, k=case.k)
        assert classes is not None
        floor = goal.compute_floor(low, goal.bound_row_loss(high, classes))
        for node in between(case.nodes, low, high):
            suppressed, loss = case.judge_node(node)
            if suppressed <= case.limit or case.name != "class-size":
                assert floor <= loss + 1e-9
        if low != high:
            continue
        if isinstance(goal, SeparableLoss) and rollups.is_monotone:
            assert floor == pytest.approx(case.judge_node(low)[1], abs=1e-9)
        sizes = [len(rows) for rows in case.group_rows(low).values()]
        if case.name == "discernibility":
            small = sum(size for size in sizes if size < case.k)
            squares = sum(size**2 for size in sizes) / len(case.records) ** 2
            assert floor >= max(squares, small / len(case.records)) - 1e-9
        if case.name == "class-size":
            assert floor >= (len(case.records) - case.limit) / len(sizes) - 1e-9


def between(nodes: list[Node], low: Node, high: Node) -> list[Node]:
    return [
        node for node in nodes if all(x <= y <= z for x, y, z in zip(low, node, high, strict=True))
    ]


@settings(max_examples=30)
@given(case=lattice_cases(ruled=True) | lattice_cases(), draw=st.randoms(use_true_random=False))
def test_no_floor_exceeds_a_loss(case: LatticeCase, draw: Random) -> None:
    nodes = list(case.nodes)
    pairs = [(draw.choice(nodes), draw.choice(nodes)) for _ in range(12)]
    boxes = [(low, high) for low, high in pairs if between(nodes, low, high)]
    check_bounds(case, [*boxes, *((node, node) for node in nodes), (nodes[0], nodes[-1])])


@settings(max_examples=30)
@given(case=lattice_cases(ruled=True) | lattice_cases(), order=st.randoms(use_true_random=False))
def test_no_bound_of_a_listed_lattice_exceeds_a_loss(case: LatticeCase, order: Random) -> None:
    """Every node has taught all it can."""
    if case.name not in ("discernibility", "class-size"):
        case.name = "class-size"
    rollups, nodes = case.make_rollups(), list(case.nodes)
    goal = make_objective(case.name, case.lattice, rollups, limit=case.limit, weights=case.shares)
    assert isinstance(goal, ClassSizeLoss)
    order.shuffle(nodes)
    for node in nodes:
        classes = rollups.count_classes(node, k=case.k)
        assert classes is not None
        goal.raise_bounds(node, classes)
    for node in nodes:
        suppressed, loss = case.judge_node(node)
        if suppressed <= case.limit or case.name != "class-size":
            assert float(goal.bound[case.lattice.locate_node(node)]) <= loss + 1e-9


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("rule", [EntropyRule(2), DistinctRule(2)])
def test_no_bound_counts_what_a_coarse_class_alone_loses(
    name: LossName, rule: DiversityRule
) -> None:
    """40 rows of 'a' are protected; joined by 60 of 'b' that are not, they are only by number."""
    rows = (("a", "ab", ROOT), ("b", "ab", ROOT), ("c", "cd", ROOT), ("d", "cd", ROOT))
    records: list[Record] = [*[("a",)] * 40, *[("b",)] * 60, *[("c",)] * 4, *[("d",)] * 4]
    secrets = [*[0, 1] * 20, *[0] * 60, *[0, 1] * 4]
    case = LatticeCase(
        [LabelRows(rows, None)], records, secrets, (rule,), 2, 60, [1.0], (0,), (2,), name
    )
    assert case.judge_node((0,))[0] == 60
    if not rule.monotone:
        assert case.judge_node((1,))[0] >= 100
    nodes = case.nodes
    check_bounds(case, [(low, high) for low in nodes for high in nodes if low <= high])
    check_optimal(case)


def plain(name: LossName, *, k: int, limit: int) -> LatticeCase:
    """Two hundred and fifty rows over a lattice of 256 nodes."""
    rng = np.random.default_rng(11)
    rows = tuple((str(x), f"{x // 2}", f"{x // 4}", ROOT) for x in range(8))
    ladder = LabelRows(rows, None)
    records = [tuple(str(x) for x in row) for row in rng.binomial(7, 0.3, (250, 4)).tolist()]
    ends: tuple[Node, Node] = (0,) * 4, (3,) * 4
    return LatticeCase([ladder] * 4, records, [0] * 250, (), k, limit, [1.0] * 4, *ends, name)


@pytest.mark.parametrize("name", LOSSES)
def test_a_search_looks_at_few_nodes_and_tells_how_far_it_is(name: LossName) -> None:
    case = plain(name, k=5, limit=12)
    progress_calls: list[tuple[int, int]] = []

    def progress(decided: int, nodes: int) -> None:
        progress_calls.append((decided, nodes))

    optimum = find_optimal_node(
        case.make_rollups(), case.lattice, k=5, limit=12, loss=name, progress=progress
    )
    judged = [case.judge_node(node) for node in case.nodes]
    best = min(loss for suppressed, loss in judged if suppressed <= 12)
    assert optimum.loss == pytest.approx(best, abs=1e-9)
    assert optimum.evaluated < case.lattice.size / 3
    decided = [count for count, _ in progress_calls]
    assert decided == sorted(decided)
    assert decided[0] < decided[-1]
    assert {nodes for _, nodes in progress_calls} == {256}
    assert decided[-1] == 256
    progress_calls.clear()
    minimal_nodes = find_minimal_nodes(
        case.make_rollups(), case.lattice, k=5, limit=12, loss=name, progress=progress
    )
    assert minimal_nodes[0].evaluated < case.lattice.size / 3
    assert progress_calls[-1] == (256, 256)
    assert all(optimum.loss <= scheme.loss + 1e-12 for scheme in minimal_nodes)


def test_the_same_search_gives_the_same_answer() -> None:
    case = plain("normalized", k=4, limit=10)
    optimal_node = find_optimal_node(case.make_rollups(), case.lattice, k=4, limit=10)
    assert optimal_node == find_optimal_node(case.make_rollups(), case.lattice, k=4, limit=10)
    even = find_optimal_node(
        case.make_rollups(), case.lattice, k=4, limit=10, weights=np.full(4, 2.5)
    )
    assert (optimal_node.levels, optimal_node.suppressed) == (even.levels, even.suppressed)
    assert optimal_node.loss == pytest.approx(even.loss)


def test_a_table_worked_by_hand() -> None:
    """Ages 20, 21, 30 and 31 with 3, 1, 2 and 2 rows; tens, then all; k = 2.

    As they are: the row of 21 is lost, 1/8. In tens: nothing is lost, and each covers 2 of 4
    values, 1/3. So the values win where a row may go, and the tens where none may.
    """
    ages = build_from_rows([(str(x), str(x // 10), ROOT) for x in (20, 21, 30, 31)])
    frequencies = merge_tuples(np.array([[0], [1], [2], [3]], np.int32), np.array([3, 1, 2, 2]))
    lattice = Lattice((0,), (2,))
    optimal_node = find_optimal_node(Rollups([ages], frequencies), lattice, k=2, limit=1)
    assert (optimal_node.levels, optimal_node.suppressed) == ((0,), 1)
    assert optimal_node.loss == pytest.approx(1 / 8)
    none = find_optimal_node(Rollups([ages], frequencies), lattice, k=2, limit=0)
    assert (none.levels, none.suppressed) == ((1,), 0)
    assert none.loss == pytest.approx(1 / 3)
    pair = [
        scheme.levels
        for scheme in find_minimal_nodes(Rollups([ages], frequencies), lattice, k=2, limit=0)
    ]
    assert pair == [(1,)]
    sizes = find_optimal_node(
        Rollups([ages], frequencies), lattice, k=2, limit=1, loss="discernibility"
    )
    # as they are: 9 + 4 + 4 and 8 for the lost row; in tens: 16 + 16
    assert sizes.loss == pytest.approx(25 / 64)
    assert find_optimal_node(
        Rollups([ages], frequencies), lattice, k=2, limit=0, loss="class-size"
    ).loss == pytest.approx(4)


@pytest.mark.parametrize("name", LOSSES)
def test_of_equally_good_schemes_the_finer_is_taken(name: LossName) -> None:
    """All live in one town: to hide it gains nothing, whatever the loss says of it."""
    ladder = LabelRows((("x", ROOT), ("y", ROOT)), None)
    records: list[Record] = [*[("x", "x")] * 5, *[("y", "x")] * 5]
    case = LatticeCase([ladder] * 2, records, [0] * 10, (), 5, 0, [1.0] * 2, (0, 0), (1, 1), name)
    assert find_optimal_node(case.make_rollups(), case.lattice, k=5, limit=0, loss=name).levels == (
        0,
        0,
    )


def test_the_optimum_need_not_be_minimal() -> None:
    """Finer nodes within the limit may lose more: rows suppressed cost more than a level."""
    first = LabelRows((("0", "*"), ("1", "*")), None)
    second = LabelRows(tuple((str(x), "*") for x in range(2)), None)
    records: list[Record] = [*[("0", "0")] * 6, ("1", "0"), ("0", "1")]
    ends: tuple[Node, Node] = (0, 0), (1, 1)
    case = LatticeCase(
        [first, second], records, [0] * 8, (), 2, 2, [1.0, 99.0], *ends, "normalized"
    )
    rollups, weights = case.make_rollups(), np.array(case.weights)
    best = find_optimal_node(rollups, case.lattice, k=2, limit=2, weights=weights)
    assert best.levels == (1, 0)
    assert [x.levels for x in find_minimal_nodes(rollups, case.lattice, k=2, limit=2)] == [(0, 0)]


def test_a_single_row_that_a_rule_forbids_is_one_too_many() -> None:
    """Two rows of 'a' differ; the one of 'b' has no company until both are one class."""
    rows = (("a", ROOT), ("b", ROOT))
    records: list[Record] = [("a",), ("a",), ("b",)]
    rules = (EntropyRule(1.5),)
    case = LatticeCase(
        [LabelRows(rows, None)], records, [0, 1, 0], rules, 1, 0, [1.0], (0,), (1,), "normalized"
    )
    assert case.judge_node((0,))[0] == 1
    check_minimal(case)
    assert [
        x.levels for x in find_minimal_nodes(case.make_rollups(), case.lattice, k=1, limit=0)
    ] == [(1,)]


@pytest.mark.parametrize("rows", [1, 2, 11, 13, 29, 47, 1000, 2048, 12_345])
def test_a_column_of_one_value_loses_no_entropy(rows: int) -> None:
    """Whatever the rounding of logarithms: the values themselves cost nothing."""
    two = build_from_rows([("a", ROOT), ("b", ROOT)])
    costs = compute_entropy_costs(two, np.array([rows, 0, 0, 0], dtype=float))
    assert costs[0][0] == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("rule", RULES[1::2])
def test_protected_values_in_a_larger_table(name: LossName, rule: DiversityRule) -> None:
    rng = np.random.default_rng(5)
    case = plain(name, k=3, limit=60)
    case.records = case.records[:120]
    ages = np.array([int(record[0]) for record in case.records])
    case.secrets = np.minimum(ages // 2 + rng.integers(0, 2, 120), 2).tolist()
    case.rules, case.low, case.high = (rule,), (0, 1, 2, 2), (3, 3, 3, 3)
    case.__post_init__()  # the records are others
    for limit in (0, 12, 60):
        case.limit = limit
        check_optimal(case)
