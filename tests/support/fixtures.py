"""Fixtures of all tests: tables that are made once, and releases that take less time."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, partial

import polars as pl
import pytest

from incrowd.curate.demo_tables import sample
from incrowd.evaluation import judge
from incrowd.measure import outcome, utility
from incrowd.measure.estimate import Attacked
from incrowd.measure.evaluation import useful
from incrowd.methods.safe import budget
from incrowd.privacy import filter as filter_
from incrowd.privacy.accountant import Accountant
from incrowd.privacy.events import Event
from incrowd.privacy.plan import plan
from incrowd.privacy.split import paired
from incrowd.privacy.split_counts import counted
from incrowd.release import certificate


@pytest.fixture(scope="session")
def voters() -> pl.DataFrame:
    frame: pl.DataFrame = sample("voters", rows=20_000).frame()
    return frame


@pytest.fixture(scope="session")
def patients() -> pl.DataFrame:
    frame: pl.DataFrame = sample("patients", rows=800).frame()
    hidden = pl.int_range(pl.len()) % 50 == 0  # some nulls, in all roles
    return frame.with_columns(
        pl.when(~hidden).then(pl.col(name)) for name in ("birth_year", "weight", "diagnosis")
    )


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few queries are asked of a release, which take most of the time of a small one."""
    monkeypatch.setattr(utility, "queries", partial(utility.queries, count=20))


@pytest.fixture
def attacked() -> None:
    """Releases of this test are attacked, as all are outside of tests."""


@pytest.fixture(autouse=True)
def unattacked(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of releases are made in tests; those are attacked whose test asks for it.

    So it is with classifiers that learn from them, and of safe ones with most of the queries.
    """
    if "attacked" not in request.fixturenames:
        monkeypatch.setattr(judge, "quick_attacks", lambda *_: Attacked((), 0, 0))
        monkeypatch.setattr(outcome, "useful", partial(useful, asked=20))
        monkeypatch.setattr(judge, "measure_accuracy", lambda *_: None)


class Remembering(Accountant):
    """An accountant that knows what it was asked before in this process."""

    def __init__(self, events: Event | Iterable[Event], *, step: float | None = None) -> None:
        listed = (events,) if not isinstance(events, Iterable) else tuple(events)
        super().__init__(listed, step=step)
        self.asked = listed, step

    def epsilon(self, *, delta: float) -> float:
        return _epsilon(*self.asked, delta)

    def delta(self, *, epsilon: float) -> float:
        return _delta(*self.asked, epsilon)


@cache
def _epsilon(events: tuple[Event, ...], step: float | None, delta: float) -> float:
    return Accountant(events, step=step).epsilon(delta=delta)


@cache
def _delta(events: tuple[Event, ...], step: float | None, epsilon: float) -> float:
    return Accountant(events, step=step).delta(epsilon=epsilon)


PLAN, PAIRED, COUNTED = cache(plan), cache(paired), cache(counted)


@pytest.fixture
def settled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal budgets are settled, booked and verified by one and the same calculation.

    Most releases here ask for epsilon = 1 and delta = 1e-6, and the calculus takes most of their
    time. It is a function of what it is asked, and has tests of its own.
    """
    monkeypatch.setattr(budget, "plan", PLAN)
    monkeypatch.setattr(budget, "paired", PAIRED)
    monkeypatch.setattr(budget, "counted", COUNTED)
    for module in (budget, certificate, filter_):
        monkeypatch.setattr(module, "Accountant", Remembering)
