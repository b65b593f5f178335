"""Tables of counts, as a spec asks for them: columns, the level of each, and a weight."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, GetJsonSchemaHandler, model_validator
from pydantic_core import CoreSchema

from incrowd.spec.base import SpecModel, Text

Weight = Annotated[float, Field(gt=0, le=1e9, allow_inf_nan=False)]


class TableRequest(SpecModel):
    """A table: its columns, the finest level that each shows, and how much its error counts.

    A column without an entry in ``levels`` shows its values. A list of columns is short for a
    table of their values.
    """

    columns: Annotated[tuple[Text, ...], Field(min_length=1, max_length=20)]
    levels: dict[Text, Annotated[int, Field(ge=0)]] = Field(default={})
    weight: Weight = 1.0

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
        return self

    @property
    def key(self) -> tuple[tuple[str, int], ...]:
        """The columns with their levels, in one order: what makes two tables the same."""
        return tuple(sorted((name, self.levels.get(name, 0)) for name in self.columns))

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        names = {"type": "array", "items": {"type": ["string", "number", "boolean"]}, "minItems": 1}
        return {"anyOf": [names, handler(schema)]}
