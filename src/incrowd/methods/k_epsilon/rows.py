"""The rows that classes show, one by one, with the noise that each of their values gets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from incrowd.anonymize import k_epsilon
from incrowd.arrays import Bools, Codes, Members, Places, Steps
from incrowd.codes.counted import Rows
from incrowd.codes.grid import Grid, grid_of
from incrowd.methods.k_anonymity.classes import Classes
from incrowd.privacy import class_noise
from incrowd.privacy.class_noise import Noise
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
    noise: Noise
    originals: Steps
    clamp: bool

    def released(self, members: Members, bits: Randomness, rows: Places | None = None) -> Steps:
        """Values with fresh noise, of all rows or of some (then ``members`` are theirs)."""
        steps = self.steps if rows is None else self.steps[rows]
        noisy = k_epsilon.added(steps, self.noise.draw(members, bits))
        return self.grid.clamped(noisy) if self.clamp else noisy


@dataclass(frozen=True, eq=False)
class NoisyRows:
    """The rows that classes show: the tuple of each, its class from 0, and its noisy values."""

    tuples: Places
    members: Members
    classes: int
    columns: tuple[NoisyValues, ...]

    def released(self, bits: Randomness) -> list[Steps]:
        """Every noisy column with fresh noise."""
        return [column.released(self.members, bits) for column in self.columns]

    def kept(self, released: Sequence[Steps], *, k: int, confidence: float | None) -> Bools:
        """Which rows are shown: all, unless confidence-based k-anonymity is asked for."""
        if confidence is None:
            return np.ones(len(self.members), dtype=bool)
        return self.confident(released, k=k, confidence=confidence)

    def confident(self, released: Sequence[Steps], *, k: int, confidence: float) -> Bools:
        """Which rows confidence-based k-anonymity keeps."""
        kept = np.ones(len(self.members), dtype=bool)
        for column, noisy in zip(self.columns, released, strict=True):
            some = np.flatnonzero(~column.null)
            good = k_epsilon.confident(
                self.members[some], column.steps[some], noisy[some],
                column.noise.radius(confidence), k=k,
            )  # fmt: skip
            kept[some[~good]] = False
        return k_epsilon.whole_classes(kept, self.members, k=k)


def noisy_rows(
    rows: Rows, found: Classes, noisy: Mapping[str, Column], release: KEpsilonSpec
) -> NoisyRows:
    """The rows shown, their classes, and how much noise each class gets."""
    shown = np.flatnonzero(found.shown[rows.owner])
    tuples = np.repeat(shown, rows.frequencies.counts[shown])
    _, members = np.unique(found.members[rows.owner[tuples]], return_inverse=True)
    number = int(members.max(initial=-1)) + 1
    names, width = list(rows.kept), len(rows.counted.names)
    values = {
        name: (rows.kept[name], rows.frequencies.codes[tuples, width + names.index(name)])
        for name in noisy
    }
    columns = noisy_columns(members, number, values, noisy, release)
    return NoisyRows(tuples, members, number, columns)


def noisy_columns(
    members: Members,
    classes: int,
    values: Mapping[str, tuple[Sequence[object], Codes]],
    noisy: Mapping[str, Column],
    release: KEpsilonSpec,
) -> tuple[NoisyValues, ...]:
    """How much noise each class gets in each column, from the values of its rows.

    ``values`` lists those of a column, and which of them each row has.
    """
    assert release.epsilon is not None
    parts = k_epsilon.shares(release.epsilon, [column.weight for column in noisy.values()])
    columns = []
    for (name, column), epsilon in zip(noisy.items(), parts, strict=True):
        listed, codes = values[name]
        grid, by_value = grid_of(name, listed, column.precision, column.bounds)
        empty = np.array([value is None for value in listed], dtype=bool)
        steps, null = by_value[codes], empty[codes]
        if release.bounds == "declared":
            assert grid.bounds is not None
            steps = np.where(null, steps, grid.clamped(steps))  # or no bound holds
            widths = np.full(classes, grid.bounds[1] - grid.bounds[0], dtype=np.int64)
        else:
            widths = k_epsilon.diameters(steps[~null], members[~null], classes)
        noise = (
            class_noise.gaussian(widths, epsilon, (release.delta or 0) / len(noisy))
            if release.noise == "gaussian"
            else class_noise.laplace(widths, epsilon)
        )
        clamp = bool(release.clamp)
        columns.append(NoisyValues(name, grid, steps, null, noise, by_value[codes], clamp))
    return tuple(columns)
