"""What a released file may not hold besides its rows, though hash and seal are made to fit."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet as pq
from seam import PinnedRandomness
from sliced import certificate_of, recertified

from incrowd.certificate import sha256_of
from incrowd.release import publish
from incrowd.specfile import parse
from incrowd.verifying import verify

SPEC = """
columns:
  a: {role: quasi, hierarchy: {flat: {values: [x, y, z]}}}
  b: {role: quasi, hierarchy: {intervals: {from: 0, to: 19, widths: [5, 10]}}}
release: {k: 20, beta: 0.5, epsilon: 1, levels: {a: 0, b: 2}, format: %s}
"""
PLAIN: dict[str, Any] = {
    "compression": "zstd", "store_schema": False, "write_statistics": False,
}  # fmt: skip


def people() -> pl.DataFrame:
    draw = np.random.default_rng(2)
    return pl.DataFrame({"a": draw.choice(["x", "y", "z"], 900), "b": draw.integers(0, 20, 900)})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    publish(people(), parse(SPEC % "parquet"), output=tmp_path / "out", bits=PinnedRandomness(1))
    assert verify(tmp_path / "out") == []
    return tmp_path / "out"


@pytest.fixture
def text_folder(tmp_path: Path) -> Path:
    publish(people(), parse(SPEC % "csv"), output=tmp_path / "text", bits=PinnedRandomness(1))
    assert verify(tmp_path / "text") == []
    return tmp_path / "text"


def resealed(folder: Path, name: str = "data.parquet", **changes: Any) -> list[str]:
    """The problems of a release whose file was replaced by somebody who knows the code."""
    data = certificate_of(folder).table.release
    update = {"sha256": sha256_of(folder / name), **changes}
    recertified(folder, release=data.model_copy(update=update))
    return verify(folder)


def rewritten(folder: Path, table: pa.Table | None = None, **options: Any) -> list[str]:
    path = folder / "data.parquet"
    pq.write_table(pq.read_table(path) if table is None else table, path, **{**PLAIN, **options})
    return resealed(folder)


def test_a_plain_rewrite_holds(folder: Path) -> None:
    """The checks refuse what is hidden, not whoever else writes the same rows."""
    assert rewritten(folder) == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"write_statistics": True}, "holds statistics"),
        ({"store_schema": True}, "holds key-value metadata"),
        ({"write_page_index": True}, "an offset index"),
        ({"bloom_filter_options": {"a": True}}, "Bloom filter"),
        ({"compression": "snappy"}, "not written as a release writes it"),
        ({"write_page_checksum": True}, "field 4 of a page"),
        ({"data_page_version": "2.0"}, "which no release has"),
        ({"sorting_columns": [pq.SortingColumn(0)]}, "field 4 of a group"),
    ],
)
def test_nothing_besides_the_rows(folder: Path, options: dict[str, Any], words: str) -> None:
    (problem,) = rewritten(folder, **options)
    assert words in problem


def test_raw_rows_in_the_metadata(folder: Path) -> None:
    table = pq.read_table(folder / "data.parquet")
    with pq.ParquetWriter(folder / "data.parquet", table.schema, **PLAIN) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({"rows": "ann,34,x"})
    (problem,) = resealed(folder)
    assert "holds key-value metadata, which no release has" in problem


def inserted(content: bytes, at: int, more: bytes) -> bytes:
    return content[:at] + more + content[at:]


def footer_of(content: bytes) -> int:
    return len(content) - 8 - int.from_bytes(content[-8:-4], "little")


SKIPPED = b"\x50\x2a\x4d\x18\x08\x00\x00\x00ann,34,x"  # a frame that decompression passes over


@pytest.mark.parametrize(
    "hide",
    [
        lambda content: inserted(content, 4, b"ann,34,x"),
        lambda content: inserted(content, footer_of(content), b"ann,34,x"),
        lambda content: content.replace(b"parquet-cpp-arrow version", b"parquet-cpp-ann,34,x vers"),
        lambda content: content + b"ann,34,x" + content[-8:],
        lambda content: (
            content[:-8]
            + b"ann,34,x"
            + (int.from_bytes(content[-8:-4], "little") + 8).to_bytes(4, "little")
            + content[-4:]
        ),
    ],
)
def test_raw_rows_between_the_bytes(folder: Path, hide: Callable[[bytes], bytes]) -> None:
    path = folder / "data.parquet"
    path.write_bytes(hide(path.read_bytes()))
    assert b"ann,34,x" in path.read_bytes()
    assert resealed(folder) != []


def test_raw_rows_behind_a_compressed_page(folder: Path) -> None:
    """The page is as long as its header says, and a reader sees the same rows."""
    from incrowd.parquet_bytes import _FoundError, _frame

    content = (folder / "data.parquet").read_bytes()
    start = content.index(b"\x28\xb5\x2f\xfd")
    end = start + 1
    while True:
        try:
            _frame(content, start, end)
            break
        except _FoundError:
            end += 1
    with pytest.raises(_FoundError, match="after a compressed page"):
        _frame(content[:end] + SKIPPED, start, end + len(SKIPPED))


def test_a_value_that_no_row_has(folder: Path) -> None:
    table = pq.read_table(folder / "data.parquet")
    codes = table["a"].combine_chunks().dictionary_encode()
    more = pa.DictionaryArray.from_arrays(
        codes.indices, pa.array([*codes.dictionary.to_pylist(), "ann,34,x"])
    )
    (problem,) = rewritten(folder, pa.table({"a": more, "b": table["b"]}))
    assert "holds 'ann,34,x' in 'a', which no row has" in problem
    twice = pa.DictionaryArray.from_arrays(
        codes.indices, pa.array([*codes.dictionary.to_pylist(), codes.dictionary[0].as_py()])
    )
    assert rewritten(folder, pa.table({"a": twice, "b": table["b"]})) != []


def test_the_order_of_the_rows(folder: Path, text_folder: Path) -> None:
    table = pl.read_parquet(folder / "data.parquet")
    shaken = table.sample(fraction=1.0, shuffle=True, seed=1).to_arrow()
    plain = shaken.cast(pa.schema([(name, pa.string()) for name in table.columns]))
    assert rewritten(folder, plain) == ["The rows are not in the order of what they show."]
    path = text_folder / "data.csv"
    head, *rows = path.read_text().splitlines(keepends=True)
    path.write_text("".join([head, *rows[::-1]]))
    assert resealed(text_folder, "data.csv") == ["The rows are not in the order of what they show."]


@pytest.mark.parametrize(
    "hide",
    [
        lambda text: text.replace("x,", '"x",', 1),
        lambda text: text + "\n",
        lambda text: text.replace("\n", "\r\n"),
        lambda text: "\ufeff" + text,
        lambda text: text[:-1],
    ],
)
def test_text_in_another_way(text_folder: Path, hide: Callable[[str], str]) -> None:
    path = text_folder / "data.csv"
    path.write_bytes(hide(path.read_text()).encode())
    problems = resealed(text_folder, "data.csv")
    assert any("is not written as a release is" in problem for problem in problems)


def test_a_small_file_that_claims_to_be_large(folder: Path) -> None:
    """Four kilobytes that unfold to hundreds of megabytes are refused before they do."""
    long = pa.array(["x" * 200_000_000])
    pq.write_table(pa.table({"a": long, "b": ["0-9"]}), folder / "data.parquet", **PLAIN)
    assert (folder / "data.parquet").stat().st_size < 40_000
    (problem,) = resealed(folder)
    assert "would take far more memory than its size tells" in problem

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))

    code = (
        "import resource, sys; from incrowd.verifying import verify; "
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss; verify(sys.argv[1]); "
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder)], capture_output=True, text=True, preexec_fn=limit
    )
    assert int(done.stdout) < 100_000, done.stderr  # kilobytes


def test_an_old_format_does_not_let_a_large_one_pass(folder: Path) -> None:
    long = pa.array(["x" * 200_000_000])
    pq.write_table(pa.table({"a": long, "b": ["0-9"]}), folder / "data.parquet", **PLAIN)
    data = certificate_of(folder).table.release
    release = data.model_copy(update={"sha256": sha256_of(folder / "data.parquet")})
    old = certificate_of(folder).model_copy(update={"format": None, "release": release})
    (folder / "certificate.json").write_bytes(old.stated().sealed().canonical())
    (problem,) = verify(folder)
    assert "would take far more memory than its size tells" in problem


def test_more_rows_than_a_file_can_be_trusted_with(folder: Path) -> None:
    rows = 1 << 28
    codes = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int8)), pa.array(["x"]))
    pq.write_table(
        pa.table({"a": codes}), folder / "data.parquet",
        row_group_size=rows, max_rows_per_page=rows, **PLAIN,
    )  # fmt: skip
    assert (folder / "data.parquet").stat().st_size < rows >> 16
    (problem,) = resealed(folder)
    assert "claims more rows" in problem
