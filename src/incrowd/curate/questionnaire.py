"""What catalogs, registries and regulators ask that Incrowd cannot know: one screen of questions.

The answers are entries of ``about`` in the spec. They are what the curator asserts; an open
question stays "not stated" in everything that is made from them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from incrowd.errors import IncrowdError
from incrowd.spec.about import NOT_STATED, About, Theme
from incrowd.spec.file import SpecFile
from incrowd.spec.problem import Place


@dataclass(frozen=True)
class AboutQuestion:
    """One question: the entry of ``about`` that answers it, its words, and the answer so far.

    ``in_record`` says whether a complete record for the registry of deployments needs it; the
    others serve catalogs. ``choices`` are the answers that it may have, if they are few.
    """

    entry: str
    words: str
    hint: str
    answer: str
    in_record: bool
    choices: tuple[str, ...] = ()

    @property
    def is_stated(self) -> bool:
        """Whether there is an answer."""
        return self.answer != NOT_STATED


_RECORD = {  # ten, for a complete record of the third tier
    "title": ("What is the release called?", "as a catalog lists it"),
    "description": ("What does it contain?", "one or two sentences"),
    "publisher": ("Who publishes it?", "an organization"),
    "theme": ("Which theme does it belong to?", "a theme of EU data catalogs"),
    "region": ("Which region does it describe?", "a country or an area"),
    "source": ("Where do the data come from, and whom do they describe?", "population and source"),
    "intended_use": ("What is it meant for?", "uses, and recipients"),
    "epsilon_reason": ("Why this ε?", "who decided it, and by what"),
    "misuse": ("Who could misuse it, and how?", "recipients, and whoever gets it from them"),
    "refresh": ("Will the same people be in later releases?", "none, or how often"),
}
_CATALOG = {
    "contact": ("Whom should users ask?", "an e-mail address, or one that begins with https://"),
    "url": ("At which address will it be found?", "begins with https://"),
    "keywords": ("Which keywords describe it?", "separated by commas"),
    "language": ("In which language is it described?", "two letters, such as en"),
    "license": ("Under which license?", "an SPDX identifier, such as CC-BY-4.0, or an address"),
    "access": ("Who may get it?", "public, restricted or non-public"),
    "legal_basis": ("On which legal basis?", "words, or the address of the legislation"),
    "health_category": ("Of health data: which category?", "the address of a HealthDCAT-AP term"),
}
_CHOICES = {"theme": get_args(Theme), "access": ("public", "restricted", "non-public")}


def list_about_questions(file: SpecFile) -> list[AboutQuestion]:
    """Return the screen of questions with the answers of a spec: ten for a record, then others."""
    about = file.spec.about or About()
    return [
        AboutQuestion(
            entry, words, hint, about.read_text(entry), questions is _RECORD,
            _CHOICES.get(entry, ()),
        )
        for questions in (_RECORD, _CATALOG)
        for entry, (words, hint) in questions.items()
    ]  # fmt: skip


def answer_about(file: SpecFile, answers: Mapping[str, str | Sequence[str] | None]) -> SpecFile:
    """Return the spec with answers to questions, by entry; empty ones remove what was there.

    Raises:
        SpecError: An answer is not valid. The message names every such answer.
        IncrowdError: There is no such question.

    """
    changes = list_about_changes(file, answers)
    return file.with_entries(changes) if changes else file


def list_about_changes(
    file: SpecFile, answers: Mapping[str, str | Sequence[str] | None]
) -> dict[Place, Any]:
    """Return what answers change in the document of a spec; see :func:`answer_about`."""
    unknown = sorted(set(answers) - {*_RECORD, *_CATALOG})
    if unknown:
        raise IncrowdError(
            f"'{unknown[0]}' is no entry of `about`. Known: {', '.join((*_RECORD, *_CATALOG))}."
        )
    values = {entry: _read_answer(entry, answer) for entry, answer in answers.items()}
    stated = {entry: value for entry, value in values.items() if value}
    if file.spec.about is None:
        return {("about",): stated} if stated else {}
    if not stated and not {*file.spec.about.list_stated()} - {*values}:
        return {("about",): None}
    return {("about", entry): value for entry, value in values.items()}


def _read_answer(entry: str, answer: str | Sequence[str] | None) -> str | list[str] | None:
    """Return an answer as the spec holds it; None for an empty one."""
    if answer is None:
        return None
    if entry == "keywords":
        parts = answer.split(",") if isinstance(answer, str) else answer
        return [part.strip() for part in parts if part.strip()] or None
    return (answer if isinstance(answer, str) else ", ".join(answer)).strip() or None
