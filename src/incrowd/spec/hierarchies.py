"""How a column may be generalized, as a spec declares it.

A kind of hierarchy is a declaration here, with a field of its own in :class:`HierarchyChoice`, and
a builder in :mod:`incrowd.spec.build`. What others ask of a kind, it says itself: see
:class:`HierarchyKind`.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeAlias, get_args

from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler, RootModel, model_validator
from pydantic_core import CoreSchema

from incrowd.spec.base import Number, SpecModel, Text
from incrowd.spec.named_hierarchies import NAMES, expand_name


class HierarchyKind:
    """The properties of every declaration.

    ``is_ordered`` says whether the values lie on a line; None leaves it to the values, which do
    if they are numbers.
    """

    is_ordered: ClassVar[bool | None] = None

    @property
    def order(self) -> bool | None:
        """Whether the values lie on a line, by what is declared."""
        return self.is_ordered

    @property
    def open_height(self) -> int | None:
        """The number of levels of an open domain, which the rule tells; None if it is listed."""
        return None


class Intervals(SpecModel, HierarchyKind):
    """Numbers from ``from`` to ``to`` (both included) in steps, merged into wider intervals.

    Level 0 holds the steps; then one level for each of ``widths``, counted from ``from``, or
    for each list of ``cuts`` (the points where a new interval begins). ``open`` adds an
    interval for everything below, above, or both. ``bottom`` and ``top`` in place of ``from`` and
    ``to`` say the same by its usual name: bottom and top coding.
    """

    is_ordered: ClassVar[bool | None] = True

    low: Number = Field(alias="from")
    high: Number = Field(alias="to")
    step: Annotated[Number, Field(gt=0)] = Decimal(1)
    widths: tuple[Annotated[Number, Field(gt=0)], ...] = ()
    cuts: tuple[tuple[Number, ...], ...] = ()
    open: Literal["none", "lower", "upper", "both"] = "none"

    @model_validator(mode="before")
    @classmethod
    def _expand_coding(cls, value: Any) -> Any:
        """Write top and bottom coding as an end of the range with an open interval beyond it."""
        if not isinstance(value, dict):
            return value
        coded = [name for name in ("bottom", "top") if name in value]
        if not coded:
            return value
        for name, end in (("bottom", "from"), ("top", "to")):
            if name in coded and end in value:
                raise ValueError(f"`{name}` and `{end}` exclude each other. Give one of them.")
        if "open" in value:
            raise ValueError(f"`{coded[0]}` and `open` exclude each other. Remove `open`.")
        names = {"bottom": "from", "top": "to"}
        is_open = "both" if len(coded) == 2 else {"bottom": "lower", "top": "upper"}[coded[0]]
        return {names.get(name, name): x for name, x in value.items()} | {"open": is_open}

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        form = handler.resolve_ref_schema(handler(schema))
        number = form["properties"]["from"]
        for name in ("bottom", "top"):
            form["properties"][name] = {**number, "title": name.capitalize()}
        form.pop("required", None)
        form["allOf"] = [
            {"oneOf": [{"required": [name]} for name in pair]}
            for pair in (("from", "bottom"), ("to", "top"))
        ]
        return form

    @model_validator(mode="after")
    def _check_intervals(self) -> Intervals:
        if self.high < self.low:
            raise ValueError(f"`to` ({self.high}) is below `from` ({self.low}). Swap them.")
        if (self.high - self.low) / self.step > 1_000_000:
            raise ValueError("the range has more than a million steps. Use a larger `step`.")
        if self.widths and self.cuts:
            raise ValueError("`widths` and `cuts` exclude each other. Give one of them.")
        for width in self.widths:
            if width % self.step:
                raise ValueError(
                    f"the width {width} is not a multiple of the step {self.step}. Change one."
                )
        for cut in (cut for cuts in self.cuts for cut in cuts):
            if (cut - self.low) % self.step:
                raise ValueError(
                    f"the cut {cut} is not a number of steps above {self.low}. Move it."
                )
        return self


class Mask(SpecModel, HierarchyKind):
    """Text whose characters are hidden one by one, from one side.

    It has ``length`` characters or, with ``shortest``, at least that many and at most ``length``.
    From the first hidden character on, labels of short texts are filled up to ``length``, so that
    they show nothing of how long a text is.
    """

    is_ordered: ClassVar[bool | None] = False

    length: Annotated[int, Field(ge=1, le=64)]
    shortest: Annotated[int, Field(ge=1, le=64)] | None = None
    hide: Literal["right", "left"] = "right"
    alphabet: Annotated[str, Field(min_length=1)] = "0123456789"

    @model_validator(mode="after")
    def _check_lengths(self) -> Mask:
        if self.shortest is not None and self.shortest > self.length:
            raise ValueError(
                f"`shortest` ({self.shortest}) exceeds `length` ({self.length}). Swap them."
            )
        return self

    @property
    def lengths(self) -> range:
        """The numbers of characters that a text may have."""
        return range(self.shortest or self.length, self.length + 1)

    @property
    def open_height(self) -> int:
        """One level for each number of hidden characters."""
        return self.length + 1


DateLevel: TypeAlias = Literal[
    "hour", "day", "week", "weekday", "month", "quarter", "year", "decade"
]
# Each level of a line lies within the next; a week lies in no month, a weekday in nothing else.
_DATE_LINES: tuple[tuple[DateLevel, ...], ...] = (
    ("hour", "day", "month", "quarter", "year", "decade"),
    ("hour", "day", "week"),
    ("hour", "day", "weekday"),
)
_MOST_HOURS = 400_000


class Dates(SpecModel, HierarchyKind):
    """Dates from ``from`` to ``to`` (both included), by day, month, quarter, year, decade.

    Times can be published to the hour, and days by their week (of ISO 8601) or weekday.
    """

    low: dt.date = Field(alias="from")
    high: dt.date = Field(alias="to")
    levels: tuple[DateLevel, ...] = ("day", "month", "quarter", "year", "decade")
    format: str = "%Y-%m-%d"

    @property
    def order(self) -> bool | None:
        """Whether the values lie on a line: not by weekday, which joins days that lie apart."""
        return "weekday" not in self.levels

    @model_validator(mode="after")
    def _check_dates(self) -> Dates:
        if self.high < self.low:
            raise ValueError(f"`to` ({self.high}) is before `from` ({self.low}). Swap them.")
        if (self.high - self.low).days > 400_000:
            raise ValueError(
                "the range has more than a thousand years. Use a closer `from` and `to`."
            )
        if not self.levels or not any(_is_part(self.levels, line) for line in _DATE_LINES):
            lines = "; ".join(", ".join(line) for line in _DATE_LINES)
            raise ValueError(
                f"`levels` must go from fine to coarse, each within the next. Take them from one "
                f"of these, in this order: {lines}."
            )
        if "hour" in self.levels and (self.high - self.low).days * 24 > _MOST_HOURS:
            raise ValueError(
                f"the range has more than {_MOST_HOURS:,} hours. Use a closer `from` and `to`."
            )
        try:
            dt.datetime.strptime(dt.date(2001, 12, 31).strftime(self.format), self.format)
        except ValueError as error:
            raise ValueError(
                f"`format` is not a format of dates: {self.format}. Use codes such as %d.%m.%Y."
            ) from error
        return self


def _is_part(levels: tuple[DateLevel, ...], line: tuple[DateLevel, ...]) -> bool:
    """Return whether levels are some of a line, in its order."""
    return [level for level in line if level in levels] == list(levels)


class Order(SpecModel, HierarchyKind):
    """Ordered categories, merged into runs of neighbors."""

    is_ordered: ClassVar[bool | None] = True

    values: Annotated[tuple[Text, ...], Field(min_length=1)]
    runs: tuple[Annotated[int, Field(ge=2)], ...] = ()


class CsvFile(SpecModel, HierarchyKind):
    """A file in ARX form: value;level 1;...;*, one row per value, without a header."""

    file: Path
    delimiter: Annotated[str, Field(pattern=r"^[^\r\n\"]$")] | None = None

    @model_validator(mode="before")
    @classmethod
    def _expand_shorthand(cls, value: Any) -> Any:
        return {"file": value} if isinstance(value, str | Path) else value

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {"anyOf": [{"type": "string"}, handler(schema)]}


class Flat(SpecModel, HierarchyKind):
    """The value itself, or nothing of it. Without ``values`` the domain is open."""

    values: tuple[Text, ...] = ()

    @property
    def open_height(self) -> int | None:
        """Two, where no values are listed: the value and the root."""
        return None if self.values else 2


class Groups(RootModel[Annotated[dict[str, Any], Field(min_length=1)]], HierarchyKind):
    """Values by the group they belong to, and groups within groups: {group: [value, ...], ...}."""

    model_config = ConfigDict(frozen=True, defer_build=True)


class Countries(SpecModel, HierarchyKind):
    """Countries and territories of ISO 3166-1 by region and continent, shown by code or name."""

    is_ordered: ClassVar[bool | None] = False

    codes: Literal["alpha-2", "alpha-3", "names"] = "alpha-2"


class Icd(SpecModel, HierarchyKind):
    """Diagnoses of the International Classification of Diseases: category, ten, chapter."""

    is_ordered: ClassVar[bool | None] = False

    version: Literal[10, 9] = 10


class Postcodes(SpecModel, HierarchyKind):
    """Postcodes by the places that they lie in; those of digits have a mask, except the US's."""

    is_ordered: ClassVar[bool | None] = False

    country: Literal["GB", "CA", "NL", "US"]


