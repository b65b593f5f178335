"""k-anonymous releases, end to end, as a custodian and as a liar would use them."""

from __future__ import annotations

import datetime as dt
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import polars.selectors as cs
import pytest
from pycanon import anonymity
from support.releases import files, in_order

from incrowd.errors import IncrowdError
from incrowd.measure import utility
from incrowd.release.certificate import Certificate
from incrowd.release.verify import verify
from incrowd.spec.file import SpecError, parse
from incrowd.tasks.publish import Release, publish
from incrowd.tasks.sample import sample
from incrowd.ui.cli import main

COLUMNS = """
columns:
  first_name: {role: identifier}
  last_name: {role: identifier}
  email: {role: drop}
  zip: {role: quasi, hierarchy: {mask: {length: 5}}}
  sex: {role: quasi, hierarchy: {groups: {Person: [female, male]}}}
  birth_year: {role: quasi, hierarchy: {intervals: {from: 1900, to: 2026, widths: [4, 8, 16, 32]}}}
  weight: {role: sensitive}
  diagnosis: {role: sensitive}
"""
QUASI = ["zip", "sex", "birth_year"]
KEPT = ["weight", "diagnosis"]
ALGORITHMS = ["ola", "mondrian", "cluster", "duplicate"]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing and many queries take most of the time of a small release: none, and few."""
    monkeypatch.setattr("incrowd.release.report._drawn", lambda _figure: "")
    monkeypatch.setattr(utility, "queries", partial(utility.queries, count=20))


@pytest.fixture(scope="module")
def patients() -> pl.DataFrame:
    frame: pl.DataFrame = sample("patients", rows=800).frame()
    hidden = pl.int_range(pl.len()) % 50 == 0  # some nulls, in all roles
    return frame.with_columns(
        pl.when(~hidden).then(pl.col(name)) for name in ("birth_year", "weight", "diagnosis")
    )


def released(
    table: Any, folder: Path | None, release: str = "k: 5", columns: str = COLUMNS, **more: Any
) -> Release:
    file = parse(f"{columns}\nrelease: {{method: k-anonymity, {release}}}\n")
    return publish(table, file, output=folder, **more)


def read(folder: Path) -> pl.DataFrame:
    """The file as any reader would."""
    path = folder / "data.parquet"
    return pl.read_parquet(path) if path.exists() else pl.read_csv(folder / "data.csv")


def plain(frame: pl.DataFrame) -> pd.DataFrame:
    """As pycanon wants it: text without nulls, rows from 0."""
    if "count" in frame.columns:
        frame = frame.select(pl.exclude("count").repeat_by("count")).explode(cs.all())
    found: pd.DataFrame = frame.to_pandas().reset_index(drop=True)
    return found.astype(str).fillna("null")


def shown_rows(frame: pl.DataFrame) -> Counter[tuple[object, ...]]:
    return Counter(frame.iter_rows())


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
    assert result.evaluation.suppressed == lost  # type: ignore[union-attr]
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
    years = patients.with_columns(pl.col("birth_year").cast(pl.String))
    real = shown_rows(years.select(*QUASI, *KEPT))
    data = read(tmp_path / "out")
    assert set(data.iter_rows()) <= set(real)
    assert len(data) == len(patients)
    assert "real people's rows" in result.certificate.guarantee.statement


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
    assert "stand for rows that were suppressed" in stars.certificate.guarantee.statement


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


KINDS: dict[str, pl.Series] = {
    "ints": pl.Series([3, None, -7, 2**53 + 1], dtype=pl.Int64),
    "large ints": pl.Series([2**63 + 5, 1, 2, None], dtype=pl.UInt64),
    "floats": pl.Series([0.1, None, -2.5, 1e-7]),
    "dates": pl.Series([dt.date(2020, 2, 29), None, dt.date(1900, 1, 1), dt.date(2020, 3, 1)]),
    "times": pl.Series([dt.datetime(2020, 1, 1, 5, 6, 7), None] * 2),
    "flags": pl.Series([True, None, False, True]),
    "decimals": pl.Series(["1.50", "2.25", None, "-3.00"]).cast(pl.Decimal(10, 2)),
    "text": pl.Series(["07", " 7", 'say "a, b"\nc', "é;ü"]),
    "nothing": pl.Series([None] * 4, dtype=pl.String),
    "spans": pl.Series([dt.timedelta(days=1), dt.timedelta(seconds=5), None, dt.timedelta()]),
}


def kept_columns(kinds: Sequence[str]) -> tuple[pl.DataFrame, str]:
    """A table with a sensitive column of each kind, and its part of a spec."""
    kept = {kind: pl.concat([KINDS[kind]] * 5) for kind in kinds}
    table = pl.DataFrame({"a": ["x", "y"] * 10, **kept})
    sensitive = "".join(f", {kind}: {{role: sensitive}}" for kind in kinds)
    return table, f"columns: {{a: {{role: quasi, hierarchy: flat}}{sensitive}}}"


@pytest.mark.parametrize("settings", ["", ", rows: weighted", ", algorithm: mondrian"])
def test_sensitive_values_keep_their_types(tmp_path: Path, settings: str) -> None:
    kinds = [kind for kind in KINDS if kind != "spans"]
    table, columns = kept_columns(kinds)
    result = released(table, tmp_path / "out", f"k: 5{settings}", columns)
    assert verify(tmp_path / "out") == []
    data = read(tmp_path / "out")
    for kind in kinds:
        assert type(data.schema[kind]) is type(table.schema[kind]), kind
        if kind != "decimals":  # they may have more digits
            assert data.schema[kind] == table.schema[kind]
        assert result.data.schema[kind] == data.schema[kind]
    if "weighted" in settings:
        data = data.select(pl.exclude("count").repeat_by("count")).explode(cs.all())
    assert shown_rows(data) == shown_rows(table)


def test_spans_of_time_are_published_as_text(tmp_path: Path) -> None:
    """Parquet holds them only with a library's own metadata, which a release has none of."""
    table, columns = kept_columns(["spans"])
    released(table, tmp_path / "out", "k: 5", columns)
    assert verify(tmp_path / "out") == []
    assert set(read(tmp_path / "out")["spans"]) == {"P1D", "PT5S", "PT0S", None}


