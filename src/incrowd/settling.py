"""From what a spec says of k, beta, epsilon and delta to the budget of a safe release."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from incrowd.errors import IncrowdError
from incrowd.pairing import RATES, Budget, paired
from incrowd.planning import plan, rounded
from incrowd.privacy.accountant import Accountant
from incrowd.privacy.events import SafeRelease
from incrowd.privacy.randomness import realised
from incrowd.privacy.selection import payable
from incrowd.spec import Release


def searched(
    release: Release,
    *,
    selections: Sequence[float],
    choices: Sequence[float] = (),
    tables: int = 1,
) -> Budget:
    """The budget of tables whose schemes, with k and beta, are chosen privately.

    ``selections`` are what the choices of one scheme spend, ``choices`` what comes before all.
    """
    if release.epsilon is None or release.delta is None:
        raise IncrowdError(f"'scheme: {release.scheme}' needs both 'epsilon' and 'delta'.")
    if release.k is not None:
        raise IncrowdError(f"'scheme: {release.scheme}' finds k itself; leave 'k' out.")
    rate = release.beta or release.keep
    if rate is None and tables > 1:
        rate = _best_rate(release.epsilon, release.delta, tables)
    return paired(
        epsilon=release.epsilon,
        delta=release.delta,
        selections=_payable(selections),
        rates=RATES if rate is None else (rate,),
        choices=_payable(choices),
        tables=tables,
        population=release.already_sampled,
    )


def _best_rate(epsilon: float, delta: float, tables: int) -> float:
    """The rate at which the smallest crowds survive: of slices, shape matters more than rows."""
    return plan(epsilon=epsilon, delta=delta, releases=tables).beta


def _payable(epsilons: Sequence[float]) -> tuple[float, ...]:
    spent = tuple(payable(epsilon) for epsilon in epsilons)
    if not min(spent, default=1.0) > 0:
        raise IncrowdError("The search needs an epsilon of at least a millionth for each choice.")
    return spent


def fixed(release: Release, *, choices: Sequence[float] = (), tables: int = 1) -> Budget:
    """The budget of tables whose schemes do not depend on the data.

    With ``already_sampled`` the table is a sample of rate b, so drawing with beta draws from
    the population with b beta: that product is planned for. Several tables are drawn from one
    such sample, so they are amplified together.
    """
    if choices or (tables > 1 and release.already_sampled is not None):
        return _beside_choices(release, choices, tables)
    b = release.already_sampled or 1.0
    k, rate = release.k, release.beta or release.keep
    known: dict[str, Any] = {
        "epsilon": release.epsilon, "delta": release.delta, "releases": tables,
    }  # fmt: skip
    if rate is not None and k is None:
        k = plan(beta=rate * b, **known).k
    elif rate is None:
        planned = plan(k=k, **known)
        k, rate = planned.k, planned.beta / b
        if rate > 0.99:  # more than there are rows: draw nearly all of them
            rate = 0.99
            k = release.k or plan(beta=rate * b, **known).k
    assert k is not None
    pair = SafeRelease(k, realised(rate))
    return _accounted(release, pair, tables)


def _accounted(release: Release, pair: SafeRelease, tables: int) -> Budget:
    """The budget of a pair, with what it spends: what was not given, or no more than was.

    What is found is rounded up to six digits, so that it also holds where whoever verifies it
    adds up in another order.
    """
    budget = Budget(0.0, 0.0, (pair,), tables=tables, population=release.already_sampled)
    accountant = Accountant(budget.events)
    k, rate = pair.k, pair.beta
    if release.epsilon is not None:
        epsilon, delta = release.epsilon, accountant.delta(epsilon=release.epsilon)
        if release.delta is None or delta <= release.delta:
            delta = min(float(rounded("delta", delta, 6)), release.delta or 1.0)
        else:
            raise IncrowdError(
                f"k = {k} and beta = {rate:g} give delta = {delta:.3g} at epsilon = {epsilon:g}, "
                f"more than the {release.delta:g} of the spec. Use a larger k or a smaller beta."
            )
    elif release.delta is not None:
        delta, epsilon = release.delta, accountant.epsilon(delta=release.delta)
        epsilon = float(rounded("epsilon", epsilon, 6)) if epsilon < math.inf else epsilon
    else:
        raise IncrowdError("The spec must give epsilon, delta or both under 'release'.")
    if not epsilon < math.inf:
        raise IncrowdError(
            f"No epsilon reaches delta = {delta:g} with k = {k} and beta = {rate:g}."
        )
    return Budget(epsilon, delta, (pair,), tables=tables, population=release.already_sampled)


def _beside_choices(release: Release, choices: Sequence[float], tables: int) -> Budget:
    """The smallest k at the rate that is given, or that is best for tables of their own."""
    if release.epsilon is None or release.delta is None or release.k is not None:
        raise IncrowdError(
            "Slices that are chosen, or of a table that is a sample, need both 'epsilon' and "
            "'delta', and find k themselves; leave 'k' out."
        )
    rate = release.beta or release.keep
    if rate is None:
        rate = _best_rate(release.epsilon, release.delta, tables)
    return paired(
        epsilon=release.epsilon,
        delta=release.delta,
        rates=(rate,),
        choices=_payable(choices),
        tables=tables,
        population=release.already_sampled,
    )
