"""Safe Mondrian as one distribution: everything that it shows, over all noise and all coins.

Tiny tables go through :class:`incrowd.methods.safe.scheme.MondrianScheme` itself. Where it would
draw noise it is told which candidate wins, in the search and in every cell of every round, one way
after the other; each way has the probability that the scores and the noise which it asked for give
it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import Any

import mpmath
import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
from support.exact import compute_choice_law, compute_outcomes
from support.search_law import SearchProblem as Searching
from support.search_law import compute_scores

from incrowd.anonymize import safe_mondrian as cutting
from incrowd.anonymize import safe_search as searching
from incrowd.anonymize.safe_mondrian import CellPartition, _CutRound, cut_cells
from incrowd.anonymize.safe_search import Ramp
from incrowd.arrays import Counts
from incrowd.codes.counted_table import CountedTable
from incrowd.codes.frequency import Frequencies, merge_tuples
from incrowd.engine.count import count_tuples
from incrowd.engine.source import local_engine, open_table
from incrowd.methods.base import MakeContext, published_columns
from incrowd.methods.safe import draw as drawing
from incrowd.methods.safe import scheme as schemes
from incrowd.methods.safe.scheme import MondrianScheme
from incrowd.privacy.accountant import Accountant
from incrowd.privacy.events import Event, OneOf, SafeRelease, Selection
from incrowd.privacy.randomness import Randomness, SeededRandomness
from incrowd.privacy.split import BudgetSplit
from incrowd.release.product import Product
from incrowd.spec.build import ColumnHierarchies
from incrowd.spec.file import SpecFile, parse_spec
from incrowd.spec.release import SafeSpec

Row = tuple[str | None, ...]
Table = tuple[Row, ...]
Pairs = Iterable[tuple[Table, Table]]
Shown = tuple[tuple[Row, int], ...]
Output = tuple[Any, Shown]
Distribution = dict[Output, float]
Choice = int | tuple[int, ...]
NEVER = np.iinfo(np.int64).min

NUMBERS = "hierarchy: {intervals: {from: 0, to: 3, widths: [2]}}"
PAIR = "hierarchy: {flat: {values: [x, y]}}"
TREE = "hierarchy: {groups: {All: {ab: [a, b], c: [c]}}}"
MASK = "hierarchy: {mask: {length: 2, alphabet: '01'}}"
MET = "hierarchy: flat"


@dataclass(frozen=True)
class MondrianProblem:
    """Columns, the schemes that are searched, ramps, and what each choice may spend."""

    columns: tuple[str, ...]
    limits: tuple[int | tuple[int, int], ...]
    ramps: tuple[Ramp, ...]
    epsilons: tuple[Fraction, ...]
    objective: str = "rows"
    levels: str = ""

    @property
    def pairs(self) -> tuple[SafeRelease, ...]:
        return tuple(SafeRelease(ramp.k, ramp.beta) for ramp in self.ramps)

    @property
    def split(self) -> BudgetSplit:
        return BudgetSplit(
            3.0, 0.01, OneOf(self.pairs), tuple(float(epsilon) for epsilon in self.epsilons)
        )

    @property
    def file(self) -> SpecFile:
        column_lines = "".join(
            f"  {at}: {{role: quasi, {x}}}\n" for at, x in enumerate(self.columns)
        )
        spec_file = "scheme: mondrian, epsilon: 3, delta: 0.01"
        settings = f"objective: {self.objective}, levels: {{{self.levels}}}"
        return parse_spec(f"columns:\n{column_lines}release: {{{spec_file}, {settings}}}\n")

    def list_events(self, rounds: int | None = None) -> list[Event]:
        """What is charged; a search among one scheme and one ramp is none."""
        spent = self.epsilons if len(self.ramps) > 1 or self.has_search else self.epsilons[1:]
        return [*(Selection(float(epsilon)) for epsilon in spent[:rounds]), OneOf(self.pairs)]

    @property
    def has_search(self) -> bool:
        return any(not isinstance(limit, int) and limit[0] < limit[1] for limit in self.limits)


class UndecidedError(Exception):
    """The script ends here: whoever wrote it must say which candidate wins next."""


class MondrianLaw:
    """A release by safe Mondrian: the distribution of all that it shows, for each table."""

    def __init__(self, problem: MondrianProblem) -> None:
        self.problem, file = problem, problem.file
        self.names = [str(at) for at in range(len(problem.columns))]
        limits = dict(zip(self.names, problem.limits, strict=True))
        assert isinstance(file.spec.release, SafeSpec)
        self.scheme = MondrianScheme(
            file.spec.release, ColumnHierarchies(published_columns(file.spec, "quasi")), limits
        )
        self._known: dict[Table, Distribution] = {}
        self._script: list[Choice] = []

    def __call__(self, table: Table) -> Distribution:
        if table not in self._known:
            self._known[table] = self.compute_distribution(table)
        return self._known[table]

    def compute_distribution(self, table: Table) -> Distribution:
        distribution: Distribution = {}
        for (pair, levels, cells), share in self.list_ways(self.count_table(table)).items():
            sizes = tuple(size for _, size in cells)
            for released_cells, weight in compute_released_law(sizes, pair).items():
                output = (pair, levels), tuple((cells[at][0], size) for at, size in released_cells)
                distribution[output] = distribution.get(output, 0.0) + share * weight
        assert math.fsum(distribution.values()) == pytest.approx(1, abs=1e-9)
        return distribution

    def count_table(self, table: Table) -> CountedTable:
        columns = {name: [row[at] for row in table] for at, name in enumerate(self.names)}
        frame = pl.DataFrame(columns, schema=dict.fromkeys(self.names, pl.String))
        return count_tuples(open_table(frame), self.scheme._declared)

    def list_ways(self, table: CountedTable) -> dict[Any, float]:
        """The pair, the levels of open columns and the cells before the sample; how likely."""
        ways: dict[Any, float] = {}
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(schemes, "make_cell_table", lambda *_, **__: None)
            patch.setattr(drawing, "sample_cells", self._keep_all_cells)
            for product, pair, share in self.list_products(table):
                first = self._round._ramp
                assert pair == self._drawn == SafeRelease(first.k, first.beta)
                assert product.shown is not None
                cells: dict[Row, int] = {}
                frequencies = product.shown.frequencies
                for codes, size in zip(frequencies.codes, frequencies.counts, strict=True):
                    texts = zip(product.shown.labels, codes, strict=True)
                    row = tuple(labels[code] for labels, code in texts)
                    assert row not in cells, "one cell is shown as two"
                    cells[row] = int(size)
                cell_rows = tuple(sorted(((r, n) for r, n in cells.items() if n), key=str))
                way = pair, tuple(column.level for column in product.scheme.values()), cell_rows
                ways[way] = ways.get(way, 0.0) + share
        return ways

    def list_products(
        self, table: CountedTable, bits: Callable[[], Randomness] = lambda: SeededRandomness(0)
    ) -> Iterator[tuple[Product, SafeRelease, float]]:
        """Every way that the choices can go, with its probability."""
        with pytest.MonkeyPatch.context() as patch:
            numbers = {(ramp.k, ramp.beta): ramp for ramp in self.problem.ramps}
            patch.setattr(drawing, "make_ramp", lambda k, beta: numbers[k, beta])
            patch.setattr(searching, "sample_one_sided_noise", self._make_winning_noise)
            patch.setattr(cutting, "sample_one_sided_noise", self._make_zero_noise)
            patch.setattr(np, "argmax", self._take_scripted_choice)
            inner = _CutRound.cut_cells

            def watched(this: _CutRound, epsilon: Fraction, is_done: Any, bits: Randomness) -> Any:
                self._round, self._done = this, is_done
                return inner(this, epsilon, is_done, bits)

            def boxed(axes: Any, points: Any, *args: Any, **more: Any) -> CellPartition:
                return self.adjust_boxes(cut_cells(axes, points, *args, **more), points)

            patch.setattr(_CutRound, "cut_cells", watched)
            patch.setattr(schemes, "cut_cells", boxed)
            yield from self._follow_script(table, bits, [], 1.0)

    def _follow_script(
        self,
        table: CountedTable,
        bits: Callable[[], Randomness],
        script: list[Choice],
        share: float,
    ) -> Iterator[tuple[Product, SafeRelease, float]]:
        self._script = list(script)
        self._heard: Any = None
        context = MakeContext(bits(), local_engine())
        try:
            product = self.scheme.make_product(table, self.problem.split, context)
        except UndecidedError:
            following = list(self._list_next_choices(table, len(script)))
        else:
            parameters = product.parameters
            yield product, SafeRelease(int(parameters["k"]), float(parameters["beta"])), share
            return
        for choice, weight in following:
            if weight:
                yield from self._follow_script(table, bits, [*script, choice], share * weight)

    def _list_next_choices(
        self, table: CountedTable, number: int
    ) -> Iterator[tuple[Choice, float]]:
        if number == 0:
            yield from enumerate(self.compute_search_law(table, self._rate))
            return
        each = [
            self.compute_cell_law(number, cell, self._heard[cell])
            for cell in range(len(self._heard))
        ]
        for choices in itertools.product(*(cell_law.items() for cell_law in each)):
            yield tuple(at for at, _ in choices), math.prod(weight for _, weight in choices)

    def compute_search_law(self, table: CountedTable, rate: Any) -> list[float]:
        """The law of the search."""
        problem = Searching(
            table.hierarchies, self.scheme.make_lattice(table.names), self.problem.ramps,
            self.scheme._release.detail_power, tuple(self.scheme._list_weights(table.names)),
        )  # fmt: skip
        codes, counts = table.frequencies.codes, table.frequencies.counts
        rows = np.repeat(codes, counts, axis=0).tolist()
        return compute_cached_law(tuple(compute_scores(problem, tuple(map(tuple, rows)))), rate)

    def compute_cell_law(
        self, number: int, cell: int, scores: npt.NDArray[np.int64]
    ) -> dict[int, float]:
        """The law of one cell's choice in a round (from 1), by the scores of its candidates."""
        if self._done[cell]:
            return {0: 1.0}  # which is not to be heard
        possible = self.list_possible(cell, scores)
        raised = tuple(int(scores[at]) - int(scores[-1]) for at in possible)
        return dict(zip(possible, self.compute_law(number, raised), strict=True))

    def list_possible(self, cell: int, scores: npt.NDArray[np.int64]) -> list[int]:
        return [at for at, score in enumerate(scores.tolist()) if score != NEVER]

    def compute_law(self, number: int, raised: tuple[int, ...]) -> list[float]:
        return compute_cached_law(raised, self._rate)

    def adjust_boxes(self, boxes: CellPartition, points: Any) -> CellPartition:
        return boxes

    def _record_request(self, sensitivity: int, epsilon: Fraction) -> None:
        self._rate = mpmath.mpf(epsilon.numerator) / epsilon.denominator / sensitivity

    def _make_winning_noise(
        self, count: int, *, sensitivity: int, epsilon: Fraction, bits: Randomness
    ) -> Counts:
        """Noise by which the search finds the candidate that the script names."""
        self._record_request(sensitivity, epsilon)
        if not self._script:
            raise UndecidedError
        noise = np.zeros(count, dtype=np.int64)
        noise[self._script.pop(0)] = 2**50
        return noise

    def _make_zero_noise(
        self, count: int, *, sensitivity: int, epsilon: Fraction, bits: Randomness
    ) -> Counts:
        self._record_request(sensitivity, epsilon)
        return np.zeros(count, dtype=np.int64)

    def _keep_all_cells(
        self, frequencies: Frequencies, *, k: int, beta: float, bits: Any
    ) -> Frequencies:
        """Every cell, whatever its size: what a sample shows of it is worked out."""
        self._drawn = SafeRelease(k, beta)
        return frequencies

    def _take_scripted_choice(
        self, noisy: npt.NDArray[np.int64], axis: int
    ) -> npt.NDArray[np.int64]:
        self._heard = noisy
        if not self._script:
            raise UndecidedError
        return np.array(self._script.pop(0), dtype=np.int64)


