"""Noise on rows that are on other machines: whole classes at a time, by the same code as here."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from incrowd.codes.grid import Grid, build_grid
from incrowd.engine.count import normalize_kept_value
from incrowd.engine.table import ChunkResult, ClassChunk
from incrowd.errors import IncrowdError
from incrowd.measure.linkage import RunMean
from incrowd.measure.noise_loss import FRESH, NoiseEvaluation, NoiseLoss, NoiseSimulation
from incrowd.methods.k_epsilon.loss import (
    LINKED_ROWS,
    RowFacts,
    examine_rows,
    find_large_errors,
    list_findings,
    make_exact_mean,
    measure_noise,
)
from incrowd.methods.k_epsilon.rows import NoisyRows, make_noisy_columns
from incrowd.privacy.randomness import Randomness
from incrowd.spec.model import Column
from incrowd.spec.release import KEpsilonSpec


@dataclass(frozen=True, eq=False)
class NoisePart:
    """What noise did to some whole classes, so that it can be put together with others.

    ``held`` are the rows that have a value in each column, ``grids`` what their steps are.
    """

    rows: int
    kept: int
    noise: NoiseEvaluation
    held: Mapping[str, int]
    grids: Mapping[str, Grid]
    facts: RowFacts


@dataclass(frozen=True)
class NoiseTask:
    """Noise for every row of some whole classes, as wide as each class; a task makes it.

    Each task links as many of its rows as its share of all ``rows`` is.
    """

    noisy: Mapping[str, Column]
    release: KEpsilonSpec
    k: int
    rows: int

    def __call__(self, chunk: ClassChunk, bits: Randomness) -> ChunkResult:
        """Return the rows kept, with noise, and what it did to them."""
        _, members = np.unique(chunk.members, return_inverse=True)
        number = int(members.max(initial=-1)) + 1
        values = {
            name: ([normalize_kept_value(value) for value in distinct], codes)
            for name, (distinct, codes) in chunk.columns.items()
        }
        columns = make_noisy_columns(members, number, values, self.noisy, self.release)
        data = NoisyRows(np.arange(len(members)), members, number, columns)
        released = data.add_noise(bits)
        is_kept = data.select_rows(released, k=self.k, confidence=self.release.confidence)
        facts = examine_rows(data)
        limit = math.ceil(LINKED_ROWS * len(members) / self.rows)
        part = NoisePart(
            rows=len(members),
            kept=int(is_kept.sum()),
            noise=measure_noise(data, released, is_kept, bits, facts=facts, limit=limit),
            held={column.name: int((~column.null).sum()) for column in columns},
            grids={column.name: column.grid for column in columns},
            facts=facts,
        )
        pairs = zip(columns, released, strict=True)
        return ChunkResult(
            is_kept, {column.name: (noisy, column.null) for column, noisy in pairs}, part
        )


def merge_grids(parts: Sequence[NoisePart], noisy: Mapping[str, Column]) -> dict[str, Grid]:
    """Return what a step of each column is; all parts must agree."""
    merged = {}
    for name, column in noisy.items():
        grids = {part.grids[name] for part in parts if part.held[name]}
        if len(grids) > 1:
            raise IncrowdError(
                f"Column '{name}': it holds both dates and numbers. Convert them to one kind."
            )
        empty = build_grid(name, [], column.precision, column.bounds)[0]
        merged[name] = grids.pop() if grids else empty
    return merged


def merge_noise(parts: Sequence[NoisePart]) -> NoiseEvaluation:
    """Return what noise did to all classes, from what it did to each part of them."""
    if not parts:
        zero = make_exact_mean(0.0)
        return NoiseEvaluation({}, zero, zero, 0, (), NoiseSimulation(zero, zero, note=FRESH))
    noises = [part.noise for part in parts]
    published_rows = [part.kept for part in parts]
    fresh = [noise.simulated for noise in noises if noise.simulated is not None]
    noise_evaluation = sum((part.facts for part in parts[1:]), parts[0].facts)
    columns = {name: _merge_column(name, parts) for name in noises[0].columns}
    return NoiseEvaluation(
        columns=columns,
        linking=make_exact_mean(
            _compute_mean([(n.linking.mean if n.linking else 0.0) for n in noises], published_rows)
        ),
        linking_shared=make_exact_mean(
            _compute_mean(
                [(n.linking_shared.mean if n.linking_shared else 0.0) for n in noises],
                published_rows,
            )
        ),
        suppressed_by_confidence=sum(noise.suppressed_by_confidence or 0 for noise in noises),
        findings=(*list_findings(noise_evaluation), *find_large_errors(columns)),
        simulated=NoiseSimulation(
            _merge_means(
                [simulation.linking for simulation in fresh], [part.rows for part in parts]
            ),
            _merge_means(
                [simulation.linking_shared for simulation in fresh], [part.rows for part in parts]
            ),
            note=FRESH,
        ),
    )


def _merge_column(name: str, parts: Sequence[NoisePart]) -> NoiseLoss:
    """Merge one column of all parts; means weigh as many rows as they were taken over."""
    losses = [part.noise.columns[name] for part in parts]
    rows = [part.rows for part in parts]
    compared_rows = [
        part.kept - (loss.zeros or 0) - loss.nulls for part, loss in zip(parts, losses, strict=True)
    ]
    value_rows = [part.held[name] for part in parts]
    return replace(
        losses[0],
        expected_error=_compute_mean([loss.expected_error or 0.0 for loss in losses], value_rows),
        measured_error=_compute_mean(
            [loss.measured_error or 0.0 for loss in losses], compared_rows
        ),
        unchanged=sum(loss.unchanged or 0 for loss in losses),
        zeros=sum(loss.zeros or 0 for loss in losses),
        nulls=sum(loss.nulls for loss in losses),
        classes_without_noise=sum(loss.classes_without_noise or 0 for loss in losses),
        mean_scale=_compute_mean([loss.mean_scale or 0.0 for loss in losses], rows),
    )


def _compute_mean(values: Sequence[float], weights: Sequence[int]) -> float:
    total = sum(weights)
    weighted_sum = math.fsum(value * weight for value, weight in zip(values, weights, strict=True))
    return weighted_sum / total if total else 0.0


def _merge_means(means: Sequence[RunMean], weights: Sequence[int]) -> RunMean:
    """Return the mean of independent parts, each over its own runs; uncertainty adds up."""
    mean, total = (
        _compute_mean([part_mean.mean for part_mean in means], weights),
        max(sum(weights), 1),
    )
    parts = zip(means, weights, strict=True)
    reach = math.sqrt(
        math.fsum(((part_mean.high - part_mean.mean) * w / total) ** 2 for part_mean, w in parts)
    )
    return RunMean(mean, mean - reach, mean + reach, min(part_mean.runs for part_mean in means))
