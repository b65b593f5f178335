"""What tests of readers share: a table with labels that are easily spoilt, and the page beside it.

The page is read by a parser of Markdown, as whoever shows it would.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from markdown_it import MarkdownIt
from markdown_it.token import Token
from support.unjudged import publish_unjudged

from incrowd.publication import Release
from incrowd.release.certificate import Certificate
from incrowd.release.pages import make_pages
from incrowd.spec.file import parse_spec

ROWS = 3000
COLUMNS = """
columns:
  name: {role: identifier}
  code: {role: quasi, hierarchy: {flat: {values: ["NA", "01234", "null", "a b"]}}}
  n: {role: quasi, hierarchy: {flat: {values: [1, 2, 3, 4]}}}
  half: {role: quasi, hierarchy: {order: {values: [0.5, 1, 1.5], runs: [2]}}}
  age: {role: quasi, hierarchy: {intervals: {from: -10, to: 29, widths: [5, 20]}}}
  zip: {role: quasi, hierarchy: {mask: {length: 5}}}
  s: {role: sensitive, hierarchy: {flat: {values: ["=1+1", "@b", "c"]}}}
  w: {role: %s}
"""
NAMES = ("code", "n", "half", "age", "zip", "s")
SAFE = "method: safe, epsilon: 1, delta: 1.0e-6"
LEVELS = "levels: {code: 0, n: 0, half: 2, age: 2, zip: 5, s: 0}"
SLICES = "slices: [[code, n], [n, half, s], [zip, age]]"
METHODS = {
    "counts": f"{SAFE}, draw: counts, {LEVELS}",
    "sample": f"{SAFE}, draw: sample, {LEVELS}",
    "search": f"{SAFE}, scheme: search",
    "cuts": f"{SAFE}, draw: sample, scheme: mondrian",
    "slices": f"{SAFE}, {SLICES}",
    "slices of samples": f"{SAFE}, draw: sample, {SLICES}",
    "already sampled": f"{SAFE}, already_sampled: 0.25, draw: sample, {LEVELS}",
    "ola": "method: k-anonymity, k: 5",
    "mondrian": "method: k-anonymity, k: 5, algorithm: mondrian",
    "cluster": "method: k-anonymity, k: 5, algorithm: cluster",
    "duplicate": "method: k-anonymity, k: 5, algorithm: duplicate",
    "starred": "method: k-anonymity, k: 25, suppressed: starred, levels: {n: 0, half: 0}, "
    "suppression: 0.2",
    "k-epsilon": "method: k-epsilon, k: 5, epsilon: 1, bounds: declared, clamp: true",
}
WRITINGS = {
    "parquet": "format: parquet",
    "counted parquet": "format: parquet, rows: counted",
    "csv": "format: csv, formulas: escape",
    "counted csv": "format: csv, rows: counted",
}
CASES = [
    (method, writing)
    for method in METHODS
    for writing in WRITINGS
    if not (method == "k-epsilon" and "counted" in writing)  # noise is of single rows
]


def make_reader_table() -> pl.DataFrame:
    """Many of the first values, few of the last, and nobody's row is alone in everything."""
    draw = np.random.default_rng(11)
    skewed = draw.choice(4, ROWS, p=[0.5, 0.3, 0.15, 0.05])
    return pl.DataFrame(
        {
            "name": [f"person {at}" for at in range(ROWS)],
            "code": np.array(["NA", "01234", "null", "a b"])[skewed],
            "n": draw.choice(4, ROWS, p=[0.4, 0.3, 0.25, 0.05]) + 1,
            "half": draw.choice([0.5, 1.0, 1.5], ROWS, p=[0.6, 0.3, 0.1]),
            "age": draw.integers(-10, 30, ROWS),
            "zip": draw.choice(["01234", "01299", "55555"], ROWS),
            "s": draw.choice(["=1+1", "@b", "c"], ROWS, p=[0.5, 0.4, 0.1]),
            "w": draw.normal(70, 10, ROWS).round(1),
        }
    )


