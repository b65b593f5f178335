"""Data that lie are found, even where hash, seal and pages are made to fit."""

from __future__ import annotations

import hashlib
from pathlib import Path

import polars as pl
import pytest
from support.findings import list_verify_messages
from support.releases import publish_voters, recertify
from support.unjudged import publish_unjudged

from incrowd.engine.source import open_table
from incrowd.release.verify import read_certificate
from incrowd.spec.file import parse_spec

pytestmark = pytest.mark.usefixtures("settled_once")


@pytest.mark.parametrize(
    "text", ["zip,count\n33***,30\n33***,40\n", "zip,count\n33***,2_0\n", "zip,count\n33***,0\n"]
)
def test_counted_data_that_lie_are_found(tmp_path: Path, text: str) -> None:
    table = pl.DataFrame({"zip": ["33101"] * 400})
    file = parse_spec(
        "columns: {zip: {role: quasi, hierarchy: {mask: {length: 5}}}}\n"
        "release: {k: 14, beta: 0.25, epsilon: 1, rows: counted, format: csv, levels: {zip: 3}}"
    )
    publish_unjudged(table, file, output=tmp_path / "out")
    assert list_verify_messages(tmp_path / "out") == []
    (tmp_path / "out" / "data.csv").write_text(text)
    digest = hashlib.sha256(text.encode()).hexdigest()
    data = read_certificate(tmp_path / "out").table.release
    for rows in (70, 20, 0):
        update = {"sha256": digest, "rows": rows, "classes": 2 if rows == 70 else 1}
        recertify(tmp_path / "out", release=data.model_copy(update=update))
        assert list_verify_messages(tmp_path / "out") != []


def test_broken_parquet_neither_crashes_nor_deceives_it(
    voters: pl.DataFrame, tmp_path: Path
) -> None:
    """Even where hash and seal are made to fit: what passes says what the original said."""
    original = publish_voters(voters, tmp_path / "out").data
    path = tmp_path / "out" / "data.parquet"
    content, data = path.read_bytes(), read_certificate(tmp_path / "out").table.release
    for at in range(0, len(content), max(len(content) // 60, 1)):
        broken = content[:at] + bytes([content[at] ^ 0x55]) + content[at + 1 :]
        path.write_bytes(broken)
        digest = hashlib.sha256(broken).hexdigest()
        recertify(tmp_path / "out", release=data.model_copy(update={"sha256": digest}))
        if list_verify_messages(tmp_path / "out") == []:
            # a byte that carries no value, or a count moved between two valid classes
            frame = open_table(path).to_frame()
            assert len(frame) == len(original)
            assert frame.columns == original.columns
            assert all(set(frame[name]) <= set(original[name]) for name in frame.columns)


def test_an_open_domain_shows_values_in_one_writing_only(tmp_path: Path) -> None:
    table = pl.DataFrame({"x": ["a"] * 400 + ["b"] * 400})
    file = parse_spec(
        "columns: {x: {role: quasi, hierarchy: flat}}\n"
        "release: {k: 14, beta: 0.25, epsilon: 1, format: csv}"
    )
    publish_unjudged(table, file, output=tmp_path / "out")
    path = tmp_path / "out" / "data.csv"
    text = path.read_text().replace("b\n", "a \n")  # "a" again, as another class
    path.write_text(text)
    digest = hashlib.sha256(text.encode()).hexdigest()
    data = read_certificate(tmp_path / "out").table.release
    recertify(tmp_path / "out", release=data.model_copy(update={"sha256": digest}))
    assert any(
        "'a ' in column 'x' is not a label of level 0" in p
        for p in list_verify_messages(tmp_path / "out")
    )
