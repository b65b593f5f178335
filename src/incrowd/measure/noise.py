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
from incrowd.codes.frequency import keys
from incrowd.findings import Finding
from incrowd.measure.labels import Cover
from incrowd.measure.linkage import Mean
from incrowd.measure.risk import label_at

NOT_MEASURED = "fresh noise by the spec, not measured on this file"
FRESH = "fresh noise on the same classes, not measured on this release"


@dataclass(frozen=True)
class NoiseLoss:
    """What noise did to one column. What cannot be told from the tables at hand is None.

    ``measured_error`` is the mean relative error of the rows shown, and ``unchanged`` how many of
    them show their own value; both need to know which row is whose. Values of 0 have no relative
    error and are left out, as are nulls. ``expected_error`` is its mean before any noise is drawn,
    ``mean_scale`` the mean width of the noise, in the column's own unit.

    Where nobody knows which row is whose, ``least_error`` says what the mean absolute error is at
    least, in the column's own unit (see :func:`least_apart`); ``rows_as_original`` counts the rows
    of classes in which all released values are, one for one, values of original rows that fit the
    class. Both are over ``rows_compared``: rows with a value in a class that some original fits,
    or, where recoding is local and classes are many, of random classes.
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
    """What fresh noise does to one column: errors relative, the scale in the column's own unit."""

    error: float
    expected_error: float
    classes_without_noise: int
    mean_scale: float


@dataclass(frozen=True)
class Simulated:
    """Runs with fresh noise, of which ``note`` says what they are; of no file in particular.

    ``guessing`` is what naming any row of the class would link.
    """

    linking: Mean
    linking_shared: Mean
    columns: dict[str, SimulatedLoss] = field(default_factory=dict)
    note: str = NOT_MEASURED
    guessing: float = 0.0


@dataclass(frozen=True)
class Noisiness:
    """What noise did and what it leaves to an attacker who knows all original values.

    ``linking`` is the share of rows of this release that are linked to their own original by
    nearest values, a tie counting as a success; ``linking_shared`` counts one of t ties as 1 / t.
    Both are None where nobody knows which row is whose. ``simulated`` is what fresh noise would
    do; it is no measurement.
    """

    columns: dict[str, NoiseLoss]
    linking: Mean | None
    linking_shared: Mean | None
    suppressed_by_confidence: int | None
    findings: tuple[Finding, ...] = ()
    simulated: Simulated | None = None


class Fitting:
    """Which original tuples fit each class of a release.

    ``points`` are the tuples by their positions on the axes, ``classes`` by their labels. Where
    no value fits two labels of a column, each tuple is looked up once; elsewhere each class is
    held against all tuples.
    """

    def __init__(self, points: Codes, classes: Codes, covers: Sequence[Cover]) -> None:
        self._covers, self._classes = covers, classes
        self._columns = [np.ascontiguousarray(column) for column in points.T]
        labels = [label_at(cover, points[:, at]) for at, cover in enumerate(covers)]
        apart = [label for label in labels if label is not None]
        self._of: list[npt.NDArray[np.int64]] | None = None
        if len(apart) == len(labels) and len(classes):
            self._of = _grouped(np.column_stack(apart), classes)

    @property
    def at_once(self) -> bool:
        """Whether all classes are known already."""
        return self._of is not None

    def of(self, number: int) -> npt.NDArray[np.int64]:
        """The tuples that fit a class."""
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


def _grouped(codes: npt.NDArray[np.int64], classes: Codes) -> list[npt.NDArray[np.int64]]:
    """The tuples of each class, by their labels; -1 is no label."""
    known = np.flatnonzero((codes >= 0).all(axis=1))
    named = keys(np.vstack([classes, codes[known]]).astype(np.int32))
    places, at = np.unique(named, return_inverse=True)
    order = np.argsort(at[len(classes) :], kind="stable")
    ends = np.searchsorted(at[len(classes) :][order], np.arange(len(places) + 1))
    return [known[order[ends[place] : ends[place + 1]]] for place in at[: len(classes)]]


def least_apart(originals: Steps, released: Steps) -> tuple[float, bool]:
    """How far released values are from originals at least, in sum; and whether all are among them.

    Claim: whichever original each released value belongs to, different ones to different values,
    the distances add up to this much or more. Where there are as many of both, every original is
    taken once, and putting both in order is the best assignment, as on any line. Where there are
    more originals, no released value is nearer to its own than to the nearest.

    The second answer is whether the released values are, one for one, among the originals.
    """
    if not len(originals) or not len(released):
        return 0.0, False
    known, shown = np.sort(originals), np.sort(released)
    if len(known) == len(shown):
        apart = np.abs(shown.astype(np.float64) - known)
        return float(apart.sum()), bool((known == shown).all())
    place = np.searchsorted(known, shown)
    below, above = known[np.maximum(place - 1, 0)], known[np.minimum(place, len(known) - 1)]
    values = shown.astype(np.float64)
    nearest = np.minimum(np.abs(values - below), np.abs(values - above))
    return float(nearest.sum()), _among(known, shown)


def _among(known: Steps, shown: Steps) -> bool:
    values, often = np.unique(shown, return_counts=True)
    first, last = np.searchsorted(known, values), np.searchsorted(known, values, side="right")
    return bool((last - first >= often).all())
