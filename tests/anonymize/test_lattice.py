"""NodeClasses at the nodes of a lattice, against counting row by row."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.anonymize import lattice as module
from incrowd.anonymize.lattice import Lattice, Node, NodeClasses, Rollups
from incrowd.codes.frequency import Frequencies, merge_tuples
from incrowd.codes.hierarchy import Hierarchy, build_from_rows
from incrowd.errors import ParameterError
from incrowd.measure.diversity import ClosenessRule, DistinctRule, EntropyRule, SensitiveColumn

Row = tuple[int, ...]
Cell = tuple[int, ...]


@dataclass
class Table:
    """Rows as codes of level 0, one by one, and the hierarchies of their columns."""

    hierarchies: list[Hierarchy]
    rows: list[Row]

    def frequencies(self) -> Frequencies:
        return merge_tuples(np.array(self.rows, dtype=np.int32), np.ones(len(self.rows), np.int64))

    def nodes(self) -> Iterator[Node]:
        return itertools.product(*[range(hierarchy.height) for hierarchy in self.hierarchies])

    def cell(self, row: Row, node: Node) -> Cell:
        pairs = zip(self.hierarchies, row, node, strict=True)
        return tuple(int(hierarchy.groups[level][code]) for hierarchy, code, level in pairs)

    def sizes(self, node: Node) -> Counter[Cell]:
        return Counter(self.cell(row, node) for row in self.rows)


def hierarchy(draw: st.DrawFn) -> Hierarchy:
    """Nested levels over a few values; with or without a root, and with a label for others."""
    size = draw(st.integers(1, 5))
    columns = [[str(value) for value in range(size)]]
    groups = list(range(size))
    for level in range(draw(st.integers(0, 2))):
        parents = draw(st.lists(st.integers(0, 2), min_size=5, max_size=5))
        groups = [parents[group] for group in groups]
        columns.append([f"level {level}, group {group}" for group in groups])
    if draw(st.booleans()):
        columns.append(["*"] * size)
    other = draw(st.sampled_from([None, "other"]))
    return build_from_rows(list(zip(*columns, strict=True)), other=other)


@st.composite
def tables(draw: st.DrawFn) -> Table:
    """Two to four columns; every code of level 0 may occur, null and outside among them."""
    hierarchies = [hierarchy(draw) for _ in range(draw(st.integers(2, 4)))]
    codes = [st.integers(0, tree.outside) for tree in hierarchies]
    rows = st.tuples(st.tuples(*codes), st.integers(1, 5))
    distinct = draw(st.lists(rows, min_size=1, max_size=12))
    return Table(hierarchies, [row for row, count in distinct for _ in range(count)])


def seeded(seed: int, *, values: int, columns: int, distinct: int, most: int) -> Table:
    """A table of many values: its cells at level 0 are far more than its rows."""
    rng = np.random.default_rng(seed)
    halves = [(f"{value:02}", f"{value // 4}", "*") for value in range(values)]
    hierarchies = [build_from_rows(halves, exact=True) for _ in range(columns)]
    some = rng.integers(0, values + 2, (distinct, columns))
    rows = np.repeat(some, rng.integers(1, most + 1, distinct), axis=0)
    return Table(hierarchies, [tuple(row) for row in rows.tolist()])


def compare(table: Table, rollups: Rollups, node: Node, k: int, limit: int | None) -> None:
    sizes = table.sizes(node)
    small = sum(size for size in sizes.values() if size < k)
    result = rollups.count_classes(node, k=k, limit=limit)
    if limit is not None and small > limit:
        assert result is None
        return
    assert result is not None
    cells = [tuple(cell) for cell in rollups.decode_keys(node, result.keys).tolist()]
    assert cells == sorted(sizes)
    assert result.sizes.tolist() == [sizes[cell] for cell in cells]
    assert result.lost.tolist() == result.surely.tolist() == [sizes[cell] < k for cell in cells]
    assert result.suppressed == result.surely_suppressed == small
    members = rollups.find_members(node, result)
    tuples = rollups.frequencies.codes.tolist()
    assert [cells[at] for at in members] == [table.cell(tuple(row), node) for row in tuples]


@given(table=tables(), k=st.integers(1, 8), limit=st.none() | st.integers(0, 30))
def test_classes_are_those_counted_row_by_row(table: Table, k: int, limit: int | None) -> None:
    rollups = Rollups(table.hierarchies, table.frequencies())
    for node in table.nodes():
        compare(table, rollups, node, k, limit)


@pytest.mark.parametrize("most", [1, 3])
@pytest.mark.parametrize("sparse", [0, 4, 1 << 20])
def test_buckets_and_sorting_change_nothing(
    sparse: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many cells for few tuples, so that keys are sorted, and buckets hold several classes.

    Above level 0 the keys of tuples in ascending order do not ascend.
    """
    monkeypatch.setattr(module, "_SPARSE", sparse)
    table = seeded(3, values=40, columns=3, distinct=300, most=most)
    rollups = Rollups(table.hierarchies, table.frequencies())
    for node in table.nodes():
        sizes = table.sizes(node)
        for k in (2, 3, 5):
            small = sum(size for size in sizes.values() if size < k)
            for limit in (0, small - 1, small, small + 1, len(table.rows), None):
                if limit is None or limit >= 0:
                    compare(table, rollups, node, k, limit)


