"""What vanished is said where people look: on screen, in the report, before and after."""

from __future__ import annotations

import json
import re
from pathlib import Path

import polars as pl
import pytest
from support.cli import run_command
from support.covid import COLUMNS, FIXED, format_fixed_levels, make_covid_spec, make_covid_table
from support.findings import list_codes
from support.pages import read_outline
from support.release_lines import describe_release

from incrowd.curate.check import check
from incrowd.evaluation.evaluate import evaluate
from incrowd.evaluation.report.summary import summarize_release
from incrowd.measure.evaluation import Evaluation
from incrowd.publication import Release, publish
from incrowd.spec.file import parse_spec

pytestmark = pytest.mark.usefixtures("settled_once")
SAFE = f"method: safe, epsilon: 1, delta: 1.0e-6, {format_fixed_levels()}"
TABLE = make_covid_table()
HIDDEN = ("zip", "day", "clinic", "group", "drive_through")


@pytest.fixture(scope="module")
def counts(tmp_path_factory: pytest.TempPathFactory) -> Release:
    folder = tmp_path_factory.mktemp("counts")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder / "state"))
        return publish(TABLE, make_covid_spec(SAFE), output=folder / "out")


def report_of(release: Release) -> str:
    return (release.curator / "report.html").read_text(encoding="utf-8")


def positives(evaluation: Evaluation) -> str:
    """What is said of the positive tests, with the figures of a count by hand."""
    (result,) = (value for value in evaluation.lost.values if value.labels == ("positive",))
    assert result.columns == ("result",)
    assert result.rows == TABLE.filter(pl.col("result") == "positive").height
    lost = f"{100 * (1 - result.released / result.rows):.1f}".removesuffix(".0")
    return f"result = positive ({lost} % of {result.rows:,} rows"


def test_values_pairs_and_columns_that_were_lost_are_named_everywhere(counts: Release) -> None:
    data = counts.data
    (item,) = (x for x in counts.evaluation.lost.values if x.labels == ("positive",))
    assert item.released == data.filter(pl.col("result") == "positive").height
    findings = counts.evaluation.lost.findings()
    lines = [finding.message for finding in findings]
    assert len(lines) == 3
    assert positives(counts.evaluation) in lines[0]
    assert "with result = positive (all of " in lines[1]
    assert "zip, day, clinic, group" in lines[2]
    terminal = describe_release(counts)
    card = " ".join(summarize_release(counts.certificate, counts.evaluation).loss.sentences)
    page = read_outline(report_of(counts)).text
    for finding in findings:
        assert f"For you only: {finding.message} {finding.remedy}" in terminal
    lost = counts.evaluation.lost
    assert f"most of all {lost.values[0].description}." in card
    assert f"Suppressed columns: {', '.join(lost.nothing_shown)}." in card
    assert card in page
    for value in (*lost.values, *lost.pairs):
        assert f"{value.name} {value.rows:,} {value.released:,} " in page
    stored = json.loads((counts.curator / "evaluation.json").read_text())["lost"]
    assert ["result"] in [value["columns"] for value in stored["values"]]
    assert stored["nothing_shown"] == list(HIDDEN)


def test_nothing_of_it_is_handed_out(counts: Release) -> None:
    for path in counts.folder.rglob("*"):
        if path.is_file() and path.suffix in (".json", ".html", ".md"):
            assert "lost far more" not in path.read_text(encoding="utf-8")


def test_columns_that_show_nothing_are_not_drawn_as_perfect(counts: Release) -> None:
    result, page = counts.evaluation, report_of(counts)
    assert result.utility is not None
    assert not {*HIDDEN} & {*result.utility.distance_by_column}
    for pair in result.utility.associations:
        assert not {*HIDDEN} & {pair.first, pair.second}
    for name in HIDDEN:
        row = re.findall(rf"<tr><td>{name}</td>(.*?)</tr>", page)[0]
        assert row.count("<td>suppressed</td>") == 1
        (figure,) = re.findall(
            rf"<figure><figcaption>{name}</figcaption>(.*?)</figure>", page, re.S
        )
        assert "Suppressed." in figure
        assert "<svg" not in figure
    row = re.findall(r"<tr><td>insurer</td>(.*?)</tr>", page)[0]
    assert "suppressed" not in row


def test_of_a_release_that_shows_nothing_no_figure_is_good(tmp_path: Path) -> None:
    levels = {**FIXED, "gender": 1, "age": 5, "insurer": 1, "class": 1, "result": 1}
    listed = ", ".join(f"{name}: {level}" for name, level in levels.items())
    spec = make_covid_spec(f"method: safe, epsilon: 1, delta: 1.0e-6, levels: {{{listed}}}")
    release = publish(TABLE, spec, output=tmp_path / "out")
    assert {*release.evaluation.lost.nothing_shown} == {*levels}
    assert release.evaluation.utility is None
    words = read_outline(report_of(release)).text
    assert "0.0 % (median" not in words
    assert "on other machines" not in words
    again = evaluate(TABLE, release, spec)
    assert again.lost == release.evaluation.lost


