"""Publishing a table in slices, end to end: one certificate over several files."""

from __future__ import annotations

import itertools
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from support.releases import list_files
from support.slice_tables import (
    BASE,
    CHOSEN,
    COLUMNS,
    COVERING,
    DECLARED,
    LEVELS,
    NAMES,
    ROWS,
    make_sliced_people,
    publish_slices,
    read_slice,
)

from incrowd.anonymize import safe_slices as slicing
from incrowd.anonymize.safe_sample import sample_cells
from incrowd.anonymize.safe_slices import choose_slices
from incrowd.arrays import Words
from incrowd.codes.frequency import Frequencies
from incrowd.errors import IncrowdError
from incrowd.methods.safe import draw as drawing
from incrowd.privacy import accountant
from incrowd.privacy.accountant import Accountant
from incrowd.privacy.events import SafeRelease, Selection, parse_event
from incrowd.privacy.randomness import Randomness, SeededRandomness
from incrowd.privacy.selection import select_candidate
from incrowd.publication import publish
from incrowd.release.ledger import Ledger
from incrowd.release.verify import verify
from incrowd.spec.file import parse_spec


@pytest.fixture(scope="module")
def people() -> pl.DataFrame:
    return make_sliced_people()


SCHEMES = ("fixed", "search", "mondrian", "auto")
FORMS = ("csv", "expanded"), ("parquet", "expanded"), ("csv", "counted"), ("parquet", "counted")
WHOLES = [
    (choice, scheme, *FORMS[(at + place) % 4])
    for at, choice in enumerate((DECLARED, CHOSEN, COVERING))
    for place, scheme in enumerate(SCHEMES)
]


@pytest.mark.parametrize(("choice", "scheme", "kind", "rows"), WHOLES)
def test_slices_hold_together(
    people: pl.DataFrame, tmp_path: Path, choice: str, scheme: str, kind: str, rows: str
) -> None:
    folder = tmp_path / "out"
    more = f"{choice}, scheme: {scheme}, format: {kind}, rows: {rows}, beta: 0.25"
    release = publish_slices(
        people, folder, f"{more}, {LEVELS}" if scheme == "fixed" else more, by=publish
    )
    certificate = release.certificate
    assert verify(folder) == []
    assert certificate.slices is not None
    number = {DECLARED: 3, CHOSEN: 4, COVERING: 7}[choice]
    listed = [f"scheme/{name}.csv" for name in NAMES if name != "z"]
    assert list_files(folder) == sorted(
        ["README.md", "certificate.html", "certificate.json", *listed]
        + [f"data-{at}.{kind}" for at in range(1, number + 1)]
    )
    if choice == DECLARED:
        columns = [list(table.scheme) for table in certificate.tables]
        assert columns == [["a", "b"], ["d", "e", "z"], ["b", "c", "d"]]  # in the spec's order
    hashes: dict[str, set[str | None]] = {name: set() for name in NAMES}
    for at, (table, data) in enumerate(zip(certificate.slices, release.data, strict=True), 1):
        assert table.release.file == f"data-{at}.{kind}"
        assert table.release.form == rows
        groups, k = read_slice(folder, table), int(table.parameters["k"])
        assert groups.columns == [*table.scheme, "count"]
        assert groups["count"].min() >= k > 5  # type: ignore[operator]
        assert groups["count"].sum() == table.release.rows > 100
        assert len(groups) == table.release.classes
        assert groups["count"].min() == table.release.smallest_class
        assert list(data.columns) == [*table.scheme, *(["count"] if rows == "counted" else [])]
        for name, column in table.scheme.items():
            hashes[name].add(column.sha256)
    assert all(len(item) == 1 for item in hashes.values())  # one file for all slices
    assert hashes["z"] == {None}  # a rule: what values there are is not told
    pages = (release.curator / "report.html").read_text()
    assert f"published in {number} files" in pages
    assert "from a table of 3,000 rows" in pages
    evaluation = json.loads((release.curator / "evaluation.json").read_text())
    assert [tuple(names) for names in evaluation["columns"]] == [
        tuple(table.scheme) for table in certificate.slices
    ]
    assert len(evaluation["associations"]) == 15


def test_associated_columns_are_found(people: pl.DataFrame, tmp_path: Path) -> None:
    """Scores of some 1,000 rows against noise of some 300; of pairs by chance, some 60."""
    release = publish_slices(people, tmp_path / "out", f"{CHOSEN}, beta: 0.25")
    columns = [tuple(table.scheme) for table in release.certificate.tables]
    assert {("a", "b"), ("c", "d"), ("e", "z")} == set(columns[:3])
    assert "chosen privately" in " ".join(release.reasons)


