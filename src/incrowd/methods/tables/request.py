"""What a spec asks for, as the mathematics has it: axes with nested levels, and tables on them.

Everything here follows from declarations. Null is a value of every column unless rows with missing
values are excluded; a value outside the domain counts as the label ``other`` where the column
declares one, and as null elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, product

from incrowd.anonymize.tables.workload import (
    Columns,
    Levels,
    RequestedTable,
    SumColumn,
    TableAxis,
    Workload,
)
from incrowd.errors import FindingError, IncrowdError
from incrowd.findings import make_finding
from incrowd.release.tables_column import TabulatedColumn
from incrowd.release.tables_part import FIGURES, SUM_FIGURES, list_headers
from incrowd.spec.build import ColumnHierarchies
from incrowd.spec.model import Column, Spec
from incrowd.spec.release import TablesSpec
from incrowd.spec.table_request import SumRequest, TableRequest

MOST_LINES = 1 << 27  # of all tables together
_MOST_TABLES = 20_000
_MOST_PLANNED = 20_000  # tables and totals that a plan is made for
_SHEET_LINES = 1_048_575  # that a sheet holds below its header
_TEXT_LINES = 10_000_000  # of a table as text, which takes minutes to write and to check


@dataclass(frozen=True, eq=False)
class TablesRequest:
    """The columns of some tables in their order, and the tables."""

    columns: tuple[TabulatedColumn, ...]
    tables: tuple[TableRequest, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The columns, in the order of the axes."""
        return tuple(column.name for column in self.columns)

    @cached_property
    def sums(self) -> tuple[SumRequest, ...]:
        """The columns that are summed; quantity j is the j-th of them."""
        summed = {x.sum.column: x.sum for x in self.tables if x.sum is not None}
        return tuple(summed.values())

    @cached_property
    def counts(self) -> tuple[RequestedTable, ...]:
        """The tables of numbers of rows, in the order of the request."""
        return tuple(map(self.locate_table, self.tables))

    @cached_property
    def workload(self) -> Workload:
        """The tables as the mathematics has them: counts, and then sums."""
        axes = [make_axis(column) for column in self.columns]
        sums = (self.locate_sum(table) for table in self.tables)
        tables = (*self.counts, *(table for table in sums if table is not None))
        return Workload(tuple(axes), tables, tuple(map(make_sum, self.sums)))

    @cached_property
    def workload_with_totals(self) -> Workload:
        """The tables, and after them all their totals, whose errors are to count as well.

        A total has the largest weight of the tables that it sums up. Of very many totals none is
        listed: then the error of the tables alone counts.
        """
        requested = self.workload.tables
        tables = {(x.quantity, x.columns, x.levels): x for x in requested}
        for table in requested:
            for columns, levels in self._list_totals(table):
                key = table.quantity, columns, levels
                earlier = tables.get(key)
                if earlier is None or (earlier.weight < table.weight and earlier not in requested):
                    total = RequestedTable(columns, levels, table.weight, table.quantity)
                    tables[key] = total
            if len(tables) > _MOST_PLANNED:
                return self.workload
        return Workload(self.workload.axes, tuple(tables.values()), self.workload.sums)

    def _list_totals(self, table: RequestedTable) -> Iterator[tuple[Columns, Levels]]:
        """Yield columns and levels of all sums of a table, its own first."""
        axes = self.workload.axes
        choices = [
            range(low, axes[x].root + 1) for x, low in zip(table.columns, table.levels, strict=True)
        ]
        for levels in product(*choices):
            yield self.workload.leave_out_roots(table.columns, levels)

    def locate_table(self, table: TableRequest) -> RequestedTable:
        """Return a table on the axes: columns ascending, with the level of each."""
        places = sorted(self.names.index(name) for name in table.columns)
        levels = tuple(table.levels.get(self.names[place], 0) for place in places)
        return RequestedTable(tuple(places), levels, table.weight)

    def locate_sum(self, table: TableRequest) -> RequestedTable | None:
        """Return the table of sums that goes with a table of counts, if it has any."""
        if table.sum is None:
            return None
        names = [request.column for request in self.sums]
        return replace(self.locate_table(table), quantity=names.index(table.sum.column) + 1)

    def select_columns(self, table: TableRequest) -> tuple[TabulatedColumn, ...]:
        """Return the columns of a table, in its own order."""
        return tuple(self.columns[self.names.index(name)] for name in table.columns)

    def find_order(self, table: TableRequest) -> tuple[int, ...]:
        """Return the places, among ascending axes, of a table's columns in its own order."""
        places = sorted(self.names.index(name) for name in table.columns)
        return tuple(places.index(self.names.index(name)) for name in table.columns)


def make_axis(column: TabulatedColumn) -> TableAxis:
    """Return a column as an axis: its finest groups, and the group of each at every level."""
    parents = tuple(column.list_groups(level) for level in range(1, column.root))
    return TableAxis(column.name, column.size, parents)


def make_sum(request: SumRequest) -> SumColumn:
    """Return a summed column as the mathematics has it."""
    lower, step = float(request.bounds[0]), float(request.size)
    return SumColumn(request.column, lower, step, request.steps)


def make_request(spec: Spec, declared: ColumnHierarchies) -> TablesRequest:
    """Return the request of a spec; refuse tables that cannot be tabulation."""
    release = spec.release
    assert isinstance(release, TablesSpec)
    tables = tuple(_list_tables(release, declared.names))
    columns = []
    for name in declared.names:
        hierarchy = declared.get_hierarchy(name, tuple)
        has_other = spec.columns[name].other is not None
        columns.append(TabulatedColumn(name, hierarchy, release.missing != "excluded", has_other))
    request = TablesRequest(tuple(columns), tables)
    for table in tables:
        _refuse_levels(request, table)
    for column in columns:
        _refuse_labels(column, spec.columns[column.name].other, release)
    _refuse_headers(request)
    _refuse_size(request, release)
    return request


