"""Plan for counts: the crowd that a budget needs, or the budget that a crowd needs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from incrowd.errors import (
    IncrowdError,
    ParameterError,
    UnsolvableError,
    check_at_least_zero,
    check_fraction,
    check_whole,
    require_single,
)
from incrowd.privacy.counts import NoiseLaw, build_event_law
from incrowd.privacy.draw_parameters import CountsEvent, compute_threshold, list_draw_parameters
from incrowd.privacy.events import LARGEST_ROWS, Coin, refuse_many_partitions
from incrowd.privacy.presentation import PlanResult, format_parameter
from incrowd.privacy.split import BudgetSplit, split_for_counts

USUAL_K = 5
SHARE = 0.95  # of cells, of which an error is said


@dataclass(frozen=True)
class CountsPlan(PlanResult):
    """Parameters of noisy counts that together satisfy (epsilon, delta)-differential privacy.

    Attributes:
        k: Least number of input rows behind every published cell.
        r: Largest noise of a count, either way. Cells with a noisy count below r + k (of rows: r +
            per_group (k - 1) + 1) are suppressed.
        epsilon: Epsilon of all releases together.
        delta: Delta of all releases together.
        noise: The event of one table: geometric or Gaussian noise.
        chance: Probability that r - 1 is used instead of r, decided by a coin that sees no data.
        releases: Number of releases.
        rows: Largest number of rows of one person. With more than one, counts are of people.
        per_group: Largest number of rows of one person that count in one group. With more than one,
            counts are of rows, and k is still one of people.
    """

    k: int
    r: int
    epsilon: float
    delta: float
    noise: CountsEvent
    chance: float = 0.0
    releases: int = 1
    rows: int = 1
    per_group: int = 1

    @property
    def crowd(self) -> int:
        """Return the group size that is published with probability 1/2 or more; r + k of people."""
        return compute_threshold(self.r, self.k, self.per_group)

    @property
    def certain_crowd(self) -> int:
        """Return the group size that is always published, r above that of ``crowd``."""
        return self.crowd + self.r

    @property
    def counted_unit(self) -> str:
        """The noun for what is counted, people or rows, of which a person may have several."""
        return "rows" if self.per_group > 1 else "people"

    @property
    def error(self) -> int:
        """The bound that the noise of a cell keeps with probability 0.95."""
        return self.law.find_error_bound(SHARE)

    @property
    def law(self) -> NoiseLaw:
        """Return the distribution of the noise."""
        return build_event_law(self.noise)

    def as_dict(self) -> dict[str, int | float | str]:
        """Return the plan as plain values, for JSON."""
        noise = list_draw_parameters(self.noise)
        return {
            "k": self.k,
            "r": self.r,
            "crowd": self.crowd,
            "always": self.certain_crowd,
            "error": self.error,
            "epsilon": self.epsilon,
            "delta": self.delta,
            **{name: noise[name] for name in noise if name != "r"},
            "chance": self.chance,
            "releases": self.releases,
            "rows": self.rows,
            **({"per_group": self.per_group} if self.per_group > 1 else {}),
        }

    def describe(self) -> str:
        """Return what the plan means for the people and the rows, in a few sentences."""
        subject = f"All {self.releases} releases together satisfy" if self.releases > 1 else (
            "The release satisfies"
        )  # fmt: skip
        return (
            f"Groups of {self.crowd:,} or more {self.counted_unit} are published with probability "
            f"above 1/2, groups of {self.certain_crowd:,} or more always. 95 % of noise lies "
            f"within ±{self.error}; "
            f"every count lies within ±{self.r}. Each group has at least {self.k} "
            f"{'different people' if self.rows > 1 else 'original rows'}. "
            f"{subject} ({format_parameter('epsilon', self.epsilon, 4)}, "
            f"{format_parameter('delta', self.delta, 3)})"
            "-differential privacy."
        )


def plan_counts(
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    k: int | None = None,
    crowd: int | None = None,
    releases: int = 1,
    rows: int = 1,
    per_group: int = 1,
) -> CountsPlan:
    """Solve for what is not given of epsilon, delta and the crowd r + k; k is 5 by default.

    - epsilon and delta: the smallest crowd.
    - The crowd and delta: the smallest epsilon; the crowd and epsilon: the smallest delta.

    >>> plan_counts(epsilon=1, delta=1e-6, k=1).crowd
    15
    """
    least = int(require_single("k", check_whole("k", USUAL_K if k is None else k)))
    rows = int(require_single("rows", check_whole("rows", rows)))
    if rows > LARGEST_ROWS:
        raise ParameterError("rows", f"be at most {LARGEST_ROWS:,}", rows)
    per_group = int(require_single("per_group", check_whole("per_group", per_group)))
    if per_group > rows:
        raise ParameterError("per_group", f"be at most rows = {rows}", per_group)
    refuse_many_partitions(rows, per_group)
    tables = int(require_single("releases", check_whole("releases", releases)))
    if epsilon is not None:
        epsilon = require_single("epsilon", check_at_least_zero("epsilon", epsilon))
    if delta is not None:
        delta = require_single("delta", check_fraction("delta", delta))
    if crowd is None:
        if epsilon is None or delta is None:
            raise _make_unknowns_error(epsilon, delta, crowd)
        split = split_for_counts(
            epsilon=epsilon, delta=delta, tables=tables, rows=rows, per_group=per_group
        )
        return _make_counts_plan(least, split)
    size = int(require_single("crowd", check_whole("crowd", crowd)))
    people = compute_threshold(0, least, per_group)
    if size <= people:
        reason = (
            f"k = {least}, since it is r + k" if per_group == 1 else f"{people} for k = {least}"
        )
        raise ParameterError("crowd", f"be above {reason}", size)
    return _make_counts_plan(
        least, _split_for_crowd(size - people, epsilon, delta, tables, rows, per_group)
    )


def _split_for_crowd(
    r: int, epsilon: float | None, delta: float | None, tables: int, rows: int, per_group: int
) -> BudgetSplit:
    """Return the split at the smallest epsilon, or delta, at which the noise is at most r."""

    def split(epsilon: float, delta: float) -> BudgetSplit | None:
        try:
            budget_split = split_for_counts(
                epsilon=epsilon, delta=delta, tables=tables, rows=rows, per_group=per_group
            )
        except UnsolvableError:
            return None
        return budget_split if _get_noise_bound(budget_split) <= r else None

    within = 1e-6 if tables * rows == 1 else 1e-3  # several take a hundred times as long
    if delta is not None and epsilon is None:
        least_split = _find_least_split(
            lambda x: split(round(x, 6), delta), (1e-6, 1.0, 200.0), within
        )
    elif epsilon is not None and delta is None:
        least_split = _find_least_split(lambda x: split(epsilon, x), (1e-300, 1e-6, 0.99), within)
    else:
        raise _make_unknowns_error(epsilon, delta, r)
    if least_split is None:
        raise UnsolvableError(
            f"No noisy counts with noise of at most {r} reach this. Use a larger crowd, or a "
            "smaller k."
        )
    return least_split


def _find_least_split(
    split: Callable[[float], BudgetSplit | None], span: tuple[float, float, float], within: float
) -> BudgetSplit | None:
    """Return the split at the smallest number of a span that has one, to ``within`` of itself.

    It is looked for around the number in the middle, further and further out.
    """
    lower_end, low, upper_end = span
    high, step = low, 10.0
    while (best := split(high)) is None:
        if high == upper_end:
            return None
        low, high, step = high, min(high * step, upper_end), step**2
    step = 10.0
    while low == high and high > lower_end:
        low = max(high / step, lower_end)
        candidate, step = split(low), step**2
        if candidate is not None:
            best, high = candidate, low
    while high / low > 1 + within:
        middle = math.sqrt(low * high)
        candidate = split(middle)
        low, high = (middle, high) if candidate is None else (low, middle)
        best = candidate or best
    return best


def _get_noise_bound(split: BudgetSplit) -> int:
    largest = split.draws[-1]
    assert isinstance(largest, CountsEvent)
    return largest.r


def _make_counts_plan(k: int, split: BudgetSplit) -> CountsPlan:
    largest = split.draws[-1]
    assert isinstance(largest, CountsEvent)
    chance = split.event.chance if isinstance(split.event, Coin) else 0.0
    return CountsPlan(
        k, largest.r, split.epsilon, split.delta, largest, chance, split.tables, split.rows,
        split.per_group,
    )  # fmt: skip


def _make_unknowns_error(*values: float | None) -> IncrowdError:
    names = ("epsilon", "delta", "crowd")
    given_names = [name for name, value in zip(names, values, strict=True) if value is not None]
    return IncrowdError(
        "A plan for counts needs two of epsilon, delta and crowd. "
        f"Got {', '.join(given_names) or 'none of them'}"
        + ("; leave out the one to solve for." if len(given_names) == 3 else ".")
    )
