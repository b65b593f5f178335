"""k-anonymous releases, end to end, against the definitions and an independent tool."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from pycanon import anonymity
from support.cli import wait_for_step
from support.patients import (
    ALGORITHMS,
    COLUMNS,
    KEPT,
    QUASI,
    SMALL,
    convert_for_pycanon,
    count_shown_rows,
    publish_patients,
    read_released_rows,
)
from support.releases import get_statement, list_files

from incrowd.cli.main import main
from incrowd.errors import IncrowdError
from incrowd.publication import publish
from incrowd.release.verify import verify

# What is published ---------------------------------------------------------------------------


@pytest.mark.parametrize(("rows", "ending"), [("expanded", "parquet"), ("counted", "csv")])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_algorithm_holds_together(
    patients: pl.DataFrame, tmp_path: Path, algorithm: str, rows: str, ending: str
) -> None:
    settings = f"k: 6, algorithm: {algorithm}, rows: {rows}, format: {ending}"
    result = publish_patients(patients, tmp_path / "out", settings)
    assert verify(tmp_path / "out") == []
    data = read_released_rows(tmp_path / "out")
    assert data.columns == [*QUASI, *KEPT, *(["count"] if rows == "counted" else [])]
    facts = result.certificate.table.release
    outcome = convert_for_pycanon(data)
    assert len(outcome) == facts.rows
    assert anonymity.k_anonymity(outcome, QUASI) == facts.smallest_class >= 6
    assert len(outcome.groupby(QUASI)) == facts.classes
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
     "loss: discernibility", "suppressed: starred", "rows: counted",
     "levels: {zip: [1, 3], birth_year: 2}, suppression: 0.4"],
)  # fmt: skip
def test_full_domain_recoding_row_by_row(
    patients: pl.DataFrame, tmp_path: Path, settings: str
) -> None:
    result = publish_patients(patients, tmp_path / "out", f"k: 5, {settings}", by=publish)
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
    data = read_released_rows(tmp_path / "out")
    if "counted" in settings:
        counter: Counter[tuple[object, ...]] = Counter()
        for *labels, count in data.iter_rows():
            counter[tuple(labels)] += count
        assert len(counter) == len(data)
    else:
        counter = count_shown_rows(data)
    assert counter == expected
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


@pytest.mark.parametrize("settings", ["", ", cut: median", ", rows: counted, format: csv"])
def test_mondrian_shows_every_row_in_the_one_class_that_holds_it(
    patients: pl.DataFrame, tmp_path: Path, settings: str
) -> None:
    complete = patients.drop_nulls()
    publish_patients(complete, tmp_path / "out", f"k: 8, algorithm: mondrian{settings}", ORDERED)
    frame = read_released_rows(tmp_path / "out")
    if "count" not in frame.columns:
        frame = frame.group_by(pl.all()).len("count")
    result: dict[tuple[Any, ...], Counter[Any]] = {}
    for *row, count in frame.iter_rows():
        result.setdefault(tuple(row[:3]), Counter())[tuple(row[3:])] += count
    expected: dict[tuple[Any, ...], Counter[Any]] = {}
    for values in complete.select(*QUASI, *KEPT).iter_rows():
        (box,) = [
            box
            for box in result
            if all(within(x, value) for x, value in zip(box, values[:3], strict=True))
        ]
        expected.setdefault(box, Counter())[values[3:]] += 1
    assert result == expected
    assert all(rows_held.total() >= 8 for rows_held in result.values())
    assert len(result) > 50


def test_clusters_hold_rows_of_the_table(patients: pl.DataFrame, tmp_path: Path) -> None:
    complete = patients.drop_nulls()
    result = publish_patients(
        complete, tmp_path / "out", "k: 5, algorithm: cluster", ORDERED, by=publish
    )
    rows = list(complete.select(*QUASI, *KEPT).iter_rows())
    data = read_released_rows(tmp_path / "out")
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
    result = publish_patients(patients, tmp_path / "out", "k: 5, algorithm: duplicate", ORDERED)
    real = count_shown_rows(patients.select(*QUASI, *KEPT))
    data = read_released_rows(tmp_path / "out")
    assert set(data.iter_rows()) <= set(real)
    assert len(data) == len(patients)
    assert "Real records" in get_statement(result.certificate)["known_attacks"]


def test_duplicates_are_drawn_anew(patients: pl.DataFrame, tmp_path: Path) -> None:
    item = publish_patients(patients.head(200), tmp_path / "a", "k: 5, algorithm: duplicate")
    two = publish_patients(patients.head(200), tmp_path / "b", "k: 5, algorithm: duplicate")
    assert item.certificate.table.release.sha256 != two.certificate.table.release.sha256


def test_starred_rows_are_in_no_class(patients: pl.DataFrame, tmp_path: Path) -> None:
    stars = publish_patients(patients, tmp_path / "stars", "k: 5, suppressed: starred", by=publish)
    dropped = publish_patients(patients, tmp_path / "dropped", "k: 5", by=publish)
    assert verify(tmp_path / "stars") == []
    starred, remaining = stars.certificate.table.release, dropped.certificate.table.release
    assert starred.rows == len(patients) > remaining.rows
    assert (starred.classes, starred.smallest_class) == (
        remaining.classes,
        remaining.smallest_class,
    )
    first, second = (
        replace(item, utility=item.utility and replace(item.utility, accuracy=None))
        for item in (stars.evaluation, dropped.evaluation)
    )
    assert first == second  # but for a classifier, which learns from starred rows, too
    assert "suppressed_rows" in get_statement(stars.certificate)
    assert "suppressed_rows" not in get_statement(dropped.certificate)


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
    result = publish_patients(pl.DataFrame({"a": values}), tmp_path / "out", settings, columns)
    assert verify(tmp_path / "out") == []
    assert result.certificate.table.release.rows == len(values)
    if suppressed == "dropped":
        assert result.evaluation.rows_released == len(values)


# The certificate, and those who lie ------------------------------------------------------------


def test_the_certificate_says_what_it_is_not(patients: pl.DataFrame, tmp_path: Path) -> None:
    for algorithm in ALGORITHMS:
        result = publish_patients(
            patients.head(200), tmp_path / algorithm, f"k: 5, algorithm: {algorithm}"
        )
        certificate = result.certificate
        statement = get_statement(certificate)
        assert "5-anonymous" in statement["k_anonymity"]
        assert "NOT differential privacy" in statement["not_differential_privacy"]
        assert "known_attacks" in statement
        assert (certificate.guarantee.epsilon, certificate.guarantee.delta, certificate.events) == (
            None,
            None,
            [],
        )
        assert certificate.kept == KEPT
        assert certificate.method == certificate.guarantee.kind == "k-anonymity"
        report = (tmp_path / f"{algorithm}.curator" / "report.html").read_text()
        assert statement["not_differential_privacy"] in report


def test_the_unit_is_said_in_words_that_make_sense(tmp_path: Path) -> None:
    table = pl.DataFrame({"id": [i // 3 for i in range(90)], "x": ["a"] * 90})
    columns = "unit: {id: id}\ncolumns: {id: {role: identifier}, x: {role: quasi, hierarchy: flat}}"
    result = publish_patients(table, tmp_path / "out", "k: 5", columns)
    assert result.certificate.table.release.rows == result.evaluation.rows_original == 30
    assert result.certificate.guarantee.unit == "one person"
    assert "One row per person" in get_statement(result.certificate)["unit"]
    assert verify(tmp_path / "out") == []
    assert read_released_rows(tmp_path / "out").columns == ["x"]


def test_everything_may_be_suppressed(tmp_path: Path) -> None:
    table = pl.DataFrame({"x": [f"v{i}" for i in range(20)], "s": ["p"] * 20})
    settings = "k: 5, suppression: 1, levels: {x: 0}"
    for suppressed in ("dropped", "starred"):
        result = publish_patients(
            table,
            tmp_path / suppressed,
            f"{settings}, suppressed: {suppressed}",
            SMALL % ("", ""),
            by=publish,
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
        publish_patients(
            patients, tmp_path / name, f"k: 5, algorithm: {algorithm}", columns, by=publish
        ).evaluation.loss_by_column["birth_year"]
        for name, columns in (("heavy", heavy), ("light", light))
    ]
    assert lost[0] < lost[1]


# Rules on sensitive values -------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["ola", "mondrian"])
@pytest.mark.parametrize("rule", ["distinct: 3", "entropy: 2.5"])
def test_an_independent_tool_finds_it_diverse(
    patients: pl.DataFrame, tmp_path: Path, algorithm: str, rule: str
) -> None:
    diverse = f"diagnosis: {{role: sensitive, diversity: {{{rule}}}}}"
    columns = COLUMNS.replace("diagnosis: {role: sensitive}", diverse)
    result = publish_patients(
        patients, tmp_path / "out", f"k: 5, algorithm: {algorithm}", columns, by=publish
    )
    plain_result = publish_patients(
        patients, tmp_path / "plain", f"k: 5, algorithm: {algorithm}", by=publish
    )
    data, without = (
        convert_for_pycanon(read_released_rows(tmp_path / "out")),
        convert_for_pycanon(read_released_rows(tmp_path / "plain")),
    )
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
    statement = get_statement(result.certificate)["rules"]
    assert "'diagnosis'" in statement
    assert kind in statement
    assert verify(tmp_path / "out") == []
    assert plain_result.evaluation.loss < result.evaluation.loss


@pytest.mark.parametrize("algorithm", ["ola", "mondrian"])
@pytest.mark.parametrize(
    ("kind", "column", "most"), [("equal", "diagnosis", 0.2), ("ordered", "weight", 0.08)]
)
def test_an_independent_tool_finds_it_close(
    patients: pl.DataFrame, tmp_path: Path, algorithm: str, kind: str, column: str, most: float
) -> None:
    complete = patients.with_columns(weight=(pl.col("weight").fill_null(80) / 20).round().cast(int))
    close = f"{column}: {{role: sensitive, closeness: {{{kind}: {most}}}}}"
    columns = COLUMNS.replace(f"{column}: {{role: sensitive}}", close)
    settings = f"k: 5, algorithm: {algorithm}"
    settings += ", suppression: 0" if algorithm == "ola" else ""
    publish_patients(complete, tmp_path / "out", settings, columns)
    data = read_released_rows(tmp_path / "out")
    table = convert_for_pycanon(data)
    if kind == "ordered":
        table["weight"] = data["weight"].to_list()
    assert len(table) == len(complete)
    assert anonymity.t_closeness(table, QUASI, [column]) <= most + 1e-9
    publish_patients(complete, tmp_path / "plain", settings)
    loose = convert_for_pycanon(read_released_rows(tmp_path / "plain"))
    if kind == "ordered":
        loose["weight"] = read_released_rows(tmp_path / "plain")["weight"].to_list()
    assert anonymity.t_closeness(loose, QUASI, [column]) > most


def test_dates_are_close_along_the_calendar_however_they_are_written(tmp_path: Path) -> None:
    """By the calendar one class has the early days and one the late; by the texts they alternate.

    The distance of each to the whole is 1/3 by the calendar, and 1/6 by the texts.
    """
    days = ["01/01/2019", "03/01/2020", "02/01/2021", "04/01/2022"]
    table = pl.DataFrame({"a": ["x", "x", "y", "y"] * 10, "day": days * 10})
    dates = "{dates: {from: 2019-01-01, to: 2022-12-31, format: '%d/%m/%Y'}}"
    for most, labels in (("0.34", {"x", "y"}), ("0.3", {"*"})):
        columns = (
            "columns:\n  a: {role: quasi, hierarchy: flat}\n"
            f"  day: {{role: sensitive, hierarchy: {dates}, closeness: {{ordered: {most}}}}}"
        )
        publish_patients(table, tmp_path / most, "k: 5, suppression: 0", columns)
        assert set(read_released_rows(tmp_path / most)["a"].to_list()) == labels


def test_no_rule_at_all_is_no_rule(tmp_path: Path) -> None:
    table = pl.DataFrame({"a": ["x"] * 10, "s": [1, 2] * 5})
    columns = "columns: {a: {role: quasi, hierarchy: flat}, s: {role: sensitive, diversity: {}}}"
    publish_patients(table, tmp_path / "out", "k: 5", columns)
    assert verify(tmp_path / "out") == []


# What is refused ----------------------------------------------------------------------------

REFUSED: list[tuple[str, str, str, str]] = [
    ("k: 30", "", "", "20 rows, fewer than k = 30"),
    ("suppression: 0", "", "", "`k` is missing"),
    ("k: 5", "", ", diversity: {distinct: 4}", "'s': even the whole table as one class violates"),
    ("k: 5", "", ", diversity: {entropy: 3.5}", "'s': even the whole table as one class violates"),
    (
        "k: 5, algorithm: mondrian",
        "",
        ", diversity: {distinct: 4}",
        "'s': even the whole table as one class violates",
    ),
    ("k: 5, suppression: 0, levels: {x: 0}", "", "", "No scheme satisfies"),
    ("k: 5, suppression: 0, levels: {x: [0, 0]}", "", "", "No scheme satisfies"),
    ("k: 5, levels: {x: 2}", "", "", "Column 'x': level 2 does not exist, the highest is 1"),
    ("k: 5, levels: {x: [0, 7]}", "", "", "Column 'x': level 7 does not exist"),
    ("k: 5, levels: {s: 1}", "", ", hierarchy: flat", "'s'"),  # or it would be shown as it is
    ("k: 5, algorithm: duplicate", "", ", closeness: {equal: 0.5}", "does not support"),
    ("k: 5", ", confirm: [role]", "", "not confirmed: roles"),
]


@pytest.mark.parametrize(("settings", "quasi", "sensitive", "part"), REFUSED)
def test_what_cannot_be_published_leaves_nothing(
    tmp_path: Path, settings: str, quasi: str, sensitive: str, part: str
) -> None:
    table = pl.DataFrame({"x": [f"v{i}" for i in range(20)], "s": ["p", "q", "r", "p"] * 5})
    with pytest.raises(IncrowdError) as error:
        publish_patients(table, tmp_path / "out", settings, SMALL % (quasi, sensitive))
    assert part in str(error.value)
    assert "\n" not in str(error.value)
    assert [path.name for path in tmp_path.iterdir() if path.name != "state"] == []


def test_a_noisy_column_and_a_ledger_are_refused(tmp_path: Path, patients: pl.DataFrame) -> None:
    noisy = COLUMNS.replace("weight: {role: sensitive}", "weight: {role: noisy, precision: 0.1}")
    with pytest.raises(IncrowdError, match="'weight': the role `noisy` is for"):
        publish_patients(patients, tmp_path / "out", "k: 5", noisy)
    with pytest.raises(IncrowdError, match="not differentially private, so no ledger can"):
        publish_patients(patients, tmp_path / "out", "k: 5", ledger=tmp_path / "ledger")
    assert [path.name for path in tmp_path.iterdir() if path.name != "state"] == []


def test_what_failed_was_not_released(tmp_path: Path) -> None:
    table = pl.DataFrame({"x": [f"v{i}" for i in range(20)], "s": ["p"] * 20})
    with pytest.raises(IncrowdError, match="No scheme"):
        publish_patients(
            table,
            tmp_path / "a",
            "k: 5, suppression: 0, levels: {x: 0}",
            SMALL % ("", ""),
            by=publish,
        )
    assert (
        publish_patients(table, tmp_path / "b", "k: 5", SMALL % ("", ""), by=publish).findings == ()
    )
    again = publish_patients(table, tmp_path / "c", "k: 5", SMALL % ("", ""), by=publish)
    assert "was released before" in str(again.findings[0])


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
        streams = capsys.readouterr()
        return stop.value.code, streams.out + streams.err  # type: ignore[return-value]

    spec, out = str(on_disk / "spec.yaml"), on_disk / "out"
    code, text = run("publish", spec, "-o", str(out))
    assert code == 0
    for part in ("groups", "NOT differential privacy", "Missing", "Generalized"):
        assert part in text
    assert list_files(out) == [
        "README.md", "certificate.html", "certificate.json", "data.csv",
        "scheme/birth_year.csv", "scheme/sex.csv",
    ]  # fmt: skip
    code, text = run("verify", str(out))
    assert code == 0
    assert "NOT differential privacy" in text
    code, text = run("publish", spec, "-o", str(on_disk / "b"), "--ledger", str(on_disk / "l"))
    assert code == 2
    assert "Remove --ledger" in text
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
        wait_for_step(process, step)
        process.send_signal(signal.SIGINT)
        _, complaint = process.communicate(timeout=60)
    assert process.returncode not in (0, 3)
    assert "Traceback" not in complaint
    assert sorted(path.name for path in on_disk.iterdir()) == before
