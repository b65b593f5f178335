"""Planned blocks and unplanned releases in one ledger: what is booked, refused, and remembered."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.errors import IncrowdError
from incrowd.privacy.accountant import Accountant
from incrowd.privacy.amplification import Guarantee
from incrowd.privacy.events import (
    Composition,
    Event,
    GaussianCounts,
    GeometricCounts,
    SafeRelease,
    SampledEvent,
    Selection,
)
from incrowd.privacy.filter import charge_share
from incrowd.release.ledger import BudgetError, Ledger, name_person_unit

SAMPLE = SafeRelease(20, 0.1)
COUNTS = GaussianCounts(50, 46.0)


def made(path: Path, epsilon: float = 1.0, delta: float = 1e-6) -> Ledger:
    ledger = Ledger(path)
    ledger.set_budget(epsilon=epsilon, delta=delta)
    return ledger


def test_what_only_composes_tightly_is_refused_after_results(tmp_path: Path) -> None:
    """Two releases and any of three thirds fit tightly, which a choice by results abuses."""
    ledger = made(tmp_path / "l")
    thirds: list[Event] = [
        GaussianCounts(50, 100.0), GaussianCounts(232, 3000.0), GeometricCounts(90, 0.15),
    ]  # fmt: skip
    allowed = 0
    for event in [COUNTS, COUNTS]:
        try:
            ledger.book([event])
        except BudgetError:
            break
        allowed += 1
    free = 0
    for third in thirds:
        try:
            ledger.allow([third])
        except BudgetError:
            continue
        free += 1
    assert (allowed, free) != (2, 3)
    assert allowed == 1


def test_a_block_is_spent_at_once_and_used_release_by_release(tmp_path: Path) -> None:
    ledger = made(tmp_path / "l")
    both = Guarantee(Accountant([COUNTS] * 2).epsilon(delta=1e-6), 1e-6)
    block = ledger.plan(COUNTS, releases=2, guarantee=both)
    assert (block.number, block.releases, block.used, block.remaining_releases) == (1, 2, 0, 2)
    assert ledger.total() == both
    assert ledger.remaining_budget().delta == 0
    for at in (1, 2):
        booking = ledger.book([COUNTS])
        assert (booking.is_planned, booking.release, booking.releases) == (True, at, 2)
        assert str(booking) == f"release {at} of 2 of planned block 1"
        assert ledger.total() == both
    assert [(spend.used, spend.remaining_releases) for spend in ledger.spends()] == [(2, 0)]
    with pytest.raises(BudgetError, match="δ is used up"):
        ledger.book([COUNTS])


def test_other_events_than_the_planned_ones_are_unplanned(tmp_path: Path) -> None:
    ledger = made(tmp_path / "l", epsilon=2.0, delta=2e-6)
    ledger.plan(COUNTS, releases=3, guarantee=Guarantee(1.2, 1e-6))
    other = GaussianCounts(51, 46.0)
    booking = ledger.book([other], guarantee=Guarantee(0.7, 5e-7))
    assert (booking.is_planned, booking.number) == (False, 2)
    assert ledger.total() == Guarantee(1.9, 1.5e-6)
    assert ledger.spends()[0].remaining_releases == 3
    with pytest.raises(BudgetError, match="no planned block"):
        ledger.book([other], guarantee=Guarantee(0.01, 1e-9), planned=True)
    for _ in range(3):
        assert ledger.book([COUNTS], planned=True).is_planned
    with pytest.raises(BudgetError, match="made all 3 releases of planned block 1"):
        ledger.book([COUNTS], planned=True)
    assert ledger.total() == Guarantee(1.9, 1.5e-6)


def test_a_block_that_does_not_fit_is_not_booked(tmp_path: Path) -> None:
    ledger = made(tmp_path / "l")
    with pytest.raises(BudgetError, match="this block of 2 releases"):
        ledger.plan(COUNTS, releases=2, guarantee=Guarantee(1.1, 1e-6))
    with pytest.raises(IncrowdError, match="at most 1,000"):
        ledger.plan(COUNTS, releases=1001, guarantee=Guarantee(1.0, 1e-6))
    assert ledger.spends() == []
    assert ledger.unit() is None


def test_a_block_has_a_unit(tmp_path: Path) -> None:
    ledger = made(tmp_path / "l")
    ledger.plan(COUNTS, releases=2, guarantee=Guarantee(1.0, 1e-6), unit=name_person_unit("id"))
    with pytest.raises(BudgetError, match="Use one unit per table and ledger"):
        ledger.book([COUNTS])
    assert ledger.book([COUNTS], unit=name_person_unit("id")).is_planned


def test_a_block_of_a_sample_is_amplified_once(tmp_path: Path) -> None:
    event = SampledEvent(SAMPLE, 0.1)
    accountant = Accountant(SampledEvent(Composition([SAMPLE] * 4), 0.1))
    ledger = made(tmp_path / "l")
    ledger.plan(event, releases=4, guarantee=Guarantee(accountant.epsilon(delta=1e-6), 1e-6))
    assert ledger.book([event]).is_planned
    (spend,) = ledger.spends()
    assert spend.charge.rate == 0.1
    inside = Accountant([SAMPLE] * 4).delta(epsilon=spend.charge.inside.epsilon)
    assert inside <= spend.charge.inside.delta


def test_events_without_a_guarantee_get_a_share_of_the_first_delta(tmp_path: Path) -> None:
    """Delta of entry i is the first budget's halved i times, whatever the budget becomes."""
    events: list[Event] = [SAMPLE, Composition([Selection(0.05), GeometricCounts(30, 0.4)]), SAMPLE]
    ledger = made(tmp_path / "l", epsilon=2.0)
    for event in events:
        ledger.book([event])
        ledger.set_budget(epsilon=3.0, delta=5e-6, raising=True)
    expected = [charge_share(event, 1e-6 / 2**at) for at, event in enumerate(events, 1)]
    assert [spend.charge for spend in ledger.spends()] == expected
    assert all(spend.releases is None and spend.used == 1 for spend in ledger.spends())
    total = ledger.total()
    assert total.epsilon >= Accountant(events).epsilon(delta=total.delta)
    for spend in ledger.spends():
        point = spend.guarantee
        assert Accountant(spend.event).epsilon(delta=point.delta) <= point.epsilon * (1 + 1e-5)


