"""What noise costs and hides: errors, linking risk, and what the curator should know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from incrowd.arrays import Bools, Floats, Members, Places, Steps
from incrowd.findings import Finding, make_finding
from incrowd.measure.linkage import (
    LinkingRisk,
    RunMean,
    compute_run_mean,
    link_rows,
    linking_risk,
    predict_linking,
)
from incrowd.measure.noise_loss import FRESH, NoiseEvaluation, NoiseLoss, NoiseSimulation
from incrowd.methods.k_epsilon.rows import NoisyRows, NoisyValues
from incrowd.privacy.randomness import Randomness, sample_permutation

RUNS = 30
LINKED_ROWS = 30_000  # so many rows are linked again and again, whole classes at random
_COPY = 0.99  # a correlation from which two columns look like copies
_EXPOSED = 0.9  # a chance of being linked from which noise does not hide a row
LARGE_ERROR = 1.0  # a mean relative error: noise as large as the values


def measure_noise(
    data: NoisyRows,
    released: Sequence[Steps],
    kept: Bools,
    bits: Randomness,
    *,
    found: RowFacts | None = None,
    most: int = LINKED_ROWS,
) -> NoiseEvaluation:
    """Measure errors and linking risk of noisy rows as released, and with fresh noise.

    Of more than ``most`` rows those of random classes are linked. ``found`` is what
    :func:`examine_rows` returns, where it is known.
    """
    losses = {
        column.name: measure_column_noise(column, data, noisy, kept)
        for column, noisy in zip(data.columns, released, strict=True)
    }
    itself = _measure_linking(data, released, _sample_classes(data, bits, most, kept))
    return NoiseEvaluation(
        columns=losses,
        linking=make_exact_mean(itself.risk),
        linking_shared=make_exact_mean(itself.shared),
        suppressed_by_confidence=int((~kept).sum()),
        findings=(*list_findings(found or examine_rows(data)), *find_large_errors(losses)),
        simulated=NoiseSimulation(*simulate_linking(data, bits, most=most), note=FRESH),
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


def measure_column_noise(
    column: NoisyValues, data: NoisyRows, released: Steps, kept: Bools
) -> NoiseLoss:
    """Measure errors of one column over rows shown; zeros and nulls have no relative error."""
    counted = kept & ~column.null & (column.originals != 0)
    size = np.abs(column.originals[counted]).astype(np.float64)
    error = np.abs(released[counted].astype(np.float64) - column.originals[counted]) / size
    return NoiseLoss(
        expected_error=compute_expected_error(column, data.members),
        measured_error=float(error.mean()) if len(error) else 0.0,
        unchanged=int((kept & ~column.null & (released == column.originals)).sum()),
        zeros=int((kept & ~column.null & (column.originals == 0)).sum()),
        nulls=int((kept & column.null).sum()),
        classes_without_noise=int((column.noise.scale == 0).sum()),
        mean_scale=float(column.noise.scale[data.members].mean() * float(column.grid.step))
        if len(data.members)
        else 0.0,
    )


def compute_expected_error(column: NoisyValues, members: Members) -> float:
    """Compute the mean relative error to be expected, before noise is drawn.

    For Laplace noise that is the paper's (1 / epsilon) times the sum over classes of
    (|class| / n) diameter / H, H the harmonic mean of the class's values, but for the exact
    mean of noise on a grid, and before values are clamped. Zeros and nulls are left out.
    """
    counted = ~column.null & (column.originals != 0)
    if not counted.any():
        return 0.0
    size = np.abs(column.originals[counted]).astype(np.float64)
    moved = (column.steps[counted] - column.originals[counted]).astype(np.float64)
    return float((column.noise.compute_shifted_mean(moved, members[counted]) / size).mean())


def simulate_linking(
    data: NoisyRows, bits: Randomness, runs: int = RUNS, most: int = LINKED_ROWS
) -> tuple[RunMean, RunMean]:
    """Return the linking risk over runs with fresh noise: ties as successes, and ties shared.

    Of very many rows each run links random classes of its own, so the interval covers that; of
    classes that are larger than ``most`` there are fewer runs.
    """
    if (large := len(data.members) / max(data.classes, 1)) > most:
        runs = min(runs, max(2, int(runs * most / large)))
    chosen = [_sample_classes(data, bits, most) for _ in range(runs)]
    # All runs at once, each with classes of its own: a draw of few values costs as one of many.
    rows, run = np.concatenate(chosen), np.repeat(np.arange(runs), [len(item) for item in chosen])
    members = data.members[rows]
    _, first, classes = np.unique(
        members + run * data.classes, return_index=True, return_inverse=True
    )
    won, shared = link_rows(
        classes,
        [column.originals[rows] for column in data.columns],
        [column.add_noise(members, bits, rows) for column in data.columns],
        [column.noise.scale[members[first]] for column in data.columns],
    )
    sizes = np.maximum(np.bincount(run, minlength=runs), 1)
    return (
        compute_run_mean(np.bincount(run, won, minlength=runs) / sizes),
        compute_run_mean(np.bincount(run, shared, minlength=runs) / sizes),
    )


def _measure_linking(data: NoisyRows, released: Sequence[Steps], rows: Places) -> LinkingRisk:
    """Return the linking risk of some rows as they are released."""
    return linking_risk(
        classes=data.members[rows],
        originals=[column.originals[rows] for column in data.columns],
        released=[noisy[rows] for noisy in released],
        scales=[column.noise.scale for column in data.columns],
    )


def make_exact_mean(value: float) -> RunMean:
    """Return a figure that was measured, not estimated from runs."""
    return RunMean(value, value, value, 1)


def _sample_classes(
    data: NoisyRows, bits: Randomness, most: int, kept: Bools | None = None
) -> Places:
    """Return rows without nulls, of random classes if very many; or those kept of them."""
    whole = ~np.any([column.null for column in data.columns], axis=0)
    if kept is not None:
        whole &= kept
    if len(whole) <= most:
        return np.flatnonzero(whole)
    order = sample_permutation(data.classes, bits)
    sizes = np.bincount(data.members, minlength=data.classes)
    taken = np.cumsum(sizes[order]) <= most
    taken[0] = True
    chosen = np.zeros(data.classes, dtype=bool)
    chosen[order[taken]] = True
    return np.flatnonzero(whole & chosen[data.members])


def compute_link_chances(column: NoisyValues, members: Members) -> Floats:
    """Return for each row with a value how likely it is linked by this column alone."""
    some = ~column.null
    link_chances = np.zeros(len(members))
    link_chances[some] = predict_linking(members[some], column.originals[some], column.noise)
    return link_chances


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
            ((compute_link_chances(column, data.members) > _EXPOSED) & (values > 1)[data.members]
             & (column.noise.scale > 0)[data.members]).sum()
        )  # fmt: skip
    alike = set()
    for at, first in enumerate(data.columns):
        for second in data.columns[at + 1 :]:
            some = ~(first.null | second.null)
            if _is_copy(first.steps[some], second.steps[some]):
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
    return [
        *listed,
        *(make_finding("COLUMNS_COPIED", first, other=other) for first, other in pairs),
    ]


def _is_copy(one: Steps, other: Steps) -> bool:
    if len(one) < 3 or one.min() == one.max() or other.min() == other.max():
        return False
    return bool(abs(np.corrcoef(one.astype(float), other.astype(float))[0, 1]) > _COPY)
