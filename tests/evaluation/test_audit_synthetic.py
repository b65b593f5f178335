"""An audit of synthetic rows: it shows most of what is certified, and finds a planted fault."""

from __future__ import annotations

import pytest
from support.synthetic import make_spec

from incrowd.anonymize.synthetic import measurement
from incrowd.evaluation.audit.audit import audit
from incrowd.privacy.gaussian import whole_variance
from incrowd.privacy.randomness import SeededRandomness
from incrowd.spec.file import SpecFile, parse


def _one_column(epsilon: float = 4.0) -> SpecFile:
    return parse(
        "columns:\n  x: {role: quasi, hierarchy: {intervals: {from: 1, to: 2000}}}\n"
        f"release: {{method: synthetic, epsilon: {epsilon}, delta: 1.0e-6}}"
    )


def test_most_of_what_is_certified_is_shown() -> None:
    found = audit(_one_column(), runs=24, bits=SeededRandomness(3))
    assert not found.above
    assert found.accounted is not None
    assert found.expected is not None
    assert found.epsilon >= 0.8 * found.accounted
    assert abs(found.epsilon - found.expected) < 0.1 * found.expected
    assert "values in each run" in found.tables


def test_too_little_noise_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        measurement, "whole_variance", lambda length, part: whole_variance(length, part) // 2
    )
    assert audit(_one_column(), runs=24, bits=SeededRandomness(3)).above


def test_several_columns_are_audited_by_all_their_tables() -> None:
    found = audit(make_spec(), runs=12, bits=SeededRandomness(3))
    assert not found.above
    assert found.tables == "30 equal rows against 29, by all measured tables"
    assert found.expected is not None
