"""How values are written: read as they are meant, and left as they are where they do not fit."""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support.cli import run_command
from support.patients import publish_patients
from support.patients import read_released_rows as read_release
from support.unjudged import publish_unjudged

from incrowd.codes.values import canonicalize_value, parse_number
from incrowd.curate.check import check
from incrowd.engine.source import open_spec_table
from incrowd.evaluation.evaluate import evaluate
from incrowd.spec.file import SpecFile, parse_spec
from incrowd.spec.problem import SpecError
from incrowd.spec.value_format import Order, ValueFormat

ORDERS: tuple[Order, ...] = ("day-month-year", "month-day-year", "year-month-day")
MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
SPACES = (" ", "\u00a0", "\u202f", "\u2009")


def written(**settings: Any) -> ValueFormat:
    return ValueFormat.model_validate(settings)


# One value ---------------------------------------------------------------------------------------


@st.composite
def numerals(draw: st.DrawFn) -> tuple[ValueFormat, str, str]:
    """How numbers are written, a number in that way, and the same in the usual way."""
    decimal = draw(st.sampled_from([None, ".", ","]))
    apart = [mark for mark in (None, ",", ".", " ", "'", "_") if mark != (decimal or ".")]
    thousands = draw(st.sampled_from(apart))
    sign = draw(st.sampled_from([None, "%", "€", "$", "kg", "Fr."]))
    assume(decimal or thousands or sign)
    minus = draw(st.sampled_from(["", "-", "+"]))
    integer = str(draw(st.integers(0, 10**13)))
    places = draw(st.text("0123456789", max_size=4))
    numeral = integer
    if thousands and draw(st.booleans()):
        mark = draw(st.sampled_from(SPACES)) if thousands == " " else thousands
        numeral = f"{int(integer):,}".replace(",", mark)
    numeral += f"{decimal or '.'}{places}" if places else ""
    if sign:
        gap = draw(st.sampled_from(["", *SPACES]))
        numeral = draw(st.sampled_from([f"{sign}{gap}{numeral}", f"{numeral}{gap}{sign}", numeral]))
    around = draw(st.sampled_from(["", *SPACES]))
    value_formats = written(thousands=thousands, decimal=decimal, sign=sign)
    return value_formats, f"{around}{minus}{numeral}{around}", f"{minus}{integer}.{places or '0'}"


@given(numerals())
def test_a_number_means_the_same_in_whatever_way_it_is_written(
    case: tuple[ValueFormat, str, str],
) -> None:
    value_format, text, usual = case
    result = value_format.make_reader()(text)
    assert canonicalize_value(result) == canonicalize_value(usual)
    assert parse_number(canonicalize_value(result)) is not None


@given(numerals(), st.text("0123456789.,' €%$-+eNA", max_size=12))
def test_no_digit_is_lost_or_made_up(case: tuple[ValueFormat, str, str], text: str) -> None:
    """What does not fit stays; what fits keeps its digits, but for zeros at the ends."""
    result = case[0].make_reader()(text)
    if result is not text:
        assert isinstance(result, str)
        assert parse_number(result) is not None
        digits = ["".join(re.findall(r"\d", item)).strip("0") for item in (text, result)]
        assert digits[0] == digits[1]


