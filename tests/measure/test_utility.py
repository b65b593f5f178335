from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import contingency

from incrowd.arrays import Floats
from incrowd.codes.frequency import Frequencies, merged
from incrowd.errors import IncrowdError, ParameterError
from incrowd.measure import utility
from incrowd.measure.utility import (
    Accuracy,
    Association,
    Pair,
    Queries,
    accuracy,
    associations,
    distances,
    mean_error,
    queries,
)


def table(rows: Sequence[tuple[int, ...]], width: int = 0) -> Frequencies:
    """Frequencies of (code, ..., code, count) rows."""
    whole = np.array(rows, dtype=np.int64).reshape(len(rows), -1 if rows else width + 1)
    return merged(whole[:, :-1].astype(np.int32), whole[:, -1])


def uniform(*labels: Sequence[int], bins: int) -> Floats:
    """The shares of labels that cover these bins."""
    shares = np.zeros((len(labels), bins))
    for label, covered in enumerate(labels):
        shares[label, list(covered)] = 1 / len(covered)
    return shares


def pair_of(
    original: Frequencies,
    released: Frequencies,
    *shares: Floats,
    ordered: tuple[bool, ...] | None = None,
) -> Pair:
    names = tuple("abcdefghijk"[: len(shares)])
    return Pair(names, original, released, shares, ordered or (True,) * len(shares))


def identity(original: Frequencies, *bins: int) -> Pair:
    ordered = tuple(at % 2 == 0 for at in range(len(bins)))
    return pair_of(original, original, *(np.eye(size) for size in bins), ordered=ordered)


def random_table(rows: int, *bins: int, seed: int = 1) -> Frequencies:
    """Rows whose columns all lean on one hidden number, with counts of 1 to 3."""
    rng = np.random.default_rng(seed)
    hidden = rng.random(rows)
    columns = [((0.6 * hidden + 0.4 * rng.random(rows)) * size).astype(np.int32) for size in bins]
    return merged(np.column_stack(columns), rng.integers(1, 4, rows))


@st.composite
def pairs(draw: st.DrawFn) -> Pair:
    """Any table, any release, unrelated; one to three columns."""
    width = draw(st.integers(1, 3))
    shares = []
    for _ in range(width):
        bins = draw(st.integers(1, 5))
        weights = st.lists(st.integers(0, 4), min_size=bins, max_size=bins).filter(any)
        chosen = np.array(draw(st.lists(weights, min_size=1, max_size=4)), dtype=float)
        shares.append(chosen / chosen.sum(axis=1, keepdims=True))

    def rows(sizes: list[int]) -> Frequencies:
        row = st.tuples(*(st.integers(0, size - 1) for size in sizes), st.integers(1, 9))
        return table(draw(st.lists(row, min_size=1, max_size=12)))

    original = rows([share.shape[1] for share in shares])
    released = rows([len(share) for share in shares])
    ordered = tuple(draw(st.booleans()) for _ in shares)
    return pair_of(original, released, *shares, ordered=ordered)


def worlds(frequencies: Frequencies, shares: Sequence[Floats]) -> dict[tuple[int, ...], float]:
    """The rows expected in every tuple of bins, by going through all of them."""
    bins = [share.shape[1] for share in shares]
    found = dict.fromkeys(np.ndindex(*bins), 0.0)
    for codes, count in zip(frequencies.codes.tolist(), frequencies.counts.tolist(), strict=True):
        for place in found:
            chance = 1.0
            for share, label, at in zip(shares, codes, place, strict=True):
                chance *= float(share[label, at])
            found[place] += count * chance
    return found


def split_counts(frequencies: Frequencies) -> Frequencies:
    """The same rows, with every tuple listed once per row."""
    codes = np.repeat(frequencies.codes, frequencies.counts, axis=0)
    return Frequencies(codes, np.ones(len(codes), dtype=np.int64))


def scaled(pair: Pair, times: int) -> Pair:
    original = Frequencies(pair.original.codes, pair.original.counts * times)
    released = Frequencies(pair.released.codes, pair.released.counts * times)
    return Pair(pair.names, original, released, pair.shares, pair.ordered)


def test_a_distance_by_hand() -> None:
    original = table([(0, 0, 3), (1, 0, 1)])
    released = table([(0, 1, 5)])
    pair = pair_of(original, released, uniform([0, 1], bins=2), np.eye(2))
    assert distances(pair) == {"a": 0.25, "b": 1.0}


