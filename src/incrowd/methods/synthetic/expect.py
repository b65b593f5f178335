"""What to expect of synthetic rows before anything is spent: from the spec and its budget alone."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from incrowd.anonymize.synthetic.allocation import share_one_ways
from incrowd.anonymize.synthetic.choice import Candidate, make_candidate
from incrowd.findings import Finding, format_points, make_finding
from incrowd.methods.base import Method
from incrowd.methods.expect import Expectation
from incrowd.methods.synthetic.method import Synthetic

_LARGE_TABLE = 1e6  # rows that a forecast supposes where no size is stated
_USUAL_TABLE = 1e5  # people that a warning of too many values supposes
_TOO_MUCH = 0.1  # of the rows of the table
_FEW_VALUES = 8  # that nobody can make much fewer


@dataclass(frozen=True)
class FineColumn:
    """A column whose average value has fewer people than the noise of its count.

    ``needed`` people it would take; of ``most`` values the stated ones are enough.
    """

    name: str
    values: int
    needed: int
    most: int


@dataclass(frozen=True)
class SyntheticExpectation(Expectation):
    """The error of counts of single values: at most ``error`` rows, with probability 0.95.

    That is the noise of the first measurement of each column, of the column with the most noise;
    later measurements make it smaller. ``size`` is the stated number of rows. ``fine`` are the
    columns with more values than that noise lets one tell apart.
    """

    error: float = 0.0
    column: str = ""
    size: int | None = None
    fine: tuple[FineColumn, ...] = ()

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
        """Return a forecast of the error, or a warning where it is large, of all and by column."""
        return [self._find_error(), *map(self._find_fine, self.fine)]

    def _find_error(self) -> Finding:
        if self.size is None:
            return make_finding("SYNTHETIC_ERROR", rows=self._rows)
        share = self.error / self.size
        if share > _TOO_MUCH:
            return make_finding(
                "SYNTHETIC_ERROR_LARGE", size=self.size, rows=self._rows, share=share
            )
        return make_finding("SYNTHETIC_ERROR_OF_SIZE", size=self.size, rows=self._rows, share=share)

    def _find_fine(self, column: FineColumn) -> Finding:
        return make_finding(
            "SYNTHETIC_VALUES_TOO_FINE", column.name, values=column.values, needed=column.needed,
            size=self.size, most=column.most,
        )  # fmt: skip


def expect_synthetic(method: Method, size: int | None) -> SyntheticExpectation:
    """Return what to expect of synthetic rows of a table of some size."""
    assert isinstance(method, Synthetic)
    domain, information = method.domain, method.plan.information
    share = share_one_ways(len(domain), size or _LARGE_TABLE, information) * information
    tables = [make_candidate(domain, (column,), (0,)) for column in range(len(domain))]
    needs = sum(table.need for table in tables)
    deviations = [math.sqrt(table.gain * needs / (share * table.need)) for table in tables]
    fine = _list_fine(method.columns.names, tables, share, size or _USUAL_TABLE)
    worst = max(range(len(domain)), key=lambda column: deviations[column])
    return SyntheticExpectation(
        crowd=1.0, each=(), tables=1, fixed=True,
        error=1.96 * deviations[worst], column=method.columns.names[worst], size=size,
        fine=tuple(fine),
    )  # fmt: skip


def _list_fine(
    names: Sequence[str], tables: Sequence[Candidate], share: float, size: float
) -> Iterator[FineColumn]:
    """Return the columns of which a value of average frequency is within the noise of its count."""
    needs = sum(table.need for table in tables)
    for name, table in zip(names, tables, strict=True):
        needed = _count_needed(table.cells, needs - table.need, share)
        if table.cells <= _FEW_VALUES or needed <= size:
            continue
        enough = range(_FEW_VALUES, table.cells)
        most = bisect_right(
            enough, size, key=lambda values: _count_needed(values, needs - table.need, share)
        )
        yield FineColumn(
            name,
            table.cells,
            _round(needed, math.ceil),
            _round(enough[max(most - 1, 0)], math.floor),
        )


def _count_needed(values: int, others: float, share: float) -> float:
    """Return how many people make an average value of a column as frequent as its noise.

    The information is shared by the root of the number of values, with ``others`` for the rest.
    """
    return values * math.sqrt((others + math.sqrt(values)) / (share * math.sqrt(values)))


def _round(number: float, to: Callable[[float], int]) -> int:
    """Return the number with two digits, which is all that a forecast knows."""
    unit = int(10 ** max(math.floor(math.log10(number)) - 1, 0))
    return to(number / unit) * unit