def test_where_all_pairs_fit_nothing_is_spent_on_choosing(
    people: pl.DataFrame, tmp_path: Path
) -> None:
    for number, choice in enumerate((COVERING, "slices: {columns: 3, tables: all}")):
        release = publish_slices(
            people, tmp_path / str(number), f"{choice}, scheme: fixed, beta: 0.25"
        )
        assert {type(parse_event(event)) for event in release.certificate.events} == {SafeRelease}
        assert release.certificate.parameters == {}
        columns = [tuple(table.scheme) for table in release.certificate.tables]
        together = {pair for part in columns for pair in itertools.combinations(part, 2)}
        assert together == set(itertools.combinations(NAMES, 2))
        assert "choosing them is free" in " ".join(release.reasons)


@pytest.mark.parametrize("more", ["levels: {e: 1}", ""])
def test_a_slice_that_mondrian_cannot_cut_stays_as_it_was_chosen(
    people: pl.DataFrame, tmp_path: Path, more: str
) -> None:
    """A mask, and a column whose levels are limited, or whose values nobody listed."""
    columns = COLUMNS.replace("{intervals: {from: 0, to: 39, widths: [5, 10]}}", "flat")
    settings = "slices: [[a, b], [c, d], [e, z]], scheme: mondrian, beta: 0.25"
    release = publish_slices(
        people, tmp_path / "out", f"{settings}, {more}" if more else settings,
        columns=COLUMNS if more else columns,
    )  # fmt: skip
    assert verify(tmp_path / "out") == []
    cut = [
        {name: column.level is None for name, column in table.scheme.items()}
        for table in release.certificate.tables
    ]
    assert cut == [{"a": True, "b": True}, {"c": True, "d": True}, {"e": False, "z": False}]


def test_a_table_without_rows_is_sliced_like_any_other(
    people: pl.DataFrame, tmp_path: Path
) -> None:
    """It neighbors a table of one row, so it must not fail where that one does not."""
    for scheme in ("fixed", "search", "mondrian"):
        for rows in (1, 0):
            folder = tmp_path / f"{scheme}{rows}"
            more = f"{CHOSEN}, scheme: {scheme}, beta: 0.25"
            release = publish_slices(people.head(rows), folder, more)
            assert verify(folder) == []
            assert [table.release.rows for table in release.certificate.tables] == [0] * 4


