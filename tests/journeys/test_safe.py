"""Publishing, end to end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet as pq
from pycanon import anonymity
from support.releases import (
    LEVELS,
    USUAL,
    get_statement,
    list_files,
    make_voter_spec,
    publish_voters,
)
from support.unjudged import publish_unjudged

import incrowd as ic
from incrowd.errors import IncrowdError
from incrowd.privacy.accountant import Accountant
from incrowd.privacy.events import parse_event
from incrowd.privacy.randomness import SeededRandomness
from incrowd.publication import publish
from incrowd.release.ledger import Ledger
from incrowd.release.verify import verify
from incrowd.spec.file import parse_spec


@pytest.mark.parametrize("draw", ["counts", "sample"])
def test_a_release_holds_together(voters: pl.DataFrame, tmp_path: Path, draw: str) -> None:
    result = publish_voters(voters, tmp_path / "out", USUAL.replace("}}", f"}}, draw: {draw}}}"))
    assert verify(tmp_path / "out") == []
    assert list_files(tmp_path / "out") == [
        "README.md", "certificate.html", "certificate.json", "data.parquet",
        "scheme/birth_year.csv", "scheme/race.csv", "scheme/sex.csv",
    ]  # fmt: skip
    data = pl.read_parquet(tmp_path / "out" / "data.parquet")
    assert data.columns == ["zip", "sex", "birth_year", "race"]
    assert len(data) == result.certificate.table.release.rows > 2000
    parameters = result.certificate.parameters
    least = int(parameters["k"]) + (int(parameters["r"]) if draw == "counts" else 0)
    assert data.group_by(data.columns).len()["len"].min() >= least  # type: ignore[operator]
    guarantee = result.certificate.guarantee
    assert guarantee.epsilon is not None
    assert guarantee.delta is not None
    assert guarantee.epsilon == 1.0
    if draw == "counts":
        (event,) = (parse_event(event) for event in result.certificate.events)
        true = Accountant(event).delta(epsilon=1.0)
        assert 0.99e-6 < true <= guarantee.delta == 1e-6  # a coin uses delta up
        assert guarantee.kind == "differential privacy and k-anonymity"
    else:
        true = float(ic.delta(k=least, beta=parameters["beta"], epsilon=1.0))
        assert true <= guarantee.delta <= min(true * (1 + 1e-5), 1e-6)  # rounded up, to six digits
        assert guarantee.kind == "differential privacy"
    assert (tmp_path / "out" / "scheme" / "sex.csv").read_text() == "female;Person\nmale;Person\n"
    assert result.evaluation.rows_original == 20_000
    assert "Private. Do not publish:" in (tmp_path / "out.curator/report.html").read_text()


def test_an_independent_tool_finds_it_k_anonymous(voters: pl.DataFrame, tmp_path: Path) -> None:
    result = publish_voters(voters, tmp_path / "out", USUAL.replace("}}", "}, format: csv}"))
    data = (
        pd.read_csv(tmp_path / "out" / "data.csv", dtype=str).fillna("null").reset_index(drop=True)
    )
    outcome = anonymity.k_anonymity(data, list(data.columns))
    assert outcome == result.certificate.table.release.smallest_class >= result.certificate.k


def test_counted_releases_say_the_same_in_fewer_rows(voters: pl.DataFrame, tmp_path: Path) -> None:
    for ending in ("parquet", "csv"):
        settings_ = USUAL.replace("}}", f"}}, rows: counted, format: {ending}}}")
        result = publish_voters(voters, tmp_path / ending, settings_)
        assert verify(tmp_path / ending) == []
        path = tmp_path / ending / f"data.{ending}"
        data = pl.read_parquet(path) if ending == "parquet" else pl.read_csv(path)
        assert data.columns[-1] == "count"
        assert data["count"].sum() == result.certificate.table.release.rows
        assert len(data) == result.certificate.table.release.classes


def test_nulls_and_strangers_are_published_as_the_docs_say(tmp_path: Path) -> None:
    table = pl.DataFrame({"a": ["x", None, "elsewhere"] * 3000, "b": [5, None, 99] * 3000})
    file = parse_spec(
        "columns: {a: {role: quasi, hierarchy: {flat: {values: [x]}}}, b: {role: quasi, hierarchy: "
        "{intervals: {from: 0, to: 9}}, other: beyond}}\n"
        "release: {epsilon: 1, delta: 1.0e-6, levels: {a: 0, b: 0}}"
    )
    for ending in ("parquet", "csv"):
        changed = file.with_entry(("release", "format"), ending)
        publish_unjudged(table, changed, output=tmp_path / ending)
        assert verify(tmp_path / ending) == []
    data = pl.read_parquet(tmp_path / "parquet" / "data.parquet")
    assert set(data.iter_rows()) == {("x", "5"), (None, None), ("*", "beyond")}


@pytest.mark.parametrize("draw", ["counts", "sample"])
def test_what_is_suppressed_leaves_no_trace_in_any_public_file(tmp_path: Path, draw: str) -> None:
    """Rare ZIP codes must not linger in a dictionary, in metadata or in the scheme."""
    table = pl.DataFrame({"zip": ["11111"] * 4000 + ["98765", "43210"] * 3})
    file = parse_spec(
        "columns: {zip: {role: quasi, hierarchy: {mask: {length: 5}}}}\n"
        f"release: {{epsilon: 1, delta: 1.0e-6, draw: {draw}, levels: {{zip: 0}}}}"
    )
    publish_unjudged(table, file, output=tmp_path / "out")
    for path in (tmp_path / "out").rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert b"98765" not in content
            assert b"43210" not in content
    text = (tmp_path / "out" / "certificate.json").read_text()
    assert str(tmp_path) not in text
    if draw == "sample":  # counts with noise may happen to be the true ones
        for figure in ("4006", "4000"):  # table size, cell size
            assert figure not in text


@pytest.mark.parametrize(
    ("mask", "other", "table", "extra"),
    [
        ("{length: 2, hide: left}", "", ["10"] * 400 + ["21"] * 400, "01"),
        ("{length: 2}", ", other: '00'", ["10"] * 400 + ["xx"] * 400, "00"),
    ],
)
@pytest.mark.parametrize("form", ["expanded", "counted"])
@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_one_suppressed_person_does_not_change_the_order(
    tmp_path: Path, mask: str, other: str, table: list[str], extra: str, form: str, ending: str
) -> None:
    """The order of the rows, and of a file's dictionary, is that of what is shown."""
    level = 1 if "left" in mask else 0
    file = parse_spec(
        f"columns: {{z: {{role: quasi, hierarchy: {{mask: {mask}}}{other}}}}}\n"
        f"release: {{k: 20, beta: 0.5, epsilon: 1, levels: {{z: {level}}}, rows: {form}, "
        f"format: {ending}}}"
    )
    orders = []
    for name, rows in (("without", table), ("with", [*table, extra])):
        publish_unjudged(pl.DataFrame({"z": rows}), file, output=tmp_path / name)
        assert verify(tmp_path / name) == []
        path = tmp_path / name / f"data.{ending}"
        data = (
            pl.read_parquet(path) if ending == "parquet" else pl.read_csv(path, infer_schema=False)
        )
        orders.append(data["z"].unique(maintain_order=True).to_list())
        if ending == "parquet":
            content = path.read_bytes()
            places = [content.index(label.encode()) for label in sorted(orders[-1])]
            assert places == sorted(places)
    assert orders[0] == orders[1] == sorted(orders[0])