@pytest.mark.parametrize("most", [1, 36, 1 << 12])
def test_columns_looked_up_together_give_the_same_keys(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Columns of 6 codes one by one, in pairs, and (with 60 tuples and more) in threes."""
    table = seeded(4, values=4, columns=4, distinct=600, most=2)
    alone = [[at] for at in range(4)]
    monkeypatch.setattr(module, "_BUNDLED", most)
    rollups = Rollups(table.hierarchies, table.frequencies())
    together = {1: alone, 36: [[0, 1], [2, 3]], 1 << 12: [[0, 1, 2], [3]]}
    assert rollups._bundles == together[most]
    for node in table.nodes():
        compare(table, rollups, node, 2, None)
    few = Rollups(table.hierarchies, Frequencies(rollups.frequencies.codes[:5], np.ones(5, int)))
    assert few._bundles == alone


@given(table=tables(), data=st.data())
def test_cells_of_coarser_nodes_are_those_of_the_tuples(table: Table, data: st.DataObject) -> None:
    rollups = Rollups(table.hierarchies, table.frequencies())
    low = data.draw(st.sampled_from(list(table.nodes())))
    above = rollups.roll_up_to(low)
    assert len(above.frequencies) <= above.bound_cells(low)
    for node in table.nodes():
        if all(level >= least for level, least in zip(node, low, strict=True)):
            for cells, expected in zip(
                above.count_cells(node), rollups.count_cells(node), strict=True
            ):
                assert cells.tolist() == expected.tolist()


def test_buckets_decide_without_counting_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where small buckets hold too many rows, nothing is sorted; where not, classes decide."""
    table = seeded(3, values=16, columns=3, distinct=300, most=2)
    rollups = Rollups(table.hierarchies, table.frequencies())
    grouped = 0
    inner = rollups._group_keys

    def counting(*args: object, **kwargs: object) -> object:
        nonlocal grouped
        grouped += 1
        return inner(*args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(rollups, "_group_keys", counting)
    assert rollups.count_classes((0, 0, 0), k=3, limit=20) is None
    assert grouped == 0
    small = sum(size for size in table.sizes((0, 0, 0)).values() if size < 3)
    assert rollups.count_classes((0, 0, 0), k=3, limit=small - 1) is None
    assert rollups.count_classes((0, 0, 0), k=3, limit=small) is not None
    assert grouped == 2


@given(seed=st.integers(0, 1000), k=st.integers(1, 6))
def test_the_sorted_and_the_dense_path_agree(seed: int, k: int) -> None:
    """The same tuples among few cells (counted in place) and among many (sorted)."""
    rng = np.random.default_rng(seed)
    few = [build_from_rows([(f"{value:03}",) for value in range(4)], exact=True) for _ in range(2)]
    many = [
        build_from_rows([(f"{value:03}",) for value in range(100)], exact=True) for _ in range(2)
    ]
    codes = merge_tuples(rng.integers(0, 4, (30, 2)).astype(np.int32), rng.integers(1, 4, 30))
    dense, sorted_ = Rollups(few, codes), Rollups(many, codes)
    dense_classes, sorted_classes = (
        dense.count_classes((0, 0), k=k),
        sorted_.count_classes((0, 0), k=k),
    )
    assert dense_classes is not None
    assert sorted_classes is not None
    assert (
        dense.decode_keys((0, 0), dense_classes.keys).tolist()
        == sorted_.decode_keys((0, 0), sorted_classes.keys).tolist()
    )
    assert dense_classes.sizes.tolist() == sorted_classes.sizes.tolist()
    assert dense_classes.lost.tolist() == sorted_classes.lost.tolist()
    assert (
        dense.find_members((0, 0), dense_classes).tolist()
        == sorted_.find_members((0, 0), sorted_classes).tolist()
    )


@given(table=tables(), sensitive=st.lists(st.integers(0, 3), min_size=60, max_size=60))
def test_lost_are_classes_that_break_a_rule_and_surely_lost_those_of_monotone_rules(
    table: Table, sensitive: list[int]
) -> None:
    rows = [(*row, value) for row, value in zip(table.rows, sensitive, strict=False)]
    together = merge_tuples(np.array(rows, dtype=np.int32), np.ones(len(rows), np.int64))
    overall = np.bincount([row[-1] for row in rows], minlength=4)
    rules = (DistinctRule(2), EntropyRule(1.8), ClosenessRule(0.6))
    protected = SensitiveColumn(together.codes[:, -1], overall, rules)
    base = Frequencies(together.codes[:, :-1], together.counts)
    rollups = Rollups(table.hierarchies, base, [protected])
    assert not rollups.is_monotone
    for node in itertools.islice(table.nodes(), 40):
        inside: dict[Cell, Counter[int]] = {}
        for *row, value in rows:
            inside.setdefault(table.cell(tuple(row), node), Counter())[value] += 1
        result = rollups.count_classes(node, k=2)
        assert result is not None
        cells = [tuple(cell) for cell in rollups.decode_keys(node, result.keys).tolist()]
        assert cells == sorted(inside)
        surely = [inside[c].total() < 2 or len(inside[c]) < 2 for c in cells]
        spread = np.array([[inside[c][value] for value in range(4)] for c in cells])
        first, two = (rule.check_classes(spread, overall).tolist() for rule in rules[1:])
        assert result.surely.tolist() == surely
        assert result.lost.tolist() == [
            a or not (b and c) for a, b, c in zip(surely, first, two, strict=True)
        ]
        rows_of = [inside[c].total() for c in cells]
        assert result.suppressed == sum(itertools.compress(rows_of, result.lost))
        assert result.surely_suppressed == sum(itertools.compress(rows_of, surely))
        # what is only possibly lost must not exclude a node
        limited = rollups.count_classes(node, k=2, limit=result.surely_suppressed)
        assert limited is not None
        if result.surely_suppressed:
            assert rollups.count_classes(node, k=2, limit=result.surely_suppressed - 1) is None


def test_rules_of_every_column_must_be_monotone() -> None:
    tree = build_from_rows([("a",), ("b",)])
    base = merge_tuples(np.array([[0], [1]], dtype=np.int32), np.array([3, 4]))
    codes, overall = np.zeros(2, np.int32), np.array([7])
    plain = SensitiveColumn(codes, overall, (DistinctRule(1), DistinctRule(2)))
    mixed = SensitiveColumn(codes, overall, (DistinctRule(1), ClosenessRule(0.1)))
    assert Rollups([tree], base).is_monotone
    assert Rollups([tree], base, [plain]).is_monotone
    assert not Rollups([tree], base, [plain, mixed]).is_monotone


@given(table=tables())
def test_means_by_column_count_every_row(table: Table) -> None:
    rollups = Rollups(table.hierarchies, table.frequencies())
    costs = [
        [np.linspace(level, 9.0, len(labels)) for level, labels in enumerate(hierarchy.labels)]
        for hierarchy in table.hierarchies
    ]
    for at, means in enumerate(rollups.compute_column_means(costs)):
        hierarchy = table.hierarchies[at]
        codes = [row[at] for row in table.rows]
        assert rollups.rows_by_code[at].tolist() == [
            codes.count(x) for x in range(hierarchy.outside + 1)
        ]
        for level in range(hierarchy.height):
            paid = [float(costs[at][level][hierarchy.groups[level][code]]) for code in codes]
            assert means[level] == pytest.approx(sum(paid) / len(paid))


def test_more_combinations_than_numbers_are_counted_all_the_same() -> None:
    """Whether a node can be looked at must not depend on where a search goes."""
    ten = build_from_rows([(f"{value:03}", "*") for value in range(60)], exact=True)
    codes = np.zeros((3, 11), dtype=np.int32)
    codes[1, 10], codes[2, 0] = 5, 7
    rollups = Rollups([ten] * 11, merge_tuples(codes, np.array([4, 1, 2])))
    for node in ((0,) * 11, (0,) * 10 + (1,)):  # 62**11 cells, and 62**10, which fit
        result = rollups.count_classes(node, k=2)
        assert result is not None
        cell_codes = rollups.decode_keys(node, result.keys)
        seen = dict(zip(map(tuple, cell_codes.tolist()), result.sizes.tolist(), strict=True))
        last = 5 if node[10] == 0 else 0
        expected = {(0,) * 11: 4 if last else 5, (7,) + (0,) * 10: 2}
        if last:
            expected[(*(0,) * 10, 5)] = 1
        assert seen == expected
        assert (
            cell_codes[rollups.find_members(node, result)].tolist()
            == (codes if last else codes * ([1] * 10 + [0]))[np.lexsort(codes.T[::-1])].tolist()
        )


nodes_of = st.integers(1, 4).flatmap(
    lambda width: st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=width, max_size=width
    )
)


@given(ends=nodes_of, data=st.data())
def test_places_of_finer_and_coarser_nodes(
    ends: list[tuple[int, int]], data: st.DataObject
) -> None:
    low, high = tuple(min(pair) for pair in ends), tuple(max(pair) for pair in ends)
    lattice = Lattice(low, high)
    nodes = list(itertools.product(*[range(a, b + 1) for a, b in zip(low, high, strict=True)]))
    assert lattice.size == len(nodes)
    assert [lattice.get_node(place) for place in range(lattice.size)] == nodes
    marks = np.zeros(lattice.shape, dtype=int)
    for node in nodes:
        marks[lattice.locate_node(node)] += 1
    assert (marks == 1).all()
    node = data.draw(st.sampled_from(nodes))
    for places, nowhere in ((lattice.slice_finer(node), -1), (lattice.slice_coarser(node), 1)):
        marked = np.zeros(lattice.shape, dtype=bool)
        marked[places] = True
        for other in nodes:
            within = all(nowhere * (x - y) >= 0 for x, y in zip(other, node, strict=True))
            assert bool(marked[lattice.locate_node(other)]) == within
    children = {
        other
        for other in nodes
        if sum(node) - sum(other) == 1 and all(x <= y for x, y in zip(other, node, strict=True))
    }
    result = list(lattice.iterate_children(node))
    assert set(result) == children
    assert len(result) == len(children)


def test_a_lattice_of_too_many_nodes_is_refused() -> None:
    assert Lattice((0,) * 7, (9,) * 7).size == 10**7
    with pytest.raises(ParameterError, match="at most 20,000,000 schemes.*mondrian"):
        Lattice((0,) * 8, (9,) * 8).refuse_large()
    Lattice((0,) * 7, (9,) * 7).refuse_large()


def test_suppressed_counts_rows_not_classes() -> None:
    lost = np.array([True, False, True])
    surely = np.array([True, False, False])
    classes = NodeClasses(np.arange(3), np.array([4, 50, 7]), lost, surely)
    assert (classes.suppressed, classes.surely_suppressed) == (11, 4)
