"""Sentences of a statement about classes: k-anonymity, rules inside classes, noise inside them."""

from __future__ import annotations

from collections.abc import Iterator

from incrowd.measure.k_map import SIGNIFICANCE
from incrowd.privacy.draw_parameters import ROWS_PER_PERSON
from incrowd.privacy.randomized_response import round_up_epsilon
from incrowd.release.facts import HOUSEHOLD, Facts, Sentence, make_sentence, quote_names
from incrowd.release.kept_roles import list_unprotected_columns
from incrowd.release.noise_sentences import format_exact
from incrowd.release.parameters import (
    RULES,
    TABLE_RULES,
    Parameters,
    has_wildcards,
    list_aggregates,
    list_links,
    list_rules,
    list_subsets,
    parse_recursive_rule,
    parse_share_rule,
)

_EXTREMES = (
    "The boundaries of classes depend on individual rows: an interval may end at the value of one "
    "person, and an attacker who knows an extreme value may find it."
)
_ALGORITHMS = {
    "ola": (
        (
            "Each generalized column shows labels of one level, chosen by a search over the input "
            "unless it was fixed before."
        ),
        "A search reads the input, so the levels that it chooses may reveal information.",
    ),
    "mondrian": (
        (
            "Rows were divided into classes by cuts of the input; each class publishes labels that "
            "cover its rows."
        ),
        _EXTREMES,
    ),
    "cluster": (
        "Similar rows were combined into classes; each class publishes labels that cover its rows.",
        _EXTREMES,
    ),
    "mdav": (
        "Near rows were grouped (MDAV); each group publishes labels that cover its rows.",
        _EXTREMES,
    ),
    "suppress": (
        (
            "Single cells were suppressed (*) where a combination of values was rare; all others "
            "show values or labels of one fixed level per column."
        ),
        (
            "Which cells are suppressed depends on the input: a suppressed cell reveals that its "
            "value is rare among rows that show the same otherwise."
        ),
    ),
    "duplicate": (
        (
            "One row of each class was drawn at random and is published unchanged in place of all "
            "rows of the class."
        ),
        "Real records are published as they are. This is a baseline for comparison, not for use.",
    ),
}
_RULES = dict(
    zip(
        RULES,
        (
            "'{}' has at least {} distinct values",
            "the entropy of '{}' is at least that of {} equally frequent values",
            "the distribution of '{}' is within {} of that in the input (equal distance)",
            "the distribution of '{}' is within {} of that in the input (ordered distance)",
            "the distribution of '{}' is within {} of that in the input (hierarchical distance)",
            "no value of '{}' has a share above {}",
            "no share of '{}' exceeds that in the input by more than {} times the latter",
            (
                "no share of a value of '{}' exceeds that in the input by more than {} times the "
                "latter, or by more than its negative logarithm times the latter"
            ),
            (
                "each value of '{}' has a share that differs from that in the input by a factor "
                "below 2^{}"
            ),
            (
                "each value of '{}' that occurs has a share that differs from that in the input by "
                "a factor below 2^{}"
            ),
        ),
        strict=True,
    )
)


def write_k_anonymity(facts: Facts) -> Iterator[Sentence]:
    """Write what holds of a table of classes."""
    (parameters,) = facts.tables
    if has_wildcards(parameters):
        yield from _write_wildcards(parameters)
    else:
        yield make_sentence(
            "k_anonymity",
            f"This release is {int(parameters['k'])}-anonymous: {_classes_hold(parameters)}.",
        )
    if "population" in parameters:
        yield make_sentence(
            "k_map",
            f"The input is taken for a simple random sample of {int(parameters['population']):,} "
            "people. Under this assumption of the curator, a class that fits fewer than "
            f"{int(parameters['map_k'])} people of that population, once it occurs in the sample, "
            f"has {int(parameters['k'])} rows or more with a probability of at most "
            f"{format_exact(100 * SIGNIFICANCE)} %. The release cannot prove the sampling.",
        )
    yield make_sentence(
        "not_differential_privacy",
        "This is NOT differential privacy. Nothing is guaranteed about what the release as a whole "
        "reveals about one person, about other columns, or about several releases together.",
    )
    yield from _write_classes(facts, parameters)


_UNSEEN = "The release alone does not suffice to verify comparisons with the input."


