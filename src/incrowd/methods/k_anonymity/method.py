"""A k-anonymous release of a table: counted once, put into classes, recoded, shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from incrowd.arrays import Progress, Step
from incrowd.codes.axis import Axis
from incrowd.codes.counted import Counted, Rows, Shown
from incrowd.codes.frequency import Frequencies, merged
from incrowd.codes.hierarchy import ROOT
from incrowd.engine.count import count_rows
from incrowd.engine.table import Table
from incrowd.errors import IncrowdError
from incrowd.measure.evaluation import evaluate, invented
from incrowd.methods.base import Made, Product, Recoded, alone, cells, protection, published
from incrowd.methods.k_anonymity.classes import Classes, classes
from incrowd.privacy.events import Event
from incrowd.privacy.randomness import Randomness
from incrowd.release.certificate import Guarantee
from incrowd.release.statements import RULES
from incrowd.spec.build import Declared
from incrowd.spec.file import SpecFile
from incrowd.spec.model import Closeness, Column, Diversity
from incrowd.spec.release import ClassesSpec

_NEARLY_ALL, _FEW_ROWS = 0.9, 20


class KAnonymity:
    """Quasi columns generalised so that every row is alike to k - 1 others; no privacy budget."""

    def __init__(self, file: SpecFile) -> None:
        self._file = file
        self.quasi = published(file.spec, "quasi")
        self.kept = published(file.spec, "sensitive")
        self.declared = Declared(self.quasi, file.folder)
        release = file.spec.release
        assert isinstance(release, ClassesSpec)
        self._release = release
        self.events: list[Event] = []
        if release.k is None:
            raise IncrowdError("The spec must give 'k' under 'release'.")
        if not self.quasi:
            raise IncrowdError("The spec publishes no quasi column: give some the role 'quasi'.")
        for name in release.levels:
            if name not in self.quasi:
                raise IncrowdError(
                    f"'levels' names the column '{name}', which is not generalised: it would be "
                    "shown as it is. Make it quasi, or drop it."
                )
        self._refuse_noisy()

    def _refuse_noisy(self) -> None:
        noisy = published(self._file.spec, "noisy")
        if noisy:
            raise IncrowdError(
                f"The column '{next(iter(noisy))}' is noisy, which belongs to the method "
                "'k-epsilon'. Make it quasi or sensitive, or drop it."
            )

    def guarantee(self) -> Guarantee:
        """k-anonymity."""
        return Guarantee(kind="k-anonymity", **protection(self._file.spec))

    def count(self, table: Table) -> Rows:
        """The tuples of generalised and kept columns."""
        return count_rows(table, self.declared, tuple(self.kept))

    def make(self, rows: Rows, bits: Randomness, step: Step, progress: Progress) -> Made:
        """Search, recode."""
        axes = rows.counted.axes
        step("search")
        found = classes(
            rows, axes, {**self.quasi, **self.kept}, self._release, bits=bits, progress=progress
        )
        step("recode")
        starred = self._release.suppressed == "starred"
        shown = _shown(rows, _all_stars_lost(found) if starred else found)
        class_sizes = merged(shown.codes[:, : len(axes)], shown.counts).counts
        missing = rows.frequencies.total - shown.total
        quasi = len(axes)
        looks = Shown(
            found.labels, merged(shown.codes[:, :quasi], shown.counts), found.levels or ()
        )
        evaluation = evaluate(rows.counted, axes, looks, stars=False)
        return alone(
            Product(
                data=self._table(rows, found, shown, missing if starred else 0),
                rows=shown.total + (missing if starred else 0),
                classes=len(class_sizes),
                smallest_class=int(class_sizes.min()) if len(class_sizes) else 0,
                scheme=self._scheme(rows, found, axes),
                evaluation=evaluation,
                kept=tuple(self.kept),
                parameters=self._parameters(),
                warnings=(*self._telling(rows), *locally_invented(rows.counted, axes, looks)),
            )
        )

    def _telling(self, rows: Rows) -> list[str]:
        """What the curator should know: kept columns that name people, baselines."""
        found = []
        total = rows.frequencies.total
        for name in self.kept:
            values = len(rows.kept[name])
            if values > _NEARLY_ALL * total and total >= _FEW_ROWS:
                found.append(
                    f"The column '{name}' is kept as it is and has {values:,} values in {total:,} "
                    "rows: it may name people. Make it an identifier, or quasi."
                )
        if self._release.algorithm == "duplicate":
            found.append(
                "k-Duplication publishes people's rows unchanged, and its loss does not count that "
                "most rows show somebody else. It is a baseline, not for use."
            )
        return found

    def _scheme(self, rows: Rows, found: Classes, axes: Sequence[Axis]) -> dict[str, Recoded]:
        return {
            name: Recoded(
                self.quasi[name],
                hierarchy,
                None if found.levels is None else found.levels[at],
                axes[at].ordered if found.levels is None else None,
            )
            for at, (name, hierarchy) in enumerate(
                zip(rows.counted.names, rows.counted.hierarchies, strict=True)
            )
        }

    def _parameters(self) -> dict[str, float | str]:
        """What the certificate says: k, the algorithm, how rows are suppressed, the rules."""
        assert self._release.k is not None
        known: dict[str, float | str] = {
            "k": float(self._release.k),
            "algorithm": self._release.algorithm or "ola",
            "suppressed": self._release.suppressed or "dropped",
        }
        for name, column in self.kept.items():
            for kind, value in _rules(column):
                known[f"rule {name}: {kind}"] = float(value)
        return known

    def _table(self, rows: Rows, found: Classes, shown: Frequencies, stars: int) -> Table:
        labels: dict[str, list[object]] = dict(
            zip(rows.counted.names, map(list, found.labels), strict=True)
        )
        labels |= rows.kept
        if stars:
            row = []
            for name in labels:
                star = ROOT if name in self.quasi else None
                labels[name] = [*labels[name], *([] if star in labels[name] else [star])]
                row.append(labels[name].index(star))
            codes = np.vstack([shown.codes, np.array([row], dtype=np.int32)])
            shown = merged(codes, np.append(shown.counts, stars))
        weighted = self._release.rows == "weighted"
        return cells(labels, shown, weighted=weighted)


def locally_invented(counted: Counted, axes: Sequence[Axis], shown: Shown) -> tuple[str, ...]:
    """What local recoding tells that is not so, in words; nothing where there are levels."""
    return () if shown.levels else invented(counted, axes, shown)


def _rules(column: Column) -> list[tuple[str, float]]:
    asked, close = column.diversity or Diversity(), column.closeness or Closeness()
    values = (asked.distinct, asked.entropy, close.equal, close.ordered)
    pairs = zip(RULES, values, strict=True)
    return [(kind, float(value)) for kind, value in pairs if value is not None]


def _all_stars_lost(found: Classes) -> Classes:
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
