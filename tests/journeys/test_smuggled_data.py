"""What a released file may not hold besides its rows, though hash and seal are made to fit."""

from __future__ import annotations

import inspect
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
from support.findings import list_verify_messages
from support.parquet_footer import Structure, change_footer, find_field
from support.pinned_randomness import PinnedRandomness
from support.slice_tables import change_certificate, load_certificate

from incrowd.publication import publish
from incrowd.release.certificate import hash_file
from incrowd.spec.file import parse_spec

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
    publish(
        people(), parse_spec(SPEC % "parquet"), output=tmp_path / "out", bits=PinnedRandomness(1)
    )
    assert list_verify_messages(tmp_path / "out") == []
    return tmp_path / "out"


@pytest.fixture
def text_folder(tmp_path: Path) -> Path:
    publish(people(), parse_spec(SPEC % "csv"), output=tmp_path / "text", bits=PinnedRandomness(1))
    assert list_verify_messages(tmp_path / "text") == []
    return tmp_path / "text"


def resealed(folder: Path, name: str = "data.parquet", **changes: Any) -> list[str]:
    """The problems of a release whose file was replaced by somebody who knows the code."""
    data = load_certificate(folder).table.release
    update = {"sha256": hash_file(folder / name), **changes}
    change_certificate(folder, release=data.model_copy(update=update))
    return list_verify_messages(folder)


def rewritten(folder: Path, table: pa.Table | None = None, **options: Any) -> list[str]:
    path = folder / "data.parquet"
    pq.write_table(pq.read_table(path) if table is None else table, path, **{**PLAIN, **options})
    return resealed(folder)


def can_write(option: str) -> pytest.MarkDecorator:
    """For files that only newer versions of PyArrow write; all that are allowed read them."""
    missing = option not in inspect.signature(pq.write_table).parameters
    return pytest.mark.skipif(missing, reason=f"this PyArrow cannot write with '{option}'")


def test_a_plain_rewrite_holds(folder: Path) -> None:
    """The checks refuse what is hidden, not whoever else writes the same rows."""
    assert rewritten(folder) == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"write_statistics": True}, "holds statistics"),
        ({"store_schema": True}, "holds key-value metadata"),
        ({"write_page_index": True}, "an index of pages"),
        pytest.param(
            {"bloom_filter_options": {"a": True}},
            "Bloom filter",
            marks=can_write("bloom_filter_options"),
        ),
        ({"compression": "snappy"}, "not written as a release writes it"),
        ({"sorting_columns": [pq.SortingColumn(0)]}, "says how its rows are sorted"),
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


def test_a_value_that_no_row_has(folder: Path) -> None:
    table = pq.read_table(folder / "data.parquet")
    codes = table["a"].combine_chunks().dictionary_encode()
    more = pa.DictionaryArray.from_arrays(
        codes.indices, pa.array([*codes.dictionary.to_pylist(), "ann,34,x"])
    )
    (problem,) = rewritten(folder, pa.table({"a": more, "b": table["b"]}))
    assert "stores 'ann,34,x' in column 'a', but no row has it" in problem
    twice = pa.DictionaryArray.from_arrays(
        codes.indices, pa.array([*codes.dictionary.to_pylist(), codes.dictionary[0].as_py()])
    )
    assert rewritten(folder, pa.table({"a": twice, "b": table["b"]})) != []


def test_the_order_of_the_rows(folder: Path, text_folder: Path) -> None:
    table = pl.read_parquet(folder / "data.parquet")
    shaken = table.sample(fraction=1.0, shuffle=True, seed=1).to_arrow()
    plain = shaken.cast(pa.schema([(name, pa.string()) for name in table.columns]))
    assert rewritten(folder, plain) == ["The rows are not sorted by their values."]
    path = text_folder / "data.csv"
    head, *rows = path.read_text().splitlines(keepends=True)
    path.write_text("".join([head, *rows[::-1]]))
    assert resealed(text_folder, "data.csv") == ["The rows are not sorted by their values."]


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
    assert any("is not in the form that a release has" in problem for problem in problems)