def add_empty_cells(table: CountedTable, ghosts: Iterable[tuple[int, ...]]) -> CountedTable:
    """The same table with tuples that no row has, so that their cells are looked at."""
    codes = np.array([*ghosts], dtype=np.int32).reshape(-1, len(table.names))
    frequencies = table.frequencies
    none = np.zeros(len(codes), dtype=np.int64)
    together = (
        np.concatenate([frequencies.codes, codes]),
        np.concatenate([frequencies.counts, none]),
    )
    return replace(table, frequencies=merge_tuples(*together))


@cache
def compute_cached_law(raised: tuple[int, ...], rate: Any) -> list[float]:
    return compute_choice_law(raised, rate)


@cache
def compute_released_law(
    sizes: tuple[int, ...], pair: SafeRelease
) -> dict[tuple[tuple[int, int], ...], float]:
    """What is shown of cells of some sizes: which, and how many rows of each."""
    released_law: dict[tuple[tuple[int, int], ...], float] = {(): 1.0}
    for at, rows in enumerate(sizes):
        weights = compute_outcomes(rows, pair.k, Fraction(pair.beta))
        shares = [weight / sum(weights) for weight in weights]
        ends = [(), *(((at, pair.k + more),) for more in range(len(shares) - 1))]
        released_law = {
            (*before, *end): x * y
            for before, x in released_law.items()
            for end, y in zip(ends, shares, strict=True)
        }
    return released_law


