"""A k-anonymous release of a table: counted once, put into classes, recoded, shown."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from incrowd.codes.counted import Rows, Shown
from incrowd.codes.frequency import Frequencies, merged
from incrowd.codes.hierarchy import ROOT
from incrowd.engine.count import count_rows
from incrowd.engine.table import Engine, Table
from incrowd.errors import IncrowdError
from incrowd.methods.base import Settled, Walk, cells, protection, published
from incrowd.methods.k_anonymity.classes import Classes, classes
from incrowd.methods.k_anonymity.columns import Columns
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
        self.promise = Promise(kind="k-anonymity", **protection(file.spec))
        noisy = published(file.spec, "noisy")
        if noisy:
            raise IncrowdError(
                f"The column '{next(iter(noisy))}' is noisy, which belongs to the method "
                "'k-epsilon'. Make it quasi or sensitive, or drop it."
            )

    @property
    def settled(self) -> Settled:
        """Classes of at least k."""
        return self._columns.settled

    def count(self, table: Table) -> Rows:
        """The tuples of generalised and kept columns."""
        return count_rows(table, self._columns.declared, tuple(self._columns.kept))

    def make(self, rows: Rows, walk: Walk) -> Made:
        """Search, recode."""
        columns, original = self._columns, rows.counted
        walk.step("search")
        every = {**columns.quasi, **columns.kept}
        found = classes(rows, every, self._release, bits=walk.bits, progress=walk.progress)
        walk.step("recode")
        starred = self._release.suppressed == "starred"
        shown = _shown(rows, _without_stars(found) if starred else found)
        stars = rows.frequencies.total - shown.total if starred else 0
        looks = merged(shown.codes[:, : len(original.names)], shown.counts)
        product = Product(
            data=self._table(rows, found, shown, stars, walk.engine),
            original=original,
            shown=Shown(found.labels, looks, found.levels or ()),
            columns=columns.quasi,
            axes=original.axes,
            parameters=columns.parameters(),
            stars=stars,
            kept=tuple(columns.kept),
            warnings=columns.warnings(rows),
        )
        return Made((product,), self.promise, self.events, original, reasons=self._columns.reasons)

    def _table(
        self, rows: Rows, found: Classes, shown: Frequencies, stars: int, engine: Engine
    ) -> Table:
        labels: dict[str, list[object]] = dict(
            zip(rows.counted.names, map(list, found.labels), strict=True)
        )
        labels |= rows.kept
        if stars:
            row = []
            for name in labels:
                star = ROOT if name in self._columns.quasi else None
                labels[name] = [*labels[name], *([] if star in labels[name] else [star])]
                row.append(labels[name].index(star))
            codes = np.vstack([shown.codes, np.array([row], dtype=np.int32)])
            shown = merged(codes, np.append(shown.counts, stars))
        weighted = self._release.rows == "weighted"
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
