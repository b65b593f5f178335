"""The rows that classes show, one by one, with the noise that each of their values gets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from incrowd.anonymize import k_epsilon
from incrowd.arrays import Bools, Codes, Members, Places, Steps
from incrowd.codes.counted_table import DistinctRows
from incrowd.codes.grid import Grid, build_grid
from incrowd.methods.k_anonymity.classes import EquivalenceClasses
from incrowd.privacy.k_epsilon import (
    ClassNoise,
    make_gaussian_noise,
    make_laplace_noise,
    split_epsilon,
)
from incrowd.privacy.randomness import Randomness
from incrowd.spec.model import Column
from incrowd.spec.release import KEpsilonSpec


@dataclass(frozen=True, eq=False)
class NoisyValues:
    """One noisy column, row by row: steps on its grid, which are null, and its noise.

    ``steps`` are the values that noise is added to: the originals, moved into the declared
    bounds where noise is as wide as those. ``originals`` are as they were. With ``clamp``,
    released values are moved into the bounds as well.
    """

    name: str
    grid: Grid
    steps: Steps
    null: Bools
    noise: ClassNoise
    originals: Steps
    clamp: bool

    def add_noise(self, members: Members, bits: Randomness, rows: Places | None = None) -> Steps:
        """Return values with fresh noise, of all rows or of some (then ``members`` are theirs)."""
        steps = self.steps if rows is None else self.steps[rows]
        noisy = k_epsilon.add_noise(steps, self.noise.draw(members, bits))
        return self.grid.clamp_steps(noisy) if self.clamp else noisy


@dataclass(frozen=True, eq=False)
class NoisyRows:
    """The rows that classes show: the tuple of each, its class from 0, and its noisy values."""

    tuples: Places
    members: Members
    classes: int
    columns: tuple[NoisyValues, ...]

    def add_noise(self, bits: Randomness) -> list[Steps]:
        """Return every noisy column with fresh noise."""
        return [column.add_noise(self.members, bits) for column in self.columns]

    def select_rows(self, released: Sequence[Steps], *, k: int, confidence: float | None) -> Bools:
        """Return which rows are shown: all, unless confidence-based k-anonymity is asked for."""
        if confidence is None:
            return np.ones(len(self.members), dtype=bool)
        return self.select_confident_rows(released, k=k, confidence=confidence)

    def select_confident_rows(
        self, released: Sequence[Steps], *, k: int, confidence: float
    ) -> Bools:
        """Return which rows confidence-based k-anonymity keeps."""
        is_kept = np.ones(len(self.members), dtype=bool)
        for column, noisy in zip(self.columns, released, strict=True):
            places = np.flatnonzero(~column.null)
            good = k_epsilon.select_confident_rows(
                self.members[places], column.steps[places], noisy[places],
                column.noise.compute_radius(confidence), k=k,
            )  # fmt: skip
            is_kept[places[~good]] = False
        return k_epsilon.select_large_classes(is_kept, self.members, k=k)


def make_noisy_rows(
    rows: DistinctRows,
    classes: EquivalenceClasses,
    noisy: Mapping[str, Column],
    release: KEpsilonSpec,
) -> NoisyRows:
    """Return the rows shown, their classes, and how much noise each class gets."""
    published = np.flatnonzero(classes.published_mask[rows.owner])
    tuples = np.repeat(published, rows.frequencies.counts[published])
    _, members = np.unique(classes.members[rows.owner[tuples]], return_inverse=True)
    number = int(members.max(initial=-1)) + 1
    names, width = list(rows.kept), len(rows.counted.names)
    values = {
        name: (rows.kept[name], rows.frequencies.codes[tuples, width + names.index(name)])
        for name in noisy
    }
    columns = make_noisy_columns(members, number, values, noisy, release)
    return NoisyRows(tuples, members, number, columns)


def make_noisy_columns(
    members: Members,
    classes: int,
    values: Mapping[str, tuple[Sequence[object], Codes]],
    noisy: Mapping[str, Column],
    release: KEpsilonSpec,
) -> tuple[NoisyValues, ...]:
    """Return how much noise each class gets in each column, from the values of its rows.

    ``values`` lists those of a column, and which of them each row has.
    """
    assert release.epsilon is not None
    parts = split_epsilon(release.epsilon, [column.weight for column in noisy.values()])
    columns = []
    for (name, column), epsilon in zip(noisy.items(), parts, strict=True):
        if column.values:
            continue  # see incrowd.methods.k_epsilon.categories
        distinct, codes = values[name]
        grid, by_value = build_grid(name, distinct, column.precision, column.bounds)
        empty = np.array([value is None for value in distinct], dtype=bool)
        steps, null = by_value[codes], empty[codes]
        if release.bounds == "declared":
            assert grid.bounds is not None
            steps = np.where(null, steps, grid.clamp_steps(steps))  # or no bound holds
            widths = np.full(classes, grid.bounds[1] - grid.bounds[0], dtype=np.int64)
        else:
            widths = k_epsilon.compute_diameters(steps[~null], members[~null], classes)
        noise = (
            make_gaussian_noise(widths, epsilon, (release.delta or 0) / len(noisy))
            if release.noise == "gaussian"
            else make_laplace_noise(widths, epsilon)
        )
        clamp = bool(release.clamp)
        columns.append(NoisyValues(name, grid, steps, null, noise, by_value[codes], clamp))
    return tuple(columns)
