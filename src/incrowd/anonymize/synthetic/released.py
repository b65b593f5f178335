"""All that has been released so far, and the model that is fitted to it.

Nothing here sees the private table: a decision that rests on this alone costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from incrowd.anonymize.synthetic.domain import Columns, Domain, Levels
from incrowd.anonymize.synthetic.fit import Parameters, fit
from incrowd.anonymize.synthetic.measurement import Measurement, TableEstimate, center, combine
from incrowd.anonymize.synthetic.model import Model, make_structure
from incrowd.anonymize.synthetic.tree import (
    Graph,
    add_table,
    count_cells,
    make_graph,
    triangulate,
)

SURPRISE = 2.5
Key = tuple[Columns, Levels]


class Released:
    """Measurements, which of them the model holds, and the model.

    ``levels`` are those of the columns in the model: the finest that a table it holds has, or a
    rule asks for. ``graph`` joins the columns that stand in one table or one rule.
    """

    def __init__(self, domain: Domain) -> None:
        self.domain = domain
        self.measurements: list[Measurement] = []
        self.levels = list(domain.rule_levels)
        self.graph: Graph = make_graph(len(domain), domain.rules)
        self._aside: set[Key] = set()
        self._model: Model | None = None
        self._parameters: Parameters = {}

    @property
    def model(self) -> Model:
        """The model, as last fitted."""
        assert self._model is not None
        return self._model

    @property
    def aside(self) -> frozenset[Key]:
        """The measured tables that the model does not hold."""
        return frozenset(self._aside)

    def add(self, measurement: Measurement) -> None:
        """Take in a measurement of a table that the model holds, or that is never held."""
        self.measurements.append(measurement)

    def hold(self, columns: Columns, levels: Levels) -> None:
        """Let the next model hold a table."""
        for column, level in zip(columns, levels, strict=True):
            self.levels[column] = min(self.levels[column], level)
        self.graph = add_table(self.graph, columns)

    def set_aside(self, columns: Columns, levels: Levels) -> None:
        """Keep a measured table out of the model."""
        self._aside.add((columns, levels))

    def estimates(self) -> dict[Key, TableEstimate]:
        """Return the tables that the model holds, all measurements of each as one."""
        by_key: dict[Key, list[Measurement]] = {}
        for measurement in self.measurements:
            by_key.setdefault((measurement.columns, measurement.levels), []).append(measurement)
        return {
            key: combine(some) for key, some in by_key.items() if key[0] and key not in self._aside
        }

    def count_rows(self, estimates: Iterable[TableEstimate] = ()) -> float:
        """Return the estimated number of rows, from its own measurement and tables that tell it."""
        totals = [
            combine([measurement]) for measurement in self.measurements if not measurement.columns
        ]
        sources = [*totals, *(estimate for estimate in estimates if not estimate.centered)]
        weights = [source.precision / source.cells.size for source in sources]
        sums = [float(source.cells.sum()) for source in sources]
        return max(float(np.average(sums, weights=weights)), 1.0)

    def fit_model(self, *, gap: float, steps: int) -> Model:
        """Fit the model to all that it holds, beginning from the last one."""
        estimates = list(self.estimates().values())
        structure = make_structure(self.domain, self.levels, self.graph)
        self._model, self._parameters = fit(
            structure,
            estimates,
            self.count_rows(estimates),
            before=self._model,
            parameters=self._parameters,
            gap=gap,
            steps=steps,
        )
        return self._model

    def is_surprising(self, measurement: Measurement) -> bool:
        """Whether a measured table differs from the model by more than its noise.

        Where the model is right, a residual's square, in units of the noise, has the mean of
        a cell's degrees of freedom and twice its square as variance, or so. Cells of which the
        model expects less than the noise count for less: what they say is mostly noise.
        """
        expected = self.model.table(measurement.columns, measurement.levels) * self.model.rows
        residual, axes = measurement.cells - expected, measurement.centered
        residual = center(residual, axes) if axes else residual - residual.mean()
        shape = enumerate(residual.shape)
        freedom = math.prod(size - 1 if axis in axes else size for axis, size in shape)
        weights = np.minimum(expected * math.sqrt(measurement.precision), 1.0)
        gain = freedom / residual.size
        excess = float((weights * (residual**2 * measurement.precision - gain)).sum())
        return bool(excess >= SURPRISE * gain * math.sqrt(2 * float((weights**2).sum())))

    def fits(self, columns: Columns, levels: Levels, most: int) -> bool:
        """Whether a model that also holds a table has at most so many cells."""
        finer = list(self.levels)
        for column, level in zip(columns, levels, strict=True):
            finer[column] = min(finer[column], level)
        pairs = zip(self.domain.columns, finer, strict=True)
        sizes = [column.sizes[level] for column, level in pairs]
        graph = add_table(self.graph, columns)
        return count_cells(triangulate(graph, sizes), sizes) <= most
