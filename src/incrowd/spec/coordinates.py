"""Columns of coordinates, of which a column of places is made: declared, and not published."""

from __future__ import annotations

from collections.abc import Mapping

from incrowd.spec.hierarchies import Geo

_UNPUBLISHED = ("drop", "identifier")


def check_coordinates(places: Mapping[str, Geo], roles: Mapping[str, str]) -> None:
    """Refuse coordinates that are not declared, or that would be published besides.

    ``roles`` has the role of every column of a spec.

    Raises:
        ValueError: if a column of coordinates has no entry, or another role than these.

    """
    for name, geo in places.items():
        for source in (geo.lat, geo.lon):
            if source not in roles:
                raise ValueError(
                    f"column '{name}': `geo` names the column '{source}', which has no entry. Add "
                    "it, with the role `drop`."
                )
            if roles[source] not in _UNPUBLISHED:
                raise ValueError(
                    f"column '{source}': '{name}' is made of it, so it is not published itself. "
                    "Give it the role `drop`."
                )
