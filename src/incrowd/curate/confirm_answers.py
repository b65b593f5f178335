"""Answers to a draft's questions: what is right as it stands, and what stands there instead.

They come from a screen, or from a file for scripts (``incrowd confirm --answers FILE``).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError, model_validator
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from incrowd.codes.values import canonicalize_value, parse_number
from incrowd.curate.confirm import (
    UNIT,
    confirm,
    list_harmless_entries,
    list_public_entries,
)
from incrowd.curate.draft.draft import Draft, draft
from incrowd.curate.draft.hierarchy_proposal import list_widths
from incrowd.curate.role_change import Changes, set_role
from incrowd.engine.source import open_spec_table
from incrowd.engine.table import Table
from incrowd.errors import IncrowdError
from incrowd.spec.base import SpecModel, Text
from incrowd.spec.file import SpecFile
from incrowd.spec.hierarchies import Dates, Flat, Intervals, Order
from incrowd.spec.model import Role


class ColumnChange(SpecModel):
    """What is said of a column instead of what the draft says; it is confirmed by being said."""

    role: Role | None = None
    range: tuple[Text, Text] | None = None
    values: tuple[Text, ...] | None = None

    @model_validator(mode="after")
    def _check_change(self) -> ColumnChange:
        if self.role is None and self.range is None and self.values is None:
            raise ValueError("give `role`, `range` or `values`")
        if self.range is not None and self.values is not None:
            raise ValueError("`range` and `values` exclude each other")
        return self


class Answers(SpecModel):
    """Answers of a file: what is confirmed as drafted, and what is changed and so confirmed.

    ``public`` names the columns whose ranges and lists are public knowledge, or says "all".
    """

    unit: bool = False
    roles: bool = False
    formats: bool = False
    public: Literal["all"] | tuple[Text, ...] = ()
    change: dict[Text, ColumnChange] = Field(default={})


def read_answers(path: Path) -> Answers:
    """Read a file of answers.

    Raises:
        IncrowdError: The file is no YAML of answers; the message names each entry that is wrong.

    """
    try:
        plain = YAML(typ="safe").load(path.read_text(encoding="utf-8"))
        return Answers.model_validate(plain or {})
    except OSError as error:
        raise IncrowdError(f"Answers '{path}': cannot be read ({error.strerror}).") from error
    except (YAMLError, UnicodeDecodeError) as error:
        raise IncrowdError(f"Answers '{path}': not valid YAML. Correct it.") from error
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(map(str, detail['loc'])) or 'the file'}: {detail['msg']}"
            for detail in error.errors()
        )
        raise IncrowdError(
            f"Answers '{path}': {problems}. Entries are unit, roles, formats, public and change."
        ) from error


def apply_answers(file: SpecFile, answers: Answers) -> SpecFile:
    """Return the spec with the answers of a file; what they do not answer is left to confirm."""
    changer = ColumnChanger(file)
    for name, change in answers.change.items():
        changer.change(name, change)
    file = changer.file
    entries: list[tuple[str, str]] = []
    for name, entry in list_harmless_entries(file):
        if answers.roles if entry == "role" else answers.formats:
            entries.append((name, entry))
    public = tuple(file.spec.columns) if answers.public == "all" else answers.public
    entries += list_public_entries(file, public)
    if answers.unit and file.spec.confirm:
        entries.append((UNIT, UNIT))
    return confirm(file, entries) if entries else file


class ColumnChanger:
    """Changes what a draft says of columns; the table is opened only where a guess is needed."""

    def __init__(self, file: SpecFile, table: Table | None = None) -> None:
        self.file, self._table = file, table

    def change(self, name: str, change: ColumnChange) -> None:
        """Change a column, which confirms what is changed.

        Raises:
            IncrowdError: There is no such column, or it can have no such range or list.

        """
        if name not in self.file.spec.columns:
            raise IncrowdError(f"Column '{name}': not in the spec. Correct its name.")
        if change.role is not None:
            guessed = self._guessed if self._needs_guess(name, change.role) else Draft(None, ())
            changes = set_role(self.file, guessed, name, change.role)
            self.file = self.file.with_entries(changes)
        if change.range is not None:
            self.file = self.file.with_entries(_set_range(self.file, name, *change.range))
        if change.values is not None:
            self.file = self.file.with_entries(_set_values(self.file, name, change.values))

    def _needs_guess(self, name: str, role: str) -> bool:
        column = self.file.spec.columns[name]
        return role in ("quasi", "sensitive", "noisy") and column.hierarchy is None

    @cached_property
    def _guessed(self) -> Draft:
        """What a draft says of the table, should a dropped column be published after all."""
        return draft(open_spec_table(self.file, self._table))


def _set_range(file: SpecFile, name: str, low: str, high: str) -> Changes:
    """Set the public range of a column, with widths that still lead to a few groups."""
    column = file.spec.columns[name]
    declared = None if column.hierarchy is None else column.hierarchy.declaration
    if isinstance(declared, Dates):
        try:
            ends = [dt.date.fromisoformat(text) for text in (low, high)]
        except ValueError as error:
            raise IncrowdError(
                f"Column '{name}': a range of dates is written 2015-01-01 to 2024-12-31; got {low} "
                f"to {high}."
            ) from error
        place = ("columns", name, "hierarchy", "dates")
        changes: Changes = {(*place, "from"): ends[0], (*place, "to"): ends[1]}
        return changes | _confirm_hierarchy(file, name)
    if not isinstance(declared, Intervals):
        raise IncrowdError(f"Column '{name}': its hierarchy has no range. Give `values` instead.")
    numbers = [parse_number(canonicalize_value(text)) for text in (low, high)]
    first, last = numbers
    if first is None or last is None or first >= last:
        raise IncrowdError(
            f"Column '{name}': a range is two numbers that rise, such as 0 to 119; got {low} to "
            f"{high}."
        )
    fields: dict[str, Any] = {
        "from": _plain(first), "to": _plain(last),
        **({} if declared.step == 1 else {"step": _plain(declared.step)}),
        **({} if declared.open == "none" else {"open": declared.open}),
    }  # fmt: skip
    if declared.cuts:
        fields["cuts"] = [
            inside for cuts in declared.cuts
            if (inside := [_plain(x) for x in cuts if first <= x <= last])
        ]  # fmt: skip
    else:
        fields["widths"] = [_plain(x) for x in _extend_widths(declared.widths, last - first)]
    return {
        ("columns", name, "hierarchy"): {"intervals": fields}, **_confirm_hierarchy(file, name),
    }  # fmt: skip


def _extend_widths(widths: Sequence[Decimal], span: Decimal) -> list[Decimal]:
    """Return the widths that are below a span, and further ones up to about half of it."""
    below = [width for width in widths if width < span]
    if below:
        parts = int(span / below[-1]) + 1
        below += [below[-1] * units for units in list_widths(parts)[1:]] if parts > 3 else []
    return below


def _set_values(file: SpecFile, name: str, values: Sequence[str]) -> Changes:
    """Set the public list of a column's values."""
    column = file.spec.columns[name]
    declared = None if column.hierarchy is None else column.hierarchy.declaration
    if not isinstance(declared, Flat | Order) or not values:
        raise IncrowdError(
            f"Column '{name}': values are listed for `flat` and `order`. Correct its hierarchy in "
            "the spec."
        )
    kind = "flat" if isinstance(declared, Flat) else "order"
    runs = {"runs": list(declared.runs)} if isinstance(declared, Order) and declared.runs else {}
    return {
        ("columns", name, "hierarchy"): {kind: {"values": list(values), **runs}},
        **_confirm_hierarchy(file, name),
    }  # fmt: skip


def _confirm_hierarchy(file: SpecFile, name: str) -> Changes:
    left = [entry for entry in file.spec.columns[name].confirm if entry != "hierarchy"]
    return {("columns", name, "confirm"): left or None}


def _plain(number: Decimal) -> int | float:
    """Return a number as YAML has it."""
    return int(number) if number == number.to_integral_value() else float(number)
