"""Hierarchies that are public knowledge and have a name: a rule, a scale, or a list of places.

What a name stands for never depends on a table, so that nothing of it has to be confirmed.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from incrowd.spec.public_list import read_list

_INTERVALS: dict[str, dict[str, Any]] = {
    "hipaa_ages": {"from": 0, "to": 89, "widths": [5, 10, 30], "open": "upper"},
    "percentages": {
        "from": 0, "to": 100,
        "cuts": [[*range(0, 100, 5)], [*range(0, 100, 10)], [0, 30, 60]],
    },
    "scale_1_5": {"from": 1, "to": 5, "cuts": [[1, 3, 4]]},
    "scale_1_7": {"from": 1, "to": 7, "cuts": [[1, 3, 4, 5, 6], [1, 4, 5]]},
    "scale_0_10": {"from": 0, "to": 10, "cuts": [[0, 3, 6, 9], [0, 6]]},
}  # fmt: skip
_OTHERS: dict[str, dict[str, Any]] = {"hipaa_zip": {"postcodes": {"country": "US"}}}
_STATES = {"us_states": "code", "us_state_names": "name"}
NAMES = (*_INTERVALS, *_OTHERS, *_STATES)


@cache
def expand_name(name: str) -> dict[str, Any]:
    """Return the hierarchy that a name stands for, as a spec writes it.

    >>> expand_name("scale_1_5")
    {'intervals': {'from': 1, 'to': 5, 'cuts': [[1, 3, 4]]}}
    >>> expand_name("us_states")["groups"]["West"]["Pacific"]
    ['AK', 'CA', 'HI', 'OR', 'WA']
    """
    if name in _INTERVALS:
        return {"intervals": _INTERVALS[name]}
    if name in _OTHERS:
        return _OTHERS[name]
    regions: dict[str, dict[str, list[str]]] = {}
    for row in read_list("us_states"):
        divisions = regions.setdefault(row["region"], {})
        divisions.setdefault(row["division"], []).append(row[_STATES[name]])
    return {"groups": regions}


def list_states(name: str) -> frozenset[str]:
    """Return the states of the US, by "us_states" or "us_state_names"."""
    return frozenset(row[_STATES[name]] for row in read_list("us_states"))
