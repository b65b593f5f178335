"""The rule by which releases compose when their parameters are chosen after earlier results.

**Two rules.** Privacy losses compose tightly (:class:`incrowd.privacy.accountant.Accountant`)
where the *events* are fixed before the first of them is made; columns, schemes and queries may
still depend on earlier results. Such a sequence is a *planned block*. Where a curator chooses the
next event after seeing results, tight composition is false: he can choose what hurts most given
the losses so far. Planned blocks and unplanned releases therefore add their epsilons and deltas.

**Claim.** Each entry i is a block of events, chosen with its (epsilon_i, delta_i) when it is
booked, in any way that depends on what was published before; together the events of the entry
satisfy (epsilon_i, delta_i). Releases of different blocks may interleave. If on every path the
epsilons sum to at most E and the deltas to at most D, all that is published satisfies (E,
D)-differential privacy.

**Proof.** Let P and Q be the laws of everything published on two neighboring tables, in one of
both directions. The log-likelihood ratio is the sum of those of the entries, L = sum of L_i, since
each release depends on the table and on what was published before. With x_i = exp(epsilon_i -
L_i),

    (1 - exp(E - L))+  <=  (1 - product of x_i)+  <=  1 - product of min(x_i, 1)
                       <=  sum of (1 - x_i)+,

so delta(E) = E_P[(1 - exp(E - L))+] is at most E_P[sum over booked i of (1 - exp(epsilon_i -
L_i))+]. It remains that each term is, given everything published before the entry was booked, at
most delta_i. It depends on the entry's own losses alone. Everything else that is published after
the booking is, under P, drawn by randomness that is independent of the entry's own; so the rest of
the world is an adversary with random bits of its own who chooses the queries of the entry's events
one after the other. Against such an adversary events with fixed dominating pairs compose as their
product (releases that are never made are dominated by any pair), and the term is at most delta_i.
The deltas sum to at most D on every path. An unplanned release is a block of one.

**Samples.** Of a table that is itself a sample of a population all entries see the same sample:
amplification holds for everything published together, not for each entry. So epsilons and deltas
are those on the table (*inside*), they are summed, and the sum is amplified once. Where entries
state different rates, or some state none, the sum is not amplified. That is a valid filter under
the premise of the first entry, whose rate no result has influenced: on a path that keeps to the
rate b the sum inside is within the budget that b amplifies to (E, D), on any other path within (E,
D), which is less. A first entry stands alone until a second fits: if it exceeds the budget inside,
and only its certified guarantee fits, nothing can follow it.

Numbers count as the decimals that they are written as: three epsilons of 0.1 sum to 0.3.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from incrowd.privacy.amplification import Guarantee, amplify_guarantee, invert_amplification
from incrowd.privacy.events import Composition, Event, SampledEvent
from incrowd.privacy.presentation import format_parameter

_WORTH = 1e-3  # a share of delta is taken only where it lowers epsilon by so much of itself


@dataclass(frozen=True)
class Charge:
    """The amount that an entry takes from a budget.

    Attributes:
        guarantee: The guarantee of the entry by itself.
        inside: The guarantee on the table, without amplification by the sampling rate.
        rate: The sampling rate of the table; None if it is not a sample.
    """

    guarantee: Guarantee
    inside: Guarantee
    rate: float | None = None


def separate_sampling(event: Event) -> tuple[Event, float | None]:
    """Return an event without the sampling of its table, and the rate that all its parts share.

    The rate is None where parts state different rates, or some state none.
    """
    rates, inner = set(), []
    for part in _iterate_parts(event):
        rates.add(part.rate if isinstance(part, SampledEvent) else None)
        inner.append(part.event if isinstance(part, SampledEvent) else part)
    rate = rates.pop() if len(rates) == 1 else None
    return (inner[0] if len(inner) == 1 else Composition(inner)), rate


def repeat_event(event: Event, times: int) -> Event:
    """Return a planned block: the same event several times, of one sample if it is of a sample."""
    inner, rate = separate_sampling(Composition([event] * times))
    return inner if rate is None else SampledEvent(inner, rate)


def charge_guarantee(event: Event, guarantee: Guarantee) -> Charge:
    """Return the charge of an event that is certified to satisfy ``guarantee``."""
    inner, rate = separate_sampling(event)
    if rate is None and not _has_sampling(event):
        return Charge(guarantee, guarantee)
    from incrowd.privacy.accountant import Accountant

    if rate is None:
        inner_delta = Accountant(inner).delta(epsilon=guarantee.epsilon)
        inside = Guarantee(guarantee.epsilon, max(inner_delta, guarantee.delta))
        return Charge(guarantee, inside)
    inside = invert_amplification(epsilon=guarantee.epsilon, delta=guarantee.delta, rate=rate)
    # The certified guarantee implies this in one direction, not always in the other.
    required_delta = Accountant(inner).delta(epsilon=inside.epsilon)
    return Charge(guarantee, Guarantee(inside.epsilon, max(inside.delta, required_delta)), rate)


def charge_share(event: Event, share: float) -> Charge:
    """Return the charge of an event of which no guarantee is stated, at a share of delta.

    Delta is what the event needs whatever epsilon is, and besides it the share, if that lowers
    epsilon. Epsilon is rounded up to six digits; it is infinite where delta does not suffice.
    """
    from incrowd.privacy.accountant import compute_own_delta

    inner, rate = separate_sampling(event)
    own_delta = compute_own_delta(inner)
    extra = min(own_delta + min(share if rate is None else share / rate, 0.5), 0.999)
    points = [
        Guarantee(_find_smallest_epsilon(inner, delta), delta)
        for delta in (own_delta, extra)
        if delta < 1
    ]
    if not points:
        points = [Guarantee(math.inf, 1.0)]
    inside = points[0]
    if points[-1].epsilon < (1 - _WORTH) * inside.epsilon or math.isinf(inside.epsilon):
        inside = points[-1]
    if rate is None or math.isinf(inside.epsilon):
        return Charge(inside, inside, rate)
    return Charge(
        amplify_guarantee(epsilon=inside.epsilon, delta=inside.delta, rate=rate), inside, rate
    )


def sum_charges(charges: Sequence[Charge]) -> Guarantee:
    """Return what all entries satisfy together; see the claim above."""
    if len(charges) == 1:
        return charges[0].guarantee
    inside, rate = _sum_inside(charges), _find_common_rate(charges)
    if rate is None or math.isinf(inside.epsilon) or inside.delta >= 1:
        return inside
    return amplify_guarantee(epsilon=inside.epsilon, delta=inside.delta, rate=rate)


def charges_fit(charges: Sequence[Charge], budget: Guarantee) -> bool:
    """Return whether all entries together are within a budget.

    Where they are amplified they are compared inside, so that roundings there and back do not
    refuse what takes exactly the budget.
    """
    if len(charges) == 1:
        return _is_within(charges[0].guarantee, budget)
    inside, rate = _sum_inside(charges), _find_common_rate(charges)
    if rate is not None:
        budget = invert_amplification(epsilon=budget.epsilon, delta=budget.delta, rate=rate)
    return _is_within(inside, budget)


def _sum_inside(charges: Sequence[Charge]) -> Guarantee:
    return Guarantee(
        _sum_decimals([charge.inside.epsilon for charge in charges]),
        _sum_decimals([charge.inside.delta for charge in charges]),
    )


def _find_common_rate(charges: Sequence[Charge]) -> float | None:
    rates = {charge.rate for charge in charges}
    return rates.pop() if len(rates) == 1 else None


def _is_within(total: Guarantee, budget: Guarantee) -> bool:
    if math.isinf(total.epsilon):
        return False
    pairs = ((total.epsilon, budget.epsilon), (total.delta, budget.delta))
    return all(Fraction(repr(part)) <= Fraction(repr(limit)) for part, limit in pairs)


def _sum_decimals(numbers: Sequence[float]) -> float:
    """Return the sum of decimals, as the smallest float that is not written as less."""
    if any(math.isinf(number) for number in numbers):
        return math.inf
    exact = sum((Fraction(repr(float(number))) for number in numbers), Fraction(0))
    nearest = float(exact)
    return nearest if Fraction(repr(nearest)) >= exact else math.nextafter(nearest, math.inf)


def _find_smallest_epsilon(event: Event, delta: float) -> float:
    from incrowd.privacy.accountant import Accountant, BasicAccountant

    # Both hold; adding up is exact where noise comes to its own epsilon.
    smallest = min(
        accountant(event).epsilon(delta=delta) for accountant in (Accountant, BasicAccountant)
    )
    return smallest if math.isinf(smallest) else float(format_parameter("epsilon", smallest, 6))


def _iterate_parts(event: Event) -> Iterator[Event]:
    """Yield the parts that an event is composed of, down to what was sampled."""
    if isinstance(event, Composition):
        for part in event.events:
            yield from _iterate_parts(part)
    else:
        yield event


def _has_sampling(event: Event) -> bool:
    return any(isinstance(part, SampledEvent) for part in _iterate_parts(event))
