"""k-anonymous releases, end to end, against what the definitions say row by row."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from pycanon import anonymity
from support.patients import (
    ALGORITHMS,
    COLUMNS,
    KEPT,
    QUASI,
    SMALL,
    plain,
    read,
    released,
    shown_rows,
)
from support.releases import stated

from incrowd.release.verify import verify

pytestmark = pytest.mark.usefixtures("quick")

# What is published ---------------------------------------------------------------------------


@pytest.mark.parametrize(("rows", "ending"), [("expanded", "parquet"), ("weighted", "csv")])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_algorithm_holds_together(
    patients: pl.DataFrame, tmp_path: Path, algorithm: str, rows: str, ending: str
) -> None:
    settings = f"k: 6, algorithm: {algorithm}, rows: {rows}, format: {ending}"
    result = released(patients, tmp_path / "out", settings)
    assert verify(tmp_path / "out") == []
    data = read(tmp_path / "out")
    assert data.columns == [*QUASI, *KEPT, *(["count"] if rows == "weighted" else [])]
    facts = result.certificate.table.release
    found = plain(data)
    assert len(found) == facts.rows
    assert anonymity.k_anonymity(found, QUASI) == facts.smallest_class >= 6
    assert len(found.groupby(QUASI)) == facts.classes
    for path in (tmp_path / "out").rglob("*"):
        if path.is_file():
            assert b"@example.org" not in path.read_bytes()


def label_of(zip_code: str, sex: str, year: int | None, levels: tuple[int, ...]) -> tuple[Any, ...]:
    """What a full-domain scheme shows of a row, worked out by hand."""
    shown_year: str | None = None if year is None else str(year)
    if levels[2] == 5:
        shown_year = "*"
    elif levels[2] and year is not None:
        width = (4, 8, 16, 32)[levels[2] - 1]
        first = 1900 + (year - 1900) // width * width
        last = min(first + width - 1, 2026)
        shown_year = f"{first}-{last}" if first < last else str(first)
    return (
        zip_code[: 5 - levels[0]] + "*" * levels[0],
        "Person" if levels[1] else sex,
        shown_year,
    )


@pytest.mark.parametrize(
    "settings",
    ["suppression: 0.05", "suppression: 0", "suppression: 0.3, candidates: minimal",
     "loss: discernibility", "suppressed: starred", "rows: weighted",
     "levels: {zip: [1, 3], birth_year: 2}, suppression: 0.4"],
)  # fmt: skip
def test_full_domain_recoding_row_by_row(
    patients: pl.DataFrame, tmp_path: Path, settings: str
) -> None:
    result = released(patients, tmp_path / "out", f"k: 5, {settings}")
    levels = tuple(result.certificate.table.scheme[name].level or 0 for name in QUASI)
    if "levels" in settings:
        assert 1 <= levels[0] <= 3
        assert levels[2] == 2
    rows = [
        (*label_of(row[0], row[1], row[2], levels), *row[3:])
        for row in patients.select(*QUASI, *KEPT).iter_rows()
    ]
    sizes = Counter(row[:3] for row in rows)
    expected = Counter(row for row in rows if sizes[row[:3]] >= 5)
    lost = len(rows) - expected.total()
    if "starred" in settings:
        assert lost > 0
        expected[("*", "*", "*", None, None)] += lost
    data = read(tmp_path / "out")
    if "weighted" in settings:
        found: Counter[tuple[object, ...]] = Counter()
        for *labels, count in data.iter_rows():
            found[tuple(labels)] += count
        assert len(found) == len(data)
    else:
        found = shown_rows(data)
    assert found == expected
    assert result.evaluation.suppressed == lost
    assert data.schema["weight"] == pl.Float64
    share = {"suppression: 0": 0, "suppression: 0.3, candidates: minimal": 0.3}.get(settings, 0.05)
    assert lost <= (0.4 if "levels" in settings else share) * len(rows)


ORDERED = """
columns:
  first_name: {role: identifier}
  last_name: {role: identifier}
  email: {role: identifier}
  zip: {role: quasi, hierarchy: flat}
  sex: {role: quasi, hierarchy: flat}
  birth_year: {role: quasi, hierarchy: {intervals: {from: 1900, to: 2026}}}
  weight: {role: sensitive}
  diagnosis: {role: sensitive}
