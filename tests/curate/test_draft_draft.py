"""Drafted specs: what they guess, and that they fit their tables."""

from __future__ import annotations

import datetime as dt
import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st
from support.cli import run_successfully

from incrowd.curate.check import check
from incrowd.curate.demo_tables import make_demo_table
from incrowd.curate.draft.draft import draft, draft_from_arx
from incrowd.engine.count import count_tuples
from incrowd.engine.source import local_engine, open_table
from incrowd.errors import IncrowdError
from incrowd.spec.base import quote_scalar
from incrowd.spec.build import ColumnHierarchies
from incrowd.spec.file import parse_spec, read_spec_file
from incrowd.spec.model import PersonId


@pytest.mark.parametrize("kind", ["voters", "patients", "census"])
def test_a_draft_of_a_sample_is_a_valid_spec_that_fits(kind: str) -> None:
    table = make_demo_table(kind, rows=3000)
    file = parse_spec(draft(table, name="x.csv").yaml())
    assert [finding for finding in check(table, file) if finding.severity == "error"] == []
    assert set(file.spec.unconfirmed_entries) == set(
        table.columns
    )  # everything waits to be confirmed
    columns = {name: c for name, c in file.spec.columns.items() if c.hierarchy}
    assert count_tuples(table, ColumnHierarchies(columns)).frequencies.total == 3000


