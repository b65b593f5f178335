"""What check and publish say of weak promises, and that what check calls wrong is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from pydantic import TypeAdapter
from support.cli import run_command
from support.findings import list_codes

from incrowd.curate.check import check
from incrowd.engine.source import open_table
from incrowd.errors import IncrowdError
from incrowd.methods.exposure import find_weak_parameters
from incrowd.publication import publish
from incrowd.release.ledger import Ledger
from incrowd.release.verify import verify
from incrowd.spec.file import load_spec, read_spec_file
from incrowd.spec.release import ReleaseSpec

FLAT = {"role": "quasi", "hierarchy": {"flat": {"values": ["a", "b"]}}}


@pytest.mark.parametrize(
    ("release", "expected"),
    [
        ({"epsilon": 100, "delta": 1e-6}, ["EPSILON_TOO_LARGE"]),
        ({"epsilon": 1, "delta": 0.5}, ["DELTA_TOO_LARGE"]),
        ({"k": 1, "beta": 0.1, "epsilon": 1}, ["K_IS_ONE"]),
        ({"method": "k-anonymity", "k": 1}, ["K_IS_ONE"]),
        ({"method": "k-epsilon", "k": 5, "epsilon": 100}, ["EPSILON_TOO_LARGE"]),
        ({"epsilon": 10, "delta": 1e-4}, []),
        ({"method": "k-epsilon", "k": 2, "epsilon": 16}, []),
        ({"method": "k-anonymity", "k": 2}, []),
    ],
)
def test_weak_promises_are_called_so(
    tmp_path: Path, release: dict[str, Any], expected: list[str]
) -> None:
    weak_parameters = find_weak_parameters(TypeAdapter(ReleaseSpec).validate_python(release))
    assert list_codes(weak_parameters) == expected
    if release.get("method") == "k-epsilon":
        return
    table = pl.DataFrame({"x": ["a", "b"] * 400})
    file = load_spec({"columns": {"x": FLAT}, "release": release})
    assert set(expected) <= set(list_codes(check(open_table(table), file)))
    assert set(expected) <= set(list_codes(publish(table, file, output=tmp_path / "out").findings))


def test_a_weak_promise_that_is_settled_is_called_so_too(tmp_path: Path) -> None:
    """Nobody wrote delta = 0.73 into the spec; it follows from k and beta."""
    table = pl.DataFrame({"x": ["a", "b"] * 400})
    release = {"k": 3, "beta": 0.9, "epsilon": 1.0, "levels": {"x": 0}}
    publication = publish(
        table, {"columns": {"x": FLAT}, "release": release}, output=tmp_path / "out"
    )
    assert "DELTA_TOO_LARGE" in list_codes(publication.findings)
    table.write_parquet(tmp_path / "t.parquet")
    spec = {"table": "t.parquet", "columns": {"x": FLAT}, "release": release}
    (tmp_path / "spec.json").write_text(json.dumps(spec))
    assert "δ = 0.7" in run_command("check", str(tmp_path / "spec.json")).stdout


# What check calls wrong is refused ------------------------------------------------------------

TABLE = pl.DataFrame({"x": ["a", "b"] * 400, "n": [1, 2] * 400, "id": [*range(799), None]})
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"x": FLAT, "n": {"role": "drop"}}, "'id'"),
    ({"x": FLAT, "n": {"role": "drop"}, "id": {"role": "drop"}, "y": FLAT}, "'y'"),
    (
        {"x": {"role": "quasi", "hierarchy": {"flat": {"values": ["A", "B"]}}}},
        "Column 'x': no value is in the declared domain",
    ),
    (
        {"n": {"role": "quasi", "hierarchy": {"intervals": {"from": 50, "to": 60}}}},
        "Column 'n': no value is in the declared domain",
    ),
    ({"x": {"role": "quasi", "hierarchy": {"csv": "none.csv"}}}, "none.csv"),
    ({"unit": {"id": "id"}}, "1 row has no id"),
]


@pytest.mark.parametrize(("change", "words"), WRONG)
@pytest.mark.parametrize("scheme", ["fixed", "search"])
def test_what_check_calls_wrong_is_refused_and_not_booked(
    tmp_path: Path, change: dict[str, Any], words: str, scheme: str
) -> None:
    unit = change.pop("unit", None) if "unit" in change else None
    drop = {"role": "drop"}
    columns = {"x": FLAT, "n": drop, "id": drop, **change}
    if words == "'id'":
        columns = change
    if unit:
        columns["id"] = {"role": "identifier"}
    spec: dict[str, Any] = {
        "table": "t.parquet", "columns": columns,
        "release": {"epsilon": 1, "delta": 1e-6, "scheme": scheme},
    }  # fmt: skip
    if unit:
        spec["unit"] = unit
        change["unit"] = unit
    TABLE.write_parquet(tmp_path / "t.parquet")
    (tmp_path / "spec.json").write_text(json.dumps(spec))
    file = read_spec_file(tmp_path / "spec.json")
    assert any(finding.severity == "error" for finding in check(None, file))
    book = Ledger(tmp_path / "ledger")
    book.set_budget(epsilon=2, delta=1e-6)
    with pytest.raises(IncrowdError) as refused:
        publish(None, file, output=tmp_path / "out", ledger=book)
    assert words in str(refused.value)
    assert book.spends() == []
    assert not (tmp_path / "out").exists()


def test_what_publishing_does_not_mind_is_not_called_wrong(tmp_path: Path) -> None:
    """A dropped column may be missing; what is kept as it is needs no fitting hierarchy."""
    table = pl.DataFrame({"x": ["a", "b"] * 400, "s": ["p", "q"] * 400})
    odd = {"role": "sensitive", "hierarchy": {"flat": {"values": ["P"]}}}
    columns = {"x": FLAT, "gone": {"role": "drop"}, "s": odd}
    file = load_spec({"columns": columns, "release": {"method": "k-anonymity", "k": 5}})
    findings = check(open_table(table), file)
    assert [finding for finding in findings if finding.severity == "error"] == []
    assert {finding.column for finding in findings if finding.severity == "warning"} == {"s"}
    publish(table, file, output=tmp_path / "out")
    assert verify(tmp_path / "out") == []
