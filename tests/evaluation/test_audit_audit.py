"""Audits of our methods: near to what the accountant says, never above the claim."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from support.cli import run_command

from incrowd.anonymize import safe_counts as noisy
from incrowd.arrays import Counts
from incrowd.engine.source import local_engine
from incrowd.errors import IncrowdError, ParameterError
from incrowd.evaluation.audit.audit import Audit, audit
from incrowd.evaluation.audit.bound import compute_expected_bound
from incrowd.evaluation.audit.pairs import CellPair, make_pairs
from incrowd.methods.base import MakeContext
from incrowd.methods.registry import make_method
from incrowd.privacy.counts import sample_geometric_noise
from incrowd.privacy.randomness import Randomness, SeededRandomness
from incrowd.spec.file import SpecFile, parse_spec

COLUMNS = """
columns:
  age: {role: quasi, hierarchy: {intervals: {from: 0, to: 99, widths: [25]}}}
  birth_year: {role: quasi, hierarchy: {intervals: {from: 1900, to: 1999, widths: [25]}}}
"""
FIXED = "scheme: fixed, levels: {age: 0, birth_year: 0}"


def spec(release: str, method: str = "safe, epsilon: 1.0, delta: 1.0e-6") -> SpecFile:
    return parse_spec(f"{COLUMNS}\nrelease: {{method: {method}, {release}}}\n")


def audited(file: SpecFile, runs: int, seed: int = 1) -> Audit:
    return audit(file, runs=runs, bits=SeededRandomness(seed))


# The bounds below are above the truth with 5 % each for a random seed, at most.


def test_of_a_sample_it_shows_four_fifths_of_what_is_accounted() -> None:
    """Expected: 0.85 of it, by the law itself."""
    result = audited(spec(f"draw: sample, beta: 0.5, {FIXED}"), runs=120)
    assert result.accounted is not None
    assert result.expected is not None
    assert 0.8 * result.accounted < result.epsilon < result.accounted < 1.0 == result.claim
    assert result.epsilon == pytest.approx(result.expected, rel=0.1)
    assert not result.is_above_claim
    assert "consistent with the claim" in result.verdict


def test_of_counts_it_shows_nearly_all_that_is_accounted() -> None:
    result = audited(spec(f"draw: counts, {FIXED}"), runs=18)
    assert result.accounted is not None
    assert 0.9 * result.accounted < result.epsilon < result.accounted < 1.0 == result.claim


def test_of_a_table_that_is_a_sample_the_person_is_drawn_into_it() -> None:
    """Without that, the counts would show what they cost before amplification, 1.5 and more."""
    result = audited(spec(f"draw: counts, already_sampled: 0.5, {FIXED}"), runs=9)
    assert result.accounted is not None
    assert 0.8 * result.accounted < result.epsilon < result.accounted < 1.0 == result.claim
    assert "0.5" in result.tables


@pytest.mark.parametrize("release", ["draw: counts", "draw: sample, beta: 0.5"])
def test_of_a_search_it_stays_below_the_claim(release: str) -> None:
    result = audited(spec(f"{release}, scheme: search"), runs=600 if "counts" in release else 40)
    assert result.accounted is not None
    assert result.epsilon < result.accounted < 1.0 == result.claim
    assert result.epsilon > 0.2 * result.accounted or "sample" in release
    assert "equal rows" in result.tables


def test_slices_and_cuts_can_be_audited() -> None:
    sliced = "slices: [[age], [birth_year]], levels: {age: 1, birth_year: 1}"
    for release in (sliced, "draw: sample, beta: 0.5, scheme: mondrian"):
        result = audited(spec(release), runs=30)
        assert result.accounted is not None
        assert result.epsilon <= result.accounted
        assert result.claim == 1.0


def test_classes_promise_no_epsilon_and_have_none() -> None:
    noisy = COLUMNS + "  income: {role: noisy, precision: 1, bounds: [0, 1000]}\n"
    files = (
        spec("k: 5", method="k-anonymity"),
        spec("k: 5, algorithm: mondrian", method="k-anonymity"),
        parse_spec(f"{noisy}\nrelease: {{method: k-epsilon, k: 5, epsilon: 1.0}}\n"),
    )
    for file in files:
        result = audited(file, runs=30)
        assert (result.claim, result.accounted, result.is_above_claim) == (None, None, False)
        assert result.epsilon == pytest.approx(result.most)  # told apart in every single run
        assert (
            "the method guarantees no ε for the table, and any smaller one would be false"
            in result.verdict
        )
        assert "; every run distinguished the tables, so ε is probably infinite" in result.verdict
        assert ("inside a class" in result.verdict) == (file is files[-1])


def test_the_tables_are_the_worst_ones() -> None:
    """Of neighboring sizes of the cell none has a law that shows more."""
    for release in (f"draw: sample, beta: 0.5, {FIXED}", f"draw: counts, {FIXED}"):
        file = spec(release)
        (pair,) = make_pairs(file, make_method(file), delta=0.01, seed=1)
        assert isinstance(pair, CellPair)

        def shown(n: int, pair: CellPair = pair) -> float:
            other = CellPair(pair.counted, n, pair.event, pair.threshold, pair.share, pair.rate)
            return compute_expected_bound(*other.laws(), 10**10, delta=0.01 / pair.share)

        bound = shown(pair.n)
        assert all(shown(pair.n + by) <= bound * (1 + 1e-4) for by in (-8, -3, -1, 1, 3, 8))
        for law in pair.laws():
            assert law.sum() == pytest.approx(1.0)


def test_the_law_of_a_cell_is_that_of_its_runs() -> None:
    """Total variation of 60,000 draws from a law of a few dozen values: below 0.03 by far."""
    for release in (f"draw: sample, beta: 0.5, {FIXED}", f"draw: counts, {FIXED}"):
        file = spec(release)
        method, bits = make_method(file), SeededRandomness(5)
        (pair,) = make_pairs(file, method, delta=0.01, seed=1)
        context = MakeContext(bits, local_engine())
        for first, law in zip((True, False), pair.laws() or (), strict=True):
            met = np.zeros(len(law))
            for _ in range(12):
                for (value,), times in pair.run_once(method, context, first=first).items():
                    assert isinstance(value, int)
                    met[value] += times
            assert np.abs(met / met.sum() - law).sum() / 2 < 0.03


def test_a_wrong_scale_of_noise_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts with noise of half the width claim 1 and have 2."""

    def narrow(count: int, epsilon: Fraction, r: int, bits: Randomness) -> Counts:
        return sample_geometric_noise(count, 2 * epsilon, r, bits)

    monkeypatch.setattr(noisy, "sample_geometric_noise", narrow)
    result = audited(spec(f"draw: counts, {FIXED}"), runs=9)
    assert result.is_above_claim
    assert result.epsilon > 1.8
    assert "ABOVE" in result.verdict