Degrees: TypeAlias = Annotated[Number, Field(ge=-180, le=180)]


class Geo(SpecModel, HierarchyKind):
    """Cells of a public grid, by two columns of degrees that are not published themselves.

    Each of ``sizes`` is a level of squares; a square lies in one of the next size. In their place,
    each of ``hexagons`` is a resolution of the grid H3. The area from ``south`` to ``north`` and
    from ``west`` to ``east`` (across the date line where that is the smaller number) is listed.
    """

    is_ordered: ClassVar[bool | None] = False

    lat: Text
    lon: Text
    sizes: tuple[Annotated[Number, Field(gt=0, le=90)], ...] = ()
    hexagons: tuple[Annotated[int, Field(ge=0, le=15)], ...] = ()
    south: Annotated[Number, Field(ge=-90, le=90)] = Decimal(-90)
    north: Annotated[Number, Field(ge=-90, le=90)] = Decimal(90)
    west: Degrees = Decimal(-180)
    east: Degrees = Decimal(180)

    model_config = ConfigDict(
        json_schema_extra={"oneOf": [{"required": ["sizes"]}, {"required": ["hexagons"]}]}
    )

    @property
    def width(self) -> Decimal:
        """The degrees from west to east."""
        return self.east - self.west + (360 if self.east <= self.west else 0)

    @model_validator(mode="after")
    def _check_grid(self) -> Geo:
        if self.lat == self.lon:
            raise ValueError("`lat` and `lon` name one column. Name that of each.")
        if self.south >= self.north:
            raise ValueError(
                f"`south` ({self.south}) is not below `north` ({self.north}). Swap them."
            )
        if bool(self.sizes) == bool(self.hexagons):
            raise ValueError(
                "`geo` takes either `sizes` (of squares) or `hexagons` (resolutions). Give one."
            )
        for finer, coarser in pairwise(self.hexagons):
            if coarser >= finer:
                raise ValueError(
                    f"the resolution {coarser} of `hexagons` is not below {finer}. List the finest "
                    "first, such as [8, 6, 4]."
                )
        for size in self.sizes:
            if 90 % size:
                raise ValueError(
                    f"90 degrees are no multiple of {size}. Use a size such as 0.01, 0.05, 0.25 or "
                    "1, which fits between equator and pole."
                )
        for fine, coarse in pairwise(self.sizes):
            if coarse % fine or coarse <= fine:
                raise ValueError(
                    f"the size {coarse} is not a larger multiple of {fine}. Squares of one size "
                    "must lie in those of the next."
                )
        return self


