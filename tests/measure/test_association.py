"""Associations, against sums over all bins; of counts, without what noise and gaps would add."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from scipy.stats import contingency
from support.pairs import (
    compute_expected_rows,
    draw_frequencies,
    make_frequencies,
    make_identity_pair,
    make_pair,
    make_uniform_shares,
    repeat_rows,
    utility_pairs,
)

from incrowd.arrays import Codes, Floats
from incrowd.codes.counted_table import CountNoise
from incrowd.codes.frequency import Frequencies
from incrowd.measure import association
from incrowd.measure.association import (
    Association,
    compute_associations,
    compute_mean_error,
    fill_missing_cells,
)
from incrowd.measure.utility import TablePair, compute_distances


def grid(rows: Floats) -> Frequencies:
    """The cells of a grid that have rows."""
    places = np.argwhere(rows > 0).astype(np.int32)
    return Frequencies(places, rows[rows > 0].astype(np.int64))


def seen(rows: Floats, noise: CountNoise | None) -> float:
    table = grid(rows)
    pair = make_pair(table, table, *(np.eye(size) for size in rows.shape))
    return compute_associations(replace(pair, noise=noise))[0].released


def independent(total: float, *margins: list[float]) -> Floats:
    result = np.array(total)
    for margin in margins:
        result = result[..., None] * (np.array(margin) / sum(margin))
    return np.asarray(result)


EVEN = independent(40_000, [3, 2, 1, 1], [4, 2, 1])


def test_what_noise_is_expected_to_add_is_taken_off() -> None:
    """Its mean over many draws, to a few percent: half of it or twice as much would be seen."""
    rng, variance = np.random.default_rng(1), 9000.0
    shared, shift = np.full(EVEN.shape, variance), np.outer([1, -1, 1, -1], [1, -1, 1])
    dependent = EVEN * (1 + 0.2 * shift)
    true = association._compute_cramers_v(dependent) ** 2
    raw, less = [], []
    for _ in range(4000):
        noisy = dependent + rng.normal(0, variance**0.5, EVEN.shape)
        raw.append(association._compute_cramers_v(noisy) ** 2 - true)
        less.append(association._compute_cramers_v(noisy, shared) ** 2 - true)
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
    released = make_frequencies([(0, 0, 500), (0, 1, 300), (1, 0, 200), (1, 1, 500)])
    shares = np.array([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]])
    pair = make_pair(released, released, shares, np.eye(2))
    (result,) = compute_associations(replace(pair, noise=CountNoise(16.0, 50.0)))
    expected = association._compute_cramers_v(
        np.array([[250.0, 150.0], [250.0, 150.0], [200.0, 500.0]]),
        np.array([[4.0, 4.0], [4.0, 4.0], [16.0, 16.0]]),
    )
    assert result.released == pytest.approx(expected, abs=1e-12)


def test_shares_of_all_columns_are_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Made for each pair of columns, they would cost the cube of the number of columns."""
    columns, calls = 6, {"bins": 0, "pieces": 0}
    collect_bins, collect_pieces = association._collect_bins, association._collect_pieces

    def count_bins(codes: Codes) -> association._BinPieces:
        calls["bins"] += 1
        return collect_bins(codes)

    def count_pieces(codes: Codes, shares: Floats) -> association._BinPieces:
        calls["pieces"] += 1
        return collect_pieces(codes, shares)

    monkeypatch.setattr(association, "_collect_bins", count_bins)
    monkeypatch.setattr(association, "_collect_pieces", count_pieces)
    table = make_frequencies([(*[0] * columns, 30), (*[1] * columns, 20)])
    pair = make_pair(table, table, *(np.eye(2) for _ in range(columns)))
    compute_associations(replace(pair, noise=CountNoise(variance=4.0, crowd=10.0)))
    assert calls == {"bins": columns, "pieces": columns}


