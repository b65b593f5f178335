"""Optimal and minimal nodes, against a search of every node, row by row from the definitions."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.anonymize.lattice import Lattice, Node, Rollups
from incrowd.anonymize.ola import NoSchemeError, Separable, minimal, objective, optimal
from incrowd.arrays import Floats
from incrowd.codes.frequency import Frequencies, merged
from incrowd.codes.hierarchy import from_rows
from incrowd.errors import ParameterError
from incrowd.measure.diversity import Closeness, Distinct, Entropy, Protected, Rule
from incrowd.measure.loss import LOSSES, LossName, entropy

NULL, OUTSIDE = "null", "outside"
ROOT = "*"


@dataclass(frozen=True)
class Ladder:
    """A hierarchy as a user writes it: a row of labels for each value."""

    rows: tuple[tuple[str, ...], ...]
    other: str | None

    @property
    def height(self) -> int:
        return len(self.rows[0])

    @property
    def rooted(self) -> bool:
        return self.height > 1 and len({row[-1] for row in self.rows}) == 1

    def shown(self, value: str, level: int) -> str:
        """What tells a value apart from others at a level."""
        if self.rooted and level == self.height - 1:
            return "the root"
        if value in (NULL, OUTSIDE):
            return value
        return f"group {next(row[level] for row in self.rows if row[0] == value)}"

    def covers(self, value: str, level: int) -> int:
        """How many values the label that it gets at a level may stand for."""
        if self.rooted and level == self.height - 1:
            return len(self.rows)
        if value == NULL:
            return 1
        if value == OUTSIDE:  # shown as the root, unless it has a label
            return len(self.rows) if self.other is None else 1
        label = next(row[level] for row in self.rows if row[0] == value)
        return sum(row[level] == label for row in self.rows)


Record = tuple[str, ...]


@dataclass
class Case:
    """A table and what is asked of it. ``secrets`` has the sensitive value of each row."""

    ladders: list[Ladder]
    records: list[Record]
    secrets: list[int]
    rules: tuple[Rule, ...]
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
            self.columns.append([{x: ladder.shown(x, level) for x in values} for level in levels])
            self.costs.append([self._costs(ladder, values, level) for level in levels])

    def _costs(self, ladder: Ladder, values: list[str], level: int) -> dict[str, float]:
        """What a row with each value costs at a level, in its column."""
        if self.name == "normalised":
            whole = max(len(ladder.rows) - 1, 1)
            return {x: (ladder.covers(x, level) - 1) / whole for x in values}
        if self.name == "precision":
            return dict.fromkeys(values, level / max(ladder.height - 1, 1))
        groups = Counter(ladder.shown(x, level) for x in values)
        finest = Counter(values)
        if len(finest) == 1:
            return dict.fromkeys(values, 0.0)
        floor = sum(math.log2(finest[x]) for x in values) / len(values)
        scale = math.log2(len(values)) - floor
        return {x: (math.log2(groups[ladder.shown(x, level)]) - floor) / scale for x in values}

    @property
    def nodes(self) -> list[Node]:
        ends = zip(self.low, self.high, strict=True)
        return list(itertools.product(*[range(low, high + 1) for low, high in ends]))

    def classes(self, node: Node) -> dict[Record, list[int]]:
        """The rows of each class."""
        found: dict[Record, list[int]] = {}
        for number, record in enumerate(self.records):
            shown = (self.columns[at][node[at]][x] for at, x in enumerate(record))
            found.setdefault(tuple(shown), []).append(number)
        return found

    def holds(self, rows: list[int]) -> bool:
        inside = Counter(self.secrets[row] for row in rows)
        return len(rows) >= self.k and all(
            obeys(rule, inside, Counter(self.secrets)) for rule in self.rules
        )

    def judged(self, node: Node) -> tuple[int, float]:
        """The rows suppressed at a node, and its loss."""
        shown: list[list[int]] = []
        lost: list[list[int]] = []
        for rows in self.classes(node).values():
            (shown if self.holds(rows) else lost).append(rows)
        total, suppressed = len(self.records), sum(map(len, lost))
        if self.name == "discernibility":
            squares = sum(len(rows) ** 2 for rows in shown)
            return suppressed, (squares + suppressed * total) / total**2
        if self.name == "class-size":
            return suppressed, (total - suppressed) / len(shown) if shown else math.inf
        costs = [
            sum(
                self.weights[at] * self.costs[at][node[at]][value]
                for at, value in enumerate(self.records[row])
            )
            / sum(self.weights)
            for rows in shown
            for row in rows
        ]
        return suppressed, (sum(costs) + suppressed) / total

    @property
    def lattice(self) -> Lattice:
        return Lattice(self.low, self.high)

    @property
    def shares(self) -> Floats:
        return np.array(self.weights)

    def rollups(self) -> Rollups:
        hierarchies = [from_rows(ladder.rows, other=ladder.other) for ladder in self.ladders]
        codes = [
            [
                {NULL: one.null, OUTSIDE: one.outside}.get(x, -1)
                if x in (NULL, OUTSIDE)
                else one.values.index(x)
                for x, one in zip(record, hierarchies, strict=True)
            ]
            for record in self.records
        ]
        ones = np.ones(len(codes), np.int64)
        if not self.rules:
            return Rollups(hierarchies, merged(np.array(codes, np.int32), ones))
        whole = np.column_stack([np.array(codes), self.secrets]).astype(np.int32)
        together = merged(whole, ones)
        overall = np.bincount(self.secrets).astype(np.int64)
        protected = Protected(together.codes[:, -1], overall, self.rules)
        base = Frequencies(together.codes[:, :-1], together.counts)
        return Rollups(hierarchies, base, [protected])


def obeys(rule: Rule, inside: Counter[int], overall: Counter[int]) -> bool:
    """Whether a class satisfies a rule, from its definition."""
    rows = inside.total()
    match rule:
        case Distinct(l=least):
            return len(inside) >= least
        case Entropy(l=least):
            shares = [count / rows for count in inside.values()]
            return math.fsum(-p * math.log(p) for p in shares) >= math.log(least) - 1e-9
        case Closeness(t=t, ordered=ordered):
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
def ladders(draw: st.DrawFn) -> Ladder:
    size = draw(st.integers(1, 5))
    columns = [[str(value) for value in range(size)]]
    groups = list(range(size))
    for level in range(draw(st.integers(0, 2))):
        parents = draw(st.lists(st.integers(0, 2), min_size=5, max_size=5))
        groups = [parents[group] for group in groups]
        columns.append([f"{level}:{group}" for group in groups])
    if draw(st.booleans()):
        columns.append([ROOT] * size)
    return Ladder(tuple(zip(*columns, strict=True)), draw(st.sampled_from([None, "other"])))


RULES: list[Rule] = [
    Distinct(2), Distinct(3), Entropy(1.5), Entropy(2), Entropy(2.4), Closeness(0.2),
    Closeness(0.5), Closeness(0.15, ordered=True), Closeness(0.4, ordered=True),
]  # fmt: skip


@st.composite
def cases(draw: st.DrawFn, *, ruled: bool = False) -> Case:
    found = draw(st.lists(ladders(), min_size=2, max_size=4))
    columns = [
        st.just("0")
        if draw(st.integers(0, 7)) == 0  # a constant column
        else st.sampled_from([*(row[0] for row in ladder.rows)] * 3 + [NULL, OUTSIDE])
        for ladder in found
    ]
    held = draw(
        st.lists(st.tuples(st.tuples(*columns), st.integers(1, 5)), min_size=1, max_size=12)
    )
    records = [record for record, count in held for _ in range(count)]
    secrets: list[int] = []
    for _, count in held:  # all rows of a tuple may have the same: nothing protects them
        alike = draw(st.booleans())
        values = st.lists(st.integers(0, 2), min_size=count, max_size=count)
        secrets += [draw(st.integers(0, 2))] * count if alike else draw(values)
    rules = draw(st.lists(st.sampled_from(RULES), min_size=1, max_size=2)) if ruled else []
    ends = [sorted(draw(st.tuples(*[st.integers(0, x.height - 1)] * 2))) for x in found]
    if draw(st.booleans()):
        ends = [[0, x.height - 1] for x in found]
    return Case(
        found,
        records,
        secrets,
        tuple(rules),
        k=draw(st.sampled_from([1, 1, 2, 3]) if ruled else st.integers(1, 8)),
        limit=draw(st.sampled_from([0, 0, 1, 2, 4, 8, 15, 60])),
        weights=draw(
            st.lists(st.sampled_from([0.5, 1.0, 3.0]), min_size=len(found), max_size=len(found))
        ),
        low=tuple(low for low, _ in ends),
        high=tuple(high for _, high in ends),
        name=draw(st.sampled_from(LOSSES)),
    )


def check_optimal(case: Case) -> None:
    within = {node: judged for node in case.nodes if (judged := case.judged(node))[0] <= case.limit}
    search = {"k": case.k, "limit": case.limit, "loss": case.name, "weights": case.shares}
    if not within:
        with pytest.raises(NoSchemeError, match=f"k = {case.k} and at most {case.limit} rows"):
            optimal(case.rollups(), case.lattice, **search)  # type: ignore[arg-type]
        return
    got = optimal(case.rollups(), case.lattice, **search)  # type: ignore[arg-type]
    assert got.levels in within
    suppressed, loss = within[got.levels]
    assert got.suppressed == suppressed
    assert got.loss == pytest.approx(loss, abs=1e-9)
    assert got.loss == pytest.approx(min(loss for _, loss in within.values()), abs=1e-9)
    assert 1 <= got.evaluated <= case.lattice.size
    if case.name in ("discernibility", "class-size"):  # of whole numbers, so ties are exact
        for child in case.lattice.children(got.levels):
            assert child not in within or within[child][1] > loss


@settings(max_examples=150)
@given(case=cases())
def test_no_node_loses_less_than_the_optimal_one(case: Case) -> None:
    check_optimal(case)


@settings(max_examples=120)
@given(case=cases(ruled=True))
def test_no_node_loses_less_where_sensitive_values_are_protected(case: Case) -> None:
    check_optimal(case)


def check_minimal(case: Case) -> None:
    judged = {node: case.judged(node) for node in case.nodes}
    within = {node for node, (suppressed, _) in judged.items() if suppressed <= case.limit}
    expected = {
        node
        for node in within
        if not any(
            other != node and all(x <= y for x, y in zip(other, node, strict=True))
            for other in within
        )
    }
    search = {"k": case.k, "limit": case.limit, "loss": case.name, "weights": case.shares}
    if not within:
        with pytest.raises(NoSchemeError):
            minimal(case.rollups(), case.lattice, **search)  # type: ignore[arg-type]
        return
    got = minimal(case.rollups(), case.lattice, **search)  # type: ignore[arg-type]
    assert {scheme.levels for scheme in got} == expected
    assert len(got) == len(expected)
    for scheme in got:
        assert scheme.suppressed == judged[scheme.levels][0]
        assert scheme.loss == pytest.approx(judged[scheme.levels][1], abs=1e-9)
        assert 1 <= scheme.evaluated <= case.lattice.size
    losses = [scheme.loss for scheme in got]
    assert losses == sorted(losses)


@settings(max_examples=100)
@given(case=cases())
def test_minimal_nodes_are_all_that_have_no_finer_one(case: Case) -> None:
    check_minimal(case)


@given(case=cases(ruled=True))
def test_minimal_nodes_where_sensitive_values_are_protected(case: Case) -> None:
    if case.limit and not all(isinstance(rule, Distinct) for rule in case.rules):
        with pytest.raises(ParameterError, match="'candidates' .*suppression: 0"):
            minimal(case.rollups(), case.lattice, k=case.k, limit=case.limit)
        case.limit = 0
    check_minimal(case)


def check_bounds(case: Case, nodes: list[Node]) -> None:
    """Every node has taught all it can; what it taught must be true, and tight where it may be."""
    rollups = case.rollups()
    goal = objective(case.name, case.lattice, rollups, limit=case.limit, weights=case.shares)
    for node in nodes:
        classes = rollups.classes(node, k=case.k)
        assert classes is not None
        goal.learn(node, classes)
    for node in nodes:
        suppressed, loss = case.judged(node)
        bound = float(goal.bound[case.lattice.place(node)])
        if suppressed <= case.limit or case.name != "class-size":
            assert bound <= loss + 1e-9
        if isinstance(goal, Separable) and rollups.monotone:
            assert bound == pytest.approx(loss, abs=1e-9)
        if case.name == "discernibility":
            sizes = [len(rows) for rows in case.classes(node).values()]
            small = sum(size for size in sizes if size < case.k)
            squares = sum(size**2 for size in sizes) / len(case.records) ** 2
            assert bound >= max(squares, small / len(case.records)) - 1e-9
        if case.name == "class-size":
            kept = len(case.records) - case.limit
            assert bound >= kept / len(case.classes(node)) - 1e-9


@settings(max_examples=120)
@given(case=cases(ruled=True) | cases(), order=st.randoms(use_true_random=False))
def test_no_bound_exceeds_a_loss(case: Case, order: Random) -> None:
    nodes = list(case.nodes)
    order.shuffle(nodes)
    check_bounds(case, nodes)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("rule", [Entropy(2), Distinct(2)])
def test_no_bound_counts_what_a_coarse_class_alone_loses(name: LossName, rule: Rule) -> None:
    """40 rows of 'a' are protected; joined by 60 of 'b' that are not, they are only by number."""
    rows = (("a", "ab", ROOT), ("b", "ab", ROOT), ("c", "cd", ROOT), ("d", "cd", ROOT))
    records: list[Record] = [*[("a",)] * 40, *[("b",)] * 60, *[("c",)] * 4, *[("d",)] * 4]
    secrets = [*[0, 1] * 20, *[0] * 60, *[0, 1] * 4]
    case = Case([Ladder(rows, None)], records, secrets, (rule,), 2, 60, [1.0], (0,), (2,), name)
    assert case.judged((0,))[0] == 60
    if not rule.monotone:
        assert case.judged((1,))[0] >= 100
    check_bounds(case, case.nodes)
    check_optimal(case)


def plain(name: LossName, *, k: int, limit: int) -> Case:
    """Two hundred and fifty rows over a lattice of 256 nodes."""
    rng = np.random.default_rng(11)
    rows = tuple((str(x), f"{x // 2}", f"{x // 4}", ROOT) for x in range(8))
    ladder = Ladder(rows, None)
    records = [tuple(str(x) for x in row) for row in rng.binomial(7, 0.3, (250, 4)).tolist()]
    ends: tuple[Node, Node] = (0,) * 4, (3,) * 4
    return Case([ladder] * 4, records, [0] * 250, (), k, limit, [1.0] * 4, *ends, name)


@pytest.mark.parametrize("name", LOSSES)
def test_a_search_looks_at_few_nodes_and_tells_how_far_it_is(name: LossName) -> None:
    case = plain(name, k=5, limit=12)
    told: list[tuple[int, int]] = []

    def progress(decided: int, nodes: int) -> None:
        told.append((decided, nodes))

    got = optimal(case.rollups(), case.lattice, k=5, limit=12, loss=name, progress=progress)
    judged = [case.judged(node) for node in case.nodes]
    best = min(loss for suppressed, loss in judged if suppressed <= 12)
    assert got.loss == pytest.approx(best, abs=1e-9)
    assert got.evaluated < case.lattice.size / 3
    decided = [done for done, _ in told]
    assert decided == sorted(decided)
    assert decided[0] < decided[-1]
    assert {nodes for _, nodes in told} == {256}
    assert decided[-1] == 256
    told.clear()
    found = minimal(case.rollups(), case.lattice, k=5, limit=12, loss=name, progress=progress)
    assert found[0].evaluated < case.lattice.size / 3
    assert told[-1] == (256, 256)
    assert all(got.loss <= scheme.loss + 1e-12 for scheme in found)


def test_the_same_search_gives_the_same_answer() -> None:
    case = plain("normalised", k=4, limit=10)
    one = optimal(case.rollups(), case.lattice, k=4, limit=10)
    assert one == optimal(case.rollups(), case.lattice, k=4, limit=10)
    even = optimal(case.rollups(), case.lattice, k=4, limit=10, weights=np.full(4, 2.5))
    assert (one.levels, one.suppressed) == (even.levels, even.suppressed)
    assert one.loss == pytest.approx(even.loss)


def test_a_table_worked_by_hand() -> None:
    """Ages 20, 21, 30 and 31 with 3, 1, 2 and 2 rows; tens, then all; k = 2.

    As they are: the row of 21 is lost, 1/8. In tens: nothing is lost, and each covers 2 of 4
    values, 1/3. So the values win where a row may go, and the tens where none may.
    """
    ages = from_rows([(str(x), str(x // 10), ROOT) for x in (20, 21, 30, 31)])
    held = merged(np.array([[0], [1], [2], [3]], np.int32), np.array([3, 1, 2, 2]))
    lattice = Lattice((0,), (2,))
    one = optimal(Rollups([ages], held), lattice, k=2, limit=1)
    assert (one.levels, one.suppressed) == ((0,), 1)
    assert one.loss == pytest.approx(1 / 8)
    none = optimal(Rollups([ages], held), lattice, k=2, limit=0)
    assert (none.levels, none.suppressed) == ((1,), 0)
    assert none.loss == pytest.approx(1 / 3)
    pair = [scheme.levels for scheme in minimal(Rollups([ages], held), lattice, k=2, limit=0)]
    assert pair == [(1,)]
    sizes = optimal(Rollups([ages], held), lattice, k=2, limit=1, loss="discernibility")
    # as they are: 9 + 4 + 4 and 8 for the lost row; in tens: 16 + 16
    assert sizes.loss == pytest.approx(25 / 64)
    assert optimal(
        Rollups([ages], held), lattice, k=2, limit=0, loss="class-size"
    ).loss == pytest.approx(4)


@pytest.mark.parametrize("name", LOSSES)
def test_of_equally_good_schemes_the_finer_is_taken(name: LossName) -> None:
    """All live in one town: to hide it gains nothing, whatever the loss says of it."""
    ladder = Ladder((("x", ROOT), ("y", ROOT)), None)
    records: list[Record] = [*[("x", "x")] * 5, *[("y", "x")] * 5]
    case = Case([ladder] * 2, records, [0] * 10, (), 5, 0, [1.0] * 2, (0, 0), (1, 1), name)
    assert optimal(case.rollups(), case.lattice, k=5, limit=0, loss=name).levels == (0, 0)


def test_the_optimum_need_not_be_minimal() -> None:
    """Finer nodes within the limit may lose more: rows suppressed cost more than a level."""
    first = Ladder((("0", "*"), ("1", "*")), None)
    second = Ladder(tuple((str(x), "*") for x in range(2)), None)
    records: list[Record] = [*[("0", "0")] * 6, ("1", "0"), ("0", "1")]
    ends: tuple[Node, Node] = (0, 0), (1, 1)
    case = Case([first, second], records, [0] * 8, (), 2, 2, [1.0, 99.0], *ends, "normalised")
    rollups, weights = case.rollups(), np.array(case.weights)
    best = optimal(rollups, case.lattice, k=2, limit=2, weights=weights)
    assert best.levels == (1, 0)
    assert [x.levels for x in minimal(rollups, case.lattice, k=2, limit=2)] == [(0, 0)]


def test_a_single_row_that_a_rule_forbids_is_one_too_many() -> None:
    """Two rows of 'a' differ; the one of 'b' has no company until both are one class."""
    rows = (("a", ROOT), ("b", ROOT))
    records: list[Record] = [("a",), ("a",), ("b",)]
    rules = (Entropy(1.5),)
    case = Case(
        [Ladder(rows, None)], records, [0, 1, 0], rules, 1, 0, [1.0], (0,), (1,), "normalised"
    )
    assert case.judged((0,))[0] == 1
    check_minimal(case)
    assert [x.levels for x in minimal(case.rollups(), case.lattice, k=1, limit=0)] == [(1,)]


@pytest.mark.parametrize("rows", [1, 2, 11, 13, 29, 47, 1000, 2048, 12_345])
def test_a_column_of_one_value_loses_no_entropy(rows: int) -> None:
    """Whatever the rounding of logarithms: the values themselves cost nothing."""
    two = from_rows([("a", ROOT), ("b", ROOT)])
    costs = entropy(two, np.array([rows, 0, 0, 0], dtype=float))
    assert costs[0][0] == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("rule", RULES[1::2])
def test_protected_values_in_a_larger_table(name: LossName, rule: Rule) -> None:
    rng = np.random.default_rng(5)
    case = plain(name, k=3, limit=60)
    case.records = case.records[:120]
    ages = np.array([int(record[0]) for record in case.records])
    case.secrets = np.minimum(ages // 2 + rng.integers(0, 2, 120), 2).tolist()
    case.rules, case.low, case.high = (rule,), (0, 1, 2, 2), (3, 3, 3, 3)
    case.__post_init__()  # the records are others
    for limit in (0, 12, 60):
        case.limit = limit
        check_optimal(case)
