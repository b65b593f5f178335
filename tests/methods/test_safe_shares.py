"""Which columns a safe release counts beside its rows, at which level, and what that spends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import polars as pl
import pytest

from incrowd.arrays import Codes
from incrowd.codes.counted_table import CountedTable
from incrowd.codes.frequency import Frequencies, merge_tuples
from incrowd.engine.local.engine import ENGINE
from incrowd.engine.table import RemoteTuples
from incrowd.errors import IncrowdError
from incrowd.methods.registry import METHODS, make_method
from incrowd.methods.safe.remote_counts import RemoteCountedTable
from incrowd.privacy.accountant import Accountant
from incrowd.privacy.events import Composition, DeclaredCounts, SampledEvent
from incrowd.privacy.randomness import SeededRandomness
from incrowd.spec.file import parse_spec
from incrowd.spec.model import list_misplaced_roles

SMALL = "{flat: {values: [a, b, c]}}"
COLUMNS = {
    "x": f"role: quasi, hierarchy: {SMALL}",
    "y": f"role: quasi, hierarchy: {SMALL}",
    "z": f"role: sensitive, hierarchy: {SMALL}",
}
BUDGET = "method: safe, epsilon: 1.0, delta: 1.0e-6"


def list_counts(release: str, columns: dict[str, str], **entries: Any) -> list[float]:
    """The epsilons of the counts beside a release, which all fits its budget."""
    listed = "\n".join(f"  {name}: {{{column}}}" for name, column in columns.items())
    file = parse_spec(f"columns:\n{listed}\nrelease: {{{release}}}\n").with_entries(
        {(name,): value for name, value in entries.items()}
    )
    method = make_method(file)
    assert Accountant(method.events).delta(epsilon=1.0) <= 1e-6
    events = method.events
    match events:
        case [SampledEvent(Composition(inner), _)]:
            events = list(inner)
    return [event.epsilon for event in events if isinstance(event, DeclaredCounts)]


def keep(columns: dict[str, str], *names: str) -> dict[str, str]:
    return {
        name: text + (", rare: keep" if name in names else "") for name, text in columns.items()
    }


def test_nothing_is_counted_unless_it_is_asked_for() -> None:
    assert list_counts(BUDGET, COLUMNS) == []
    assert list_counts(f"{BUDGET}, target: z", COLUMNS) == [0.05]
    assert list_counts(BUDGET, keep(COLUMNS, "x")) == [0.05]
    assert list_counts(f"{BUDGET}, target: z", keep(COLUMNS, "x", "z")) == [0.05, 0.05]


def test_small_tables_spend_more_and_many_columns_share_a_fifth() -> None:
    assert list_counts(BUDGET, keep(COLUMNS, "x"), size=9_999) == [0.1]
    assert list_counts(BUDGET, keep(COLUMNS, "x"), size=10_000) == [0.05]
    many = {f"c{at}": COLUMNS["x"] for at in range(8)}
    assert list_counts(BUDGET, keep(many, *many)) == [0.025] * 8


@pytest.mark.parametrize(
    "release",
    [
        f"{BUDGET}, slices: 2", f"{BUDGET}, draw: sample", f"{BUDGET}, draw: sample, slices: 2",
        f"{BUDGET}, already_sampled: 0.1", f"{BUDGET}, levels: {{x: 0, y: 1, z: 0}}",
        f"{BUDGET}, levels: {{x: 0, y: 1, z: 0}}, draw: sample",
    ],
)  # fmt: skip
def test_every_kind_of_safe_release_fits_its_budget_with_counts(release: str) -> None:
    assert list_counts(release, keep(COLUMNS, "x")) == [0.05]


def test_planned_releases_count_again_each_time() -> None:
    (part,) = list_counts(f"{BUDGET}, releases: 4", keep(COLUMNS, "x"))
    assert part == 0.025  # a twentieth by the root of four: they compose


def test_long_lists_are_counted_by_groups() -> None:
    ages = (
        "role: quasi, hierarchy: {intervals: {from: 0, to: 399, widths: [2, 10, 100]}}, rare: keep"
    )
    file = parse_spec(
        f"columns:\n  age: {{{ages}}}\n  x: {{{COLUMNS['x']}}}\nrelease: {{{BUDGET}}}\n"
    )
    method = make_method(file)
    assert method._counter._levels == {"age": 2}  # type: ignore[attr-defined]


class CountedElsewhere:
    """Tuples of another machine, as far as counts of single columns ask for them."""

    def __init__(self, frequencies: Frequencies) -> None:
        self._frequencies = frequencies

    def select_columns(self, places: Sequence[int]) -> CountedElsewhere:
        codes = self._frequencies.codes[:, list(places)]
        return CountedElsewhere(merge_tuples(codes, self._frequencies.counts))

    def collect_above(self, maps: Sequence[Codes], threshold: int) -> Frequencies:
        assert threshold == 0
        return self._frequencies.roll_up(maps)


def test_a_fixed_scheme_counts_tuples_as_fine_as_their_shares_here_and_elsewhere() -> None:
    """The rows show x by groups, y and z at values; x is counted by itself at its values."""
    columns = keep(COLUMNS, "x", "y")
    columns["x"] = "role: quasi, rare: keep, hierarchy: {groups: {g: [a, b], h: [c, d]}}"
    listed = "\n".join(f"  {name}: {{{column}}}" for name, column in columns.items())
    file = parse_spec(f"columns:\n{listed}\nrelease: {{{BUDGET}, scheme: fixed}}\n")
    method = make_method(file)
    frame = pl.DataFrame({"x": ["a"] * 700 + ["c", "d"] * 50, "y": ["a", "b"] * 400, "z": "c"})
    table = method.count(ENGINE.open(frame))
    assert isinstance(table, CountedTable)
    assert table.levels == (0, 0, 0)
    assert method._scheme.list_counted_levels() == (1, 0, 0)  # type: ignore[attr-defined]
    remote = RemoteCountedTable(
        table.names, table.hierarchies, table.levels, table.levels,
        cast("RemoteTuples", CountedElsewhere(table.frequencies)),
    )  # fmt: skip
    for tuples in (table, remote):
        measured = method._counter.measure(  # type: ignore[attr-defined]
            tuples, [50.0, 50.0], rows=1, bits=SeededRandomness(1)
        )
        assert measured["x"].table.counts == [700, 0, 50, 50, 0, 0]
        assert measured["y"].table.counts == [400, 400, 0, 0, 0]


@pytest.mark.parametrize(
    ("release", "columns", "message"),
    [
        (BUDGET, {**COLUMNS, "x": "role: quasi, hierarchy: {mask: {length: 3}}, rare: keep"},
         "Column 'x': `rare: keep` counts listed values"),
        (f"{BUDGET}, levels: {{x: 1}}", keep(COLUMNS, "x"), "needs a level of 2 to 100 values"),
        ("method: safe, k: 9, beta: 0.2, delta: 1.0e-6", keep(COLUMNS, "x"), "needs ε and δ"),
        ("method: k-anonymity, k: 5", keep(COLUMNS, "x"), "`rare: keep` is for `method: safe`"),
        ("method: k-epsilon, k: 5, epsilon: 1", keep(COLUMNS, "x"), "columns.x.rare: `rare: keep`"),
        ("method: synthetic, epsilon: 1, delta: 1.0e-6", keep(COLUMNS, "x"), "`rare: keep` is for"),
        ("method: tables, epsilon: 1, delta: 1.0e-6, tables: [[x]]", keep(COLUMNS, "x"),
         "beside its rows. Remove it.$"),
    ],
)  # fmt: skip
def test_what_cannot_be_counted_is_refused(
    release: str, columns: dict[str, str], message: str
) -> None:
    with pytest.raises(IncrowdError, match=message):
        list_counts(release, columns)


def test_both_checks_of_a_spec_refuse_counts_beside_rows_that_are_not_made() -> None:
    """The one of a whole spec, and the one that finds problems in plain values."""
    columns = {"x": {"role": "quasi", "rare": "keep"}}
    for name in METHODS:
        problems = list_misplaced_roles({"method": name}, columns)
        assert [place for place, _ in problems] == [("columns", "x", "rare")] * (name != "safe")
    assert list_misplaced_roles({}, columns) == []


def test_a_target_without_listed_values_is_not_counted() -> None:
    columns = {**COLUMNS, "x": "role: quasi, hierarchy: {mask: {length: 3}}"}
    assert list_counts(f"{BUDGET}, target: x", columns) == []