@pytest.mark.parametrize(
    ("settings", "text", "meant"),
    [
        ({"thousands": ","}, "1,234,567.50", "1234567.5"),
        ({"thousands": ".", "decimal": ","}, "1.234", "1234"),
        ({"decimal": ","}, "-0,50", "-0.5"),
        ({"decimal": ","}, ",5", "0.5"),
        ({"decimal": ","}, "-0,0", "0"),
        ({"thousands": " "}, "12\u202f345", "12345"),
        ({"thousands": "'", "sign": "CHF"}, "CHF 1'234.05", "1234.05"),
        ({"sign": "%"}, "12.50 %", "12.5"),
        ({"sign": "€"}, "-€5", "-5"),
        ({"sign": "$"}, "$1234", "1234"),
        ({"sign": "kg"}, "70", "70"),
    ],
)
def test_numbers(settings: dict[str, str], text: str, meant: str) -> None:
    assert written(**settings).make_reader()(text) == meant


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"thousands": ","}, "1,23"),
        ({"thousands": ","}, "1,2345"),
        ({"thousands": ","}, "1234,567"),
        ({"thousands": ","}, ",123"),
        ({"thousands": ","}, "1,,234"),
        ({"thousands": " "}, "1  234"),
        ({"thousands": ".", "decimal": ","}, "1.234.5"),
        ({"decimal": ","}, "1,2,3"),
        ({"decimal": ","}, "5,"),
        ({"decimal": ","}, ","),
        ({"decimal": ","}, "1e3"),
        ({"sign": "%"}, "%"),
        ({"sign": "%"}, "5 €"),
        ({"sign": "."}, "a5"),
        ({"nulls": ["NA"]}, "1,234"),
        ({"nulls": ["NA"]}, "01234"),
        ({"nulls": ["NA"]}, "na"),
        ({"dates": "day-month-year"}, "31/2/2020"),
        ({"dates": "day-month-year"}, "4/13/2020"),
        ({"dates": "month-day-year"}, "13/4/2020"),
        ({"dates": "day-month-year"}, "3/4/20"),
        ({"dates": "day-month-year"}, "3 März 2020"),
        ({"dates": "day-month-year"}, "2020-04-03"),
        ({"dates": "month-day-year"}, "3 Apr 2020"),
        ({"dates": "year-month-day"}, "20200403"),
        ({"dates": "year-month-day"}, "2020/04"),
        ({"dates": "year-month-day"}, "on 2020/04/03"),
    ],
)
def test_what_does_not_fit_stays_as_it_is(settings: dict[str, Any], text: str) -> None:
    assert written(**settings).make_reader()(text) == text


@pytest.mark.parametrize(
    ("marker", "value"),
    [
        ("NA", "NA"),
        ("NA", " NA\u00a0"),
        ("-9", "-9"),
        ("-9", "-9.0"),
        ("-9", -9),
        ("-9", -9.0),
        (-9, -9),
        (-9.0, "-9"),
        ("1.50", 1.5),
        ("true", True),
        ("1900-01-01", dt.date(1900, 1, 1)),
    ],
)
def test_a_null_is_one_however_it_is_written(marker: object, value: object) -> None:
    read = written(nulls=[marker]).make_reader()
    assert read(value) is None
    assert [read(other) for other in (9, "9", "N", False, "x")] == [9, "9", "N", False, "x"]


def test_nulls_come_before_numbers_and_dates() -> None:
    numerals = written(nulls=["-9", "-"], decimal=",").make_reader()
    assert [numerals(text) for text in ("-9", "-9,0", "-", "-9,5")] == [None, "-9", None, "-9.5"]
    dates = written(nulls=["1/1/1900"], dates="day-month-year").make_reader()
    assert [dates(text) for text in ("1/1/1900", "2/1/1900")] == [None, "1900-01-02"]


@st.composite
def dates(draw: st.DrawFn) -> tuple[Order, str, str]:
    """An order, a day written in that order, and ISO's way."""
    order = draw(st.sampled_from(ORDERS))
    day = draw(st.dates())
    name = MONTHS[day.month - 1]
    month = draw(
        st.sampled_from([f"{day.month}", f"{day.month:02}", name, name[:3], f"{name[:3]}."])
    )
    month = draw(st.sampled_from([month, month.upper(), month.lower()]))
    parts = {
        "day": draw(st.sampled_from([f"{day.day}", f"{day.day:02}"])),
        "month": month,
        "year": f"{day.year:04}",
    }
    text = draw(st.sampled_from("/.- ")).join(parts[part] for part in order.split("-"))
    late = draw(st.sampled_from(
        ["", " 10:05", " 9:05:06", "T10:05:06", " 10:05:06.123", " 1:05 PM", " 1:05am", "T10:05Z",
         "T10:05:06+02:00"]
    ))  # fmt: skip
    return order, f"{text}{late}", day.isoformat()


@given(dates())
def test_a_day_means_the_same_in_whatever_way_it_is_written(case: tuple[Order, str, str]) -> None:
    order, text, meant = case
    assert written(dates=order).make_reader()(text) == meant


@pytest.mark.parametrize(
    ("order", "text"),
    [
        ("month-day-year", "April 3, 2020"),
        ("month-day-year", "4/3/2020"),
        ("day-month-year", "3. Apr. 2020"),
        ("day-month-year", "03.04.2020"),
        ("year-month-day", "2020/4/3 23:59"),
    ],
)
def test_dates_as_people_write_them(order: Order, text: str) -> None:
    assert written(dates=order).make_reader()(text) == "2020-04-03"


