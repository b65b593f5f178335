"""From runs on two neighboring tables to a lower bound on epsilon that holds with a confidence.

**Claim.** Let a mechanism be (epsilon, delta)-differentially private, and run it independently on
two neighboring tables. The bound below exceeds epsilon with a probability of at most
1 - confidence, whatever the mechanism is.

**Proof.** An event is chosen for each direction, by runs that are then put away; given these, it is
a fixed set S of outcomes, and the other runs hit it as so many independent tries, with
probability p on the one table and q on the other. With alpha = (1 - confidence) / 4, the one-sided
bounds of Clopper and Pearson have p < p_low with probability at most alpha, and q > q_high as well.
Two proportions and two directions make four such errors, 1 - confidence together. Without any of
them, privacy says p <= e^epsilon q + delta, hence

    (p_low - delta) / q_high <= (p - delta) / q <= e^epsilon. []

How the event is chosen matters to how much is shown, never to whether it holds. Some runs put the
outcomes in the order of their estimated likelihood ratio; others, so that luck is not taken for
likelihood, say how many of the first to take: up to where the bound would be largest if the test
gave the same shares. By Neyman and Pearson, with enough runs to choose by no event shows more. The
largest ln((p - delta) / q) over all events is the smallest epsilon that the two tables allow at
delta, so with ever more runs the bound comes as near to that as one likes.

**Power.** At best p = 1 and q = 0, and n runs still leave p_low = alpha^(1/n), q_high =
1 - alpha^(1/n): no more than about ln(n / ln(1 / alpha)) can be shown. Where delta is small, an
event that shows much is rare, too; :func:`compute_expected_bound` says what runs are expected to
show of two laws that are known.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from incrowd.arrays import Bools, Counts, Floats, Places
from incrowd.errors import ParameterError, check_at_least_zero, check_fraction, check_whole
from incrowd.measure.estimate import CONFIDENCE, Rate

PARTS = 6  # of so many runs one puts outcomes in order, one decides how many to take, the rest test
_TEST = PARTS - 2  # the test has so many times the runs of one of these parts
_ERRORS = 4  # two proportions in each of two directions


@dataclass(frozen=True, eq=False)
class Runs:
    """How often each outcome came out: on the ``first`` table, and on the ``second``."""

    first: Counts
    second: Counts

    def exchange_tables(self) -> Runs:
        """Return the runs with the tables exchanged."""
        return Runs(self.second, self.first)

    @property
    def number(self) -> tuple[int, int]:
        """How many runs there are on each table."""
        return int(self.first.sum()), int(self.second.sum())


@dataclass(frozen=True, eq=False)
class EventChoice:
    """An event, by its outcomes, and what a test that gives the same shares would show."""

    event: Bools
    shows: float


@dataclass(frozen=True, eq=False)
class EpsilonBound:
    """A lower bound on epsilon, at least 0, and the event that shows it.

    ``likely`` is how often the event came out on the table on which it is the likelier one, which
    is the first if ``on_first``; ``unlikely`` on the other. Their intervals are one-sided bounds,
    each of a quarter of the error.
    """

    epsilon: float
    delta: float
    confidence: float
    on_first: bool
    event: Places
    likely: Rate
    unlikely: Rate


def compute_lower_bound(
    first: Counts, second: Counts, *, delta: float, confidence: float = CONFIDENCE
) -> EpsilonBound:
    """Compute the bound that outcomes of independent runs show: whole numbers, one per run.

    Of the runs on each table the first sixth orders the outcomes, the next decides how many are the
    event, the others test it.

    >>> bound = compute_lower_bound(np.zeros(300, dtype=int), np.ones(300, dtype=int), delta=0.01)
    >>> round(bound.epsilon, 2), round(compute_largest_bound(200, delta=0.01), 2)
    (3.8, 3.8)
    """
    outcomes, at = np.unique(np.concatenate([first, second]), return_inverse=True)
    parts = [
        [
            np.bincount(part, minlength=len(outcomes)).astype(np.int64)
            for part in np.split(side, [len(side) // PARTS, 2 * (len(side) // PARTS)])
        ]
        for side in (at[: len(first)], at[len(first) :])
    ]
    order, cut, test = (
        Runs(first_counts, second_counts)
        for first_counts, second_counts in zip(*parts, strict=True)
    )
    return bound_from_runs(order, cut, test, delta=delta, confidence=confidence)


def bound_from_runs(
    order: Runs, cut: Runs, test: Runs, *, delta: float, confidence: float = CONFIDENCE
) -> EpsilonBound:
    """Return the bound from runs that choose an event and others that test it, the larger way.

    Each tells how often every outcome came out, all in one order.
    """
    _check_arguments(delta, confidence)
    epsilon_bound = []
    for on_first in (True, False):
        parts = (order, cut, test)
        if not on_first:
            parts = (order.exchange_tables(), cut.exchange_tables(), test.exchange_tables())
        event = choose_event(*parts[:2], delta=delta, confidence=confidence).event
        epsilon_bound.append(_test_event(event, parts[2], delta, confidence, on_first=on_first))
    return max(epsilon_bound, key=lambda bound: bound.epsilon)


def choose_event(
    order: Runs, cut: Runs, *, delta: float, confidence: float = CONFIDENCE
) -> EventChoice:
    """Choose the event that is expected to show most of the first table against the second.

    Half a hit is added to each outcome before ratios are taken; equal ratios keep their order.
    """
    n, m = order.number
    ratio = (order.first + 0.5) / (n + 1.0) / ((order.second + 0.5) / (m + 1.0))
    places = np.argsort(-ratio, kind="stable")
    hits, misses = (_TEST * np.cumsum(side[places]) for side in (cut.first, cut.second))
    n, m = (_TEST * number for number in cut.number)
    epsilons = _compute_shown(hits, n, misses, m, delta, _split_error(confidence))
    event = np.zeros(len(places), dtype=bool)
    if not len(places):
        return EventChoice(event, -math.inf)
    best = int(np.argmax(epsilons))
    event[places[: best + 1]] = True
    return EventChoice(event, float(epsilons[best]))


def compute_largest_bound(runs: int, *, delta: float, confidence: float = CONFIDENCE) -> float:
    """Compute the largest bound that so many test runs can show: with p = 1 and q = 0."""
    _check_arguments(delta, confidence)
    check_whole("runs", runs, 0)
    largest_bound = np.array([runs], dtype=np.int64)
    return max(
        float(
            _compute_shown(
                largest_bound, runs, largest_bound * 0, runs, delta, _split_error(confidence)
            )[0]
        ),
        0.0,
    )


def compute_expected_bound(
    first: Floats, second: Floats, runs: int, *, delta: float, confidence: float = CONFIDENCE
) -> float:
    """Compute what so many test runs on each of two known laws are expected to show.

    The bound for the hits that are expected of the best event: the median, but for rounding.
    """
    _check_arguments(delta, confidence)
    check_whole("runs", runs, 0)
    best = 0.0
    for p, q in ((first, second), (second, first)):
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(p > 0, p / q, 0.0)
        order = np.argsort(-ratio, kind="stable")
        hits, misses = (np.minimum(np.cumsum(law[order]), 1.0) * runs for law in (p, q))
        epsilons = _compute_shown(hits, runs, misses, runs, delta, _split_error(confidence))
        best = max(best, float(epsilons.max(initial=0.0)))
    return best


def _check_arguments(delta: float, confidence: float) -> None:
    check_at_least_zero("delta", delta)
    if delta >= 1:
        raise ParameterError("delta", "be below 1", delta)
    check_fraction("confidence", confidence)


def _split_error(confidence: float) -> float:
    return (1 - confidence) / _ERRORS


def _test_event(
    event: Bools, runs: Runs, delta: float, confidence: float, *, on_first: bool
) -> EpsilonBound:
    n, m = runs.number
    hits, misses = int(runs.first[event].sum()), int(runs.second[event].sum())
    # A two-sided interval errs by half of its error on each side.
    sided = 1 - 2 * _split_error(confidence)
    likely, unlikely = Rate.from_hits(hits, n, sided), Rate.from_hits(misses, m, sided)
    above = likely.low - delta
    epsilon = max(math.log(above / unlikely.high), 0.0) if above > 0 else 0.0
    return EpsilonBound(
        epsilon, delta, confidence, on_first, np.flatnonzero(event), likely, unlikely
    )


def _compute_shown(
    hits: Counts | Floats,
    runs: int,
    misses: Counts | Floats,
    others: int,
    delta: float,
    error: float,
) -> Floats:
    """Return ln((p_low - delta) / q_high) for each number of hits and misses; -inf for none."""
    from scipy.special import betaincinv

    inside = np.maximum(hits, 1e-12)
    low = np.where(hits > 0, betaincinv(inside, np.maximum(runs - hits, 0.0) + 1, error), 0.0)
    left = np.maximum(others - misses, 0.0)
    high = np.where(left > 0, betaincinv(misses + 1, np.maximum(left, 1e-12), 1 - error), 1.0)
    with np.errstate(divide="ignore"):
        epsilons: Floats = np.log(np.maximum(low - delta, 0.0)) - np.log(high)
    return epsilons
