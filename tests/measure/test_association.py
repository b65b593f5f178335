"""Associations that a reader of counts finds: noise is taken off, and missing cells are filled."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.pairs import pair_of, table

from incrowd.arrays import Floats
from incrowd.codes.counted import CountNoise
from incrowd.codes.frequency import Frequencies
from incrowd.measure import association
from incrowd.measure.association import associations, filled
from incrowd.measure.utility import Pair


def grid(rows: Floats) -> Frequencies:
    """The cells of a grid that have rows."""
    places = np.argwhere(rows > 0).astype(np.int32)
    return Frequencies(places, rows[rows > 0].astype(np.int64))


def seen(rows: Floats, noise: CountNoise | None) -> float:
    whole = grid(rows)
    pair = pair_of(whole, whole, *(np.eye(size) for size in rows.shape))
    return associations(replace(pair, noise=noise))[0].released


def independent(total: float, *margins: list[float]) -> Floats:
    found = np.array(total)
    for margin in margins:
        found = found[..., None] * (np.array(margin) / sum(margin))
    return np.asarray(found)


EVEN = independent(40_000, [3, 2, 1, 1], [4, 2, 1])


def test_what_noise_is_expected_to_add_is_taken_off() -> None:
    """Its mean over many draws, to a few percent: half of it or twice as much would be seen."""
    rng, variance = np.random.default_rng(1), 9000.0
    shared, shift = np.full(EVEN.shape, variance), np.outer([1, -1, 1, -1], [1, -1, 1])
    dependent = EVEN * (1 + 0.2 * shift)
    true = association._cramers_v(dependent) ** 2
    raw, less = [], []
    for _ in range(4000):
        noisy = dependent + rng.normal(0, variance**0.5, EVEN.shape)
        raw.append(association._cramers_v(noisy) ** 2 - true)
        less.append(association._cramers_v(noisy, shared) ** 2 - true)
    assert np.mean(raw) > 3e-4
    assert abs(np.mean(less)) < 0.15 * np.mean(raw)


def test_independent_columns_look_independent_again() -> None:
    rng = np.random.default_rng(2)
    noise = CountNoise(variance=900.0, crowd=100.0)
    raw, less = [], []
    for _ in range(100):
        noisy = np.maximum(np.rint(EVEN + rng.normal(0, 30, EVEN.shape)), 1)
        raw.append(seen(noisy, None))
        less.append(seen(noisy, noise))
    assert np.mean(less) < 0.5 * np.mean(raw)
    assert np.median(less) < 0.005


def test_a_strong_association_is_hardly_touched() -> None:
    strong = np.diag([9000.0, 6000.0, 3000.0]) + 300
    noise = CountNoise(variance=900.0, crowd=100.0)
    assert seen(strong, noise) == pytest.approx(seen(strong, None), abs=0.001)


def test_noise_in_coarse_labels_is_spread_like_their_rows() -> None:
    """A label of two values has its noise in both, a half each: a quarter of the variance."""
    released = table([(0, 0, 500), (0, 1, 500), (1, 0, 500), (1, 1, 500)])
    shares = np.array([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]])
    pair = pair_of(released, released, shares, np.eye(2))
    found = association._noise(pair, CountNoise(16.0, 50.0), 0, 1)
    assert found == pytest.approx(np.array([[4.0, 4.0], [4.0, 4.0], [16.0, 16.0]]))


def test_missing_cells_are_filled_as_independence_has_them() -> None:
    whole = independent(10_000, [6, 3, 1], [5, 3, 2], [7, 3])
    crowd = 200.0
    shown = np.where(whole >= crowd, np.rint(whole), 0.0)
    lost = int((shown == 0).sum())
    assert lost > 3
    found = filled(grid(shown), crowd)
    rows = np.zeros(whole.shape)
    rows[tuple(found.codes.T)] = found.counts
    assert rows[shown > 0] == pytest.approx(shown[shown > 0])
    expected = np.minimum(whole, crowd / 4)
    assert rows[shown == 0] == pytest.approx(expected[shown == 0], rel=0.05)


def test_rare_labels_do_not_look_associated() -> None:
    whole = independent(30_000, [90, 6, 3, 1], [85, 10, 4, 1])
    crowd = 80.0
    shown = np.where(whole >= crowd, np.rint(whole), 0.0)
    naive = seen(shown, None)
    assert naive > 0.03
    assert seen(shown, CountNoise(1e-9, crowd)) < 0.6 * naive


def test_no_more_than_a_quarter_of_the_crowd_is_filled_in() -> None:
    """A cell that independence would make large was small, or it would be shown."""
    shown = np.array([[5000.0, 0.0], [0.0, 5000.0], [900.0, 900.0]])
    found = filled(grid(shown), 80.0)
    rows = np.zeros(shown.shape)
    rows[tuple(found.codes.T)] = found.counts
    assert rows[0, 1] == rows[1, 0] == 20.0
    assert seen(shown, CountNoise(1e-9, 80.0)) > 0.8


def test_too_many_possible_cells_are_left_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = grid(np.array([[500.0, 0.0], [0.0, 500.0]]))
    monkeypatch.setattr(association, "_GRID", 3)
    assert filled(shown, 80.0) is shown
    nothing = Frequencies(shown.codes[:0], shown.counts[:0])
    assert filled(nothing, 80.0) is nothing


def test_without_noise_nothing_changes() -> None:
    rows = np.array([[500.0, 0.0], [40.0, 500.0]])
    whole = grid(rows)
    pair: Pair = pair_of(whole, whole, np.eye(2), np.eye(2))
    (only,) = associations(pair)
    assert only.released == only.original
