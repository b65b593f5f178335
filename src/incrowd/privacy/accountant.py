"""From events to (epsilon, delta): what a sequence of releases costs, rounded against us.

:class:`Accountant` composes privacy-loss distributions; :class:`BasicAccountant` adds
epsilons and deltas, and is there for comparison.

Somebody who is in the table and somebody who is not are two directions; each is composed
by itself and the larger answer is given.

**Which number a float stands for.** Noise and choices are drawn with the decimal that epsilon is
written as (:func:`incrowd.privacy.presentation.read_as_decimal`), which is not the binary number
that a computer holds: 0.7 is held as a number that is 4.4e-17 smaller. Sums of epsilons are
therefore sums of decimals, exact. The epsilon that delta is asked at is read both ways, and what is
reported holds for either, if anything that is drawn is among the events. Pure events are read as
they are written.

*Claim.* Events that satisfy (E, D) together satisfy (x, D + 1 - e^(x - E)) for each x < E, so
(x, D + E - x). *Proof.* Outside of an event of P whose probability is at most D (in the sense of
the hockey stick), p <= e^E q, so p - e^x q <= p (1 - e^(x - E)); these add up to 1 - e^(x - E) at
most. Where x is E but for a rounding, that is all that the rounding costs.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from functools import reduce

import numpy as np
import numpy.typing as npt

from incrowd.arrays import Floats
from incrowd.errors import ParameterError, check_at_least_zero, check_fraction
from incrowd.privacy import pld
from incrowd.privacy.amplification import amplify_guarantee
from incrowd.privacy.counts import build_event_law
from incrowd.privacy.events import (
    BoundedChoice,
    Coin,
    Composition,
    DeclaredCounts,
    Event,
    GaussianCounts,
    GaussianMeasurements,
    GeometricCounts,
    Mechanism,
    OneOf,
    PersonCounts,
    RowCounts,
    SafeRelease,
    SampledEvent,
    Selection,
    SeriesCounts,
    ShiftedCounts,
)
from incrowd.privacy.gaussian import of_measurements
from incrowd.privacy.pld import LossDistribution
from incrowd.privacy.presentation import read_as_decimal
from incrowd.privacy.profile import (
    Profile,
    amplify_profile,
    build_guarantee_profile,
    build_release_profile,
    build_worst_profile,
    mix_profiles,
    of_bounded_range,
)
from incrowd.privacy.sample import SMALLEST
from incrowd.privacy.sample_inverse import narrow_bracket
from incrowd.privacy.series import list_steps
from incrowd.privacy.shifted import (
    bound_losses,
    build_shifted_profile,
    compute_lost_mass,
    list_row_shifts,
)

_NEARLY = Fraction(1, 10**12)  # what sums of epsilons may miss by a rounding, and far more


class Accountant:
    """Compose events on one table tightly.

    A single event is answered from its profile. For several events, privacy losses are put on a
    grid and convolved; every rounding is on the safe side.

    Args:
        events: The events, fixed in advance, each with randomness of its own.
        step: Width of the grid. By default about a thirtieth of the spread of the privacy loss of
            one event, which widens the sum by one part in ten thousand.

    Examples:
        >>> sixteen = Accountant([SafeRelease(k=20, beta=0.1)] * 16)
        >>> round(sixteen.epsilon(delta=1e-6), 3)
        0.477
        >>> f"{sixteen.delta(epsilon=0.5):.1e}"
        '5.0e-07'
    """

    def __init__(self, events: Event | Iterable[Event], *, step: float | None = None) -> None:
        if step is not None and not 0 < step < math.inf:
            raise ParameterError("step", "be a finite number above 0", step)
        self._counts = _count_events(events)
        self._step = step

    def epsilon(self, *, delta: float) -> float:
        """Return the smallest epsilon that holds with ``delta``; inf if there is none.

        Args:
            delta: The delta. With 0 the answer is finite for pure events alone.

        Returns:
            Epsilon, rounded up; infinity if there is none.
        """
        if _check_delta(delta) == 0 or not self._counts:
            return _compute_basic_epsilon(self._counts, delta)
        tail = delta * 1e-5 / self._counts.total()
        if self._counts.total() == 1:
            (event,) = self._counts
            answer = _find_smallest_epsilon(build_profile(event, tail=tail), delta)
            if math.isfinite(answer) and _needs_delta(event):
                return answer
            # A profile is rounded up; a delta that just suffices is only seen by adding up.
            return min(answer, _compute_basic_epsilon(self._counts, delta))
        answer = max(losses.epsilon(delta) for losses in self._compose_losses(tail))
        if len(self._counts) == 1 and any(_needs_delta(event) for event in self._counts):
            return answer
        # Between unlike events the grid may be too coarse for one of them; both bounds hold.
        return min(answer, _compute_basic_epsilon(self._counts, delta))

    def delta(self, *, epsilon: float) -> float:
        """Return the smallest delta that holds with ``epsilon``; 0 only for pure events.

        Args:
            epsilon: The epsilon.

        Returns:
            Delta, rounded up; 0 for pure events alone.
        """
        at = check_at_least_zero("epsilon", epsilon).reshape(1)
        own_delta = _sum_own_deltas(self._counts)
        if (
            own_delta < 1
            and (over := _compute_overshoot(self._counts, own_delta, float(at[0]))) <= _NEARLY
        ):
            return (
                own_delta
                if over <= 0
                else min(_round_up_to_float(Fraction(own_delta) + Fraction(over)), 1.0)
            )
        # What is cut off counts as lost, so cut far below the answer, which is not known yet.
        cut = 1e-10
        while True:
            answer = self._compute_delta(at, cut / self._counts.total())
            if cut <= 1e-4 * answer or cut < 1e-290:
                return max(answer, SMALLEST)
            cut = min(1e-5 * answer, answer**2)

    def _compute_delta(self, epsilon: Floats, tail: float) -> float:
        if self._counts.total() == 1:
            (event,) = self._counts
            return float(build_profile(event, tail=tail).delta(epsilon)[0])
        return max(float(losses.delta(epsilon)[0]) for losses in self._compose_losses(tail))

    def _compose_losses(self, tail: float) -> Iterator[LossDistribution]:
        """Yield the composed losses, first with P the output on the table that has the row."""
        profiles = {event: build_profile(event, tail=tail) for event in self._counts}
        step = self._step or self._choose_step(profiles, tail)
        turns: tuple[Callable[[Profile], Profile], ...] = (lambda p: p, Profile.swap_tables)
        for turn in turns:
            parts = (
                pld.compose_repeatedly(
                    pld.discretize_losses(turn(profiles[event]), step, tail), count, tail
                )
                for event, count in self._counts.items()
            )
            yield reduce(lambda left, right: pld.compose_losses(left, right, tail), parts)

    def _choose_step(self, profiles: dict[Event, Profile], tail: float) -> float:
        """Return a thirtieth of the smallest spread; at most 8,000 points for one event."""
        rough = [
            pld.discretize_losses(profile, max(profile.reach, 1e-6) / 500, tail)
            for profile in profiles.values()
        ]
        spread = min(math.sqrt(losses.variance) for losses in rough)
        widest = max(losses.masses.size * losses.step for losses in rough)
        return max(spread / 30, widest / 8000)


class BasicAccountant:
    """Basic composition: each event by itself at a share of delta, epsilons added.

    A mechanism gets its own delta. The rest of delta is shared equally among the other events.

    Args:
        events: The events on one table.

    Examples:
        >>> round(BasicAccountant([SafeRelease(k=20, beta=0.1)] * 16).epsilon(delta=1e-6), 2)
        4.0
    """

    def __init__(self, events: Event | Iterable[Event]) -> None:
        self._counts = _count_events(events)

    def epsilon(self, *, delta: float) -> float:
        """Return the smallest epsilon that holds with ``delta``; inf if there is none.

        Args:
            delta: The delta of all events together.

        Returns:
            Epsilon; infinity if there is none.
        """
        return _compute_basic_epsilon(self._counts, _check_delta(delta))

    def delta(self, *, epsilon: float) -> float:
        """Return the smallest delta that holds with ``epsilon``, to one part in a million.

        Args:
            epsilon: The sum of epsilons.

        Returns:
            Delta, rounded up.
        """
        check_at_least_zero("epsilon", epsilon)
        if self.epsilon(delta=0.0) <= epsilon:
            return 0.0
        low, high = math.log(1e-300), 0.0
        while high - low > 1e-6:
            middle = (low + high) / 2
            enough = self.epsilon(delta=math.exp(middle)) <= epsilon
            low, high = (low, middle) if enough else (middle, high)
        return math.exp(high)


def _count_events(events: Event | Iterable[Event]) -> Counter[Event]:
    composition = events if isinstance(events, Event) else Composition(events)
    return Counter(_iterate_leaves(composition))


def _check_delta(delta: float) -> float:
    return 0.0 if delta == 0 else float(check_fraction("delta", delta))


def _iterate_leaves(event: Event) -> Iterator[Event]:
    """Yield the parts of an event that compose, each in its simplest form."""
    match event:
        case Composition(events):
            for part in events:
                yield from _iterate_leaves(part)
        case PersonCounts(part, rows):  # as many independent draws dominate it
            yield from [part] * rows
        case SeriesCounts():
            yield from list_steps(event) * event.rows
        case SampledEvent(part, rate):
            inner = tuple(_iterate_leaves(part))
            if len(inner) == 1:
                yield _merge_sampling(inner[0], rate)
            elif inner:
                yield SampledEvent(Composition(inner), rate)
        case _:
            yield event


def _merge_sampling(leaf: Event, rate: float) -> Event:
    """Return a sampled leaf, with two samplings before it merged into one.

    Whoever is drawn with ``rate`` and then with the inner rate is in the table with their
    product; as for one sampling, only the target's own membership need be secret. The
    product is rounded up: a larger rate only costs more. (A safe release draws rows too, but
    that does not make it a safe release with the product of the rates: there, everybody's
    membership is secret.)
    """
    match leaf:
        case SampledEvent(part, inner):
            return SampledEvent(part, math.nextafter(rate * inner, 1.0))
        case _:
            return SampledEvent(leaf, rate)


def build_profile(event: Event, *, tail: float) -> Profile:
    """Return the profile of an event; ``tail`` is what a composition inside it may cut off."""
    match event:
        case SafeRelease(k, beta):
            return build_release_profile(k, beta)
        case GeometricCounts() | GaussianCounts():
            return build_event_law(event).build_profile()
        case ShiftedCounts():
            return build_shifted_profile(event)
        case RowCounts():
            ways = [Composition(shifts) for shifts in list_row_shifts(event)]
            return build_worst_profile([build_profile(way, tail=tail) for way in ways])
        case Coin(first, second, chance):
            profiles = (build_profile(first, tail=tail), build_profile(second, tail=tail))
            return mix_profiles(*profiles, chance)
        case Selection(epsilon) | DeclaredCounts(epsilon):
            return build_guarantee_profile(epsilon, 0.0)
        case BoundedChoice(epsilon):
            return of_bounded_range(epsilon)
        case GaussianMeasurements(information):
            return of_measurements(information)
        case Mechanism(epsilon, delta):
            return build_guarantee_profile(epsilon, delta)
        case SampledEvent(part, rate):
            return amplify_profile(build_profile(part, tail=tail), rate)
        case OneOf(events):
            return build_worst_profile([build_profile(part, tail=tail) for part in events])
        case Composition() | PersonCounts() | SeriesCounts():
            inner = Accountant(event)
            present, absent = inner._compose_losses(tail / inner._counts.total())
            top = max(float(losses.values[-1]) for losses in (present, absent))
            return Profile(present.delta, absent.delta, max(top, 0.0))


def _find_smallest_epsilon(profile: Profile, delta: float) -> float:
    """Return the smallest epsilon at which a profile is at most delta; inf if there is none."""
    low, high = np.zeros(1), np.array([profile.reach])

    def fails(epsilon: Floats) -> npt.NDArray[np.bool_]:
        return profile.delta(epsilon.ravel()).reshape(epsilon.shape) > delta

    if fails(high)[0]:
        return math.inf
    if not fails(low)[0]:
        return 0.0
    for _ in range(10):
        low, high = narrow_bracket(fails, low, high)
    return float(high[0])


def _compute_overshoot(
    counts: Counter[Event], own_delta: float, epsilon: float
) -> Fraction | float:
    """Return how far the sum of epsilons at the events' own delta lies above an epsilon.

    Both are read as they are written. Where something is drawn, epsilon is also read as the binary
    number, and the larger difference counts; a mechanism is then read as epsilon is.
    """
    total = _sum_epsilons(counts, own_delta)
    if total is None or math.isinf(epsilon):
        return math.inf if total is None else -math.inf
    over = total - read_as_decimal(epsilon)
    if own_delta:
        shift = sum(
            (Fraction(part.epsilon) - read_as_decimal(part.epsilon)) * count
            for part, count in counts.items()
            if isinstance(part, Mechanism)
        )
        over = max(over, total + shift - Fraction(epsilon))
    return over


def _compute_basic_epsilon(counts: Counter[Event], delta: float) -> float:
    """Return the sum of the epsilons at which the events, each by itself, need delta in all.

    It is the smallest float that is written as no less than the sum. Unless all are pure, it may
    as a binary number lie below the sum by no more than what is left of delta (see the module).
    """
    total = _sum_epsilons(counts, delta)
    if total is None:
        return math.inf
    nearest = float(total)
    if read_as_decimal(nearest) < total:
        return math.nextafter(nearest, math.inf)
    own_delta = _sum_own_deltas(counts)
    if (
        own_delta
        and nearest < total
        and _compute_overshoot(counts, own_delta, nearest) > Fraction(delta) - Fraction(own_delta)
    ):
        return math.nextafter(nearest, math.inf)
    return nearest


def _sum_epsilons(counts: Counter[Event], delta: float) -> Fraction | None:
    """Return the exact sum of the epsilons at which the events need delta in all, or None."""
    spare = delta - _sum_own_deltas(counts)
    takers = sum(count for event, count in counts.items() if _needs_delta(event))
    if spare < 0 or (takers and not spare):
        return None
    share = spare / takers if takers else 0.0
    total = Fraction(0)
    for event, count in counts.items():
        part = _find_event_epsilon(event, share)
        if part is None:
            return None
        total += part * count
    return total


def _sum_rounded_up(parts: Iterable[tuple[float, int]]) -> float:
    """Return the sum of value times count, exact, then rounded up."""
    parts = list(parts)
    if any(math.isinf(value) for value, _ in parts):
        return math.inf
    return _round_up_to_float(sum((Fraction(value) * count for value, count in parts), Fraction(0)))


def _round_up_to_float(exact: Fraction) -> float:
    """Return the smallest float that is not below a fraction."""
    nearest = float(exact)
    return nearest if nearest >= exact else math.nextafter(nearest, math.inf)


def _sum_own_deltas(counts: Counter[Event]) -> float:
    """Return the delta that events together need whatever epsilon they are given, rounded up."""
    return _sum_rounded_up((_find_own_delta(event), count) for event, count in counts.items())


def compute_own_delta(event: Event) -> float:
    """Return the delta that an event needs whatever epsilon it is given, rounded up."""
    return _sum_own_deltas(_count_events(event))


def _find_own_delta(event: Event) -> float:
    """Return the delta that an event needs whatever epsilon it is given, rounded up."""
    match event:
        case Mechanism(_, delta):
            return delta
        case GeometricCounts() | GaussianCounts():
            return build_event_law(event).min_delta
        case ShiftedCounts():
            return compute_lost_mass(event)
        case RowCounts():
            return max(_sum_own_deltas(Counter(shifts)) for shifts in list_row_shifts(event))
        case Coin(first, second, chance):
            heads = Fraction(chance)
            average = heads * Fraction(_find_own_delta(first)) + (1 - heads) * Fraction(
                _find_own_delta(second)
            )
            return _round_up_to_float(average)
        case SampledEvent(part, rate):
            return _round_up_to_float(
                Fraction(rate) * Fraction(_sum_own_deltas(_count_events(part)))
            )
        case OneOf(events):
            return max(_find_own_delta(part) for part in events)
        case Composition() | PersonCounts() | SeriesCounts():
            return _sum_own_deltas(_count_events(event))
        case _:
            return 0.0


def _needs_delta(event: Event) -> bool:
    """Return whether an event has no finite epsilon without a share of delta."""
    match event:
        case SafeRelease() | GaussianMeasurements():
            return True
        case SampledEvent(part, _):
            return _needs_delta(part)
        case OneOf(events) | Composition(events):
            return any(_needs_delta(part) for part in events)
        case Coin(first, second, _):
            return _needs_delta(first) or _needs_delta(second)
        case _:
            return False


def _find_event_epsilon(event: Event, share: float) -> Fraction | None:
    """Return the epsilon of an event that may use ``share`` of delta besides its own, or None.

    What an event names is taken as it is written, what is computed here by the larger reading.
    """
    match event:
        case (
            Selection(epsilon)
            | DeclaredCounts(epsilon)
            | BoundedChoice(epsilon)
            | Mechanism(epsilon, _)
            | GeometricCounts(_, epsilon)
        ):
            return _read_as_written(epsilon)
        case GaussianCounts() | ShiftedCounts():
            # What it has of its own is part of its profile.
            profile = build_profile(event, tail=0.0)
            return _read_as_larger(_find_smallest_epsilon(profile, _find_own_delta(event) + share))
        case RowCounts(GeometricCounts(_, epsilon), rows, _):
            own_epsilon = _read_as_written(epsilon)
            return None if own_epsilon is None else own_epsilon * rows
        case RowCounts() if not share:
            return _read_as_larger(max(map(bound_losses, list_row_shifts(event))))
        case RowCounts():
            profile = build_profile(event, tail=share * 1e-5)
            return _read_as_larger(_find_smallest_epsilon(profile, _find_own_delta(event) + share))
        case Coin(first, second, _):
            return _take_largest(
                [_find_event_epsilon(first, share), _find_event_epsilon(second, share)]
            )
        case SampledEvent(part, rate):
            counts = _count_events(part)
            inner = _sum_epsilons(counts, min(_sum_own_deltas(counts) + share / rate, 1.0))
            if inner is None:
                return None
            # Rounded up by far more than its two readings differ.
            return _read_as_written(
                amplify_guarantee(epsilon=_round_up_to_float(inner), rate=rate).epsilon
            )
        case OneOf(events):
            return _take_largest([_find_event_epsilon(part, share) for part in events])
        case _:
            return _read_as_larger(
                _find_smallest_epsilon(build_profile(event, tail=share * 1e-5), share)
            )


def _read_as_written(epsilon: float) -> Fraction | None:
    """Return a float as it is written; None if it is infinite."""
    return read_as_decimal(epsilon) if math.isfinite(epsilon) else None


def _read_as_larger(epsilon: float) -> Fraction | None:
    """Return a float by whichever reading is the larger; None if it is infinite."""
    return max(Fraction(epsilon), read_as_decimal(epsilon)) if math.isfinite(epsilon) else None


def _take_largest(epsilons: list[Fraction | None]) -> Fraction | None:
    largest = [epsilon for epsilon in epsilons if epsilon is not None]
    return max(largest) if len(largest) == len(epsilons) else None
