"""Confirm what a draft has read from the data: one question after the other, each with its reason.

Roles and formats reveal nothing of the data; they must be correct. Lists of values and ranges are
published as part of the scheme, and the guarantee takes them for public knowledge. So they are
confirmed one by one, each beside the values that few people have.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, get_args

import numpy as np

from incrowd.codes.hierarchy import HierarchyError
from incrowd.codes.values import canonicalize_value, make_sort_key
from incrowd.engine.source import open_spec_table
from incrowd.engine.table import Table, TableError
from incrowd.errors import IncrowdError, ParameterError
from incrowd.methods.person_id import describe_rows, find_ids
from incrowd.spec.build import build_hierarchy, is_open
from incrowd.spec.file import SpecFile, SpecSource, load_spec
from incrowd.spec.hierarchies import Dates, Geo, Intervals
from incrowd.spec.model import HARMLESS_ENTRIES, Column, Confirmable, PersonId, Spec
from incrowd.spec.problem import Place

UNIT: Final = "unit"  # the place and the entry of the question about the unit
FEW = 10
_SHOWN = 12
_ROLES = {
    "identifier": "direct identifier, not published",
    "quasi": "quasi-identifier, generalized: an attacker may know it and search for people by it",
    "noisy": "published with noise",
    "sensitive": "an attacker must not learn it; k-anonymity publishes it unchanged",
    "keep": "published unchanged: no attacker knows a person's value, and it may become known",
    "weight": "survey weights: k-anonymity publishes them unchanged, `safe` does not publish them",
    "drop": "not published",
}


@dataclass(frozen=True)
class Question:
    """One thing to confirm: what the spec says, why it matters, and what the data say of it.

    ``correction`` says what to edit in the spec if the answer is no. ``rare`` says that few people
    have some of the listed values.
    """

    column: str
    entry: Confirmable | Literal["unit"]
    says: str
    why: str
    seen: tuple[str, ...] = ()
    correction: str = ""
    rare: bool = False

    @property
    def prompt(self) -> str:
        """The question to answer with yes or no."""
        if self.entry in HARMLESS_ENTRIES or self.entry == UNIT:
            return "Is this correct?"
        return "Is all of it public knowledge, known without this table?"


def list_questions(
    file: SpecFile, table: Table | None = None, *, columns: Collection[str] | None = None
) -> Iterator[Question]:
    """Yield everything that is to be confirmed: the unit, then column by column.

    Of some columns, if they are named. The table is opened, unless it is given, to show what few
    people have; it is the curator's.
    """
    waiting = file.spec.unconfirmed_entries
    if table is None and not file.spec.is_confirmed:
        table = open_spec_table(file)
    if file.spec.confirm and columns is None and table is not None:
        yield _ask_unit(file.spec, table)
    for name, entries in waiting.items():
        if columns is not None and name not in columns:
            continue
        column = file.spec.columns[name]
        for entry in entries:
            yield _make_question(file, name, column, entry, table)


def _ask_unit(spec: Spec, table: Table) -> Question:
    """Ask whether a row or a person is protected, with the rows of each id."""
    why = (
        "The guarantee protects this unit. If a person has several rows and the unit is a row, the "
        "rows of one person together are not protected."
    )
    ids = find_ids(table)
    if isinstance(spec.unit, PersonId):
        rows, chosen = table.rows(), spec.unit.id
        used = (
            "one row of each person is used"
            if spec.unit.rows == 1
            else f"up to {spec.unit.rows} rows of each person are used, a number that must not "
            "depend on the table"
        )
        if spec.unit.per_group > 1:
            used += f"; up to {spec.unit.per_group} of them count in one group"
        says = f"one person, identified by '{chosen}'; {used}"
        seen = []
        if chosen in table.columns:
            counts = table.count_rows_per_id(chosen)
            people = f"{counts.ids:,} people in {rows:,} rows"
            seen = [f"{people}; {describe_rows(counts, 'person')}."]
        ids.pop(chosen, None)
    else:
        says, seen = f"one row per person ({table.rows():,} rows)", []
    repeated = [
        f"'{name}': {id_counts.describe()}." for name, id_counts in ids.items() if id_counts.is_unit
    ]
    if not isinstance(spec.unit, PersonId) and not repeated:
        seen.append("No column looks like an id that several rows share.")
    correction = (
        "set `unit` to `one row per person`, or to `{id: COLUMN}` if people have several rows"
    )
    return Question(UNIT, UNIT, says, why, (*seen, *repeated), correction)


def _make_question(
    file: SpecFile, name: str, column: Column, entry: Confirmable, table: Table | None
) -> Question:
    if entry == "role":
        why = "A wrong role publishes what must be hidden, or hides what could be published."
        correction = "set `role` to identifier, quasi, sensitive, keep or drop"
        says = f"{column.role}: {_ROLES[column.role]}"
        return Question(name, entry, says, why, correction=correction)
    says = describe_entry(file, name, entry)
    if entry == "written":
        why = "A wrong format changes numbers and dates, and turns nulls into values."
        correction = "correct `written`, or remove it if values are plain numbers and ISO dates"
        return Question(name, entry, says, why, correction=correction)
    if entry == "hierarchy" and column.hierarchy is not None:
        declared = column.hierarchy.declaration
        if isinstance(declared, Geo):
            area = f"{declared.south} to {declared.north}, {declared.west} to {declared.east}"
            why = (
                f"The area {area} degrees was rounded from the data, and all of its cells are "
                "published. It must be public knowledge: an end that exists because of one person "
                "reveals where that person is."
            )
            correction = (
                "set `south`, `north`, `west` and `east` to an area known without the table"
            )
            return Question(name, entry, says, why, correction=correction)
        counts = {} if table is None else _count_values(table, name)
        if isinstance(declared, Intervals | Dates):
            ends = f"{declared.low} to {declared.high}"
            why = (
                f"The range {ends} was rounded from the data and is published. It must be public "
                "knowledge: an end that exists because of one person reveals that person."
            )
            correction = "set `from` and `to` to a range that is known without the table"
            return Question(name, entry, says, why, _describe_extremes(counts), correction)
        why = (
            "Every listed value is published, even if no published row has it. All of them must be "
            "public knowledge, rare values included."
        )
        correction = "list the values that are known without the table, and no others"
        rows = _count_listed_values(file, column, counts)
        few = sorted((count, text) for text, count in rows.items() if 0 < count < FEW)
        seen = _describe_rare_values(few) if rows else ()
        return Question(name, entry, says, why, seen, correction, rare=bool(few))
    if entry == "function_of":
        why = (
            "In every row looked at, these columns determine it. Slices are put together by this "
            "declaration, so it must be public knowledge: by what the columns mean, not by what "
            "the table happens to hold."
        )
        correction = "set `function_of` to the columns that always determine it, or remove it"
        return Question(name, entry, says, why, correction=correction)
    why = "It was read from the data and is published. It must be public knowledge."
    correction = f"set `{entry}` to a value that is known without the table"
    return Question(name, entry, says, why, correction=correction)


def describe_entry(file: SpecFile, name: str, entry: str) -> str:
    """Return the entry as the spec has it, without comments."""
    declared = file.spec.columns[name].model_dump(mode="json", by_alias=True, exclude_defaults=True)
    return _format_value(declared.get(entry))


def _format_value(value: object) -> str:
    """Format nested values on one line, with long lists shortened."""
    match value:
        case dict():
            return ", ".join(f"{key}: {_format_value(inner)}" for key, inner in value.items())
        case list() | tuple():
            texts = [_format_value(inner) for inner in value]
            more = f" ... ({len(texts)} in all)" if len(texts) > 2 * _SHOWN else ""
            return f"[{', '.join(texts[: 2 * _SHOWN])}{more}]"
        case _:
            return str(value)


def _count_values(table: Table, name: str) -> dict[str, int]:
    """Count the rows that have each value."""
    if name not in table.columns:
        return {}
    values: dict[str, int] = {}
    try:
        for tally in table.iter_tallies([name]):
            counts = np.zeros(len(tally.values[0]), dtype=np.int64)
            np.add.at(counts, tally.codes[:, 0], tally.counts)
            for value, count in zip(tally.values[0], counts.tolist(), strict=True):
                if (text := canonicalize_value(value)) is not None:
                    values[text] = values.get(text, 0) + count
    except TableError:
        return {}
    return values


def _describe_extremes(counts: dict[str, int]) -> tuple[str, ...]:
    ordered = sorted(counts, key=make_sort_key)
    if not ordered:
        return ()
    ends = (ordered[0], ordered[-1])
    listed = " and ".join(
        f"{text} ({counts[text]:,} row{'' if counts[text] == 1 else 's'})" for text in ends
    )
    return (f"Smallest and largest value in the table: {listed}.",)


def _count_listed_values(file: SpecFile, column: Column, counts: dict[str, int]) -> dict[str, int]:
    """Count the rows of each listed value; none where the domain is open."""
    if is_open(column):
        return {}
    try:
        hierarchy = build_hierarchy(column, folder=file.folder)
    except HierarchyError:
        return {}
    rows_by_value = dict.fromkeys(hierarchy.values, 0)
    for text, code in zip(counts, hierarchy.encode(counts).tolist(), strict=True):
        if code < len(hierarchy.values):
            rows_by_value[hierarchy.values[code]] += counts[text]
    return rows_by_value


def _describe_rare_values(few: Sequence[tuple[int, str]]) -> tuple[str, ...]:
    """Describe the listed values that few rows have."""
    if not few:
        return (f"Every listed value in the table occurs in at least {FEW} rows.",)
    listed = ", ".join(f"{text} ({count})" for count, text in few[:_SHOWN])
    more = f" and {len(few) - _SHOWN} more" if len(few) > _SHOWN else ""
    return (f"Values in fewer than {FEW} rows: {listed}{more}.",)


def confirm(
    spec: SpecSource,
    answers: Iterable[str | tuple[str, str]] | None = None,
    *,
    all: bool = False,  # noqa: A002 - the word that says it
    unit: bool = False,
) -> SpecFile:
    """Confirm what a draft read from the data, and return a spec that can be published.

    Roles and formats of values reveal nothing. Lists of values and bounds are published: by
    confirming them you assert that they are public knowledge, also to a person who has never seen
    the table. The guarantee rests on that assertion.

    Args:
        spec: A draft, or a spec with entries to confirm. It is not changed.
        answers: What to confirm. A column name confirms all entries of the column; a pair such as
            ``("zip", "hierarchy")`` confirms one entry.
        all: Confirm every entry of every column, lists of values and bounds included.
        unit: Confirm the unit of privacy: a row, or all rows that share an id. ``all`` does not
            confirm it, because the whole guarantee rests on it.

    Returns:
        The spec without the confirmed entries.

    Raises:
        IncrowdError: A column or entry is unknown, or the call names nothing to confirm.

    Examples:
        >>> import polars as pl
        >>> import incrowd as ic
        >>> draft = ic.draft(pl.DataFrame({"ward": ["A", "B", "A", "B"] * 50}))
        >>> sorted(ic.confirm(draft, unit=True).spec.unconfirmed_entries)
        ['ward']
        >>> ic.confirm(draft, ["ward"], unit=True).spec.is_confirmed
        True
    """
    file = load_spec(spec)
    if isinstance(answers, str):
        raise ParameterError("answers", "be a list of columns", answers)
    waiting = file.spec.unconfirmed_entries
    left: dict[str, list[str]] = {name: list(entries) for name, entries in waiting.items()}
    if all:
        answers = list(waiting)
    elif answers is None and not unit:
        listed = "; ".join(f"{name}: {', '.join(entries)}" for name, entries in waiting.items())
        listed = "; ".join(filter(None, (*file.spec.confirm, listed)))
        raise IncrowdError(
            "Nothing is named to confirm. Name columns, all=True or unit=True; not confirmed: "
            f"{listed or 'nothing'}."
        )
    answers = list(answers or ())
    unit = unit or (UNIT, UNIT) in answers
    changed = set()
    for name, entry in _expand_answers(file, answers):
        if entry in left.get(name, []):
            left[name].remove(entry)
            changed.add(name)
    changes: dict[Place, list[str] | None] = {
        ("columns", name, "confirm"): left[name] or None for name in sorted(changed)
    }
    if unit and file.spec.confirm:
        changes["confirm",] = None
    return file.with_entries(changes) if changes else file


def _expand_answers(
    file: SpecFile, answers: Iterable[str | tuple[str, str]]
) -> Iterator[tuple[str, str]]:
    """Yield columns with single entries; refuse columns and entries that do not exist."""
    columns, entries = file.spec.columns, get_args(Confirmable)
    for answer in answers:
        if answer == (UNIT, UNIT):
            continue
        name, entry = (answer, None) if isinstance(answer, str) else answer
        if name not in columns:
            close = difflib.get_close_matches(name, list(columns), n=1)
            hint = f"Did you mean '{close[0]}'?" if close else "Correct its name."
            raise IncrowdError(f"Column '{name}': not in the spec. {hint}")
        if entry is None:
            yield from ((name, entry) for entry in columns[name].confirm)
        elif entry in entries:
            yield name, entry
        else:
            raise IncrowdError(
                f"Column '{name}': no entry '{entry}' to confirm. Entries are {', '.join(entries)}."
            )


def list_harmless_entries(file: SpecFile) -> list[tuple[str, str]]:
    """List the entries that reveal nothing: roles and how values are written."""
    return [
        (name, entry)
        for name, entries in file.spec.unconfirmed_entries.items()
        for entry in entries
        if entry in HARMLESS_ENTRIES
    ]


def list_public_entries(file: SpecFile, columns: Sequence[str]) -> list[tuple[str, str]]:
    """List the entries of some columns whose values and bounds are public knowledge."""
    for name in columns:
        if name not in file.spec.columns:
            raise IncrowdError(f"Column '{name}': not in the spec. Correct its name.")
    return [
        (name, entry)
        for name in columns
        for entry in file.spec.unconfirmed_entries.get(name, ())
        if entry not in HARMLESS_ENTRIES
    ]


def save_spec(file: SpecFile) -> None:
    """Write a spec back to its file, whole or not at all."""
    assert file.path is not None
    draft = Path(f"{file.path}.part")
    try:
        draft.write_text(file.text(), encoding="utf-8")
        os.replace(draft, file.path)
    finally:
        draft.unlink(missing_ok=True)