def test_other_values_are_not_texts_to_be_read() -> None:
    read = written(decimal=",").make_reader()
    for value in (1.5, 7, None, True, dt.date(2020, 4, 3)):
        assert read(value) is value


# What a spec may say -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}", "no format is given. Add `nulls`, `thousands`, `decimal`, `exponents`, `sign`"),
        ("{thousands: ',', decimal: ','}", "`thousands` and `decimal` must differ"),
        ("{thousands: .}", "Without `decimal` it is '.'"),
        ("{dates: day-month-year, sign: '%'}", "a column holds numbers or dates"),
        ("{dates: day-month-year, decimal: ','}", "a column holds numbers or dates"),
        ("{dates: day-month}", "must be 'day-month-year', .*Did you mean 'day-month-year'"),
        ("{decimal: ;}", "must be '.' or ',', got ';'"),
        ("{thousands: '-'}", "must be ',', '.', ' ', \"'\" or '_', got '-'"),
        ("{sign: '-'}", "sign: .*, got '-'"),
        ("{sign: '5'}", "sign: .*, got '5'"),
        ("{nulls: ['']}", r"nulls.0: .*at least 1"),
        ("{nulls: NA}", "nulls: .*got 'NA'"),
        ("{thousand: ','}", "unknown key 'thousand'"),
    ],
)
def test_contradictions_are_refused_where_they_stand(text: str, message: str) -> None:
    with pytest.raises(SpecError, match=message) as refused:
        parse_spec(f"columns:\n  x: {{role: sensitive}}\n  y: {{role: drop, written: {text}}}\n")
    (problem,) = refused.value.problems
    assert problem.line == 3
    assert problem.place.startswith("columns.y.written")


def test_it_survives_the_way_through_a_spec() -> None:
    file = parse_spec(
        "columns: {x: {role: drop, written: {nulls: [NA, -9, 'no'], thousands: ' ', decimal: ',', "
        "sign: €}}}"
    )
    value_format = file.spec.columns["x"].written
    assert value_format == written(nulls=["NA", "-9", "no"], thousands=" ", decimal=",", sign="€")


# Whole tables ------------------------------------------------------------------------------------

MONEY = "{nulls: [NA, '-9'], thousands: ., decimal: ',', sign: €}"
TEXTS = ["1.234,50 €", "NA", None, "-9", "7", "no money", "€ 0,5"]
MEANT = ["1234.5", None, None, None, "7", "no money", "0.5"]


def about(settings: str, name: str = "x") -> SpecFile:
    return parse_spec(
        f"columns: {{'{name}': {{role: sensitive, written: {settings}}}, y: {{role: drop}}}}"
    )


def read_by(file: SpecFile, table: Any, name: str = "x") -> list[str | None]:
    frame = open_spec_table(file, table).to_frame()
    assert list(frame.columns) == [name, "y"]
    assert [int(at) for at in frame["y"]] == list(range(len(frame)))  # no row has moved
    return [canonicalize_value(value) for value in frame[name].to_list()]


@pytest.mark.parametrize("kind", [pl.String, pl.Categorical, pl.Enum([x for x in TEXTS if x])])
@pytest.mark.parametrize("name", ["x", "*", "^x.*$"])
def test_texts_of_polars(kind: Any, name: str) -> None:
    frame = pl.DataFrame({name: pl.Series(TEXTS, dtype=kind), "y": range(len(TEXTS))})
    assert read_by(about(MONEY, name), frame, name) == MEANT


@pytest.mark.parametrize("kind", ["object", "category", "string"])
def test_texts_of_pandas(kind: str) -> None:
    frame = pd.DataFrame({"x": pd.Series(TEXTS, dtype=kind), "y": range(len(TEXTS))})
    assert read_by(about(MONEY), frame) == MEANT


@pytest.mark.parametrize("ending", ["csv", "parquet", "arrow"])
def test_texts_of_files(ending: str, tmp_path: Path) -> None:
    frame, path = pl.DataFrame({"x": TEXTS, "y": range(len(TEXTS))}), tmp_path / f"t.{ending}"
    if ending == "csv":
        frame.write_csv(path)
    elif ending == "parquet":
        frame.write_parquet(path)
    else:
        frame.write_ipc(path)
    assert read_by(about(MONEY), path) == MEANT


