"""How the values of a column seem to be written: what a draft proposes, with what it read."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from typing import Any

from incrowd.codes.values import iso_day, number
from incrowd.spec import countries
from incrowd.spec.base import quoted
from incrowd.spec.written import Order, Written

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


def propose(texts: Sequence[str]) -> Written | None:
    """How different values seem to be written; None if in the usual way."""
    rest = [text for text in texts if text not in _BESIDE_NUMBERS]
    nulls = sorted(set(texts) - set(rest))
    if rest and (more := _numbers(rest)) is not None:
        return _made(nulls, **more)
    if rest and (order := _dates(rest)) is not None:
        if order != "usual":
            return _made(nulls, dates=order)
        never = [text for text in rest if (day := iso_day(text)) and day.year in _NO_DAYS]
        return _made([*nulls, *sorted(never)] if len(never) < len(rest) else nulls)
    nulls = sorted(NULLS & set(texts))
    others = [text for text in texts if text not in NULLS]
    if "NA" in nulls and countries.looks_like(others) == "alpha-2":
        nulls.remove("NA")  # Namibia
    return _made(nulls) if others else None


def _made(nulls: Sequence[str], **more: Any) -> Written | None:
    return Written(nulls=tuple(nulls), **more) if nulls or more else None


def _numbers(texts: Sequence[str]) -> dict[str, Any] | None:
    """How numbers are written; nothing if in the usual way, None if they are none."""
    if all(number(text) is not None for text in texts):
        return {}
    signs = [sign for sign in _SIGNS if any(sign in text for text in texts)]
    powers: dict[str, Any] = {"exponents": True} if any(map(_POWER.search, texts)) else {}
    for sign, known in itertools.product(["", *signs], _SEPARATED):
        more = {**known, **powers, **({"sign": sign} if sign else {})}
        if more and _reads(Written(**more), texts):
            return more
    return None


def _dates(texts: Sequence[str]) -> Order | str | None:
    """The order of the parts of dates; "usual" if they are ISO's, None if they are none."""
    if all(iso_day(text) for text in texts):
        return "usual"
    fitting = [order for order in _ORDERS if _reads(Written(dates=order), texts)]
    if "month-day-year" in fitting and all("/" in text for text in texts):
        return "month-day-year" if "day-month-year" not in fitting else fitting[0]
    return fitting[0] if fitting else None


def ambiguous(written: Written, texts: Iterable[str]) -> bool:
    """Whether days and months could as well be the other way round."""
    swapped: dict[str, Order] = {
        "day-month-year": "month-day-year", "month-day-year": "day-month-year",
    }  # fmt: skip
    if written.dates not in swapped:
        return False
    rest = [text for text in texts if text not in written.nulls]
    return _reads(Written(dates=swapped[written.dates]), rest)


def _reads(written: Written, texts: Sequence[str]) -> bool:
    """Whether all texts are written in this way."""
    if written.dates is not None:
        read = written.reader()
        return all(read(text) != text for text in texts)
    numeral = written.numeral()
    return all(numeral(text) is not None for text in texts)


def yaml(written: Written) -> str:
    """The proposal as a spec has it."""
    known = {
        "nulls": f"[{', '.join(map(quoted, written.nulls))}]" if written.nulls else None,
        "thousands": written.thousands and f'"{written.thousands}"',
        "decimal": written.decimal and f'"{written.decimal}"',
        "exponents": "true" if written.exponents else None,
        "sign": written.sign and quoted(written.sign),
        "dates": written.dates,
    }
    return f"{{{', '.join(f'{name}: {text}' for name, text in known.items() if text)}}}"
