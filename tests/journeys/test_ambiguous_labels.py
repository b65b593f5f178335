"""Hierarchies that use one label for two things, as some ARX files do: how they are read."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from support.pinned_randomness import PinnedRandomness
from support.unjudged import publish_unjudged

from incrowd.anonymize.lattice import Rollups
from incrowd.anonymize.ola import find_optimal_node
from incrowd.codes.hierarchy import build_from_rows
from incrowd.curate.check import check
from incrowd.engine.count import count_tuples_with_kept
from incrowd.engine.source import open_table
from incrowd.evaluation.evaluate import evaluate, information_loss
from incrowd.findings import Finding
from incrowd.measure.evaluation import Evaluation
from incrowd.measure.labels import find_ambiguous_labels, read_level
from incrowd.methods.k_anonymity.classes import count_suppressible, make_lattice
from incrowd.publication import publish
from incrowd.release.verify import verify
from incrowd.spec.build import ColumnHierarchies
from incrowd.spec.file import SpecFile, read_spec_file
from incrowd.spec.release import ClassesSpec

# Twelve districts in groups of three; the first group is called as the root is.
NAMES = {0: "11", 1: "12", 2: "13", 3: "14"}
ROWS = [(f"d{at:02}", NAMES[at // 3], "11") for at in range(12)]
PLAIN = [(value, label, "*") for value, label, _ in ROWS]


def people(rows: int = 600) -> pl.DataFrame:
    draw = np.random.default_rng(1)
    return pl.DataFrame(
        {
            "district": [f"d{at:02}" for at in draw.integers(0, 12, rows)],
            "age": draw.integers(0, 8, rows),
            "sex": draw.choice(["f", "m"], rows),
        }
    )


def written(folder: Path, release: str, rows: Sequence[tuple[str, ...]] | None = None) -> SpecFile:
    text = "\n".join(";".join(row) for row in rows or ROWS)
    (folder / "district.csv").write_text(text, encoding="utf-8")
    (folder / "spec.yaml").write_text(
        "columns:\n"
        "  district: {role: quasi, hierarchy: {csv: district.csv}}\n"
        "  age: {role: quasi, hierarchy: {intervals: {from: 0, to: 7, widths: [2]}}}\n"
        "  sex: {role: quasi, hierarchy: {flat: {values: [f, m]}}}\n"
        f"release: {{{release}}}\n",
        encoding="utf-8",
    )
    return read_spec_file(folder / "spec.yaml")


def found_by_search(file: SpecFile) -> float:
    """The loss that the search of levels finds."""
    columns, release = dict(file.spec.columns), file.spec.release
    assert isinstance(release, ClassesSpec)
    rows = count_tuples_with_kept(open_table(people()), ColumnHierarchies(columns, file.folder), ())
    assert release.k is not None
    scheme = find_optimal_node(
        Rollups(rows.counted.hierarchies, rows.counted.frequencies),
        make_lattice(rows, release),
        k=release.k,
        limit=count_suppressible(release, rows.frequencies.total),
        loss="normalized",
        weights=np.ones(3),
    )
    assert scheme.levels[0] == 1  # or there is nothing to see
    return scheme.loss


K5 = "method: k-anonymity, k: 5, suppression: 0, levels: {district: 1}"


def test_the_release_reports_the_loss_that_the_search_found(tmp_path: Path) -> None:
    file = written(tmp_path, K5)
    release = publish(people(), file, output=tmp_path / "out", bits=PinnedRandomness(1))
    assert isinstance(release.evaluation, Evaluation)
    assert release.evaluation.loss == pytest.approx(found_by_search(file), abs=1e-12)
    assert release.evaluation.loss_by_column["district"] == pytest.approx(2 / 11)
    plain = written(tmp_path, K5, PLAIN)
    same = publish(people(), plain, output=tmp_path / "plain", bits=PinnedRandomness(1))
    assert isinstance(same.evaluation, Evaluation)
    assert release.evaluation.as_dict() == same.evaluation.as_dict()
    assert verify(tmp_path / "out") == []


def test_a_file_beside_its_certificate_is_read_by_it(tmp_path: Path) -> None:
    """Of a label alone, which the root has too, nothing but the certificate tells the level."""
    file = written(tmp_path, f"{K5}, format: csv")
    few = people().filter(pl.col("district").is_in(["d00", "d01", "d02"]))
    release = publish(few, file, output=tmp_path / "out")
    assert isinstance(release.evaluation, Evaluation)
    beside = evaluate(few, tmp_path / "out" / "data.csv", file)
    assert beside.loss == pytest.approx(release.evaluation.loss)
    assert beside.readings == ()
    losses = information_loss(few, tmp_path / "out" / "data.csv", file)
    assert losses["normalized"] == pytest.approx(release.evaluation.loss)
    shutil.copy(tmp_path / "out" / "data.csv", tmp_path / "alone.csv")
    alone = evaluate(few, tmp_path / "alone.csv", file)
    assert alone.loss_by_column["district"] == 1  # as the root: the widest that it may mean
    assert "fit level 1 and level 2, where '11' means different things" in str(alone.readings[0])
    # A certificate that is not of this file does not count.
    shutil.copy(tmp_path / "out" / "certificate.json", tmp_path / "certificate.json")
    shutil.copy(tmp_path / "alone.csv", tmp_path / "data.csv")
    assert evaluate(few, tmp_path / "data.csv", file).readings == ()
    with (tmp_path / "data.csv").open("a", encoding="utf-8") as data:
        data.write("11,0-1,f\n")
    assert evaluate(few, tmp_path / "data.csv", file).readings != ()


def test_a_foreign_file_is_read_at_the_level_that_fits_all_its_labels(tmp_path: Path) -> None:
    file = written(tmp_path, K5)
    names = {value: label for value, label, _ in ROWS}
    foreign = people().with_columns(pl.col("district").replace_strict(names))
    result = evaluate(people(), foreign, file)
    assert result.loss_by_column["district"] == pytest.approx(2 / 11)
    assert result.readings == ()
    # Values beside groups fit no level: then each label is read by itself, as the widest.
    mixed = foreign.with_row_index().with_columns(
        district=pl.when(pl.col("index") == 0).then(pl.lit("d00")).otherwise("district")
    )
    result = evaluate(people(), mixed.drop("index"), file)
    assert result.loss_by_column["district"] > 0.3
    assert result.readings[0].code == "LABEL_LEVEL_UNKNOWN"
    # Suppressed rows show * and fit anywhere.
    starred = pl.concat(
        [foreign, pl.DataFrame({"district": ["*"], "age": ["*"], "sex": ["*"]})],
        how="vertical_relaxed",
    )
    assert evaluate(people(), starred, file).readings == ()


def test_labels_with_two_meanings() -> None:
    assert find_ambiguous_labels(build_from_rows(ROWS)) == {"11": {1: 3, 2: 12}}
    assert find_ambiguous_labels(build_from_rows(PLAIN)) == {}
    same = [("a", "a", "all"), ("b", "b", "all")]  # a group of one value, called as the value is
    assert find_ambiguous_labels(build_from_rows(same)) == {}
    assert read_level("x", build_from_rows(ROWS), ["11", "12"]) == (1, ())
    assert read_level("x", build_from_rows(ROWS), ["12", "13"]) == (None, ())  # nothing in doubt
    assert read_level("x", build_from_rows(ROWS), ["11"])[0] == 2
    assert read_level("x", build_from_rows(ROWS), ["11", "d00"]) == (
        0,
        (),
    )  # what is outside the domain


@pytest.mark.parametrize(
    ("release", "severity", "code"),
    [
        ("method: k-anonymity, k: 5", "warning", "LABEL_AT_SEVERAL_LEVELS"),
        ("method: k-anonymity, k: 5, algorithm: mondrian", "warning", "LABELS_SIDE_BY_SIDE"),
        ("scheme: mondrian, epsilon: 1, delta: 1.0e-6", "warning", "LABELS_SIDE_BY_SIDE"),
        (
            "method: k-anonymity, k: 5, levels: {district: [0, 1]}",
            "warning",
            "LABEL_OF_OUTSIDE_VALUES",
        ),
        ("method: k-anonymity, k: 5, levels: {district: 2}", "note", "LABEL_AMBIGUOUS"),
        ("method: k-anonymity, k: 5, levels: {district: 0}", "note", "LABEL_AMBIGUOUS"),
    ],
)
def test_check_names_them_and_who_could_be_misled(
    tmp_path: Path, release: str, severity: str, code: str
) -> None:
    file = written(tmp_path, release)
    (result,) = _about_labels(check(open_table(people()), file))
    assert (result.severity, result.code) == (severity, code)
    assert "'11' has several meanings (3 values at level 1 and all 12 at level 2" in result.message
    assert not _about_labels(check(open_table(people()), written(tmp_path, release, PLAIN)))


def _about_labels(findings: list[Finding]) -> list[Finding]:
    return [
        finding for finding in findings if finding.code.partition("_")[0] in ("LABEL", "LABELS")
    ]


def test_slices_and_safe_releases_read_by_levels_too(tmp_path: Path) -> None:
    release = (
        "epsilon: 4, delta: 1.0e-3, scheme: fixed, levels: {district: 1, age: 0, sex: 0}, "
        "slices: [[district, age], [age, sex]]"
    )
    associations = []
    for name, rows in (("flawed", ROWS), ("plain", PLAIN)):
        file = written(tmp_path, release, rows)
        publication = publish_unjudged(
            people(3000), file, output=tmp_path / name, bits=PinnedRandomness(1)
        )
        assert publication.evaluation.slices
        associations.append(publication.evaluation.associations)
    assert associations[0] == associations[1]
