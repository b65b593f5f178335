"""How the values of a column seem to be written: what a draft proposes, with what it read."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from typing import Any

from incrowd.codes.values import parse_iso_day, parse_number
from incrowd.spec import countries
from incrowd.spec.base import quote_scalar
from incrowd.spec.value_format import Order, ValueFormat

NULLS = frozenset({"NA", "N/A", "n/a", "N.A.", "#N/A", "NULL", "null", ".", "..", "-", "--", "?"})
_BESIDE_NUMBERS = NULLS | {"NaN", "nan", "None", "none", "na", "*", "missing", "Missing", "unknown"}
_SIGNS = ("%", "$", "€", "£", "¥", "USD", "EUR", "GBP", "CHF", "kg", "cm")
_SEPARATED: tuple[dict[str, str], ...] = (
    {}, {"thousands": ","}, {"decimal": ","}, {"thousands": ".", "decimal": ","},
    {"thousands": " "}, {"thousands": " ", "decimal": ","},
    {"thousands": "'"}, {"thousands": "'", "decimal": ","},
)  # fmt: skip
_POWER = re.compile(r"\d[eE][+-]\d{1,3}")  # without a sign it may be a code: 3E12
_NO_DAYS = (1, 9999)  # years that stand for nothing
_ORDERS: tuple[Order, ...] = ("day-month-year", "month-day-year", "year-month-day")


def propose_format(texts: Sequence[str]) -> ValueFormat | None:
    """Propose how different values are written; None if in the usual way."""
    rest = [text for text in texts if text not in _BESIDE_NUMBERS]
    nulls = sorted(set(texts) - set(rest))
    if rest and (more := _detect_number_format(rest)) is not None:
        return _make_format(nulls, **more)
    if rest and (order := _detect_date_order(rest)) is not None:
        if order != "usual":
            return _make_format(nulls, dates=order)
        never = [text for text in rest if (day := parse_iso_day(text)) and day.year in _NO_DAYS]
        return _make_format([*nulls, *sorted(never)] if len(never) < len(rest) else nulls)
    nulls = sorted(NULLS & set(texts))
    others = [text for text in texts if text not in NULLS]
    if "NA" in nulls and countries.recognize_countries(others) == "alpha-2":
        nulls.remove("NA")  # Namibia
    return _make_format(nulls) if others else None


def _make_format(nulls: Sequence[str], **more: Any) -> ValueFormat | None:
    return ValueFormat(nulls=tuple(nulls), **more) if nulls or more else None


def _detect_number_format(texts: Sequence[str]) -> dict[str, Any] | None:
    """Detect how numbers are written: empty if in the usual way, None if they are none."""
    if all(parse_number(text) is not None for text in texts):
        return {}
    joined = "\n".join(texts)  # searched at once; no sign and no power has a line break
    signs = [sign for sign in _SIGNS if sign in joined]
    powers: dict[str, Any] = {"exponents": True} if _POWER.search(joined) else {}
    for sign, separators in itertools.product(["", *signs], _SEPARATED):
        more = {**separators, **powers, **({"sign": sign} if sign else {})}
        if more and _is_written_like(ValueFormat(**more), texts):
            return more
    return None


def _detect_date_order(texts: Sequence[str]) -> Order | str | None:
    """Detect the order of the parts of dates: "usual" for ISO, None if they are none."""
    if all(parse_iso_day(text) for text in texts):
        return "usual"
    fitting = [order for order in _ORDERS if _is_written_like(ValueFormat(dates=order), texts)]
    if "month-day-year" in fitting and all("/" in text for text in texts):
        return "month-day-year" if "day-month-year" not in fitting else fitting[0]
    return fitting[0] if fitting else None


def has_ambiguous_dates(written: ValueFormat, texts: Iterable[str]) -> bool:
    """Return whether days and months could as well be the other way round."""
    swapped: dict[str, Order] = {
        "day-month-year": "month-day-year", "month-day-year": "day-month-year",
    }  # fmt: skip
    if written.dates not in swapped:
        return False
    rest = [text for text in texts if text not in written.nulls]
    return _is_written_like(ValueFormat(dates=swapped[written.dates]), rest)


def _is_written_like(written: ValueFormat, texts: Sequence[str]) -> bool:
    """Return whether all texts are written in this way."""
    if written.dates is not None:
        read = written.make_reader()
        return all(read(text) != text for text in texts)
    numeral = written.make_numeral_reader()
    return all(numeral(text) is not None for text in texts)


def format_as_yaml(written: ValueFormat) -> str:
    """Return the proposal as a spec has it."""
    as_yaml = {
        "nulls": f"[{', '.join(map(quote_scalar, written.nulls))}]" if written.nulls else None,
        "thousands": written.thousands and f'"{written.thousands}"',
        "decimal": written.decimal and f'"{written.decimal}"',
        "exponents": "true" if written.exponents else None,
        "sign": written.sign and quote_scalar(written.sign),
        "dates": written.dates,
    }
    return f"{{{', '.join(f'{name}: {text}' for name, text in as_yaml.items() if text)}}}"
