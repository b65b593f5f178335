"""Tables on this machine, by Polars: counting, one row for each person; all of it streams."""

from __future__ import annotations

import hmac
import io
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

from incrowd.arrays import Codes, Members
from incrowd.codes.frequency import Frequencies, join_frequencies
from incrowd.codes.values import BLANKS, BOOLEANS, NUMERAL
from incrowd.engine.local import parquet, people
from incrowd.engine.table import (
    Coder,
    Engine,
    Reader,
    RowsPerId,
    TableError,
    TableOrigin,
    Tally,
    refuse_common_columns,
)
from incrowd.privacy.randomness import Randomness

_PART_ROWS = 4_000_000
_PROBES = (200_000, 2_000_000)


class LocalTable:
    """A lazy frame. NaN counts as null; null is a value like any other.

    Values that would change on their way through Python are made plain at once: times to
    the microsecond, and small floats as they are written. Polars takes some names for patterns
    (``*``, ``^...$``), and would silently read other columns; inside, such columns have other
    names.
    """

    def __init__(
        self, frame: pl.LazyFrame, path: Path | None = None, origin: TableOrigin | None = None
    ) -> None:
        self._path, self._origin = path, origin or TableOrigin()
        self._before: LocalTable | None = None  # the table that was read in another way
        self._row_count: int | None = None  # once it is known
        self._columns = tuple(frame.collect_schema().names())
        self._inner = make_inner_names(self._columns)
        frame = frame.rename({name: new for name, new in self._inner.items() if name != new})
        schema = frame.collect_schema()
        plainer = {name: _simplify_column(name, kind) for name, kind in schema.items()}
        changes = {name: change for name, change in plainer.items() if change is not None}
        self._frame = frame.with_columns(**changes) if changes else frame
        self._changed = {name for name, inner in self._inner.items() if inner in changes}

    @property
    def _named_frame(self) -> pl.LazyFrame:
        """The frame with the names of the table, to be handed on and not to be asked by name."""
        return self._frame.rename({new: name for name, new in self._inner.items() if name != new})

    @property
    def engine(self) -> Engine:
        """The engine of this machine."""
        from incrowd.engine.local.engine import ENGINE

        return ENGINE

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self._columns

    @property
    def origin(self) -> TableOrigin:
        """What is known of where the table came from."""
        return self._origin

    def rows(self) -> int:
        """Return the number of rows."""
        if self._row_count is None:
            count = self._frame.select(pl.len()).collect(engine="streaming").item()
            self._row_count = int(count)
        return self._row_count

    def head(self, rows: int) -> LocalTable:
        """Return the first rows."""
        return LocalTable(self._named_frame.head(rows))

    def values(self, column: str) -> Sequence[object]:
        """Return the distinct values of a column, null among them."""
        self._require_columns([column])
        if self._is_plain_parquet([column]):
            return parquet.list_values(self._path, column)  # type: ignore[arg-type]
        inner = self._inner[column]
        frame = self._frame.select(pl.col(inner).unique()).collect(engine="streaming")
        return frame.get_column(inner).to_list()

    def gather_columns(self, columns: Sequence[str], *, coarse: bool = False) -> LocalTable:  # noqa: ARG002
        """Return the table itself."""
        return self

    def iter_tallies(self, columns: Sequence[str]) -> Iterator[Tally]:
        """Yield distinct tuples with counts.

        One streaming pass where tuples repeat. Where hardly any do, even among millions of
        rows, grouping the whole table would hold most of it in memory, so it is done in
        parts.
        """
        self._require_columns(columns)
        columns = [self._inner[name] for name in columns]
        frame = self._frame.select(columns)
        if any(_has_many_repeats(frame, rows) for rows in _PROBES):
            yield _tally_frame(frame, columns)
            return
        for start in range(0, self.rows(), _PART_ROWS):
            yield _tally_frame(frame.slice(start, _PART_ROWS), columns)

    def count(self, columns: Sequence[str], coders: Mapping[str, Coder]) -> Frequencies:
        """Count distinct tuples of codes; a coder gives raw values their codes.

        A Parquet file keeps each column as codes of its own already; those are translated,
        batch by batch. Elsewhere the table is grouped by raw values first.
        """
        self._require_columns(columns)
        if self._is_plain_parquet(columns):
            return parquet.count_codes(self._path, columns, coders)  # type: ignore[arg-type]
        return join_frequencies(
            tally.encode_tuples([coders[name] for name in columns])
            for tally in self.iter_tallies(columns)
        )

    def choose_row_per_person(self, column: str, bits: Randomness) -> LocalTable:
        """Choose one row at random for each distinct value of a column.

        Every row draws 64 random bits and the smallest wins. (Two rows of one person tie
        with probability 2**-64.) The numbers of the chosen rows are held in memory, so that
        the choice is made once, however often the table is read. An id means the same
        however it is written. A row without one is not chosen: it would be nobody's, and
        whether it is there would decide which other row without one is.
        """
        number, draw = "number", "draw"
        ids = self._identify_rows(column).collect(engine="streaming")
        chosen_rows = (
            ids.with_row_index(number)
            .with_columns(pl.Series(draw, bits.draw_words(len(ids)), dtype=pl.UInt64))
            .filter(pl.col("id").is_not_null())
            .group_by("id")
            .agg(pl.col(number).get(pl.col(draw).arg_min()))
            .select(number)
        )
        index = find_free_name(self._columns)
        rows = self._named_frame.with_row_index(index).join(
            chosen_rows.lazy().select(pl.col(number).alias(index)),
            on=index,
            how="semi",
            maintain_order="left",
        )
        return LocalTable(rows.drop(index))

    def choose_rows_per_person(self, column: str, rows: int, bits: Randomness) -> LocalTable:
        """Choose at most so many rows at random of each person.

        Every row draws 64 random bits, and of whoever has more rows the smallest win.
        """
        if rows == 1:
            return self.choose_row_per_person(column, bits)
        ids = self._identify_rows(column).collect(engine="streaming").get_column("id")
        chosen_rows = people.choose_rows(ids, rows, bits)
        index = find_free_name(self._columns)
        chosen = self._named_frame.with_row_index(index).join(
            pl.LazyFrame({index: pl.Series(chosen_rows, dtype=pl.UInt32)}),
            on=index,
            how="semi",
            maintain_order="left",
        )
        table = LocalTable(chosen.drop(index))
        table._row_count = len(chosen_rows)
        return table

    def code_people(
        self, person: str, columns: Sequence[str], coders: Mapping[str, Coder], *, alike: int = 1
    ) -> tuple[Members, Codes]:
        """Return for each row that has a person, a number of the person and codes of columns."""
        del alike  # all rows are here
        self._require_columns([person, *columns])
        person_name = find_free_name(list(self._inner.values()))
        frame = self._frame.select(
            self._make_identity(person).alias(person_name), *(self._inner[name] for name in columns)
        )
        rows = frame.filter(pl.col(person_name).is_not_null()).collect(engine="streaming")
        return people.number_people(rows.get_column(person_name)), people.code_columns(
            [rows.get_column(self._inner[name]) for name in columns],
            [coders[name] for name in columns],
        )

    def join_table(
        self, column: str, other: LocalTable, other_column: str, read: Reader | None = None
    ) -> LocalTable:
        """Return the rows with the columns of another table, joined by ids; held in memory."""
        added = [name for name in other.columns if name != other_column]
        refuse_common_columns(self._columns, added)
        places, match = people.match_ids(
            self._read_id_texts(column, read),
            other._read_id_texts(other_column, read),
            tuple(added),
        )
        place = find_free_name([*self._columns, *added])
        # Columns are chosen by their places: Polars could take a name for a pattern.
        second = other._named_frame.collect(engine="streaming")
        second = pl.DataFrame([second.get_column(name) for name in added]).with_row_index(place)
        rows = self._named_frame.collect(engine="streaming").with_columns(places.alias(place))
        joined = rows.join(second, on=place, how="left", maintain_order="left").drop(place)
        return LocalTable(joined.lazy(), origin=replace(self._origin, match=match))

    def _read_id_texts(self, column: str, read: Reader | None = None) -> pl.Series:
        """Return the ids of all rows as canonical texts of their meaning; null without one."""
        self._require_columns([column])
        if read is not None:
            return self.interpret_values({column: read})._read_id_texts(column)
        text = _canonicalize_text(pl.col(self._inner[column]).cast(pl.String))
        return self._frame.select(text).collect(engine="streaming").to_series()

    def count_distinct(self, columns: Sequence[str]) -> int:
        """Count the distinct tuples of some columns, by hashes of 64 bits; no value is held.

        Of ten million tuples two share a hash with a chance of three in a million.
        """
        self._require_columns(columns)
        schema = self._frame.collect_schema()
        parts = []
        for name in columns:
            is_coded = isinstance(schema[self._inner[name]], pl.Categorical | pl.Enum)
            part = pl.col(self._inner[name])
            parts.append(part.cast(pl.String) if is_coded else part)
        hashes = self._frame.select(pl.struct(parts).hash(0).alias("hash"))
        return int(hashes.select(pl.col("hash").n_unique()).collect(engine="streaming").item())

    def count_people(self, column: str) -> int:
        """Count the people whom a column identifies."""
        count = self._identify_rows(column).select(pl.col("id").drop_nulls().n_unique())
        return int(count.collect(engine="streaming").item())

    def count_rows_per_id(self, column: str) -> RowsPerId:
        """Count the ids of a column, and the rows of each."""
        rows = self._identify_rows(column).drop_nulls().group_by("id").agg(pl.len().alias("rows"))
        of_all = rows.select(
            pl.len().alias("ids"),
            pl.col("rows").median().alias("median"),
            pl.col("rows").max().alias("largest"),
        )
        ids, median, largest = of_all.collect(engine="streaming").row(0)
        return RowsPerId(int(ids), float(median or 0), int(largest or 0))

    def count_missing(self, column: str) -> int:
        """Count the rows that have no value in a column."""
        self._require_columns([column])
        value = pl.col(self._inner[column])
        kind = self._frame.collect_schema()[self._inner[column]]
        if kind == pl.String or isinstance(kind, pl.Categorical | pl.Enum):
            # Only text without characters becomes null in canonical form: no need to write it.
            text = value.cast(pl.String)
            is_missing = text.is_null() | (text.str.strip_chars(BLANKS) == "")
        else:
            is_missing = value.is_null()
        count = self._frame.select(is_missing.sum())
        return int(count.collect(engine="streaming").item())

    def _identify_rows(self, column: str) -> pl.LazyFrame:
        """Return what each row has in a column, as one thing however it is written."""
        self._require_columns([column])
        return self._frame.select(self._make_identity(column).alias("id"))

    def _make_identity(self, column: str) -> pl.Expr:
        identity = pl.col(self._inner[column])
        kind = self._frame.collect_schema()[self._inner[column]]
        if kind == pl.String or isinstance(kind, pl.Categorical | pl.Enum):
            return _canonicalize_text(identity.cast(pl.String))
        return identity

    def has_ascending_rows(self, columns: Sequence[str], coders: Mapping[str, Coder]) -> bool:
        """Return whether the rows stand in the order of their codes, the first column first."""
        self._require_columns(columns)
        if self._is_plain_parquet(columns):
            return parquet.has_ascending_rows(self._path, columns, coders)  # type: ignore[arg-type]
        frame = self._frame.select([self._inner[name] for name in columns])
        rows = frame.collect(engine="streaming")
        codes = []
        for name in columns:
            values = rows.get_column(self._inner[name]).alias("value")
            distinct = values.unique()
            places = pl.Series("place", coders[name](distinct.to_list()))
            coded_values = values.to_frame().join(
                pl.DataFrame([distinct, places]), on="value", how="left", nulls_equal=True,
                maintain_order="left",
            )  # fmt: skip
            codes.append(coded_values.get_column("place").to_numpy())
        return parquet.is_ascending(codes)

    def hash_when_counted(self) -> bool:
        """Return False: here rows are hashed beside the counting, by another core."""
        return False

    def respell_texts(self, spell: Callable[[str], str]) -> LocalTable:
        """Return the table with every text and name written in another way; each text once."""
        changes = []
        schema = self._frame.collect_schema()
        for name, inner in self._inner.items():
            column = pl.col(inner)
            if schema[inner] == pl.String:
                texts = self.values(name)
                respelled = {old: new for old in texts if old and (new := spell(str(old))) != old}
                column = column.replace(respelled) if respelled else column
            changes.append(column.alias(spell(name)))
        return LocalTable(self._frame.select(changes))

    def interpret_values(self, readers: Mapping[str, Reader]) -> LocalTable:
        """Return the table with the values of some columns replaced by what they mean."""
        changes, schema = [], self._frame.collect_schema()
        for name, read in readers.items():
            column, values = pl.col(self._inner[name]), self.values(name)
            if schema[self._inner[name]] in (pl.Categorical, pl.Enum):
                column = column.cast(pl.String)
            meanings = {old: new for old in values if old is not None and (new := read(old)) != old}
            meaningless = [old for old, new in meanings.items() if new is None]
            texts = {old: new for old, new in meanings.items() if new is not None}
            if meaningless:
                column = pl.when(~column.is_in(meaningless)).then(column)
            changes.append(column.replace(texts) if texts else column)
        names = {new: name for name, new in self._inner.items()}
        origin = replace(self._origin, reread=True)
        table = LocalTable(self._frame.with_columns(changes).rename(names), origin=origin)
        table._before = self
        return table

    def join_columns(self, name: str, sources: Sequence[str]) -> LocalTable:
        """Return the table with one more column: some columns as text, with a blank between."""
        self._require_columns(sources)
        texts = [pl.col(self._inner[source]).cast(pl.String) for source in sources]
        inner = find_free_name([*self._columns, *self._inner.values()])
        joined = self._frame.with_columns(pl.concat_str(texts, separator=" ").alias(inner))
        names = {new: old for old, new in self._inner.items()} | {inner: name}
        table = LocalTable(joined.rename(names), origin=self._origin)
        table._before = self
        return table

    def convert_labels(self, labels: Mapping[str, Mapping[str, int | float]]) -> LocalTable:
        """Return the table with numbers for texts."""
        changes = [
            pl.col(self._inner[name]).replace_strict(list(numbers), list(numbers.values()))
            for name, numbers in labels.items()
        ]
        names = {new: name for name, new in self._inner.items()}
        return LocalTable(self._frame.with_columns(changes).rename(names))

    def write(self, path: Path) -> None:
        """Write Parquet, CSV or Arrow by the ending of the name; whole or not at all."""
        frame = self._named_frame
        sinks: dict[str, Callable[[Path], object]] = {
            ".parquet": frame.sink_parquet,
            ".csv": frame.sink_csv,
            ".arrow": frame.sink_ipc,
        }
        if path.suffix not in sinks:
            raise TableError(
                f"File '{path.name}': unknown format. Its name must end in {', '.join(sinks)}."
            )
        write_file_atomically(path, sinks[path.suffix])

    def to_frame(self) -> pl.DataFrame:
        """Return the rows as a data frame of the engine's own kind."""
        return self._named_frame.collect(engine="streaming")

    def iter_frames(self, rows: int) -> Iterator[pl.DataFrame]:
        """Yield the rows in their order, as data frames of so many each."""
        for start in range(0, self.rows(), rows):
            yield self._named_frame.slice(start, rows).collect(engine="streaming")

    def compute_fingerprint(self, key: bytes) -> str:
        """Compute a keyed hash of the file, or of the rows of a table in memory, as written."""
        if self._before is not None:
            return self._before.compute_fingerprint(key)
        digest = hmac.new(key, digestmod="sha256")
        if self._path is not None:
            with self._path.open("rb") as file:
                while chunk := file.read(1 << 22):
                    digest.update(chunk)
        else:
            buffer = io.BytesIO()
            kinds = self._frame.collect_schema()
            plain = [name for name, kind in kinds.items() if kind != pl.Object]
            # In one piece: the pieces that rows happen to lie in are no part of the table.
            self._frame.select(plain).collect(engine="streaming").rechunk().write_ipc(buffer)
            digest.update(buffer.getbuffer())
        return digest.hexdigest()

    def _is_plain_parquet(self, columns: Sequence[str]) -> bool:
        """Return whether the columns can be taken from a Parquet file as they stand there."""
        if self._path is None or self._path.suffix.lower() != ".parquet":
            return False
        return not self._changed & set(columns)

    def _require_columns(self, columns: Sequence[str]) -> None:
        schema = self._frame.collect_schema()
        for name in columns:
            if name not in self._columns:
                raise TableError(f"Column '{name}': not in the table. Correct its name.")
            kind = schema[self._inner[name]]
            if kind.is_nested() or kind in (pl.Binary, pl.Object):
                raise TableError(
                    f"Column '{name}': it holds {kind}, not single values. Drop it, or split it "
                    "into columns."
                )


