"""A search that is stopped: the scheme holds, and no scheme loses less than it says."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.brute_lattice import Case, cases

from incrowd.anonymize import looks as looks_module
from incrowd.anonymize import ola
from incrowd.anonymize import ola as ola_module
from incrowd.anonymize.lattice import MOST_NODES, Lattice, Rollups
from incrowd.anonymize.ola import NoSchemeError, Optimum, minimal, optimal
from incrowd.codes.frequency import merged
from incrowd.codes.hierarchy import from_rows
from incrowd.errors import ParameterError
from incrowd.measure.loss import LOSSES, LossName


def stopped(case: Case, seconds: float | None) -> Optimum:
    """Searched with a clock that goes on by a second whenever it is looked at."""
    ticks = itertools.count()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(looks_module, "monotonic", lambda: float(next(ticks)))
        return optimal(
            case.rollups(), case.lattice, k=case.k, limit=case.limit, loss=case.name,
            weights=case.shares, seconds=seconds,
        )  # fmt: skip


def check(case: Case, seconds: float) -> bool:
    """Whether a stopped search ended with the optimum; what it says must be true in any case."""
    losses = [loss for gone, loss in map(case.judged, case.nodes) if gone <= case.limit]
    if not losses:
        with pytest.raises(NoSchemeError):
            stopped(case, seconds)
        return True
    try:
        found = stopped(case, seconds)
    except NoSchemeError as error:
        assert "was found in time" in str(error)  # noqa: PT017 - it may be raised, or not
        return False
    suppressed, loss = case.judged(found.levels)
    assert found.suppressed == suppressed <= case.limit
    assert found.loss == pytest.approx(loss, abs=1e-9)
    assert found.least <= min(losses) + 1e-9
    assert found.exact == (found.least == found.loss)
    if found.exact:
        assert found.loss == pytest.approx(min(losses), abs=1e-9)
    return found.exact


@settings(max_examples=60)
@given(case=cases(ruled=True) | cases(), seconds=st.integers(0, 40))
def test_what_a_stopped_search_says_is_true(case: Case, seconds: int) -> None:
    check(case, seconds + 0.5)


@settings(max_examples=30)
@given(case=cases(ruled=True) | cases(), seconds=st.integers(0, 40))
def test_also_of_lattices_that_are_not_listed_whatever_the_loss(case: Case, seconds: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ola_module, "MOST_NODES", 0)
        check(case, seconds + 0.5)
        assert check(case, 1e9)


@settings(max_examples=30)
@given(case=cases(), most=st.integers(0, 3))
def test_what_is_said_is_true_if_no_more_boxes_are_kept(case: Case, most: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ola, "MOST_BOXES", most)
        check(case, 1e9)


@given(case=cases(ruled=True) | cases())
def test_without_a_limit_of_time_the_clock_is_not_read(case: Case) -> None:
    def clock() -> float:
        raise AssertionError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(looks_module, "monotonic", clock)
        try:
            found = optimal(case.rollups(), case.lattice, k=case.k, limit=case.limit)
        except NoSchemeError:
            return
    assert found.exact


def deep(columns: int) -> tuple[Rollups, Lattice]:
    """Columns of 32 values in six levels, in 400 rows that follow one number, more or less."""
    rng = np.random.default_rng(1)
    rows = [[str(x), *(f"{w}: {x // w}" for w in (2, 4, 8, 16)), "*"] for x in range(32)]
    hidden = rng.integers(0, 32, (400, 1))
    codes = (hidden + rng.integers(0, 9, (400, columns))) % 32
    held = merged(codes.astype(np.int32), np.ones(400, dtype=np.int64))
    return Rollups([from_rows(rows)] * columns, held), Lattice((0,) * columns, (5,) * columns)


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
        found = optimal(rollups, lattice, k=5, limit=20, loss=name, seconds=seconds)
        classes = rollups.classes(found.levels, k=5)
        assert classes is not None
        assert classes.suppressed == found.suppressed <= 20
        assert -1e-9 <= found.least < found.loss
        if before is not None:
            assert found.least >= before.least
            assert found.loss <= before.loss
        before = found
    with pytest.raises(ParameterError, match="at most 20,000,000 schemes"):
        minimal(rollups, lattice, k=5, limit=20)


def test_a_lattice_beyond_the_list_is_searched_to_its_end() -> None:
    """6**10 schemes, 60 million: told from fewer than ten thousand."""
    rollups, lattice = deep(10)
    assert lattice.size > MOST_NODES
    told: list[tuple[int, int]] = []
    found = optimal(
        rollups, lattice, k=5, limit=20, progress=lambda done, all_: told.append((done, all_))
    )
    assert found.exact
    assert found.evaluated < 10_000
    assert told == sorted(told)
    assert told[-1] == (lattice.size, lattice.size)
    again = optimal(rollups, lattice, k=5, limit=20, seconds=1e9)
    assert again == found
