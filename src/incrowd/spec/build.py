"""Hierarchies built from what a spec declares: intervals, masks, groups, dates, and so on.

A builder knows its declaration and nothing else; those of public lists (countries, diagnoses,
postcodes) stand in the module that holds the list. Most list their whole domain. Where the
domain is open (a mask, or a flat hierarchy without values), the rule is applied to the
values met in the table, which get codes in their own order; the rule itself still depends
on no data.
"""

from __future__ import annotations

import bisect
import datetime as dt
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any, assert_never

from incrowd.codes.hierarchy import (
    ROOT,
    SUPPRESSED,
    UNCHANGED,
    Hierarchy,
    HierarchyError,
    LabelRuns,
    build_from_rows,
    build_from_runs,
)
from incrowd.codes.interval_label import SpanLabeler, label_intervals
from incrowd.codes.level_words import choose_example, describe_numbers
from incrowd.codes.values import canonicalize_value, parse_iso_time, parse_number
from incrowd.spec.arx import ArxRows, parse_rows, read_text
from incrowd.spec.hierarchies import (
    Countries,
    CsvFile,
    Dates,
    Declaration,
    Flat,
    Geo,
    Groups,
    Icd,
    Intervals,
    Mask,
    Order,
    Postcodes,
)
from incrowd.spec.model import Column

_KEPT = 64  # long ones are asked for again and again: by a check, by what to expect, by a release
_FILES_KEPT = 16  # of these the text is kept, too


def build_hierarchy(column: Column, *, folder: Path, values: Iterable[object] = ()) -> Hierarchy:
    """Return the hierarchy of a column; ``values`` are those met, used by open domains alone.

    ``folder`` is what the path of a CSV file is relative to.
    """
    if column.hierarchy is None:
        raise HierarchyError("No hierarchy is declared. Add one.")
    hierarchy = _build_declared(column, column.hierarchy.declaration, folder, values)
    is_ordered = _is_ordered(column.hierarchy.declaration, hierarchy)
    # Where nothing changes, columns that are declared alike share what is known of the hierarchy.
    return hierarchy if hierarchy.ordered == is_ordered else replace(hierarchy, ordered=is_ordered)


def _build_declared(
    column: Column, declaration: Declaration, folder: Path, values: Iterable[object]
) -> Hierarchy:
    match declaration:
        case Intervals() as declared:
            return _build_intervals(declared, column.other)
        case Mask() as declared:
            return _build_mask(declared, values, column.other)
        case Dates() as declared:
            return _build_dates(declared, column.other)
        case Countries(codes=codes):
            from incrowd.spec import countries

            return countries.build_country_hierarchy(codes, other=column.other)
        case Icd(version=version):
            from incrowd.spec import icd

            return icd.build_icd_hierarchy(version, other=column.other)
        case Postcodes(country=country):
            from incrowd.spec import postcodes

            return postcodes.build_postcode_hierarchy(country, other=column.other)
        case Geo() as declared:
            from incrowd.spec import geo

            return geo.build_geo_hierarchy(declared, other=column.other)
        case Order() as declared:
            rows = _list_order_rows(declared)
        case CsvFile(file=file, delimiter=delimiter):
            path = folder / file
            return _build_from_file(read_text(path), path.name, delimiter, column.other)
        case Flat(values=listed):
            met = {text for value in values if (text := canonicalize_value(value)) is not None}
            rows = [(value, ROOT) for value in listed or sorted(met) or ("",)]
        case Groups(root=groups):
            rows = _list_group_rows(groups)
        case _:
            assert_never(declaration)
    hierarchy = build_from_rows(rows, other=column.other)
    # With a single value met the root must still cost everything.
    return (
        replace(hierarchy, open=True, size=max(hierarchy.size, 2)) if is_open(column) else hierarchy
    )


@lru_cache(maxsize=_FILES_KEPT)
def _build_from_file(text: str, name: str, delimiter: str | None, other: str | None) -> Hierarchy:
    """Return the hierarchy that a file holds."""
    return build_from_rows(parse_rows(text, name, delimiter), other=other)


