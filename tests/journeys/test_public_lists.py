"""Countries, diagnoses and postcodes from a table with mixed spellings to a verified release."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from support.unjudged import publish_unjudged

from incrowd.release.verify import verify
from incrowd.spec.build import build_hierarchy
from incrowd.spec.file import parse_spec

COLUMNS = """
columns:
  born_in: {role: quasi, hierarchy: countries}
  lives_in: {role: quasi, hierarchy: {postcodes: {country: GB}}}
  diagnosis: {role: quasi, hierarchy: icd, other: unknown}
release: """
# What the table holds for a value, and the value.
WRITTEN = {
    "born_in": {"UK": "GB", "gb": "GB", "United Kingdom": "GB", "Great Britain": "GB",
                "POL": "PL", "Poland": "PL", "IN": "IN", "india": "IN"},
    "lives_in": {"SW1A 1AA": "SW1", "sw1a2aa": "SW1", "SW1": "SW1", "SW1P 3BU": "SW1",
                 "M1 1AE": "M1", "m11ae": "M1", "SW2 1AA": "SW2", "SW21AB": "SW2"},
    "diagnosis": {"E11.9": "E11", "e119": "E11", "E11": "E11", "E11.65": "E11",
                  "I10": "I10", "i10": "I10", "E10.1": "E10", "flu": "unknown"},
}  # fmt: skip


@pytest.fixture(scope="module")
def people() -> pl.DataFrame:
    draw = np.random.default_rng(7)
    return pl.DataFrame(
        {name: draw.choice(list(texts), 4000).tolist() for name, texts in WRITTEN.items()}
    )


def values(people: pl.DataFrame) -> Counter[tuple[object, ...]]:
    """The rows of the table by the values that their texts stand for."""
    result = people.with_columns(pl.col(name).replace(texts) for name, texts in WRITTEN.items())
    return Counter(result.iter_rows())


@pytest.mark.parametrize("algorithm", ["ola", "mondrian"])
def test_spellings_are_one_value_and_crowds_are_counted_by_it(
    people: pl.DataFrame, tmp_path: Path, algorithm: str
) -> None:
    """Every crowd of values is large enough, though none of spellings is: all rows stay whole."""
    spec = parse_spec(f"{COLUMNS}{{method: k-anonymity, k: 20, algorithm: {algorithm}}}")
    true = values(people)
    assert max(Counter(people.iter_rows()).values()) < 20 < min(true.values())
    release = publish_unjudged(people, spec, output=tmp_path / "out")
    assert verify(tmp_path / "out") == []
    assert Counter(release.data.iter_rows()) == true


@pytest.mark.parametrize(
    "release",
    [
        "{method: safe, epsilon: 1, delta: 1.0e-6, draw: counts}",
        "{method: safe, epsilon: 1, delta: 1.0e-6, draw: counts, levels: "
        "{born_in: 1, lives_in: 1, diagnosis: 2}}",
        "{method: k-anonymity, k: 300, algorithm: ola}",
        "{method: k-anonymity, k: 300, algorithm: mondrian}",
    ],
)
def test_labels_lie_on_the_paths_of_the_values(
    people: pl.DataFrame, tmp_path: Path, release: str
) -> None:
    spec = parse_spec(f"{COLUMNS}{release}")
    publication = publish_unjudged(people, spec, output=tmp_path / "out")
    assert verify(tmp_path / "out") == []
    assert len(publication.data) > 3000
    for name, texts in WRITTEN.items():
        column = publication.certificate.table.scheme[name]
        assert column.file is not None  # the domain is listed, whatever the table holds
        rows = {
            row[0]: row
            for row in build_hierarchy(spec.spec.columns[name], folder=Path()).list_rows()
        }
        paths = [rows.get(value, (value,) * 3 + ("*",)) for value in texts.values()]
        levels = slice(None) if column.level is None else slice(column.level, column.level + 1)
        assert set(publication.data[name]) <= {
            label for path in paths for label in path[levels]
        } | {"*"}
    if "levels" in release:
        labels = {
            "born_in": {"Northern Europe", "Eastern Europe", "Southern Asia"},
            "lives_in": {"SW", "M"},
            "diagnosis": {"E00-E90", "I00-I99", "unknown"},
        }
        assert {name: set(publication.data[name]) for name in labels} == labels
