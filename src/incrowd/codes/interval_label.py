"""How intervals are written: the one writer of labels such as 18-24, -5 to 4 and [0.5, 1).

:mod:`incrowd.codes.label_form` recognizes what is written here.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable
from decimal import Decimal

from incrowd.codes.values import canonicalize_value

_WHOLE = re.compile(r"0|-?[1-9][0-9]*")
_SPAN = re.compile(r"(0|-?[1-9][0-9]*)(?:-| to )(0|-?[1-9][0-9]*)")


class SpanLabeler:
    """The labels of everything from one value of a column to another: of one form in a column.

    They have a dash where all values are whole and none is below 0, so that no dash can be taken
    for a minus. Values may be spans themselves, one after the other, or what lies beyond a number
    (>89); where they are neither, a label names both values as they are.

    >>> SpanLabeler(["0", "18", "64"])("18", "64")
    '18-64'
    >>> SpanLabeler(["0-4", "5-9", "10-14"])("0-4", "10-14")
    '0-14'
    >>> [SpanLabeler(["-5", "5", "9"])("5", "9"), SpanLabeler(["low", "high"])("low", "high")]
    ['5 to 9', 'low to high']
    >>> SpanLabeler(["60-79", "40-59"])("60-79", "40-59")  # no run of numbers
    '60-79 to 40-59'
    """

    def __init__(self, values: Iterable[str]) -> None:
        texts = list(values)
        self._reaches = {value: parse_span(value) for value in texts}
        spans = [self._reaches[value] for value in texts]
        plain = all(low == high for low, high in spans if low is not None and high is not None)
        self.whole = None not in itertools.chain(*spans) and (plain or _is_ascending(spans))
        self.dash = self.whole and not any(value.lstrip("<>").startswith("-") for value in texts)

    def __call__(self, first: str, last: str) -> str:
        """Return the label of everything between two values, both included."""
        if first == last:
            return first
        ends = (first, last)
        if self.whole:
            ends = (first if first[0] in "<>" else _SPAN.sub(r"\1", first),
                    last if last[0] in "<>" else _SPAN.sub(r"\2", last))  # fmt: skip
        return self.joint.join(ends)

    @property
    def joint(self) -> str:
        """What stands between the two ends."""
        return "-" if self.dash else " to "


def label_intervals(edges: list[Decimal], high: Decimal, *, is_whole: bool) -> list[str]:
    """Return the labels of adjacent intervals, which begin at ``edges`` and end at ``high``.

    >>> label_intervals([Decimal(0), Decimal(18)], Decimal(18), is_whole=True)
    ['0-17', '18']
    >>> label_intervals([Decimal(-5), Decimal(5)], Decimal(9), is_whole=True)
    ['-5 to 4', '5 to 9']
    >>> label_intervals([Decimal(0), Decimal("0.5")], Decimal(1), is_whole=False)
    ['[0, 0.5)', '[0.5, 1]']
    """
    if is_whole:
        starts = [str(int(x)) for x in edges]
        lasts = [*(str(int(x) - 1) for x in edges[1:]), str(int(high))]
        return [*map(SpanLabeler([*starts, *lasts]), starts, lasts)]
    texts = [canonicalize_value(x) for x in edges]
    inner = [f"[{start}, {end})" for start, end in itertools.pairwise(texts)]
    return [*inner, f"[{texts[-1]}, {canonicalize_value(high)}]"]


def parse_span(text: str) -> tuple[float | None, float | None]:
    """Return the ends of a whole number, a span of them, or what lies beyond one.

    >>> parse_span("7"), parse_span("5-9"), parse_span(">89"), parse_span("2020-03")
    ((7, 7), (5, 9), (90, inf), (None, None))
    """
    if _WHOLE.fullmatch(text):
        return int(text), int(text)
    span = _SPAN.fullmatch(text)
    if span and int(span[1]) < int(span[2]):
        return int(span[1]), int(span[2])
    if text[:1] in ("<", ">") and _WHOLE.fullmatch(text[1:]):
        edge = int(text[1:])
        return (-math.inf, edge - 1) if text[0] == "<" else (edge + 1, math.inf)
    return None, None


def _is_ascending(spans: list[tuple[float | None, float | None]]) -> bool:
    """Return whether each of several spans ends before the next begins."""
    ends = [end for span in spans for end in span if end is not None]
    return all(stop < start for stop, start in zip(ends[1::2], ends[2::2], strict=False))
