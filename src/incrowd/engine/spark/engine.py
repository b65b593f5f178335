"""The engine of a Spark cluster: it opens files and tables of a catalog, and data frames."""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql import types as T  # noqa: N812

from incrowd.arrays import Bools, Counts
from incrowd.engine.address import is_address
from incrowd.engine.local.engine import ENGINE as LOCAL
from incrowd.engine.local.publishable import (
    BlockTable,
    PublishableTable,
    drop_unused_labels,
    mask_nulls,
)
from incrowd.engine.local.text import detect_delimiter, refuse_duplicate_names
from incrowd.engine.spark.column_type import send_polars_frame
from incrowd.engine.spark.session import explain_failures, start_session
from incrowd.engine.spark.table import SparkTable
from incrowd.engine.table import UNNAMED, Coded, Columns, Engine, RowBlocks, Table, TableError
from incrowd.errors import check_whole

_ODD = "_incrowd_odd"  # where Spark puts rows that do not fit
_MARK = "\ufeff"  # what some programs write before the first character


def read_text(session: Any, path: str, name: str, delimiter: str | None, header: int | None) -> Any:
    """Read a data frame of texts, the first row of each file its header; no type is guessed.

    One pass over the lines finds out whether quoted values go over several of them, which Spark
    has to know, whether the text is in UTF-8, and whether lines are blank, which Spark leaves out:
    of one column they are rows. Another pass finds rows of another length than the header: Spark
    itself would write them into its logs. Files of a folder with another header are refused when
    they are met.
    """
    if header not in (None, 1):
        raise TableError("On Spark, the first row of a text file is its header. Remove `header`.")
    is_ours = delimiter is not None
    lines = session.read.text(path)
    first_line = lines.first()
    if first_line is None:
        raise TableError(f"File '{name}': it is empty. Name a file with a table.")
    quotes = F.length("value") - F.length(F.replace("value", F.lit('"'), F.lit("")))
    odd = F.max(quotes % 2), F.max(~F.is_valid_utf8("value") | F.contains("value", F.lit("\0")))
    several, foreign, blank = lines.select(*odd, F.max(F.trim("value") == "")).first()
    if foreign:
        raise TableError(f"File '{name}': not UTF-8 text. Save it as UTF-8.")
    head = first_line[0].removeprefix(_MARK)
    delimiter = delimiter or detect_delimiter(head)
    is_complete = head.count('"') % 2 == 0  # else a name goes over several lines
    names = next(csv.reader([head], delimiter=delimiter), []) if is_complete else []
    # Spark gives other names to columns without one, or alike but for case, and would then miss it.
    is_renamed = "" in names or len({column_name.lower() for column_name in names}) < len(names)
    options = {
        "sep": delimiter, "header": "true", "quote": '"', "escape": '"', "mode": "PERMISSIVE",
        "multiLine": str(bool(several)).lower(), "columnPruning": "false", "nullValue": "",
        "emptyValue": "", "encoding": "UTF-8", "inferSchema": "false",
        "enforceSchema": str(is_renamed).lower(),
    }  # fmt: skip
    frame = _read_even_rows(session.read.options(**options), path, name, delimiter)
    if len(names) != len(frame.columns):
        names = frame.columns
    if blank and len(names) == 1:
        raise TableError(
            f"File '{name}': Spark skips the blank lines of its one column. Write rows without a "
            'value as "".'
        )
    if not is_ours and names[:1] in ([""], ["_c0"]) and UNNAMED not in names:
        names = [UNNAMED, *names[1:]]
    refuse_duplicate_names(list(names), f"The file '{name}'")
    return frame.toDF(*names)


def _read_even_rows(reader: Any, path: str, name: str, delimiter: str) -> Any:
    """Read a data frame all of whose rows have as many fields as the header."""
    inner = reader.csv(path).columns
    fields = [T.StructField(column, T.StringType()) for column in [*inner, _ODD]]
    reader = reader.option("columnNameOfCorruptRecord", _ODD)
    frame = reader.schema(T.StructType(fields)).csv(path)
    # Spark does not let anybody ask for what is odd alone.
    odd = frame.toDF(*[f"c{at}" for at in range(len(inner))], _ODD)
    bad, *_ = odd.select(F.count(_ODD), F.count("c0")).first()
    if bad:
        raise TableError(
            f"File '{name}': {bad:,} rows differ from the header in their number of fields. Quote "
            f"delimiters in values, or correct the delimiter '{delimiter}'."
        )
    return frame.drop(_ODD)


