"""Tables on a clique, put and read, against brute-force sums over its cells."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.anonymize.synthetic.domain import Columns
from incrowd.anonymize.synthetic.margins import CliqueMargins
from incrowd.arrays import Floats


def read_cells(clique: Columns, table: Floats, columns: Columns) -> Floats:
    """The sums of a clique's table, cell by cell."""
    axes = [clique.index(column) for column in columns]
    result = np.zeros([table.shape[axis] for axis in axes])
    for cell in product(*map(range, table.shape)):
        result[tuple(cell[axis] for axis in axes)] += table[cell]
    return result


def put_cells(
    clique: Columns, shape: Sequence[int], tables: dict[Columns, Floats], subsets: Sequence[Columns]
) -> Floats:
    """The sum of all tables at each cell of a clique."""
    result = np.zeros(shape)
    for cell in product(*map(range, shape)):
        for columns in subsets:
            result[cell] += tables[columns][tuple(cell[clique.index(x)] for x in columns)]
    return result


@st.composite
def cliques(draw: st.DrawFn) -> tuple[Columns, list[int], list[Columns], int]:
    """A clique of 1 to 5 columns, its shape, some sets of its columns, and a seed."""
    clique = tuple(sorted(draw(st.sets(st.integers(0, 12), min_size=1, max_size=5))))
    shape = draw(st.lists(st.integers(1, 4), min_size=len(clique), max_size=len(clique)))
    subsets = [some for n in range(1, len(clique) + 1) for some in combinations(clique, n)]
    chosen = draw(st.lists(st.sampled_from(subsets), max_size=8, unique=True))
    return clique, shape, chosen, draw(st.integers(0, 1000))


@settings(max_examples=60, deadline=None)
@given(cliques())
def test_margins_equal_sums_over_cells(
    given_clique: tuple[Columns, list[int], list[Columns], int],
) -> None:
    clique, shape, subsets, seed = given_clique
    rng = np.random.default_rng(seed)
    sizes = dict(zip(clique, shape, strict=True))
    margins = CliqueMargins(clique, shape, subsets)
    table = rng.normal(size=shape)
    before = table.copy()
    read = margins.read(table)
    assert set(read) == set(subsets)
    assert (table == before).all()
    for columns in subsets:
        assert read[columns] == pytest.approx(read_cells(clique, table, columns), abs=1e-12)
    parts = {columns: rng.normal(size=[sizes[x] for x in columns]) for columns in subsets}
    put = margins.put(parts)
    assert put.shape == tuple(shape)
    assert put == pytest.approx(put_cells(clique, shape, parts, subsets), abs=1e-12)
    # Each is the other's transpose: the gradient of a fit rests on it.
    assert float((put * table).sum()) == pytest.approx(
        sum(float((parts[x] * read[x]).sum()) for x in subsets), abs=1e-9
    )


@pytest.mark.parametrize("shape", [(2, 7, 3, 5), (5, 2, 7, 3), (4, 4, 4, 4), (1, 6, 1, 6)])
def test_every_table_of_a_large_clique_takes_its_way(shape: tuple[int, ...]) -> None:
    """All pairs and triples at once: without one large column, without the other, with both."""
    clique = (1, 3, 4, 8)
    subsets = [some for n in (1, 2, 3, 4) for some in combinations(clique, n)]
    margins = CliqueMargins(clique, shape, subsets)
    assert len(margins._ways) == 3
    assert sorted(columns for some in margins._ways.values() for columns in some) == sorted(subsets)
    assert all(set(columns) <= set(way) for way, some in margins._ways.items() for columns in some)
    table = np.random.default_rng(3).random(shape)
    for columns, sums in margins.read(table).items():
        assert sums == pytest.approx(read_cells(clique, table, columns))


def test_no_tables_leave_a_clique_empty() -> None:
    margins = CliqueMargins((0, 2), (3, 2), [])
    assert margins.read(np.ones((3, 2))) == {}
    assert (margins.put({}) == np.zeros((3, 2))).all()
