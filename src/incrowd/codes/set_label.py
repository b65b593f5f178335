"""How sets of values are written: the one writer, and the one strict reader, of labels as {a, b}.

Values stand in the order of their column, joined by a comma and a space. A value in which a comma,
a brace, a quote or a backslash occurs, or that begins or ends with a space, is written in quotes as
JSON writes it, so that no two sets have the same label.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

_PLAIN = r"[^\s,{}\"\\](?:[^\x00-\x1f,{}\"\\]*[^\s,{}\"\\])?"
_ITEM = re.compile(rf'(?P<plain>{_PLAIN})|(?P<quoted>"(?:[^"\\]|\\.)*")')
_JOINT = ", "


def format_set(values: Iterable[str]) -> str:
    """Return the label of a set of values.

    >>> format_set(["Private", "State-gov"]), format_set(["a, b", "c"])
    ('{Private, State-gov}', '{"a, b", c}')
    """
    texts = [
        value if re.fullmatch(_PLAIN, value) else json.dumps(value, ensure_ascii=False)
        for value in values
    ]
    return "{" + _JOINT.join(texts) + "}"


def parse_set(label: str) -> list[str] | None:
    """Return the values of a label of a set; None if it is not one that is written here.

    >>> parse_set('{"a, b", c}'), parse_set("{a,b}"), parse_set("a")
    (['a, b', 'c'], None, None)
    """
    if not (label.startswith("{") and label.endswith("}")):
        return None
    values, at, end = [], 1, len(label) - 1
    while at < end:
        match = _ITEM.match(label, at, end)
        if match is None:
            return None
        try:
            values.append(match["plain"] or str(json.loads(match["quoted"])))
        except ValueError:
            return None
        at = match.end()
        if at < end:
            if not label.startswith(_JOINT, at):
                return None
            at += len(_JOINT)
    return values if len(values) > 1 and format_set(values) == label else None
