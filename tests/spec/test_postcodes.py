"""Postcodes: what is listed, how they are written, and what looks like them."""

from __future__ import annotations

import pytest

from incrowd.measure.labels import find_ambiguous_labels
from incrowd.spec.postcodes import Country, build_postcode_hierarchy, recognize_postcodes

# Countries with their values, the labels of the levels above, and a path.
LISTED: list[tuple[Country, int, list[int], tuple[str, ...]]] = [
    ("GB", 12_400, [124, 1], ("SW1", "SW", "*")),
    ("CA", 3_600, [18, 1], ("K1A", "K", "*")),
    ("NL", 9_000, [900, 90, 9, 1], ("1234", "123*", "12**", "1***", "*")),
    ("US", 962, [11, 1], ("481**", "4****", "*")),
]


@pytest.mark.parametrize(("country", "values", "groups", "path"), LISTED)
def test_what_is_listed(
    country: Country, values: int, groups: list[int], path: tuple[str, ...]
) -> None:
    built = build_postcode_hierarchy(country)
    assert len(built.values) == built.size == values
    rows = built.list_rows()
    assert [len({row[level] for row in rows}) for level in range(1, built.height)] == groups
    assert path in rows
    assert [built.locate(value) for value in built.values] == list(built.values)
    assert not find_ambiguous_labels(built)


@pytest.mark.parametrize(
    ("country", "value", "written"),
    [
        ("GB", "SW1", ["SW1A 1AA", "sw1a1aa", "SW1", "SW1A", "SW1 1AA", "SW11AA", "SW1A 1"]),
        ("GB", "SW11", ["SW11 1AA", "SW111AA", "SW11", "SW11-1AA"]),
        ("GB", "M1", ["M1 1AE", "M11AE", "m1", "M1  1AE", "M01 1AE"]),
        ("GB", "EC1", ["EC1A 1BB", "EC1A", "ec1v9aa"]),
        ("GB", "JE2", ["JE2 3AB"]),
        ("CA", "K1A", ["K1A 0B1", "k1a0b1", "K1A-0B1", "K1A"]),
        ("US", "481**", ["48104", "48104-1234", "48104 1234", "481", "481**", 48104, 48104.0]),
        ("US", "021**", ["02139", 2139]),
        ("US", "000**", ["05901", 5901, "036", "82190", "09012", "34002", "20201", "000**"]),
        ("NL", "1234", ["1234 AB", "1234AB", "1234 ab", "1234", 1234, 1234.0]),
    ],
)  # fmt: skip
def test_a_postcode_is_found_as_it_is_written(
    country: Country, value: str, written: list[object]
) -> None:
    built = build_postcode_hierarchy(country)
    assert {text: built.locate(text) for text in written} == dict.fromkeys(written, value)


@pytest.mark.parametrize(
    ("country", "strange"),
    [
        ("GB", ["BX1 1LT", "XX10 1AA", "SW", "SW1A 1AAA", "SW100", "12345", "SW1A 11A", "GIR 0AA"]),
        ("CA", ["D1A 0B1", "W1A 0B1", "K1D 0B1", "K1A 0B", "K11", 11]),
        ("US", ["4810", "481045", "48104-12", "4810A", "48***"]),
        ("NL", ["0123 AB", "123 AB", "12345", "1234 A", "1234 ABC", 123]),
    ],
)
def test_what_is_no_postcode_is_outside(country: Country, strange: list[object]) -> None:
    built = build_postcode_hierarchy(country)
    assert set(built.encode(strange).tolist()) == {built.outside}
    assert built.encode([None, " "]).tolist() == [built.null] * 2


@pytest.mark.parametrize(
    ("texts", "country"),
    [
        (["SW1A 1AA", "M1 1AE", "EH12 9XX"], "GB"),
        (["SW1A", "EH12", "M1"], "GB"),
        (["E11", "B20", "G40"], None),  # diagnoses?
        (["K1A 0B1", "M5V3L9", "v6b"], "CA"),
        (["1234 AB", "1011ab", "9999 XX"], "NL"),
        (["1234", "1011", "9999"], None),
        (["SW1A 1AA", "K1A 0B1", "1234 AB"], None),
        (["SW1A 1AA", "M1 1AE"], None),
        ([], None),
    ],
)
def test_what_looks_like_postcodes(texts: list[str], country: str | None) -> None:
    assert recognize_postcodes(texts) == country
