"""Fixtures of all tests: tables that are made once, and budgets that are settled once."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

import polars as pl
import pytest

from incrowd.curate.demo_tables import make_demo_table
from incrowd.methods.safe import budget
from incrowd.privacy import accountant
from incrowd.privacy.accountant import Accountant
from incrowd.privacy.events import Event
from incrowd.privacy.plan import plan
from incrowd.privacy.split import split_for_counts, split_for_samples


@pytest.fixture(scope="session")
def voters() -> pl.DataFrame:
    frame: pl.DataFrame = make_demo_table("voters", rows=20_000).to_frame()
    return frame


@pytest.fixture(scope="session")
def patients() -> pl.DataFrame:
    frame: pl.DataFrame = make_demo_table("patients", rows=800).to_frame()
    hidden = pl.int_range(pl.len()) % 50 == 0  # some nulls, in all roles
    return frame.with_columns(
        pl.when(~hidden).then(pl.col(name)) for name in ("birth_year", "weight", "diagnosis")
    )


class CachedAccountant(Accountant):
    """An accountant that knows what it was asked before in this process."""

    def __init__(self, events: Event | Iterable[Event], *, step: float | None = None) -> None:
        event_tuple = (events,) if not isinstance(events, Iterable) else tuple(events)
        super().__init__(event_tuple, step=step)
        self.asked = event_tuple, step

    def epsilon(self, *, delta: float) -> float:
        return _compute_epsilon(*self.asked, delta)

    def delta(self, *, epsilon: float) -> float:
        return _compute_delta(*self.asked, epsilon)


@cache
def _compute_epsilon(events: tuple[Event, ...], step: float | None, delta: float) -> float:
    return Accountant(events, step=step).epsilon(delta=delta)


@cache
def _compute_delta(events: tuple[Event, ...], step: float | None, epsilon: float) -> float:
    return Accountant(events, step=step).delta(epsilon=epsilon)


PLAN, PAIRED, COUNTED = cache(plan), cache(split_for_samples), cache(split_for_counts)


@pytest.fixture
def settled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal budgets are settled, booked and verified by one and the same calculation.

    Most releases here ask for epsilon = 1 and delta = 1e-6, and the calculus takes most of their
    time. It is a function of what it is asked, and has tests of its own.
    """
    monkeypatch.setattr(budget, "plan", PLAN)
    monkeypatch.setattr(budget, "split_for_samples", PAIRED)
    monkeypatch.setattr(budget, "split_for_counts", COUNTED)
    for module in (budget, accountant):
        monkeypatch.setattr(module, "Accountant", CachedAccountant)
