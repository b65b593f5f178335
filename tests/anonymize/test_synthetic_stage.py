"""Limits of a stage, and the law of a choice among the candidates that fit.

The law is enumerated: every path of draws, with its exact probability as a fraction. A chi-square
test of the sampler itself follows; it rejects a right law once in a million, and a wrong one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from support.small_domains import nested, related_rows, small_domain

from incrowd.anonymize.synthetic import choice
from incrowd.anonymize.synthetic.allocation import (
    LARGEST_GROWTH,
    MODEL_CELLS,
    limit_cells,
    limit_choices,
)
from incrowd.anonymize.synthetic.choice import (
    Candidate,
    PrivateTables,
    choose_fitting,
    list_pairs,
    list_triples,
)
from incrowd.anonymize.synthetic.domain import Domain, TableCounter, make_column
from incrowd.anonymize.synthetic.released import Released
from incrowd.anonymize.synthetic.stage import FULL, WIDE, Bench, Stage
from incrowd.arrays import Counts
from incrowd.privacy.information import InformationBudget
from incrowd.privacy.randomness import Randomness, SeededRandomness

FALSE_ALARM = 1e-6


def test_cells_of_a_model_grow_with_rows_and_information_within_bounds() -> None:
    assert limit_cells(100, 0.05) == MODEL_CELLS
    assert limit_cells(8_000, 1.0) == limit_cells(80_000, 0.01) == MODEL_CELLS
    assert limit_cells(16_000, 1.0) == limit_cells(8_000, 4.0) == 2 * MODEL_CELLS
    assert limit_cells(10**9, 1.0) == LARGEST_GROWTH * MODEL_CELLS
    sizes = [limit_cells(rows, 0.5) for rows in range(0, 60_000, 500)]
    assert sizes == sorted(sizes)
    assert {MODEL_CELLS, LARGEST_GROWTH * MODEL_CELLS} < set(sizes)


def test_choices_grow_with_their_worth_between_none_and_all() -> None:
    """The worth is information times (rows / 100)^2."""
    assert limit_choices(36, 0.99, 100, 9) == 0
    assert limit_choices(36, 1.0, 100, 9) == 3
    assert limit_choices(36, 3.9, 100, 9) == 3
    assert limit_choices(36, 4.0, 100, 9) == 4
    assert limit_choices(36, 1.0, 500, 9) == 25
    assert limit_choices(36, 1.0, 600, 9) == limit_choices(36, 1.0, 10**6, 9) == 36
    assert limit_choices(2, 1.0, 100, 2) == 2


def test_many_columns_have_a_table_each_or_none() -> None:
    assert limit_choices(500, 37.0, 100, 39) == 37
    assert limit_choices(500, 38.0, 100, 40) == 0
    assert limit_choices(500, 39.0, 100, 40) == 39


# The law of a choice.

SCORES = np.array([3, 5, 2, 5, 1, 4], dtype=np.int64)
WEIGHTS = np.array([2, 1, 2, 1, 1, 2], dtype=np.int64)
ALIKE = np.array([0, 1, 0, 1, 2, 3], dtype=np.int64)  # 1 and 3 do not fit, nor does 5
FITTING = {0, 2, 4}
EPSILON = Fraction(2)  # divided by the largest weight: 1
Chooser = Callable[[Callable[[int], bool]], int | None]


def weigh(scores: Counts, epsilon: Fraction) -> list[Fraction]:
    """An exponential law of base 2 in the place of e, so that it is a fraction."""
    assert epsilon.denominator == 1
    weights = [Fraction(2) ** int(score * epsilon.numerator) for score in scores]
    return [weight / sum(weights) for weight in weights]


def enumerate_law(monkeypatch: pytest.MonkeyPatch, run: Chooser) -> dict[int | None, Fraction]:
    """The exact law of a procedure: all paths of what ``choose`` may name in it."""
    result: dict[int | None, Fraction] = {}
    paths: list[tuple[int, ...]] = [()]
    while paths:
        path, chance, branches = paths.pop(), Fraction(1), 0
        step = 0

        def choose(scores: Counts, *, epsilon: Fraction, bits: Randomness) -> int:
            nonlocal chance, branches, step
            law = weigh(scores, epsilon)
            place = path[step] if step < len(path) else 0  # noqa: B023
            if step == len(path):  # noqa: B023
                branches = len(law)
            step += 1
            chance *= law[place]
            return place

        monkeypatch.setattr(choice, "choose", choose)
        named = run(FITTING.__contains__)
        if step > len(path):
            paths += [(*path, place) for place in range(branches)]
        else:
            result[named] = result.get(named, Fraction(0)) + chance
    return result


def choose_alike(alike: Counts | None) -> Chooser:
    def run(fits: Callable[[int], bool]) -> int | None:
        return choose_fitting(
            SCORES, WEIGHTS, epsilon=EPSILON, fits=fits, alike=alike, bits=SeededRandomness(0)
        )

    return run


def restricted_law() -> dict[int | None, Fraction]:
    places = sorted(FITTING)
    law = weigh((SCORES * WEIGHTS)[places], EPSILON / 2)
    return dict(zip(places, law, strict=True))


@pytest.mark.parametrize("alike", [None, ALIKE])
def test_a_choice_has_the_exponential_law_restricted_to_what_fits(
    alike: Counts | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    law = enumerate_law(monkeypatch, choose_alike(alike))
    assert sum(law.values()) == 1
    assert law == restricted_law()


@pytest.mark.parametrize("alike", [[0, 1, 2, 1, 1, 3], [0, 0, 0, 0, 0, 0]])
def test_numbers_that_join_what_fits_with_what_does_not_would_be_noticed(
    alike: Sequence[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A planted fault: a candidate that fits leaves the law with one that does not."""
    law = enumerate_law(monkeypatch, choose_alike(np.array(alike)))
    assert sum(law.values()) == 1
    assert law != restricted_law()


