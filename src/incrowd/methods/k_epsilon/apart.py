"""Noise on rows that are on other machines: whole classes at a time, by the same code as here."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from incrowd.codes.grid import Grid, grid_of
from incrowd.engine.count import kept_value
from incrowd.engine.table import Chunk, Worked
from incrowd.errors import IncrowdError
from incrowd.measure.linkage import Mean
from incrowd.measure.noise import FRESH, NoiseLoss, Noisiness, Simulated
from incrowd.methods.k_epsilon.loss import (
    LINKED_ROWS,
    RowFacts,
    exactly,
    examine_rows,
    find_large_errors,
    list_findings,
    noisiness,
)
from incrowd.methods.k_epsilon.rows import NoisyRows, noisy_columns
from incrowd.privacy.randomness import Randomness
from incrowd.spec.model import Column
from incrowd.spec.release import KEpsilonSpec


@dataclass(frozen=True, eq=False)
class Part:
    """What noise did to some whole classes, so that it can be put together with others.

    ``held`` are the rows that have a value in each column, ``grids`` what their steps are.
    """

    rows: int
    kept: int
    noise: Noisiness
    held: Mapping[str, int]
    grids: Mapping[str, Grid]
    facts: RowFacts


@dataclass(frozen=True)
class NoisyWork:
    """Noise for every row of some whole classes, as wide as each class; a task makes it.

    Each task links as many of its rows as its share of all ``rows`` is.
    """

    noisy: Mapping[str, Column]
    release: KEpsilonSpec
    k: int
    rows: int

    def __call__(self, chunk: Chunk, bits: Randomness) -> Worked:
        """The rows kept, with noise, and what it did to them."""
        _, members = np.unique(chunk.members, return_inverse=True)
        number = int(members.max(initial=-1)) + 1
        values = {
            name: ([kept_value(value) for value in listed], codes)
            for name, (listed, codes) in chunk.columns.items()
        }
        columns = noisy_columns(members, number, values, self.noisy, self.release)
        data = NoisyRows(np.arange(len(members)), members, number, columns)
        released = data.released(bits)
        kept = data.kept(released, k=self.k, confidence=self.release.confidence)
        found = examine_rows(data)
        most = math.ceil(LINKED_ROWS * len(members) / self.rows)
        part = Part(
            rows=len(members),
            kept=int(kept.sum()),
            noise=noisiness(data, released, kept, bits, found=found, most=most),
            held={column.name: int((~column.null).sum()) for column in columns},
            grids={column.name: column.grid for column in columns},
            facts=found,
        )
        pairs = zip(columns, released, strict=True)
        return Worked(kept, {column.name: (noisy, column.null) for column, noisy in pairs}, part)


def grids(parts: Sequence[Part], noisy: Mapping[str, Column]) -> dict[str, Grid]:
    """What a step of each column is; all parts must agree."""
    found = {}
    for name, column in noisy.items():
        known = {part.grids[name] for part in parts if part.held[name]}
        if len(known) > 1:
            raise IncrowdError(
                f"Column '{name}': it holds both dates and numbers. Convert them to one kind."
            )
        empty = grid_of(name, [], column.precision, column.bounds)[0]
        found[name] = known.pop() if known else empty
    return found


def together(parts: Sequence[Part]) -> Noisiness:
    """What noise did to all classes, from what it did to each part of them."""
    if not parts:
        nothing = exactly(0.0)
        return Noisiness({}, nothing, nothing, 0, (), Simulated(nothing, nothing, note=FRESH))
    noises = [part.noise for part in parts]
    shown = [part.kept for part in parts]
    fresh = [noise.simulated for noise in noises if noise.simulated is not None]
    said = sum((part.facts for part in parts[1:]), parts[0].facts)
    columns = {name: _column(name, parts) for name in noises[0].columns}
    return Noisiness(
        columns=columns,
        linking=exactly(_mean([(n.linking.mean if n.linking else 0.0) for n in noises], shown)),
        linking_shared=exactly(
            _mean([(n.linking_shared.mean if n.linking_shared else 0.0) for n in noises], shown)
        ),
        suppressed_by_confidence=sum(noise.suppressed_by_confidence or 0 for noise in noises),
        findings=(*list_findings(said), *find_large_errors(columns)),
        simulated=Simulated(
            _runs([one.linking for one in fresh], [part.rows for part in parts]),
            _runs([one.linking_shared for one in fresh], [part.rows for part in parts]),
            note=FRESH,
        ),
    )


def _column(name: str, parts: Sequence[Part]) -> NoiseLoss:
    """One column of all parts; means weigh as many rows as they were taken over."""
    each = [part.noise.columns[name] for part in parts]
    rows = [part.rows for part in parts]
    compared = [
        part.kept - (one.zeros or 0) - one.nulls for part, one in zip(parts, each, strict=True)
    ]
    held = [part.held[name] for part in parts]
    return replace(
        each[0],
        expected_error=_mean([one.expected_error or 0.0 for one in each], held),
        measured_error=_mean([one.measured_error or 0.0 for one in each], compared),
        unchanged=sum(one.unchanged or 0 for one in each),
        zeros=sum(one.zeros or 0 for one in each),
        nulls=sum(one.nulls for one in each),
        classes_without_noise=sum(one.classes_without_noise or 0 for one in each),
        mean_scale=_mean([one.mean_scale or 0.0 for one in each], rows),
    )


def _mean(values: Sequence[float], weights: Sequence[int]) -> float:
    total = sum(weights)
    summed = math.fsum(value * weight for value, weight in zip(values, weights, strict=True))
    return summed / total if total else 0.0


def _runs(each: Sequence[Mean], weights: Sequence[int]) -> Mean:
    """The mean of independent parts, each over its own runs; what is uncertain adds up."""
    mean, total = _mean([one.mean for one in each], weights), max(sum(weights), 1)
    parts = zip(each, weights, strict=True)
    reach = math.sqrt(math.fsum(((one.high - one.mean) * w / total) ** 2 for one, w in parts))
    return Mean(mean, mean - reach, mean + reach, min(one.runs for one in each))