def format_columns(method: str) -> str:
    """The columns of a spec of :data:`METHODS`; the last has noise where it may."""
    noisy = "noisy, precision: 0.1, bounds: [0, 200]"
    return COLUMNS % (noisy if method == "k-epsilon" else "drop")


def publish_reader_table(
    folder: Path, method: str, writing: str = "parquet", table: Any = None, *,
    by: Callable[..., Release] = publish_unjudged, **more: Any,
) -> Release:  # fmt: skip
    text = f"{format_columns(method)}\nrelease: {{{METHODS[method]}, {WRITINGS[writing]}}}\n"
    return by(
        make_reader_table() if table is None else table, parse_spec(text), output=folder, **more
    )


def load_certificate(folder: Path) -> Certificate:
    return Certificate.model_validate_json((folder / "certificate.json").read_bytes())


def reseal_certificate(folder: Path, certificate: Certificate) -> None:
    """A certificate and its page, stated and sealed by somebody who knows the code."""
    sealed = certificate.with_statement().with_seal()
    (folder / "certificate.json").write_bytes(sealed.to_canonical_json())
    for name, page in make_pages(sealed).items():
        (folder / name).write_bytes(page)


def make_readme(certificate: Certificate) -> str:
    return make_pages(certificate)["README.md"].decode()


def read_readme(folder: Path) -> str:
    return (folder / "README.md").read_bytes().decode()


def list_label_patterns(form: str) -> list[re.Pattern[str]]:
    """The patterns that the page gives for labels of a form.

    Of ranges: with two ends, without a lower one, without an upper one and, where two labels can be
    joined, without either.
    """
    column = {"level": 0, "labels": form, "rule": {"flat": {}}}
    certificate = Certificate.model_validate(
        {
            "format": 1, "incrowd": "0.1.0", "method": "k-anonymity", "date": "2026-01-01",
            "guarantee": {"kind": "k-anonymity", "unit": "one row"}, "parameters": {"k": 5.0},
            "events": [], "scheme": {"x": column}, "randomness": "system",
            "release": {
                "file": "data.parquet", "form": "expanded", "sha256": "0" * 64,
                "rows": 9, "classes": 1, "smallest_class": 9,
            },
        }
    )  # fmt: skip
    page = make_readme(certificate).splitlines()
    (line,) = [x for x in page if x.startswith("- `x`: ")]
    form_line = "".join(x for x in page if x.startswith(f"- `{form}`: "))
    label_patterns = re.findall(r"`(\^[^`]*\$)`", form_line)
    dates = [re.sub("[YMDhn]", r"\\d", x) for x in re.findall("`(YYYY[^`]*)`", line)]
    return [re.compile(pattern) for pattern in (*label_patterns, *dates)]


# The page as Markdown --------------------------------------------------------------------------


def parse_tokens(page: str) -> list[Token]:
    return MarkdownIt("commonmark").enable("table").parse(page)


def list_inlines(page: str) -> list[Token]:
    """Everything within paragraphs, cells and headings."""
    return [inner for token in parse_tokens(page) for inner in token.children or ()]


def list_headings(page: str) -> list[str]:
    tokens = parse_tokens(page)
    pairs = itertools.pairwise(tokens)
    return [after.content for token, after in pairs if token.type == "heading_open"]


def find_section(page: str, title: str) -> str:
    """The text of one section."""
    _, _, rest = page.partition(f"## {title}\n\n")
    assert rest
    return rest.partition("\n\n## ")[0]


def list_column_rows(page: str) -> list[list[Token]]:
    """The cells of each row of the table of columns, but for its head."""
    tokenses: list[list[Token]] = []
    cell = False
    for token in parse_tokens(page):
        if token.type == "tr_open":
            tokenses.append([])
        cell = token.type == "td_open" or (cell and token.type == "inline")
        if cell and token.type == "inline":
            tokenses[-1].append(token)
    return tokenses[1:]


def find_code(cell: Token) -> str:
    """The first text of a cell that is shown as code."""
    return next(inner.content for inner in cell.children or () if inner.type == "code_inline")


def list_code_blocks(page: str, language: str) -> list[str]:
    return [
        token.content for token in parse_tokens(page)
        if token.type == "fence" and token.info == language
    ]  # fmt: skip
