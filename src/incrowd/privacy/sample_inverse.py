"""One safe release: any one of k, beta and epsilon from the other two and delta.

Each answer is the best one (smallest epsilon, smallest k, largest beta) that satisfies
``delta(...) <= delta`` for the rounded-up delta of :mod:`incrowd.privacy.sample`: a
solved value has been evaluated before it is returned. Numbers give a number; arrays are
broadcast and give an array.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, overload

import numpy as np
import numpy.typing as npt

from incrowd.arrays import Floats
from incrowd.errors import (
    OutsideDefinitionError,
    check_at_least_zero,
    check_choice,
    check_fraction,
    check_whole,
)
from incrowd.privacy.events import LARGEST_K
from incrowd.privacy.sample import (
    Definition,
    check_definition,
    log_delta,
    round_up_exp,
    unwrap_scalar,
)

Cost: TypeAlias = Callable[[Floats, Floats, Floats], Floats]  # k, beta, epsilon -> delta

_POINTS = 64
# The last digit of a delta depends on what it is computed together with; aim just below.
_MARGIN = 1 - 1e-12


@overload
def epsilon(*, k: float, beta: float, delta: float, definition: Definition = "tight") -> float: ...
@overload
def epsilon(
    *,
    k: npt.ArrayLike,
    beta: npt.ArrayLike,
    delta: npt.ArrayLike,
    definition: Definition = "tight",
) -> Floats: ...
def epsilon(
    *,
    k: npt.ArrayLike,
    beta: npt.ArrayLike,
    delta: npt.ArrayLike,
    definition: Definition = "tight",
) -> float | Floats:
    """Return the smallest epsilon at which a safe release reaches ``delta``, or inf.

    Args:
        k: Threshold: groups with fewer sampled rows are suppressed.
        beta: Sampling rate.
        delta: Delta that epsilon must hold with.
        definition: "tight" for the smallest valid delta, "paper" for Theorem 1 of the paper.

    Returns:
        Epsilon, rounded up. Infinity where delta is below beta**k, as a group of exactly k rows is
        then sampled whole too often, which reveals each of them with certainty.

    Raises:
        ParameterError: A parameter is out of range.

    Examples:
        >>> round(epsilon(k=20, beta=0.1, delta=1e-6), 3)
        0.183
    """
    k, beta, delta = (
        check_whole("k", k),
        check_fraction("beta", beta),
        check_fraction("delta", delta),
    )
    shape, (k, beta, delta) = _flatten_arrays(k, beta, delta * _MARGIN)
    lower_bound = -np.log1p(-beta) if definition == "paper" else np.zeros_like(beta)
    check_definition(definition, beta=beta, epsilon=lower_bound)
    # From ln(k + 1) on the worst n is k itself, and delta no longer falls.
    low, high = lower_bound, np.maximum(np.log(k + 1), lower_bound) + 1

    def reaches(x: Floats) -> npt.NDArray[np.bool_]:
        return _broadcast_cost(make_cost(definition), k, beta, x) <= delta

    never = ~reaches(high)
    already = reaches(low)
    for _ in range(10):
        low, high = narrow_bracket(lambda x: ~reaches(x), low, high)
    solution = np.where(already, lower_bound, high)
    return unwrap_scalar(np.where(never, np.inf, solution).reshape(shape))


@overload
def crowd_size(
    *, beta: float, epsilon: float, delta: float, definition: Definition = "tight"
) -> float: ...
@overload
def crowd_size(
    *,
    beta: npt.ArrayLike,
    epsilon: npt.ArrayLike,
    delta: npt.ArrayLike,
    definition: Definition = "tight",
) -> Floats: ...
def crowd_size(
    *,
    beta: npt.ArrayLike,
    epsilon: npt.ArrayLike,
    delta: npt.ArrayLike,
    definition: Definition = "tight",
) -> float | Floats:
    """Return the smallest k at which a safe release reaches ``delta``.

    Args:
        beta: Sampling rate.
        epsilon: Epsilon that must hold.
        delta: Delta that must hold.
        definition: "tight" for the smallest valid delta, "paper" for Theorem 1 of the paper.

    Returns:
        The threshold k. Infinity where no k up to 10,000,000 is enough, near epsilon = 0.

    Raises:
        ParameterError: A parameter is out of range.

    Examples:
        >>> crowd_size(beta=0.1, epsilon=0.25, delta=1e-6)
        16
        >>> crowd_size(beta=0.1, epsilon=0.25, delta=1e-6, definition="paper")
        23
    """
    beta, epsilon, delta = (
        check_fraction("beta", beta),
        check_at_least_zero("epsilon", epsilon),
        check_fraction("delta", delta),
    )
    check_definition(definition, beta=beta, epsilon=epsilon)
    shape, (beta, epsilon, delta) = _flatten_arrays(beta, epsilon, delta * _MARGIN)
    answer = unwrap_scalar(
        find_smallest_k(beta, epsilon, delta, make_cost(definition)).reshape(shape)
    )
    return int(answer) if isinstance(answer, float) and answer < np.inf else answer


def find_smallest_k(
    beta: Floats, epsilon: Floats, delta: Floats, cost: Cost, largest: float = LARGEST_K
) -> Floats:
    """Return :func:`crowd_size` of flat, checked arrays; inf where it would exceed ``largest``.

    ``cost`` is the rounded-up delta of k, beta and epsilon; it falls with k.
    """
    low, high = np.zeros_like(beta), np.ones_like(beta)  # k = low fails, k = high is tried
    open_ = np.arange(beta.size)
    while open_.size:
        current_cost = cost(high[open_], beta[open_], epsilon[open_])
        open_ = open_[(current_cost > delta[open_]) & (high[open_] < largest)]
        low[open_] = high[open_]
        high[open_] = np.minimum(high[open_] * 2, largest)
    while np.any(high - low > 1):
        middle = np.floor((low + high) / 2)
        middle = np.where(high - low > 1, middle, high)
        is_enough = cost(middle, beta, epsilon) <= delta
        low, high = np.where(is_enough, low, middle), np.where(is_enough, middle, high)
    is_reached = cost(high, beta, epsilon) <= delta
    return np.where(is_reached, high, np.inf)


@overload
def beta(*, k: float, epsilon: float, delta: float, definition: Definition = "tight") -> float: ...
@overload
def beta(
    *,
    k: npt.ArrayLike,
    epsilon: npt.ArrayLike,
    delta: npt.ArrayLike,
    definition: Definition = "tight",
) -> Floats: ...
def beta(
    *,
    k: npt.ArrayLike,
    epsilon: npt.ArrayLike,
    delta: npt.ArrayLike,
    definition: Definition = "tight",
) -> float | Floats:
    """Return the largest beta at which a safe release reaches ``delta``.

    There always is one: a row that is drawn with probability delta at most satisfies (0, delta).

    Args:
        k: Threshold: groups with fewer sampled rows are suppressed.
        epsilon: Epsilon that must hold.
        delta: Delta that must hold.
        definition: "tight" for the smallest valid delta, "paper" for Theorem 1 of the paper. The
            paper's delta is a sawtooth in beta; the answer is then the largest beta of a fine grid,
            and at most 1 - e^-epsilon.

    Returns:
        The sampling rate, rounded down.

    Raises:
        ParameterError: A parameter is out of range.

    Examples:
        >>> round(beta(k=20, epsilon=1.0, delta=1e-6), 4)
        0.35
    """
    k, epsilon, delta = (
        check_whole("k", k),
        check_at_least_zero("epsilon", epsilon),
        check_fraction("delta", delta),
    )
    shape, (k, epsilon, delta) = _flatten_arrays(k, epsilon, delta * _MARGIN)
    check_choice("definition", definition, ("tight", "paper"))
    if definition == "tight":
        return unwrap_scalar(
            find_largest_beta(k, epsilon, delta, make_cost(definition)).reshape(shape)
        )
    if np.any(epsilon == 0):
        raise OutsideDefinitionError(
            "epsilon", "be above 0 under the paper's definition", 0.0, "Use the tight one."
        )
    return unwrap_scalar(_find_largest_paper_beta(k, epsilon, delta).reshape(shape))


def find_largest_beta(k: Floats, epsilon: Floats, delta: Floats, cost: Cost) -> Floats:
    """Return :func:`beta` of flat, checked arrays; ``cost`` grows with beta and is at most it."""

    def reaches(log_odds: Floats) -> npt.NDArray[np.bool_]:
        return _broadcast_cost(cost, k, _rate_from_log_odds(log_odds), epsilon) <= delta

    low, high = np.maximum(np.log(delta) - 1e-9, -700.0), np.full_like(delta, 36.0)
    for _ in range(10):
        low, high = narrow_bracket(reaches, low, high)
    return _rate_from_log_odds(low)


def _find_largest_paper_beta(k: Floats, epsilon: Floats, delta: Floats) -> Floats:
    cost, upper_bound = make_cost("paper"), -np.expm1(-epsilon) * (1 - 1e-12)

    def reaches(log_odds: Floats) -> npt.NDArray[np.bool_]:
        return (
            _broadcast_cost(
                cost, k, np.minimum(_rate_from_log_odds(log_odds), upper_bound), epsilon
            )
            <= delta
        )

    # By Markov's inequality the paper's delta is at most beta / g, and g >= 1 - e^-epsilon.
    low, high = np.log(delta) + np.log(-np.expm1(-epsilon)), np.log(np.expm1(epsilon))
    low, _ = narrow_bracket(reaches, np.maximum(low - 1e-9, -700.0), high, 16 * _POINTS)
    low, high = narrow_bracket(reaches, low, np.minimum(low + 0.3, high), 16 * _POINTS)
    for _ in range(10):
        low, high = narrow_bracket(reaches, low, high)
    return np.minimum(_rate_from_log_odds(low), upper_bound)


def _rate_from_log_odds(log_odds: Floats) -> Floats:
    return 1 / (1 + np.exp(-log_odds))


def make_cost(definition: str) -> Cost:
    """Return the cost under a definition: a safe release's rounded-up delta, for flat arrays."""

    def cost(k: Floats, beta: Floats, epsilon: Floats) -> Floats:
        return round_up_exp(log_delta(k, beta, epsilon, definition))

    return cost


