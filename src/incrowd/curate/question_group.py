"""Questions of one kind, asked together: "these 14 columns are 0/1" is one question.

A wide draft has hundreds of entries to confirm and few kinds of them: a role, a way of writing, a
range, a list. What is confirmed is the same as one by one: every column of a group is listed with
what the draft says of it and what the data say. A group has the same answer for all its columns,
or other answers for those that are named.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from incrowd.curate.confirm import UNIT, Question, confirm, list_questions
from incrowd.engine.table import Table
from incrowd.findings import format_count
from incrowd.spec.file import SpecFile
from incrowd.spec.hierarchies import CsvFile, Dates, Flat, Groups, Intervals, Order
from incrowd.spec.model import HARMLESS_ENTRIES, Column

_MOST_SHARED = 6  # hierarchies that several columns share, each a question of its own
_KINDS = {
    "unit": "the protected unit",
    "role": "role",
    "nulls": "values that stand for null",
    "numbers": "how numbers are written",
    "dates": "how dates are written",
    "shared": "the same range or list",
    "ranges": "ranges of numbers, rounded from the data",
    "days": "ranges of dates, rounded from the data",
    "rare lists": "lists with values that few people have",
    "lists": "lists of values",
    "rules": "other hierarchies",
    "files": "hierarchies from files",
    "functions": "functions of other columns",
    "other": "further entries",
}


@dataclass(frozen=True)
class QuestionGroup:
    """Questions of one kind, and what they have in common.

    Attributes:
        kind: "role", "ranges", "lists" and so on.
        title: What is asked, in a few words.
        questions: One for each column and entry.
        says: What the draft says of all of them; empty where it differs.
    """

    kind: str
    title: str
    questions: tuple[Question, ...]
    says: str = ""

    def keep_open(
        self, file: SpecFile, places_asked: Collection[tuple[str, str]]
    ) -> QuestionGroup | None:
        """Return the group without what is confirmed or was asked; None if nothing is left."""
        waiting = {(UNIT, entry) for entry in file.spec.confirm} | {
            (name, entry)
            for name, entries in file.spec.unconfirmed_entries.items()
            for entry in entries
        }
        left = tuple(
            question
            for question in self.questions
            if (place := (question.column, question.entry)) in waiting and place not in places_asked
        )
        return replace(self, questions=left) if left else None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns, in the order of the spec."""
        return tuple(question.column for question in self.questions)

    @property
    def prompt(self) -> str:
        """The question to answer."""
        first = self.questions[0]
        if len(self.questions) == 1:
            return first.prompt
        if first.entry in HARMLESS_ENTRIES:
            return f"Is this correct for all {len(self.questions)} columns?"
        return (
            f"Is all of it public knowledge, known without this table, for all "
            f"{len(self.questions)} columns?"
        )

    @property
    def why(self) -> str:
        """Why it matters."""
        return self.questions[0].why

    @property
    def entry(self) -> str:
        """The entry that all of them are about."""
        return self.questions[0].entry


def group_questions(file: SpecFile, table: Table | None = None) -> list[QuestionGroup]:
    """Return everything that is to be confirmed, one group for each kind of thing.

    Args:
        file: The draft.
        table: Its table; by default the one that the spec names.

    Returns:
        The unit first, then roles, formats, and what is published: at most about thirty groups,
        however many columns there are.
    """
    questions = list(list_questions(file, table))
    shared = _find_shared(file, questions)
    groups: dict[tuple[int, str], list[Question]] = {}
    order = list(_KINDS)
    for question in questions:
        kind, part = _find_kind(file, question, shared)
        groups.setdefault((order.index(kind), part), []).append(question)
    ordered = sorted(groups.items(), key=lambda group: group[0][0])  # stable: by the spec's order
    return [_make_group(order[place], part, tuple(members)) for (place, part), members in ordered]


def confirm_group(file: SpecFile, group: QuestionGroup, *, but: Collection[str] = ()) -> SpecFile:
    """Return the spec with the entries of a group confirmed, but those of some columns."""
    answers = [
        (question.column, question.entry)
        for question in group.questions
        if question.column not in but
    ]
    return confirm(file, answers) if answers else file


def _find_shared(file: SpecFile, questions: Sequence[Question]) -> set[str]:
    """Return the hierarchies, as text, that several columns share: the most frequent ones."""
    texts = Counter(
        _dump_hierarchy(file.spec.columns[question.column])
        for question in questions
        if question.entry == "hierarchy" and not question.rare
    )
    return {text for text, count in texts.most_common(_MOST_SHARED) if count > 1}


def _dump_hierarchy(column: Column) -> str:
    return "" if column.hierarchy is None else column.hierarchy.model_dump_json(by_alias=True)


def _find_kind(file: SpecFile, question: Question, shared: Collection[str]) -> tuple[str, str]:
    """Return the kind of a question, and what tells groups of one kind apart."""
    if question.entry == UNIT:
        return "unit", ""
    column = file.spec.columns[question.column]
    if question.entry == "role":
        return "role", column.role
    if question.entry == "written" and column.written is not None:
        entries = set(column.written.model_dump(exclude_defaults=True))
        if entries <= {"nulls"}:
            return "nulls", ""
        return ("dates", "") if "dates" in entries else ("numbers", "")
    if question.entry == "function_of":
        return "functions", ""
    if question.entry != "hierarchy" or column.hierarchy is None:
        return "other", question.entry
    if not question.rare and (text := _dump_hierarchy(column)) in shared:
        return "shared", text
    match column.hierarchy.declaration:
        case Intervals():
            return "ranges", ""
        case Dates():
            return "days", ""
        case Flat() | Order() | Groups():
            return ("rare lists" if question.rare else "lists"), ""
        case CsvFile():
            return "files", ""
        case _:
            return "rules", ""


def _make_group(kind: str, part: str, questions: tuple[Question, ...]) -> QuestionGroup:
    first = questions[0]
    columns = format_count(len(questions), "column", "columns")
    says = first.says if len({question.says for question in questions}) == 1 else ""
    if kind == "unit":
        return QuestionGroup(kind, _KINDS[kind], questions, says)
    if kind == "role":
        return QuestionGroup(kind, f"role {part} ({columns})", questions, says)
    words = f"`{part}`" if kind == "other" else _KINDS[kind]
    return QuestionGroup(kind, f"{words} ({columns})", questions, says)
