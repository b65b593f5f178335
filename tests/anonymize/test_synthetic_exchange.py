"""Exchanging values: what it keeps, what it lowers, and faults that the checks notice.

The module claims: the table of every clique, at the model's levels, stays as it was; hence the
separators' tables and all rules that the model holds. The leaves of every column stay as often as
they were. The sum, over all pairs of columns, of what a count is more than a row away from the
model's never rises.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pytest
from support.small_domains import fit_pairs, nested, random_joint, small_domain

from incrowd.anonymize.synthetic import exchange, rows
from incrowd.anonymize.synthetic.domain import Columns, Domain, TableCounter, make_column
from incrowd.anonymize.synthetic.exchange import exchange_values
from incrowd.anonymize.synthetic.model import Model
from incrowd.anonymize.synthetic.tree import JunctionTree
from incrowd.arrays import Codes, Counts, Floats, Places

CHAIN = ([(0, 1), (1, 2), (2, 3)], [0, 1, 0, 1])
STAR = ([(0, 1), (0, 2), (0, 3)], [0, 0, 0, 2])
TRIANGLE = ([(0, 1), (1, 2), (0, 2)], [0, 1, 0, 2])
PARTS = ([(0, 1), (2, 3)], [0, 1, 0, 1])  # joined by an empty separator
ALONE: tuple[list[tuple[int, int]], list[int]] = ([], [0, 1, 0, 2])
STRUCTURES = [CHAIN, STAR, TRIANGLE, PARTS, ALONE]


def make_model(
    structure: tuple[list[tuple[int, int]], list[int]],
    seed: int,
    domain: Domain | None = None,
) -> Model:
    domain = domain or small_domain()
    return fit_pairs(domain, random_joint(domain, seed), 600.0, *structure)


def make_binary_model(seed: int) -> Model:
    """Six binary columns: few cells with many rows each, so that exchanges overshoot easily."""
    domain = Domain((make_column(nested(2)),) * 6)
    return make_model(([(0, 1), (2, 3)], [0] * 6), seed, domain)


def draw_plain(model: Model, count: int, seed: int) -> Codes:
    """Rows as drawn, before any exchange."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows, "exchange_values", lambda _model, positions, _rng: positions)
        return rows.draw_rows(model, count, np.random.default_rng(seed))


def exchange_seeded(model: Model, positions: Codes, seed: int) -> Codes:
    return exchange_values(model, positions, np.random.default_rng(seed))


def count_cliques(model: Model, positions: Codes) -> list[Counts]:
    """The table of every clique and separator, at the model's levels, then of every leaf."""
    structure = model.structure
    # The columns of small domains have their positions as codes.
    count = TableCounter(structure.domain, positions)
    sets: list[Columns] = [*structure.tree.cliques, *structure.tree.separators]
    tables = [count(columns, tuple(structure.levels[x] for x in columns)) for columns in sets]
    return [*tables, *(count((x,), (0,)) for x in range(len(structure.domain)))]


def measure_error(model: Model, positions: Codes) -> float:
    """What all counts of two columns are more than a row away from the model's."""
    count = TableCounter(model.structure.domain, positions)
    error = 0.0
    for pair in combinations(range(positions.shape[1]), 2):
        excess: Floats = count(pair, (0, 0)) - model.table(pair, (0, 0)) * len(positions)
        error += float(np.maximum(np.abs(excess) - 1, 0).sum())
    return error


def equals(some: Sequence[Counts], others: Sequence[Counts]) -> bool:
    return all((a == b).all() for a, b in zip(some, others, strict=True))


@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("count", [1, 2, 7, 600])
def test_tables_of_cliques_and_leaves_are_kept(
    structure: tuple[list[tuple[int, int]], list[int]], count: int
) -> None:
    for seed in range(3):
        model = make_model(structure, seed)
        before = draw_plain(model, count, seed)
        copy = before.copy()
        after = exchange_seeded(model, before, seed)
        assert (before == copy).all()
        assert after.shape == before.shape
        assert equals(count_cliques(model, before), count_cliques(model, after))


@pytest.mark.parametrize("structure", STRUCTURES)
def test_the_error_falls(structure: tuple[list[tuple[int, int]], list[int]]) -> None:
    for seed in range(3):
        model = make_model(structure, seed)
        before = draw_plain(model, 600, seed)
        after = exchange_seeded(model, before, seed)
        assert (after != before).any()
        assert measure_error(model, after) < 0.2 * measure_error(model, before)


@pytest.mark.parametrize("count", [100, 2_000, 20_000])
def test_the_error_never_rises_in_tables_of_few_cells(count: int) -> None:
    for seed in range(3):
        model = make_binary_model(seed)
        before = draw_plain(model, count, seed)
        error = measure_error(model, before)
        once = exchange_seeded(model, before, seed)
        assert measure_error(model, once) <= error
        twice = exchange_seeded(model, once, seed + 1)
        assert measure_error(model, twice) <= measure_error(model, once)


