"""Risks against brute force: every original row held against every released label."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.codes.frequency import Frequencies, merge_tuples
from incrowd.engine.source import open_table
from incrowd.evaluation.evaluate import evaluate_tables
from incrowd.measure import risk as module
from incrowd.measure.labels import LabelCover
from incrowd.measure.risk import Risk, compute_risk, compute_unique_share, count_by_size
from incrowd.publication import publish
from incrowd.spec.file import parse_spec

Row = tuple[object, ...]
Fits = Callable[[object, object], bool]


def brute(original: list[Row], released: list[Row], fits: list[Fits]) -> dict[str, float]:
    """The three attackers, one by one, over rows; ``fits[c](label, value)``."""
    classes = Counter(released)

    def alike(labels: Row) -> int:
        return sum(
            all(fit(label, value) for fit, label, value in zip(fits, labels, row, strict=True))
            for row in original
        )

    fitting = {labels: alike(labels) for labels in classes}
    return {
        "highest": max(1 / classes[row] for row in released),
        "mean": sum(1 / classes[row] for row in released) / len(released),
        "journalist": max(1 / fitting[row] for row in released),
        "marketer": sum(1 / fitting[row] for row in released) / len(released),
        "uniques": sum(classes[row] == 1 for row in released) / len(released),
        "uniques_original": sum(Counter(original)[row] == 1 for row in original) / len(original),
    }


def checked(risk: Risk, expected: dict[str, float]) -> None:
    for name, value in expected.items():
        assert getattr(risk, name) == pytest.approx(value), name


def frequencies(rows: Sequence[tuple[int, ...]], columns: int) -> Frequencies:
    codes = np.array(rows, np.int32).reshape(-1, columns)
    return merge_tuples(codes, np.ones(len(codes), np.int64))


def members(sets: list[set[int]], bins: int) -> LabelCover:
    """A label for each set of positions."""
    low, high = (np.array([end(values) for values in sets]) for end in (min, max))
    scattered = {
        at: np.array(sorted(values))
        for at, values in enumerate(sets)
        if max(values) - min(values) + 1 != len(values)
    }
    nothing = np.zeros(len(sets))
    shares = np.zeros((len(sets), bins))
    return LabelCover(("",), nothing, nothing, shares, nothing, nothing > 0, low, high, scattered)


FULL = [[{0, 1, 2}, {3, 4, 5}], [{0}, {1}, {2, 3}]]
LOCAL = [[{0, 1, 2}, {2, 3}, {3, 4, 5}, {0, 1, 2, 3, 4, 5}], [{0}, {1}, {0, 1, 2, 3}, {2, 3}]]
points = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), min_size=1, max_size=25)


@given(rows=points, data=st.data(), local=st.booleans())
def test_the_attackers_row_by_row(
    rows: list[tuple[int, int]], data: st.DataObject, local: bool
) -> None:
    sets = LOCAL if local else FULL
    released: list[tuple[int, int]] = []
    for row in rows:  # each row shows some label that holds its value, or nothing at all
        choices = [[at for at, s in enumerate(sets[c]) if row[c] in s] for c in (0, 1)]
        labels = (
            data.draw(st.sampled_from(choices[0])), data.draw(st.sampled_from(choices[1]))
        )  # fmt: skip
        if data.draw(st.booleans()):
            released.append(labels)
    shares = [members(sets[0], 6), members(sets[1], 4)]
    risk = compute_risk(frequencies(rows, 2), frequencies(released, 2), shares)
    if not released:
        assert (risk.highest, risk.mean, risk.journalist, risk.marketer) == (0, 0, 0, 0)
        assert risk.sizes == []
        return
    fits: list[Fits] = [lambda s, x: x in sets[0][s], lambda s, x: x in sets[1][s]]  # type: ignore[call-overload]
    checked(risk, brute(list(rows), list(released), fits))


def test_both_ways_of_counting_agree() -> None:
    """Labels that overlap only where no row is are counted class by class, with one answer."""
    rng = np.random.default_rng(5)
    rows = [(int(a), int(b)) for a, b in rng.integers(0, (6, 4), (60, 2))]
    labels = [(a // 3, (0, 1, 2, 2)[b]) for a, b in rows]
    apart = [members(FULL[0], 7), members(FULL[1], 4)]
    overlap = [members([{0, 1, 2, 6}, {3, 4, 5, 6}], 7), apart[1]]
    result = [
        compute_risk(frequencies(rows, 2), frequencies(labels, 2), x) for x in (apart, overlap)
    ]
    assert result[0] == result[1]
    assert result[0].journalist == result[0].highest


def test_many_classes_are_drawn_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_CELLS", 1)
    monkeypatch.setattr(module, "_FEWEST", 3)
    rows = [(x, y) for x in range(6) for y in range(4)] * 2
    labels = [((0, 0, 1, 2, 2, 3)[a], (0, 1, 3, 2)[b]) for a, b in rows]
    shares = [members(LOCAL[0], 6), members(LOCAL[1], 4)]
    risk = compute_risk(frequencies(rows, 2), frequencies(labels, 2), shares)
    again = compute_risk(frequencies(rows, 2), frequencies(labels, 2), shares)
    assert risk == again
    monkeypatch.undo()
    full_risk = compute_risk(frequencies(rows, 2), frequencies(labels, 2), shares)
    assert (risk.compared, full_risk.compared) == (3, len(set(labels)))
    assert risk.journalist <= full_risk.journalist
    assert (risk.highest, risk.mean, risk.sizes) == (
        full_risk.highest,
        full_risk.mean,
        full_risk.sizes,
    )


def test_one_column_and_an_empty_table() -> None:
    rows, labels = [(x,) for x in (0, 1, 1, 2, 3, 5)], [(0,), (0,), (1,), (1,), (2,), (3,)]
    cover = members(LOCAL[0], 6)
    risk = compute_risk(frequencies(rows, 1), frequencies(labels, 1), [cover])
    checked(risk, brute(list(rows), list(labels), [lambda s, x: x in LOCAL[0][s]]))  # type: ignore[call-overload]
    assert compute_risk(frequencies([], 1), frequencies(labels, 1), [cover]).journalist == 1


def test_sizes_are_counted_by_rows() -> None:
    assert count_by_size(np.array([1, 1, 2, 3, 4, 7, 8, 1000])) == [
        2,
        5,
        11,
        8,
        0,
        0,
        0,
        0,
        0,
        1000,
    ]
    assert count_by_size(np.zeros(0, np.int64)) == []
    assert compute_unique_share(Frequencies(np.zeros((3, 1), np.int32), np.array([1, 1, 8]))) == 0.2
    assert (
        compute_unique_share(Frequencies(np.zeros((0, 1), np.int32), np.zeros(0, np.int64))) == 0.0
    )


WIDE = """
columns:
  x: {role: quasi, hierarchy: {intervals: {from: 0, to: 999, widths: [5, 50]}}}
  y: {role: quasi, hierarchy: {flat: {values: [p, q]}}}