class SparkPublishableTable(PublishableTable):
    """A table to be published. Its file is written here, as every release is.

    As a data frame it is made of cells, which are repeated on the cluster as often as they count:
    what is sent is no larger than what is different. It holds what is published and nothing else,
    so its layout can tell nothing else.
    """

    def __init__(
        self,
        coded_columns: Mapping[str, tuple[list[object], np.ndarray[Any, Any]]],
        plain: Mapping[str, pl.Series],
        order: Sequence[str],
        *,
        engine: Any,
        times: Counts | None = None,
    ) -> None:
        row_columns = coded_columns
        if times is not None:
            row_columns = {
                name: (labels, np.repeat(at, times)) for name, (labels, at) in coded_columns.items()
            }
        super().__init__(row_columns, plain, order)
        self._cells, self._times, self._home = coded_columns, times, engine

    @property
    def engine(self) -> Engine:
        """The engine that made it."""
        home: Engine = self._home
        return home

    def convert_labels(
        self, labels: Mapping[str, Mapping[str, int | float]]
    ) -> SparkPublishableTable:
        """Return the table with numbers for texts."""
        cells = dict(self._cells)
        for name, numbers in labels.items():
            texts, codes = cells[name]
            cells[name] = ([numbers.get(text) for text in texts], codes)  # type: ignore[call-overload]
        return SparkPublishableTable(
            cells, self._plain, self._order, engine=self._home, times=self._times
        )

    def to_frame(self) -> Any:
        """Return the rows as a data frame of Spark."""
        cells = PublishableTable(self._cells, self._plain, self._order)
        inner = [f"c{at}" for at in range(len(self._order))]
        local_frame = PublishableTable.to_frame(cells)
        if self._times is None:
            return send_polars_frame(self._home.session, local_frame)
        local_frame.columns = inner
        weighted_frame = local_frame.with_columns(pl.Series("times", self._times, dtype=pl.Int64))
        frame = send_polars_frame(self._home.session, weighted_frame.filter(pl.col("times") > 0))
        repeated_rows = frame.withColumn("row", F.explode(F.sequence(F.lit(1), F.col("times"))))
        return repeated_rows.select(*inner).toDF(*self._order)


class SparkBlockTable(BlockTable):
    """A table whose rows are made block by block; its file is written here, as the others are."""

    def __init__(self, blocks: RowBlocks, home: Any) -> None:
        super().__init__(blocks)
        self._home = home

    @property
    def engine(self) -> Engine:
        """The engine that made it."""
        home: Engine = self._home
        return home

    def to_frame(self) -> Any:
        """Return the rows as a data frame of Spark."""
        return send_polars_frame(self._home.session, super().to_frame())

    def _remake(self, blocks: RowBlocks) -> SparkBlockTable:
        """Return a table of other blocks, of the same engine."""
        return SparkBlockTable(blocks, self._home)


_TEXT = {
    f"{ending}{packed}" for ending in (".csv", ".tsv", ".txt", ".tab") for packed in ("", ".gz")
}
_COLUMNAR = {".parquet": "parquet", ".orc": "orc"}


MOST_TUPLES = 20_000_000  # about 100 bytes each
_BOUND = "spark.incrowd.mostTuples"


