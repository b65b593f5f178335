"""Shares beside the rows, from the spec to whoever verifies: every form of a safe release."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from support.pinned_randomness import PinnedRandomness
from support.unjudged import publish_unjudged

import incrowd as ic
from incrowd.methods.registry import make_method
from incrowd.methods.safe.method import Safe
from incrowd.release.certificate import Certificate
from incrowd.spec.file import SpecFile, parse_spec

ROWS = 4_000
RARE = 0.05
BUDGET = "method: safe, epsilon: 1.0, delta: 1.0e-6"


def make_table(rows: int = ROWS) -> pl.DataFrame:
    draw = np.random.default_rng(2)
    frame = {f"c{at}": draw.choice(["a", "b", "c", "d"], rows) for at in range(5)}
    ill = draw.random(rows) < RARE
    person = draw.integers(0, rows // 2, rows)
    return pl.DataFrame({**frame, "ill": np.where(ill, "yes", "no"), "person": person})


def make_spec(release: str, *, unit: str = "one row per person", rare: str = "keep") -> SpecFile:
    columns = "".join(
        f"  c{at}: {{role: quasi, hierarchy: {{flat: {{values: [a, b, c, d]}}}}}}\n"
        for at in range(5)
    )
    entry = f", rare: {rare}" if rare else ""
    return parse_spec(
        f"unit: {unit}\ncolumns:\n{columns}  person: {{role: identifier}}\n"
        f"  ill: {{role: sensitive{entry}, hierarchy: {{flat: {{values: ['no', 'yes']}}}}}}\n"
        f"release: {{{release}}}\n"
    )


def publish(spec: SpecFile, folder: Path, seed: int = 1, table: Any = None) -> Certificate:
    table = make_table() if table is None else table
    release = publish_unjudged(table, spec, output=folder, bits=PinnedRandomness(seed))
    return release.certificate


FORMS = {
    "counts": make_spec(BUDGET),
    "fixed levels": make_spec(
        f"{BUDGET}, levels: {{c0: 1, c1: 1, c2: 1, c3: 1, c4: 0, ill: 0}}, rows: counted"
    ),
    "sample": make_spec(f"{BUDGET}, draw: sample"),
    "slices": make_spec(f"{BUDGET}, slices: 2"),
    "cuts": make_spec(f"{BUDGET}, scheme: mondrian"),
    "people": make_spec(BUDGET, unit="{id: person, rows: 3}"),
    "population": make_spec(f"{BUDGET}, already_sampled: 0.2"),
    "described": make_spec(BUDGET).with_entry(("describe",), ["frictionless", "croissant"]),
    "target": make_spec(f"{BUDGET}, target: ill", rare=""),
    "csv": make_spec(f"{BUDGET}, format: csv, formulas: escape"),
}


@pytest.mark.parametrize("name", FORMS)
def test_every_form_publishes_the_share_and_verifies(name: str, tmp_path: Path) -> None:
    certificate = publish(FORMS[name], tmp_path / "out")
    assert ic.verify(tmp_path / "out") == []
    (table,) = certificate.shares or []
    assert (table.column, table.values) == ("ill", ["no", "yes", None, "*"])
    listed = pl.read_csv(tmp_path / "out/shares/ill.csv")
    (row,) = listed.filter(pl.col("value") == "yes").to_dicts()
    if name != "people":  # where two values may be of one person
        assert abs(row["share"] - RARE) < 2 * row["error_95"] + 0.01
    readme = (tmp_path / "out/README.md").read_text()
    assert "## Shares" in readme
    is_kept = "The rows keep all of these shares" in readme
    assert is_kept != ("The rows do not keep these shares" in readme or not table.shown)
    assert ("may show coarser labels" in readme) == (not table.shown)
    assert "[shares/ill.csv](<shares/ill.csv>)" in readme
    assert any("'ill' were counted beside the rows" in x.text
               for x in certificate.guarantee.statement)  # fmt: skip
    if certificate.has_noisy_counts:
        assert (
            "rows are" in certificate.guarantee.text or "of rows is" in certificate.guarantee.text
        )


SICK = [f"s{at}" for at in range(8)]
KINDS = "{groups: {low: [s0, s1, s2, s3], high: [s4, s5, s6, s7]}}"


def make_kinds_spec(release: str, unit: str = "one row per person") -> SpecFile:
    """A column of eight values in two groups, which a fixed scheme shows by its groups."""
    return parse_spec(
        f"unit: {unit}\ncolumns:\n  person: {{role: identifier}}\n"
        "  c0: {role: quasi, hierarchy: {flat: {values: [a, b]}}}\n"
        "  c1: {role: quasi, hierarchy: {flat: {values: [a, b]}}}\n"
        f"  ill: {{role: sensitive, rare: keep, hierarchy: {KINDS}}}\n"
        f"release: {{{BUDGET}, {release}}}\n"
    )


@pytest.mark.parametrize(
    ("release", "unit", "level"),
    [
        ("scheme: fixed", "one row per person", 1),
        ("scheme: fixed, draw: sample", "one row per person", 1),
        ("scheme: fixed, slices: 2", "one row per person", 1),
        ("scheme: fixed", "{id: person, rows: 3}", 1),
        ("scheme: mondrian, draw: sample", "one row per person", None),
    ],
)
def test_values_are_counted_finer_than_the_rows_show_them(
    release: str, unit: str, level: int | None, tmp_path: Path
) -> None:
    """All of a group in the last of its values would be off by twenty standard deviations."""
    draw = np.random.default_rng(3)
    ill = draw.choice(SICK, ROWS, p=[0.3, 0.1, 0.05, 0.05, 0.2, 0.2, 0.05, 0.05])
    table = pl.DataFrame({"person": np.arange(ROWS), "ill": ill} | {
        name: draw.choice(["a", "b"], ROWS) for name in ("c0", "c1")
    })  # fmt: skip
    certificate = publish(make_kinds_spec(release, unit), tmp_path / "out", table=table)
    assert ic.verify(tmp_path / "out") == []
    (part,) = certificate.shares or []
    assert (part.level, part.values[:8]) == (0, SICK)
    rows = certificate.rows_per_person
    for value, count in zip(SICK, part.counts, strict=False):
        assert abs(count - int((table["ill"] == value).sum())) < 6 * 28.3 * rows
    readme = (tmp_path / "out/README.md").read_text()
    assert "The rows may show coarser labels of `ill` than these" in readme
    assert "within the error" not in readme  # of rows that show nothing of it
    row_levels = {each.scheme["ill"].level for each in certificate.tables if "ill" in each.scheme}
    assert row_levels == {level}


@pytest.mark.parametrize(
    ("unit", "stated", "true"),
    [
        ("{id: person, rows: 3, per_group: 2}", "used rows … up to 2 of one person", 2_000),
        ("{id: person, rows: 3}", "people", 1_000),
        ("one row per person", "rows", 3_000),
    ],
)
def test_the_statement_says_what_the_counts_beside_the_rows_are(
    unit: str, stated: str, true: int, tmp_path: Path
) -> None:
    """Each of 1,000 people has three rows of one value."""
    table = pl.DataFrame({"person": np.arange(3_000) // 3, "c0": "a", "c1": "b", "ill": "s2"})
    certificate = publish(make_kinds_spec("levels: {ill: 0}", unit), tmp_path / "out", table=table)
    assert ic.verify(tmp_path / "out") == []
    (text,) = [x.text for x in certificate.guarantee.statement if x.key == "shares"]
    who, _, limit = stated.partition(" … ")
    value = f"The {who} with each declared value of 'ill'{', ' + limit + ',' if limit else ''}"
    assert text.startswith(f"{value} were counted beside the rows (ε = 0.05")
    (part,) = certificate.shares or []
    assert abs(part.counts[SICK.index("s2")] - true) < 6 * 28.3 * certificate.rows_per_person


@pytest.mark.parametrize("form", ["scheme: search", "draw: sample"])
def test_a_target_of_many_values_is_counted_by_groups_and_searched_by_values(
    form: str, tmp_path: Path
) -> None:
    values = [f"w{at}" for at in range(120)]
    groups = ", ".join(f"h{at}: [{', '.join(values[20 * at : 20 * at + 20])}]" for at in range(6))
    spec = parse_spec(
        "columns:\n  c0: {role: quasi, hierarchy: {flat: {values: [a, b]}}}\n"
        f"  ill: {{role: sensitive, rare: keep, hierarchy: {{groups: {{{groups}}}}}}}\n"
        f"size: {ROWS}\n"
        f"release: {{{BUDGET}, {form}, target: ill}}\n"
    )
    draw = np.random.default_rng(5)
    table = pl.DataFrame({"c0": draw.choice(["a", "b"], ROWS), "ill": draw.choice(values, ROWS)})
    certificate = publish(spec, tmp_path / "out", table=table)
    assert ic.verify(tmp_path / "out") == []
    (part,) = certificate.shares or []
    assert (part.level, part.values[:6]) == (1, [f"h{at}" for at in range(6)])
    assert max(abs(count - ROWS / 6) for count in part.counts[:6]) < 400
    method = make_method(spec)
    assert isinstance(method, Safe)
    assert method.find_count_error("ill") is None  # of a value: only groups are counted


def test_what_the_rows_lose_is_said(tmp_path: Path) -> None:
    """At fine levels no group of five in a hundred survives."""
    spec = make_spec(f"{BUDGET}, levels: {{c0: 0, c1: 0, c2: 0, c3: 1, c4: 1, ill: 0}}")
    certificate = publish(spec, tmp_path / "out")
    (table,) = certificate.shares or []
    (part,) = table.shown
    assert part.rows[1] == 0  # of yes
    readme = (tmp_path / "out/README.md").read_text()
    assert "The rows do not keep these shares" in readme
    assert "| `ill` | `yes` | `data.parquet` | 0.00 % |" in readme


def rewrite(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change a certificate, and make all that follows from it anew, as a forger would."""
    plain = json.loads((folder / "certificate.json").read_text())
    change(plain)
    certificate = Certificate.model_validate(plain).with_statement().with_seal()
    (folder / "certificate.json").write_bytes(certificate.to_canonical_json())
    from incrowd.release.pages import make_pages

    for name, page in make_pages(certificate).items():
        (folder / name).write_bytes(page)


