"""What tables of counts would cost in error, or an error in epsilon, from the spec alone.

Nothing is read from the table. Errors are half-widths of 95 % intervals, in rows.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from incrowd.anonymize.tables.plan import TablesPlan, compare_independent
from incrowd.anonymize.tables.workload import RequestedTable
from incrowd.errors import ParameterError
from incrowd.methods.registry import make_method
from incrowd.methods.tables.method import Tables, make_plan, require_tables
from incrowd.privacy.accountant import Accountant
from incrowd.privacy.events import GaussianMeasurements
from incrowd.release.tables_part import WITHIN
from incrowd.spec.file import SpecSource, load_spec

_TOTAL = RequestedTable((), ())
_MOST_EPSILON = 1e4
_MOST_INFORMATION = 1e6
_MOST_TRIALS = 60


@dataclass(frozen=True)
class PlannedTable:
    """The planned errors of one table.

    Attributes:
        columns: Its columns.
        levels: The finest level of each.
        cells: The number of its finest cells.
        error: 95 % of cells are within ± this.
        independent: The same, if each table, and each of its totals, had noise of its own at the
            same budget.
        sum: The column that is summed in each cell; None without one.
        sum_error: 95 % of the sums are within ± this, in the unit of the column.
    """

    columns: tuple[str, ...]
    levels: tuple[int, ...]
    cells: int
    error: float
    independent: float
    sum: str | None = None
    sum_error: float | None = None


@dataclass(frozen=True)
class TablePlan:
    """The errors of planned tables at a budget.

    Attributes:
        epsilon: Epsilon of all tables together.
        delta: Delta of all tables together.
        objective: "sum" or "max".
        total: 95 % of estimates of the number of rows are within ± this.
        independent_total: The same, if each table had noise of its own.
        tables: The tables.
    """

    epsilon: float
    delta: float
    objective: str
    total: float
    independent_total: float
    tables: tuple[PlannedTable, ...]

    @property
    def largest(self) -> float:
        """The largest error of a table."""
        return max(table.error for table in self.tables)

    def as_dict(self) -> dict[str, Any]:
        """Return the plan as plain values, for JSON."""
        return {**asdict(self), "largest": self.largest}


def plan_tables(spec: SpecSource, *, error: float | None = None) -> TablePlan:
    """Plan tables of counts before anything is spent: their errors, or the epsilon for an error.

    The spec alone is read. Errors are means over the finest cells of a table.

    Args:
        spec: Path of a spec with `method: tables`, its YAML text, a mapping, or a draft.
        error: The wished error: 95 % of the cells of every table within ± this many rows. The
            answer has the least epsilon for it, at the delta of the spec.

    Returns:
        The errors of every table, beside those of independent noise per table.

    Raises:
        IncrowdError: The spec is invalid or asks for no tables.
        ParameterError: The error is not above 0, or no epsilon reaches it.

    Examples:
        >>> import incrowd as ic
        >>> sex = {"role": "quasi", "hierarchy": {"flat": {"values": ["female", "male"]}}}
        >>> asked = {"method": "tables", "epsilon": 1.0, "delta": 1e-6, "tables": [["sex"]]}
        >>> plan = ic.plan_tables({"columns": {"sex": sex}, "release": asked})
        >>> plan.tables[0].cells, plan.epsilon
        (3, 1.0)
        >>> ic.plan_tables({"columns": {"sex": sex}, "release": asked}, error=5).epsilon > 1
        True
    """
    method = require_tables(make_method(load_spec(spec).with_all_confirmed()))
    if error is None:
        return _describe_plan(method, method.plan, float(method.release.epsilon or 0))
    if not 0 < error < math.inf:
        raise ParameterError("error", "be a number above 0", error)
    plan = _reach_error(method, error)
    return _describe_plan(
        method, plan, _find_epsilon(plan, float(method.release.delta or 0), error)
    )


def _reach_error(method: Tables, error: float) -> TablesPlan:
    """Return a plan of the least information, to a thousandth, at which no error is larger.

    Variances are proportional to 1 / information, but for rounding up, which makes steps of those
    of a few rows. So what follows from the proportion is tried, and the middle of what is left
    where that was tried before.
    """
    plan, reached = method.plan, None
    low, high = 0.0, math.inf
    for _ in range(_MOST_TRIALS):
        largest, information = _find_largest(method, plan), plan.information
        if largest <= error:
            reached, high = plan, information
        else:
            low = information
        if error * 0.999 <= largest <= error or high <= low * 1.001:
            break
        guess = information * (largest / (error * 0.9995)) ** 2
        if not low * 1.0002 < guess < high * 0.9998:
            guess = math.sqrt(low * high) if low > 0 and high < math.inf else information * 2
        if not guess < _MOST_INFORMATION:
            break
        plan = make_plan(method.request, method.release, guess)
    if reached is None:
        raise _make_unreachable(error)
    return reached


def _make_unreachable(error: float) -> ParameterError:
    return ParameterError(
        "error",
        "be reachable",
        error,
        "Whole-number noise cannot be smaller. Ask for a larger one.",
    )


def _find_largest(method: Tables, plan: TablesPlan) -> float:
    return max(WITHIN * math.sqrt(plan.mean_variance(table)) for table in method.request.counts)


def _find_epsilon(plan: TablesPlan, delta: float, error: float) -> float:
    """Return the epsilon of the plan's information, rounded up to three digits."""
    exact = float(Accountant([GaussianMeasurements(plan.information)]).epsilon(delta=delta))
    if not exact < _MOST_EPSILON:
        raise _make_unreachable(error)
    unit = 10.0 ** (math.floor(math.log10(exact)) - 2)
    return float(f"{math.ceil(exact / unit) * unit:.12g}")


def _describe_plan(method: Tables, plan: TablesPlan, epsilon: float) -> TablePlan:
    request, objective = method.request, method.release.objective or "sum"
    listed = plan.workload.tables  # those of the request, and then their totals
    alone = dict(
        zip(listed, compare_independent(plan.workload, plan.information, objective), strict=True)
    )
    tables = []
    for table, located in zip(request.tables, request.counts, strict=True):
        cells = math.prod(request.workload.shape(located.columns, located.levels))
        located_sum = request.locate_sum(table)
        tables.append(
            PlannedTable(
                columns=tuple(table.columns),
                levels=tuple(table.levels.get(name, 0) for name in table.columns),
                cells=cells,
                error=WITHIN * math.sqrt(plan.mean_variance(located)),
                independent=WITHIN * math.sqrt(alone[located]),
                sum=None if located_sum is None else request.sums[located_sum.quantity - 1].column,
                sum_error=None
                if located_sum is None
                else WITHIN * math.sqrt(plan.mean_variance(located_sum)),
            )
        )
    total = WITHIN * math.sqrt(plan.mean_variance(_TOTAL))
    independent_total = WITHIN * math.sqrt(
        min(
            variance * math.prod(request.workload.shape(table.columns, table.levels))
            for table, variance in alone.items()
            if not table.quantity
        )
    )
    delta = float(method.release.delta or 0)
    return TablePlan(epsilon, delta, objective, total, independent_total, tuple(tables))
