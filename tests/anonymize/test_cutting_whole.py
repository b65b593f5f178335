"""Safe Mondrian as one distribution: everything that it shows, over all noise and all coins.

Tiny tables go through :class:`incrowd.schemes.Cut` itself. Where it would draw noise it is told
which candidate wins, in the search and in every cell of every round, one way after the other;
each way has the probability that the scores and the noise which it asked for give it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, partial
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
from anonymize.test_search import Coins, drawn, scores
from anonymize.test_search import Problem as Searching
from exact import law, outcomes

from incrowd import schemes
from incrowd.anonymize import cutting
from incrowd.anonymize import search as searching
from incrowd.anonymize.cutting import Cells, _Round, cut
from incrowd.anonymize.frequency import Frequencies, merged
from incrowd.anonymize.recoding import positions
from incrowd.anonymize.safe import safe
from incrowd.anonymize.search import Ramp, W, ramp
from incrowd.engine.count import Counted
from incrowd.engine.source import open_table
from incrowd.errors import IncrowdError
from incrowd.evaluating import axes_of
from incrowd.pairing import Budget
from incrowd.privacy.accountant import Accountant
from incrowd.privacy.events import Event, OneOf, SafeRelease, Selection
from incrowd.privacy.randomness import Counts, Randomness, SeededRandomness
from incrowd.product import Product, published
from incrowd.release import _write_scheme, publish
from incrowd.safely import Safe
from incrowd.schemes import Cut, Walk, contiguous
from incrowd.specfile import SpecFile, parse

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
class Problem:
    """Columns, the schemes that are searched, ramps, and what each choice may spend."""

    columns: tuple[str, ...]
    limits: tuple[int | tuple[int, int], ...]
    ramps: tuple[Ramp, ...]
    epsilons: tuple[Fraction, ...]
    objective: str = "rows"
    levels: str = ""

    @property
    def pairs(self) -> tuple[SafeRelease, ...]:
        return tuple(SafeRelease(one.k, one.beta) for one in self.ramps)

    @property
    def budget(self) -> Budget:
        return Budget(3.0, 0.01, self.pairs, tuple(float(epsilon) for epsilon in self.epsilons))

    @property
    def file(self) -> SpecFile:
        listed = "".join(f"  {at}: {{role: quasi, {x}}}\n" for at, x in enumerate(self.columns))
        asked = "scheme: mondrian, epsilon: 3, delta: 0.01"
        own = f"objective: {self.objective}, levels: {{{self.levels}}}"
        return parse(f"columns:\n{listed}release: {{{asked}, {own}}}\n")

    def events(self, rounds: int | None = None) -> list[Event]:
        """What is charged; a search among one scheme and one ramp is none."""
        spent = self.epsilons if len(self.ramps) > 1 or self.searches else self.epsilons[1:]
        return [*(Selection(float(epsilon)) for epsilon in spent[:rounds]), OneOf(self.pairs)]

    @property
    def searches(self) -> bool:
        return any(not isinstance(limit, int) and limit[0] < limit[1] for limit in self.limits)


class UndecidedError(Exception):
    """The script ends here: whoever wrote it must say which candidate wins next."""


class Whole:
    """A release by safe Mondrian: the distribution of all that it shows, for each table."""

    def __init__(self, problem: Problem) -> None:
        self.problem, file = problem, problem.file
        self.names = [str(at) for at in range(len(problem.columns))]
        limits = dict(zip(self.names, problem.limits, strict=True))
        self.scheme = Cut(file, published(file.spec, "quasi"), limits)
        self._known: dict[Table, Distribution] = {}
        self._script: list[Choice] = []

    def __call__(self, table: Table) -> Distribution:
        if table not in self._known:
            self._known[table] = self.distribution(table)
        return self._known[table]

    def distribution(self, table: Table) -> Distribution:
        found: Distribution = {}
        for (pair, levels, cells), share in self.ways(self.counted(table)).items():
            sizes = tuple(size for _, size in cells)
            for kept, weight in released(sizes, pair).items():
                output = (pair, levels), tuple((cells[at][0], size) for at, size in kept)
                found[output] = found.get(output, 0.0) + share * weight
        assert math.fsum(found.values()) == pytest.approx(1, abs=1e-9)
        return found

    def counted(self, table: Table) -> Counted:
        columns = {name: [row[at] for row in table] for at, name in enumerate(self.names)}
        frame = pl.DataFrame(columns, schema=dict.fromkeys(self.names, pl.String))
        return self.scheme.counted(open_table(frame))

    def ways(self, whole: Counted) -> dict[Any, float]:
        """The pair, the levels of open columns and the cells before the sample; how likely."""
        found: dict[Any, float] = {}
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(schemes, "evaluate", lambda *_, **__: None)
            patch.setattr(schemes, "cells", lambda *_, **__: None)
            patch.setattr(schemes, "safe", self._all)
            for product, pair, share in self.products(whole):
                one = self._round._ramp
                assert pair == self._drawn == SafeRelease(one.k, one.beta)
                assert product.shown is not None
                cells: dict[Row, int] = {}
                frequencies = product.shown.frequencies
                for codes, size in zip(frequencies.codes, frequencies.counts, strict=True):
                    texts = zip(product.shown.labels, codes, strict=True)
                    row = tuple(labels[code] for labels, code in texts)
                    assert row not in cells, "one cell is shown as two"
                    cells[row] = int(size)
                listed = tuple(sorted(((r, n) for r, n in cells.items() if n), key=str))
                way = pair, tuple(column.level for column in product.scheme.values()), listed
                found[way] = found.get(way, 0.0) + share
        return found

    def products(
        self, whole: Counted, bits: Callable[[], Randomness] = lambda: SeededRandomness(0)
    ) -> Iterator[tuple[Product, SafeRelease, float]]:
        """Every way that the choices can go, with its probability."""
        with pytest.MonkeyPatch.context() as patch:
            numbers = {(one.k, one.beta): one for one in self.problem.ramps}
            patch.setattr(schemes, "ramp", lambda k, beta: numbers[k, beta])
            patch.setattr(searching, "one_sided_noise", self._winner)
            patch.setattr(cutting, "one_sided_noise", self._none)
            patch.setattr(np, "argmax", self._scripted)
            inner = _Round.cut

            def watched(this: _Round, epsilon: Fraction, done: Any, bits: Randomness) -> Any:
                self._round, self._done = this, done
                return inner(this, epsilon, done, bits)

            def boxed(axes: Any, points: Any, *args: Any, **more: Any) -> Cells:
                return self.boxes(cut(axes, points, *args, **more), points)

            patch.setattr(_Round, "cut", watched)
            patch.setattr(schemes, "cut", boxed)
            yield from self._followed(whole, bits, [], 1.0)

    def _followed(
        self,
        whole: Counted,
        bits: Callable[[], Randomness],
        script: list[Choice],
        share: float,
    ) -> Iterator[tuple[Product, SafeRelease, float]]:
        self._script = list(script)
        self._heard: Any = None
        walk = Walk(bits(), lambda _: None, lambda _done, _all: None)
        try:
            product, pair = self.scheme.product(whole, self.problem.budget, walk)
        except UndecidedError:
            following = list(self._next(whole, len(script)))
        else:
            yield product, pair, share
            return
        for choice, weight in following:
            if weight:
                yield from self._followed(whole, bits, [*script, choice], share * weight)

    def _next(self, whole: Counted, number: int) -> Iterator[tuple[Choice, float]]:
        if number == 0:
            yield from enumerate(self.searched(whole, self._rate))
            return
        each = [self.choice(number, cell, self._heard[cell]) for cell in range(len(self._heard))]
        for choices in itertools.product(*(one.items() for one in each)):
            yield tuple(at for at, _ in choices), math.prod(weight for _, weight in choices)

    def searched(self, whole: Counted, rate: Any) -> list[float]:
        """The law of the search."""
        problem = Searching(
            whole.hierarchies, self.scheme.lattice(whole.names), self.problem.ramps,
            self.scheme._power, tuple(self.scheme._weights(whole.names)),
        )  # fmt: skip
        codes, counts = whole.frequencies.codes, whole.frequencies.counts
        rows = np.repeat(codes, counts, axis=0).tolist()
        return known_law(tuple(scores(problem, tuple(map(tuple, rows)))), rate)

    def choice(self, number: int, cell: int, own: npt.NDArray[np.int64]) -> dict[int, float]:
        """The law of one cell's choice in a round (from 1), by the scores of its candidates."""
        if self._done[cell]:
            return {0: 1.0}  # which is not to be heard
        possible = self.possible(cell, own)
        raised = tuple(int(own[at]) - int(own[-1]) for at in possible)
        return dict(zip(possible, self.law(number, raised), strict=True))

    def possible(self, cell: int, own: npt.NDArray[np.int64]) -> list[int]:
        return [at for at, score in enumerate(own.tolist()) if score != NEVER]

    def law(self, number: int, raised: tuple[int, ...]) -> list[float]:
        return known_law(raised, self._rate)

    def boxes(self, made: Cells, points: Any) -> Cells:
        return made

    def _asked(self, sensitivity: int, epsilon: Fraction) -> None:
        self._rate = mpmath.mpf(epsilon.numerator) / epsilon.denominator / sensitivity

    def _winner(
        self, count: int, *, sensitivity: int, epsilon: Fraction, bits: Randomness
    ) -> Counts:
        """Noise by which the search finds the candidate that the script names."""
        self._asked(sensitivity, epsilon)
        if not self._script:
            raise UndecidedError
        noise = np.zeros(count, dtype=np.int64)
        noise[self._script.pop(0)] = 2**50
        return noise

    def _none(self, count: int, *, sensitivity: int, epsilon: Fraction, bits: Randomness) -> Counts:
        self._asked(sensitivity, epsilon)
        return np.zeros(count, dtype=np.int64)

    def _all(self, frequencies: Frequencies, *, k: int, beta: float, bits: Any) -> Frequencies:
        """Every cell, whatever its size: what a sample shows of it is worked out."""
        self._drawn = SafeRelease(k, beta)
        return frequencies

    def _scripted(self, noisy: npt.NDArray[np.int64], axis: int) -> npt.NDArray[np.int64]:
        self._heard = noisy
        if not self._script:
            raise UndecidedError
        return np.array(self._script.pop(0), dtype=np.int64)


