"""Attacks on membership: as good as theory says, no better than it allows, and guessing else.

All seeds are fixed. The chance in brackets is that of a correct program failing for another seed.
"""

from __future__ import annotations

from dataclasses import replace
from math import exp
from typing import Any

import numpy as np
import pytest

from incrowd.anonymize.mondrian import partition_points
from incrowd.anonymize.safe_counts import draw_noisy_counts
from incrowd.anonymize.safe_sample import sample_cells
from incrowd.arrays import Codes, Counts
from incrowd.codes.axis import Axis, bound_classes
from incrowd.codes.frequency import Frequencies, merge_tuples
from incrowd.codes.hierarchy import Hierarchy, build_from_rows
from incrowd.errors import ParameterError
from incrowd.evaluation.attacks.laws import CountLaw, SampleLaw
from incrowd.evaluation.attacks.membership import (
    Description,
    MembershipTargets,
    attack_by_fit,
    attack_by_law,
    attack_by_shadows,
    max_success_of_events,
    max_success_rate,
)
from incrowd.evaluation.attacks.view import AttackerView, People
from incrowd.evaluation.attacks.view import make_view as seen_as
from incrowd.measure.labels import read_labels
from incrowd.privacy.counts import build_geometric_law
from incrowd.privacy.events import (
    Composition,
    GeometricCounts,
    SafeRelease,
    SampledEvent,
    Selection,
)
from incrowd.privacy.randomness import SeededRandomness

SAMPLE = SafeRelease(5, 0.3)
COUNTS = GeometricCounts(8, 1.0)
K = 3


def shown_of(rows: Counts, event: SafeRelease | GeometricCounts, seed: int) -> Counts:
    """What a release shows of cells with so many rows, 0 where nothing."""
    table = Frequencies(np.arange(len(rows), dtype=np.int32)[:, None], rows)
    bits = SeededRandomness(seed)
    if isinstance(event, SafeRelease):
        noisy_counts = sample_cells(table, k=event.k, beta=event.beta, bits=bits)
    else:
        noisy_counts = draw_noisy_counts(table, event, k=K, bits=bits)
    counts = np.zeros(len(rows), dtype=np.int64)
    counts[noisy_counts.codes[:, 0]] = noisy_counts.counts
    return counts


def law_of(event: SafeRelease | GeometricCounts) -> SampleLaw | CountLaw:
    if isinstance(event, SafeRelease):
        return SampleLaw(event.k, event.beta)
    return CountLaw(build_geometric_law(event.epsilon, event.r), K)


def cells(event: SafeRelease | GeometricCounts, seed: int, number: int = 2000) -> MembershipTargets:
    """One person of each of so many cells, with 1 to 30 rows."""
    rows = np.random.default_rng(seed).integers(1, 31, number)
    return MembershipTargets(np.arange(number), rows, shown_of(rows, event, seed))


@pytest.mark.parametrize("event", [SAMPLE, COUNTS])
def test_what_is_measured_is_what_is_expected(event: SafeRelease | GeometricCounts) -> None:
    """Of 40 intervals of at least 95 %, at least 34 hold the exact value [0.004]."""
    covered = 0
    for seed in range(40):
        result = attack_by_law(law_of(event), cells(event, seed), rng=np.random.default_rng(seed))
        assert result.success.tries == 2000
        expected = result.details["expected_of_tries"]
        assert isinstance(expected, float)
        covered += result.success.low <= expected <= result.success.high
    assert covered >= 34


@pytest.mark.parametrize("event", [SAMPLE, COUNTS])
def test_the_exact_figures(event: SafeRelease | GeometricCounts) -> None:
    law, people = law_of(event), cells(event, 1)
    bound = max_success_of_events([event])
    result = attack_by_law(law, people, rng=np.random.default_rng(1), bound=bound)
    each = [(1 + law.total_variation(np.array([n]))[0]) / 2 for n in people.rows.tolist()]
    assert result.details["expected"] == pytest.approx(np.mean(each))
    assert result.details["worst"] == pytest.approx(max(each))
    assert each[people.rows.tolist().index(int(float(result.details["worst_rows"])))] == max(each)
    assert bound is not None
    assert result.bound == bound
    assert 0.5 < float(result.details["expected"]) < float(result.details["worst"]) <= bound
    assert result.guess.value == result.guess.low == result.guess.high == 0.5


