"""Diagnoses: what is listed, how the levels nest, how codes are written, what looks like them."""

from __future__ import annotations

import itertools

import pytest

from incrowd.codes.hierarchy import Hierarchy
from incrowd.measure.labels import find_ambiguous_labels
from incrowd.spec.icd import Version, build_icd_hierarchy, recognize_icd

VERSIONS: tuple[Version, ...] = (10, 9)


def path(built: Hierarchy, value: object) -> list[str | None]:
    (code,) = built.encode([value])
    return [built.labels[level][built.groups[level][code]] for level in range(built.height)]


@pytest.mark.parametrize(
    ("version", "category", "ten", "chapter"),
    [
        (10, "E11", "E10-E19", "E00-E90"),
        (10, "E90", "E90", "E00-E90"),
        (10, "B99", "B90-B99", "A00-B99"),
        (10, "C7A", "C70-C79", "C00-D49"),
        (10, "D49", "D40-D49", "C00-D49"),
        (10, "D50", "D50-D59", "D50-D90"),
        (10, "F00", "F00-F09", "F00-F99"),
        (10, "H59", "H50-H59", "H00-H59"),
        (10, "H60", "H60-H69", "H60-H95"),
        (10, "K95", "K90-K95", "K00-K95"),
        (10, "O9A", "O90-O99", "O00-O9A"),
        (10, "QA0", "QA0", "Q00-QA0"),
        (10, "T98", "T90-T98", "S00-T98"),
        (10, "U07", "U00-U09", "U00-U99"),
        (10, "X59", "X50-X59", "V00-Y99"),
        (10, "Z3A", "Z30-Z39", "Z00-Z99"),
        (9, "001", "001-009", "001-139"),
        (9, "250", "250-259", "240-279"),
        (9, "285", "280-289", "280-289"),
        (9, "999", "990-999", "800-999"),
        (9, "V01", "V01-V09", "V01-V91"),
        (9, "V91", "V90-V91", "V01-V91"),
        (9, "E849", "E840-E849", "E000-E999"),
    ],
)
def test_category_ten_and_chapter(version: Version, category: str, ten: str, chapter: str) -> None:
    assert path(build_icd_hierarchy(version), category) == [category, ten, chapter, "*"]


@pytest.mark.parametrize("version", VERSIONS)
def test_every_label_covers_what_lies_between_its_ends(version: Version) -> None:
    """And each group lies in one group above, as the labels say."""
    built = build_icd_hierarchy(version)
    assert [built.locate(value) for value in built.values] == list(built.values)
    assert not find_ambiguous_labels(built)
    for row in built.list_rows():
        for label in row[1:3]:
            low, high = label.split("-") if "-" in label else (label, label)
            place = row[0] if row[0][-1].isdecimal() else f"{row[0][:-1]}9"
            assert low <= place <= high
        assert len(row) == 4


def test_what_is_listed() -> None:
    ten, nine = (build_icd_hierarchy(version) for version in VERSIONS)
    possible = {"".join(x) for x in itertools.product("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789",
                                                      "0123456789AB")}  # fmt: skip
    missing = possible - set(ten.values)
    assert set(ten.values) - possible == {"QA0"}
    # Behind the last chapter of a letter: D91-D99, E91-E99, H96-H99, K96-K99, P97-P99, T99.
    assert {x[:2] for x in missing} == {"D9", "E9", "H9", "K9", "P9", "T9"}
    assert sorted(x for x in missing if x[-1].isdecimal()) == [
        *(f"{letter}9{x}" for letter in "DE" for x in range(1, 10)),
        *(f"{letter}9{x}" for letter in "HK" for x in range(6, 10)),
        *(f"P9{x}" for x in range(7, 10)), "T99",
    ]  # fmt: skip
    assert len(nine.values) == 999 + 91 + 1000
    assert len(set(ten.labels[2]) - {None, "*"}) == 22
    assert len(set(nine.labels[2]) - {None, "*"}) == 19


@pytest.mark.parametrize(
    ("version", "category", "written"),
    [
        (10, "E11", ["E11", "E11.9", "e119", " e11.9 ", "E11.65", "E1165", "E11.-", "E11.9+"]),
        (10, "S72", ["S72.001A", "s72001a", "S72.-", "S72."]),
        (10, "M1A", ["M1A.0110", "m1a"]),
        (10, "QA0", ["QA0.0101"]),
        (9, "250", ["250.01", "25001", "250", "250.00", "2500", 250, 250.01, 25001, "250."]),
        (9, "008", ["008.45", "8.45", 8.45, "8", 8, "00845", "008"]),
        (9, "V30", ["V30.0", "v3001", "V30"]),
        (9, "E849", ["E849.0", "E8490", "e849"]),
    ],
)
def test_a_code_is_found_by_its_category(
    version: Version, category: str, written: list[object]
) -> None:
    built = build_icd_hierarchy(version)
    assert {text: built.locate(text) for text in written} == dict.fromkeys(written, category)


@pytest.mark.parametrize(
    ("version", "strange"),
    [
        (10, ["E1", "11", "250.01", "EE1", "E11.99999", "E11 9", "E95", "diabetes", "E11.9, I10"]),
        (9, ["E11.9", "E84", "000", "V00", "V95", "250.001", "250001", "-250", "25x", "diabetes"]),
    ],
)
def test_what_is_no_code_is_outside(version: Version, strange: list[object]) -> None:
    built = build_icd_hierarchy(version)
    assert set(built.encode(strange).tolist()) == {built.outside}
    assert built.encode([None, ""]).tolist() == [built.null] * 2


@pytest.mark.parametrize(
    ("texts", "version"),
    [
        (["E11.9", "I10", "j459"], 10),
        (["250.01", "V30.0", "E849.0"], 9),
        (["250.01", "V57", "8", "276"], 9),
        (["008.45", "250.01", "401.9"], 9),
        (["250", "401", "428"], None),
        (["170.5", "182", "165.25"], None),
        (["E11.9", "I10"], None),
        (["VW", "E-mail", "250"], None),
        ([], None),
    ],
)
def test_what_looks_like_diagnoses(texts: list[str], version: int | None) -> None:
    assert recognize_icd(texts) == version
