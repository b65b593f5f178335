"""Countries: the facts by their numbers and by example, spellings, and what looks like them."""

from __future__ import annotations

from collections import Counter

import pytest

from incrowd.measure.labels import find_ambiguous_labels
from incrowd.spec.countries import Codes, build_country_hierarchy, find_country, recognize_countries

# How many countries and territories the UN (M 49) has in each region, Taiwan added.
SIZES = {
    "Eastern Africa": 22, "Middle Africa": 9, "Northern Africa": 7, "Southern Africa": 5,
    "Western Africa": 17, "Caribbean": 28, "Central America": 8, "Northern America": 5,
    "South America": 16, "Antarctica": 1, "Central Asia": 5, "Eastern Asia": 8,
    "South-eastern Asia": 11, "Southern Asia": 9, "Western Asia": 18, "Eastern Europe": 10,
    "Northern Europe": 16, "Southern Europe": 16, "Western Europe": 9,
    "Australia and New Zealand": 6, "Melanesia": 5, "Micronesia": 8, "Polynesia": 10,
}  # fmt: skip
ALL: tuple[Codes, ...] = ("alpha-2", "alpha-3", "names")


def test_all_of_iso_3166_are_there_and_in_their_regions() -> None:
    by_two, by_three, by_name = (build_country_hierarchy(codes).list_rows() for codes in ALL)
    assert len(by_two) == len({row[0] for row in by_three}) == len({row[0] for row in by_name})
    assert len(by_two) == 249
    assert Counter(row[1] for row in by_two) == SIZES
    assert Counter(row[2] for row in by_two) == {
        "Africa": 60, "Americas": 57, "Antarctica": 1, "Asia": 51, "Europe": 51, "Oceania": 29,
    }  # fmt: skip
    assert [row[1:] for row in by_two] == [row[1:] for row in by_three]
    assert [row[1:] for row in by_two] == [row[1:] for row in by_name]
    assert {len(row[0]) for row in by_two} == {2}
    assert {len(row[0]) for row in by_three} == {3}


@pytest.mark.parametrize(
    ("two", "three", "name", "region", "continent"),
    [
        ("CH", "CHE", "Switzerland", "Western Europe", "Europe"),
        ("TR", "TUR", "Türkiye", "Western Asia", "Asia"),
        ("MX", "MEX", "Mexico", "Central America", "Americas"),
        ("CD", "COD", "Democratic Republic of the Congo", "Middle Africa", "Africa"),
        ("NR", "NRU", "Nauru", "Micronesia", "Oceania"),
        ("AQ", "ATA", "Antarctica", "Antarctica", "Antarctica"),
    ],
)
def test_a_country_under_each_of_the_codes(
    two: str, three: str, name: str, region: str, continent: str
) -> None:
    for codes, label in zip(ALL, (two, three, name), strict=True):
        built = build_country_hierarchy(codes)
        (row,) = (row for row in built.list_rows() if row[0] == label)
        assert row == (label, region, continent, "*")
        assert {built.locate(text) for text in (two, three.lower(), f" {name.upper()} ")} == {label}


@pytest.mark.parametrize("codes", ALL)
def test_every_value_finds_itself_and_no_label_has_two_meanings(codes: Codes) -> None:
    built = build_country_hierarchy(codes)
    assert [built.locate(value) for value in built.values] == list(built.values)
    assert not find_ambiguous_labels(built)
    assert built.locate(None) is None
    outside = ["", "XX", "ZZZ", "Atlantis", "of the", 840, True, "Democratic Republic of Korea"]
    assert [int(code) for code in built.encode(outside)] == [built.null] + [built.outside] * 7


@pytest.mark.parametrize(
    ("two", "spellings"),
    [
        ("US", "US|us|USA|U.S.|U.S.A.|United States|United-States|united states of america"),
        ("GB", "UK|U.K.|Great Britain|United Kingdom|Scotland|Britain (Great)"),
        ("KR", "South Korea|Korea, South|Korea, Republic of|Korea, Rep.|Republic of Korea|Korea"),
        ("KP", "North Korea|Korea, Democratic People’s Republic of|Korea, Dem. People's Rep."),
        ("CD", "Congo, The Democratic Republic of the|Congo, Dem. Rep.|DR Congo|Zaire"),
        ("CG", "Congo|Congo, Rep.|Republic of the Congo|Congo-Brazzaville"),
        ("CI", "Côte d’Ivoire|Cote D'Ivoire|COTE DIVOIRE|Ivory Coast"),
        ("CN", "China|People's Republic of China"),
        ("TW", "Taiwan|Taiwan, Province of China|Republic of China"),
        ("CZ", "Czechia|Czech Republic"),
        ("TR", "Turkey|Türkiye|TURKIYE|Republic of Türkiye"),
        ("RU", "Russia|Russian Federation"),
        ("IR", "Iran|Iran (Islamic Republic of)"),
        ("VN", "Vietnam|Viet Nam"),
        ("LC", "St. Lucia|Saint Lucia|St Lucia"),
        ("ST", "ST|Sao Tome & Principe"),
        ("AD", "AND|Andorra"),
        ("IS", "is|Iceland|Republic of Iceland"),
        ("VI", "Virgin Islands, U.S.|U.S. Virgin Islands|US Virgin Is."),
        ("BA", "Bosnia and Herzegovina|Bosnia & Herzegovina|Bosnia-Herzegovina"),
        ("GR", "EL|Greece"),
    ],
)
def test_a_country_by_any_other_name(two: str, spellings: str) -> None:
    result = {text: find_country(text) for text in spellings.split("|")}
    assert set(result.values()) == {two}, result


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        (["US", "FR", "de"], "alpha-2"),
        (["USA", "FRA", "DEU"], "alpha-3"),
        (["United States", "France", "Germany", "UK"], "names"),
        (["US", "FRA", "Germany"], None),
        (["US", "FR"], None),
        (["US", "US", "FR", "FR "], None),
        (["CA", "DE", "GA", "IL"], None),  # states
        (["CA", "DE", "GA", "IL", "FR"], "alpha-2"),
        (["red", "green", "blue"], None),
        ([], None),
    ],
)
def test_what_looks_like_countries(texts: list[str], kind: str | None) -> None:
    assert recognize_countries(texts) == kind


def test_one_in_twenty_may_be_something_else() -> None:
    codes = build_country_hierarchy("alpha-3").values
    assert recognize_countries([*codes[:19], "?"]) == "alpha-3"
    assert recognize_countries([*codes[:18], "?"]) is None
