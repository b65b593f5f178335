"""Tables to be published, made on this machine; they can go back to Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from incrowd.arrays import Counts
from incrowd.engine.local.made import MadeTable
from incrowd.engine.spark.kinds import sent
from incrowd.engine.table import Engine


class SparkMade(MadeTable):
    """A table to be published. Its file is written here, as every release is.

    As a data frame it is made of cells, which are repeated on the cluster as often as they count:
    what is sent is no larger than what is different. It holds what is published and nothing else,
    so its layout can tell nothing else.
    """

    def __init__(
        self,
        coded: Mapping[str, tuple[list[object], np.ndarray[Any, Any]]],
        plain: Mapping[str, pl.Series],
        order: Sequence[str],
        *,
        engine: Any,
        times: Counts | None = None,
    ) -> None:
        repeated = coded
        if times is not None:
            repeated = {name: (known, np.repeat(at, times)) for name, (known, at) in coded.items()}
        super().__init__(repeated, plain, order)
        self._cells, self._times, self._home = coded, times, engine

    @property
    def engine(self) -> Engine:
        """The engine that made it."""
        home: Engine = self._home
        return home

    def relabelled(self, labels: Mapping[str, Mapping[str, int | float]]) -> SparkMade:
        """The table with numbers for texts."""
        cells = dict(self._cells)
        for name, numbers in labels.items():
            known, codes = cells[name]
            cells[name] = ([numbers.get(text) for text in known], codes)  # type: ignore[call-overload]
        return SparkMade(cells, self._plain, self._order, engine=self._home, times=self._times)

    def frame(self) -> Any:
        """The rows as a data frame of Spark."""
        cells = MadeTable(self._cells, self._plain, self._order)
        inner = [f"c{at}" for at in range(len(self._order))]
        held = MadeTable.frame(cells)
        if self._times is None:
            return sent(self._home.session, held)
        held.columns = inner
        counted = held.with_columns(pl.Series("times", self._times, dtype=pl.Int64))
        frame = sent(self._home.session, counted.filter(pl.col("times") > 0))
        repeated = frame.withColumn("row", F.explode(F.sequence(F.lit(1), F.col("times"))))
        return repeated.select(*inner).toDF(*self._order)
