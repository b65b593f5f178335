"""One release has one set of figures: as published, evaluated, explored and reported."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from support.covid import format_fixed_levels, make_covid_spec, make_covid_table
from support.pages import read_outline
from support.release_lines import describe_release

from incrowd.cli.evaluation_facts import evaluation_facts
from incrowd.curate.explore import explore_schemes
from incrowd.curate.tradeoff import compute_tradeoff
from incrowd.engine.source import open_table
from incrowd.evaluation.evaluate import evaluate
from incrowd.findings import format_percent
from incrowd.measure.evaluation import LabelEvaluation
from incrowd.privacy.randomness import SystemRandomness
from incrowd.publication import Release, publish
from incrowd.spec.file import parse_spec

UNITS = ("one row per person", "{id: subject}")
SAFE = f"method: safe, epsilon: 1, delta: 1.0e-6, {format_fixed_levels()}"
WAYS = {
    "counts": SAFE,
    "counts, searched": "method: safe, epsilon: 1, delta: 1.0e-6",
    "sample": f"{SAFE}, draw: sample",
    "classes": "method: k-anonymity, k: 5",
    "starred": "method: k-anonymity, k: 5, suppressed: starred",
    "cuts of counts": "method: safe, epsilon: 1, delta: 1.0e-6, scheme: mondrian",
    "cuts": "method: k-anonymity, k: 5, algorithm: mondrian",
}
# What a release alone knows: what it was searched among, and what it was trained on.
OWN = {"search", "accuracy"}
PEOPLE = make_covid_table(6000)


def made(folder: Path, way: str, unit: str) -> Release:
    return publish(PEOPLE, make_covid_spec(WAYS[way], unit), output=folder / "out")


def evaluated(release: Release, way: str, unit: str) -> Any:
    result = evaluate(PEOPLE, release, make_covid_spec(WAYS[way], unit))
    return json.loads(json.dumps(result.as_dict()))


def differences(published_: Any, again: Any, at: str = "") -> list[str]:
    """Where two sets of figures differ; what was not measured at first is no difference."""
    if published_ is None:
        return []
    if isinstance(published_, dict):
        return [
            text
            for name in published_.keys() & again.keys() - OWN
            for text in differences(published_[name], again[name], f"{at}.{name}")
        ]
    if isinstance(published_, list) and len(published_) == len(again):
        pairs = enumerate(zip(published_, again, strict=True))
        return [text for x, (item, two) in pairs for text in differences(item, two, f"{at}[{x}]")]
    if isinstance(published_, float):  # sums of the same numbers in another order
        return [] if again == pytest.approx(published_, rel=1e-11, abs=1e-12) else [at]
    return [] if published_ == again else [f"{at}: {published_} against {again}"]


@pytest.mark.parametrize("way", ["classes", "starred", "cuts"])
def test_values_of_rows_that_were_not_used_count_as_published(tmp_path: Path, way: str) -> None:
    people = PEOPLE.head(600).with_columns(
        subject=pl.int_range(600) // 2, zip=pl.format("19{}", pl.int_range(100, 700))
    )
    spec = make_covid_spec(WAYS[way], "{id: subject}")
    release = publish(people, spec, output=tmp_path / "out")
    assert release.certificate.tables[0].release.rows <= 300
    stored = json.loads((release.curator / "evaluation.json").read_text())
    again = evaluate(people, release, spec).as_dict()
    assert differences(stored, json.loads(json.dumps(again))) == []


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("way", WAYS)
def test_evaluating_a_release_again_gives_the_figures_of_its_publication(
    tmp_path: Path, way: str, unit: str
) -> None:
    release = made(tmp_path, way, unit)
    stored = json.loads((release.curator / "evaluation.json").read_text())
    again = evaluated(release, way, unit)
    assert differences(stored, again) == []
    filled = {name for name, value in stored.items() if value not in (None, [], {}, 0)}
    assert filled - {name for name, value in again.items() if value is not None} <= OWN
    words = read_outline((release.curator / "report.html").read_text()).text
    assert format_percent(again["loss"]) in words
    people = f"from one row of each of {again['rows_original']:,} people"
    assert (people in words) is (unit == UNITS[1])
    error = format_percent(again["utility"]["query_error"])
    assert f"relative error of {error} (mean" in words


@pytest.mark.parametrize("unit", UNITS)
def test_the_terminal_says_of_an_evaluation_what_it_says_of_the_publication(
    tmp_path: Path, unit: str
) -> None:
    release = made(tmp_path, "counts", unit)
    result = evaluate(PEOPLE, release, make_covid_spec(SAFE, unit))
    assert isinstance(result, LabelEvaluation)
    text = "\n".join(describe_release(release))
    assert f"Missing: {release.evaluation.suppressed:,} of " in text
    missing = dict(evaluation_facts(result))["Missing"]
    assert missing.startswith(f"{release.evaluation.suppressed:,} rows")
    for finding in release.evaluation.lost.findings():
        assert finding.message in text
        assert finding in result.findings()


def test_explore_judges_the_rows_that_are_published(tmp_path: Path) -> None:
    for unit in UNITS:
        file = make_covid_spec(WAYS["classes"], unit)
        best = explore_schemes(file, open_table(PEOPLE)).best
        assert best is not None
        release = publish(PEOPLE, file, output=tmp_path / unit.strip("{}").replace(" ", "-"))
        scheme = release.certificate.table.scheme.values()
        assert best.levels == tuple(column.level for column in scheme)
        assert best.suppressed == release.evaluation.suppressed
        assert best.classes == release.evaluation.classes
        assert best.loss == pytest.approx(release.evaluation.loss, rel=1e-12)


def test_explore_says_that_one_row_of_each_person_is_judged() -> None:
    for unit, people in zip(UNITS, (False, True), strict=True):
        result = explore_schemes(make_covid_spec(WAYS["classes"], unit), open_table(PEOPLE))
        assert result.one_row_each is people
        assert result.rows == (PEOPLE["subject"].n_unique() if people else len(PEOPLE))


def test_pairs_of_k_and_epsilon_are_judged_by_one_row_of_each_person() -> None:
    file = parse_spec(
        """
