"""The certificate as a page: it says what the certificate says, to anybody, and nothing else."""

from __future__ import annotations

import html
import math
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.findings import list_verify_messages
from support.pages import Outline, list_external_loads, read_outline

from incrowd.privacy.draw_parameters import build_noise_spread
from incrowd.privacy.protection import FALSE_POSITIVE_RATES, max_true_positive_rate
from incrowd.release.certificate import PAGE, README, Certificate
from incrowd.release.pages import make_pages
from incrowd.release.verify import read_certificate

FORMATS = Path(__file__).parents[1] / "formats"
FOLDERS = sorted(path for path in (FORMATS / "1").iterdir() if path.is_dir())
CHANGED = "The file 'certificate.html' differs from the certificate."


def certificate_page(certificate: Certificate) -> str:
    return make_pages(certificate)[PAGE].decode()


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_the_page_says_what_the_certificate_says(folder: Path) -> None:
    certificate = read_certificate(folder)
    page = (folder / PAGE).read_bytes().decode()
    assert certificate_page(certificate) == page
    outline = read_outline(page)
    assert list_external_loads(page) == []
    guarantee = certificate.guarantee
    for sentence in guarantee.statement:
        assert f"<li>{html.escape(sentence.text)}</li>" in page.replace("&#39;", "&#x27;")
    for item in (
        certificate.date,
        certificate.incrowd,
        certificate.seal,
        guarantee.kind,
        guarantee.unit,
    ):
        assert item in outline.text
    for table in certificate.tables:
        release = table.release
        assert f"{release.rows:,} rows" in outline.text
        assert {release.file, release.sha256} <= set(outline.codes)
        for name, column in table.scheme.items():
            assert name in outline.codes
            assert column.file is None or {column.file, column.sha256} <= set(outline.codes)
        assert set(table.parameters) <= set(outline.codes)
    if guarantee.epsilon is not None and guarantee.delta is not None:
        assert f"δ = {guarantee.delta!r}" in outline.text
    if certificate.signature is not None:
        assert {certificate.signature.public_key, certificate.signature.value} <= set(outline.codes)
    assert ("not signed" in outline.text) == (certificate.signature is None)
    nothing = bool(certificate.rehearsal) or certificate.randomness != "system"
    assert ("recognizes at most" in outline.text) == (guarantee.epsilon is not None and not nothing)
    assert ("Nothing is guaranteed." in outline.text) == nothing
    assert ("This is NOT differential privacy" in outline.text) == (guarantee.epsilon is None)
    assert "undefined" not in page
    assert "None" not in outline.text


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_a_page_begins_with_three_numbers_and_three_sentences(folder: Path) -> None:
    first, _, rest = (folder / PAGE).read_text(encoding="utf-8").partition("<details")
    assert first.count("<dt>") == first.count("<li>") == 3
    sections = re.findall(r"<details>\s*<summary><h2>.*?</details>", f"<details{rest}", re.DOTALL)
    assert len(sections) == rest.count("<h2>") >= 7  # everything else is folded
    guarantee = read_certificate(folder).guarantee
    warned = guarantee.epsilon is None or folder.name in ("seeded", "rehearsal")
    assert ('class="warn"' in first) == warned  # a warning is never folded


# What verify says of another page -------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copytree(FORMATS / "1" / "k-anonymity-ola", tmp_path / "out")
    return tmp_path / "out"


def test_any_other_page_is_refused(folder: Path) -> None:
    path = folder / PAGE
    page = path.read_bytes()
    assert list_verify_messages(folder) == []
    others = [
        page[:-1], b"", page + b" ", page.replace(b"\n", b"\r\n"), b"\xef\xbb\xbf" + page,
        page.replace(b"5-anonymous", b"6-anonymous", 1), bytes([page[0] ^ 1]) + page[1:],
        (FORMATS / "1" / "k-epsilon" / PAGE).read_bytes(),
    ]  # fmt: skip
    for other in others:
        assert other != page
        path.write_bytes(other)
        assert list_verify_messages(folder) == [CHANGED]