def test_awkward_files_are_published_and_verify(tmp_path: Path) -> None:
    writer = pq.ParquetWriter(tmp_path / "t.parquet", pa.schema([("a;b", pa.string_view())]))
    for values in (["p,q,r", "", None] * 400, [], ["p,q,r"] * 10):
        writer.write_table(pa.table({"a;b": pa.array(values, pa.string_view())}))
    writer.close()
    file = parse_spec(
        'columns: {"a;b": {role: quasi, hierarchy: {flat: {values: ["p,q,r", "x,y,z"]}}}}\n'
        'release: {k: 20, beta: 0.5, epsilon: 1, levels: {"a;b": 0}, format: csv}'
    )
    result = publish_unjudged(tmp_path / "t.parquet", file, output=tmp_path / "out")
    assert verify(tmp_path / "out") == []
    assert result.evaluation.rows_original == 1210
    assert result.certificate.table.release.classes == 2  # empty text is null


def test_a_path_is_a_path_and_no_pattern(tmp_path: Path) -> None:
    for name, value in (("g1", "wrong"), ("g[1]", "right")):
        (tmp_path / name).mkdir()
        pl.DataFrame({"x": [value] * 400}).write_parquet(tmp_path / name / "t.parquet")
        pl.DataFrame({"x": [value] * 400}).write_ipc(tmp_path / name / "t.arrow")
    file = parse_spec(
        "columns: {x: {role: quasi, hierarchy: flat}}\nrelease: {k: 20, beta: 0.5, epsilon: 1}"
    )
    for ending in ("parquet", "arrow"):
        table = tmp_path / "g[1]" / f"t.{ending}"
        got = publish_unjudged(table, file, output=tmp_path / f"out[{ending}]")
        assert got.data["x"].unique().to_list() == ["right"]
        assert verify(tmp_path / f"out[{ending}]") == []


