"""Slices that cannot be: refused with the reason, before anything is spent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from support.sliced import (
    BASE,
    CHOSEN,
    COLUMNS,
    COVERING,
    DECLARED,
    made_people,
    released,
)

from incrowd.errors import IncrowdError
from incrowd.release.ledger import Ledger
from incrowd.spec.file import SpecError, parse


@pytest.fixture(scope="module")
def people() -> pl.DataFrame:
    return made_people()


REFUSED = [
    ("slices: [[name, a, b], [c, d, e, z]], scheme: fixed", "names the column 'name'"),
    ("slices: [[a, b], [c, d]]", "'e' is in no slice"),
    ("slices: [[a, b], [c, d]], scheme: fixed", "'e' is in no slice"),
    ("slices: 6", "there are 6 columns in all"),
    ("slices: 7, scheme: mondrian", "there are 6 columns in all"),
    ("slices: {columns: 2, tables: 2}", "need at least 3 tables of 2"),
    (f"{CHOSEN}, draw: sample, k: 20, scheme: fixed", "leave 'k' out"),
    (f"{DECLARED}, draw: sample, k: 20, scheme: search", "finds k itself"),
    (
        f"{DECLARED}, draw: sample, k: 20, already_sampled: 0.5, scheme: fixed",
        "leave 'k' out",
    ),
    (f"{DECLARED}, k: 2, beta: 0.25, scheme: fixed", "more than the 1e-06 of the spec"),
    (f"{COVERING}, search_epsilon: 0.3", "leaves nothing for the release"),
    (f"{DECLARED}, scheme: fixed, levels: {{a: [0, 1]}}", "takes one level of column 'a'"),
    (f"{DECLARED}, levels: {{a: 9}}", "its highest is 1"),
    (f"{CHOSEN}, levels: {{a: 9}}", "its highest is 1"),
]
MUST_LIST = "must list the columns of each table"


def refused(
    people: pl.DataFrame, tmp_path: Path, more: str, message: str, base: str = BASE, **rest: Any
) -> None:
    """Nothing is spent and no folder appears."""
    book = Ledger(tmp_path / "ledger")
    book.set_budget(epsilon=9, delta=1e-4)
    with pytest.raises(IncrowdError, match=message):
        released(people, tmp_path / "out", more, base, ledger=book, **rest)
    assert book.spends() == []
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("more", "message"), REFUSED)
def test_what_cannot_be_sliced_is_refused_before_the_spend(
    people: pl.DataFrame, tmp_path: Path, more: str, message: str
) -> None:
    refused(people, tmp_path, more, message)


@pytest.mark.parametrize(
    ("base", "more", "message"),
    [
        ("epsilon: 1", f"{DECLARED}, scheme: search", "needs both 'epsilon' and 'delta'"),
        ("epsilon: 1", f"{CHOSEN}, scheme: fixed", "need both 'epsilon' and 'delta'"),
        ("delta: 1.0e-6", f"{CHOSEN}, scheme: fixed", "need both 'epsilon' and 'delta'"),
        ("epsilon: 1", f"{DECLARED}, scheme: fixed", "needs 'epsilon' and 'delta' under"),
        ("epsilon: 0.00002, delta: 1.0e-3", f"{CHOSEN}, beta: 0.1", "at least a millionth"),
        (
            "epsilon: 0.00002, delta: 1.0e-3",
            f"{CHOSEN}, beta: 0.1, scheme: fixed",
            "at least a millionth",
        ),
    ],
)
def test_a_budget_that_slices_cannot_have_is_refused_before_the_spend(
    people: pl.DataFrame, tmp_path: Path, base: str, more: str, message: str
) -> None:
    refused(people, tmp_path, more, message, base)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("slices: 1", MUST_LIST),
        ("slices: true", MUST_LIST),
        ("slices: a", MUST_LIST),
        ("slices: [a, b]", MUST_LIST),
        ("slices: [[], [a, b, c, d, e, z]]", MUST_LIST),
        ("slices: {columns: 1}", MUST_LIST),
        ("slices: {columns: 2, tables: 1}", MUST_LIST),
        ("slices: {columns: 2, tables: most}", MUST_LIST),
        ("slices: {column: 2}", MUST_LIST),
        ("slices: [[a, b, c, d, e, z]]", "one slice is one table"),
        ("slices: [[a, b], [b, a], [c, d, e, z]]", "two slices have the same columns"),
        ("slices: [[a, a], [b, c, d, e, z]]", "names a column twice: a, a"),
        ("slices: [[a, q], [b, c, d, e, z]]", "names the column 'q', which has no entry"),
        ("slices: 3, method: k-anonymity, k: 5", "does not belong to method 'k-anonymity'"),
    ],
)
def test_slices_that_make_no_sense_are_refused_with_the_spec(more: str, message: str) -> None:
    base = "" if "method" in more else f"{BASE}, "
    with pytest.raises(SpecError, match=message):
        parse(f"{COLUMNS}\nrelease: {{{base}{more}}}\n")


@pytest.mark.parametrize("scheme", ["search", "mondrian", "auto"])
def test_a_slice_of_an_unpublished_column_is_refused(
    people: pl.DataFrame, tmp_path: Path, scheme: str
) -> None:
    more = f"slices: [[name, a, b], [c, d, e, z]], scheme: {scheme}"
    refused(people, tmp_path, more, "names the column 'name'")


@pytest.mark.parametrize("tables", ["3", "all"])
def test_too_many_schemes_of_a_slice_are_refused_before_the_spend(
    tmp_path: Path, tables: str
) -> None:
    """The nine deepest columns have 7**9 schemes, and may come together."""
    names = [f"c{at}" for at in range(18)]
    mask = "{role: quasi, hierarchy: {mask: {length: LENGTH}}}"
    lengths = [1] * 3 + [6] * 12 + [1] * 3
    columns = "columns:\n" + "".join(
        f"  {name}: {mask.replace('LENGTH', str(n))}\n"
        for name, n in zip(names, lengths, strict=True)
    )
    table = pl.DataFrame({name: ["000000", "111111"] for name in names})
    more = f"slices: {{columns: 9, tables: {tables}}}, beta: 0.25, scheme: search"
    refused(table, tmp_path, more, "schemes", columns=columns)
