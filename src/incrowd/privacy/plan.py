"""Plan, where a user starts: parameters for a budget, or the budget for parameters."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, overload

from incrowd.errors import (
    IncrowdError,
    OutsideDefinitionError,
    ParameterError,
    UnsolvableError,
    check_at_least_zero,
    check_choice,
    check_fraction,
    check_whole,
    require_single,
)
from incrowd.findings import format_percent
from incrowd.privacy.events import LARGEST_K
from incrowd.privacy.plan_counts import CountsPlan, plan_counts
from incrowd.privacy.plan_sample import choose_solver
from incrowd.privacy.presentation import PlanResult, format_parameter, round_crowd_size
from incrowd.privacy.sample import Definition


@dataclass(frozen=True)
class Plan(PlanResult):
    """Parameters of samples that together satisfy (epsilon, delta)-differential privacy.

    Attributes:
        k: Threshold: groups with fewer sampled rows are suppressed.
        beta: Sampling rate of each release.
        epsilon: Epsilon of all releases together.
        delta: Delta of all releases together.
        definition: "tight" or "paper".
        releases: Number of releases. Each draws a sample of its own.
    """

    k: int
    beta: float
    epsilon: float
    delta: float
    definition: Definition = "tight"
    releases: int = 1

    @property
    def crowd(self) -> float:
        """Return the group size k / beta, which is published with probability 1/2."""
        return self.k / self.beta

    def as_dict(self) -> dict[str, int | float | str]:
        """Return the plan as plain values, for JSON."""
        return {
            "k": self.k,
            "beta": self.beta,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "definition": self.definition,
            "crowd": self.crowd,
            "releases": self.releases,
        }

    def describe(self) -> str:
        """Return what the plan means for the people and the rows, in two sentences."""
        subject = f"All {self.releases} releases together satisfy" if self.releases > 1 else (
            "The release satisfies"
        )  # fmt: skip
        crowd = round_crowd_size(self.crowd)
        return (
            f"Groups of {crowd:,} or more people are published with probability 1/2 or more. "
            f"{format_percent(self.beta)} of rows are drawn at random; groups with fewer than "
            f"{self.k} sampled rows are suppressed. {subject} "
            f"({format_parameter('epsilon', self.epsilon, 4)}, "
            f"{format_parameter('delta', self.delta, 3)})-differential privacy."
        )


@overload
def plan(
    *,
    draw: Literal["counts"],
    epsilon: float | None = None,
    delta: float | None = None,
    k: int | None = None,
    beta: None = None,
    keep: None = None,
    crowd: int | None = None,
    releases: int = 1,
    rows: int = 1,
    per_group: int = 1,
    definition: Definition = "tight",
) -> CountsPlan: ...
@overload
def plan(
    *,
    draw: Literal["sample"] | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    k: int | None = None,
    beta: float | None = None,
    keep: float | None = None,
    crowd: None = None,
    releases: int = 1,
    rows: Literal[1] = 1,
    per_group: Literal[1] = 1,
    definition: Definition = "tight",
) -> Plan: ...
def plan(
    *,
    draw: str | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    k: int | None = None,
    beta: float | None = None,
    keep: float | None = None,
    crowd: int | None = None,
    releases: int = 1,
    rows: int = 1,
    per_group: int = 1,
    definition: Definition = "tight",
) -> Plan | CountsPlan:
    """Solve for the parameters of a release that are not given.

    For a sample (the default), give one of these sets:

    - three of ``k``, ``beta``, ``epsilon`` and ``delta``: the fourth is solved (the smallest k,
      epsilon or delta, or the largest beta);
    - ``epsilon`` and ``delta``: k and beta with the smallest crowd size k / beta;
    - ``epsilon``, ``delta`` and ``keep``: beta is that share of the rows, and k follows.

    For noisy counts (``draw="counts"``), give two of ``epsilon``, ``delta`` and ``crowd``.

    Args:
        draw: "sample" (the default) or "counts".
        epsilon: Epsilon of all releases together.
        delta: Delta of all releases together.
        k: Of a sample, the least number of sampled rows per group. Of counts, the least number of
            input rows per published group, 5 by default.
        beta: Sampling rate.
        keep: Share of the rows to keep.
        crowd: Group size that is published with probability 1/2.
        releases: Number of releases that share the budget, all with the same parameters.
        rows: Largest number of rows of one person that are used. Of counts alone, which are then
            numbers of people.
        per_group: Largest number of these rows that count in one group. With more than one, counts
            are numbers of rows.
        definition: "tight" composes releases by the accountant, "paper" adds them.

    Returns:
        A plan for a sample, or for counts.

    Raises:
        ParameterError: Too many or too few parameters are given, or one is out of range.
        UnsolvableError: No parameters satisfy the request.

    Examples:
        >>> plan(draw="counts", epsilon=1, delta=1e-6).crowd
        19
        >>> plan(draw="counts", epsilon=1, delta=1e-6, rows=4).crowd
        50
        >>> plan(epsilon=1, delta=1e-6, beta=0.2).k
        12
        >>> plan(epsilon=1, delta=1e-6).crowd < 56
        True
    """
    check_choice("definition", definition, ("tight", "paper"))
    if draw is not None:
        check_choice("draw", draw, ("sample", "counts"))
    if draw == "counts":
        for name, value in (("beta", beta), ("keep", keep)):
            if value is not None:
                raise ParameterError(name, "not be given for counts, which keep all rows", value)
        if definition == "paper":
            raise ParameterError("definition", "be 'tight' for counts", definition)
        return plan_counts(
            epsilon=epsilon, delta=delta, k=k, crowd=crowd, releases=releases, rows=rows,
            per_group=per_group,
        )  # fmt: skip
    for name, number in (("rows", rows), ("per_group", per_group)):
        if number != 1:
            raise ParameterError(name, "be 1 for a sample; use draw='counts'", number)
    if crowd is not None:
        raise ParameterError("crowd", "be given with draw='counts' only", crowd)
    if keep is not None:
        if beta is not None or k is not None:
            raise ParameterError("keep", "not be given with beta or k, which it sets", keep)
        beta = require_single("keep", check_fraction("keep", keep))
    if definition == "paper" and epsilon == 0:
        raise OutsideDefinitionError(
            "epsilon", "be above 0 under the paper's definition", epsilon, "Use the tight one."
        )
    task = _PlanProblem(
        k=None if k is None else int(require_single("k", check_whole("k", k))),
        beta=None if beta is None else require_single("beta", check_fraction("beta", beta)),
        epsilon=None
        if epsilon is None
        else require_single("epsilon", check_at_least_zero("epsilon", epsilon)),
        delta=None if delta is None else require_single("delta", check_fraction("delta", delta)),
        releases=int(require_single("releases", check_whole("releases", releases))),
        definition=definition,
    )
    return task.solve()


@dataclass(frozen=True)
class PlanTable:
    """One unknown over a grid of two others, at a given delta; inf where there is no answer."""

    unknown: str
    rows_name: str
    rows: tuple[float, ...]
    columns_name: str
    columns: tuple[float, ...]
    cells: tuple[tuple[float, ...], ...]
    delta: float
    definition: Definition
    releases: int

    def describe(self) -> str:
        """Return the heading of the grid."""
        kind = {"k": "Smallest k", "beta": "Largest beta", "epsilon": "Smallest epsilon"}
        suffix = f", {self.releases} releases together" if self.releases > 1 else ""
        return f"{kind[self.unknown]} with δ ≤ {self.delta:g}{suffix} ({self.definition} δ)"

    def as_dict(self) -> dict[str, object]:
        """Return the grid as plain values, for JSON; None where there is no answer."""
        return {
            "unknown": self.unknown,
            "rows": {self.rows_name: list(self.rows)},
            "columns": {self.columns_name: list(self.columns)},
            "cells": [[x if math.isfinite(x) else None for x in row] for row in self.cells],
            "delta": self.delta,
            "definition": self.definition,
            "releases": self.releases,
        }


_USUAL: dict[str, tuple[float, ...]] = {
    "k": (5, 10, 20, 50, 100, 200, 500),
    "beta": (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9),
    "epsilon": (0.1, 0.25, 0.5, 1, 2, 4),
}


def plan_grid(
    unknown: str,
    *,
    delta: float | None,
    epsilon: float | None = None,
    k: int | None = None,
    beta: float | None = None,
    releases: int = 1,
    definition: Definition = "tight",
) -> PlanTable:
    """Compute the unknown (k, beta or epsilon) over usual values of the other two.

    A value that is given joins the usual ones.
    """
    check_choice("table", unknown, ("k", "beta", "epsilon"))
    if delta is None:
        raise IncrowdError("A grid needs δ. Add it, such as 1e-6.")
    rows_name, columns_name = (name for name in ("k", "beta", "epsilon") if name != unknown)
    fixed_values = {"k": k, "beta": beta, "epsilon": epsilon}
    axes = {
        name: tuple(sorted({*_USUAL[name], *([value] if value is not None else [])}))
        for name, value in fixed_values.items()
    }

    def cell(row: float, column: float) -> float:
        values: dict[str, Any] = {rows_name: row, columns_name: column}
        try:
            answer = plan(**values, delta=delta, releases=releases, definition=definition)
        except (UnsolvableError, OutsideDefinitionError):
            return math.inf
        return float(getattr(answer, unknown))

    return PlanTable(
        unknown=unknown,
        rows_name=rows_name,
        rows=axes[rows_name],
        columns_name=columns_name,
        columns=axes[columns_name],
        cells=tuple(
            tuple(cell(row, column) for column in axes[columns_name]) for row in axes[rows_name]
        ),
        delta=delta,
        definition=definition,
        releases=releases,
    )


@dataclass(frozen=True)
class _PlanProblem:
    """The known parameters and the unknown one; None marks an unknown."""

    k: int | None
    beta: float | None
    epsilon: float | None
    delta: float | None
    releases: int
    definition: Definition

    def solve(self) -> Plan:
        solver = choose_solver(self.releases, self.definition)
        match self:
            case _PlanProblem(int(k), float(beta), float(epsilon), None):
                return self._make_plan(k, beta, epsilon, solver.delta(k, beta, epsilon))
            case _PlanProblem(int(k), float(beta), None, float(delta)):
                epsilon = self._require_finite_epsilon(solver.epsilon(k, beta, delta))
                return self._make_plan(k, beta, epsilon, delta)
            case _PlanProblem(int(k), None, float(epsilon), float(delta)):
                return self._make_plan(k, solver.beta(k, epsilon, delta), epsilon, delta)
            case _PlanProblem(None, float(beta), float(epsilon), float(delta)):
                k = self._require_finite_k(solver.k(beta, epsilon, delta))
                return self._make_plan(k, beta, epsilon, delta)
            case _PlanProblem(None, None, float(epsilon), float(delta)):
                size, rate = solver.minimize_crowd(epsilon, delta)
                k, short = self._require_finite_k(size), float(format_parameter("beta", rate, 4))
                # Four digits of beta are enough, unless the paper's sawtooth forbids it.
                beta = short if solver.delta(k, short, epsilon) <= delta else rate
                return self._make_plan(k, beta, epsilon, delta)
        raise self._make_unknowns_error()

    @property
    def _release_count(self) -> str:
        return "1 release" if self.releases == 1 else f"{self.releases} releases"

    def _make_plan(self, k: int, beta: float, epsilon: float, delta: float) -> Plan:
        return Plan(k, beta, epsilon, delta, self.definition, self.releases)

    def _make_unknowns_error(self) -> IncrowdError:
        names = ("k", "beta", "epsilon", "delta")
        given_names = [name for name in names if getattr(self, name) is not None]
        listing = ", ".join(given_names) or "none of them"
        return IncrowdError(
            "A plan needs epsilon and delta, or any three of k, beta, epsilon and delta. "
            f"Got {listing}"
            + ("; leave out the one to solve for." if len(given_names) == 4 else ".")
        )

    def _require_finite_epsilon(self, epsilon: float) -> float:
        if math.isinf(epsilon):
            assert self.k is not None
            assert self.beta is not None
            floor = min(self.releases * self.beta**self.k, 1.0)
            raise UnsolvableError(
                f"No ε reaches δ = {self.delta:g} with k = {self.k}, β = {self.beta:g} and "
                f"{self._release_count}: δ cannot fall below about {floor:.3g}. Use a larger k, a "
                "smaller "
                "β or a larger δ."
            )
        return epsilon

    def _require_finite_k(self, k: float) -> int:
        if math.isinf(k):
            raise UnsolvableError(
                f"No k up to {LARGEST_K:,} reaches ε = {self.epsilon:g}, δ = {self.delta:g} with "
                f"{self._release_count}"
                + ("" if self.beta is None else f" and β = {self.beta:g}")
                + ". Use a larger ε or δ, or a smaller β."
            )
        return int(k)
