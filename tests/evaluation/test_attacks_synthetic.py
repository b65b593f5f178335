"""Attacks on synthetic rows: none succeeds on honest ones, and each one on what leaks."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from statistics import NormalDist

import numpy as np
from support.synthetic import BUDGET, COLUMNS, make_patients, make_spec

from incrowd.arrays import Codes
from incrowd.codes.frequency import Frequencies
from incrowd.engine.source import local_engine
from incrowd.evaluation.attacks.synthetic import attack_synthetic, find_members
from incrowd.evaluation.synthetic import measure_synthetic
from incrowd.measure.estimate import Estimate
from incrowd.methods.base import MakeContext
from incrowd.methods.registry import make_method
from incrowd.methods.synthetic.product import RowsProduct
from incrowd.privacy.randomness import SeededRandomness
from incrowd.release.product import MethodResult
from incrowd.spec.file import parse_spec


@cache
def _make(seed: int = 1, rows: int = 1500) -> MethodResult:
    method = make_method(make_spec())
    counts = method.count(local_engine().open(make_patients(rows)))
    return method.make(counts, MakeContext(SeededRandomness(seed), local_engine()))


def _product(outcome: MethodResult) -> RowsProduct:
    (product,) = outcome.products
    assert isinstance(product, RowsProduct)
    return product


def _second_rows(outcome: MethodResult) -> Codes:
    rows = _product(outcome).second_rows
    assert rows is not None
    return rows


def _attack(outcome: MethodResult) -> dict[str, Estimate]:
    report = attack_synthetic(outcome, tries=400)
    return {f"{estimate.attack}: {estimate.name}": estimate for estimate in report.estimates}


def test_honest_rows_withstand_every_attack() -> None:
    estimates = _attack(_make())
    assert {name.split(":")[0] for name in estimates} == {
        "linkage", "join", "singling-out", "inference", "membership",
    }  # fmt: skip
    unbounded = [
        name for name, estimate in estimates.items() if estimate.succeeds and estimate.bound is None
    ]
    assert not [name for name in unbounded if not name.startswith("inference")]
    member = estimates["membership: by the measured tables"]
    assert member.bound is not None
    assert member.success.low <= member.bound < 0.6


def test_copied_rows_are_linked_and_counted_beyond_chance() -> None:
    outcome = _make()
    product = _product(outcome)
    copied = replace(
        product, shown=replace(product.shown, frequencies=product.original.frequencies)
    )
    leaking = replace(outcome, products=(copied,))
    assert _attack(leaking)["linkage: a row equal to the person's"].succeeds
    equal = measure_synthetic(leaking)[0].equal_rows
    assert equal.expected is not None
    assert equal.equal == equal.rows > 5 * equal.expected


def test_members_are_told_as_often_as_the_information_allows() -> None:
    """Over many releases; without noise always."""
    right, tries = 0, 0
    for seed in range(1, 13):
        outcome = _make(seed, 400)
        member = _attack(outcome)["membership: by the measured tables"]
        right += member.success.hits
        tries += member.success.tries
    expected = NormalDist().cdf(math.sqrt(_information()) / 2)
    assert abs(right / tries - expected) < 0.05
    outcome = _make(1, 400)
    assert outcome.synthetic is not None
    exact = [
        replace(numbers, numbers=tuple(_query(numbers, outcome) for _ in numbers.numbers))
        for numbers in outcome.synthetic.measured
    ]
    people = _product(outcome).original.frequencies.codes[:100]
    outside = _second_rows(outcome)[:100]
    estimate = find_members(
        exact, outcome.synthetic.columns, _product(outcome).original.frequencies, people, outside,
        bound=None,
    )  # fmt: skip
    assert estimate.success.value == 1.0


def _information() -> float:
    return float(_product(_make()).parameters["information"])


def _query(measured: object, outcome: MethodResult) -> np.ndarray:
    """What would be measured without noise."""
    from incrowd.evaluation.attacks.synthetic import _query as center
    from incrowd.release.synthetic_part import MeasuredNumbers

    assert isinstance(measured, MeasuredNumbers)
    assert outcome.synthetic is not None
    table: Frequencies = _product(outcome).original.frequencies
    names = list(outcome.synthetic.columns)
    groups = [
        outcome.synthetic.columns[name].list_groups(level)[table.codes[:, names.index(name)]]
        for name, level in zip(measured.columns, measured.levels, strict=True)
    ]
    counts = np.zeros(measured.shape)
    np.add.at(counts, tuple(groups), table.counts) if groups else counts.fill(table.total)
    return center(counts, measured.centered).astype(np.int64)


def test_a_second_draw_is_of_the_same_size() -> None:
    outcome = _make()
    assert len(_second_rows(outcome)) == _product(outcome).shown.frequencies.total


def test_a_sensitive_column_of_a_large_domain_is_inferred() -> None:
    """A public list has hundreds of codes, and the table few of them."""
    codes = ", ".join(f"d{number}" for number in range(400))
    columns = COLUMNS.replace("PATIENT", "key").replace('"@b", c]', f'"@b", c, {codes}]')
    method = make_method(parse_spec(f"{columns}\nrelease: {{{BUDGET}}}\n"))
    counts = method.count(local_engine().open(make_patients(500)))
    outcome = method.make(counts, MakeContext(SeededRandomness(1), local_engine()))
    report = attack_synthetic(outcome, tries=100, only=["inference"])
    assert [estimate.name for estimate in report.estimates] == ["diagnosis, by matching rows"]
    assert not any("Inference was not run" in note for note in report.notes)
