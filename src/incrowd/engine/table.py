"""The only place that touches tables: a small protocol, and one implementation per engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from incrowd.arrays import Codes, Counts
from incrowd.codes.frequency import Frequencies
from incrowd.errors import IncrowdError
from incrowd.privacy.randomness import Randomness


class TableError(IncrowdError):
    """A table that cannot be read, or does not hold what it should."""


@dataclass(frozen=True, eq=False)
class Tally:
    """Distinct tuples of raw values with counts.

    ``values[c]`` lists the distinct raw values of column c; ``codes[:, c]`` points into it.
    """

    values: tuple[Sequence[object], ...]
    codes: Codes
    counts: Counts


Coder = Callable[[Sequence[object]], Codes]


class Table(Protocol):
    """A table of whatever engine. Nothing is read before it is needed."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        ...

    def rows(self) -> int:
        """The number of rows."""
        ...

    def head(self, rows: int) -> Table:
        """The first rows."""
        ...

    def values(self, column: str) -> Sequence[object]:
        """The distinct values of a column, null among them."""
        ...

    def tallies(self, columns: Sequence[str]) -> Iterator[Tally]:
        """Distinct tuples with counts, in one or several parts of the table."""
        ...

    def count(self, columns: Sequence[str], coders: Mapping[str, Coder]) -> Frequencies:
        """Distinct tuples of codes with counts; a coder gives raw values their codes."""
        ...

    def missing(self, column: str) -> int:
        """How many rows have no value in a column."""
        ...

    def ascending(self, columns: Sequence[str], coders: Mapping[str, Coder]) -> bool:
        """Whether the rows stand in the order of their codes, the first column first."""
        ...

    def one_row_each(self, column: str, bits: Randomness) -> Table:
        """One row, chosen at random, for each distinct value of a column; none without one."""
        ...

    def frame(self) -> Any:
        """The rows as a data frame of the engine's own kind."""
        ...

    def fingerprint(self, key: bytes) -> str:
        """A keyed hash by which the same table is recognised."""
        ...

    def respelled(self, spell: Callable[[str], str]) -> Table:
        """The table with every text and every name of a column written in another way."""
        ...

    def write(self, path: Path) -> None:
        """Write Parquet, CSV or Arrow by the ending of the name; whole or not at all."""
        ...