def test_where_all_is_shown_epsilon_is_attained() -> None:
    """Of 40,000 tries, e^epsilon / (1 + e^epsilon) is missed by less than 0.01 [1e-5]."""
    rows = np.full(40_000, 40)
    event = GeometricCounts(16, 1.0)
    people = MembershipTargets(np.arange(len(rows)), rows, shown_of(rows, event, 3))
    noise, rng = build_geometric_law(1.0, 16), np.random.default_rng(3)
    result = attack_by_law(CountLaw(noise, K), people, rng=rng)
    assert result.success.tries == 40_000
    assert result.success.value == pytest.approx(exp(1) / (1 + exp(1)), abs=0.01)
    assert result.details["expected"] == pytest.approx(
        max_success_rate(1.0, noise.min_delta), rel=0.01
    )
    assert result.succeeds


def test_a_law_that_is_one_row_off_is_seen() -> None:
    """Cells taken for one row larger or smaller: not what is expected, by far [1e-9]."""
    people = cells(GeometricCounts(16, 2.0), 4, 10_000)
    people = replace(people, rows=people.rows + 40)
    people = replace(people, shown=shown_of(people.rows, GeometricCounts(16, 2.0), 4))
    law = CountLaw(build_geometric_law(2.0, 16), K)
    right = attack_by_law(law, people, rng=np.random.default_rng(4))
    assert right.success.low <= float(right.details["expected_of_tries"]) <= right.success.high
    with pytest.raises(ParameterError, match="what the law can show of a cell"):
        attack_by_law(law, replace(people, rows=people.rows + 17), rng=np.random.default_rng(4))
    rates = []
    for off in (1, -1):
        wrong = replace(people, rows=people.rows + off)
        near = wrong.select_targets(np.flatnonzero(law.allows_shown(wrong.rows, wrong.shown)))
        result = attack_by_law(law, near, rng=np.random.default_rng(4))
        assert result.details["expected_of_tries"] == right.details["expected_of_tries"]
        rates.append(result.success)
    expected = float(right.details["expected_of_tries"])
    assert rates[0].high < expected - 0.1  # too many rows: "in" is hardly ever said
    assert rates[1].low > expected + 0.03  # too few: it is said too often, and all are in


def test_who_shares_a_cell_is_tried_once() -> None:
    """A thousand people of one cell are one try, not a thousand."""
    rows, counts = np.array([30, 20, 25, 9]), np.array([29, 20, 27, 0])
    law = law_of(COUNTS)
    crowd = np.repeat(np.arange(4), 1000)
    members = MembershipTargets(crowd, rows[crowd], counts[crowd])
    assert attack_by_law(law, members, rng=np.random.default_rng(5)).success.tries == 4
    outside = MembershipTargets(
        np.array([3, 8, 9, 9]), np.array([9, 0, 0, 0]), np.zeros(4, np.int64)
    )
    result = attack_by_law(law, members, outside, rng=np.random.default_rng(5))
    assert (result.success.tries, result.guess.hits, result.guess.tries) == (6, 3, 6)
    odd = members.select_targets(np.arange(3000))  # as many in as out: of three cells, two
    assert attack_by_law(law, odd, rng=np.random.default_rng(5)).success.tries == 2
    none = MembershipTargets(crowd[:0], rows[:0], counts[:0])
    assert attack_by_law(law, none, rng=np.random.default_rng(5)).success.tries == 0


def test_people_outside_are_of_cells_with_one_row_more() -> None:
    """Noise of next to nothing shows counts as they are: nobody is mistaken [0.003]."""
    law = CountLaw(build_geometric_law(50.0, 2), 1)
    rows = np.arange(10, 60)
    members, outside = (
        MembershipTargets(rows, rows, rows),
        MembershipTargets(rows + 100, rows, rows),
    )
    result = attack_by_law(law, members, outside, rng=np.random.default_rng(6))
    assert (result.success.hits, result.success.tries) == (100, 100)
    assert float(result.details["expected"]) == pytest.approx(1.0)
    # Whoever is taken for the opposite of what he is: half of them tried on the release, and lost.
    result = attack_by_law(law, replace(outside, rows=rows), rng=np.random.default_rng(6))
    swapped = attack_by_law(
        law, MembershipTargets(rows, rows + 1, rows), MembershipTargets(rows + 100, rows - 1, rows),
        rng=np.random.default_rng(6),
    )  # fmt: skip
    assert result.success.value == 1.0
    assert swapped.success.value == pytest.approx(0.5, abs=0.15)


