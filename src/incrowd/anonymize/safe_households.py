"""Two tables of one release: households by their own columns, and their people beside them.

The unit is the household. Of its people at most m rows are used, chosen before any scheme is looked
at (:mod:`incrowd.anonymize.safe_counts`). The table of households counts them by their own columns,
the table of people counts them by those and the columns of people; a household counts once per cell
of either. Both are drawn as noisy counts, each cell with noise of its own and the same law. Levels
are fixed, or chosen privately for the table of people; the table of households takes over those of
the columns that they share.

Claim. For two tables that differ by one household with all of its people this is dominated by m + 1
independent pairs (X, X + 1), X the noise of one cell, composed with the choice of levels: the
events are one draw, and :class:`~incrowd.privacy.events.PersonCounts` with m rows. It is attained
where the people lie in m cells, each of which, as the household's own, has at least 2 r + k
others. Every cell that is shown, in either table, has at least k different households.

Proof. Choose the rows of all other households, alike in both inputs, and those of this one. All
people of a household have its one row of the table of households, so at any levels it has one tuple
of its own columns: it moves one cell of the table of households, by one. Of the table of people it
moves at most m cells, each by one, in the same direction. No noise is shared between the tables, so
what is shown of the at most m + 1 cells that differ is dominated by as many independent pairs, as
in :mod:`incrowd.anonymize.safe_counts`; which cells they are may depend on the choice of levels,
not how many. The levels of the table of households are a function of that choice, and cost
nothing more. The threshold holds for every cell by itself.

The claim rests on the join: with two rows for one household, or with values that differ between its
people, a household would be in several cells of the table of households. :func:`select_households`
refuses such counts. A household whose people are not in the table is in neither table.

**No key links the tables.** Under noisy counts a published row is no household and no person, so
there is nothing that a key could point from or to; rows drawn from one table and attached to those
of the other would be attached at random. A true link needs cells of whole households, all that is
shown of the household and of each of its people together. Counting those is private and k-anonymous
by the claim for one row, but k households must then agree in everything, and rare compositions go.
So the two tables share columns, at the same levels, and no key.
"""

from __future__ import annotations

from collections.abc import Sequence

from incrowd.codes.counted_table import CountedTable
from incrowd.codes.person_sets import PeopleTable


def select_households(table: CountedTable, names: Sequence[str]) -> CountedTable:
    """Return the households of a table of people by their own columns.

    Raises:
        ValueError: A household is in several cells: its people differ in a column of its own.

    """
    households = table.select_columns(names)
    if isinstance(households, PeopleTable) and any(
        places.shape[1] > 1 for places, _ in households.sets.parts
    ):
        raise ValueError("the people of a household differ in a column of the household")
    return households
