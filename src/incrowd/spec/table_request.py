"""Tables of counts, as a spec asks for them: columns, the level of each, a weight, and a sum."""

from __future__ import annotations

import math
from decimal import Decimal
from functools import cached_property
from typing import Annotated, Any

from pydantic import Field, GetJsonSchemaHandler, model_validator
from pydantic_core import CoreSchema

from incrowd.spec.base import Number, SpecModel, Text

Weight = Annotated[float, Field(gt=0, le=1e9, allow_inf_nan=False)]
MOST_STEPS = 1_000_000  # between the bounds of a column that is summed
_USUAL_STEPS = 10_000
_MOST_DIGITS = 12  # of bounds and step, before the point and after it


class SumRequest(SpecModel):
    """A numeric column that is summed in each cell, and its bounds, which are public knowledge.

    Each value is moved into the bounds, and to the nearest of the steps between them. Without
    ``step`` it is a power of ten that divides their distance into 10,000 parts or more.
    """

    column: Text
    bounds: tuple[Number, Number]
    step: Annotated[Number, Field(gt=0)] | None = None

    @model_validator(mode="after")
    def _refuse_misfits(self) -> SumRequest:
        lower, upper = self.bounds
        if lower >= upper:
            raise ValueError(f"`bounds` of a sum must rise, got {lower} and {upper}. Swap them.")
        for number in (lower, upper, self.size):
            _, digits, exponent = number.normalize().as_tuple()
            is_small = isinstance(exponent, int) and -exponent <= _MOST_DIGITS
            if not is_small or len(digits) > _MOST_DIGITS or abs(number) >= 10**_MOST_DIGITS:
                raise ValueError(
                    f"bounds and step of a sum have at most {_MOST_DIGITS} digits, got {number}. "
                    "Round it."
                )
        number_of_steps = (upper - lower) / self.size
        if number_of_steps % 1:
            raise ValueError(
                f"the `step` {self.size} of a sum does not divide the distance of its bounds, "
                f"{upper - lower}. Choose another step, or other bounds."
            )
        if number_of_steps > MOST_STEPS:
            raise ValueError(
                f"the bounds of a sum are {number_of_steps:,.0f} steps apart, and at most "
                f"{MOST_STEPS:,} are possible. Choose a larger `step`."
            )
        return self

    @cached_property
    def size(self) -> Decimal:
        """The step, given or chosen."""
        if self.step is not None:
            return self.step
        width = self.bounds[1] - self.bounds[0]
        exponent = math.floor((width / _USUAL_STEPS).log10())
        while (width / Decimal(10) ** exponent) % 1:
            exponent -= 1
        return Decimal(10) ** exponent

    @property
    def steps(self) -> int:
        """The number of steps between the bounds."""
        return int((self.bounds[1] - self.bounds[0]) / self.size)


class TableRequest(SpecModel):
    """A table: its columns, the finest level that each shows, and how much its error counts.

    A column without an entry in ``levels`` shows its values. A list of columns is short for a
    table of their values. With ``sum`` each cell has the sum and the mean of a column as well.
    """

    columns: Annotated[tuple[Text, ...], Field(min_length=1, max_length=20)]
    levels: dict[Text, Annotated[int, Field(ge=0)]] = Field(default={})
    weight: Weight = 1.0
    sum: SumRequest | None = None

    @model_validator(mode="before")
    @classmethod
    def _expand_shorthand(cls, value: Any) -> Any:
        return {"columns": value} if isinstance(value, list | tuple) else value

    @model_validator(mode="after")
    def _refuse_misfits(self) -> TableRequest:
        listed = ", ".join(self.columns)
        if len(set(self.columns)) < len(self.columns):
            raise ValueError(f"a table names a column twice: {listed}. Name it once.")
        for name in self.levels:
            if name not in self.columns:
                raise ValueError(
                    f"`levels` names '{name}', which is no column of the table {listed}. Add it to "
                    "`columns`, or remove it."
                )
        if self.sum is not None and self.sum.column in self.columns:
            raise ValueError(
                f"the table {listed} sums '{self.sum.column}', which is one of its columns. Remove "
                "it from `columns`."
            )
        return self

    @property
    def key(self) -> tuple[str, tuple[tuple[str, int], ...]]:
        """The sum, and the columns with their levels: what makes two tables the same."""
        summed = "" if self.sum is None else self.sum.column
        return summed, tuple(sorted((name, self.levels.get(name, 0)) for name in self.columns))

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        names = {"type": "array", "items": {"type": ["string", "number", "boolean"]}, "minItems": 1}
        return {"anyOf": [names, handler(schema)]}


def refuse_unequal_sums(tables: tuple[TableRequest, ...]) -> None:
    """Refuse tables that sum a column with different bounds or steps: they could not agree."""
    bounds: dict[str, tuple[Decimal, ...]] = {}
    for summed in (table.sum for table in tables if table.sum is not None):
        stated = (*summed.bounds, summed.size)
        if bounds.setdefault(summed.column, stated) != stated:
            raise ValueError(
                f"two tables sum '{summed.column}' with other bounds or steps. Give it the same in "
                "all, so that they agree."
            )


def list_summed_columns(tables: object) -> list[str]:
    """Return the columns that tables sum, from a spec as plain values."""
    sums = [x.get("sum") for x in tables if isinstance(x, dict)] if isinstance(tables, list) else []
    return [str(x["column"]) for x in sums if isinstance(x, dict) and "column" in x]
