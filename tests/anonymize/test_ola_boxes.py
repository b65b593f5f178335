"""A search that is stopped: the scheme holds, and no scheme loses less than it says."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.brute_lattice import LatticeCase, lattice_cases

from incrowd.anonymize import node_evaluator as looks_module
from incrowd.anonymize import ola
from incrowd.anonymize import ola as ola_module
from incrowd.anonymize.lattice import MOST_NODES, Lattice, Rollups
from incrowd.anonymize.ola import NoSchemeError, Optimum, find_minimal_nodes, find_optimal_node
from incrowd.codes.frequency import merge_tuples
from incrowd.codes.hierarchy import build_from_rows
from incrowd.errors import ParameterError
from incrowd.measure.loss import LOSSES, LossName


def stopped(case: LatticeCase, seconds: float | None) -> Optimum:
    """Searched with a clock that goes on by a second whenever it is looked at."""
    ticks = itertools.count()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(looks_module, "monotonic", lambda: float(next(ticks)))
        return find_optimal_node(
            case.make_rollups(), case.lattice, k=case.k, limit=case.limit, loss=case.name,
            weights=case.shares, seconds=seconds,
        )  # fmt: skip


def check(case: LatticeCase, seconds: float) -> bool:
    """Whether a stopped search ended with the optimum; what it says must be true in any case."""
    losses = [
        loss for rows_lost, loss in map(case.judge_node, case.nodes) if rows_lost <= case.limit
    ]
    if not losses:
        with pytest.raises(NoSchemeError):
            stopped(case, seconds)
        return True
    try:
        result = stopped(case, seconds)
    except NoSchemeError as error:
        assert "was found in time" in str(error)  # noqa: PT017 - it may be raised, or not
        return False
    suppressed, loss = case.judge_node(result.levels)
    assert result.suppressed == suppressed <= case.limit
    assert result.loss == pytest.approx(loss, abs=1e-9)
    assert result.least <= min(losses) + 1e-9
    assert result.is_exact == (result.least == result.loss)
    if result.is_exact:
        assert result.loss == pytest.approx(min(losses), abs=1e-9)
    return result.is_exact


@settings(max_examples=60)
@given(case=lattice_cases(ruled=True) | lattice_cases(), seconds=st.integers(0, 40))
def test_what_a_stopped_search_says_is_true(case: LatticeCase, seconds: int) -> None:
    check(case, seconds + 0.5)


@settings(max_examples=30)
@given(case=lattice_cases(ruled=True) | lattice_cases(), seconds=st.integers(0, 40))
def test_also_of_lattices_that_are_not_listed_whatever_the_loss(
    case: LatticeCase, seconds: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ola_module, "MOST_NODES", 0)
        check(case, seconds + 0.5)
        assert check(case, 1e9)


@settings(max_examples=30)
@given(case=lattice_cases(), most=st.integers(0, 3))
def test_what_is_said_is_true_if_no_more_boxes_are_kept(case: LatticeCase, most: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ola, "MOST_BOXES", most)
        check(case, 1e9)


@given(case=lattice_cases(ruled=True) | lattice_cases())
def test_without_a_limit_of_time_the_clock_is_not_read(case: LatticeCase) -> None:
    def clock() -> float:
        raise AssertionError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(looks_module, "monotonic", clock)
        try:
            optimal_node = find_optimal_node(
                case.make_rollups(), case.lattice, k=case.k, limit=case.limit
            )
        except NoSchemeError:
            return
    assert optimal_node.is_exact


def deep(columns: int) -> tuple[Rollups, Lattice]:
    """Columns of 32 values in six levels, in 400 rows that follow one number, more or less."""
    rng = np.random.default_rng(1)
    rows = [[str(x), *(f"{w}: {x // w}" for w in (2, 4, 8, 16)), "*"] for x in range(32)]
    hidden = rng.integers(0, 32, (400, 1))
    codes = (hidden + rng.integers(0, 9, (400, columns))) % 32
    frequencies = merge_tuples(codes.astype(np.int32), np.ones(400, dtype=np.int64))
    return Rollups([build_from_rows(rows)] * columns, frequencies), Lattice(
        (0,) * columns, (5,) * columns
    )


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = itertools.count()
    monkeypatch.setattr(looks_module, "monotonic", lambda: float(next(ticks)))


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize("name", LOSSES)
def test_more_schemes_than_can_be_listed(name: LossName) -> None:
    """6**20 of them. The longer the search, the better what it says."""
    rollups, lattice = deep(20)
    assert lattice.size > MOST_NODES**2
    before: Optimum | None = None
    for seconds in (30, 300, 900):
        optimal_node = find_optimal_node(
            rollups, lattice, k=5, limit=20, loss=name, seconds=seconds
        )
        classes = rollups.count_classes(optimal_node.levels, k=5)
        assert classes is not None
        assert classes.suppressed == optimal_node.suppressed <= 20
        assert -1e-9 <= optimal_node.least < optimal_node.loss
        if before is not None:
            assert optimal_node.least >= before.least
            assert optimal_node.loss <= before.loss
        before = optimal_node
    with pytest.raises(ParameterError, match="at most 20,000,000 schemes"):
        find_minimal_nodes(rollups, lattice, k=5, limit=20)


def test_a_lattice_beyond_the_list_is_searched_to_its_end() -> None:
    """6**10 schemes, 60 million: told from fewer than ten thousand."""
    rollups, lattice = deep(10)
    assert lattice.size > MOST_NODES
    progress_calls: list[tuple[int, int]] = []
    optimal_node = find_optimal_node(
        rollups,
        lattice,
        k=5,
        limit=20,
        progress=lambda done, all_: progress_calls.append((done, all_)),
    )
    assert optimal_node.is_exact
    assert optimal_node.evaluated < 10_000
    assert progress_calls == sorted(progress_calls)
    assert progress_calls[-1] == (lattice.size, lattice.size)
    again = find_optimal_node(rollups, lattice, k=5, limit=20, seconds=1e9)
    assert again == optimal_node