def haunted(whole: Counted, ghosts: Iterable[tuple[int, ...]]) -> Counted:
    """The same table with tuples that no row has, so that their cells are looked at."""
    codes = np.array([*ghosts], dtype=np.int32).reshape(-1, len(whole.names))
    known = whole.frequencies
    none = np.zeros(len(codes), dtype=np.int64)
    together = np.concatenate([known.codes, codes]), np.concatenate([known.counts, none])
    return replace(whole, frequencies=merged(*together))


@cache
def known_law(raised: tuple[int, ...], rate: Any) -> list[float]:
    return law(raised, rate)


@cache
def released(sizes: tuple[int, ...], pair: SafeRelease) -> dict[tuple[tuple[int, int], ...], float]:
    """What is shown of cells of some sizes: which, and how many rows of each."""
    found: dict[tuple[tuple[int, int], ...], float] = {(): 1.0}
    for at, rows in enumerate(sizes):
        weights = outcomes(rows, pair.k, Fraction(pair.beta))
        shares = [weight / sum(weights) for weight in weights]
        ends = [(), *(((at, pair.k + more),) for more in range(len(shares) - 1))]
        found = {
            (*before, *end): x * y
            for before, x in found.items()
            for end, y in zip(ends, shares, strict=True)
        }
    return found


