"""What tests of drafts share: a guess as a spec reads it, and what lies outside its domain."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from incrowd.curate.draft.guess import Guess, guess_column
from incrowd.curate.draft.hierarchy_proposal import HierarchyProposal
from incrowd.spec.build import build_hierarchy, is_open
from incrowd.spec.file import parse_spec
from incrowd.spec.hierarchies import Intervals
from incrowd.spec.model import Column


def parse_guess(guess: Guess) -> Column:
    """The column as the drafted line says it."""
    return parse_spec(f"columns:\n{guess.yaml()}\n").spec.columns[guess.column]


def draft_column(name: str, values: Sequence[object], times: int = 1) -> Column:
    """What is drafted for different values that occur so often each."""
    return parse_guess(guess_column(name, list(dict.fromkeys(values)), len(values) * times))


def make_quasi_column(ladder: HierarchyProposal) -> Column:
    """A quasi column with a ladder."""
    return parse_spec(
        f"columns: {{x: {{role: quasi, hierarchy: {ladder.hierarchy}}}}}"
    ).spec.columns["x"]


def find_outside_values(column: Column, values: Sequence[object]) -> list[object]:
    """The values that lie outside the declared domain of a column."""
    hierarchy = build_hierarchy(column, folder=Path(), values=values if is_open(column) else ())
    codes = hierarchy.encode(values).tolist()
    return [
        value for value, code in zip(values, codes, strict=True) if code >= len(hierarchy.values)
    ]


def get_hierarchy_kind(column: Column) -> str:
    """What a column's hierarchy is called in the spec; nothing if it has none."""
    if column.hierarchy is None:
        return ""
    return str(*column.hierarchy.model_dump(exclude_none=True))


def get_intervals(column: Column) -> Intervals:
    """The intervals that a column has."""
    assert column.hierarchy is not None
    declared = column.hierarchy.declaration
    assert isinstance(declared, Intervals)
    return declared