def test_the_curators_folder_is_for_the_curator(voters: pl.DataFrame, tmp_path: Path) -> None:
    publish_voters(voters, tmp_path / "out")
    assert (tmp_path / "out.curator").stat().st_mode & 0o077 == 0


def test_one_person_many_rows(tmp_path: Path) -> None:
    table = pl.DataFrame({"id": np.repeat(np.arange(300), 20), "x": ["a"] * 6000})
    file = parse_spec(
        "unit: {id: id}\ncolumns: {id: {role: identifier}, x: {role: quasi, hierarchy: flat}}\n"
        "release: {epsilon: 1, delta: 1.0e-6}"
    )
    result = publish_unjudged(table, file, output=tmp_path / "out")
    assert result.evaluation.rows_original == 300
    assert result.certificate.guarantee.unit == "one person"
    assert (
        "all input rows of one person" in get_statement(result.certificate)["differential_privacy"]
    )
    # a plan that gives its rows in another order each time it runs
    shaken = table.with_columns(pl.int_range(pl.len()).alias("v")).lazy().unique()
    wide = file.with_entry(("columns", "v"), {"role": "drop"})
    assert publish_unjudged(shaken, wide, output=tmp_path / "b").evaluation.rows_original == 300
    written = pl.DataFrame({"id": ["7", " 7", "7.0", "8"] * 50, "x": ["a"] * 200})
    for kind in (pl.String, pl.Categorical):
        people = written.with_columns(pl.col("id").cast(kind))
        got = publish_unjudged(people, file, output=tmp_path / str(kind))
        assert got.evaluation.rows_original == 2


@pytest.mark.parametrize("name", ["^p$", "^.*$", "*", "p", "code", "count", "value"])
@pytest.mark.parametrize("kind", ["memory", "parquet", "csv"])
def test_a_name_is_a_name_and_no_pattern(tmp_path: Path, name: str, kind: str) -> None:
    """Taken for a pattern, the id would be another column, and one person be 200."""
    table = pl.DataFrame(
        {
            name: ["ann"] * 200 + [f"q{i}" for i in range(119)],
            "row": list(range(319)),
            "v": ["x"] * 200 + ["y"] * 119,
        }
    )
    source: Any = table
    if kind != "memory":
        source = tmp_path / f"t.{kind}"
        table.write_parquet(source) if kind == "parquet" else table.write_csv(source)
    spec = {
        "unit": {"id": name},
        "columns": {
            name: {"role": "identifier"},
            "row": {"role": "drop"},
            "v": {"role": "quasi", "hierarchy": {"flat": {"values": ["x", "y"]}}},
        },
        "release": {"k": 10, "beta": 0.5, "epsilon": 1, "levels": {"v": 0}},
    }
    release = publish_unjudged(source, spec, output=tmp_path / "out")
    assert release.evaluation.rows_original == 120
    assert verify(tmp_path / "out") == []
    assert set(release.data["v"]) == {"y"}