def family(values: Sequence[Sequence[str | None]], most: int) -> Pairs:
    """Every table of up to so many rows, beside itself without one of them."""
    rows = list(itertools.product(*values))
    for size in range(1, most + 1):
        for table in itertools.combinations_with_replacement(rows, size):
            for at in sorted({table.index(row) for row in table}):
                yield table, table[:at] + table[at + 1 :]


def crowds(row: Row, sizes: Iterable[int], *others: Row) -> Pairs:
    """So many rows alike beside others, with and without one of them."""
    for size in sizes:
        yield (row,) * size + others, (row,) * (size - 1) + others


def divergence(p: Distribution, q: Distribution, epsilon: float) -> float:
    t = math.exp(epsilon)
    return math.fsum(max(x - t * q.get(output, 0.0), 0.0) for output, x in p.items())


def used_up(
    whole: Whole, pairs: Pairs, at: Iterable[float], events: list[Event] | None = None
) -> list[tuple[float, float]]:
    """The largest divergence over the claimed delta: of row present, and absent, per epsilon."""
    accountant, listed = Accountant(events or whole.problem.events()), list(pairs)
    found = []
    for epsilon in at:
        claimed = accountant.delta(epsilon=epsilon)
        present = max(divergence(whole(one), whole(other), epsilon) for one, other in listed)
        absent = max(divergence(whole(other), whole(one), epsilon) for one, other in listed)
        found.append((present / claimed, absent / claimed))
    return found


def grid(problem: Problem) -> list[float]:
    """Epsilons around what the choices may cost together."""
    spent = sum(event.epsilon for event in problem.events() if isinstance(event, Selection))
    return [0.0, 0.1 * spent, 0.4 * spent, 0.75 * spent, spent, 1.1 * spent, spent + 0.5]


# Small tables: every table of a few rows.

ONCE, HALF, TWICE = Fraction(1), Fraction(1, 2), Fraction(2)
NUMERALS = ("0", "1", "2", "3")
XY = ("x", "y")


def alone(*columns: str, start: Sequence[int], pair: tuple[int, float], **more: Any) -> Problem:
    """Cuts by themselves, from a scheme that depends on no data."""
    epsilons = (ONCE, *more.pop("rounds", (HALF, HALF)))
    return Problem(columns, tuple(start), (ramp(*pair),), epsilons, **more)


