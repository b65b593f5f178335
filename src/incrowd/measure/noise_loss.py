"""What noise did to columns of a release: measured on it, or simulated and called so.

Where it is known which released row is whose, errors are those of the rows. Where it is not, a
released value may be that of any original row that fits its class, and this much is certain: the
mean absolute error is at least that of the assignment that makes it smallest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from incrowd.arrays import Codes, Steps
from incrowd.codes.frequency import number_tuples
from incrowd.findings import Finding
from incrowd.measure.category_loss import CategoryLoss
from incrowd.measure.labels import LabelCover
from incrowd.measure.linkage import RunMean
from incrowd.measure.risk import find_label

NOT_MEASURED = "fresh noise by the spec, not measured on this file"
FRESH = "fresh noise on the same classes, not measured on this release"


@dataclass(frozen=True)
class NoiseLoss:
    """The loss that noise caused in one column; None for what the tables at hand cannot tell.

    ``measured_error`` is the mean relative error of the rows shown, and ``unchanged`` how many of
    them show their own value; both need to know which row is whose. Values of 0 have no relative
    error and are left out, as are nulls. ``expected_error`` is its mean before any noise is drawn,
    ``mean_scale`` the mean width of the noise, in the column's own unit.

    Where nobody knows which row is whose, ``least_error`` says what the mean absolute error is at
    least, in the column's own unit (see :func:`compute_least_distance`); ``rows_as_original``
    counts the rows of classes in which all released values are, one for one, values of original
    rows that fit the class. Both are over ``rows_compared``: rows with a value in a class that some
    original fits, or, where recoding is local and classes are many, of random classes.
    """

    measured_error: float | None
    zeros: int | None
    nulls: int
    expected_error: float | None = None
    classes_without_noise: int | None = None
    mean_scale: float | None = None
    unchanged: int | None = None
    least_error: float | None = None
    rows_as_original: int | None = None
    rows_compared: int | None = None


@dataclass(frozen=True)
class SimulatedLoss:
    """The loss by fresh noise in one column: errors relative, the scale in the column's unit."""

    error: float
    expected_error: float
    classes_without_noise: int
    mean_scale: float


@dataclass(frozen=True)
class NoiseSimulation:
    """Runs with fresh noise, of which ``note`` says what they are; of no file in particular.

    ``guessing`` is what naming any row of the class would link.
    """

    linking: RunMean
    linking_shared: RunMean
    columns: dict[str, SimulatedLoss] = field(default_factory=dict)
    note: str = NOT_MEASURED
    guessing: float = 0.0


@dataclass(frozen=True)
class NoiseEvaluation:
    """The loss by noise, and the risk by an attacker who knows all original values.

    ``linking`` is the share of rows of this release that are linked to their own original by
    nearest values, a tie counting as a success; ``linking_shared`` counts one of t ties as 1 / t.
    Both are None where nobody knows which row is whose, or no column has numbers. They rest on the
    columns of numbers alone; ``categories`` says what randomized response did to others.
    ``simulated`` is what fresh noise would
    do; it is no measurement.
    """

    columns: dict[str, NoiseLoss]
    linking: RunMean | None
    linking_shared: RunMean | None
    suppressed_by_confidence: int | None
    findings: tuple[Finding, ...] = ()
    simulated: NoiseSimulation | None = None
    categories: dict[str, CategoryLoss] = field(default_factory=dict)


class ClassMatcher:
    """Matches the original tuples to the classes of a release that they fit.

    ``points`` are the tuples by their positions on the axes, ``classes`` by their labels. Where
    no value fits two labels of a column, each tuple is looked up once; elsewhere each class is
    held against all tuples.
    """

    def __init__(self, points: Codes, classes: Codes, covers: Sequence[LabelCover]) -> None:
        self._covers, self._classes = covers, classes
        self._columns = [np.ascontiguousarray(column) for column in points.T]
        labels = [find_label(cover, points[:, at]) for at, cover in enumerate(covers)]
        disjoint = [label for label in labels if label is not None]
        self._of: list[npt.NDArray[np.int64]] | None = None
        if len(disjoint) == len(labels) and len(classes):
            self._of = _group_tuples(np.column_stack(disjoint), classes)

    @property
    def is_indexed(self) -> bool:
        """Whether all classes are known already."""
        return self._of is not None

    def find_tuples(self, number: int) -> npt.NDArray[np.int64]:
        """Return the tuples that fit a class."""
        if self._of is not None:
            return self._of[number]
        fit = np.ones(len(self._columns[0]), dtype=bool)
        for column, cover, code in zip(
            self._columns, self._covers, self._classes[number].tolist(), strict=True
        ):
            if code in cover.sets:
                fit &= np.isin(column, cover.sets[code])
            else:
                fit &= (column >= cover.low[code]) & (column <= cover.high[code])
        return np.flatnonzero(fit)


def _group_tuples(codes: npt.NDArray[np.int64], classes: Codes) -> list[npt.NDArray[np.int64]]:
    """Return the tuples of each class, by their labels; -1 is no label."""
    tuples = np.flatnonzero((codes >= 0).all(axis=1))
    numbers = number_tuples(np.vstack([classes, codes[tuples]]).astype(np.int32))
    places, at = np.unique(numbers, return_inverse=True)
    order = np.argsort(at[len(classes) :], kind="stable")
    ends = np.searchsorted(at[len(classes) :][order], np.arange(len(places) + 1))
    return [tuples[order[ends[place] : ends[place + 1]]] for place in at[: len(classes)]]


def compute_least_distance(originals: Steps, released: Steps) -> tuple[float, bool]:
    """Return the least total distance of released values to originals, and if all match.

    Claim: whichever original each released value belongs to, different ones to different values,
    the distances add up to this much or more. Where there are as many of both, every original is
    taken once, and putting both in order is the best assignment, as on any line. Where there are
    more originals, no released value is nearer to its own than to the nearest.

    The second answer is whether the released values are, one for one, among the originals.
    """
    if not len(originals) or not len(released):
        return 0.0, False
    sorted_originals, sorted_released = np.sort(originals), np.sort(released)
    if len(sorted_originals) == len(sorted_released):
        distances = np.abs(sorted_released.astype(np.float64) - sorted_originals)
        return float(distances.sum()), bool((sorted_originals == sorted_released).all())
    place = np.searchsorted(sorted_originals, sorted_released)
    below, above = (
        sorted_originals[np.maximum(place - 1, 0)],
        sorted_originals[np.minimum(place, len(sorted_originals) - 1)],
    )
    values = sorted_released.astype(np.float64)
    nearest = np.minimum(np.abs(values - below), np.abs(values - above))
    return float(nearest.sum()), _is_among(sorted_originals, sorted_released)


def _is_among(originals: Steps, released: Steps) -> bool:
    values, often = np.unique(released, return_counts=True)
    first, last = (
        np.searchsorted(originals, values),
        np.searchsorted(originals, values, side="right"),
    )
    return bool((last - first >= often).all())
