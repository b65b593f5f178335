"""An audit of synthetic rows: it shows most of what is certified, and finds planted faults."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import kstest
from support.synthetic import make_spec

from incrowd.anonymize.synthetic import measurement, synthesize
from incrowd.engine.source import local_engine
from incrowd.evaluation.audit import synthetic
from incrowd.evaluation.audit.audit import audit
from incrowd.evaluation.audit.bound import compute_expected_bound
from incrowd.evaluation.audit.synthetic import RepeatedTablesPair, WholeRunPair, synthetic_pairs
from incrowd.methods.base import MakeContext
from incrowd.methods.registry import make_method
from incrowd.privacy.accountant import Accountant
from incrowd.privacy.gaussian import whole_variance
from incrowd.privacy.information import InformationBudget
from incrowd.privacy.randomness import SeededRandomness
from incrowd.spec.file import SpecFile, parse_spec

_COLUMNS = {
    "x": "intervals: {from: 1, to: 10000}",
    "sex": "flat: {values: [female, male]}",
    "age": "intervals: {from: 0, to: 99, step: 5, widths: [10, 50]}",
    "region": "flat: {values: [north, south, east, west]}",
}


def _spec(*names: str, more: str = "") -> SpecFile:
    lines = [f"  {name}: {{role: quasi, hierarchy: {{{_COLUMNS[name]}}}}}" for name in names]
    release = f"release: {{method: synthetic, epsilon: 1.0, delta: 1.0e-6{more}}}"
    return parse_spec("\n".join(["columns:", *lines, release]))


_SPECS = {
    "one column": _spec("x"),
    "three columns": _spec("sex", "age", "region"),
    "a pair that is asked for": _spec("sex", "age", "region", more=", tables: [[sex, age]]"),
    "nine columns": make_spec(),
}


def _pair(file: SpecFile) -> RepeatedTablesPair:
    (pair,) = (
        candidate
        for candidate in synthetic_pairs(make_method(file))
        if "copies" in candidate.description
    )
    assert isinstance(pair, RepeatedTablesPair)
    return pair


@pytest.mark.parametrize("name", ["one column", "a pair that is asked for"])
def test_what_is_shown_is_what_the_law_lets_one_expect(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(synthetic, "_OUTCOMES", 1000)
    result = audit(_SPECS[name], runs=24, bits=SeededRandomness(3))
    assert not result.is_above_claim
    assert result.expected is not None
    assert result.accounted is not None
    assert abs(result.epsilon - result.expected) < 0.3 * result.accounted
    assert "copies" in result.tables


@pytest.mark.parametrize("name", _SPECS)
def test_a_minute_shows_most_of_what_is_accounted(name: str) -> None:
    """Of nine columns it has 350,000 outcomes that test the event, of three a million."""
    file = _SPECS[name]
    accounted = Accountant(make_method(file).events).epsilon(delta=0.01)
    bound = compute_expected_bound(*_pair(file).laws(), 200_000, delta=0.01)
    assert 0.75 * accounted < bound < accounted
    bound = compute_expected_bound(*_pair(file).laws(), 350_000, delta=0.01)
    assert 0.8 * accounted < bound < accounted


@pytest.mark.parametrize("name", _SPECS)
def test_copies_have_the_law_of_a_run(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores of copies and scores of whole runs are normal, around half their information."""
    file = _SPECS[name]
    method = make_method(file)
    context = MakeContext(SeededRandomness(5), local_engine())
    monkeypatch.setattr(synthetic, "_OUTCOMES", 1500)
    monkeypatch.setattr(synthetic, "_STEP", 0.001)
    monkeypatch.setattr(synthetic, "_MOST", 10_000)
    copies, complete_runs = _pair(file), WholeRunPair(method)  # type: ignore[arg-type]
    root = np.sqrt(copies.information)
    for first in (True, False):
        mean = root / 2 if first else -root / 2
        scores = [copies.run_once(method, context, first=first) for _ in range(2)]
        assert kstest(_list_scores(scores), "norm", args=(mean, 1.0)).pvalue > 0.001
        scores = [complete_runs.run_once(method, context, first=first) for _ in range(25)]
        assert kstest(_list_scores(scores), "norm", args=(mean, 1.0)).pvalue > 0.001


def _list_scores(counters: list) -> np.ndarray:  # type: ignore[type-arg]
    return np.concatenate(
        [[0.001 * step] * times for counter in counters for (step,), times in counter.items()]
    )


def test_copies_of_one_run_are_independent() -> None:
    """Their mean varies as that of independent scores does, along centered axes and others."""
    tables = _pair(_SPECS["a pair that is asked for"]).measured
    scores = np.zeros((150, 100))
    for seed, run in enumerate(scores):
        bits = SeededRandomness(seed)
        for table in tables:
            run += synthetic._score_copies(table, 100, bits, first=True)
    ratio = scores.mean(axis=1).var(ddof=1) * 100 / scores.var()
    assert 0.65 < ratio < 1.45


@pytest.mark.parametrize("name", ["one column", "three columns"])
def test_too_little_noise_is_found_out(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(synthetic, "_OUTCOMES", 1000)
    monkeypatch.setattr(
        measurement, "whole_variance", lambda length, part: whole_variance(length, part) // 4
    )
    assert audit(_SPECS[name], runs=24, bits=SeededRandomness(3)).is_above_claim


def test_a_budget_spent_four_times_over_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tables are those that a run of the method measured."""
    monkeypatch.setattr(synthetic, "_OUTCOMES", 1000)

    class GenerousBudget(InformationBudget):
        def spend(self, part: Fraction | float, numbers: int) -> Fraction:
            return 4 * super().spend(part, numbers)

    monkeypatch.setattr(synthesize, "InformationBudget", GenerousBudget)
    assert audit(_SPECS["three columns"], runs=24, bits=SeededRandomness(3)).is_above_claim


def test_all_the_information_but_that_of_the_choices_is_looked_at() -> None:
    for file in _SPECS.values():
        method = make_method(file)
        plan = method.plan  # type: ignore[attr-defined]
        rounding = 0.83 if len(method.domain) == 1 else 0.96  # type: ignore[attr-defined]
        assert rounding * plan.information < _pair(file).information <= plan.information


def test_an_event_is_described_by_its_longest_run_of_steps() -> None:
    words = _pair(_SPECS["three columns"]).describe_event([(14,), (-40,), (15,), (16,)])
    assert words == "a log-likelihood ratio of 1.4 to 1.6 standard deviations, and 1 rare values"