def test_sensitive_values_in_text_files(tmp_path: Path) -> None:
    table, columns = kept_columns([kind for kind in KINDS if kind != "spans"])
    for rows in ("expanded", "weighted"):
        released(table, tmp_path / rows, f"k: 5, format: csv, rows: {rows}", columns)
        assert verify(tmp_path / rows) == []
    data = pd.read_csv(tmp_path / "expanded" / "data.csv", dtype=str, keep_default_na=False)
    table.write_csv(tmp_path / "raw.csv")
    raw = pd.read_csv(tmp_path / "raw.csv", dtype=str, keep_default_na=False)
    assert Counter(data.itertuples(index=False, name=None)) == Counter(
        raw.itertuples(index=False, name=None)
    )


def test_empty_text_and_null_in_a_weighted_text_file(tmp_path: Path) -> None:
    """In such a file they look alike, so they must be one row."""
    table = pl.DataFrame({"a": ["x"] * 20, "s": ["", None] * 10})
    columns = "columns: {a: {role: quasi, hierarchy: flat}, s: {role: sensitive}}"
    released(table, tmp_path / "out", "k: 5, format: csv, rows: weighted", columns)
    assert verify(tmp_path / "out") == []


@pytest.mark.parametrize("rows", ["expanded", "weighted"])
def test_a_sensitive_column_called_count(tmp_path: Path, rows: str) -> None:
    table = pl.DataFrame({"a": ["x"] * 10 + ["y"] * 10, "count": range(20)})
    columns = "columns: {a: {role: quasi, hierarchy: flat}, count: {role: sensitive}}"
    if rows == "weighted":
        with pytest.raises(IncrowdError, match="has a column 'count'; rename yours"):
            released(table, tmp_path / "out", f"k: 5, rows: {rows}", columns)
        return
    released(table, tmp_path / "out", f"k: 5, rows: {rows}", columns)
    assert verify(tmp_path / "out") == []