def test_exchanging_all_at_once_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted fault: exchanges of a chunk are made without regard to each other."""

    def update_always(self: exchange._ExcessTables, leaving: Places, coming: Places) -> bool:
        np.subtract.at(self._excess, leaving, 1.0)
        np.add.at(self._excess, coming, 1.0)
        return True

    monkeypatch.setattr(exchange._ExcessTables, "_update", update_always)
    model = make_binary_model(0)
    before = draw_plain(model, 20_000, 0)
    assert measure_error(model, exchange_seeded(model, before, 0)) > measure_error(model, before)


def test_every_exchange_of_one_pair_lowers_the_error_or_is_not_made() -> None:
    """Pair by pair; the tables that decide stay those of the rows."""
    model = make_model(CHAIN, 4)
    positions = draw_plain(model, 60, 4)
    sizes = [column.sizes[0] for column in model.structure.domain.columns]
    tables = exchange._ExcessTables(model, positions, sizes)
    rng = np.random.default_rng(4)
    error, exchanges = measure_error(model, positions), 0
    for separator, moved in exchange._list_moves(model):
        groups = np.zeros(60, dtype=np.int64)
        for column in separator:
            column_groups = model.structure.domain.columns[column].groups[
                model.structure.levels[column]
            ]
            groups = (
                groups * model.structure.sizes[column] + column_groups[tables.values[:, column]]
            )
        first, second = exchange._pair_up(groups, rng)
        assert (groups[first] == groups[second]).all()
        assert len({*first.tolist(), *second.tolist()}) == 2 * len(first)
        for at in range(len(first)):
            before = tables.values.copy()
            tables.exchange(first[at : at + 1], second[at : at + 1], moved)
            after = tables.values.copy()
            now = measure_error(model, after.astype(np.int32))
            changed = (after != before).any()
            assert now < error - 1e-9 if changed else now == pytest.approx(error)
            error, exchanges = now, exchanges + int(changed)
    assert exchanges > 5
    fresh = exchange._ExcessTables(model, tables.values.astype(np.int32), sizes)
    assert tables._excess == pytest.approx(fresh._excess, abs=1e-9)


def make_ruled_model(seed: int) -> Model:
    """Two rules: one about leaves below a level, one about three columns."""
    columns = small_domain().columns
    pair = np.ones((6, 8), dtype=bool)
    pair[5, 3], pair[0, 4:] = False, False
    triple = np.ones((2, 6, 3), dtype=bool)
    triple[1, :, 2], triple[0, 3, 0] = False, False
    domain = Domain(columns, {(1, 3): pair, (0, 1, 2): triple})
    law = random_joint(domain, seed) * triple[..., None] * pair[None, :, None, :]
    assert domain.rule_levels == (0, 0, 0, 0)
    pairs = [(0, 1), (1, 2), (0, 2), (1, 3)]
    return fit_pairs(domain, law / law.sum(), 600.0, pairs, [0, 0, 0, 0])


def count_broken_rules(model: Model, positions: Codes) -> int:
    rules = model.structure.domain.rules.items()
    return sum(int((~allowed[tuple(positions[:, columns].T)]).sum()) for columns, allowed in rules)


def test_every_row_keeps_to_the_rules_and_to_the_domain() -> None:
    for seed in range(3):
        model = make_ruled_model(seed)
        before = draw_plain(model, 600, seed)
        after = exchange_seeded(model, before, seed)
        assert (after != before).any()
        assert count_broken_rules(model, before) == count_broken_rules(model, after) == 0
        assert (after >= 0).all()
        assert (after.max(axis=0) < model.structure.domain.shape((0, 1, 2, 3), (0,) * 4)).all()


def test_exchanging_across_separators_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted fault: rows are paired whether or not they agree on the separator."""
    pair_up = exchange._pair_up
    monkeypatch.setattr(exchange, "_pair_up", lambda groups, rng: pair_up(groups * 0, rng))
    model = make_model(CHAIN, 1)
    before = draw_plain(model, 600, 1)
    after = exchange_seeded(model, before, 1)
    assert not equals(count_cliques(model, before), count_cliques(model, after))
    ruled = make_ruled_model(1)
    positions = draw_plain(ruled, 600, 1)
    assert count_broken_rules(ruled, exchange_seeded(ruled, positions, 1)) > 0


def test_moving_a_clique_without_those_below_it_would_be_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A planted fault: a clique's own columns are exchanged, and what hangs below them is not."""

    def list_own(tree: JunctionTree) -> dict[int, Columns]:
        parts = zip(tree.cliques, tree.separators, strict=True)
        return {
            at: tuple(x for x in clique if x not in separator)
            for at, (clique, separator) in enumerate(parts)
        }

    monkeypatch.setattr(exchange, "_list_below", list_own)
    model = make_model(CHAIN, 1)
    before = draw_plain(model, 600, 1)
    after = exchange_seeded(model, before, 1)
    assert not equals(count_cliques(model, before), count_cliques(model, after))


def test_a_seed_decides_the_exchange() -> None:
    model = make_model(CHAIN, 2)
    positions = draw_plain(model, 600, 2)
    assert (exchange_seeded(model, positions, 5) == exchange_seeded(model, positions, 5)).all()
    assert (exchange_seeded(model, positions, 5) != exchange_seeded(model, positions, 6)).any()


@pytest.mark.parametrize("limit", ["_MOST_CELLS", "_MOST_WORK"])
def test_rows_stay_as_they_are_where_exchanging_takes_too_long(
    limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = make_model(CHAIN, 2)
    positions = draw_plain(model, 600, 2)
    monkeypatch.setattr(exchange, limit, 100)
    assert (exchange_seeded(model, positions, 5) == positions).all()
