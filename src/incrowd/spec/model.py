"""The spec: what every column of a table is, said once, in YAML.

Models are frozen and know nothing of data. Reading a spec lists all problems together, each
with its line, its place and, where a name looks mistyped, a suggestion.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import CoreSchema

NOISY_UNDER_SAFE = (
    "a safe release cannot publish a noisy column; make it quasi with a hierarchy, drop it, or "
    "use method 'k-epsilon'"
)

Role: TypeAlias = Literal["identifier", "quasi", "noisy", "sensitive", "drop"]


def _exact(value: Any) -> Any:
    """A number as it is written, not as a binary float: 0.1 is a tenth."""
    return Decimal(repr(value)) if isinstance(value, float) else value


def _text(value: Any) -> Any:
    """A YAML scalar as text: 39 and true may be values of a column."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float | Decimal | dt.date) else value


_SCALAR = {"type": ["string", "number", "boolean"]}
Number = Annotated[
    Decimal, BeforeValidator(_exact), Field(allow_inf_nan=False), WithJsonSchema({"type": "number"})
]
Text = Annotated[str, BeforeValidator(_text), WithJsonSchema(_SCALAR)]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class Intervals(_Model):
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


class Mask(_Model):
    """Text of a fixed length whose characters are hidden one by one, from one side."""

    length: Annotated[int, Field(ge=1, le=64)]
    hide: Literal["right", "left"] = "right"
    alphabet: Annotated[str, Field(min_length=1)] = "0123456789"


class Dates(_Model):
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


class Order(_Model):
    """Ordered categories, merged into runs of neighbours."""

    values: Annotated[tuple[Text, ...], Field(min_length=1)]
    runs: tuple[Annotated[int, Field(ge=2)], ...] = ()


class CsvFile(_Model):
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


class Flat(_Model):
    """The value itself, or nothing of it. Without ``values`` the domain is open."""

    values: tuple[Text, ...] = ()


Groups: TypeAlias = dict[str, Any]
Declaration: TypeAlias = Intervals | Mask | Groups | Dates | Order | CsvFile | Flat


class Hierarchies(_Model):
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


class Diversity(_Model):
    """How many sensitive values every class must show: distinct ones, or by entropy."""

    distinct: Annotated[int, Field(ge=1)] | None = None
    entropy: Annotated[float, Field(ge=1, allow_inf_nan=False)] | None = None


class Closeness(_Model):
    """How far the sensitive values of a class may be from the table's, from 0 to 1.

    ``equal`` takes all values to be equally far apart; ``ordered`` moves along their order.
    """

    equal: Annotated[float, Field(ge=0, le=1)] | None = None
    ordered: Annotated[float, Field(ge=0, le=1)] | None = None


class Column(_Model):
    """One column: its role, and what its role needs.

    ``confirm`` names the entries that a draft took from the data. A safe release refuses to
    run until they are confirmed to be public knowledge, by removing them from the list.
    """

    role: Role
    hierarchy: Hierarchies | None = None
    other: Text | None = None
    precision: Annotated[Number, Field(gt=0)] | None = None
    bounds: tuple[Number, Number] | None = None
    weight: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0
    diversity: Diversity | None = None
    closeness: Closeness | None = None
    confirm: tuple[Literal["role", "hierarchy", "other", "precision", "bounds"], ...] = ()

    model_config = ConfigDict(
        json_schema_extra={
            "if": {"properties": {"role": {"const": "quasi"}}},
            "then": {"required": ["hierarchy"]},
        }
    )

    @model_validator(mode="after")
    def _fitting(self) -> Column:
        general = self.role in ("quasi", "sensitive")
        if self.role == "quasi" and self.hierarchy is None:
            raise ValueError("a quasi column needs a hierarchy; 'hierarchy: flat' keeps or hides")
        if self.hierarchy is not None and not general:
            raise ValueError(f"a column with role '{self.role}' takes no hierarchy")
        if self.other is not None and self.hierarchy is None:
            raise ValueError("'other' needs a hierarchy")
        for name in ("precision", "bounds"):
            if getattr(self, name) is not None and self.role != "noisy":
                raise ValueError(f"'{name}' belongs to role 'noisy', not '{self.role}'")
        for name in ("diversity", "closeness"):
            if getattr(self, name) is not None and self.role != "sensitive":
                raise ValueError(f"'{name}' belongs to role 'sensitive', not '{self.role}'")
        if self.bounds is not None and self.bounds[0] >= self.bounds[1]:
            raise ValueError(f"'bounds' must rise; got {self.bounds[0]} and {self.bounds[1]}")
        return self


class PersonId(_Model):
    """Several rows may belong to one person, told by this column; one of them is used.

    A row without an id is nobody's: such tables are refused unless ``without_id`` says to drop
    those rows.
    """

    id: Text
    without_id: Literal["drop"] | None = None


Level = Annotated[int, Field(ge=0)]
Slice = Annotated[tuple[Text, ...], Field(min_length=1)]


class Slicing(_Model):
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


Slices: TypeAlias = Slicing | tuple[Slice, ...]


class Release(_Model):
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
    levels: dict[Text, Level | tuple[Level, Level]] = {}
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


class Spec(_Model):
    """A table, its unit, its columns and the release that is asked for."""

    table: Text | None = None
    unit: PersonId | Literal["one row per person"] = "one row per person"
    columns: Annotated[dict[Text, Column], Field(min_length=1)]
    release: Release | None = None

    @model_validator(mode="after")
    def _whole(self) -> Spec:
        if isinstance(self.unit, PersonId) and self.unit.id not in self.columns:
            raise ValueError(f"'unit' names the column '{self.unit.id}', which has no entry")
        release = self.release
        if release is None:
            return self
        parts = () if isinstance(release.slices, Slicing) else release.slices
        for name in [*release.levels, *(name for part in parts for name in part)]:
            if name not in self.columns:
                raise ValueError(f"'release' names the column '{name}', which has no entry")
        if release.method == "safe":
            noisy = [name for name, column in self.columns.items() if column.role == "noisy"]
            if noisy:
                raise ValueError(f"column '{noisy[0]}': {NOISY_UNDER_SAFE}")
        return self

    def with_role(self, *roles: Role) -> tuple[str, ...]:
        """The names of the columns with one of the roles, in the order of the spec."""
        return tuple(name for name, column in self.columns.items() if column.role in roles)

    @property
    def unconfirmed(self) -> dict[str, tuple[str, ...]]:
        """What a draft took from the data and nobody has confirmed, by column."""
        return {name: column.confirm for name, column in self.columns.items() if column.confirm}


def json_schema() -> dict[str, Any]:
    """A JSON Schema of the spec, for editors that complete and check while one types."""
    schema = Spec.model_json_schema(by_alias=True)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
