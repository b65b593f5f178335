"""Membership: whether a person was in the table.

The attacker is asked of as many people who are in the table as of people who are not, and says
"in" or "out". Who has not seen the release is right half of the time.

**Claim.** Let somebody be in the table with an even chance, everybody else be known, and the
release be (epsilon, delta)-differentially private. No attacker is right more often than

    (e^epsilon + delta) / (1 + e^epsilon),

nor than (1 + d) / 2, where d is the delta that holds at epsilon = 0. Where the attacker is asked
of random people of the table, and of random people alike who are not in it, but does not know the
others, it is at most 1/2 + d.

Proof. Let a be the chance of "in" if the person is in, and b that of "out" if not. By the
guarantee, a <= e^epsilon (1 - b) + delta, and b <= e^epsilon (1 - a) + delta. The sum of both is
(a + b) (1 + e^epsilon) <= 2 e^epsilon + 2 delta, and the attacker is right with (a + b) / 2. At
epsilon = 0, a + b <= 1 + d. In the last case the table and the person asked of are alike in law
whether the person is somebody else, or was in the table and another took the place: a row less
and a row more, each of which changes the chance of any answer by d at most.

- :func:`attack_by_law` is the best test there is, where the law of what is shown of a cell is
  known.
- :func:`attack_by_fit` takes any file: somebody whom no row fits is not in it.
- :func:`attack_by_shadows` makes many releases with and without the person, and learns the
  difference.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from incrowd.arrays import Bools, Codes, Counts, Floats, Places
from incrowd.codes.frequency import Frequencies, number_tuples
from incrowd.errors import ParameterError, check_at_least_zero, check_whole
from incrowd.evaluation.attacks.laws import ReleaseLaw
from incrowd.evaluation.attacks.view import AttackerView, People
from incrowd.findings import format_percent
from incrowd.measure.estimate import CONFIDENCE, Estimate, Rate
from incrowd.privacy.events import Composition, Event, SampledEvent

ATTACK = "membership"
_UP = 1 + 1e-14  # more than a few sums and quotients are off by


def max_success_rate(epsilon: float, delta: float) -> float:
    """Return the most that (epsilon, delta) allows against who knows everybody else.

    >>> round(max_success_rate(1.0, 1e-6), 4)
    0.7311
    """
    check_at_least_zero("epsilon", epsilon)
    check_at_least_zero("delta", delta)
    odds = math.exp(-epsilon)
    return min((1 + delta * odds) / (1 + odds) * _UP, 1.0)


def max_success_of_events(events: Iterable[Event], *, replaced: bool = False) -> float | None:
    """Return the most that events allow, by their delta at epsilon 0; None if there are none.

    It is about being in the table. That the table is itself a sample hides who is in the
    population, and is left out. ``replaced`` is for who does not know the others; see the claim.
    """
    listed = tuple(part for event in events for part in list_table_events(event))
    if not listed:
        return None
    distance = _compute_distance(listed)
    return min((0.5 + (distance if replaced else distance / 2)) * _UP, 1.0)


def relies_on_sampling(event: Event) -> bool:
    """Return whether the guarantee of an event is about a population that was sampled."""
    match event:
        case SampledEvent():
            return True
        case Composition(events):
            return any(map(relies_on_sampling, events))
    return False


@lru_cache(maxsize=16)
def _compute_distance(events: tuple[Event, ...]) -> float:
    from incrowd.privacy.accountant import Accountant

    return Accountant(events).delta(epsilon=0.0)


def list_table_events(event: Event) -> list[Event]:
    """Return the events of a release that are about being in its table, not in a population."""
    match event:
        case SampledEvent(part, _):
            return list_table_events(part)
        case Composition(events):
            return [table_event for part in events for table_event in list_table_events(part)]
    return [event]


@dataclass(frozen=True, eq=False)
class MembershipTargets:
    """People by their cells: the number of each one's cell, its rows, and how many are shown.

    ``rows`` are those of the table; ``shown`` is 0 where the release shows nothing of the cell.
    Members and people outside must be numbered alike: made by one call of :meth:`from_tables`, and
    parted by :meth:`select_targets`.
    """

    cells: Places
    rows: Counts
    shown: Counts

    def __len__(self) -> int:
        return len(self.cells)

    @classmethod
    def from_tables(
        cls, table: Frequencies, published: Frequencies, people: Codes
    ) -> MembershipTargets:
        """Return people, the table and the release, all by codes of the levels that are shown."""
        every = number_tuples(np.concatenate([people, table.codes, published.codes]))
        cells, at = np.unique(every, return_inverse=True)
        person_places, rest = at[: len(people)], at[len(people) :]
        rows, seen = np.zeros((2, len(cells)), dtype=np.int64)
        np.add.at(rows, rest[: len(table)], table.counts)
        np.add.at(seen, rest[len(table) :], published.counts)
        return cls(person_places.astype(np.int64), rows[person_places], seen[person_places])

    def select_targets(self, places: Places) -> MembershipTargets:
        """Return some of them."""
        return MembershipTargets(self.cells[places], self.rows[places], self.shown[places])

    def join_targets(self, others: MembershipTargets) -> MembershipTargets:
        """Return them together with others, whose cells are numbered alike."""
        return MembershipTargets(
            np.concatenate([self.cells, others.cells]),
            np.concatenate([self.rows, others.rows]),
            np.concatenate([self.shown, others.shown]),
        )


def attack_by_law(
    law: ReleaseLaw,
    members: MembershipTargets,
    outside: MembershipTargets | None = None,
    *,
    rng: np.random.Generator,
    bound: float | None = None,
    confidence: float = CONFIDENCE,
) -> Estimate:
    """Try the test of :mod:`incrowd.evaluation.attacks.laws` on one release.

    What is expected of it is computed exactly.

    ``members`` are in the table, people ``outside``, if there are any, are not: with somebody of
    them the cell would have one row more. Half of the tries are of people who are in, half of
    people who are not. Who is to be what he is, is tried on the release; who is to be the opposite,
    on what the law shows of his cell then. (If members were always in, and others always out, the
    number of other people in a cell could tell them apart without any release.)

    Cells are drawn independently, but who shares a cell shares its fate; so one person of each is
    tried. The tries are independent, each with a chance of its own, for which the interval is on
    the safe side (Hoeffding 1956). ``expected_of_tries`` is what they come to on average.
    ``expected`` is (1 + distance) / 2 averaged over all ``members``, which no chance of this
    release is in, and ``worst`` the largest of them, in a cell of ``worst_rows``.
    """
    _refuse_impossible(law, members, least=1)
    everybody = members
    if outside is not None:
        _refuse_impossible(law, outside, least=0)
        everybody = members.join_targets(outside)
    is_in = np.arange(len(everybody)) < len(members)
    tried = _sample_cells(everybody.cells, rng)
    tried = tried[: len(tried) // 2 * 2]
    to_be_in = np.arange(len(tried)) % 2 == 0
    rows = everybody.rows[tried] + ~is_in[tried]  # if the person is in
    imagined = law.draw_rows(rows - ~to_be_in, rng)
    published = np.where(to_be_in == is_in[tried], everybody.shown[tried], imagined)
    says_in = _compute_answers(law, rows, published)
    details: dict[str, float | str] = {}
    if len(members):
        each = (1 + law.total_variation(members.rows)) / 2
        worst = int(np.argmax(each))
        details["expected"] = float(each.mean())
        details["worst"] = float(each[worst])
        details["worst_rows"] = float(members.rows[worst])
    if len(tried):
        details["expected_of_tries"] = float((1 + law.total_variation(rows)).mean() / 2)
    words = ""
    if len(members):
        words = (
            f" Expected for {format_percent(float(details['expected']))} of the people, and for "
            f"{format_percent(float(details['worst']))} of those in the worst group."
        )
    return Estimate(
        attack=ATTACK,
        name="optimal test",
        knows="all other rows of the person's group, and how the release is drawn",
        success=Rate.from_chances(np.where(to_be_in, says_in, 1 - says_in), rng, confidence),
        guess=_make_guess(len(tried) // 2),
        says="The published count of the group reveals whether the person was in the table."
        + words,
        bound=bound,
        details=details,
    )


def _refuse_impossible(law: ReleaseLaw, people: MembershipTargets, *, least: int) -> None:
    check_whole("rows", people.rows, least)
    bad = ~law.allows_shown(people.rows, people.shown)
    if bad.any():
        first = int(np.flatnonzero(bad)[0])
        raise ParameterError(
            "shown",
            f"be what the law can show of a cell with {people.rows[first]} rows",
            int(people.shown[first]),
        )


def _compute_answers(law: ReleaseLaw, rows: Counts, published: Counts) -> Floats:
    """Return how likely the answer is "in". Of a cell that is never shown, a coin decides."""
    least = law.decision_threshold(rows)
    return np.where(law.tail_probability(rows, least) == 0, 0.5, published >= least)


def _sample_cells(cells: Places, rng: np.random.Generator) -> Places:
    """Return somebody of each cell at random, in random order."""
    order = rng.permutation(len(cells))
    _, first = np.unique(cells[order], return_index=True)
    return rng.permutation(order[first])


def _make_guess(number: int) -> Rate:
    """Return half, exactly: of so many in and as many out, any fixed answer is right for half."""
    return Rate(number, 2 * number, 0.5, 0.5, 0.5)


def attack_by_fit(
    seen: AttackerView,
    members: People,
    outside: People,
    *,
    rng: np.random.Generator,
    bound: float | None = None,
    confidence: float = CONFIDENCE,
) -> Estimate:
    """Say "in" if some row of the release fits the person in every column.

    For a release of any tool. People have the columns of ``seen`` (see :meth:`AttackerView.part`);
    ``outside`` are people who are not in the table, best drawn as its rows were; as many of both
    are asked of. A ``bound`` is that of people who are replaced (:func:`max_success_of_events`).
    """
    number = min(len(members), len(outside))
    fitting = [
        _find_fitting(seen, people.sample_people(number, rng)) for people in (members, outside)
    ]
    return Estimate(
        attack=ATTACK,
        name="a matching row",
        knows=f"the person's {', '.join(seen.names)}",
        success=Rate.from_hits(int(fitting[0].sum() + (~fitting[1]).sum()), 2 * number, confidence),
        guess=_make_guess(number),
        says="A matching row reveals whether the person was in the table.",
        bound=bound,
        details={
            "fits_members": float(fitting[0].mean()) if number else 0.0,
            "fits_outside": float(fitting[1].mean()) if number else 0.0,
        },
    )


def _find_fitting(seen: AttackerView, people: People) -> Bools:
    is_fitting = np.zeros(len(people), dtype=bool)
    if len(seen):
        for near in seen.find_nearest(people.points):
            is_fitting[near.part] = near.most == len(seen.names)
    return is_fitting


Description: TypeAlias = tuple[int, ...]
Shadow: TypeAlias = Callable[[bool, np.random.Generator], Description]


def attack_by_shadows(
    targets: Sequence[Shadow],
    *,
    tries: int,
    rng: np.random.Generator,
    name: str = "shadow releases",
    fields: Sequence[str] = (),
    bound: float | None = None,
) -> Estimate:
    """Learn from releases that the attacker makes himself, with each target and without.

    A target is a function that makes a release of the table, with the person or without, and
    describes it by a few whole numbers, as many each time; ``fields`` are what they are called. Of
    each target ``tries`` releases are made to learn from, half of them with the person, and as many
    to be tested on.

    The attacker takes the rule that does best where it learns: by the likelihood of whole
    descriptions, or of one number of them, or by whether a number is large or small. What a rule
    says of a release that it learns from is counted without that release, else descriptions that
    occur once would seem to tell everything. The tries are independent, so the interval holds.
    ``worst`` is the target most often told, ``worst_low`` the low end of its interval, wide enough
    for all targets together; ``worst_by`` what told it.
    """
    half = max(int(check_whole("tries", tries, 2)) // 2, 1)
    hits: list[int] = []
    rules: list[_DecisionRule] = []
    for shadow in targets:
        learned = _learn_rule(
            *(_describe_releases(shadow, present, half, rng) for present in (True, False))
        )
        chances = np.concatenate(
            [
                learned.answer_releases(_describe_releases(shadow, True, half, rng)),
                1 - learned.answer_releases(_describe_releases(shadow, False, half, rng)),
            ]
        )
        hits.append(Rate.from_chances(chances, rng).hits)
        rules.append(learned)
    details: dict[str, float | str] = {"targets": float(len(targets))}
    if hits:
        worst = int(np.argmax(hits))
        rate = Rate.from_hits(hits[worst], 2 * half, 1 - (1 - CONFIDENCE) / len(hits))
        details |= {"worst": rate.value, "worst_low": rate.low, "worst_high": rate.high}
        details |= {"worst_target": float(worst), "worst_by": rules[worst].describe_fields(fields)}
    return Estimate(
        attack=ATTACK,
        name=name,
        knows="all other rows of the table, and how releases are made",
        success=Rate.from_hits(sum(hits), 2 * half * len(targets)),
        guess=_make_guess(half * len(targets)),
        says="Comparing releases with and without the person reveals who was in the table.",
        bound=bound,
        details=details,
    )


def _describe_releases(
    shadow: Shadow, present: bool, number: int, rng: np.random.Generator
) -> list[Description]:
    return [shadow(present, rng) for _ in range(number)]


@dataclass(frozen=True, eq=False)
class _DecisionRule:
    """What an attacker goes by: some numbers of a description, and what each value of them says.

    By ``table`` it is how often a value was met with the person less how often without; by ``cut``
    whether the number is above it, or, if ``below``, is not.
    """

    columns: tuple[int, ...]
    table: Counter[Description] | None = None
    cut: int = 0
    below: bool = False

    def answer_releases(self, descriptions: Sequence[Description]) -> Floats:
        """Return how likely the answer is "in": 0, 1, or a half where it cannot tell."""
        if self.table is not None:
            met = [self.table[self._select_numbers(description)] for description in descriptions]
            return (np.sign(np.array(met, dtype=np.float64)) + 1) / 2
        (at,) = self.columns
        above = [(description[at] > self.cut) != self.below for description in descriptions]
        return np.array(above, dtype=np.float64)

    def _select_numbers(self, description: Description) -> Description:
        return tuple(description[at] for at in self.columns)

    def count_right(self, present: Sequence[Description], absent: Sequence[Description]) -> float:
        """Return how many of the releases it is right about, each counted without itself."""
        if self.table is None:
            return float(
                self.answer_releases(present).sum() + (1 - self.answer_releases(absent)).sum()
            )
        others = [self.table[self._select_numbers(description)] - 1 for description in present]
        others += [-self.table[self._select_numbers(description)] - 1 for description in absent]
        return float((np.sign(np.array(others, dtype=np.float64)) + 1).sum() / 2)

    def describe_fields(self, fields: Sequence[str]) -> str:
        """Return what it goes by."""
        if len(self.columns) != 1:
            return "all together"
        (at,) = self.columns
        return fields[at] if at < len(fields) else f"number {at + 1}"


def _learn_rule(present: Sequence[Description], absent: Sequence[Description]) -> _DecisionRule:
    """Return the rule that is right most often; the first of equals."""
    width = len(present[0])
    rules = [_make_table_rule((at,), present, absent) for at in range(width)]
    rules += [_make_cut_rule(at, present, absent) for at in range(width)]
    rules.append(_make_table_rule(tuple(range(width)), present, absent))
    return max(rules, key=lambda rule: rule.count_right(present, absent))


def _make_table_rule(
    columns: tuple[int, ...], present: Sequence[Description], absent: Sequence[Description]
) -> _DecisionRule:
    table = Counter(tuple(description[at] for at in columns) for description in present)
    table.subtract(Counter(tuple(description[at] for at in columns) for description in absent))
    return _DecisionRule(columns, table)


def _make_cut_rule(
    at: int, present: Sequence[Description], absent: Sequence[Description]
) -> _DecisionRule:
    """Return the best cut of one number, in the better direction."""
    ins = np.sort(np.array([description[at] for description in present]))
    outs = np.sort(np.array([description[at] for description in absent]))
    cuts = np.unique(np.concatenate([ins, outs]))
    above = np.searchsorted(outs, cuts, side="right") - np.searchsorted(ins, cuts, side="right")
    best = int(np.argmax(np.abs(above)))
    return _DecisionRule((at,), cut=int(cuts[best]), below=bool(above[best] < 0))
