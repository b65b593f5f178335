"""What the certificate of tables of counts holds besides: the tables, and what was measured.

A residual takes one component of each of its columns. Below a group of the next level with a parts
it is a times the count of each part less their sum, if a is at most the ``centered`` of the column,
and the count itself otherwise. Each of its numbers got discrete Gaussian noise of variance
ceil(D^2 / part) + 3, with D^2 the product of a (a - 1) over its centered columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Literal

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
WITHIN = 1.96  # standard deviations on each side, for 95 %
DIGITS = 3
Level = Annotated[int, Field(ge=0, le=1000)]
Place = Annotated[int, Field(ge=0)]
Hash = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class _TabulationPart(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)


class TabulatedTable(_TabulationPart):
    """One table: its columns in their order, the finest level of each, and its weight.

    ``rmse`` is the root of the mean variance of the estimates of its finest cells.
    """

    columns: Annotated[list[str], Field(min_length=1, max_length=20)]
    levels: Annotated[list[Level], Field(min_length=1, max_length=20)]
    weight: Annotated[float, Field(gt=0)]
    rmse: Annotated[float, Field(ge=0)]


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
    value are ``counted`` under a missing value, or ``excluded`` from all tables.
    """

    columns: Annotated[list[str], Field(min_length=1)]
    missing: Literal["counted", "excluded"]
    total: str | None = None
    hide_below: Annotated[int, Field(ge=2)] | None = None
    objective: Literal["sum", "max"]
    tables: Annotated[list[TabulatedTable], Field(min_length=1)]
    residuals: Annotated[list[CertifiedResidual], Field(min_length=1)]
    measured: Hash
    exports: list[ExtraFile] = []


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

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its columns."""
        return tuple(column.name for column in self.columns)


def list_figures(table: TabulatedTable) -> tuple[str, ...]:  # noqa: ARG001
    """Return the headers of the figures of a table."""
    return FIGURES


def list_headers(names: Sequence[str]) -> list[str]:
    """Return the headers of the file of a table: labels, levels, codes, and figures."""
    return [
        *names, *(f"{name}_level" for name in names), *(f"{name}_code" for name in names), *FIGURES,
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
