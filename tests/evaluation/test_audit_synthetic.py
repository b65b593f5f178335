"""An audit of synthetic rows: it shows most of what is certified, and finds a planted fault."""

from __future__ import annotations

import pytest
from support.synthetic import make_spec

from incrowd.anonymize.synthetic import measurement
from incrowd.evaluation.audit.audit import audit
from incrowd.evaluation.audit.bound import compute_expected_bound
from incrowd.evaluation.audit.synthetic import synthetic_pairs
from incrowd.methods.registry import make_method
from incrowd.privacy.accountant import Accountant
from incrowd.privacy.gaussian import whole_variance
from incrowd.privacy.randomness import SeededRandomness
from incrowd.spec.file import SpecFile, parse_spec


def _one_column() -> SpecFile:
    return parse_spec(
        "columns:\n  x: {role: quasi, hierarchy: {intervals: {from: 1, to: 10000}}}\n"
        "release: {method: synthetic, epsilon: 1.0, delta: 1.0e-6}"
    )


def test_what_is_shown_is_what_the_law_lets_one_expect() -> None:
    """And of a million runs, which take a minute, more than 80 % of what is accounted."""
    file = _one_column()
    found = audit(file, runs=18, bits=SeededRandomness(3))
    assert not found.is_above_claim
    assert found.expected is not None
    assert abs(found.epsilon - found.expected) < 0.15 * found.expected
    assert "values in each run" in found.tables
    method = make_method(file)
    (pair,) = synthetic_pairs(method)
    laws = pair.laws()
    assert laws is not None
    accounted = Accountant(method.events).epsilon(delta=0.01)
    shown = compute_expected_bound(*laws, 1_000_000, delta=0.01, confidence=0.95)
    assert 0.8 * accounted < shown < accounted


def test_too_little_noise_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        measurement, "whole_variance", lambda length, part: whole_variance(length, part) // 4
    )
    assert audit(_one_column(), runs=18, bits=SeededRandomness(3)).is_above_claim


def test_several_columns_are_audited_by_all_their_tables() -> None:
    found = audit(make_spec(), runs=12, bits=SeededRandomness(3))
    assert not found.is_above_claim
    assert found.tables == "30 equal rows against 29, by all measured tables"
    assert found.expected is not None
