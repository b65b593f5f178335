"""Rows by the person they belong to: which are used, and codes of each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from incrowd.arrays import Codes, Members, Places
from incrowd.engine.table import Coder, JoinMatch, TableError
from incrowd.privacy.randomness import Randomness

_DRAWN = 32  # random bits of a row, whatever the number of people


def number_people(ids: pl.Series) -> Members:
    """Return a number for each row, the same for rows with the same id; -1 without one."""
    if ids.dtype == pl.String:
        ids = ids.cast(pl.Categorical(pl.Categories.random())).to_physical()
    numbers = _find_close_numbers(ids)
    if numbers is not None:
        return numbers[0]
    distinct = ids.unique().drop_nulls().sort()
    places = pl.DataFrame({"id": distinct}).with_row_index("place")
    rows = ids.alias("id").to_frame().join(places, on="id", how="left", maintain_order="left")
    return rows.get_column("place").cast(pl.Int64).fill_null(-1).to_numpy()


def _find_close_numbers(values: pl.Series) -> tuple[Places, int] | None:
    """Return whole numbers that lie close together, from 0 on, and the least; None of others."""
    if not values.dtype.is_integer() or not len(values) or values.null_count():
        return None
    low, high = int(values.min()), int(values.max())  # type: ignore[arg-type]
    if high - low >= 4 * len(values) or high >= 2**62 or low < -(2**62):
        return None
    return values.cast(pl.Int64).to_numpy() - low, low


def choose_rows(ids: pl.Series, rows: int, bits: Randomness) -> Places:
    """Return the numbers of the rows that are used: at most so many of each person, at random.

    Every row draws 32 bits. Of whoever has more rows, those with the smallest are used. Between
    equal draws the order of the person's rows decides. So the law of what is used of a person
    depends on that person's rows alone, neither on other rows nor on the number of people, and
    each set of so many rows is as likely as another but for the chance of equal draws.
    """
    members = number_people(ids)
    draws = bits.draw_words(len(members))
    if int(members.max(initial=0)) >> _DRAWN:
        raise TableError(f"Table: more than {1 << _DRAWN:,} people. Publish a part of the table.")
    counts = np.bincount(members + 1, minlength=1)
    counts[0] = 0  # nobody's
    most = counts[members + 1]
    is_used = (most > 0) & (most <= rows)
    (many,) = np.nonzero(most > rows)
    keys = (members[many].astype(np.uint64) << np.uint64(_DRAWN)) | (
        draws[many] >> np.uint64(64 - _DRAWN)
    )
    many = many[np.argsort(keys, kind="stable")]
    people = members[many]
    starts = np.flatnonzero(np.append(True, people[1:] != people[:-1])[: len(people)])
    place = np.arange(len(many)) - np.repeat(starts, np.diff(starts, append=len(many)))
    is_used[many[place < rows]] = True
    return np.flatnonzero(is_used)


def match_ids(
    ids: pl.Series, others: pl.Series, columns: tuple[str, ...]
) -> tuple[pl.Series, JoinMatch]:
    """Return for each id its place among others, null where it is not there; and how they met."""
    listed = pl.DataFrame({"id": others}).with_row_index("place").drop_nulls()
    distinct = listed.unique("id", keep="first", maintain_order=True)
    rows = pl.DataFrame({"id": ids}).join(distinct, on="id", how="left", maintain_order="left")
    places = rows.get_column("place")
    unmatched = rows.select((pl.col("id").is_not_null() & pl.col("place").is_null()).sum()).item()
    match = JoinMatch(
        columns,
        repeated=len(listed) - len(distinct),
        missing=others.null_count(),
        unused=len(distinct) - places.drop_nulls().n_unique(),
        unmatched=int(unmatched),
    )
    return places, match


def code_columns(columns: Sequence[pl.Series], coders: Sequence[Coder]) -> Codes:
    """Return the codes of the rows, column by column; each distinct value is coded once."""
    coded = []
    for values, coder in zip(columns, coders, strict=True):
        if values.dtype == pl.String:
            values = values.cast(pl.Categorical(pl.Categories.random()))
        if isinstance(values.dtype, pl.Categorical | pl.Enum):
            distinct = values.unique().drop_nulls()
            marks = distinct.to_physical().cast(pl.Int64).to_numpy()
            null = int(marks.max(initial=-1)) + 1
            lookup = np.zeros(null + 1, dtype=np.int32)
            lookup[[*marks, null]] = coder([*distinct.cast(pl.String).to_list(), None])
            places = values.to_physical().cast(pl.Int64).fill_null(null).to_numpy()
            coded.append(lookup[places])
            continue
        numbers = _find_close_numbers(values)
        if numbers is not None:
            met = np.flatnonzero(np.bincount(numbers[0]))
            lookup = np.zeros(int(met[-1]) + 1, dtype=np.int32)
            lookup[met] = coder((met + numbers[1]).tolist())
            coded.append(lookup[numbers[0]])
            continue
        distinct = values.unique().alias("value")
        table = pl.DataFrame([distinct, pl.Series("code", coder(distinct.to_list()))])
        rows = values.alias("value").to_frame().join(
            table, on="value", how="left", nulls_equal=True, maintain_order="left"
        )  # fmt: skip
        coded.append(rows.get_column("code").to_numpy().astype(np.int32))
    return np.column_stack(coded).astype(np.int32)