def test_a_release_that_changes_nothing_is_at_no_distance() -> None:
    pair = identity(random_table(500, 7, 3, 5), 7, 3, 5)
    assert distances(pair) == {"a": 0.0, "b": 0.0, "c": 0.0}


def test_an_empty_table_is_at_distance_one() -> None:
    full, empty = table([(0, 2)]), table([], 1)
    assert distances(pair_of(full, empty, np.eye(2))) == {"a": 1.0}
    assert distances(pair_of(empty, full, np.eye(2))) == {"a": 1.0}


@given(pair=pairs())
def test_a_distance_is_the_sum_over_all_bins(pair: Pair) -> None:
    for at, (name, got) in enumerate(distances(pair).items()):
        assert name == pair.names[at]
        assert 0 <= got <= 1
        moved = np.zeros(pair.shares[at].shape[1])
        for side, shares, sign in (
            (pair.original, pair.exact, 1),
            (pair.released, pair.shares, -1),
        ):
            for place, rows in worlds(side, shares).items():
                moved[place[at]] += sign * rows / side.total
        assert got == pytest.approx(moved[moved > 0].sum(), abs=1e-12)


def test_an_association_by_hand() -> None:
    # (30 * 30 - 10 * 10) / 40**2 = 1/2; each half of the second column shown decides nothing.
    original = table([(0, 0, 30), (0, 1, 10), (1, 0, 10), (1, 1, 30)])
    released = table([(0, 0, 40), (1, 0, 40)])
    (got,) = associations(pair_of(original, released, np.eye(2), uniform([0, 1], bins=2)))
    assert (got.first, got.second) == ("a", "b")
    assert got.original == pytest.approx(0.5)
    assert got.released == pytest.approx(0.0, abs=1e-12)


def test_groups_that_decide_the_other_column_keep_v_at_one() -> None:
    original = table([(0, 0, 4), (0, 1, 1), (1, 2, 2), (1, 3, 3)])
    released = table([(0, 0, 5), (1, 1, 5)])
    halves = uniform([0, 1], [2, 3], bins=4)
    (got,) = associations(pair_of(original, released, np.eye(2), halves))
    assert got.original == pytest.approx(1.0)
    assert got.released == pytest.approx(1.0)


def test_associations_agree_with_scipy() -> None:
    rng = np.random.default_rng(4)
    for _ in range(20):
        seen = rng.integers(1, 30, rng.integers(2, 7, 2))
        rows = [(*place, int(count)) for place, count in np.ndenumerate(seen)]
        (got,) = associations(identity(table(rows), *seen.shape))
        assert got.original == pytest.approx(contingency.association(seen, method="cramer"))


@given(pair=pairs())
def test_an_association_is_chi_square_of_all_pairs_of_bins(pair: Pair) -> None:
    def v(side: Frequencies, shares: Sequence[Floats], one: int, two: int) -> float:
        joint = np.zeros((shares[one].shape[1], shares[two].shape[1]))
        for place, rows in worlds(side, shares).items():
            joint[place[one], place[two]] += rows
        joint = joint[joint.sum(axis=1) > 0][:, joint.sum(axis=0) > 0]
        if min(joint.shape) == 1:
            return 0.0
        squares = joint**2 / joint.sum(axis=1)[:, None] / joint.sum(axis=0)
        return float(np.sqrt(max(squares.sum() - 1, 0) / (min(joint.shape) - 1)))

    got = associations(pair)
    assert len(got) == len(pair.names) * (len(pair.names) - 1) // 2
    for found in got:
        at = pair.names.index(found.first), pair.names.index(found.second)
        assert 0 <= found.original <= 1
        assert 0 <= found.released <= 1
        # The reference takes the root of a difference of ones: 1e-16 becomes 1e-8.
        assert found.original == pytest.approx(v(pair.original, pair.exact, *at), abs=1e-6)
        assert found.released == pytest.approx(v(pair.released, pair.shares, *at), abs=1e-6)


@given(pair=pairs())
def test_distances_and_associations_do_not_see_how_counts_are_split(pair: Pair) -> None:
    apart = Pair(
        pair.names,
        split_counts(pair.original),
        split_counts(pair.released),
        pair.shares,
        pair.ordered,
    )
    assert distances(apart) == pytest.approx(distances(pair), abs=1e-12)
    for one, two in zip(associations(apart), associations(pair), strict=True):
        assert one.original == pytest.approx(two.original, abs=1e-9)
        assert one.released == pytest.approx(two.released, abs=1e-9)


