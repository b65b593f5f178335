"""One column of places proposed for two of coordinates, which coarsen together.

Latitude and longitude that are generalized one by one give strips; a square is what hides a place.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

from incrowd.codes.values import canonicalize_value, parse_number
from incrowd.curate.draft.guess import Guess
from incrowd.engine.table import Table
from incrowd.methods.person_id import simplify_name
from incrowd.spec.base import quote_scalar
from incrowd.spec.geo import count_cells
from incrowd.spec.hierarchies import Geo

_LAT = re.compile(r"(^|_)(lat|latitude)(_|$)")
_LON = re.compile(r"(^|_)(lon|lng|long|longitude)(_|$)")
_SIZES = ("0.01 0.05 0.25 1", "0.05 0.25 1 5", "0.25 1 5 15", "1 5 15 45")
_MOST = 50_000  # squares of the finest size


def propose_places(head: Table, guesses: Sequence[Guess]) -> tuple[Guess, ...]:
    """Return the guesses, with one of places for the only pair of coordinates among them."""
    pair = [_find_only(guesses, pattern) for pattern in (_LAT, _LON)]
    lat, lon = pair
    if lat is None or lon is None:
        return tuple(guesses)
    ends = [_find_ends(head, guess.column) for guess in (lat, lon)]
    if ends[0] is None or ends[1] is None:
        return tuple(guesses)
    (south, north), (west, east) = ends[0], ends[1]
    declared = _choose_sizes(lat.column, lon.column, (south, north, west, east))
    name = _find_free_name({guess.column for guess in guesses})
    fields = (
        f"lat: {quote_scalar(lat.column)}, lon: {quote_scalar(lon.column)}, "
        f"sizes: [{', '.join(map(str, declared.sizes))}], south: {south}, north: {north}, "
        f"west: {west}, east: {east}"
    )
    place = Guess(
        name, "quasi", f"{{geo: {{{fields}}}}}",
        f"squares by {lat.column} and {lon.column}", ("role", "hierarchy"),
        hipaa="geographic subdivisions", origin="area from the data, rounded to degrees",
    )  # fmt: skip
    dropped = {
        guess.column: replace(guess, role="drop", reason=f"part of '{name}'", origin="")
        for guess in (lat, lon)
    }
    last = max(at for at, guess in enumerate(guesses) if guess.column in dropped)
    columns = [dropped.get(guess.column, guess) for guess in guesses]
    return (*columns[: last + 1], place, *columns[last + 1 :])


def _find_only(guesses: Sequence[Guess], pattern: re.Pattern[str]) -> Guess | None:
    """Return the only column of degrees that is called so."""
    named = [
        guess
        for guess in guesses
        if pattern.search(simplify_name(guess.column))
        and guess.role == "quasi"
        and guess.hipaa == "geographic subdivisions"
        and (guess.hierarchy or "").startswith("{intervals")
    ]
    return named[0] if len(named) == 1 else None


def _find_ends(head: Table, column: str) -> tuple[int, int] | None:
    """Return the whole degrees around the values; None where some are no degrees."""
    numbers = [
        parse_number(canonicalize_value(value))
        for value in head.values(column)
        if value is not None
    ]
    degrees = [x for x in numbers if x is not None]
    most = 90 if _LAT.search(simplify_name(column)) else 180
    if len(degrees) < len(numbers) or not degrees or max(map(abs, degrees)) > most:
        return None
    low = min(degrees).to_integral_value(ROUND_FLOOR)
    high = max(degrees).to_integral_value(ROUND_CEILING)
    high = high if high > low else low + 1
    return (int(low), int(high)) if high <= most else (int(low) - 1, most)


def _choose_sizes(lat: str, lon: str, area: tuple[int, int, int, int]) -> Geo:
    """Return the grid with the finest sizes that do not list too many squares."""
    south, north, west, east = map(Decimal, area)
    for text in _SIZES:
        declared = Geo(
            lat=lat, lon=lon, sizes=tuple(map(Decimal, text.split())), south=south, north=north,
            west=west, east=east,
        )  # fmt: skip
        if count_cells(declared) <= _MOST:
            break
    return declared


def _find_free_name(names: set[str]) -> str:
    proposals = ("place", "location", "square")
    return next((name for name in proposals if name not in names), "place of coordinates")
