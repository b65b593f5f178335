"""One stage of a synthesis: rounds of private choices, each measured, the model fitted after each.

In a round all scores are taken against the same model; of each set of columns one table at most is
measured. A table that turns out to be no more than noise is set aside. A round in which no table is
kept ends the stage: further choices would find less.

Fewer tables than there are choices turn out to pay, so that each gets more than an even part of
what is left. And the more of a round's tables were noise, the larger the parts of the next: what is
still unexplained is faint, and seen only in tables that are measured better. The parts depend on
released results alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from incrowd.anonymize.synthetic.allocation import average_cells, limit_choices, relative_part
from incrowd.anonymize.synthetic.choice import (
    Candidate,
    PrivateTables,
    Scores,
    choose_fitting,
)
from incrowd.anonymize.synthetic.domain import Columns, Levels
from incrowd.anonymize.synthetic.measurement import measure
from incrowd.anonymize.synthetic.released import Released
from incrowd.arrays import Counts, Places
from incrowd.privacy.information import InformationBudget
from incrowd.privacy.randomness import Randomness

ROUND_GAP = 4.0
ROUND_STEPS = 60
WIDE, FULL = 40, 0.6  # of so many columns, a model is full at so much of its limit
FIRST_PART = 1.4  # of a table in the first round, over an even part
TARGET_WEIGHT = 2  # of a table with the target column, over that of others


@dataclass(frozen=True, eq=False)
class Bench:
    """What every stage works with: private tables, budget, range of a choice, bits."""

    tables: PrivateTables
    budget: InformationBudget
    choice_epsilon: Fraction
    bits: Randomness
    target: int | None

    def measure(
        self, released: Released, columns: Columns, levels: Levels, part: float
    ) -> Fraction:
        """Measure a table for a part of the budget; return what it cost, 0 if nothing is left."""
        if not self.budget.left or not part > 0:
            return Fraction(0)
        table = self.tables.get(columns, levels)
        done = measure(table, columns, levels, part, self.budget, self.bits)
        released.add(done)
        return done.information


class Stage:
    """Choosing among candidates, at most so often, with some of the information."""

    def __init__(
        self,
        bench: Bench,
        released: Released,
        candidates: Sequence[Candidate],
        *,
        choices: int,
        information: float,
    ) -> None:
        self._bench = bench
        self._released = released
        self._left = information
        rows, columns = released.model.rows, len(released.domain)
        cells = average_cells(released.domain.leaves)
        self._choices = limit_choices(choices, information, rows, columns, cells)
        measured = {
            (measurement.columns, measurement.levels) for measurement in released.measurements
        }
        fresh = [
            candidate
            for candidate in candidates
            if (candidate.columns, candidate.levels) not in measured
        ]
        self._candidates = fresh if self._choices else []
        self._scores = Scores(released.domain, bench.tables, self._candidates)
        self._mean_need = 0.0
        self._mean_part = FIRST_PART  # over an even part of what is left

    def run(self, *, batch: int, cells: int, grow: bool) -> None:
        """Make the choices, in rounds; the model stays within so many cells.

        If ``grow``, an eighth of them at first, so that early choices leave room for later ones.
        """
        choices_made = 0
        while choices_made < self._choices and self._candidates:
            share = max((choices_made + 1) / self._choices, 1 / 8) if grow else 1.0
            tables_kept = self._run_round(
                min(batch, self._choices - choices_made),
                self._choices - choices_made,
                int(cells * share),
            )
            choices_made += batch
            if tables_kept == 0:
                break
            if tables_kept:
                self._released.fit_model(gap=ROUND_GAP, steps=ROUND_STEPS)

    def _run_round(self, choices: int, planned: int, cells: int) -> int | None:
        """Choose and measure; return how many tables were kept, None if no candidate fitted."""
        each = self._left * min(self._mean_part / planned, 1.0)
        self._scores.expect(self._released.model)
        all_needs = self._find_needs(each**-0.5)
        parts = [each * relative_part(need, self._mean_need) for need in all_needs]
        pairs = zip(self._candidates, parts, strict=True)
        deviations = [math.sqrt(candidate.gain / part) for candidate, part in pairs]
        scores = self._scores.compute(self._candidates, deviations)
        weights = self._weigh()
        waiting = np.arange(len(self._candidates))
        tables_kept, needs = 0, []
        for _ in range(choices):
            if self._is_full(cells):
                break
            place = self._choose(scores, weights, waiting, cells)
            if place is None:
                break
            chosen, part = self._candidates[place], min(parts[place], self._left)
            self._left -= float(
                self._bench.measure(self._released, chosen.columns, chosen.levels, part)
            )
            needs.append(all_needs[place])
            if self._released.is_surprising(self._released.measurements[-1]):
                self._released.hold(chosen.columns, chosen.levels)
                tables_kept += 1
            else:
                self._released.set_aside(chosen.columns, chosen.levels)
            waiting = np.array(
                [at for at in waiting if self._candidates[at].columns != chosen.columns], dtype=int
            )
            if self._left <= 1e-9 * each:
                self._candidates = []
                break
        if not needs:
            return None
        self._mean_part *= 2 - tables_kept / len(needs)
        self._mean_need = (self._mean_need + float(np.mean(needs))) / 2
        measured = {
            (measurement.columns, measurement.levels) for measurement in self._released.measurements
        }
        self._candidates = [
            candidate
            for candidate in self._candidates
            if (candidate.columns, candidate.levels) not in measured
        ]
        return tables_kept

    def _find_needs(self, deviation: float) -> list[float]:
        """How much information each candidate wants, by the cells that noise leaves visible."""
        needs = [
            candidate.need_of(
                self._scores.count_visible(candidate, deviation * math.sqrt(candidate.gain))
            )
            for candidate in self._candidates
        ]
        if not self._mean_need:
            largest: dict[Columns, float] = {}
            for candidate, need in zip(self._candidates, needs, strict=True):
                largest[candidate.columns] = max(largest.get(candidate.columns, 0.0), need)
            self._mean_need = float(np.mean(list(largest.values())))
        return needs

    def _choose(self, scores: Counts, weights: Counts, waiting: Places, cells: int) -> int | None:
        """Choose privately among the candidates whose model is small enough."""
        released = self._released

        def fits(at: int) -> bool:
            candidate = self._candidates[int(waiting[at])]
            return released.fits(candidate.columns, candidate.levels, cells)

        place = choose_fitting(
            scores[waiting],
            weights[waiting],
            epsilon=self._bench.choice_epsilon,
            fits=fits,
            alike=self._number_models(waiting),
            bits=self._bench.bits,
        )
        return None if place is None else int(waiting[place])

    def _is_full(self, cells: int) -> bool:
        """Whether hardly any further table would fit, so that looking for one takes too long.

        Of few columns the last tables are worth it. A function of released results: a choice that
        is not made is paid for all the same.
        """
        many = len(self._released.domain) >= WIDE
        return many and not self._released.fits((), (), int(cells * FULL))

    def _number_models(self, waiting: Places) -> Counts:
        """Return a number for each candidate; those of one number would make the same model."""
        numbers: dict[tuple[Columns, Levels], int] = {}
        model_numbers = np.empty(len(waiting), dtype=np.int64)
        levels = self._released.levels
        for at, place in enumerate(waiting):
            candidate = self._candidates[place]
            pairs = zip(candidate.columns, candidate.levels, strict=True)
            key = candidate.columns, tuple(min(levels[column], level) for column, level in pairs)
            model_numbers[at] = numbers.setdefault(key, len(numbers))
        return model_numbers

    def _weigh(self) -> Counts:
        """Return what each candidate's score is multiplied by."""
        target = self._bench.target
        weights = [
            TARGET_WEIGHT if target is not None and target in candidate.columns else 1
            for candidate in self._candidates
        ]
        return np.array(weights, dtype=np.int64)