def list_table_columns(spec: Spec, publishable: Sequence[str]) -> tuple[str, ...]:
    """Return the columns that tables show, in the order of the spec; refuse others."""
    release = spec.release
    assert isinstance(release, TablesSpec)
    if release.all is not None:
        if len(publishable) < release.all:
            raise IncrowdError(
                f"Spec: `all: {release.all}` needs {release.all} columns with the role `quasi` or "
                f"`sensitive`, and there are {len(publishable)}. Add columns, or list `tables`."
            )
        return tuple(publishable)
    for name in release.named_columns:
        if name not in publishable:
            raise IncrowdError(
                f"Column '{name}': a table names it, but its role is '{spec.columns[name].role}'. "
                "Give it the role `quasi` or `sensitive`, or remove it from the table."
            )
    return tuple(name for name in publishable if name in release.named_columns)


def _list_tables(release: TablesSpec, names: Sequence[str]) -> Iterator[TableRequest]:
    if release.all is None:
        yield from release.tables
        return
    for chosen in combinations(names, release.all):
        yield TableRequest(columns=chosen)


def _refuse_levels(request: TablesRequest, table: TableRequest) -> None:
    for column in request.select_columns(table):
        level = table.levels.get(column.name, 0)
        if level >= column.root:
            words = "only level 0" if column.root == 1 else f"levels 0 to {column.root - 1}"
            raise IncrowdError(
                f"Column '{column.name}': the table {', '.join(table.columns)} asks for level "
                f"{level}, and there is {words} below the total. Choose one of these, or remove "
                "the column from the table."
            )


def _refuse_labels(column: TabulatedColumn, other: str | None, release: TablesSpec) -> None:
    """Refuse labels that a reader could take for others."""
    for level in range(column.root):
        listed = column.list_labels(level, "")
        named = listed[:-1] if other is not None else listed
        if other is not None and other in named:
            raise IncrowdError(
                f"Column '{column.name}': its label for other values, '{other}', is also a label "
                f"of level {level}. Choose another label for `other`."
            )
        if release.totals and release.total_label in listed:
            raise IncrowdError(
                f"Column '{column.name}': '{release.total_label}' is one of its labels and would "
                "also name the totals. Set `total_label` to another word."
            )


def _refuse_headers(request: TablesRequest) -> None:
    for table in request.tables:
        headers = list_headers(table.columns, has_sums=table.sum is not None)
        twice = next((name for name in headers if headers.count(name) > 1), None)
        if twice is not None:
            figures = (*FIGURES, *(SUM_FIGURES if table.sum is not None else ()))
            what = f"the figures {', '.join(figures)}, and a level and a code per column"
            raise IncrowdError(
                f"Column '{twice}': a table adds a column of this name ({what}). Rename yours."
            )


def count_lines(request: TablesRequest, table: TableRequest, *, totals: bool) -> int:
    """Return the number of lines of a table."""
    lines = 1
    for column in request.select_columns(table):
        lines *= column.count_lines(table.levels.get(column.name, 0), totals=totals)
    return lines


def _refuse_size(request: TablesRequest, release: TablesSpec) -> None:
    if len(request.tables) > _MOST_TABLES:
        raise IncrowdError(
            f"Spec: {len(request.tables):,} tables are asked for, and a release has at most "
            f"{_MOST_TABLES:,}. Name fewer columns, or list the tables."
        )
    sizes = [count_lines(request, table, totals=release.totals) for table in request.tables]
    largest = max(range(len(sizes)), key=sizes.__getitem__)
    names = ", ".join(request.tables[largest].columns)
    if sum(sizes) > MOST_LINES:
        raise IncrowdError(
            f"Spec: its tables have {sum(sizes):,} lines together, and a release holds "
            f"{MOST_LINES:,}. The largest ({names}) has {sizes[largest]:,}: use coarser levels, or "
            "fewer columns."
        )
    limits = [
        ("a sheet of a workbook (`exports: [xlsx]`)", _SHEET_LINES, "xlsx" in release.exports),
        ("SDMX-CSV (`exports: [sdmx]`)", _TEXT_LINES, "sdmx" in release.exports),
        ("a text file (`format: csv`)", _TEXT_LINES, release.format == "csv"),
    ]
    for form, most, is_asked in limits:
        if is_asked and sizes[largest] > most:
            raise FindingError(
                make_finding(
                    "TABLE_TOO_LONG", names=names, lines=sizes[largest], form=form, most=most
                )
            )


def refuse_undeclared(columns: dict[str, Column]) -> None:
    """Refuse columns whose values nobody has listed: every cell must be earlier beforehand."""
    for name, column in columns.items():
        if column.hierarchy is None:
            raise IncrowdError(
                f"Column '{name}': it has no hierarchy, and tables need the values of each column. "
                "List them (`hierarchy: {flat: {values: [a, b]}}`), or remove the column."
            )
        if column.hierarchy.declaration.open_height is not None:
            raise IncrowdError(
                f"Column '{name}': its domain is open, and cells read from the table would reveal "
                "who is in it. List its values (`flat: {values: [...]}`, or `csv: FILE` with "
                "groups), or use `method: safe` with `draw: counts`, which suppresses rare cells."
            )
        if column.diversity or column.closeness:
            raise IncrowdError(
                f"Column '{name}': `diversity` and `closeness` are for k-anonymity. Remove them; "
                "differential privacy protects every column."
            )
