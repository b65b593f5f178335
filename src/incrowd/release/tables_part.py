"""What the certificate of tables of counts holds besides: the tables, and what was measured.

A residual takes one component of each of its columns. Below a group of the next level with a parts
it is a times the count of each part less their sum, if a is at most the ``centered`` of the column,
and the count itself otherwise. Each of its numbers got discrete Gaussian noise of variance
ceil(D^2 / part) + 3, with D^2 the product of a (a - 1) over its centered columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from incrowd.arrays import Counts, Floats
from incrowd.release.tables_column import ColumnLines, TabulatedColumn

if TYPE_CHECKING:
    from incrowd.engine.table import Table
    from incrowd.spec.model import Column

MEASURED_FILE = "measured.parquet"
WORKBOOK_FILE = "tables.xlsx"
RESIDUAL, NUMBER = "residual", "number"  # the columns of the file of measured numbers
FIGURES = ("count", "estimate", "sd", "low", "high")
SUM_FIGURES = (
    "sum", "sum_estimate", "sum_sd", "sum_low", "sum_high", "mean", "mean_low", "mean_high",
)  # fmt: skip
WITHIN = 1.96  # standard deviations on each side, for 95 %
DIGITS = 3
Level = Annotated[int, Field(ge=0, le=1000)]
Place = Annotated[int, Field(ge=0)]
_DECIMAL = r"^-?[0-9]{1,13}(\.[0-9]{1,12})?$"
Hash = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class _TabulationPart(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)


class TabulatedTable(_TabulationPart):
    """One table: its columns in their order, the finest level of each, and its weight.

    ``rmse`` is the root of the mean variance of the estimates of its finest cells. With ``sum`` it
    has the sum of this column in each cell as well, and ``sum_rmse`` is that of the sums.
    """

    columns: Annotated[list[str], Field(min_length=1, max_length=20)]
    levels: Annotated[list[Level], Field(min_length=1, max_length=20)]
    weight: Annotated[float, Field(gt=0)]
    rmse: Annotated[float, Field(ge=0)]
    sum: str | None = None
    sum_rmse: Annotated[float, Field(ge=0)] | None = None


class CertifiedSum(_TabulationPart):
    """A column that is summed: each row holds a whole number of steps above ``lower``.

    ``steps`` is the largest number that a row may hold.
    """

    column: str
    lower: Annotated[str, Field(pattern=_DECIMAL)]
    step: Annotated[str, Field(pattern=_DECIMAL)]
    steps: Annotated[int, Field(ge=1, le=1_000_000)]

    @property
    def upper(self) -> Decimal:
        """The largest value that a row may hold."""
        return Decimal(self.lower) + Decimal(self.step) * self.steps

    @property
    def digits(self) -> int:
        """How many digits after its point a sum may have."""
        exponents = (Decimal(x).normalize().as_tuple().exponent for x in (self.lower, self.step))
        return max(0, *(-int(x) for x in exponents))

    def compute_sums(self, counts: Counts, steps: Counts) -> Counts:
        """Return sums, in units of their last digit, from whole counts and steps."""
        lower, step = (int(Decimal(x).scaleb(self.digits)) for x in (self.lower, self.step))
        return counts * lower + steps * step

    def find_steps(self, counts: Counts, sums: Counts) -> Counts:
        """Return the steps of sums, in units of their last digit; -1 where they are not whole."""
        lower, step = (int(Decimal(x).scaleb(self.digits)) for x in (self.lower, self.step))
        steps, rest = np.divmod(sums - counts * lower, step)
        whole_steps: Counts = np.where(rest == 0, steps, -1)
        return whole_steps


class CertifiedResidual(_TabulationPart):
    """One residual: the places of its columns, a component of each, and the part that it cost.

    ``quantity`` is 0 for numbers of rows, j for the j-th sum, whose ``unit`` is its most steps.
    """

    quantity: Annotated[int, Field(ge=0)] = 0
    columns: Annotated[list[Place], Field(max_length=20)]
    components: Annotated[list[Level], Field(max_length=20)]
    centered: Annotated[list[Place], Field(max_length=20)]
    unit: Annotated[int, Field(ge=1)] = 1
    part: Annotated[str, Field(pattern=r"^[1-9][0-9]{0,99}(/[1-9][0-9]{0,99})?$")]

    @property
    def cost(self) -> Fraction:
        """The information that it cost, exactly."""
        return Fraction(self.part)


class ExtraFile(_TabulationPart):
    """A further file of the same numbers, and its hash."""

    file: Annotated[
        str, Field(pattern=r"^(tables\.xlsx|sdmx/structure\.xml|sdmx/table-[1-9][0-9]{0,5}\.csv)$")
    ]
    sha256: Hash


class TabulationPart(_TabulationPart):
    """What is certified of tables of counts, besides what every certificate has.

    ``columns`` are in the order that residuals number them in; ``tables`` in that of the files.
    ``total`` is the label of totals, which are there if it is. Rows with a missing or undeclared
    value are ``counted`` under a missing value, or ``excluded`` from all tables. ``sums`` are the
    columns that are summed, by the numbers that residuals have for them from 1; rows without such a
    number are in no table.
    """

    columns: Annotated[list[str], Field(min_length=1)]
    missing: Literal["counted", "excluded"]
    total: str | None = None
    hide_below: Annotated[int, Field(ge=2)] | None = None
    objective: Literal["sum", "max"]
    tables: Annotated[list[TabulatedTable], Field(min_length=1)]
    residuals: Annotated[list[CertifiedResidual], Field(min_length=1)]
    measured: Hash
    sums: Annotated[list[CertifiedSum], Field(min_length=1)] | None = None
    exports: list[ExtraFile] = []


@dataclass(frozen=True, eq=False)
class CellSums:
    """The sums of a column in the cells of a table, along the same lines.

    ``steps`` are whole and add up; ``estimate`` is of the sum itself, unbiased. The true mean is
    between ``mean_low`` and ``mean_high`` with probability 95 %.
    """

    column: CertifiedSum
    steps: Counts
    estimate: Floats
    sd: Floats
    mean_low: Floats
    mean_high: Floats


@dataclass(frozen=True, eq=False)
class CellTable:
    """The numbers of one table, along the lines of its columns.

    ``count`` is whole and adds up, ``estimate`` unbiased, ``sd`` its standard deviation.
    """

    columns: tuple[TabulatedColumn, ...]
    levels: tuple[int, ...]
    lines: tuple[ColumnLines, ...]
    count: Counts
    estimate: Floats
    sd: Floats
    sums: CellSums | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its columns."""
        return tuple(column.name for column in self.columns)


def compute_whole_means(units: Counts, counts: Counts, digits: int) -> Floats:
    """Return means from whole sums, in units of their last digit, and counts; 0 of nobody."""
    means: Floats = units.ravel() / np.maximum(counts.ravel(), 1) / 10.0**digits
    return means


def list_figures(table: TabulatedTable) -> tuple[str, ...]:
    """Return the headers of the figures of a table."""
    return FIGURES if table.sum is None else (*FIGURES, *SUM_FIGURES)


def list_headers(names: Sequence[str], *, has_sums: bool = False) -> list[str]:
    """Return the headers of the file of a table: labels, levels, codes, and figures."""
    return [
        *names, *(f"{name}_level" for name in names), *(f"{name}_code" for name in names), *FIGURES,
        *(SUM_FIGURES if has_sums else ()),
    ]  # fmt: skip


@dataclass(frozen=True, eq=False)
class TabulationProduct:
    """What a method hands over: the part of the certificate, the tables, and measured numbers."""

    part: TabulationPart
    cells: tuple[CellTable, ...]
    tables: tuple[Table, ...]
    numbers: Table
    declared: Mapping[str, Column]
    exports: tuple[str, ...] = ()
