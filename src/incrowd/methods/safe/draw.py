"""How the cells of a safe release are drawn: by a sample of their rows, or by noisy counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from incrowd.anonymize.safe_counts import draw_noisy_counts
from incrowd.anonymize.safe_sample import sample_cells
from incrowd.anonymize.safe_search import Ramp, make_ramp
from incrowd.arrays import Floats
from incrowd.codes.counted_table import CountNoise
from incrowd.codes.frequency import Frequencies
from incrowd.privacy.counts import build_event_law
from incrowd.privacy.draw_parameters import CountsEvent, compute_threshold
from incrowd.privacy.events import Coin, SafeRelease, SeriesCounts
from incrowd.privacy.plan_counts import USUAL_K
from incrowd.privacy.randomness import Randomness, sample_binomial
from incrowd.privacy.series import SeriesTurn
from incrowd.privacy.split import BudgetSplit
from incrowd.spec.release import SafeSpec


class CellDraw(Protocol):
    """What becomes of the cells of a scheme, all of it settled before the table is seen."""

    @property
    def ramp(self) -> Ramp:
        """What a search counts a cell for, by its rows."""
        ...

    @property
    def crowd(self) -> float:
        """The number of alike rows from which a cell is shown at least as often as not."""
        ...

    def publish_probability(self, rows: Floats) -> Floats:
        """Return how likely cells with so many rows are shown."""
        ...

    @property
    def noise(self) -> CountNoise | None:
        """What is known of the noise in counts; None where rows were drawn."""
        ...

    @property
    def parameters(self) -> dict[str, float | str]:
        """What the certificate says of the table."""
        ...

    def draw_published_cells(self, frequencies: Frequencies, bits: Randomness) -> Frequencies:
        """Draw the cells that are shown, with the number of rows shown of each."""
        ...


@dataclass(frozen=True)
class SampleDraw:
    """Rows are drawn with a rate; cells that then have fewer than k are dropped."""

    pair: SafeRelease
    split: BudgetSplit
    noise: None = None

    @property
    def ramp(self) -> Ramp:
        """At the crowd k / beta."""
        return make_ramp(self.pair.k, self.pair.beta)

    @property
    def crowd(self) -> float:
        """k / beta."""
        return self.pair.k / self.pair.beta

    def publish_probability(self, rows: Floats) -> Floats:
        """Return P[B(n, beta) >= k]."""
        from scipy.special import bdtrc  # slow to load, and only samples need it

        n = np.maximum(rows, self.pair.k).astype(np.int64)
        probability: Floats = np.where(
            rows >= self.pair.k,
            bdtrc(self.pair.k - 1, n, self.pair.beta),
            0.0,
        )
        return probability

    @property
    def parameters(self) -> dict[str, float | str]:
        """k and beta among them."""
        return self.split.list_parameters(self.pair)

    def draw_published_cells(self, frequencies: Frequencies, bits: Randomness) -> Frequencies:
        """Thin the rows, and drop cells below k."""
        return sample_cells(frequencies, k=self.pair.k, beta=self.pair.beta, bits=bits)


@dataclass(frozen=True)
class NoisyCountsDraw:
    """Counts get noise of at most r; cells are shown from r + k on.

    Where rows are counted, c of a person in a cell, it is from r + c (k - 1) + 1 on.
    """

    event: CountsEvent
    k: int
    split: BudgetSplit

    @property
    def threshold(self) -> int:
        """The smallest noisy count that is shown."""
        return compute_threshold(self.event.r, self.k, self.split.per_group)

    @property
    def ramp(self) -> Ramp:
        """At the threshold."""
        return make_ramp(self.threshold, 1.0)

    @property
    def crowd(self) -> float:
        """The threshold."""
        return float(self.threshold)

    def publish_probability(self, rows: Floats) -> Floats:
        """Return P[n + X >= threshold]."""
        law, threshold = build_event_law(self.event), self.threshold
        return np.array([law.compute_tail(threshold - int(n)) if n >= 1 else 0.0 for n in rows])

    @property
    def noise(self) -> CountNoise:
        """By its law."""
        return CountNoise(build_event_law(self.event).variance, self.crowd)

    @property
    def parameters(self) -> dict[str, float | str]:
        """k, r and the noise among them."""
        return {"k": float(self.k), **self.split.list_parameters(self.event)}

    def draw_published_cells(self, frequencies: Frequencies, bits: Randomness) -> Frequencies:
        """Add noise to the counts, and show cells from the threshold on."""
        return draw_noisy_counts(
            frequencies, self.event, k=self.k, per_group=self.split.per_group, bits=bits
        )


def make_draws(split: BudgetSplit, release: SafeSpec, bits: Randomness) -> tuple[CellDraw, ...]:
    """Return what one table may be drawn with; where a coin decides that, toss it now.

    The coin sees no data, so it may be tossed, and known, before anything is chosen.
    """
    if isinstance(split.event, Coin):
        is_first = bool(sample_binomial(np.ones(1, dtype=np.int64), split.event.chance, bits)[0])
        first, second = split.draws
        return (_make_draw(first if is_first else second, split, release),)
    return tuple(_make_draw(draw, split, release) for draw in split.draws)


def list_draws(split: BudgetSplit, release: SafeSpec) -> tuple[CellDraw, ...]:
    """Return what tables may be drawn with; toss nothing."""
    if isinstance(split.event, SeriesCounts):
        from incrowd.methods.safe.series import SeriesDraw  # which builds on this module

        last = SeriesTurn(split.event.of, b"")
        return (SeriesDraw(split.event, release.k or USUAL_K, last),)
    return tuple(_make_draw(draw, split, release) for draw in split.draws)


def _make_draw(draw: SafeRelease | CountsEvent, split: BudgetSplit, release: SafeSpec) -> CellDraw:
    if isinstance(draw, SafeRelease):
        return SampleDraw(draw, split)
    return NoisyCountsDraw(draw, release.k or USUAL_K, split)
