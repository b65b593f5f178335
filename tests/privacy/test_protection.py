"""What epsilon and delta mean: bounds on attackers, and words that follow the numbers."""

from __future__ import annotations

import pytest

from incrowd.privacy.protection import (
    classify_guarantee,
    describe_attacker,
    format_factor,
    format_upper_percent,
    max_true_positive_rate,
)


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 3.0])
@pytest.mark.parametrize("delta", [0.0, 1e-6, 0.1])
def test_no_attacker_does_better_than_the_bound(epsilon: float, delta: float) -> None:
    """The least private of all such mechanisms: it tells with delta, else answers at random."""
    yes = (1 - delta) / (1 + 2.718281828459045**epsilon)
    sure, with_, without = delta, 1 - delta - yes, yes  # told for certain; yes if in; yes if not
    # Tests that say yes to more and more: to what is certain, then part of the answers, ...
    for share in (0.0, 0.25, 0.5, 1.0):
        wrongly, right = share * without, sure + share * with_
        assert right <= max_true_positive_rate(wrongly, epsilon, delta) + 1e-12
    assert sure + with_ == pytest.approx(
        max_true_positive_rate(without, epsilon, delta)
    )  # and it is reached


def test_shares_and_factors_are_rounded_up() -> None:
    assert format_upper_percent(0.027182818) == "2.72 %"
    assert format_upper_percent(0.02710001) == "2.72 %"
    assert format_upper_percent(1.2) == "100 %"
    assert format_factor(1.0) == "2.719"
    assert format_factor(0.0) == "1"
    assert format_factor(1e9) == "more than 1e304"


@pytest.mark.parametrize(
    ("epsilon", "name", "is_warning"),
    [
        (0.1, "strong", False), (1.0, "strong", False), (1.01, "moderate", False),
        (3.0, "moderate", False), (10.0, "weak", False), (10.1, "hardly any", True),
        (100.0, "hardly any", True), (1e6, "hardly any", True),
    ],
)  # fmt: skip
def test_words_follow_epsilon(epsilon: float, name: str, is_warning: bool) -> None:
    strength = classify_guarantee(epsilon, 1e-6)
    assert (strength.name, strength.is_warning) == (name, is_warning)


def test_a_large_delta_is_never_called_strong() -> None:
    strength = classify_guarantee(0.1, 0.5)
    assert strength.is_warning
    assert "δ = 0.5" in strength.text


def test_the_sentence_on_an_attacker_has_the_bound_at_one_percent() -> None:
    assert "1 % false-positive rate recognizes at most 2.72 % of" in describe_attacker(1.0, 1e-9)
    assert "at most 100 % of" in describe_attacker(100.0, 1e-9)
