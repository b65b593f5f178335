"""Files of measured tables: counts are unbiased, and their standard deviations are right."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from incrowd.anonymize.synthetic.domain import Columns, Levels, TableCounter
from incrowd.anonymize.synthetic.measurement import centered_axes, make_query
from incrowd.codes.hierarchy import Hierarchy, build_from_rows
from incrowd.methods.synthetic.columns import SyntheticColumns
from incrowd.privacy import discrete_noise
from incrowd.privacy.randomness import Randomness, SeededRandomness
from incrowd.release.measured import CountEstimates, read_measured, write_measured
from incrowd.release.synthetic_part import MeasuredNumbers
from incrowd.spec.leaves import Leaves

RELEASES = 500


def _nested(values: int, *groups: int) -> Hierarchy:
    rows = [(f"v{at}", *(f"{size}: {at // size}" for size in groups), "*") for at in range(values)]
    return build_from_rows(rows)


HIERARCHIES = {"a": _nested(2), "b": _nested(11, 3), "c": _nested(23, 5), "d": _nested(4)}
COLUMNS = SyntheticColumns(HIERARCHIES, dict.fromkeys(HIERARCHIES, Leaves(None)), {})
# Leaves, pairs of centered and other columns, groups that have to be summed up, and a triple.
TABLES: list[tuple[Columns, Levels]] = [
    ((), ()),
    *(((at,), (0,)) for at in range(4)),
    ((0, 1), (0, 0)),
    ((0, 1), (0, 1)),
    ((0, 2), (0, 0)),
    ((1, 2), (1, 1)),
    ((2, 3), (0, 0)),
    ((0, 3), (0, 0)),
    ((0, 2, 3), (0, 0, 0)),
]


def _count() -> TableCounter:
    rng = np.random.default_rng(5)
    sizes = [len(hierarchy.values) + 1 for hierarchy in HIERARCHIES.values()]
    codes = np.column_stack([rng.integers(0, size, 3000) for size in sizes]).astype(np.int32)
    return TableCounter(COLUMNS.domain, codes)


def _measure_often(
    count: TableCounter, key: tuple[Columns, Levels], times: int, bits: Randomness, releases: int
) -> list[MeasuredNumbers]:
    """Measure a table in so many releases; noise of all of them is drawn at once."""
    places, levels = key
    columns = [COLUMNS.domain.columns[place] for place in places]
    numbers = tuple(part.level_numbers[level] for part, level in zip(columns, levels, strict=True))
    names = tuple(COLUMNS.names[place] for place in places)
    labels = tuple(
        COLUMNS.value_columns[name].list_labels(level)
        for name, level in zip(names, numbers, strict=True)
    )
    table = count(places, levels)
    for axis, pair in enumerate(zip(places, levels, strict=True)):
        table = np.take(table, COLUMNS.order_groups(*pair), axis=axis)
    query, length = make_query(table)
    variances = tuple(900 * length * (number + 1) for number in range(times))
    noise = [
        discrete_noise.sample_rational_gaussian(
            Fraction(variance), releases * query.size, bits
        ).reshape(releases, *query.shape)
        for variance in variances
    ]
    return [
        MeasuredNumbers(
            names, numbers, centered_axes(table.shape), tuple(query + part[at] for part in noise),
            variances, True, labels, table.astype(np.float64),
        )
        for at in range(releases)
    ]  # fmt: skip


def _measure(
    count: TableCounter, key: tuple[Columns, Levels], times: int, bits: Randomness
) -> MeasuredNumbers:
    (only,) = _measure_often(count, key, times, bits, 1)
    return only


@pytest.mark.parametrize("times", [1, 2])
def test_intervals_cover_what_they_promise(times: int) -> None:
    """94 to 96 % of 500 releases, over all tables; a deviation a tenth off is noticed."""
    count, bits = _count(), SeededRandomness(7)
    inside: dict[int, list[float]] = {at: [] for at in range(len(TABLES))}
    narrow: list[float] = []
    every = [_measure_often(count, key, times, bits, RELEASES // times) for key in TABLES]
    for tables in zip(*every, strict=True):
        estimates = CountEstimates(tables, COLUMNS.value_columns)
        for at, table in enumerate(tables):
            result = estimates.estimate(table)
            assert result is not None
            away = np.abs(result[0] - table.model) / result[1]  # the model's place holds the truth
            inside[at].append(float((away <= 1.96).mean()))
            narrow.append(float((away <= 1.96 * 0.9).mean()))
    means = [float(np.mean(part)) for part in inside.values()]
    assert 0.94 < float(np.mean(means[1:])) < 0.96
    assert all(0.93 < mean < 0.97 for mean in means[1:])
    assert 0.92 < means[0] < 0.98  # one number in each release
    assert float(np.mean(narrow)) < 0.94


def test_a_triple_without_its_pairs_has_no_counts() -> None:
    bits = SeededRandomness(1)
    tables = [_measure(_count(), key, 1, bits) for key in (*TABLES[:5], ((0, 1, 3), (0, 0, 0)))]
    estimates = CountEstimates(tables, COLUMNS.value_columns)
    assert estimates.estimate(tables[-1]) is None
    assert estimates.estimate(tables[1]) is not None
    text = write_measured(tables[-1], estimates)
    assert text.splitlines()[0] == "a,b,d,measured,model"


def test_a_file_is_read_as_it_was_written_and_nothing_else_is() -> None:
    tables = [_measure(_count(), key, 2, SeededRandomness(2)) for key in TABLES]
    estimates = CountEstimates(tables, COLUMNS.value_columns)
    for table in tables:
        text = write_measured(table, estimates)
        again = read_measured(text, table)
        assert all((x == y).all() for x, y in zip(again.numbers, table.numbers, strict=True))
        assert write_measured(again, estimates) == text
    text = write_measured(tables[1], estimates)
    for wrong in (
        text.replace("v0,", "v9,"), text + "v1,1,1,1,1,1\n", text.replace("measured_1", "x"),
        text.replace("v0,", "v0,0", 1), "",
    ):  # fmt: skip
        with pytest.raises(ValueError, match=r"line|columns|number"):
            read_measured(wrong, tables[1])
