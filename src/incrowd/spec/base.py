"""What the parts of a spec are made of: frozen models, numbers as written, scalars as text."""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema


def _convert_to_decimal(value: Any) -> Any:
    """Return a number as it is written, not as a binary float: 0.1 is a tenth."""
    return Decimal(repr(value)) if isinstance(value, float) else value


def _convert_to_text(value: Any) -> Any:
    """Return a YAML scalar as text: 39 and true may be values of a column."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float | Decimal | dt.date) else value


_SCALAR = {"type": ["string", "number", "boolean"]}
Number = Annotated[
    Decimal,
    BeforeValidator(_convert_to_decimal),
    Field(allow_inf_nan=False),
    WithJsonSchema({"type": "number"}),
]
Text = Annotated[str, BeforeValidator(_convert_to_text), WithJsonSchema(_SCALAR)]


class SpecModel(BaseModel):
    """A part of a spec: it does not change, and takes no keys that it does not know.

    Its checks are built when they are first needed, which for most parts is within another's.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, defer_build=True)


def quote_scalar(text: str) -> str:
    """Return text as a YAML scalar, in quotes where it needs them."""
    plain = re.fullmatch(r"[A-Za-z_][\w ./-]*", text) and not re.fullmatch(
        r"(?i)(true|false|yes|no|on|off|null|y|n)", text
    )
    if plain and text == text.strip():
        return text
    return f'"{"".join(map(_escape_letter, text))}"'


def _escape_letter(letter: str) -> str:
    """Return a letter as it stands between double quotes of YAML."""
    if letter in '"\\':
        return f"\\{letter}"
    code = ord(letter)
    if letter.isprintable():
        return letter
    return f"\\u{code:04x}" if code < 1 << 16 else f"\\U{code:08x}"
