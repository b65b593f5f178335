"""How the values of a column are written where they come from, and what they mean.

A column says it where it is not the usual way: what stands for nothing, what separates thousands
and decimals, powers of ten, a sign at either end of a number, the order of the parts of a date.
What does not fit stays as it is written, so that it is found outside the domain and not lost.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Annotated, Literal, TypeAlias

from pydantic import Field, model_validator

from incrowd.codes.values import BLANKS, canonicalize_value, parse_number
from incrowd.spec.base import SpecModel, Text

Order: TypeAlias = Literal["day-month-year", "month-day-year", "year-month-day"]
_MONTHS = {
    name: number
    for number, names in enumerate(
        ("jan january", "feb february", "mar march", "apr april", "may", "jun june", "jul july",
         "aug august", "sep sept september", "oct october", "nov november", "dec december"), 1,
    )
    for name in names.split()
}  # fmt: skip
_WRITTEN_DATES: dict[Order, str] = {
    "day-month-year": "%d.%m.%Y", "month-day-year": "%m/%d/%Y", "year-month-day": "%Y-%m-%d",
}  # fmt: skip
_PARTS = re.compile(
    r"(\d{1,4}|[A-Za-z]{3,9})\.?[\s./,-]+(\d{1,2}|[A-Za-z]{3,9})\.?[\s./,-]+(\d{1,4})"
    r"(?:[T\s]+\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:\s*[AaPp][Mm])?(?:Z|[+-]\d\d:?\d\d)?)?"
)


class ValueFormat(SpecModel):
    """The format of values; all of it is optional.

    >>> read = ValueFormat(nulls=["NA"], thousands=".", decimal=",", sign="€").make_reader()
    >>> [read(text) for text in ("NA", "1.234,50 €", "7", "?")]
    [None, '1234.5', '7', '?']
    >>> [ValueFormat(exponents=True).make_reader()(text) for text in ("1e+05", "2.5e-03")]
    ['100000', '0.0025']
    >>> read = ValueFormat(dates="day-month-year").make_reader()
    >>> [read(text) for text in ("3/4/2020", "3 Apr 2020")]
    ['2020-04-03', '2020-04-03']
    """

    nulls: tuple[Annotated[Text, Field(min_length=1)], ...] = ()
    thousands: Literal[",", ".", " ", "'", "_"] | None = None
    decimal: Literal[".", ","] | None = None
    exponents: bool = False
    sign: Annotated[str, Field(pattern=r"^[^\d\s+-][^\d+-]{0,5}$")] | None = None
    dates: Order | None = None

    @model_validator(mode="after")
    def _check_settings(self) -> ValueFormat:
        numbers = self._has_numbers
        if numbers and self.dates:
            raise ValueError(
                "a column holds numbers or dates. Give `dates` or the settings of numbers."
            )
        if self.thousands is not None and self.thousands == (self.decimal or "."):
            raise ValueError("`thousands` and `decimal` must differ. Without `decimal` it is '.'.")
        if not (numbers or self.dates or self.nulls):
            raise ValueError(
                "no format is given. Add `nulls`, `thousands`, `decimal`, `exponents`, `sign` or "
                "`dates`, or remove it."
            )
        return self

    @property
    def _has_numbers(self) -> bool:
        """Whether it says how numbers are written."""
        return bool(self.thousands or self.decimal or self.exponents or self.sign)

    @property
    def of_values(self) -> ValueFormat | None:
        """How numbers or days are written, without what stands for nothing; None if as usual."""
        if not (self._has_numbers or self.dates):
            return None
        return self.model_copy(update={"nulls": ()})

    def make_reader(self) -> Callable[[object], object]:
        """Return a function that reads a value: None, a canonical number or day, or itself."""
        nulls = {canonicalize_value(text) for text in self.nulls} | {*self.nulls}
        numeral = self.make_numeral_reader() if self._has_numbers else None

        def read(value: object) -> object:
            text = value.strip(BLANKS) if isinstance(value, str) else canonicalize_value(value)
            if text in nulls or canonicalize_value(text) in nulls:
                return None
            if not isinstance(value, str) or text is None:
                return value
            if self.dates is not None:
                return _parse_day(text, self.dates) or value
            canonical = numeral(text) if numeral is not None else None
            return value if canonical is None else canonical

        return read

    def write(self, text: str) -> str:
        """Return a canonical number or day as this format writes it, so that it is read back.

        A sign is left out, and so are powers of ten. Days have points where they come first
        (31.03.2020), which nobody takes for months, and strokes where months do (03/31/2020).

        >>> ValueFormat(thousands=".", decimal=",").write("1234.5")
        '1.234,5'
        >>> ValueFormat(dates="day-month-year").write("2020-03-31")
        '31.03.2020'
        """
        if self.dates is not None:
            return dt.date.fromisoformat(text).strftime(_WRITTEN_DATES[self.dates])
        if not self._has_numbers:
            return text
        sign, digits = ("-", text[1:]) if text.startswith("-") else ("", text)
        integer, _, fraction = digits.partition(".")
        integer = f"{int(integer):,}".replace(",", self.thousands or "")
        return sign + integer + (f"{self.decimal or '.'}{fraction}" if fraction else "")

    def make_numeral_reader(self) -> Callable[[str], str | None]:
        """Return a function that reads numbers only; thousands are apart every three digits."""
        point = re.escape(self.decimal or ".")
        apart = (
            r"[ \u00a0\u202f\u2009]" if self.thousands == " " else re.escape(self.thousands or "")
        )
        plain = r"0|[1-9]\d*"  # what begins with a zero is a code
        digits = rf"[1-9]\d{{0,2}}(?:{apart}\d{{3}})+|{plain}" if self.thousands else plain
        sign = rf"(?:\s*{re.escape(self.sign)}\s*)?" if self.sign else ""
        power = r"(?:[eE]([+-]?\d{1,3}))?" if self.exponents else "()"
        pattern = re.compile(rf"([+-]?){sign}((?:{digits})?)(?:{point}(\d+))?{power}{sign}")
        between = re.compile(apart) if self.thousands else None

        def numeral(text: str) -> str | None:
            match = pattern.fullmatch(text)
            if match is None or not (match[2] or match[3]):
                return None
            digits = between.sub("", match[2]) if between else match[2]
            text = f"{match[1]}{digits or '0'}.{match[3] or '0'}"
            plain = canonicalize_value(Decimal(f"{text}e{match[4]}") if match[4] else text)
            return plain if parse_number(plain) is not None else None

        return numeral


def _parse_day(text: str, order: Order) -> str | None:
    """Return the day of a date whose parts have an order; years have four digits."""
    match = _PARTS.fullmatch(text)
    if match is None:
        return None
    parts = dict(zip(order.split("-"), match.groups(), strict=True))
    month = _MONTHS.get(parts["month"].lower(), parts["month"])
    if len(parts["year"]) != 4:
        return None
    try:
        return dt.date(int(parts["year"]), int(month), int(parts["day"])).isoformat()
    except ValueError:
        return None