def test_a_table_that_is_a_sample_itself(voters: pl.DataFrame, tmp_path: Path) -> None:
    plain = publish_voters(voters, tmp_path / "plain", USUAL.replace("delta", "keep: 0.5, delta"))
    sampled = publish_voters(
        voters, tmp_path / "out", USUAL.replace("delta", "keep: 0.5, already_sampled: 0.1, delta")
    )
    assert verify(tmp_path / "out") == []
    certificate = sampled.certificate
    assert certificate.parameters["already_sampled"] == 0.1
    assert certificate.parameters["beta"] == 0.5
    assert certificate.k < plain.certificate.k
    inside = ic.invert_amplification(epsilon=1, delta=1e-6, rate=0.1)
    assert certificate.k == ic.crowd_size(beta=0.5, epsilon=inside.epsilon, delta=inside.delta)
    assert "probability 0.1," in get_statement(certificate)["assumption_sample"]
    free = publish_voters(
        voters,
        tmp_path / "free",
        USUAL.replace("delta", "draw: sample, already_sampled: 0.1, delta"),
    )
    crowd = free.certificate.k / float(free.certificate.parameters["beta"])
    smallest = ic.plan(epsilon=inside.epsilon, delta=inside.delta).crowd
    assert smallest < crowd < 1.2 * smallest  # with room for a second release
    assert free.certificate.guarantee.delta is not None
    assert free.certificate.guarantee.delta <= 1e-6


@pytest.mark.parametrize(
    ("settings_", "k", "beta"),
    [
        ("k: 20, beta: 0.1, epsilon: 1", 20, 0.1),
        ("k: 20, beta: 0.1, delta: 1.0e-6", 20, 0.1),
        ("beta: 0.2, epsilon: 1, delta: 1.0e-6", 12, 0.2),
        ("keep: 0.6, epsilon: 1, delta: 1.0e-6", 51, 0.6),
        ("epsilon: 1, delta: 1.0e-6, draw: sample", 14, 0.2537),
    ],
)
def test_k_and_beta_are_given_or_solved(
    voters: pl.DataFrame, tmp_path: Path, settings_: str, k: int, beta: float
) -> None:
    result = publish_voters(voters, tmp_path / "out", f"release: {{{settings_}, {LEVELS}}}")
    assert result.certificate.parameters == {"k": k, "beta": beta}
    guarantee = result.certificate.guarantee
    assert guarantee.epsilon is not None
    assert guarantee.delta is not None
    assert ic.delta(k=k, beta=beta, epsilon=guarantee.epsilon) <= guarantee.delta


REFUSALS: list[tuple[tuple[str | int, ...], Any, str]] = [
    (("columns", "zip", "confirm"), ["role"], "roles and formats must be correct (zip)"),
    (("columns", "race", "hierarchy"), None, "'race': a safe release needs a hierarchy"),
    (("columns", "height"), None, "Column 'height': it is in the table, but not in the spec"),
    (
        ("columns", "extra"),
        {"role": "identifier"},
        "'extra': it is in the spec, but not in the table",
    ),
    (("release", "levels", "zip"), 6, "Column 'zip': level 6 does not exist, the highest is 5"),
    (("release", "delta"), None, "Add `epsilon` and `delta`"),
    (("release", "slices"), [["zip", "sex"], ["race"]], "'birth_year': it is in no slice"),
    (
        ("release", "slices"),
        [["zip", "email"], ["sex"]],
        "'email': a slice names it, but it is not published",
    ),
    (("release", "slices"), 4, "4 columns per slice, but only 4 columns"),
    (("release",), {"k": 2, "beta": 0.5, "delta": 1e-6}, "No ε reaches"),
    (("release",), {"k": 9, "beta": 0.5}, "to compute the smallest ε"),
    (("release",), {"k": 9}, "`release` sets k"),
    (
        ("release",),
        {"k": 5, "beta": 0.5, "epsilon": 1.0, "delta": 1e-6},
        "more than 1e-06 of the spec",
    ),
]


