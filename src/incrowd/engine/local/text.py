"""Text files, read as text: no type is guessed, so a ZIP code keeps its zeros."""

from __future__ import annotations

import atexit
import codecs
import csv
import gzip
import io
import mmap
import re
import shutil
import tempfile
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import polars as pl

from incrowd.codes.quotes import LONGEST, QuoteFault, find_fault
from incrowd.codes.values import canonicalize_value, parse_iso_day, parse_number
from incrowd.engine.table import UNNAMED, TableError, TableOrigin

LOOKED_AT = 50  # so many rows tell where the header is

Cells = Sequence[str | None]


@dataclass(frozen=True)
class TitledHeader:
    """The row that holds the header, and the rows above it that hold a title; from 1."""

    header: int
    titles: tuple[int, ...]

    @property
    def note(self) -> str:
        """What whoever opened the table should know."""
        first, last = self.titles[0], self.titles[-1]
        subject = f"Row {first} looks" if first == last else f"Rows {first} to {last} look"
        return (
            f"{subject} like a title; row {self.header} was read as the header. --header names "
            "another."
        )


def find_titled_header(rows: Mapping[int, Cells]) -> TitledHeader | None:
    """Find the header among the first rows, by their numbers, if a title stands above it.

    Rows of a title fill at most half as many cells as most rows of the table do. What follows on
    them must look like a header: different texts, no number and no day among them, and a row
    below. A wrong guess would take somebody's row for names of columns, so that in doubt there
    is no title.
    """
    texts = {
        at: filled_cells
        for at, cells in rows.items()
        if (filled_cells := [text for cell in cells if (text := canonicalize_value(cell))])
    }
    widths = sorted(len(row_texts) for row_texts in texts.values())
    width = widths[3 * len(widths) // 4] if widths else 0
    if width < 2:
        return None
    header = next(at for at, row_texts in texts.items() if 2 * len(row_texts) > width)
    titles = tuple(at for at in texts if at < header)
    if not titles or header == max(texts) or not _is_header(texts[header]):
        return None
    if width == 2 and not canonicalize_value(rows[titles[0]][0]):
        return None  # a header whose first column, that of row numbers, has no name
    return TitledHeader(header, titles)


def _is_header(texts: Sequence[str]) -> bool:
    """Return whether texts can be the names of columns."""
    values = any(parse_number(text) is not None or parse_iso_day(text) for text in texts)
    return not values and len(set(texts)) == len(texts)


_IN_MEMORY_BYTES = 1 << 29
_BLOCK_BYTES = LONGEST
_DELIMITERS = ",;\t|"
_TITLE_CHARACTERS = 1 << 18  # a title is looked for in so many


def open_compressed(
    path: Path, delimiter: str | None, header: int | None
) -> tuple[pl.LazyFrame, TableOrigin]:
    """Open a text file in gzip, laid out while it is read, in a folder of this user alone."""
    with tempfile.TemporaryDirectory(prefix="incrowd-") as folder:
        plain = Path(folder) / path.name  # so that messages name it as the curator does
        try:
            with gzip.open(path, "rb") as archive, plain.open("wb") as file:
                shutil.copyfileobj(archive, file, 1 << 22)
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise TableError(
                f"Cannot read '{path.name}' as gzip: it is damaged, cut short, or no gzip at all."
            ) from error
        if not plain.stat().st_size:
            raise TableError(f"File '{path.name}': it is empty. Name a file with a table.")
        return open_text(plain, delimiter, header)


def open_text(
    path: Path, delimiter: str | None, header: int | None
) -> tuple[pl.LazyFrame, TableOrigin]:
    """Open a checked text file: rows have as many fields as the header, quotes are closed.

    Titles above the header are skipped, unless the line of the header is given, or the delimiter
    is, as for files that we wrote. A first column without a name, as pandas and R write row
    numbers, is called ``unnamed``.

    A small one is held in memory. A large one is laid out once, column by column, in a
    temporary folder that only this user can read and that goes with the table, and is
    scanned from there.
    """
    import pyarrow as pa

    encoding, is_ours = _detect_encoding(path), delimiter is not None
    titled_header = _find_title(path, encoding) if header is None and not is_ours else None
    notes = (titled_header.note,) if titled_header else ()
    header = titled_header.header if titled_header else header
    above = (header or 1) - 1
    _refuse_short_file(path, encoding, above)
    delimiter = delimiter or detect_delimiter(_read_first_line(path, encoding, above))
    names, trouble = _read_header(path, delimiter, encoding, above)
    columns = None if is_ours else len(names)
    if fault := _find_open_quote(path, delimiter, columns, encoding, above):
        fault = replace(fault, row=fault.row + above, line=fault.line + above)
        raise TableError(fault.format_message(path.name))
    if trouble is not None:
        raise TableError(f"Cannot read the header of '{path.name}': {trouble}.") from trouble
    bare = not is_ours and names[:1] == [""] and UNNAMED not in names
    refuse_duplicate_names([UNNAMED, *names[1:]] if bare else names, f"The file '{path.name}'")
    batches = _make_strict_reader(path, names, delimiter, encoding, above)
    origin = TableOrigin(header=header, notes=notes)
    if path.stat().st_size <= _IN_MEMORY_BYTES:
        frame = pl.from_arrow(batches.read_all())
        assert isinstance(frame, pl.DataFrame)
        return _name_first_column(frame.lazy(), bare), origin
    folder = Path(tempfile.mkdtemp(prefix="incrowd-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    laid_out = folder / "table.arrow"
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.ipc.new_file(laid_out, batches.schema, options=options) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return _name_first_column(pl.scan_ipc(laid_out), bare), origin


def _name_first_column(frame: pl.LazyFrame, bare: bool) -> pl.LazyFrame:
    """Return the frame with a name for its first column, if that has none."""
    return frame.rename({frame.collect_schema().names()[0]: UNNAMED}) if bare else frame


def _read_first_line(path: Path, encoding: str, above: int) -> str:
    """Return the first line that holds anything, below so many lines."""
    with path.open(encoding=encoding, newline="") as file:
        return next((line for line in islice(file, above, None) if line.strip()), "")


def _find_title(path: Path, encoding: str) -> TitledHeader | None:
    """Find where the header is, if a title stands above it.

    Only a first line that no delimiter splits leaves open which one splits the others.
    """
    with path.open(encoding=encoding, newline="") as file:
        start = file.read(_TITLE_CHARACTERS)
    lines = io.StringIO(start, newline="").readlines()
    lines = lines if len(start) < _TITLE_CHARACTERS else lines[:-1]
    first_line = next((line for line in lines if line.strip()), "")
    split = [mark for mark in _DELIMITERS if len(_split_fields(first_line, mark)) > 1]
    title = {}
    for mark in [detect_delimiter(first_line)] if split else _DELIMITERS:
        rows = dict(islice(_number_rows(lines, mark), LOOKED_AT))
        titled_header = find_titled_header(rows)
        if titled_header and _has_even_rows(
            [row for at, row in rows.items() if at >= titled_header.header]
        ):
            title[len(rows[titled_header.header])] = titled_header
    return title[max(title)] if title else None


def _number_rows(lines: list[str], delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield rows that are not blank, each with the number of the line that it begins on."""
    rows = csv.reader(lines, delimiter=delimiter)
    begins = 1
    try:
        for row in rows:
            if row:
                yield begins, row
            begins = rows.line_num + 1
    except csv.Error:
        return


def _has_even_rows(rows: list[list[str]]) -> bool:
    """Return whether rows have as many fields as the first, whose texts are names, not prose."""
    prose = any(text != text.strip() for text in rows[0])
    return not prose and {len(row) for row in rows} == {len(rows[0])}


def _split_fields(line: str, delimiter: str) -> list[str]:
    return next(csv.reader(io.StringIO(line), delimiter=delimiter), [])


def _refuse_short_file(path: Path, encoding: str, above: int) -> None:
    """Refuse a file that ends above its header."""
    with path.open(encoding=encoding, newline="") as file:
        lines = sum(1 for _ in islice(file, above + 1))
    if lines <= above:
        raise TableError(
            f"File '{path.name}': it has {lines} lines, so row {above + 1} cannot be the header. "
            "Correct `header`."
        )


def _find_open_quote(
    path: Path, delimiter: str, columns: int | None, encoding: str, above: int
) -> QuoteFault | None:
    """Return the first quote left open below so many lines; most files need a glance only."""
    if has_plain_quotes(path, delimiter, encoding):
        return None
    with path.open(encoding=encoding, newline="") as file:
        return find_fault(islice(file, above, None), delimiter, columns)


def has_plain_quotes(path: Path, delimiter: str, encoding: str) -> bool:
    """Return whether each quote begins or ends a field without other quotes or line breaks.

    Then no quote is left open. It takes a third of the time that reading rows takes.
    """
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        if content.find(b'"') < 0:
            return True
    if encoding == "utf-16":
        return False
    unquoted = f'[^"\r{re.escape(delimiter)}]*'
    field = f'(?:"[^"\r]*"|{unquoted})'
    plain = pl.col("line").str.contains(rf"^(?:{field}{re.escape(delimiter)})*{field}\r?$")
    lines = pl.scan_csv(
        path, has_header=False, separator="\0", quote_char=None, encoding="utf8-lossy",
        schema={"line": pl.String},
    )  # fmt: skip
    try:
        return bool(lines.select(plain.all()).collect(engine="streaming").item())
    except pl.exceptions.PolarsError:  # it holds what separates no columns
        return False


def _read_header(
    path: Path, delimiter: str, encoding: str, above: int
) -> tuple[list[str], csv.Error | None]:
    """Return the names in the header; none, but what is wrong with it, if it cannot be read."""
    with path.open(encoding=encoding, newline="") as file:
        try:
            rows = csv.reader(islice(file, above, None), delimiter=delimiter)
            return next((row for row in rows if row), []), None
        except csv.Error as error:
            return [], error


def _make_strict_reader(
    path: Path, names: list[str], delimiter: str, encoding: str, above: int
) -> Any:
    """Return a reader of record batches that stops at the first row of another length."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    faults: list[str] = []

    def refuse(row: Any) -> str:
        where = f"Row {row.number}" if row.number else "A row"
        faults.append(
            f"{where} of '{path.name}' has {row.actual_columns} fields, but the header has "
            f"{row.expected_columns}. Is a delimiter unquoted, or '{delimiter}' the wrong one?"
        )
        return "error"

    def batches() -> Any:
        file = pa.OSFile(str(path))  # a path would be unpacked again by the ending of its name
        reader = arrow_csv.open_csv(
            file,
            read_options=arrow_csv.ReadOptions(
                encoding="utf8" if encoding.startswith("utf-8") else encoding,
                block_size=_BLOCK_BYTES,
                use_threads=False,
                skip_rows=above,
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
        with file:
            yield from reader

    schema = pa.schema([(name, pa.string()) for name in names])
    return _CheckedBatches(batches(), schema, path.name, faults)


class _CheckedBatches:
    """Record batches whose errors come in our words."""

    def __init__(self, batches: Any, schema: Any, name: str, faults: list[str]) -> None:
        self._batches, self.schema, self._name, self._ragged = batches, schema, name, faults

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
                    f"File '{self._name}': a row is longer than {_BLOCK_BYTES >> 20} MB. Close the "
                    "open quote."
                ) from error
            raise TableError(f"Cannot read '{self._name}': {text.splitlines()[0]}") from error

    def read_all(self) -> Any:
        import pyarrow as pa

        return pa.Table.from_batches(list(self), schema=self.schema)


def _detect_encoding(path: Path) -> str:
    """Return UTF-8 (with or without a mark), UTF-16 with a mark, or else Windows-1252.

    No line of a file that is read as the latter would be right as UTF-8, but for plain ASCII. Else
    one row in another encoding would change what is read, and published, of all other rows.
    """
    with path.open("rb") as file:
        start = file.read(4)
        if start.startswith(codecs.BOM_UTF8):
            return "utf-8-sig"
        if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            return "utf-16"
    if _is_encoded_in(path, "utf-8"):
        return "utf-8"
    if _is_encoded_in(path, "cp1252"):
        _refuse_mixed_encodings(path)
        return "cp1252"
    raise TableError(
        f"File '{path.name}': not text in UTF-8, UTF-16 or Windows-1252. Save it as UTF-8."
    )


def _refuse_mixed_encodings(path: Path) -> None:
    """Refuse a file of which some lines are in UTF-8 and others are not."""
    bad_line = 0
    utf8_line = 0
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.isascii():
                try:
                    line.decode("utf-8")
                except UnicodeDecodeError:
                    bad_line = bad_line or number
                else:
                    utf8_line = utf8_line or number
            if bad_line and utf8_line:
                raise TableError(
                    f"File '{path.name}': line {utf8_line} is UTF-8, line {bad_line} is not. "
                    "Correct that line, or save the file as UTF-8."
                )


def _is_encoded_in(path: Path, encoding: str) -> bool:
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


def detect_delimiter(head: str) -> str:
    """Return which of , ; tab | splits the header most often; text in quotes does not count."""
    parts = {mark: len(_split_fields(head, mark)) for mark in _DELIMITERS}
    return max(parts, key=lambda mark: parts[mark])


def refuse_duplicate_names(names: list[str], place: str) -> None:
    """Refuse a table two of whose columns have one name, or one of which has none."""
    if "" in names:
        raise TableError(
            f"{place}: column {names.index('') + 1} has no name. Name it in the header."
        )
    duplicates = [name for name, count in Counter(names).items() if count > 1]
    if duplicates:
        raise TableError(f"{place}: column '{duplicates[0]}' occurs twice. Rename one of them.")
