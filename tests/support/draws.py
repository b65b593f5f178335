"""Draws that tasks of Spark make in tests: they must be found by the processes of the executors."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from incrowd.codes.frequency import Frequencies
from incrowd.engine.table import ChunkResult, ClassChunk
from incrowd.privacy.randomness import Randomness, sample_binomial


@dataclass(frozen=True)
class HalfDraw:
    """Each row is drawn with probability one half; cells are shown from so many rows on."""

    crowd: float = 1.0
    least: int = 0

    def draw_published_cells(self, frequencies: Frequencies, bits: Randomness) -> Frequencies:
        counts = sample_binomial(frequencies.counts, 0.5, bits)
        is_published = counts >= self.least
        return Frequencies(frequencies.codes[is_published], counts[is_published])


@dataclass(frozen=True)
class FailingDraw(HalfDraw):
    """The same; but the first task that draws fails when it has drawn, and writes down what."""

    folder: str = ""

    def draw_published_cells(self, frequencies: Frequencies, bits: Randomness) -> Frequencies:
        published = super().draw_published_cells(frequencies, bits)
        try:
            with (Path(self.folder) / "first").open("x") as file:
                file.write(" ".join(map(str, published.counts.tolist())))
        except FileExistsError:
            return published
        raise RuntimeError("lost")


def draw_words(chunk: ClassChunk, bits: Randomness) -> ChunkResult:
    """A work that gives every row a random number."""
    numbers = (bits.draw_words(len(chunk.members)) >> np.uint64(2)).astype(np.int64)
    is_kept = np.ones(len(numbers), dtype=bool)
    return ChunkResult(is_kept, dict.fromkeys(chunk.columns, (numbers, ~is_kept)), len(numbers))