def list_neighbor_tables(values: Sequence[Sequence[str | None]], most: int) -> Pairs:
    """Every table of up to so many rows, beside itself without one of them."""
    rows = list(itertools.product(*values))
    for size in range(1, most + 1):
        for table in itertools.combinations_with_replacement(rows, size):
            for at in sorted({table.index(row) for row in table}):
                yield table, table[:at] + table[at + 1 :]


def list_crowd_pairs(row: Row, sizes: Iterable[int], *others: Row) -> Pairs:
    """So many rows alike beside others, with and without one of them."""
    for size in sizes:
        yield (row,) * size + others, (row,) * (size - 1) + others


def compute_divergence(p: Distribution, q: Distribution, epsilon: float) -> float:
    t = math.exp(epsilon)
    return math.fsum(max(x - t * q.get(output, 0.0), 0.0) for output, x in p.items())


def compute_delta_usage(
    law: MondrianLaw, pairs: Pairs, at: Iterable[float], events: list[Event] | None = None
) -> list[tuple[float, float]]:
    """The largest divergence over the claimed delta: of row present, and absent, per epsilon."""
    accountant, table_pairs = Accountant(events or law.problem.list_events()), list(pairs)
    delta_usage = []
    for epsilon in at:
        claimed = accountant.delta(epsilon=epsilon)
        present = max(
            compute_divergence(law(first), law(other), epsilon) for first, other in table_pairs
        )
        absent = max(
            compute_divergence(law(other), law(first), epsilon) for first, other in table_pairs
        )
        delta_usage.append((present / claimed, absent / claimed))
    return delta_usage


def make_epsilon_grid(problem: MondrianProblem) -> list[float]:
    """Epsilons around what the choices may cost together."""
    spent = sum(event.epsilon for event in problem.list_events() if isinstance(event, Selection))
    return [0.0, 0.1 * spent, 0.4 * spent, 0.75 * spent, spent, 1.1 * spent, spent + 0.5]
