"""Cells shown with noisy counts: what is shown, and that each cell has noise of its own."""

from __future__ import annotations

import numpy as np
import pytest
from support.noise_law import is_drawn_from

from incrowd.anonymize.safe_counts import draw_noisy_counts
from incrowd.codes.frequency import Frequencies
from incrowd.privacy.counts import build_gaussian_law, build_geometric_law
from incrowd.privacy.events import GaussianCounts, GeometricCounts
from incrowd.privacy.randomness import SeededRandomness

EVENTS: list[GeometricCounts | GaussianCounts] = [
    GeometricCounts(14, 1.0),
    GaussianCounts(20, 12.5),
]


def cells(counts: list[int]) -> Frequencies:
    return Frequencies(np.arange(len(counts), dtype=np.int32)[:, None], np.array(counts))


@pytest.mark.parametrize("event", EVENTS, ids=str)
@pytest.mark.parametrize("k", [1, 5])
def test_nothing_is_shown_of_fewer_than_k_and_all_of_a_crowd(
    event: GeometricCounts | GaussianCounts, k: int
) -> None:
    sizes = [*range(1, k), k, 2 * event.r + k - 1, 2 * event.r + k]
    for seed in range(200):
        noisy_counts = draw_noisy_counts(cells(sizes), event, k=k, bits=SeededRandomness(seed))
        published = set(noisy_counts.codes[:, 0].tolist())
        assert not published & set(range(k - 1))
        assert len(sizes) - 1 in published
        true = np.array(sizes)[noisy_counts.codes[:, 0]]
        assert (noisy_counts.counts >= event.r + k).all()
        assert (np.abs(noisy_counts.counts - true) <= event.r).all()


@pytest.mark.parametrize("event", EVENTS, ids=str)
def test_a_cell_is_shown_as_often_as_the_law_says(event: GeometricCounts | GaussianCounts) -> None:
    law = (
        build_geometric_law(event.epsilon, event.r)
        if isinstance(event, GeometricCounts)
        else build_gaussian_law(event.variance, event.r)
    )
    k, runs = 3, 40_000
    for n in (event.r + k - 2, event.r + k, event.r + k + 1):
        noisy_counts = draw_noisy_counts(cells([n] * runs), event, k=k, bits=SeededRandomness(n))
        likely = law.compute_tail(event.r + k - n)
        assert abs(len(noisy_counts) - runs * likely) < 5 * np.sqrt(
            runs * likely * (1 - likely) + 1
        )


def test_every_cell_has_noise_of_its_own() -> None:
    event = EVENTS[0]
    noisy_counts = draw_noisy_counts(cells([1000] * 100_000), event, k=1, bits=SeededRandomness(1))
    noise = noisy_counts.counts - 1000
    law = build_geometric_law(1.0, 14)
    assert is_drawn_from(noise, np.concatenate([law.tail[:0:-1], law.tail]))
    together = noise[::2] + noise[1::2]  # one noise for two cells would double it
    assert together.var() == pytest.approx(2 * noise.var(), rel=0.05)
