"""Words on levels: those of the certificate follow from its scheme, and the pages show them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from support.findings import list_verify_messages
from support.readers import find_section, load_certificate, read_readme, reseal_certificate
from support.unjudged import publish_unjudged

from incrowd.release.certificate import AbsentLabels, Certificate
from incrowd.release.pages import make_pages

FORMATS = Path(__file__).parents[1] / "formats" / "1"


@pytest.mark.parametrize("name", ["counts-fixed", "sample-mondrian", "synthetic"])
@pytest.mark.parametrize(
    "change", [{"shows": ["anything"]}, {"sizes": [1]}, {"open_ends": ["<5"]}], ids=str
)
def test_words_that_do_not_follow_from_the_scheme_are_refused(
    tmp_path: Path, name: str, change: dict[str, Any]
) -> None:
    folder = Path(shutil.copytree(FORMATS / name, tmp_path / "out"))
    certificate = load_certificate(folder)
    column = certificate.table.scheme["age"]
    scheme = {**certificate.table.scheme, "age": column.model_copy(update=change)}
    reseal_certificate(folder, certificate.model_copy(update={"scheme": scheme}))
    (message,) = list_verify_messages(folder)
    assert "the levels of 'age' are described otherwise than they are" in message


@pytest.mark.parametrize("ends", ["none", "both"])
def test_open_ranges_are_explained_only_where_they_occur(tmp_path: Path, ends: str) -> None:
    hierarchy = {"intervals": {"from": 0, "to": 89, "widths": [10], "open": ends}}
    table = pl.DataFrame({"age": list(range(90)) * 10})
    spec = {
        "columns": {"age": {"role": "quasi", "hierarchy": hierarchy}},
        "release": {"method": "k-anonymity", "k": 5, "levels": {"age": 1}},
    }
    publish_unjudged(table, spec, output=tmp_path / "out")
    page = read_readme(tmp_path / "out")
    section = find_section(page, "Columns")
    assert "**steps of 10 (such as 40-49)**; level 1 of " in section
    assert ("`<0`, `>89`" in section) == ("below a" in section) == (ends == "both")


def test_a_column_that_is_too_fine_is_named() -> None:
    """Published sizes decide: 1,500 rows are enough for 61 values, 40 are not."""
    certificate = load_certificate(FORMATS / "synthetic")
    assert "Noise exceeds counts" not in read_readme(FORMATS / "synthetic")
    text = certificate.model_dump(mode="json")
    text["release"]["rows"] = 40
    page = make_pages(Certificate.model_validate(text))["README.md"].decode()
    (line,) = [x for x in page.splitlines() if "Noise exceeds counts** in `weight`" in x]
    assert "61 values have 0.656 rows each on average" in line


OUTCOME = {"role": "quasi", "hierarchy": {"flat": {"values": ["alive", "died"]}}}
RARE = pl.DataFrame({"outcome": ["alive"] * 500 + ["died"] * 2, "n": ["1", "2"] * 251})
COUNTS: dict[str, Any] = {
    "method": "safe", "epsilon": 1, "delta": 1e-4, "k": 5, "levels": {"outcome": 0},
}  # fmt: skip


@pytest.mark.parametrize(
    "release",
    [
        COUNTS,
        {**COUNTS, "format": "csv", "rows": "counted"},
        {"method": "k-anonymity", "k": 5, "levels": {"outcome": 0}},
        {"method": "k-anonymity", "k": 5, "levels": {"outcome": 0}, "suppressed": "starred"},
    ],
    ids=["counts", "counted csv", "k-anonymity", "starred"],
)
def test_a_listed_value_without_a_published_row_is_named(
    tmp_path: Path, release: dict[str, Any]
) -> None:
    """A reader of "alive, died" must not take rows of `alive` alone for a mortality of 0."""
    spec = {"columns": {"outcome": OUTCOME, "n": {"role": "drop"}}, "release": release}
    publish_unjudged(RARE, spec, output=tmp_path / "out")
    words = "occurs in no published row; its groups, if any, were suppressed."
    page = read_readme(tmp_path / "out")
    section = find_section(page, "Columns")
    assert "**2 values (alive, died)**" in section
    assert f"`died` {words} Do not read this as zero. |" in section
    assert "**Absent values.** Some listed values of `outcome`" in page
    html = (tmp_path / "out" / "certificate.html").read_text(encoding="utf-8")
    assert f"<code>died</code> {words}" in html
    assert list_verify_messages(tmp_path / "out") == []


def test_absent_values_are_named_for_each_file_and_never_for_all_that_occur(tmp_path: Path) -> None:
    table = RARE.with_columns(age=pl.Series([20, 30] * 251))
    ages = {"intervals": {"from": 0, "to": 89, "widths": [10]}}
    spec = {
        "columns": {
            "outcome": OUTCOME,
            "n": {"role": "quasi", "hierarchy": {"flat": {"values": ["1", "2"]}}},
            "age": {"role": "quasi", "hierarchy": ages},
        },
        "release": {
            "method": "safe", "epsilon": 1, "delta": 1e-4, "k": 5,
            "slices": [["outcome", "n"], ["n", "age"]], "levels": {"outcome": 0, "n": 0, "age": 1},
        },
    }  # fmt: skip
    publish_unjudged(table, spec, output=tmp_path / "out")
    lines = find_section(read_readme(tmp_path / "out"), "Columns").splitlines()
    named = [line for line in lines if "no published row" in line]
    assert [line.split(" | ")[0] for line in named] == [
        "| `outcome` (in `data-1.parquet`)", "| `age` (in `data-2.parquet`)"
    ]  # fmt: skip
    assert "`0-9`, `10-19`, `40-49` and 4 more of 9 listed labels occur in no pub" in named[1]
    assert "their groups, if any, were suppressed." in named[1]
    assert list_verify_messages(tmp_path / "out") == []


@pytest.mark.parametrize("forged", [None, {"number": 2, "first": ["alive", "died"]}], ids=str)
def test_absent_values_are_recomputed_from_the_data(
    tmp_path: Path, forged: dict[str, Any] | None
) -> None:
    spec = {"columns": {"outcome": OUTCOME, "n": {"role": "drop"}}, "release": COUNTS}
    publish_unjudged(RARE, spec, output=tmp_path / "out")
    certificate = load_certificate(tmp_path / "out")
    absent = None if forged is None else AbsentLabels.model_validate(forged)
    column = certificate.table.scheme["outcome"].model_copy(update={"absent": absent})
    reseal_certificate(
        tmp_path / "out", certificate.model_copy(update={"scheme": {"outcome": column}})
    )
    (message,) = list_verify_messages(tmp_path / "out")
    assert "'outcome' that occur in no row are not those" in message


def test_synthetic_rows_suppress_nothing_and_name_no_absent_value() -> None:
    text = load_certificate(FORMATS / "synthetic").model_dump(mode="json")
    name = next(iter(text["scheme"]))
    text["scheme"][name]["absent"] = {"number": 1, "first": ["x"]}
    with pytest.raises(ValueError, match="rows that are not synthetic"):
        Certificate.model_validate(text)


def test_a_value_may_be_absent_because_its_rows_were_replaced() -> None:
    """k-Duplication publishes one row of a class in place of the others."""
    text = load_certificate(FORMATS / "k-anonymity-duplicate").model_dump(mode="json")
    text["scheme"]["n"]["absent"] = {"number": 2, "first": ["1", "2"]}
    page = make_pages(Certificate.model_validate(text))["README.md"].decode()
    words = "occur in no published row; their groups, if any, were replaced or suppressed."
    assert f"`1`, `2` {words}" in page
