"""How a column may be generalised, as a spec declares it; :mod:`incrowd.spec.build` builds it."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import ConfigDict, Field, GetJsonSchemaHandler, model_validator
from pydantic_core import CoreSchema

from incrowd.spec.base import Model, Number, Text


class Intervals(Model):
    """Numbers from ``from`` to ``to`` (both included) in steps, merged into wider intervals.

    Level 0 holds the steps; then one level for each of ``widths``, counted from ``from``, or
    for each list of ``cuts`` (the points where a new interval begins). ``open`` adds an
    interval for everything below, above, or both.
    """

    low: Number = Field(alias="from")
    high: Number = Field(alias="to")
    step: Annotated[Number, Field(gt=0)] = Decimal(1)
    widths: tuple[Annotated[Number, Field(gt=0)], ...] = ()
    cuts: tuple[tuple[Number, ...], ...] = ()
    open: Literal["none", "lower", "upper", "both"] = "none"

    @model_validator(mode="after")
    def _sensible(self) -> Intervals:
        if self.high < self.low:
            raise ValueError(f"'to' ({self.high}) must not be below 'from' ({self.low})")
        if (self.high - self.low) / self.step > 1_000_000:
            raise ValueError("more than a million steps; use a larger 'step'")
        if self.widths and self.cuts:
            raise ValueError("give 'widths' or 'cuts', not both")
        for width in self.widths:
            if width % self.step:
                raise ValueError(f"the width {width} is no multiple of the step {self.step}")
        for cut in (cut for cuts in self.cuts for cut in cuts):
            if (cut - self.low) % self.step:
                raise ValueError(f"the cut {cut} does not lie on a step from {self.low}")
        return self


class Mask(Model):
    """Text of a fixed length whose characters are hidden one by one, from one side."""

    length: Annotated[int, Field(ge=1, le=64)]
    hide: Literal["right", "left"] = "right"
    alphabet: Annotated[str, Field(min_length=1)] = "0123456789"


class Dates(Model):
    """Dates from ``from`` to ``to`` (both included), by day, month, quarter, year, decade."""

    low: dt.date = Field(alias="from")
    high: dt.date = Field(alias="to")
    levels: tuple[Literal["day", "month", "quarter", "year", "decade"], ...] = (
        "day", "month", "quarter", "year", "decade",
    )  # fmt: skip
    format: str = "%Y-%m-%d"

    @model_validator(mode="after")
    def _sensible(self) -> Dates:
        if self.high < self.low:
            raise ValueError(f"'to' ({self.high}) must not be before 'from' ({self.low})")
        if (self.high - self.low).days > 400_000:
            raise ValueError("more than a thousand years; use a closer 'from' and 'to'")
        ladder = ("day", "month", "quarter", "year", "decade")
        if not self.levels or sorted(set(self.levels), key=ladder.index) != list(self.levels):
            raise ValueError(f"'levels' must go from fine to coarse: {', '.join(ladder)}")
        try:
            dt.datetime.strptime(self.high.strftime(self.format), self.format)
        except ValueError as error:
            raise ValueError(f"'format' is no format of a date: {self.format}") from error
        return self


class Order(Model):
    """Ordered categories, merged into runs of neighbours."""

    values: Annotated[tuple[Text, ...], Field(min_length=1)]
    runs: tuple[Annotated[int, Field(ge=2)], ...] = ()


class CsvFile(Model):
    """A file in ARX form: value;level 1;...;*, one row per value, without a header."""

    file: Path
    delimiter: Annotated[str, Field(pattern=r"^[^\r\n\"]$")] | None = None

    @model_validator(mode="before")
    @classmethod
    def _shorthand(cls, value: Any) -> Any:
        return {"file": value} if isinstance(value, str | Path) else value

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {"anyOf": [{"type": "string"}, handler(schema)]}


class Flat(Model):
    """The value itself, or nothing of it. Without ``values`` the domain is open."""

    values: tuple[Text, ...] = ()


Groups: TypeAlias = dict[str, Any]
Declaration: TypeAlias = Intervals | Mask | Groups | Dates | Order | CsvFile | Flat


class Hierarchies(Model):
    """How a column is generalised: exactly one of these."""

    intervals: Intervals | None = None
    mask: Mask | None = None
    groups: Annotated[Groups, Field(min_length=1)] | None = None
    dates: Dates | None = None
    order: Order | None = None
    csv: CsvFile | None = None
    flat: Flat | None = None

    model_config = ConfigDict(json_schema_extra={"minProperties": 1, "maxProperties": 1})

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {"anyOf": [{"const": "flat"}, handler(schema)]}

    @model_validator(mode="before")
    @classmethod
    def _shorthand(cls, value: Any) -> Any:
        if value == "flat":
            return {"flat": {}}
        if isinstance(value, dict) and value.get("flat", ...) is None:
            return {**value, "flat": {}}
        return value

    @model_validator(mode="after")
    def _exactly_one(self) -> Hierarchies:
        given = [name for name in type(self).model_fields if getattr(self, name) is not None]
        if len(given) != 1:
            kinds = ", ".join(type(self).model_fields)
            raise ValueError(f"needs exactly one of {kinds}; got {', '.join(given) or 'none'}")
        return self

    @property
    def declared(self) -> Declaration:
        """The one that was given."""
        (declared,) = (
            value for name in type(self).model_fields if (value := getattr(self, name)) is not None
        )
        return declared  # type: ignore[no-any-return]