def accepts(seen: Counts, law: dict[int | None, float]) -> bool:
    expected = np.array(list(law.values())) * seen.sum()
    places = [place for place in law if place is not None]
    return bool(stats.chisquare(seen[places], expected).pvalue > FALSE_ALARM)


def test_the_sampler_has_this_law_and_no_other() -> None:
    bits, times = SeededRandomness(8), 12_000
    queried: list[int] = []

    def fits(at: int) -> bool:
        queried.append(at)
        return at in FITTING

    seen = np.zeros(6, dtype=np.int64)
    for _ in range(times):
        queried.clear()
        place = choose_fitting(
            SCORES, WEIGHTS, epsilon=Fraction(1, 2), fits=fits, alike=ALIKE, bits=bits
        )
        assert place is not None
        assert len({int(ALIKE[at]) for at in queried}) == len(queried)
        seen[place] += 1
    assert seen[sorted(FITTING)].sum() == times

    def law(rate: float, weights: Counts = WEIGHTS) -> dict[int | None, float]:
        some = {at: float(np.exp(rate * SCORES[at] * weights[at])) for at in sorted(FITTING)}
        return {at: weight / sum(some.values()) for at, weight in some.items()}

    assert accepts(seen, law(0.25))
    assert not accepts(seen, law(0.25 * 1.2))
    assert not accepts(seen, law(0.25 / 1.2))
    assert not accepts(seen, law(0.5, np.ones(6, dtype=np.int64)))


# Stages.


def make_stage(
    domain: Domain, candidates: Sequence[Candidate], rows: int = 400
) -> tuple[Stage, Released]:
    """A stage after one-way tables, with plenty of information."""
    count = TableCounter(domain, related_rows(domain, rows, 1))
    tables = PrivateTables(domain, count)
    bench = Bench(tables, InformationBudget(80.0), Fraction(1), SeededRandomness(1), None)
    released = Released(domain)
    bench.measure(released, (), (), 1.0)
    for column in range(len(domain)):
        bench.measure(released, (column,), (0,), 0.5)
    released.fit_model(gap=1.0, steps=20)
    return Stage(bench, released, candidates, choices=6, information=6.0), released


def test_candidates_of_one_number_all_fit_or_none_does() -> None:
    domain = small_domain()
    candidates = [*list_pairs(domain, 48), *list_triples(domain, (48, 12), lambda _: True)]
    stage, released = make_stage(domain, candidates)
    for key in [(), ((0, 1), (0, 0)), ((2, 3), (0, 1)), ((1, 3), (0, 0))]:
        if key:
            released.hold(*key)
        numbers = stage._number_models(np.arange(len(candidates)))
        results: dict[int, set[tuple[bool, ...]]] = {}
        for number, candidate in zip(numbers.tolist(), candidates, strict=True):
            fits = [
                released.fits(candidate.columns, candidate.levels, cells)
                for cells in range(10, 120)
            ]
            results.setdefault(number, set()).add(tuple(fits))
        assert all(len(some) == 1 for some in results.values())
    # With leaves in the model, all levels of a pair make the same one.
    assert len(results) == len({candidate.columns for candidate in candidates})


def wide_domain(columns: int) -> Domain:
    return Domain((make_column(nested(2)),) * columns)


def test_a_wide_model_is_full_above_a_share_of_its_limit() -> None:
    """Independent binary columns have two cells each."""
    domain = wide_domain(WIDE)
    stage, released = make_stage(domain, list(list_pairs(domain, 4))[:30])
    limit = next(cells for cells in range(1000) if int(cells * FULL) == 2 * WIDE)
    assert not stage._is_full(limit)
    assert stage._is_full(limit - 1)
    released.hold((0, 1), (0, 0))  # a pair has four cells, as its columns have alone
    assert not stage._is_full(limit)
    released.hold((0, 1, 2), (0, 0, 0))
    assert stage._is_full(limit)


def test_a_narrow_model_is_never_full() -> None:
    domain = wide_domain(WIDE - 1)
    stage, _ = make_stage(domain, list(list_pairs(domain, 4))[:30])
    assert not stage._is_full(0)


def test_a_full_model_chooses_and_measures_nothing() -> None:
    domain = wide_domain(WIDE)
    stage, released = make_stage(domain, list(list_pairs(domain, 4))[:30], rows=20_000)
    measured = len(released.measurements)
    stage.run(batch=2, cells=2 * WIDE + 1, grow=False)  # there is room, but hardly any
    assert len(released.measurements) == measured
    stage.run(batch=2, cells=4 * WIDE, grow=False)
    assert len(released.measurements) > measured
