"""The certificate as a page: it says what the certificate says, to anybody, and nothing else."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.pages import Outline, outline, outside

from incrowd.privacy.counts import law_of
from incrowd.release.beside import certificate_page, pages
from incrowd.release.certificate import PAGE, README, Certificate
from incrowd.release.statements.format_3 import noise_of
from incrowd.release.statements.promises_5 import (
    WRONGLY,
    at_most,
    factor,
    in_short,
    promised,
    rightly,
)
from incrowd.release.verify import read_certificate, verify

FORMATS = Path(__file__).parents[1] / "formats"
FOLDERS = sorted(path for path in (FORMATS / "5").iterdir() if path.is_dir())
CHANGED = "The file 'certificate.html' does not say what the certificate says."


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_the_page_says_what_the_certificate_says(folder: Path) -> None:
    certificate = read_certificate(folder)
    page = (folder / PAGE).read_bytes().decode()
    assert certificate_page(certificate) == page
    found = outline(page)
    assert outside(page) == []
    known = certificate.guarantee
    assert known.statement in found.text
    for said in (certificate.date, certificate.incrowd, certificate.seal, known.kind, known.unit):
        assert said in found.text
    for table in certificate.tables:
        release = table.release
        assert f"{release.rows:,} rows" in found.text
        assert {release.file, release.sha256} <= set(found.codes)
        for name, column in table.scheme.items():
            assert name in found.codes
            assert column.file is None or {column.file, column.sha256} <= set(found.codes)
        assert set(table.parameters) <= set(found.codes)
    if known.epsilon is not None and known.delta is not None:
        assert f"δ = {known.delta!r}" in found.text
    if certificate.signature is not None:
        assert {certificate.signature.public_key, certificate.signature.value} <= set(found.codes)
    assert ("not signed" in found.text) == (certificate.signature is None)
    nothing = bool(certificate.rehearsal) or certificate.randomness != "system"
    assert ("is right about at most" in found.text) == (known.epsilon is not None and not nothing)
    assert ("Nothing: " in found.text) == nothing
    assert "undefined" not in page
    assert "None" not in found.text


def test_formats_before_have_no_such_page() -> None:
    for number in range(1, 5):
        folder = sorted(path for path in (FORMATS / str(number)).iterdir() if path.is_dir())[0]
        assert PAGE not in pages(read_certificate(folder))
        assert not (folder / PAGE).exists()


# What verify says of another page -------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copytree(FORMATS / "5" / "k-anonymity", tmp_path / "out")
    return tmp_path / "out"


def test_any_other_page_is_refused(folder: Path) -> None:
    path = folder / PAGE
    page = path.read_bytes()
    assert verify(folder) == []
    others = [
        page[:-1], b"", page + b" ", page.replace(b"\n", b"\r\n"), b"\xef\xbb\xbf" + page,
        page.replace(b"k = 5", b"k = 6", 1), bytes([page[0] ^ 1]) + page[1:],
        (FORMATS / "5" / "k-epsilon" / PAGE).read_bytes(),
    ]  # fmt: skip
    for other in others:
        assert other != page
        path.write_bytes(other)
        assert verify(folder) == [CHANGED]


def test_a_missing_page_and_one_that_is_no_file_are_refused(folder: Path, tmp_path: Path) -> None:
    (folder / PAGE).rename(tmp_path / "elsewhere.html")
    assert verify(folder) == ["The file 'certificate.html' is missing."]
    (folder / PAGE).symlink_to(tmp_path / "elsewhere.html")
    assert "The file 'certificate.html' is missing." in verify(folder)
    (folder / PAGE).unlink()
    os.mkfifo(folder / PAGE)
    assert "The file 'certificate.html' is missing." in verify(folder)


def test_a_page_beside_a_certificate_of_an_older_format_belongs_to_nothing(tmp_path: Path) -> None:
    shutil.copytree(FORMATS / "4" / "k-anonymity", tmp_path / "out")
    assert verify(tmp_path / "out") == []
    shutil.copy(FORMATS / "5" / "k-anonymity" / PAGE, tmp_path / "out" / PAGE)
    assert verify(tmp_path / "out") == ["'certificate.html' is not covered by the certificate."]


def test_an_older_format_with_a_page_of_the_new_one_cannot_be_claimed(folder: Path) -> None:
    """Who takes the page away and calls the release one of format 4 breaks the seal."""
    plain = json.loads((folder / "certificate.json").read_text())
    plain["format"] = 4
    older = Certificate.model_validate_json(json.dumps(plain))
    (folder / "certificate.json").write_bytes(older.canonical())
    (folder / PAGE).unlink()
    assert any("its seal does not fit" in problem for problem in verify(folder))


# Names that come from anywhere ----------------------------------------------------------------


def made_up(name: str, **more: Any) -> Certificate:
    column = {"level": 0, "labels": "text", "rule": {"flat": {}}, "other": name}
    release = {
        "file": "data.csv", "form": "weighted", "sha256": "0" * 64,
        "rows": 9, "classes": 1, "smallest_class": 9,
    }  # fmt: skip
    noisy = {f"{name}!": {"kind": "number", "step": "0.1", "bounds": ("0", "9")}}
    return Certificate.model_validate(
        {
            "format": 5, "incrowd": "0.1.0", "method": "k-epsilon", "date": "2026-01-01",
            "guarantee": {"kind": name, "unit": "one row", "statement": name}, "events": [],
            "parameters": {"k": 5.0, "epsilon": 1.0, name: name}, "kept": [f"{name}?"],
            "noisy": noisy, "scheme": {name: column}, "release": release, "randomness": "system",
            **more,
        }
    )  # fmt: skip


HOSTILE = [
    "<script>alert(1)</script>", "</code></td></table>", "&lt;", "\"><img src=x onerror=y>",
    "<!--", "]]>", "</style>", "a\nb", "\u202eabc\u2066", "\x00\x1f", "{{x}}", "javascript:x", " ",
]  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_stays_a_name(name: str) -> None:
    page = certificate_page(made_up(name))
    found, usual = outline(page), outline(certificate_page(made_up("x")))
    assert found.tags == usual.tags  # nothing became markup
    assert found.attributes == usual.attributes
    assert outside(page) == []
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]", page)


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12))
def test_any_name_keeps_to_its_place(name: str) -> None:
    page = certificate_page(made_up(name))
    found, usual = outline(page), outline(certificate_page(made_up("x")))
    assert (found.tags, found.attributes) == (usual.tags, usual.attributes)


def test_the_parser_of_these_tests_sees_markup() -> None:
    assert outline("<p>a<script>b</script></p>") == Outline(
        ["p", "script"], [], "a b", [], ["script"]
    )
    assert outside('<img src="http://x">') == ["img src=http://x"]
    assert outside("<style>a{background:url(x)}</style>") != []


# The figures ----------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 3.0])
@pytest.mark.parametrize("delta", [0.0, 1e-6, 0.1])
def test_no_test_of_membership_does_better_than_the_page_says(epsilon: float, delta: float) -> None:
    """The least private of all such mechanisms: it tells with delta, else answers at random."""
    yes = (1 - delta) / (1 + 2.718281828459045**epsilon)
    sure, with_, without = delta, 1 - delta - yes, yes  # told for certain; yes if in; yes if not
    # Tests that say yes to more and more: to what is certain, then part of the answers, ...
    for share in (0.0, 0.25, 0.5, 1.0):
        wrongly, right = share * without, sure + share * with_
        assert right <= rightly(wrongly, epsilon, delta) + 1e-12
    assert sure + with_ == pytest.approx(rightly(without, epsilon, delta))  # and it is reached


def test_shares_and_factors_are_rounded_up() -> None:
    assert at_most(0.027182818) == "2.72 %"
    assert at_most(0.02710001) == "2.72 %"
    assert at_most(1.2) == "100.00 %"
    assert factor(1.0) == "2.719"
    assert factor(0.0) == "1"
    assert factor(1e9) == "more than 1e304"


def test_both_pages_are_made_for_new_releases() -> None:
    assert set(pages(read_certificate(FOLDERS[0]))) == {README, PAGE}


# Of whom the promise is -----------------------------------------------------------------------


def best_test(wrongly: float, yes: list[float], no: list[float]) -> float:
    """How often the most powerful test says yes rightly, for how often it does so wrongly."""
    pairs = sorted(zip(yes, no, strict=True), key=lambda p: p[1] / p[0] if p[0] else math.inf)
    rightly_, left = 0.0, wrongly
    for right, wrong in pairs:
        share = 1.0 if wrong <= left else left / wrong
        rightly_, left = rightly_ + share * right, left - share * wrong
    return rightly_


def test_of_a_table_that_is_a_sample_the_promise_is_to_the_population() -> None:
    certificate = read_certificate(FORMATS / "5" / "counts-already-sampled")
    known, parameters = certificate.guarantee, certificate.parameters
    assert known.epsilon is not None
    assert known.delta is not None
    # What is shown of a large cell, with somebody in the table, and without
    law, r = law_of(noise_of(parameters)), int(parameters["r"])
    chances = [law.at_least(x) - law.at_least(x + 1) for x in range(-r, r + 1)]
    table, none = [0.0, *chances], [*chances, 0.0]
    rate = float(parameters["already_sampled"])
    population = [rate * p + (1 - rate) * q for p, q in zip(table, none, strict=True)]
    for wrongly in WRONGLY:
        most = rightly(wrongly, known.epsilon, known.delta)
        assert best_test(wrongly, population, none) <= most + 1e-12
        assert best_test(wrongly, table, none) > most  # so it must not be said of the table
    for words in (promised(certificate), *in_short(certificate)):
        assert "is in the original table" not in words
        assert "row of the original table" not in words
    assert "population of which the original table is a random sample" in promised(certificate)


def test_of_any_other_table_the_promise_is_to_its_rows() -> None:
    certificate = read_certificate(FORMATS / "5" / "counts-fixed")
    assert "population" not in promised(certificate)
    assert "To every single row of the original table" in promised(certificate)
