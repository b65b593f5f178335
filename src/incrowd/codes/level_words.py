"""Levels of a hierarchy in words: what each level shows, from its labels alone.

Whoever verifies a release has the labels and nothing else of a listed hierarchy, so that the words
must follow from them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from decimal import Decimal

from incrowd.codes.hierarchy import ROOT, Hierarchy
from incrowd.codes.label_form import Form, find_form

NOTHING = "suppressed"
_LONGEST_LIST = 36  # characters of labels that are listed one by one
_RANGES: tuple[Form, ...] = ("a-b", "a to b", "[a, b)")
_N = r"(-?[0-9.]+)"
_CLOSED = re.compile(rf"{_N}-{_N}|{_N} to {_N}|\[{_N}, {_N}[)\]]")
_YEAR, _CODE = re.compile(r"\d{4}"), re.compile(r"[A-Z][0-9A-Z]*\d[0-9A-Z]*")
_PERIODS: dict[Form, str] = {"days": "days", "months": "months", "quarters": "quarters"}


def describe_levels(hierarchy: Hierarchy) -> list[str]:
    """Return what each level of a listed hierarchy shows, in words."""
    top = hierarchy.height - 1
    return [
        NOTHING if level == top and hierarchy.is_rooted else _describe_labels(hierarchy, level)
        for level in range(hierarchy.height)
    ]


def describe_mask_levels(length: int, hide: str) -> list[str]:
    """Return what each level of a mask shows, in words.

    >>> describe_mask_levels(3, "right")
    ['all 3 characters', 'first 2 of 3 characters', 'first 1 of 3 characters', 'suppressed']
    """
    side = "first" if hide == "right" else "last"
    between = [f"{side} {length - hidden} of {length} characters" for hidden in range(1, length)]
    return [f"all {length} characters", *between, NOTHING]


def list_open_ends(labels: Iterable[str | None]) -> list[str]:
    """Return the labels that are ranges without a lower or an upper end.

    >>> list_open_ends(["<5", "5-9", ">9", "<x", None])
    ['<5', '>9']
    """
    return [label for label in labels if label is not None and re.fullmatch(rf"[<>]{_N}", label)]


def _describe_labels(hierarchy: Hierarchy, level: int) -> str:
    labels = _list_labels(hierarchy, level)
    form = find_form(labels)
    example = f" (such as {_choose_example(labels)})" if labels else ""
    if form in _RANGES and (width := _find_width(labels)) is not None:
        return f"steps of {width}{example}" if width else f"{len(labels):,} ranges{example}"
    if form in _PERIODS:
        return f"{_PERIODS[form]}{example}"
    if level == 0:
        return _describe_codes(labels, example) or _describe_groups(labels, example, "value")
    if find_form(hierarchy.values) in _PERIODS and all(map(_YEAR.fullmatch, labels)):
        return f"years{example}"
    return _describe_cut(hierarchy, level, labels) or _describe_groups(labels, example, "group")


def _describe_codes(labels: Sequence[str], example: str) -> str:
    """Return how long codes of letters and digits are, as diagnoses of the ICD; or nothing."""
    lengths = set(map(len, labels))
    is_code = len(lengths) == 1 and all(map(_CODE.fullmatch, labels))
    return f"codes of {lengths.pop()} characters{example}" if is_code else ""


def _list_labels(hierarchy: Hierarchy, level: int) -> list[str]:
    return [label for label in hierarchy.labels[level][:-2] if label is not None]


def _choose_example(labels: Sequence[str]) -> str:
    """Return the label in the middle, a range with two ends where there is one."""
    closed = [label for label in labels if _CLOSED.fullmatch(label)]
    chosen = closed or labels
    return chosen[(len(chosen) - 1) // 2]


def _find_width(labels: Iterable[str]) -> str | None:
    """Return the width of ranges, empty if they differ; None if no label has two ends.

    The last range may be shorter than the others.
    """
    matches = [match for label in labels if (match := _CLOSED.fullmatch(label))]
    widths = []
    for match in matches:
        low, high = (end for end in match.groups() if end is not None)
        excluded = match[0].startswith("[")
        if not excluded and "." in low + high:
            return ""  # the next range begins one step higher, and the step is not known
        widths.append(Decimal(high) - Decimal(low) + (0 if excluded else 1))
    if not matches:
        return None
    width = widths[0]
    alike = all(other_width == width for other_width in widths[:-1]) and widths[-1] <= width
    return f"{width.normalize():f}" if alike else ""


def _describe_cut(hierarchy: Hierarchy, level: int, labels: Sequence[str]) -> str:
    """Return how many characters are left of values that are masked or cut; empty if none are."""
    lengths = {len(label.strip(ROOT)) for label in labels}
    groups = hierarchy.groups[level].tolist()
    if len(lengths) != 1 or not (length := lengths.pop()):
        return ""
    pairs = [
        (value, str(hierarchy.labels[level][groups[code]]))
        for code, value in enumerate(hierarchy.values)
    ]
    example = f" (such as {_choose_example(labels)})"
    if all(value.startswith(label.rstrip(ROOT)) and len(value) >= length for value, label in pairs):
        return f"first {length} {'character' if length == 1 else 'characters'}{example}"
    if all(label.startswith(ROOT) and value.endswith(label.lstrip(ROOT)) for value, label in pairs):
        return f"last {length} {'character' if length == 1 else 'characters'}{example}"
    return ""


def _describe_groups(labels: Sequence[str], example: str, noun: str) -> str:
    listed, number = ", ".join(labels), len(labels)
    if number > 1 and len(listed) <= _LONGEST_LIST:
        return f"{number} {noun}s ({listed})"
    return f"{number:,} {noun}{'' if number == 1 else 's'}{example}"
