"""Counts of people with several rows, or of their rows, as one distribution: rows are chosen, a
scheme is chosen, cells are drawn.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from support.exact import compute_choice_law
from support.people import People, PeopleProblem, list_bounded
from support.search_law import Cells, Distribution, compute_divergence, score_target

from incrowd.anonymize import safe_counts, safe_search
from incrowd.anonymize.lattice import Node
from incrowd.anonymize.safe_counts import draw_noisy_counts
from incrowd.anonymize.safe_search import Ramp, search_scheme
from incrowd.arrays import Codes
from incrowd.arrays import Counts as Rows
from incrowd.codes.frequency import Frequencies
from incrowd.privacy.accountant import Accountant
from incrowd.privacy.counts import build_event_law
from incrowd.privacy.draw_parameters import CountsEvent
from incrowd.privacy.events import Event, PersonCounts, RowCounts, Selection
from incrowd.privacy.randomness import Randomness, SeededRandomness


class PeopleLaw:
    """A release of counts of people, or rows: the distribution of (node, cells) of each table."""

    def __init__(self, problem: PeopleProblem, epsilon: Fraction, event: CountsEvent, k: int):
        self.problem, self.event, self.k = problem, event, k
        self.epsilon = epsilon
        self._known: dict[People, Distribution] = {}
        self._choices: dict[tuple[int, ...], list[float]] = {}
        self._shown: dict[Cells, dict[Cells, float]] = {}
        self.rate = find_rate(problem, epsilon)

    def bound_rows(self, people: People) -> Iterable[tuple[People, float]]:
        return list_bounded(people, self.problem.rows)

    def count_cells(self, people: People, node: Node) -> Cells:
        """The counts by the code itself."""
        if not people:
            return ()
        rollups = self.problem.make_people_rollups(people)
        keys, counts = rollups.count_cells(node)
        codes = rollups.decode_keys(node, keys)
        return tuple(
            (tuple(code), count)
            for code, count in zip(codes.tolist(), counts.tolist(), strict=True)
        )

    def score_table(self, people: People) -> People:
        """The rows by which schemes are scored."""
        return people

    def compute_choices(self, people: People) -> list[float]:
        scores = tuple(
            score_cells(self.problem, self.count_cells(self.score_table(people), node), node)
            for node in self.problem.nodes
        )
        if scores not in self._choices:
            self._choices[scores] = compute_choice_law(list(scores), self.rate)
        return self._choices[scores]

    def show_cells(self, cells: Cells) -> dict[Cells, float]:
        """What the code shows of cells, whatever noise it is given."""
        if cells in self._shown:
            return self._shown[cells]
        tail = build_event_law(self.event).tail.tolist()
        each = {x: tail[abs(x)] for x in range(-self.event.r, self.event.r + 1)}
        width = len(cells[0][0]) if cells else 1
        frequencies = Frequencies(
            np.array([code for code, _ in cells], np.int32).reshape(len(cells), width),
            np.array([count for _, count in cells], np.int64),
        )
        outcome: dict[Cells, float] = {}
        with pytest.MonkeyPatch.context() as patch:
            for noise in itertools.product(each, repeat=len(cells)):
                patch.setattr(
                    safe_counts, "_sample_noise", lambda *_, x=noise: np.array(x, np.int64)
                )
                published = draw_noisy_counts(
                    frequencies, self.event, k=self.k, bits=SeededRandomness(0),
                    per_group=self.problem.per_group,
                )  # fmt: skip
                result = tuple(
                    (tuple(code), count)
                    for code, count in zip(
                        published.codes.tolist(), published.counts.tolist(), strict=True
                    )
                )
                outcome[result] = outcome.get(result, 0.0) + math.prod(each[x] for x in noise)
        self._shown[cells] = outcome
        return outcome

    def __call__(self, people: People) -> Distribution:
        if people in self._known:
            return self._known[people]
        distribution: Distribution = {}
        for bounded, weight in self.bound_rows(people):
            choices = zip(self.problem.nodes, self.compute_choices(bounded), strict=True)
            for number, (node, share) in enumerate(choices):
                for cells, chance in self.show_cells(self.count_cells(bounded, node)).items():
                    key = number, cells
                    distribution[key] = distribution.get(key, 0.0) + weight * share * chance
        self._known[people] = distribution
        return distribution

    @property
    def events(self) -> list[Event]:
        rows, per_group = self.problem.rows, self.problem.per_group
        event: Event = PersonCounts(self.event, rows)
        if per_group > 1:
            event = RowCounts(self.event, rows, per_group)
        is_chosen = len(self.problem.nodes) > 1
        return [Selection(float(self.epsilon)), event] if is_chosen else [event]

    def compute_usage(self, pairs: Iterable[tuple[People, People]]) -> float:
        """The largest divergence over the claimed delta, in either direction."""
        accountant, listed, usage = Accountant(self.events), list(pairs), 0.0
        for epsilon in (0.0, 0.3, 0.8, 1.4, 2.0, 2.6):
            claimed = accountant.delta(epsilon=epsilon)
            for first, other in listed:
                for p, q in ((first, other), (other, first)):
                    usage = max(usage, compute_divergence(self(p), self(q), epsilon) / claimed)
        return usage


def find_rate(problem: PeopleProblem, epsilon: Fraction) -> mpmath.mpf:
    """epsilon / sensitivity as the search itself asks for its noise."""
    request: list[tuple[int, Fraction]] = []

    def none(count: int, *, sensitivity: int, epsilon: Fraction, bits: Randomness) -> Rows:
        request.append((sensitivity, epsilon))
        return np.zeros(count, dtype=np.int64)

    person = (((0,) * len(problem.hierarchies)),)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(safe_search, "sample_one_sided_noise", none)
        run_search(problem, (person,), epsilon, SeededRandomness(0))
    ((sensitivity, used),) = request
    return mpmath.mpf(used.numerator) / used.denominator / sensitivity


def run_search(
    problem: PeopleProblem, people: People, epsilon: Fraction, bits: Randomness
) -> safe_search.ChosenScheme:
    return search_scheme(
        problem.make_people_rollups(people), problem.lattice, problem.ramps, epsilon=epsilon,
        power=problem.power, weights=problem.shares, bits=bits,
        target=problem.target_values, rows=problem.rows,
    )  # fmt: skip


def score_cells(problem: PeopleProblem, cells: Cells, node: Node) -> int:
    """The score of a node from the people of its cells, by the code's own weights."""
    if not cells:
        return 0
    (ramp,) = problem.ramps
    detail = problem.make_detail((((0,) * len(problem.hierarchies)),))
    codes = np.array([code for code, _ in cells], dtype=np.int32)
    psi = ramp.compute_psi(np.array([count for _, count in cells], dtype=np.int64))
    return add_up(codes, detail.weigh_cells(codes, node), psi, problem, ramp)


def add_up(codes: Codes, weights: Rows, psi: Rows, problem: PeopleProblem, ramp: Ramp) -> int:
    """The score by its definition: of cells, or of regions that hold a target's values."""
    if problem.target is None:
        return int((weights * psi).sum())
    cells = zip(map(tuple, codes.tolist()), weights.tolist(), psi.tolist(), strict=True)
    return score_target(problem.target, problem.counts, list(cells), ramp.b)
