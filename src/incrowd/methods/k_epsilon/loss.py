"""What noise costs and hides: errors, linking risk, and what the curator should know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from incrowd.arrays import Bools, Floats, Members, Places, Steps
from incrowd.findings import Finding, make_finding
from incrowd.measure.linkage import Linking, Mean, linking_risk, links, mean_of, predicted
from incrowd.measure.noise import FRESH, NoiseLoss, Noisiness, Simulated
from incrowd.methods.k_epsilon.rows import NoisyRows, NoisyValues
from incrowd.privacy.randomness import Randomness, permutation

RUNS = 30
LINKED_ROWS = 30_000  # so many rows are linked again and again, whole classes at random
_COPY = 0.99  # a correlation from which two columns look like copies
_EXPOSED = 0.9  # a chance of being linked from which noise does not hide a row
LARGE_ERROR = 1.0  # a mean relative error: noise as large as the values


def noisiness(
    data: NoisyRows,
    released: Sequence[Steps],
    kept: Bools,
    bits: Randomness,
    *,
    found: RowFacts | None = None,
    most: int = LINKED_ROWS,
) -> Noisiness:
    """Errors and linking risk of noisy rows as they are released, and with fresh noise.

    Of more than ``most`` rows those of random classes are linked. ``found`` is what
    :func:`examine_rows` returns, where it is known.
    """
    losses = {
        column.name: noise_loss(column, data, noisy, kept)
        for column, noisy in zip(data.columns, released, strict=True)
    }
    itself = _linked_once(data, released, _some_classes(data, bits, most, kept))
    return Noisiness(
        columns=losses,
        linking=exactly(itself.risk),
        linking_shared=exactly(itself.shared),
        suppressed_by_confidence=int((~kept).sum()),
        findings=(*list_findings(found or examine_rows(data)), *find_large_errors(losses)),
        simulated=Simulated(*linked(data, bits, most=most), note=FRESH),
    )


def find_large_errors(losses: Mapping[str, NoiseLoss]) -> tuple[Finding, ...]:
    """Find noise that is as large as the values: a mean relative error above 100 %."""
    return tuple(
        finding
        for name, loss in losses.items()
        for finding in find_large_error(name, loss.expected_error or 0.0)
    )


def find_large_error(name: str, error: float) -> tuple[Finding, ...]:
    """Return a finding where the mean relative error of a column is above 100 %."""
    return (make_finding("NOISE_TOO_LARGE", name, error=error),) if error > LARGE_ERROR else ()


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


def linked(
    data: NoisyRows, bits: Randomness, runs: int = RUNS, most: int = LINKED_ROWS
) -> tuple[Mean, Mean]:
    """The linking risk over runs with fresh noise: ties as successes, and ties shared.

    Of very many rows each run links random classes of its own, so the interval covers that; of
    classes that are larger than ``most`` there are fewer runs.
    """
    if (large := len(data.members) / max(data.classes, 1)) > most:
        runs = min(runs, max(2, int(runs * most / large)))
    chosen = [_some_classes(data, bits, most) for _ in range(runs)]
    # All runs at once, each with classes of its own: a draw of few values costs as one of many.
    rows, run = np.concatenate(chosen), np.repeat(np.arange(runs), [len(one) for one in chosen])
    members = data.members[rows]
    _, first, classes = np.unique(
        members + run * data.classes, return_index=True, return_inverse=True
    )
    won, shared = links(
        classes,
        [column.originals[rows] for column in data.columns],
        [column.released(members, bits, rows) for column in data.columns],
        [column.noise.scale[members[first]] for column in data.columns],
    )
    sizes = np.maximum(np.bincount(run, minlength=runs), 1)
    return (
        mean_of(np.bincount(run, won, minlength=runs) / sizes),
        mean_of(np.bincount(run, shared, minlength=runs) / sizes),
    )


def _linked_once(data: NoisyRows, released: Sequence[Steps], rows: Places) -> Linking:
    """The linking risk of some rows as they are released."""
    return linking_risk(
        classes=data.members[rows],
        originals=[column.originals[rows] for column in data.columns],
        released=[noisy[rows] for noisy in released],
        scales=[column.noise.scale for column in data.columns],
    )


def exactly(value: float) -> Mean:
    """A figure that was measured, not estimated from runs."""
    return Mean(value, value, value, 1)


def _some_classes(
    data: NoisyRows, bits: Randomness, most: int, kept: Bools | None = None
) -> Places:
    """The rows without nulls, of random classes if there are very many; or those kept of them."""
    whole = ~np.any([column.null for column in data.columns], axis=0)
    if kept is not None:
        whole &= kept
    if len(whole) <= most:
        return np.flatnonzero(whole)
    order = permutation(data.classes, bits)
    sizes = np.bincount(data.members, minlength=data.classes)
    taken = np.cumsum(sizes[order]) <= most
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


@dataclass(frozen=True)
class RowFacts:
    """What the curator should know of noisy columns.

    For each the number of classes without noise and of exposed rows; and which two columns look
    like copies of each other.
    """

    bare: dict[str, int]
    exposed: dict[str, int]
    alike: frozenset[tuple[str, str]]

    def __add__(self, other: RowFacts) -> RowFacts:
        return RowFacts(
            {name: bare + other.bare[name] for name, bare in self.bare.items()},
            {name: rows + other.exposed[name] for name, rows in self.exposed.items()},
            self.alike & other.alike,
        )


def examine_rows(data: NoisyRows) -> RowFacts:
    """Return classes without noise, exposed rows, copied columns."""
    bare, exposed = {}, {}
    for column in data.columns:
        bare[column.name] = int((column.noise.scale == 0).sum())
        values = np.bincount(data.members[~column.null], minlength=data.classes)
        exposed[column.name] = int(
            ((chances(column, data.members) > _EXPOSED) & (values > 1)[data.members]
             & (column.noise.scale > 0)[data.members]).sum()
        )  # fmt: skip
    alike = set()
    for at, first in enumerate(data.columns):
        for second in data.columns[at + 1 :]:
            some = ~(first.null | second.null)
            if _alike(first.steps[some], second.steps[some]):
                alike.add((first.name, second.name))
    return RowFacts(bare, exposed, frozenset(alike))


def list_findings(found: RowFacts) -> list[Finding]:
    """Return what was found, column by column."""
    listed = []
    for name, bare in found.bare.items():
        if bare:
            listed.append(make_finding("VALUES_WITHOUT_NOISE", name, classes=bare))
        if found.exposed[name]:
            listed.append(make_finding("VALUES_EXPOSED", name, rows=found.exposed[name]))
    pairs = sorted(found.alike)
    return [*listed, *(make_finding("COLUMNS_COPIED", one, other=other) for one, other in pairs)]


def _alike(one: Steps, other: Steps) -> bool:
    if len(one) < 3 or one.min() == one.max() or other.min() == other.max():
        return False
    return bool(abs(np.corrcoef(one.astype(float), other.astype(float))[0, 1]) > _COPY)
