"""What a table is and what an engine is: the two protocols that every engine implements."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from incrowd.arrays import Bools, Codes, Counts, Members, Places, Steps
from incrowd.codes.counted_table import SuppressedCells
from incrowd.codes.frequency import Frequencies, merge_tuples
from incrowd.errors import IncrowdError
from incrowd.privacy.randomness import Randomness

UNNAMED = "unnamed"  # what a first column without a name is called


class TableError(IncrowdError):
    """A table that cannot be read, or does not hold what it should."""


class TooManyTuplesError(TableError):
    """A table has more distinct tuples than one machine is to hold; ``spread`` has them, if any."""

    def __init__(self, message: str, spread: RemoteTuples | None = None) -> None:
        super().__init__(message)
        self.spread = spread


@dataclass(frozen=True)
class JoinMatch:
    """How two tables met that were joined by ids: that of rows, and one with a row for each id.

    ``columns`` came from the second table, in which ``repeated`` rows have an id that is there
    already, ``missing`` rows have none, and ``unused`` rows have an id of no row of the first.
    ``unmatched`` rows of the first have an id that the second does not have.
    """

    columns: tuple[str, ...]
    repeated: int
    missing: int
    unused: int
    unmatched: int


@dataclass(frozen=True)
class TableOrigin:
    """What is known of where a table came from; nothing, of one made in memory.

    ``sheet`` and ``header`` (a row, from 1) are those that were used, where they are not the first
    ones. ``notes`` are sentences for whoever opened the table. ``labels`` describe columns, as the
    file itself does; ``orders`` are the values of columns that have an order. ``reread`` says that
    its columns were read as a spec says, ``match`` how it was joined with a second table.
    """

    sheet: str | None = None
    header: int | None = None
    notes: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    orders: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    reread: bool = False
    match: JoinMatch | None = None


@dataclass(frozen=True, eq=False)
class Tally:
    """Distinct tuples of raw values with counts.

    ``values[c]`` lists the distinct raw values of column c; ``codes[:, c]`` points into it.
    """

    values: tuple[Sequence[object], ...]
    codes: Codes
    counts: Counts

    def encode_tuples(self, coders: Sequence[Coder]) -> Frequencies:
        """Return the tuples in codes of another kind, by one coder for each column."""
        columns = [coder(self.values[at])[self.codes[:, at]] for at, coder in enumerate(coders)]
        return merge_tuples(np.column_stack(columns).astype(np.int32), self.counts)


@dataclass(frozen=True)
class RowsPerId:
    """How many different ids a column has, and how many rows share one: median and largest."""

    ids: int
    median: float
    largest: int

    @property
    def has_repeats(self) -> bool:
        """Whether several rows share an id."""
        return self.largest > 1


Reader = Callable[[object], object]  # from a value to its meaning; None is null
# From raw values to codes. An engine may ask for the code of null where there is no null.
Coder = Callable[[Sequence[object]], Codes]
Columns = Mapping[str, Sequence[object] | np.ndarray[Any, Any]]
Coded = tuple[Sequence[object], Codes]  # the labels of a column, and which of them each row has
Plain = tuple[np.ndarray[Any, Any], Bools | None]  # values, and where they are null, if any are


class Table(Protocol):
    """A table of whatever engine. Nothing is read before it is needed.

    Values are plain ones of Python: text, numbers, booleans, days, times to the microsecond.
    NaN is null, and null is a value like any other. Several threads may ask at once.
    """

    @property
    def engine(self) -> Engine:
        """The engine that holds the table, and makes tables beside it."""
        ...

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        ...

    @property
    def origin(self) -> TableOrigin:
        """What is known of where the table came from; a table made from it need not know."""
        ...

    def rows(self) -> int:
        """Return the number of rows."""
        ...

    def head(self, rows: int) -> Table:
        """Return the first rows."""
        ...

    def values(self, column: str) -> Sequence[object]:
        """Return the distinct values of a column, null among them."""
        ...

    def gather_columns(self, columns: Sequence[str], *, coarse: bool = False) -> Table:
        """Return the same table, to be asked about these columns: it may count them once for all.

        Nothing else may be asked of it. ``coarse`` says that codes will be far fewer than values.
        """
        ...

    def iter_tallies(self, columns: Sequence[str]) -> Iterator[Tally]:
        """Yield distinct tuples with counts, in one or several parts of the table."""
        ...

    def count(self, columns: Sequence[str], coders: Mapping[str, Coder]) -> Frequencies:
        """Count distinct tuples of codes, by a coder for each column.

        An engine that knows nothing faster codes each of its tallies, and joins them.
        """
        ...

    def count_missing(self, column: str) -> int:
        """Count the rows that have no value in a column; text without characters is none."""
        ...

    def count_distinct(self, columns: Sequence[str]) -> int:
        """Count the distinct tuples of some columns; of very many, perhaps a few too many."""
        ...

    def count_people(self, column: str) -> int:
        """Count the people whom a column identifies; see :meth:`choose_row_per_person`."""
        ...

    def count_rows_per_id(self, column: str) -> RowsPerId:
        """Count the ids of a column over the whole table, and the rows of each.

        Ids are one where :meth:`choose_row_per_person` takes them for one; rows without an id do
        not count.
        """
        ...

    def choose_row_per_person(self, column: str, bits: Randomness) -> Table:
        """Choose one row at random for each person whom a column identifies.

        Ids are one where their canonical texts are
        (:func:`incrowd.codes.values.canonicalize_value`). A row without one is not chosen. The
        choice is made once, however often the table is read.
        """
        ...

    def choose_rows_per_person(self, column: str, rows: int, bits: Randomness) -> Table:
        """Choose at most so many rows at random of each person; all of whoever has fewer.

        Otherwise as :meth:`choose_row_per_person`, which one row is.
        """
        ...

    def code_people(
        self, person: str, columns: Sequence[str], coders: Mapping[str, Coder], *, alike: int = 1
    ) -> tuple[Members, Codes]:
        """Return for each row that has a person, a number of the person and codes of columns.

        Of rows of one person that are alike, so many are asked for; the others may be left out.
        """
        ...

    def join_table(
        self, column: str, other: Any, other_column: str, read: Reader | None = None
    ) -> Table:
        """Return the rows with the columns of another table of the same engine, joined by ids.

        Ids are one where their canonical texts are, after ``read`` was asked for the meaning of
        those of both tables; the rows keep their ids as they are. Of rows of the other with one
        id, one is used. The origin of the result says how the tables met.
        """
        ...

    def to_frame(self) -> Any:
        """Return the rows as a data frame of the engine's own kind."""
        ...

    def compute_fingerprint(self, key: bytes) -> str:
        """Compute a keyed hash by which the same table is recognized."""
        ...

    def hash_when_counted(self) -> bool:
        """Return whether counting also hashes the rows: best ask for the hash after."""
        ...

    def respell_texts(self, spell: Callable[[str], str]) -> Table:
        """Return the table with every text and every column name written in another way."""
        ...

    def interpret_values(self, readers: Mapping[str, Reader]) -> Table:
        """Return the table with the values of some columns replaced by what they mean.

        A reader gives None for null, the value itself, or a text; it is asked once for each value.
        """
        ...

    def join_columns(self, name: str, sources: Sequence[str]) -> Table:
        """Return the table with one more column: some columns as text, with a blank between.

        It is null where one of them is.
        """
        ...

    def convert_labels(self, labels: Mapping[str, Mapping[str, int | float]]) -> Table:
        """Return the table with numbers for texts: for some columns, the number of every text."""
        ...

    def write(self, path: Path) -> None:
        """Write Parquet, CSV or Arrow by the ending of the name; whole or not at all."""
        ...


