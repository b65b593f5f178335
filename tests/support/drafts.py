"""What tests of drafts share: a guess as a spec reads it, and what lies outside its domain."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from incrowd.curate.draft.guess import Guess, guess
from incrowd.curate.draft.ladders import Ladder
from incrowd.spec.build import build, is_open
from incrowd.spec.file import parse
from incrowd.spec.hierarchies import Intervals
from incrowd.spec.model import Column


def entry(made: Guess) -> Column:
    """The column as the drafted line says it."""
    return parse(f"columns:\n{made.yaml()}\n").spec.columns[made.column]


def guessed(name: str, values: Sequence[object], times: int = 1) -> Column:
    """What is drafted for different values that occur so often each."""
    return entry(guess(name, list(dict.fromkeys(values)), len(values) * times))


def by(ladder: Ladder) -> Column:
    """A quasi column with a ladder."""
    return parse(f"columns: {{x: {{role: quasi, hierarchy: {ladder.hierarchy}}}}}").spec.columns[
        "x"
    ]


def outside(column: Column, values: Sequence[object]) -> list[object]:
    """The values that lie outside the declared domain of a column."""
    hierarchy = build(column, folder=Path(), values=values if is_open(column) else ())
    codes = hierarchy.encode(values).tolist()
    return [
        value for value, code in zip(values, codes, strict=True) if code >= len(hierarchy.values)
    ]


def kind(column: Column) -> str:
    """What a column's hierarchy is called in the spec; nothing if it has none."""
    if column.hierarchy is None:
        return ""
    return str(*column.hierarchy.model_dump(exclude_none=True))


def intervals(column: Column) -> Intervals:
    """The intervals that a column has."""
    assert column.hierarchy is not None
    declared = column.hierarchy.declared
    assert isinstance(declared, Intervals)
    return declared
