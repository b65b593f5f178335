"""What a suppressed row leaves in the published bytes: nothing.

Two tables differ in one row that is suppressed. With fixed levels, and every draw replaced by its
center, all that is published is the same to the last byte, for every method and form. (Starred rows
are left out: they say how many rows are suppressed.) A new method joins by one line of METHODS.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from support.releases import list_files
from support.unjudged import publish_unjudged

from incrowd.anonymize import safe_counts, safe_sample
from incrowd.anonymize import safe_search as search
from incrowd.methods.safe import draw as drawing
from incrowd.privacy import k_epsilon
from incrowd.release.verify import verify
from incrowd.spec.about import METADATA_FORMATS

LEVELS = "levels: {zip: 2, kind: 0, age: 1, tail: 1}"
FIXED = "levels: {zip: [2, 2], kind: [0, 0], age: [1, 1], tail: [1, 1]}"
METHODS = {
    "safe": f"epsilon: 1, delta: 1.0e-6, scheme: fixed, keep: 0.5, {LEVELS}",
    "safe, searched": f"epsilon: 1, delta: 1.0e-6, scheme: search, keep: 0.5, {FIXED}",
    "safe, sliced": f"epsilon: 1, delta: 1.0e-6, scheme: fixed, keep: 0.5, {LEVELS}, "
    "slices: [[zip, kind], [zip, age, tail]]",
    "safe, counts": f"epsilon: 1, delta: 1.0e-6, scheme: fixed, draw: counts, {LEVELS}",
    "safe, counts, searched": f"epsilon: 1, delta: 1.0e-6, scheme: search, draw: counts, {FIXED}",
    "safe, counts, sliced": f"epsilon: 1, delta: 1.0e-6, scheme: fixed, draw: counts, {LEVELS}, "
    "slices: [[zip, kind], [zip, age, tail]]",
    "safe, sampled before": f"epsilon: 1, delta: 1.0e-6, scheme: fixed, already_sampled: 0.5, "
    f"keep: 0.5, {LEVELS}",
    "k-anonymity": f"method: k-anonymity, k: 5, suppression: 0.1, {LEVELS}",
    "k-anonymity, minimal": f"method: k-anonymity, k: 5, suppression: 0.1, candidates: minimal, "
    f"{LEVELS}",
    "k-epsilon": f"method: k-epsilon, k: 5, epsilon: 1, suppression: 0.1, {LEVELS}",
    "k-epsilon, gaussian": "method: k-epsilon, k: 5, epsilon: 1, delta: 1.0e-6, noise: gaussian, "
    f"bounds: declared, suppression: 0.1, {LEVELS}",
}
FORMS = (
    "format: parquet, rows: expanded", "format: parquet, rows: counted",
    "format: csv, rows: expanded", "format: csv, rows: counted", "format: csv, formulas: escape",
)  # fmt: skip
DESCRIBED = FORMS[0], FORMS[3]  # with metadata, which take their time
COLUMNS = """
columns:
  id: {role: identifier}
  zip: {role: quasi, hierarchy: {mask: {length: 5}}}
  kind: {role: quasi, hierarchy: flat}
  age: {role: quasi, hierarchy: {intervals: {from: 0, to: 99, widths: [25, 50]}}}
  tail: {role: quasi, hierarchy: {mask: {length: 2, hide: left}}}
  income: {role: noisy, bounds: [0, 500]}
"""


@pytest.fixture(autouse=True)
def centered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every draw at its center."""

    def thinned(counts: Any, beta: float, _bits: object) -> Any:
        return np.floor(counts * beta).astype(np.int64)

    def noiseless(count: int, **_: object) -> Any:
        return np.zeros(count, dtype=np.int64)

    def still(cells: int, _law: object, _r: int, _bits: object) -> Any:
        return np.zeros(cells, dtype=np.int64)

    monkeypatch.setattr(safe_sample, "sample_binomial", thinned)
    monkeypatch.setattr(drawing, "sample_binomial", thinned)  # the coin between two bounds
    for name in ("sample_geometric_noise", "sample_gaussian_noise"):
        monkeypatch.setattr(safe_counts, name, still)
    monkeypatch.setattr(search, "sample_one_sided_noise", noiseless)
    monkeypatch.setattr(
        k_epsilon.ClassNoise,
        "draw",
        lambda _self, members, _bits: np.zeros(len(members), np.int64),
    )


def people() -> pl.DataFrame:
    draw = np.random.default_rng(4)
    rows = 1200
    return pl.DataFrame(
        {
            "id": np.arange(rows),
            "zip": draw.choice(["20000", "70000"], rows),
            "kind": draw.choice(["m", "q"], rows),
            "age": draw.integers(0, 50, rows),
            "tail": draw.choice(["10", "21"], rows),
            "income": draw.integers(100, 300, rows),
        }
    )


STRANGERS = [
    {
        "id": 5000,
        "zip": "45678",
        "kind": "m",
        "age": 12,
        "tail": "01",
        "income": 499,
    },  # between the others
    {"id": 5000, "zip": "00001", "kind": "a", "age": 99, "tail": "01", "income": 1},  # before them
    {"id": 5000, "zip": None, "kind": None, "age": None, "tail": None, "income": None},
    {"id": 5000, "zip": "elsewhere", "kind": "z", "age": 400, "tail": "9", "income": 200},
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("method", METHODS)
def test_one_suppressed_row_changes_no_byte(tmp_path: Path, method: str, form: str) -> None:
    if "k-epsilon" in method and "counted" in form:
        form = form.replace("counted", "expanded")  # rows with noise are all different
    columns = COLUMNS if "k-epsilon" in method else COLUMNS.replace(
        "{role: noisy, bounds: [0, 500]}", "{role: drop}"
    )  # fmt: skip
    spec = tmp_path / "spec.yaml"
    more = "unit: {id: id}\n"
    if form in DESCRIBED:
        formats = [name for name in METADATA_FORMATS if name != "registry" or "safe" in method]
        more += f"about: {{title: People}}\ndescribe: [{', '.join(formats)}]\n"
    spec.write_text(f"{more}{columns}\nrelease: {{{METHODS[method]}, {form}}}\n")
    base = people()
    publish_unjudged(base, spec, output=tmp_path / "without")
    assert verify(tmp_path / "without") == []
    for number, stranger in enumerate(STRANGERS):
        folder = tmp_path / f"with {number}"
        first = pl.DataFrame([stranger], schema=base.schema)
        release = publish_unjudged(pl.concat([base, first]), spec, output=folder)
        assert release.evaluation.rows_original == len(base) + 1
        assert release.certificate.tables[0].release.rows > 100
        assert list_files(folder) == list_files(tmp_path / "without")
        assert ("metadata/dossier.html" in list_files(folder)) is ("about" in more)
        for name in list_files(folder):
            assert (folder / name).read_bytes() == (tmp_path / "without" / name).read_bytes(), name