DATES = "columns: {d: {role: quasi, hierarchy: {dates: {from: 2010-01-01, to: 2029-12-31%s}}}}"


@pytest.mark.parametrize(
    "levels",
    ["", ", levels: [month, year]", ", levels: [quarter, year]", ", levels: [year, decade]"],
)
def test_mondrian_on_dates_of_any_grain(tmp_path: Path, levels: str) -> None:
    days = np.random.default_rng(1).integers(0, 3000, 60)
    table = pl.DataFrame({"d": [dt.date(2012, 1, 1) + dt.timedelta(int(x)) for x in days]})
    result = released(table, tmp_path / "out", "k: 5, algorithm: mondrian", DATES % levels)
    assert verify(tmp_path / "out") == []
    assert result.certificate.table.release.classes > 3


@pytest.mark.parametrize("algorithm", ["mondrian", "cluster"])
@pytest.mark.parametrize(
    "hierarchy",
    [
        "{intervals: {from: 0, to: 99, step: 5, widths: [10]}}",
        "{intervals: {from: 10, to: 80, open: both}}",
        "{intervals: {from: 0, to: 100, step: 0.5}}",
        "{intervals: {from: 20, to: 60}}, other: elsewhere",
        "{groups: {low: [" + ", ".join(map(str, range(50))) + "], high: ["
        + ", ".join(map(str, range(50, 100))) + "]}}",
        "{order: {values: [" + ", ".join(f"v{i}" for i in range(100)) + "], runs: [10]}}",
        "{mask: {length: 2}}",
        "flat",
    ],
)  # fmt: skip
def test_local_recoding_of_every_kind(tmp_path: Path, hierarchy: str, algorithm: str) -> None:
    draw = np.random.default_rng(2)
    numbers = draw.integers(0, 100, 200).tolist()
    text = [f"v{x}" if "order" in hierarchy else f"{x:02d}" for x in numbers]
    values = text if "order" in hierarchy or "mask" in hierarchy else numbers
    table = pl.DataFrame({"x": [None if i % 20 == 0 else v for i, v in enumerate(values)]})
    columns = f"columns: {{x: {{role: quasi, hierarchy: {hierarchy}}}}}"
    result = released(table, tmp_path / "out", f"k: 5, algorithm: {algorithm}", columns)
    assert verify(tmp_path / "out") == []
    data = read(tmp_path / "out")
    assert data["x"].value_counts()["count"].min() >= 5  # type: ignore[operator]
    assert result.certificate.table.release.classes > 1
    assert result.evaluation.rows_released == result.certificate.table.release.rows == 200


# Rules on sensitive values -------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["ola", "mondrian"])
@pytest.mark.parametrize("rule", ["distinct: 3", "entropy: 2.5"])
def test_an_independent_tool_finds_it_diverse(
    patients: pl.DataFrame, tmp_path: Path, algorithm: str, rule: str
) -> None:
    diverse = f"diagnosis: {{role: sensitive, diversity: {{{rule}}}}}"
    columns = COLUMNS.replace("diagnosis: {role: sensitive}", diverse)
    result = released(patients, tmp_path / "out", f"k: 5, algorithm: {algorithm}", columns)
    plain_result = released(patients, tmp_path / "plain", f"k: 5, algorithm: {algorithm}")
    data, without = plain(read(tmp_path / "out")), plain(read(tmp_path / "plain"))
    kind, least = rule.split(": ")
    if kind == "distinct":
        assert anonymity.l_diversity(data, QUASI, ["diagnosis"]) >= 3
        assert anonymity.l_diversity(without, QUASI, ["diagnosis"]) < 3
    else:
        assert anonymity.entropy_l_diversity(data, QUASI, ["diagnosis"]) >= int(float(least))
        for _, part in data.groupby(QUASI):
            shares = part["diagnosis"].value_counts(normalize=True).to_numpy()
            assert np.exp(-(shares * np.log(shares)).sum()) >= float(least) - 1e-9
    assert anonymity.k_anonymity(data, QUASI) >= 5
    assert f"'diagnosis', {'distinct' if kind == 'distinct' else 'entropy'}" in (
        result.certificate.guarantee.statement
    )
    assert verify(tmp_path / "out") == []
    assert plain_result.evaluation.loss < result.evaluation.loss


