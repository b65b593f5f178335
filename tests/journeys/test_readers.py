"""Readers of a release: its examples are run, labels keep what they say, numbers are numbers."""

from __future__ import annotations

import math
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pandas as pd
import polars as pl
import pyarrow.parquet as pq
import pytest
from support import readers
from support.readers import METHODS, WRITINGS, blocks, certificate_of, page_of, rewritten

from incrowd.codes.forms import Form
from incrowd.engine.source import open_table
from incrowd.release.certificate import Certificate, Slice, sha256_of
from incrowd.release.verify import verify
from incrowd.spec.file import parse
from incrowd.tasks.evaluate import evaluate
from incrowd.tasks.publish import Release, publish

pytestmark = pytest.mark.usefixtures("quick")

PLAIN: dict[str, Any] = {
    "compression": "zstd", "store_schema": False, "write_statistics": False,
}  # fmt: skip
RSCRIPT = shutil.which("Rscript")
needs_r = pytest.mark.skipif(RSCRIPT is None, reason="R is not installed")
RUN = [
    (method, writing)
    for method in ("counts", "slices", "ola", "mondrian", "duplicate", "starred", "k-epsilon")
    for writing in WRITINGS
    if (method, writing) in readers.CASES
]


def loaded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The frame that each Python example makes of each file, in the order of the page."""
    files = [table.release.file for table in certificate_of(folder).tables]
    page = page_of(folder)
    codes = blocks(page, "python")
    if "The other files are loaded in the same way." in page:
        codes = [code.replace(files[0], file) for file in files for code in codes]
    frames = []
    monkeypatch.chdir(folder)
    for code in codes:
        names: dict[str, Any] = {}
        exec(compile(code, "README.md", "exec"), names)
        frames.append(names["data"])
    return frames


def listed(frame: Any, name: str) -> list[Any]:
    """The values of a column of either library, None where there is nothing."""
    missing = frame[name].isna() if isinstance(frame, pd.DataFrame) else frame[name].is_null()
    values = zip(frame[name].to_list(), missing.to_list(), strict=True)
    return [None if gone else value for value, gone in values]


def numeric(frame: Any, name: str) -> bool:
    if isinstance(frame, pd.DataFrame):
        return bool(pd.api.types.is_numeric_dtype(frame[name]))
    return bool(frame[name].dtype.is_numeric())


def numbers_of(certificate: Certificate, table: Slice) -> set[str]:
    found = {name for name, column in table.scheme.items() if column.labels == "numbers"}
    found |= set(certificate.noisy)
    return found | ({"count"} if table.release.form == "weighted" else set())


# Examples --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("method", "writing"), RUN)
def test_the_examples_for_python_load_what_was_released(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, writing: str
) -> None:
    release = readers.released(tmp_path / "out", method, writing)
    certificate = release.certificate
    frames = loaded(tmp_path / "out", monkeypatch)
    assert len(frames) == 2 * len(certificate.tables)
    for at, frame in enumerate(frames):
        table, original = certificate.tables[at // 2], release.tables[at // 2].frame()
        assert isinstance(frame, pl.DataFrame if at % 2 else pd.DataFrame)
        rows = frame["count"].sum() if table.release.form == "weighted" else len(frame)
        assert rows == table.release.rows
        assert list(frame.columns) == original.columns
        for name in original.columns:
            found, expected = listed(frame, name), original[name].to_list()
            if name in numbers_of(certificate, table):
                assert numeric(frame, name)
                assert found == pytest.approx(expected)
            elif table.release.formulas:  # as the page says: take the apostrophe away
                assert [text and text.removeprefix("'") for text in found] == expected
            else:
                assert found == expected
        assert not set(listed(frame, "code") if "code" in frame else []) - {
            "NA", "01234", "null", "a b", "*",
        }  # fmt: skip


def test_labels_that_look_like_something_else_survive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NA and nan are texts, 01234 keeps its zero, and what is empty is a null."""
    texts = ["NA", "nan", "01234", "None", "TRUE x", "1e5", "", None, "-", "#N/A", "inf"]
    table = pl.DataFrame({"q": [1, 2] * 33, "s": texts * 6})
    columns = {
        "q": {"role": "quasi", "hierarchy": {"flat": {"values": [1, 2]}}},
        "s": {"role": "sensitive"},
    }
    for written in ("csv", "parquet"):
        release = {"method": "k-anonymity", "k": 5, "format": written}
        folder = tmp_path / written
        publish(table, {"columns": columns, "release": release}, output=folder)
        for frame in loaded(folder, monkeypatch):
            assert set(listed(frame, "s")) == {text or None for text in texts}
            assert len(frame) == 66
            assert numeric(frame, "q")


