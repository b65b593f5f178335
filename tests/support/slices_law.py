"""The private choice of slices as one law: scores of tables, and all that ``slices`` can answer."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cache

import mpmath
import numpy as np
import pytest
from hypothesis import strategies as st
from support.exact import compute_choice_law

from incrowd.anonymize import safe_slices as module
from incrowd.anonymize.safe_slices import choose_slices, compute_dependence, count_choices
from incrowd.anonymize.slice_rule import SliceRule
from incrowd.arrays import Counts
from incrowd.codes.frequency import Frequencies, merge_tuples
from incrowd.privacy.randomness import Randomness, SeededRandomness

U = 1024
Row = tuple[int, ...]
Table = tuple[Row, ...]
Slices = tuple[tuple[int, ...], ...]
Law = dict[Slices, float]
BITS = SeededRandomness(0)
HUGE = Fraction(10**6)


def count_listed_rows(rows: Mapping[Row, int], columns: int = 2) -> Frequencies:
    codes = np.array(list(rows), dtype=np.int32).reshape(-1, columns)
    return merge_tuples(codes, np.array(list(rows.values()), dtype=np.int64))


def count_table(table: Table, columns: int) -> Frequencies:
    return count_listed_rows(Counter(table), columns)


# Scores.


def row_tables(columns: int, most: int = 30) -> st.SearchStrategy[dict[Row, int]]:
    """Rows with codes that leave gaps, each several times."""
    row = st.tuples(*[st.sampled_from([0, 1, 2, 3, 7])] * columns)
    return st.dictionaries(row, st.integers(1, most), max_size=9)


# What one row moves.


def add_row(rows: dict[Row, int], row: Row) -> dict[Row, int]:
    return {**rows, row: rows.get(row, 0) + 1}


class RecordedSelect:
    """``select`` as it is called; the answers are given, then 0."""

    def __init__(self, answers: Sequence[int] = ()) -> None:
        self.answers = answers
        self.seen: list[tuple[list[int], int, Fraction, Randomness]] = []

    def __call__(
        self, scores: Counts, *, sensitivity: int, epsilon: Fraction, bits: Randomness
    ) -> int:
        place = len(self.seen)
        self.seen.append((scores.tolist(), sensitivity, epsilon, bits))
        return self.answers[place] if place < len(self.answers) else 0


# All choices as one law.


@cache
def compute_noisy_law(scores: tuple[int, ...], sensitivity: int, epsilon: Fraction) -> list[float]:
    return compute_choice_law(
        scores, mpmath.mpf(epsilon.numerator) / epsilon.denominator / sensitivity
    )


@cache
def compute_half_noise_law(
    scores: tuple[int, ...], sensitivity: int, epsilon: Fraction
) -> list[float]:
    return compute_noisy_law(scores, sensitivity // 2, epsilon)


@cache
def compute_exact_law(scores: tuple[int, ...], sensitivity: int, epsilon: Fraction) -> list[float]:
    best = scores.index(max(scores))
    return [float(at == best) for at in range(len(scores))]


Choice = Callable[[tuple[int, ...], int, Fraction], list[float]]


@cache
def compute_pair_scores(table: Table, columns: int, least: int = 0) -> tuple[int, ...]:
    pair_scores = count_table(table, columns)
    pairs = itertools.combinations(range(columns), 2)
    return tuple(compute_dependence(pair_scores, *pair, least) for pair in pairs)


class SliceChoiceLaw:
    """The law of ``slices`` by a table's scores: a walk through all that select can answer."""

    def __init__(
        self,
        columns: int,
        most: int,
        number: int,
        epsilons: list[Fraction],
        choice: Choice = compute_noisy_law,
    ) -> None:
        assert len(epsilons) == count_choices(SliceRule(columns), most, number)
        self.columns, self.most, self.number = columns, most, number
        self.epsilons, self.choice = epsilons, choice
        self._laws: dict[tuple[int, ...], Law] = {}

    @property
    def epsilon(self) -> float:
        return float(sum(self.epsilons))

    def __call__(self, scores: tuple[int, ...]) -> Law:
        if scores not in self._laws:
            pairs = itertools.combinations(range(self.columns), 2)
            score_by_pair = dict(zip(pairs, scores, strict=True))
            law: Law = {}
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(
                    module,
                    "compute_dependence",
                    lambda _, first, second, _least: score_by_pair[first, second],
                )
                for share, result in self._walk_answers(patch, ()):
                    law[result] = law.get(result, 0.0) + share
            assert math.fsum(law.values()) == pytest.approx(1, abs=1e-9)
            self._laws[scores] = law
        return self._laws[scores]

    def _walk_answers(
        self, patch: pytest.MonkeyPatch, answers: tuple[int, ...]
    ) -> Iterator[tuple[float, Slices]]:
        select = RecordedSelect(answers)
        patch.setattr(module, "select_candidate", select)
        table = count_listed_rows({(0,) * self.columns: 1}, self.columns)
        result = tuple(
            choose_slices(table, self.most, self.number, epsilons=self.epsilons, bits=BITS)
        )
        if len(answers) == len(select.seen):
            share = 1.0
            for answer, (scores, sensitivity, epsilon, _) in zip(answers, select.seen, strict=True):
                share *= self.choice(tuple(scores), sensitivity, epsilon)[answer]
            yield share, result
        else:
            for answer in range(len(select.seen[len(answers)][0])):
                yield from self._walk_answers(patch, (*answers, answer))


def list_neighbor_tables(columns: int, most: int) -> Iterable[tuple[Table, Table]]:
    """Every table of up to so many rows of two values, beside itself without one of them."""
    rows = list(itertools.product((0, 1), repeat=columns))
    for size in range(1, most + 1):
        for table in itertools.combinations_with_replacement(rows, size):
            for row in sorted(set(table)):
                at = table.index(row)
                yield table, table[:at] + table[at + 1 :]


def compute_privacy_loss(first: Law, second: Law) -> float:
    """The largest logarithm of a ratio, either way; inf where only one can come out."""
    privacy_loss = 0.0
    for result in {*first, *second}:
        p, q = first.get(result, 0.0), second.get(result, 0.0)
        if p != q:
            privacy_loss = max(privacy_loss, abs(math.log(p / q)) if p and q else math.inf)
    return privacy_loss


def compute_budget_usage(
    chosen: SliceChoiceLaw, pairs: Iterable[tuple[Table, Table]], least: int = 0
) -> float:
    """The largest loss, as a share of the sum of the epsilons."""
    scores = {
        (
            compute_pair_scores(first, chosen.columns, least),
            compute_pair_scores(other, chosen.columns, least),
        )
        for first, other in pairs
    }
    return (
        max(compute_privacy_loss(chosen(first), chosen(other)) for first, other in scores)
        / chosen.epsilon
    )
