"""Shadow releases: a table published again and again, with a person and without.

Who knows everybody else and the spec can make them as well as the curator can, and learns how a
release with the person differs from one without: from the rows and classes shown, from the rows
that fit the person, from what was chosen and told of it, and from whether it looks like another.

The table is counted once. Its neighbour has one row less of a distinct tuple; a column whose spec
lists no values keeps those that were met in the whole table.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from typing import Any

import numpy as np

from incrowd.arrays import Bools, Codes, Counts, Places, Words
from incrowd.codes.counted import Counted, Rows
from incrowd.codes.frequency import Frequencies
from incrowd.engine.source import open_for
from incrowd.engine.table import Engine
from incrowd.errors import IncrowdError, ParameterError
from incrowd.evaluation.attacks.membership import Description, Shadow, by_shadows, most_of
from incrowd.measure.estimate import Estimate
from incrowd.measure.labels import Reader
from incrowd.methods.base import MakeContext, Method, here
from incrowd.methods.registry import method_of
from incrowd.privacy.randomness import SeededRandomness
from incrowd.release.product import Made, Product
from incrowd.spec.file import SpecSource, taken
from incrowd.spec.model import PersonId

FIELDS = ("rows shown", "classes shown", "rows that fit", "what was chosen", "all that is shown")
TRIES = 60
TARGETS = 4
_NOTHING = -1  # where a release was refused


def shadow_attack(
    table: Any,
    spec: SpecSource,
    *,
    rng: np.random.Generator,
    targets: int = TARGETS,
    tries: int = TRIES,
    engine: Engine | None = None,
) -> list[Estimate]:
    """Attack releases of a table by their shadows: the most exposed people, and random ones.

    Up to so many ``targets`` of each kind; of each, ``tries`` releases are made to learn from and
    as many to be tested on, unless the method draws nothing: then two tell all. Nothing is booked,
    written or published.
    """
    shadows = Shadows.of(table, spec, rng=rng, engine=engine)
    groups = {
        "the most exposed": shadows.exposed(targets, rng),
        "random people": shadows.some(targets, rng),
    }
    bound = most_of(shadows.method.events)
    return [
        by_shadows(
            [shadows.target(int(at)) for at in places],
            tries=tries, rng=rng, name=f"shadow releases of {len(places)} people, {name}",
            fields=shadows.fields, bound=bound,
        )
        for name, places in groups.items()
        if len(places)
    ]  # fmt: skip


@dataclass(frozen=True, eq=False)
class Shadows:
    """A method and a table that it counted, to be released with and without single people.

    A person is named by the place of his tuple among all that are counted.
    """

    method: Method
    counted: Counted | Rows
    engine: Engine

    @classmethod
    def of(
        cls,
        table: Any,
        spec: SpecSource,
        *,
        rng: np.random.Generator,
        engine: Engine | None = None,
    ) -> Shadows:
        """Of a table by a spec; both as :func:`incrowd.publication.publish` takes them.

        Where a person has several rows, one of them is chosen once for all shadows.
        """
        file = taken(spec)
        source = open_for(file, table, engine=engine)
        method = method_of(file)
        if isinstance(file.spec.unit, PersonId):
            source = source.one_row_each(file.spec.unit.id, _bits(rng))
        return cls(method, here(method.count(source)), source.engine)

    @property
    def frequencies(self) -> Frequencies:
        """All distinct tuples with their counts."""
        return self.counted.frequencies

    @property
    def fields(self) -> tuple[str, ...]:
        """What the numbers of a description are called, of one table after the other."""
        return FIELDS * self._tables

    @cached_property
    def _tables(self) -> int:
        """How many tables a release has, which is settled before it is made; seen in one."""
        try:
            return len(self._made(self.counted, _Watched(0)).products)
        except IncrowdError:
            return 1

    def _made(self, table: Counted | Rows, bits: _Watched) -> Made:
        return self.method.make(table, MakeContext(bits, self.engine))

    def some(self, number: int, rng: np.random.Generator) -> Places:
        """Random people of the table, as the tuples that they belong to; none twice."""
        total = self.frequencies.total
        rows = rng.choice(total, min(number, total), replace=False)
        return np.searchsorted(np.cumsum(self.frequencies.counts), rows, side="right")

    def exposed(self, number: int, rng: np.random.Generator) -> Places:
        """People alone in their tuple: first the only holders of an end of an ordered column.

        None where nobody is alone.
        """
        alone = self.frequencies.counts == 1
        ends = alone & self._extreme
        rest = alone & ~ends
        order = [rng.permutation(np.flatnonzero(some)) for some in (ends, rest)]
        return np.concatenate(order)[:number].astype(np.int64)

    @cached_property
    def _extreme(self) -> Bools:
        """Which tuples hold, all by themselves, the lowest or highest position of a column."""
        counted = _generalised(self.counted)
        found = np.zeros(len(self.frequencies), dtype=bool)
        for at, axis in enumerate(counted.axes):
            if not axis.ordered:
                continue
            leaves = _leaves(counted, at)[self.frequencies.codes[:, at]]
            places = axis.positions[leaves].astype(np.int64)
            inside = places < axis.hierarchy.null
            for end in (places[inside].min(initial=-1), places[inside].max(initial=-1)):
                there = inside & (places == end)
                found |= there & (self.frequencies.counts[there].sum() == 1)
        return found

    def without(self, at: int) -> Counted | Rows:
        """The table without one row of a tuple."""
        if not 0 <= at < len(self.frequencies):
            raise ParameterError("at", "be the place of a tuple", at)
        fewer, kept = _less(self.frequencies, at)
        if isinstance(self.counted, Counted):
            return replace(self.counted, frequencies=fewer)
        rows, owner = self.counted, int(self.counted.owner[at])
        own, left = _less(rows.counted.frequencies, owner)
        return replace(
            rows,
            counted=replace(rows.counted, frequencies=own),
            frequencies=fewer,
            owner=(np.cumsum(left) - 1)[rows.owner[kept]],
        )

    def target(self, at: int) -> Shadow:
        """Releases of the table with and without one person, described by whole numbers.

        A method that draws nothing makes the same release each time, so it is asked once.
        """
        tables = {True: self.counted, False: self.without(at)}
        looks = _Looks(_generalised(self.counted), self.frequencies.codes[at])
        known: dict[bool, Description] = {}

        def release(present: bool, rng: np.random.Generator) -> Description:
            if present not in known:
                bits = _Watched(int(rng.integers(2**62)))
                described = self._described(tables[present], looks, bits)
                if bits.drawn:
                    return described
                known[present] = described
            return known[present]

        return release

    def _described(self, table: Counted | Rows, looks: _Looks, bits: _Watched) -> Description:
        try:
            made = self._made(table, bits)
        except IncrowdError:  # too few rows, say: that tells as well
            return (_NOTHING,) * len(self.fields)
        return tuple(x for product in made.products for x in looks.described(product))


class _Watched(SeededRandomness):
    """Bits of a seed that tell whether any were asked for."""

    drawn = False

    def words(self, count: int) -> Words:
        """The next words."""
        self.drawn |= count > 0
        return super().words(count)


def _bits(rng: np.random.Generator) -> SeededRandomness:
    return SeededRandomness(int(rng.integers(2**62)))


def _generalised(table: Counted | Rows) -> Counted:
    return table.counted if isinstance(table, Rows) else table


def _less(frequencies: Frequencies, at: int) -> tuple[Frequencies, Bools]:
    """With one row less of a tuple, and which tuples are left."""
    counts: Counts = frequencies.counts.copy()
    counts[at] -= 1
    kept = counts > 0
    return Frequencies(frequencies.codes[kept], counts[kept]), kept


def _leaves(counted: Counted, at: int) -> Places:
    """For each code of a column at its level, some value that belongs to it."""
    hierarchy, level = counted.hierarchies[at], counted.levels[at]
    found = np.zeros(len(hierarchy.labels[level]), dtype=np.int64)
    groups = hierarchy.groups[level]
    found[groups[::-1]] = np.arange(len(groups))[::-1]  # the first value of each
    return found


class _Looks:
    """What a release looks like to somebody who is after one person."""

    def __init__(self, counted: Counted, codes: Codes) -> None:
        self._person = {
            name: (counted.axes[at], int(_leaves(counted, at)[codes[at]]))
            for at, name in enumerate(counted.names)
        }
        self._fits: dict[tuple[str, int | None, object], bool] = {}
        self._readers: dict[str, Reader] = {}

    def described(self, product: Product) -> Description:
        """The numbers of :data:`FIELDS`."""
        shown = product.shown
        chosen = (shown.levels, sorted(product.parameters.items()))
        return (
            product.rows,
            product.classes,
            self._fitting(product),
            _number(chosen),
            _number((chosen, product.stars, _content(product))),
        )

    def _fitting(self, product: Product) -> int:
        """How many rows fit the person in all columns that are shown."""
        shown = product.shown
        fitting = np.ones(len(shown.frequencies), dtype=bool)
        levels = shown.levels or (None,) * len(product.original.names)
        for at, (name, level) in enumerate(zip(product.original.names, levels, strict=True)):
            codes = shown.frequencies.codes[:, at]
            fits = np.zeros(len(shown.labels[at]), dtype=bool)
            for code in np.unique(codes).tolist():
                fits[code] = self._fit(name, level, shown.labels[at][code])
            fitting &= fits[codes]
        return int(shown.frequencies.counts[fitting].sum())

    def _fit(self, name: str, level: int | None, label: object) -> bool:
        known = (name, level, label)
        if known not in self._fits:
            axis, leaf = self._person[name]
            hierarchy = axis.hierarchy
            if level is not None:
                own = hierarchy.labels[level][hierarchy.groups[level][leaf]]
                self._fits[known] = label == own
            else:
                places, _ = self._reader(name).read(label)
                everything = label == hierarchy.root
                self._fits[known] = everything or bool((places == axis.positions[leaf]).any())
        return self._fits[known]

    def _reader(self, name: str) -> Reader:
        if name not in self._readers:
            self._readers[name] = Reader(name, self._person[name][0])
        return self._readers[name]


def _content(product: Product) -> list[tuple[str, int]]:
    """The classes by their labels, in an order that does not depend on how they are numbered."""
    shown = product.shown
    columns = [
        [repr(labels[code]) for code in shown.frequencies.codes[:, at].tolist()]
        for at, labels in enumerate(shown.labels)
    ]
    texts = map("\0".join, zip(*columns, strict=True))
    return sorted(zip(texts, shown.frequencies.counts.tolist(), strict=True))


def _number(value: object) -> int:
    """A number of 48 bits that stands for a value."""
    return int.from_bytes(blake2b(repr(value).encode(), digest_size=6).digest(), "big")
