"""Mondrian, against a recursion over rows and leaf sets, and by what every partition must keep."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from random import Random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.anonymize.mondrian import Cut, partition_points
from incrowd.arrays import Members
from incrowd.codes.axis import Axis, bound_classes, locate_points
from incrowd.codes.hierarchy import build_from_rows
from incrowd.measure.diversity import (
    ClosenessRule,
    DistinctRule,
    DiversityRule,
    EntropyRule,
    SensitiveColumn,
)

Point = tuple[int, ...]
Class = list[int]
Rows = list[tuple[str, ...]]


@dataclass
class Case:
    """Tuples of codes with counts, each column with its labels (a row for each value)."""

    rows: list[Rows]
    ordered: list[bool]
    codes: list[Point]
    counts: list[int]
    weights: list[float]
    k: int
    cut: Cut

    def axes(self) -> list[Axis]:
        return [
            Axis(build_from_rows(rows), ordered=ordered)
            for rows, ordered in zip(self.rows, self.ordered, strict=True)
        ]

    def members(self, protected: Iterable[SensitiveColumn] = ()) -> Members:
        axes = self.axes()
        return partition_points(
            axes,
            locate_points(axes, np.array(self.codes, np.int32)),
            np.array(self.counts, np.int64),
            k=self.k,
            weights=np.array(self.weights),
            cut=self.cut,
            sensitive_columns=list(protected),
        )

    def labels(self, at: int, code: int) -> tuple[str, ...]:
        """What a code is at every level: null and outside are themselves up to the root."""
        rows = self.rows[at]
        if code < len(rows):
            return rows[code]
        rooted = len({row[-1] for row in rows}) == 1 and len(rows[0]) > 1
        label = ("null", "outside")[code - len(rows)]
        return (label,) * (len(rows[0]) - rooted) + (rows[0][-1],) * rooted

    def size(self, inside: Class) -> int:
        return sum(self.counts[point] for point in inside)

    def width(self, at: int, inside: Class) -> float:
        """The normalized loss of a class in a column, -1 if it has one value there."""
        values = {self.codes[point][at] for point in inside}
        domain = len(self.rows[at])
        if len(values) == 1:
            return -1.0
        if max(values) >= domain:
            return 1.0
        if self.ordered[at]:
            return (max(values) - min(values)) / max(domain - 1, 1)
        for level in range(len(self.rows[at][0])):
            labels = {self.rows[at][value][level] for value in values}
            if len(labels) == 1:
                covered = sum(row[level] in labels for row in self.rows[at])
                return (covered - 1) / max(domain - 1, 1)
        return 1.0

    def between(self, at: int, inside: Class) -> list[Class] | None:
        """Two parts of an ordered column: the most even, or those beside the median."""
        values = sorted({self.codes[point][at] for point in inside})
        cuts = [
            [
                [x for x in inside if self.codes[x][at] <= v],
                [x for x in inside if self.codes[x][at] > v],
            ]
            for v in values[:-1]
        ]
        if self.cut == "median":
            people = sorted(self.codes[x][at] for x in inside for _ in range(self.counts[x]))
            median = people[(len(people) - 1) // 2]
            cuts = [cuts[values.index(median)]] if median != values[-1] else []
        cuts = [parts for parts in cuts if min(map(self.size, parts)) >= self.k]
        return max(cuts, key=lambda parts: min(map(self.size, parts)), default=None)

    def apart(self, at: int, inside: Class) -> list[Class] | None:
        """The children of the smallest group that holds the class, small ones put together."""
        labels_by_point = {point: self.labels(at, self.codes[point][at]) for point in inside}
        height = len(self.rows[at][0])
        level = next(
            (
                x
                for x in range(height)
                if len({labels[x] for labels in labels_by_point.values()}) == 1
            ),
            height,
        )
        parts: dict[str, Class] = {}
        for code in range(len(self.rows[at]) + 2):  # groups in the order of their first value
            label = self.labels(at, code)[level - 1]
            parts[label] = [point for point in inside if labels_by_point[point][level - 1] == label]
        large = [part for part in parts.values() if self.size(part) >= self.k]
        rest = [x for part in parts.values() if self.size(part) < self.k for x in part]
        if large and 0 < self.size(rest) < self.k:
            least = min(large, key=self.size)
            large.remove(least)
            rest += least
        classes = [*large, rest] if rest else large
        return classes if len(classes) > 1 else None

    def divided(self, inside: Class) -> list[Class]:
        """The recursion itself."""
        if self.size(inside) >= 2 * self.k:
            widths = [self.width(at, inside) for at in range(len(self.rows))]
            paid = [w * x if x >= 0 else -1.0 for w, x in zip(self.weights, widths, strict=True)]
            for at in sorted(range(len(paid)), key=lambda at: -paid[at]):
                if widths[at] < 0:
                    continue
                parts = (self.between if self.ordered[at] else self.apart)(at, inside)
                if parts:
                    return [leaf for part in parts for leaf in self.divided(part)]
        return [inside]


def partition(members: Members) -> set[frozenset[int]]:
    result: dict[int, set[int]] = {}
    for point, member in enumerate(members.tolist()):
        result.setdefault(member, set()).add(point)
    assert sorted(result) == list(range(len(result)))
    return {frozenset(points) for points in result.values()}


@st.composite
def cases(draw: st.DrawFn, *, ordered: bool | None = None) -> Case:
    columns = draw(st.integers(1, 3))
    rows, kinds, codes = [], [], []
    for _ in range(columns):
        size = draw(st.integers(2, 9))
        labels = [[f"{value:02}" for value in range(size)]]
        groups = list(range(size))
        for level in range(draw(st.integers(0, 2))):
            parents = draw(st.lists(st.integers(0, 3 - level), min_size=9, max_size=9))
            groups = [parents[group] for group in groups]
            labels.append([f"{level}:{group}" for group in groups])
        if draw(st.booleans()):
            labels.append(["*"] * size)
        rows.append(list(zip(*labels, strict=True)))
        kinds.append(draw(st.booleans()) if ordered is None else ordered)
        odd = draw(st.booleans())  # null and outside
        codes.append(st.integers(0, size + 1 if odd else size - 1))
    points = draw(st.lists(st.tuples(*codes), min_size=1, max_size=40, unique=True))
    counts = draw(
        st.lists(st.sampled_from([1, 1, 2, 5]), min_size=len(points), max_size=len(points))
    )
    return Case(
        rows,
        kinds,
        points,
        counts,
        weights=draw(
            st.lists(st.sampled_from([0.5, 1.0, 4.0]), min_size=columns, max_size=columns)
        ),
        k=draw(st.integers(1, 6)),
        cut=draw(st.sampled_from(["balanced", "median"])),
    )


@settings(max_examples=100)
@given(case=cases())
def test_classes_are_those_of_the_recursion(case: Case) -> None:
    expected = case.divided(list(range(len(case.codes))))
    assert partition(case.members()) == {frozenset(inside) for inside in expected}


@settings(max_examples=50)
@given(case=cases(ordered=True))
def test_boxes_on_ordered_columns_share_no_point(case: Case) -> None:
    """Not even one that nobody has: two classes are apart on some axis."""
    axes, members = case.axes(), case.members()
    points = locate_points(axes, np.array(case.codes, np.int32))
    result = bound_classes(points, np.array(case.counts), members)
    sides = list(zip(result.low.tolist(), result.high.tolist(), strict=True))
    for (low, high), (other_low, other_high) in itertools.combinations(sides, 2):
        assert any(high[at] < other_low[at] or other_high[at] < low[at] for at in range(len(axes)))


@settings(max_examples=50)
@given(case=cases())
def test_no_class_of_balanced_cuts_can_be_cut_further(case: Case) -> None:
    case.cut = "balanced"
    for inside in partition(case.members()):
        for at, ordered in enumerate(case.ordered):
            if not ordered:
                continue
            for value in {case.codes[point][at] for point in inside}:
                left = case.size([x for x in inside if case.codes[x][at] <= value])
                right = case.size([x for x in inside if case.codes[x][at] > value])
                assert min(left, right) < case.k


@settings(max_examples=50)
@given(case=cases(), order=st.randoms(use_true_random=False))
def test_rows_one_by_one_give_the_same_classes(case: Case, order: Random) -> None:
    """Neither splitting counts into rows, nor the order of rows, changes a class."""
    rows = [point for point, count in enumerate(case.counts) for _ in range(count)]
    order.shuffle(rows)
    single = Case(
        case.rows,
        case.ordered,
        [case.codes[point] for point in rows],
        [1] * len(rows),
        case.weights,
        case.k,
        case.cut,
    )
    split = {frozenset(rows[at] for at in inside) for inside in partition(single.members())}
    together = partition(case.members())
    assert split == together
    assert sum(map(len, split)) == len(case.codes)  # equal rows are in one class
    smallest = min(map(case.size, map(list, together)))
    assert smallest >= min(case.k, sum(case.counts))


RULES: list[DiversityRule] = [
    DistinctRule(2), DistinctRule(3), EntropyRule(1.5), EntropyRule(2), ClosenessRule(0.3),
    ClosenessRule(0.25, ordered=True),
]  # fmt: skip


@settings(max_examples=80)
@given(case=cases(), data=st.data(), rules=st.lists(st.sampled_from(RULES), min_size=1, max_size=2))
def test_protected_classes_satisfy_the_rules_or_are_the_whole_table(
    case: Case, data: st.DataObject, rules: list[DiversityRule]
) -> None:
    """Each row has a value of its own, so that one tuple may have several."""
    rows = [point for point, count in enumerate(case.counts) for _ in range(count)]
    values = st.lists(st.integers(0, 2), min_size=len(rows), max_size=len(rows))
    row_counts = Counter(zip(rows, data.draw(values), strict=True))
    secrets = np.array([value for _, value in row_counts], np.int32)
    overall = np.bincount(secrets, weights=list(row_counts.values()), minlength=3).astype(np.int64)
    tuples = [point for point, _ in row_counts]
    case.codes, case.counts = [case.codes[point] for point in tuples], list(row_counts.values())
    result = partition(case.members([SensitiveColumn(secrets, overall, tuple(rules))]))
    of_tuple: dict[Point, frozenset[int]] = {}
    for inside in result:
        for at in inside:
            assert of_tuple.setdefault(case.codes[at], inside) == inside
        assert case.size(list(inside)) >= min(case.k, sum(case.counts))
        spread = [sum(case.counts[at] for at in inside if secrets[at] == x) for x in range(3)]
        if len(result) > 1:
            assert all(rule.check_classes(np.array([spread]), overall).all() for rule in rules)


def test_rules_are_read_from_the_rows_of_each_class() -> None:
    """Four values of an age, two rows each; only the cut in the middle leaves both diseases."""
    ages = Axis(build_from_rows([(str(x), "*") for x in range(4)]), ordered=True)
    points = np.array([[3], [2], [1], [0]], np.int32)
    counts = np.array([2, 2, 2, 2])
    diseases = np.array([0, 1, 0, 1], np.int32)
    distinct = SensitiveColumn(diseases, np.array([4, 4]), (DistinctRule(2),))
    members = partition_points([ages], points, counts, k=2, sensitive_columns=[distinct])
    assert partition(members) == {frozenset({0, 1}), frozenset({2, 3})}
    apart = SensitiveColumn(np.array([0, 0, 1, 1], np.int32), np.array([4, 4]), (DistinctRule(2),))
    assert partition(partition_points([ages], points, counts, k=2, sensitive_columns=[apart])) == {
        frozenset({0, 1, 2, 3})
    }


def numbered(*values: int, size: int, k: int, cut: Cut) -> list[list[int]]:
    """The classes of single numbers, each as the values in it."""
    axis = Axis(build_from_rows([(str(x), "*") for x in range(size)]), ordered=True)
    value_counts = Counter(values)
    points = np.array([[value] for value in value_counts], np.int32)
    members = partition_points([axis], points, np.array(list(value_counts.values())), k=k, cut=cut)
    result: dict[int, list[int]] = {}
    for value, member in zip(value_counts, members.tolist(), strict=True):
        result.setdefault(member, []).append(value)
    return sorted(sorted(inside) for inside in result.values())


def test_cuts_worked_by_hand() -> None:
    """Seven people: the median is the fourth, and stays with those below it."""
    ages = (1, 2, 3, 4, 5, 6, 7)
    assert numbered(*ages, size=10, k=3, cut="median") == [[1, 2, 3, 4], [5, 6, 7]]
    assert numbered(*ages, size=10, k=3, cut="balanced") == [[1, 2, 3], [4, 5, 6, 7]]
    assert numbered(*ages, size=10, k=2, cut="median") == [[1, 2], [3, 4], [5, 6, 7]]
    assert numbered(*ages, size=10, k=4, cut="balanced") == [[1, 2, 3, 4, 5, 6, 7]]
    # of six, the lower median is the third
    assert numbered(*ages[:6], size=10, k=3, cut="median") == [[1, 2, 3], [4, 5, 6]]
    # most people share the median: beside it, too few are left above, but not below
    heavy = (1, 1, 2, 2, 2, 2, 2, 3)
    assert numbered(*heavy, size=10, k=2, cut="median") == [[1, 2, 3]]
    assert numbered(*heavy, size=10, k=2, cut="balanced") == [[1], [2, 3]]
    # exactly k on both sides is enough
    assert numbered(1, 1, 2, 2, size=10, k=2, cut="balanced") == [[1], [2]]
    assert numbered(1, 1, 2, 2, size=10, k=2, cut="median") == [[1], [2]]


def test_the_patients_of_the_paper() -> None:
    """LeFevre and others, Figure 1: age, sex and zipcode of six patients, k = 2.

    The zipcodes, 53710 to 53712, are the widest of the domain; the median is 53711. Then the
    ages, 25 to 28, of which the upper part has two people and cannot be cut.
    """
    age = Axis(build_from_rows([(str(x),) for x in range(25, 29)]), ordered=True)
    sex = Axis(build_from_rows([("Male", "*"), ("Female", "*")]), ordered=False)
    zips = Axis(build_from_rows([(str(x),) for x in (53710, 53711, 53712)]), ordered=True)
    patients = [
        (25, "Male", 53711), (25, "Female", 53712), (26, "Male", 53711),
        (27, "Male", 53710), (27, "Female", 53712), (28, "Male", 53711),
    ]  # fmt: skip
    codes = [[a - 25, ("Male", "Female").index(s), z - 53710] for a, s, z in patients]
    axes = [age, sex, zips]
    points = locate_points(axes, np.array(codes, np.int32))
    members = partition_points(
        axes, points, np.ones(6, np.int64), k=2, cut="median", weights=np.array([1.0, 0.5, 2.0])
    )
    assert partition(members) == {frozenset({1, 4}), frozenset({0, 2}), frozenset({3, 5})}


def tree(sizes: dict[str, int], k: int) -> set[frozenset[str]]:
    """The classes of letters under the groups A (a, b, c), D (d, e) and F (f)."""
    rows = [("a", "A"), ("b", "A"), ("c", "A"), ("d", "D"), ("e", "D"), ("f", "F")]
    axis = Axis(build_from_rows([(*row, "*") for row in rows]), ordered=False)
    codes = np.array([["abcdef".index(letter)] for letter in sizes], np.int32)
    counts = np.array(list(sizes.values()))
    members = partition_points([axis], locate_points([axis], codes), counts, k=k)
    letters = list(sizes)
    return {frozenset(letters[at] for at in inside) for inside in partition(members)}


def test_trees_cut_by_hand() -> None:
    def parts(*texts: str) -> set[frozenset[str]]:
        return {frozenset(text) for text in texts}

    # three groups of at least 3, of which A alone can be cut again: a, and b with c
    assert tree({"a": 3, "b": 2, "c": 2, "d": 2, "e": 1, "f": 3}, k=3) == parts(
        "a", "bc", "de", "f"
    )
    # the groups D and F are too small, but not together
    assert tree({"a": 3, "d": 2, "f": 2}, k=3) == parts("a", "df")
    # f alone is too small, and D, the smallest of the others, joins it
    assert tree({"a": 5, "d": 4, "f": 2}, k=3) == parts("a", "df")
    assert tree({"a": 4, "d": 5, "f": 2}, k=3) == parts("d", "af")
    # f is too small, and there is one other: no cut
    assert tree({"a": 4, "f": 2}, k=3) == parts("af")
    # the smallest group that holds a and b is A: they are told apart by themselves
    assert tree({"a": 3, "b": 3}, k=3) == parts("a", "b")


def test_weights_decide_which_column_is_cut() -> None:
    rows: list[Rows] = [[(str(x), "*") for x in range(3)] for _ in range(2)]
    corners: list[Point] = [(0, 0), (0, 2), (2, 0), (2, 2)]
    for weights, expected in (
        ([1.0, 2.0], {frozenset({0, 2}), frozenset({1, 3})}),
        ([2.0, 1.0], {frozenset({0, 1}), frozenset({2, 3})}),
    ):
        case = Case(rows, [True, True], corners, [1] * 4, weights, 2, "balanced")
        assert partition(case.members()) == expected


def test_the_next_widest_column_is_tried() -> None:
    """All but one share the widest column's value, so that it allows no cut."""
    rows: list[Rows] = [[(str(x), "*") for x in range(10)] for _ in range(2)]
    codes: list[Point] = [(0, 1), (0, 2), (0, 3), (9, 4)]
    case = Case(rows, [True, True], codes, [1] * 4, [1.0, 1.0], 2, "balanced")
    assert partition(case.members()) == {frozenset({0, 1}), frozenset({2, 3})}


