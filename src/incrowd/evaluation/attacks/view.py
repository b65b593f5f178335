"""A release as an attacker reads it, the people that he is after, and which rows may be theirs.

A row fits a person in a column if its label covers the person's value. Who knows some columns of a
person looks for the rows that fit in most of them; if the knowledge is right and the row is shown,
these are the rows that fit in all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from incrowd.arrays import Bools, Codes, Counts, Floats, Places
from incrowd.codes.frequency import Frequencies, number_tuples
from incrowd.measure.labels import LabelCover
from incrowd.measure.risk import find_fitting_labels

_CELLS = 20_000_000  # comparisons of a person with a class that are held at once
_FEW = 50  # one row in so many, or fewer, are drawn one by one


@dataclass(frozen=True, eq=False)
class AttackerView:
    """The classes of a release: ``codes`` are labels of the columns ``names``, ``counts`` rows.

    ``covers`` says what the labels of each column cover. ``drawn`` is the chance that a person's
    row was drawn into the release at all, ``noise`` the variance of noise in numbers of rows.
    """

    names: tuple[str, ...]
    codes: Codes
    counts: Counts
    covers: tuple[LabelCover, ...]
    drawn: float = 1.0
    noise: float = 0.0

    def __len__(self) -> int:
        return len(self.counts)

    @property
    def rows(self) -> int:
        """How many rows are shown."""
        return int(self.counts.sum())

    def select_columns(self, columns: Sequence[int]) -> tuple[AttackerView, Places]:
        """Return what is seen of some columns, and the class that each class becomes."""
        chosen = self.codes[:, list(columns)]
        _, first, at = np.unique(number_tuples(chosen), return_index=True, return_inverse=True)
        counts = np.bincount(at, weights=self.counts, minlength=len(first)).astype(np.int64)
        part = replace(
            self,
            names=tuple(self.names[column] for column in columns),
            codes=chosen[first],
            counts=counts,
            covers=tuple(self.covers[column] for column in columns),
        )
        return part, at.astype(np.int64)

    def find_class(self, points: Codes) -> Places | None:
        """Return the one class that fits each of some people in all columns, -1 if none does.

        None where people may fit several, because labels of a column overlap.
        """
        if not len(self):
            return np.full(len(points), -1, dtype=np.int64)
        codes = find_fitting_labels(points, self.codes, self.covers)
        if codes is None:
            return None
        is_covered = (codes >= 0).all(axis=1)
        named = number_tuples(np.vstack([self.codes, np.maximum(codes, 0)]).astype(np.int32))
        order = np.argsort(named[: len(self)])
        places = np.searchsorted(named[: len(self)], named[len(self) :], sorter=order)
        at = order[np.minimum(places, len(self) - 1)]
        hit = is_covered & (named[at] == named[len(self) :])
        return np.where(hit, at, -1)

    def count_fitting_rows(self, points: Codes) -> Counts:
        """Count the rows that fit each of some people in all columns."""
        places = self.find_class(points)
        if places is not None:
            return np.append(self.counts, 0)[places]
        along = self._sweep_column(int(points.max(initial=0)))
        fitting_rows = np.zeros(len(points), dtype=np.int64)
        size = max(1, _CELLS // max(len(self), 1))
        for start in range(0, len(points), size):
            some = points[start : start + size]
            if along is None:
                person, place = self._find_whole_fits(some)
                rows = self.counts[place]
            else:
                person, place = along.part._find_whole_fits(some[:, along.others])
                rows = along.rows[place, some[person, along.column]]
            fitting_rows[start : start + size] = np.bincount(person, rows, minlength=len(some))
        return fitting_rows

    def _sweep_column(self, last: int) -> _ColumnSweep | None:
        """Return rows along the column with most labels; None where that takes too much to hold."""
        column = int(np.argmax([len(cover.low) for cover in self.covers]))
        others = [at for at in range(len(self.covers)) if at != column]
        cover = self.covers[column]
        if cover.sets or not others:
            return None
        part, at = self.select_columns(others)
        width = max(int(cover.high.max(initial=0)), last) + 2
        if len(part) * width > _CELLS:
            return None
        labels, cells = self.codes[:, column], len(part) * width
        change = np.bincount(at * width + cover.low[labels], self.counts, minlength=cells)
        change -= np.bincount(at * width + cover.high[labels] + 1, self.counts, minlength=cells)
        return _ColumnSweep(
            column, others, part, np.cumsum(change.reshape(len(part), width), axis=1)
        )

    def find_nearest(self, points: Codes) -> Iterator[NearestClasses]:
        """Yield the classes that fit each of some people in most columns, in parts.

        Classes that fit in all columns are looked up; only people who have none are held against
        every class.
        """
        classes = self.find_class(points)
        size = max(1, _CELLS // max(len(self), 1))
        for start in range(0, len(points), size):
            part = slice(start, min(start + size, len(points)))
            some = points[part]
            if classes is None:
                person, place = self._find_whole_fits(some)
            else:
                person = np.flatnonzero(classes[part] >= 0)
                place = classes[part][person]
            yield self._complete_nearest(part, some, person, place)

    def _complete_nearest(
        self, part: slice, points: Codes, person: Places, place: Places
    ) -> NearestClasses:
        """Return whole fits, and the nearest classes of people who have none."""
        lost = np.flatnonzero(np.bincount(person, minlength=len(points)) == 0)
        most = np.full(len(points), len(self.names), dtype=np.int64)
        for near in self._compare_all(points[lost]):
            most[lost[near.part]] = near.most
            person = np.append(person, lost[near.part][near.person])
            place = np.append(place, near.place)
        order = np.argsort(person, kind="stable")
        ends = np.searchsorted(person[order], np.arange(len(points) + 1))
        return NearestClasses(part, most, place[order], ends)

    def _find_whole_fits(self, points: Codes) -> tuple[Places, Places]:
        """Return all pairs of a person and a class that fits in all columns.

        Pairs are made by the column that leaves fewest, and held against one column after another.
        """
        sizes = [
            np.bincount(codes, minlength=len(cover.low))
            for codes, cover in zip(self.codes.T, self.covers, strict=True)
        ]
        pairs = [
            float(_count_fitting_classes(cover, size, column).sum())
            for cover, size, column in zip(self.covers, sizes, points.T, strict=True)
        ]
        first, *others = np.argsort(pairs).tolist()
        order = np.argsort(self.codes[:, first], kind="stable")
        starts = np.cumsum(sizes[first]) - sizes[first]
        fitting = match_labels(self.covers[first], points[:, first])
        person, label = np.nonzero(fitting.view(np.bool_))  # far faster than of numbers
        number = sizes[first][label]
        ends = np.cumsum(number)
        within = np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - number, number)
        place = order[np.repeat(starts[label], number) + within]
        person = np.repeat(person, number)
        for at in others:
            fits = _match_pairs(self.covers[at], points[:, at], person, self.codes[place, at])
            person, place = person[fits], place[fits]
        return person, place

    def _compare_all(self, points: Codes) -> Iterator[NearestClasses]:
        """Hold each person against all classes."""
        size = max(1, _CELLS // max(len(self), 1))
        for start in range(0, len(points), size):
            some = points[start : start + size]
            fitting = self._count_fitting_columns(some)
            most = fitting.max(axis=1, initial=0)
            person, place = np.nonzero(fitting == most[:, None])
            ends = np.searchsorted(person, np.arange(len(some) + 1))
            yield NearestClasses(
                slice(start, start + len(some)), most.astype(np.int64), place, ends
            )

    def _count_fitting_columns(self, points: Codes) -> npt.NDArray[np.uint8]:
        """Return in how many columns each class (across) fits each person (down)."""
        fitting_columns = np.zeros((len(points), len(self)), dtype=np.uint8)
        for at, cover in enumerate(self.covers):
            fitting_columns += match_labels(cover, points[:, at])[:, self.codes[:, at]]
        return fitting_columns


@dataclass(frozen=True, eq=False)
class _ColumnSweep:
    """The rows of each class of a ``part``, the ``others``, that fit each position of a column."""

    column: int
    others: list[int]
    part: AttackerView
    rows: Floats


@dataclass(frozen=True, eq=False)
class NearestClasses:
    """For the people of a ``part``: in how many columns the nearest classes fit, and which.

    Person i is nearest to the classes ``place[ends[i] : ends[i + 1]]``.
    """

    part: slice
    most: Places
    place: Places
    ends: Places

    def sum_weights(self, weights: Counts) -> Counts:
        """Return for each person what the nearest classes weigh together."""
        upto = np.append(0, np.cumsum(weights[self.place]))
        return np.asarray(upto[self.ends[1:]] - upto[self.ends[:-1]])

    @property
    def person(self) -> Places:
        """The person that each entry of ``place`` belongs to."""
        return np.repeat(np.arange(len(self.most)), np.diff(self.ends))


def match_labels(cover: LabelCover, places: Codes) -> npt.NDArray[np.uint8]:
    """Return whether each label (across) covers each position (down)."""
    covers = (cover.low <= places[:, None]) & (places[:, None] <= cover.high)
    for label, covered in cover.sets.items():
        covers[:, label] = np.isin(places, covered)
    return covers.astype(np.uint8)


def _match_pairs(cover: LabelCover, places: Codes, person: Places, labels: Codes) -> Bools:
    """Return whether each label covers the position of the person beside it."""
    if cover.sets:
        return match_labels(cover, places)[person, labels] > 0
    positions = places[person]
    return (cover.low[labels] <= positions) & (positions <= cover.high[labels])


def _count_fitting_classes(cover: LabelCover, sizes: Counts, places: Codes) -> Counts:
    """Count the classes that fit each position, where labels have so many classes."""
    last = max(int(cover.high.max(initial=0)), int(places.max(initial=0)))
    runs = np.ones(len(sizes), dtype=bool)
    runs[list(cover.sets)] = False
    change = np.bincount(cover.low[runs], sizes[runs], minlength=last + 2)
    change -= np.bincount(cover.high[runs] + 1, sizes[runs], minlength=last + 2)
    classes = np.cumsum(change)
    for label, covered in cover.sets.items():
        classes[covered] += sizes[label]
    return classes[places].astype(np.int64)


def make_view(
    names: Sequence[str],
    published: Frequencies,
    covers: Sequence[LabelCover],
    *,
    quasi: Sequence[int] | None = None,
    sample_rate: float = 1.0,
    noise: float = 0.0,
) -> AttackerView:
    """Return a release as an attacker reads it.

    Rows that show nothing in any of the columns ``quasi`` (by default, of all) fit everybody and
    name nobody; they are left out.
    """
    some = range(len(covers)) if quasi is None else quasi
    is_informative = ~np.all([covers[at].starred[published.codes[:, at]] for at in some], axis=0)
    codes = published.codes[is_informative].copy()
    used = []
    for at, cover in enumerate(covers):
        labels, codes[:, at] = np.unique(codes[:, at], return_inverse=True)
        used.append(_select_labels(cover, labels))
    return AttackerView(
        tuple(names), codes, published.counts[is_informative], tuple(used), sample_rate, noise
    )


def _select_labels(cover: LabelCover, labels: Codes) -> LabelCover:
    """Return what some of the labels cover."""
    return LabelCover(
        tuple(cover.labels[label] for label in labels.tolist()),
        cover.loss[labels],
        cover.precision[labels],
        lambda: cover.shares[labels],
        cover.rows[labels],
        cover.starred[labels],
        cover.low[labels],
        cover.high[labels],
        {at: cover.sets[x] for at, x in enumerate(labels.tolist()) if x in cover.sets},
    )


@dataclass(frozen=True, eq=False)
class People:
    """Some people, each a row: positions on the axes of all columns."""

    points: Codes

    def __len__(self) -> int:
        return len(self.points)

    def select_columns(self, columns: Sequence[int]) -> People:
        """Return the same people by some of the columns."""
        return People(self.points[:, list(columns)])

    def sample_people(self, number: int, rng: np.random.Generator) -> People:
        """Return so many of them, at random; all if there are fewer."""
        if len(self) <= number:
            return self
        return People(self.points[rng.choice(len(self), number, replace=False)])

    def with_errors(self, errors: float, rng: np.random.Generator) -> People:
        """Return them as an attacker has them who is wrong about each value with a given chance.

        A wrong value is that of another of these people.
        """
        points = self.points.copy()
        for column in points.T:
            wrong: Bools = rng.random(len(column)) < errors
            column[wrong] = rng.choice(column, int(wrong.sum()))
        return People(points)


def sample_people(frequencies: Frequencies, number: int, rng: np.random.Generator) -> People:
    """Return so many random rows of a table counted by positions, none of them twice."""
    total = frequencies.total
    chosen = (
        np.arange(total) if total <= number else np.sort(rng.choice(total, number, replace=False))
    )
    owner = np.searchsorted(np.cumsum(frequencies.counts), chosen, side="right")
    return People(frequencies.codes[owner])


def subsample(table: Frequencies, rows: int, rng: np.random.Generator) -> Frequencies:
    """Return so many rows of a table, at random and none twice; all if there are no more."""
    if table.total <= rows:
        return table
    if rows <= table.total // _FEW:  # then numpy draws them without looking at the others
        sampled = rng.choice(table.total, rows, replace=False)
        owner = np.searchsorted(np.cumsum(table.counts), sampled, side="right")
        places, counts = np.unique(owner, return_counts=True)
        return Frequencies(table.codes[places], counts.astype(np.int64))
    left = rng.multivariate_hypergeometric(table.counts, rows, method="marginals").astype(np.int64)
    return Frequencies(table.codes[left > 0], left[left > 0])