def test_a_small_file_that_claims_to_be_large(folder: Path) -> None:
    """Four kilobytes that unfold to hundreds of megabytes are refused before they do."""
    long = pa.array(["x" * 200_000_000])
    pq.write_table(pa.table({"a": long, "b": ["0-9"]}), folder / "data.parquet", **PLAIN)
    assert (folder / "data.parquet").stat().st_size < 40_000
    (problem,) = resealed(folder)
    assert "needs far more memory than its size suggests" in problem

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))

    code = (
        "import resource, sys; from incrowd.release.verify import verify; "
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss; verify(sys.argv[1]); "
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder)], capture_output=True, text=True, preexec_fn=limit
    )
    assert int(done.stdout) < 100_000, done.stderr  # kilobytes


def test_a_file_that_grows_far_beyond_its_size_is_refused(folder: Path) -> None:
    long = pa.array(["x" * 200_000_000])
    pq.write_table(pa.table({"a": long, "b": ["0-9"]}), folder / "data.parquet", **PLAIN)
    data = load_certificate(folder).table.release
    release = data.model_copy(update={"sha256": hash_file(folder / "data.parquet")})
    change_certificate(folder, release=release)
    (problem,) = list_verify_messages(folder)
    assert "needs far more memory than its size suggests" in problem


@can_write("max_rows_per_page")
def test_more_rows_than_a_file_can_be_trusted_with(folder: Path) -> None:
    rows = 1 << 28
    codes = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int8)), pa.array(["x"]))
    pq.write_table(
        pa.table({"a": codes}), folder / "data.parquet",
        row_group_size=rows, max_rows_per_page=rows, **PLAIN,
    )  # fmt: skip
    assert (folder / "data.parquet").stat().st_size < rows >> 16
    (problem,) = resealed(folder)
    assert "states more rows" in problem


# Fields that a reader passes over -----------------------------------------------------

RAW = b"ann,34,x;" * 8
ONE = "columns: {a: {role: quasi, hierarchy: {flat: {values: [x, y, z]}}}}\nrelease: {k: 20, %s}"


@pytest.fixture
def narrow(tmp_path: Path) -> Path:
    file = parse_spec(ONE % "beta: 0.5, epsilon: 1, levels: {a: 0}")
    table = people().select("a")
    publish(table, file, output=tmp_path / "narrow", bits=PinnedRandomness(1))
    assert repacked(tmp_path / "narrow", lambda _: None) == []
    return tmp_path / "narrow"


def repacked(folder: Path, change: Callable[[Structure], object]) -> list[str]:
    path = folder / "data.parquet"
    path.write_bytes(change_footer(path.read_bytes(), change))
    return resealed(folder)


def column_of(footer: Structure) -> Any:
    return find_field(footer, 2)[2][1][1]


def chunk_of(footer: Structure) -> Any:
    return find_field(find_field(find_field(footer, 4)[2][1][0], 1)[2][1][0], 3)[2]


FOOTERS: dict[str, Callable[[Structure], object]] = {
    "in the type of a column": lambda f: find_field(column_of(f), 10)[2][0][2].append([9, 8, RAW]),
    "beside the type": lambda f: find_field(column_of(f), 10)[2].append([15, 8, RAW]),
    "as the length of a text": lambda f: column_of(f).insert(1, [2, 5, 1971 << 1]),
    "as encodings": lambda f: find_field(chunk_of(f), 2).__setitem__(2, (5, list(RAW))),
    "as a field of its own": lambda f: f.append([12, 8, RAW]),
    "as metadata of a column": lambda f: chunk_of(f).insert(
        7, [8, 9, (12, [[[1, 8, b"rows"], [2, 8, RAW]]])]
    ),
    "as a size": lambda f: find_field(find_field(f, 4)[2][1][0], 2).__setitem__(2, 1971 << 1),
    "as text for a number": lambda f: chunk_of(f).__setitem__(4, [5, 8, RAW]),
}


@pytest.mark.parametrize("where", FOOTERS)
def test_raw_rows_in_the_footer(narrow: Path, where: str) -> None:
    assert repacked(narrow, FOOTERS[where]) != []


# Cells and files that are taken too loosely -----------------------------------------------------