def _is_ordered(declared: Declaration, hierarchy: Hierarchy) -> bool:
    """Return whether a column's values lie on a line: by declaration, or as numbers."""
    if declared.order is not None:
        return declared.order
    return len(hierarchy.values) > 2 and all(
        parse_number(value) is not None for value in hierarchy.values
    )


def is_open(column: Column) -> bool:
    """Return whether the domain is not listed, so that codes depend on the values met."""
    return column.hierarchy is not None and column.hierarchy.declaration.open_height is not None


_LONGEST_LIST = 36  # characters of labels that are listed one by one


def describe_level(column: Column, level: int, labels: Sequence[str | None]) -> str:
    """Describe what a level below the root publishes, by its rule or by its labels.

    ``labels`` are those of the level, without the labels of null and of values outside the domain.
    """
    declared = None if column.hierarchy is None else column.hierarchy.declaration
    named = [label for label in labels if label is not None]
    example = f" (such as {named[len(named) // 2]})" if named else ""
    match declared:
        case Mask(length=length, hide=hide) if level:
            side = "first" if hide == "right" else "last"
            return f"{side} {length - level} of {length} characters"
        case Dates(levels=levels) if levels[level] != "day":
            return levels[level]
        case Intervals(widths=widths) if 0 < level <= len(widths):
            return f"steps of {widths[level - 1]} (such as {choose_example(named)})"
        case Intervals() if level == 0 and (words := describe_numbers(named)):
            return words  # what lies between these numbers is cut
        case Geo(sizes=sizes) if level < len(sizes):
            return f"squares of {sizes[level].normalize():f} degrees{example}"
        case Geo(hexagons=hexagons) if level < len(hexagons):
            return f"H3 hexagons of resolution {hexagons[level]}{example}"
        case Icd(version=version) if level == 0:
            what = "categories of 3 characters" if version == 10 else f"{len(named):,} values"
            return f"{what} (such as {choose_example(named)})"
    if level == 0:
        return UNCHANGED
    listed = ", ".join(named)
    if len(named) > 1 and len(listed) <= _LONGEST_LIST:
        return f"{len(named)} groups ({listed})"
    return f"{len(named):,} {'group' if len(named) == 1 else 'groups'}{example}"


class ColumnHierarchies:
    """The hierarchies of some columns, each built once.

    Those of listed domains are built at once, so that whatever is wrong with a declaration is
    refused without the table. An open domain has to wait for the values met.
    """

    def __init__(self, columns: Mapping[str, Column], folder: Path = Path()) -> None:
        self.columns, self.names, self._folder = columns, tuple(columns), folder
        self._built = {
            name: self._build_column(name)
            for name, column in columns.items()
            if not is_open(column)
        }

    def select_columns(self, names: Iterable[str]) -> ColumnHierarchies:
        """Return the hierarchies of some of the columns; none is built again."""
        selected = copy(self)
        selected.columns = {name: self.columns[name] for name in names}
        selected.names = tuple(selected.columns)
        return selected

    def is_open(self, name: str) -> bool:
        """Return whether the domain of a column is not listed."""
        return is_open(self.columns[name])

    def height(self, name: str) -> int:
        """Return the number of levels of a column, the values included; the rule fixes it."""
        hierarchy = self.columns[name].hierarchy
        open_height = hierarchy.declaration.open_height if hierarchy else None
        return self._built[name].height if open_height is None else open_height

    def describe_level(self, name: str, level: int) -> str:
        """Return what a level of a column shows, in words."""
        if level == self.height(name) - 1 and self.is_rooted(name):
            return SUPPRESSED
        labels = () if self.is_open(name) else self._built[name].labels[level][:-2]
        return describe_level(self.columns[name], level, labels)

    def is_rooted(self, name: str) -> bool:
        """Return whether the top level of a column is a single group."""
        return self.is_open(name) or self._built[name].is_rooted

    def get_hierarchy(self, name: str, values: Callable[[], Iterable[object]]) -> Hierarchy:
        """Return the hierarchy of a column; ``values`` are asked for where its domain is open."""
        if not self.is_open(name):
            return self._built[name]
        met, hierarchy = list(values()), self._built.get(name)
        if hierarchy is None or (hierarchy.encode(met) == hierarchy.outside).any():
            hierarchy = self._built[name] = self._build_column(name, met)
        return hierarchy

    def _build_column(self, name: str, met: Iterable[object] = ()) -> Hierarchy:
        try:
            return build_hierarchy(self.columns[name], folder=self._folder, values=met)
        except HierarchyError as error:
            raise HierarchyError(f"Column '{name}': {error}") from error


