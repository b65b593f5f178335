"""What a curator says about a release: title, publisher, intended use, the reason for ε, and so on.

All of it is optional, and none of it is read from data. It is what the curator asserts; a release
holds it word for word, and proves none of it.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, Field

from incrowd.spec.base import SpecModel, Text

NOT_STATED = "not stated"
MetadataFormat: TypeAlias = Literal[
    "croissant", "dcat", "registry", "ddi", "frictionless", "dossier"
]
METADATA_FORMATS: tuple[MetadataFormat, ...] = (
    "croissant", "dcat", "registry", "ddi", "frictionless", "dossier",
)  # fmt: skip
# The data themes of the Publications Office of the EU, which catalogs use
Theme: TypeAlias = Literal[
    "agriculture", "economy", "education", "energy", "environment", "government", "health",
    "international", "justice", "regions", "society", "technology", "transport",
]  # fmt: skip
_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
_URL = r"https?://[^\s<>\"{}|\\^`\x00-\x20]+"
_MAIL = r"[^\s@<>\"{}|\\^`,;:]+@[^\s@<>\"{}|\\^`,;:]+\.[^\s@<>\"{}|\\^`,;:]+"


def _check_words(text: str) -> str:
    """Return text without space around it; refuse what no page could show."""
    if not text.strip():
        raise ValueError("is empty. Write something, or remove it.")
    if _CONTROL.search(text):
        raise ValueError("holds control characters. Remove them.")
    return " ".join(text.split())


def _check_url(text: str) -> str:
    if not re.fullmatch(_URL, text):
        raise ValueError(f"is no address, got {text!r}. Write one that begins with https://.")
    return text


def _check_contact(text: str) -> str:
    if not re.fullmatch(f"{_URL}|{_MAIL}", text):
        raise ValueError(
            f"is neither an e-mail address nor one that begins with https://, got {text!r}. "
            "Write one of them."
        )
    return text


def _check_license(text: str) -> str:
    if not re.fullmatch(rf"{_URL}|[A-Za-z0-9][A-Za-z0-9.+-]*", text):
        raise ValueError(
            f"is neither an SPDX identifier, such as CC-BY-4.0, nor an address, got {text!r}. "
            "Write one of them."
        )
    return text


def _check_language(text: str) -> str:
    if not re.fullmatch("[a-z]{2}", text):
        raise ValueError(f"must be two letters of ISO 639-1, such as en, got {text!r}.")
    return text


Words = Annotated[Text, Field(max_length=5000), AfterValidator(_check_words)]
Url = Annotated[Text, Field(max_length=2000), AfterValidator(_check_url)]


class About(SpecModel):
    """What the curator asserts about a release.

    ``legal_basis`` and ``license`` may be addresses; the others are words. ``misuse`` says who
    could misuse the release, and how.
    """

    title: Words | None = None
    description: Words | None = None
    publisher: Words | None = None
    contact: Annotated[Text, Field(max_length=2000), AfterValidator(_check_contact)] | None = None
    url: Url | None = None
    keywords: Annotated[tuple[Words, ...], Field(max_length=100)] = ()
    theme: Theme | None = None
    health_category: Url | None = None
    region: Words | None = None
    language: Annotated[Text, AfterValidator(_check_language)] | None = None
    license: Annotated[Text, Field(max_length=2000), AfterValidator(_check_license)] | None = None
    access: Literal["public", "restricted", "non-public"] | None = None
    legal_basis: Words | None = None
    intended_use: Words | None = None
    source: Words | None = None
    epsilon_reason: Words | None = None
    misuse: Words | None = None
    refresh: Words | None = None

    def list_stated(self) -> tuple[str, ...]:
        """Return the names of the entries that say something."""
        return tuple(name for name in type(self).model_fields if getattr(self, name))

    def read_text(self, name: str) -> str:
        """Return an entry as text; "not stated" where there is none."""
        value = getattr(self, name)
        return ", ".join(value) if isinstance(value, tuple) and value else value or NOT_STATED
