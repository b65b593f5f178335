"""Noise that several tasks add, each to whole classes: together they tell what one would."""

from __future__ import annotations

import numpy as np
import pytest

from incrowd.engine.table import ClassChunk
from incrowd.methods.k_epsilon.loss import LINKED_ROWS, RUNS, compute_link_chances
from incrowd.methods.k_epsilon.method import KEpsilon
from incrowd.methods.k_epsilon.remote_noise import NoisePart, NoiseTask, merge_noise
from incrowd.methods.k_epsilon.rows import make_noisy_columns
from incrowd.privacy.randomness import SeededRandomness
from incrowd.spec.file import parse_spec

FILE = parse_spec(
    "columns:\n  group: {role: quasi, hierarchy: flat}\n  x: {role: noisy}\n"
    "release: {method: k-epsilon, k: 5, epsilon: 4}"
)


@pytest.mark.parametrize("size", [20, 2_500])
def test_what_tasks_link_covers_the_risk_of_all_rows(size: int) -> None:
    """Each links its share alone, of classes larger than that in fewer runs."""
    method = KEpsilon(FILE)
    rows, tasks = 4 * LINKED_ROWS, 80
    values, members = np.random.default_rng(5).integers(0, 300, rows), np.arange(rows) // size
    distinct = list(range(300))
    work = NoiseTask(method.noisy, method.release, 5, rows)
    parts, bits = [], SeededRandomness(3)
    # Tasks have classes of their own, some more than others.
    owner = np.random.default_rng(6).integers(0, tasks, members[-1] + 1) ** 2 % tasks
    for task in range(tasks):
        mine = owner[members] == task
        if mine.any():
            chunk = ClassChunk(members[mine], {"x": (distinct, values[mine].astype(np.int32))})
            worked = work(chunk, bits)
            assert isinstance(worked.part, NoisePart)
            parts.append(worked.part)
    simulated = merge_noise(parts).simulated
    assert simulated is not None
    columns = make_noisy_columns(
        members, int(members[-1]) + 1, {"x": (distinct, values.astype(np.int32))},
        method.noisy, method.release,
    )  # fmt: skip
    exact = float(compute_link_chances(columns[0], members).mean())
    reach = simulated.linking.high - simulated.linking.mean
    assert abs(simulated.linking.mean - exact) < 2.5 * reach  # five standard errors
    assert reach < 0.1 * exact
    assert (simulated.linking.runs < RUNS) == (size > 1_000)
