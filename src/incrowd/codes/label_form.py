"""The form that the labels of a column have, so that a program can read them: one for each column.

A form is told by the labels alone, whoever wrote them. ``*``, and what stands for values outside
the domain, may stand beside any of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Literal, TypeAlias

from incrowd.codes.axis import Axis
from incrowd.codes.hierarchy import ROOT, Hierarchy
from incrowd.codes.values import parse_number

Form: TypeAlias = Literal[
    "nothing", "numbers", "numbers or text", "a-b", "a to b", "[a, b)",
    "hours", "days", "weeks", "months", "quarters", "squares", "hexagons", "masked", "sets", "text",
]  # fmt: skip

_N = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?"
_DEGREES = r"[0-9]+(?:\.[0-9]+)?\.\.[0-9]+(?:\.[0-9]+)?"
_INDEX = re.compile(r"8[0-9a-f]{14}")
_BEYOND = rf"[<>]{_N}"
_WHOLE_OR_BEYOND = re.compile(r"[<>]?(?:0|[1-9][0-9]*)")
_SIMPLE = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]*[1-9])?")
_A_DASH_B = re.compile(r"<?([0-9]+)->?([0-9]+)")


def _make_matcher(pattern: str) -> Callable[[str], bool]:
    regex = re.compile(pattern)
    return lambda label: regex.fullmatch(label) is not None


def _is_dash_label(label: str) -> bool:
    """Return whether a label is a whole number, a-b with a < b, or lies beyond a number."""
    match = _A_DASH_B.fullmatch(label)
    if match:
        return parse_number(match[1]) is not None and int(match[1]) < int(match[2])
    return _WHOLE_OR_BEYOND.fullmatch(label) is not None


def read_resolution(label: str) -> int | None:
    """Return the resolution of the cell of H3 whose index a label is; None if it is none.

    An index has 64 bits. The first 8 say that it is one of a cell, and are written as 8; then come
    the resolution in 4 bits, one of 122 base cells in 7, and 15 digits in 3 each, which are 7
    beyond the resolution.

    >>> read_resolution("881f1d4893fffff"), read_resolution("881f1d489300000")
    (8, None)
    """
    if not _INDEX.fullmatch(label):
        return None
    index = int(label, 16)
    resolution, base = index >> 52 & 15, index >> 45 & 127
    digits = [index >> 3 * at & 7 for at in range(14, -1, -1)]
    is_cell = base < 122 and 7 not in digits[:resolution] and set(digits[resolution:]) <= {7}
    return resolution if is_cell else None


_TESTS: tuple[tuple[Form, Callable[[str], bool]], ...] = (
    ("nothing", lambda label: label == ROOT),
    ("numbers", lambda label: parse_number_label(label) is not None),
    ("a-b", _is_dash_label),
    ("a to b", _make_matcher(rf"<?{_N}(?: to >?{_N})?|{_BEYOND}")),
    ("[a, b)", _make_matcher(rf"\[{_N}, {_N}[)\]]|{_BEYOND}")),
    ("hours", _make_matcher(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}")),
    ("weeks", _make_matcher(r"[0-9]{4}-W[0-9]{2}")),
    ("days", _make_matcher(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")),
    ("months", _make_matcher(r"[0-9]{4}-[0-9]{2}")),
    ("quarters", _make_matcher(r"[0-9]{4}-Q[1-4]")),
    ("squares", _make_matcher(rf"{_DEGREES} [NS], {_DEGREES} [EW]")),
    ("hexagons", lambda label: read_resolution(label) is not None),
)


def find_form(labels: Iterable[str]) -> Form:
    """Return the form that all labels have.

    >>> find_form(["0-4", "5-9", ">89"]), find_form(["-5 to 4", "5 to 9"]), find_form(["0.5", "1"])
    ('a-b', 'a to b', 'numbers')
    >>> find_form(["[0, 0.5)", "[0.5, 1]"]), find_form(["2020-03", "2020-11"])
    ('[a, b)', 'months')
    >>> find_form(["a", "1"])
    'text'
    """
    texts = list(labels)
    return next((form for form, fits in _TESTS if texts and all(map(fits, texts))), "text")


def find_level_form(hierarchy: Hierarchy, level: int) -> Form:
    """Return the form of the labels of a listed domain at a level."""
    top = level == hierarchy.height - 1 and hierarchy.is_rooted
    labels = hierarchy.labels[level] if top else hierarchy.labels[level][:-2]
    return "nothing" if top else find_form(label for label in labels if label is not None)


def find_axis_form(axis: Axis, *, is_free: bool = False) -> Form:
    """Return the form of the labels of boxes on an axis: spans of values, or groups of a tree.

    Labels that are ``is_free`` have sets of values on a tree, beside groups.
    """
    if not axis.ordered:
        return "sets" if is_free else "text"
    if axis.spans.dash:
        return "a-b"
    values = [x[1:] if x[:1] in ("<", ">") else x for x in axis.hierarchy.values]
    numbers = axis.spans.whole or all(parse_number(value) is not None for value in values)
    return "a to b" if numbers else "text"


def parse_number_labels(
    labels: Iterable[str | None], possible_labels: Iterable[str | None]
) -> list[int | float | None] | None:
    """Return labels as numbers, whole ones if all ``possible_labels`` are; or None."""
    texts = list(labels)
    numbers = [None if label is None else parse_number_label(label) for label in texts]
    if any(
        parsed is None and label is not None for parsed, label in zip(numbers, texts, strict=True)
    ):
        return None
    is_whole = not any("." in label for label in possible_labels if label is not None)
    return (
        numbers if is_whole else [None if number is None else float(number) for number in numbers]
    )


def parse_number_label(label: str) -> int | float | None:
    """Return the number that a label is, if a program would read and write it unchanged.

    Up to 15 digits every number in its canonical text survives being a float.
    """
    if not _SIMPLE.fullmatch(label) or len(label) > 17 or label == "-0":
        return None
    if "." not in label:
        return int(label) if len(label) < 16 else None
    return float(label) if len(label.strip("-0.")) < 16 else None