def test_people_find_their_cells() -> None:
    """By the codes that are shown; a cell that nobody of the table is in has no rows."""
    rng = np.random.default_rng(14)
    people = rng.integers(0, 4, (60, 2)).astype(np.int32)
    table = merge_tuples(people[:40], np.ones(40, dtype=np.int64))
    published = sample_cells(table, k=2, beta=0.7, bits=SeededRandomness(14))
    result = MembershipTargets.from_tables(table, published, people)
    seen = {
        tuple(c): int(n) for c, n in zip(published.codes.tolist(), published.counts, strict=True)
    }
    for at, person in enumerate(people.tolist()):
        assert result.rows[at] == (people[:40] == person).all(axis=1).sum()
        assert result.shown[at] == seen.get(tuple(person), 0)
        alike = (people == person).all(axis=1)
        assert ((result.cells == result.cells[at]) == alike).all()
    members, outside = (
        result.select_targets(np.arange(40)),
        result.select_targets(np.arange(40, 60)),
    )
    estimate = attack_by_law(SampleLaw(2, 0.7), members, outside, rng=rng)
    assert estimate.success.tries == len(np.unique(result.cells)) // 2 * 2


def test_of_what_is_never_shown_nobody_can_tell() -> None:
    """Cells of fewer than k rows: a coin [its 4,000 throws miss by 0.05: 1e-9]."""
    rows = np.full(4000, K - 1)
    people = MembershipTargets(np.arange(4000), rows, np.zeros_like(rows))
    result = attack_by_law(law_of(COUNTS), people, rng=np.random.default_rng(7))
    assert result.success.value == pytest.approx(0.5, abs=0.05)
    assert result.details["worst"] == result.details["expected_of_tries"] == 0.5


def test_what_epsilon_and_delta_allow() -> None:
    for epsilon, delta in ((0.0, 0.0), (0.0, 0.1), (1.0, 0.01), (3.0, 1e-6)):
        expected = (exp(epsilon) + delta) / (1 + exp(epsilon))
        assert max_success_rate(epsilon, delta) == pytest.approx(expected)
    assert max_success_rate(1.0, 1.0) == max_success_rate(900.0, 0.5) == 1.0
    with pytest.raises(ParameterError, match="epsilon"):
        max_success_rate(-1.0, 0.0)


def test_what_events_allow_is_about_the_table() -> None:
    """A choice and a sample cost more than each; that the table is a sample helps nobody in it."""
    assert max_success_of_events([]) is None
    choice = Selection(0.5)
    assert max_success_of_events([choice]) == pytest.approx(max_success_rate(0.5, 0.0))
    assert max_success_of_events([choice], replaced=True) == pytest.approx(
        2 * max_success_rate(0.5, 0.0) - 0.5
    )
    both = max_success_of_events([choice, SAMPLE])
    assert both is not None
    assert both > max(
        max_success_of_events([SAMPLE]) or 0.0, max_success_of_events([choice]) or 0.0
    )
    assert max_success_of_events([SampledEvent(Composition([choice, SAMPLE]), 0.01)]) == both
    assert (max_success_of_events([SampledEvent(SAMPLE, 0.01)], replaced=True) or 0.0) <= 1.0


WIDE = 40


def numbers() -> Hierarchy:
    rows = [(str(x), f"{x // 10}0s", "*") for x in range(WIDE)]
    return replace(build_from_rows(rows), ordered=True)


def drawn_people(number: int, rng: np.random.Generator) -> Codes:
    """People with three numbers each, most of them in the middle."""
    raw = rng.normal(WIDE / 2, WIDE / 5, (number, 3))
    return np.clip(raw, 0, WIDE - 1).astype(np.int32)


def seen_of(labels: list[list[Any]], codes: Codes, counts: Counts) -> AttackerView:
    axis = Axis(numbers(), ordered=True)
    weights = np.ones(WIDE + 2)
    covers = tuple(read_labels(f"c{at}", axis, texts, weights) for at, texts in enumerate(labels))
    return seen_as(("c0", "c1", "c2"), Frequencies(codes, counts), covers)


def test_tight_boxes_tell_who_is_in_them() -> None:
    """Every member fits a box; of others, few do [whatever the seed]."""
    rng, axis = np.random.default_rng(8), Axis(numbers(), ordered=True)
    members, outside = drawn_people(600, rng), drawn_people(500, rng)
    table = merge_tuples(members, np.ones(600, dtype=np.int64))
    classes = partition_points([axis] * 3, table.codes, table.counts, k=5)
    result = bound_classes(table.codes, table.counts, classes)
    looks = [axis.make_labels(result.low[:, at], result.high[:, at]) for at in range(3)]
    codes = np.column_stack([box_codes for _, box_codes in looks])
    seen = seen_of([texts for texts, _ in looks], codes, result.sizes)
    estimate = attack_by_fit(seen, People(members), People(outside), rng=rng)
    assert estimate.details["fits_members"] == 1.0
    assert estimate.success.tries == 1000
    assert estimate.succeeds
    assert estimate.success.value > 0.6
    assert estimate.success.value == pytest.approx(1 - float(estimate.details["fits_outside"]) / 2)