unit: {id: who}
columns:
  who: {role: identifier}
  sex: {role: quasi, hierarchy: {flat: {values: [f, m]}}}
  weight: {role: noisy, bounds: [40, 120]}
release: {method: k-epsilon, k: 5, epsilon: 2}
"""
    )
    people = pl.DataFrame(
        {
            "who": [at // 2 for at in range(200)],
            "sex": ["f" if at % 4 else "m" for at in range(200)],
            "weight": [50 + at % 40 for at in range(200)],
        }
    )
    tradeoff = compute_tradeoff(
        file, open_table(people), bits=SystemRandomness(), ks=(5,), epsilons=(2.0,)
    )
    assert tradeoff.rows == 100


def test_the_rows_of_a_safe_release_are_drawn_anew_each_time_and_known_to_the_curator_alone(
    tmp_path: Path,
) -> None:
    keys = []
    for name in ("one", "two"):
        release = made(tmp_path / name, "counts", UNITS[1])
        row_keys = json.loads((release.curator / "rows.json").read_text())
        assert row_keys["certificate"] == release.certificate.seal
        assert (release.curator / "rows.json").stat().st_mode & 0o077 == 0
        for path in release.folder.rglob("*"):
            assert path.is_dir() or row_keys["key"].encode() not in path.read_bytes()
        keys.append(row_keys["key"])
    assert len(bytes.fromhex(keys[0])) == 32
    assert keys[0] != keys[1]
    assert not (made(tmp_path / "rows", "counts", UNITS[0]).curator / "rows.json").exists()


def test_a_second_k_anonymous_release_shows_the_same_row_of_each_person(tmp_path: Path) -> None:
    item, two = (made(tmp_path / name, "classes", UNITS[1]) for name in ("one", "two"))
    assert item.certificate.table.release.sha256 == two.certificate.table.release.sha256


def test_where_the_rows_of_a_release_are_not_known_that_is_said(tmp_path: Path) -> None:
    release = made(tmp_path, "counts", UNITS[1])
    data, spec = release.folder / "data.parquet", make_covid_spec(SAFE, UNITS[1])
    if not data.exists():
        data = release.folder / "data.csv"
    assert evaluate(PEOPLE, data, spec).readings == ()
    moved = tmp_path / "elsewhere"
    shutil.move(release.curator, moved)
    (finding,) = evaluate(PEOPLE, data, spec).readings
    assert finding.code == "USED_ROWS_UNKNOWN"
    assert "--curator" in finding.remedy
    result = evaluate(PEOPLE, data, spec, curator=moved)
    assert result.readings == ()
    assert result.suppressed == release.evaluation.suppressed
    other = made(tmp_path / "other", "counts", UNITS[1])  # its rows are other ones
    assert len(evaluate(PEOPLE, data, spec, curator=other.curator).readings) == 1


def test_no_loss_is_above_one_whatever_noise_adds(tmp_path: Path) -> None:
    release = made(tmp_path, "counts", UNITS[0])
    assert release.evaluation.surplus
    for item in (release.evaluation, evaluate(PEOPLE, release, make_covid_spec(SAFE))):
        assert max(item.loss_by_column.values()) == 1.0
        assert 0 < item.loss < 1
