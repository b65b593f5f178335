"""From what a spec says of k, beta, epsilon and delta to the budget of a safe release.

With ``already_sampled: b`` everybody of a population was in the table with probability b. The
premise under which that counts is that the attacker does not know whether the person was whom
he asks about; he may know it of everybody else. So a release costs what
:class:`incrowd.privacy.events.SampledEvent` says, one or several alike, and never what a release of
rate b beta would: that would need everybody's membership to be secret.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from incrowd.errors import IncrowdError, UnsolvableError
from incrowd.privacy.accountant import Accountant
from incrowd.privacy.amplification import Guarantee, invert_amplification
from incrowd.privacy.events import LARGEST_K, SafeRelease
from incrowd.privacy.plan import plan
from incrowd.privacy.plan_sample import SampleSolver
from incrowd.privacy.presentation import format_parameter
from incrowd.privacy.randomness import round_down_rate
from incrowd.privacy.selection import round_down_epsilon
from incrowd.privacy.split import RATES, BudgetSplit, split_for_counts, split_for_samples
from incrowd.spec.release import SafeSpec

SEARCH_SHARE = 0.05  # of epsilon, that a private choice spends
TARGET_SHARE = 0.15  # where it is to keep the rows of the rare values of a target
SMALL_TABLE_SHARES = ((2_000, 0.2), (10_000, 0.1))  # below so many people, so much of epsilon
_ROOM = 4  # a release of a sample may need a quarter of delta whatever epsilon is, no more


def compute_search_share(size: int | None, *, has_target: bool = False) -> float:
    """Return the share of epsilon that a choice spends, by the number of people stated.

    The noise of a choice is of as many rows however many there are: in a small table it drowns what
    it chooses by. In steps, so that what is spent, which is published, tells no more than the step.
    The steps were settled by trials on generated tables of 300 to 4,000 rows. With a target the
    rows of its rare values decide, of which there are few in any table.
    """
    least = TARGET_SHARE if has_target else SEARCH_SHARE
    rows = math.inf if size is None else size
    shares = (share for below, share in SMALL_TABLE_SHARES if rows < below)
    return max(next(shares, SEARCH_SHARE), least)


def split_search_budget(
    release: SafeSpec,
    *,
    selections: Sequence[float],
    choices: Sequence[float] = (),
    tables: int = 1,
    measured: Sequence[float] = (),
) -> BudgetSplit:
    """Split the budget of tables whose schemes, with k and beta, are chosen privately.

    ``selections`` are what the choices of one scheme spend, ``choices`` what comes before all.
    """
    if release.epsilon is None or release.delta is None:
        raise IncrowdError(f"`scheme: {release.scheme}` needs ε and δ. Add both under `release`.")
    if release.k is not None:
        raise IncrowdError(f"`scheme: {release.scheme}` chooses k. Remove `k`.")
    rate = release.beta or release.keep
    if rate is None and tables > 1:
        rate = _find_best_rate(release, tables)
    return split_for_samples(
        epsilon=release.epsilon,
        delta=release.delta,
        selections=_round_payable(selections),
        rates=RATES if rate is None else (rate,),
        choices=_round_payable(choices),
        tables=tables,
        population=release.already_sampled,
        measured=_round_payable(measured),
    )


def _find_best_rate(release: SafeSpec, tables: int) -> float:
    """Find the rate at which the smallest crowds survive: shape matters more than rows.

    Of a table that is a sample, tables may together spend what amplification brings down to
    the budget. (Where the direction of the absent decided, a little more: k is found exactly
    afterwards.)
    """
    assert release.epsilon is not None
    assert release.delta is not None
    inside = Guarantee(release.epsilon, release.delta)
    if release.already_sampled is not None:
        inside = invert_amplification(
            epsilon=inside.epsilon, delta=inside.delta, rate=release.already_sampled
        )
    if inside.delta >= 1:  # whoever is drawn so rarely needs no crowd
        return RATES[-1]
    return plan(epsilon=inside.epsilon, delta=inside.delta, releases=tables).beta


def split_counts_budget(
    release: SafeSpec,
    *,
    selections: Sequence[float] = (),
    choices: Sequence[float] = (),
    tables: int = 1,
    rows: int = 1,
    per_group: int = 1,
    beside: int = 0,
    measured: Sequence[float] = (),
) -> BudgetSplit:
    """Split the budget of tables of counts, whatever their schemes depend on.

    One person has at most ``rows`` rows, of which ``per_group`` count in one group, and is in one
    cell of each table ``beside``.
    """
    if release.epsilon is None or release.delta is None:
        raise IncrowdError(
            "`draw: counts` needs ε and δ. Add both under `release`, or use `draw: sample` with k, "
            "β and one of them."
        )
    return split_for_counts(
        epsilon=release.epsilon,
        delta=release.delta,
        selections=_round_payable(selections),
        choices=_round_payable(choices),
        tables=tables,
        population=release.already_sampled,
        rows=rows,
        per_group=per_group,
        beside=beside,
        measured=_round_payable(measured),
    )


def split_single_release(split: BudgetSplit, releases: int) -> tuple[BudgetSplit, Guarantee]:
    """Return one of several planned releases, and what all of them satisfy together.

    One by itself is certified at the delta of all, with an epsilon that is rounded up to six
    digits.
    """
    single = replace(
        split, tables=split.tables // releases,
        choices=split.choices[: len(split.choices) // releases],
        measured=split.measured[: len(split.measured) // releases],
    )  # fmt: skip
    epsilon = Accountant(single.events).epsilon(delta=split.delta)
    single = replace(
        single, epsilon=min(float(format_parameter("epsilon", epsilon, 6)), split.epsilon)
    )
    return single, Guarantee(split.epsilon, split.delta)


def _round_payable(epsilons: Sequence[float]) -> tuple[float, ...]:
    payable = tuple(round_down_epsilon(epsilon) for epsilon in epsilons)
    if not min(payable, default=1.0) > 0:
        raise IncrowdError(
            "The search needs ε of at least 1e-6 per choice. Increase `search_epsilon`."
        )
    return payable


def split_fixed_budget(
    release: SafeSpec,
    *,
    choices: Sequence[float] = (),
    tables: int = 1,
    measured: Sequence[float] = (),
) -> BudgetSplit:
    """Split the budget of tables whose schemes do not depend on the data.

    What is not given of k and beta is the best there is: the smallest k, the largest beta, or
    both for the smallest crowd k / beta. Several tables are drawn from one and the same table,
    so where that is a sample they are amplified together.
    """
    if choices or measured or (tables > 1 and release.already_sampled is not None):
        return _split_beside_choices(release, choices, tables, measured)
    k, rate = release.k, release.beta or release.keep
    if release.already_sampled is not None and (k is None or rate is None):
        k, rate = _solve_on_sample(release, k, rate, release.already_sampled)
        return _account_pair(release, SafeRelease(k, round_down_rate(rate)), tables)
    arguments: dict[str, Any] = {
        "epsilon": release.epsilon, "delta": release.delta, "releases": tables,
    }  # fmt: skip
    if None in (release.epsilon, release.delta) and None in (k, rate):
        values = {"k": k, "beta": rate, "epsilon": release.epsilon, "delta": release.delta}
        listing = ", ".join(name for name, value in values.items() if value is not None)
        raise IncrowdError(
            f"Spec: `release` sets {listing or 'no parameter'}. Add `epsilon` and `delta`, or `k` "
            "and `beta` with one of them."
        )
    if rate is not None and k is None:
        k = plan(beta=rate, **arguments).k
    elif rate is None:
        best_plan = plan(k=k, **arguments)
        k, rate = best_plan.k, best_plan.beta
    assert k is not None
    return _account_pair(release, SafeRelease(k, round_down_rate(rate)), tables)


def _solve_on_sample(
    release: SafeSpec, k: int | None, rate: float | None, b: float
) -> tuple[int, float]:
    """Return the k and beta of one release of a sampled table, where one or both are asked."""
    epsilon, delta = release.epsilon, release.delta
    if epsilon is None or delta is None:
        raise IncrowdError(
            "Spec: `already_sampled` needs more parameters. Add `epsilon` and `delta`, or `k` and "
            "`beta` with one of them."
        )
    solver = SampleSolver(rate=b)
    if k is not None:
        return k, solver.beta(k, epsilon, delta)
    if rate is not None:
        size = solver.k(rate, epsilon, delta)
    else:
        size, rate = SampleSolver(rate=b, room=_ROOM).minimize_crowd(epsilon, delta)
    if math.isinf(size):
        raise UnsolvableError(
            f"No k up to {LARGEST_K:,} reaches ε = {epsilon:g}, δ = {delta:g} with already_sampled "
            f"= {b:g}. Use a larger ε or δ, or a smaller β."
        )
    # A rate that was found needs no more than four digits.
    given_rate = release.beta or release.keep
    return int(size), given_rate or float(format_parameter("beta", rate, 4))


def _account_pair(release: SafeSpec, pair: SafeRelease, tables: int) -> BudgetSplit:
    """Return the budget of a pair, with what it spends: what was not given, or within it.

    What is found is rounded up to six digits, so that it also holds where whoever verifies it
    adds up in another order.
    """
    split = BudgetSplit(0.0, 0.0, pair, tables=tables, population=release.already_sampled)
    accountant = Accountant(split.events)
    k, rate = pair.k, pair.beta
    if release.epsilon is not None:
        epsilon, delta = release.epsilon, accountant.delta(epsilon=release.epsilon)
        if release.delta is None or delta <= release.delta:
            delta = min(float(format_parameter("delta", delta, 6)), release.delta or 1.0)
        else:
            raise IncrowdError(
                f"k = {k} and β = {rate:g} give δ = {delta:.3g} at ε = {epsilon:g}, more than "
                f"{release.delta:g} of the spec. Use a larger k or a smaller β."
            )
    elif release.delta is not None:
        delta, epsilon = release.delta, accountant.epsilon(delta=release.delta)
        epsilon = float(format_parameter("epsilon", epsilon, 6)) if epsilon < math.inf else epsilon
    else:
        raise IncrowdError(
            f"k = {k} and β = {rate:g} leave ε and δ open. Add `delta` under `release` to compute "
            "the smallest ε, or `epsilon` to compute the smallest δ."
        )
    if not epsilon < math.inf:
        raise IncrowdError(
            f"No ε reaches δ = {delta:g} with k = {k} and β = {rate:g}. Use a larger k, a smaller "
            "β or a larger δ."
        )
    return BudgetSplit(epsilon, delta, pair, tables=tables, population=release.already_sampled)


def _split_beside_choices(
    release: SafeSpec, choices: Sequence[float], tables: int, measured: Sequence[float]
) -> BudgetSplit:
    """Find the smallest k at the rate given, or at the best one for tables of their own."""
    if measured and (release.epsilon is None or release.delta is None or release.k is not None):
        raise IncrowdError(
            "`rare: keep` measures counts beside a sample, so it needs ε and δ, and chooses k. Add "
            "`epsilon` and `delta`, and remove `k`."
        )
    if release.epsilon is None or release.delta is None or release.k is not None:
        raise IncrowdError(
            "Slices need ε and δ, and choose k, if they are chosen or the table is a sample. Add "
            "`epsilon` and `delta`, and remove `k`."
        )
    rate = release.beta or release.keep
    if rate is None:
        rate = _find_best_rate(release, tables)
    return split_for_samples(
        epsilon=release.epsilon,
        delta=release.delta,
        rates=(rate,),
        choices=_round_payable(choices),
        tables=tables,
        population=release.already_sampled,
        measured=_round_payable(measured),
    )
