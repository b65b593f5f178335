"""A budget split between private choices and releases; pairs of k and beta that cost the same.

A budget is spent on choices that satisfy epsilon_1, epsilon_2, ..., and on one safe release or
several. Against the worst choices, randomized response, all together have

    delta(epsilon) = sum over signs of p(signs) h(epsilon - sum of signed epsilon_i),

h the profile of the releases, where a plus has probability e^epsilon_i / (1 + e^epsilon_i). For
each rate the smallest k that fits is found by this; since the choices decide among the pairs, h is
the largest of all pairs' profiles at each epsilon, and the accountant has the last word. Where the
table is itself a sample, choices and releases see the same sample, and are amplified together.

**Counts.** A budget split between private choices and counts: the law of noise that needs the least
crowd.

**One table.** Choices that satisfy epsilon_1, epsilon_2, ... and geometric noise of what is left,
epsilon - sum of epsilon_i, satisfy (epsilon, p(r)) together: past its own epsilon the noise costs
p(r), whatever happened before. Nothing is gained by a larger epsilon of the noise, since below it
the profile jumps far above any useful delta. As r is whole, p(r) lies below delta; a coin that sees
no data takes r - 1 where the average of both still fits, and uses delta up; not where delta of
r - 1 would be more than twice the average (:func:`incrowd.privacy.counts.is_even`).

**Several tables.** Either each has geometric noise of an equal part, or Gaussian noise, which adds
up less: from about three tables on it needs the smaller crowd. Its variance is found by the
formulas of the law without bound, r then by the accountant, which has the last word on both. (A
coin would gain less than one person of a crowd of dozens.)

**Several rows per person.** Who has up to m rows is in up to m cells of a table, each of which has
noise of its own: one table then costs what m tables of one row per person cost
(:mod:`incrowd.anonymize.safe_counts`). The choices beside it cost what they name. Where rows are
counted, up to c of a person in a cell, the law is guessed for a person with c rows in each, and
the accountant takes the worst way in which m rows can lie (:mod:`incrowd.privacy.shifted`).

**A table beside.** A table of households beside that of their people has the same noise and the
levels that were chosen for the people, so it adds one draw and no choice: a household is in one of
its cells (:mod:`incrowd.anonymize.safe_households`).

Where the table is itself a sample, all of it is amplified together: geometric noise is settled for
what may be spent on the sample, and both laws are accounted as they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import TypeAlias

import numpy as np

from incrowd.arrays import Floats
from incrowd.errors import IncrowdError, ParameterError, UnsolvableError
from incrowd.privacy.accountant import Accountant, build_profile
from incrowd.privacy.amplification import Guarantee, invert_amplification
from incrowd.privacy.counts import build_geometric_law, find_smallest_reach, is_even
from incrowd.privacy.draw_parameters import (
    SHARES_EPSILON,
    CountsEvent,
    Draw,
    list_coin_parameters,
    list_draw_parameters,
    list_row_parameters,
)
from incrowd.privacy.events import (
    LARGEST_K,
    LARGEST_R,
    Coin,
    Composition,
    DeclaredCounts,
    Event,
    GaussianCounts,
    GeometricCounts,
    OneOf,
    PersonCounts,
    RowCounts,
    SafeRelease,
    SampledEvent,
    Selection,
    SeriesCounts,
)
from incrowd.privacy.partition import list_partitions
from incrowd.privacy.plan_sample import find_smallest_whole
from incrowd.privacy.profile import Profile, amplify_profile
from incrowd.privacy.randomness import round_down_rate
from incrowd.privacy.shifted import list_row_shifts

_LEAST_DELTA = 1e-300
_WIDEST = 1_000_000  # the largest variance that is drawn
_LAW_TRIES = 8


def split_for_counts(
    *,
    epsilon: float,
    delta: float,
    selections: Sequence[float] = (),
    choices: Sequence[float] = (),
    tables: int = 1,
    population: float | None = None,
    rows: int = 1,
    per_group: int = 1,
    beside: int = 0,
    measured: Sequence[float] = (),
) -> BudgetSplit:
    """Split a budget with the counts of smallest r: within (epsilon, delta), all together.

    ``rows`` is the largest number of rows of one person: so many cells of a table have that person.
    With ``per_group`` above 1 rows are counted, so many of one person in a cell. Of tables
    ``beside`` one cell has the person.
    ``measured`` are the epsilons of counts of declared values.
    """
    if delta < _LEAST_DELTA:
        raise ParameterError("delta", f"be at least {_LEAST_DELTA:g} for counts", delta)
    choice_epsilons = (*measured, *choices, *tuple(selections) * tables)
    refuse_if_spent(choice_epsilons, epsilon=epsilon, delta=delta, population=population)
    empty = BudgetSplit(
        epsilon, delta, Composition(()), tuple(selections), tuple(choices), tables, population,
        rows, per_group, beside, tuple(measured),
    )  # fmt: skip
    inside = Guarantee(epsilon, delta)
    if population is not None:
        inside = invert_amplification(epsilon=epsilon, delta=delta, rate=population)
    geometric = _split_geometric(empty, inside, choice_epsilons)
    gaussian = None if empty.draw_count == 1 else (_split_gaussian(empty, inside, choice_epsilons))
    budget_split = [split for split in (geometric, gaussian) if split is not None]
    if not budget_split:
        many = f", rows per person: {rows}" if rows > 1 else ""
        fewer = "tables or rows per person" if rows > 1 else "tables"
        raise UnsolvableError(
            f"No noisy counts with noise of at most {LARGEST_R:,} reach ε = {epsilon:g}, δ = "
            f"{delta:g} (tables: {tables + beside}{many}). Use a larger ε or δ, or fewer {fewer}."
        )
    return min(budget_split, key=lambda split: split.draws[-1].r)  # type: ignore[union-attr]


def is_within_budget(split: BudgetSplit) -> bool:
    """Return whether the accountant allows a split."""
    delta = Accountant(split.events).delta(epsilon=split.epsilon)
    return delta * (1 + LAST_DIGITS) <= split.delta


def _split_geometric(
    empty: BudgetSplit, inside: Guarantee, choice_epsilons: Sequence[float]
) -> BudgetSplit | None:
    """Split for geometric noise of an equal part of what choices leave; None if it is nothing."""
    remainder = (Fraction(inside.epsilon) - sum(map(Fraction, choice_epsilons))) / empty.draw_count
    millionths = round(remainder * 1_000_000)
    while Fraction(millionths / 1e6) > remainder:  # floats add up exactly, and to no more than that
        millionths -= 1
    part = min(-math.expm1(math.log1p(-min(inside.delta, 0.5)) / empty.draw_count), 0.5)
    for _ in range(_LAW_TRIES):
        epsilon = millionths / 1e6
        if epsilon <= 0:
            return None
        r = max(find_smallest_reach(epsilon, part * (1 - 2 * LAST_DIGITS)), 1)
        if r > LARGEST_R:
            return None
        if empty.per_group > 1:
            return _find_least_bound(empty, r, partial(GeometricCounts, epsilon=epsilon))
        split = replace(empty, event=GeometricCounts(r, epsilon))
        if is_within_budget(split):
            return _add_coin(split, part) if empty.draw_count == 1 else split
        millionths -= 1
    return None


def _add_coin(split: BudgetSplit, delta: float) -> BudgetSplit:
    """Return the same split with a coin between r - 1 and r, where delta leaves room for it."""
    (event,) = split.draws
    assert isinstance(event, GeometricCounts)
    if event.r < 2:
        return split
    first_delta, second_delta = (
        build_geometric_law(event.epsilon, r).min_delta for r in (event.r - 1, event.r)
    )
    spent = second_delta
    if split.population is None:  # delta of r itself, and what reading epsilon either way may cost
        spent = max(spent, Accountant(split.events).delta(epsilon=split.epsilon))
    room = delta * (1 - 2 * LAST_DIGITS) - spent
    chance = math.floor(room / (first_delta - second_delta) * 1e6) / 1e6
    if not 0 < chance < 1:
        return split
    coin = Coin(GeometricCounts(event.r - 1, event.epsilon), event, chance)
    randomized = replace(split, event=coin)
    return randomized if is_even(coin) and is_within_budget(randomized) else split


def _split_gaussian(
    empty: BudgetSplit, inside: Guarantee, choice_epsilons: Sequence[float]
) -> BudgetSplit | None:
    """Split for Gaussian noise of the variance at which r is least."""
    sizes = next(list_partitions(empty.rows, empty.per_group))  # as many as may be in each cell
    energy = float(empty.tables * sum(size**2 for size in sizes) + empty.beside)
    guess = guess_variance(energy, float(empty.draw_count), inside, choice_epsilons)
    if guess is None:
        return None
    variance, start = guess
    start += empty.per_group - 1  # a shift by s loses what lies beyond r - s
    return _find_least_bound(empty, start, partial(GaussianCounts, variance=variance))


def _find_least_bound(
    empty: BudgetSplit, start: int, make_event: Callable[[int], CountsEvent]
) -> BudgetSplit | None:
    """Return the split whose noise has the smallest r; None if none is within the budget."""

    def split(r: int) -> BudgetSplit:
        return replace(empty, event=make_event(r))

    r = find_smallest_whole(lambda r: _is_likely_within_budget(split(r)), start, LARGEST_R)
    while math.isfinite(r) and empty.per_group > 1 and not is_within_budget(split(int(r))):
        r = r + 1 if r < LARGEST_R else math.inf
    return split(int(r)) if math.isfinite(r) else None


def _is_likely_within_budget(split: BudgetSplit) -> bool:
    """Return the same with the likely worst way alone in which the rows of a person can lie.

    It is far sooner computed than the worst of all ways, and the same where people are counted.
    """
    event = split.table_event
    if isinstance(event, RowCounts):
        event = Composition(next(list_row_shifts(event)))
    delta = Accountant(split.list_events(event)).delta(epsilon=split.epsilon)
    return delta * (1 + LAST_DIGITS) <= split.delta


def guess_variance(
    energy: float, distance: float, inside: Guarantee, choice_epsilons: Sequence[float] = ()
) -> tuple[float, int] | None:
    """Return the variance at which r is least, and that r, by formulas of the unbounded law.

    One person moves counts by distances that add up to ``distance``, their squares to ``energy``.
    Gaussian noise of variance v has the profile of one Gaussian whose mean is mu =
    sqrt(energy / v) of its spread; the choices shift epsilon to either side. What is left of delta
    goes to p(r), once for each step of the way.
    """
    from scipy.special import log_ndtr

    variances = np.geomspace(0.05, _WIDEST, 2000)
    sums, shares = enumerate_sign_sums(choice_epsilons)
    mu = np.sqrt(energy / variances)[:, None]
    at = inside.epsilon - sums[None, :]
    tails = np.exp(log_ndtr(mu / 2 - at / mu)) - np.exp(at + log_ndtr(-mu / 2 - at / mu))
    remaining_delta = inside.delta - tails @ shares
    with np.errstate(invalid="ignore", divide="ignore"):
        odds: Floats = np.log(distance / (np.sqrt(2 * math.pi * variances) * remaining_delta))
        reach = np.sqrt(2 * variances * np.maximum(odds, 0.0))
    reach[~(remaining_delta > 0)] = math.inf
    best = int(np.argmin(reach))
    if not math.isfinite(reach[best]):
        return None
    digits = max(2 - math.floor(math.log10(variances[best])), 0)
    return round(float(variances[best]), min(digits, 3)), max(math.ceil(reach[best]), 1)


RATES = (0.3, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9)
LAST_DIGITS = 1e-9  # what sums of floats may differ by on another machine, and far more
_TRIES = 12
Side: TypeAlias = Callable[[Floats], Floats]


@dataclass(frozen=True)
class BudgetSplit:
    """A budget split fixed before the table is seen; ``epsilon`` and ``delta`` hold for all.

    First come counts of declared values, each with an epsilon of ``measured``, and ``choices``, of
    what goes into which table. Then, for each of ``tables``, come
    ``selections``, and what is drawn: ``event``, a sample (one of several, where selections choose
    among them) or counts. ``population`` is the rate at which the table itself was sampled, if it
    was. Of counts, one person may be in as many cells of each table as there are ``rows``; with
    ``per_group`` above 1 so many of the rows count in one cell. Tables ``beside`` are drawn alike,
    with nothing chosen for them, and have a person in one cell.
    """

    epsilon: float
    delta: float
    event: Event
    selections: tuple[float, ...] = ()
    choices: tuple[float, ...] = ()
    tables: int = 1
    population: float | None = None
    rows: int = 1
    per_group: int = 1
    beside: int = 0
    measured: tuple[float, ...] = ()

    @property
    def draw_count(self) -> int:
        """The number of draws that one person may change by one, over all tables."""
        return self.tables * self.rows + self.beside

    @property
    def split_beside(self) -> BudgetSplit:
        """The same split as a table beside sees it: nothing is chosen, a person is in one cell."""
        return replace(self, selections=(), rows=1, per_group=1)

    @property
    def shared_parameters(self) -> dict[str, float | str]:
        """The parameters that certificates state of several tables together."""
        parameters: dict[str, float | str] = {}
        if self.tables > 1 and self.choices:
            parameters["slices_epsilon"] = _sum_millionths(self.choices)
        if self.tables > 1 and self.measured:
            parameters[SHARES_EPSILON] = _sum_millionths(self.measured)
        if self.tables > 1 and self.population is not None:
            parameters["already_sampled"] = self.population
        return parameters

    @property
    def draws(self) -> tuple[Draw, ...]:
        """The draws that a table may have: of a coin, first the side that it names first."""
        match self.event:
            case OneOf(events):
                return tuple(part for part in events if isinstance(part, Draw))
            case Coin(first, second, _):
                return tuple(part for part in (first, second) if isinstance(part, Draw))
            case SafeRelease() | GeometricCounts() | GaussianCounts():
                return (self.event,)
            case SeriesCounts():
                return ()  # each release has a law of its own
        raise AssertionError(self.event)

    def list_parameters(self, draw: Draw) -> dict[str, float | str]:
        """Return what certificates state of a table that was drawn with one of the draws.

        Counts have a k besides, which no event knows: whatever it is, they cost the same.
        """
        parameters = {**list_draw_parameters(draw), **list_coin_parameters(self.event)}
        parameters.update(list_row_parameters(self.table_event))
        if self.selections:
            parameters["search_epsilon"] = _sum_millionths(self.selections)
        if self.tables == 1 and self.measured:
            parameters[SHARES_EPSILON] = _sum_millionths(self.measured)
        if self.tables == 1 and self.population is not None:
            parameters["already_sampled"] = self.population
        return parameters

    @property
    def table_event(self) -> Event:
        """The draw of one table, with all the cells that a person may be in."""
        if self.per_group > 1 and isinstance(self.event, CountsEvent):
            return RowCounts(self.event, self.rows, self.per_group)
        if self.rows > 1 and isinstance(self.event, CountsEvent):
            return PersonCounts(self.event, self.rows)
        return self.event

    @property
    def events(self) -> list[Event]:
        """All of it as events: one for each slice, where there are several tables."""
        return self.list_events(self.table_event)

    def list_events(self, event: Event) -> list[Event]:
        """Return the events with a draw of each table."""
        table_events: list[Event] = [*(Selection(epsilon) for epsilon in self.selections), event]
        if self.selections and self.tables + self.beside > 1:
            table_events = [Composition(table_events)]
        events: list[Event] = [
            *(DeclaredCounts(epsilon) for epsilon in self.measured),
            *(Selection(epsilon) for epsilon in self.choices),
            *[self.event] * self.beside,
            *table_events * self.tables,
        ]
        if self.population is None:
            return events
        inside = events[0] if len(events) == 1 else Composition(events)
        return [SampledEvent(inside, self.population)]


def _sum_millionths(epsilons: Sequence[float]) -> float:
    """Return the sum of epsilons that are multiples of a millionth, as all payable ones are."""
    return round(math.fsum(epsilons), 6)


def split_for_samples(
    *,
    epsilon: float,
    delta: float,
    selections: Sequence[float] = (),
    rates: Sequence[float] = RATES,
    choices: Sequence[float] = (),
    tables: int = 1,
    population: float | None = None,
    measured: Sequence[float] = (),
) -> BudgetSplit:
    """Split a budget with the smallest k for each rate: within (epsilon, delta), all together."""
    choice_epsilons = (*measured, *choices, *tuple(selections) * tables)
    refuse_if_spent(choice_epsilons, epsilon=epsilon, delta=delta, population=population)
    empty = BudgetSplit(
        epsilon, delta, Composition(()), tuple(selections), tuple(choices), tables, population,
        measured=tuple(measured),
    )  # fmt: skip
    target, sums = delta, enumerate_sign_sums(choice_epsilons)
    for _ in range(_TRIES):
        pairs = tuple(_find_smallest_k(rate, empty, target, sums) for rate in rates)
        split = replace(empty, event=OneOf(pairs) if selections else pairs[0])
        total_delta = Accountant(split.events).delta(epsilon=epsilon)
        if total_delta * (1 + LAST_DIGITS) <= delta:
            return split
        target *= 0.98 * delta / total_delta
    raise UnsolvableError(f"No k and β fit ε = {epsilon:g}, δ = {delta:g}. Use a larger ε or δ.")


def refuse_if_spent(
    choice_epsilons: Sequence[float], *, epsilon: float, delta: float, population: float | None
) -> None:
    """Refuse choices that leave nothing for a release."""
    total = math.fsum(choice_epsilons)
    if (
        total >= epsilon
        and _compute_choice_epsilon(choice_epsilons, delta, population) > 0.999 * epsilon
    ):
        raise IncrowdError(
            f"The search would use ε = {total:g} of {epsilon:g}, and leave none for the release. "
            "Use a smaller `search_epsilon`."
        )


def _compute_choice_epsilon(
    epsilons: Sequence[float], delta: float, population: float | None
) -> float:
    """Return what choices cost by themselves: of many, or on a sample, less than their sum."""
    event: Event = Composition(Selection(epsilon) for epsilon in epsilons)
    if population is not None:
        event = SampledEvent(event, population)
    return Accountant(event).epsilon(delta=delta)


def _find_smallest_k(
    rate: float, split: BudgetSplit, delta: float, sums: tuple[Floats, Floats]
) -> SafeRelease:
    """Return the pair with the smallest k at a rate, by bisection; delta falls as k grows."""
    beta = round_down_rate(rate)
    low, high = 0, 1
    while _compute_delta(SafeRelease(high, beta), split, delta, sums) > delta:
        low, high = high, 2 * high
        if high > LARGEST_K:
            raise UnsolvableError(
                f"No k reaches δ = {delta:.3g} at ε = {split.epsilon:g} and β = {rate:g}. Use a "
                "larger ε or δ, or a smaller β."
            )
    while high - low > 1:
        middle = (low + high) // 2
        fits = _compute_delta(SafeRelease(middle, beta), split, delta, sums) <= delta
        low, high = (low, middle) if fits else (middle, high)
    return SafeRelease(high, beta)


def enumerate_sign_sums(epsilons: Sequence[float]) -> tuple[Floats, Floats]:
    """Return the sums of signed epsilons, equal ones together, and how likely each is."""
    sums, shares = np.zeros(1), np.ones(1)
    for epsilon in epsilons:
        plus = 1 / (1 + math.exp(-epsilon))
        branches = np.concatenate([sums + epsilon, sums - epsilon])
        weights = np.concatenate([shares * plus, shares * (1 - plus)])
        sums, place = np.unique(np.round(branches, 9), return_inverse=True)
        shares = np.bincount(place, weights=weights).astype(np.float64)
    return sums, shares


def _compute_delta(
    pair: SafeRelease, split: BudgetSplit, target: float, sums: tuple[Floats, Floats]
) -> float:
    """Return delta if each release had this pair, near the target or above it."""
    event = pair if split.tables == 1 else Composition([pair] * split.tables)
    profile = _compose_responses(sums, build_profile(event, tail=target * 1e-5 / split.tables))
    if split.population is not None:
        profile = amplify_profile(profile, split.population)
    return float(profile.delta(np.array([split.epsilon]))[0])


def _compose_responses(responses: tuple[Floats, Floats], profile: Profile) -> Profile:
    """Return a profile after randomized responses; a side below zero follows from the other."""
    sums, shares = responses

    def side(same_side: Side, opposite_side: Side) -> Side:
        def mix_profiles(epsilon: Floats) -> Floats:
            at = epsilon[:, None] - sums
            above = same_side(np.maximum(at, 0.0).ravel()).reshape(at.shape)
            below = np.minimum(at, 0.0)
            opposite = opposite_side(-below.ravel()).reshape(at.shape)
            reflection = -np.expm1(below) + np.exp(below) * opposite
            return np.asarray(np.where(at < 0, reflection, above) @ shares)

        return mix_profiles

    present = side(profile.present, profile.absent)
    absent = side(profile.absent, profile.present)
    return Profile(present, absent, profile.reach + float(sums.max()))
