"""What the certificate of synthetic rows holds besides: how values are shown, what was measured.

A measured table is a query of whole numbers: the counts of some columns at some levels or, along
``centered`` columns, a times each count less the sum along the column, a being its number of
groups. Each measurement of it adds discrete Gaussian noise of one of ``variances``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from incrowd.arrays import Counts, Floats
from incrowd.privacy.gaussian import ROUNDING_VARIANCE
from incrowd.release.value_column import ValueColumn

ValueType: TypeAlias = Literal["text", "integer", "number", "date", "boolean"]
FOLDER = "measured"
Level = Annotated[int, Field(ge=0)]
Variance = Annotated[int, Field(ge=ROUNDING_VARIANCE + 1)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)


class MeasuredTable(_Part):
    """One measured table: its columns with their levels, and the noise of each measurement.

    The table without columns is the number of rows. The model holds it, unless ``held`` is false:
    then its noise hides any relation, and it informs nothing.
    """

    file: Annotated[str, Field(pattern=r"^measured/[0-9]{3,4}\.csv$")]
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    columns: Annotated[list[str], Field(max_length=3)]
    levels: Annotated[list[Level], Field(max_length=3)]
    centered: Annotated[list[str], Field(max_length=3)]
    variances: Annotated[list[Variance], Field(min_length=1, max_length=100)]
    held: bool

    def squared_length(self, shape: Sequence[int]) -> int:
        """Return the squared length by which a row moves the query; see the module's text."""
        sizes = dict(zip(self.columns, shape, strict=True))
        return math.prod(sizes[name] * (sizes[name] - 1) for name in self.centered)

    def cost(self, shape: Sequence[int]) -> Fraction:
        """Return the information that the measurements cost; see :mod:`incrowd.privacy.gaussian`.

        Noise of variance v is bought by any part tau with D^2 / tau <= v - 3, and the least of
        these is D^2 / (v - 3): what was charged is at least that.
        """
        length = self.squared_length(shape)
        return sum(
            (Fraction(length, variance - ROUNDING_VARIANCE) for variance in self.variances),
            Fraction(0),
        )


class PointsColumn(_Part):
    """A column of numbers or days: its declaration, its grid, and whether points were drawn."""

    rule: dict[str, Any]
    precision: Annotated[str, Field(pattern=r"^\d{1,30}(\.\d{1,30})?$")] | None = None
    drawn: bool


class ReferencedKey(_Part):
    """The made-up key of another release that a made-up foreign key refers to.

    ``seal`` is that of the other release's certificate, ``rows`` its number of rows: its keys are 1
    to ``rows``. ``children`` has the share of its rows with each number of children.
    """

    column: str
    seal: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    rows: Annotated[int, Field(ge=1)]
    children: dict[Annotated[str, Field(pattern=r"^(0|[1-9]\d{0,8})$")], float] | None = None

    @property
    def shares(self) -> dict[int, float] | None:
        """The share of the other release's rows by their number of children."""
        if self.children is None:
            return None
        return {int(number): share for number, share in self.children.items()}


class SyntheticPart(_Part):
    """What is certified of synthetic rows, besides what every certificate has.

    ``fit`` is the version of the fit: a model is fitted again by the version that made it, so that
    another fit needs another number. ``columns`` are in the order of the model. ``points`` has
    those that are declared as intervals or dates. ``written`` has columns whose numbers or days
    are written as in the original. ``references`` has made-up foreign keys.
    """

    fit: Literal[1]

    columns: Annotated[list[str], Field(min_length=1)]
    types: dict[str, ValueType]
    points: dict[str, PointsColumn] = {}
    keys: list[str] = []
    references: dict[str, ReferencedKey] | None = None
    written: dict[str, dict[str, Any]] | None = None
    rules: list[dict[str, Any]] = []
    tables: list[list[str]] = []
    target: str | None = None
    measured: list[MeasuredTable] = []


@dataclass(frozen=True, eq=False)
class MeasuredNumbers:
    """A measured table with its numbers: one array for each measurement, and the model's counts.

    ``labels`` name the groups along each axis, in their declared order.
    """

    columns: tuple[str, ...]
    levels: tuple[int, ...]
    centered: tuple[int, ...]
    numbers: tuple[Counts, ...]
    variances: tuple[int, ...]
    held: bool
    labels: tuple[tuple[str | None, ...], ...]
    model: Floats

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of groups along each axis."""
        return tuple(map(len, self.labels))

    @property
    def scale(self) -> int:
        """What a row counts in its own cell of the query, before means are taken off."""
        return math.prod(self.shape[axis] for axis in self.centered)

    @property
    def squared_length(self) -> int:
        """The squared length by which a row moves the query."""
        return math.prod(self.shape[axis] * (self.shape[axis] - 1) for axis in self.centered)

    @property
    def variance(self) -> float:
        """The variance of a cell of :attr:`mean`, in rows."""
        return 1 / sum(self.scale**2 / variance for variance in self.variances)

    @property
    def mean(self) -> Floats:
        """All measurements as one, in rows, weighted by how precise they are."""
        weights = [self.scale**2 / variance * self.variance for variance in self.variances]
        parts = [
            weight * (numbers / self.scale)
            for weight, numbers in zip(weights, self.numbers, strict=True)
        ]
        mean: Floats = np.sum(parts, axis=0)
        return mean


@dataclass(frozen=True, eq=False)
class SyntheticProduct:
    """What a method hands over besides its table: the part of the certificate, and the numbers."""

    part: SyntheticPart
    measured: tuple[MeasuredNumbers, ...]
    columns: Mapping[str, ValueColumn]
