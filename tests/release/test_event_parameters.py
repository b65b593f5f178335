"""The parameters that events imply."""

from __future__ import annotations

import pytest

from incrowd.privacy.events import (
    Composition,
    Event,
    Mechanism,
    OneOf,
    SafeRelease,
    SampledEvent,
    Selection,
)
from incrowd.release.event_parameters import EventParameters, parameters_from_events
from incrowd.release.parameters import Parameters

ONE, TWO = SafeRelease(9, 0.25), SafeRelease(12, 0.5)
FOUND = Composition([Selection(0.1), Selection(0.2), OneOf([ONE, TWO])])
PLAIN: Parameters = {"k": 9.0, "beta": 0.25}
EITHER: list[Parameters] = [
    {"k": 9.0, "beta": 0.25, "search_epsilon": 0.3}, {"k": 12.0, "beta": 0.5, "search_epsilon": 0.3}
]  # fmt: skip


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([ONE], EventParameters({}, [[PLAIN]])),
        ([ONE, TWO], EventParameters({}, [[PLAIN], [{"k": 12.0, "beta": 0.5}]])),
        ([*FOUND.events], EventParameters({}, [EITHER])),
        ([FOUND, FOUND, ONE], EventParameters({}, [EITHER, EITHER, [PLAIN]])),
        (
            [Selection(0.1), Selection(0.000001), ONE, ONE],
            EventParameters({"slices_epsilon": 0.100001}, [[PLAIN], [PLAIN]]),
        ),
        (
            [Selection(0.1), FOUND, FOUND],
            EventParameters({"slices_epsilon": 0.1}, [EITHER, EITHER]),
        ),
        ([SampledEvent(ONE, 0.4)], EventParameters({}, [[{**PLAIN, "already_sampled": 0.4}]])),
        (
            [SampledEvent(FOUND, 0.4)],
            EventParameters({}, [[{**item, "already_sampled": 0.4} for item in EITHER]]),
        ),
        (
            [SampledEvent(Composition([Selection(0.1), ONE, ONE]), 0.4)],
            EventParameters({"slices_epsilon": 0.1, "already_sampled": 0.4}, [[PLAIN], [PLAIN]]),
        ),
    ],
)
def test_events_tell_the_parameters_of_every_slice(
    events: list[Event], expected: EventParameters
) -> None:
    assert parameters_from_events(events) == expected


@pytest.mark.parametrize(
    "events",
    [
        [],
        [FOUND],  # one table is not wrapped
        [Selection(0.1), ONE],  # nothing was put together
        [Selection(0.1), Selection(0.1)],
        [ONE, Selection(0.1), ONE],  # chosen after it was released
        [ONE, ONE, Selection(0.1)],
        [Selection(0.0), ONE, ONE],
        [Selection(0.1), Selection(0.0), ONE, ONE],
        [Mechanism(0.1), ONE, ONE],
        [ONE, Mechanism(0.1, 1e-9)],
        [ONE, Composition([])],
        [ONE, Composition([ONE, ONE])],
        [ONE, OneOf([ONE, TWO])],  # chosen by nothing
        [ONE, Composition([Selection(0.0), OneOf([ONE, TWO])])],
        [ONE, Composition([Selection(0.1), OneOf([ONE, Selection(0.1)])])],
        [ONE, Composition([Mechanism(0.1), OneOf([ONE, TWO])])],
        [ONE, Composition([Selection(0.1), Mechanism(0.1), OneOf([ONE, TWO])])],
        [Selection(0.1), Mechanism(0.1), OneOf([ONE, TWO])],
        [ONE, SampledEvent(ONE, 0.5)],
        [
            SampledEvent(ONE, 0.5),
            SampledEvent(ONE, 0.5),
        ],  # a sample of its own for each: not one table
        [SampledEvent(SampledEvent(ONE, 0.5), 0.5)],
        [SampledEvent(Composition([SampledEvent(ONE, 0.5)]), 0.5)],
        [SampledEvent(Composition([ONE, SampledEvent(ONE, 0.5)]), 0.5)],
        [SampledEvent(Composition([Selection(0.1), ONE]), 0.5)],
        [SampledEvent(ONE, 0.5), ONE],
    ],
)
def test_other_events_are_not_those_of_slices(events: list[Event]) -> None:
    assert parameters_from_events(events) is None