def refuse_common_columns(columns: Sequence[str], others: Sequence[str]) -> None:
    """Refuse to join tables that both have a column of a name."""
    for name in others:
        if name in columns:
            raise TableError(
                f"Column '{name}': both tables have it. Remove it from one of them, or rename it."
            )


class Fingerprints:
    """Keyed fingerprints of a table, computed beside whatever else is done with it.

    A table that hashes its rows while they are counted is asked for them when they are waited for.
    Used as a context, the work ends with it.
    """

    def __init__(self, table: Table, keys: Mapping[str, bytes]) -> None:
        self._table, self._keys = table, keys
        self._workers = ThreadPoolExecutor(2)
        self._running: dict[str, Future[str]] = {}
        if not table.hash_when_counted():
            self._start()

    def __enter__(self) -> Fingerprints:
        return self

    def __exit__(self, *_: object) -> None:
        self._workers.shutdown()

    def __getitem__(self, name: str) -> str:
        """Return one fingerprint; wait for it if need be."""
        self._start()
        return self._running[name].result()

    def wait(self) -> None:
        """Have all fingerprints, or raise whatever prevents them."""
        for name in self._keys:
            self[name]

    def _start(self) -> None:
        for name, key in self._keys.items():
            if name not in self._running:
                self._running[name] = self._workers.submit(self._table.compute_fingerprint, key)


class PicklableDraw(Protocol):
    """A draw: what is shown of cells. A task on another machine may make it, so it goes by pickle.

    ``crowd`` is the number of rows from which a cell is shown at least as often as not.
    """

    @property
    def crowd(self) -> float: ...  # noqa: D102

    def draw_published_cells(self, frequencies: Frequencies, bits: Randomness) -> Frequencies: ...  # noqa: D102


@dataclass(frozen=True, eq=False)
class DrawnCells:
    """Cells that a draw shows: as they are shown, as they were, and what is known of the rest."""

    shown: Frequencies
    original: Frequencies
    rest: SuppressedCells


