"""What HIPAA's safe harbor leaves of a drafted column: three digits, the year, ages up to 89.

The expansion is visible: each column that is limited says so in its entry, for the curator to edit.
:mod:`incrowd.methods.safe_harbor` holds the result against the list.
"""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import replace
from typing import Any

from ruamel.yaml import YAML

from incrowd.curate.draft.guess import Guess
from incrowd.methods.person_id import simplify_name
from incrowd.methods.safe_harbor import BORN, OLDEST
from incrowd.spec.base import quote_scalar

_CENTURY = 100  # below it a year has two digits
_RULE = "safe harbor"
_ZIP = r"(^|_)(zip|zip_?code|post_?code|postal(_?code)?)(_|\d|$)"
_SMALL = r"(^|_)(city|town|county|precinct|municipality|tract|block)(_|$)"


def limit_guess(guess: Guess, year: int | None = None) -> Guess:
    """Return what the safe harbor leaves of a guess; ``year`` is the current one.

    What is not published stays as it is, ages have their last group already.
    """
    if guess.role not in ("quasi", "sensitive") or not guess.hierarchy:
        return guess
    year = dt.datetime.now(dt.UTC).year if year is None else year
    simple, declared = simplify_name(guess.column), YAML(typ="safe").load(guess.hierarchy)
    (kind, fields) = next(iter(declared.items())) if isinstance(declared, dict) else (declared, {})
    if guess.hipaa == "geographic subdivisions" or re.search(_SMALL, simple):
        return _limit_place(guess, simple, kind)
    born = BORN.search(simple) is not None
    if kind == "dates":
        return _limit_days(guess, fields, year - OLDEST if born else None)
    if kind == "intervals" and born and 0 <= fields["from"] <= fields["to"] < _CENTURY:
        reason = f"years of birth with two digits do not tell ages above {OLDEST} ({_RULE})"
        return replace(guess, role="drop", origin="", reason=reason)
    if kind == "intervals" and born and fields["from"] < year - OLDEST <= fields["to"]:
        reason = f"years from {year - OLDEST} on ({_RULE})"
        limited = {**fields, "from": year - OLDEST, "open": "lower"}
        return replace(guess, hierarchy=_format("intervals", limited), origin="", reason=reason)
    return guess


def _limit_place(guess: Guess, simple: str, kind: str) -> Guess:
    """Return three digits of ZIP codes, states, or nothing."""
    if re.search(_ZIP, simple) and kind != "postcodes":
        reason = f"ZIP codes: first three digits, 000 for small areas ({_RULE})"
        return _confirm_less(replace(guess, hierarchy="hipaa_zip", reason=reason, origin=""))
    if kind in ("us_states", "us_state_names"):
        return guess
    return replace(guess, role="drop", origin="", reason=f"smaller than a state ({_RULE})")


def _limit_days(guess: Guess, fields: dict[str, Any], first: int | None) -> Guess:
    """Return years of dates; of birth, from the first that shows no age above 89."""
    limited: dict[str, Any] = {**fields, "levels": ["year", "decade"]}
    reason = f"dates: year ({_RULE})"
    settings = guess.settings
    if first is not None and _year_of(fields["from"]) < first <= _year_of(fields["to"]):
        limited["from"] = dt.date(first, 1, 1)
        settings = (*settings, f"other: before {first}")
        reason = f"dates of birth: year, from {first} on ({_RULE})"
    return replace(
        guess, hierarchy=_format("dates", limited), reason=reason, origin="", settings=settings
    )


def _year_of(day: object) -> int:
    return int(str(day)[:4])


def _confirm_less(guess: Guess) -> Guess:
    """Return the guess with a public list, of which nothing was read from the data."""
    return replace(guess, confirm=tuple(entry for entry in guess.confirm if entry != "hierarchy"))


def _format(kind: str, fields: dict[str, Any]) -> str:
    listed = ", ".join(f"{key}: {_format_value(value)}" for key, value in fields.items())
    return f"{{{kind}: {{{listed}}}}}"


def _format_value(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_format_value, value))}]"
    return quote_scalar(value) if isinstance(value, str) else str(value)
