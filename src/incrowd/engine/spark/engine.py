"""The engine of a Spark cluster: it opens files and tables of a catalogue, and data frames."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from incrowd.arrays import Bools, Counts
from incrowd.engine.address import is_address
from incrowd.engine.local.engine import ENGINE as LOCAL
from incrowd.engine.local.made import masked, used_labels
from incrowd.engine.spark.kinds import sent
from incrowd.engine.spark.made import SparkMade
from incrowd.engine.spark.session import begun, told
from incrowd.engine.spark.table import SparkTable
from incrowd.engine.spark.text import read_text
from incrowd.engine.table import Coded, Columns, Table, TableError
from incrowd.errors import check_whole

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
        asked: Any = self._settings.pop(_BOUND, most_tuples)
        whole = int(asked) if str(asked).isdecimal() else asked
        self.most_tuples = int(check_whole(_BOUND, whole, 1))

    @property
    def session(self) -> Any:
        """The session that is active, or else a new one."""
        return begun(self._master, self._settings)

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
        """A table from a data frame of Spark, a path, or the name of a table in the catalogue.

        Parquet, ORC and text go by the ending of the name, and a folder is taken for Parquet; a
        path may be an address, such as ``hdfs://`` or ``s3a://``. ``FORMAT:PATH`` has Spark read
        any format that it knows, such as ``delta:/data/people``. What is no path names a table:
        ``people``, ``census.people``. A relative path is relative to ``folder``. Files that only
        the local engine knows, tables of PostgreSQL, and data frames of other libraries are read
        on this machine, and sent.
        """
        if not isinstance(source, str | os.PathLike):
            return self._taken(source, sheet, header)
        if is_address(source):
            return self.sent(LOCAL.open(source, sheet=sheet, header=header).frame())
        found = self._read(os.fspath(source), folder, delimiter, sheet, header)
        with told(f"Cannot read '{source}'"):
            if not empty and found.rows() == 0:  # which is asked for anyway, and remembered
                name = Path(source).name
                raise TableError(
                    f"File '{name}': it has a header but no rows. Name a file with rows."
                )
        return found

    def _taken(self, source: Any, sheet: str | None, header: int | None) -> SparkTable:
        """A table from what is no text."""
        kind = f"{type(source).__module__.split('.')[0]}.{type(source).__name__}"
        if kind.startswith(("pandas.", "polars.", "pyarrow.")):
            return self.sent(LOCAL.open(source, sheet=sheet, header=header).frame())
        if sheet is not None or header is not None:
            raise TableError("The table stores its column names. Remove `sheet` and `header`.")
        if kind != "pyspark.DataFrame":
            raise TableError(
                f"Cannot read a table from a {kind}. Give a Spark data frame, a path, or the name "
                "of a table."
            )
        return SparkTable(source, self)

    def _read(
        self,
        source: str,
        folder: Path,
        delimiter: str | None,
        sheet: str | None,
        header: int | None,
    ) -> SparkTable:
        form, colon, rest = source.partition(":")
        address, named = rest.startswith("//"), colon and len(form) > 1 and form.isalnum()
        path = source if address else str(folder / source)
        here = Path(path)
        ending = "".join(here.suffixes[-2 if here.suffix.lower() == ".gz" else -1 :]).lower()
        if not address and here.is_file() and ending not in {*_TEXT, *_COLUMNAR}:
            return self.sent(LOCAL.open(here, sheet=sheet, header=header).frame())
        if sheet is not None:
            raise TableError(f"File '{here.name}': it has no sheets. Remove `sheet`.")
        if header is not None and ending not in _TEXT:
            raise TableError(f"File '{here.name}': it stores its column names. Remove `header`.")
        reader = self.session.read
        with told(f"Cannot read '{source}'"):
            if named and not address:
                frame = reader.format(form).load(rest if "://" in rest else str(folder / rest))
            elif ending in _TEXT:
                frame = read_text(self.session, path, here.name, delimiter, header)
            elif ending in _COLUMNAR or address or here.is_dir():
                frame = reader.format(_COLUMNAR.get(ending, "parquet")).load(path)
            else:
                frame = self.session.table(source)
        return SparkTable(frame, self)

    def sent(self, frame: pl.DataFrame) -> SparkTable:
        """A table of this machine, on Spark."""
        return SparkTable(sent(self.session, frame), self)

    def from_columns(self, columns: Columns) -> SparkTable:
        """A table from its columns."""
        return self.sent(LOCAL.from_columns(columns).frame())

    def from_cells(
        self, columns: Mapping[str, Coded], counts: Counts, *, weighted: str | None = None
    ) -> SparkMade:
        """A table of cells; each label is held once, and only if it occurs in some cell."""
        coded = {name: used_labels(*known) for name, known in columns.items()}
        if weighted:
            plain = {weighted: pl.Series(counts)}
            return SparkMade(coded, plain, [*coded, weighted], engine=self)
        return SparkMade(coded, {}, list(coded), engine=self, times=counts)

    def from_rows(
        self,
        coded: Mapping[str, Coded],
        plain: Mapping[str, tuple[np.ndarray[Any, Any], Bools]],
        order: Sequence[str],
    ) -> SparkMade:
        """A table of rows: columns of labels by code, and plain columns with a mask of nulls."""
        labels = {name: used_labels(*known) for name, known in coded.items()}
        return SparkMade(labels, masked(plain), order, engine=self)

    def refuse_name(self, name: str) -> None:
        """Refuse the name of a table that there is already, or that is none."""
        with told(f"Cannot save a table as '{name}'"):
            if self.session.catalog.tableExists(name):
                raise TableError(
                    f"Table '{name}': it exists in the catalog. Name another one, or drop it."
                )

    def save(self, table: Table, name: str) -> None:
        """Keep a table under a name that is free; whole or not at all."""
        self.refuse_name(name)
        try:
            with told(f"Cannot save a table as '{name}'"):
                table.frame().write.saveAsTable(name, mode="error")
        except TableError:
            with suppress(Exception):
                self.session.sql(f"DROP TABLE IF EXISTS {name}")
            raise


ENGINE = SparkEngine()
