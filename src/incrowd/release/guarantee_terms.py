"""The terms of a guarantee that a registry or an auditor asks for, each as a field of its own.

They follow from the facts of a certificate, as its statement does, so that anyone who verifies a
release derives them again and compares.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, TypeAlias, TypedDict

from incrowd.release.facts import Facts
from incrowd.release.parameters import list_aggregates

Adjacency: TypeAlias = Literal[
    "add or remove one row of the input",
    "add or remove all input rows of one person",
    "add or remove one row of the population from which the input was sampled",
    "add or remove one person of the population from which the input was sampled",
]
TrustModel: TypeAlias = Literal["central: the curator reads the input"]
ParameterChoice: TypeAlias = Literal[
    "fixed before the input was read, as the curator asserts",
    "in part by private choices, included in ε; the rest fixed before, as the curator asserts",
    "by a search over the input, unless fixed before; the guarantee does not cover it",
]
_CENTRAL: TrustModel = "central: the curator reads the input"


class GuaranteeTerms(TypedDict):
    """The terms, by the names of their fields in a certificate."""

    adjacency: Adjacency | None
    trust_model: TrustModel
    unprotected: list[str]
    post_processing: list[str]
    parameter_choice: ParameterChoice


def derive_terms(facts: Facts) -> GuaranteeTerms:
    """Return the terms that follow from the facts of a certificate.

    ``adjacency`` is None where nothing is promised about neighboring inputs. ``unprotected`` lists
    what is published without differential privacy: nothing of a differentially private release.
    """
    is_private = facts.epsilon is not None
    return {
        "adjacency": _describe_adjacency(facts) if is_private else None,
        "trust_model": _CENTRAL,
        "unprotected": [] if is_private else list(_list_unprotected(facts)),
        "post_processing": list(_list_post_processing(facts)),
        "parameter_choice": _describe_choice(facts),
    }


def _describe_adjacency(facts: Facts) -> Adjacency:
    if "already_sampled" in facts.common:
        if facts.by_person:
            return "add or remove one person of the population from which the input was sampled"
        return "add or remove one row of the population from which the input was sampled"
    if facts.by_person:
        return "add or remove all input rows of one person"
    return "add or remove one row of the input"


def _list_unprotected(facts: Facts) -> Iterator[str]:
    """Yield what a release without differential privacy publishes as it is."""
    parameters = facts.common
    if parameters.get("algorithm") == "duplicate":
        yield "one row of each class, as it is"
    yield "the number of rows of each class"
    if parameters.get("suppressed") == "starred":
        yield "the number of suppressed rows"
    if parameters.get("suppressed") == "cells":
        yield "which cells are suppressed"
    yield "the labels of each class"
    aggregates = list_aggregates(parameters)
    for name in facts.kept:
        number = aggregates.get(name)
        yield f"the {number} of '{name}' in each class" if number else f"the values of '{name}'"


def _list_post_processing(facts: Facts) -> Iterator[str]:
    """Yield what is done to protected results and reads no input."""
    if facts.synthetic is not None:
        yield "a model is fitted to the measured tables"
        yield "rows are drawn from the model"
        if facts.synthetic.rules:
            yield "rows are drawn so that they obey the rules"
    elif facts.tabulation is not None:
        yield "estimates are computed from the measured residuals"
        yield "whole counts that add up are chosen near the estimates"
    elif facts.by_counts:
        yield "each published group is written as often as its noisy count says, or with the count"
    if facts.shares:
        yield "shares are estimated from the counts of declared values"
    if facts.is_combined:
        yield "rows of a value are the largest number that any file shows"


def _describe_choice(facts: Facts) -> ParameterChoice:
    if facts.epsilon is None:
        return "by a search over the input, unless fixed before; the guarantee does not cover it"
    searched = any("search_epsilon" in table for table in facts.tables)
    if searched or "slices_epsilon" in facts.shared or facts.common.get("choices"):
        return (
            "in part by private choices, included in ε; the rest fixed before, as the curator "
            "asserts"
        )
    return "fixed before the input was read, as the curator asserts"