def test_more_than_is_accounted_is_found_below_the_claim_too() -> None:
    """At the audit's delta the accountant says less than the claim, and must be right there."""
    result = audited(spec(f"draw: counts, {FIXED}"), runs=9)  # each has thousands of cells
    assert result.accounted is not None
    assert not result.is_above_claim
    wrong = replace(result, claim=9.0, epsilon=result.accounted + 0.1)
    assert wrong.is_above_claim
    assert "ABOVE the accounted ε: the claim is false" in wrong.verdict
    assert "ABOVE the claim" in replace(wrong, epsilon=9.5).verdict
    nothing = replace(result, epsilon=0.0, expected=0.0)
    assert "expected to show nothing" in nothing.verdict


def test_the_same_bits_give_the_same_audit() -> None:
    file = spec(f"draw: counts, {FIXED}")
    item, other = (audited(file, 6).as_dict() for _ in range(2))
    assert {**item, "seconds": 0} == {**other, "seconds": 0}


def test_parameters_are_checked() -> None:
    file = spec(f"draw: counts, {FIXED}")
    for wrong in ({"delta": 0.0}, {"confidence": 1.0}, {"seconds": math.inf}, {"runs": 1}):
        with pytest.raises(ParameterError, match=next(iter(wrong))):
            audit(file, **wrong)


def test_a_claim_with_a_larger_delta_says_nothing_at_a_smaller_one() -> None:
    result = audited(spec(f"draw: counts, {FIXED}"), 6)
    weaker = Audit(**{**vars(result), "epsilon": 3.0, "claim_delta": 0.5, "accounted": math.inf})
    assert not weaker.is_above_claim
    assert "the claim does not apply below δ =" in weaker.verdict
    assert Audit(**{**vars(result), "epsilon": 3.0}).is_above_claim


def test_at_the_command_line_processes_share_the_time(tmp_path: Path) -> None:
    path = tmp_path / "spec.yaml"
    release = f"release: {{method: safe, epsilon: 1.0, delta: 1.0e-6, draw: counts, {FIXED}}}"
    path.write_text(f"{COLUMNS}\n{release}\n", encoding="utf-8")
    done = run_command("audit", str(path), "--seconds", "0.2")
    assert done.returncode == 0, done.stderr
    assert "consistent with the claim" in done.stdout
    assert "Accounted   ε =" in done.stdout
    for wrong in (["audit"], ["audit", str(path), "--claim", "1"], ["audit", "--command", "x"]):
        assert run_command(*wrong).returncode == 2
    with pytest.raises(IncrowdError):
        audit({"columns": {}})
