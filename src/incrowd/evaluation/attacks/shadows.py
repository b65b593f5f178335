"""Shadow releases: a table published again and again, with a person and without.

Who knows everybody else and the spec can make them as well as the curator can, and learns how a
release with the person differs from one without: from the rows and classes shown, from the rows
that fit the person, from what was chosen and told of it, and from whether it looks like another.

The table is counted once. Its neighbor has one row less of a distinct tuple; a column whose spec
lists no values keeps those that were met in the whole table.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from typing import Any

import numpy as np

from incrowd.arrays import Bools, Codes, Counts, Places, Words
from incrowd.codes.counted_table import CountedTable, DistinctRows
from incrowd.codes.frequency import Frequencies
from incrowd.engine.source import open_spec_table
from incrowd.engine.table import Engine
from incrowd.errors import IncrowdError, ParameterError
from incrowd.evaluation.attacks.membership import (
    Description,
    Shadow,
    attack_by_shadows,
    max_success_of_events,
)
from incrowd.measure.estimate import Estimate
from incrowd.measure.labels import LabelReader
from incrowd.methods.base import MakeContext, Method, require_local
from incrowd.methods.registry import make_method
from incrowd.privacy.randomness import SeededRandomness
from incrowd.release.product import MethodResult, Product
from incrowd.spec.file import SpecSource, load_spec
from incrowd.spec.model import PersonId

FIELDS = ("rows shown", "classes shown", "rows that fit", "what was chosen", "all that is shown")
TRIES = 60
TARGETS = 4
_NOTHING = -1  # where a release was refused


def run_shadow_attack(
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
    shadows = ShadowReleases.from_table(table, spec, rng=rng, engine=engine)
    groups = {
        "the most exposed": shadows.find_exposed(targets, rng),
        "random people": shadows.sample_people(targets, rng),
    }
    bound = max_success_of_events(shadows.method.events)
    return [
        attack_by_shadows(
            [shadows.make_shadow(int(at)) for at in places],
            tries=tries, rng=rng, name=f"shadow releases of {len(places)} people, {name}",
            fields=shadows.fields, bound=bound,
        )
        for name, places in groups.items()
        if len(places)
    ]  # fmt: skip


@dataclass(frozen=True, eq=False)
class ShadowReleases:
    """A method and a table that it counted, to be released with and without single people.

    A person is named by the place of his tuple among all that are counted.
    """

    method: Method
    counted: CountedTable | DistinctRows
    engine: Engine

    @classmethod
    def from_table(
        cls,
        table: Any,
        spec: SpecSource,
        *,
        rng: np.random.Generator,
        engine: Engine | None = None,
    ) -> ShadowReleases:
        """Make shadows of a table by a spec, as :func:`incrowd.publication.publish` takes them.

        Where a person has several rows, one of them is chosen once for all shadows.
        """
        file = load_spec(spec)
        source = open_spec_table(file, table, engine=engine)
        method = make_method(file)
        if isinstance(file.spec.unit, PersonId) and file.spec.unit.rows > 1:
            raise IncrowdError(
                "Shadows remove one row, but the unit is a person with several rows. Attack the "
                "release without `--shadows`, or one of a spec with `rows: 1`."
            )
        if isinstance(file.spec.unit, PersonId):
            source = source.choose_row_per_person(file.spec.unit.id, _seed_bits(rng))
        return cls(method, require_local(method.count(source)), source.engine)

    @property
    def frequencies(self) -> Frequencies:
        """All distinct tuples with their counts."""
        return self.counted.frequencies

    @property
    def fields(self) -> tuple[str, ...]:
        """What the numbers of a description are called, of one table after the other."""
        return FIELDS * self._table_count

    @cached_property
    def _table_count(self) -> int:
        """How many tables a release has, which is settled before it is made; seen in one."""
        try:
            return len(self._make_release(self.counted, _WatchedRandomness(0)).products)
        except IncrowdError:
            return 1

    def _make_release(
        self, table: CountedTable | DistinctRows, bits: _WatchedRandomness
    ) -> MethodResult:
        return self.method.make(table, MakeContext(bits, self.engine))

    def sample_people(self, number: int, rng: np.random.Generator) -> Places:
        """Return random people of the table, as the tuples that they belong to; none twice."""
        total = self.frequencies.total
        rows = rng.choice(total, min(number, total), replace=False)
        return np.searchsorted(np.cumsum(self.frequencies.counts), rows, side="right")

    def find_exposed(self, number: int, rng: np.random.Generator) -> Places:
        """Return people alone in their tuple: first sole holders of an end of an ordered column.

        None where nobody is alone.
        """
        alone = self.frequencies.counts == 1
        ends = alone & self._extreme_tuples
        rest = alone & ~ends
        order = [rng.permutation(np.flatnonzero(some)) for some in (ends, rest)]
        return np.concatenate(order)[:number].astype(np.int64)

    @cached_property
    def _extreme_tuples(self) -> Bools:
        """Which tuples hold, all by themselves, the lowest or highest position of a column."""
        table = _get_counted(self.counted)
        is_extreme = np.zeros(len(self.frequencies), dtype=bool)
        for at, axis in enumerate(table.axes):
            if not axis.ordered:
                continue
            leaves = _find_leaves(table, at)[self.frequencies.codes[:, at]]
            places = axis.positions[leaves].astype(np.int64)
            inside = places < axis.hierarchy.null
            for end in (places[inside].min(initial=-1), places[inside].max(initial=-1)):
                there = inside & (places == end)
                is_extreme |= there & (self.frequencies.counts[there].sum() == 1)
        return is_extreme

    def remove_row(self, at: int) -> CountedTable | DistinctRows:
        """Return the table without one row of a tuple."""
        if not 0 <= at < len(self.frequencies):
            raise ParameterError("at", "be the place of a tuple", at)
        fewer, is_left = _remove_one(self.frequencies, at)
        if isinstance(self.counted, CountedTable):
            return replace(self.counted, frequencies=fewer)
        rows, owner = self.counted, int(self.counted.owner[at])
        tuples, left = _remove_one(rows.counted.frequencies, owner)
        return replace(
            rows,
            counted=replace(rows.counted, frequencies=tuples),
            frequencies=fewer,
            owner=(np.cumsum(left) - 1)[rows.owner[is_left]],
        )

    def make_shadow(self, at: int) -> Shadow:
        """Return releases of the table with and without one person, described by whole numbers.

        A method that draws nothing makes the same release each time, so it is asked once.
        """
        tables = {True: self.counted, False: self.remove_row(at)}
        looks = _ReleaseDescriber(_get_counted(self.counted), self.frequencies.codes[at])
        descriptions: dict[bool, Description] = {}

        def release(present: bool, rng: np.random.Generator) -> Description:
            if present not in descriptions:
                bits = _WatchedRandomness(int(rng.integers(2**62)))
                described = self._describe_release(tables[present], looks, bits)
                if bits.drawn:
                    return described
                descriptions[present] = described
            return descriptions[present]

        return release

    def _describe_release(
        self, table: CountedTable | DistinctRows, looks: _ReleaseDescriber, bits: _WatchedRandomness
    ) -> Description:
        try:
            outcome = self._make_release(table, bits)
        except IncrowdError:  # too few rows, say: that tells as well
            return (_NOTHING,) * len(self.fields)
        return tuple(x for product in outcome.products for x in looks.describe_product(product))


class _WatchedRandomness(SeededRandomness):
    """Bits of a seed that tell whether any were asked for."""

    drawn = False

    def draw_words(self, count: int) -> Words:
        """Return the next words."""
        self.drawn |= count > 0
        return super().draw_words(count)


def _seed_bits(rng: np.random.Generator) -> SeededRandomness:
    return SeededRandomness(int(rng.integers(2**62)))


def _get_counted(table: CountedTable | DistinctRows) -> CountedTable:
    return table.counted if isinstance(table, DistinctRows) else table


def _remove_one(frequencies: Frequencies, at: int) -> tuple[Frequencies, Bools]:
    """Return frequencies with one row less of a tuple, and which tuples are left."""
    counts: Counts = frequencies.counts.copy()
    counts[at] -= 1
    is_left = counts > 0
    return Frequencies(frequencies.codes[is_left], counts[is_left]), is_left


def _find_leaves(table: CountedTable, at: int) -> Places:
    """Return for each code of a column at its level some value that belongs to it."""
    hierarchy, level = table.hierarchies[at], table.levels[at]
    leaves = np.zeros(len(hierarchy.labels[level]), dtype=np.int64)
    groups = hierarchy.groups[level]
    leaves[groups[::-1]] = np.arange(len(groups))[::-1]  # the first value of each
    return leaves


class _ReleaseDescriber:
    """What a release looks like to somebody who is after one person."""

    def __init__(self, table: CountedTable, codes: Codes) -> None:
        self._person = {
            name: (table.axes[at], int(_find_leaves(table, at)[codes[at]]))
            for at, name in enumerate(table.names)
        }
        self._fits: dict[tuple[str, int | None, object], bool] = {}
        self._readers: dict[str, LabelReader] = {}

    def describe_product(self, product: Product) -> Description:
        """Return the numbers of :data:`FIELDS`."""
        published = product.shown
        chosen = (published.levels, sorted(product.parameters.items()))
        return (
            product.rows,
            product.classes,
            self._count_fitting(product),
            _hash_value(chosen),
            _hash_value((chosen, product.stars, _list_classes(product))),
        )

    def _count_fitting(self, product: Product) -> int:
        """Return how many rows fit the person in all columns that are shown."""
        published = product.shown
        fitting = np.ones(len(published.frequencies), dtype=bool)
        levels = published.levels or (None,) * len(product.original.names)
        for at, (name, level) in enumerate(zip(product.original.names, levels, strict=True)):
            codes = published.frequencies.codes[:, at]
            fits = np.zeros(len(published.labels[at]), dtype=bool)
            for code in np.unique(codes).tolist():
                fits[code] = self._is_fitting(name, level, published.labels[at][code])
            fitting &= fits[codes]
        return int(published.frequencies.counts[fitting].sum())

    def _is_fitting(self, name: str, level: int | None, label: object) -> bool:
        key = (name, level, label)
        if key not in self._fits:
            axis, leaf = self._person[name]
            hierarchy = axis.hierarchy
            if level is not None:
                person_label = hierarchy.labels[level][hierarchy.groups[level][leaf]]
                self._fits[key] = label == person_label
            else:
                places, _ = self._get_reader(name).read_label(label)
                everything = label == hierarchy.root
                self._fits[key] = everything or bool((places == axis.positions[leaf]).any())
        return self._fits[key]

    def _get_reader(self, name: str) -> LabelReader:
        if name not in self._readers:
            self._readers[name] = LabelReader(name, self._person[name][0])
        return self._readers[name]


def _list_classes(product: Product) -> list[tuple[str, int]]:
    """Return the classes by their labels, in an order that does not depend on numbering."""
    published = product.shown
    columns = [
        [repr(labels[code]) for code in published.frequencies.codes[:, at].tolist()]
        for at, labels in enumerate(published.labels)
    ]
    texts = map("\0".join, zip(*columns, strict=True))
    return sorted(zip(texts, published.frequencies.counts.tolist(), strict=True))


def _hash_value(value: object) -> int:
    """Return a number of 48 bits that stands for a value."""
    return int.from_bytes(blake2b(repr(value).encode(), digest_size=6).digest(), "big")
