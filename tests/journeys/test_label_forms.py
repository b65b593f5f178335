"""A release whose labels have another form than its certificate says does not verify."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import polars as pl
import pytest
from support import readers
from support.findings import list_verify_messages
from support.readers import load_certificate, reseal_certificate
from support.unjudged import publish_unjudged

from incrowd.codes.label_form import Form


@pytest.mark.parametrize("method", ["ola", "mondrian", "search", "duplicate"])
@pytest.mark.parametrize("writing", ["parquet", "csv"])
def test_another_form_is_refused(
    tmp_path: Path, settled_once: None, method: str, writing: str
) -> None:
    readers.publish_reader_table(tmp_path / "out", method, writing)
    certificate = load_certificate(tmp_path / "out")
    assert list_verify_messages(tmp_path / "out") == []
    assert certificate.scheme is not None
    for name, column in certificate.scheme.items():
        for form in get_args(Form):
            if form == column.labels:
                continue
            changed = {**certificate.scheme, name: column.model_copy(update={"labels": form})}
            reseal_certificate(tmp_path / "out", certificate.model_copy(update={"scheme": changed}))
            problems = list_verify_messages(tmp_path / "out")
            assert len(problems) == 1
            assert f"'{name}'" in problems[0]
    reseal_certificate(tmp_path / "out", certificate)
    assert list_verify_messages(tmp_path / "out") == []


@pytest.mark.parametrize("algorithm", ["mondrian", "cluster"])
@pytest.mark.parametrize(
    "rule",
    [
        {"intervals": {"from": 0, "to": 14, "step": 5, "open": "both"}},
        {"intervals": {"from": -6, "to": 14, "step": 5, "open": "both"}},
        {"intervals": {"from": 0, "to": 14, "open": "both"}},
        {"intervals": {"from": 0, "to": 14, "step": 0.5, "open": "both"}},
    ],
)
def test_cuts_of_intervals_with_open_ends_verify(
    tmp_path: Path, algorithm: str, rule: dict[str, Any]
) -> None:
    table = pl.DataFrame({"x": [-20, 1, 2, 7, 8, 13, 14, 99] * 2})
    release = {"method": "k-anonymity", "k": 4, "algorithm": algorithm}
    columns = {"x": {"role": "quasi", "hierarchy": rule}}
    publish_unjudged(table, {"columns": columns, "release": release}, output=tmp_path / "out")
    assert list_verify_messages(tmp_path / "out") == []


@pytest.mark.parametrize(
    "values",
    [
        ["<18", "18-29", "30-64", ">64"],
        ["0-17", "18-29", "30-64", ">64"],
        ["60-79", "40-59", "20-39", "0-19"],
        [">64", "18-64", "0-17"],
    ],
)
def test_cuts_of_brackets_verify(tmp_path: Path, values: list[str]) -> None:
    """Brackets as tables have them: with open ends, or from the oldest to the youngest."""
    table = pl.DataFrame({"x": values * 2})
    release = {"method": "k-anonymity", "k": 4, "algorithm": "mondrian"}
    columns = {"x": {"role": "quasi", "hierarchy": {"order": {"values": values}}}}
    publish_unjudged(table, {"columns": columns, "release": release}, output=tmp_path / "out")
    assert list_verify_messages(tmp_path / "out") == []
