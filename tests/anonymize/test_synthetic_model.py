"""Junction trees and exact inference, against the full joint law."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.small_domains import fit_pairs, full_joint, random_joint, small_domain

from incrowd.anonymize.synthetic.domain import Domain, RulesError
from incrowd.anonymize.synthetic.model import make_structure
from incrowd.anonymize.synthetic.tree import build_tree, make_graph, triangulate

PAIRS = list(combinations(range(6), 2))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(PAIRS), unique=True))
def test_cliques_cover_the_graph_and_columns_are_connected(edges: list[tuple[int, int]]) -> None:
    cliques = triangulate(make_graph(6, edges), [2, 3, 4, 5, 6, 7])
    assert {column for clique in cliques for column in clique} == set(range(6))
    for edge in edges:
        assert any(set(edge) <= set(clique) for clique in cliques)
    tree = build_tree(cliques)
    for column in range(6):
        holding = [at for at, clique in enumerate(cliques) if column in clique]
        links = [at for at in holding if tree.parents[at] in holding]
        assert len(links) == len(holding) - 1


@settings(max_examples=15, deadline=None)
@given(
    st.lists(st.sampled_from(list(combinations(range(4), 2))), unique=True, min_size=1),
    st.integers(0, 1),
    st.integers(0, 2),
)
def test_inference_is_that_of_the_full_joint(
    pairs: list[tuple[int, int]], level_1: int, level_3: int
) -> None:
    """Random potentials: every table of one to three columns, by brute force."""
    domain = small_domain()
    levels = [0, level_1, 0, level_3]
    structure = make_structure(domain, levels, make_graph(4, pairs))
    rng = np.random.default_rng(len(pairs))
    potentials = [rng.normal(size=shape) for shape in structure.shapes]
    joint = np.ones(structure.sizes)
    for clique, potential in zip(structure.tree.cliques, potentials, strict=True):
        shape = [structure.sizes[x] if x in clique else 1 for x in range(4)]
        joint = joint * np.exp(potential).reshape(shape)
    marginals, log_sum = structure.calibrate(potentials)
    assert log_sum == pytest.approx(np.log(joint.sum()))
    joint /= joint.sum()
    for clique, marginal in zip(structure.tree.cliques, marginals, strict=True):
        others = tuple(axis for axis in range(4) if axis not in clique)
        assert marginal == pytest.approx(joint.sum(axis=others))


def test_tables_of_a_model_are_those_of_its_joint_at_every_level() -> None:
    domain = small_domain()
    law = random_joint(domain, 4)
    model = fit_pairs(domain, law, 10_000.0, [(0, 1), (1, 2), (2, 3)], [0, 1, 0, 1])
    joint = full_joint(model)
    assert joint.sum() == pytest.approx(1)
    for size in (1, 2, 3):
        for columns in combinations(range(4), size):
            others = tuple(axis for axis in range(4) if axis not in columns)
            table = joint.sum(axis=others)
            assert model.table(columns, (0,) * size) == pytest.approx(table)
            tops = domain.tops(columns)
            rolled = domain.roll_up(table, columns, (0,) * size, tops)
            assert model.table(columns, tops) == pytest.approx(rolled)


def test_contradictory_rules_leave_no_model() -> None:
    columns = small_domain().columns
    first = np.ones((2, 3), dtype=bool)
    first[0] = False
    second = np.ones((2, 6), dtype=bool)
    second[1] = False
    domain = Domain(columns, {(0, 2): first, (0, 1): second})
    structure = make_structure(domain, [0, 0, 0, 0], make_graph(4, domain.rules))
    with pytest.raises(RulesError, match="contradict"):
        structure.calibrate([np.zeros(shape) for shape in structure.shapes])
