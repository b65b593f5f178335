"""Test data of tables that refer to each other by made-up links, which verify knows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from support.readers import load_certificate, reseal_certificate
from support.unjudged import publish_unjudged

import incrowd as ic
from incrowd.curate.check import find_refusals
from incrowd.errors import IncrowdError
from incrowd.privacy.randomness import SeededRandomness
from incrowd.release.certificate import hash_file
from incrowd.spec.file import SpecFile, parse_spec

BUDGET = "release: {method: synthetic, epsilon: 1, delta: 1.0e-6, tables: []FORMAT}"
PATIENTS = f"""
columns:
  id: {{role: key}}
  sex: {{role: quasi, hierarchy: {{flat: {{values: [f, m]}}}}}}
{BUDGET}
"""
VISITS = f"""
columns:
  visit: {{role: key}}
  patient: {{role: key, references: REFERENCE}}
  ward: {{role: quasi, hierarchy: {{flat: {{values: [a, b, c]}}}}}}
{BUDGET}
"""
REFERENCE = "{release: patients, column: id, children: {0: 0.5, 2: 0.5}}"
DRAW = np.random.default_rng(4)
PEOPLE = pl.DataFrame({"id": range(500), "sex": DRAW.choice(["f", "m"], 500)})
ROWS = pl.DataFrame({
    "visit": range(700), "patient": DRAW.integers(0, 500, 700),
    "ward": DRAW.choice(["a", "b", "c"], 700),
})  # fmt: skip


def visits(folder: Path, reference: str = REFERENCE, form: str = "") -> SpecFile:
    text = VISITS.replace("REFERENCE", reference).replace("FORMAT", form)
    return parse_spec(text, path=folder / "visits.yaml")


def publish_people(folder: Path, **more: Any) -> Any:
    spec = parse_spec(PATIENTS.replace("FORMAT", ""), path=folder / "patients.yaml")
    return publish_unjudged(PEOPLE, spec, output=folder / "patients", **more)


@pytest.mark.parametrize("form", ["", ", format: csv", ", format: csv, formulas: escape"])
def test_references_hold_and_verify(tmp_path: Path, form: str) -> None:
    parent = publish_people(tmp_path)
    child = publish_unjudged(ROWS, visits(tmp_path, form=form), output=tmp_path / "visits")
    assert ic.verify(tmp_path / "visits") == []
    joined = child.data.join(parent.data, left_on="patient", right_on="id", how="inner")
    assert len(joined) == len(child.data) > 0
    counts = np.bincount(child.data["patient"].to_numpy(), minlength=len(parent.data) + 1)[1:]
    half = len(parent.data) // 2
    assert abs((counts == 0).sum() - half) <= 1
    part = child.certificate.synthetic
    assert part is not None
    assert part.references is not None
    key = part.references["patient"]
    assert (key.seal, key.rows) == (parent.certificate.seal, len(parent.data))
    assert part.keys == ["visit"]
    (sentence,) = (x for x in child.certificate.guarantee.statement if x.key == "references")
    assert "The links between the two tables are made up by a public rule" in sentence.text
    readme = (tmp_path / "visits" / "README.md").read_text()
    assert "- **References.** `patient` refers to the keys `id`" in readme


def test_other_references_are_noticed(tmp_path: Path) -> None:
    """A link of the input, or any other, would be a message that nobody accounts for."""
    publish_people(tmp_path)
    publish_unjudged(ROWS, visits(tmp_path, form=", format: csv"), output=tmp_path / "visits")
    path = tmp_path / "visits" / "data.csv"
    frame = pl.read_csv(path)
    swapped = frame["patient"].to_list()
    at = next(at for at in range(1, len(swapped)) if swapped[at] != swapped[0])
    swapped[0], swapped[at] = swapped[at], swapped[0]
    frame.with_columns(patient=pl.Series(swapped)).write_csv(path)
    certificate = load_certificate(tmp_path / "visits")
    assert certificate.release is not None
    file = certificate.release.model_copy(update={"sha256": hash_file(path)})
    reseal_certificate(tmp_path / "visits", certificate.model_copy(update={"release": file}))
    assert [finding.code for finding in ic.verify(tmp_path / "visits")] == ["REFERENCES_DIFFER"]


def test_references_do_not_depend_on_the_links_of_the_input(tmp_path: Path) -> None:
    publish_people(tmp_path)
    data = []
    for name, links in (("a", ROWS["patient"]), ("b", pl.Series(np.zeros(700, dtype=np.int64)))):
        release = publish_unjudged(
            ROWS.with_columns(patient=links), visits(tmp_path),
            output=tmp_path / name, bits=SeededRandomness(3),
        )  # fmt: skip
        data.append(release.data)
    assert data[0].equals(data[1])


def test_a_key_without_references_is_as_it_was(tmp_path: Path) -> None:
    release = publish_people(tmp_path)
    assert release.certificate.synthetic.references is None
    assert b"references" not in (tmp_path / "patients" / "certificate.json").read_bytes()


def test_one_row_of_each_person(tmp_path: Path) -> None:
    publish_people(tmp_path)
    text = VISITS.replace("REFERENCE", REFERENCE).replace("FORMAT", "")
    spec = parse_spec(f"{text}unit: {{id: patient}}\n", path=tmp_path / "visits.yaml")
    release = publish_unjudged(ROWS, spec, output=tmp_path / "visits")
    assert release.certificate.guarantee.unit == "one person"
    assert ic.verify(tmp_path / "visits") == []


def test_what_cannot_be_referred_to_is_refused(tmp_path: Path) -> None:
    with pytest.raises(IncrowdError, match="which cannot be read. Publish that table first"):
        publish_unjudged(ROWS, visits(tmp_path), output=tmp_path / "visits")
    assert [finding.code for finding in find_refusals(visits(tmp_path))] == ["RELEASE_REFUSED"]
    publish_people(tmp_path)
    other = REFERENCE.replace("column: id", "column: sex")
    with pytest.raises(IncrowdError, match=r"no made-up key 'sex'. Its made-up keys: id"):
        publish_unjudged(ROWS, visits(tmp_path, other), output=tmp_path / "visits")
    with (tmp_path / "patients" / "data.parquet").open("ab") as file:
        file.write(b"more")
    with pytest.raises(IncrowdError, match="does not verify. Run `incrowd verify"):
        publish_unjudged(ROWS, visits(tmp_path), output=tmp_path / "visits")
    assert not (tmp_path / "visits").exists()


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        ("{release: p, column: id, children: {1: 0.5}}", "add up to 0.5. Make it 1"),
        ("{release: p, column: id, children: {0: 1}}", "gives no row any"),
        ("{release: p, column: id, children: {-1: 1}}", "children"),
        ("{release: p}", "`column` is missing"),
    ],
)
def test_bad_declarations_are_refused(tmp_path: Path, reference: str, words: str) -> None:
    with pytest.raises(IncrowdError, match=words):
        visits(tmp_path, reference)


def test_only_made_up_keys_refer() -> None:
    with pytest.raises(IncrowdError, match="`references` is for role `key`, not `drop`"):
        parse_spec("columns: {a: {role: drop, references: {release: p, column: id}}}")
