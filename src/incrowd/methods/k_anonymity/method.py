"""A k-anonymous release of a table: counted once, put into classes, recoded, shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from incrowd.codes.counted import Rows, Shown
from incrowd.codes.frequency import Frequencies, merged
from incrowd.codes.hierarchy import ROOT
from incrowd.engine.count import count_rows
from incrowd.engine.table import Engine, Table, TooManyError
from incrowd.errors import IncrowdError
from incrowd.measure.lost_values import KeptRows
from incrowd.methods.base import Settled, Walk, cells, protection, published
from incrowd.methods.k_anonymity.apart import ApartRows, apart, keep, looks_of
from incrowd.methods.k_anonymity.classes import Classes, classes
from incrowd.methods.k_anonymity.columns import Columns
from incrowd.privacy.amplification import Guarantee
from incrowd.privacy.events import Event
from incrowd.release.certificate import Promise
from incrowd.release.product import Made, Product
from incrowd.spec.file import SpecFile
from incrowd.spec.release import KAnonymitySpec


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
                f"The column '{next(iter(noisy))}' is noisy, which belongs to the method "
                "'k-epsilon'. Make it quasi or sensitive, or drop it."
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

    def make(self, counted: Rows | ApartRows, walk: Walk) -> Made:
        """Search, recode."""
        rows = counted.rows if isinstance(counted, ApartRows) else counted
        columns, original = self._columns, rows.counted
        walk.step("search")
        every = {**columns.quasi, **columns.kept}
        found = classes(rows, every, self._release, bits=walk.bits, progress=walk.progress)
        walk.step("recode")
        starred = self._release.suppressed == "starred"
        seen = _without_stars(found) if starred else found
        kept: Mapping[str, list[object]] = rows.kept
        if isinstance(counted, ApartRows):
            kept, shown = self._joined(counted, seen, walk)
        else:
            shown = _shown(rows, seen)
        stars = rows.frequencies.total - shown.total if starred else 0
        looks = merged(shown.codes[:, : len(original.names)], shown.counts)
        labels: dict[str, list[object]] = dict(
            zip(original.names, map(list, found.labels), strict=True)
        )
        labels |= kept
        product = Product(
            data=self._table(labels, shown, stars, walk.engine),
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
        self, counted: ApartRows, found: Classes, walk: Walk
    ) -> tuple[dict[str, list[object]], Frequencies]:
        """The rows that are shown, recoded where they are: kept values, codes with counts."""
        through = tuple(self._columns.kept)
        worked = counted.worked(found, keep, walk.bits, through=through)
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