@lru_cache(maxsize=_KEPT)
def _build_intervals(declared: Intervals, other: str | None) -> Hierarchy:
    """Build intervals whose values are found by number, in decimal arithmetic: 0.30 is .3."""
    low, high, step = declared.low, declared.high, declared.step
    integral = _is_whole(declared)
    starts = _list_steps(low, high, step)
    # A step is a value (3, 0.1), unless it is a small interval of whole numbers (0-4).
    names = (
        [str(int(x)) if integral else canonicalize_value(x) or "" for x in starts]
        if step == 1 or not integral
        else label_intervals(starts, high, is_whole=integral)
    )
    levels = [LabelRuns([*names], [1] * len(names))]
    for edges in _list_edges(declared):
        begins = [bisect.bisect_left(starts, x) for x in edges]
        ends = [*begins[1:], len(starts)]
        lengths = [end - begin for begin, end in zip(begins, ends, strict=True)]
        levels.append(LabelRuns(label_intervals(edges, high, is_whole=integral), lengths))
    below, above = f"<{canonicalize_value(low)}", f">{canonicalize_value(high)}"
    for level in levels:
        if declared.open in ("lower", "both"):
            level.add_first(below)
        if declared.open in ("upper", "both"):
            level.add_last(above)

    def locate(value: object) -> str | None:
        text = canonicalize_value(value)
        x = parse_number(text)
        if x is None:
            return text
        if x < low:
            return below
        return above if x > high else names[int((x - low) // step)]

    # Numbers and labels are canonical as they were made.
    return replace(build_from_runs(levels, other=other), locate=locate, ordered=True)


def _is_whole(declared: Intervals) -> bool:
    """Return whether everything declared is a whole number, so that 3-5 means 3, 4 and 5."""
    points = [declared.low, declared.high, declared.step, *declared.widths]
    points += [x for cuts in declared.cuts for x in cuts]
    return all(x == x.to_integral_value() for x in points)


def _list_edges(declared: Intervals) -> list[list[Decimal]]:
    """Return for each level above the steps where its intervals begin."""
    if not declared.cuts:
        return [_list_steps(declared.low, declared.high, width) for width in declared.widths]
    levels = []
    for cuts in declared.cuts:
        if sorted(set(cuts)) != list(cuts):
            raise HierarchyError(f"The cuts {', '.join(map(str, cuts))} must increase. Sort them.")
        inside = [x for x in cuts if declared.low < x <= declared.high]
        levels.append([declared.low, *inside])
    return levels


def _list_steps(low: Decimal, high: Decimal, width: Decimal) -> list[Decimal]:
    return [low + i * width for i in range(int((high - low) // width) + 1)]


def _build_mask(declared: Mask, values: Iterable[object], other: str | None) -> Hierarchy:
    alphabet = set(declared.alphabet)

    def locate(value: object) -> str | None:
        """Text as it is; a whole number gets back the leading zeros that it lost."""
        text = value.strip() if isinstance(value, str) else canonicalize_value(value)
        number_ = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
        has_zeros = number_ and len(declared.lengths) == 1
        return text.zfill(declared.length) if text is not None and has_zeros else text

    met = {text for value in values if (text := locate(value)) is not None}
    fitting = sorted(x for x in met if len(x) in declared.lengths and set(x) <= alphabet)
    rows = [
        _mask_text(declared, text) for text in fitting or [declared.alphabet[0] * declared.length]
    ]
    size = sum(len(alphabet) ** length for length in declared.lengths)
    base = build_from_rows(rows, other=other, size=size, exact=True)
    return replace(base, locate=locate, open=True)


def _mask_text(declared: Mask, text: str) -> tuple[str, ...]:
    """Return the text with 0, 1, ... characters hidden; a short one is filled up, but for 0."""
    n = declared.length
    if declared.hide == "right":
        hidden = (text[: n - i].ljust(n, ROOT) for i in range(1, n + 1))
    else:
        hidden = (text.rjust(n, ROOT)[i:].rjust(n, ROOT) for i in range(1, n + 1))
    return (text, *hidden)


def _list_group_rows(groups: dict[str, Any]) -> ArxRows:
    rows = [(*reversed(path),) for path in _iterate_paths(groups, ())]
    return rows if len(groups) == 1 else [(*row, ROOT) for row in rows]


def _iterate_paths(node: object, above: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if isinstance(node, dict):
        for name, inner in node.items():
            yield from _iterate_paths(inner, (*above, str(name)))
    elif isinstance(node, list):
        for value in node:
            if value is None or isinstance(value, dict | list):
                raise HierarchyError(f"Group '{above[-1]}': {value!r} is not a value. Correct it.")
            yield (*above, canonicalize_value(value) or "")
    else:
        raise HierarchyError(
            f"Group '{above[-1]}': expected a list of values or groups. Correct it."
        )


_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_DATE_LABELS: dict[str, Callable[[dt.datetime], str]] = {
    "hour": lambda time: time.isoformat()[:13],
    "day": lambda day: day.isoformat()[:10],
    "week": lambda day: "{:04}-W{:02}".format(*day.isocalendar()),
    "weekday": lambda day: _WEEKDAYS[day.weekday()],
    "month": lambda day: f"{day.year:04}-{day.month:02}",
    "quarter": lambda day: f"{day.year:04}-Q{(day.month + 2) // 3}",
    "year": lambda day: str(day.year),
    "decade": lambda day: f"{day.year // 10 * 10}-{day.year // 10 * 10 + 9}",
}


@lru_cache(maxsize=_KEPT)
def _build_dates(declared: Dates, other: str | None) -> Hierarchy:
    labels = [_DATE_LABELS[name] for name in declared.levels]
    # A weekday alone is listed from Monday on, whatever day the range begins with.
    by_weekday = declared.levels == ("weekday",)
    rows = {tuple(label(time) for label in labels): None for time in _list_times(declared)}
    ordered = sorted(rows, key=lambda row: _WEEKDAYS.index(row[0])) if by_weekday else list(rows)

    def locate(value: object) -> str | None:
        if isinstance(value, dt.datetime):
            return _label_time(value)
        if isinstance(value, dt.date):
            return _label_time(dt.datetime.combine(value, dt.time()))
        text = canonicalize_value(value)
        if text is None:
            return None
        try:
            return _label_time(dt.datetime.strptime(text, declared.format))
        except ValueError:
            time = parse_iso_time(text)
        return _label_time(time) if time else f"not a date: {text}"

    def _label_time(time: dt.datetime) -> str:
        if by_weekday and not declared.low <= time.date() <= declared.high:
            return f"outside: {time.date()}"  # though its weekday is listed
        return labels[0](time)

    return replace(build_from_rows([(*row, ROOT) for row in ordered], other=other), locate=locate)


def _list_times(declared: Dates) -> Iterator[dt.datetime]:
    """Yield each day of the range, or each hour where hours are told apart."""
    start = dt.datetime.combine(declared.low, dt.time())
    hours = 1 if declared.levels[0] == "hour" else 24
    for number in range(((declared.high - declared.low).days + 1) * (24 // hours)):
        yield start + dt.timedelta(hours=number * hours)


def _list_order_rows(declared: Order) -> ArxRows:
    values = [canonicalize_value(value) or "" for value in declared.values]
    spans = SpanLabeler(values)

    def runs(length: int) -> list[str]:
        parts = [values[i : i + length] for i in range(0, len(values), length)]
        names = [spans(part[0], part[-1]) for part in parts]
        return [name for name, part in zip(names, parts, strict=True) for _ in part]

    columns = [values, *(runs(length) for length in declared.runs), [ROOT] * len(values)]
    return list(zip(*columns, strict=True))
