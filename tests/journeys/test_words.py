"""What a release says of itself is so: the words of pages, report and commands, by key facts."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from support.cli import run_command
from support.findings import list_verify_messages
from support.pages import read_outline
from support.readers import load_certificate, reseal_certificate

import incrowd as ic

pytestmark = pytest.mark.usefixtures("settled_once")

PEOPLE, ROWS = 900, 2700
COLUMNS = {
    "who": {"role": "identifier"},
    "x": {"role": "quasi", "hierarchy": {"flat": {"values": ["a", "b", "c"]}}},
}
TABLE = pl.DataFrame(
    {"who": [at % PEOPLE for at in range(ROWS)], "x": [*["a", "b", "c"] * (ROWS // 3)]}
)


def publish(folder: Path, *, unit: str = "", **release: Any) -> ic.Release:
    request = {"method": "safe", "epsilon": 1, "delta": 1e-6, "levels": {"x": 0}, **release}
    spec: dict[str, Any] = {"columns": COLUMNS, "release": request}
    if unit:
        spec["unit"] = {"id": unit}
    return ic.publish(TABLE, spec, output=folder)


def page(folder: Path) -> str:
    return read_outline((folder / "certificate.html").read_text(encoding="utf-8")).text


def readme(folder: Path) -> str:
    return (folder / "README.md").read_text(encoding="utf-8")


# Several releases ------------------------------------------------------------------------------


def test_values_of_releases_of_one_sample_are_not_to_be_added(tmp_path: Path) -> None:
    """Two of (0.9, 1e-6) with a rate of 0.01 have delta(1.8) = 0.0096, not 2e-6."""
    publish(tmp_path / "sampled", already_sampled=0.01)
    assert "must not be added" in page(tmp_path / "sampled")
    assert "sum of" not in page(tmp_path / "sampled")
    publish(tmp_path / "plain")
    assert "none of which relies on the table being a sample" in page(tmp_path / "plain")
    assert "the sum of their ε and the sum of their δ" in page(tmp_path / "plain")
    assert "with the same unit" in page(tmp_path / "plain")


def test_a_row_of_a_population_is_not_called_a_person(tmp_path: Path) -> None:
    """A person with several rows in the population is protected less."""
    publish(tmp_path / "row", already_sampled=0.01)
    publish(tmp_path / "person", unit="who", already_sampled=0.01)
    sampled = "the population from which the table was sampled"
    assert f"the people with one row in {sampled} as being in it." in page(tmp_path / "row")
    assert f"the people in {sampled} as being in it." in page(tmp_path / "person")
    for name in ("row", "person"):
        assert f"one {name} of {sampled}" in run_command("verify", str(tmp_path / name)).stdout
        assert "do not include the error of that sampling" in readme(tmp_path / name)


def test_a_bound_on_members_of_a_sample_is_not_called_the_guarantee(tmp_path: Path) -> None:
    """The certified epsilon protects members of the population, not of the table."""
    sampled = publish(tmp_path / "sampled", already_sampled=0.01)
    text = read_outline(sampled.report().html).text
    assert "their bounds do not include the sampling" in text
    assert "within the guarantee" not in text
    plain = read_outline(publish(tmp_path / "plain").report().html).text
    assert "do not include the sampling" not in plain


# People and rows -------------------------------------------------------------------------------


def test_counts_of_people_are_called_so(tmp_path: Path) -> None:
    release = publish(tmp_path / "out", unit="who")
    for text in (page(tmp_path / "out"), readme(tmp_path / "out")):
        assert "numbers of people" in text
        assert "not of rows of the original table" in text or "not numbers of rows" in text
        assert f"{ROWS - PEOPLE:,}" not in text  # how many rows were not used is private
        assert f"{ROWS:,}" not in text
    report = read_outline(release.report().html).text
    assert f"from one row of each of {PEOPLE:,} people" in report
    assert f"{ROWS - PEOPLE:,} of the table's {ROWS:,} rows were not used" in report
    assert list_verify_messages(tmp_path / "out") == []


def test_counts_of_rows_are_called_so(tmp_path: Path) -> None:
    publish(tmp_path / "out")
    for text in (page(tmp_path / "out"), readme(tmp_path / "out")):
        assert "numbers of rows of the original table" in text
        assert "numbers of people" not in text


def test_the_command_says_how_many_rows_were_not_used(tmp_path: Path) -> None:
    TABLE.write_parquet(tmp_path / "t.parquet")
    release = {"method": "safe", "epsilon": 1, "delta": 1e-6, "levels": {"x": 0}}
    spec = {"table": "t.parquet", "columns": COLUMNS, "unit": {"id": "who"}, "release": release}
    (tmp_path / "spec.json").write_text(json.dumps(spec))
    done = run_command("publish", str(tmp_path / "spec.json"), "-o", str(tmp_path / "out"))
    assert f"{ROWS - PEOPLE:,} rows: one row per person is used" in done.stdout


def test_the_report_draws_a_crowd_of_the_unit(tmp_path: Path) -> None:
    rows = read_outline(publish(tmp_path / "rows").report().html).text
    people = read_outline(publish(tmp_path / "people", unit="who").report().html).text
    assert " rows with equal labels in every column is published" in rows
    assert " people with equal labels in every column is published" in people
    assert "rows of the table, each of a different person." in people
    assert "each of a different person" not in rows


def test_an_evaluation_tells_rows_of_the_table_from_surplus_rows(tmp_path: Path) -> None:
    """Published rows are those of the table that are not missing, and surplus rows besides."""
    TABLE.write_parquet(tmp_path / "t.parquet")
    release = {"method": "safe", "epsilon": 0.1, "delta": 1e-6, "levels": {"x": 0}}
    spec = {"table": "t.parquet", "columns": COLUMNS, "release": release}
    for unit in ("one row per person", {"id": "who"}):
        (tmp_path / "spec.json").write_text(json.dumps({**spec, "unit": unit}))
        out = tmp_path / str(len(str(unit)))
        evaluation = ic.publish(
            tmp_path / "t.parquet", tmp_path / "spec.json", output=out
        ).evaluation
        done = run_command(
            "evaluate", "--original", str(tmp_path / "t.parquet"), "--released", str(out),
            "--spec", str(tmp_path / "spec.json"),
        )  # fmt: skip
        rows_kept = evaluation.rows_original - evaluation.suppressed
        assert (
            f"{evaluation.rows_original:,} original, {evaluation.rows_released:,} released"
            in done.stdout
        )
        assert f"{evaluation.suppressed:,} rows (" in done.stdout
        assert rows_kept + evaluation.surplus == evaluation.rows_released
        assert ("Unit: one person." in done.stdout) is (unit == {"id": "who"})


def test_nothing_is_called_protected_where_nothing_is_guaranteed(tmp_path: Path) -> None:
    from support.release_lines import describe_release

    from incrowd.privacy.randomness import SeededRandomness

    request = {"method": "safe", "epsilon": 1, "delta": 1e-6, "levels": {"x": 0}}
    spec = {"columns": COLUMNS, "release": request}
    seeded = ic.publish(TABLE, spec, output=tmp_path / "out", bits=SeededRandomness(1))
    assert "Protects" not in "\n".join(describe_release(seeded))
    assert "Protects: one row, not all rows of a person together." in "\n".join(
        describe_release(publish(tmp_path / "system"))
    )


# Totals ----------------------------------------------------------------------------------------


def test_nobody_says_that_totals_are_too_small(tmp_path: Path) -> None:
    """Suppressed groups are missing, and those near the threshold are shown too large."""
    publish(tmp_path / "out")
    text = readme(tmp_path / "out")
    assert "totals are too small" not in text
    assert "biased upward" in text
    assert "not known" in text


# A size that the curator asserts ---------------------------------------------------------------


def certificate_with(folder: Path, **parameters: float | str) -> list[str]:
    """What verify says of a release with other parameters, sealed as if they were true."""
    certificate = load_certificate(folder)
    changed = certificate.model_copy(
        update={"parameters": {**certificate.parameters, **parameters}}
    )
    reseal_certificate(folder, changed)
    return list_verify_messages(folder)


def test_a_size_that_decided_parameters_is_stated_as_an_assumption(tmp_path: Path) -> None:
    publish(tmp_path / "out")
    keys = {sentence.key for sentence in load_certificate(tmp_path / "out").guarantee.statement}
    assert "assumption_size" not in keys
    assert certificate_with(tmp_path / "out", size=2700.0) == []
    (text,) = [
        sentence.text
        for sentence in load_certificate(tmp_path / "out").guarantee.statement
        if sentence.key == "assumption_size"
    ]
    assert "2,700" in text
    assert text in page(tmp_path / "out")
    for wrong in (0.0, -5.0, 2.5, "many"):
        publish(tmp_path / f"{wrong}")
        with contextlib.suppress(ValueError):  # no statement can be made of it
            assert certificate_with(tmp_path / f"{wrong}", size=wrong) != []


def test_no_other_method_has_a_size(tmp_path: Path) -> None:
    release = {"method": "k-anonymity", "k": 5}
    ic.publish(TABLE, {"columns": COLUMNS, "release": release}, output=tmp_path / "out")
    (problem,) = certificate_with(tmp_path / "out", size=2700.0)
    assert "no parameter 'size'" in problem


# Words follow epsilon --------------------------------------------------------------------------


def test_a_huge_epsilon_is_called_hardly_any_protection(tmp_path: Path) -> None:
    release = publish(tmp_path / "out", epsilon=100)
    html = (tmp_path / "out" / "certificate.html").read_text(encoding="utf-8")
    assert '<p class="warn">There is hardly any protection' in html
    assert '<p class="warn">There is hardly any protection' in release.report().html
    for text in (page(tmp_path / "out"), readme(tmp_path / "out"), release.report().html):
        assert "nearly as likely" not in text
        assert "hardly any protection" in text
        assert "strong" not in text.partition("hardly any protection")[0][-200:]
    done = run_command("verify", str(tmp_path / "out"))
    assert done.returncode == 0
    assert "hardly any protection" in done.stdout
    planned = run_command("plan", "--epsilon", "100", "--delta", "1e-6")
    assert "hardly any protection" in planned.stdout


def test_a_usual_epsilon_comes_with_what_an_attacker_can_do(tmp_path: Path) -> None:
    release = publish(tmp_path / "out")
    words = "accepts a 1 % false-positive rate recognizes at most 2.72 % of the people"
    for text in (
        page(tmp_path / "out"),
        readme(tmp_path / "out"),
        read_outline(release.report().html).text,
    ):
        assert words in text
        assert "hardly any protection" not in text
    assert words in run_command("verify", str(tmp_path / "out")).stdout