@pytest.mark.parametrize("algorithm", ["ola", "mondrian"])
@pytest.mark.parametrize(
    ("kind", "column", "most"), [("equal", "diagnosis", 0.2), ("ordered", "weight", 0.08)]
)
def test_an_independent_tool_finds_it_close(
    patients: pl.DataFrame, tmp_path: Path, algorithm: str, kind: str, column: str, most: float
) -> None:
    whole = patients.with_columns(weight=(pl.col("weight").fill_null(80) / 20).round().cast(int))
    close = f"{column}: {{role: sensitive, closeness: {{{kind}: {most}}}}}"
    columns = COLUMNS.replace(f"{column}: {{role: sensitive}}", close)
    settings = f"k: 5, algorithm: {algorithm}"
    settings += ", suppression: 0" if algorithm == "ola" else ""
    released(whole, tmp_path / "out", settings, columns)
    data = read(tmp_path / "out")
    table = plain(data)
    if kind == "ordered":
        table["weight"] = data["weight"].to_list()
    assert len(table) == len(whole)
    assert anonymity.t_closeness(table, QUASI, [column]) <= most + 1e-9
    released(whole, tmp_path / "plain", settings)
    loose = plain(read(tmp_path / "plain"))
    if kind == "ordered":
        loose["weight"] = read(tmp_path / "plain")["weight"].to_list()
    assert anonymity.t_closeness(loose, QUASI, [column]) > most


def test_dates_are_close_along_the_calendar_however_they_are_written(tmp_path: Path) -> None:
    """By the calendar one class has the early days and one the late; by the texts they alternate.

    The distance of each to the whole is 1/3 by the calendar, and 1/6 by the texts.
    """
    days = ["01/01/2019", "03/01/2020", "02/01/2021", "04/01/2022"]
    table = pl.DataFrame({"a": ["x", "x", "y", "y"] * 10, "day": days * 10})
    dates = "{dates: {from: 2019-01-01, to: 2022-12-31, format: '%d/%m/%Y'}}"
    for most, shown in (("0.34", {"x", "y"}), ("0.3", {"*"})):
        columns = (
            "columns:\n  a: {role: quasi, hierarchy: flat}\n"
            f"  day: {{role: sensitive, hierarchy: {dates}, closeness: {{ordered: {most}}}}}"
        )
        released(table, tmp_path / most, "k: 5, suppression: 0", columns)
        assert set(read(tmp_path / most)["a"].to_list()) == shown


def test_no_rule_at_all_is_no_rule(tmp_path: Path) -> None:
    table = pl.DataFrame({"a": ["x"] * 10, "s": [1, 2] * 5})
    columns = "columns: {a: {role: quasi, hierarchy: flat}, s: {role: sensitive, diversity: {}}}"
    released(table, tmp_path / "out", "k: 5", columns)
    assert verify(tmp_path / "out") == []


# The certificate, and those who lie ------------------------------------------------------------


def test_the_certificate_says_what_it_is_not(patients: pl.DataFrame, tmp_path: Path) -> None:
    for algorithm in ALGORITHMS:
        result = released(patients.head(200), tmp_path / algorithm, f"k: 5, algorithm: {algorithm}")
        known = result.certificate
        said = known.guarantee.statement
        assert "k-anonymous with k = 5" in said
        assert "NOT differential privacy" in said
        assert "Known attacks: " in said
        assert (known.guarantee.epsilon, known.guarantee.delta, known.events) == (None, None, [])
        assert known.kept == KEPT
        assert known.method == known.guarantee.kind == "k-anonymity"
        assert said.split(":")[0] in (tmp_path / f"{algorithm}.curator" / "report.html").read_text()


