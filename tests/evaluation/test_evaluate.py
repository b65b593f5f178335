"""Released tables held against their originals, whoever made them."""

from __future__ import annotations

import json
import math
import sys
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.cli.main import main
from incrowd.curate.demo_tables import make_demo_table
from incrowd.engine.source import open_table
from incrowd.engine.table import TableError
from incrowd.errors import IncrowdError
from incrowd.evaluation.evaluate import evaluate_tables
from incrowd.measure.evaluation import LabelEvaluation
from incrowd.measure.labels import LabelError
from incrowd.publication import publish
from incrowd.spec.file import parse_spec

SPEC = """
columns:
  name: {role: identifier}
  age: {role: quasi, hierarchy: {intervals: {from: 0, to: 9, widths: [5]}}}
  city: {role: quasi, hierarchy: {groups: {North: [a, b], South: [c, d, e]}}}
  zip: {role: quasi, hierarchy: {mask: {length: 3}}}
  sick: {role: sensitive}
"""
QUASI = ("age", "city", "zip")
KEYS = {
    "rows_original", "rows_released", "suppressed", "classes", "smallest_class", "loss",
    "loss_by_column", "precision_by_column", "risk", "utility",
}  # fmt: skip


def evaluated(original: Any, released: Any, spec: str = SPEC, **more: Any) -> LabelEvaluation:
    return evaluate_tables(
        open_table(original), open_table(released, empty=True), parse_spec(spec).spec, **more
    )


def people(rows: int = 40, seed: int = 1) -> pl.DataFrame:
    draw = np.random.default_rng(seed)
    age = draw.integers(0, 10, rows)
    return pl.DataFrame(
        {
            "name": [f"person {i}" for i in range(rows)],
            "age": [None if x == 9 else int(x) for x in age],
            "city": draw.choice([*"abcde", "far"], rows),
            "zip": ["120", "200", *draw.choice(["120", "121", "130", "200"], rows - 2)],
            "sick": np.where(age > draw.integers(2, 7, rows), "yes", "no"),
        }
    )


# What each label of a column covers, and its height: written down by hand, not by the code.
AGES: dict[Any, set[Any]] = {
    "0-4": set(range(5)), "5-9": set(range(5, 10)), "2-7": set(range(2, 8)),
    "[2, 4)": {2, 3}, "3,8": {3, 8}, None: {None}}  # fmt: skip
AGES |= {str(x): {x} for x in range(10)}
CITIES: dict[Any, set[Any]] = {"North": {"a", "b"}, "South": {"c", "d", "e"}, "a,c": {"a", "c"}}
CITIES |= {x: {x} for x in "abcde"}
LEVELS = {"North": 1 / 2, "South": 1 / 2, "a,c": 1 / 4}
ZIPS = {"12*": 10, "1**": 100, "2**": 100, "120": 1, "121": 1, "130": 1, "200": 1}


def cost(name: str, label: Any) -> tuple[float, float]:
    """The normalized loss and the precision of a label."""
    if label == "*":
        return 1.0, 1.0
    if name == "age":
        values = AGES[label]
        width = 0 if None in values else max(values) - min(values)
        return (len(values) - 1) / 9, width / 9
    if name == "city":
        return (len(CITIES[label]) - 1) / 4, LEVELS.get(label, 0.0)
    return label.count("*") / 3, label.count("*") / 3


def covers(name: str, label: Any, value: Any) -> bool:
    if label == "*":
        return True
    if name == "zip":
        prefix = label.rstrip("*")
        return value is not None and str(value).startswith(prefix)
    return value in (AGES if name == "age" else CITIES)[label]


