"""What is promised before a table is seen is what the certificate says afterwards."""

from __future__ import annotations

import polars as pl
import pytest
from support.unjudged import publish_unjudged

from incrowd.curate.planned_guarantee import plan_guarantee
from incrowd.privacy.accountant import Accountant
from incrowd.spec.file import SpecFile, parse_spec

pytestmark = pytest.mark.usefixtures("settled_once")

COLUMNS = """
columns:
  name: {role: identifier}
  age: {role: quasi, hierarchy: {intervals: {from: 0, to: 15, widths: [4, 8]}}}
  sex: {role: quasi, hierarchy: {flat: {values: [f, m]}}}
  sick: {role: sensitive, hierarchy: {flat: {values: [yes, no]}}}
  height: {role: drop}
"""
NOISY = COLUMNS.replace("height: {role: drop}", "height: {role: noisy, bounds: [0, 200]}")
PEOPLE = pl.DataFrame(
    {
        "name": [f"person {i // 2}" for i in range(800)],
        "age": [i % 4 for i in range(800)],
        "sex": ["f" if i % 3 else "m" for i in range(800)],
        "sick": ["no" if i % 5 else "yes" for i in range(800)],
        "height": [150.0 + i % 40 for i in range(800)],
    }
)


def spec(release: str, columns: str = COLUMNS, more: str = "") -> SpecFile:
    return parse_spec(f"{more}\n{columns}\nrelease: {{{release}}}\n")


@pytest.mark.parametrize(
    ("release", "columns", "more"),
    [
        ("method: k-anonymity, k: 5", COLUMNS, ""),
        ("method: k-anonymity, k: 5", COLUMNS, "unit: {id: name}"),
        ("method: k-anonymity, k: 5, algorithm: mondrian, suppressed: starred", COLUMNS, ""),
        ("method: k-anonymity, k: 2, algorithm: cluster", COLUMNS, ""),
        ("method: k-epsilon, k: 5, epsilon: 2", NOISY, ""),
        ("method: k-epsilon, k: 5, epsilon: 2, confidence: 0.9", NOISY, ""),
        ("method: k-epsilon, k: 5, epsilon: 2, bounds: declared", NOISY, ""),
        ("epsilon: 2, delta: 1.0e-4, draw: sample, scheme: fixed", COLUMNS, ""),
        ("epsilon: 2, delta: 1.0e-4, draw: sample, beta: 0.5", COLUMNS, "unit: {id: name}"),
        ("epsilon: 2, delta: 1.0e-4, already_sampled: 0.5, scheme: fixed, draw: sample",
         COLUMNS, ""),
        ("epsilon: 2, delta: 1.0e-4, slices: [[age, sex], [sex, sick]]", COLUMNS, ""),
        ("epsilon: 2, delta: 1.0e-4, slices: [[age, sex], [sex, sick]]", COLUMNS, "size: 700"),
        ("epsilon: 2, delta: 1.0e-4, draw: sample, beta: 0.5, scheme: mondrian", COLUMNS, ""),
        ("epsilon: 2, delta: 1.0e-4, draw: sample, beta: 0.5", COLUMNS, "size: 700"),
    ],
)  # fmt: skip
def test_the_certificate_says_what_was_promised(release: str, columns: str, more: str) -> None:
    file = spec(release, columns, more)
    before = plan_guarantee(file)
    after = publish_unjudged(PEOPLE, file).certificate.guarantee
    assert not before.later
    assert before.statement == after.statement
    assert (before.kind, before.epsilon, before.delta) == (after.kind, after.epsilon, after.delta)


def test_of_counts_whose_bound_a_coin_settles_the_words_are_those_of_one_side() -> None:
    file = spec("epsilon: 1, delta: 1.0e-6, k: 7")
    before = plan_guarantee(file)
    assert "r = 13 or r = 14" in before.later
    seen = {publish_unjudged(PEOPLE, file).certificate.guarantee.text for _ in range(40)}
    assert " ".join(sentence.text for sentence in before.statement) in seen
    assert len(seen) == 2


def test_where_the_table_will_choose_k_and_beta_only_the_budget_is_said() -> None:
    before = plan_guarantee(spec("epsilon: 2, delta: 1.0e-4, draw: sample"))
    assert "chosen" in before.later
    assert "ε = 2 and δ = 0.0001" in before.statement[0].text
    assert "sample" not in {sentence.key for sentence in before.statement}
    after = publish_unjudged(
        PEOPLE, spec("epsilon: 2, delta: 1.0e-4, draw: sample")
    ).certificate.guarantee
    assert before.statement == [item for item in after.statement if item.key != "sample"]


def test_what_is_booked_is_what_was_said() -> None:
    before = plan_guarantee(spec("epsilon: 2, delta: 1.0e-4"))
    assert Accountant(list(before.events)).delta(epsilon=2.0) <= 1e-4
    assert plan_guarantee(spec("method: k-anonymity, k: 5")).events == ()


def test_a_public_size_promises_what_no_size_promises() -> None:
    """Nobody looks at the table, so that its size decides nothing; a stated number may."""
    plain = plan_guarantee(spec("epsilon: 1, delta: 1.0e-6"))
    assert plan_guarantee(spec("epsilon: 1, delta: 1.0e-6", more="size: public")) == plain
    assert (
        plan_guarantee(spec("epsilon: 1, delta: 1.0e-6", more="size: 700")).events != plain.events
    )
