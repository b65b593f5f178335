"""Schemes and their figures: against a count by hand, in part where many, at a terminal."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from support.cli import run_command
from support.unjudged import publish_unjudged

from incrowd.anonymize.lattice import Node
from incrowd.curate.explore import Exploration, SchemeFigures, explore_schemes
from incrowd.engine.source import open_table
from incrowd.errors import IncrowdError
from incrowd.spec.file import SpecFile, parse_spec

COLUMNS = """
columns:
  age: {role: quasi, hierarchy: {intervals: {from: 0, to: 15, widths: [4, 8]}}}
  sex: {role: quasi, hierarchy: {flat: {values: [f, m]}}}
  sick: {role: sensitive}
"""
PEOPLE = pl.DataFrame(
    {
        "age": [i * i * i % 16 if i % 2 else i * 7 % 13 for i in range(60)],
        "sex": ["f" if i % 3 else "m" for i in range(60)],
        "sick": ["no" if i % 3 else "yes" for i in range(60)],
    }
)


def spec(release: str = "method: k-anonymity, k: 4", columns: str = COLUMNS) -> SpecFile:
    return parse_spec(f"{columns}\nrelease: {{{release}}}\n")


def explored(release: str = "method: k-anonymity, k: 4", **more: Any) -> Exploration:
    return explore_schemes(spec(release), open_table(PEOPLE), **more)


def by_hand(levels: Node, k: int) -> tuple[int, int, int]:
    """Rows suppressed, classes shown and the smallest of them, counted from the definition."""
    width = (1, 4, 8, 1000)[levels[0]]
    looks = Counter(
        (age // width, sex if levels[1] == 0 else "*")
        for age, sex in zip(PEOPLE["age"], PEOPLE["sex"], strict=True)
    )
    sizes = [size for size in looks.values() if size >= k]
    return len(PEOPLE) - sum(sizes), len(sizes), min(sizes, default=0)


def figures(scheme: SchemeFigures) -> tuple[int, int, int]:
    return scheme.suppressed, scheme.classes, scheme.smallest


def test_every_scheme_has_the_figures_of_a_count_by_hand() -> None:
    result = explored("method: k-anonymity, k: 4, suppression: 0.1")
    assert result.is_complete
    assert result.limit == 6
    assert {scheme.levels for scheme in result.schemes} == set(
        itertools.product(range(4), range(2))
    )
    for item in result.schemes:
        assert figures(item) == by_hand(item.levels, 4), item
        assert item.holds == (item.suppressed <= 6)
        if item.smallest:
            assert item.risk == pytest.approx(1 / item.smallest)
            assert item.mean_risk == pytest.approx(item.classes / (60 - item.suppressed))
    assert {scheme.holds for scheme in result.schemes} == {True, False}


def test_the_best_comes_first_and_is_what_is_published() -> None:
    result = explored()
    assert result.best is not None
    losses = [item.loss for item in result.schemes if item.holds]
    assert losses == sorted(losses)
    release = publish_unjudged(PEOPLE, spec())
    scheme = release.certificate.table.scheme
    assert result.best.levels == (scheme["age"].level, scheme["sex"].level)
    assert result.best.classes == release.certificate.table.release.classes


def test_of_many_schemes_those_near_the_best_and_to_both_ends_are_looked_at() -> None:
    long = COLUMNS.replace("to: 15, widths: [4, 8]", "to: 127, widths: [2, 4, 8, 16, 32, 64]")
    file = spec(columns=long)
    full, part = (
        explore_schemes(file, open_table(PEOPLE)),
        explore_schemes(file, open_table(PEOPLE), most=3),
    )
    assert not part.is_complete
    assert part.size == full.size
    assert part.best == full.best
    levels = {scheme.levels for scheme in part.schemes}
    assert {(0, 0), (7, 1)} <= levels
    for item in part.schemes:
        assert item == full.find_scheme(item.levels)


def test_a_scheme_that_is_fixed_is_one_among_all() -> None:
    result = explored("method: k-anonymity, k: 4, levels: {age: 2, sex: 1}")
    assert result.chosen == (2, 1)
    assert result.is_complete
    assert len(result.schemes) == 8
    assert explored().chosen is None


def test_limits_that_leave_a_choice_are_kept_to() -> None:
    result = explored("method: k-anonymity, k: 4, levels: {age: [1, 2]}")
    assert result.chosen is None
    assert {scheme.levels[0] for scheme in result.schemes} == {1, 2}


def test_rules_on_sensitive_values_count() -> None:
    ruled = COLUMNS.replace("{role: sensitive}", "{role: sensitive, diversity: {distinct: 2}}")
    release = "method: k-anonymity, k: 4, suppression: 0"
    strict = explore_schemes(spec(release, ruled), open_table(PEOPLE))
    plain = explore_schemes(spec(release), open_table(PEOPLE))
    fewer = [scheme for scheme in strict.schemes if scheme.holds]
    assert 0 < len(fewer) < len([scheme for scheme in plain.schemes if scheme.holds])


def test_words_say_what_each_column_would_show() -> None:
    result = explored()
    top = result.find_scheme((3, 1))
    assert top is not None
    assert result.describe_scheme(top) == {"age": "suppressed", "sex": "suppressed"}


def test_where_no_scheme_holds_there_is_no_best() -> None:
    release = "method: k-anonymity, k: 30, suppression: 0, levels: {age: [0, 0], sex: [0, 1]}"
    assert explored(release).best is None
    assert explored(release, most=1).best is None


@pytest.mark.parametrize(
    ("release", "words"),
    [
        ("method: safe, epsilon: 1, delta: 1.0e-6", "must not be chosen by its result"),
        ("method: k-anonymity, k: 4, algorithm: mondrian", "has no schemes"),
    ],
)
def test_what_has_no_schemes_is_refused(release: str, words: str) -> None:
    with pytest.raises(IncrowdError, match=words):
        explore_schemes(spec(release), open_table(PEOPLE))


def test_the_command_lists_the_best_and_prints_json(tmp_path: Path) -> None:
    PEOPLE.write_csv(tmp_path / "people.csv")
    path = tmp_path / "spec.yaml"
    path.write_text(f"table: people.csv\n{COLUMNS}\nrelease: {{method: k-anonymity, k: 4}}\n")
    done = run_command("explore", str(path))
    assert done.returncode == 0
    assert "Compared 8 schemes with k = 4." in done.stdout
    assert "levels: {age: " in done.stdout
    document = json.loads(run_command("explore", str(path), "--json").stdout)
    assert document["whole"] is True
    assert len(document["schemes"]) == 8
    assert document["schemes"][0]["holds"] is True


def test_the_command_says_no_where_nothing_holds(tmp_path: Path) -> None:
    PEOPLE.write_csv(tmp_path / "people.csv")
    path = tmp_path / "spec.yaml"
    levels = "levels: {age: 0, sex: [0, 1]}, suppression: 0"
    path.write_text(
        f"table: people.csv\n{COLUMNS}\nrelease: {{method: k-anonymity, k: 30, {levels}}}\n"
    )
    done = run_command("explore", str(path))
    assert done.returncode == 1
    assert "No scheme has k = 30" in done.stdout
