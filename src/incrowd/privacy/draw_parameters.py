"""How a table is drawn: a sample or noisy counts, and what certificates state of either."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from incrowd.privacy.counts import NoiseSpread, build_event_law
from incrowd.privacy.events import (
    Coin,
    Event,
    GaussianCounts,
    GeometricCounts,
    PersonCounts,
    RowCounts,
    SafeRelease,
    SeriesCounts,
)
from incrowd.privacy.series import build_series_spread, compute_reach

CountsEvent: TypeAlias = GeometricCounts | GaussianCounts
Draw: TypeAlias = SafeRelease | CountsEvent

SHARES_EPSILON = "shares_epsilon"  # what counts of declared values spend
ROWS_PER_PERSON = "rows_per_person"  # parameters of certificates
ROWS_PER_GROUP = "rows_per_group"
SERIES = "series"  # the noise of a table that grows


def list_draw_parameters(draw: Draw) -> dict[str, float | str]:
    """Return what certificates state of how a table was drawn."""
    match draw:
        case SafeRelease(k, beta):
            return {"k": float(k), "beta": beta}
        case GeometricCounts(r, epsilon):
            return {"noise": "geometric", "r": float(r), "noise_epsilon": epsilon}
        case GaussianCounts(r, variance):
            return {"noise": "gaussian", "r": float(r), "noise_variance": variance}


def compute_threshold(r: int, k: int, per_group: int = 1) -> int:
    """Return the noisy count from which on a group has at least k people, for certain.

    Fewer than k people have at most c (k - 1) rows in it, c those of one person that count, and the
    noise adds at most r. Where people are counted, that is r + k.

    >>> compute_threshold(14, 5), compute_threshold(30, 5, per_group=2)
    (19, 39)
    """
    return r + per_group * (k - 1) + 1


def get_threshold(parameters: Mapping[str, float | str]) -> int:
    """Return the noisy count from which on groups of a table with such parameters are shown."""
    r, k, per_group = (int(float(parameters.get(name, 1.0))) for name in ("r", "k", ROWS_PER_GROUP))
    return compute_threshold(r, k, per_group)


def list_row_parameters(event: Event) -> dict[str, float | str]:
    """Return what certificates state of the rows of a person; nothing where one row is used."""
    match event:
        case PersonCounts(_, rows):
            return {ROWS_PER_PERSON: float(rows)}
        case RowCounts(_, rows, per_group):
            return {ROWS_PER_PERSON: float(rows), ROWS_PER_GROUP: float(per_group)}
    return {}


def list_coin_parameters(event: Event) -> dict[str, float | str]:
    """Return what certificates state of the coin between two bounds; nothing if there is none."""
    match event:
        case Coin(_, GeometricCounts(r, _), chance):
            return {"coin": chance, "coin_r": float(r)}
    return {}


def list_series_parameters(event: SeriesCounts, number: int) -> dict[str, float | str]:
    """Return what certificates state of one release of a series, by its number."""
    rows = {ROWS_PER_PERSON: float(event.rows)} if event.rows > 1 else {}
    return {
        "noise": SERIES, "r": float(compute_reach(event, number)), "basic_r": float(event.r),
        "noise_variance": event.variance, "series_of": float(event.of),
        "series_number": float(number), **rows,
    }  # fmt: skip


def make_series_event(parameters: Mapping[str, float | str]) -> SeriesCounts:
    """Return the series that a release with such parameters belongs to."""
    r, variance, of, rows = (
        float(parameters.get(name, 1.0))
        for name in ("basic_r", "noise_variance", "series_of", ROWS_PER_PERSON)
    )
    return SeriesCounts(int(r), variance, int(of), int(rows))


def build_noise_spread(parameters: Mapping[str, float | str]) -> NoiseSpread:
    """Return how far off the counts of a table with such parameters are."""
    if parameters["noise"] == SERIES:
        number = int(float(parameters["series_number"]))
        return build_series_spread(make_series_event(parameters), number)
    r = int(float(parameters["r"]))
    if parameters["noise"] == "geometric":
        return build_event_law(GeometricCounts(r, float(parameters["noise_epsilon"])))
    return build_event_law(GaussianCounts(r, float(parameters["noise_variance"])))