def _describe_rule(column: str, kind: str, value: float) -> str:
    """Return a rule in words."""
    number, rare = repr(value).removesuffix(".0"), parse_recursive_rule(kind)
    share = parse_share_rule(kind)
    if share is not None:
        return f"the value '{share[0]}' of '{column}' has a share of at {share[1]} {number}"
    if rare is None:
        return _RULES[kind].format(column, number)
    return (
        f"the most frequent value of '{column}' has fewer than {number} times the rows of value "
        f"number {rare} by frequency and all rarer ones together"
    )


def _write_wildcards(parameters: Parameters) -> Iterator[Sentence]:
    k = int(parameters["k"])
    parts = [f"in all generalized columns, at least {k} rows"] if k > 1 else []
    for size, least in list_subsets(parameters).items():
        plural = "s" if size > 1 else ""
        parts.append(f"in any {size} generalized column{plural}, at least {least} rows")
    yield make_sentence(
        "wildcards",
        "A suppressed cell (*) may be any value. Read in this way, each published row fits rows of "
        f"the input: {'; '.join(parts) or 'at least 1 row'}. So many published rows are compatible "
        "with it, too.",
    )
    yield make_sentence(
        "not_k_anonymity",
        "This is weaker than k-anonymity by classes: rows that show the same, suppressed cells "
        "included, may be fewer than k. An attacker who knows that a person is in the input, and "
        "all values of that person, may find that one row alone is compatible with them.",
    )


def _classes_hold(parameters: Parameters) -> str:
    rows = "rows" if int(parameters["k"]) > 1 else "row"
    stars = {
        "starred": ", suppressed rows aside",
        "cells": ", with a suppressed cell (*) as a value of its own",
    }.get(str(parameters.get("suppressed")), "")
    number = f"at least {int(parameters['k'])} {rows}"
    if ROWS_PER_PERSON in parameters:
        people = "different people" if int(parameters["k"]) > 1 else "person"
        number = f"rows of at least {int(parameters['k'])} {people}"
    return (
        f"each published combination of values in the generalized columns occurs in {number}{stars}"
    )


def _write_classes(facts: Facts, parameters: Parameters) -> Iterator[Sentence]:
    how, weakness = _ALGORITHMS[str(parameters["algorithm"])]
    yield make_sentence("generalization", how)
    if parameters.get("suppressed") == "starred":
        yield make_sentence(
            "suppressed_rows",
            "Rows that contain * in every generalized column stand for suppressed rows and belong "
            "to no class.",
        )
    links = list_links(parameters)
    if links:
        listed = "; ".join(f"'{name}' with '{linked}'" for name, linked in links.items())
        yield make_sentence(
            "linked_columns", f"Suppressed, and shown as missing, together: {listed}."
        )
    aggregates, is_mdav = list_aggregates(parameters), parameters["algorithm"] == "mdav"
    if aggregates:
        listed = "; ".join(f"'{name}' the {which}" for name, which in aggregates.items())
        yield make_sentence(
            "aggregates",
            f"One number for each {'group' if is_mdav else 'class'}: {listed} of its values. "
            "Each combination of these numbers and of the generalized columns occurs in at least "
            f"{int(parameters['k'])} rows; where fewer rows have a value, none is shown. The "
            "number of a small class can reveal an extreme value, and an attacker who knows the "
            "values of all other rows of a class can compute the last one from their mean.",
        )
    unprotected = list_unprotected_columns(parameters)
    if unprotected:
        yield make_sentence(
            "assumption_keep",
            f"Assumption: no protection is needed for {quote_names(unprotected)}. Nobody who looks "
            "for a person knows that person's values there, and it harms nobody if they become "
            "known. They are published unchanged and k does not count them: an attacker who knows "
            "such a value can find the rows of a class that have it, which may be one row. The "
            "curator asserts this; the release cannot prove it.",
        )
    rules = list_rules(parameters)
    if rules:
        listed = "; ".join(_describe_rule(*rule) for rule in rules)
        unseen = any(kind in TABLE_RULES for _, kind, _ in rules)
        yield make_sentence(
            "rules",
            f"In each class, {listed}." + (f" {_UNSEEN}" if unseen else ""),
        )
    if facts.rows_per_person > 1:
        yield make_sentence(
            "unit",
            f"Up to {facts.rows_per_person} rows per person were used, chosen at random. k counts "
            "people: the rows of each class belong to at least k different people. The release "
            "alone does not suffice to verify this. Rows of one person are not linked.",
        )
    elif facts.by_person:
        yield make_sentence("unit", "One row per person was used, chosen at random.")
    else:
        yield make_sentence(
            "unit", "The unit is a row: several rows of a class may belong to one person."
        )
    if facts.protects == "household":
        yield make_sentence("household", HOUSEHOLD)
    if facts.without_id:
        yield make_sentence("without_id", "Rows without an id were not used.")
    yield make_sentence(
        "known_attacks",
        "Known attacks: a class whose rows share a sensitive value reveals it. An attacker who "
        "knows more about a person can exclude other rows of the class. "
        f"{weakness}",
    )


