"""A (k,epsilon)-anonymous release: classes of quasi columns, noise on others inside each class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from incrowd.anonymize import k_epsilon
from incrowd.arrays import Bools, Codes, Floats, Members, Places, Progress, Step, Steps
from incrowd.codes.counted import Rows, Shown
from incrowd.codes.frequency import merged
from incrowd.codes.grid import Grid, grid_of
from incrowd.engine.count import count_rows
from incrowd.engine.local.table import from_rows
from incrowd.engine.table import Table
from incrowd.errors import IncrowdError
from incrowd.measure.evaluation import Evaluation, evaluate
from incrowd.measure.linking import Estimate, Linking, linking_risk, predicted, repeated
from incrowd.measure.noise import FRESH, NoiseLoss, Noisiness, Simulated
from incrowd.methods.base import Made, Product, alone, in_reading_order, protection, published
from incrowd.methods.k_anonymity.classes import Classes, classes
from incrowd.methods.k_anonymity.method import KAnonymity, locally_invented
from incrowd.privacy import class_noise
from incrowd.privacy.class_noise import Noise
from incrowd.privacy.randomness import Randomness, permutation
from incrowd.release.certificate import Guarantee, NoisyColumn
from incrowd.spec.file import SpecFile
from incrowd.spec.model import Column
from incrowd.spec.release import KEpsilonSpec

RUNS = 30
_LINKED_ROWS = 30_000  # so many rows are linked again and again, whole classes at random
_COPY = 0.99  # a correlation from which two columns look like copies
_EXPOSED = 0.9  # a chance of being linked from which noise does not hide a row


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

    tuples: npt.NDArray[np.int64]
    members: Members
    classes: int
    columns: tuple[NoisyValues, ...]


class KEpsilon(KAnonymity):
    """k-anonymity of the quasi columns, and noise on the noisy ones, as wide as each class."""

    _release: KEpsilonSpec

    def __init__(self, file: SpecFile) -> None:
        super().__init__(file)
        release = self._release
        if release.epsilon is None or release.epsilon <= 0:
            raise IncrowdError("The method 'k-epsilon' needs an 'epsilon' above 0.")
        if release.noise == "gaussian" and release.delta is None:
            raise IncrowdError("Gaussian noise needs a 'delta', such as 1e-6.")
        if release.noise != "gaussian" and release.delta is not None:
            raise IncrowdError("'delta' belongs to 'noise: gaussian'.")
        if release.rows == "weighted":
            raise IncrowdError("Rows with noise are all different: 'rows: weighted' has no use.")
        if release.suppressed == "starred":
            raise IncrowdError("'suppressed: starred' does not go with the method 'k-epsilon'.")
        if not self.noisy:
            raise IncrowdError("The method 'k-epsilon' needs a column with the role 'noisy'.")
        if release.bounds == "declared" and release.confidence is not None:
            raise IncrowdError(
                "'bounds: declared' does not go with 'confidence': which rows are suppressed "
                "depends on other people's values, and the local guarantee would not hold."
            )
        for name, column in self.noisy.items():
            if column.bounds is None and release.bounds == "declared":
                raise IncrowdError(
                    f"'bounds: declared' needs the bounds of the noisy column '{name}', such as "
                    "'bounds: [50, 250]'."
                )
            if column.bounds is None and release.clamp:
                raise IncrowdError(f"'clamp' needs the bounds of the noisy column '{name}'.")

    def _refuse_noisy(self) -> None:
        self.noisy = published(self._file.spec, "noisy")

    def guarantee(self) -> Guarantee:
        """(k,epsilon)-anonymity."""
        return Guarantee(kind="(k,epsilon)-anonymity", **protection(self._file.spec))

    def count(self, table: Table) -> Rows:
        """The tuples of generalised, kept and noisy columns."""
        names = (*self.kept, *self.noisy)
        return count_rows(table, self.declared, names)

    def make(self, rows: Rows, bits: Randomness, step: Step, progress: Progress) -> Made:
        """Search, draw noise, put the rows in the order of what they show."""
        axes = rows.counted.axes
        step("search")
        every = {**self.quasi, **self.kept, **self.noisy}
        found = classes(rows, axes, every, self._release, bits=bits, progress=progress)
        step("draw")
        data = noisy_rows(rows, found, self.noisy, self._release)
        released = [column.released(data.members, bits) for column in data.columns]
        kept = self._confident(data, released)
        shown = merged(found.codes[rows.owner[data.tuples[kept]]], np.ones(kept.sum(), np.int64))
        looks = Shown(found.labels, shown, found.levels or ())
        plain = evaluate(rows.counted, axes, looks, stars=False)
        evaluation = self._evaluated(plain, data, released, kept, bits)
        return alone(Product(
            data=self._rows(rows, found, data, released, np.flatnonzero(kept)),
            rows=shown.total,
            classes=len(shown),
            smallest_class=int(shown.counts.min()) if len(shown) else 0,
            scheme=self._scheme(rows, found, axes),
            evaluation=evaluation,
            kept=tuple(self.kept),
            noisy={
                column.name: NoisyColumn(
                    kind=column.grid.kind, step=format(column.grid.step, "f"),
                    bounds=self._shown_bounds(column),
                )
                for column in data.columns
            },
            parameters=self._parameters(),
            warnings=(
                *self._telling(rows),
                *locally_invented(rows.counted, axes, looks),
                *(evaluation.noise.warnings if evaluation.noise else ()),
            ),
        ))  # fmt: skip

    def _parameters(self) -> dict[str, float | str]:
        release = self._release
        assert release.epsilon is not None
        known = super()._parameters()
        known["epsilon"] = float(release.epsilon)
        known["noise"] = release.noise or "laplace"
        known["bounds"] = release.bounds or "class"
        if release.delta is not None:
            known["delta"] = release.delta
        if release.confidence is not None:
            known["confidence"] = release.confidence
        return known

    def _shown_bounds(self, column: NoisyValues) -> tuple[str, str] | None:
        declared = self.noisy[column.name].bounds
        if not self._release.clamp or declared is None:
            return None
        return format(declared[0], "f"), format(declared[1], "f")

    def _confident(self, data: NoisyRows, released: Sequence[Steps]) -> Bools:
        """Which rows are shown: all, or those that confidence-based k-anonymity keeps."""
        kept = np.ones(len(data.members), dtype=bool)
        confidence, k = self._release.confidence, self._release.k
        if confidence is None:
            return kept
        assert k is not None
        for column, noisy in zip(data.columns, released, strict=True):
            some = np.flatnonzero(~column.null)
            good = k_epsilon.confident(
                data.members[some], column.steps[some], noisy[some],
                column.noise.radius(confidence), k=k,
            )  # fmt: skip
            kept[some[~good]] = False
        return k_epsilon.whole_classes(kept, data.members, k=k)

    def _evaluated(
        self,
        plain: Evaluation,
        data: NoisyRows,
        released: Sequence[Steps],
        kept: Bools,
        bits: Randomness,
    ) -> Evaluation:
        losses = {
            column.name: noise_loss(column, data, noisy, kept)
            for column, noisy in zip(data.columns, released, strict=True)
        }
        itself = _linked_once(data, released, _some_classes(data, bits, kept))
        noisiness = Noisiness(
            columns=losses,
            linking=exactly(itself.risk),
            linking_shared=exactly(itself.shared),
            suppressed_by_confidence=int((~kept).sum()),
            warnings=tuple(_warnings(data)),
            simulated=Simulated(*linked(data, bits), note=FRESH),
        )
        return replace(plain, noise=noisiness)

    def _rows(
        self,
        rows: Rows,
        found: Classes,
        data: NoisyRows,
        released: Sequence[Steps],
        kept: npt.NDArray[np.int64],
    ) -> Table:
        """The rows in the order of what they show, which tells nothing else of them."""
        tuples = data.tuples[kept]
        owner = rows.owner[tuples]
        width = len(self.quasi)
        coded: dict[str, tuple[Sequence[object], Codes]] = {}
        for at, name in enumerate(rows.counted.names):
            labels, rank = in_reading_order(found.labels[at])
            coded[name] = labels, rank[found.codes[owner, at]]
        for at, name in enumerate(self.kept):
            labels, rank = in_reading_order(rows.kept[name])
            coded[name] = labels, rank[rows.frequencies.codes[tuples, width + at]]
        plain = {
            column.name: (column.grid.values(noisy[kept]), column.null[kept])
            for column, noisy in zip(data.columns, released, strict=True)
        }
        names = [name for name in self._file.spec.columns if name in coded or name in plain]
        keys: list[npt.NDArray[Any]] = []
        for name in names:
            if name in coded:
                keys.append(coded[name][1])
            else:
                values, null = plain[name]
                keys += [null, np.where(null, values[:1], values)]  # nulls are alike, and last
        order = np.lexsort(keys[::-1])  # which sorts by its last key first
        return from_rows(
            {name: (labels, codes[order]) for name, (labels, codes) in coded.items()},
            {name: (values[order], null[order]) for name, (values, null) in plain.items()},
            names,
        )


def noisy_rows(
    rows: Rows, found: Classes, noisy: dict[str, Column], release: KEpsilonSpec
) -> NoisyRows:
    """The rows shown, their classes, and how much noise each class gets."""
    assert release.epsilon is not None
    shown = np.flatnonzero(found.shown[rows.owner])
    tuples = np.repeat(shown, rows.frequencies.counts[shown])
    _, members = np.unique(found.members[rows.owner[tuples]], return_inverse=True)
    number = int(members.max(initial=-1)) + 1
    parts = k_epsilon.shares(release.epsilon, [column.weight for column in noisy.values()])
    names = list(rows.kept)
    width = len(rows.counted.names)
    columns = []
    for (name, column), epsilon in zip(noisy.items(), parts, strict=True):
        listed = rows.kept[name]
        grid, by_value = grid_of(name, listed, column.precision, column.bounds)
        codes = rows.frequencies.codes[tuples, width + names.index(name)]
        empty = np.array([value is None for value in listed], dtype=bool)
        steps, null = by_value[codes], empty[codes]
        if release.bounds == "declared":
            assert grid.bounds is not None
            steps = np.where(null, steps, grid.clamped(steps))  # or no bound holds
            widths = np.full(number, grid.bounds[1] - grid.bounds[0], dtype=np.int64)
        else:
            widths = k_epsilon.diameters(steps[~null], members[~null], number)
        noise = (
            class_noise.gaussian(widths, epsilon, (release.delta or 0) / len(noisy))
            if release.noise == "gaussian"
            else class_noise.laplace(widths, epsilon)
        )
        clamp = bool(release.clamp)
        columns.append(NoisyValues(name, grid, steps, null, noise, by_value[codes], clamp))
    return NoisyRows(tuples, members, number, tuple(columns))


def noise_loss(column: NoisyValues, data: NoisyRows, released: Steps, kept: Bools) -> NoiseLoss:
    """Errors of one column over the rows shown; zeros and nulls have no relative error."""
    counted = kept & ~column.null & (column.originals != 0)
    size = np.abs(column.originals[counted]).astype(np.float64)
    error = np.abs(released[counted].astype(np.float64) - column.originals[counted]) / size
    return NoiseLoss(
        expected_error=expected_error(column, data.members),
        measured_error=float(error.mean()) if len(error) else 0.0,
        unchanged=int((kept & ~column.null & (released == column.originals)).sum()),
        zeros=int((kept & ~column.null & (column.originals == 0)).sum()),
        nulls=int((kept & column.null).sum()),
        classes_without_noise=int((column.noise.scale == 0).sum()),
        mean_scale=float(column.noise.scale[data.members].mean() * float(column.grid.step))
        if len(data.members)
        else 0.0,
    )


def expected_error(column: NoisyValues, members: Members) -> float:
    """The mean relative error to be expected, before noise is drawn.

    For Laplace noise that is the paper's (1 / epsilon) times the sum over classes of
    (|class| / n) diameter / H, H the harmonic mean of the class's values, but for the exact
    mean of noise on a grid, and before values are clamped. Zeros and nulls are left out.
    """
    counted = ~column.null & (column.originals != 0)
    if not counted.any():
        return 0.0
    size = np.abs(column.originals[counted]).astype(np.float64)
    moved = (column.steps[counted] - column.originals[counted]).astype(np.float64)
    return float((column.noise.mean_apart(moved, members[counted]) / size).mean())


def linked(data: NoisyRows, bits: Randomness, runs: int = RUNS) -> tuple[Estimate, Estimate]:
    """The linking risk over runs with fresh noise: ties as successes, and ties shared.

    Of very many rows each run links random classes of its own, so the interval covers that.
    """
    shared: list[float] = []

    def once() -> float:
        rows = _some_classes(data, bits)
        fresh = [column.released(data.members[rows], bits, rows) for column in data.columns]
        found = _linked(data, rows, fresh)
        shared.append(found.shared)
        return found.risk

    risk = repeated(once, runs)
    again = iter(shared)
    return risk, repeated(lambda: next(again), runs)


def _linked_once(data: NoisyRows, released: Sequence[Steps], rows: Places) -> Linking:
    """The linking risk of some rows as they are released."""
    return _linked(data, rows, [noisy[rows] for noisy in released])


def _linked(data: NoisyRows, rows: Places, released: Sequence[Steps]) -> Linking:
    return linking_risk(
        classes=data.members[rows],
        originals=[column.originals[rows] for column in data.columns],
        released=released,
        scales=[column.noise.scale for column in data.columns],
    )


def exactly(value: float) -> Estimate:
    """A figure that was measured, not estimated from runs."""
    return Estimate(value, value, value, 1)


def _some_classes(data: NoisyRows, bits: Randomness, kept: Bools | None = None) -> Places:
    """The rows without nulls, of random classes if there are very many; or those kept of them."""
    whole = ~np.any([column.null for column in data.columns], axis=0)
    if kept is not None:
        whole &= kept
    if len(whole) <= _LINKED_ROWS:
        return np.flatnonzero(whole)
    order = permutation(data.classes, bits)
    sizes = np.bincount(data.members, minlength=data.classes)
    taken = np.cumsum(sizes[order]) <= _LINKED_ROWS
    taken[0] = True
    chosen = np.zeros(data.classes, dtype=bool)
    chosen[order[taken]] = True
    return np.flatnonzero(whole & chosen[data.members])


def chances(column: NoisyValues, members: Members) -> Floats:
    """For each row with a value, how likely it is to be linked by this column alone."""
    some = ~column.null
    found = np.zeros(len(members))
    found[some] = predicted(members[some], column.originals[some], column.noise)
    return found


def _warnings(data: NoisyRows) -> list[str]:
    """What the curator should know: classes without noise, exposed rows, copied columns."""
    found = []
    for column in data.columns:
        bare = int((column.noise.scale == 0).sum())
        if bare:
            found.append(
                f"{bare:,} class(es) have a single value of '{column.name}', shown without noise. "
                "Use 'bounds: declared', or a larger k."
            )
        values = np.bincount(data.members[~column.null], minlength=data.classes)
        exposed = int(((chances(column, data.members) > _EXPOSED) & (values > 1)[data.members]
                       & (column.noise.scale > 0)[data.members]).sum())  # fmt: skip
        if exposed:
            found.append(
                f"{exposed:,} row(s) have a value of '{column.name}' so far from the others of "
                "their class that noise does not hide it. Use a smaller epsilon, a larger k, or "
                "'confidence'."
            )
    for at, first in enumerate(data.columns):
        for second in data.columns[at + 1 :]:
            some = ~(first.null | second.null)
            if _alike(first.steps[some], second.steps[some]):
                found.append(
                    f"The columns '{first.name}' and '{second.name}' look like copies of each "
                    "other. Both carry the same information and share epsilon; drop one."
                )
    return found


def _alike(one: Steps, other: Steps) -> bool:
    if len(one) < 3 or one.min() == one.max() or other.min() == other.max():
        return False
    return bool(abs(np.corrcoef(one.astype(float), other.astype(float))[0, 1]) > _COPY)
