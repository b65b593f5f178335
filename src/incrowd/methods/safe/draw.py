"""How the cells of a safe release are drawn: by a sample of their rows, or by noisy counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from incrowd.anonymize.counts import noisy_counts
from incrowd.anonymize.safe import safe
from incrowd.anonymize.safe_search import Ramp, ramp
from incrowd.arrays import Floats
from incrowd.codes.counted import CountNoise
from incrowd.codes.frequency import Frequencies
from incrowd.privacy.counts import law_of
from incrowd.privacy.events import Coin, SafeRelease
from incrowd.privacy.plan_counts import USUAL_K
from incrowd.privacy.randomness import Randomness, thinned
from incrowd.privacy.split import CountsEvent, Split
from incrowd.spec.release import SafeSpec


class Draw(Protocol):
    """What becomes of the cells of a scheme, all of it settled before the table is seen."""

    @property
    def ramp(self) -> Ramp:
        """What a search counts a cell for, by its rows."""
        ...

    @property
    def crowd(self) -> float:
        """The number of alike rows from which a cell is shown at least as often as not."""
        ...

    def likely(self, rows: Floats) -> Floats:
        """How likely cells with so many rows are shown."""
        ...

    @property
    def noise(self) -> CountNoise | None:
        """What is known of the noise in counts; None where rows were drawn."""
        ...

    @property
    def parameters(self) -> dict[str, float | str]:
        """What the certificate says of the table."""
        ...

    def shown(self, frequencies: Frequencies, bits: Randomness) -> Frequencies:
        """The cells that are shown, with the number of rows shown of each."""
        ...


@dataclass(frozen=True)
class BySample:
    """Rows are drawn with a rate; cells that then have fewer than k are dropped."""

    pair: SafeRelease
    split: Split
    noise: None = None

    @property
    def ramp(self) -> Ramp:
        """At the crowd k / beta."""
        return ramp(self.pair.k, self.pair.beta)

    @property
    def crowd(self) -> float:
        """k / beta."""
        return self.pair.k / self.pair.beta

    def likely(self, rows: Floats) -> Floats:
        """P[B(n, beta) >= k]."""
        from scipy.special import bdtrc  # slow to load, and only samples need it

        n = np.maximum(rows, self.pair.k).astype(np.int64)
        found: Floats = np.where(
            rows >= self.pair.k,
            bdtrc(self.pair.k - 1, n, self.pair.beta),
            0.0,
        )
        return found

    @property
    def parameters(self) -> dict[str, float | str]:
        """k and beta among them."""
        return self.split.parameters(self.pair)

    def shown(self, frequencies: Frequencies, bits: Randomness) -> Frequencies:
        """Thinned, and dropped below k."""
        return safe(frequencies, k=self.pair.k, beta=self.pair.beta, bits=bits)


@dataclass(frozen=True)
class ByCounts:
    """Counts get noise of at most r; cells are shown from r + k on."""

    event: CountsEvent
    k: int
    split: Split

    @property
    def ramp(self) -> Ramp:
        """At the crowd r + k."""
        return ramp(self.event.r + self.k, 1.0)

    @property
    def crowd(self) -> float:
        """r + k."""
        return float(self.event.r + self.k)

    def likely(self, rows: Floats) -> Floats:
        """P[n + X >= r + k]."""
        law, least = law_of(self.event), self.event.r + self.k
        return np.array([law.at_least(least - int(n)) if n >= 1 else 0.0 for n in rows])

    @property
    def noise(self) -> CountNoise:
        """By its law."""
        return CountNoise(law_of(self.event).variance, self.crowd)

    @property
    def parameters(self) -> dict[str, float | str]:
        """k, r and the noise among them."""
        return {"k": float(self.k), **self.split.parameters(self.event)}

    def shown(self, frequencies: Frequencies, bits: Randomness) -> Frequencies:
        """With noise, from r + k on."""
        return noisy_counts(frequencies, self.event, k=self.k, bits=bits)


def draws(split: Split, release: SafeSpec, bits: Randomness) -> tuple[Draw, ...]:
    """What one table may be drawn with; where a coin decides that, it is tossed now.

    The coin sees no data, so it may be tossed, and known, before anything is chosen.
    """
    if isinstance(split.event, Coin):
        tossed = bool(thinned(np.ones(1, dtype=np.int64), split.event.chance, bits)[0])
        first, second = split.draws
        return (_of(first if tossed else second, split, release),)
    return tuple(_of(draw, split, release) for draw in split.draws)


def possible(split: Split, release: SafeSpec) -> tuple[Draw, ...]:
    """What tables may be drawn with; nothing is tossed."""
    return tuple(_of(draw, split, release) for draw in split.draws)


def _of(draw: SafeRelease | CountsEvent, split: Split, release: SafeSpec) -> Draw:
    if isinstance(draw, SafeRelease):
        return BySample(draw, split)
    return ByCounts(draw, release.k or USUAL_K, split)
