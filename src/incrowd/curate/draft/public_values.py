"""Ranges and lists that are public by a column's name and meaning: nothing of them is read.

What is public in part is proposed whole: a percentage goes from 0 to 100, whatever was met.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from decimal import Decimal

from incrowd.curate.draft.hierarchy_proposal import HierarchyProposal, propose_years
from incrowd.spec.base import quote_scalar
from incrowd.spec.named_hierarchies import list_states
from incrowd.spec.public_list import find_distinct_texts, fits_nearly_all

_BORN = r"(^|_)(yob|geburtsjahr)(_|$)|birth_?year|year_?(of_?)?birth"
_FIRST_BORN = 1900
_CENTURY = 100
_TWO_DIGITS = "{intervals: {from: 0, to: 99, widths: [5, 10, 20, 50]}}"
_PERCENT = r"(^|_)(pct|percent|percentage|prozent|pourcentage|porcentaje)(_|$)"
_SCALE = r"likert|(^|_)(satisfaction|satisf|agree|agreement|trust|rating|likelihood|nps)(_|\d|$)"
_SCALES = {"scale_1_5": range(1, 6), "scale_1_7": range(1, 8), "scale_0_10": range(11)}
_STATE = r"(^|_)(us_?)?states?(_|$)|(^|_)state_?(code|abb\w*|name)(_|$)"
_FEW_STATES = 12  # codes that are enough where the name does not say what they are
_YES_NO = (  # English, French, German, Spanish, Italian, Portuguese, Dutch, Polish, Swedish ...
    "yes no", "oui non", "ja nein", "sí no", "si no", "sì no", "sim não", "sim nao", "ja nee",
    "tak nie", "ja nej", "ja nei", "kyllä ei", "evet hayır", "ano ne", "da nu", "igen nem",
    "да нет", "はい いいえ", "是 否",
)  # fmt: skip
_SETS = (  # values that everybody knows; that all of them are met tells nothing
    "0 1", "1 2", "true false", "y n", "t f", "j n", "o n", "s n", "male female", "m f",
    "man woman", "men women", "w m", "male female other", "m f x", "m f u", "yes no unknown",
    "alive dead", "left right", "männlich weiblich", "männlich weiblich divers", "mann frau",
    "homme femme", "hombre mujer", "masculin féminin", "masculino femenino", "maschio femmina",
    "masculino feminino", "man vrouw", *_YES_NO,
)  # fmt: skip
_KNOWN_SETS = tuple(frozenset(words.split()) for words in _SETS)


def is_known_set(texts: Sequence[str]) -> bool:
    """Return whether texts are a set of values that everybody knows, such as yes and no."""
    return frozenset(text.casefold() for text in texts) in _KNOWN_SETS


def propose_public_range(simple: str, numbers: Sequence[Decimal]) -> HierarchyProposal | None:
    """Propose a range that is public by the simplified name of a column, if its numbers fit."""
    if not numbers:
        return None
    is_percent = re.search(_PERCENT, simple) is not None
    if is_percent and min(numbers) >= 0 and 1 < max(numbers) <= 100:  # else it may be a share
        return _name("percentages", "percentages")
    this_year = dt.datetime.now(dt.UTC).year
    if re.search(_BORN, simple) and _FIRST_BORN <= min(numbers) <= max(numbers) <= this_year:
        ends = [Decimal(_FIRST_BORN), Decimal(this_year)]
        born = propose_years(ends)
        return HierarchyProposal(born.hierarchy, "years of birth, from 1900", read=False)
    is_short = 0 <= min(numbers) <= max(numbers) < _CENTURY
    if re.search(_BORN, simple) and is_short and all(number % 1 == 0 for number in numbers):
        return HierarchyProposal(_TWO_DIGITS, "years of birth with two digits", read=False)
    return None


def propose_scale(simple: str, numbers: Sequence[Decimal]) -> HierarchyProposal | None:
    """Propose the scale of answers that numbers lie on; which one it is was read from them."""
    if not re.search(_SCALE, simple) or len(numbers) < 3:
        return None
    for name, values in _SCALES.items():
        if all(number in values for number in numbers):
            return _name(name, f"answers from {values[0]} to {values[-1]}", read=True)
    return None


def propose_states(simple: str, texts: Sequence[str]) -> HierarchyProposal | None:
    """Propose the states of the US, by code where the name says so or they are many, or by name."""
    met = find_distinct_texts(texts)
    for name in ("us_states", "us_state_names"):
        if fits_nearly_all(met, list_states(name).__contains__):
            is_named = re.search(_STATE, simple) is not None
            if name == "us_state_names" or is_named or len(met) >= _FEW_STATES:
                return _name(name, "states of the US")
    return None


def suggest_public_range(simple: str) -> tuple[Decimal, Decimal] | None:
    """Return the range that a column's simplified name stands for, if it does for one."""
    this_year = dt.datetime.now(dt.UTC).year
    for pattern, low, high in (
        (_BORN, _FIRST_BORN, this_year), (_PERCENT, 0, 100), (r"(^|_)ages?(_|$)", 0, 119),
        (r"(^|_)(year|yr)(_|$)", _FIRST_BORN, this_year), (r"(^|_)hours?(_|$)", 0, 168),
        (r"(^|_)months?(_|$)", 1, 12), (r"(^|_)weeks?(_|$)", 0, 53), (r"(^|_)bmi(_|$)", 10, 80),
        (r"height_?(cm)?(_|$)", 40, 250), (r"(body_?)?weight_?(kg)?(_|$)", 0, 300),
    ):  # fmt: skip
        if re.search(pattern, simple):
            return Decimal(low), Decimal(high)
    return None


def _name(name: str, reason: str, *, read: bool = False) -> HierarchyProposal:
    return HierarchyProposal(quote_scalar(name), reason, read)
