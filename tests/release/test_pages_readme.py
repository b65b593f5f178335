"""The page for readers: what it says is what the certificate says, and nothing gets out of it."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import readers
from support.findings import list_verify_messages
from support.readers import (
    CASES,
    find_code,
    find_section,
    list_code_blocks,
    load_certificate,
    make_readme,
    read_readme,
)
from support.unjudged import publish_unjudged

from incrowd.privacy.draw_parameters import build_noise_spread
from incrowd.release.certificate import Certificate
from incrowd.release.noise_sentences import format_exact
from incrowd.release.statement import TECHNICAL

pytestmark = pytest.mark.usefixtures("settled_once")

SECTIONS = [
    "About this data", "Guarantee", "How to use", "Columns", "Accuracy", "Suppression",
    "Load the data", "Count and compare", "Verify and cite", "Statement", "Technical details",
]  # fmt: skip
CHANGED = "The file 'README.md' differs from the certificate."
OVERRIDES = "\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069"


# Every method, in every writing ---------------------------------------------------------------


@pytest.mark.parametrize(("method", "writing"), CASES)
def test_the_page_says_what_the_certificate_says(tmp_path: Path, method: str, writing: str) -> None:
    certificate = readers.publish_reader_table(tmp_path / "out", method, writing).certificate
    page = read_readme(tmp_path / "out")
    assert list_verify_messages(tmp_path / "out") == []
    assert make_readme(certificate) == page
    assert make_readme(load_certificate(tmp_path / "out")) == page  # as whoever reads it writes it
    assert readers.list_headings(page) == SECTIONS
    plain = page.replace("\\", "").splitlines()
    for number, sentence in enumerate(certificate.guarantee.statement, 1):
        assert f"{number}. {sentence.text}" in plain
    assert f"released on {certificate.date} with Incrowd {certificate.incrowd}" in page
    _says_the_rows(certificate, page)
    _names_the_columns(certificate, page)
    _says_how_accurate(certificate, find_section(page, "Accuracy"))
    _says_what_is_missing(certificate, find_section(page, "Suppression"))
    cited = find_section(page, "Verify and cite")
    assert f"certificate {certificate.seal}." in cited
    if certificate.method == "safe":
        guarantee = certificate.guarantee
        assert (
            f"ε = {format_exact(guarantee.epsilon)}, δ = {format_exact(guarantee.delta)}" in cited
        )


def _says_the_rows(certificate: Certificate, page: str) -> None:
    text, used = page.partition("\n## ")[0], find_section(page, "How to use")
    for table in certificate.tables:
        release = table.release
        assert (
            f"- `{release.file}`: {release.rows:,} rows in {release.classes:,} groups; the "
            f"smallest group has {release.smallest_class:,} rows."
        ) in text.splitlines()
    assert ("Sum `count`" in used.replace("sum", "Sum")) == (
        certificate.tables[0].release.form == "counted"
    )
    assert ("do not join them" in used) == (len(certificate.tables) > 1)
    assert ("not copies of individual records" in text) == certificate.has_noisy_counts
    assert ("stand for suppressed rows" in used) == (
        certificate.parameters.get("suppressed") == "starred"
    )
    ranges = {"a-b", "a to b", "[a, b)"}
    labels = {item.labels for table in certificate.tables for item in table.scheme.values()}
    assert ("midpoints" in used) == bool(ranges & labels)
    assert "`*`" in used
    assert "null" in used
    assert ("No weights are needed" in used) == (
        certificate.tables[0].release.form != "counted"
        and (certificate.method != "safe" or certificate.has_noisy_counts)
    )
    if certificate.method != "safe" and certificate.parameters.get("algorithm") != "duplicate":
        assert f"identical to at least {certificate.k - 1} others" in text


def _names_the_columns(certificate: Certificate, page: str) -> None:
    named = [find_code(cells[0]) for cells in readers.list_column_rows(page)]
    scheme = [name for table in certificate.tables for name in table.scheme]
    assert sorted(named) == sorted([*scheme, *certificate.kept, *certificate.noisy])
    assert all(len(cells) == 2 for cells in readers.list_column_rows(page))
    section = find_section(page, "Columns")
    cells_by_name = {
        find_code(cells[0]): cells[1].content for cells in readers.list_column_rows(page)
    }
    for table in certificate.tables:
        for name, column in table.scheme.items():
            words = "labels of several levels"
            if column.level is not None:
                words = column.shows[column.level]
                assert f"**; level {column.level} of " in cells_by_name[name]
            assert cells_by_name[name].replace("\\", "").startswith(f"**{words}**; ")
            assert re.search(rf"^- (`\w+`, )*`{name}`(, `\w+`)*: ", section, re.MULTILINE)
            if column.file is not None:
                assert f"(<{column.file}>)" in cells_by_name[name]
    local = any(
        item.level is None for table in certificate.tables for item in table.scheme.values()
    )
    assert ("- *labels of several levels*: " in section) == local
    assert ("An apostrophe before" in section) == bool(certificate.tables[0].release.formulas)
    for name, grid in certificate.noisy.items():
        assert grid.bounds is not None
        assert (
            f"in steps of {grid.step}, from {grid.bounds[0]} to {grid.bounds[1]}"
            in cells_by_name[name]
        )


def _says_how_accurate(certificate: Certificate, text: str) -> None:
    for table in certificate.tables:
        parameters = table.parameters
        if certificate.has_noisy_counts:
            tail = build_noise_spread(parameters).tail.tolist()
            spread = (2 * sum(p * x * x for x, p in enumerate(tail))) ** 0.5
            assert (
                f"at most ±{int(parameters['r'])}, with a standard deviation of {spread:.3g}."
                in text
            )
        elif certificate.method == "safe":
            beta = float(parameters["beta"])
            assert f"probability {beta!r}," in text
            assert f"about n × {1 / beta:.6g} rows" in text
            # Of N rows n = N beta are drawn; n / beta is off by sqrt(n (1 - beta)) / beta.
            assert f"about √n × {((1 - beta) / beta**2) ** 0.5:.3g}." in text
    assert ("was itself a sample" in text) == ("already_sampled" in certificate.parameters)
    if "already_sampled" in certificate.parameters:
        assert "probability 0.25: for the population, multiply by 4." in text


def _says_what_is_missing(certificate: Certificate, text: str) -> None:
    if certificate.has_noisy_counts:
        assert f"a noisy count below {certificate.threshold} are" in text
    elif certificate.method == "safe":
        assert f"fewer than {certificate.k} " in text
    elif certificate.parameters.get("suppressed") == "starred":
        assert "contain `*` in every generalized column" in text
    else:
        assert "are suppressed" in text


def test_what_a_recipient_reads_first_fits_on_a_screen(tmp_path: Path) -> None:
    readers.publish_reader_table(tmp_path / "out", "counts", "parquet")
    page = read_readme(tmp_path / "out")
    first = page.partition("\n## Columns")[0]
    assert len(first.split()) < 400
    assert page.index("\n## Statement") > page.index("\n## Verify and cite")


def test_technical_sentences_come_last(tmp_path: Path) -> None:
    statement = readers.publish_reader_table(
        tmp_path / "out", "counts", "parquet"
    ).certificate.guarantee
    keys = [sentence.key for sentence in statement.statement]
    result = [key for key in keys if key in TECHNICAL]
    assert result
    assert keys[-len(result) :] == result
    details = find_section(read_readme(tmp_path / "out"), "Technical details")
    assert details.startswith(f"{len(keys) - len(result) + 1}. ")


def test_slices_with_different_thresholds_are_each_described_by_their_own() -> None:
    """The number under *Suppression* is said of all files, and a search may differ in k."""
    column = {"level": 0, "labels": "text", "rule": {"flat": {}}}
    tables = [
        {
            "parameters": {"k": k, "beta": 0.5},
            "scheme": {"x": column},
            "release": {
                "file": f"data-{number}.csv", "form": "expanded", "sha256": "0" * 64,
                "rows": 50, "classes": 1, "smallest_class": 50,
            },
        }
        for number, k in enumerate((5.0, 9.0), 1)
    ]  # fmt: skip
    certificate = Certificate.model_validate(
        {
            "format": 1, "incrowd": "0.1.0", "method": "safe", "date": "2026-01-01",
            "guarantee": {"kind": "x", "unit": "one row"}, "parameters": {}, "events": [],
            "slices": tables, "randomness": "system",
        }
    )  # fmt: skip
    section = find_section(make_readme(certificate), "Suppression")
    assert "5" in section
    assert "9" in section


# What verify says of another page -------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    readers.publish_reader_table(tmp_path / "out", "ola", "csv")
    return tmp_path / "out"


@pytest.mark.parametrize("at", [0, 40, -1])
def test_a_page_with_another_character_is_refused(folder: Path, at: int) -> None:
    page = bytearray((folder / "README.md").read_bytes())
    page[at] ^= 1
    (folder / "README.md").write_bytes(page)
    assert list_verify_messages(folder) == [CHANGED]


@pytest.mark.parametrize("more", [b"\n", b"\0", b"x" * (1 << 20)])
def test_a_longer_page_is_refused(folder: Path, more: bytes) -> None:
    with (folder / "README.md").open("ab") as file:
        file.write(more)
    assert list_verify_messages(folder) == [CHANGED]


def test_a_shorter_page_and_other_line_ends_are_refused(folder: Path) -> None:
    page = (folder / "README.md").read_bytes()
    for other in (page[:-1], b"", page.replace(b"\n", b"\r\n"), b"\xef\xbb\xbf" + page):
        (folder / "README.md").write_bytes(other)
        assert list_verify_messages(folder) == [CHANGED]


def test_a_missing_page_is_refused(folder: Path) -> None:
    (folder / "README.md").unlink()
    assert list_verify_messages(folder) == ["The file 'README.md' is missing."]


@pytest.mark.parametrize("link", [os.symlink, os.mkfifo, None])
def test_a_page_that_is_no_file_is_refused(folder: Path, tmp_path: Path, link: Any) -> None:
    page = folder / "README.md"
    shutil.copy(page, tmp_path / "elsewhere.md")
    page.unlink()
    if link is os.symlink:
        page.symlink_to(tmp_path / "elsewhere.md")
    elif link is os.mkfifo:
        os.mkfifo(page)
    else:
        page.mkdir()
    assert "The file 'README.md' is missing." in list_verify_messages(folder)


def test_the_page_of_another_release_is_refused(folder: Path, tmp_path: Path) -> None:
    readers.publish_reader_table(tmp_path / "other", "mondrian", "csv")
    shutil.copy(tmp_path / "other" / "README.md", folder / "README.md")
    assert list_verify_messages(folder) == [CHANGED]


def test_a_page_with_another_name_belongs_to_nothing(folder: Path) -> None:
    shutil.copy(folder / "README.md", folder / "readme.txt")
    assert list_verify_messages(folder) == ["'readme.txt' is not covered by the certificate."]


# Names that come from anywhere ----------------------------------------------------------------

HOSTILE = [
    "a|b", "a\\|b", "`", "``x`", "a\nb", "a\r\n\r\n# b", "\u202eabc\u2066",
    "<script>alert(1)</script>",
    '"q"', "'", "](x)", "[a](http://b)", "![a](b)", "a]()`|", "--", "```", "```\nb", "$x$", "&lt;",
    " a ", "\\", "\\\\|", "* * *", "~~~", "é😀", "\u2028x", "{{x}}", "%s", "../x", "a\tb", "\x7f",
]  # fmt: skip
VALUES = ["1", "2", "3"]


def hostile(
    name: str, folder: Path, *, method: str = "k-anonymity", role: str = "quasi", **more: Any
) -> str:
    """The page of a release with such a column, beside another one."""
    column: dict[str, Any] = {"role": role}
    if role == "quasi":
        column["hierarchy"] = {"flat": {"values": VALUES}}
    columns = {name: column, "plain": {"role": "quasi", "hierarchy": {"flat": {"values": VALUES}}}}
    table = pl.DataFrame({name: [1, 2, 3] * 20, "plain": [1, 2, 3] * 20})
    release = {"method": method, "k": 5, **more}
    publish_unjudged(table, {"columns": columns, "release": release}, output=folder)
    assert list_verify_messages(folder) == []
    return read_readme(folder)


def spelled(name: str) -> str:
    return re.sub(f"[\n{OVERRIDES}]", lambda match: f"\\x{ord(match[0]):02x}", name)


def assert_contained(name: str, page: str) -> None:
    """A name is shown in code spans, in its own cell, and nowhere becomes anything else."""
    assert readers.list_headings(page) == SECTIONS
    cells = readers.list_column_rows(page)
    assert len(cells) == 2
    assert all(len(row) == 2 for row in cells)
    # A space at either end of a code span is taken off by Markdown only where there is other text.
    assert spelled(name).strip() in [find_code(row[0]).strip() for row in cells]
    kinds = {token.type for token in [*readers.parse_tokens(page), *readers.list_inlines(page)]}
    assert not {"html_block", "html_inline", "image", "code_block", "hr"} & kinds
    links = [
        token.attrs["href"] for token in readers.list_inlines(page) if token.type == "link_open"
    ]
    assert all(re.fullmatch(r"scheme/[^/]*\.csv", str(link)) for link in links)
    assert not re.search(f"[{OVERRIDES}]", page)
    assert len(list_code_blocks(page, "python")) == 3  # pandas, Polars, counts
    assert len(list_code_blocks(page, "r")) == 2
    assert len(list_code_blocks(page, "sh")) == 1


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_of_a_generalized_column_stays_a_name(tmp_path: Path, name: str) -> None:
    assert_contained(name, hostile(name, tmp_path / "out", format="csv"))


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_of_a_kept_column_stays_a_name(tmp_path: Path, name: str) -> None:
    """Also in the statement, which names what is shown as it is."""
    assert_contained(name, hostile(name, tmp_path / "out", role="sensitive"))


@pytest.mark.parametrize("name", ["a|b", "`", "](x)", "<script>", "a\n\n# b", "\u202eabc"])
def test_a_hostile_name_of_a_noisy_column_stays_a_name(tmp_path: Path, name: str) -> None:
    """It is named in sentences as well, where a bar needs no backslash."""
    page = hostile(name, tmp_path / "out", method="k-epsilon", role="noisy", epsilon=1)
    assert_contained(name, page)
    named = [token.content for token in readers.list_inlines(page) if token.type == "code_inline"]
    assert named.count(spelled(name)) == 4  # rows, use, columns, accuracy


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12))
def test_any_name_keeps_to_its_cell_and_its_quotes(name: str) -> None:
    column = {"level": 0, "labels": "numbers", "file": "scheme/x.csv", "sha256": "0" * 64}
    release = {
        "file": "data.csv", "form": "counted", "sha256": "0" * 64,
        "rows": 9, "classes": 1, "smallest_class": 9,
    }  # fmt: skip
    certificate = Certificate.model_validate(
        {
            "format": 1, "incrowd": "0.1.0", "method": "k-anonymity", "date": "2026-01-01",
            "guarantee": {"kind": "k-anonymity", "unit": "one row"}, "parameters": {"k": 5.0},
            "events": [], "scheme": {name: column}, "release": release, "randomness": "system",
        }
    )  # fmt: skip
    page = make_readme(certificate)
    (cells,) = readers.list_column_rows(page)
    assert find_code(cells[0]).strip() == spelled(name).strip()
    *loading, counting = list_code_blocks(page, "python")
    for code in loading:
        listed = re.search(r"for name in (\[.*\]):\n", code)
        assert listed is not None
        assert eval(listed[1], {"__builtins__": {}}) == [name, "count"]
    grouped = re.fullmatch(r'data\.groupby\((.*), dropna=False\)\["count"\]\.sum\(\)\n', counting)
    assert grouped is not None
    assert eval(grouped[1], {"__builtins__": {}}) == name


def test_what_stands_for_other_values_and_a_rule_stay_in_their_cells(tmp_path: Path) -> None:
    other, alphabet = "`|](x)<b>\n", "0123`|<>"
    columns = {
        "x": {"role": "quasi", "other": other, "hierarchy": {"flat": {"values": VALUES}}},
        "m": {"role": "quasi", "hierarchy": {"mask": {"length": 2, "alphabet": alphabet}}},
    }
    table = pl.DataFrame({"x": [1, 2, 7] * 20, "m": ["01", "12", "|`"] * 20})
    publish_unjudged(table, {"columns": columns, "release": {"method": "k-anonymity", "k": 5}},
            output=tmp_path / "out")  # fmt: skip
    assert list_verify_messages(tmp_path / "out") == []
    cells = readers.list_column_rows(read_readme(tmp_path / "out"))
    assert [find_code(row[0]) for row in cells] == ["m", "x"]
    assert find_code(cells[1][1]) == spelled(other)
    assert json.loads(find_code(cells[0][1]))["mask"]["alphabet"] == alphabet


@pytest.mark.parametrize(
    ("name", "by_person"),
    [
        ("counts-fixed", False),
        ("counts-person-counted-csv", True),
        ("k-anonymity-cluster-person", True),
        ("synthetic", False),
        ("synthetic-person-target", True),
    ],
)
def test_pages_say_whom_shares_describe_and_that_releases_are_not_joined(
    name: str, *, by_person: bool
) -> None:
    page = read_readme(Path(__file__).parents[1] / "formats" / "1" / name)
    words = "per person: a person with several rows counts once, by one row chosen at random."
    assert (words in page) == by_person
    assert "Rows of this and another release do not correspond. Do not join them" in page
