"""Who a person of a table is: what the counts of all rows say against a unit.

The unit decides what a guarantee protects. One that the counts contradict is refused, unless the
curator states that it is right.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from incrowd.engine.table import RowsPerId, Table
from incrowd.methods.person_id import KINDS, Kind, PersonIds, find_ids

MOST_PROPOSED = 4  # rows per person: a draft proposes no more
_REASONS: dict[Kind, str] = {
    "person": "Called like an id of people.", "household": "Called like an id of households.",
    "id": "Its values look like ids.",
    "event": "Called like an id of events, of which a person may have several.",
}  # fmt: skip


@dataclass(frozen=True)
class UnitOption:
    """A column that may tell people apart: its counts, and what speaks for it or against it.

    ``proposed`` rows of a person are proposed to be used; ``doubt`` is empty if nothing speaks
    against it.
    """

    column: str
    counts: RowsPerId
    missing: int
    proposed: int
    reason: str
    doubt: str
    is_repeated: bool = False


@dataclass(frozen=True)
class UnitChoice:
    """The rows of a table, and the columns that may tell people apart, the likeliest first."""

    rows: int
    options: tuple[UnitOption, ...]

    @property
    def repeated(self) -> UnitOption | None:
        """The likeliest id of people that several rows share; None if there is none."""
        return next((option for option in self.options if option.is_repeated), None)

    def find_contradiction(self, column: str) -> str:
        """Return what in the counts speaks against a unit; empty if nothing does.

        An empty ``column`` stands for one row per person.
        """
        if column:
            options = (option for option in self.options if option.column == column)
            option = next(options, None)
            return f"Nothing is known of '{column}'." if option is None else option.doubt
        if self.repeated is None:
            return ""
        counts = self.repeated.counts
        return (
            f"Values of '{self.repeated.column}' repeat: {counts.ids:,} values in {self.rows:,} "
            f"rows, up to {counts.largest:,} rows each. If they are people, a row is not a person."
        )


def count_unit_choice(table: Table, column: str = "") -> UnitChoice:
    """Count the rows that share each id of a table; of all rows, not of the first.

    Args:
        table: The table; what is counted is for its curator alone.
        column: A further column that somebody takes for an id.

    """
    ids = sorted(find_ids(table).items(), key=lambda x: (KINDS.index(x[1].kind), x[1].largest == 1))
    options = [_make_option(table, name, person_ids) for name, person_ids in ids]
    if column in table.columns and all(option.column != column for option in options):
        counts = table.count_rows_per_id(column)
        doubt = (
            f"'{column}' does not look like an id of people: {counts.ids:,} values in "
            f"{table.rows():,} rows."
        )
        missing = table.count_missing(column)
        options.append(UnitOption(column, counts, missing, 1, "Named by you.", doubt))
    options.sort(key=lambda option: (bool(option.doubt), not option.is_repeated))
    return UnitChoice(table.rows(), tuple(options))


def _make_option(table: Table, name: str, ids: PersonIds) -> UnitOption:
    is_event = ids.kind == "event"
    doubt = f"'{name}' looks like an id of events. A person may have several." if is_event else ""
    return UnitOption(
        name, ids.counts, table.count_missing(name), propose_rows(ids.median), _REASONS[ids.kind],
        doubt, is_repeated=ids.largest > 1 and not is_event,
    )  # fmt: skip


def propose_rows(median: float) -> int:
    """Return how many rows per person a draft proposes, by the median of the table.

    >>> [propose_rows(median) for median in (1, 1.5, 3, 40)]
    [1, 2, 3, 4]
    """
    return max(1, min(math.ceil(median), MOST_PROPOSED))
