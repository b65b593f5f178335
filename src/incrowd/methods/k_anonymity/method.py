"""A k-anonymous release of a table: counted once, put into classes, recoded, shown.

**Rows on other machines.** Classes of a table whose rows are on other machines: formed here from
counts, recoded there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from incrowd.arrays import Codes, Members
from incrowd.codes.counted import Counted, Rows, Shown
from incrowd.codes.frequency import Frequencies, between, merged, packed
from incrowd.codes.hierarchy import ROOT
from incrowd.engine.count import coders_of, count_rows
from incrowd.engine.table import (
    Chunk,
    Engine,
    SpreadTable,
    Table,
    TooManyError,
    Work,
    Worked,
    WorkedRows,
)
from incrowd.errors import IncrowdError
from incrowd.measure.lost_values import KeptRows
from incrowd.methods.base import MakeContext, Settled, cells, protection, published
from incrowd.methods.k_anonymity.classes import Classes, Columns, classes
from incrowd.privacy.amplification import Guarantee
from incrowd.privacy.events import Event
from incrowd.privacy.randomness import Randomness
from incrowd.release.certificate import Promise
from incrowd.release.product import Made, Product
from incrowd.spec.file import SpecFile
from incrowd.spec.release import KAnonymitySpec


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


class KAnonymity:
    """Quasi columns generalised so that every row is alike to k - 1 others; no privacy budget."""

    def __init__(self, file: SpecFile) -> None:
        assert isinstance(file.spec.release, KAnonymitySpec)
        self._columns = Columns(file, file.spec.release)
        self._release = self._columns.release
        self.events: list[Event] = []
        self.together: Guarantee | None = None
        self.promise = Promise(kind="k-anonymity", **protection(file.spec))
        noisy = published(file.spec, "noisy")
        if noisy:
            raise IncrowdError(
                f"Column '{next(iter(noisy))}': the role `noisy` is for `method: k-epsilon`. Use "
                "`quasi`, `sensitive` or `drop`."
            )

    @property
    def columns(self) -> Columns:
        """The columns, and the spec of the release as it can be searched."""
        return self._columns

    @property
    def settled(self) -> Settled:
        """Classes of at least k."""
        return self._columns.settled

    def count(self, table: Table) -> Rows | ApartRows:
        """The tuples of generalised and kept columns; of too many, those that decide classes."""
        try:
            return count_rows(table, self._columns.declared, tuple(self._columns.kept))
        except TooManyError:
            found = apart(table, self._columns)
            if found is None:
                raise
            return found

    def make(self, counted: Rows | ApartRows, context: MakeContext) -> Made:
        """Search, recode."""
        rows = counted.rows if isinstance(counted, ApartRows) else counted
        columns, original = self._columns, rows.counted
        context.step("search")
        every = {**columns.quasi, **columns.kept}
        found = classes(rows, every, self._release, bits=context.bits, progress=context.progress)
        context.step("recode")
        starred = self._release.suppressed == "starred"
        seen = _without_stars(found) if starred else found
        kept: Mapping[str, list[object]] = rows.kept
        if isinstance(counted, ApartRows):
            kept, shown = self._joined(counted, seen, context)
        else:
            shown = _shown(rows, seen)
        stars = rows.frequencies.total - shown.total if starred else 0
        looks = merged(shown.codes[:, : len(original.names)], shown.counts)
        labels: dict[str, list[object]] = dict(
            zip(original.names, map(list, found.labels), strict=True)
        )
        labels |= kept
        product = Product(
            data=self._table(labels, shown, stars, context.engine),
            original=original,
            shown=Shown(found.labels, looks, found.levels or ()),
            columns=columns.quasi,
            axes=original.axes,
            parameters=columns.parameters(),
            stars=stars,
            kept=tuple(columns.kept),
            search=found.search,
            findings=columns.findings(kept, rows.frequencies.total),
            beside=None
            if isinstance(counted, ApartRows)
            else KeptRows(kept, rows.frequencies, shown),
        )
        return Made((product,), self.promise, self.events, original, reasons=self._columns.reasons)

    def _joined(
        self, counted: ApartRows, found: Classes, context: MakeContext
    ) -> tuple[dict[str, list[object]], Frequencies]:
        """The rows that are shown, recoded where they are: kept values, codes with counts."""
        through = tuple(self._columns.kept)
        worked = counted.worked(found, keep, context.bits, through=through)
        codes = [looks_of(found, worked.members), *(worked.kept[name][1] for name in through)]
        ones = np.ones(len(worked.members), dtype=np.int64)
        shown = merged(np.column_stack(codes).astype(np.int32), ones)
        return {name: list(worked.kept[name][0]) for name in through}, shown

    def _table(
        self, labels: dict[str, list[object]], shown: Frequencies, stars: int, engine: Engine
    ) -> Table:
        if stars:
            row = []
            for name in labels:
                star = ROOT if name in self._columns.quasi else None
                labels[name] = [*labels[name], *([] if star in labels[name] else [star])]
                row.append(labels[name].index(star))
            codes = np.vstack([shown.codes, np.array([row], dtype=np.int32)])
            shown = merged(codes, np.append(shown.counts, stars))
        weighted = self._release.rows == "counted"
        return cells(labels, shown, weighted=weighted, engine=engine)


def _without_stars(found: Classes) -> Classes:
    """A class that shows ``*`` everywhere looks like suppressed rows, so it counts as such."""
    stars = np.ones(len(found.codes), dtype=bool)
    for at, texts in enumerate(found.labels):
        stars &= np.array([text == ROOT for text in texts])[found.codes[:, at]]
    return replace(found, members=np.where(stars, -1, found.members))


def _shown(rows: Rows, found: Classes) -> Frequencies:
    """The rows that are shown: codes of labels, then of kept values."""
    kept = rows.frequencies.codes[:, len(rows.counted.names) :]
    codes = np.column_stack([found.codes[rows.owner], kept]).astype(np.int32)
    if found.published is not None:
        chosen, counts = np.flatnonzero(found.published), found.published
    else:
        chosen, counts = np.flatnonzero(found.shown[rows.owner]), rows.frequencies.counts
    return merged(codes[chosen], counts[chosen])