def test_a_draft_knows_identifiers_when_it_sees_them() -> None:
    n = 100
    table = local_engine().from_columns(
        {
            "Contact": [f"p{i}@mail.example.org" for i in range(n)],
            "PatientName": [f"Person {i % 60}" for i in range(n)],
            "mrn": [f"M{i:05}" for i in range(n)],
            "ZIP": [f"{i % 40 + 501:05}" for i in range(n)],
            "date_of_birth": [f"19{i % 80 + 10}-03-04" for i in range(n)],
            "diagnosis": [["flu", "cold", "yes"][i % 3] for i in range(n)],
            "remark": [f"note {i} {i * i}" for i in range(n)],
            "empty": [None] * n,
            "bmi": [18 + i / 10 for i in range(n)],
            "weird: thing": ["a", "b"] * (n // 2),
        }
    )
    got = draft(table, name="t.csv")
    roles = {guess.column: guess.role for guess in got.guesses}
    assert roles == {
        "Contact": "identifier",
        "PatientName": "identifier",
        "mrn": "identifier",
        "ZIP": "quasi",
        "date_of_birth": "quasi",
        "diagnosis": "sensitive",
        "remark": "identifier",
        "empty": "drop",
        "bmi": "quasi",
        "weird: thing": "quasi",
    }
    spec = parse_spec(got.yaml()).spec
    assert spec.columns["weird: thing"].hierarchy is not None
    assert "mask: {length: 5}" in got.yaml()
    assert "dates: {from: 1910-01-01, to: 1989-12-31}" in got.yaml()
    result = dict(got.list_hipaa_columns())
    assert result["e-mail addresses"] == ("Contact",)
    assert result["names"] == ("PatientName",)
    assert result["medical record numbers"] == ("mrn",)
    assert len(result) == 18


@pytest.mark.parametrize(
    "text",
    [
        *("a: b", "yes", "", " x", "39", "#x", "[x]", 'say "hi"', "ü\n", "x y"),
        *("\U0001f469", "\U0001f469\u200d\u2695\ufe0f", "\U0001f469\n"),  # beyond U+FFFF
    ],
)
def test_text_survives_yaml(text: str) -> None:
    assert list(parse_spec(f"columns: {{{quote_scalar(text)}: {{role: drop}}}}").spec.columns) == [
        text
    ]


def test_lists_and_bytes_are_not_generalized() -> None:
    table = local_engine().from_columns({"tags": [["a"], ["b"]], "raw": [b"x", b"y"]})
    got = draft(table, name="t.parquet")
    assert [guess.role for guess in got.guesses] == ["drop", "drop"]
    file = parse_spec("columns: {tags: {role: quasi, hierarchy: flat}, raw: {role: drop}}")
    (finding,) = check(table, file)
    assert finding.severity == "error"
    assert "not single values" in finding.message


def test_drafts_of_awkward_columns_fit_their_tables() -> None:
    n = 60
    table = local_engine().from_columns(
        {
            "balance": [i - 57 for i in range(n)],
            "code": ["250.00", "250.0", "401 "] * (n // 3),
            "visited": [f"20{i % 20 + 10}-01-02 10:00:00" for i in range(n)],
            "sentinel": [("0001-01-01", "2020-05-06")[i < n // 2] for i in range(n)],
            "odd": [("\x7f", "a\x85b")[i // 3 % 2] for i in range(n)],
        }
    )
    file = parse_spec(draft(table, name="t.csv").yaml())
    expected_topics = ("confirmation", "forecast")
    result = [item for item in check(table, file) if item.topic not in expected_topics]
    # the sentinel lies a thousand years before the other dates and stays outside
    assert [finding.column for finding in result] == ["sentinel"]


def test_an_arx_folder_is_taken_as_it_is(tmp_path: Path) -> None:
    folder = tmp_path / "arx"
    folder.mkdir()
    (folder / "people.csv").write_text("sex;age\nMale;1\nFemale;2\nMale;\n")
    (folder / "people_hierarchy_sex.csv").write_text("Male;*\nFemale;*\n")
    (folder / "people_hierarchy_age.csv").write_text("1;1-2;*\n2;1-2;*\n")
    file = tmp_path / "spec.yaml"
    run_successfully("init", "--arx", str(folder), "-o", str(file))
    assert "table: arx/people.csv" in file.read_text()
    loaded = read_spec_file(file)
    assert loaded.spec.columns_with_role("quasi") == ("sex", "age")
    result = [finding for finding in check(None, loaded) if finding.topic != "forecast"]
    assert [finding.severity.value for finding in result] == ["warning"] * 3 + [
        "note"
    ]  # the unit, too
    assert set(loaded.spec.unconfirmed_entries.values()) == {("role", "hierarchy")}
    shutil.rmtree(folder)
    with pytest.raises(IncrowdError, match="No such file"):
        check(None, loaded)


def test_a_table_and_a_folder_of_arx_files_together(tmp_path: Path) -> None:
    folder = tmp_path / "arx"
    folder.mkdir()
    (tmp_path / "people.csv").write_text("sex,age,town\n" + "Male,1,A\nFemale,2,B\nMale,,A\n" * 9)
    (folder / "people_hierarchy_sex.csv").write_text("Male;*\nFemale;*\n")
    (folder / "people_hierarchy_job.csv").write_text("a;*\n")
    (folder / "other_hierarchy_age.csv").write_text("1;*\n2;*\n")
    table, file = str(tmp_path / "people.csv"), tmp_path / "spec.yaml"
    successfully = run_successfully("init", table, "--arx", str(folder), "-o", str(file))
    assert "ARX hierarchies used: people_hierarchy_sex.csv." in successfully
    assert "without a column: other_hierarchy_age.csv, people_hierarchy_job.csv." in successfully
    loaded = read_spec_file(file)
    assert loaded.spec.table == "people.csv"
    assert list(loaded.spec.columns) == ["sex", "age", "town"]
    assert loaded.spec.unconfirmed_entries["sex"] == ("role", "hierarchy")
    assert "csv: arx/people_hierarchy_sex.csv" in file.read_text()
    assert {finding.severity.value for finding in check(None, loaded)} == {"warning", "note"}
    # another name of the table: the only one that the folder has is meant, else none
    shutil.move(table, tmp_path / "t.csv")
    with pytest.raises(IncrowdError, match="no files t_hierarchy_COLUMN.csv.* other, people"):
        draft_from_arx(folder, beside=tmp_path, table=str(tmp_path / "t.csv"))
    (folder / "other_hierarchy_age.csv").unlink()
    got = draft_from_arx(folder, beside=tmp_path, table=str(tmp_path / "t.csv"))
    assert (got.table, got.used) == ("t.csv", ("people_hierarchy_sex.csv",))
    with pytest.raises(IncrowdError, match="If the table lies elsewhere, name it as TABLE"):
        draft_from_arx(folder, beside=tmp_path)
    with pytest.raises(IncrowdError, match="Name a folder of ARX files"):
        draft_from_arx(tmp_path / "none", beside=tmp_path, table=table)


def test_codes_are_small_integers() -> None:
    table = make_demo_table("voters", rows=1000)
    columns = parse_spec(draft(table, name="x").yaml()).spec.columns
    counted_table = count_tuples(
        table, ColumnHierarchies({name: columns[name] for name in ("zip", "sex", "birth_year")})
    )
    assert counted_table.frequencies.codes.dtype == np.int32
    assert [h.height for h in counted_table.hierarchies] == [6, 2, 7]


def test_row_numbers_are_dropped_and_ids_that_repeat_are_proposed(tmp_path: Path) -> None:
    """As pandas and R write tables: an index without a name, and several rows of each person."""
    rows = "".join(f"{at},{at + 1},{1000 + at // 3},{20 + at % 50}\n" for at in range(90))
    path = tmp_path / "visits.csv"
    path.write_text(f",row,pidnum,age\n{rows}")
    table = open_table(path)
    drafted = draft(table, name="visits.csv")
    roles = {guess.column: (guess.role, guess.reason) for guess in drafted.guesses}
    assert roles["unnamed"] == ("drop", "row numbers")
    assert roles["row"] == ("drop", "row numbers")
    reason = "id shared by several rows: 30 values in 90 rows"
    assert roles["pidnum"] == ("identifier", reason)
    assert roles["age"][0] == "quasi"
    file = parse_spec(drafted.yaml())
    assert file.spec.unit == PersonId(id="pidnum")
    assert not [item for item in check(table, file) if item.severity == "error"]


@pytest.mark.parametrize("name", ["code", "children_no", "zip", "score"])
def test_not_everything_that_repeats_is_an_id(name: str) -> None:
    frame = pl.DataFrame({name: [at // 3 for at in range(90)], "b": ["x", "y", "z"] * 30})
    drafted = draft(open_table(frame), name="t.csv")
    assert "unit: one row per person" in drafted.yaml()
    assert drafted.guesses[0].role == "quasi"


# Random tables -----------------------------------------------------------------------------------

LETTERS = st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs"])
NAMES = st.text(LETTERS, max_size=8) | st.sampled_from(
    ["age", "year", "zip", "patient_id", "lat", "*", "^x$", "yes", "a: b", "#", "count", "date"]
)
DAYS = st.dates(dt.date(1890, 1, 1), dt.date(2060, 1, 1))
KINDS: tuple[st.SearchStrategy[object], ...] = (
    st.integers(-1000, 1000), st.integers(0, 10**15), st.floats(-1e6, 1e6), st.integers(0, 1),
    st.floats(-1e-6, 1e-6), st.booleans(), DAYS,
    st.datetimes(dt.datetime(1890, 1, 1), dt.datetime(2060, 1, 1)),
    st.text(LETTERS, max_size=6),
    st.decimals(-100, 100, places=2), st.integers(0, 130), st.integers(1850, 2050),
    st.integers(0, 99999).map("{:05}".format), st.floats(-180, 180).map("{:.4f}".format),
    st.integers(0, 10**7).map("{:,}".format), DAYS.map("{0.day}.{0.month}.{0.year}".format),
    st.floats(0, 1e5).map("{:.2f} \u20ac".format), st.sampled_from(["NA", "1", "2", "30", "-"]),
    st.sampled_from(["NA", "DE", "FR", "ZA"]), st.sampled_from(["E11.9", "I10", "?"]),
    st.floats(0, 20).map(lambda power: round(10**power / 7, 2)),
)  # fmt: skip


EVERYBODY_KNOWS = ({"0", "1"}, {"1", "2"}, {"true", "false"}, {"m", "f"}, {"y", "n"})
# A table takes a while, and to find a smaller one that fails would take many.
QUICK = settings(max_examples=12, phases=(Phase.explicit, Phase.reuse, Phase.generate))


@st.composite
def tables(draw: st.DrawFn) -> dict[str, list[object]]:
    rows = draw(st.integers(1, 60))
    columns = {}
    for name in draw(st.lists(NAMES, min_size=1, max_size=4, unique=True)):
        values = st.none() | draw(st.sampled_from(KINDS))
        columns[name] = draw(st.lists(values, min_size=rows, max_size=rows))
    return columns


@QUICK
@given(tables())
@example({"date": [dt.date(1200, 1, 1), dt.date(2250, 1, 1)]})
def test_every_draft_is_a_spec_that_fits_its_table(columns: dict[str, list[object]]) -> None:
    """Each value of a listed domain or a range was met, so that none may lie outside."""
    table = local_engine().from_columns(columns)
    file = parse_spec(draft(table, name="t.csv").yaml().partition("release:")[0])
    assert tuple(file.spec.columns) == table.columns
    result = check(table, file)
    assert [item for item in result if item.severity == "error"] == []
    outside = [item for item in result if "outside the domain" in str(item)]
    for first in outside:  # days more than a thousand years before the last
        assert first.column is not None
        assert "dates: {" in str(file.text())


@QUICK
@given(tables())
def test_what_was_read_from_the_data_is_to_be_confirmed(columns: dict[str, list[object]]) -> None:
    """A list or a range without a question is the same whatever the table holds."""
    table = local_engine().from_columns(columns)
    spec = parse_spec(draft(table, name="t.csv").yaml()).spec
    for column in spec.columns.values():
        assert "role" in column.confirm
        assert ("written" in column.confirm) is (column.written is not None)
        if column.hierarchy is None:
            assert "hierarchy" not in column.confirm
            continue
        (kind,) = column.hierarchy.model_dump(exclude_none=True)
        flat, mask, years = (getattr(column.hierarchy, x) for x in ("flat", "mask", "intervals"))
        listed = {value.lower() for value in flat.values} if flat is not None else set()
        public = (
            kind in ("countries", "icd", "postcodes")
            or (mask is not None and mask.alphabet == "0123456789")
            or (years is not None and (years.low, years.high) == (0, 89))
            or (listed and any(listed <= pair for pair in EVERYBODY_KNOWS))
        )
        assert public or "hierarchy" in column.confirm, column


def test_the_columns_that_single_people_out_together_are_named() -> None:
    """Sex and place alone hide everybody; with the age, every row is unique."""
    ages = [at % 50 for at in range(200)]
    table = pl.DataFrame(
        {
            "sex": ["female" if at % 2 else "male" for at in range(200)],
            "age": ages,
            "place": [["A", "B", "C", "D"][at // 50] for at in range(200)],
        }
    )
    drafted = draft(table)
    assert drafted.identifying == (("age", "place"), 1.0)
    assert "# Unique by age, place together: 100 % of the rows looked at.\n" in drafted.yaml()
    assert draft(table.select("sex", "place")).identifying is None
    assert "Unique by" not in draft(table.select("sex")).yaml()