def by_rows(original: pl.DataFrame, released: list[dict[str, Any]]) -> dict[str, Any]:
    """All losses, one row and one column at a time."""
    rows = original.select(QUASI).to_dicts()
    published = [row for row in released if any(row[name] != "*" for name in QUASI)]
    classes = Counter(tuple(row[name] for name in QUASI) for row in published)
    n, missing = len(rows), len(rows) - len(published)
    loss = {
        name: (sum(cost(name, row[name])[0] for row in published) + missing) / n for name in QUASI
    }
    precision = {name: sum(cost(name, row[name])[1] for row in published) for name in QUASI}
    bits = []
    for name in QUASI:
        alike = Counter(row[name] for row in rows)
        fits = {
            label: sum(covers(name, label, row[name]) for row in rows)
            for label in {row[name] for row in published}
        }
        spent = sum(math.log2(fits[row[name]]) for row in published) + missing * math.log2(n)
        floor = sum(math.log2(alike[row[name]]) for row in rows)
        most = n * math.log2(n) - floor
        bits.append((spent - floor) / most if most else 0.0)
    return {
        "rows_original": n,
        "rows_released": len(published),
        "suppressed": missing,
        "classes": len(classes),
        "smallest_class": min(classes.values(), default=0),
        "loss": sum(loss.values()) / 3,
        "loss_by_column": loss,
        "precision_by_column": {name: x / max(len(published), 1) for name, x in precision.items()},
        "losses": {
            "precision": sum((x + missing) / n for x in precision.values()) / 3,
            "entropy": sum(bits) / 3,
            "discernibility": (sum(x * x for x in classes.values()) + missing * n) / n**2,
            "average_class_size": len(published) / len(classes) if classes else None,
        },
    }


def same(evaluation: LabelEvaluation, expected: dict[str, Any]) -> None:
    got = evaluation.as_dict()
    alike({name: got[name] for name in expected}, expected)


def alike(got: Any, expected: Any, where: str = "") -> None:
    """Nested values that agree but for rounding."""
    if isinstance(expected, dict | list | tuple):
        assert len(got) == len(expected), where
        for key in expected if isinstance(expected, dict) else range(len(expected)):
            alike(got[key], expected[key], f"{where}.{key}")
    else:
        assert got == pytest.approx(expected, abs=1e-9), where


def labels_of(name: str, value: Any, draw: st.DataObject) -> Any:
    labels: list[Any] = [*(AGES if name == "age" else CITIES if name == "city" else ZIPS)]
    fitting = [label for label in labels if covers(name, label, value)]
    return draw.draw(st.sampled_from([*fitting, "*"]))


@settings(max_examples=25)
@given(data=st.data())
def test_losses_row_by_row(data: st.DataObject) -> None:
    """Any labels that fit, some rows left out, some starred."""
    original = people(rows=data.draw(st.integers(2, 25)), seed=data.draw(st.integers(0, 99)))
    released = []
    for row in original.select(QUASI).to_dicts():
        fate = data.draw(st.sampled_from(["shown", "shown", "dropped", "starred"]))
        if fate == "shown":
            released.append({name: labels_of(name, row[name], data) for name in QUASI})
        elif fate == "starred":
            released.append(dict.fromkeys(QUASI, "*"))
    if not any(any(x != "*" for x in row.values()) for row in released):
        return  # a table that shows nothing at all is looked at elsewhere
    frame = pl.DataFrame(released, schema=dict.fromkeys(QUASI, pl.String))
    same(evaluated(original, frame), by_rows(original, released))


def other_tools(original: pl.DataFrame) -> pl.DataFrame:
    """Sets, intervals, a group, a prefix; another order, other columns."""
    age = pl.when(pl.col("age").is_null()).then(None)
    released = original.select(
        pl.lit("made elsewhere").alias("comment"),
        pl.col("zip").str.head(1).add("**").alias("zip"),
        pl.when(pl.col("city").is_in(["a", "c"])).then(pl.lit("a,c"))
        .when(pl.col("city") == "b").then(pl.lit("North"))
        .when(pl.col("city") == "far").then(pl.lit("*")).otherwise(pl.lit("South")).alias("city"),
        age.when(pl.col("age").is_in([2, 3])).then(pl.lit("[2, 4)"))
        .when(pl.col("age") < 2).then(pl.lit("0-4")).otherwise(pl.lit("2-7")).alias("age"),
        "sick",
    )  # fmt: skip
    return released.filter(original["age"].fill_null(0) < 8).sample(
        fraction=1, shuffle=True, seed=4
    )