def test_columns_are_grouped_roughly_for_the_choice_by_no_data(
    people: pl.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The finest level of eight groups at most, or the one below the root; nulls beside them."""
    columns = """
columns:
  name: {role: drop}
  a: {role: quasi, hierarchy: {intervals: {from: 0, to: 63, widths: [4, 8, 32]}}}
  b: {role: quasi, hierarchy: {intervals: {from: 0, to: 62, widths: [7, 21]}}}
  c: {role: quasi, hierarchy: {flat: {values: [0, 1, 2, 3, 4, 5, 6, 7, 8]}}}
  d: {role: quasi, hierarchy: {mask: {length: 5, alphabet: "01"}}}
  e: {role: quasi, hierarchy: flat}
  z: {role: quasi, hierarchy: {mask: {length: 3}}}
"""
    at = np.arange(640)
    table = pl.DataFrame(
        {
            "name": at, "a": at % 64, "b": at % 63, "c": at % 9, "e": at % 20,
            "d": [f"{x % 32:05b}" for x in at], "z": [f"{x % 640:03}" for x in at],
        }
    )  # fmt: skip
    seen: list[Frequencies] = []

    def watched(frequencies: Frequencies, *rest: Any, **more: Any) -> list[tuple[int, ...]]:
        seen.append(frequencies)
        return choose_slices(frequencies, *rest, **more)

    monkeypatch.setattr(slicing, "choose_slices", watched)
    for rows in (table, table.head(6)):
        more = f"{CHOSEN}, scheme: fixed, beta: 0.25"
        publish_slices(rows, tmp_path / str(len(rows)), more, columns=columns)
    every_row, few = seen
    assert (every_row.total, few.total) == (640, 6)
    groups = [len(set(column.tolist())) for column in every_row.codes.T]
    assert groups == [8, 3, 9, 8, 20, 7]  # 9 intervals of 7 are too many; 640 are seven hundreds
    # The same levels, however few values were met: six of d begin with 000 or 001.
    assert [len(set(column.tolist())) for column in few.codes.T] == [1, 1, 6, 2, 6, 1]


def test_slices_are_chosen_from_the_whole_table_before_any_sample_is_drawn(
    people: pl.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chosen from a published sample they would tell of it; and they spend what is certified."""
    order: list[str] = []
    spent: list[Fraction] = []

    def watched_select(scores: Any, *, epsilon: Fraction, **more: Any) -> int:
        order.append("select")
        spent.append(epsilon)
        return select_candidate(scores, epsilon=epsilon, **more)

    def watched_slices(frequencies: Frequencies, *rest: Any, **more: Any) -> list[tuple[int, ...]]:
        order.append("slices")
        assert frequencies.total == ROWS
        return choose_slices(frequencies, *rest, **more)

    def watched_safe(frequencies: Frequencies, **more: Any) -> Frequencies:
        order.append("safe")
        return sample_cells(frequencies, **more)

    monkeypatch.setattr(slicing, "select_candidate", watched_select)
    monkeypatch.setattr(slicing, "choose_slices", watched_slices)
    monkeypatch.setattr(drawing, "sample_cells", watched_safe)
    release = publish_slices(people, tmp_path / "out", f"{CHOSEN}, scheme: fixed, beta: 0.25")
    assert order == ["slices", *["select"] * 3, *["safe"] * 4]
    events = [parse_event(event) for event in release.certificate.events]
    assert [Selection(float(epsilon)) for epsilon in spent] == events[:3]
    assert release.certificate.parameters == {"slices_epsilon": float(sum(spent))}


# Samples.


class Recorded:
    """Seeded words, and how many were asked for at a time."""

    private = False

    def __init__(self, seed: int) -> None:
        self._stream, self.asked = SeededRandomness(seed), list[int]()

    def draw_words(self, count: int) -> Words:
        self.asked.append(count)
        return self._stream.draw_words(count)


SHARED = "slices: [[a, b], [b, c], [b, d, e, z]]"


@pytest.mark.parametrize("scheme", ["fixed", "search", "mondrian"])
def test_each_slice_draws_a_sample_of_its_own_from_the_whole_table(
    people: pl.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    """From one sample the counts of the column that all slices share would be alike."""
    draws: list[tuple[int, int, float]] = []

    def watched(frequencies: Frequencies, *, k: int, beta: float, bits: Randomness) -> Frequencies:
        draws.append((frequencies.total, k, beta))
        return sample_cells(frequencies, k=k, beta=beta, bits=bits)

    monkeypatch.setattr(drawing, "sample_cells", watched)
    more = {"fixed": f"k: 2, {LEVELS}, ", "search": "delta: 0.3, levels: {b: 0}, "}
    bits = Recorded(3)
    release = publish_slices(
        people, tmp_path / "out", f"{more.get(scheme, 'delta: 0.3, ')}{SHARED}, scheme: {scheme}, "
        "beta: 0.5, format: csv", base="epsilon: 5", bits=bits,
    )  # fmt: skip
    tables = release.certificate.tables
    assert draws == [(ROWS, table.parameters["k"], 0.5) for table in tables]
    if scheme == "fixed":  # nothing but the samples is random
        assert bits.asked == [ROWS] * 3
    assert bits.asked.count(ROWS) == 3
    counts = [
        dict(
            read_slice(tmp_path / "out", table).group_by("b").agg(pl.col("count").sum()).iter_rows()
        )
        for table in tables
    ]
    if scheme == "mondrian":  # a slice may show intervals of values
        counts = [{"all": sum(count.values())} for count in counts]
    for first, other in itertools.combinations(counts, 2):
        assert set(first) == set(other)
        assert first != other
        # Each is Binomial(some 750, 0.5) but for what was dropped: 7 deviations of a difference.
        assert all(abs(first[value] - other[value]) < 150 for value in first)


# What once went wrong.


def test_a_release_holds_on_a_machine_that_adds_up_in_another_order(
    people: pl.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Libraries sum in an order of their own: OPENBLAS_CORETYPE=Haswell, say, moves digit 16."""
    publish_slices(people, tmp_path / "out", f"{DECLARED}, scheme: fixed, beta: 0.25")

    class Elsewhere(Accountant):
        def delta(self, *, epsilon: float) -> float:
            return super().delta(epsilon=epsilon) * (1 + 1e-13)

    monkeypatch.setattr(accountant, "Accountant", Elsewhere)
    assert verify(tmp_path / "out") == []


def test_a_release_puts_together_what_it_can_show(tmp_path: Path) -> None:
    draw = np.random.default_rng(2)
    rows = 20_000
    cause = {name: draw.integers(0, 3, rows) for name in "abc"}
    people = pl.DataFrame(
        {
            **cause,
            **{
                f"{name}2": np.where(draw.random(rows) < 0.7, values, draw.integers(0, 3, rows))
                for name, values in cause.items()
            },
            **{f"code{at}": draw.integers(0, 3000, rows) for at in range(3)},
        }
    )
    three = "{role: quasi, hierarchy: {flat: {values: [0, 1, 2]}}}"
    lines = [f"  {name}: {three}" for name in ("a", "b", "c", "a2", "b2", "c2")]
    lines += [f"  code{at}: {{role: quasi, hierarchy: flat}}" for at in range(3)]
    release = "release: {epsilon: 1, delta: 1.0e-6, slices: {columns: 2, tables: 6}}"
    publication = publish(
        people, parse_spec("\n".join(["columns:", *lines, release])), output=tmp_path / "out",
        bits=SeededRandomness(3),
    )  # fmt: skip
    assert publication.evaluation.slices
    strong = [
        association
        for association in publication.evaluation.associations
        if association.second == f"{association.first}2"
    ]
    assert [item.slice is not None for item in strong] == [True] * 3
    assert "strong association" in publication.reasons[-1]


# What cannot be published in slices.


REFUSED = [
    ("slices: [[name, a, b], [c, d, e, z]], scheme: fixed", "'name': a slice names it"),
    ("slices: [[a, b], [c, d]]", "'e': it is in no slice"),
    ("slices: [[a, b], [c, d]], scheme: fixed", "'e': it is in no slice"),
    ("slices: 6", "but only 6 columns in all"),
    ("slices: 7, scheme: mondrian", "but only 6 columns in all"),
    ("slices: {columns: 2, tables: 2}", "need at least 3 tables of 2"),
    (f"{CHOSEN}, draw: sample, k: 20, scheme: fixed", "remove `k`"),
    (f"{DECLARED}, draw: sample, k: 20, scheme: search", "chooses k"),
    (
        f"{DECLARED}, draw: sample, k: 20, already_sampled: 0.5, scheme: fixed",
        "remove `k`",
    ),
    (f"{DECLARED}, k: 2, beta: 0.25, scheme: fixed", "more than 1e-06 of the spec"),
    (f"{COVERING}, search_epsilon: 0.3", "leave none for the release"),
    (f"{DECLARED}, scheme: fixed, levels: {{a: [0, 1]}}", "'a': a fixed scheme needs one level"),
    (f"{DECLARED}, levels: {{a: 9}}", "the highest is 1"),
    (f"{CHOSEN}, levels: {{a: 9}}", "the highest is 1"),
]


def refused(
    people: pl.DataFrame, tmp_path: Path, more: str, message: str, base: str = BASE, **rest: Any
) -> None:
    """Nothing is spent and no folder appears."""
    book = Ledger(tmp_path / "ledger")
    book.set_budget(epsilon=9, delta=1e-4)
    with pytest.raises(IncrowdError, match=message):
        publish_slices(people, tmp_path / "out", more, base, ledger=book, **rest)
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
        ("epsilon: 1", f"{DECLARED}, scheme: search", "needs ε and δ"),
        ("epsilon: 1", f"{CHOSEN}, scheme: fixed", "need ε and δ"),
        ("delta: 1.0e-6", f"{CHOSEN}, scheme: fixed", "need ε and δ"),
        ("epsilon: 1", f"{DECLARED}, scheme: fixed", "Add `epsilon` and `delta`"),
        ("epsilon: 0.00002, delta: 1.0e-3", f"{CHOSEN}, beta: 0.1", "at least 1e-6 per choice"),
        (
            "epsilon: 0.00002, delta: 1.0e-3",
            f"{CHOSEN}, beta: 0.1, scheme: fixed",
            "at least 1e-6 per choice",
        ),
    ],
)
def test_a_budget_that_slices_cannot_have_is_refused_before_the_spend(
    people: pl.DataFrame, tmp_path: Path, base: str, more: str, message: str
) -> None:
    refused(people, tmp_path, more, message, base)


@pytest.mark.parametrize("scheme", ["search", "mondrian", "auto"])
def test_a_slice_of_an_unpublished_column_is_refused(
    people: pl.DataFrame, tmp_path: Path, scheme: str
) -> None:
    more = f"slices: [[name, a, b], [c, d, e, z]], scheme: {scheme}"
    refused(people, tmp_path, more, "'name': a slice names it")


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
