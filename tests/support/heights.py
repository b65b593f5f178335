"""What tests of (k,epsilon)-anonymity share: heights, and how they are published."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from incrowd.measure.evaluation import Evaluation
from incrowd.measure.noise_loss import NoiseEvaluation, NoiseSimulation
from incrowd.publication import Release
from incrowd.spec.file import SpecFile, parse_spec

HEIGHT = "{role: noisy, precision: 0.1, bounds: [100, 250]}"


def make_height_spec(release: str, x: str = HEIGHT, more: str = "") -> SpecFile:
    return parse_spec(
        "columns:\n"
        "  group: {role: quasi, hierarchy: {groups: {all: [a, b, c, d]}}}\n"
        "  person: {role: sensitive, allow: [id]}\n"
        f"  x: {x}\n{more}"
        f"release: {{method: k-epsilon, {release}}}\n"
    )


def make_height_table(x: list[Any], groups: str = "ab") -> pl.DataFrame:
    group = [groups[at % len(groups)] for at in range(len(x))]
    return pl.DataFrame({"group": group, "person": range(len(x)), "x": x}, strict=False)


def draw_heights(rows: int = 2000, seed: int = 1) -> pl.DataFrame:
    draw = np.random.default_rng(seed)
    return make_height_table(draw.normal(170, 7, rows).round(1).tolist(), "aabc")


def get_noise(release: Release) -> NoiseEvaluation:
    assert isinstance(release.evaluation, Evaluation)
    assert release.evaluation.noise is not None
    return release.evaluation.noise


def get_simulated_noise(release: Release) -> NoiseSimulation:
    """What fresh noise would do to a release."""
    simulated = get_noise(release).simulated
    assert simulated is not None
    return simulated