@pytest.mark.parametrize("chunk", [1, 3, 1000])
def test_labels_too_many_for_a_grid_give_the_same(
    chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(9)
    released = table([(*rng.integers(0, 6, 3).tolist(), 2) for _ in range(60)])
    shares = rng.dirichlet(np.ones(4), (3, 6))
    pair = pair_of(random_table(50, 4, 4, 4), released, *shares)
    grid = associations(pair)
    monkeypatch.setattr(utility, "_GRID", 0)
    monkeypatch.setattr(utility, "_CHUNK", chunk)
    for one, two in zip(associations(pair), grid, strict=True):
        assert one.original == pytest.approx(two.original)
        assert one.released == pytest.approx(two.released)


def test_ten_thousand_labels_fit_in_memory() -> None:
    labels = np.arange(10_000, dtype=np.int32)
    released = Frequencies(np.column_stack([labels, labels[::-1]]), np.ones(10_000, dtype=np.int64))
    shares = np.eye(4)[labels // 2500]
    original = table([(at, 3 - at, 1) for at in range(4)])
    tracemalloc.start()
    (got,) = associations(pair_of(original, released, shares, shares))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50e6  # a grid of all pairs of labels takes 800 MB
    assert got.original == got.released == pytest.approx(1.0)


def test_constant_columns_and_empty_tables_have_no_association() -> None:
    constant = table([(0, 0, 5), (0, 1, 5)])
    (got,) = associations(pair_of(constant, table([], 2), np.eye(3), np.eye(2)))
    assert (got.original, got.released) == (0.0, 0.0)


def test_the_mean_error_of_associations() -> None:
    found = [Association("a", "b", 0.5, 0.25), Association("a", "c", 0.0, 0.75)]
    assert mean_error(found) == 0.5
    assert mean_error([]) == 0.0
    assert mean_error(associations(identity(random_table(300, 4, 3, 5), 4, 3, 5))) == 0.0


@given(pair=pairs(), seed=st.integers(0, 99))
def test_queries_equal_going_through_every_row(pair: Pair, seed: int) -> None:
    regions = utility._regions(pair, 7, [1, 2, 3], np.random.default_rng(seed))
    errors = []
    for query in range(7):
        share = []
        for side, shares in ((pair.original, pair.exact), (pair.released, pair.shares)):
            inside = sum(
                rows
                for place, rows in worlds(side, shares).items()
                if all(regions.selected[at][query, where] for at, where in enumerate(place))
            )
            share.append(inside / side.total)
        errors.append(abs(share[1] - share[0]) / max(share[0], 0.001))
    got = queries(pair, count=7, seed=seed)
    assert got.count == 7
    assert got.median_error == pytest.approx(sorted(errors)[3], abs=1e-9)
    assert got.mean_error == pytest.approx(sum(errors) / 7, abs=1e-9)


def test_regions_are_what_the_docstring_says() -> None:
    sizes = (20, 20, 2, 1)
    pair = identity(random_table(300, *sizes), *sizes)
    regions = utility._regions(pair, 300, [1, 3], np.random.default_rng(0))
    assert set(regions.restricted.sum(axis=1).tolist()) == {1, 3}
    assert np.all(utility._answers(pair.original, pair.exact, regions) > 0)
    split = 0
    for at, bins in enumerate(sizes):
        for number, restricted, mask in zip(
            regions.restricted.sum(axis=1),
            regions.restricted[:, at],
            regions.selected[at],
            strict=True,
        ):
            if not restricted:
                assert mask.all()
                continue
            expected = {(20, 1): 2, (20, 3): 9}.get((bins, int(number)), 1)
            assert mask.sum() == expected
            runs = int(np.count_nonzero(np.diff(np.append(0, mask.astype(int))) == 1))
            split += runs > 1
            assert runs == 1 or not pair.ordered[at]
    assert split  # sets of bins are not intervals


def test_an_interval_may_lie_anywhere_around_its_row() -> None:
    rng = np.random.default_rng(0)
    for place, firsts in ((0, {0}), (1, {0, 1}), (4, {2, 3, 4}), (9, {7})):
        masks = [utility._around(place, 10, 3, ordered=True, rng=rng) for _ in range(200)]
        assert {int(np.argmax(mask)) for mask in masks} == firsts


def test_a_release_that_changes_nothing_answers_exactly() -> None:
    pair = identity(random_table(2000, 9, 4, 30, 2), 9, 4, 30, 2)
    assert queries(pair, count=200) == Queries(200, 0.0, 0.0)


@pytest.mark.parametrize(("columns", "error"), [((1,), 3 / 4), ((2,), 15 / 16)])
@pytest.mark.parametrize("ordered", [True, False])
def test_a_release_of_nothing_but_stars_answers_uniformly(
    columns: tuple[int, ...], error: float, ordered: bool
) -> None:
    # Every row is at (1, 2); one bin of four in each column holds them all.
    star = uniform([0, 1, 2, 3], bins=4)
    pair = pair_of(table([(1, 2, 10)]), table([(0, 0, 10)]), star, star, ordered=(ordered, ordered))
    got = queries(pair, count=25, columns=columns)
    assert got.median_error == pytest.approx(error)
    assert got.mean_error == pytest.approx(error)


def test_rare_regions_are_measured_against_a_thousandth() -> None:
    # A query on all of eleven columns of two bins is about one row of 2048.
    original = table([(*place, 1) for place in np.ndindex(*[2] * 11)])
    pair = pair_of(original, table([], 11), *[np.eye(2)] * 11)
    got = queries(pair, count=10, columns=(11,))
    assert got.mean_error == pytest.approx((1 / 2048) / 0.001)


def test_queries_are_asked_where_the_rows_are() -> None:
    original = table([(0, 9999), (1, 1)])
    got = queries(pair_of(original, table([(0, 1)]), uniform([0, 1], bins=2)), count=100)
    assert got.median_error == pytest.approx((0.9999 - 0.5) / 0.9999)


def test_an_empty_release_is_wrong_altogether() -> None:
    pair = pair_of(random_table(100, 5), table([], 1), np.eye(5))
    assert queries(pair, count=20) == Queries(20, 1.0, 1.0)


def test_nothing_is_asked_about_an_empty_table() -> None:
    pair = pair_of(table([], 1), table([], 1), np.eye(5))
    assert queries(pair) == Queries(0, 0.0, 0.0)


def test_the_seed_decides_the_queries() -> None:
    star = uniform(range(9), bins=9)
    pair = pair_of(random_table(200, 9, 9), table([(0, 0, 1)]), star, star)
    assert queries(pair, count=50, seed=3) == queries(pair, count=50, seed=3)
    assert queries(pair, count=50, seed=3) != queries(pair, count=50, seed=4)


@given(pair=pairs())
def test_queries_are_about_shares_not_numbers(pair: Pair) -> None:
    assert queries(scaled(pair, 2), count=9) == queries(pair, count=9)


def test_blocks_of_queries_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    star = uniform(range(9), bins=9)
    pair = pair_of(random_table(200, 9, 9), table([(0, 0, 1)]), star, star)
    whole = queries(pair, count=50)
    monkeypatch.setattr(utility, "_BLOCK", 7)
    assert queries(pair, count=50).mean_error == pytest.approx(whole.mean_error)


def test_too_many_tuples_are_sampled_by_weight(monkeypatch: pytest.MonkeyPatch) -> None:
    codes = np.arange(3000, dtype=np.int32)[:, None]
    heavy = np.where(codes[:, 0] < 1500, 9, 1).astype(np.int64)
    original = Frequencies(codes, heavy)
    limited = utility._limited(original, 2000, 5)
    assert limited.total == 2000
    assert len(limited) < 2000
    assert set(limited.codes[:, 0].tolist()) <= set(range(3000))
    # Binomial(2000, 0.9): more than 5 standard deviations away less than once in a million.
    share = limited.counts[limited.codes[:, 0] < 1500].sum() / 2000
    assert abs(share - 0.9) < 5 * (0.09 / 2000) ** 0.5
    assert utility._limited(original, 3000, 5) is original
    monkeypatch.setattr(utility, "_TUPLES", 50)
    same = identity(random_table(500, 9, 9), 9, 9)
    assert queries(same, count=50) == Queries(50, 0.0, 0.0)


def test_queries_that_cannot_be_asked() -> None:
    pair = identity(random_table(20, 3, 3), 3, 3)
    with pytest.raises(ParameterError, match="'count'.*at least 1. Got 0"):
        queries(pair, count=0)
    with pytest.raises(ParameterError, match="'columns'.*at least 1. Got 0"):
        queries(pair, columns=(2, 0))
    with pytest.raises(ParameterError, match="'columns'.*at least one number"):
        queries(pair, columns=())


def planted(rows: int, seed: int = 2) -> Frequencies:
    """A column of 6 bins, one of 5 without meaning, and a target of 3 that the first decides."""
    rng = np.random.default_rng(seed)
    first = rng.integers(0, 6, rows)
    codes = np.column_stack([first, rng.integers(0, 5, rows), first // 2])
    return merged(codes.astype(np.int32), np.ones(rows, dtype=np.int64))


def test_a_planted_target_is_learnt() -> None:
    got = accuracy(identity(planted(3000), 6, 5, 3), target="c")
    assert (got.target, got.original, got.released) == ("c", 1.0, 1.0)
    assert got.majority == pytest.approx(1 / 3, abs=0.1)


def test_two_classes_are_learnt() -> None:
    codes = planted(2000).codes.copy()
    codes[:, 2] = codes[:, 0] % 2  # no order helps
    even = merged(codes, planted(2000).counts)
    got = accuracy(identity(even, 6, 5, 2), target="c")
    assert (got.original, got.released) == (1.0, 1.0)


def test_what_is_hidden_cannot_be_learnt() -> None:
    original = planted(3000)
    released = original.rolled(
        [np.zeros(6, np.int32), *(np.arange(n, dtype=np.int32) for n in (5, 3))]
    )
    shares = uniform(range(6), bins=6), np.eye(5), np.eye(3)
    got = accuracy(pair_of(original, released, *shares), target="c")
    assert got.original == 1.0
    assert got.released < 0.45


def test_groups_that_decide_are_as_good_as_values() -> None:
    original = planted(3000)
    halves = np.arange(6, dtype=np.int32) // 2
    released = original.rolled([halves, np.zeros(5, np.int32), np.arange(3, dtype=np.int32)])
    shares = uniform([0, 1], [2, 3], [4, 5], bins=6), uniform(range(5), bins=5), np.eye(3)
    assert accuracy(pair_of(original, released, *shares), target="c").released == 1.0


def test_equal_tables_give_equal_models() -> None:
    original = random_table(2000, 8, 6, 4, 3)
    pair = identity(original, 8, 6, 4, 3)
    got = accuracy(pair, target="d", held_out=random_table(900, 8, 6, 4, 3, seed=8))
    assert got.original == got.released
    assert got.majority < got.original < 1
    got = accuracy(pair, target="d")
    assert got.original == pytest.approx(got.released, abs=0.03)


def test_the_majority_is_that_of_the_original() -> None:
    original = table([(0, 0, 50), (1, 1, 30)])
    held_out = table([(0, 0, 1), (1, 1, 3)])
    got = accuracy(identity(original, 2, 2), target="b", held_out=held_out)
    assert got == Accuracy("b", 1.0, 1.0, 0.25)


@pytest.mark.parametrize(("likely", "right"), [(1, 13 / 20), (2, 17 / 20)])
def test_a_target_in_several_bins_counts_in_each_by_its_share(likely: int, right: float) -> None:
    held_out = table([(0, 0, 10), (1, 1, 3), (1, 2, 7)])
    target = np.array([[1.0, 0, 0], [0, 0.25, 0.25]])
    target[1, likely] = 0.75
    pair = pair_of(held_out, table([(0, 0, 50), (1, 1, 50)]), np.eye(2), target)
    got = accuracy(pair, target="b", held_out=held_out)
    assert (got.original, got.released) == (17 / 20, right)


@pytest.mark.parametrize(("ordered", "right"), [(True, 1.0), (False, 0.5)])
def test_the_order_of_bins_reaches_bins_never_seen(ordered: bool, right: float) -> None:
    original = table([(0, 0, 50), (9, 1, 50)])
    held_out = table([(2, 0, 5), (7, 1, 5)])
    pair = pair_of(original, original, np.eye(10), np.eye(2), ordered=(ordered, False))
    assert accuracy(pair, target="b", held_out=held_out).original == right


def test_counts_weigh_in_learning_and_testing() -> None:
    original = table([(0, 0, 90), (0, 1, 10), (1, 0, 10), (1, 1, 90)])
    got = accuracy(identity(original, 2, 2), target="b", held_out=original)
    assert (got.original, got.released, got.majority) == (0.9, 0.9, 0.5)


def test_one_class_left_is_always_said() -> None:
    original = table([(0, 0, 6), (1, 1, 4)])
    pair = pair_of(original, table([(0, 1, 3), (1, 1, 3)]), np.eye(2), np.eye(2))
    assert accuracy(pair, target="b", held_out=original) == Accuracy("b", 1.0, 0.4, 0.6)


def test_without_other_columns_the_most_frequent_is_said() -> None:
    original = table([(0, 6), (1, 4)])
    pair = pair_of(original, table([(0, 1), (1, 2)]), np.eye(2))
    assert accuracy(pair, target="a", held_out=original) == Accuracy("a", 0.6, 0.4, 0.6)


def test_nothing_is_learnt_from_nothing() -> None:
    original, empty = table([(0, 0, 6), (1, 1, 4)]), table([], 2)
    pair = pair_of(original, empty, np.eye(2), np.eye(2))
    assert accuracy(pair, target="b", held_out=original) == Accuracy("b", 1.0, 0.0, 0.6)
    assert accuracy(pair, target="b", held_out=empty) == Accuracy("b", 0.0, 0.0, 0.0)
    pair = pair_of(empty, empty, np.eye(2), np.eye(2))
    assert accuracy(pair, target="b") == Accuracy("b", 0.0, 0.0, 0.0)


def test_rows_are_split_one_by_one() -> None:
    original = table([(0, 50_000), (1, 50_000), (2, 1)])
    known, test = utility._split(original, 4)
    assert known.total + test.total == original.total
    for at in (0, 1):  # Binomial(50,000, 1/5), at 5 standard deviations
        assert abs(test.counts[at] - 10_000) < 5 * 8000**0.5
    assert sorted([*known.codes[:, 0], *test.codes[:, 0]]) == [0, 0, 1, 1, 2]


@pytest.mark.parametrize("most", [40, 150, 10_000])
def test_examples_are_limited_and_keep_their_weight(most: int) -> None:
    original = random_table(400, 10, 10, 2)
    target = np.array([[0.25, 0.75], [1.0, 0.0]])
    codes, bins, weights = utility._examples(original, target, 2, most, 0)
    assert len(codes) == len(bins) == len(weights) <= most
    assert codes.shape[1] == 2
    assert weights.sum() == pytest.approx(original.total)
    in_second = 0.75 * original.counts[original.codes[:, 2] == 0].sum() / original.total
    # A share of at least 40 independent draws; exact if all are kept.
    slack = 5 * (0.25 / most) ** 0.5 if most < 1000 else 1e-12
    assert abs(weights[bins == 1].sum() / original.total - in_second) < slack


def test_a_model_that_is_stopped_early_is_used_without_a_warning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(utility, "_ITERATIONS", 1)
    assert accuracy(identity(planted(500), 6, 5, 3), target="c").original > 0.4


def test_chunks_of_test_rows_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    pair = identity(random_table(400, 8, 6, 3), 8, 6, 3)
    whole = accuracy(pair, target="c")
    monkeypatch.setattr(utility, "_CHUNK", 7)
    assert accuracy(pair, target="c") == whole


def test_accuracy_agrees_with_scikit_learn_row_by_row() -> None:
    """Brute force: one dense row of features per row of the table."""
    from sklearn.linear_model import (  # type: ignore[import-untyped, unused-ignore]
        LogisticRegression,
    )

    original = random_table(600, 5, 4, 3)
    test = random_table(300, 5, 4, 3, seed=7)

    def features(frequencies: Frequencies) -> Floats:
        codes = np.repeat(frequencies.codes, frequencies.counts, axis=0)
        first, second = codes[:, 0], codes[:, 1]
        return np.column_stack([np.eye(5)[first], first / 4, np.eye(4)[second]])

    model = LogisticRegression(tol=1e-6, max_iter=1000)
    model.fit(features(original), np.repeat(original.codes[:, 2], original.counts))
    expected = model.score(features(test), np.repeat(test.codes[:, 2], test.counts))
    got = accuracy(identity(original, 5, 4, 3), target="c", held_out=test)
    assert got.original == pytest.approx(expected, abs=0.01)


def test_a_target_that_is_no_column_is_refused() -> None:
    with pytest.raises(ParameterError, match="'target'.*be 'a' or 'b'. Got 'salary' instead"):
        accuracy(identity(table([(0, 0, 1)]), 2, 2), target="salary")


def test_without_scikit_learn_the_way_out_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.linear_model", None)
    with pytest.raises(IncrowdError, match="needs scikit-learn: pip install 'incrowd.utility.'"):
        accuracy(identity(planted(50), 6, 5, 3), target="c")