# Problem, the values of each column, and rows at most.
SMALL = [
    (alone(NUMBERS, start=[2], pair=(2, 0.5)), [NUMERALS], 5),
    (alone(NUMBERS, start=[1], pair=(1, 0.25), rounds=(HALF, ONCE)), [NUMERALS], 4),
    (alone(NUMBERS, start=[2], pair=(1, 0.5), rounds=(ONCE, HALF)), [("0", "3", None, "9")], 4),
    (
        alone(TREE, start=[2], pair=(2, 0.5), rounds=(HALF, TWICE), objective="balanced"),
        [("a", "b", "c", None)],
        4,
    ),
    (
        alone(f"weight: 3, {TREE}", PAIR, start=[1, 1], pair=(1, 0.25), objective="detail"),
        [("a", "c"), XY],
        3,
    ),
    (alone(NUMBERS, PAIR, start=[2, 1], pair=(2, 0.5), rounds=(ONCE, ONCE)), [("0", "3"), XY], 3),
    (
        # What fits no mask is shown as if it did.
        alone(NUMBERS, f"other: 1*, {MASK}", start=[2, 1], pair=(2, 0.5)),
        [("0", "1"), ("00", "10", "q")],
        3,
    ),
    (
        alone(TREE, PAIR, start=[1, 1], pair=(2, 0.5), levels="0: 1"),
        [("a", "b", "c"), XY],
        3,
    ),
    (alone(NUMBERS, start=[2], pair=(2, 0.5), rounds=(HALF, HALF, HALF)), [("0", "1", "3")], 4),
]


@pytest.mark.parametrize(("problem", "values", "most"), SMALL)
def test_cuts_and_release_together_stay_within_the_accounted_delta(
    problem: Problem, values: list[Sequence[str | None]], most: int
) -> None:
    found = used_up(Whole(problem), family(values, most), grid(problem))
    assert max(max(both) for both in found) <= 1 + 1e-9
    assert max(present for present, _ in found) > 0.999  # a cell that is new uses it up
    assert found[0][0] > 0.35  # and without any epsilon most of it counts
    assert found[0][1] > 0.35


SEARCHED = [
    (
        Problem((NUMBERS, PAIR), ((0, 2), (0, 1)), (ramp(2, 0.5),), (ONCE, HALF, ONCE)),
        [("0", "3"), XY],
        2,
    ),
    (
        Problem((NUMBERS,), ((0, 2),), (ramp(2, 0.5), ramp(1, 0.25)), (HALF, HALF, HALF)),
        [NUMERALS],
        3,
    ),
    (
        Problem((MASK, PAIR), ((0, 2), (0, 1)), (ramp(2, 0.5),), (HALF, HALF, ONCE)),
        [("00", "1q"), XY],
        3,
    ),
    (
        Problem((MET, NUMBERS), ((0, 1), (0, 2)), (ramp(2, 0.5),), (HALF, HALF, ONCE), "balanced"),
        [("p", "q"), ("0", "3")],
        3,
    ),
]


@pytest.mark.parametrize(("problem", "values", "most"), SEARCHED)
def test_with_the_search_before_them_too(
    problem: Problem, values: list[Sequence[str | None]], most: int
) -> None:
    assert [type(event) for event in problem.events()] == [Selection] * 3 + [OneOf]
    found = used_up(Whole(problem), family(values, most), grid(problem))
    assert max(max(both) for both in found) <= 1 + 1e-9
    assert max(present for present, _ in found) > (0.6 if len(problem.ramps) > 1 else 0.999)
    assert found[0][0] > 0.35


def test_what_is_shown_of_cells_is_what_all_coins_of_the_sample_give() -> None:
    """The enumeration takes a cell's law from its size; here it is drawn row by row."""
    for sizes in [(1,), (3,), (2, 2), (1, 3), (4, 1), (2, 1, 2)]:
        for pair in (SafeRelease(1, 0.25), SafeRelease(2, 0.5), SafeRelease(3, 0.75)):
            codes = np.arange(len(sizes), dtype=np.int32).reshape(-1, 1)
            cells = Frequencies(codes, np.array(sizes, dtype=np.int64))
            found: dict[tuple[tuple[int, int], ...], float] = {}
            for coins in drawn(sum(sizes)):
                kept = safe(cells, k=pair.k, beta=pair.beta, bits=Coins(coins))
                at = tuple(zip(kept.codes[:, 0].tolist(), kept.counts.tolist(), strict=True))
                weight = pair.beta ** sum(coins) * (1 - pair.beta) ** (len(coins) - sum(coins))
                found[at] = found.get(at, 0.0) + weight
            assert found == pytest.approx(released(sizes, pair))


# Crowds: so many rows that the release alone tells little, and the choices count.

SLIGHT = f"weight: 0.001, {NUMBERS}"


def crowded(first: Fraction, second: Fraction) -> Problem:
    """A column that decides nearly all scores, beside one that may win all the same."""
    return Problem((SLIGHT, PAIR), (2, 1), (Ramp(20, 0.5, 60, 1000, 1000),), (ONCE, first, second))


CROWDS = list(crowds(("0", "x"), range(60, 66)))