class RemoteTuples(Protocol):
    """Distinct tuples of codes with counts, too many for one machine: they are where they are.

    Maps give, column by column, the code at a coarser level of each code.
    """

    def roll_up(self, maps: Sequence[Codes] | None = None) -> Frequencies:
        """Return the tuples, mapped, here; raise :class:`TooManyTuplesError` if they do not fit.

        Whether they do is found by an approximate count.
        """
        ...

    def collect_above(self, maps: Sequence[Codes], threshold: int) -> Frequencies:
        """Return the mapped tuples that have more than so many rows, here."""
        ...

    def collect_sample(self, maps: Sequence[Codes]) -> Frequencies:
        """Return some of the mapped tuples, here, to measure on."""
        ...

    def select_columns(self, places: Sequence[int]) -> RemoteTuples:
        """Return the tuples of some of the columns."""
        ...

    def draw_cells(
        self, maps: Sequence[Codes], draw: PicklableDraw, bits: Randomness
    ) -> DrawnCells:
        """Return what a draw shows of the mapped tuples; each is drawn for once, where it is."""
        ...


@dataclass(frozen=True, eq=False)
class ClassChunk:
    """Whole classes of rows: the class of each row, ascending, and columns by their values."""

    members: Members
    columns: Mapping[str, Coded]


@dataclass(frozen=True, eq=False)
class ChunkResult:
    """What became of a chunk: which rows are kept, and what is to be told of them.

    ``columns`` are whole numbers with a mask of nulls.
    """

    kept: Bools
    columns: Mapping[str, tuple[Steps, Bools]]
    part: object


Work = Callable[[ClassChunk, Randomness], ChunkResult]


@dataclass(frozen=True, eq=False)
class ProcessedRows:
    """Rows that were worked on elsewhere: their classes, kept columns, and worked-on ones."""

    members: Members
    kept: Mapping[str, Coded]
    columns: Mapping[str, tuple[Steps, Bools]]
    parts: Sequence[object]


@runtime_checkable
class RemoteTable(Protocol):
    """A table whose rows are on other machines, and are to stay there: they are worked on there."""

    def process_classes(
        self,
        coders: Mapping[str, Coder],
        tuples: Frequencies,
        members: Members,
        *,
        through: Sequence[str],
        work_columns: Sequence[str],
        work: Work,
        bits: Randomness,
    ) -> ProcessedRows:
        """Return what a work makes of the rows of each class, in no order.

        ``coders`` code the columns of ``tuples``, and ``members`` has the class of each tuple, -1
        for none. Columns ``through`` are handed on as they are;
        ``work_columns`` are worked on.
        """
        ...


@runtime_checkable
class TableCatalog(Protocol):
    """An engine that keeps tables by name."""

    def refuse_name(self, name: str) -> None:
        """Refuse a name that no new table can have."""
        ...

    def save(self, table: Table, name: str) -> None:
        """Keep a table under a name that is free; whole or not at all."""
        ...


@dataclass(frozen=True, eq=False)
class RowBlocks:
    """Rows that are made block by block, each time that they are asked for: too many to hold.

    Attributes:
        rows: Their number.
        order: The names of all columns, in their order.
        labels: The labels of each coded column; some row has each of them.
        kinds: The type of each plain column.
        make: Returns the rows from a first one up to a last one: the codes of coded columns, and
            plain columns, with a mask where some are null.
    """

    rows: int
    order: Sequence[str]
    labels: Mapping[str, Sequence[str | None]]
    kinds: Mapping[str, type[np.int64 | np.float64]]
    make: Callable[[int, int], tuple[Mapping[str, Places], Mapping[str, Plain]]]


@runtime_checkable
class Engine(Protocol):
    """A backend of tables: it opens them, and makes the tables to publish.

    What is made from cells or rows keeps their order, and is written as whoever checks a release
    expects it: no statistics, and no label that no row has. The local engine writes such files;
    others can have it make and write the same table.
    """

    def open(
        self,
        source: Any,
        *,
        folder: Path = Path(),
        empty: bool = False,
        delimiter: str | None = None,
        sheet: str | None = None,
        header: int | None = None,
    ) -> Table:
        """Open a table from whatever the engine reads; raise :class:`TableError` for all else.

        A relative path is relative to ``folder``. A file without rows is refused unless
        ``empty`` allows it. The ``delimiter`` of a text file is found out if it is not given.
        ``sheet`` names one of a workbook, by default the first; ``header`` is the row, from 1,
        that names the columns of a text file or a sheet, by default the first that is no title.
        """
        ...

    def from_columns(self, columns: Columns) -> Table:
        """Make a table held in memory, from its columns."""
        ...

    def from_cells(
        self, columns: Mapping[str, Coded], counts: Counts, *, count_column: str | None = None
    ) -> Table:
        """Make a table of cells: for each column its labels and each cell's code, and row counts.

        Rows are repeated as often as they count; or, with a name for the column of counts,
        written once with it, as the last column.
        """
        ...

    def from_rows(
        self,
        coded_columns: Mapping[str, Coded],
        plain: Mapping[str, tuple[np.ndarray[Any, Any], Bools]],
        order: Sequence[str],
    ) -> Table:
        """Make a table of rows: labels by code, and plain columns with a mask of nulls.

        ``order`` names all columns in the order that they are to have.
        """
        ...

    def from_blocks(self, blocks: RowBlocks) -> Table:
        """Make a table of rows that are made block by block, and written so.

        Only what needs all of them at once, such as a data frame, holds them.
        """
        ...