def test_a_ledger_whose_sum_exceeds_its_budget_allows_nothing_more(tmp_path: Path) -> None:
    ledger = made(tmp_path / "l", epsilon=2.0)
    ledger.book([SAMPLE], guarantee=Guarantee(0.5, 5e-7))
    ledger.set_budget(epsilon=0.4, delta=1e-6)
    assert ledger.remaining_budget().epsilon == 0
    with pytest.raises(BudgetError, match="nothing was released"):
        ledger.book([Selection(0.001)])


def test_a_file_that_is_no_ledger_is_no_traceback(tmp_path: Path) -> None:
    ledger = made(tmp_path / "l")
    ledger.book([SAMPLE])
    with closing(sqlite3.connect(ledger.path)) as database, database:
        database.execute("ALTER TABLE spends DROP COLUMN epsilon")
    for question in (ledger.spends, ledger.total, lambda: ledger.book([SAMPLE])):
        with pytest.raises(IncrowdError, match="as a ledger: no such column"):
            question()


PUBLISHER = """
import sys
from pathlib import Path
from incrowd.privacy.events import GaussianCounts
from incrowd.release.ledger import BudgetError, Ledger
for _ in range(10):
    try:
        print(Ledger(Path(sys.argv[1])).book([GaussianCounts(50, 46.0)]).release)
    except BudgetError:
        print("refused")
"""


def test_two_processes_share_a_block(tmp_path: Path) -> None:
    ledger = made(tmp_path / "l", epsilon=3.0)
    ledger.plan(COUNTS, releases=12, guarantee=Guarantee(3.0, 1e-6))
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", PUBLISHER, str(ledger.path)], stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    lines = [line for racer in racers for line in racer.communicate()[0].split()]
    assert sorted(map(int, (line for line in lines if line != "refused"))) == list(range(1, 13))
    assert lines.count("refused") == 8
    assert ledger.spends()[0].remaining_releases == 0


steps = st.lists(
    st.one_of(
        st.tuples(st.just("plan"), st.integers(1, 3), st.sampled_from([0.1, 0.4, 0.9])),
        st.tuples(st.just("book"), st.integers(0, 2), st.sampled_from([0.1, 0.25, 0.6])),
        st.tuples(st.just("unplanned"), st.integers(0, 2), st.sampled_from([0.1, 0.25, 0.6])),
    ),
    max_size=12,
)


@settings(max_examples=25, deadline=None)
@given(steps)
def test_whatever_is_asked_the_budget_is_kept(
    tmp_path_factory: pytest.TempPathFactory, requests: list[tuple[str, int, float]]
) -> None:
    """Sums stay within the budget, blocks are not overdrawn, and a refusal changes nothing."""
    ledger = made(tmp_path_factory.mktemp("l") / "l", delta=1e-5)
    kinds = [GaussianCounts(50 + at, 46.0) for at in range(3)]
    spent, made_ = 0.0, 0
    for what, number, epsilon in requests:
        before = ledger.spends()
        try:
            if what == "plan":
                ledger.plan(kinds[number - 1], releases=number, guarantee=Guarantee(epsilon, 1e-6))
                spent += epsilon
            else:
                event: Event = kinds[number] if what == "book" else GeometricCounts(60, 0.5)
                booking = ledger.book([event], guarantee=Guarantee(epsilon, 1e-6))
                spent += 0.0 if booking.is_planned else epsilon
                made_ += 1
        except BudgetError:
            assert ledger.spends() == before
    total = ledger.total()
    assert total.epsilon == pytest.approx(spent)
    assert total.epsilon <= 1.0
    assert total.delta <= 1e-5
    assert sum(spend.used for spend in ledger.spends()) == made_
    assert all(spend.remaining_releases >= 0 for spend in ledger.spends())
