"""From a table and a spec to distinct tuples of codes with counts, in one pass.

A table that was released is counted by its labels, whoever made it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import partial

import numpy as np

from incrowd.arrays import Codes, Floats
from incrowd.codes.counted_table import COUNT, CountedTable, DistinctRows, PublishedTable
from incrowd.codes.frequency import Frequencies, merge_tuples
from incrowd.codes.hierarchy import ROOT, Hierarchy
from incrowd.codes.person_sets import PeopleTable, group_by_person, merge_codes
from incrowd.codes.values import canonicalize_value, parse_number
from incrowd.engine.table import Coder, Table, TableError
from incrowd.spec.build import ColumnHierarchies


def count_tuples(
    table: Table, declared: ColumnHierarchies, *, levels: Sequence[int] | None = None
) -> CountedTable:
    """Count distinct tuples of the columns at the given levels (by default the values).

    Each distinct value is coded once, not each row.
    """
    names = declared.names
    levels = tuple(levels) if levels is not None else (0,) * len(names)
    table = table.gather_columns(names, coarse=any(levels))
    hierarchies = build_hierarchies(table, declared)
    coders = {
        name: _make_level_coder(hierarchy, level)
        for name, hierarchy, level in zip(names, hierarchies, levels, strict=True)
    }
    return CountedTable(names, hierarchies, levels, table.count(names, coders))


def count_people(
    table: Table,
    declared: ColumnHierarchies,
    person: str,
    *,
    levels: Sequence[int] | None = None,
    per_group: int = 1,
) -> PeopleTable:
    """Count people by distinct tuples of the columns at the given levels; each once per tuple.

    ``person`` is the column that tells people apart; rows without one do not count. With
    ``per_group`` above 1 rows are counted, at most so many of each person per tuple.
    """
    names = declared.names
    levels = tuple(levels) if levels is not None else (0,) * len(names)
    hierarchies = build_hierarchies(table, declared)
    coders = {
        name: _make_level_coder(hierarchy, level)
        for name, hierarchy, level in zip(names, hierarchies, levels, strict=True)
    }
    members, row_codes = table.code_people(person, names, coders, alike=per_group)
    codes, places = merge_codes(row_codes)
    sets = group_by_person(members, places, len(codes), per_group=per_group)
    return PeopleTable(names, hierarchies, levels, Frequencies(codes, sets.counts), sets)


def count_tuples_with_kept(
    table: Table, declared: ColumnHierarchies, kept_columns: Sequence[str]
) -> DistinctRows:
    """Count distinct tuples of generalized and kept columns together, in one pass."""
    table = table.gather_columns([*declared.names, *kept_columns])
    columns, hierarchies = declared.names, build_hierarchies(table, declared)
    values = {
        name: sorted(
            {normalize_kept_value(value): None for value in table.values(name)}, key=_value_sort_key
        )
        for name in kept_columns
    }
    coders = {
        name: _make_level_coder(hierarchy, 0)
        for name, hierarchy in zip(columns, hierarchies, strict=True)
    }
    for name, distinct_values in values.items():
        coders[name] = _make_place_coder(distinct_values)
    frequencies = table.count([*columns, *kept_columns], coders)
    codes, width = frequencies.codes, len(columns)
    # Tuples are in order, so those alike in the first columns are neighbors.
    new = np.append(True, (codes[1:, :width] != codes[:-1, :width]).any(axis=1))[: len(codes)]
    owner = np.cumsum(new) - 1
    starts = np.flatnonzero(new)
    counts = np.add.reduceat(frequencies.counts, starts) if len(starts) else frequencies.counts
    distinct = Frequencies(codes[starts, :width], counts)
    counted_table = CountedTable(columns, hierarchies, (0,) * width, distinct)
    return DistinctRows(counted_table, frequencies, owner, values)


def build_hierarchies(table: Table, declared: ColumnHierarchies) -> tuple[Hierarchy, ...]:
    """Build the hierarchies of the declared columns, over the values met where they are open."""
    return tuple(
        declared.get_hierarchy(name, partial(table.values, name)) for name in declared.names
    )


def _value_sort_key(value: object) -> tuple[bool, bool, Decimal, str]:
    """Return a key that sorts numbers by size, then text, then null."""
    text = canonicalize_value(value)
    number = parse_number(text)
    return (text is None, number is None, number or Decimal(0), text or "")


def _make_place_coder(values: Sequence[object]) -> Coder:
    places = {value: at for at, value in enumerate(values)}
    # A reader of files may ask for null where there is none.
    return lambda met: np.array(
        [places.get(normalize_kept_value(value), 0) for value in met], dtype=np.int32
    )


def make_value_coder(listed: Sequence[object]) -> Coder:
    """Return a coder of the values of a list, by their places."""
    places = {value: at for at, value in enumerate(listed)}
    # A reader of files may ask for null where there is none.
    return lambda met: np.array([places.get(value, 0) for value in met], dtype=np.int32)


def read_positive_numbers(name: str, values: Sequence[object]) -> Floats:
    """Return the values of a column as positive numbers; refuse anything else, null among it."""
    numbers = []
    for value in values:
        number = parse_number(canonicalize_value(value))
        if number is None or number <= 0:
            raise TableError(
                f"Column '{name}': '{value}' is not a positive number, and each row needs one. "
                "Correct the value, or leave its rows out."
            )
        numbers.append(float(number))
    return np.array(numbers, dtype=np.float64)


def normalize_kept_value(value: object) -> object:
    """Return a kept value as it is, but null for text without characters."""
    return None if isinstance(value, str) and not value.strip() else value


def make_coders(counted_table: CountedTable) -> dict[str, Coder]:
    """Return the coders by which the columns were counted."""
    parts = zip(counted_table.names, counted_table.hierarchies, counted_table.levels, strict=True)
    return {name: _make_level_coder(hierarchy, level) for name, hierarchy, level in parts}


def _make_level_coder(hierarchy: Hierarchy, level: int) -> Coder:
    return lambda values: hierarchy.groups[level][hierarchy.encode(values)]


def read_labels(table: Table, names: tuple[str, ...], *, weighted: bool) -> PublishedTable:
    """Read a released table by its labels; a column that it lacks shows nothing.

    A table with counts says in its column ``count`` how many rows each of its rows stands for.
    """
    present = [name for name in names if name in table.columns]
    table = table.gather_columns([*present, COUNT] if weighted else present)
    labels = {name: list(table.values(name)) for name in present}
    places = {name: {value: at for at, value in enumerate(labels[name])} for name in present}
    frequencies = _count_labels(table, present, places, weighted=weighted)
    columns = [
        frequencies.codes[:, present.index(name)]
        if name in present
        else np.zeros(len(frequencies), dtype=np.int32)
        for name in names
    ]
    return PublishedTable(
        tuple(labels.get(name, [ROOT]) for name in names),
        merge_tuples(np.column_stack(columns).astype(np.int32), frequencies.counts),
    )


def _count_labels(
    table: Table, names: list[str], places: dict[str, dict[object, int]], *, weighted: bool
) -> Frequencies:
    def coder(name: str) -> Callable[[Sequence[object]], Codes]:
        # A reader of files may ask for null where there is none.
        return lambda values: np.array([places[name].get(value, 0) for value in values], np.int32)

    if not table.rows():
        return Frequencies(np.zeros((0, len(names)), np.int32), np.zeros(0, np.int64))
    coders = {name: coder(name) for name in names}
    if not weighted:
        return table.count(names, coders)
    numbers = table.values(COUNT)
    places[COUNT] = {value: at for at, value in enumerate(numbers)}
    coders[COUNT] = coder(COUNT)
    frequencies = table.count([*names, COUNT], coders)
    rows = (
        frequencies.counts
        * np.array([_parse_row_count(value) for value in numbers])[frequencies.codes[:, -1]]
    )
    return replace(frequencies, codes=frequencies.codes[:, :-1], counts=rows)


def _parse_row_count(value: object) -> int:
    text = canonicalize_value(value) or ""
    if not text.isdecimal() or not 0 < int(text) < 2**53:
        raise TableError(f"Column '{COUNT}': '{value}' is not a number of rows. Correct it.")
    return int(text)
