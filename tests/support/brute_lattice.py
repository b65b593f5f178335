"""Every node of a small lattice judged row by row, from the definitions."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

from incrowd.anonymize.lattice import Lattice, Node, Rollups
from incrowd.arrays import Floats
from incrowd.codes.frequency import Frequencies, merge_tuples
from incrowd.codes.hierarchy import build_from_rows
from incrowd.measure.diversity import (
    ClosenessRule,
    DistinctRule,
    DiversityRule,
    EntropyRule,
    SensitiveColumn,
)
from incrowd.measure.loss import LOSSES, LossName

NULL, OUTSIDE = "null", "outside"
ROOT = "*"


@dataclass(frozen=True)
class LabelRows:
    """A hierarchy as a user writes it: a row of labels for each value."""

    rows: tuple[tuple[str, ...], ...]
    other: str | None

    @property
    def height(self) -> int:
        return len(self.rows[0])

    @property
    def has_root(self) -> bool:
        return self.height > 1 and len({row[-1] for row in self.rows}) == 1

    def get_label(self, value: str, level: int) -> str:
        """What tells a value apart from others at a level."""
        if self.has_root and level == self.height - 1:
            return "the root"
        if value in (NULL, OUTSIDE):
            return value
        return f"group {next(row[level] for row in self.rows if row[0] == value)}"

    def count_covered(self, value: str, level: int) -> int:
        """How many values the label that it gets at a level may stand for."""
        if self.has_root and level == self.height - 1:
            return len(self.rows)
        if value == NULL:
            return 1
        if value == OUTSIDE:  # shown as the root, unless it has a label
            return len(self.rows) if self.other is None else 1
        label = next(row[level] for row in self.rows if row[0] == value)
        return sum(row[level] == label for row in self.rows)


Record = tuple[str, ...]


@dataclass
class LatticeCase:
    """A table and what is asked of it. ``secrets`` has the sensitive value of each row."""

    ladders: list[LabelRows]
    records: list[Record]
    secrets: list[int]
    rules: tuple[DiversityRule, ...]
    k: int
    limit: int
    weights: list[float]
    low: Node
    high: Node
    name: LossName
    columns: list[list[dict[str, str]]] = field(init=False)
    costs: list[list[dict[str, float]]] = field(init=False)

    def __post_init__(self) -> None:
        self.columns, self.costs = [], []
        for at, ladder in enumerate(self.ladders):
            values = [record[at] for record in self.records]
            levels = range(ladder.height)
            self.columns.append(
                [{x: ladder.get_label(x, level) for x in values} for level in levels]
            )
            self.costs.append([self._compute_costs(ladder, values, level) for level in levels])

    def _compute_costs(self, ladder: LabelRows, values: list[str], level: int) -> dict[str, float]:
        """What a row with each value costs at a level, in its column."""
        if self.name == "normalized":
            steps = max(len(ladder.rows) - 1, 1)
            return {x: (ladder.count_covered(x, level) - 1) / steps for x in values}
        if self.name == "precision":
            return dict.fromkeys(values, level / max(ladder.height - 1, 1))
        groups = Counter(ladder.get_label(x, level) for x in values)
        finest = Counter(values)
        if len(finest) == 1:
            return dict.fromkeys(values, 0.0)
        floor = sum(math.log2(finest[x]) for x in values) / len(values)
        scale = math.log2(len(values)) - floor
        return {x: (math.log2(groups[ladder.get_label(x, level)]) - floor) / scale for x in values}

    @property
    def nodes(self) -> list[Node]:
        ends = zip(self.low, self.high, strict=True)
        return list(itertools.product(*[range(low, high + 1) for low, high in ends]))

    def group_rows(self, node: Node) -> dict[Record, list[int]]:
        """The rows of each class."""
        result: dict[Record, list[int]] = {}
        for number, record in enumerate(self.records):
            labels = (self.columns[at][node[at]][x] for at, x in enumerate(record))
            result.setdefault(tuple(labels), []).append(number)
        return result

    def is_acceptable(self, rows: list[int]) -> bool:
        inside = Counter(self.secrets[row] for row in rows)
        return len(rows) >= self.k and all(
            allows_class(rule, inside, Counter(self.secrets)) for rule in self.rules
        )

    def judge_node(self, node: Node) -> tuple[int, float]:
        """The rows suppressed at a node, and its loss."""
        published: list[list[int]] = []
        lost: list[list[int]] = []
        for rows in self.group_rows(node).values():
            (published if self.is_acceptable(rows) else lost).append(rows)
        total, suppressed = len(self.records), sum(map(len, lost))
        if self.name == "discernibility":
            squares = sum(len(rows) ** 2 for rows in published)
            return suppressed, (squares + suppressed * total) / total**2
        if self.name == "class-size":
            return suppressed, (total - suppressed) / len(published) if published else math.inf
        costs = [
            sum(
                self.weights[at] * self.costs[at][node[at]][value]
                for at, value in enumerate(self.records[row])
            )
            / sum(self.weights)
            for rows in published
            for row in rows
        ]
        return suppressed, (sum(costs) + suppressed) / total

    @property
    def lattice(self) -> Lattice:
        return Lattice(self.low, self.high)

    @property
    def shares(self) -> Floats:
        return np.array(self.weights)

    def make_rollups(self) -> Rollups:
        hierarchies = [build_from_rows(ladder.rows, other=ladder.other) for ladder in self.ladders]
        codes = [
            [
                {NULL: hierarchy.null, OUTSIDE: hierarchy.outside}.get(x, -1)
                if x in (NULL, OUTSIDE)
                else hierarchy.values.index(x)
                for x, hierarchy in zip(record, hierarchies, strict=True)
            ]
            for record in self.records
        ]
        ones = np.ones(len(codes), np.int64)
        if not self.rules:
            return Rollups(hierarchies, merge_tuples(np.array(codes, np.int32), ones))
        row_codes = np.column_stack([np.array(codes), self.secrets]).astype(np.int32)
        together = merge_tuples(row_codes, ones)
        overall = np.bincount(self.secrets).astype(np.int64)
        protected = SensitiveColumn(together.codes[:, -1], overall, self.rules)
        base = Frequencies(together.codes[:, :-1], together.counts)
        return Rollups(hierarchies, base, [protected])


def allows_class(rule: DiversityRule, inside: Counter[int], overall: Counter[int]) -> bool:
    """Whether a class satisfies a rule, from its definition."""
    rows = inside.total()
    match rule:
        case DistinctRule(l=least):
            return len(inside) >= least
        case EntropyRule(l=least):
            shares = [count / rows for count in inside.values()]
            return math.fsum(-p * math.log(p) for p in shares) >= math.log(least) - 1e-9
        case ClosenessRule(t=t, ordered=ordered):
            values = range(max(overall) + 1)  # codes from 0, held by anyone or not
            apart = [
                Fraction(inside[x], rows) - Fraction(overall[x], overall.total()) for x in values
            ]
            if len(values) == 1:
                return True
            if ordered:
                upto = [abs(sum(apart[: x + 1], Fraction(0))) for x in values]
                moved = sum(upto, Fraction(0)) / (len(values) - 1)
            else:
                moved = sum((x for x in apart if x > 0), Fraction(0))
            return float(moved) <= t + 1e-9
    raise AssertionError(rule)


@st.composite
def label_rows(draw: st.DrawFn) -> LabelRows:
    size = draw(st.integers(1, 5))
    columns = [[str(value) for value in range(size)]]
    groups = list(range(size))
    for level in range(draw(st.integers(0, 2))):
        parents = draw(st.lists(st.integers(0, 2), min_size=5, max_size=5))
        groups = [parents[group] for group in groups]
        columns.append([f"{level}:{group}" for group in groups])
    if draw(st.booleans()):
        columns.append([ROOT] * size)
    return LabelRows(tuple(zip(*columns, strict=True)), draw(st.sampled_from([None, "other"])))


RULES: list[DiversityRule] = [
    DistinctRule(2),
    DistinctRule(3),
    EntropyRule(1.5),
    EntropyRule(2),
    EntropyRule(2.4),
    ClosenessRule(0.2),
    ClosenessRule(0.5),
    ClosenessRule(0.15, ordered=True),
    ClosenessRule(0.4, ordered=True),
]


@st.composite
def lattice_cases(draw: st.DrawFn, *, ruled: bool = False) -> LatticeCase:
    lattice_case = draw(st.lists(label_rows(), min_size=2, max_size=4))
    columns = [
        st.just("0")
        if draw(st.integers(0, 7)) == 0  # a constant column
        else st.sampled_from([*(row[0] for row in ladder.rows)] * 3 + [NULL, OUTSIDE])
        for ladder in lattice_case
    ]
    record_counts = draw(
        st.lists(st.tuples(st.tuples(*columns), st.integers(1, 5)), min_size=1, max_size=12)
    )
    records = [record for record, count in record_counts for _ in range(count)]
    secrets: list[int] = []
    for _, count in record_counts:  # all rows of a tuple may have the same: nothing protects them
        alike = draw(st.booleans())
        values = st.lists(st.integers(0, 2), min_size=count, max_size=count)
        secrets += [draw(st.integers(0, 2))] * count if alike else draw(values)
    rules = draw(st.lists(st.sampled_from(RULES), min_size=1, max_size=2)) if ruled else []
    ends = [sorted(draw(st.tuples(*[st.integers(0, x.height - 1)] * 2))) for x in lattice_case]
    if draw(st.booleans()):
        ends = [[0, x.height - 1] for x in lattice_case]
    return LatticeCase(
        lattice_case,
        records,
        secrets,
        tuple(rules),
        k=draw(st.sampled_from([1, 1, 2, 3]) if ruled else st.integers(1, 8)),
        limit=draw(st.sampled_from([0, 0, 1, 2, 4, 8, 15, 60])),
        weights=draw(
            st.lists(
                st.sampled_from([0.5, 1.0, 3.0]),
                min_size=len(lattice_case),
                max_size=len(lattice_case),
            )
        ),
        low=tuple(low for low, _ in ends),
        high=tuple(high for _, high in ends),
        name=draw(st.sampled_from(LOSSES)),
    )