@pytest.mark.parametrize(
    ("problem", "tight"),
    [(crowded(ONCE, ONCE), 0.75), (crowded(HALF, ONCE), 0.45)],
)
def test_crowds_stay_within_the_accounted_delta_and_every_round_is_needed(
    problem: Problem, tight: float
) -> None:
    whole, at = Whole(problem), grid(problem)
    found = used_up(whole, CROWDS, at)
    assert max(max(both) for both in found) <= 1 + 1e-9
    assert min(found[0]) > tight
    first_alone = used_up(whole, CROWDS, at, problem.events(rounds=1))
    assert max(max(both) for both in first_alone) > 1.1


@pytest.mark.parametrize("one", [Ramp(20, 0.5, 60, 1000, 1000), ramp(20, 0.5), ramp(5, 0.1)])
@pytest.mark.parametrize("rounds", [(ONCE, HALF), (HALF, ONCE)])
def test_the_choices_alone_lose_what_they_spend_and_hardly_less(
    one: Ramp, rounds: tuple[Fraction, Fraction]
) -> None:
    """The boxes before the sample: the largest log ratio is the sum of the epsilons, nearly."""
    whole = Whole(Problem((SLIGHT, PAIR), (2, 1), (one,), (ONCE, *rounds)))
    worst = 0.0
    for pair in crowds(("0", "x"), range(one.a + 1, one.a + 12)):
        with_, without = ({}, {})  # type: dict[Any, float], dict[Any, float]
        for table, laws in zip(pair, (with_, without), strict=True):
            for (_, _, cells), share in whole.ways(whole.counted(table)).items():
                boxes = tuple(row for row, _ in cells)
                laws[boxes] = laws.get(boxes, 0.0) + share
        assert with_.keys() == without.keys()
        worst = max(worst, *(abs(math.log(with_[at] / without[at])) for at in with_))
    spent = float(sum(rounds))
    assert 0.97 * spent < worst <= spent + 1e-9


# Planted: each of these must be seen.


class HalfTheNoise(Whole):
    """In one of the rounds."""

    def __init__(self, problem: Problem, number: int) -> None:
        super().__init__(problem)
        self._number = number

    def law(self, number: int, raised: tuple[int, ...]) -> list[float]:
        return known_law(raised, self._rate * (2 if number == self._number else 1))


class LastWithoutNoise(Whole):
    """The last round takes the best candidate."""

    def law(self, number: int, raised: tuple[int, ...]) -> list[float]:
        if number + 1 < len(self.problem.epsilons):
            return super().law(number, raised)
        return [float(at == raised.index(max(raised))) for at in range(len(raised))]


class OnTheSample(Whole):
    """The very sample is cut that is published."""

    def distribution(self, table: Table) -> Distribution:
        found: Distribution = {}
        (pair,) = self.problem.pairs
        for coins in drawn(len(table)):
            sample = tuple(row for row, kept in zip(table, coins, strict=True) if kept)
            weight = pair.beta ** len(sample) * (1 - pair.beta) ** (len(table) - len(sample))
            for (_, levels, cells), share in self.ways(self.counted(sample)).items():
                output = (pair, levels), tuple((row, n) for row, n in cells if n >= pair.k)
                found[output] = found.get(output, 0.0) + share * weight
        return found


class DataExtremes(Whole):
    """Boxes that end at the first and last value met."""

    def boxes(self, made: Cells, points: Any) -> Cells:
        low, high = np.full_like(made.low, np.iinfo(np.int32).max), np.full_like(made.high, -1)
        np.minimum.at(low, made.members, points)
        np.maximum.at(high, made.members, points)
        return replace(made, low=low, high=high)


class NoEmptyParts(Whole):
    """A cut is no candidate where all rows would fall into one part."""

    def possible(self, cell: int, own: npt.NDArray[np.int64]) -> list[int]:
        here, staying = self._round._cells.members == cell, len(own) - 1
        return [
            at
            for at in super().possible(cell, own)
            if at == staying or len(np.unique(self._round._parts(at)[here])) > 1
        ]


class ReluctantByCells(Whole):
    """Staying is worth less, the more cells have rows: those without any are then missed."""

    def law(self, number: int, raised: tuple[int, ...]) -> list[float]:
        gain = math.ceil(math.log(len(self._heard)) / self._rate)
        return known_law((*(score + gain for score in raised[:-1]), raised[-1]), self._rate)


CORNERS = (("x", "x"), ("x", "y"), ("y", "x"))
PLAIN = alone(NUMBERS, start=[2], pair=(2, 0.5))
# Cuts of the second column alone can pay; a person in a far cell ought to change nothing here.
FAR = ((("0", "x"),) * 60 + (("2", "y"),), (("0", "x"),) * 60)