def change_count(plain: dict[str, Any]) -> None:
    plain["shares"][0]["values"][1] = "maybe"


def drop_value(plain: dict[str, Any]) -> None:
    table = plain["shares"][0]
    for listed in (table["values"], table["counts"], *(part["rows"] for part in table["shown"])):
        del listed[1]


def charge_less(plain: dict[str, Any]) -> None:
    plain["shares"][0]["epsilon"] = 0.01


def drop_event(plain: dict[str, Any]) -> None:
    del plain["events"][0]
    del plain["parameters"]["shares_epsilon"]


def state_other_rows(plain: dict[str, Any]) -> None:
    plain["shares"][0]["shown"][0]["rows"][1] += 1


def hide_rows(plain: dict[str, Any]) -> None:
    plain["shares"][0]["shown"] = []


def count_twice(plain: dict[str, Any]) -> None:
    plain["shares"].append(plain["shares"][0])


def name_other_column(plain: dict[str, Any]) -> None:
    plain["shares"][0]["column"] = "c9"


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shares") / "out"
    publish(FORMS["counts"], folder)
    return folder


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (change_count, "SHARES_INVALID"),
        (drop_value, "SHARES_INVALID"),
        (charge_less, "SHARES_NOT_CHARGED"),
        (drop_event, "SHARES_NOT_CHARGED"),
        (state_other_rows, "SHARES_ROWS_DIFFER"),
        (hide_rows, "SHARES_ROWS_DIFFER"),
        (count_twice, "SHARES_INVALID"),
        (name_other_column, "SHARES_INVALID"),
    ],
)
def test_a_forged_part_is_found(
    change: Callable[[dict[str, Any]], None], code: str, honest: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "forged"
    shutil.copytree(honest, folder)
    rewrite(folder, lambda plain: None)
    assert ic.verify(folder) == []
    rewrite(folder, change)
    assert code in {finding.code for finding in ic.verify(folder)}


@pytest.fixture(scope="module")
def sliced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("slices") / "out"
    publish(make_spec(f"{BUDGET}, slices: 3", rare=""), folder)
    return folder


def test_slices_agree_on_one_number_of_each_value(sliced: Path) -> None:
    assert ic.verify(sliced) == []
    table = make_table()
    read = 0
    for path in sorted(sliced.glob("shares/*.csv")):
        listed = pl.read_csv(path)
        files = [name for name in listed.columns if name.startswith("data-")]
        assert len(files) > 1
        assert (
            listed["rows"].to_list()
            == listed.select(pl.max_horizontal(files)).to_series().to_list()
        )
        for row in listed.drop_nulls("value").to_dicts():
            true = int((table[path.stem] == row["value"]).sum())
            assert row["rows"] <= true + 6 * 4.3 * 16**0.5  # noise of up to 16 groups
            for name in files:
                data = pl.read_parquet(sliced / name)
                assert int((data[path.stem] == row["value"]).sum()) == row[name]
                read += 1
    assert read > 20
    readme = (sliced / "README.md").read_text()
    assert "One number from several files" in readme


def lower_rows(plain: dict[str, Any]) -> None:
    plain["combined"][0]["files"][0]["rows"][0] -= 1


def drop_file(plain: dict[str, Any]) -> None:
    del plain["combined"][0]["files"][0]


def list_twice(plain: dict[str, Any]) -> None:
    plain["combined"].append(plain["combined"][0])


@pytest.mark.parametrize(
    ("change", "codes"),
    [
        (lower_rows, {"SHARES_ROWS_DIFFER"}),
        (drop_file, {"SHARES_ROWS_DIFFER", "SHARES_INVALID"}),
        (list_twice, {"SHARES_INVALID"}),
    ],
)
def test_a_forged_combination_is_found(
    change: Callable[[dict[str, Any]], None], codes: set[str], sliced: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "forged"
    shutil.copytree(sliced, folder)
    rewrite(folder, change)
    assert {finding.code for finding in ic.verify(folder)} & codes


@pytest.mark.parametrize(
    ("rare", "more"), [("", "slices: [[f, c0], [f, c1]]"), (", rare: keep", "")]
)
@pytest.mark.parametrize("escape", ["escape", ""])
def test_no_file_has_a_formula_where_the_rows_have_none(
    rare: str, more: str, escape: str, tmp_path: Path
) -> None:
    formulas = f", formulas: {escape}" if escape else ""
    spec = parse_spec(
        f"columns:\n  f: {{role: quasi{rare}, hierarchy: {{flat: {{values: ['=1+1', b]}}}}}}\n"
        "  c0: {role: quasi, hierarchy: {flat: {values: [a, b]}}}\n"
        "  c1: {role: quasi, hierarchy: {flat: {values: [a, b]}}}\n"
        "describe: [frictionless]\n"
        f"release: {{{BUDGET}, format: csv{formulas}, {more}}}\n"
    )
    table = pl.DataFrame(
        {"f": ["=1+1", "b"] * 1_000, "c0": ["a", "b"] * 1_000, "c1": ["a"] * 1_000 + ["b"] * 1_000}
    )
    folder = tmp_path / "out"
    publish(spec, folder, table=table)
    assert ic.verify(folder) == []
    cell = "\n'=1+1," if escape else "\n=1+1,"
    paths = [*folder.glob("data*.csv"), *folder.glob("shares/*.csv")]
    assert all(cell in path.read_text() for path in paths)
    assert len(paths) == (3 if more else 2)
    path = folder / "shares/f.csv"
    path.write_text(path.read_text().replace(cell, "\n=1+1," if escape else "\n'=1+1,"))
    assert "PAGE_DIFFERS" in {finding.code for finding in ic.verify(folder)}


def test_a_changed_or_foreign_file_is_found(honest: Path, tmp_path: Path) -> None:
    folder = tmp_path / "changed"
    shutil.copytree(honest, folder)
    path = folder / "shares/ill.csv"
    path.write_text(path.read_text().replace("0.0", "0.1"))
    assert {finding.code for finding in ic.verify(folder)} == {"PAGE_DIFFERS"}
    shutil.copy(honest / "shares/ill.csv", path)
    (folder / "shares/c0.csv").write_text("value,count\n")
    assert {finding.code for finding in ic.verify(folder)} == {"FILE_NOT_COVERED"}
    (folder / "shares/c0.csv").unlink()
    path.unlink()
    assert "FILE_MISSING" in {finding.code for finding in ic.verify(folder)}


def test_the_noise_of_a_release_is_what_its_certificate_says(tmp_path: Path) -> None:
    """Over 60 releases: three times the standard deviation, or a third of it, would be seen."""
    table = make_table(300)
    truth = int((table["ill"] == "no").sum())
    noise = []
    for seed in range(60):
        spec = make_spec(f"{BUDGET}, levels: {{c0: 1, c1: 1, c2: 1, c3: 1, c4: 1, ill: 0}}")
        release = publish_unjudged(table, spec, bits=PinnedRandomness(seed))
        (part,) = release.certificate.shares or []
        noise.append(part.counts[0] - truth)
    spread = float(np.std(noise))
    assert 28.3 / 2 < spread < 28.3 * 2
    assert abs(float(np.mean(noise))) < 6 * 28.3 / np.sqrt(60)


def test_who_publishes_is_told_which_shares_the_rows_lose() -> None:
    spec = make_spec(f"{BUDGET}, levels: {{c0: 0, c1: 0, c2: 0, c3: 1, c4: 1, ill: 0}}")
    release = publish_unjudged(make_table(), spec, bits=PinnedRandomness(1))
    (finding,) = [finding for finding in release.findings if finding.code == "SHARES_LOST"]
    assert "ill 'yes' 0 %" in finding.message
    assert "shares/ill.csv" in finding.remedy
    coarse = make_spec(f"{BUDGET}, levels: {{c0: 1, c1: 1, c2: 1, c3: 1, c4: 1, ill: 0}}")
    release = publish_unjudged(make_table(), coarse, bits=PinnedRandomness(1))
    assert "SHARES_LOST" not in {finding.code for finding in release.findings}


@pytest.mark.spark
def test_spark_counts_the_same(spark_session: Any, tmp_path: Path) -> None:
    table = make_table()
    remote = spark_session.createDataFrame(table.to_pandas())
    certificate = publish(FORMS["target"], tmp_path / "out", table=remote)
    assert ic.verify(tmp_path / "out") == []
    (local,) = publish(FORMS["target"], tmp_path / "here", table=table).shares or []
    (remote_part,) = certificate.shares or []
    assert remote_part.counts == local.counts