@pytest.mark.parametrize("form", ["csv", "parquet", "frame", "counted csv", "counted parquet"])
def test_a_release_of_another_tool(tmp_path: Path, form: str) -> None:
    original = people()
    released = other_tools(original)
    expected = by_rows(original, released.to_dicts())
    if form.startswith("counted"):
        released = released.group_by(pl.all()).len("count")
    table: Any = released
    if form.endswith("csv"):
        table = tmp_path / "released.csv"
        released.write_csv(table)
    elif form.endswith("parquet"):
        table = tmp_path / "released.parquet"
        released.write_parquet(table)
    result = evaluated(original, table)
    assert 0 < result.suppressed < 40
    same(result, expected)


def test_starred_rows_are_not_shown_and_half_starred_ones_are() -> None:
    original = people(4).with_columns(city=pl.lit("a"), zip=pl.lit("120"), age=pl.lit(3))
    stars = pl.DataFrame({"age": ["*", "*", "3"], "city": ["*", "a", "a"], "zip": ["*", "*", "*"]})
    result = evaluated(original, stars)
    assert (result.rows_released, result.suppressed, result.classes) == (2, 2, 2)
    assert result.loss_by_column == pytest.approx({"age": 0.75, "city": 0.5, "zip": 1.0})
    assert result.losses.average_class_size == 1.0


def test_a_column_that_is_not_shown_is_lost() -> None:
    original = people()
    released = original.select("age", "city").with_columns(pl.col("city").replace("far", "*"))
    result = evaluated(original, released)
    assert result.loss_by_column["zip"] == 1.0
    assert result.loss_by_column["age"] == 0.0
    assert result.utility.distance_by_column["age"] == 0.0


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_an_empty_release_has_lost_everything(tmp_path: Path, ending: str) -> None:
    original, path = people(), tmp_path / f"none.{ending}"
    nothing = original.select(QUASI).head(0)
    nothing.write_csv(path) if ending == "csv" else nothing.write_parquet(path)
    result = evaluated(original, path, target="sick")
    assert (result.rows_released, result.suppressed, result.classes) == (0, 40, 0)
    assert (result.smallest_class, result.loss, result.losses.precision) == (0, 1.0, 1.0)
    assert result.losses.entropy == pytest.approx(1.0)
    assert (result.risk.highest, result.risk.journalist, result.risk.uniques) == (0, 0, 0)
    assert result.losses.average_class_size is None
    json.dumps(result.as_dict(), allow_nan=False)


def test_more_rows_than_the_original() -> None:
    """Such a table is odd, but a share stays a share."""
    original = people(10)
    coarse = pl.DataFrame({"age": ["*"] * 30, "city": ["*"] * 30, "zip": ["1**"] * 30})
    result = evaluated(original, coarse)
    assert (result.rows_released, result.suppressed) == (30, 0)
    assert result.loss == pytest.approx((1 + 1 + 2 / 3) / 3)
    assert max(result.losses.precision, result.losses.entropy, result.losses.discernibility) <= 1
    json.dumps(result.as_dict(), allow_nan=False)


@pytest.mark.parametrize("value", ["0", "-1", "2.5", "many", None])
def test_counts_that_are_none_are_refused(value: str | None) -> None:
    released = pl.DataFrame({"age": ["1", "2"], "city": ["a", "a"], "count": ["3", value]})
    with pytest.raises(TableError, match="is not a number of rows"):
        evaluated(people(), released)


def test_large_counts() -> None:
    released = pl.DataFrame({"age": ["1", "2"], "count": [3_000_000_000, 7]})
    result = evaluated(people(), released)
    assert result.rows_released == 3_000_000_007
    assert result.smallest_class == 7


def test_a_sensitive_column_called_count_is_no_weight() -> None:
    original = people().rename({"sick": "count"})
    spec = SPEC.replace("sick", "count")
    released = original.select(pl.lit("0-4").alias("age"), "count")
    assert evaluated(original, released, spec).rows_released == 40


def test_a_domain_of_one_value_costs_nothing() -> None:
    original = pl.DataFrame({"x": ["only"] * 6})
    result = evaluated(original, original, "columns: {x: {role: quasi, hierarchy: flat}}")
    assert (result.loss, result.losses.precision, result.losses.entropy) == (0, 0, 0)
    assert (result.classes, result.rows_released) == (1, 6)


