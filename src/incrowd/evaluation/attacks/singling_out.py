"""Singling out: predicates, learned from a release, that isolate exactly one person.

A predicate is a condition on a record that an attacker writes down after he has seen the release.
It isolates if exactly one person of the table meets it. Two ways to find one:

- :func:`isolate_by_rows`: what a single row shows in a few columns, if no other row may show the
  same.
- :func:`isolate_by_classes`: all that a class of s rows shows, and a random condition that one
  record in s meets (Cohen and Nissim on k-anonymity).

To isolate is no feat: of n people, any condition that one record in n meets isolates with a chance
of about 1/e = 37 %, release or not. What counts is how much better a predicate does on the people
of the table than on as many others of the same kind, the control.

Claim: if the release tells nothing of who is in the table, beyond what is so of everybody (table
and control are independent draws from the same people, and the release is independent of both),
the success on the table and on the control have the same law. Proof: given the predicate, each
person of the table and of the control meets it with the same chance w, independently. Of tables of
different sizes as many people are left in both as the smaller has, drawn without replacement: a
uniform subset of independent draws is a smaller set of independent draws. So both numbers of people
who meet it are binomial with the same number and the same w, and one is 1 as often as the other.
A control that is smaller than the table thus costs success: who is not left cannot be isolated.
The tries of one run are about the same people: intervals are those of the tables at hand, and of
small tables the difference varies by some more than they say (by a third, of 1,000 people).

People are counted by their positions on the axes of all columns. They may have more columns than
the release shows, after those: these are no part of what a row shows, but of a person's record.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import TypeAlias

import numpy as np

from incrowd.arrays import Bools, Codes, Counts, Floats, Places
from incrowd.codes.frequency import Frequencies, number_tuples
from incrowd.errors import ParameterError, check_whole
from incrowd.evaluation.attacks.view import AttackerView, subsample
from incrowd.measure.estimate import CONFIDENCE, Estimate, Rate
from incrowd.measure.labels import LabelCover

NAME = "singling-out"
_MOST = 50  # how many rows an attacker looks at, at most, for each predicate that he wants
_CHOICES = 64  # choices of columns, at most, among whose rows he looks
_FEW = 16  # labels whose classes are gathered one label after the other


@dataclass(frozen=True)
class _Term:
    """A condition on one column: the positions from ``low`` to ``high``, or those of a label.

    ``label`` is that of a set of positions that are no run; -1 where they are one.
    """

    column: int
    low: int
    high: int
    label: int = -1


_Terms: TypeAlias = tuple[_Term, ...]  # a predicate: all of them have to hold


def isolate_by_rows(
    seen: AttackerView,
    original: Frequencies,
    control: Frequencies | None,
    *,
    columns: int,
    tries: int,
    rng: np.random.Generator,
    ordered: Sequence[int] = (),
    confidence: float = CONFIDENCE,
) -> Estimate:
    """Isolate by what one released row shows in so many random columns.

    The predicate says of each column that the value is one that the row's label covers. Where it is
    a single value of an ordered column, it says instead "at least this" above the median of the
    release, "at most this" elsewhere: extreme values are rare. ``ordered`` has for each column how
    many positions, from the first on, lie in order; 0 for a column without, nothing for none.

    Kept are distinct predicates that no other row may meet: whose label covers a value that the
    predicate allows, in each column. So if every row is true and nobody is left out, a kept
    predicate isolates for certain: the row's person meets it, since it allows all that the row
    may be, and nobody else does, since everybody else is a row that may not meet it.

    An attacker goes through all choices of columns, or 64 random ones where there are more, and in
    random order through the rows that no other equals there, until he has ``tries`` predicates or
    has looked at 50 times as many rows; what he has found by then are the tries. Where no row is
    ever alone he has nothing to say, and all tries fail. To guess is to take the value of each
    column from a row of its own: the columns are known, how they hang together is not.
    """
    width = len(seen.covers)
    if not 1 <= columns <= width:
        raise ParameterError("columns", f"be from 1 to the columns shown ({width})", columns)
    check_whole("tries", tries)
    original, control = _equalize_sizes(original, control, rng)
    lines = _PredicateSearch(seen, ordered or [0] * width)
    isolating = lines.find_isolating(columns, tries, rng)
    guessed = lines.make_guesses(columns, len(isolating), rng)

    def rate(people: Frequencies, predicates: list[_Terms]) -> Rate:
        hits = _count_isolated(people, predicates, seen.covers)
        return Rate.from_hits(hits, len(predicates) or tries, confidence)

    return Estimate(
        attack=NAME,
        name=f"by {columns} column{'' if columns == 1 else 's'} of a row",
        knows="the release only",
        success=rate(original, isolating),
        guess=rate(original, guessed),
        control=None if control is None else rate(control, isolating),
        says="A condition that one released row meets applies to exactly one person.",
        details={"predicates": float(len(isolating)), "people": float(original.total)},
    )


def isolate_by_classes(
    seen: AttackerView,
    original: Frequencies,
    control: Frequencies | None,
    *,
    tries: int,
    rng: np.random.Generator,
    unique: bool = False,
    confidence: float = CONFIDENCE,
) -> Estimate:
    """Isolate by a class of s rows and a condition that one record in s meets by chance.

    The condition is on the whole record: a random function of all its columns, drawn anew in each
    try, as a hash is of values that nobody foresees. So people with the same record meet it
    together, unless every record is ``unique``, as with a name or a number in it that is in no
    column here. Where a part of the rows was drawn, s counts the people whom the class stands for.

    Claim: of t distinct records in the class, u of which one person has alone, exactly one person
    meets it with chance u (1/s) (1 - 1/s)^(t - 1): one of the u meets it, none of the other t - 1.
    Where the class holds its s people and no others, all of them different, that is
    (1 - 1/s)^(s - 1), which falls from 1/2 at s = 2 toward 1/e = 37 %.

    It is an attack if the control does worse: if the class, over all columns, is so tight around
    its people that hardly anybody else falls into it. A class that holds its share of any table
    isolates one of the control as often, but for about 1 / (e s): the number of rows is that of
    these people, whatever the share (x e^(-x) at x = 1 is highest; of the control x has mean 1 and
    variance 2 / s or so). Where classes are shown only if they are large, it is some more: they
    have more people in this table than in another.

    To guess is to try, without the release, a random condition of the same weight: 1/s of the share
    of the control in the class; without a control, of the table itself, which is no less than the
    weight where labels were fitted to the people, and so favors the guess.
    """
    check_whole("tries", tries)
    original, control = _equalize_sizes(original, control, rng)
    chosen = rng.integers(0, len(seen), tries) if len(seen) else np.zeros(0, dtype=np.int64)
    sizes = np.maximum(seen.counts[chosen] / seen.drawn, 1.0)
    inside = _cover_people(seen, chosen, original)
    others = inside if control is None else _cover_people(seen, chosen, control)
    people = original if control is None else control
    weights = others.people / max(people.total, 1) / sizes
    everybody = _CoveredRecords(*_summarize_counts(original.counts))

    def rate(covered: _CoveredRecords, weight: Floats) -> Rate:
        if unique:
            covered = _CoveredRecords(covered.people, covered.people, covered.people)
        hits = int((rng.random(len(weight)) < covered.isolation_chance(weight)).sum())
        return Rate.from_hits(hits, tries, confidence)  # without a class to choose there is no hit

    return Estimate(
        attack=NAME,
        name="by a class and a random condition",
        knows="the release only",
        success=rate(inside, 1 / sizes),
        guess=rate(everybody, weights),
        control=None if control is None else rate(others, 1 / sizes),
        says="A condition met by one record in s, in a class of s rows, applies to one person.",
        details={
            "size": float(sizes.mean()) if len(sizes) else 0.0,
            "weight": float(weights.mean()) if len(weights) else 0.0,
            "people": float(original.total),
        },
    )


@dataclass(frozen=True, eq=False)
class _CoveredRecords:
    """Distinct records that a predicate covers, those that one person has alone, and people."""

    records: Floats
    single: Floats
    people: Floats

    def isolation_chance(self, weight: Floats) -> Floats:
        """Return the chance that exactly one person meets a random condition of a weight."""
        rest = np.maximum(self.records - 1, 0)
        return np.asarray(self.single * weight * (1 - weight) ** rest, dtype=np.float64)


def _summarize_counts(counts: Counts) -> Floats:
    return np.array([len(counts), (counts == 1).sum(), counts.sum()], dtype=np.float64)


def _equalize_sizes(
    original: Frequencies, control: Frequencies | None, rng: np.random.Generator
) -> tuple[Frequencies, Frequencies | None]:
    """Draw as many people of both as the smaller has, without replacement."""
    if control is None:
        return original, None
    number = min(original.total, control.total)
    return subsample(original, number, rng), subsample(control, number, rng)


def _cover_people(seen: AttackerView, classes: Places, people: Frequencies) -> _CoveredRecords:
    """Return what each class covers of some people."""
    columns = np.asfortranarray(people.codes)
    distinct, at = np.unique(classes, return_inverse=True)
    summaries = np.zeros((len(distinct), 3))
    for row, place in enumerate(distinct):
        left: Places | None = None
        for column, cover in enumerate(seen.covers):
            label = int(seen.codes[place, column])
            left = _filter_tuples(columns, left, _make_term(cover, column, label), cover)
        summaries[row] = _summarize_counts(people.counts if left is None else people.counts[left])
    return _CoveredRecords(*summaries[at].T)


def _make_term(cover: LabelCover, column: int, label: int) -> _Term:
    low, high = int(cover.low[label]), int(cover.high[label])
    return _Term(column, low, high, label if label in cover.sets else -1)


def _filter_tuples(columns: Codes, left: Places | None, term: _Term, cover: LabelCover) -> Places:
    """Return the tuples that meet a term, of those that are left (None: all)."""
    values = columns[:, term.column] if left is None else columns[left, term.column]
    if term.label >= 0:
        meets = np.isin(values, cover.sets[term.label])
    else:
        meets = (term.low <= values) & (values <= term.high)
    meeting = np.flatnonzero(meets)
    return meeting if left is None else left[meeting]


def _count_isolated(
    people: Frequencies, predicates: Sequence[_Terms], covers: Sequence[LabelCover]
) -> int:
    """Count the predicates that exactly one person meets."""
    columns = np.asfortranarray(people.codes)
    hits = 0
    for predicate in predicates:
        left: Places | None = None
        for term in predicate:
            left = _filter_tuples(columns, left, term, covers[term.column])
            if not len(left):
                break
        hits += int(left is not None and people.counts[left].sum() == 1)
    return hits


class _PredicateSearch:
    """The columns of a release as lines, on which predicates are laid."""

    def __init__(self, seen: AttackerView, ordered: Sequence[int]) -> None:
        self._covers, self._counts, self._ordered = seen.covers, seen.counts, ordered
        self._codes = np.asfortranarray(seen.codes)
        self._upto: Counts = np.cumsum(seen.counts)
        self._sizes = [
            np.bincount(seen.codes[:, at], minlength=len(cover.low))
            for at, cover in enumerate(seen.covers)
        ]
        self._orders = [
            (np.argsort(seen.codes[:, at], kind="stable"), np.append(0, np.cumsum(sizes)))
            for at, sizes in enumerate(self._sizes)
        ]
        self._medians = [
            _compute_median(cover, seen.codes[:, at], seen.counts) if ordered[at] else 0
            for at, cover in enumerate(seen.covers)
        ]

    def find_isolating(self, columns: int, tries: int, rng: np.random.Generator) -> list[_Terms]:
        """Return so many distinct predicates that exactly one row may meet, or as many as found."""
        isolating = []
        for chosen, row in self._list_candidates(columns, _MOST * tries, rng):
            terms = tuple(self._make_term(at, row) for at in chosen)
            if self._count_meeting(terms) == 1:
                isolating.append(terms)
                if len(isolating) == tries:
                    break
        return isolating

    def _list_candidates(
        self, columns: int, most: int, rng: np.random.Generator
    ) -> list[tuple[tuple[int, ...], int]]:
        """Return columns and rows that no other row equals in them: so many, in random order."""
        choices = _list_choices(len(self._covers), columns, rng)
        alone = [self._find_unique(chosen) for chosen in choices]
        sizes = np.array([int(rows.sum()) for rows in alone], dtype=np.int64)
        number = min(int(sizes.sum()), most)
        sample_sizes = rng.multivariate_hypergeometric(sizes, number, method="marginals").tolist()
        candidates = [
            (chosen, int(row))
            for chosen, rows, size in zip(choices, alone, sample_sizes, strict=True)
            for row in rng.choice(np.flatnonzero(rows), size, replace=False)
        ]
        return [candidates[at] for at in rng.permutation(len(candidates))]

    def _find_unique(self, columns: tuple[int, ...]) -> Bools:
        """Return the classes of one row that no other row equals in some columns."""
        _, at = np.unique(number_tuples(self._codes[:, list(columns)]), return_inverse=True)
        is_unique: Bools = np.bincount(at, weights=self._counts)[at] == 1
        return is_unique

    def make_guesses(self, columns: int, number: int, rng: np.random.Generator) -> list[_Terms]:
        """Return predicates of which each term comes from a row of its own."""
        choices = _list_choices(len(self._covers), columns, rng)
        return [
            tuple(self._make_term(at, row) for at, row in zip(choices[place], rows, strict=True))
            for place in rng.integers(0, len(choices), number)
            for rows in [self._sample_classes(columns, rng)]
        ]

    def _sample_classes(self, number: int, rng: np.random.Generator) -> list[int]:
        """Return the classes of random rows."""
        rows = rng.integers(0, self._upto[-1], number)
        classes: list[int] = np.searchsorted(self._upto, rows, side="right").tolist()
        return classes

    def _make_term(self, column: int, row: int) -> _Term:
        term = _make_term(self._covers[column], column, int(self._codes[row, column]))
        last = self._ordered[column] - 1
        if term.low != term.high or term.low > last:
            return term
        if term.low > self._medians[column]:
            return _Term(column, term.low, last)
        return _Term(column, 0, term.high)

    def _count_meeting(self, terms: _Terms) -> int:
        """Count rows that may meet all terms; the term that fewest classes may meet comes first."""
        met = [(term.column, _find_met_labels(self._covers[term.column], term)) for term in terms]
        met.sort(key=lambda entry: int(self._sizes[entry[0]][entry[1]].sum()))
        (column, first), *others = met
        left = self._find_classes(column, first)
        for column, labels in others:
            left = left[labels[self._codes[left, column]]]
        return int(self._counts[left].sum())

    def _find_classes(self, column: int, labels: Bools) -> Places:
        """Return the classes that have one of some labels."""
        chosen = np.flatnonzero(labels)
        if len(chosen) > _FEW:
            return np.flatnonzero(labels[self._codes[:, column]])
        order, ends = self._orders[column]
        return np.concatenate([order[ends[label] : ends[label + 1]] for label in chosen])


def _list_choices(width: int, columns: int, rng: np.random.Generator) -> list[tuple[int, ...]]:
    """Return all choices of so many columns, or 64 random ones."""
    if comb(width, columns) <= _CHOICES:
        return list(combinations(range(width), columns))
    choices: set[tuple[int, ...]] = set()
    while len(choices) < _CHOICES:
        choices.add(tuple(sorted(rng.permutation(width)[:columns].tolist())))
    return sorted(choices)


def _find_met_labels(cover: LabelCover, term: _Term) -> Bools:
    """Return which labels cover a position that a term allows."""
    met_labels = (cover.low <= term.high) & (term.low <= cover.high)
    allowed = cover.sets.get(term.label)
    if allowed is not None:
        upto = np.searchsorted(allowed, cover.high, side="right")
        met_labels = upto > np.searchsorted(allowed, cover.low, side="left")
    for label, covered in cover.sets.items():
        if allowed is None:
            met_labels[label] = bool(((term.low <= covered) & (covered <= term.high)).any())
        else:
            met_labels[label] = bool(np.isin(covered, allowed).any())
    return met_labels


def _compute_median(cover: LabelCover, codes: Codes, counts: Counts) -> float:
    """Return the middle of the released rows on a line, each at the middle of its label."""
    if not len(codes):
        return 0.0
    middle = (cover.low[codes] + cover.high[codes]) / 2
    order = np.argsort(middle, kind="stable")
    upto = np.cumsum(counts[order])
    return float(middle[order][np.searchsorted(upto, (upto[-1] + 1) // 2)])
