"""Slices of a wide table, as a spec declares them: columns of each, or how many of them."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, GetJsonSchemaHandler, model_validator
from pydantic_core import CoreSchema

from incrowd.spec.base import SpecModel, Text

SliceColumns = Annotated[tuple[Text, ...], Field(min_length=1)]


class Slicing(SpecModel):
    """Slices that are put together for you: of how many columns, and how many of them.

    Without ``tables`` every two columns stand together in some slice if 16 tables are enough for
    that; otherwise there are 16, or as many as it takes for every column to stand in one. With
    ``all`` every two columns stand together, however many it takes.
    """

    columns: Annotated[int, Field(ge=2, le=100)] = 3
    tables: Annotated[int, Field(ge=2, le=1000)] | Literal["all"] | None = None

    @model_validator(mode="before")
    @classmethod
    def _expand_shorthand(cls, value: Any) -> Any:
        is_count = isinstance(value, int) and not isinstance(value, bool)
        return {"columns": value} if is_count else value

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {"anyOf": [{"type": "integer", "minimum": 2}, handler(schema)]}


Slices: TypeAlias = Slicing | tuple[SliceColumns, ...]


def refuse_equal_slices(slices: tuple[SliceColumns, ...]) -> None:
    """Refuse one slice, a column twice in a slice, and slices of the same columns."""
    if len(slices) == 1:
        raise ValueError(
            "one slice is one table. Remove `slices`; use the role `drop` for other columns."
        )
    for part in slices:
        if len(set(part)) < len(part):
            raise ValueError(f"a slice names a column twice: {', '.join(part)}. Name it once.")
    if len({frozenset(part) for part in slices}) < len(slices):
        raise ValueError("two slices have the same columns. Remove one of them.")
