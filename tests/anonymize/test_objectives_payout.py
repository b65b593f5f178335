"""The scheme that pays the publisher most, against every scheme judged row by row."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.brute_lattice import ROOT, LabelRows, LatticeCase, Record, lattice_cases

from incrowd.anonymize.lattice import Node
from incrowd.anonymize.objectives import make_objective
from incrowd.anonymize.ola import NoSchemeError, find_minimal_nodes, find_optimal_node
from incrowd.measure.payout import PayoutModel


def compute_chance(rows: int, fraction: float) -> float:
    """E[1/F] for a negative binomial F of which so many rows are in the sample, term by term."""
    term, total = fraction**rows, 0.0  # P(F = rows)
    for people in range(rows, 4_000):
        total += term / people
        term *= (1 - fraction) * people / (people - rows + 1)
    return total


def judge_payout(case: LatticeCase, node: Node, model: PayoutModel) -> tuple[int, float]:
    """The rows suppressed at a node, and what it pays in all."""
    suppressed, payout = 0, 0.0
    for rows in case.group_rows(node).values():
        if not case.is_acceptable(rows):
            suppressed += len(rows)
            continue
        chance = compute_chance(len(rows), model.fraction)
        is_attacked = model.attacker_gain * chance > model.attack_cost
        if model.fraction == 1:
            chance = 1 / len(rows)
            gain = Fraction(model.attacker_gain) / len(rows)
            is_attacked = gain > Fraction(model.attack_cost)
        for row in rows:
            bits = most = 0.0
            for at, value in enumerate(case.records[row]):
                ladder, weight = case.ladders[at], model.weights[at]
                bits += weight * math.log(ladder.count_covered(value, node[at]))
                most += weight * math.log(len(ladder.rows))
            payout += model.benefit * (1 - (bits / most if most else 0.0))
            payout -= model.publisher_loss * chance if is_attacked else 0.0
    return suppressed, payout


@st.composite
def payout_models(draw: st.DrawFn, columns: int) -> PayoutModel:
    return PayoutModel(
        benefit=draw(st.sampled_from([1.0, 10.0, 1200.0])),
        publisher_loss=draw(st.sampled_from([0.0, 1.0, 30.0, 3000.0])),
        attacker_gain=draw(st.sampled_from([0.0, 4.0, 12.0, 300.0])),
        attack_cost=draw(st.sampled_from([0.0, 1.0, 2.0, 4.0])),
        weights=tuple(draw(st.sampled_from([0.5, 1.0, 3.0])) for _ in range(columns)),
        fraction=draw(st.sampled_from([1.0, 1.0, 0.1, 0.5])),
    )


def draw_model(case: LatticeCase, data: st.DataObject) -> PayoutModel:
    return data.draw(payout_models(len(case.ladders)))


@settings(max_examples=120, deadline=None)
@given(case=lattice_cases(ruled=True) | lattice_cases(), data=st.data())
def test_no_scheme_pays_more(case: LatticeCase, data: st.DataObject) -> None:
    model = draw_model(case, data)
    judged = {node: judge_payout(case, node, model) for node in case.nodes}
    within = {node: pays for node, (lost, pays) in judged.items() if lost <= case.limit}
    rollups = case.make_rollups()
    if not within:
        with pytest.raises(NoSchemeError):
            find_optimal_node(rollups, case.lattice, k=case.k, limit=case.limit, loss=model)
        return
    best = find_optimal_node(rollups, case.lattice, k=case.k, limit=case.limit, loss=model)
    highest = len(case.records) * model.benefit
    assert (1 - best.loss) * highest == pytest.approx(within[best.levels], rel=1e-9, abs=1e-9)
    assert (1 - best.loss) * highest == pytest.approx(max(within.values()), rel=1e-9, abs=1e-9)
    assert best.is_exact


@settings(max_examples=40, deadline=None)
@given(case=lattice_cases(ruled=True) | lattice_cases(), data=st.data(), draw=st.randoms())
def test_no_floor_exceeds_what_a_scheme_misses(
    case: LatticeCase, data: st.DataObject, draw: Random
) -> None:
    model, rollups, nodes = draw_model(case, data), case.make_rollups(), list(case.nodes)
    goal = make_objective(model, case.lattice, rollups, limit=case.limit, weights=case.shares)
    ends = [(draw.choice(nodes), draw.choice(nodes)) for _ in range(12)]
    for low, high in [*ends, *((node, node) for node in nodes), (nodes[0], nodes[-1])]:
        classes = rollups.count_classes(high, k=case.k)
        assert classes is not None
        floor = goal.compute_floor(low, goal.bound_row_loss(high, classes))
        for node in nodes:
            if all(x <= y <= z for x, y, z in zip(low, node, high, strict=True)):
                pays = judge_payout(case, node, model)[1]
                assert floor <= 1 - pays / (len(case.records) * model.benefit) + 1e-9


def make_case(sizes: Sequence[int], *, k: int, limit: int) -> LatticeCase:
    """One column of values a, b, c, d in groups ab, cd, with so many rows each."""
    rows = (("a", "ab", ROOT), ("b", "ab", ROOT), ("c", "cd", ROOT), ("d", "cd", ROOT))
    records: list[Record] = [
        (value,) for value, count in zip("abcd", sizes, strict=True) for _ in range(count)
    ]
    return LatticeCase(
        [LabelRows(rows, None)], records, [0] * len(records), (), k, limit, [1.0], (0,), (2,),
        "normalized",
    )  # fmt: skip


def find_payouts(sizes: Sequence[int], model: PayoutModel, *, k: int = 1) -> list[float]:
    """What each of the three levels pays, nothing being suppressed but classes below k."""
    case = make_case(sizes, k=k, limit=sum(sizes))
    rollups = case.make_rollups()
    goal = make_objective(model, case.lattice, rollups, limit=case.limit, weights=np.ones(1))
    payouts = []
    for level in range(3):
        classes = rollups.count_classes((level,), k=k)
        assert classes is not None
        payouts.append((1 - goal.compute_loss((level,), classes)) * sum(sizes) * model.benefit)
    return payouts


def test_a_table_worked_by_hand() -> None:
    """Classes of 2 and 4 are worth an attack (10/2 and 10/4 > 2), those of 5 and more are not."""
    model = PayoutModel(8, 100, 10, 2, (1.0,))
    # Level 0: 17 rows pay 8 each, classes of 2 and 4 are attacked with one expected success each.
    # Level 1: log 2 / log 4 of all bits is lost, 4 each; classes of 6 and 11.
    assert find_payouts([2, 4, 5, 6], model) == pytest.approx([17 * 8 - 200, 17 * 4, 0])
    # With k = 3 the class of 2 is suppressed, pays nothing, and is not attacked.
    assert find_payouts([2, 4, 5, 6], model, k=3) == pytest.approx([15 * 8 - 100, 17 * 4, 0])


def test_an_attack_that_gains_what_it_costs_is_none() -> None:
    """10/5 = 2 is no gain above 2; a little more is."""
    for gain, attacked in ((10, 0), (10.001, 4)):
        model = PayoutModel(8, 1, gain, 2, (1.0,))
        assert find_payouts([5, 5, 5, 5], model)[0] == pytest.approx(20 * 8 - attacked)
    # As floating-point numbers 3 * (1/49) * 49 / 3 is not 1
    for size in range(1, 200):
        model = PayoutModel(1, 1, 3.0 * size, 3.0, (1.0,))
        assert model.count_reidentified(np.array([size])) == 0


def test_the_payout_is_not_monotone() -> None:
    """The best scheme can be neither the finest within the limit nor the coarsest."""
    model = PayoutModel(8, 100, 10, 2, (1.0,))
    case = make_case([2, 4, 5, 6], k=1, limit=0)
    best = find_optimal_node(case.make_rollups(), case.lattice, k=1, limit=0, loss=model)
    assert best.levels == (1,)
    minimal = find_minimal_nodes(case.make_rollups(), case.lattice, k=1, limit=0, loss=model)
    assert [scheme.levels for scheme in minimal] == [(0,)]


def test_whoever_knows_the_population_alone_finds_fewer() -> None:
    prosecutor = PayoutModel(8, 100, 1000, 2, (1.0,))
    journalist = PayoutModel(8, 100, 1000, 2, (1.0,), fraction=0.1)
    pays, more = find_payouts([2, 4, 5, 6], prosecutor), find_payouts([2, 4, 5, 6], journalist)
    assert more[0] > pays[0]
    expected = sum(size * compute_chance(size, 0.1) for size in (2, 4, 5, 6))
    assert more[0] == pytest.approx(17 * 8 - 100 * expected)