@pytest.mark.parametrize(
    "column",
    [
        pl.Series([1, -9, None, 9], dtype=pl.Int64),
        pl.Series([1, -9, None, 9], dtype=pl.Int8),
        pl.Series([1, -9, None, 9], dtype=pl.Float32),
        pl.Series([1.0, -9.0, float("nan"), 9.0]),
        pl.Series(["1", "-9.0", "", "9"]),
        pl.Series(["1", "-9", None, "9"], dtype=pl.Categorical),
        pd.Series([1, -9, None, 9]),
        pd.Series([1, -9, None, 9], dtype="Int64"),
        pd.Series([1, -9, None, 9], dtype="category"),
    ],
)
def test_numeric_markers_of_nothing(column: pl.Series | pd.Series) -> None:
    make_frame = pl.DataFrame if isinstance(column, pl.Series) else pd.DataFrame
    frame = make_frame({"x": column, "y": range(4)})
    assert read_by(about("{nulls: [-9]}"), frame) == ["1", None, None, "9"]


def test_markers_among_booleans_and_days() -> None:
    days = pl.Series([dt.date(1900, 1, 1), dt.date(2020, 4, 3)])
    frame = pl.DataFrame({"x": days, "y": [0, 1]})
    assert read_by(about("{nulls: [1900-01-01]}"), frame) == [None, "2020-04-03"]
    frame = pl.DataFrame({"x": [True, False], "y": [0, 1]})
    assert read_by(about("{nulls: [false]}"), frame) == ["true", None]


def test_a_column_that_the_table_lacks_is_no_reason_to_fail() -> None:
    assert open_spec_table(about(MONEY), pl.DataFrame({"z": ["NA"]})).to_frame()["z"].to_list() == [
        "NA"
    ]


def test_what_was_read_once_is_not_read_again() -> None:
    """1,234 is 1.234; read again in the same way it would be 1234."""
    file = about("{thousands: ., decimal: ','}")
    once = open_spec_table(file, pl.DataFrame({"x": ["1,234", "1.234"], "y": [0, 1]}))
    assert read_by(file, once) == ["1.234", "1234"]


# Whole journeys ----------------------------------------------------------------------------------

COLUMNS = """
columns:
  wage: {{role: quasi, {wage}hierarchy: {{intervals: {{from: 0, to: 3999, widths: [500, 2000]}}}}}}
  born: {{role: quasi, {born}hierarchy: {{dates: {{from: 1990-01-01, to: 1999-12-31}}}}}}
  ill: {{role: sensitive, {ill}hierarchy: {{flat: {{values: [flu, cold]}}}}}}
"""
READ = COLUMNS.format(
    wage="written: {nulls: ['-9'], thousands: ., sign: €, decimal: ','}, ",
    born="written: {dates: day-month-year}, ",
    ill="written: {nulls: [NA]}, ",
)
PLAIN = COLUMNS.format(wage="", born="", ill="")
SAFE = "release: {method: safe, draw: counts, epsilon: 1, delta: 1.0e-6}\n"
ROWS = 2400


def people() -> tuple[pl.DataFrame, pl.DataFrame]:
    """The same people twice: as somebody wrote them down, and in the usual way."""
    at = range(ROWS)
    raw = pl.DataFrame(
        {
            "wage": [["1.250 €", "900,0", "€ 3.000", "-9"][i % 4] for i in at],
            "born": [["3/4/1991", "28.12.1995 10:00", "1 Feb 1999"][i % 3] for i in at],
            "ill": [["flu", "NA"][i % 4 == 3] for i in at],
        }
    )
    usual = pl.DataFrame(
        {
            "wage": [[1250, 900, 3000, None][i % 4] for i in at],
            "born": [["1991-04-03", "1995-12-28", "1999-02-01"][i % 3] for i in at],
            "ill": [["flu", None][i % 4 == 3] for i in at],
        }
    )
    return raw, usual


def test_k_anonymity_shows_nothing_where_nothing_stands(tmp_path: Path) -> None:
    raw, usual = people()
    publish_patients(raw, tmp_path / "raw", columns=READ)
    publish_patients(usual, tmp_path / "usual", columns=PLAIN)
    data, other = read_release(tmp_path / "raw"), read_release(tmp_path / "usual")
    assert data["ill"].null_count() == ROWS // 4
    assert set(data["ill"].drop_nulls()) == {"flu"}
    assert data.sort(data.columns).equals(other.sort(other.columns))