class SparkEngine:
    """Tables of a Spark session: the active one, or a new one at a master.

    ``most_tuples`` distinct tuples of a table are brought to this machine at most; the setting
    ``spark.incrowd.mostTuples`` says the same. Beyond that they stay on the cluster.
    """

    def __init__(
        self,
        master: str | None = None,
        settings: Mapping[str, str] | None = None,
        *,
        most_tuples: int = MOST_TUPLES,
    ) -> None:
        self._master, self._settings = master, dict(settings or {})
        request: Any = self._settings.pop(_BOUND, most_tuples)
        limit = int(request) if str(request).isdecimal() else request
        self.most_tuples = int(check_whole(_BOUND, limit, 1))

    @property
    def session(self) -> Any:
        """The session that is active, or else a new one."""
        return start_session(self._master, self._settings)

    def open(
        self,
        source: Any,
        *,
        folder: Path = Path(),
        empty: bool = False,
        delimiter: str | None = None,
        sheet: str | None = None,
        header: int | None = None,
    ) -> SparkTable:
        """Open a table from a Spark data frame, a path, or the name of a table in the catalog.

        Parquet, ORC and text go by the ending of the name, and a folder is taken for Parquet; a
        path may be an address, such as ``hdfs://`` or ``s3a://``. ``FORMAT:PATH`` has Spark read
        any format that it knows, such as ``delta:/data/people``. What is no path names a table:
        ``people``, ``census.people``. A relative path is relative to ``folder``. Files that only
        the local engine knows, tables of PostgreSQL, and data frames of other libraries are read
        on this machine, and sent.
        """
        if not isinstance(source, str | os.PathLike):
            return self._open_object(source, sheet, header)
        if is_address(source):
            return self.send_frame(LOCAL.open(source, sheet=sheet, header=header).to_frame())
        spark_table = self._open_source(os.fspath(source), folder, delimiter, sheet, header)
        with explain_failures(f"Cannot read '{source}'"):
            if not empty and spark_table.rows() == 0:  # which is asked for anyway, and remembered
                name = Path(source).name
                raise TableError(
                    f"File '{name}': it has a header but no rows. Name a file with rows."
                )
        return spark_table

    def _open_object(self, source: Any, sheet: str | None, header: int | None) -> SparkTable:
        """Open a table from what is no text."""
        kind = f"{type(source).__module__.split('.')[0]}.{type(source).__name__}"
        if kind.startswith(("pandas.", "polars.", "pyarrow.")):
            return self.send_frame(LOCAL.open(source, sheet=sheet, header=header).to_frame())
        if sheet is not None or header is not None:
            raise TableError("The table stores its column names. Remove `sheet` and `header`.")
        if kind != "pyspark.DataFrame":
            raise TableError(
                f"Cannot read a table from a {kind}. Give a Spark data frame, a path, or the name "
                "of a table."
            )
        return SparkTable(source, self)

    def _open_source(
        self,
        source: str,
        folder: Path,
        delimiter: str | None,
        sheet: str | None,
        header: int | None,
    ) -> SparkTable:
        form, colon, rest = source.partition(":")
        address, is_named = rest.startswith("//"), colon and len(form) > 1 and form.isalnum()
        path = source if address else str(folder / source)
        local_path = Path(path)
        ending = "".join(
            local_path.suffixes[-2 if local_path.suffix.lower() == ".gz" else -1 :]
        ).lower()
        if not address and local_path.is_file() and ending not in {*_TEXT, *_COLUMNAR}:
            return self.send_frame(LOCAL.open(local_path, sheet=sheet, header=header).to_frame())
        if sheet is not None:
            raise TableError(f"File '{local_path.name}': it has no sheets. Remove `sheet`.")
        if header is not None and ending not in _TEXT:
            raise TableError(
                f"File '{local_path.name}': it stores its column names. Remove `header`."
            )
        reader = self.session.read
        with explain_failures(f"Cannot read '{source}'"):
            if is_named and not address:
                frame = reader.format(form).load(rest if "://" in rest else str(folder / rest))
            elif ending in _TEXT:
                frame = read_text(self.session, path, local_path.name, delimiter, header)
            elif ending in _COLUMNAR or address or local_path.is_dir():
                frame = reader.format(_COLUMNAR.get(ending, "parquet")).load(path)
            else:
                frame = self.session.table(source)
        return SparkTable(frame, self)

    def send_frame(self, frame: pl.DataFrame) -> SparkTable:
        """Send a table of this machine to Spark."""
        return SparkTable(send_polars_frame(self.session, frame), self)

    def from_columns(self, columns: Columns) -> SparkTable:
        """Make a table from its columns."""
        return self.send_frame(LOCAL.from_columns(columns).to_frame())

    def from_cells(
        self, columns: Mapping[str, Coded], counts: Counts, *, count_column: str | None = None
    ) -> SparkPublishableTable:
        """Make a table of cells; each label is held once, and only if it occurs in some cell."""
        coded_columns = {name: drop_unused_labels(*column) for name, column in columns.items()}
        if count_column:
            plain = {count_column: pl.Series(counts)}
            return SparkPublishableTable(
                coded_columns, plain, [*coded_columns, count_column], engine=self
            )
        return SparkPublishableTable(
            coded_columns, {}, list(coded_columns), engine=self, times=counts
        )

    def from_rows(
        self,
        coded_columns: Mapping[str, Coded],
        plain: Mapping[str, tuple[np.ndarray[Any, Any], Bools]],
        order: Sequence[str],
    ) -> SparkPublishableTable:
        """Make a table of rows: labels by code, and plain columns with a mask of nulls."""
        labels = {name: drop_unused_labels(*column) for name, column in coded_columns.items()}
        return SparkPublishableTable(labels, mask_nulls(plain), order, engine=self)

    def from_blocks(self, blocks: RowBlocks) -> SparkBlockTable:
        """Make a table of rows that are made block by block, and written so."""
        return SparkBlockTable(blocks, self)

    def refuse_name(self, name: str) -> None:
        """Refuse the name of a table that there is already, or that is none."""
        with explain_failures(f"Cannot save a table as '{name}'"):
            if self.session.catalog.tableExists(name):
                raise TableError(
                    f"Table '{name}': it exists in the catalog. Name another one, or drop it."
                )

    def save(self, table: Table, name: str) -> None:
        """Keep a table under a name that is free; whole or not at all."""
        self.refuse_name(name)
        try:
            with explain_failures(f"Cannot save a table as '{name}'"):
                table.to_frame().write.saveAsTable(name, mode="error")
        except TableError:
            with suppress(Exception):
                self.session.sql(f"DROP TABLE IF EXISTS {name}")
            raise


ENGINE = SparkEngine()
