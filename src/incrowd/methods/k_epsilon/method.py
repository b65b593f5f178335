"""A (k,epsilon)-anonymous release: classes of quasi columns, noise on others inside each class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from incrowd.arrays import Codes, Places, Steps
from incrowd.codes.counted import Rows, Shown
from incrowd.codes.frequency import merged
from incrowd.engine.count import count_rows
from incrowd.engine.table import Engine, Table
from incrowd.errors import IncrowdError
from incrowd.methods.base import Settled, Walk, in_reading_order, protection, published
from incrowd.methods.k_anonymity.classes import Classes, classes
from incrowd.methods.k_anonymity.columns import Columns
from incrowd.methods.k_epsilon.loss import noisiness
from incrowd.methods.k_epsilon.rows import NoisyRows, NoisyValues, noisy_rows
from incrowd.privacy.events import Event
from incrowd.release.certificate import NoisyColumn, Promise
from incrowd.release.product import Made, Product
from incrowd.spec.file import SpecFile
from incrowd.spec.model import Column
from incrowd.spec.release import KEpsilonSpec


class KEpsilon:
    """k-anonymity of the quasi columns, and noise on the noisy ones, as wide as each class."""

    def __init__(self, file: SpecFile) -> None:
        assert isinstance(file.spec.release, KEpsilonSpec)
        self.columns = Columns(file, file.spec.release)
        algorithm = self.columns.release.algorithm
        self.release = file.spec.release.model_copy(update={"algorithm": algorithm})
        self.noisy = published(file.spec, "noisy")
        self._order = tuple(file.spec.columns)
        self.events: list[Event] = []
        self.promise = Promise(kind="(k,epsilon)-anonymity", **protection(file.spec))
        _refuse(self.release, self.noisy)

    @property
    def settled(self) -> Settled:
        """Classes of at least k."""
        return self.columns.settled

    def count(self, table: Table) -> Rows:
        """The tuples of generalised, kept and noisy columns."""
        return count_rows(table, self.columns.declared, (*self.columns.kept, *self.noisy))

    @property
    def every(self) -> dict[str, Column]:
        """All columns that are shown."""
        return {**self.columns.quasi, **self.columns.kept, **self.noisy}

    def make(self, rows: Rows, walk: Walk) -> Made:
        """Search, draw noise, put the rows in the order of what they show."""
        walk.step("search")
        found = classes(rows, self.every, self.release, bits=walk.bits, progress=walk.progress)
        walk.step("draw")
        data = noisy_rows(rows, found, self.noisy, self.release)
        released = data.released(walk.bits)
        kept, confidence = np.ones(len(data.members), dtype=bool), self.release.confidence
        if confidence is not None:
            kept = data.confident(released, k=self.columns.k, confidence=confidence)
        looks = merged(found.codes[rows.owner[data.tuples[kept]]], np.ones(kept.sum(), np.int64))
        product = Product(
            data=self._table(rows, found, data, released, np.flatnonzero(kept), walk.engine),
            original=rows.counted,
            shown=Shown(found.labels, looks, found.levels or ()),
            columns=self.columns.quasi,
            axes=rows.counted.axes,
            parameters=self._parameters(),
            kept=tuple(self.columns.kept),
            noisy={
                column.name: NoisyColumn(
                    kind=column.grid.kind, step=format(column.grid.step, "f"),
                    bounds=self._shown_bounds(column),
                )
                for column in data.columns
            },
            noise=partial(noisiness, data, released, kept, walk.bits),
            warnings=self.columns.warnings(rows),
        )  # fmt: skip
        return Made(
            (product,), self.promise, self.events, rows.counted, reasons=self.columns.reasons
        )

    def _parameters(self) -> dict[str, float | str]:
        release = self.release
        assert release.epsilon is not None
        known = self.columns.parameters()
        known["epsilon"] = float(release.epsilon)
        known["noise"] = release.noise or "laplace"
        known["bounds"] = release.bounds or "class"
        if release.delta is not None:
            known["delta"] = release.delta
        if release.confidence is not None:
            known["confidence"] = release.confidence
        return known

    def _shown_bounds(self, column: NoisyValues) -> tuple[str, str] | None:
        declared = self.noisy[column.name].bounds
        if not self.release.clamp or declared is None:
            return None
        return format(declared[0], "f"), format(declared[1], "f")

    def _table(
        self,
        rows: Rows,
        found: Classes,
        data: NoisyRows,
        released: Sequence[Steps],
        kept: Places,
        engine: Engine,
    ) -> Table:
        """The rows in the order of what they show, which tells nothing else of them."""
        tuples = data.tuples[kept]
        owner = rows.owner[tuples]
        width = len(self.columns.quasi)
        coded: dict[str, tuple[Sequence[object], Codes]] = {}
        for at, name in enumerate(rows.counted.names):
            labels, rank = in_reading_order(found.labels[at])
            coded[name] = labels, rank[found.codes[owner, at]]
        for at, name in enumerate(self.columns.kept):
            labels, rank = in_reading_order(rows.kept[name])
            coded[name] = labels, rank[rows.frequencies.codes[tuples, width + at]]
        plain = {
            column.name: (column.grid.values(noisy[kept]), column.null[kept])
            for column, noisy in zip(data.columns, released, strict=True)
        }
        names = [name for name in self._order if name in coded or name in plain]
        keys: list[npt.NDArray[Any]] = []
        for name in names:
            if name in coded:
                keys.append(coded[name][1])
            else:
                values, null = plain[name]
                keys += [null, np.where(null, values[:1], values)]  # nulls are alike, and last
        order = np.lexsort(keys[::-1])  # which sorts by its last key first
        return engine.from_rows(
            {name: (labels, codes[order]) for name, (labels, codes) in coded.items()},
            {name: (values[order], null[order]) for name, (values, null) in plain.items()},
            names,
        )


def _refuse(release: KEpsilonSpec, noisy: Mapping[str, Column]) -> None:
    """Refuse what does not go together, whatever the table."""
    if release.epsilon is None or release.epsilon <= 0:
        raise IncrowdError("The method 'k-epsilon' needs an 'epsilon' above 0.")
    if release.noise == "gaussian" and release.delta is None:
        raise IncrowdError("Gaussian noise needs a 'delta', such as 1e-6.")
    if release.noise != "gaussian" and release.delta is not None:
        raise IncrowdError("'delta' belongs to 'noise: gaussian'.")
    if release.rows == "weighted":
        raise IncrowdError("Rows with noise are all different: 'rows: weighted' has no use.")
    if release.suppressed == "starred":
        raise IncrowdError("'suppressed: starred' does not go with the method 'k-epsilon'.")
    if not noisy:
        raise IncrowdError("The method 'k-epsilon' needs a column with the role 'noisy'.")
    if release.bounds == "declared" and release.confidence is not None:
        raise IncrowdError(
            "'bounds: declared' does not go with 'confidence': which rows are suppressed "
            "depends on other people's values, and the local guarantee would not hold."
        )
    for name, column in noisy.items():
        if column.bounds is None and release.bounds == "declared":
            raise IncrowdError(
                f"'bounds: declared' needs the bounds of the noisy column '{name}', such as "
                "'bounds: [50, 250]'."
            )
        if column.bounds is None and release.clamp:
            raise IncrowdError(f"'clamp' needs the bounds of the noisy column '{name}'.")
