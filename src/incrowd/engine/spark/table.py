"""Tables on Spark: they are counted where they are, and only counts come to this machine.

Inside, columns are called c0, c1 and so on: names can hold anything, and what is in a plan can be
read by whoever administers the cluster. No value of a table ever stands in a plan: values that are
to be replaced or coded are sent as small tables of their own, and joined.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from copy import copy
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql import types as T  # noqa: N812

from incrowd.arrays import Codes, Members
from incrowd.codes.frequency import Frequencies
from incrowd.engine.local.table import LocalTable, make_tally
from incrowd.engine.local.text import refuse_duplicate_names
from incrowd.engine.spark import classes, people, sums
from incrowd.engine.spark.cells import SURELY, approximate_distinct, group_by_codes
from incrowd.engine.spark.coarse import count_coarse_codes, sample_values
from incrowd.engine.spark.column_type import (
    canonicalize_text,
    is_orderable,
    normalize_column,
    refuse_nested_type,
    send_arrow_columns,
    to_plain_frame,
)
from incrowd.engine.spark.session import explain_failures
from incrowd.engine.spark.sums import RowSums
from incrowd.engine.table import (
    Coder,
    ProcessedRows,
    Reader,
    RowsPerId,
    TableError,
    TableOrigin,
    Tally,
    TooManyTuplesError,
    Work,
    refuse_common_columns,
)
from incrowd.privacy.randomness import Randomness

if TYPE_CHECKING:
    from incrowd.engine.spark.engine import SparkEngine

_MOST_VALUES = 20_000_000  # of one column, that this machine takes
LARGE = 500_000  # rows from which a table is worth another look
_FEW = 100_000  # rows that any machine holds
_WRITTEN = 10_000_000  # rows of a table that this machine writes into one file


class SparkTable:
    """A data frame of Spark. NaN counts as null; null is a value like any other."""

    def __init__(
        self, frame: DataFrame, engine: SparkEngine, origin: TableOrigin | None = None
    ) -> None:
        self._columns = tuple(frame.columns)
        refuse_duplicate_names(list(self._columns), "The Spark table")
        self._inner = {name: f"c{at}" for at, name in enumerate(self._columns)}
        self._engine, self._origin = engine, origin or TableOrigin()
        self._kinds = {name: field.dataType for name, field in zip(
            self._columns, frame.schema.fields, strict=True)}  # fmt: skip
        self._raw = frame.toDF(*self._inner.values())
        self._frame = self._raw.select(
            [normalize_column(inner, self._kinds[name]) for name, inner in self._inner.items()]
        )
        self._before: SparkTable | None = None  # the table that was read in another way
        self._sums = RowSums(self._raw, self._kinds)
        self._all: dict[str, pl.DataFrame] = {}  # all values of columns that were asked for
        self._some: dict[str, pl.DataFrame] = {}  # and some of others
        self._coarse: tuple[str, ...] = ()  # the columns of which coarse codes will be asked for
        self._few = False  # whether it surely has few rows

    @property
    def engine(self) -> SparkEngine:
        """The engine that holds the table."""
        return self._engine

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self._columns

    @property
    def origin(self) -> TableOrigin:
        """What is known of where the table came from."""
        return self._origin

    @property
    def inner_frame(self) -> DataFrame:
        """The rows, under the inner names of their columns."""
        return self._frame

    def get_inner_name(self, column: str) -> str:
        """Return the inner name of a column; refuse one that is missing, or is no single value."""
        self._require_columns([column])
        return self._inner[column]

    @cached_property
    def _row_count(self) -> int:
        with explain_failures("count the rows of the table"):
            return int(self._frame.count())

    def rows(self) -> int:
        """Return the number of rows."""
        return self._row_count

    def head(self, rows: int) -> SparkTable:
        """Return some rows: without an order there are no first ones."""
        spark_table = SparkTable(self._restore_names(self._frame.limit(rows)), self._engine)
        spark_table._few = rows <= _FEW
        return spark_table

    def gather_columns(self, columns: Sequence[str], *, coarse: bool = False) -> SparkTable:
        """Group some columns once for whatever will be asked of them.

        A large table of which ``coarse`` codes alone are asked for is grouped by those.
        """
        self._require_columns(columns)
        if coarse and self.rows() >= LARGE:
            table = copy(self)
            table._coarse = tuple(columns)
            return table
        names = list(dict.fromkeys(columns))
        inner = [self._inner[name] for name in names]
        return SparkGroupedTable(self._frame.select(inner).toDF(*names), self)

    def values(self, column: str) -> Sequence[object]:
        """Return the distinct values of a column, null among them."""
        return self.list_raw_values(column).get_column("value").unique().to_list()

    def list_raw_values(self, column: str) -> pl.DataFrame:
        """Return the distinct values of a column as on Spark, and in plain; looked for once."""
        inner = self.get_inner_name(column)
        if column in self._all:
            return self._all[column]
        with (
            ThreadPoolExecutor(1) as executor,
            explain_failures(f"find the values of the column '{column}'"),
        ):
            sampling = executor.submit(sample_values, self, self._coarse)
            frame = self._frame.select(inner).distinct().limit(_MOST_VALUES + 1).toArrow()
            sampling.result()
        if frame.num_rows > _MOST_VALUES:
            raise TooManyTuplesError(
                f"Column '{column}': more than {_MOST_VALUES:,} values, which exceeds one machine. "
                "Drop it, or make it coarser."
            )
        return self.remember_values(column, frame, is_complete=True)

    @property
    def known_values(self) -> Mapping[str, pl.DataFrame]:
        """The values of some columns that were met so far, as :meth:`list_raw_values` has them."""
        return {**self._some, **self._all}

    def remember_values(self, column: str, values: Any, *, is_complete: bool) -> pl.DataFrame:
        """Remember values of a column, given as an Arrow table; ``is_complete`` if they are all."""
        raw = pl.from_arrow(values)
        assert isinstance(raw, pl.DataFrame)
        met = pl.DataFrame({"raw": raw.to_series(), "value": to_plain_frame(values).to_series()})
        (self._all if is_complete else self._some)[column] = met
        return met

    def iter_tallies(self, columns: Sequence[str]) -> Iterator[Tally]:
        """Yield distinct tuples with counts, all at once."""
        yield make_tally(self._group_plain_values(columns))

    def _group_plain_values(self, columns: Sequence[str]) -> pl.DataFrame:
        """Return distinct tuples of plain values; the last column counts their rows."""
        return to_plain_frame(self._group_raw_values(columns))

    def _group_raw_values(self, columns: Sequence[str]) -> Any:
        """Return the same with values as they are on Spark, as an Arrow table."""
        self._require_columns(columns)
        self._refuse_many_tuples(columns)
        inner = [self._inner[name] for name in columns]
        frame, sum_columns = self.select_with_sums(columns)
        with explain_failures("count the table"):
            grouped = (
                frame.groupBy(*inner).agg(F.count(F.lit(1)).alias("rows"), *sum_columns).toArrow()
            )
        return self.take_sums(grouped, "rows")

    def _refuse_many_tuples(self, columns: Sequence[str]) -> None:
        """Refuse tuples that are too many for this machine, by an approximate count first."""
        limit = self._engine.most_tuples
        if self._few:
            return
        if self.rows() > limit and (estimate := self._estimate_distinct(columns)) > limit * SURELY:
            raise TooManyTuplesError(
                f"Columns {', '.join(columns)}: about {estimate:,} distinct tuples, and one "
                f"machine holds {limit:,}. Publish fewer or coarser columns."
            )

    def _estimate_distinct(self, columns: Sequence[str]) -> int:
        """Return about how many distinct tuples some columns have."""
        inner = [self._inner[name] for name in columns]
        with explain_failures("count the distinct tuples of the table"):
            distinct = self._frame.select(approximate_distinct(inner)).first()
        assert distinct is not None
        return int(distinct[0])

    def count(self, columns: Sequence[str], coders: Mapping[str, Coder]) -> Frequencies:
        """Count distinct tuples of codes.

        They are grouped by raw values first; where those are too many, by codes, on Spark. Tables
        that were not :meth:`gather_columns`, large ones of coarse codes, are grouped by codes at
        once.
        """
        limit = self._engine.most_tuples
        if self.rows() >= LARGE and type(self) is SparkTable:
            with suppress(TooManyTuplesError):
                return count_coarse_codes(self, columns, coders, limit)
            return group_by_codes(self, columns, coders, limit).roll_up()
        try:
            with explain_failures("read the values of the table"):
                return make_tally(self._group_plain_values(columns)).encode_tuples(
                    [coders[name] for name in columns]
                )
        except TooManyTuplesError:
            return group_by_codes(self, columns, coders, limit).roll_up()

    def process_classes(
        self,
        coders: Mapping[str, Coder],
        tuples: Frequencies,
        members: Members,
        *,
        through: Sequence[str],
        work_columns: Sequence[str],
        work: Work,
        bits: Randomness,
    ) -> ProcessedRows:
        """Return what a work makes of the rows of each class, on the executors."""
        return classes.process_classes(
            self,
            coders,
            tuples,
            members,
            through=through,
            work_columns=work_columns,
            work=work,
            bits=bits,
        )

    def count_distinct(self, columns: Sequence[str]) -> int:
        """Count the distinct tuples of some columns."""
        self._require_columns(columns)
        inner = [self._inner[name] for name in columns]
        with explain_failures("count the distinct tuples of the table"):
            return int(self._frame.select(*inner).distinct().count())

    def count_people(self, column: str) -> int:
        """Count the people whom a column identifies."""
        return self.count_rows_per_id(column).ids

    def count_rows_per_id(self, column: str) -> RowsPerId:
        """Count the ids of a column, and the rows of each."""
        self._require_columns([column])
        with explain_failures(f"count the rows of each value of the column '{column}'"):
            return sums.count_rows_per_id(self._frame, self.make_identity(column))

    def count_missing(self, column: str) -> int:
        """Count the rows that have no value in a column; text without characters is none."""
        self._require_columns([column])
        null_count = F.count(F.when(self.make_identity(column).isNull(), 1))
        with explain_failures(f"look at the column '{column}'"):
            missing = self._frame.select(null_count).first()
        assert missing is not None
        return int(missing[0])

    def make_identity(self, column: str) -> Column:
        """Return what each row has in a column, as one thing however it is written."""
        inner = F.col(self._inner[column])
        return canonicalize_text(inner) if isinstance(self._kinds[column], T.StringType) else inner

    def choose_row_per_person(self, column: str, bits: Randomness) -> SparkTable:
        """Choose one row at random for each person whom a column identifies.

        Claim: of the m rows of a person each is chosen with a probability within 2**-60 of 1 / m,
        independently of all other people, and the choice is the same however often, and by
        whichever task, it is computed. The rows of a person are put into an order that only their
        content decides; the one at the place SHA-256(key, person) mod m is taken, of 60 bits of
        the hash. The key is 256 bits that are drawn here, once, and known to nobody: the hashes
        are as good as independent uniform bits. Nothing is drawn on the cluster, so that a task
        that is run again, or twice at once, cannot draw again. The key is sent as a table of one
        row, joined, so that it stands in no plan and no log.
        """
        self._require_columns([column])
        key = bits.draw_words(4).tobytes().hex()
        session = self._frame.sparkSession
        with explain_failures("send a key"):
            key_frame = session.createDataFrame(pa.table({"k": [key]}))
        order = [F.col(c) for n, c in self._inner.items() if is_orderable(self._kinds[n])]
        person = Window.partitionBy("p")
        digits = F.substring(F.sha2(F.concat(F.col("k"), F.col("p").cast("string")), 256), 1, 15)
        place = F.pmod(F.conv(digits, 16, 10).cast("bigint"), F.count(F.lit(1)).over(person))
        chosen_rows = (
            self._frame.withColumn("p", self.make_identity(column))
            .where(F.col("p").isNotNull())
            .crossJoin(F.broadcast(key_frame))
            .withColumn("at", F.row_number().over(person.orderBy(*order)) - 1)
            .withColumn("of", place)
            .where(F.col("at") == F.col("of"))
            .select(*self._inner.values())
        )
        return SparkTable(self._restore_names(chosen_rows), self._engine)

    def choose_rows_per_person(self, column: str, rows: int, bits: Randomness) -> SparkTable:
        """Choose at most so many rows at random of each person; all of whoever has fewer."""
        if rows == 1:
            return self.choose_row_per_person(column, bits)
        self._require_columns([column])
        order = [c for n, c in self._inner.items() if is_orderable(self._kinds[n])]
        chosen_rows = people.choose_rows(self, column, order, rows, bits)
        return SparkTable(self._restore_names(chosen_rows), self._engine)

    def code_people(
        self, person: str, columns: Sequence[str], coders: Mapping[str, Coder], *, alike: int = 1
    ) -> tuple[Members, Codes]:
        """Return a person's number and codes of columns, for each distinct row with a person."""
        self._require_columns([person, *columns])
        limit = self._engine.most_tuples
        return people.code_people(self, person, columns, coders, limit, alike)

    def join_table(
        self, column: str, other: SparkTable, other_column: str, read: Reader | None = None
    ) -> SparkTable:
        """Return the rows with the columns of another table, joined by ids."""
        added = [name for name in other.columns if name != other_column]
        refuse_common_columns(self._columns, added)
        frame, match = people.join_tables(self, column, other, other_column, added, read)
        origin = replace(self._origin, match=match)
        return SparkTable(frame.toDF(*self._columns, *added), self._engine, origin)

    def to_frame(self) -> DataFrame:
        """Return the rows as a data frame of Spark."""
        return self._restore_names(self._frame)

    def _restore_names(self, frame: DataFrame) -> DataFrame:
        return frame.toDF(*self._columns)

    def compute_fingerprint(self, key: bytes) -> str:
        """Compute a keyed hash of the rows as they were read, whatever their order and layout.

        Each row is hashed on the cluster, to 64 bits; the sums over all rows, which depend on no
        order, the number of rows, and names and kinds of the columns come here and are hashed
        with the key, so that neither key nor sums are to be seen anywhere.
        """
        if self._before is not None:
            return self._before.compute_fingerprint(key)
        return hmac.new(key, self._sums.describe_sums().encode(), "sha256").hexdigest()

    def hash_when_counted(self) -> bool:
        """Have the rows hashed in the pass that counts them next; not if they were read anew."""
        if self._before is not None:
            return False
        self._sums.request_sums()
        return True

    def select_with_sums(self, columns: Sequence[str]) -> tuple[DataFrame, list[Column]]:
        """Return some columns under inner names, and what is summed besides."""
        carried, sum_columns = self._sums.list_carried_columns()
        selected = [normalize_column(self._inner[name], self._kinds[name]) for name in columns]
        return self._raw.select(*selected, *carried), sum_columns

    def take_sums(self, groups: Any, count: str) -> Any:
        """Return groups of all rows from :meth:`select_with_sums`, without the sums."""
        return self._sums.take_sums(groups, count)

    def respell_texts(self, spell: Callable[[str], str]) -> SparkTable:
        """Return the table with every text and every column name written in another way."""
        frame = self._frame
        for name, inner in self._inner.items():
            if isinstance(self._kinds[name], T.StringType):
                texts = [str(text) for text in self.values(name) if text]
                changes = {old: new for old in texts if (new := spell(old)) != old}
                frame = self._replace_values(frame, inner, changes, pa.string(), pa.string())
        return SparkTable(frame.toDF(*[spell(name) for name in self._columns]), self._engine)

    def interpret_values(self, readers: Mapping[str, Reader]) -> SparkTable:
        """Return the table with the values of some columns replaced by what they mean."""
        frame = self._frame
        for name, read in readers.items():
            frame = self._interpret_column(frame, name, read, self._inner[name])
        table = SparkTable(
            self._restore_names(frame), self._engine, replace(self._origin, reread=True)
        )
        table._before = self
        return table

    def copy_column(self, name: str, target: str, read: Reader | None = None) -> DataFrame:
        """Return the rows under inner names, with a copy of a column: what its values mean."""
        frame = self._frame.withColumn(target, F.col(self.get_inner_name(name)))
        return frame if read is None else self._interpret_column(frame, name, read, target)

    def _interpret_column(
        self, frame: DataFrame, name: str, read: Reader, target: str
    ) -> DataFrame:
        """Return a frame with the meaning of a column's values in place of the values.

        ``target`` is the inner name of the column, or of a copy of it.
        """
        values = self.list_raw_values(name).drop_nulls("value")
        old, raw = values.get_column("value").to_list(), values.get_column("raw").to_list()
        new = [read(value) for value in old]
        meanings = {x: y for x, was, y in zip(raw, old, new, strict=True) if y != was}
        texts = any(value is not None for value in meanings.values())
        kind = values.get_column("raw").to_arrow().type
        if texts and not isinstance(self._kinds[name], T.StringType):
            frame = frame.withColumn(target, F.col(target).cast("string"))
            meanings = {str(x): y for x, y in meanings.items()}
        kind = pa.string() if texts else kind
        texts_by_value = {x: None if y is None else str(y) for x, y in meanings.items()}
        return self._replace_values(frame, target, texts_by_value, kind, kind)

    def join_columns(self, name: str, sources: Sequence[str]) -> SparkTable:
        """Return the table with one more column: some columns as text, with a blank between."""
        parts = [F.col(self.get_inner_name(source)).cast("string") for source in sources]
        spaced = [part for each in parts for part in (F.lit(" "), each)][1:]
        joined = self._restore_names(self._frame).toDF(*self._inner.values())
        frame = joined.withColumn(name, F.concat(*spaced)).toDF(*self._columns, name)
        table = SparkTable(frame, self._engine, self._origin)
        table._before = self
        return table

    def convert_labels(self, labels: Mapping[str, Mapping[str, int | float]]) -> SparkTable:
        """Return the table with numbers for texts."""
        frame = self._frame
        for name, numbers in labels.items():
            inner, is_whole = self._inner[name], all(isinstance(x, int) for x in numbers.values())
            number = pa.int64() if is_whole else pa.float64()
            frame = self._replace_values(frame, inner, numbers, pa.string(), number)
        return SparkTable(self._restore_names(frame), self._engine)

    def _replace_values(
        self, frame: DataFrame, inner: str, changes: Mapping[Any, Any], old: Any, new: Any
    ) -> DataFrame:
        """Replace some values of a column or, where the kind differs, all of them."""
        if not changes:
            return frame
        arrow = {
            "old": pa.array(list(changes), type=old),
            "new": pa.array(list(changes.values()), type=new),
            "found": pa.array([True] * len(changes)),
        }  # fmt: skip
        names = frame.columns
        lookup = F.broadcast(send_arrow_columns(self._frame.sparkSession, arrow))
        joined_frame = frame.join(lookup, F.col(inner) == F.col("old"), "left")
        unchanged = F.col(inner) if old == new else F.lit(None)
        changed_column = F.when(F.col("found"), F.col("new")).otherwise(unchanged)
        return joined_frame.withColumn(inner, changed_column).select(*names)

    def write(self, path: Path) -> None:
        """Write the table into one file of this machine."""
        if self.rows() > _WRITTEN:
            raise TableError(
                f"Table: {self.rows():,} rows are too many for one file. Write it with Spark."
            )
        with explain_failures("read the table"):
            LocalTable(to_plain_frame(self.to_frame().toArrow()).lazy()).write(path)

    def _require_columns(self, columns: Sequence[str]) -> None:
        for name in columns:
            if name not in self._inner:
                raise TableError(f"Column '{name}': not in the table. Correct its name.")
            refuse_nested_type(name, self._kinds[name])


