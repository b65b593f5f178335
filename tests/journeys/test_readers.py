"""Readers of a release: the examples on its page are run, and load what was released."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from support import readers
from support.readers import WRITINGS, list_code_blocks, load_certificate, read_readme
from support.unjudged import publish_unjudged

from incrowd.publication import Release
from incrowd.release.certificate import Certificate, Slice
from incrowd.release.verify import verify

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
    files = [table.release.file for table in load_certificate(folder).tables]
    page = read_readme(folder)
    codes = [code for code in list_code_blocks(page, "python") if "\ndata = " in code]
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
    result = {name for name, column in table.scheme.items() if column.labels == "numbers"}
    result |= set(certificate.noisy)
    return result | ({"count"} if table.release.form == "counted" else set())


# Examples --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("method", "writing"), RUN)
def test_the_examples_for_python_load_what_was_released(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, writing: str
) -> None:
    release = readers.publish_reader_table(tmp_path / "out", method, writing)
    certificate = release.certificate
    frames = loaded(tmp_path / "out", monkeypatch)
    assert len(frames) == 2 * len(certificate.tables)
    for at, frame in enumerate(frames):
        table, original = certificate.tables[at // 2], release.tables[at // 2].to_frame()
        assert isinstance(frame, pl.DataFrame if at % 2 else pd.DataFrame)
        rows = frame["count"].sum() if table.release.form == "counted" else len(frame)
        assert rows == table.release.rows
        assert list(frame.columns) == original.columns
        for name in original.columns:
            result, expected = listed(frame, name), original[name].to_list()
            if name in numbers_of(certificate, table):
                assert numeric(frame, name)
                assert result == pytest.approx(expected)
            elif table.release.formulas:  # as the page says: take the apostrophe away
                assert [text and text.removeprefix("'") for text in result] == expected
            else:
                assert result == expected
        assert not set(listed(frame, "code") if "code" in frame else []) - {
            "NA", "01234", "null", "a b", "*",
        }  # fmt: skip


@pytest.mark.parametrize(("method", "writing"), RUN)
def test_the_examples_for_python_count_what_was_released(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, writing: str
) -> None:
    release = readers.publish_reader_table(tmp_path / "out", method, writing)
    table = load_certificate(tmp_path / "out").tables[0]
    codes = list_code_blocks(read_readme(tmp_path / "out"), "python")
    monkeypatch.chdir(tmp_path / "out")
    names: dict[str, Any] = {}
    exec(codes[0], names)
    used = [code for code in codes if "\ndata = " not in code]
    between = {"a-b": "-", "a to b": " to "}
    ranges = [name for name in table.scheme if table.scheme[name].labels in between]
    assert len(used) == 1 + bool(ranges)
    assert _evaluate(used[0], names).sum() == table.release.rows
    if ranges:
        low, high = _evaluate(used[1], names)
        frame = release.tables[0].to_frame().filter(pl.col(ranges[0]).str.contains("^-?[0-9]"))
        has_counts = table.release.form == "counted"
        weights = np.array(frame["count"].to_list() if has_counts else [1] * len(frame))
        split = between[table.scheme[ranges[0]].labels]
        ends = [list(map(float, label.split(split))) for label in frame[ranges[0]].to_list()]
        for at, bound in ((0, low), (-1, high)):
            expected = np.average([end[at] for end in ends], weights=weights)
            assert bound == pytest.approx(expected)


def _evaluate(code: str, names: dict[str, Any]) -> Any:
    """Run all lines of an example, and return what the last one shows."""
    *lines, last = code.strip().splitlines()
    exec("\n".join(lines), names)
    return eval(last, names)


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
        publish_unjudged(table, {"columns": columns, "release": release}, output=folder)
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
    publish_unjudged(table, {"columns": columns, "release": release}, output=tmp_path / "out")
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
    publish_unjudged(table, {"columns": columns, "release": release}, output=tmp_path / "out")
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
    return publish_unjudged(table, {"columns": columns, "release": release}, output=folder)


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
    script = "\n".join(
        [*list_code_blocks(read_readme(folder), "r"), *(f"stopifnot({check})" for check in checks)]
    )
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
    release = readers.publish_reader_table(tmp_path / "out", method, writing)
    frame = release.tables[0].to_frame()
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
    if writing == "counted csv":
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
    publish_unjudged(table, {"columns": columns, "release": release}, output=tmp_path / "out")
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
    readers.publish_reader_table(tmp_path / "out", "ola", "parquet")
    page = read_readme(tmp_path / "out")
    assert re.search(r"^With R and its package arrow \(.*\bnot\b.*\brun\b.*\):$", page, re.M)
    readers.publish_reader_table(tmp_path / "text", "ola", "csv")
    assert "With R:\n" in read_readme(tmp_path / "text")
