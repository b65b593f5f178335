"""Releases with single suppressed cells, end to end, by the words of their certificate."""

from __future__ import annotations

import json
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from support.findings import list_verify_messages
from support.patients import QUASI, publish_patients, read_released_rows
from support.releases import forge_certificate, get_statement, sort_rows
from support.slice_tables import load_certificate
from support.unjudged import publish_unjudged

from incrowd.errors import IncrowdError
from incrowd.publication import publish
from incrowd.release.certificate import hash_file
from incrowd.release.verify import verify
from incrowd.spec.file import parse_spec

COLUMNS = """
columns:
  first_name: {role: identifier}
  last_name: {role: identifier}
  email: {role: drop}
  zip: {role: quasi, hierarchy: {mask: {length: 5}}, weight: 2}
  sex: {role: quasi, hierarchy: {groups: {Person: [female, male]}}}
  birth_year: {role: quasi, hierarchy: {intervals: {from: 1900, to: 2026, widths: [4, 8, 16, 32]}}}
  weight: {role: sensitive, linked: birth_year}
  diagnosis: {role: sensitive}
"""
STAR = "*"
LEVELS = "algorithm: suppress, levels: {zip: 2, birth_year: 2}"


def matches(row_labels: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    return all(x == y or STAR in (x, y) for x, y in zip(row_labels, other, strict=True))


@pytest.mark.parametrize(("rows", "ending"), [("expanded", "parquet"), ("counted", "csv")])
def test_classes_with_suppressed_cells(
    patients: pl.DataFrame, tmp_path: Path, rows: str, ending: str
) -> None:
    settings = f"k: 6, {LEVELS}, rows: {rows}, format: {ending}"
    result = publish_patients(patients, tmp_path / "out", settings, COLUMNS)
    assert verify(tmp_path / "out") == []
    data = read_released_rows(tmp_path / "out")
    if rows == "counted":
        data = data.select(pl.exclude("count").repeat_by("count").explode())
    assert len(data) == len(patients)
    sizes = data.group_by(QUASI).len()["len"]
    assert sizes.min() == result.certificate.table.release.smallest_class >= 6
    cells = sum(int((data[name] == STAR).sum()) for name in QUASI)
    assert 0 < cells < 0.3 * 3 * len(data)
    hidden = data.filter(pl.col("birth_year") == STAR)
    assert 0 < len(hidden) == hidden["weight"].null_count()
    row_labels = data.filter(pl.col("birth_year") != STAR)
    assert row_labels["weight"].null_count() <= patients["weight"].null_count()
    assert result.certificate.guarantee.kind == "k-anonymity"
    statement = " ".join(get_statement(result.certificate).values())
    assert "6-anonymous" in statement
    assert "with a suppressed cell (*) as a value of its own" in statement
    assert "'weight' with 'birth_year'" in statement


def test_what_is_shown_is_what_the_table_has(patients: pl.DataFrame, tmp_path: Path) -> None:
    """Without levels, every row of the release is a row of the table with cells replaced."""
    table = patients.head(400)
    publish_patients(table, tmp_path / "out", "k: 3, algorithm: suppress", COLUMNS)
    data = read_released_rows(tmp_path / "out")
    original = Counter(table.select(pl.col(QUASI).cast(pl.String), "diagnosis").iter_rows())
    for *row_labels, diagnosis in data.select(*QUASI, "diagnosis").iter_rows():
        assert any(
            matches(tuple(row_labels), row[:3]) and row[3] == diagnosis for row in original
        ), row_labels
    for name in QUASI:
        value_counts = data.filter(pl.col(name) != STAR)[name].value_counts()
        counts = dict(table[name].cast(pl.String).value_counts().iter_rows())
        assert all(number <= counts[value] for value, number in value_counts.iter_rows())


@pytest.mark.parametrize("subsets", [{}, {1: 40, 2: 15}])
def test_wildcards_fit_rows_of_the_input(
    patients: pl.DataFrame, tmp_path: Path, subsets: dict[int, int]
) -> None:
    table = patients.head(300)
    k = 1 if subsets else 4
    settings = f"k: {k}, {LEVELS}, reading: wildcard, subsets: {json.dumps(subsets)}".replace(
        '"', ""
    )
    result = publish_patients(table, tmp_path / "out", settings, COLUMNS)
    assert verify(tmp_path / "out") == []
    assert "as wildcards" in result.certificate.guarantee.kind
    statement = " ".join(get_statement(result.certificate).values())
    assert "This is weaker than k-anonymity by classes" in statement
    publish_patients(table, tmp_path / "plain", f"k: 1, {LEVELS}", COLUMNS)
    original = Counter(read_released_rows(tmp_path / "plain").select(QUASI).iter_rows())
    demands = subsets or {3: k}
    for row_labels in set(read_released_rows(tmp_path / "out").select(QUASI).iter_rows()):
        for size, least in demands.items():
            for columns in combinations(range(3), size):
                fitting = sum(
                    number
                    for row, number in original.items()
                    if all(row_labels[at] in (STAR, row[at]) for at in columns)
                )
                assert fitting >= least


def forge_release(
    folder: Path, parameters: dict[str, float | str], frame: pl.DataFrame | None = None
) -> list[str]:
    """Change data or parameters, with all that follows from them, and return what is found."""
    certificate = load_certificate(folder)
    update: dict[str, Any] = {"parameters": {**certificate.parameters, **parameters}}
    if frame is not None:
        sort_rows(frame).write_csv(folder / "data.csv")
        digest = hash_file(folder / "data.csv")
        update["release"] = certificate.table.release.model_copy(update={"sha256": digest})
    changed = certificate.model_copy(update=update).with_statement().with_seal()
    forge_certificate(folder, changed)
    return list_verify_messages(folder)


def test_verify_counts_compatible_rows(patients: pl.DataFrame, tmp_path: Path) -> None:
    settings = f"k: 1, {LEVELS}, reading: wildcard, subsets: {{2: 12}}, format: csv"
    publish_patients(patients.head(300), tmp_path / "out", settings, COLUMNS)
    name = "rows that any 2 columns fit, at least"
    assert forge_release(tmp_path / "out", {name: 12.0}) == []
    (message,) = forge_release(tmp_path / "out", {name: 299.0})
    assert "a row is compatible with fewer than 299" in message


def test_verify_finds_a_linked_cell_that_is_shown(patients: pl.DataFrame, tmp_path: Path) -> None:
    publish_patients(patients.head(400), tmp_path / "out", f"k: 5, {LEVELS}, format: csv", COLUMNS)
    data = pl.read_csv(tmp_path / "out" / "data.csv", infer_schema=False)
    assert forge_release(tmp_path / "out", {}, data) == []
    (message,) = forge_release(tmp_path / "out", {}, data.with_columns(weight=pl.lit("70")))
    assert "'weight' shows a value in a row whose cell of 'birth_year' is suppressed" in message


@pytest.mark.parametrize(
    "change",
    [
        {"reading": "any"}, {"suppressed": "dropped"}, {"algorithm": "mondrian"},
        {"linked weight": "sex "}, {"linked zip": "sex"},
        {"rows that any 2 columns fit, at least": 5.0}, {"any 2": 5.0},
    ],
)  # fmt: skip
def test_verify_finds_parameters_that_no_release_has(
    patients: pl.DataFrame, tmp_path: Path, change: dict[str, float | str]
) -> None:
    publish_patients(patients.head(200), tmp_path / "out", f"k: 5, {LEVELS}", COLUMNS)
    certificate = load_certificate(tmp_path / "out")
    changed = certificate.model_copy(update={"parameters": {**certificate.parameters, **change}})
    forge_certificate(tmp_path / "out", changed)
    assert list_verify_messages(tmp_path / "out")


MISTAKES = [
    ("k: 3, algorithm: suppress, suppressed: starred", "", "keeps every row"),
    ("k: 3, algorithm: suppress, levels: {x: [0, 1]}", "", "fixed level of 'x'"),
    ("k: 3, algorithm: suppress, levels: {x: 7}", "", "level 7 does not exist"),
    ("k: 3, algorithm: suppress, subsets: {2: 5}", "", "needs `reading: wildcard`"),
    ("k: 3, reading: wildcard", "", "needs `algorithm: suppress`"),
    ("k: 3, algorithm: suppress, loss: entropy", "", "not a setting of `algorithm: suppress`"),
    ("k: 3", ", linked: x", "`linked` needs `algorithm: suppress`"),
    ("k: 3, algorithm: suppress", ", linked: s", "is no quasi column"),
    ("k: 3, algorithm: suppress", ", diversity: {distinct: 2}", "does not support rules"),
    ("k: 30, algorithm: suppress", "", "10 rows, fewer than k = 30"),
]


@pytest.mark.parametrize(("settings", "more", "message"), MISTAKES)
def test_mistakes(settings: str, more: str, message: str) -> None:
    table = pl.DataFrame({"x": [1, 2] * 5, "s": ["a", "b"] * 5})
    text = f"""
columns: {{x: {{role: quasi, hierarchy: flat}}, s: {{role: sensitive{more}}}}}
release: {{method: k-anonymity, {settings}}}
"""
    with pytest.raises(IncrowdError, match=message):
        publish_unjudged(table, parse_spec(text))


def test_evaluation_and_report_count_the_cells(patients: pl.DataFrame, tmp_path: Path) -> None:
    result = publish_patients(
        patients.head(500), tmp_path / "out", f"k: 5, {LEVELS}", COLUMNS, by=publish
    )
    suppression = result.evaluation.suppression
    data = read_released_rows(tmp_path / "out")
    assert suppression is not None
    assert suppression.cells == {name: int((data[name] == STAR).sum()) for name in QUASI}
    assert suppression.least <= suppression.share
    weights = {"zip": 2.0, "sex": 1.0, "birth_year": 1.0}
    weighed = sum(weights[name] * number for name, number in suppression.cells.items())
    assert suppression.share == pytest.approx(weighed / (4.0 * 500))
    report = (tmp_path / "out.curator" / "report.html").read_text()
    assert suppression.description in report