@pytest.mark.parametrize("written", ["csv", "parquet"])
@pytest.mark.parametrize("values", [[1, 2], ["a", "b"]])
def test_rows_that_show_nothing_at_all_are_loaded_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str, values: list[Any]
) -> None:
    """A file of one column has an empty line for each null."""
    columns = {"x": {"role": "quasi", "hierarchy": {"flat": {"values": values}}}}
    release = {"method": "k-anonymity", "k": 5, "format": written}
    table = pl.DataFrame({"x": [values[0], None] * 20})
    publish(table, {"columns": columns, "release": release}, output=tmp_path / "out")
    assert verify(tmp_path / "out") == []
    frames = loaded(tmp_path / "out", monkeypatch)
    assert [(len(frame), listed(frame, "x").count(None)) for frame in frames] == [(40, 20)] * 2


@pytest.mark.parametrize("written", ["csv", "parquet"])
def test_an_empty_release_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str
) -> None:
    columns = {
        name: {"role": "quasi", "hierarchy": {"flat": {"values": [1, 2]}}} for name in ("x", "y")
    }
    release = {"epsilon": 1, "delta": 1e-6, "draw": "counts", "levels": {"x": 0, "y": 0},
               "format": written}  # fmt: skip
    table = pl.DataFrame({"x": [1, 2], "y": [1, 2]})
    publish(table, {"columns": columns, "release": release}, output=tmp_path / "out")
    assert verify(tmp_path / "out") == []
    for frame in loaded(tmp_path / "out", monkeypatch):
        assert len(frame) == 0
        assert list(frame.columns) == ["x", "y"]


HOSTILE = ["a|b", "`", '"q"', "'", "a\nb", "](x)", "<script>", " a ", "\\", "\\n", "{x}", "%s", "é",
           "\u202ex", "#", "a,b", "a;b", "$", "a.1", "NA", "1"]  # fmt: skip


def of_hostile_names(folder: Path, names: list[str]) -> Release:
    columns = {
        name: {"role": "quasi", "hierarchy": {"flat": {"values": [1, 2, 3]}}} for name in names
    }
    release = {"method": "k-anonymity", "k": 5, "format": "csv"}
    table = pl.DataFrame({name: [1, 2, 3] * 10 for name in names})
    return publish(table, {"columns": columns, "release": release}, output=folder)


# Polars takes quotes in a header for part of the name, read.csv leaves blanks at its ends out, and
# neither of them is ours.
@pytest.mark.parametrize("name", [*(name for name in HOSTILE if name != '"q"'), "😀"])
def test_the_examples_for_python_find_a_column_whatever_it_is_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    of_hostile_names(tmp_path / "out", [name, "plain"])
    for frame in loaded(tmp_path / "out", monkeypatch):
        assert sorted(frame.columns) == sorted([name, "plain"])
        assert numeric(frame, name)
        assert listed(frame, name) == listed(frame, "plain") == [1] * 10 + [2] * 10 + [3] * 10


# R ---------------------------------------------------------------------------------------------


