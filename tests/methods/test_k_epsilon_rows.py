"""Rows with noise: what each noisy column may spend."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import polars as pl

from incrowd.engine.source import open_table
from incrowd.methods.k_anonymity.classes import form_classes
from incrowd.methods.k_epsilon.method import KEpsilon
from incrowd.methods.k_epsilon.rows import make_noisy_rows
from incrowd.privacy import k_epsilon
from incrowd.privacy.randomness import SeededRandomness
from incrowd.spec.file import parse_spec


def test_noisy_columns_share_epsilon_and_delta() -> None:
    """Together they are one record: what each spends must add up to what the spec allows."""
    file = parse_spec(
        "columns:\n  a: {role: quasi, hierarchy: {flat: {values: [x, y]}}}\n"
        "  one: {role: noisy}\n  two: {role: noisy, weight: 3}\n"
        "release: {method: k-epsilon, k: 5, epsilon: 2, noise: gaussian, delta: 1.0e-4}\n"
    )
    draw = np.random.default_rng(1)
    values = {name: draw.integers(0, 90, 60) for name in ("one", "two")}
    table = open_table(pl.DataFrame({"a": ["x", "y"] * 30, **values}))
    method = KEpsilon(file)
    rows = method.count_tuples(table)
    result = form_classes(rows, method.all_columns, method.release, bits=SeededRandomness(1))
    data = make_noisy_rows(rows, result, method.noisy, method.release)
    for column, share in zip(data.columns, (Fraction(1, 2), Fraction(3, 2)), strict=True):
        widths = np.array(
            [np.ptp(column.originals[data.members == number]) for number in range(data.classes)]
        )
        needed = k_epsilon.make_gaussian_noise(widths, share, 1e-4 / 2).sigma
        assert needed is not None
        assert column.noise.sigma is not None
        assert column.noise.sigma.tolist() == needed.tolist()