"""


def interval(label: object, value: object) -> bool:
    if label == "*":
        return True
    first, _, last = str(label).partition("-")
    return value is not None and int(first) <= int(str(value)) <= int(last or first)


def flat(label: object, value: object) -> bool:
    return label == "*" or label == value


@pytest.mark.parametrize(
    "release",
    ["suppression: 0.6, levels: {x: 1}", "suppression: 0.2", "algorithm: mondrian"],
)
def test_domains_of_many_values_are_told_value_by_value(release: str) -> None:
    """More values than there are bins: neighbors are alike in no measure of risk."""
    rng = np.random.default_rng(3)
    table = pl.DataFrame({"x": np.append(np.arange(0, 1000, 2), rng.integers(0, 400, 250))})
    table = table.with_columns(y=pl.Series(["p", "q", "q"] * 250))
    file = parse_spec(f"{WIDE}\nrelease: {{method: k-anonymity, k: 3, {release}}}")
    result = publish(table, file)
    expected = brute(list(table.iter_rows()), list(result.data.iter_rows()), [interval, flat])
    evaluation = result.evaluation
    assert evaluation.risk is not None
    checked(evaluation.risk, expected)
    rows = Counter(table.iter_rows()).values()
    assert evaluation.risk.sizes_original == count_by_size(np.array(list(rows)))


def test_null_and_strangers_fit_the_root() -> None:
    """They are shown as the root, so whoever sees the root must reckon with them."""
    original = pl.DataFrame({"x": [1, 2, None, 5000] * 5, "y": ["p", "p", "p", "q"] * 5})
    released = pl.DataFrame({"x": ["*"] * 8, "y": ["p"] * 8})
    tables = evaluate_tables(open_table(original), open_table(released), parse_spec(WIDE).spec)
    checked(tables.risk, brute(list(original.iter_rows()), list(released.iter_rows()),
                              [interval, flat]))  # fmt: skip
