"""An audit of tables of counts looks at what their residuals show of one row."""

from __future__ import annotations

import math

import numpy as np
import pytest
from support.tables import BUDGET, make_spec

from incrowd.anonymize.tables import measure
from incrowd.arrays import Counts
from incrowd.engine.source import local_engine
from incrowd.evaluation.audit.audit import audit
from incrowd.evaluation.audit.tables import ResidualsPair, table_pairs
from incrowd.methods.base import MakeContext
from incrowd.methods.registry import make_method
from incrowd.privacy.randomness import SeededRandomness

SPEC = make_spec(f"{BUDGET}, tables: [[sex, region]]")
_STEPS = 10  # to a standard deviation


def list_scores(pair: ResidualsPair, *, first: bool, runs: int = 4) -> np.ndarray:
    """Return scores in standard deviations."""
    context = MakeContext(SeededRandomness(int(first)), local_engine())
    scores: list[int] = []
    for _ in range(runs):
        outcomes = pair.run_once(pair.method, context, first=first)
        scores += [int(str(key[0])) for key, times in outcomes.items() for _ in range(times)]
    return np.array(scores) / _STEPS


def make_pair() -> ResidualsPair:
    (pair,) = table_pairs(make_method(SPEC))
    assert isinstance(pair, ResidualsPair)
    return pair


def test_scores_have_the_law_that_the_certificate_charges() -> None:
    """Limits are five standard errors: a false alarm has a probability below 1e-5."""
    pair = make_pair()
    assert 0.9 * pair.method.information < pair.information <= pair.method.information
    present, absent = (list_scores(pair, first=first) for first in (True, False))
    mu, error = math.sqrt(pair.information), 1 / math.sqrt(len(present))
    assert abs(present.mean() - mu / 2) < 5 * error
    assert abs(absent.mean() + mu / 2) < 5 * error
    assert abs(present.std() - 1) < 5 * error


def test_noise_of_half_the_size_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = measure.draw_noise

    def draw_less(*arguments: object) -> Counts:
        noise: Counts = draw(*arguments) // 2  # type: ignore[arg-type]
        return noise

    monkeypatch.setattr(measure, "draw_noise", draw_less)
    scores = list_scores(make_pair(), first=True, runs=1)
    assert abs(scores.std() - 1) > 5 / math.sqrt(len(scores))


def test_an_audit_stays_below_the_claim() -> None:
    answer = audit(SPEC, runs=6, workers=1, bits=SeededRandomness(1))
    assert answer.claim == 1.0
    assert answer.epsilon <= 1.0
    assert "by all measured residuals" in answer.tables
