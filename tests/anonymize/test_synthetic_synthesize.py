"""The whole walk: budget, number of rows, rules, required tables, target, small and wide tables."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from support.small_domains import nested, related_rows, small_domain

from incrowd.anonymize.synthetic import stage
from incrowd.anonymize.synthetic.domain import (
    Columns,
    Domain,
    Levels,
    RulesError,
    TableCounter,
    make_column,
)
from incrowd.anonymize.synthetic.measurement import combine, make_query
from incrowd.anonymize.synthetic.refit import FINAL_GAP
from incrowd.anonymize.synthetic.synthesize import (
    Synthesis,
    plan_synthesis,
    synthesize,
)
from incrowd.arrays import Bools, Codes, Counts
from incrowd.errors import ParameterError
from incrowd.privacy.accountant import Accountant
from incrowd.privacy.gaussian import whole_variance
from incrowd.privacy.randomness import SeededRandomness


def run(
    domain: Domain,
    codes: Codes,
    *,
    epsilon: float = 1.0,
    seed: int = 1,
    tables: tuple[tuple[int, ...], ...] = (),
    target: int | None = None,
) -> Synthesis:
    plan = plan_synthesis(domain, epsilon=epsilon, delta=1e-6)
    bits = SeededRandomness(seed)
    count = TableCounter(domain, codes)
    return synthesize(domain, count, plan, bits=bits, tables=tables, target=target)


def distance(domain: Domain, first: Codes, second: Codes, ways: int) -> float:
    """The mean total variation distance of all tables of so many columns."""
    result = []
    for columns in combinations(range(len(domain)), ways):
        shape = domain.shape(columns, (0,) * ways)
        shares = []
        for rows in (first, second):
            keys = np.ravel_multi_index([rows[:, x] for x in columns], shape)
            shares.append(np.bincount(keys, minlength=math.prod(shape)) / len(rows))
        result.append(np.abs(shares[0] - shares[1]).sum() / 2)
    return float(np.mean(result))


def test_measurements_spend_the_budget_and_no_more() -> None:
    domain = small_domain()
    synthesis = run(domain, related_rows(domain, 20_000, 1))
    information = sum(measurement.information for measurement in synthesis.measurements)
    plan = plan_synthesis(domain, epsilon=1.0, delta=1e-6)
    assert 0.999 * plan.information < information <= plan.information
    for item in synthesis.measurements:
        length = make_query(np.zeros(item.numbers.shape, dtype=np.int64))[1]
        assert item.variance == whole_variance(length, item.information)
    assert Accountant(synthesis.events).delta(epsilon=1.0) <= 1e-6
    assert synthesis.model.gap <= FINAL_GAP


def test_relations_are_kept_and_better_than_independent_columns() -> None:
    domain = small_domain()
    codes = related_rows(domain, 20_000, 1)
    synthesis = run(domain, codes)
    shuffled = np.column_stack(
        [np.random.default_rng(at).permutation(x) for at, x in enumerate(codes.T)]
    )
    assert distance(domain, codes, synthesis.rows, 1) < 0.01
    assert distance(domain, codes, synthesis.rows, 2) < 0.3 * distance(domain, codes, shuffled, 2)
    assert distance(domain, codes, synthesis.rows, 3) < 0.4 * distance(domain, codes, shuffled, 3)


def test_the_number_of_rows_is_what_was_measured_not_the_true_one() -> None:
    domain = small_domain()
    codes = related_rows(domain, 700, 3)
    sizes = set()
    for seed in range(4):
        synthesis = run(domain, codes, seed=seed, epsilon=0.5)
        assert len(synthesis.rows) == max(round(synthesis.model.rows), 1)
        totals = [some for some in synthesis.measurements if not some.columns]
        plain = [some for some in synthesis.measurements if not some.centered]
        # No table of this domain but the total tells the number of rows: all axes are centered.
        assert plain == totals
        assert synthesis.model.rows == pytest.approx(float(combine(totals).cells))
        sizes.add(len(synthesis.rows))
    assert len(sizes - {700}) >= 3


def test_rules_hold_in_every_row() -> None:
    columns = small_domain().columns
    allowed = np.ones((2, 8), dtype=bool)
    allowed[1, 4:] = False
    chain: Bools = np.tri(3, 3, dtype=bool)
    domain = Domain((*columns, make_column(nested(3))), {(0, 3): allowed, (2, 4): chain})
    codes = np.column_stack([related_rows(Domain(columns), 4_000, 2), np.zeros(4_000)])
    codes[:, 4] = np.minimum(codes[:, 2], codes[:, 1] % 3)
    codes = codes.astype(np.int32)
    codes = codes[allowed[codes[:, 0], codes[:, 3]]]
    synthesis = run(domain, codes)
    assert allowed[synthesis.rows[:, 0], synthesis.rows[:, 3]].all()
    assert chain[synthesis.rows[:, 2], synthesis.rows[:, 4]].all()


def test_contradictory_rules_are_refused_before_anything_is_counted() -> None:
    columns = small_domain().columns
    first, second = np.ones((2, 3), dtype=bool), np.ones((2, 6), dtype=bool)
    first[0] = second[1] = False
    domain = Domain(columns, {(0, 2): first, (0, 1): second})

    def refuse(columns: Columns, levels: Levels) -> Counts:
        raise AssertionError("counted")

    plan = plan_synthesis(domain, epsilon=1.0, delta=1e-6)
    with pytest.raises(RulesError, match="contradict"):
        synthesize(domain, refuse, plan, bits=SeededRandomness(1))
    with pytest.raises(ParameterError, match="tables"):
        synthesize(small_domain(), refuse, plan, bits=SeededRandomness(1), tables=[(0, 9)])
    with pytest.raises(ParameterError, match="target"):
        synthesize(small_domain(), refuse, plan, bits=SeededRandomness(1), target=4)


def test_required_tables_are_measured() -> None:
    domain = small_domain()
    rng = np.random.default_rng(1)
    codes = np.column_stack([rng.integers(0, n, 900) for n in (2, 6, 3, 8)]).astype(np.int32)
    synthesis = run(domain, codes, tables=((2, 0), (0, 1, 3)))
    assert {(0, 2), (0, 1, 3)} <= {measurement.columns for measurement in synthesis.measurements}
    for columns in ((0, 2), (0, 1, 3)):
        assert any(set(columns) <= set(clique) for clique in synthesis.model.structure.tree.cliques)


def test_tables_with_the_target_are_chosen_more_often(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = tuple(make_column(nested(4)) for _ in range(7))
    domain = Domain(columns)
    rng = np.random.default_rng(2)
    hidden = rng.integers(0, 4, 2_500)
    parts = [np.where(rng.random(2_500) < 0.45, hidden, rng.integers(0, 4, 2_500)) for _ in columns]
    codes = np.column_stack(parts).astype(np.int32)
    monkeypatch.setattr(stage, "TARGET_WEIGHT", 6)

    def first_with_target(target: int | None) -> int:
        result = 0
        for seed in range(4):
            synthesis = run(domain, codes, seed=seed, target=target)
            pairs = [
                measurement.columns
                for measurement in synthesis.measurements
                if len(measurement.columns) == 2
            ]
            result += sum(6 in pair for pair in pairs[:3])
        return result

    assert first_with_target(6) > first_with_target(None) + 2


@pytest.mark.parametrize("rows", [0, 1, 40, 500])
def test_few_rows_give_independent_columns_that_are_not_worse(rows: int) -> None:
    domain = small_domain()
    synthesis = run(domain, related_rows(domain, rows, 1))
    assert len(synthesis.rows) >= 1
    assert (
        all(len(measurement.columns) < 2 for measurement in synthesis.measurements) or rows == 500
    )
    assert synthesis.rows.shape[1] == 4


def test_without_relations_the_budget_goes_to_the_one_ways() -> None:
    """The floor: at least as much information as independent columns would get, but for choices."""
    domain = small_domain()
    rng = np.random.default_rng(7)
    codes = np.column_stack([rng.integers(0, n, 1_200) for n in (2, 6, 3, 8)]).astype(np.int32)
    synthesis = run(domain, codes)
    alone = sum(
        measurement.information
        for measurement in synthesis.measurements
        if len(measurement.columns) <= 1
    )
    assert alone > 0.8 * sum(measurement.information for measurement in synthesis.measurements)


def test_one_column_and_very_many() -> None:
    domain = Domain(small_domain().columns[3:])
    synthesis = run(domain, related_rows(small_domain(), 5_000, 4)[:, 3:])
    assert synthesis.rows.shape[1] == 1
    assert Accountant(synthesis.events).delta(epsilon=1.0) <= 1e-6
    wide = Domain(tuple(make_column(nested(3)) for _ in range(171)))
    codes = np.random.default_rng(1).integers(0, 3, (500, 171)).astype(np.int32)
    assert run(wide, codes).rows.shape[1] == 171


def test_a_plan_for_other_columns_is_refused() -> None:
    domain = small_domain()
    wide = Domain((make_column(nested(3)),) * 9)
    plan = plan_synthesis(wide, epsilon=1.0, delta=1e-6)
    count = TableCounter(domain, related_rows(domain, 10, 1))
    with pytest.raises(ParameterError, match="plan"):
        synthesize(domain, count, plan, bits=SeededRandomness(1))