def _broadcast_cost(cost: Cost, k: Floats, beta: Floats, epsilon: Floats) -> Floats:
    """Compute a cost of arrays of any broadcastable shapes."""
    k, beta, epsilon = np.broadcast_arrays(k, beta, epsilon)
    return cost(k.ravel(), beta.ravel(), epsilon.ravel()).reshape(k.shape)


def _flatten_arrays(*arrays: Floats) -> tuple[tuple[int, ...], list[Floats]]:
    """Return the common shape, and the arrays broadcast to it and laid flat."""
    shape = np.broadcast_shapes(*(array.shape for array in arrays))
    return shape, [np.broadcast_to(array, shape).ravel() for array in arrays]


def narrow_bracket(
    holds: Callable[[Floats], npt.NDArray[np.bool_]],
    low: Floats,
    high: Floats,
    parts: int = _POINTS,
) -> tuple[Floats, Floats]:
    """Return one of equal parts of [low, high], with ``holds`` true below and false above.

    ``holds`` gets one row for each of the points to try; it is true at low and false at
    high by assumption. Of several such parts the uppermost is taken.
    """
    steps = np.linspace(0, 1, parts + 1)[1:-1, None]
    points = low + (high - low) * steps
    truth = holds(points)
    last = np.where(truth.any(axis=0), parts - 2 - np.argmax(truth[::-1], axis=0), -1)
    edges = np.vstack([low, points, high])
    columns = np.arange(low.size)
    return edges[last + 1, columns], edges[last + 2, columns]
