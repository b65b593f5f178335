"""What breaks the list of HIPAA's safe harbor is refused, with its column and a way out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from support.unjudged import publish_unjudged

from incrowd.curate.check import check
from incrowd.curate.draft.draft import draft
from incrowd.engine.source import open_table
from incrowd.errors import IncrowdError
from incrowd.methods.safe_harbor import find_violations
from incrowd.release.verify import verify
from incrowd.spec.file import parse_spec

ROWS, YEAR = 400, 2026
DAYS = {"from": "2020-01-01", "to": "2029-12-31"}
YEARS = {"role": "quasi", "hierarchy": {"dates": {**DAYS, "levels": ["year", "decade"]}}}
FLAT = {"role": "quasi", "hierarchy": "flat"}
AGES = {"role": "quasi", "hierarchy": "hipaa_ages"}


def between(low: float, high: float, **more: Any) -> dict[str, Any]:
    return {"role": "quasi", "hierarchy": {"intervals": {"from": low, "to": high, **more}}}


def visit(at: int) -> dict[str, Any]:
    return {
        "phone": f"555-{at:03}-{at % 9000 + 1000}", "zip": ["48104", "05901", "82190"][at % 3],
        "city": ["Detroit", "Casper"][at % 2], "state": ["MI", "VT", "WY"][at // 7 % 3],
        "admitted": f"2024-{at % 12 + 1:02}-{at % 28 + 1:02}", "age": at % 100,
        "birth_year": 1920 + at % 90, "birth_weight": 900 + at * 7,
        "note": f"patient {at} came again with pain in her left knee and asked for help",
    }  # fmt: skip


FRAME = pl.DataFrame([visit(at) for at in range(ROWS)])


def violations(
    name: str, column: dict[str, Any], frame: pl.DataFrame = FRAME, **release: Any
) -> list[str]:
    others = {other: {"role": "drop"} for other in frame.columns if other != name}
    method = {"method": "safe", "epsilon": 1.0, "delta": 1e-6} | release
    spec = {"hipaa": "safe-harbor", "columns": {name: column, **others}, "release": method}
    findings = find_violations(parse_spec(json.dumps(spec)).spec, open_table(frame), year=YEAR)
    return [finding.code for finding in findings]


PUBLISHED: list[tuple[str, dict[str, Any], list[str]]] = [
    ("phone", FLAT, ["HIPAA_IDENTIFIER_PUBLISHED"]),
    ("phone", {"role": "identifier"}, []),
    ("zip", {"role": "quasi", "hierarchy": {"mask": {"length": 5}}}, ["HIPAA_PLACE_PUBLISHED"]),
    ("zip", {"role": "quasi", "hierarchy": "hipaa_zip"}, []),
    ("zip", FLAT | {"allow": ["hipaa"]}, []),
    ("city", FLAT, ["HIPAA_PLACE_PUBLISHED"]),
    ("state", {"role": "quasi", "hierarchy": "us_states"}, []),
    ("admitted", YEARS, []),
    ("admitted", {"role": "quasi", "hierarchy": {"dates": DAYS}}, ["HIPAA_DATE_PUBLISHED"]),
    ("admitted", FLAT, ["HIPAA_DATE_PUBLISHED"]),
    (
        "admitted",
        {"role": "quasi", "hierarchy": {"dates": {**DAYS, "levels": ["weekday"]}}},
        ["HIPAA_DATE_PUBLISHED"],
    ),
    ("age", AGES, []),
    ("age", between(0, 90, open="upper"), ["HIPAA_AGE_PUBLISHED"]),
    ("age", between(0, 89, widths=[10]), []),
    ("age", FLAT, ["HIPAA_AGE_PUBLISHED"]),
    ("birth_year", between(1937, 2026, open="lower"), []),
    ("birth_year", between(1936, 2026, open="lower"), ["HIPAA_BIRTH_PUBLISHED"]),
    ("birth_year", between(1900, 2030, widths=[1, 10]), ["HIPAA_BIRTH_PUBLISHED"]),
    ("birth_year", between(1700, 2030, widths=[1, 10]), ["HIPAA_BIRTH_PUBLISHED"]),
    ("birth_year", between(0, 2030, widths=[10]), ["HIPAA_BIRTH_PUBLISHED"]),
    ("birth_year", between(1700, 1930, widths=[10]), ["HIPAA_BIRTH_PUBLISHED"]),
    ("birth_year", FLAT, ["HIPAA_BIRTH_PUBLISHED"]),
    ("birth_year", between(0, 99, widths=[10]), ["HIPAA_BIRTH_PUBLISHED"]),
    ("birth_weight", between(0, 5999, widths=[500]), []),
]


@pytest.mark.parametrize(("name", "column", "codes"), PUBLISHED)
def test_each_rule_is_held_by_name_declaration_and_values(
    name: str, column: dict[str, Any], codes: list[str]
) -> None:
    assert violations(name, column) == codes


def test_a_year_of_birth_with_two_digits_may_be_any() -> None:
    frame = pl.DataFrame({"yob": [at % 60 + 20 for at in range(ROWS)]})
    assert violations("yob", FLAT, frame) == ["HIPAA_BIRTH_PUBLISHED"]
    drafted = draft(frame).with_safe_harbor(YEAR)
    assert [(guess.role, "two digits" in guess.reason) for guess in drafted.guesses] == [
        ("drop", True)
    ]


def test_a_day_of_birth_in_intervals_is_no_year() -> None:
    frame = pl.DataFrame({"birth_day": [at % 31 + 1 for at in range(ROWS)]})
    assert violations("birth_day", between(1, 31, widths=[1]), frame) == []


def test_a_level_that_is_never_published_breaks_nothing() -> None:
    days = {"role": "quasi", "hierarchy": {"dates": {**DAYS, "levels": ["day", "month", "year"]}}}
    assert violations("admitted", days, levels={"admitted": [1, 3]}) == ["HIPAA_DATE_PUBLISHED"]
    assert violations("admitted", days, levels={"admitted": [2, 3]}) == []
    assert violations("admitted", days, levels={"admitted": 2}) == []


@pytest.mark.parametrize("role", ["sensitive", "keep"])
def test_what_is_published_unchanged_is_judged_by_its_values(role: str) -> None:
    """The hierarchy of a sensitive column is not what k-anonymity shows of it."""
    release: dict[str, Any] = {"method": "k-anonymity", "epsilon": None, "delta": None, "k": 5}
    hierarchy = {"hierarchy": "hipaa_ages"} if role == "sensitive" else {}
    assert violations("age", {"role": role, **hierarchy}, **release) == ["HIPAA_AGE_PUBLISHED"]
    assert violations("admitted", {"role": role}, **release) == ["HIPAA_DATE_PUBLISHED"]
    allowed = {"role": role, "allow": ["free_text"]}
    assert violations("note", allowed, **release) == ["HIPAA_TEXT_PUBLISHED"]
    allowed["allow"] = ["free_text", "hipaa"]
    assert violations("note", allowed, **release) == []


def test_parts_of_dates_and_age_groups_are_found() -> None:
    frame = pl.DataFrame({
        "visit_month": [f"{at % 12 + 1}" for at in range(ROWS)],
        "age_group": [["0-44", "45-89", "90+"][at % 3] for at in range(ROWS)],
        "age_band": [["0-44", "45-84", "85-94"][at % 3] for at in range(ROWS)],
        "seen": [["2024-Q1", "2024-Q2"][at % 2] for at in range(ROWS)],
        "phone": ["yes", "no"] * (ROWS // 2),
    })  # fmt: skip
    assert violations("visit_month", FLAT, frame) == ["HIPAA_DATE_PUBLISHED"]
    assert violations("seen", FLAT, frame) == ["HIPAA_DATE_PUBLISHED"]
    assert violations("age_group", FLAT, frame) == []
    assert violations("age_band", FLAT, frame) == ["HIPAA_AGE_PUBLISHED"]
    assert violations("phone", FLAT, frame) == []  # whether there is one


def test_publishing_refuses_and_check_says_what_the_list_is_not(tmp_path: Path) -> None:
    columns = {name: {"role": "drop"} for name in FRAME.columns} | {"age": AGES}
    release = {"method": "k-anonymity", "k": 5}
    spec = {"hipaa": "safe-harbor", "columns": columns | {"city": FLAT}, "release": release}
    with pytest.raises(IncrowdError, match="Column 'city': `hipaa: safe-harbor` removes places"):
        publish_unjudged(FRAME, spec, output=tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert "HIPAA_PLACE_PUBLISHED" in [finding.code for finding in check(FRAME, spec)]
    spec["columns"] = columns
    (note,) = (finding for finding in check(FRAME, spec) if finding.code == "HIPAA_LIST_HELD")
    assert "The list bounds no risk" in str(note)
    publish_unjudged(FRAME, spec, output=tmp_path / "out")
    assert verify(tmp_path / "out") == []
    del spec["hipaa"]
    assert not any(finding.code.startswith("HIPAA") for finding in check(FRAME, spec))


def test_a_draft_for_the_safe_harbor_keeps_to_its_list(tmp_path: Path) -> None:
    path = tmp_path / "visits.csv"
    FRAME.write_csv(path)
    drafted = draft(path).with_safe_harbor(YEAR)
    file = parse_spec(drafted.yaml(), path=tmp_path / "spec.yaml")
    columns = file.spec.columns
    assert file.spec.hipaa == "safe-harbor"
    assert list(find_violations(file.spec, open_table(path), year=YEAR)) == []
    roles = {name: columns[name].role for name in ("phone", "zip", "city", "state")}
    assert roles == {
        "phone": "identifier", "zip": "quasi", "city": "drop", "state": "quasi",
    }  # fmt: skip
    assert columns["zip"].hierarchy is not None
    assert columns["zip"].hierarchy.postcodes is not None
    assert "hierarchy" not in columns["zip"].confirm
    assert columns["birth_year"].hierarchy is not None
    born = columns["birth_year"].hierarchy.intervals
    assert born is not None
    assert (int(born.low), str(born.open)) == (1937, "lower")


def test_zip_codes_of_small_areas_are_published_as_zeros(tmp_path: Path) -> None:
    columns: dict[str, Any] = {name: {"role": "drop"} for name in FRAME.columns}
    columns["zip"] = {"role": "quasi", "hierarchy": "hipaa_zip"}
    spec = {"columns": columns, "release": {"method": "k-anonymity", "k": 5}}
    result = publish_unjudged(FRAME, spec, output=tmp_path / "out")
    counts = dict(result.data["zip"].value_counts().iter_rows())
    assert counts == {"481**": 134, "000**": 266}
    assert verify(tmp_path / "out") == []
