"""A release of a series: fixed levels, and noise that was planned for all periods."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass

import numpy as np

from incrowd.anonymize.safe_search import Ramp, make_ramp
from incrowd.arrays import Floats
from incrowd.codes.counted_table import CountedTable, CountNoise
from incrowd.codes.frequency import Frequencies
from incrowd.errors import IncrowdError
from incrowd.findings import Finding, make_finding
from incrowd.methods.base import MakeContext
from incrowd.methods.safe.remote_counts import RemoteCountedTable
from incrowd.methods.safe.scheme import FixedScheme, draw_leveled_product
from incrowd.privacy.counts import build_event_law
from incrowd.privacy.draw_parameters import CountsEvent, list_series_parameters
from incrowd.privacy.events import SeriesCounts
from incrowd.privacy.plan_counts import USUAL_K
from incrowd.privacy.randomness import Randomness
from incrowd.privacy.series import (
    LARGEST_DOMAIN,
    SeriesTurn,
    build_series_spread,
    compute_reach,
    compute_total_error,
    sample_series_noise,
)
from incrowd.privacy.split import BudgetSplit, split_for_counts
from incrowd.release.product import Product
from incrowd.spec.build import ColumnHierarchies
from incrowd.spec.release import SafeSpec


@dataclass(frozen=True)
class SeriesDraw:
    """Counts get the noise of their turn; cells are shown from its bound + k on.

    ``sizes`` are how many labels each column has: the noise of a cell is that of its place among
    all cells there could be, which no table moves.
    """

    event: SeriesCounts
    k: int
    turn: SeriesTurn
    sizes: tuple[int, ...] = ()

    @property
    def reach(self) -> int:
        """The most that the noise can be."""
        return compute_reach(self.event, self.turn.number)

    @property
    def ramp(self) -> Ramp:
        """At the crowd."""
        return make_ramp(self.reach + self.k, 1.0)

    @property
    def crowd(self) -> float:
        """The bound + k."""
        return float(self.reach + self.k)

    def publish_probability(self, rows: Floats) -> Floats:
        """Return P[n + X >= bound + k]."""
        spread = build_series_spread(self.event, self.turn.number)
        threshold = self.reach + self.k
        return np.array([spread.compute_tail(threshold - int(n)) if n >= 1 else 0.0 for n in rows])

    @property
    def noise(self) -> CountNoise:
        """By its spread."""
        spread = build_series_spread(self.event, self.turn.number)
        return CountNoise(spread.variance, self.crowd)

    @property
    def parameters(self) -> dict[str, float | str]:
        """k, the law of the noise, the number of the release and the name of its series."""
        parameters = list_series_parameters(self.event, self.turn.number)
        return {"k": float(self.k), **parameters, "series": self.turn.name}

    def draw_published_cells(self, frequencies: Frequencies, bits: Randomness) -> Frequencies:
        """Add the noise of the turn, which the key of the series decides, and not ``bits``."""
        del bits
        noise = sample_series_noise(
            self.event, self.turn.number, math.prod(self.sizes), self.turn.key
        )
        at = np.ravel_multi_index(tuple(frequencies.codes.T), self.sizes)
        noisy = frequencies.counts + noise[at]
        places = np.flatnonzero(noisy >= self.reach + self.k)
        return Frequencies(frequencies.codes[places], noisy[places])


class SeriesScheme(FixedScheme):
    """By the levels of the spec, the same in every period."""

    def __init__(self, release: SafeSpec, declared: ColumnHierarchies) -> None:
        super().__init__(release, declared)
        for name in declared.names:
            if declared.is_open(name):
                raise IncrowdError(
                    f"Column '{name}': a series needs listed values, so that every period has the "
                    "same cells. List them in its hierarchy, or drop the column."
                )
        cells = math.prod(self._list_sizes(declared.names))
        if cells > LARGEST_DOMAIN:
            raise IncrowdError(
                f"Series: {cells:,} cells at the levels of the spec are more than "
                f"{LARGEST_DOMAIN:,}, and each draws noise in every period. Use coarser levels or "
                "fewer columns."
            )

    def _list_sizes(self, names: tuple[str, ...]) -> tuple[int, ...]:
        """Return how many labels each column has at its level, null and what is outside too."""
        return tuple(
            len(self._declared.get_hierarchy(name, tuple).labels[self.levels[name]])
            for name in names
        )

    def make_product(
        self, table: CountedTable | RemoteCountedTable, split: BudgetSplit, context: MakeContext
    ) -> Product:
        """Add the noise of the turn, drop what is rare."""
        if not isinstance(table, CountedTable):
            raise IncrowdError(
                "Table: too many distinct tuples for a series on one machine. Use coarser levels."
            )
        assert isinstance(split.event, SeriesCounts)
        assert context.turn is not None
        levels = tuple(self.levels[name] for name in table.names)
        table = table.roll_up(levels)
        labels = [h.labels[at] for h, at in zip(table.hierarchies, levels, strict=True)]
        domain = json.dumps([table.names, levels, labels]).encode()
        draw = SeriesDraw(
            split.event,
            self._release.k or USUAL_K,
            context.turn.bind(domain),
            tuple(map(len, labels)),
        )
        return draw_leveled_product(table, self._declared, self._release, draw, context)


def find_noisier_totals(split: BudgetSplit) -> tuple[Finding, ...]:
    """Find a series whose running totals are no better than a sum of single releases."""
    event = split.event
    if not isinstance(event, SeriesCounts):
        return ()
    alone = split_for_counts(epsilon=split.epsilon, delta=split.delta, rows=event.rows).draws[-1]
    assert isinstance(alone, CountsEvent)
    summed = math.sqrt(event.of * build_event_law(alone).variance)
    errors = [compute_total_error(event, range(1, t + 1)).spread for t in range(1, event.of + 1)]
    if max(errors) < summed:
        return ()
    return (make_finding("SERIES_NOISIER", of=event.of, error=max(errors), summed=summed),)