Declaration: TypeAlias = (
    Intervals | Mask | Groups | Dates | Order | CsvFile | Flat | Countries | Icd | Postcodes | Geo
)
_BARE = ("flat", "countries", "icd")  # what may be said without settings, by its name alone


class HierarchyChoice(SpecModel):
    """The way to generalize a column: exactly one of these."""

    intervals: Intervals | None = None
    mask: Mask | None = None
    groups: Groups | None = None
    dates: Dates | None = None
    order: Order | None = None
    csv: CsvFile | None = None
    flat: Flat | None = None
    countries: Countries | None = None
    icd: Icd | None = None
    postcodes: Postcodes | None = None
    geo: Geo | None = None

    model_config = ConfigDict(json_schema_extra={"minProperties": 1, "maxProperties": 1})

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {"anyOf": [{"enum": [*_BARE, *NAMES]}, handler(schema)]}

    @model_validator(mode="before")
    @classmethod
    def _expand_shorthand(cls, value: Any) -> Any:
        if isinstance(value, str) and value in _BARE:
            return {value: {}}
        if isinstance(value, str) and value in NAMES:
            return expand_name(value)
        if isinstance(value, dict):
            return {k: {} if k in _BARE and v is None else v for k, v in value.items()}
        return value

    @model_validator(mode="after")
    def _check_exactly_one(self) -> HierarchyChoice:
        names = [name for name in type(self).model_fields if getattr(self, name) is not None]
        if len(names) != 1:
            kinds = ", ".join(type(self).model_fields)
            raise ValueError(f"got {', '.join(names) or 'no kind'}. Give exactly one of {kinds}.")
        return self

    @property
    def declaration(self) -> Declaration:
        """The one that was given."""
        (name,) = self.__pydantic_fields_set__ if len(self.__pydantic_fields_set__) == 1 else (
            name for name in type(self).model_fields if getattr(self, name) is not None
        )  # fmt: skip
        declared: Declaration = getattr(self, name)
        return declared


def list_kinds() -> dict[str, type[BaseModel]]:
    """Return the declaration of each kind of hierarchy, by its name in a spec."""
    return {name: get_args(f.annotation)[0] for name, f in HierarchyChoice.model_fields.items()}
