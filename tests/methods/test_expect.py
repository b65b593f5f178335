"""What to expect of a release: words from the spec alone, and doubts where they are due."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, cast

import numpy as np
import polars as pl
import pytest
from support.cli import run_command

from incrowd.curate.check import check
from incrowd.curate.planned_guarantee import plan_guarantee
from incrowd.engine.source import open_table
from incrowd.engine.table import Table
from incrowd.errors import IncrowdError
from incrowd.findings import Finding
from incrowd.methods.expect import Expectation, expect, expect_with_draw
from incrowd.methods.registry import make_method
from incrowd.privacy.plan import plan
from incrowd.release.crowd import make_crowd
from incrowd.spec.file import SpecFile, parse_spec

pytestmark = pytest.mark.usefixtures("settled_once")

COLUMNS = """
columns:
  id: {role: identifier}
  sex: {role: quasi, hierarchy: {flat: {values: [a, b]}}}
  age: {role: quasi, hierarchy: {intervals: {from: 0, to: 79, widths: [5, 20]}}}
  zip: {role: quasi, hierarchy: {mask: {length: 5}}}
  job: {role: quasi, hierarchy: flat}
"""
SAFE = "epsilon: 1, delta: 1.0e-6"


class Untouchable:
    """A table that nobody may look at."""

    def __getattribute__(self, name: str) -> Any:
        raise AssertionError(f"the table was asked for '{name}'")


def untouchable() -> Table:
    return cast("Table", Untouchable())


def spec(
    release: str = SAFE, size: object = None, more: str = "", columns: str = COLUMNS
) -> SpecFile:
    stated = "" if size is None else f"size: {size}"
    return parse_spec(f"{stated}\n{more}\n{columns}\nrelease: {{{release}}}\n")


def words(expectation: Expectation) -> str:
    return "\n".join(map(str, expectation.findings()))


# Words -----------------------------------------------------------------------------------------


def test_without_a_size_it_says_how_many_people_it_takes() -> None:
    result = expect(untouchable(), spec())
    needed, crowd = result.findings()
    uniform, skewed = needed.values["concentrated"], needed.values["skewed"]
    assert needed.code == "TABLE_SIZE_NEEDED"
    for first, number in zip(result.each, (uniform, skewed), strict=True):
        assert isinstance(number, int)
        assert first.whole <= number <= 1.1 * first.whole + 1
    assert (crowd.code, crowd.values) == (
        "CROWD_SIZE",
        {"crowd": result.crowd_size, "unit": "people"},
    )
    assert "`size: NUMBER` only if that number is public" in crowd.remedy
    assert "`incrowd rehearse --size`" in crowd.remedy
    assert not result.is_doubtful
    assert all(forecast.rows is None and forecast.empty is None for forecast in result.each)
    assert result.each[0].told.keys() == {"sex", "age", "zip", "job"}


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.5, 1e-6), (2.0, 1e-5)])
@pytest.mark.parametrize("draw", ["sample", "counts"])
def test_a_crowd_is_the_number_of_people_that_plan_says(
    draw: Any, epsilon: float, delta: float
) -> None:
    """Of a scheme that is fixed, since plan knows no search; where a coin decides, both sides."""
    levels = "levels: {sex: 0, age: 1, zip: 4, job: 1}"
    request = f"epsilon: {epsilon}, delta: {delta:.1e}, draw: {draw}, {levels}"
    number = expect(untouchable(), spec(request)).crowd_size
    planned = plan(epsilon=epsilon, delta=delta, draw=draw)
    assert re.search(rf"Groups of {number} or more people ", planned.describe())
    assert make_crowd(plan_guarantee(spec(request)).crowd).people == number


def test_the_crowd_is_of_the_larger_noise_and_rounded_up() -> None:
    levels = "levels: {sex: 0, age: 1, zip: 4, job: 1}"
    for draw, text in (("sample", 56), ("counts", 19)):
        file = spec(f"{SAFE}, draw: {draw}, {levels}")
        assert expect(None, file).crowd_size == text
        assert make_method(file).planned_release.likely(np.array([float(text)]))[0] > 0.5
    assert (
        expect(None, spec(f"{SAFE}, {levels}, already_sampled: 0.1, draw: sample")).crowd_size == 36
    )


@pytest.mark.parametrize("release", [SAFE, f"{SAFE}, draw: sample", "method: k-anonymity, k: 5"])
def test_so_many_people_as_it_takes_do_show_something_of_every_column(release: str) -> None:
    """The number that is asked for without a size is one that is enough with it."""
    for forecast in expect(None, spec(release)).each:
        again = expect(None, spec(release, size=round(forecast.whole * 1.1))).each
        (same,) = [other for other in again if other.assumption == forecast.assumption]
        assert set(same.told) == {"sex", "age", "zip", "job"}
        assert same.rows is not None
        assert same.rows >= 0.9
    assert expect(None, spec(release)).findings()[0].code == "TABLE_SIZE_NEEDED"


def test_with_a_size_it_says_what_could_be_told() -> None:
    result = expect(untouchable(), spec(size=5000))
    for finding, first in zip(result.findings(), result.each, strict=True):
        assert finding.code == "RELEASE_FORECAST"
        assert finding.values["size"] == 5000
        assert finding.values["informative"] == len(first.told)
        for name, level in first.told.items():
            assert f"{name} → {level}" in finding.message
        assert finding.values["rows"] == first.rows
        assert (finding.values["needed"] is not None) == (len(first.told) < 4)
        assert "nothing" not in first.told.values()


def test_more_columns_than_can_be_named_are_counted() -> None:
    columns = "columns:\n" + "".join(
        f"  c{at}: {{role: quasi, hierarchy: {{flat: {{values: [a, b]}}}}}}\n" for at in range(9)
    )
    result = expect(None, spec("method: k-anonymity, k: 5", size=10**6, columns=columns))
    assert "9 of 9 columns: c0 → unchanged" in words(result)
    assert "c5 → unchanged and 3 more." in words(result)
    assert "c6" not in words(result)


def test_few_people_are_told_that_nothing_would_be_shown() -> None:
    for release in (SAFE, f"{SAFE}, draw: sample", "method: k-anonymity, k: 50"):
        result = expect(None, spec(release, size=10))
        assert result.is_doubtful
        assert all(entry.empty is not None and entry.empty > 0.5 for entry in result.each)
        assert [entry.code for entry in result.warnings()] == ["RELEASE_LIKELY_EMPTY"] * 2
        assert {entry.values["crowd"] for entry in result.warnings()} == {result.crowd_size}
        assert "fewer columns" in words(result)


def test_many_people_leave_no_doubt() -> None:
    result = expect(None, spec(size=10**7))
    assert not result.is_doubtful
    assert result.warnings() == []
    assert {item.values["informative"] for item in result.findings()} == {4}


def test_an_empty_release_that_is_merely_possible_is_doubtful_and_said() -> None:
    columns = "columns: {x: {role: quasi, hierarchy: {flat: {values: [a, b, c, d, e, f]}}}}"
    release = "method: k-anonymity, k: 20, levels: {x: 0}"
    met = []
    for size in range(30, 130, 5):
        for forecast in (result := expect(None, spec(release, size=size, columns=columns))).each:
            assert forecast.empty is not None
            if 0.05 < forecast.empty < 0.5:
                met.append(size)
                assert forecast.is_doubtful
                assert result.is_doubtful
                finding = result.findings()[result.each.index(forecast)]
                assert (finding.code, finding.values["empty"]) == (
                    "RELEASE_MAY_BE_EMPTY",
                    forecast.empty,
                )
            assert forecast.is_doubtful == (forecast.empty > 0.05)
    assert met


def test_a_release_that_tells_of_no_column_is_doubtful() -> None:
    """Rows without any value are no release that somebody waits for."""
    columns = "columns: {zip: {role: quasi, hierarchy: {mask: {length: 9}}}}"
    result = expect(None, spec("method: k-anonymity, k: 60", size=100, columns=columns))
    silent = [entry for entry in result.each if not entry.told]
    assert silent
    assert all(
        entry.is_doubtful and entry.empty is not None and entry.empty < 0.05 for entry in silent
    )
    assert "RELEASE_UNINFORMATIVE" in [entry.code for entry in result.warnings()]


def test_fixed_levels_are_taken_as_they_are() -> None:
    levels = "levels: {sex: 0, age: 2, zip: 4, job: 1}"
    result = expect(None, spec(f"{SAFE}, {levels}", size=1000))
    assert result.fixed
    assert words(result).count("at the levels of the spec.") == 2
    for forecast in result.each:
        assert forecast.told.keys() == {"sex", "age", "zip"}
        assert "1 of 5 characters" in forecast.told["zip"]
        assert forecast.rows is not None
        assert forecast.rows < 0.9
    assert "For 90 % of rows, use about" in words(result)
    open_size = expect(None, spec(f"{SAFE}, {levels}")).findings()
    assert open_size[0].code == "TABLE_SIZE_AT_LEVELS"
    assert not expect(None, spec(SAFE)).fixed


def test_of_slices_the_widest_is_told() -> None:
    result = expect(None, spec(f"{SAFE}, slices: [[sex, job], [sex, age, zip]]", size=5000))
    assert result.tables == 2
    assert all(forecast.columns == 3 for forecast in result.each)
    assert [forecast.values["slices"] for forecast in result.findings()] == [2, 2]
    unsliced = expect(None, spec(f"{SAFE}", size=5000))
    assert unsliced.tables == 1
    assert "widest of" not in words(unsliced)


def test_slices_are_no_remedy_where_they_are_used() -> None:
    fields = "slices: [[sex, job], [sex, age, zip]]"
    result = expect(None, spec(f"{SAFE}, {fields}", size=1000))
    assert "For values of every column, use about" in words(result)
    assert "or slices" not in words(result)
    assert "of 3 columns in the widest of 2 slices" in words(result)
    assert "of 3 columns of the widest slice" in result.summarize()
    unsliced = expect(None, spec(SAFE, size=1000))
    assert re.search(r"use about [\d,]+ people or fewer columns, or slices\.$", words(unsliced))
    assert "slice" not in unsliced.summarize()
    assert "slices" not in words(expect(None, spec("method: k-anonymity, k: 5", size=1000)))


def test_a_table_that_nobody_has_is_a_warning_with_remedies() -> None:
    flat = "{role: quasi, hierarchy: {flat: {values: [a, b, c, d]}}}"

    def find(columns: int, release: str) -> Finding:
        named = "columns:\n" + "".join(f"  c{at}: {flat}\n" for at in range(columns))
        return expect(None, spec(release, columns=named)).findings()[0]

    assert find(8, SAFE).code == "TABLE_SIZE_NEEDED"
    wide = find(12, SAFE)
    assert (wide.code, wide.severity) == ("TABLE_SIZE_OUT_OF_REACH", "warning")
    assert isinstance(wide.values["concentrated"], int)
    assert wide.values["concentrated"] > 10_000_000
    assert wide.remedy == "Use fewer columns, slices (`slices: 3`) or `method: synthetic`."
    sliced = find(13, f"{SAFE}, slices: [[{', '.join(f'c{at}' for at in range(12))}], [c12]]")
    assert (sliced.code, sliced.remedy) == ("TABLE_SIZE_OUT_OF_REACH", "Use fewer columns.")


# What is read of the table ---------------------------------------------------------------------


def test_nothing_is_read_unless_the_size_is_public() -> None:
    for size in (None, 100, 10**6):
        assert expect(untouchable(), spec(size=size)).each
    with pytest.raises(AssertionError, match="the table was asked for"):
        expect(untouchable(), spec(size="public"))


def people(rows: int = 60) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "id": [f"p{at // 2}" if at < rows - 2 else None for at in range(rows)],
            "sex": ["a", "b"] * (rows // 2), "age": list(range(rows)),
            "zip": ["12345"] * rows, "job": ["x"] * rows,
        }
    )  # fmt: skip


def test_a_public_size_counts_rows_or_people() -> None:
    table = open_table(people())
    assert {forecast.size for forecast in expect(table, spec(size="public")).each} == {60}
    unit = "unit: {id: id, without_id: drop}"
    assert {forecast.size for forecast in expect(table, spec(size="public", more=unit)).each} == {
        29
    }
    with pytest.raises(IncrowdError, match="no table is named"):
        expect(None, spec(size="public"))


def test_a_spec_that_is_refused_has_no_expectation() -> None:
    with pytest.raises(IncrowdError):
        expect(None, parse_spec("columns: {x: {role: quasi, hierarchy: flat}}"))


def test_a_draft_is_told_what_to_expect() -> None:
    columns = COLUMNS.replace("hierarchy: flat}", "hierarchy: flat, confirm: [role, hierarchy]}")
    assert columns != COLUMNS
    assert words(expect(None, spec(size=5000, columns=columns))) == words(
        expect(None, spec(size=5000))
    )


# Where it is said ------------------------------------------------------------------------------


def findings(file: SpecFile) -> list[Finding]:
    return [finding for finding in check(open_table(people()), file) if finding.topic == "forecast"]


def test_check_says_it_and_doubts_where_that_is_due() -> None:
    for file, severity in ((spec(size=10**7), "note"), (spec(size=10), "warning")):
        checked = findings(file)
        assert [x.severity.value for x in checked if x not in recommended(checked)] == [
            severity
        ] * 2
        assert len(recommended(checked)) == 2
    assert [finding.code for finding in findings(spec())] == ["TABLE_SIZE_NEEDED", "CROWD_SIZE"]
    assert findings(spec(size="public"))[0].values["size"] == 60
    checked = findings(spec(size=10**7))
    forecast = [finding for finding in checked if finding not in recommended(checked)]
    assert forecast == expect(None, spec(size=10**7)).findings()


def recommended(checked: list[Finding]) -> list[Finding]:
    return [x for x in checked if x.code in ("METHOD_RECOMMENDED", "VALUES_AT_RISK")]


def test_columns_that_no_table_is_large_enough_for_are_a_warning() -> None:
    flat = "{role: quasi, hierarchy: flat}"
    columns = "columns:\n" + "".join(f"  c{at}: {flat}\n" for at in range(24))
    levels = ", ".join(f"c{at}: 0" for at in range(24))
    (needed, _) = expect(None, spec(f"{SAFE}, levels: {{{levels}}}", columns=columns)).findings()
    assert (needed.code, needed.severity) == ("NO_TABLE_LARGE_ENOUGH", "warning")
    assert str(needed) == (
        "No table is large enough to publish all these columns together. Drop columns, or use "
        "fewer levels."
    )


def written(folder: Path, release: str, size: object) -> Path:
    people(600).with_columns(age=pl.lit(5)).write_parquet(folder / "t.parquet")
    path = folder / "spec.yaml"
    path.write_text(spec(release, size=size, more="table: t.parquet").text(), encoding="utf-8")
    return path


@pytest.mark.parametrize("size", [None, 600, "public"])
def test_the_commands_say_it(tmp_path: Path, size: object) -> None:
    path = written(tmp_path, "method: k-anonymity, k: 5", size)
    result = expect(open_table(people(600)), parse_spec(path.read_text(), path=path))
    checked = run_command("check", str(path), columns=1000)
    process = run_command("publish", str(path), "-o", str(tmp_path / "out"), columns=1000)
    assert process.returncode == 0, process.stderr
    for finding in result.findings():
        assert f"{finding} [{finding.code}]" in checked.stdout
    first, second = process.stdout.splitlines()[:2]
    assert first == f"{result.summarize()} Details: incrowd check {path}"
    assert second.startswith("Published ")
    assert ("600 people" in process.stdout) == (size is not None)


def test_the_summary_is_one_sentence_of_both_assumptions() -> None:
    levels = "levels: {sex: 0, age: 2, zip: 4, job: 1}"
    assert "about 19 people" in expect(None, spec()).summarize()
    none = expect(None, spec(size=10))
    assert none.summarize() == (
        f"Forecast for 10 people: an empty release, because groups need about {none.crowd_size} "
        "people."
    )
    few, many = expect(None, spec(size=5000)), expect(None, spec(size=10**7))
    concentrated, skewed = few.each
    assert (len(concentrated.told), len(skewed.told)) == (4, 3)
    assert concentrated.rows is not None
    assert skewed.rows is not None
    least, most = sorted([concentrated.rows, skewed.rows])
    share = f"{100 * least:.0f} to {100 * most:.0f} % of rows"
    assert few.summarize().startswith(f"Forecast for 5,000 people: {share} ")
    assert "3 to 4 of 4 columns" in few.summarize()
    assert "4 of 4 columns" in many.summarize()
    fixed = expect(None, spec(f"{SAFE}, {levels}", size=1000)).summarize()
    assert fixed.startswith("Forecast for 1,000 people: ")


def test_json_is_left_alone(tmp_path: Path) -> None:
    path = written(tmp_path, "method: k-anonymity, k: 5", 600)
    process = run_command("publish", str(path), "-o", str(tmp_path / "out"), "--json")
    assert process.returncode == 0
    assert json.loads(process.stdout)["method"] == "k-anonymity"
    result = json.loads(run_command("check", str(path), "--json").stdout)["findings"]
    (first, _) = [finding for finding in result if finding["code"] == "RELEASE_FORECAST"]
    assert set(first) == {"code", "severity", "column", "values", "message", "remedy"}
    assert first["values"]["size"] == 600


def test_a_sample_and_counts_are_expected_side_by_side() -> None:
    file = spec(size=5000)
    sample, counts = (expect_with_draw(draw, untouchable(), file) for draw in ("sample", "counts"))
    assert sample.crowd > counts.crowd
    assert words(counts) == words(expect(untouchable(), spec(f"{SAFE}, draw: counts", size=5000)))


def test_a_draw_that_does_not_go_says_why() -> None:
    file = spec(f"{SAFE}, beta: 0.5")
    assert expect_with_draw("sample", untouchable(), file).crowd > 1
    with pytest.raises(IncrowdError, match="is for `draw: sample`"):
        expect_with_draw("counts", untouchable(), file)