def test_a_domain_far_larger_than_the_table() -> None:
    """So many values that only those met are counted."""
    rng = np.random.default_rng(2)
    rows: list[Rows] = [[(str(x),) for x in range(40_000)], [(str(x),) for x in range(50)]]
    values = np.column_stack([rng.integers(0, 40_000, 80), rng.integers(0, 50, 80)])
    codes: list[Point] = [tuple(row) for row in values.tolist()]
    codes += [(0, 0), (39_999, 0), (0, 49), (39_999, 49)]
    case = Case(rows, [True, True], codes, [], [], 5, "balanced")
    case.counts = rng.integers(1, 4, len(codes)).tolist()
    axes, points, counts = case.axes(), np.array(codes, np.int32), np.array(case.counts)
    cuts: list[Cut] = ["balanced", "median"]
    for case.cut, case.weights in itertools.product(cuts, ([1.0, 1.0], [1.0, 0.25])):
        members = partition_points(
            axes, points, counts, k=5, weights=np.array(case.weights), cut=case.cut
        )
        expected = case.divided(list(range(len(codes))))
        assert partition(members) == {frozenset(inside) for inside in expected}


def test_too_few_rows_are_one_class_and_none_are_none() -> None:
    axis = Axis(build_from_rows([(str(x),) for x in range(5)]), ordered=True)
    points = np.array([[0], [4]], np.int32)
    assert partition_points([axis], points, np.array([2, 2]), k=5).tolist() == [0, 0]
    assert partition_points([axis], points[:0], np.zeros(0, np.int64), k=5).tolist() == []