def write_file_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Let a file appear only when it is written."""
    draft = path.with_name(f".{path.name}.part")
    try:
        write(draft)
        os.replace(draft, path)
    except (OSError, pl.exceptions.PolarsError) as error:
        reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
        raise TableError(f"Cannot write '{path}': {reason}.") from error
    finally:
        draft.unlink(missing_ok=True)


def _simplify_column(name: str, kind: pl.DataType) -> pl.Expr | None:
    """Return how a column is made plain; None if it need not be."""
    column = pl.col(name)
    if kind == pl.Float32:  # 0.7 is 0.7, not 0.699999988079071
        return column.cast(pl.String).cast(pl.Float64).fill_nan(None) + 0.0
    if kind.is_float():
        return column.fill_nan(None) + 0.0  # there is one zero
    if kind == pl.Time:
        return column.cast(pl.String)
    if isinstance(kind, pl.Duration):
        return column.dt.to_string("iso")
    if kind == pl.Datetime("ns"):
        return column.dt.cast_time_unit("us")
    if isinstance(kind, pl.Datetime) and kind.time_unit == "ns":  # with a time zone
        return column.dt.cast_time_unit("us")
    return None


def _canonicalize_text(column: pl.Expr) -> pl.Expr:
    """Write the texts of a column in canonical form; text without characters is null."""
    text = column.str.strip_chars(BLANKS).replace(BOOLEANS)
    numeral = text.str.contains(f"^({NUMERAL})$")
    bare = text.str.strip_prefix("+")
    short = bare.str.replace(r"0+$", "").str.replace(r"\.$", "").str.replace(r"^(-?)\.", "${1}0.")
    short = pl.when(bare.str.contains(".", literal=True)).then(short).otherwise(bare)
    short = pl.when(short.is_in(["-0", "-", ""])).then(pl.lit("0")).otherwise(short)
    canonical = pl.when(numeral).then(short).otherwise(text)
    return pl.when(text != "").then(canonical)


def make_inner_names(names: Sequence[str]) -> dict[str, str]:
    """Return names that Polars takes as they are, for names that it might take for patterns."""
    inner: dict[str, str] = {}
    for name in names:
        pattern = name == "*" or (name.startswith("^") and name.endswith("$"))
        inner[name] = find_free_name([*names, *inner.values()]) if pattern else name
    return inner


def _has_many_repeats(frame: pl.LazyFrame, rows: int) -> bool:
    """Return whether over a fifth of the first rows repeat others, or there are fewer rows."""
    probe = frame.head(rows).collect(engine="streaming")
    return len(probe) < rows or probe.n_unique() < 0.8 * rows


def _tally_frame(frame: pl.LazyFrame, columns: Sequence[str]) -> Tally:
    """Group by codes of the texts rather than by the texts: they are compared far faster."""
    count = find_free_name(columns)
    schema = frame.collect_schema()
    texts = [name for name in columns if schema[name] == pl.String]
    coded_frame = frame.with_columns(
        pl.col(name).cast(pl.Categorical(pl.Categories.random())) for name in texts
    )
    return make_tally(
        coded_frame.group_by(columns).agg(pl.len().alias(count)).collect(engine="streaming")
    )


def make_tally(tuples: pl.DataFrame) -> Tally:
    """Make a tally of tuples that were counted already, their counts in the last column."""
    *columns, count = tuples.columns
    values, codes = [], []
    for name in columns:
        distinct = tuples.select(pl.col(name).unique())
        coded_column = tuples.select(name).join(
            distinct.with_row_index(count),
            on=name,
            how="left",
            nulls_equal=True,
            maintain_order="left",
        )
        values.append(distinct.get_column(name).to_list())
        codes.append(coded_column.get_column(count).to_numpy())
    return Tally(
        tuple(values),
        np.column_stack(codes).astype(np.int32),
        tuples.get_column(count).to_numpy().astype(np.int64),
    )


def find_free_name(used_names: Sequence[str]) -> str:
    """Return a column name that is not in use."""
    name = "_incrowd"
    while name in used_names:
        name += "_"
    return name
