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

from incrowd.arrays import Members
from incrowd.codes.frequency import Frequencies
from incrowd.engine.local.table import LocalTable, tally_of
from incrowd.engine.local.text import refuse_duplicates
from incrowd.engine.spark import classes, sums
from incrowd.engine.spark.cells import SURELY, approximately, coded_cells
from incrowd.engine.spark.coarse import count_coarsely, look
from incrowd.engine.spark.kinds import (
    can_order,
    canonical,
    plain,
    refuse_nested,
    sent_arrow,
    whole,
)
from incrowd.engine.spark.session import told
from incrowd.engine.spark.sums import RowSums
from incrowd.engine.table import (
    Coder,
    Origin,
    RowsPerId,
    TableError,
    Tally,
    TooManyError,
    Work,
    WorkedRows,
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

    def __init__(self, frame: DataFrame, engine: SparkEngine, origin: Origin | None = None) -> None:
        self._columns = tuple(frame.columns)
        refuse_duplicates(list(self._columns), "The Spark table")
        self._inner = {name: f"c{at}" for at, name in enumerate(self._columns)}
        self._engine, self._origin = engine, origin or Origin()
        self._kinds = {name: field.dataType for name, field in zip(
            self._columns, frame.schema.fields, strict=True)}  # fmt: skip
        self._raw = frame.toDF(*self._inner.values())
        self._frame = self._raw.select([whole(inner, self._kinds[name]) for name, inner in
                                        self._inner.items()])  # fmt: skip
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
    def origin(self) -> Origin:
        """What is known of where the table came from."""
        return self._origin

    @property
    def inside(self) -> DataFrame:
        """The rows, under the inner names of their columns."""
        return self._frame

    def inner(self, column: str) -> str:
        """What a column is called inside; refuses one that there is not, or is no single value."""
        self._refuse_missing([column])
        return self._inner[column]

    @cached_property
    def _rows(self) -> int:
        with told("count the rows of the table"):
            return int(self._frame.count())

    def rows(self) -> int:
        """The number of rows."""
        return self._rows

    def head(self, rows: int) -> SparkTable:
        """Some rows: without an order there are no first ones."""
        found = SparkTable(self._named(self._frame.limit(rows)), self._engine)
        found._few = rows <= _FEW
        return found

    def gathered(self, columns: Sequence[str], *, coarse: bool = False) -> SparkTable:
        """Some columns, grouped once for whatever will be asked of them.

        A large table of which ``coarse`` codes alone are asked for is grouped by those.
        """
        self._refuse_missing(columns)
        if coarse and self.rows() >= LARGE:
            same = copy(self)
            same._coarse = tuple(columns)
            return same
        names = list(dict.fromkeys(columns))
        inner = [self._inner[name] for name in names]
        return Gathered(self._frame.select(inner).toDF(*names), self)

    def values(self, column: str) -> Sequence[object]:
        """The distinct values of a column, null among them."""
        return self.raw_values(column).get_column("value").unique().to_list()

    def raw_values(self, column: str) -> pl.DataFrame:
        """The distinct values of a column as they are on Spark, and in plain; looked for once."""
        inner = self.inner(column)
        if column in self._all:
            return self._all[column]
        with ThreadPoolExecutor(1) as beside, told(f"find the values of the column '{column}'"):
            looked = beside.submit(look, self, self._coarse)
            frame = self._frame.select(inner).distinct().limit(_MOST_VALUES + 1).toArrow()
            looked.result()
        if frame.num_rows > _MOST_VALUES:
            raise TooManyError(
                f"Column '{column}': more than {_MOST_VALUES:,} values, which exceeds one machine. "
                "Drop it, or make it coarser."
            )
        return self.meet(column, frame, whole=True)

    @property
    def met(self) -> Mapping[str, pl.DataFrame]:
        """The values of some columns that were met so far, as :meth:`raw_values` has them."""
        return {**self._some, **self._all}

    def meet(self, column: str, values: Any, *, whole: bool) -> pl.DataFrame:
        """Remember values of a column, given as an Arrow table; ``whole`` if they are all."""
        raw = pl.from_arrow(values)
        assert isinstance(raw, pl.DataFrame)
        met = pl.DataFrame({"raw": raw.to_series(), "value": plain(values).to_series()})
        (self._all if whole else self._some)[column] = met
        return met

    def tallies(self, columns: Sequence[str]) -> Iterator[Tally]:
        """Distinct tuples with counts, all at once."""
        yield tally_of(self._grouped(columns))

    def _grouped(self, columns: Sequence[str]) -> pl.DataFrame:
        """Distinct tuples of plain values, and in the last column how many rows have them."""
        return plain(self._tuples(columns))

    def _tuples(self, columns: Sequence[str]) -> Any:
        """The same with values as they are on Spark, as an Arrow table."""
        self._refuse_missing(columns)
        self._refuse_many(columns)
        inner = [self._inner[name] for name in columns]
        frame, summed = self.carrying(columns)
        with told("count the table"):
            found = frame.groupBy(*inner).agg(F.count(F.lit(1)).alias("rows"), *summed).toArrow()
        return self.take_sums(found, "rows")

    def _refuse_many(self, columns: Sequence[str]) -> None:
        """Refuse tuples that are too many for this machine, by an approximate count first."""
        most = self._engine.most_tuples
        if self._few:
            return
        if self.rows() > most and (many := self._about(columns)) > most * SURELY:
            raise TooManyError(
                f"Columns {', '.join(columns)}: about {many:,} distinct tuples, and one machine "
                f"holds {most:,}. Publish fewer or coarser columns."
            )

    def _about(self, columns: Sequence[str]) -> int:
        """About how many distinct tuples some columns have."""
        inner = [self._inner[name] for name in columns]
        with told("count the distinct tuples of the table"):
            found = self._frame.select(approximately(inner)).first()
        assert found is not None
        return int(found[0])

    def count(self, columns: Sequence[str], coders: Mapping[str, Coder]) -> Frequencies:
        """Distinct tuples of codes with counts.

        They are grouped by raw values first; where those are too many, by codes, on Spark. Tables
        that were not :meth:`gathered`, large ones of coarse codes, are grouped by codes at once.
        """
        most = self._engine.most_tuples
        if self.rows() >= LARGE and type(self) is SparkTable:
            with suppress(TooManyError):
                return count_coarsely(self, columns, coders, most)
            return coded_cells(self, columns, coders, most).rolled()
        try:
            with told("read the values of the table"):
                return tally_of(self._grouped(columns)).coded([coders[name] for name in columns])
        except TooManyError:
            return coded_cells(self, columns, coders, most).rolled()

    def worked(
        self,
        coders: Mapping[str, Coder],
        tuples: Frequencies,
        members: Members,
        *,
        through: Sequence[str],
        read: Sequence[str],
        work: Work,
        bits: Randomness,
    ) -> WorkedRows:
        """What a work makes of the rows of each class, on the executors."""
        return classes.worked(
            self, coders, tuples, members, through=through, read=read, work=work, bits=bits
        )

    def distinct(self, columns: Sequence[str]) -> int:
        """How many distinct tuples some columns have."""
        self._refuse_missing(columns)
        inner = [self._inner[name] for name in columns]
        with told("count the distinct tuples of the table"):
            return int(self._frame.select(*inner).distinct().count())

    def people(self, column: str) -> int:
        """How many people a column identifies."""
        return self.count_rows_per_id(column).ids

    def count_rows_per_id(self, column: str) -> RowsPerId:
        """Count the ids of a column, and the rows of each."""
        self._refuse_missing([column])
        with told(f"count the rows of each value of the column '{column}'"):
            return sums.count_rows_per_id(self._frame, self._identity(column))

    def missing(self, column: str) -> int:
        """How many rows have no value in a column; text without characters is none."""
        self._refuse_missing([column])
        nothing = F.count(F.when(self._identity(column).isNull(), 1))
        with told(f"look at the column '{column}'"):
            found = self._frame.select(nothing).first()
        assert found is not None
        return int(found[0])

    def _identity(self, column: str) -> Column:
        """What each row has in a column, as one thing however it is written."""
        inner = F.col(self._inner[column])
        return canonical(inner) if isinstance(self._kinds[column], T.StringType) else inner

    def one_row_each(self, column: str, bits: Randomness) -> SparkTable:
        """One row, chosen at random, for each person whom a column identifies.

        Claim: of the m rows of a person each is chosen with a probability within 2**-60 of 1 / m,
        independently of all other people, and the choice is the same however often, and by
        whichever task, it is computed. The rows of a person are put into an order that only their
        content decides; the one at the place SHA-256(key, person) mod m is taken, of 60 bits of
        the hash. The key is 256 bits that are drawn here, once, and known to nobody: the hashes
        are as good as independent uniform bits. Nothing is drawn on the cluster, so that a task
        that is run again, or twice at once, cannot draw again. The key is sent as a table of one
        row, joined, so that it stands in no plan and no log.
        """
        self._refuse_missing([column])
        key = bits.words(4).tobytes().hex()
        session = self._frame.sparkSession
        with told("send a key"):
            keyed = session.createDataFrame(pa.table({"k": [key]}))
        ordered = [F.col(c) for n, c in self._inner.items() if can_order(self._kinds[n])]
        people = Window.partitionBy("p")
        digits = F.substring(F.sha2(F.concat(F.col("k"), F.col("p").cast("string")), 256), 1, 15)
        place = F.pmod(F.conv(digits, 16, 10).cast("bigint"), F.count(F.lit(1)).over(people))
        chosen = (
            self._frame.withColumn("p", self._identity(column))
            .where(F.col("p").isNotNull())
            .crossJoin(F.broadcast(keyed))
            .withColumn("at", F.row_number().over(people.orderBy(*ordered)) - 1)
            .withColumn("of", place)
            .where(F.col("at") == F.col("of"))
            .select(*self._inner.values())
        )
        return SparkTable(self._named(chosen), self._engine)

    def frame(self) -> DataFrame:
        """The rows as a data frame of Spark."""
        return self._named(self._frame)

    def _named(self, frame: DataFrame) -> DataFrame:
        return frame.toDF(*self._columns)

    def fingerprint(self, key: bytes) -> str:
        """A keyed hash of the rows as they were read, whatever their order and layout.

        Each row is hashed on the cluster, to 64 bits; the sums over all rows, which depend on no
        order, the number of rows, and names and kinds of the columns come here and are hashed
        with the key, so that neither key nor sums are to be seen anywhere.
        """
        if self._before is not None:
            return self._before.fingerprint(key)
        return hmac.new(key, self._sums.text().encode(), "sha256").hexdigest()

    def hash_when_counted(self) -> bool:
        """Have the rows hashed in the pass that counts them next; not if they were read anew."""
        if self._before is not None:
            return False
        self._sums.ask()
        return True

    def carrying(self, columns: Sequence[str]) -> tuple[DataFrame, list[Column]]:
        """Some columns under their inner names, to be grouped, and what is to be summed besides."""
        brought, summed = self._sums.carried()
        chosen = [whole(self._inner[name], self._kinds[name]) for name in columns]
        return self._raw.select(*chosen, *brought), summed

    def take_sums(self, groups: Any, count: str) -> Any:
        """Groups of all rows that were :meth:`carrying`, without what was summed besides."""
        return self._sums.taken(groups, count)

    def respelled(self, spell: Callable[[str], str]) -> SparkTable:
        """The table with every text and every name of a column written in another way."""
        frame = self._frame
        for name, inner in self._inner.items():
            if isinstance(self._kinds[name], T.StringType):
                texts = [str(text) for text in self.values(name) if text]
                changed = {old: new for old in texts if (new := spell(old)) != old}
                frame = self._replaced(frame, inner, changed, pa.string(), pa.string())
        return SparkTable(frame.toDF(*[spell(name) for name in self._columns]), self._engine)

    def reread(self, readers: Mapping[str, Callable[[object], object]]) -> SparkTable:
        """The table with the values of some columns replaced by what they mean."""
        frame = self._frame
        for name, read in readers.items():
            known = self.raw_values(name).drop_nulls("value")
            old, raw = known.get_column("value").to_list(), known.get_column("raw").to_list()
            new = [read(value) for value in old]
            changed = {x: y for x, was, y in zip(raw, old, new, strict=True) if y != was}
            texts = any(value is not None for value in changed.values())
            inner, kind = self._inner[name], known.get_column("raw").to_arrow().type
            if texts and not isinstance(self._kinds[name], T.StringType):
                frame = frame.withColumn(inner, F.col(inner).cast("string"))
                changed = {str(x): y for x, y in changed.items()}
            kind = pa.string() if texts else kind
            written = {x: None if y is None else str(y) for x, y in changed.items()}
            frame = self._replaced(frame, inner, written, kind, kind)
        made = SparkTable(self._named(frame), self._engine, replace(self._origin, reread=True))
        made._before = self
        return made

    def relabelled(self, labels: Mapping[str, Mapping[str, int | float]]) -> SparkTable:
        """The table with numbers for texts."""
        frame = self._frame
        for name, known in labels.items():
            inner, whole = self._inner[name], all(isinstance(x, int) for x in known.values())
            number = pa.int64() if whole else pa.float64()
            frame = self._replaced(frame, inner, known, pa.string(), number)
        return SparkTable(self._named(frame), self._engine)

    def _replaced(
        self, frame: DataFrame, inner: str, changed: Mapping[Any, Any], old: Any, new: Any
    ) -> DataFrame:
        """A column with some of its values replaced, or, where the kind differs, all of them."""
        if not changed:
            return frame
        arrow = {
            "old": pa.array(list(changed), type=old),
            "new": pa.array(list(changed.values()), type=new),
            "found": pa.array([True] * len(changed)),
        }  # fmt: skip
        names = frame.columns
        known = F.broadcast(sent_arrow(self._frame.sparkSession, arrow))
        joined = frame.join(known, F.col(inner) == F.col("old"), "left")
        kept = F.col(inner) if old == new else F.lit(None)
        changed_column = F.when(F.col("found"), F.col("new")).otherwise(kept)
        return joined.withColumn(inner, changed_column).select(*names)

    def write(self, path: Path) -> None:
        """Write the table into one file of this machine."""
        if self.rows() > _WRITTEN:
            raise TableError(
                f"Table: {self.rows():,} rows are too many for one file. Write it with Spark."
            )
        with told("read the table"):
            LocalTable(plain(self.frame().toArrow()).lazy()).write(path)

    def _refuse_missing(self, columns: Sequence[str]) -> None:
        for name in columns:
            if name not in self._inner:
                raise TableError(f"Column '{name}': not in the table. Correct its name.")
            refuse_nested(name, self._kinds[name])


class Gathered(SparkTable):
    """Some columns of a table, grouped once, when it is first asked about any of them."""

    def __init__(self, frame: DataFrame, whole: SparkTable) -> None:
        super().__init__(frame, whole.engine)
        self._whole = whole
        self._many: TooManyError | None = None

    @property
    def _rows(self) -> int:
        return self._whole.rows()

    @cached_property
    def _groups(self) -> pl.DataFrame:
        found = self._whole._tuples(self._columns).rename_columns([*self._inner.values(), "rows"])
        for name, inner in self._inner.items():  # whoever asks for them later needs no other pass
            values = pa.table({inner: found.column(inner).unique()})
            self._all[name] = self._whole.meet(name, values, whole=True)
        return plain(found)

    def _grouped(self, columns: Sequence[str]) -> pl.DataFrame:
        if self._many is not None:
            raise self._many
        try:
            whole = self._groups
        except TooManyError as error:
            self._many = error
            raise
        if tuple(columns) == self._columns:
            return whole
        inner = [self._inner[name] for name in columns]
        return whole.group_by(inner).agg(pl.col("rows").sum())

    def values(self, column: str) -> Sequence[object]:
        """The distinct values of a column, null among them."""
        self._refuse_missing([column])
        with suppress(TooManyError):
            self._grouped(self._columns)
        return super().values(column)