@pytest.mark.parametrize("target", ["sick", "city"])
def test_a_target_may_be_sensitive_or_quasi(target: str) -> None:
    original = people(600)
    released = original.select(
        pl.col("age").cast(pl.String), "sick", pl.col("city").replace("far", "*"), "zip"
    )
    result = evaluated(original, released, target=target)
    plain = evaluated(original, released)
    assert result.utility.accuracy is not None
    assert result.utility.accuracy.target == target
    assert plain.utility.accuracy is None
    if target == "sick":  # it follows age
        assert result.utility.accuracy.released > result.utility.accuracy.majority
    for name in ("loss", "loss_by_column", "classes", "risk"):
        assert getattr(result, name) == getattr(plain, name)
    # They are sums over rows, which may come in another order.
    assert asdict(result.losses) == pytest.approx(asdict(plain.losses), rel=1e-12)


def test_rows_that_the_release_has_not_seen() -> None:
    original, unseen = people(300), people(300, seed=2)
    released = original.select(pl.col("age").cast(pl.String), "sick")
    inverted = unseen.with_columns(sick=pl.col("sick").replace({"yes": "no", "no": "yes"}))
    usual = evaluated(original, released, target="sick", held_out=open_table(unseen))
    wrong = evaluated(original, released, target="sick", held_out=open_table(inverted))
    assert usual.utility.accuracy is not None
    assert wrong.utility.accuracy is not None
    assert usual.utility.accuracy.released == pytest.approx(1 - wrong.utility.accuracy.released)
    assert usual.utility.accuracy.released > 0.6


def test_what_is_missing_or_unknown_is_named() -> None:
    original = people()
    with pytest.raises(TableError, match="Correct the table or the spec"):
        evaluated(original.drop("zip"), original)
    with pytest.raises(TableError, match="Correct the table or the spec"):
        evaluated(original, original.select("age"), held_out=open_table(original.drop("city")))
    with pytest.raises(TableError, match="Released table: no quasi-identifier of the spec"):
        evaluated(original, original.select("name", "sick"))
    with pytest.raises(LabelError, match="Column 'city': 'East' is not a label"):
        evaluated(original, pl.DataFrame({"city": ["a", "East"]}))
    with pytest.raises(IncrowdError, match="'target' parameter must be .*'sick'. Got 'name'"):
        evaluated(original, original.select("age"), target="name")
    with pytest.raises(IncrowdError, match="no quasi-identifier to measure"):
        evaluated(original, original, "columns: {name: {role: identifier}}")


