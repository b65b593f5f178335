"""What to expect of tables of counts before anything is spent: from the spec and budget alone."""

from __future__ import annotations

import math
from dataclasses import dataclass

from incrowd.findings import Finding, make_finding
from incrowd.methods.base import Method
from incrowd.methods.expect import Expectation
from incrowd.methods.tables.method import Tables
from incrowd.release.tables_part import WITHIN

_SHOWN = 5  # tables that are warned of one by one


@dataclass(frozen=True)
class TableForecastError:
    """The planned error of one table.

    Attributes:
        columns: Its columns.
        cells: The number of its finest cells.
        error: 95 % of the noise of a cell lies within ± this, as a mean over cells.
    """

    columns: tuple[str, ...]
    cells: int
    error: float


@dataclass(frozen=True)
class TablesExpectation(Expectation):
    """The planned error of each table of counts; ``size`` is the stated number of people."""

    errors: tuple[TableForecastError, ...] = ()
    size: int | None = None

    def summarize(self) -> str:
        """Return the shortest that can be said, in one sentence."""
        worst = max(self.errors, key=lambda table: table.error)
        return f"Forecast: 95 % of cells within ±{math.ceil(worst.error):,} people in every table."

    def findings(self) -> list[Finding]:
        """Return the largest error, and the tables whose error exceeds their mean count."""
        worst = max(self.errors, key=lambda table: table.error)
        largest = make_finding(
            "TABLES_ERROR", names=" by ".join(worst.columns), error=math.ceil(worst.error),
            more=len(self.errors) if len(self.errors) > 1 else None,
        )  # fmt: skip
        if self.size is None:
            return [largest]
        noisy = [table for table in self.errors if table.error * table.cells > self.size]
        noisy.sort(key=lambda table: -table.error * table.cells)
        return [largest, *(self._find_noisy(table) for table in noisy[:_SHOWN])]

    def _find_noisy(self, table: TableForecastError) -> Finding:
        assert self.size is not None
        return make_finding(
            "TABLES_ERROR_LARGE", names=" by ".join(table.columns), cells=table.cells,
            mean=f"{self.size / table.cells:,.3g}", error=math.ceil(table.error),
        )  # fmt: skip


def expect_tables(method: Method, size: int | None) -> TablesExpectation:
    """Return what to expect of tables of counts of so many people."""
    assert isinstance(method, Tables)
    request, plan = method.request, method.plan
    errors = [
        TableForecastError(
            table.columns,
            math.prod(request.workload.shape(located.columns, located.levels)),
            WITHIN * math.sqrt(plan.mean_variance(located)),
        )
        for table, located in zip(request.tables, request.counts, strict=True)
    ]
    return TablesExpectation(
        crowd=1.0, each=(), tables=len(errors), fixed=True, errors=tuple(errors), size=size
    )