"""


def within(label: str | None, value: object) -> bool:
    if label is None or value is None or label == "*":
        return label == "*" or label is value
    first, _, last = label.replace(" to ", "-").partition("-")
    return str(value) == label if not last else float(first) <= float(str(value)) <= float(last)


@pytest.mark.parametrize("settings", ["", ", cut: median", ", rows: weighted, format: csv"])
def test_mondrian_shows_every_row_in_the_one_class_that_holds_it(
    patients: pl.DataFrame, tmp_path: Path, settings: str
) -> None:
    known = patients.drop_nulls()
    released(known, tmp_path / "out", f"k: 8, algorithm: mondrian{settings}", ORDERED)
    frame = read(tmp_path / "out")
    if "count" not in frame.columns:
        frame = frame.group_by(pl.all()).len("count")
    found: dict[tuple[Any, ...], Counter[Any]] = {}
    for *row, count in frame.iter_rows():
        found.setdefault(tuple(row[:3]), Counter())[tuple(row[3:])] += count
    expected: dict[tuple[Any, ...], Counter[Any]] = {}
    for values in known.select(*QUASI, *KEPT).iter_rows():
        (box,) = [
            box
            for box in found
            if all(within(x, value) for x, value in zip(box, values[:3], strict=True))
        ]
        expected.setdefault(box, Counter())[values[3:]] += 1
    assert found == expected
    assert all(held.total() >= 8 for held in found.values())
    assert len(found) > 50


def test_clusters_hold_rows_of_the_table(patients: pl.DataFrame, tmp_path: Path) -> None:
    known = patients.drop_nulls()
    result = released(known, tmp_path / "out", "k: 5, algorithm: cluster", ORDERED)
    rows = list(known.select(*QUASI, *KEPT).iter_rows())
    data = read(tmp_path / "out")
    assert Counter(data.select(KEPT).iter_rows()) == Counter(row[3:] for row in rows)
    for box, part in data.group_by(QUASI):
        fitting = Counter(
            row[3:]
            for row in rows
            if all(within(x, value) for x, value in zip(box, row[:3], strict=True))
        )
        assert Counter(part.select(KEPT).iter_rows()) <= fitting
    assert result.evaluation.loss < 0.3


def test_duplicates_are_real_rows(patients: pl.DataFrame, tmp_path: Path) -> None:
    result = released(patients, tmp_path / "out", "k: 5, algorithm: duplicate", ORDERED)
    real = shown_rows(patients.select(*QUASI, *KEPT))
    data = read(tmp_path / "out")
    assert set(data.iter_rows()) <= set(real)
    assert len(data) == len(patients)
    assert "Real records" in stated(result.certificate)["known_attacks"]


def test_duplicates_are_drawn_anew(patients: pl.DataFrame, tmp_path: Path) -> None:
    one = released(patients.head(200), tmp_path / "a", "k: 5, algorithm: duplicate")
    two = released(patients.head(200), tmp_path / "b", "k: 5, algorithm: duplicate")
    assert one.certificate.table.release.sha256 != two.certificate.table.release.sha256


def test_starred_rows_are_in_no_class(patients: pl.DataFrame, tmp_path: Path) -> None:
    stars = released(patients, tmp_path / "stars", "k: 5, suppressed: starred")
    dropped = released(patients, tmp_path / "dropped", "k: 5")
    assert verify(tmp_path / "stars") == []
    one, two = stars.certificate.table.release, dropped.certificate.table.release
    assert one.rows == len(patients) > two.rows
    assert (one.classes, one.smallest_class) == (two.classes, two.smallest_class)
    assert stars.evaluation == dropped.evaluation
    assert "suppressed_rows" in stated(stars.certificate)
    assert "suppressed_rows" not in stated(dropped.certificate)


@pytest.mark.parametrize("suppressed", ["starred", "dropped"])
@pytest.mark.parametrize(
    ("values", "hierarchy"),
    [
        ([f"v{i}" for i in range(10)], "flat"),  # only the root is common enough
        (["x"] * 10 + ["far"] * 10, "{flat: {values: [x, y]}}"),  # strangers show the root
    ],
)
def test_a_class_that_shows_nothing_is_a_class_all_the_same(
    tmp_path: Path, values: list[str], hierarchy: str, suppressed: str
) -> None:
    columns = f"columns: {{a: {{role: quasi, hierarchy: {hierarchy}}}}}"
    settings = f"k: 5, suppression: 0, suppressed: {suppressed}"
    result = released(pl.DataFrame({"a": values}), tmp_path / "out", settings, columns)
    assert verify(tmp_path / "out") == []
    assert result.certificate.table.release.rows == len(values)
    if suppressed == "dropped":
        assert result.evaluation.rows_released == len(values)


# The certificate, and those who lie ------------------------------------------------------------


def test_the_certificate_says_what_it_is_not(patients: pl.DataFrame, tmp_path: Path) -> None:
    for algorithm in ALGORITHMS:
        result = released(patients.head(200), tmp_path / algorithm, f"k: 5, algorithm: {algorithm}")
        known = result.certificate
        said = stated(known)
        assert "5-anonymous" in said["k_anonymity"]
        assert "NOT differential privacy" in said["not_differential_privacy"]
        assert "known_attacks" in said
        assert (known.guarantee.epsilon, known.guarantee.delta, known.events) == (None, None, [])
        assert known.kept == KEPT
        assert known.method == known.guarantee.kind == "k-anonymity"
        report = (tmp_path / f"{algorithm}.curator" / "report.html").read_text()
        assert said["not_differential_privacy"] in report


def test_the_unit_is_said_in_words_that_make_sense(tmp_path: Path) -> None:
    table = pl.DataFrame({"id": [i // 3 for i in range(90)], "x": ["a"] * 90})
    columns = "unit: {id: id}\ncolumns: {id: {role: identifier}, x: {role: quasi, hierarchy: flat}}"
    result = released(table, tmp_path / "out", "k: 5", columns)
    assert result.certificate.table.release.rows == result.evaluation.rows_original == 30
    assert result.certificate.guarantee.unit == "one person"
    assert "One row per person" in stated(result.certificate)["unit"]
    assert verify(tmp_path / "out") == []
    assert read(tmp_path / "out").columns == ["x"]


def test_everything_may_be_suppressed(tmp_path: Path) -> None:
    table = pl.DataFrame({"x": [f"v{i}" for i in range(20)], "s": ["p"] * 20})
    settings = "k: 5, suppression: 1, levels: {x: 0}"
    for suppressed in ("dropped", "starred"):
        result = released(
            table, tmp_path / suppressed, f"{settings}, suppressed: {suppressed}", SMALL % ("", "")
        )
        assert verify(tmp_path / suppressed) == []
        assert result.certificate.table.release.classes == 0
        assert (result.evaluation.rows_released, result.evaluation.loss) == (0, 1.0)


# What a column weighs ----------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["ola", "mondrian", "cluster"])
def test_a_heavy_column_loses_less(patients: pl.DataFrame, tmp_path: Path, algorithm: str) -> None:
    heavy = COLUMNS.replace("birth_year: {", "birth_year: {weight: 20, ")
    light = COLUMNS.replace("birth_year: {", "birth_year: {weight: 0.05, ")
    lost = [
        released(patients, tmp_path / name, f"k: 5, algorithm: {algorithm}", columns)
        .evaluation.loss_by_column["birth_year"]
        for name, columns in (("heavy", heavy), ("light", light))
    ]  # fmt: skip
    assert lost[0] < lost[1]
