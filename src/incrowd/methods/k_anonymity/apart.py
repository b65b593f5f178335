"""Classes of a table whose rows are on other machines: formed here from counts, recoded there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from incrowd.arrays import Codes, Members
from incrowd.codes.counted import Counted, Rows
from incrowd.codes.frequency import between, packed
from incrowd.engine.count import coders_of, count_rows
from incrowd.engine.table import Chunk, SpreadTable, Table, Work, Worked, WorkedRows
from incrowd.errors import IncrowdError
from incrowd.methods.k_anonymity.classes import Classes
from incrowd.methods.k_anonymity.columns import Columns
from incrowd.privacy.randomness import Randomness


@dataclass(frozen=True, eq=False)
class ApartRows:
    """The tuples that decide classes, counted here, and the table whose rows are elsewhere.

    ``rows`` has the generalised columns, and of the kept ones those alone whose values have to be
    diverse or close in each class.
    """

    rows: Rows
    table: SpreadTable

    @property
    def names(self) -> tuple[str, ...]:
        """The generalised columns."""
        return self.rows.counted.names

    def column(self, at: int) -> Counted:
        """The tuples of one of them."""
        return self.rows.counted.part([self.names[at]])

    def worked(
        self,
        found: Classes,
        work: Work,
        bits: Randomness,
        *,
        through: tuple[str, ...],
        read: tuple[str, ...] = (),
    ) -> WorkedRows:
        """What a work makes of the rows of each class, where they are."""
        counted, members = _coarsest(self.rows.counted, found)
        return self.table.worked(
            coders_of(counted),
            counted.frequencies,
            np.asarray(members, dtype=np.int64),
            through=through,
            read=read,
            work=work,
            bits=bits,
        )


def apart(table: Table, columns: Columns) -> ApartRows | None:
    """The tuples that decide classes, of a table whose rows are elsewhere; else None."""
    if not isinstance(table, SpreadTable):
        return None
    if columns.release.algorithm == "duplicate":
        raise IncrowdError(
            "Algorithm `duplicate` needs all rows, and those of this table are on other machines. "
            "Use `ola` or `mondrian`."
        )
    ruled = tuple(
        name for name, column in columns.kept.items() if column.diversity or column.closeness
    )
    return ApartRows(count_rows(table, columns.declared, ruled), table)


def _coarsest(counted: Counted, found: Classes) -> tuple[Counted, Members]:
    """The fewest tuples that tell the class of a row, and the class of each.

    Of a full-domain scheme those are the tuples at its levels: all that are alike there are of one
    class, or of none.
    """
    if found.levels is None:
        return counted, found.members
    coarse = [
        lookup[counted.frequencies.codes[:, at]]
        for at, lookup in enumerate(between(counted.hierarchies, counted.levels, found.levels))
    ]
    _, first, tuples = np.unique(
        packed(coarse, len(found.members)), return_index=True, return_inverse=True
    )
    members = found.members[first]  # in the order that rolled tuples have
    assert (members[tuples] == found.members).all(), "tuples that look alike are of two classes"
    return counted.rolled(found.levels), members


def looks_of(found: Classes, members: Members) -> Codes:
    """What rows show in the generalised columns, by their classes: all of a class show the same."""
    shown = np.flatnonzero(found.shown)
    known = np.zeros((int(found.members.max(initial=-1)) + 1, found.codes.shape[1]), np.int32)
    known[found.members[shown]] = found.codes[shown]
    looks: Codes = known[members]
    return looks


def keep(chunk: Chunk, _bits: Randomness) -> Worked:
    """A work that keeps every row as it is."""
    return Worked(np.ones(len(chunk.members), dtype=bool), {}, None)
