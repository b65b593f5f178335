"""What executors draw: by the law that is claimed, with bits of their own, and once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from pyspark.sql import SparkSession
from support.draws import FailingDraw, HalfDraw, draw_words

from incrowd.arrays import Codes
from incrowd.engine.spark.cells import SparkCells, group_by_codes
from incrowd.engine.spark.engine import SparkEngine
from incrowd.engine.spark.tasks import TaskRandomness, make_task_bits
from incrowd.engine.table import TooManyTuplesError
from incrowd.privacy.randomness import SeededRandomness, SystemRandomness

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark_session")]

CELLS, ROWS = 3000, 40
ALL: list[Codes] = [np.arange(CELLS, dtype=np.int32)]


@pytest.fixture(scope="module")
def cells(spark_session: object) -> SparkCells:
    """So many cells of so many rows each."""
    values = np.repeat(np.arange(CELLS), ROWS)
    table = SparkEngine(most_tuples=100).from_columns({"c": values})
    coders = {"c": lambda met: np.array([0 if x is None else x for x in met], dtype=np.int32)}
    return group_by_codes(table, ["c"], coders, 100)


def test_cells_are_drawn_by_their_law(cells: SparkCells) -> None:
    drawn_cells = cells.draw_cells(ALL, HalfDraw(), SystemRandomness())
    assert drawn_cells.original.codes[:, 0].tolist() == list(range(CELLS))  # each once
    assert (drawn_cells.original.counts == ROWS).all()
    counts = drawn_cells.shown.counts
    # Binomial(40, 1/2): the mean is 20 with deviation 0.058, the variance 10 with 0.26. Either is
    # five deviations off once in a million runs; a rate of 0.52 is ten off.
    assert abs(counts.mean() - 20) < 0.3
    assert abs(counts.var() - 10) < 1.3
    assert abs(np.corrcoef(counts[:-1], counts[1:])[0, 1]) < 0.1
    again = cells.draw_cells(ALL, HalfDraw(), SystemRandomness())
    assert (again.shown.counts != counts).mean() > 0.8  # 0.911 of independent draws differ


def test_a_task_that_is_run_again_does_not_draw_into_the_result_twice(
    cells: SparkCells, tmp_path: Path
) -> None:
    drawn_cells = cells.draw_cells(ALL, FailingDraw(folder=str(tmp_path)), SystemRandomness())
    lost = [int(number) for number in (tmp_path / "first").read_text().split()]
    assert len(lost) > 100
    assert drawn_cells.original.codes[:, 0].tolist() == list(
        range(CELLS)
    )  # no cell twice, none lost
    counts = drawn_cells.shown.counts.tolist()
    # The numbers that were lost stand nowhere in the result, in a row of twenty.
    runs = {tuple(counts[at : at + 20]) for at in range(len(counts))}
    assert not runs & {tuple(lost[at : at + 20]) for at in range(len(lost) - 19)}


def test_what_is_hidden_is_summed_up(cells: SparkCells) -> None:
    drawn_cells = cells.draw_cells(ALL, HalfDraw(least=21, crowd=ROWS), SystemRandomness())
    hidden = CELLS - len(drawn_cells.shown)
    assert 0.5 < hidden / CELLS < 0.63  # P[B(40, 1/2) <= 20] = 0.563
    assert drawn_cells.shown.counts.min() >= 21
    rest = drawn_cells.rest
    assert (rest.rows, rest.cells, rest.likely) == (hidden * ROWS, hidden, hidden * ROWS)
    assert rest.sizes[5] == rest.rows == sum(rest.sizes)  # 40 lies from 32 to 63
    assert cells.draw_cells(ALL, HalfDraw(crowd=ROWS + 1), SystemRandomness()).rest.likely == 0


def test_rolled_up_counts_are_those_of_the_groups(cells: SparkCells) -> None:
    tens = [np.arange(CELLS, dtype=np.int32) // 100]
    rolled = cells.roll_up(tens)
    assert rolled.codes[:, 0].tolist() == list(range(30))
    assert (rolled.counts == 100 * ROWS).all()
    with pytest.raises(TooManyTuplesError, match="more than 100 distinct tuples") as many:
        cells.roll_up()
    assert many.value.spread is cells
    assert len(cells.collect_above(ALL, ROWS)) == 0
    assert len(cells.collect_above(ALL, ROWS - 1)) == CELLS
    assert cells.total == CELLS * ROWS


@pytest.fixture
def apart(spark_session: SparkSession) -> Iterator[None]:
    """Small partitions are not put together into one."""
    name = "spark.sql.adaptive.coalescePartitions.enabled"
    spark_session.conf.set(name, "false")
    yield
    spark_session.conf.unset(name)


@pytest.mark.usefixtures("apart")
def test_tasks_have_bits_of_their_own() -> None:
    assert make_task_bits(SystemRandomness()) == TaskRandomness(None)  # nothing is sent
    table = SparkEngine().from_columns({"c": np.arange(4000), "x": np.arange(4000)})
    coders = {"c": lambda met: np.array([x or 0 for x in met], dtype=np.int32)}
    tuples = table.count(["c"], coders)
    members = np.arange(4000)
    how = {"through": (), "work_columns": ("x",), "work": draw_words}
    result = table.process_classes(coders, tuples, members, bits=SystemRandomness(), **how)  # type: ignore[arg-type]
    assert sum(result.parts) == 4000  # type: ignore[arg-type]
    assert len(result.parts) > 1  # several tasks
    assert len(set(result.columns["x"][0].tolist())) == 4000  # no word twice
    first, second = (
        table.process_classes(coders, tuples, members, bits=SeededRandomness(1), **how)  # type: ignore[arg-type]
        for _ in range(2)
    )
    order = [np.argsort(each.members) for each in (first, second)]
    same = [each.columns["x"][0][at] for each, at in zip((first, second), order, strict=True)]
    assert same[0].tolist() == same[1].tolist()  # a seed decides all of them, in tests
