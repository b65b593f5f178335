"""The parameters of a release that its events imply."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from incrowd.privacy.counts import is_even
from incrowd.privacy.draw_parameters import (
    ROWS_PER_PERSON,
    SHARES_EPSILON,
    Draw,
    list_coin_parameters,
    list_draw_parameters,
    list_row_parameters,
    list_series_parameters,
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
from incrowd.release.layout import LINKED_HOUSEHOLDS, Layout
from incrowd.release.parameters import Parameters


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
    is in one cell of its own table. Linked, they are drawn together, as one table is.
    """
    if layout == LINKED_HOUSEHOLDS:
        linked = _list_table_parameters(events)
        return EventParameters({}, [linked, linked]) if linked else None
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