@pytest.mark.parametrize(
    ("planted", "problem", "pairs", "excess"),
    [
        (lambda problem: HalfTheNoise(problem, 1), crowded(ONCE, ONCE), CROWDS, 4.0),
        (lambda problem: HalfTheNoise(problem, 2), crowded(ONCE, ONCE), CROWDS, 4.0),
        (LastWithoutNoise, crowded(ONCE, ONCE), CROWDS, 100.0),
        (
            OnTheSample,
            Problem((PAIR, PAIR), (1, 1), (Ramp(2, 0.25, 1, 1000, 1000),), (ONCE, Fraction(4))),
            [(CORNERS, CORNERS[1:])],
            1.4,
        ),
        (DataExtremes, PLAIN, list(family([("0", "1", "3")], 4)), 2.0),
        (NoEmptyParts, PLAIN, list(family([("0", "1", "3")], 4)), 1.1),
        (
            ReluctantByCells,
            Problem((NUMBERS, PAIR), (1, 1), (Ramp(20, 0.5, 60, 1000, 1000),), (ONCE, HALF, HALF)),
            [FAR],
            1.4,
        ),
    ],
)
def test_planted_faults_are_not_covered(
    planted: Callable[[Problem], Whole],
    problem: Problem,
    pairs: list[tuple[Table, Table]],
    excess: float,
) -> None:
    wrong = used_up(planted(problem), pairs, grid(problem))
    assert max(max(both) for both in wrong) > excess
    right = used_up(Whole(problem), pairs, grid(problem))
    assert max(max(both) for both in right) <= 1 + 1e-9


# Claims that the proof rests on.


@pytest.mark.parametrize(
    ("problem", "table", "ghosts"),
    [
        (PLAIN, (("0",),) * 3 + (("1",),), [(3,), (4,), (5,)]),
        (alone(NUMBERS, start=[1], pair=(2, 0.5)), (("0",),) * 4, [(1,), (2,), (3,), (4,)]),
        (
            alone(NUMBERS, PAIR, start=[1, 1], pair=(1, 0.5)),
            (("0", "x"),) * 2 + (("1", "x"),) * 2,
            [(0, 1), (3, 0), (3, 1)],
        ),
        (alone(TREE, start=[1], pair=(2, 0.5)), (("a",),) * 3, [(1,), (2,), (3,)]),
    ],
)
def test_looking_at_cells_without_rows_would_change_no_output(
    problem: Problem, table: Table, ghosts: list[tuple[int, ...]]
) -> None:
    whole = Whole(problem)
    counted = whole.counted(table)
    known, seen = whole.ways(counted), whole.ways(haunted(counted, ghosts))
    assert len(haunted(counted, ghosts).frequencies) > len(counted.frequencies)
    assert seen == pytest.approx(known, rel=1e-9)


class FirstScores(Whole):
    """Stops at the first round."""

    def _next(self, whole: Counted, number: int) -> Iterator[tuple[Choice, float]]:
        return iter(()) if number else super()._next(whole, number)


def test_scores_are_what_the_docstring_says() -> None:
    """Of rows that repeat, with weights, beside columns that are not cut; from root and halves."""
    columns, one = (MASK, f"weight: 2, {NUMBERS}", TREE, PAIR), Ramp(2, 0.5, 1, 5, 9)
    # The mask keeps a half, the group of c all: three tenths together.
    table = tuple(("01", value, "c", "x") for value in (*"0000", *"11", *"333", None, None))
    bonus = math.ceil(0.5 * W * 9 / 0.5 * math.log(3))

    def w(numbers: float, pair: float) -> int:
        return int(W * (0.4 * numbers + 0.2 * pair + 0.3) ** 2)

    expected = {
        # psi is 55 of all eleven rows; 30, 15 and 9 of the halves and of null.
        2: [[w(2 / 3, 0) * 45 + w(1, 0) * 9, w(0, 1) * 55, w(0, 0) * 55 + bonus]],
        1: [  # it is 20 and 9 of the values in the first half
            [w(1, 0) * 29, w(2 / 3, 1) * 30, w(2 / 3, 0) * 30 + bonus],
            [w(1, 0) * 15, w(2 / 3, 1) * 15, w(2 / 3, 0) * 15 + bonus],
            [NEVER, w(1, 1) * 9, w(1, 0) * 9 + bonus],
        ],
    }
    for start, scored in expected.items():
        limits = (1, start, 1, 1)
        whole = FirstScores(
            Problem(columns, limits, (one,), (ONCE, HALF), "balanced", levels="2: 1")
        )
        assert not list(whole.products(whole.counted(table)))
        assert whole._heard.tolist() == scored


