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
    counted = method.count(local_engine().open(make_patients(rows)))
    return method.make(counted, MakeContext(SeededRandomness(seed), local_engine()))


def _product(made: MethodResult) -> RowsProduct:
    (product,) = made.products
    assert isinstance(product, RowsProduct)
    return product


def _second_rows(made: MethodResult) -> Codes:
    rows = _product(made).second_rows
    assert rows is not None
    return rows


def _attack(made: MethodResult) -> dict[str, Estimate]:
    found = attack_synthetic(made, tries=400)
    return {f"{one.attack}: {one.name}": one for one in found.estimates}


def test_honest_rows_withstand_every_attack() -> None:
    found = _attack(_make())
    assert {name.split(":")[0] for name in found} == {
        "linkage", "join", "singling-out", "inference", "membership",
    }  # fmt: skip
    unbounded = [name for name, one in found.items() if one.succeeds and one.bound is None]
    assert not [name for name in unbounded if not name.startswith("inference")]
    member = found["membership: by the measured tables"]
    assert member.bound is not None
    assert member.success.low <= member.bound < 0.6


def test_copied_rows_are_linked_and_counted_beyond_chance() -> None:
    made = _make()
    product = _product(made)
    copied = replace(
        product, shown=replace(product.shown, frequencies=product.original.frequencies)
    )
    leaking = replace(made, products=(copied,))
    assert _attack(leaking)["linkage: a row equal to the person's"].succeeds
    equal = measure_synthetic(leaking)[0].equal_rows
    assert equal.expected is not None
    assert equal.equal == equal.rows > 5 * equal.expected


def test_members_are_told_as_often_as_the_information_allows() -> None:
    """Over many releases; without noise always."""
    right, tries = 0, 0
    for seed in range(1, 13):
        made = _make(seed, 400)
        member = _attack(made)["membership: by the measured tables"]
        right += member.success.hits
        tries += member.success.tries
    expected = NormalDist().cdf(math.sqrt(_information()) / 2)
    assert abs(right / tries - expected) < 0.05
    made = _make(1, 400)
    assert made.synthetic is not None
    exact = [
        replace(one, numbers=tuple(_query(one, made) for _ in one.numbers))
        for one in made.synthetic.measured
    ]
    people = _product(made).original.frequencies.codes[:100]
    outside = _second_rows(made)[:100]
    found = find_members(
        exact, made.synthetic.columns, _product(made).original.frequencies, people, outside,
        bound=None,
    )  # fmt: skip
    assert found.success.value == 1.0


def _information() -> float:
    return float(_product(_make()).parameters["information"])


def _query(one: object, made: MethodResult) -> np.ndarray:
    """What would be measured without noise."""
    from incrowd.evaluation.attacks.synthetic import _query as center
    from incrowd.release.synthetic_part import MeasuredNumbers

    assert isinstance(one, MeasuredNumbers)
    assert made.synthetic is not None
    table: Frequencies = _product(made).original.frequencies
    names = list(made.synthetic.columns)
    groups = [
        made.synthetic.columns[name].list_groups(level)[table.codes[:, names.index(name)]]
        for name, level in zip(one.columns, one.levels, strict=True)
    ]
    counts = np.zeros(one.shape)
    np.add.at(counts, tuple(groups), table.counts) if groups else counts.fill(table.total)
    return center(counts, one.centered).astype(np.int64)


def test_a_second_draw_is_of_the_same_size() -> None:
    made = _make()
    assert len(_second_rows(made)) == _product(made).shown.frequencies.total


def test_a_sensitive_column_of_a_large_domain_is_inferred() -> None:
    """A public list has hundreds of codes, and the table few of them."""
    codes = ", ".join(f"d{number}" for number in range(400))
    columns = COLUMNS.replace("PATIENT", "key").replace('"@b", c]', f'"@b", c, {codes}]')
    method = make_method(parse_spec(f"{columns}\nrelease: {{{BUDGET}}}\n"))
    counted = method.count(local_engine().open(make_patients(500)))
    made = method.make(counted, MakeContext(SeededRandomness(1), local_engine()))
    found = attack_synthetic(made, tries=100, only=["inference"])
    assert [one.name for one in found.estimates] == ["diagnosis, by matching rows"]
    assert not any("Inference was not run" in note for note in found.notes)