class SparkGroupedTable(SparkTable):
    """Some columns of a table, grouped once, when it is first asked about any of them."""

    def __init__(self, frame: DataFrame, table: SparkTable) -> None:
        super().__init__(frame, table.engine)
        self._whole = table
        self._many: TooManyTuplesError | None = None

    @property
    def _row_count(self) -> int:
        return self._whole.rows()

    @cached_property
    def _grouped_frame(self) -> pl.DataFrame:
        grouped = self._whole._group_raw_values(self._columns).rename_columns(
            [*self._inner.values(), "rows"]
        )
        for name, inner in self._inner.items():  # whoever asks for them later needs no other pass
            values = pa.table({inner: grouped.column(inner).unique()})
            self._all[name] = self._whole.remember_values(name, values, is_complete=True)
        return to_plain_frame(grouped)

    def _group_plain_values(self, columns: Sequence[str]) -> pl.DataFrame:
        if self._many is not None:
            raise self._many
        try:
            grouped = self._grouped_frame
        except TooManyTuplesError as error:
            self._many = error
            raise
        if tuple(columns) == self._columns:
            return grouped
        inner = [self._inner[name] for name in columns]
        return grouped.group_by(inner).agg(pl.col("rows").sum())

    def values(self, column: str) -> Sequence[object]:
        """Return the distinct values of a column, null among them."""
        self._require_columns([column])
        with suppress(TooManyTuplesError):
            self._group_plain_values(self._columns)
        return super().values(column)