def run_r(folder: Path, *checks: str) -> None:
    assert RSCRIPT is not None
    (code,) = blocks(page_of(folder), "r")
    script = "\n".join([code, *(f"stopifnot({check})" for check in checks)])
    done = subprocess.run(
        [RSCRIPT, "--vanilla", "-e", script], cwd=folder, capture_output=True, text=True,
        env={"LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"}, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


@needs_r
@pytest.mark.parametrize(
    ("method", "writing"),
    [case for case in RUN if "csv" in case[1] and case[0] not in ("slices", "starred")],
)
def test_the_example_for_r_loads_what_was_released(
    tmp_path: Path, method: str, writing: str
) -> None:
    release = readers.released(tmp_path / "out", method, writing)
    frame = release.tables[0].frame()
    certificate = release.certificate
    numbers = numbers_of(certificate, certificate.table)
    checks = [f"nrow(data) == {len(frame)}", f"ncol(data) == {len(frame.columns)}"]
    checks += [
        f'{"is.numeric" if name in numbers else "is.character"}(data[["{name}"]])'
        for name in frame.columns
    ]
    checks += [
        f'sum(data[["code"]] == "{text}") == {count}'
        for text, count in frame["code"].value_counts().iter_rows()
    ]
    if writing == "weighted csv":
        checks.append(f'sum(data[["count"]]) == {certificate.table.release.rows}')
    for name in numbers & {"n", "half"}:
        checks.append(f'isTRUE(all.equal(sum(data[["{name}"]]), {float(frame[name].sum())!r}))')
    run_r(tmp_path / "out", *checks)


@needs_r
def test_the_example_for_r_keeps_nulls_and_texts_apart(tmp_path: Path) -> None:
    table = pl.DataFrame({"q": [1, 2] * 30, "s": ["NA", None, "01234", "é"] * 15})
    columns = {
        "q": {"role": "quasi", "hierarchy": {"flat": {"values": [1, 2]}}},
        "s": {"role": "sensitive"},
    }
    release = {"method": "k-anonymity", "k": 5, "format": "csv"}
    publish(table, {"columns": columns, "release": release}, output=tmp_path / "out")
    run_r(
        tmp_path / "out", "nrow(data) == 60", "sum(is.na(data$s)) == 15",
        'sum(data$s == "NA", na.rm = TRUE) == 15', 'sum(data$s == "01234", na.rm = TRUE) == 15',
        r'sum(data$s == "\u00e9", na.rm = TRUE) == 15', "sum(data$q) == 90",
    )  # fmt: skip


@needs_r
@pytest.mark.parametrize(
    "name", [name for name in HOSTILE if name not in ("a\nb", " a ")] + ["😀"]
)  # read.csv itself takes a line break for the end of the names
def test_the_example_for_r_finds_a_column_whatever_it_is_called(tmp_path: Path, name: str) -> None:
    of_hostile_names(tmp_path / "out", [name, "plain"])
    run_r(tmp_path / "out", "nrow(data) == 30", "sum(sapply(data, sum)) == 120")


def test_what_was_not_run_says_so(tmp_path: Path) -> None:
    readers.released(tmp_path / "out", "ola", "parquet")
    page = page_of(tmp_path / "out")
    assert re.search(r"^With R and its package arrow \(.*\bnot\b.*\brun\b.*\):$", page, re.M)
    readers.released(tmp_path / "text", "ola", "csv")
    assert "With R:\n" in page_of(tmp_path / "text")


# A form that is not that of the labels ---------------------------------------------------------


@pytest.mark.parametrize("method", ["ola", "mondrian", "search", "duplicate"])
@pytest.mark.parametrize("writing", ["parquet", "csv"])
def test_another_form_is_refused(
    tmp_path: Path, settled_once: None, method: str, writing: str
) -> None:
    readers.released(tmp_path / "out", method, writing)
    certificate = certificate_of(tmp_path / "out")
    assert verify(tmp_path / "out") == []
    assert certificate.scheme is not None
    for name, column in certificate.scheme.items():
        for form in get_args(Form):
            if form == column.labels:
                continue
            changed = {**certificate.scheme, name: column.model_copy(update={"labels": form})}
            rewritten(tmp_path / "out", certificate.model_copy(update={"scheme": changed}))
            problems = verify(tmp_path / "out")
            assert len(problems) == 1
            assert f"'{name}'" in problems[0]
    rewritten(tmp_path / "out", certificate)
    assert verify(tmp_path / "out") == []


@pytest.mark.parametrize("algorithm", ["mondrian", "cluster"])
@pytest.mark.parametrize(
    "rule",
    [
        {"intervals": {"from": 0, "to": 14, "step": 5, "open": "both"}},
        {"intervals": {"from": -6, "to": 14, "step": 5, "open": "both"}},
        {"intervals": {"from": 0, "to": 14, "open": "both"}},
        {"intervals": {"from": 0, "to": 14, "step": 0.5, "open": "both"}},
    ],
)
def test_cuts_of_intervals_with_open_ends_verify(
    tmp_path: Path, algorithm: str, rule: dict[str, Any]
) -> None:
    table = pl.DataFrame({"x": [-20, 1, 2, 7, 8, 13, 14, 99] * 2})
    release = {"method": "k-anonymity", "k": 4, "algorithm": algorithm}
    columns = {"x": {"role": "quasi", "hierarchy": rule}}
    publish(table, {"columns": columns, "release": release}, output=tmp_path / "out")
    assert verify(tmp_path / "out") == []


@pytest.mark.parametrize(
    "values",
    [
        ["<18", "18-29", "30-64", ">64"],
        ["0-17", "18-29", "30-64", ">64"],
        ["60-79", "40-59", "20-39", "0-19"],
        [">64", "18-64", "0-17"],
    ],
)
def test_cuts_of_brackets_verify(tmp_path: Path, values: list[str]) -> None:
    """Brackets as tables have them: with open ends, or from the oldest to the youngest."""
    table = pl.DataFrame({"x": values * 2})
    release = {"method": "k-anonymity", "k": 4, "algorithm": "mondrian"}
    columns = {"x": {"role": "quasi", "hierarchy": {"order": {"values": values}}}}
    publish(table, {"columns": columns, "release": release}, output=tmp_path / "out")
    assert verify(tmp_path / "out") == []


# Numbers as numbers ----------------------------------------------------------------------------


def of_numbers(
    folder: Path, values: list[Any], held: list[Any], *, other: str | None = None, **more: Any
) -> Release:
    column = {"role": "quasi", "hierarchy": {"flat": {"values": values}}}
    columns: dict[str, Any] = {"x": column if other is None else {**column, "other": other}}
    release = {"method": "k-anonymity", "k": 2, "levels": {"x": 0}, **more}
    return publish(pl.DataFrame({"x": held}, strict=False),
                   {"columns": columns, "release": release}, output=folder)  # fmt: skip


@pytest.mark.parametrize(
    ("values", "held", "other", "dtype", "form"),
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
    tmp_path: Path, values: list[Any], held: list[Any], other: str | None, dtype: Any, form: str
) -> None:
    for written in ("parquet", "csv"):
        folder = tmp_path / written
        release = of_numbers(folder, values, held * 5, other=other, format=written)
        assert verify(folder) == []
        assert release.certificate.table.scheme["x"].labels == form
        assert release.data["x"].dtype == dtype
    assert pl.read_parquet(tmp_path / "parquet" / "data.parquet")["x"].dtype == dtype
    text = pl.read_csv(tmp_path / "csv" / "data.csv", infer_schema=False)["x"]
    known = {None, *map(str, values), *(f"{x}.0" for x in values)}
    shown = [x if (x if x is None else str(x)) in known else other or "*" for x in held]
    plain = {None if x is None else str(x).removesuffix(".0") for x in shown}
    assert set(text.to_list()) == plain


def test_masks_stay_text(tmp_path: Path) -> None:
    columns = {"zip": {"role": "quasi", "hierarchy": {"mask": {"length": 5}}}}
    release = {"method": "k-anonymity", "k": 2, "levels": {"zip": 0}}
    table = pl.DataFrame({"zip": ["10001", "90210"] * 5})
    done = publish(table, {"columns": columns, "release": release}, output=tmp_path / "out")
    assert done.data["zip"].dtype == pl.String
    assert verify(tmp_path / "out") == []


def test_whole_labels_of_a_level_are_whole_whatever_the_values_are(tmp_path: Path) -> None:
    columns = {"x": {"role": "quasi", "hierarchy": {"groups": {"10": [1, 2.5], "20": ["a"]}}}}
    release = {"method": "k-anonymity", "k": 2, "levels": {"x": 1}}
    table = pl.DataFrame({"x": ["1", "2.5", "a"] * 4})
    done = publish(table, {"columns": columns, "release": release}, output=tmp_path / "out")
    assert done.data["x"].dtype == pl.Int64


def test_years_of_dates_are_whole_numbers(tmp_path: Path) -> None:
    """2020 is no 2020.0: labels of a level are whole where all of that level are."""
    dates = {"from": "2020-01-01", "to": "2022-12-31"}
    columns = {"day": {"role": "quasi", "hierarchy": {"dates": dates}}}
    release = {"method": "k-anonymity", "k": 2, "levels": {"day": 3}}
    table = pl.DataFrame({"day": ["2020-03-04", "2021-05-06"] * 5})
    done = publish(table, {"columns": columns, "release": release}, output=tmp_path / "out")
    assert done.data["day"].dtype == pl.Int64
    assert verify(tmp_path / "out") == []


def test_starred_rows_make_numbers_text_and_the_release_holds(tmp_path: Path) -> None:
    table = [1] * 20 + [2] * 20 + [3]
    for written in ("parquet", "csv"):
        release = of_numbers(tmp_path / written, [1, 2, 3], table, suppressed="starred",
                             suppression=0.1, format=written)  # fmt: skip
        assert release.certificate.table.scheme["x"].labels == "numbers or text"
        assert set(release.data["x"].to_list()) == {"1", "2", "*"}
        assert verify(tmp_path / written) == []


def test_a_frame_of_pandas_gives_one_with_numbers(tmp_path: Path) -> None:
    table = readers.people().to_pandas()
    release = readers.released(tmp_path / "out", "ola", table=table)
    assert isinstance(release.data, pd.DataFrame)
    assert release.data["n"].dtype == "int64"
    assert release.data["half"].dtype == "float64"
    assert not pd.api.types.is_numeric_dtype(release.data["code"])
    again = readers.released(tmp_path / "again", "ola", table=readers.people())
    assert release.data["n"].tolist() == again.data["n"].to_list()


@pytest.mark.parametrize("method", ["ola", "duplicate"])
def test_numbers_are_measured_as_their_texts_are(tmp_path: Path, method: str) -> None:
    release = readers.released(tmp_path / "out", method)
    spec = parse(f"{readers.columns_of(method)}\nrelease: {{{METHODS[method]}}}\n")
    people = readers.people()
    frame = release.tables[0].frame()
    assert frame["n"].dtype == pl.Int64
    numbers = ["n", "half", "age"] if method == "duplicate" else ["n", "half"]
    texts = frame.with_columns(
        pl.Series(name, [f"{x:g}" for x in frame[name].to_list()]) for name in numbers
    )
    found, expected = (evaluate(people, one, spec).as_dict() for one in (frame, texts))
    _same(found, expected)
    _same(evaluate(people, tmp_path / "out" / "data.parquet", spec).as_dict(), expected)


def _same(found: Any, expected: Any) -> None:
    if isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for name in expected:
            _same(found[name], expected[name])
    elif isinstance(expected, list | tuple):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            _same(one, other)
    elif isinstance(expected, float) and not math.isnan(expected):
        assert found == pytest.approx(expected)
    elif not isinstance(expected, float):
        assert found == expected


def forged(folder: Path, change: Callable[[pl.DataFrame], pl.DataFrame]) -> None:
    """Other data in the same release, with a certificate and a page that fit."""
    certificate = certificate_of(folder)
    path = folder / certificate.table.release.file
    text = path.suffix == ".csv"
    frame = pl.read_csv(path, infer_schema=False) if text else pl.read_parquet(path)
    if text:
        open_table(change(frame)).write(path)
    else:
        made = change(frame)
        texts = [name for name in made.columns if made[name].dtype == pl.String]
        arrow = made.to_arrow(compat_level=pl.CompatLevel.oldest())
        pq.write_table(arrow, path, use_dictionary=texts, **PLAIN)
    release = certificate.table.release.model_copy(update={"sha256": sha256_of(path)})
    rewritten(folder, certificate.model_copy(update={"release": release}))


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
    assert verify(tmp_path / "out") == []  # what forges does no harm by itself
    forged(tmp_path / "out", lambda frame: frame.with_columns(
        pl.col("x").cast(pl.String).map_elements(spelling, return_dtype=pl.String)))  # fmt: skip
    fine = written == "csv" and spelling("1") == "1"
    assert (verify(tmp_path / "out") == []) == fine


def test_text_that_could_have_been_numbers_is_refused(tmp_path: Path) -> None:
    """Whoever writes 'numbers or text' for numbers would tell that more was there."""
    of_numbers(tmp_path / "out", [1, 2, 3], [1, 2, 3] * 5)
    certificate = certificate_of(tmp_path / "out")
    column = certificate.table.scheme["x"].model_copy(update={"labels": "numbers or text"})
    rewritten(tmp_path / "out", certificate.model_copy(update={"scheme": {"x": column}}))
    forged(tmp_path / "out", lambda frame: frame.cast(pl.String))
    assert verify(tmp_path / "out") == ["The labels of column 'x' are not 'numbers or text'."]