def test_one_person_with_many_rows_counts_once() -> None:
    """As when it is published: of each person one row is used."""
    original = pl.DataFrame({"id": [i // 2 for i in range(40)], "x": ["a", "b"] * 20})
    file = parse_spec(
        "unit: {id: id}\ncolumns: {id: {role: identifier}, x: {role: quasi, hierarchy: flat}}\n"
        "release: {method: k-anonymity, k: 2, levels: {x: 0}}"
    )
    result = publish(original, file)
    tables = evaluate_tables(open_table(original), open_table(result.data), file.spec)
    assert tables.rows_original == result.evaluation.rows_original == 20


# The command ---------------------------------------------------------------------------------


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["incrowd", *arguments])
    with pytest.raises(SystemExit) as stop:
        main()
    assert isinstance(stop.value.code, int)
    return stop.value.code


@pytest.fixture
def files(tmp_path: Path) -> Path:
    people(200).write_parquet(tmp_path / "original.parquet")
    people(100, seed=8).write_csv(tmp_path / "unseen.csv")
    other_tools(people(200)).write_csv(tmp_path / "released.csv")
    (tmp_path / "spec.yaml").write_text(SPEC)
    return tmp_path


def options(files: Path, **changed: str) -> list[str]:
    given_ = {"original": "original.parquet", "released": "released.csv", "spec": "spec.yaml"}
    pairs = {**given_, **changed}
    paths = {
        name: value if name == "target" else str(files / value) for name, value in pairs.items()
    }
    return ["evaluate", *(x for name, value in paths.items() for x in (f"--{name}", value))]


def test_the_command_prints_one_object(
    files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    more = {"target": "sick", "holdout": "unseen.csv"}
    assert run(monkeypatch, *options(files, **more), "--json") == 0
    got = json.loads(capsys.readouterr().out)
    assert got.keys() >= KEYS
    expected = evaluated(
        people(200), other_tools(people(200)), target="sick", held_out=open_table(people(100, 8))
    )
    assert got["loss"] == pytest.approx(expected.loss)
    assert got["risk"]["marketer"] == pytest.approx(expected.risk.marketer)
    assert got["utility"]["accuracy"]["target"] == "sick"
    assert run(monkeypatch, *options(files, target="sick")) == 0
    text = capsys.readouterr().out
    assert f"200 original, {expected.rows_released:,} released" in text
    assert f"Information loss  {expected.loss:.4f}" in text
    assert "'sick' correct for" in text


@pytest.mark.parametrize(
    ("changed", "part"),
    [
        ({"original": "unseen.txt"}, "Cannot read"),
        ({"released": "nowhere.csv"}, "Cannot read"),
        ({"spec": "nowhere.yaml"}, "cannot be read"),
        ({"target": "salary"}, "Got 'salary' instead."),
        ({"released": "strange.csv"}, "Column 'city': 'East' is not a label"),
        (
            {"released": "none.csv"},
            "Released table: no quasi-identifier of the spec. Name the right spec.",
        ),
        (
            {"original": "strange.csv"},
            "Column 'age': not in the original table. Correct the table or the spec.",
        ),
        (
            {"released": "counted.csv"},
            "Column 'count': 'several' is not a number of rows. Correct it.",
        ),
        ({"holdout": "strange.csv", "target": "sick"}, "not in the held-out table"),
    ],
)
def test_wrong_use_is_said_in_one_line(
    files: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    changed: dict[str, str],
    part: str,
) -> None:
    (files / "strange.csv").write_text("city,other\nEast,1\n")
    (files / "none.csv").write_text("name\nAnn\n")
    (files / "counted.csv").write_text("city,count\na,several\n")
    assert run(monkeypatch, *options(files, **changed)) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert part in output.err
    assert output.err.count("\n") == 1


def test_a_holdout_without_a_target_is_wrong_use(
    files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, *options(files, holdout="unseen.csv")) == 2
    assert "--target" in capsys.readouterr().err


# What was published and what is read back agree ----------------------------------------------

SAMPLE = """
columns:
  first_name: {role: identifier}
  last_name: {role: identifier}
  email: {role: identifier}
  zip: {role: quasi, hierarchy: {mask: {length: 5}}}
  sex: {role: quasi, hierarchy: {groups: {Person: [female, male]}}}
  birth_year: {role: quasi, hierarchy: {intervals: {from: 1900, to: 2026, widths: [2, 8, 16]}}}
  weight: {role: quasi, hierarchy: {intervals: {from: 0, to: 400, step: 0.5, widths: [10, 50]}}}
  diagnosis: {role: sensitive}
"""


@pytest.mark.parametrize(
    "release",
    [
        "suppression: 0.1, suppressed: starred", "loss: entropy, format: csv",
        "algorithm: mondrian, rows: counted, format: csv",
        "algorithm: cluster", "algorithm: duplicate, rows: counted",
    ],
)  # fmt: skip
def test_the_curators_figures_are_those_of_the_file(tmp_path: Path, release: str) -> None:
    table = make_demo_table("patients", rows=500).to_frame()
    file = parse_spec(f"{SAMPLE}\nrelease: {{method: k-anonymity, k: 4, {release}}}")
    result = publish(table, file, output=tmp_path / "out")
    outcome = evaluated(
        table, tmp_path / "out" / result.certificate.table.release.file, f"{SAMPLE}\n"
    ).as_dict()
    written = json.loads((tmp_path / "out.curator" / "evaluation.json").read_text())
    alike(result.evaluation.as_dict(), written)
    outcome["search"] = written["search"]  # which the file does not tell
    outcome["utility"]["accuracy"] = written["utility"]["accuracy"]  # of a target, if one is named
    alike(outcome, written)