def write_k_epsilon(facts: Facts) -> Iterator[Sentence]:
    """Write what holds of a table of classes with noise inside each."""
    (parameters,) = facts.tables
    k, epsilon = int(parameters["k"]), parameters["epsilon"]
    yield make_sentence(
        "k_epsilon_anonymity",
        f"This release is (k, ε)-anonymous with k = {k} and ε = {format_exact(epsilon)}: "
        f"{_classes_hold(parameters)}, and the noisy columns "
        f"{'carry random noise' if facts.noisy else 'are randomized'}.",
    )
    yield make_sentence(
        "not_differential_privacy",
        "This is NOT differential privacy of the input. Nothing is guaranteed about what the "
        "release as a whole reveals about one person, about other columns, or about several "
        "releases together.",
    )
    yield from _write_value_noise(facts, parameters)
    yield from _write_classes(facts, parameters)


def _write_responses(facts: Facts) -> Iterator[Sentence]:
    """Write what randomized response promises of columns of categories."""
    if not facts.randomized:
        return
    parts = []
    for name, (number, keep) in sorted(facts.randomized.items()):
        other = format_exact((1 - keep) / (number - 1))
        parts.append(
            f"'{name}' ({number} categories) shows the row's own category with probability "
            f"{format_exact(keep)} and each other one with probability {other}"
        )
    epsilon = round_up_epsilon([(keep, size) for size, keep in facts.randomized.values()])
    yield make_sentence(
        "randomized_response",
        f"Randomized response: {'; '.join(parts)}. For each row, any two sets of categories lead "
        "to any published ones with probabilities that differ by a factor of at most "
        f"e^{format_exact(epsilon)}. This is local differential privacy of these values, "
        "not of the rest of the row.",
    )


def _write_value_noise(facts: Facts, parameters: Parameters) -> Iterator[Sentence]:
    yield from _write_responses(facts)
    if not facts.noisy:
        return
    delta = f" and δ = {format_exact(parameters['delta'])}" if "delta" in parameters else ""
    kind = {"laplace": "Laplace", "gaussian": "Gaussian"}[str(parameters["noise"])]
    yield make_sentence(
        "noise",
        f"Columns with {kind} noise: {quote_names(sorted(facts.noisy))}. ε = "
        f"{format_exact(parameters['epsilon'])}{delta} is divided among them"
        f"{' and the columns with randomized response' if facts.randomized else ''}.",
    )
    if parameters["bounds"] == "declared":
        yield make_sentence(
            "noise_scale",
            "The noise is scaled to the declared bounds. For each row, any two sets of values "
            "within the bounds lead to any set of published values with probabilities that differ "
            f"by a factor of at most e^ε{', plus δ' if delta else ''}. This is local differential "
            "privacy of these values, not of the rest of the row. Missing values are published as "
            "missing.",
        )
    else:
        yield make_sentence(
            "noise_scale",
            "The noise is scaled to the range of values in each class. It obscures which row of "
            "the class a value came from, but the range of a class, and an extreme value in "
            "particular, can be estimated from the release. A class in which all values are equal "
            "carries no noise and publishes that value.",
        )
    if "confidence" in parameters:
        yield make_sentence(
            "confidence",
            "Rows were suppressed whose published value would have pointed, with confidence "
            f"{parameters['confidence']!r}, to at least one but fewer than k rows of their class; "
            "then classes with fewer than k remaining rows were suppressed.",
        )