def test_bins_that_no_label_divides_are_one_piece_and_change_nothing() -> None:
    """Of labels of several levels, with noise and without; beside each bin by itself."""
    rng = np.random.default_rng(4)
    released = make_frequencies([(*rng.integers(0, 4, 2).tolist(), 9) for _ in range(40)])
    runs = [(0, 4), (4, 9), (0, 9), (9, 10)]
    shares = np.array([[(low <= at < high) / (high - low) for at in range(12)]
                       for low, high in runs])  # fmt: skip
    pieces = association._collect_pieces(released.codes[:, 0], shares)
    assert sorted(pieces.bins) == [1, 4, 5]
    pair = make_pair(released, released, shares, shares)
    for noise in (None, CountNoise(variance=4.0, crowd=0.0)):
        joint, variance = np.zeros((12, 12)), np.zeros((12, 12))
        for (first, second), rows in zip(released.codes, released.counts, strict=True):
            joint += rows * np.outer(shares[first], shares[second])
            variance += 4.0 * np.outer(shares[first], shares[second]) ** 2
        true = association._compute_cramers_v(joint, None if noise is None else variance)
        assert 0 < true < 1
        result = compute_associations(replace(pair, noise=noise))[0].released
        assert result == pytest.approx(true, abs=1e-9)


def test_missing_cells_are_filled_as_independence_has_them() -> None:
    truth = independent(10_000, [6, 3, 1], [5, 3, 2], [7, 3])
    crowd = 200.0
    published = np.where(truth >= crowd, np.rint(truth), 0.0)
    lost = int((published == 0).sum())
    assert lost > 3
    result = fill_missing_cells(grid(published), crowd)
    rows = np.zeros(truth.shape)
    rows[tuple(result.codes.T)] = result.counts
    assert rows[published > 0] == pytest.approx(published[published > 0])
    expected = np.minimum(truth, crowd / 4)
    assert rows[published == 0] == pytest.approx(expected[published == 0], rel=0.05)


def test_rare_labels_do_not_look_associated() -> None:
    truth = independent(30_000, [90, 6, 3, 1], [85, 10, 4, 1])
    crowd = 80.0
    published = np.where(truth >= crowd, np.rint(truth), 0.0)
    naive = seen(published, None)
    assert naive > 0.03
    assert seen(published, CountNoise(1e-9, crowd)) < 0.6 * naive


def test_no_more_than_a_quarter_of_the_crowd_is_filled_in() -> None:
    """A cell that independence would make large was small, or it would be shown."""
    published = np.array([[5000.0, 0.0], [0.0, 5000.0], [900.0, 900.0]])
    result = fill_missing_cells(grid(published), 80.0)
    rows = np.zeros(published.shape)
    rows[tuple(result.codes.T)] = result.counts
    assert rows[0, 1] == rows[1, 0] == 20.0
    assert seen(published, CountNoise(1e-9, 80.0)) > 0.8


def test_too_many_possible_cells_are_left_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    published = grid(np.array([[500.0, 0.0], [0.0, 500.0]]))
    monkeypatch.setattr(association, "_GRID", 3)
    assert fill_missing_cells(published, 80.0) is published
    nothing = Frequencies(published.codes[:0], published.counts[:0])
    assert fill_missing_cells(nothing, 80.0) is nothing


def test_without_noise_nothing_changes() -> None:
    rows = np.array([[500.0, 0.0], [40.0, 500.0]])
    table = grid(rows)
    pair: TablePair = make_pair(table, table, np.eye(2), np.eye(2))
    (only,) = compute_associations(pair)
    assert only.released == only.original


def test_an_association_by_hand() -> None:
    # (30 * 30 - 10 * 10) / 40**2 = 1/2; each half of the second column shown decides nothing.
    original = make_frequencies([(0, 0, 30), (0, 1, 10), (1, 0, 10), (1, 1, 30)])
    released = make_frequencies([(0, 0, 40), (1, 0, 40)])
    (pair_association,) = compute_associations(
        make_pair(original, released, np.eye(2), make_uniform_shares([0, 1], bins=2))
    )
    assert (pair_association.first, pair_association.second) == ("a", "b")
    assert pair_association.original == pytest.approx(0.5)
    assert pair_association.released == pytest.approx(0.0, abs=1e-12)


def test_groups_that_decide_the_other_column_keep_v_at_one() -> None:
    original = make_frequencies([(0, 0, 4), (0, 1, 1), (1, 2, 2), (1, 3, 3)])
    released = make_frequencies([(0, 0, 5), (1, 1, 5)])
    halves = make_uniform_shares([0, 1], [2, 3], bins=4)
    (pair_association,) = compute_associations(make_pair(original, released, np.eye(2), halves))
    assert pair_association.original == pytest.approx(1.0)
    assert pair_association.released == pytest.approx(1.0)


