"""What every kind of hierarchy says of itself, held against what is built from it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from incrowd.spec.build import ColumnHierarchies, build_hierarchy, is_open
from incrowd.spec.file import parse_spec
from incrowd.spec.hierarchies import Groups, HierarchyChoice, list_kinds
from incrowd.spec.model import Column
from incrowd.spec.problem import SpecError

# A declaration, values of its domain, and whether it is open and ordered.
DECLARED: list[tuple[Any, list[object], bool, bool]] = [
    ({"intervals": {"from": 0, "to": 9, "widths": [5]}}, [3, 4, 7], False, True),
    ({"intervals": {"from": 0, "to": 0}}, [0], False, True),
    ({"mask": {"length": 3}}, ["123", "456", "789"], True, False),
    ({"groups": {"P": ["a", "b"], "Q": ["c"]}}, ["a", "b", "c"], False, False),
    ({"groups": {"low": [1, 2], "high": [3]}}, [1, 2, 3], False, True),
    ({"dates": {"from": "2020-01-01", "to": "2020-12-31"}}, ["2020-02-03"], False, True),
    ({"order": {"values": ["low", "mid", "high"], "runs": [2]}}, ["mid"], False, True),
    ({"csv": "letters.csv"}, ["a", "b"], False, False),
    ({"csv": {"file": "numbers.csv"}}, [1, 2], False, True),
    ({"flat": {"values": ["a", "b", "c"]}}, ["a"], False, False),
    ({"flat": {"values": [1, 2, 3]}}, [1], False, True),
    ({"flat": {"values": [1, 2]}}, [1], False, False),
    ("flat", ["a", "b", "c"], True, False),
    ("flat", [1, 2, 3], True, True),
    ("countries", ["FR", "DEU", "Korea, Republic of"], False, False),
    ({"countries": {"codes": "names"}}, ["fr", "Germany"], False, False),
    ("icd", ["E11.9", "c7a"], False, False),
    ({"icd": {"version": 9}}, ["250.01", 250.01, 8, "V30.0"], False, False),
    ({"postcodes": {"country": "GB"}}, ["SW1A 1AA", "m1"], False, False),
    ({"postcodes": {"country": "CA"}}, ["K1A 0B1"], False, False),
    ({"postcodes": {"country": "NL"}}, ["1234 AB", 1234], False, False),
    ({"postcodes": {"country": "US"}}, ["48104", 2139], False, False),
    ({"geo": {"lat": "x", "lon": "y", "sizes": [5, 15]}}, ["50..55 N, 10..15 E"], False, False),
    ({"geo": {"lat": "x", "lon": "y", "hexagons": [1, 0]}}, ["811fbffffffffff"], False, False),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "letters.csv").write_text("a;x;*\nb;x;*\nc;y;*\n")
    (tmp_path / "numbers.csv").write_text("1;x;*\n2;x;*\n3;y;*\n")
    return tmp_path


@pytest.mark.parametrize(("declared", "values", "opened", "ordered"), DECLARED)
def test_a_declaration_says_what_is_built_from_it(
    folder: Path, declared: Any, values: list[object], opened: bool, ordered: bool
) -> None:
    column = Column.model_validate({"role": "quasi", "hierarchy": declared})
    built = build_hierarchy(column, folder=folder, values=values)
    assert (built.open, built.ordered) == (is_open(column), ordered) == (opened, ordered)
    column_hierarchies = ColumnHierarchies({"x": column}, folder)
    assert column_hierarchies.height("x") == built.height
    assert column_hierarchies.is_rooted("x") == built.is_rooted
    assert column_hierarchies.get_hierarchy("x", lambda: values).height == built.height
    assert built.outside not in built.encode(values)


def test_every_kind_is_above() -> None:
    kinds = {x if isinstance(x, str) else next(iter(x)) for x, *_ in DECLARED}
    assert kinds == set(list_kinds()) == set(HierarchyChoice.model_fields)


@pytest.mark.parametrize("kind", sorted(set(list_kinds()) - {"groups", "csv"}))
def test_a_mistyped_key_of_any_kind_is_recognized(kind: str) -> None:
    keys = [field.alias or name for name, field in list_kinds()[kind].model_fields.items()]
    for key in keys:
        with pytest.raises(SpecError) as error:
            parse_spec(f"columns: {{a: {{role: quasi, hierarchy: {{{kind}: {{{key}x: 1}}}}}}}}")
        assert f"unknown key '{key}x'. Did you mean '{key}'?" in str(error.value)


def test_groups_are_as_they_are_written() -> None:
    written = {"Europe": {"West": ["FR"], "East": ["PL"]}}
    read = HierarchyChoice.model_validate({"groups": written})
    assert read.declaration == Groups(written)
    assert read.model_dump(exclude_none=True) == {"groups": written}


@pytest.mark.parametrize(
    ("groups", "says"),
    [
        ("{}", "dictionary should have at least 1 item after validation, not 0, got {}."),
        ("[a, b]", "must be a mapping of keys to values, got ['a', 'b']."),
        ("5", "must be a mapping of keys to values, got 5."),
    ],
)
def test_what_are_no_groups(groups: str, says: str) -> None:
    with pytest.raises(SpecError) as error:
        parse_spec(f"columns: {{a: {{role: quasi, hierarchy: {{groups: {groups}}}}}}}")
    assert str(error.value).endswith(f"line 1, columns.a.hierarchy.groups: {says}")


def test_ages_under_hipaa_are_a_hierarchy_by_name() -> None:
    """All ages above 89 are one group at every level; the others have intervals."""
    choice = HierarchyChoice.model_validate("hipaa_ages")
    hierarchy = build_hierarchy(Column(role="quasi", hierarchy=choice), folder=Path())
    codes = hierarchy.encode([0, 17, 64, 89, 90, 101])
    for level, labels in enumerate(
        [("0", "17", "64", "89"), ("0-4", "15-19", "60-64", "85-89"),
         ("0-9", "10-19", "60-69", "80-89"), ("0-29", "0-29", "60-89", "60-89")]
    ):  # fmt: skip
        found_labels = [hierarchy.labels[level][hierarchy.groups[level][code]] for code in codes]
        assert found_labels == [*labels, ">89", ">89"]
    assert Draft202012Validator(HierarchyChoice.model_json_schema()).is_valid("hipaa_ages")


@pytest.mark.parametrize("kind", ["flat", "countries", "icd"])
def test_a_kind_without_settings_is_said_by_its_name(kind: str) -> None:
    read = HierarchyChoice.model_validate({kind: {}})
    assert (
        HierarchyChoice.model_validate(kind) == HierarchyChoice.model_validate({kind: None}) == read
    )
    schema = Draft202012Validator(HierarchyChoice.model_json_schema())
    written = read.model_dump(mode="json", exclude_none=True)
    assert schema.is_valid(kind)
    assert schema.is_valid(written)
    assert not schema.is_valid("postcodes")
    with pytest.raises(SpecError, match="exactly one of"):
        parse_spec(f"columns: {{a: {{role: quasi, hierarchy: {{{kind}: , mask: {{length: 5}}}}}}}}")


@pytest.mark.parametrize(
    ("hierarchy", "says"),
    [
        ("{countries: {codes: alpha2}}", "'alpha-2', 'alpha-3' or 'names', got 'alpha2'. Did you"),
        ("{icd: {version: 11}}", "must be 10 or 9, got 11"),
        ("{postcodes: {country: FR}}", "must be 'GB', 'CA', 'NL' or 'US', got 'FR'"),
        ("{postcodes: {}}", "`country` is missing"),
    ],
)
def test_lists_that_are_not_there(hierarchy: str, says: str) -> None:
    with pytest.raises(SpecError) as error:
        parse_spec(f"columns: {{a: {{role: quasi, hierarchy: {hierarchy}}}}}")
    assert says in str(error.value)