def test_a_safe_release_does_not_tell_who_is_in_it() -> None:
    """Members and others fit alike: the interval holds a half [0.05]."""
    rng, event = np.random.default_rng(9), SafeRelease(20, 0.3)
    hierarchy = numbers()
    members, outside = drawn_people(4000, rng), drawn_people(4000, rng)
    cells_ = merge_tuples(hierarchy.groups[1][members], np.ones(4000, dtype=np.int64))
    published = sample_cells(cells_, k=event.k, beta=event.beta, bits=SeededRandomness(9))
    seen = seen_of([list(hierarchy.labels[1])[:-2]] * 3, published.codes, published.counts)
    bound = max_success_of_events([event], replaced=True)
    estimate = attack_by_fit(seen, People(members), People(outside), rng=rng, bound=bound)
    assert 0.1 < float(estimate.details["fits_members"]) < 0.99
    assert estimate.success.low <= 0.5 <= estimate.success.high
    assert not estimate.succeeds
    assert bound is not None
    assert estimate.success.value <= bound
    # Nothing shown, or rows of stars alone, fit nobody: all are said to be out.
    for rows in (seen.codes[:0], np.zeros((1, 3), dtype=np.int32)):
        star = seen_of([["*"]] * 3, rows, np.full(len(rows), 9))
        empty = attack_by_fit(star, People(members), People(outside), rng=rng)
        assert (empty.success.value, empty.details["fits_members"]) == (0.5, 0.0)


def test_shadows_learn_whatever_differs() -> None:
    """A number that tells is found among those that do not [whatever the seed]."""

    def tells(present: bool, rng: np.random.Generator) -> Description:
        return (int(rng.integers(2**40)), 7, 12 - present, int(rng.integers(3)))

    def together(present: bool, rng: np.random.Generator) -> Description:
        first = int(rng.integers(2))
        return (first, first ^ present)

    rng = np.random.default_rng(10)
    result = attack_by_shadows([tells], tries=40, rng=rng, fields=("a", "b", "classes", "d"))
    assert (result.success.hits, result.success.tries) == (40, 40)
    assert result.details["worst_by"] == "classes"
    result = attack_by_shadows([together], tries=60, rng=rng)
    assert result.success.value == 1.0
    assert result.details["worst_by"] == "all together"


def test_shadows_learn_nothing_from_nothing() -> None:
    """Also where no two descriptions are alike, or all are [0.1: two intervals of 95 %]."""

    def noise(_present: bool, rng: np.random.Generator) -> Description:
        return (int(rng.integers(2**40)), int(rng.integers(4)), 1)

    result = attack_by_shadows([noise] * 5, tries=100, rng=np.random.default_rng(11))
    assert result.success.tries == 500
    assert result.success.low <= 0.5 <= result.success.high
    assert not result.succeeds
    constant = attack_by_shadows([lambda _, __: (1,)], tries=400, rng=np.random.default_rng(11))
    assert constant.success.low <= 0.5 <= constant.success.high
    assert attack_by_shadows([], tries=10, rng=np.random.default_rng(11)).success.tries == 0


def test_shadows_come_up_to_what_epsilon_allows() -> None:
    """Randomized response of epsilon 1: right with e / (1 + e), off by 0.04 at most [0.001]."""

    def response(present: bool, rng: np.random.Generator) -> Description:
        true = rng.random() < exp(1) / (1 + exp(1))
        return (int(present == true), int(rng.integers(1000)))

    def shifted(present: bool, rng: np.random.Generator) -> Description:
        """Counts with noise: only a cut in their order tells, as values are rarely met twice."""
        return (int(1000 * (rng.laplace() + present)),)

    rng, allowed = np.random.default_rng(12), max_success_rate(1.0, 0.0)
    result = attack_by_shadows([response] * 4, tries=400, rng=rng, bound=allowed)
    assert result.success.value == pytest.approx(allowed, abs=0.04)
    assert float(result.details["worst_low"]) <= allowed
    result = attack_by_shadows([shifted], tries=1500, rng=rng)
    assert result.success.value == pytest.approx(1 - exp(-0.5) / 2, abs=0.05)


def test_shadows_name_the_worst_target() -> None:
    def tells(present: bool, _rng: np.random.Generator) -> Description:
        return (int(present),)

    def silent(_present: bool, rng: np.random.Generator) -> Description:
        return (int(rng.integers(2)),)

    result = attack_by_shadows([silent, silent, tells], tries=60, rng=np.random.default_rng(13))
    assert (result.details["worst_target"], result.details["worst"]) == (2.0, 1.0)
    assert result.details["worst_by"] == "number 1"
    single = attack_by_shadows([tells], tries=60, rng=np.random.default_rng(13))
    assert float(result.details["worst_low"]) < float(single.details["worst_low"]) < 1.0
    assert result.success.value < 0.8