def test_associations_agree_with_scipy() -> None:
    rng = np.random.default_rng(4)
    for _ in range(20):
        table = rng.integers(1, 30, rng.integers(2, 7, 2))
        rows = [(*place, int(count)) for place, count in np.ndenumerate(table)]
        (result,) = compute_associations(make_identity_pair(make_frequencies(rows), *table.shape))
        assert result.original == pytest.approx(contingency.association(table, method="cramer"))


@given(pair=utility_pairs())
def test_an_association_is_chi_square_of_all_pairs_of_bins(pair: TablePair) -> None:
    def v(side: Frequencies, shares: Sequence[Floats], first: int, second: int) -> float:
        joint = np.zeros((shares[first].shape[1], shares[second].shape[1]))
        for place, rows in compute_expected_rows(side, shares).items():
            joint[place[first], place[second]] += rows
        joint = joint[joint.sum(axis=1) > 0][:, joint.sum(axis=0) > 0]
        if min(joint.shape) == 1:
            return 0.0
        squares = joint**2 / joint.sum(axis=1)[:, None] / joint.sum(axis=0)
        return float(np.sqrt(max(squares.sum() - 1, 0) / (min(joint.shape) - 1)))

    associations = compute_associations(pair)
    assert len(associations) == len(pair.names) * (len(pair.names) - 1) // 2
    for pair_association in associations:
        at = pair.names.index(pair_association.first), pair.names.index(pair_association.second)
        assert 0 <= pair_association.original <= 1
        assert 0 <= pair_association.released <= 1
        # The reference takes the root of a difference of ones: 1e-16 becomes 1e-8.
        assert pair_association.original == pytest.approx(
            v(pair.original, pair.exact_shares, *at), abs=1e-6
        )
        assert pair_association.released == pytest.approx(
            v(pair.released, pair.shares, *at), abs=1e-6
        )


@given(pair=utility_pairs())
def test_distances_and_associations_do_not_see_how_counts_are_split(pair: TablePair) -> None:
    apart = TablePair(
        pair.names,
        repeat_rows(pair.original),
        repeat_rows(pair.released),
        pair.shares,
        pair.ordered,
    )
    assert compute_distances(apart) == pytest.approx(compute_distances(pair), abs=1e-12)
    for first, two in zip(compute_associations(apart), compute_associations(pair), strict=True):
        assert first.original == pytest.approx(two.original, abs=1e-9)
        assert first.released == pytest.approx(two.released, abs=1e-9)


@pytest.mark.parametrize("chunk", [1, 3, 1000])
def test_labels_too_many_for_a_grid_give_the_same(
    chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(9)
    released = make_frequencies([(*rng.integers(0, 6, 3).tolist(), 2) for _ in range(60)])
    shares = rng.dirichlet(np.ones(4), (3, 6))
    pair = make_pair(draw_frequencies(50, 4, 4, 4), released, *shares)
    grid = compute_associations(pair)
    monkeypatch.setattr(association, "_GRID", 0)
    monkeypatch.setattr(association, "_CHUNK", chunk)
    for first, two in zip(compute_associations(pair), grid, strict=True):
        assert first.original == pytest.approx(two.original)
        assert first.released == pytest.approx(two.released)


def test_ten_thousand_labels_fit_in_memory() -> None:
    labels = np.arange(10_000, dtype=np.int32)
    released = Frequencies(np.column_stack([labels, labels[::-1]]), np.ones(10_000, dtype=np.int64))
    shares = np.eye(4)[labels // 2500]
    original = make_frequencies([(at, 3 - at, 1) for at in range(4)])
    tracemalloc.start()
    (pair_association,) = compute_associations(make_pair(original, released, shares, shares))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50e6  # a grid of all pairs of labels takes 800 MB
    assert pair_association.original == pair_association.released == pytest.approx(1.0)


def test_constant_columns_and_empty_tables_have_no_association() -> None:
    constant = make_frequencies([(0, 0, 5), (0, 1, 5)])
    (pair_association,) = compute_associations(
        make_pair(constant, make_frequencies([], 2), np.eye(3), np.eye(2))
    )
    assert (pair_association.original, pair_association.released) == (0.0, 0.0)


def test_the_mean_error_of_associations() -> None:
    result = [Association("a", "b", 0.5, 0.25), Association("a", "c", 0.0, 0.75)]
    assert compute_mean_error(result) == 0.5
    assert compute_mean_error([]) == 0.0
    assert (
        compute_mean_error(
            compute_associations(make_identity_pair(draw_frequencies(300, 4, 3, 5), 4, 3, 5))
        )
        == 0.0
    )
