"""Rows worked on class by class on Spark: kept values as everywhere, and the rows counted."""

from __future__ import annotations

import numpy as np
import pytest

from incrowd.codes.frequency import Frequencies
from incrowd.engine.source import spark_engine
from incrowd.engine.spark.table import SparkTable
from incrowd.engine.table import ProcessedRows, TableError
from incrowd.methods.k_anonymity.method import keep_rows
from incrowd.privacy.randomness import SeededRandomness

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark_session")]
JOBS = ("x", "y")


def _worked(counts: tuple[int, int]) -> ProcessedRows:
    """Three rows of x and two of y, of which so many are said to have been counted."""
    table = spark_engine().from_columns(
        {"job": ["x", "x", "x", "y", "y"], "note": ["a", "  ", "", "a", None]}
    )
    assert isinstance(table, SparkTable)
    codes = np.array([[0], [1]], dtype=np.int32)
    return table.process_classes(
        {"job": lambda met: np.array([JOBS.index(str(value)) for value in met], dtype=np.int32)},
        Frequencies(codes, np.array(counts, dtype=np.int64)),
        np.array([0, 1]),
        through=["note"],
        work_columns=[],
        work=keep_rows,
        bits=SeededRandomness(1),
    )


def test_kept_text_without_characters_is_null() -> None:
    result = _worked((3, 2))
    labels, codes = result.kept["note"]
    texts = sorted(str(labels[code]) for code in codes)
    assert texts == ["None", "None", "None", "a", "a"]
    assert len(labels) == 2


@pytest.mark.parametrize("counts", [(4, 2), (2, 2), (2, 3)])
def test_a_table_that_changed_since_it_was_counted_is_refused(counts: tuple[int, int]) -> None:
    """Else a class could show fewer rows than the k that it was formed of."""
    with pytest.raises(TableError, match="changed while it was read"):
        _worked(counts)
