"""What is published and with which guarantee, as a spec declares it."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, GetJsonSchemaHandler, model_validator
from pydantic_core import CoreSchema

from incrowd.spec.base import Model, Text

Level = Annotated[int, Field(ge=0)]
SliceColumns = Annotated[tuple[Text, ...], Field(min_length=1)]


class Slicing(Model):
    """Slices that are put together for you: of how many columns, and how many of them.

    Without ``tables`` every two columns stand together in some slice if 16 tables are enough for
    that; otherwise there are 16, or as many as it takes for every column to stand in one. With
    ``all`` every two columns stand together, however many it takes.
    """

    columns: Annotated[int, Field(ge=2, le=100)] = 3
    tables: Annotated[int, Field(ge=2, le=1000)] | Literal["all"] | None = None

    @model_validator(mode="before")
    @classmethod
    def _shorthand(cls, value: Any) -> Any:
        whole = isinstance(value, int) and not isinstance(value, bool)
        return {"columns": value} if whole else value

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {"anyOf": [{"type": "integer", "minimum": 2}, handler(schema)]}


Slices: TypeAlias = Slicing | tuple[SliceColumns, ...]


class Release(Model):
    """What is published and with which guarantee.

    A level of ``levels`` is one that is fixed, or the lowest and highest that may be chosen.
    ``slices`` lists the columns of each table, or says how many columns a table may have.
    ``formulas: escape`` puts an apostrophe before texts that a spreadsheet would run; without it
    they are written as they are.
    """

    method: Literal["safe", "k-epsilon", "k-anonymity"] = "safe"
    epsilon: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    delta: Annotated[float, Field(gt=0, lt=1)] | None = None
    k: Annotated[int, Field(ge=1)] | None = None
    beta: Annotated[float, Field(gt=0, lt=1)] | None = None
    keep: Annotated[float, Field(gt=0, lt=1)] | None = None
    scheme: Literal["auto", "fixed", "search", "mondrian"] | None = None
    objective: Literal["rows", "balanced", "detail"] | None = None
    search_epsilon: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    levels: dict[Text, Level | tuple[Level, Level]] = Field(default={})
    slices: Slices = ()
    format: Literal["parquet", "csv"] = "parquet"
    rows: Literal["expanded", "weighted"] = "expanded"
    formulas: Literal["escape"] | None = None
    already_sampled: Annotated[float, Field(gt=0, lt=1)] | None = None
    algorithm: Literal["ola", "mondrian", "cluster", "duplicate"] | None = None
    suppression: Annotated[float, Field(ge=0, le=1)] | None = None
    suppressed: Literal["dropped", "starred"] | None = None
    loss: Literal["normalised", "precision", "entropy", "discernibility", "class-size"] | None = (
        None
    )
    candidates: Literal["all", "minimal"] | None = None
    cut: Literal["balanced", "median"] | None = None
    noise: Literal["laplace", "gaussian"] | None = None
    bounds: Literal["class", "declared"] | None = None
    confidence: Annotated[float, Field(gt=0, lt=1)] | None = None
    clamp: bool | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Release:
        searching = ("loss", "candidates", "cut", "suppression", "suppressed", "algorithm")
        noising = ("noise", "bounds", "confidence", "clamp")
        sampling = (
            "beta", "keep", "scheme", "slices", "already_sampled", "objective", "search_epsilon",
        )  # fmt: skip
        foreign = {
            "safe": (*searching, *noising),
            "k-epsilon": sampling,
            "k-anonymity": ("epsilon", "delta", *sampling, *noising),
        }[self.method]
        wrong = [name for name in foreign if getattr(self, name) not in (None, ())]
        if wrong:
            raise ValueError(f"'{wrong[0]}' does not belong to method '{self.method}'")
        if self.formulas is not None and self.format != "csv":
            raise ValueError("'formulas' belongs to 'format: csv'; Parquet holds no formulas")
        if self.keep is not None and self.beta is not None:
            raise ValueError("'keep' and 'beta' both set the sampling rate; give one")
        for name in ("objective", "search_epsilon"):
            if getattr(self, name) is not None and self.scheme == "fixed":
                raise ValueError(f"'{name}' belongs to 'scheme: search' or 'scheme: mondrian'")
        self._check_slices()
        if self.method == "k-epsilon" and self.algorithm in ("cluster", "duplicate"):
            raise ValueError(f"the algorithm '{self.algorithm}' does not go with 'k-epsilon'")
        algorithm = self.algorithm or "ola"
        for name, owners in (
            ("loss", ("ola",)), ("candidates", ("ola",)), ("suppression", ("ola",)),
            ("cut", ("mondrian",)),
        ):  # fmt: skip
            if self.method != "safe" and getattr(self, name) and algorithm not in owners:
                raise ValueError(f"'{name}' does not belong to the algorithm '{algorithm}'")
        for name, level in self.levels.items():
            if isinstance(level, tuple) and level[0] > level[1]:
                raise ValueError(f"the levels of '{name}' must rise; got {level[0]}, {level[1]}")
            if self.levels and self.method != "safe" and algorithm != "ola":
                raise ValueError(f"'levels' do not belong to the algorithm '{algorithm}'")
        return self

    def _check_slices(self) -> None:
        if isinstance(self.slices, Slicing):
            return
        if len(self.slices) == 1:
            raise ValueError("one slice is one table; give columns it lacks the role 'drop'")
        for part in self.slices:
            if len(set(part)) < len(part):
                raise ValueError(f"a slice names a column twice: {', '.join(part)}")
        if len({frozenset(part) for part in self.slices}) < len(self.slices):
            raise ValueError("two slices have the same columns")
