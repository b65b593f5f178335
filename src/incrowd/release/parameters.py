"""The parameters of a release: which ones a method has, and which ones its events imply."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import TypeAlias

from incrowd.codes.counted_table import CountNoise
from incrowd.privacy.counts import is_even
from incrowd.privacy.draw_parameters import (
    ROWS_PER_PERSON,
    SHARES_EPSILON,
    Draw,
    build_noise_spread,
    get_threshold,
    list_coin_parameters,
    list_draw_parameters,
    list_row_parameters,
    list_series_parameters,
    make_series_event,
)
from incrowd.privacy.events import (
    BoundedChoice,
    Coin,
    Composition,
    DeclaredCounts,
    Event,
    GaussianCounts,
    GaussianMeasurements,
    GeometricCounts,
    OneOf,
    PersonCounts,
    RowCounts,
    SafeRelease,
    SampledEvent,
    Selection,
    SeriesCounts,
)
from incrowd.release.kept_roles import name_roles
from incrowd.release.layout import Layout

Parameters: TypeAlias = dict[str, float | str]

DIFFERENTIAL_PRIVACY = "differential privacy"
BOTH = "differential privacy and k-anonymity"  # of noisy counts
_SERIES_NAME = re.compile(r"[0-9a-f]{16}")
_LONGEST_SIZE = 1e15  # whole numbers up to here are exact as floats


@dataclass(frozen=True)
class Terms:
    """The kind of guarantee that a method gives, and the parameters of its certificates.

    A method with ``events`` is differentially private; its parameters follow from the events.
    Of the others, ``required`` and ``optional`` name the parameters.
    """

    kind: str
    events: bool = False
    required: frozenset[str] = frozenset()
    optional: frozenset[str] = frozenset()
    noisy: bool = False


_CLASSES = frozenset({"k", "algorithm", "suppressed"})
_PEOPLE = frozenset({ROWS_PER_PERSON})  # where k counts people
METHODS = {
    "safe": Terms(DIFFERENTIAL_PRIVACY, events=True),
    "synthetic": Terms(DIFFERENTIAL_PRIVACY, events=True),
    "tables": Terms(DIFFERENTIAL_PRIVACY, events=True),
    "k-anonymity": Terms(
        "k-anonymity", required=_CLASSES, optional=_PEOPLE | {"map_k", "population", "labels"}
    ),
    "k-epsilon": Terms(
        "(k, ε)-anonymity",
        required=_CLASSES | {"epsilon", "noise", "bounds"},
        optional=_PEOPLE | {"delta", "confidence"},
        noisy=True,
    ),
}
RULES = (
    "distinct values, at least",
    "entropy of so many equally frequent values, at least",
    "distance to the table (equal), at most",
    "distance to the table (ordered), at most",
    "distance to the table (hierarchical), at most",
    "share of a value, at most",
    "gain of a share over the table (basic likeness), at most",
    "gain of a share over the table (enhanced likeness), at most",
    "powers of 2 from the table (every value), below",
    "powers of 2 from the table (values present), below",
)
TABLE_RULES = frozenset(rule for rule in RULES if "the table" in rule)  # not seen in a release
_RECURSIVE = re.compile(
    r"ratio of the most frequent value to those from number ([1-9][0-9]{0,5}) on, below"
)
_SHARE = re.compile(r"share of the value '(.*)', at (least|most)", re.DOTALL)
_CHOICES = {
    "algorithm": ("ola", "mondrian", "cluster", "mdav", "suppress", "duplicate"),
    "suppressed": ("dropped", "starred", "cells"),
    "noise": ("laplace", "gaussian"),
    "bounds": ("class", "declared"),
}


WILDCARDS = "k-anonymity, suppressed cells as wildcards"
_READINGS = ("category", "wildcard")
_SUBSET = re.compile(r"rows that any ([1-9][0-9]?) columns? fits?, at least")


# Of events ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class EventParameters:
    """The parameters that the events of a safe release imply.

    ``shared`` holds for all tables. ``tables`` lists, for each table, the sets of parameters that
    it may have: a selection, or a coin, has decided which. No event implies the k of counts.
    """

    shared: Parameters
    tables: list[list[Parameters]]


def parameters_from_events(
    events: list[Event], layout: Layout | None = None
) -> EventParameters | None:
    """Return the parameters that events imply; None if they are not those of a safe release.

    Columns counted beside the tables come first. One table has a safe release or counts; where its
    scheme was searched for, selections and then one of several releases, or counts. Slices have one
    such event each, after the selections that put them together. All tables are drawn in the same
    way. Households and people have one event each: all choices are of the people, and a household
    is in one cell of its own table.
    """
    if layout is not None:
        return _list_household_parameters(events)
    match events:
        case [SampledEvent(event, rate)]:
            inner: list[Event] = [event]
            if isinstance(event, Composition):
                inner = list(event.events)
            if any(isinstance(part, SampledEvent) for part in inner):
                return None
            implied = parameters_from_events(inner)
            if implied is None:
                return None
            sampled: Parameters = {"already_sampled": rate}
            if len(implied.tables) > 1:
                return EventParameters({**implied.shared, **sampled}, implied.tables)
            (only,) = implied.tables
            return EventParameters({}, [[{**parameters, **sampled} for parameters in only]])
        case [DeclaredCounts(), *_]:
            return _add_shares(events)
        case _:
            table_parameters = _list_table_parameters(events)
            return (
                EventParameters({}, [table_parameters])
                if table_parameters
                else _list_slice_parameters(events)
            )


def _list_household_parameters(events: list[Event]) -> EventParameters | None:
    """Return the parameters of a table of households and one of their people; None of others."""
    if len(events) != 2 or not isinstance(events[0], GeometricCounts | GaussianCounts):
        return None
    first, second = (
        _list_table_parameters(list(event.events) if isinstance(event, Composition) else [event])
        for event in events
    )
    if len(second) != 1 or [_drop(second[0], ROWS_PER_PERSON, "search_epsilon")] != first:
        return None
    return EventParameters({}, [first, second])


def _drop(parameters: Parameters, *names: str) -> Parameters:
    return {name: value for name, value in parameters.items() if name not in names}


def _add_shares(events: list[Event]) -> EventParameters | None:
    """Return the parameters of tables beside which columns were counted."""
    counts_events = list(takewhile(lambda event: isinstance(event, DeclaredCounts), events))
    implied = parameters_from_events(events[len(counts_events) :])
    epsilons = [event.epsilon for event in counts_events if isinstance(event, DeclaredCounts)]
    if implied is None or not all(x > 0 and round(x, 6) == x for x in epsilons):
        return None
    spent: Parameters = {SHARES_EPSILON: round(math.fsum(epsilons), 6)}
    if len(implied.tables) > 1:
        return EventParameters({**implied.shared, **spent}, implied.tables)
    (only,) = implied.tables
    return EventParameters({}, [[{**parameters, **spent} for parameters in only]])


def _list_table_parameters(events: list[Event]) -> list[Parameters]:
    match events:
        case [SafeRelease() as only]:
            return [list_draw_parameters(only)]
        case [*choices, last]:
            possible = _list_draw_parameters(last, chosen=bool(choices))
            if not choices:
                return possible
            spent = _sum_selections(choices)
            if spent:
                return [{**parameters, "search_epsilon": spent} for parameters in possible]
    return []


def _list_draw_parameters(event: Event, *, chosen: bool) -> list[Parameters]:
    """Return the parameters of counts or, where selections chose it, of one of several releases."""
    parts: tuple[Event, ...] = ()
    match event:
        case OneOf(events) if chosen and all(isinstance(part, SafeRelease) for part in events):
            parts = events
        case GeometricCounts() | GaussianCounts():
            parts = (event,)
        case SeriesCounts() if not chosen:
            return [list_series_parameters(event, event.of)]
        case PersonCounts(part) | RowCounts(part):
            return [{**list_draw_parameters(part), **list_row_parameters(event)}]
        case Coin(first, second, _) if is_even(event):
            parts = (first, second)
    coin_parameters = list_coin_parameters(event)
    return [
        {**list_draw_parameters(part), **coin_parameters}
        for part in parts
        if isinstance(part, Draw)
    ]


def _list_slice_parameters(events: list[Event]) -> EventParameters | None:
    choices = list(takewhile(lambda event: isinstance(event, Selection), events))
    slices = [
        _list_table_parameters(list(event.events) if isinstance(event, Composition) else [event])
        for event in events[len(choices) :]
    ]
    if len(slices) < 2 or not all(slices):
        return None
    if any("r" in alternatives[0] for alternatives in slices) and not _has_one_law(slices):
        return None
    if not choices:
        return EventParameters({}, slices)
    spent = _sum_selections(choices)
    return EventParameters({"slices_epsilon": spent}, slices) if spent else None


def _has_one_law(slices: list[list[Parameters]]) -> bool:
    """Return whether all slices have the same noise, whose bound no coin has decided."""
    first, *others = (_drop(part[0], "search_epsilon") for part in slices)
    return "coin" not in first and all(part == first for part in others)


def _sum_selections(events: list[Event]) -> float:
    """Return the sum of selections; 0 if there is another event, or one that spends nothing."""
    epsilons = [event.epsilon for event in events if isinstance(event, Selection)]
    # Each is a multiple of a millionth (see payable), so their sum is one too.
    if len(epsilons) < len(events) or not all(x > 0 and round(x, 6) == x for x in epsilons):
        return 0.0
    return round(math.fsum(epsilons), 6)


def synthetic_parameters(events: list[Event]) -> Parameters | None:
    """Return the parameters that the events of synthetic rows imply; None if they are others.

    Any number of choices, all of one range, and then the measurements.
    """
    match events:
        case [*choices, GaussianMeasurements(information)]:
            ranges = {choice.epsilon for choice in choices if isinstance(choice, BoundedChoice)}
            if any(not isinstance(choice, BoundedChoice) for choice in choices) or len(ranges) > 1:
                return None
            parameters: Parameters = {"information": information, "choices": float(len(choices))}
            return {**parameters, **({"choice_epsilon": ranges.pop()} if ranges else {})}
    return None


def tabulation_parameters(events: Sequence[Event]) -> Parameters | None:
    """Return the parameters that the events of tables of counts imply; None if they are others."""
    match [*events]:
        case [GaussianMeasurements(information)]:
            return {"information": information}
    return None


# Of counts ------------------------------------------------------------------------------------


def make_count_noise(parameters: Parameters) -> CountNoise | None:
    """Return the noise in the counts of a table; None of a table without such noise."""
    try:
        law = build_noise_spread(parameters)
        return CountNoise(law.variance, float(get_threshold(parameters)))
    except (KeyError, ValueError):  # a sample; or a certificate that somebody made up
        return None


# Checks ---------------------------------------------------------------------------------------


def name_recursive_rule(l: int) -> str:  # noqa: E741 - as in the literature
    """Return the kind of a rule of recursive diversity, whose value is c."""
    return f"ratio of the most frequent value to those from number {l} on, below"


def parse_recursive_rule(kind: str) -> int | None:
    """Return l of a rule of recursive diversity; None of another rule."""
    match = _RECURSIVE.fullmatch(kind)
    return None if match is None else int(match[1])


def name_share_rule(value: str, side: str) -> str:
    """Return the kind of a rule on the share of one value; ``side`` is least or most."""
    return f"share of the value '{value}', at {side}"


def parse_share_rule(kind: str) -> tuple[str, str] | None:
    """Return value and side of a rule on the share of one value; None of another rule."""
    match = _SHARE.fullmatch(kind)
    return None if match is None else (match[1], match[2])


def list_rules(parameters: Parameters) -> list[tuple[str, str, float]]:
    """Return the rules on sensitive columns among the parameters: column, kind, value."""
    rules = []
    for name, value in sorted(parameters.items()):
        if name.startswith("rule "):
            column, _, kind = name.removeprefix("rule ").partition(": ")
            for rule in RULES:
                if name.endswith(f": {rule}"):
                    column, kind = name.removeprefix("rule ").removesuffix(f": {rule}"), rule
            recursive = _RECURSIVE.search(name)
            if recursive is not None and name.endswith(f": {recursive[0]}"):
                kind = recursive[0]
                column = name.removeprefix("rule ").removesuffix(f": {kind}")
            share = _SHARE.search(name)
            if share is not None and name.endswith(f": {share[0]}"):
                kind = share[0]
                column = name.removeprefix("rule ").removesuffix(f": {kind}")
            is_known = kind in RULES or parse_recursive_rule(kind) or parse_share_rule(kind)
            if not is_known or not isinstance(value, float) or not value >= 0:
                raise ValueError(f"'{name}' is no rule that is known")
            rules.append((column, kind, value))
    return rules


def name_subset(size: int) -> str:
    """Return the parameter that says how many rows any so many columns fit."""
    return f"rows that any {size} column{'s fit' if size > 1 else ' fits'}, at least"


def list_subsets(parameters: Parameters) -> dict[int, int]:
    """Return for each number of columns how many rows any so many of them fit, at least."""
    subsets = {}
    for name, value in sorted(parameters.items()):
        match = _SUBSET.fullmatch(name)
        if match is not None:
            check_whole_number(name, value)
            subsets[int(match[1])] = int(value)
            if name != name_subset(int(match[1])):
                raise ValueError(f"'{name}' is not written as a release writes it")
    return dict(sorted(subsets.items()))


def list_links(parameters: Parameters) -> dict[str, str]:
    """Return the kept columns whose cells are suppressed with those of another, and the other."""
    return {
        name.removeprefix("linked "): str(value)
        for name, value in sorted(parameters.items())
        if name.startswith("linked ")
    }


def name_aggregate(column: str) -> str:
    """Return the parameter that says which number of its classes a column shows."""
    return f"number of a class in {column}"


def list_aggregates(parameters: Parameters) -> dict[str, str]:
    """Return the columns that show one number for each class, and which one."""
    prefix = name_aggregate("")
    return {
        name.removeprefix(prefix): str(value)
        for name, value in sorted(parameters.items())
        if name.startswith(prefix)
    }


def has_wildcards(parameters: Parameters) -> bool:
    """Return whether a suppressed cell counts as any value."""
    return parameters.get("reading") == "wildcard"


def has_free_labels(parameters: Parameters) -> bool:
    """Return whether columns without an order show sets of values."""
    return parameters.get("labels") == "free"


def get_class_kind(parameters: Parameters) -> str:
    """Return the kind of guarantee of a table of classes without noise."""
    return WILDCARDS if has_wildcards(parameters) else METHODS["k-anonymity"].kind


def _name_cell_parameters(
    parameters: Parameters, columns: list[str], kept_columns: list[str]
) -> set[str]:
    """Return the names of what only tables with suppressed cells have; refuse bad values."""
    if parameters.get("algorithm") != "suppress":
        if parameters.get("suppressed") == "cells":
            raise ValueError("cells are suppressed by the algorithm 'suppress' alone")
        return set()
    subsets, links = list_subsets(parameters), list_links(parameters)
    if parameters.get("reading") not in _READINGS or parameters.get("suppressed") != "cells":
        raise ValueError("suppressed cells have a reading, 'category' or 'wildcard'")
    if subsets and not has_wildcards(parameters):
        raise ValueError("only wildcards have sets of columns")
    if any(size > len(columns) for size in subsets):
        raise ValueError("a set of columns has more columns than the table")
    if not set(links) <= set(kept_columns) or not set(links.values()) <= set(columns):
        raise ValueError("a linked column is not kept, or linked to no generalized one")
    return {"reading", *map(name_subset, subsets), *(f"linked {name}" for name in links)}


def _name_aggregates(parameters: Parameters, kept_columns: list[str]) -> set[str]:
    """Return the names of the parameters of numbers by class; refuse bad ones."""
    aggregates = list_aggregates(parameters)
    if not set(aggregates) <= set(kept_columns):
        raise ValueError("a column with a number for each class is not kept")
    if not set(aggregates.values()) <= {"mean", "median"}:
        raise ValueError("the number of a class is its mean or its median")
    if aggregates and parameters.get("algorithm") in ("suppress", "duplicate"):
        raise ValueError("only whole classes show one number")
    return {name_aggregate(name) for name in aggregates}


def check_parameters(
    parameters: Parameters, terms: Terms, columns: list[str], kept_columns: list[str]
) -> None:
    """Refuse parameters that such a release does not have, or values that they cannot take."""
    rules = {f"rule {column}: {kind}" for column, kind, _ in list_rules(parameters)}
    names = terms.required | terms.optional
    rules |= name_roles(parameters, kept_columns)
    if not terms.noisy:
        rules |= _name_cell_parameters(parameters, columns, kept_columns)
        rules |= _name_aggregates(parameters, kept_columns)
    strange = sorted(set(parameters) - names - rules)
    if strange:
        raise ValueError(f"such a release has no parameter '{strange[0]}'")
    missing = sorted(terms.required - set(parameters))
    if missing:
        raise ValueError(f"such a release has a parameter '{missing[0]}'")
    for name, choices in _CHOICES.items():
        if name in names and parameters.get(name) not in choices:
            raise ValueError(f"'{name}' is not one of {', '.join(choices)}")
    for column, _, _ in list_rules(parameters):
        if column not in kept_columns:
            raise ValueError(f"a rule names '{column}', which is not kept")
    if parameters.get("labels", "free") != "free" or (
        "labels" in parameters and parameters.get("algorithm") not in ("mondrian", "cluster")
    ):
        raise ValueError("'labels' is 'free', for the algorithms 'mondrian' and 'cluster'")
    check_whole_number("k", parameters.get("k"))
    _check_population(parameters)
    check_whole_number(ROWS_PER_PERSON, parameters.get(ROWS_PER_PERSON, 2.0))
    if terms.noisy:
        _check_noise(parameters)


def _check_population(parameters: Parameters) -> None:
    """Refuse a k of people without their number, or one that its classes cannot stand for."""
    names = {"map_k", "population"} & set(parameters)
    if not names:
        return
    if len(names) == 1:
        raise ValueError("'map_k' and 'population' belong together")
    for name in sorted(names):
        check_whole_number(name, parameters[name])
    if not float(parameters["k"]) <= float(parameters["map_k"]):
        raise ValueError("'k' is larger than 'map_k'")


def _check_noise(parameters: Parameters) -> None:
    epsilon = parameters["epsilon"]
    if not isinstance(epsilon, float) or not 0 < epsilon < math.inf:
        raise ValueError("'epsilon' is no number above 0")
    if parameters["bounds"] == "declared" and "confidence" in parameters:
        raise ValueError("with rows suppressed by confidence there is no local guarantee")
    for name in ("delta", "confidence"):
        value = parameters.get(name, 0.5)
        if not isinstance(value, float) or not 0 < value < 1:
            raise ValueError(f"'{name}' does not lie between 0 and 1")


def check_whole_number(name: str, value: float | str | None) -> None:
    """Refuse a value that is no whole number from 1."""
    if not isinstance(value, float) or not 1 <= value <= _LONGEST_SIZE or value != int(value):
        raise ValueError(f"'{name}' is no whole number from 1")


def allows_parameters(possible: list[Parameters], parameters: Parameters) -> bool:
    """Return whether a table may have such parameters, by its events; counts may have any k."""
    if "r" not in parameters:
        return parameters in possible
    check_whole_number("k", parameters.get("k"))
    stated = {name: value for name, value in parameters.items() if name != "k"}
    if "series_number" in stated:
        return _allows_turn(possible, stated)
    return stated in possible


def _allows_turn(possible: list[Parameters], stated: Parameters) -> bool:
    """Return whether a release may be the one of a series that it says it is."""
    check_whole_number("series_number", stated["series_number"])
    if not _SERIES_NAME.fullmatch(str(stated.pop("series", ""))) or len(possible) != 1:
        return False
    number = int(float(stated["series_number"]))
    event = make_series_event(possible[0])
    return number <= event.of and stated == list_series_parameters(event, number)
