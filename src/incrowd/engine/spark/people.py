"""Rows by the person they belong to, on Spark: which are used, and codes of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from incrowd.arrays import Codes, Members
from incrowd.engine.local import people
from incrowd.engine.spark.column_type import canonicalize_text, to_plain_frame
from incrowd.engine.spark.session import explain_failures
from incrowd.engine.table import Coder, JoinMatch, Reader, TooManyTuplesError
from incrowd.privacy.randomness import Randomness

if TYPE_CHECKING:
    from incrowd.engine.spark.table import SparkTable


def choose_rows(
    table: SparkTable, column: str, order: Sequence[str], rows: int, bits: Randomness
) -> DataFrame:
    """Choose at most so many rows at random of each person; all of whoever has fewer.

    Claim: of the rows of a person each set of so many is chosen with nearly the same probability,
    independently of all other people, and the choice is the same however often it is computed. The
    rows of a person are numbered in an order that only their content decides; those with the
    smallest SHA-256(key, number, person) are used. The key is drawn here, once, as for one row
    (:meth:`~incrowd.engine.spark.table.SparkTable.choose_row_per_person`).
    """
    key = bits.draw_words(4).tobytes().hex()
    frame = table.inner_frame
    with explain_failures("send a key"):
        key_frame = frame.sparkSession.createDataFrame(pa.table({"k": [key]}))
    person = Window.partitionBy("p")
    text = F.concat_ws(":", F.col("k"), F.col("at").cast("string"), F.col("p").cast("string"))
    columns = frame.columns
    return (
        frame.withColumn("p", table.make_identity(column))
        .where(F.col("p").isNotNull())
        .crossJoin(F.broadcast(key_frame))
        .withColumn("at", F.row_number().over(person.orderBy(*(F.col(name) for name in order))))
        .withColumn("draw", F.sha2(text, 256))
        .withColumn("of", F.row_number().over(person.orderBy("draw")))
        .where(F.col("of") <= rows)
        .select(*columns)
    )


def code_people(
    table: SparkTable,
    person: str,
    columns: Sequence[str],
    coders: Mapping[str, Coder],
    limit: int,
    alike: int = 1,
) -> tuple[Members, Codes]:
    """Return a person's number and codes of columns, for each distinct row that has a person.

    Of rows that are alike there are as many as the person has, up to ``alike``.
    """
    identity = table.make_identity(person).alias("p")
    inner = [table.get_inner_name(name) for name in columns]
    frame = table.inner_frame.select(identity, *inner).where("p IS NOT NULL")
    if alike == 1:
        frame = frame.distinct()
    else:
        same = Window.partitionBy("p", *inner).orderBy(F.lit(0))
        frame = frame.withColumn("at", F.row_number().over(same)).where(F.col("at") <= alike)
        frame = frame.drop("at")
    with explain_failures("bring the rows of each person here"):
        rows = to_plain_frame(frame.limit(limit + 1).toArrow())
    if len(rows) > limit:
        raise TooManyTuplesError(
            f"Table: more than {limit:,} different rows of people, which exceeds one machine. "
            "Use fewer rows per person, or one: `unit: {id: COLUMN}`."
        )
    return people.number_people(rows.get_column("p")), people.code_columns(
        [rows.get_column(name) for name in inner], [coders[name] for name in columns]
    )


def join_tables(
    table: SparkTable, column: str, other: SparkTable, other_column: str, added: Sequence[str],
    read: Reader | None = None,
) -> tuple[DataFrame, JoinMatch]:  # fmt: skip
    """Return the rows with columns of another table, joined by ids, and how the two met.

    The joined rows have the columns of the table and then those added, under inner names. Of rows
    of the other with one id, which one is used is not settled: such tables are refused.
    """
    first = table.copy_column(column, "p", read).withColumn("p", _make_id_text("p"))
    second = other.copy_column(other_column, "q", read).select(
        _make_id_text("q").alias("q"),
        *(F.col(other.get_inner_name(name)).alias(f"a{at}") for at, name in enumerate(added)),
    )
    listed = second.where(F.col("q").isNotNull()).dropDuplicates(["q"])
    rows = first.join(listed, F.col("p") == F.col("q"), "left")
    with explain_failures("match the ids of two tables"):
        is_unmatched = F.col("p").isNotNull() & F.col("q").isNull()
        met = rows.select(
            F.count(F.when(is_unmatched, 1)).alias("unmatched"),
            F.countDistinct("q").alias("used"),
        ).first()
        had = second.select(
            F.count(F.lit(1)).alias("rows"), F.count("q").alias("with_id"),
            F.countDistinct("q").alias("ids"),
        ).first()  # fmt: skip
    assert met is not None
    assert had is not None
    match = JoinMatch(
        tuple(added),
        repeated=had["with_id"] - had["ids"],
        missing=had["rows"] - had["with_id"],
        unused=had["ids"] - met["used"],
        unmatched=met["unmatched"],
    )
    inner = [*table.inner_frame.columns, *(f"a{at}" for at in range(len(added)))]
    return rows.select(*inner), match


def _make_id_text(inner: str) -> Column:
    """Return the ids of a column as canonical texts, whatever their kind."""
    return canonicalize_text(F.col(inner).cast("string"))
