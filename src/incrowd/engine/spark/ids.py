"""Count ids where they are: nothing but three numbers comes to this machine."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from incrowd.engine.table import RowsPerId


def count_rows_per_id(frame: DataFrame, identity: Column) -> RowsPerId:
    """Count the ids of a frame, and the rows of each; rows without an id do not count."""
    ids = frame.select(identity.alias("id")).where("id IS NOT NULL")
    rows = ids.groupBy("id").agg(F.count(F.lit(1)).alias("rows"))
    found = rows.agg(F.count(F.lit(1)), F.median("rows"), F.max("rows")).first()
    assert found is not None
    return RowsPerId(int(found[0]), float(found[1] or 0), int(found[2] or 0))
