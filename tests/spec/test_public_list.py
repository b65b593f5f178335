"""Public lists as data: the hierarchies that are built from them stay what they are."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import pytest

from incrowd.codes.hierarchy import Hierarchy
from incrowd.spec import countries, icd, postcodes
from incrowd.spec.arx import format_rows
from incrowd.spec.public_list import read_list

BUILT: list[tuple[Callable[[], Hierarchy], str]] = [
    (lambda: countries.build_country_hierarchy("alpha-2"), "65c3387041435ce0"),
    (lambda: countries.build_country_hierarchy("alpha-3"), "b5b6436841600033"),
    (lambda: countries.build_country_hierarchy("names"), "ad397823ac0598c1"),
    (lambda: icd.build_icd_hierarchy(10), "c86bae5ade62dbe0"),
    (lambda: icd.build_icd_hierarchy(9), "44830eb1a4a641bc"),
    (lambda: postcodes.build_postcode_hierarchy("GB"), "64f52fe8dc040621"),
    (lambda: postcodes.build_postcode_hierarchy("CA"), "771974112a7016b2"),
    (lambda: postcodes.build_postcode_hierarchy("NL"), "654d13c081aff818"),
]


@pytest.mark.parametrize(("build", "digest"), BUILT)
def test_published_hierarchies_stay_byte_for_byte(
    build: Callable[[], Hierarchy], digest: str
) -> None:
    """Releases list what these hierarchies hold: a changed list is a changed scheme."""
    text = format_rows(build())
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == digest


def test_every_other_name_of_a_country_is_understood() -> None:
    listed = read_list("country_names")
    assert len(listed) > 100
    assert [(row["name"], countries.find_country(row["name"])) for row in listed] == [
        (row["name"], row["alpha_2"]) for row in listed
    ]


@pytest.mark.parametrize("name", ["countries", "country_names", "icd_chapters", "postcode_areas"])
def test_lists_are_whole(name: str) -> None:
    rows = read_list(name)
    assert all(None not in row and all(row.values()) for row in rows)
    assert len({tuple(row.values()) for row in rows}) == len(rows)