def test_what_is_not_shown_cannot_be_inferred(tmp_path: Path) -> None:
    levels = ", ".join(f"{x}: {y}" for x, y in {**FIXED, "result": 1}.items())
    spec = make_covid_spec(f"method: safe, epsilon: 1, delta: 1.0e-6, levels: {{{levels}}}")
    release = publish(TABLE, spec, output=tmp_path / "out")
    attacked = json.loads((release.curator / "attacks.json").read_text())
    assert attacked["attacks"]
    assert "inference" not in [item["attack"] for item in attacked["attacks"]]
    assert any("'result' was not run" in note for note in attacked["notes"])


def test_a_full_mask_is_nothing(tmp_path: Path) -> None:
    table = pl.DataFrame({"zip": ["12345", "54321"] * 50, "sex": ["f", "m"] * 50})
    columns = (
        "columns: {zip: {role: quasi, hierarchy: {mask: {length: 5}}}, "
        "sex: {role: quasi, hierarchy: {flat: {values: [f, m]}}}}"
    )
    for method in ("k-anonymity, k: 5", "safe, epsilon: 2, delta: 1.0e-3"):
        spec = parse_spec(f"{columns}\nrelease: {{method: {method}, levels: {{zip: 5, sex: 0}}}}")
        release = publish(table, spec, output=tmp_path / method[:4])
        assert release.data["zip"].unique().to_list() == ["*****"]
        assert release.evaluation.lost.nothing_shown == ("zip",)
        assert evaluate(table, release, spec).lost.nothing_shown == ("zip",)
        assert release.examples is not None
        assert release.examples.levels["zip"] == "suppressed"


def test_values_of_columns_that_are_kept_are_looked_at_too(tmp_path: Path) -> None:
    table = pl.DataFrame(
        {"x": ["a"] * 500 + ["b"] * 4 + ["c"] * 4 + ["d"] * 40, "s": ["no"] * 500 + ["yes"] * 48}
    )
    spec = parse_spec(
        "columns: {x: {role: quasi, hierarchy: flat}, s: {role: sensitive}}\n"
        "release: {method: k-anonymity, k: 50, suppression: 0.2, levels: {x: 0}}"
    )
    release = publish(table, spec, output=tmp_path / "out")
    named = [value.name for value in release.evaluation.lost.values]
    assert named == ["s = yes", "x = d"]
    assert evaluate(table, release, spec).lost == release.evaluation.lost


def test_the_terminal_says_it_when_publishing_and_evaluating(tmp_path: Path) -> None:
    TABLE.write_parquet(tmp_path / "covid.parquet")
    spec = tmp_path / "spec.yaml"
    spec.write_text(f"table: covid.parquet\n{COLUMNS}\nrelease: {{{SAFE}}}\n")
    stdout = run_command("publish", str(spec), "-o", str(tmp_path / "out")).stdout
    assert "result = positive (" in stdout
    assert "Suppressed columns: zip, day, clinic, group" in stdout
    (data,) = (tmp_path / "out").glob("data.*")
    again = run_command(
        "evaluate", "--original", str(tmp_path / "covid.parquet"), "--released", str(data),
        "--spec", str(spec),
    ).stdout  # fmt: skip
    lines = [line for line in stdout.splitlines() if "that lost" in line]
    assert len(lines) == 2
    assert all(line in again for line in lines)
    assert len(re.findall(r"(?m)^(?:zip|day|clinic|group|drive_through) .*suppressed", again)) == 5


def test_the_pre_flight_says_in_private_what_would_be_lost() -> None:
    """Only the part that may read the table does, and it says that it is private."""
    findings = check(TABLE, make_covid_spec(SAFE))
    (result,) = [finding for finding in findings if finding.code == "VALUES_EXPECTED_LOST"]
    assert "For you only" in result.message
    assert result.severity == "warning"
    assert "result = positive" in result.message
    some = [
        str(finding)
        for finding in findings
        if finding.topic == "forecast" and finding is not result
    ]
    assert some
    assert not any("positive" in line for line in some)


@pytest.mark.parametrize("release", ["method: k-anonymity, k: 5", "method: safe, epsilon: 1"])
def test_where_levels_are_open_the_pre_flight_says_nothing_of_values(release: str) -> None:
    assert "VALUES_EXPECTED_LOST" not in list_codes(check(TABLE, make_covid_spec(release)))
