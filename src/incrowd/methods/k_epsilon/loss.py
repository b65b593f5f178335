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
    is_kept: Bools,
    bits: Randomness,
    *,
    facts: RowFacts | None = None,
    limit: int = LINKED_ROWS,
) -> NoiseEvaluation:
    """Measure errors and linking risk of noisy rows as released, and with fresh noise.

    Of more than ``limit`` rows those of random classes are linked. ``facts`` is what
    :func:`examine_rows` returns, where it is known.
    """
    losses = {
        column.name: measure_column_noise(column, data, noisy, is_kept)
        for column, noisy in zip(data.columns, released, strict=True)
    }
    if not data.columns:
        return NoiseEvaluation(losses, None, None, int((~is_kept).sum()))
    itself = _measure_linking(data, released, _sample_classes(data, bits, limit, is_kept))
    return NoiseEvaluation(
        columns=losses,
        linking=make_exact_mean(itself.risk),
        linking_shared=make_exact_mean(itself.shared),
        suppressed_by_confidence=int((~is_kept).sum()),
        findings=(*list_findings(facts or examine_rows(data)), *find_large_errors(losses)),
        simulated=NoiseSimulation(*simulate_linking(data, bits, limit=limit), note=FRESH),
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
    column: NoisyValues, data: NoisyRows, released: Steps, is_kept: Bools
) -> NoiseLoss:
    """Measure errors of one column over rows shown; zeros and nulls have no relative error."""
    is_counted = is_kept & ~column.null & (column.originals != 0)
    size = np.abs(column.originals[is_counted]).astype(np.float64)
    error = np.abs(released[is_counted].astype(np.float64) - column.originals[is_counted]) / size
    return NoiseLoss(
        expected_error=compute_expected_error(column, data.members),
        measured_error=float(error.mean()) if len(error) else 0.0,
        unchanged=int((is_kept & ~column.null & (released == column.originals)).sum()),
        zeros=int((is_kept & ~column.null & (column.originals == 0)).sum()),
        nulls=int((is_kept & column.null).sum()),
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
    is_counted = ~column.null & (column.originals != 0)
    if not is_counted.any():
        return 0.0
    size = np.abs(column.originals[is_counted]).astype(np.float64)
    shifts = (column.steps[is_counted] - column.originals[is_counted]).astype(np.float64)
    return float((column.noise.compute_shifted_mean(shifts, members[is_counted]) / size).mean())


def simulate_linking(
    data: NoisyRows, bits: Randomness, runs: int = RUNS, limit: int = LINKED_ROWS
) -> tuple[RunMean, RunMean]:
    """Return the linking risk over runs with fresh noise: ties as successes, and ties shared.

    Of very many rows each run links random classes of its own, so the interval covers that; of
    classes that are larger than ``limit`` there are fewer runs.
    """
    if (large := len(data.members) / max(data.classes, 1)) > limit:
        runs = min(runs, max(2, int(runs * limit / large)))
    samples = [_sample_classes(data, bits, limit) for _ in range(runs)]
    # All runs at once, each with classes of its own: a draw of few values costs as one of many.
    rows, run = (
        np.concatenate(samples),
        np.repeat(np.arange(runs), [len(sample) for sample in samples]),
    )
    members = data.members[rows]
    _, starts, classes = np.unique(
        members + run * data.classes, return_index=True, return_inverse=True
    )
    won, tie_shares = link_rows(
        classes,
        [column.originals[rows] for column in data.columns],
        [column.add_noise(members, bits, rows) for column in data.columns],
        [column.noise.scale[members[starts]] for column in data.columns],
    )
    sizes = np.maximum(np.bincount(run, minlength=runs), 1)
    return (
        compute_run_mean(np.bincount(run, won, minlength=runs) / sizes),
        compute_run_mean(np.bincount(run, tie_shares, minlength=runs) / sizes),
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
    data: NoisyRows, bits: Randomness, limit: int, is_kept: Bools | None = None
) -> Places:
    """Return rows without nulls, of random classes if very many; or those kept of them."""
    is_complete = ~np.any([column.null for column in data.columns], axis=0)
    if is_kept is not None:
        is_complete &= is_kept
    if len(is_complete) <= limit:
        return np.flatnonzero(is_complete)
    order = sample_permutation(data.classes, bits)
    sizes = np.bincount(data.members, minlength=data.classes)
    fits = np.cumsum(sizes[order]) <= limit
    fits[0] = True
    is_chosen = np.zeros(data.classes, dtype=bool)
    is_chosen[order[fits]] = True
    return np.flatnonzero(is_complete & is_chosen[data.members])


def compute_link_chances(column: NoisyValues, members: Members) -> Floats:
    """Return for each row with a value how likely it is linked by this column alone."""
    has_value = ~column.null
    chances = np.zeros(len(members))
    chances[has_value] = predict_linking(
        members[has_value], column.originals[has_value], column.noise
    )
    return chances


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
    copies = set()
    for at, first in enumerate(data.columns):
        for second in data.columns[at + 1 :]:
            has_values = ~(first.null | second.null)
            if _is_copy(first.steps[has_values], second.steps[has_values]):
                copies.add((first.name, second.name))
    return RowFacts(bare, exposed, frozenset(copies))


def list_findings(facts: RowFacts) -> list[Finding]:
    """Return what was found, column by column."""
    findings = []
    for name, bare in facts.bare.items():
        if bare:
            findings.append(make_finding("VALUES_WITHOUT_NOISE", name, classes=bare))
        if facts.exposed[name]:
            findings.append(make_finding("VALUES_EXPOSED", name, rows=facts.exposed[name]))
    pairs = sorted(facts.alike)
    return [
        *findings,
        *(make_finding("COLUMNS_COPIED", first, other=second) for first, second in pairs),
    ]


def _is_copy(first: Steps, second: Steps) -> bool:
    if len(first) < 3 or first.min() == first.max() or second.min() == second.max():
        return False
    return bool(abs(np.corrcoef(first.astype(float), second.astype(float))[0, 1]) > _COPY)
