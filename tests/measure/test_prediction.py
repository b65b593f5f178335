"""How well a column can be learned from a release."""

from __future__ import annotations

import numpy as np
import pytest
from support.pairs import (
    draw_frequencies,
    make_frequencies,
    make_identity_pair,
    make_pair,
    make_uniform_shares,
)

from incrowd.arrays import Floats
from incrowd.codes.frequency import Frequencies, merge_tuples
from incrowd.errors import ParameterError
from incrowd.measure import prediction
from incrowd.measure.prediction import Accuracy, compute_accuracy


def planted(rows: int, seed: int = 2) -> Frequencies:
    """A column of 6 bins, one of 5 without meaning, and a target of 3 that the first decides."""
    rng = np.random.default_rng(seed)
    first = rng.integers(0, 6, rows)
    codes = np.column_stack([first, rng.integers(0, 5, rows), first // 2])
    return merge_tuples(codes.astype(np.int32), np.ones(rows, dtype=np.int64))


def test_a_planted_target_is_learned() -> None:
    accuracy = compute_accuracy(make_identity_pair(planted(3000), 6, 5, 3), target="c")
    assert (accuracy.target, accuracy.original, accuracy.released) == ("c", 1.0, 1.0)
    assert accuracy.majority == pytest.approx(1 / 3, abs=0.1)


def test_two_classes_are_learned() -> None:
    codes = planted(2000).codes.copy()
    codes[:, 2] = codes[:, 0] % 2  # no order helps
    even = merge_tuples(codes, planted(2000).counts)
    accuracy = compute_accuracy(make_identity_pair(even, 6, 5, 2), target="c")
    assert (accuracy.original, accuracy.released) == (1.0, 1.0)


def test_what_is_hidden_cannot_be_learned() -> None:
    original = planted(3000)
    released = original.roll_up(
        [np.zeros(6, np.int32), *(np.arange(n, dtype=np.int32) for n in (5, 3))]
    )
    shares = make_uniform_shares(range(6), bins=6), np.eye(5), np.eye(3)
    accuracy = compute_accuracy(make_pair(original, released, *shares), target="c")
    assert accuracy.original == 1.0
    assert accuracy.released < 0.45


def test_groups_that_decide_are_as_good_as_values() -> None:
    original = planted(3000)
    halves = np.arange(6, dtype=np.int32) // 2
    released = original.roll_up([halves, np.zeros(5, np.int32), np.arange(3, dtype=np.int32)])
    shares = (
        make_uniform_shares([0, 1], [2, 3], [4, 5], bins=6),
        make_uniform_shares(range(5), bins=5),
        np.eye(3),
    )
    assert compute_accuracy(make_pair(original, released, *shares), target="c").released == 1.0


def test_equal_tables_give_equal_models() -> None:
    original = draw_frequencies(2000, 8, 6, 4, 3)
    pair = make_identity_pair(original, 8, 6, 4, 3)
    accuracy = compute_accuracy(
        pair, target="d", held_out=draw_frequencies(900, 8, 6, 4, 3, seed=8)
    )
    assert accuracy.original == accuracy.released
    assert accuracy.majority < accuracy.original < 1
    accuracy = compute_accuracy(pair, target="d")
    assert accuracy.original == pytest.approx(accuracy.released, abs=0.03)


def test_the_majority_is_that_of_the_original() -> None:
    original = make_frequencies([(0, 0, 50), (1, 1, 30)])
    held_out = make_frequencies([(0, 0, 1), (1, 1, 3)])
    accuracy = compute_accuracy(make_identity_pair(original, 2, 2), target="b", held_out=held_out)
    assert accuracy == Accuracy("b", 1.0, 1.0, 0.25, 1.0, 1.0)


@pytest.mark.parametrize(("likely", "right"), [(1, 13 / 20), (2, 17 / 20)])
def test_a_target_in_several_bins_counts_in_each_by_its_share(likely: int, right: float) -> None:
    held_out = make_frequencies([(0, 0, 10), (1, 1, 3), (1, 2, 7)])
    target = np.array([[1.0, 0, 0], [0, 0.25, 0.25]])
    target[1, likely] = 0.75
    pair = make_pair(held_out, make_frequencies([(0, 0, 50), (1, 1, 50)]), np.eye(2), target)
    accuracy = compute_accuracy(pair, target="b", held_out=held_out)
    assert (accuracy.original, accuracy.released) == (17 / 20, right)


@pytest.mark.parametrize(("ordered", "right"), [(True, 1.0), (False, 0.5)])
def test_the_order_of_bins_reaches_bins_never_seen(ordered: bool, right: float) -> None:
    original = make_frequencies([(0, 0, 50), (9, 1, 50)])
    held_out = make_frequencies([(2, 0, 5), (7, 1, 5)])
    pair = make_pair(original, original, np.eye(10), np.eye(2), ordered=(ordered, False))
    assert compute_accuracy(pair, target="b", held_out=held_out).original == right


def test_counts_weigh_in_learning_and_testing() -> None:
    original = make_frequencies([(0, 0, 90), (0, 1, 10), (1, 0, 10), (1, 1, 90)])
    accuracy = compute_accuracy(make_identity_pair(original, 2, 2), target="b", held_out=original)
    assert (accuracy.original, accuracy.released, accuracy.majority) == (0.9, 0.9, 0.5)


def test_one_class_left_is_always_said() -> None:
    original = make_frequencies([(0, 0, 6), (1, 1, 4)])
    pair = make_pair(original, make_frequencies([(0, 1, 3), (1, 1, 3)]), np.eye(2), np.eye(2))
    assert compute_accuracy(pair, target="b", held_out=original) == Accuracy(
        "b", 1.0, 0.4, 0.6, 1.0, 0.5
    )


def test_without_other_columns_the_most_frequent_is_said() -> None:
    original = make_frequencies([(0, 6), (1, 4)])
    pair = make_pair(original, make_frequencies([(0, 1), (1, 2)]), np.eye(2))
    assert compute_accuracy(pair, target="a", held_out=original) == Accuracy(
        "a", 0.6, 0.4, 0.6, 0.5, 0.5
    )


def test_nothing_is_learned_from_nothing() -> None:
    original, empty = make_frequencies([(0, 0, 6), (1, 1, 4)]), make_frequencies([], 2)
    pair = make_pair(original, empty, np.eye(2), np.eye(2))
    assert compute_accuracy(pair, target="b", held_out=original) == Accuracy(
        "b", 1.0, 0.0, 0.6, 1.0, 0.5
    )
    assert compute_accuracy(pair, target="b", held_out=empty) == Accuracy("b", 0.0, 0.0, 0.0)
    pair = make_pair(empty, empty, np.eye(2), np.eye(2))
    assert compute_accuracy(pair, target="b") == Accuracy("b", 0.0, 0.0, 0.0)


def test_rows_are_split_one_by_one() -> None:
    original = make_frequencies([(0, 50_000), (1, 50_000), (2, 1)])
    training, test = prediction._split_rows(original, 4)
    assert training.total + test.total == original.total
    for at in (0, 1):  # Binomial(50,000, 1/5), at 5 standard deviations
        assert abs(test.counts[at] - 10_000) < 5 * 8000**0.5
    assert sorted([*training.codes[:, 0], *test.codes[:, 0]]) == [0, 0, 1, 1, 2]


@pytest.mark.parametrize("most", [40, 150, 10_000])
def test_examples_are_limited_and_keep_their_weight(most: int) -> None:
    original = draw_frequencies(400, 10, 10, 2)
    target = np.array([[0.25, 0.75], [1.0, 0.0]])
    codes, bins, weights = prediction._draw_examples(original, target, 2, most, 0)
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
    monkeypatch.setattr(prediction, "_ITERATIONS", 1)
    assert compute_accuracy(make_identity_pair(planted(500), 6, 5, 3), target="c").original > 0.4


def test_chunks_of_test_rows_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    pair = make_identity_pair(draw_frequencies(400, 8, 6, 3), 8, 6, 3)
    expected = compute_accuracy(pair, target="c")
    monkeypatch.setattr(prediction, "_CHUNK", 7)
    assert compute_accuracy(pair, target="c") == expected


def test_accuracy_agrees_with_scikit_learn_row_by_row() -> None:
    """Brute force: one dense row of features per row of the table."""
    from sklearn.linear_model import (  # type: ignore[import-untyped, unused-ignore]
        LogisticRegression,
    )

    original = draw_frequencies(600, 5, 4, 3)
    test = draw_frequencies(300, 5, 4, 3, seed=7)

    def features(frequencies: Frequencies) -> Floats:
        codes = np.repeat(frequencies.codes, frequencies.counts, axis=0)
        first, second = codes[:, 0], codes[:, 1]
        return np.column_stack([np.eye(5)[first], first / 4, np.eye(4)[second]])

    model = LogisticRegression(tol=1e-6, max_iter=1000)
    model.fit(features(original), np.repeat(original.codes[:, 2], original.counts))
    expected = model.score(features(test), np.repeat(test.codes[:, 2], test.counts))
    accuracy = compute_accuracy(make_identity_pair(original, 5, 4, 3), target="c", held_out=test)
    assert accuracy.original == pytest.approx(expected, abs=0.01)


def test_a_target_that_is_no_column_is_refused() -> None:
    with pytest.raises(ParameterError, match="'target'.*be 'a' or 'b'. Got 'salary' instead"):
        compute_accuracy(make_identity_pair(make_frequencies([(0, 0, 1)]), 2, 2), target="salary")


def test_the_area_under_the_curve_is_that_of_all_pairs() -> None:
    rng = np.random.default_rng(3)
    scores, second = rng.integers(0, 6, 60).astype(float), rng.random(60) < 0.4
    counts = rng.integers(1, 5, 60)
    test = Frequencies(np.zeros((60, 1), dtype=np.int32), counts)
    won = total = 0.0
    for row in np.flatnonzero(second):
        for other in np.flatnonzero(~second):
            weight = float(counts[row] * counts[other])
            total += weight
            won += weight * ((scores[row] > scores[other]) + 0.5 * (scores[row] == scores[other]))
    assert prediction._compute_auc(scores, test, second) == pytest.approx(won / total)


def test_the_area_tells_a_useful_release_from_a_useless_one() -> None:
    rng = np.random.default_rng(4)
    first = rng.integers(0, 6, 4000)
    target = (rng.random(4000) < 0.1 + 0.1 * first).astype(int)
    codes = np.column_stack([first, target]).astype(np.int32)
    original = merge_tuples(codes, np.ones(4000, dtype=np.int64))
    hidden = original.roll_up([np.zeros(6, np.int32), np.arange(2, dtype=np.int32)])
    useless = compute_accuracy(
        make_pair(original, hidden, make_uniform_shares(range(6), bins=6), np.eye(2)), target="b"
    )
    assert useless.auc_original is not None
    assert useless.auc_original > 0.65
    assert useless.auc_released == 0.5
    three = compute_accuracy(make_identity_pair(planted(500), 6, 5, 3), target="c")
    assert three.auc_original is None
    assert three.auc_released is None
