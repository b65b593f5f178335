"""What to expect of synthetic rows before anything is spent: from the spec and its budget alone."""

from __future__ import annotations

import math
from dataclasses import dataclass

from incrowd.anonymize.synthetic.allocation import share_one_ways
from incrowd.anonymize.synthetic.choice import make_candidate
from incrowd.findings import Finding, format_points, make_finding
from incrowd.methods.base import Method
from incrowd.methods.expect import Expectation
from incrowd.methods.synthetic.method import Synthetic

_LARGE_TABLE = 1e6  # rows that a forecast supposes where no size is stated
_TOO_MUCH = 0.1  # of the rows of the table


@dataclass(frozen=True)
class SyntheticExpectation(Expectation):
    """The error of counts of single values: at most ``error`` rows, with probability 0.95.

    That is the noise of the first measurement of each column, of the column with the most noise;
    later measurements make it smaller. ``size`` is the stated number of rows.
    """

    error: float = 0.0
    column: str = ""
    size: int | None = None

    def summarize(self) -> str:
        """Return the shortest that can be said, in one sentence."""
        if self.size is None:
            return f"Forecast: counts of single values within ±{self._rows} rows (95 %)."
        return (
            f"Forecast for {self.size:,} people: shares of single values within "
            f"±{format_points(self.error / self.size)} (95 %)."
        )

    @property
    def _rows(self) -> int:
        return math.ceil(self.error)

    def findings(self) -> list[Finding]:
        """Return a forecast of the error, or a warning where it is large."""
        if self.size is None:
            return [make_finding("SYNTHETIC_ERROR", rows=self._rows)]
        share = self.error / self.size
        if share > _TOO_MUCH:
            finding = make_finding(
                "SYNTHETIC_ERROR_LARGE", size=self.size, rows=self._rows, share=share
            )
        else:
            finding = make_finding(
                "SYNTHETIC_ERROR_OF_SIZE", size=self.size, rows=self._rows, share=share
            )
        return [finding]


def expect_synthetic(method: Method, size: int | None) -> SyntheticExpectation:
    """Return what to expect of synthetic rows of a table of some size."""
    assert isinstance(method, Synthetic)
    domain, information = method.domain, method.plan.information
    share = share_one_ways(len(domain), size or _LARGE_TABLE, information) * information
    tables = [make_candidate(domain, (column,), (0,)) for column in range(len(domain))]
    needs = sum(table.need for table in tables)
    deviations = [math.sqrt(table.gain * needs / (share * table.need)) for table in tables]
    worst = max(range(len(domain)), key=lambda column: deviations[column])
    return SyntheticExpectation(
        crowd=1.0, each=(), tables=1, fixed=True,
        error=1.96 * deviations[worst], column=method.columns.names[worst], size=size,
    )  # fmt: skip