@pytest.mark.parametrize(("place", "value", "part"), REFUSALS)
def test_what_cannot_be_published_is_refused_with_the_reason(
    voters: pl.DataFrame, tmp_path: Path, place: tuple[str | int, ...], value: Any, part: str
) -> None:
    with pytest.raises(IncrowdError) as error:
        publish_unjudged(
            voters, make_voter_spec().with_entry(place, value), output=tmp_path / "out"
        )
    assert part in str(error.value)
    assert not (tmp_path / "out").exists()


def test_the_first_lines_of_python(voters: pl.DataFrame) -> None:
    release = ic.publish(
        voters.select("sex", "race"),
        {
            "columns": {
                "sex": {"role": "quasi", "hierarchy": {"groups": {"Person": ["female", "male"]}}},
                "race": {"role": "quasi", "hierarchy": "flat"},
            },
            "release": {"epsilon": 1, "delta": 1e-6},
        },
    )
    assert len(release.data) == release.certificate.table.release.rows
    assert verify(release.folder) == []
    assert "Private" in release.report().html
    assert "differential privacy" in release._repr_html_()


def test_a_name_too_long_for_a_file_is_refused_before_the_spend(tmp_path: Path) -> None:
    name = "x" * 300
    file = parse_spec(
        f"columns: {{{name}: {{role: quasi, hierarchy: flat}}}}\n{USUAL}".replace(
            LEVELS, "levels: {}"
        )
    )
    book = Ledger(tmp_path / "ledger")
    book.set_budget(epsilon=9, delta=1e-6)
    with pytest.raises(IncrowdError, match="too long for a file"):
        publish_unjudged(pl.DataFrame({name: ["a"]}), file, output=tmp_path / "out", ledger=book)
    assert book.spends() == []


def test_paths_may_be_text(voters: pl.DataFrame, tmp_path: Path) -> None:
    ic.publish(voters, make_voter_spec(), output=str(tmp_path / "out"))
    assert ic.verify(str(tmp_path / "out")) == []


def test_an_existing_folder_is_left_alone(voters: pl.DataFrame, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("x")
    with pytest.raises(IncrowdError, match="exists and holds 'mine.txt'"):
        publish_voters(voters, tmp_path / "out")
    assert list_files(tmp_path / "out") == ["mine.txt"]


def test_seeded_releases_repeat_and_say_so(voters: pl.DataFrame, tmp_path: Path) -> None:
    item = publish_voters(voters, tmp_path / "a", bits=SeededRandomness(3))
    two = publish_voters(voters, tmp_path / "b", bits=SeededRandomness(3))
    assert item.certificate == two.certificate
    assert item.certificate.randomness == "seeded: not private"
    assert "NOT private" in str(item.findings[0])
    other = publish_voters(voters, tmp_path / "c")
    assert other.certificate.randomness == "system"
    assert other.certificate.table.release.sha256 != item.certificate.table.release.sha256


@pytest.mark.parametrize("more", ["draw: sample", "draw: counts, levels: {x: 0}"])
def test_nothing_survives_is_said_and_verifies(tmp_path: Path, more: str) -> None:
    table = pl.DataFrame({"x": [str(i) for i in range(10)]})
    file = parse_spec(
        "columns: {x: {role: quasi, hierarchy: flat}}\n"
        f"release: {{epsilon: 1, delta: 1.0e-6, {more}}}"
    )
    for ending in ("parquet", "csv"):
        result = publish_unjudged(
            table, file.with_entry(("release", "format"), ending), output=tmp_path / ending
        )
        assert result.certificate.table.release.rows == 0
        assert verify(tmp_path / ending) == []
    assert "Nothing was published" in (tmp_path / "csv.curator/report.html").read_text()


def test_the_same_table_without_a_ledger_warns(voters: pl.DataFrame, tmp_path: Path) -> None:
    assert publish_voters(voters, tmp_path / "a", by=publish).findings == ()
    assert "was released before" in str(
        publish_voters(voters, tmp_path / "b", by=publish).findings[0]
    )
    assert publish_voters(voters.head(19_000), tmp_path / "c", by=publish).findings == ()