def test_a_cell_that_stays_is_not_cut_later() -> None:
    """It keeps its box with the probability of its first choice, however many rounds follow."""
    table = (("0",),) * 4 + (("3",),)
    shares = []
    for rounds in ((HALF,), (HALF, ONCE), (HALF, ONCE, TWICE)):
        whole = Whole(alone(NUMBERS, start=[2], pair=(2, 0.5), rounds=rounds))
        ways = whole.ways(whole.counted(table))
        shares.append(sum(share for (_, _, cells), share in ways.items() if cells[0][0] == ("*",)))
    assert 0.01 < shares[0] < 0.99
    assert shares == pytest.approx([shares[0]] * 3)


def test_what_noise_is_asked_for_is_what_is_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    """The epsilons and the sensitivity of the search and of each round, as published."""
    asked: list[tuple[float, float]] = []
    for module in (searching, cutting):
        inner = module.one_sided_noise

        def heard(count: int, inner: Any = inner, **more: Any) -> Counts:
            asked.append((float(more["epsilon"]), more["sensitivity"]))
            return inner(count, **more)  # type: ignore[no-any-return]

        monkeypatch.setattr(module, "one_sided_noise", heard)
    draw = np.random.default_rng(1)
    frame = pl.DataFrame({"0": draw.integers(0, 4, 400), "1": draw.choice(["x", "y"], 400)})
    made = publish(frame, crowded(ONCE, ONCE).file, bits=SeededRandomness(1))
    *selections, one_of = made.certificate.events
    assert [epsilon for epsilon, _ in asked] == [event["epsilon"] for event in selections]
    pairs = [ramp(event["k"], event["beta"]) for event in one_of["events"]]
    chosen = ramp(made.certificate.k, float(made.certificate.parameters["beta"]))
    expected = [max(one.d for one in pairs), chosen.d, chosen.d]
    assert [sensitivity for _, sensitivity in asked] == [W * d for d in expected]
    spent = Accountant([*(Selection(event["epsilon"]) for event in selections), OneOf(
        SafeRelease(event["k"], event["beta"]) for event in one_of["events"]
    )])  # fmt: skip
    assert spent.delta(epsilon=3.0) <= 0.01


def drawn_boxes(whole: Whole, table: Table, copies: int) -> dict[Any, int]:
    """How often real cuts, of so many copies of a table at once, make each set of cells."""
    problem, counted = whole.problem, whole.counted(table)
    columns = whole.scheme._columns
    axes = {at: contiguous(axis) for at, axis in enumerate(axes_of(counted, columns))}
    points = positions(list(axes.values()), counted.frequencies.codes)
    weights = whole.scheme._weights(counted.names)
    levels = [limit if isinstance(limit, int) else limit[1] for limit in problem.limits]
    start = schemes._cells_of(axes, counted, levels, weights / weights.sum())
    many = Cells(
        np.tile(start.low, (copies, 1)),
        np.tile(start.high, (copies, 1)),
        (start.members + len(start.low) * np.arange(copies)[:, None]).ravel(),
        np.tile(start.beside, copies),
    )
    counts = np.tile(counted.frequencies.counts, copies)
    made = cut(
        list(axes.values()), np.tile(points, (copies, 1)), counts, many,
        ramp=problem.ramps[0], epsilons=problem.epsilons[1:], power=whole.scheme._power,
        shares=weights / weights.sum(), bits=SeededRandomness(7),
    )  # fmt: skip
    labels = [axis.labels(made.low[:, at], made.high[:, at]) for at, axis in axes.items()]
    shown = np.stack([codes[made.members].reshape(copies, -1) for _, codes in labels], axis=2)
    found: dict[Any, int] = {}
    for ways, times in zip(*np.unique(shown, axis=0, return_counts=True), strict=True):
        cells: dict[Row, int] = {}
        for codes, size in zip(ways, counted.frequencies.counts.tolist(), strict=True):
            row = tuple(texts[code] for (texts, _), code in zip(labels, codes, strict=True))
            cells[row] = cells.get(row, 0) + size
        listed = tuple(sorted(cells.items(), key=str))
        found[listed] = found.get(listed, 0) + int(times)
    return found


@pytest.mark.parametrize(
    ("problem", "table"),
    [
        (PLAIN, (("0",),) * 3 + (("1",), ("2",), ("3",), (None,))),
        (SMALL[4][0], (("a", "x"),) * 3 + (("b", "x"), ("c", "y"))),
        (SMALL[5][0], (("0", "x"),) * 3 + (("1", "y"), ("3", "x"))),
    ],
)
def test_real_cuts_follow_the_law(problem: Problem, table: Table) -> None:
    """Within six deviations, so a false alarm is rarer than 1e-7; with 1.2 times less noise not."""
    copies = 20_000

    def worst(whole: Whole) -> float:
        laws = {cells: share for (_, _, cells), share in whole.ways(whole.counted(table)).items()}
        found = drawn_boxes(whole, table, copies)
        assert found.keys() <= laws.keys()
        return max(
            abs(found.get(cells, 0) - copies * share) / math.sqrt(copies * share * (1 - share) + 1)
            for cells, share in laws.items()
        )

    class Less(Whole):
        def law(self, number: int, raised: tuple[int, ...]) -> list[float]:
            return known_law(raised, self._rate * 1.2)

    assert worst(Whole(problem)) < 6
    assert worst(Less(problem)) > 6


