"""Text files, read as text: no type is guessed, so a ZIP code keeps its zeros."""

from __future__ import annotations

import atexit
import codecs
import csv
import io
import shutil
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from incrowd.arrays import Units
from incrowd.codes.quotes import LONGEST, find_fault
from incrowd.engine.table import UNNAMED, TableError

_IN_MEMORY_BYTES = 1 << 29
_BLOCK_BYTES = LONGEST


def open_text(path: Path, delimiter: str | None) -> pl.LazyFrame:
    """A checked text file: every row has as many fields as the header, and quotes are closed.

    A first column without a name, as pandas and R write row numbers, is called ``unnamed``.

    A small one is held in memory. A large one is laid out once, column by column, in a
    temporary folder that only this user can read and that goes with the table, and is
    scanned from there.
    """
    import pyarrow as pa

    encoding = _encoding(path)
    with path.open(encoding=encoding, newline="") as file:
        head = next((line for line in file if line.strip()), "")
    ours, delimiter = delimiter is not None, delimiter or _delimiter(head)
    names, trouble = _header(path, delimiter, encoding)
    columns = None if ours else len(names)
    if fault := find_fault(_units(path, encoding), delimiter, columns):
        raise TableError(fault.said(path.name))
    if trouble is not None:
        raise TableError(f"Cannot read the header of '{path.name}': {trouble}.") from trouble
    bare = not ours and names[:1] == [""] and UNNAMED not in names
    refuse_duplicates([UNNAMED, *names[1:]] if bare else names, f"The file '{path.name}'")
    batches = _strict(path, names, delimiter, encoding)
    if path.stat().st_size <= _IN_MEMORY_BYTES:
        frame = pl.from_arrow(batches.read_all())
        assert isinstance(frame, pl.DataFrame)
        return _named(frame.lazy(), bare)
    folder = Path(tempfile.mkdtemp(prefix="incrowd-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    laid_out = folder / "table.arrow"
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.ipc.new_file(laid_out, batches.schema, options=options) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return _named(pl.scan_ipc(laid_out), bare)


def _named(frame: pl.LazyFrame, bare: bool) -> pl.LazyFrame:
    """The frame with a name for its first column, if that has none."""
    return frame.rename({frame.collect_schema().names()[0]: UNNAMED}) if bare else frame


def _header(path: Path, delimiter: str, encoding: str) -> tuple[list[str], csv.Error | None]:
    """The names in the header; none, but what is wrong with it, if it cannot be read."""
    with path.open(encoding=encoding, newline="") as file:
        try:
            rows = csv.reader(file, delimiter=delimiter)
            return next((row for row in rows if row), []), None
        except csv.Error as error:
            return [], error


def _units(path: Path, encoding: str) -> Units:
    """The bytes of a text, or the halves of UTF-16, without its mark; read as they are needed."""
    with path.open("rb") as file:
        mark = file.read(3)
    wide: np.dtype[Any] = np.dtype(np.uint8)
    skipped = len(mark) if encoding == "utf-8-sig" else 0
    if encoding == "utf-16":
        wide, skipped = np.dtype("<u2" if mark.startswith(codecs.BOM_UTF16_LE) else ">u2"), 2
    number = (path.stat().st_size - skipped) // wide.itemsize
    if number < 1:
        return np.zeros(0, dtype=wide)
    return np.memmap(path, dtype=wide, mode="r", offset=skipped, shape=(number,)).view(np.ndarray)


def _strict(path: Path, names: list[str], delimiter: str, encoding: str) -> Any:
    """A reader of record batches that stops at the first row of another length."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    ragged: list[str] = []

    def refuse(row: Any) -> str:
        where = f"Row {row.number}" if row.number else "A row"
        ragged.append(
            f"{where} of '{path.name}' has {row.actual_columns} fields, but the header has "
            f"{row.expected_columns}. Is a delimiter unquoted, or '{delimiter}' the wrong one?"
        )
        return "error"

    def batches() -> Any:
        reader = arrow_csv.open_csv(
            path,
            read_options=arrow_csv.ReadOptions(
                encoding="utf8" if encoding.startswith("utf-8") else encoding,
                block_size=_BLOCK_BYTES,
                use_threads=False,
            ),
            parse_options=arrow_csv.ParseOptions(
                delimiter=delimiter,
                newlines_in_values=True,
                invalid_row_handler=refuse,
                ignore_empty_lines=len(names) > 1,  # of one column an empty line is a null
            ),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()),
                strings_can_be_null=True,
                null_values=[""],
                quoted_strings_can_be_null=True,
            ),
        )
        yield from reader

    schema = pa.schema([(name, pa.string()) for name in names])
    return _Batches(batches(), schema, path.name, ragged)


class _Batches:
    """Record batches whose errors come in our words."""

    def __init__(self, batches: Any, schema: Any, name: str, ragged: list[str]) -> None:
        self._batches, self.schema, self._name, self._ragged = batches, schema, name, ragged

    def __iter__(self) -> Any:
        import pyarrow as pa

        try:
            yield from self._batches
        except pa.ArrowInvalid as error:
            if self._ragged:
                raise TableError(self._ragged[0]) from error
            text = str(error)
            if "straddling" in text:
                raise TableError(
                    f"A row of '{self._name}' is longer than {_BLOCK_BYTES >> 20} MB. Is a quote "
                    "left open?"
                ) from error
            raise TableError(f"Cannot read '{self._name}': {text.splitlines()[0]}") from error

    def read_all(self) -> Any:
        import pyarrow as pa

        return pa.Table.from_batches(list(self), schema=self.schema)


def _encoding(path: Path) -> str:
    """UTF-8 (with or without a mark), UTF-16 with a mark, or else Windows' Western European."""
    with path.open("rb") as file:
        start = file.read(4)
        if start.startswith(codecs.BOM_UTF8):
            return "utf-8-sig"
        if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            return "utf-16"
    for name in ("utf-8", "cp1252"):
        if _is_written_in(path, name):
            return name
    raise TableError(
        f"The file '{path.name}' is no text in UTF-8, UTF-16 or Windows-1252. Save it as UTF-8."
    )


def _is_written_in(path: Path, encoding: str) -> bool:
    decoder = codecs.getincrementaldecoder(encoding)()
    with path.open("rb") as file:
        while chunk := file.read(1 << 22):
            if b"\0" in chunk:
                return False
            try:
                decoder.decode(chunk)
            except UnicodeDecodeError:
                return False
    try:
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _delimiter(head: str) -> str:
    """The one of , ; tab | that splits the header most often; text in quotes does not count."""
    parts = {mark: len(next(csv.reader(io.StringIO(head), delimiter=mark), [])) for mark in ",;\t|"}
    return max(parts, key=lambda mark: parts[mark])


def refuse_duplicates(names: list[str], what: str) -> None:
    """Refuse a table two of whose columns have one name, or one of which has none."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise TableError(f"{what} has the column '{twice[0]}' twice. Rename one of them.")
    if "" in names:
        raise TableError(f"{what} has a column without a name, number {names.index('') + 1}.")
