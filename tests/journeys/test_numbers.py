"""Numbers are numbers where a column shows nothing else, and are measured as their texts are."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow.parquet as pq
import pytest
from support import readers
from support.findings import list_verify_messages
from support.readers import METHODS, load_certificate, reseal_certificate
from support.unjudged import publish_unjudged

from incrowd.engine.source import open_table
from incrowd.evaluation.evaluate import evaluate
from incrowd.publication import Release
from incrowd.release.certificate import hash_file
from incrowd.spec.file import parse_spec

PLAIN: dict[str, Any] = {
    "compression": "zstd", "store_schema": False, "write_statistics": False,
}  # fmt: skip


def of_numbers(
    folder: Path, values: list[Any], cells: list[Any], *, other: str | None = None, **more: Any
) -> Release:
    column = {"role": "quasi", "hierarchy": {"flat": {"values": values}}}
    columns: dict[str, Any] = {"x": column if other is None else {**column, "other": other}}
    release = {"method": "k-anonymity", "k": 2, "levels": {"x": 0}, **more}
    return publish_unjudged(pl.DataFrame({"x": cells}, strict=False),
                   {"columns": columns, "release": release}, output=folder)  # fmt: skip


@pytest.mark.parametrize(
    ("values", "cells", "other", "dtype", "form"),
    [
        ([1, 2, 30], [1, 2, 30], None, pl.Int64, "numbers"),
        ([1, 2, 30], [1, None], None, pl.Int64, "numbers"),
        ([-1, 0], [-1, 0], None, pl.Int64, "numbers"),
        ([0.5, 1, 2], [1.0, 2.0], None, pl.Float64, "numbers"),  # by the domain, not the data
        ([1, 2], [1, 7], None, pl.String, "numbers or text"),
        ([1, 2], [1, 7], "other", pl.String, "numbers or text"),
        ([1, 2], [1, 2], "other", pl.Int64, "numbers"),
        ([1, 2], [1, 7], "9", pl.Int64, "numbers"),
        (["01234", "10001"], ["01234", "10001"], None, pl.String, "text"),
        ([1, "a"], ["1", "a"], None, pl.String, "text"),
    ],
)
def test_numbers_are_numbers_where_nothing_else_is_shown(
    tmp_path: Path, values: list[Any], cells: list[Any], other: str | None, dtype: Any, form: str
) -> None:
    for written in ("parquet", "csv"):
        folder = tmp_path / written
        release = of_numbers(folder, values, cells * 5, other=other, format=written)
        assert list_verify_messages(folder) == []
        assert release.certificate.table.scheme["x"].labels == form
        assert release.data["x"].dtype == dtype
    assert pl.read_parquet(tmp_path / "parquet" / "data.parquet")["x"].dtype == dtype
    text = pl.read_csv(tmp_path / "csv" / "data.csv", infer_schema=False)["x"]
    declared = {None, *map(str, values), *(f"{x}.0" for x in values)}
    labels = [x if (x if x is None else str(x)) in declared else other or "*" for x in cells]
    plain = {None if x is None else str(x).removesuffix(".0") for x in labels}
    assert set(text.to_list()) == plain


def test_masks_stay_text(tmp_path: Path) -> None:
    columns = {"zip": {"role": "quasi", "hierarchy": {"mask": {"length": 5}}}}
    release = {"method": "k-anonymity", "k": 2, "levels": {"zip": 0}}
    table = pl.DataFrame({"zip": ["10001", "90210"] * 5})
    done = publish_unjudged(
        table, {"columns": columns, "release": release}, output=tmp_path / "out"
    )
    assert done.data["zip"].dtype == pl.String
    assert list_verify_messages(tmp_path / "out") == []


def test_whole_labels_of_a_level_are_whole_whatever_the_values_are(tmp_path: Path) -> None:
    columns = {"x": {"role": "quasi", "hierarchy": {"groups": {"10": [1, 2.5], "20": ["a"]}}}}
    release = {"method": "k-anonymity", "k": 2, "levels": {"x": 1}}
    table = pl.DataFrame({"x": ["1", "2.5", "a"] * 4})
    done = publish_unjudged(
        table, {"columns": columns, "release": release}, output=tmp_path / "out"
    )
    assert done.data["x"].dtype == pl.Int64


def test_years_of_dates_are_whole_numbers(tmp_path: Path) -> None:
    """2020 is no 2020.0: labels of a level are whole where all of that level are."""
    dates = {"from": "2020-01-01", "to": "2022-12-31"}
    columns = {"day": {"role": "quasi", "hierarchy": {"dates": dates}}}
    release = {"method": "k-anonymity", "k": 2, "levels": {"day": 3}}
    table = pl.DataFrame({"day": ["2020-03-04", "2021-05-06"] * 5})
    done = publish_unjudged(
        table, {"columns": columns, "release": release}, output=tmp_path / "out"
    )
    assert done.data["day"].dtype == pl.Int64
    assert list_verify_messages(tmp_path / "out") == []


def test_starred_rows_make_numbers_text_and_the_release_holds(tmp_path: Path) -> None:
    table = [1] * 20 + [2] * 20 + [3]
    for written in ("parquet", "csv"):
        release = of_numbers(tmp_path / written, [1, 2, 3], table, suppressed="starred",
                             suppression=0.1, format=written)  # fmt: skip
        assert release.certificate.table.scheme["x"].labels == "numbers or text"
        assert set(release.data["x"].to_list()) == {"1", "2", "*"}
        assert list_verify_messages(tmp_path / written) == []


def test_a_frame_of_pandas_gives_one_with_numbers(tmp_path: Path) -> None:
    table = readers.make_reader_table().to_pandas()
    release = readers.publish_reader_table(tmp_path / "out", "ola", table=table)
    assert isinstance(release.data, pd.DataFrame)
    assert release.data["n"].dtype == "int64"
    assert release.data["half"].dtype == "float64"
    assert not pd.api.types.is_numeric_dtype(release.data["code"])
    again = readers.publish_reader_table(
        tmp_path / "again", "ola", table=readers.make_reader_table()
    )
    assert release.data["n"].tolist() == again.data["n"].to_list()


@pytest.mark.parametrize("method", ["ola", "duplicate"])
def test_numbers_are_measured_as_their_texts_are(tmp_path: Path, method: str) -> None:
    release = readers.publish_reader_table(tmp_path / "out", method)
    spec = parse_spec(f"{readers.format_columns(method)}\nrelease: {{{METHODS[method]}}}\n")
    people = readers.make_reader_table()
    frame = release.tables[0].to_frame()
    assert frame["n"].dtype == pl.Int64
    numbers = ["n", "half", "age"] if method == "duplicate" else ["n", "half"]
    texts = frame.with_columns(
        pl.Series(name, [f"{x:g}" for x in frame[name].to_list()]) for name in numbers
    )
    result, expected = (evaluate(people, item, spec).as_dict() for item in (frame, texts))
    _same(result, expected)
    by_file = evaluate(people, tmp_path / "out" / "data.parquet", spec).as_dict()
    # The certificate beside the file says at which levels columns are published.
    _same(by_file | {"utility_of_levels": expected["utility_of_levels"]}, expected)


def _same(actual: Any, expected: Any) -> None:
    if isinstance(expected, dict):
        assert actual.keys() == expected.keys()
        for name in expected:
            _same(actual[name], expected[name])
    elif isinstance(expected, list | tuple):
        assert len(actual) == len(expected)
        for first, other in zip(actual, expected, strict=True):
            _same(first, other)
    elif isinstance(expected, float) and not math.isnan(expected):
        assert actual == pytest.approx(expected)
    elif not isinstance(expected, float):
        assert actual == expected


def forged(folder: Path, change: Callable[[pl.DataFrame], pl.DataFrame]) -> None:
    """Other data in the same release, with a certificate and a page that fit."""
    certificate = load_certificate(folder)
    path = folder / certificate.table.release.file
    text = path.suffix == ".csv"
    frame = pl.read_csv(path, infer_schema=False) if text else pl.read_parquet(path)
    if text:
        open_table(change(frame)).write(path)
    else:
        forgery = change(frame)
        texts = [name for name in forgery.columns if forgery[name].dtype == pl.String]
        arrow = forgery.to_arrow(compat_level=pl.CompatLevel.oldest())
        pq.write_table(arrow, path, use_dictionary=texts, **PLAIN)
    release = certificate.table.release.model_copy(update={"sha256": hash_file(path)})
    reseal_certificate(folder, certificate.model_copy(update={"release": release}))


@pytest.mark.parametrize("written", ["parquet", "csv"])
@pytest.mark.parametrize(
    "spelling",
    [lambda x: x, lambda x: f"{x}.0", lambda x: f"0{x}", lambda x: f"+{x}"],
    ids=["1", "1.0", "01", "+1"],
)
def test_numbers_in_another_spelling_are_refused(
    tmp_path: Path, written: str, spelling: Callable[[str], str]
) -> None:
    of_numbers(tmp_path / "out", [1, 2, 3], [1, 2, 3] * 5, format=written)
    forged(tmp_path / "out", lambda frame: frame)
    assert list_verify_messages(tmp_path / "out") == []  # what forges does no harm by itself
    forged(tmp_path / "out", lambda frame: frame.with_columns(
        pl.col("x").cast(pl.String).map_elements(spelling, return_dtype=pl.String)))  # fmt: skip
    fine = written == "csv" and spelling("1") == "1"
    assert (list_verify_messages(tmp_path / "out") == []) == fine


def test_text_that_could_have_been_numbers_is_refused(tmp_path: Path) -> None:
    """Whoever writes 'numbers or text' for numbers would tell that more was there."""
    of_numbers(tmp_path / "out", [1, 2, 3], [1, 2, 3] * 5)
    certificate = load_certificate(tmp_path / "out")
    column = certificate.table.scheme["x"].model_copy(update={"labels": "numbers or text"})
    reseal_certificate(tmp_path / "out", certificate.model_copy(update={"scheme": {"x": column}}))
    forged(tmp_path / "out", lambda frame: frame.cast(pl.String))
    assert list_verify_messages(tmp_path / "out") == [
        "The labels of column 'x' are not 'numbers or text'."
    ]
