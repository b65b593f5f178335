"""The baselines do what paper A says they do: they keep their small promise, and no more."""

from __future__ import annotations

import numpy as np
import pytest
from support.victims import SIZES, draw_people, make_bits

from incrowd.errors import ParameterError
from incrowd.measure.estimate import compute_interval
from incrowd.papers.baselines import (
    draw_delta_sample,
    make_number_axis,
    publish_duplicates,
    recode_clusters,
)

AXES = [make_number_axis(size) for size in SIZES]


def test_k_duplication_publishes_people_unchanged() -> None:
    rng = np.random.default_rng(1)
    points = draw_people(303, rng)
    published = publish_duplicates(AXES, points, k=5, bits=make_bits(rng))
    assert published.sizes.min() >= 5
    assert published.sizes.sum() == 303
    assert (published.low == published.high).all()
    assert {tuple(row) for row in published.low.tolist()} <= {tuple(row) for row in points.tolist()}


def test_who_stands_for_a_cluster_is_drawn() -> None:
    rng = np.random.default_rng(2)
    points = draw_people(4, rng)
    met = {
        tuple(publish_duplicates(AXES, points, k=4, bits=make_bits(rng)).low[0]) for _ in range(60)
    }
    # One of four is missing after 60 draws with probability 4 (3/4)^60 = 1.3e-7.
    assert met == {tuple(row) for row in points}


@pytest.mark.parametrize("by", ["cluster", "mondrian"])
def test_ends_of_local_recoding_are_peoples_values(by: str) -> None:
    points = draw_people(400, np.random.default_rng(3))
    clusters = recode_clusters(AXES, points, k=7, by=by)
    assert clusters.boxes.sizes.min() >= 7
    for column in range(len(SIZES)):
        for number, value_set in enumerate(clusters.list_value_sets(column)):
            values = points[clusters.members == number, column]
            assert value_set.tolist() == sorted(set(values.tolist()))
            assert clusters.boxes.low[number, column] == values.min()
            assert clusters.boxes.high[number, column] == values.max()


def test_delta_sampling_shows_as_many_as_delta_says() -> None:
    rng = np.random.default_rng(4)
    points = np.arange(200_000, dtype=np.int32)[:, None]
    published = draw_delta_sample(points, delta=0.01, bits=make_bits(rng))
    assert (published.sizes == 1).all()
    low, high = compute_interval(
        len(published.sizes), len(points), 1 - 1e-6
    )  # fails with probability 1e-6
    assert low < 0.01 < high < 0.0115
    assert low > 0.0085


def test_a_table_smaller_than_k_is_refused() -> None:
    points = draw_people(3, np.random.default_rng(5))
    with pytest.raises(ParameterError, match="at most the number of rows"):
        recode_clusters(AXES, points, k=4)
    with pytest.raises(ParameterError, match="at most the number of rows"):
        publish_duplicates(AXES, points, k=4, bits=make_bits(np.random.default_rng(0)))
    with pytest.raises(ParameterError, match="'cluster' or 'mondrian'"):
        recode_clusters(AXES, points, k=2, by="tea leaves")