def test_a_missing_page_and_one_that_is_no_file_are_refused(folder: Path, tmp_path: Path) -> None:
    (folder / PAGE).rename(tmp_path / "elsewhere.html")
    assert list_verify_messages(folder) == ["The file 'certificate.html' is missing."]
    (folder / PAGE).symlink_to(tmp_path / "elsewhere.html")
    assert "The file 'certificate.html' is missing." in list_verify_messages(folder)
    (folder / PAGE).unlink()
    os.mkfifo(folder / PAGE)
    assert "The file 'certificate.html' is missing." in list_verify_messages(folder)


# Names that come from anywhere ----------------------------------------------------------------


def made_up(name: str, **more: Any) -> Certificate:
    column = {"level": 0, "labels": "text", "rule": {"flat": {}}, "other": name}
    release = {
        "file": "data.csv", "form": "counted", "sha256": "0" * 64,
        "rows": 9, "classes": 1, "smallest_class": 9,
    }  # fmt: skip
    noisy = {f"{name}!": {"kind": "number", "step": "0.1", "bounds": ("0", "9")}}
    return Certificate.model_validate(
        {
            "format": 1, "incrowd": "0.1.0", "method": "k-epsilon", "date": "2026-01-01",
            "guarantee": {
                "kind": name, "unit": "one row", "statement": [{"key": "a", "text": name}]
            }, "events": [],
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
    result, usual = read_outline(page), read_outline(certificate_page(made_up("x")))
    assert result.tags == usual.tags  # nothing became markup
    assert result.attributes == usual.attributes
    assert list_external_loads(page) == []
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]", page)


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12))
def test_any_name_keeps_to_its_place(name: str) -> None:
    page = certificate_page(made_up(name))
    result, usual = read_outline(page), read_outline(certificate_page(made_up("x")))
    assert (result.tags, result.attributes) == (usual.tags, usual.attributes)


def test_the_parser_of_these_tests_sees_markup() -> None:
    assert read_outline("<p>a<script>b</script></p>") == Outline(
        ["p", "script"], [], "a b", [], ["script"]
    )
    assert list_external_loads('<img src="http://x">') == ["img src=http://x"]
    assert list_external_loads("<style>a{background:url(x)}</style>") != []


def test_a_release_has_two_pages() -> None:
    assert set(make_pages(read_certificate(FOLDERS[0]))) == {README, PAGE}


# Of whom the promise is -----------------------------------------------------------------------


def best_test(wrongly: float, yes: list[float], no: list[float]) -> float:
    """How often the most powerful test says yes rightly, for how often it does so wrongly."""
    pairs = sorted(zip(yes, no, strict=True), key=lambda p: p[1] / p[0] if p[0] else math.inf)
    identified, left = 0.0, wrongly
    for right, wrong in pairs:
        share = 1.0 if wrong <= left else left / wrong
        identified, left = identified + share * right, left - share * wrong
    return identified


def test_of_a_table_that_is_a_sample_the_promise_is_to_the_population() -> None:
    certificate = read_certificate(FORMATS / "1" / "counts-already-sampled")
    guarantee, parameters = certificate.guarantee, certificate.parameters
    assert guarantee.epsilon is not None
    assert guarantee.delta is not None
    # What is shown of a large cell, with somebody in the table, and without
    law, r = build_noise_spread(parameters), int(parameters["r"])
    chances = [law.compute_tail(x) - law.compute_tail(x + 1) for x in range(-r, r + 1)]
    table, none = [0.0, *chances], [*chances, 0.0]
    rate = float(parameters["already_sampled"])
    population = [rate * p + (1 - rate) * q for p, q in zip(table, none, strict=True)]
    for wrongly in FALSE_POSITIVE_RATES:
        most = max_true_positive_rate(wrongly, guarantee.epsilon, guarantee.delta)
        assert best_test(wrongly, population, none) <= most + 1e-12
        assert best_test(wrongly, table, none) > most  # so it must not be said of the table
    text = read_outline(certificate_page(certificate)).text
    keys = [sentence.key for sentence in guarantee.statement]
    assert {"population", "assumption_sample"} <= set(keys)
    assert "people with one row in the table" not in text
    assert "people with one row in the population from which the table was sampled" in text


def test_of_any_other_table_the_promise_is_to_its_rows() -> None:
    certificate = read_certificate(FORMATS / "1" / "counts-fixed")
    text = read_outline(certificate_page(certificate)).text
    assert "population" not in text
    assert "people with one row in the table" in text
