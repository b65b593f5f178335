"""Values of summed columns in whole steps, and the sums of distinct tuples."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest

from incrowd.codes.frequency import Frequencies
from incrowd.methods.tables.summed import StepCoder, add_steps
from incrowd.spec.table_request import SumRequest


def make_sum(lower: int, upper: int, step: int | None = None) -> SumRequest:
    return SumRequest.model_validate({"column": "x", "bounds": [lower, upper], "step": step})


def test_values_are_moved_to_steps_within_the_bounds() -> None:
    coder = StepCoder(Decimal(-1), Decimal("0.5"), 6)
    values = [
        "-1",
        -5,
        "1" + "0" * 30,
        2.0,
        0.26,
        "0.1",
        "-0.75",
        None,
        "",
        "n/a",
        float("nan"),
        "inf",
    ]
    assert coder(values).tolist() == [0, 0, 6, 6, 3, 2, 0, 7, 7, 7, 7, 7]


def test_steps_are_added_by_tuple_and_rows_without_a_number_left_out() -> None:
    sums = (make_sum(0, 4, 1), make_sum(0, 1))
    codes = [[0, 0, 2, 1], [0, 0, 4, 0], [0, 0, 5, 0], [0, 1, 5, 1], [1, 0, 3, 10_000],
             [1, 0, 3, 10_001]]  # fmt: skip
    frequencies = Frequencies(np.array(codes, np.int32), np.array([3, 2, 7, 1, 5, 1], np.int64))
    tuples, steps, without = add_steps(frequencies, 2, sums)
    assert tuples.codes.tolist() == [[0, 0], [1, 0]]
    assert tuples.counts.tolist() == [5, 5]
    assert [x.tolist() for x in steps] == [[14, 15], [3, 50_000]]
    assert without == 9
    nothing, steps, without = add_steps(Frequencies(frequencies.codes[2:3], np.array([7])), 2, sums)
    assert (len(nothing), steps[0].tolist(), without) == (0, [], 7)


@pytest.mark.parametrize(
    ("bounds", "step", "steps"),
    [((0, 100_000), "10", 10_000), ((0, 1), "0.0001", 10_000), ((18, 99), "0.001", 81_000),
     ((0, 12_345), "1", 12_345), ((-5, 5), "0.001", 10_000)],
)  # fmt: skip
def test_a_step_that_is_not_given_divides_the_bounds(
    bounds: tuple[int, int], step: str, steps: int
) -> None:
    summed = make_sum(*bounds)
    assert (summed.size, summed.steps) == (Decimal(step), steps)