def test_numbers_that_are_none_carry_nothing(tmp_path: Path) -> None:
    """A float that is no number has 51 free bits, and a zero has a sign."""
    file = parse_spec(
        "columns: {a: {role: quasi, hierarchy: {flat: {values: [x, y, z]}}}, "
        "v: {role: noisy, precision: 0.5}}\nrelease: {method: k-epsilon, k: 5, epsilon: 1}"
    )
    table = people().select("a", v=pl.col("b") / 2)
    publish(table, file, output=tmp_path / "out", bits=PinnedRandomness(1))
    assert list_verify_messages(tmp_path / "out") == []
    data = pq.read_table(tmp_path / "out" / "data.parquet")
    for odd in (0x7FF8_616E_6E2C_3334, 0x8000_0000_0000_0000):
        values = data["v"].to_numpy().copy()
        values[-1:].view(np.int64)[:] = np.uint64(odd).astype(np.int64)
        changed = data.set_column(1, "v", pa.array(values))
        pq.write_table(
            changed, tmp_path / "out" / "data.parquet", use_dictionary=["a"], **PLAIN
        )  # fmt: skip
        assert any("NaN or a negative zero" in problem for problem in resealed(tmp_path / "out"))


def test_starred_rows_show_nothing_else(tmp_path: Path) -> None:
    file = parse_spec(
        "columns: {a: {role: quasi, hierarchy: {flat: {values: [x, y, z]}}}, "
        "s: {role: sensitive}}\nrelease: {method: k-anonymity, k: 5, suppressed: starred, "
        "suppression: 0.1, format: csv, levels: {a: 0}}"
    )
    table = people().select(a=pl.when(pl.int_range(pl.len()) >= 3).then("a"), s=pl.lit("p"))
    publish(table, file, output=tmp_path / "out", bits=PinnedRandomness(1))
    assert list_verify_messages(tmp_path / "out") == []
    path = tmp_path / "out" / "data.csv"
    assert "*,\n" in path.read_text()
    path.write_text(path.read_text().replace("*,\n", "*,Ann\n"))
    assert any("have values in column 's'" in p for p in resealed(tmp_path / "out", "data.csv"))


@pytest.mark.parametrize("label", ["0  to 9", "[0, 9]", "{0,1,2,3,4,5,6,7,8,9}", " 0-9", "0..9"])
def test_a_label_is_written_in_one_way(tmp_path: Path, label: str) -> None:
    file = parse_spec(
        "columns: {b: {role: quasi, hierarchy: {intervals: {from: 0, to: 19}}}}\n"
        "release: {method: k-anonymity, k: 300, algorithm: mondrian, format: csv}"
    )
    publish(people().select("b"), file, output=tmp_path / "out", bits=PinnedRandomness(1))
    assert list_verify_messages(tmp_path / "out") == []
    path = tmp_path / "out" / "data.csv"
    line = path.read_text().splitlines()[1]
    first, last = line.split("-")
    label = label.replace("0", first, 1).replace("9", last) if "{" not in label else label
    quoted = f'"{label}"' if "," in label else label
    path.write_text(path.read_text().replace(f"{line}\n", f"{quoted}\n"))
    problems = resealed(tmp_path / "out", "data.csv")
    assert any("is not a label of its hierarchy" in problem for problem in problems)


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text + "\n",
        lambda text: text.replace("x;", '"x";'),
        lambda text: "\ufeff" + text.replace("\n", "\r\n"),
    ],
)
def test_a_scheme_is_written_in_one_way(folder: Path, change: Callable[[str], str]) -> None:
    path = folder / "scheme" / "a.csv"
    path.write_bytes(change(path.read_text()).encode())
    scheme = load_certificate(folder).table.scheme
    column = scheme["a"].model_copy(update={"sha256": hash_file(path)})
    change_certificate(folder, scheme={**scheme, "a": column})
    assert any(
        "the scheme of 'a' is not in the form" in problem
        for problem in list_verify_messages(folder)
    )


def test_a_certificate_with_very_many_choices_is_refused_at_once(folder: Path) -> None:
    parts = [{"kind": "safe release", "k": 9_000_000 + at, "beta": 0.5} for at in range(3000)]
    events: list[dict[str, Any]] = [
        {"kind": "selection", "epsilon": 0.05}, {"kind": "one of", "events": parts},
    ]  # fmt: skip
    change_certificate(folder, events=events)
    assert list_verify_messages(folder) == [
        "The events list more private choices than any release makes."
    ]


@can_write("max_rows_per_page")
def test_a_column_of_nulls_cannot_claim_gigabytes(folder: Path) -> None:
    rows = 40_000_000
    table = pa.table({"a": pa.nulls(rows, pa.float64()), "b": pa.nulls(rows, pa.float64())})
    pq.write_table(
        table, folder / "data.parquet", row_group_size=rows, max_rows_per_page=rows, **PLAIN
    )
    (problem,) = resealed(folder)
    assert "states more rows" in problem or "far more memory" in problem