# Columns that do not list their values.


def files(whole: Whole, table: Table, folder: Path) -> dict[Output, set[bytes]]:
    """Whatever a reader gets, over all choices and coins: what it shows, and every byte of it."""
    found: dict[Output, set[bytes]] = {}
    counted = whole.counted(table)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(schemes, "evaluate", lambda *_, **__: None)
        for coins in drawn(len(table)):
            for product, pair, _ in whole.products(counted, partial(Coins, coins)):
                rows = tuple(product.data.frame().rows())
                listed = tuple(sorted(((row, rows.count(row)) for row in set(rows)), key=str))
                levels = tuple(column.level for column in product.scheme.values())
                found.setdefault(((pair, levels), listed), set()).add(written(product, folder))
    return found


def written(product: Product, folder: Path) -> bytes:
    """The data, and the scheme as the certificate has it."""
    (folder / "scheme").mkdir(exist_ok=True)
    parts = [f"{product.rows} {product.classes} {product.smallest_class}".encode()]
    for ending in ("csv", "parquet"):
        product.data.write(folder / f"data.{ending}")
        parts.append((folder / f"data.{ending}").read_bytes())
    for name, recoded in product.scheme.items():
        parts.append(_write_scheme(name, recoded, folder).model_dump_json().encode())
    return b"\n".join(parts)


@pytest.mark.parametrize(
    ("column", "level", "others", "lonely"),
    [
        (MASK, 0, ("10", "11"), ("00", "1q", "01")),
        (MET, 0, ("m", "n"), ("a", None)),
        # At level 1 the first value met decides which of *0 and *1 has the smaller code.
        (MASK.replace("2,", "2, hide: left,"), 1, ("01", "10"), ("00",)),
    ],
)
def test_nothing_tells_of_a_value_that_only_one_person_has(
    column: str, level: int, others: tuple[str, str], lonely: tuple[str | None, ...], tmp_path: Path
) -> None:
    """What shows the same is the same to the byte, and a crowd of one changes nothing at all."""
    whole = Whole(alone(column, PAIR, start=[level, 1], pair=(2, 0.5), rounds=(HALF,)))
    table: Table = ((others[0], "x"),) * 2 + ((others[1], "y"),) * 2
    without = files(whole, table, tmp_path)
    assert len(without) > 5
    for value in lonely:
        with_ = files(whole, (*table, (value, "x")), tmp_path)
        assert len(with_.keys() & without.keys()) > 5
        for same in with_.keys() | without.keys():
            assert len(with_.get(same, set()) | without.get(same, set())) == 1
        if level == 0:
            assert with_.keys() == without.keys()


def test_a_listed_value_may_show_its_box_but_an_open_one_its_level_alone() -> None:
    """All labels are known from the spec and the levels: none is made of values met."""
    whole = Whole(alone(MASK, NUMBERS, start=[1, 2], pair=(1, 0.5)))
    table = (("00", "0"), ("01", "3"), ("10", "3"), ("11", None))
    shown = {
        row
        for _, _, cells in whole.ways(whole.counted(table))
        for row, _ in cells
    }  # fmt: skip
    assert {row[0] for row in shown} == {"0*", "1*"}
    assert {row[1] for row in shown} == {"*", "0-1", "2-3", "0", "3", None}


def test_an_empty_table_is_made_like_any_other() -> None:
    """It neighbours a table of one row; who learns that it failed knows which of them it was."""
    whole = Whole(PLAIN)
    walk = Walk(SeededRandomness(1), lambda _: None, lambda *_: None)
    one, _ = whole.scheme.product(whole.counted((("0",),)), whole.problem.budget, walk)
    assert one.rows == 0
    none, _ = whole.scheme.product(whole.counted(()), whole.problem.budget, walk)
    assert none.rows == 0


def test_a_slice_of_open_columns_alone_is_made_or_refused_without_the_table() -> None:
    file = alone(MASK, MET, PAIR, start=[0, 0, 0], pair=(2, 0.5)).file
    release = file.spec.release
    assert release is not None
    slices = release.model_copy(update={"slices": [("0", "1"), ("1", "2")]})
    spec = file.spec.model_copy(update={"release": slices})
    frame = pl.DataFrame({"0": ["00", "01"] * 40, "1": ["p", "q"] * 40, "2": ["x", "y"] * 40})
    try:
        Safe(replace(file, spec=spec))
    except IncrowdError:
        return
    assert len(publish(frame, replace(file, spec=spec), bits=SeededRandomness(1)).tables) == 2