def test_counts_are_of_what_is_meant(tmp_path: Path, settled_once: None) -> None:
    levels = SAFE.replace("epsilon", "levels: {wage: 1, born: 3, ill: 0}, epsilon")
    publish_unjudged(people()[0], parse_spec(READ + levels), output=tmp_path / "out")
    data = read_release(tmp_path / "out")
    assert set(data["wage"]) == {None, "500-999", "1000-1499", "3000-3499"}
    assert {int(year) for year in data["born"]} == {1991, 1995, 1999}
    assert set(data["ill"]) == {"flu", None}
    # those without a wage are those without an illness, as far as the noise lets one tell
    alone = data.filter(pl.col("wage").is_null() != pl.col("ill").is_null())
    assert len(alone) == 0
    assert abs(data["ill"].null_count() - ROWS // 4) < ROWS // 10


def test_check_says_of_both_the_same() -> None:
    raw, usual = people()
    result = [str(item) for item in check(raw, parse_spec(READ + SAFE))]
    assert result == [str(item) for item in check(usual, parse_spec(PLAIN + SAFE))]
    nulls = {
        item.column: item.values["rows"]
        for item in check(raw, parse_spec(READ + SAFE))
        if item.code == "VALUES_NULL"
    }
    assert nulls["ill"] == ROWS // 4
    # without being told, it says what it cannot read
    lost = [item for item in check(raw, parse_spec(PLAIN)) if "OUTSIDE_DOMAIN" in item.code]
    assert [item.column for item in lost] == ["wage", "born", "ill"]


def test_evaluate_measures_both_the_same() -> None:
    raw, usual = people()
    release = publish_patients(raw, None, columns=READ)
    first = evaluate(raw, release, parse_spec(READ))
    second = evaluate(usual, release, parse_spec(PLAIN))
    assert (first.loss_by_column, first.losses) == (second.loss_by_column, second.losses)
    assert (first.rows_original, first.suppressed) == (second.rows_original, second.suppressed)
    assert first.utility is not None
    assert max(first.utility.distance_by_column.values()) < 0.01


def test_evaluate_reads_what_was_held_out_in_the_same_way() -> None:
    """Wages tell the illness here; read as other texts, they would tell nothing."""
    raw, usual = people()
    release = publish_patients(raw, None, "k: 5", columns=READ)
    read = evaluate(raw, release, parse_spec(READ), target="ill", holdout=raw).utility
    plain = evaluate(usual, release, parse_spec(PLAIN), target="ill", holdout=usual).utility
    assert read is not None
    assert plain is not None
    first, second = read.accuracy, plain.accuracy
    assert first is not None
    assert second is not None
    assert (first.original, first.released) == (second.original, second.released)


@pytest.mark.parametrize("size", ["public", "3000"])
def test_publish_reads_once_whoever_knows_the_size(
    size: str, tmp_path: Path, settled_once: None
) -> None:
    (tmp_path / "t.csv").write_text("w\n" + '"1,234"\n' * 3000)
    values = "hierarchy: {flat: {values: ['1.234', '1234']}}"
    (tmp_path / "spec.yaml").write_text(
        f"table: t.csv\nsize: {size}\ncolumns:\n  w: {{role: quasi, {values}, "
        f"written: {{thousands: ., decimal: ','}}}}\n{SAFE}"
    )
    done = run_command("publish", str(tmp_path / "spec.yaml"), "-o", str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    assert {float(value) for value in read_release(tmp_path / "out")["w"]} == {1.234}


def test_a_table_is_recognized_in_whatever_way_it_is_read(
    tmp_path: Path, settled_once: None
) -> None:
    values = "hierarchy: {flat: {values: [a, b]}}"
    frame = pl.DataFrame({"x": ["a", "b", "NA"] * 300})
    frame.write_parquet(tmp_path / "t.parquet")
    for table in (frame, tmp_path / "t.parquet"):
        for value_format, before in (("", 0), ("written: {nulls: [NA]}, ", 1)):
            spec = parse_spec(f"columns: {{x: {{role: quasi, {value_format}{values}}}}}\n{SAFE}")
            findings = publish_unjudged(table, spec).findings
            assert len([item for item in findings if "released before" in str(item)]) == before