def test_the_unit_is_said_in_words_that_make_sense(tmp_path: Path) -> None:
    table = pl.DataFrame({"id": [i // 3 for i in range(90)], "x": ["a"] * 90})
    columns = "unit: {id: id}\ncolumns: {id: {role: identifier}, x: {role: quasi, hierarchy: flat}}"
    result = released(table, tmp_path / "out", "k: 5", columns)
    assert result.certificate.table.release.rows == result.evaluation.rows_original == 30
    assert result.certificate.guarantee.unit == "one person"
    assert "one person is one person's" not in result.certificate.guarantee.statement
    assert verify(tmp_path / "out") == []
    assert read(tmp_path / "out").columns == ["x"]


@pytest.fixture(scope="module")
def good(patients: pl.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("good") / "out"
    columns = COLUMNS.replace(
        "diagnosis: {role: sensitive}", "diagnosis: {role: sensitive, diversity: {distinct: 2}}"
    ).replace("weight: {role: sensitive}", "weight: {role: drop}")
    columns = columns.replace("zip: {role: quasi", "zip: {weight: 0.1, role: quasi")
    released(patients, folder, "k: 5, algorithm: mondrian, format: csv", columns)
    return folder


def certificate_of(folder: Path) -> Certificate:
    return Certificate.model_validate_json((folder / "certificate.json").read_bytes())


def resealed(
    good: Path,
    copy: Path,
    data: Callable[[pl.DataFrame], pl.DataFrame] = lambda frame: frame,
    parameters: dict[str, float | str] | None = None,
    **changes: Any,
) -> Path:
    """A release changed by somebody who knows the code: hashes, counts, words and seal fit."""
    shutil.copytree(good, copy)
    frame = in_order(data(pl.read_csv(copy / "data.csv", infer_schema=False)))
    frame.write_csv(copy / "data.csv")
    known = certificate_of(good)
    sizes = frame.group_by(QUASI).len()["len"]
    release = known.table.release.model_copy(
        update={
            "sha256": hashlib.sha256((copy / "data.csv").read_bytes()).hexdigest(),
            "rows": len(frame),
            "classes": len(sizes),
            "smallest_class": sizes.min(),
        }
    )
    values = {**known.parameters, **(parameters or {})}
    update = {"release": release, "parameters": values}
    changed = known.model_copy(update=update).stated().model_copy(update=changes).sealed()
    (copy / "certificate.json").write_bytes(changed.canonical())
    return copy


def test_an_honest_copy_verifies(good: Path, tmp_path: Path) -> None:
    assert verify(good) == []
    assert verify(resealed(good, tmp_path / "copy")) == []


def test_a_changed_value_is_found(good: Path, tmp_path: Path) -> None:
    shutil.copytree(good, tmp_path / "copy")
    text = (good / "data.csv").read_text()
    (tmp_path / "copy" / "data.csv").write_text(text.replace("female", "Person", 1))
    assert verify(tmp_path / "copy") == ["The file 'data.csv' was changed: its hash does not fit."]


def smaller(frame: pl.DataFrame) -> pl.DataFrame:
    """One class cut down to four rows."""
    first = frame.select(QUASI).row(0)
    own = pl.all_horizontal(
        pl.col(name).eq_missing(value) for name, value in zip(QUASI, first, strict=True)
    )
    return pl.concat([frame.filter(~own), frame.filter(own).head(4)])


def test_a_class_smaller_than_k_is_found(good: Path, tmp_path: Path) -> None:
    (found,) = verify(resealed(good, tmp_path / "copy", smaller))
    assert found == "1 class(es) are smaller than k = 5; the smallest has 4 row(s)."


@pytest.mark.parametrize("label", ["1800-1850", "1950-1940", "1950-", "nineteen", "**"])
def test_labels_outside_the_hierarchy_are_found(good: Path, tmp_path: Path, label: str) -> None:
    def changed(frame: pl.DataFrame) -> pl.DataFrame:
        return frame.with_columns(birth_year=pl.lit(label))

    found = verify(resealed(good, tmp_path / "copy", changed))
    assert found == [f"'{label}' in column 'birth_year' is no value of its hierarchy."]


def test_a_raised_k_is_found(good: Path, tmp_path: Path) -> None:
    found = verify(resealed(good, tmp_path / "copy", parameters={"k": 50.0}))
    assert len(found) == 1
    assert "smaller than k = 50" in found[0]


LIES: list[dict[str, Any]] = [
    {"method": "safe"},
    {"kept": []},
    {"kept": ["diagnosis", "name"]},
    {"events": [{"kind": "safe release", "k": 5, "beta": 0.1}]},
]


@pytest.mark.parametrize("lie", LIES)
def test_lies_in_the_certificate_are_found(good: Path, tmp_path: Path, lie: dict[str, Any]) -> None:
    assert verify(resealed(good, tmp_path / "copy", **lie)) != []


@pytest.mark.parametrize(
    "change",
    [
        {"statement": "This file satisfies differential privacy."},
        {"epsilon": 1.0, "delta": 1e-6},
        {"kind": "differential privacy"},
        {"unit": "one person"},
    ],
)
def test_a_changed_guarantee_is_found(good: Path, tmp_path: Path, change: dict[str, Any]) -> None:
    guarantee = certificate_of(good).guarantee.model_copy(update=change)
    assert verify(resealed(good, tmp_path / "copy", guarantee=guarantee)) != []


@pytest.mark.parametrize(
    "parameters",
    [
        {"epsilon": 0.1},
        {"note": "differentially private"},
        {"rule of thumb. This file is differentially private with epsilon": 0.1},
        {"rule diagnosis, distinct values, at least": "many"},
        {"suppressed": "never"},
        {"algorithm": "magic"},
    ],
)
def test_parameters_that_no_release_has_are_found(
    good: Path, tmp_path: Path, parameters: dict[str, float | str]
) -> None:
    """They are read by people, and some become part of the statement."""
    try:
        copy = resealed(good, tmp_path / "copy", parameters=parameters)
    except ValueError:  # no statement can be made of them
        return
    assert verify(copy) != []


def test_a_rule_that_does_not_hold_is_found(good: Path, tmp_path: Path) -> None:
    """The statement says that it holds inside every class, and the file tells whether it does."""
    (rule,) = [name for name in certificate_of(good).parameters if name.startswith("rule ")]
    assert verify(resealed(good, tmp_path / "raised", parameters={rule: 6.0})) != []

    def alike(frame: pl.DataFrame) -> pl.DataFrame:
        return frame.with_columns(diagnosis=pl.lit("cancer"))

    assert verify(resealed(good, tmp_path / "alike", alike)) != []


# What is refused -------------------------------------------------------------------------------

SMALL = "columns: {x: {role: quasi, hierarchy: flat%s}, s: {role: sensitive%s}}"
REFUSED: list[tuple[str, str, str, str]] = [
    ("k: 30", "", "", "The table has 20 rows, fewer than k = 30"),
    ("suppression: 0", "", "", "must give 'k' under 'release'"),
    ("k: 5", "", ", diversity: {distinct: 4}", "'s' cannot satisfy"),
    ("k: 5", "", ", diversity: {entropy: 3.5}", "'s' cannot satisfy"),
    ("k: 5, algorithm: mondrian", "", ", diversity: {distinct: 4}", "'s' cannot satisfy"),
    ("k: 5, suppression: 0, levels: {x: 0}", "", "", "No scheme satisfies"),
    ("k: 5, suppression: 0, levels: {x: [0, 0]}", "", "", "No scheme satisfies"),
    ("k: 5, levels: {x: 2}", "", "", "Level 2 is asked for column 'x', but its highest is 1"),
    ("k: 5, levels: {x: [0, 7]}", "", "", "Level 7 is asked for column 'x'"),
    ("k: 5, levels: {s: 1}", "", ", hierarchy: flat", "'s'"),  # or it would be shown as it is
    ("k: 5, algorithm: cluster", "", ", diversity: {distinct: 2}", "do not go with"),
    ("k: 5, algorithm: duplicate", "", ", closeness: {equal: 0.5}", "do not go with"),
    ("k: 5", ", confirm: [role]", "", "nobody has confirmed"),
]


@pytest.mark.parametrize(("settings", "quasi", "sensitive", "part"), REFUSED)
def test_what_cannot_be_published_leaves_nothing(
    tmp_path: Path, settings: str, quasi: str, sensitive: str, part: str
) -> None:
    table = pl.DataFrame({"x": [f"v{i}" for i in range(20)], "s": ["p", "q", "r", "p"] * 5})
    with pytest.raises(IncrowdError) as error:
        released(table, tmp_path / "out", settings, SMALL % (quasi, sensitive))
    assert part in str(error.value)
    assert "\n" not in str(error.value)
    assert [path.name for path in tmp_path.iterdir() if path.name != "state"] == []


def test_a_noisy_column_and_a_ledger_are_refused(tmp_path: Path, patients: pl.DataFrame) -> None:
    noisy = COLUMNS.replace("weight: {role: sensitive}", "weight: {role: noisy, precision: 0.1}")
    with pytest.raises(IncrowdError, match="'weight' is noisy, which belongs to .*'k-epsilon'"):
        released(patients, tmp_path / "out", "k: 5", noisy)
    with pytest.raises(IncrowdError, match="not differentially private, so a ledger cannot"):
        released(patients, tmp_path / "out", "k: 5", ledger=tmp_path / "ledger")
    assert [path.name for path in tmp_path.iterdir() if path.name != "state"] == []


def test_no_quasi_column_is_refused(tmp_path: Path) -> None:
    with pytest.raises(IncrowdError, match="publishes no quasi column"):
        released(
            pl.DataFrame({"s": [1, 2]}), tmp_path / "out", "k: 2", "columns: {s: {role: sensitive}}"
        )


def test_a_failure_without_a_folder_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    with pytest.raises(IncrowdError, match="fewer than k"):
        released(pl.DataFrame({"x": ["a"], "s": [1]}), None, "k: 5", SMALL % ("", ""))
    assert list((tmp_path / "temporary").iterdir()) == []


def test_what_failed_was_not_released(tmp_path: Path) -> None:
    table = pl.DataFrame({"x": [f"v{i}" for i in range(20)], "s": ["p"] * 20})
    with pytest.raises(IncrowdError, match="No scheme"):
        released(table, tmp_path / "a", "k: 5, suppression: 0, levels: {x: 0}", SMALL % ("", ""))
    assert released(table, tmp_path / "b", "k: 5", SMALL % ("", "")).warnings == ()
    again = released(table, tmp_path / "c", "k: 5", SMALL % ("", ""))
    assert "was released before" in again.warnings[0]


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
        .evaluation.loss_by_column["birth_year"]  # type: ignore[union-attr]
        for name, columns in (("heavy", heavy), ("light", light))
    ]  # fmt: skip
    assert lost[0] < lost[1]


# The spec ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("release", "sensitive", "part"),
    [
        ("method: k-anonymity, k: 5, cut: median", "", "'cut' does not belong to the algorithm"),
        ("method: k-anonymity, k: 5, algorithm: mondrian, loss: entropy", "", "'loss' does not"),
        ("method: k-anonymity, k: 5, algorithm: mondrian, levels: {x: 1}", "", "'levels' do not"),
        ("method: k-anonymity, k: 5, algorithm: cluster, suppression: 0.1", "", "'suppression' d"),
        ("method: k-anonymity, k: 5, algorithm: duplicate, candidates: all", "", "'candidates' do"),
        ("method: k-anonymity, k: 5, epsilon: 1", "", "'epsilon' does not belong to method"),
        ("method: k-anonymity, k: 5, beta: 0.1", "", "'beta' does not belong to method"),
        ("method: k-anonymity, k: 5, levels: {x: [2, 1]}", "", "levels of 'x' must rise"),
        ("method: k-anonymity, k: 5, levels: {y: 1}", "", "names the column 'y'"),
        ("method: k-anonymity, k: 0", "", "release.k"),
        ("method: k-anonymity, k: 5, suppression: 1.5", "", "release.suppression"),
        ("method: k-anonymity, k: 5, algorithm: mondrain", "", "did you mean 'mondrian'?"),
        ("method: safe, epsilon: 1, delta: 1.0e-6, algorithm: ola", "", "'algorithm' does not"),
        ("method: safe, epsilon: 1, delta: 1.0e-6, suppression: 0.1", "", "'suppression' does n"),
        ("method: k-anonymity, k: 5", "diversity", "'diversity' belongs to role 'sensitive'"),
        ("method: k-anonymity, k: 5", "closeness", "'closeness' belongs to role 'sensitive'"),
    ],
)
def test_what_does_not_go_together_is_said_once(release: str, sensitive: str, part: str) -> None:
    rule = f", {sensitive}: {{}}" if sensitive else ""
    with pytest.raises(SpecError) as error:
        parse(f"columns: {{x: {{role: quasi, hierarchy: flat{rule}}}}}\nrelease: {{{release}}}")
    (problem,) = error.value.problems
    assert part in str(problem)
    assert problem.line is not None


# The command ------------------------------------------------------------------------------------


@pytest.fixture
def on_disk(patients: pl.DataFrame, tmp_path: Path) -> Path:
    folder = tmp_path / "disk"
    folder.mkdir()
    patients.write_parquet(folder / "patients.parquet")
    settings = "release: {method: k-anonymity, k: 5, format: csv}"
    (folder / "spec.yaml").write_text(f"table: patients.parquet\n{COLUMNS}\n{settings}\n")
    return folder


def test_the_command_publishes_and_verifies(
    on_disk: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*arguments: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["incrowd", *arguments])
        with pytest.raises(SystemExit) as stop:
            main()
        shown = capsys.readouterr()
        return stop.value.code, shown.out + shown.err  # type: ignore[return-value]

    spec, out = str(on_disk / "spec.yaml"), on_disk / "out"
    code, said = run("publish", spec, "-o", str(out))
    assert code == 0
    for part in ("classes", "NOT differential privacy", "Suppressed", "Levels: zip "):
        assert part in said
    assert files(out) == [
        "certificate.json", "data.csv",
        "scheme/birth_year.csv", "scheme/sex.csv",
    ]  # fmt: skip
    code, said = run("verify", str(out))
    assert code == 0
    assert "NOT differential privacy" in said
    code, said = run("publish", spec, "-o", str(on_disk / "b"), "--ledger", str(on_disk / "l"))
    assert code == 2
    assert "without --ledger" in said
    assert not (on_disk / "b").exists()
    assert not (on_disk / "l").exists()


@pytest.mark.parametrize("step", ["count", "search", "write"])
def test_an_interrupt_leaves_nothing_behind(on_disk: Path, step: str) -> None:
    arguments = ["publish", str(on_disk / "spec.yaml"), "-o", str(on_disk / "out")]
    before = sorted(path.name for path in on_disk.iterdir())
    with subprocess.Popen(
        [sys.executable, "-m", "incrowd", *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "INCROWD_PAUSE_AT": step},
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline() == f"paused at {step}\n"
        process.send_signal(signal.SIGINT)
        _, complaint = process.communicate(timeout=60)
    assert process.returncode not in (0, 3)
    assert "Traceback" not in complaint
    assert sorted(path.name for path in on_disk.iterdir()) == before


def test_decimals_stay_exact(tmp_path: Path) -> None:
    """A value that no binary fraction holds is published as it was."""
    table = pl.DataFrame({"x": ["a"] * 5, "s": [Decimal("0.10")] * 5})
    released(table, tmp_path / "out", "k: 5", SMALL % ("", ""))
    assert read(tmp_path / "out")["s"].to_list() == [Decimal("0.10")] * 5
