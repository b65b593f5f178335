"""Levels of a hierarchy in words: what each level shows, from its labels alone.

Whoever verifies a release has the labels and nothing else of a listed hierarchy, so that the words
must follow from them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from functools import lru_cache
from itertools import pairwise

from incrowd.codes.hierarchy import ROOT, Hierarchy
from incrowd.codes.label_form import Form, find_form, read_resolution

NOTHING = "suppressed"
_KEPT = 64  # of long hierarchies, which many columns of a table may share
_LONGEST_LIST = 36  # characters of labels that are listed one by one
_RANGES: tuple[Form, ...] = ("a-b", "a to b", "[a, b)")
_N = r"(-?[0-9.]+)"
_CLOSED = re.compile(rf"{_N}-{_N}|{_N} to {_N}|\[{_N}, {_N}[)\]]")
_YEAR, _CODE = re.compile(r"\d{4}"), re.compile(r"[A-Z][0-9A-Z]*\d[0-9A-Z]*")
_CATEGORY = re.compile(r"[A-Z](?:\d[0-9A-Z]|[A-Z]\d)")  # of the ICD
_BLOCK = re.compile(rf"{_CATEGORY.pattern}(?:-{_CATEGORY.pattern})?")
_PERIODS: dict[Form, str] = {
    "hours": "hours", "days": "days", "weeks": "weeks", "months": "months", "quarters": "quarters"
}  # fmt: skip


def describe_levels(hierarchy: Hierarchy) -> list[str]:
    """Return what each level of a listed hierarchy shows, in words."""
    return list(_describe_levels(hierarchy))


@lru_cache(maxsize=_KEPT)
def _describe_levels(hierarchy: Hierarchy) -> tuple[str, ...]:
    top = hierarchy.height - 1
    return tuple(
        NOTHING if level == top and hierarchy.is_rooted else _describe_labels(hierarchy, level)
        for level in range(hierarchy.height)
    )


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
    return [
        label
        for label in labels
        if label is not None and label[:1] in ("<", ">") and re.fullmatch(_N, label[1:])
    ]


def _describe_labels(hierarchy: Hierarchy, level: int) -> str:
    labels = _list_labels(hierarchy, level)
    form = find_form(labels)
    example = f" (such as {choose_example(labels)})" if labels else ""
    if form in _RANGES and (width := _find_width(labels)) is not None:
        return f"steps of {width}{example}" if width else f"{len(labels):,} ranges{example}"
    if form == "squares":
        return f"squares of {_measure_square(labels[0])} degrees{example}"
    if form == "hexagons":
        resolutions = sorted({str(read_resolution(label)) for label in labels}, key=int)
        return f"H3 hexagons of resolution {', '.join(resolutions)}{example}"
    if form in _PERIODS:
        return f"{_PERIODS[form]}{example}"
    if level == 0:
        return _describe_values(hierarchy, labels, example)
    if find_form(hierarchy.values) in _PERIODS and all(map(_YEAR.fullmatch, labels)):
        return f"years{example}"
    return _describe_cut(hierarchy, level, labels) or _describe_groups(labels, example, "group")


def _describe_values(hierarchy: Hierarchy, labels: Sequence[str], example: str) -> str:
    """Return what the values are: categories of the ICD, other codes, numbers, or any."""
    if hierarchy.height > 2 and all(map(_CATEGORY.fullmatch, labels)):
        blocks = _list_labels(hierarchy, 1)
        if all(map(_BLOCK.fullmatch, blocks)) and any("-" in block for block in blocks):
            return f"categories of 3 characters{example}"
    if _is_short(labels):
        return _describe_groups(labels, example, "value")
    codes = _describe_codes(labels, example)
    return codes or describe_numbers(labels) or _describe_groups(labels, example, "value")


def _is_short(labels: Sequence[str]) -> bool:
    return len(labels) > 1 and len(", ".join(labels)) <= _LONGEST_LIST


def _describe_codes(labels: Sequence[str], example: str) -> str:
    """Return how long codes of letters and digits are, as diagnoses of the ICD; or nothing."""
    lengths = set(map(len, labels))
    is_code = len(lengths) == 1 and all(map(_CODE.fullmatch, labels))
    return f"codes of {lengths.pop()} characters{example}" if is_code else ""


def _list_labels(hierarchy: Hierarchy, level: int) -> list[str]:
    return [label for label in hierarchy.labels[level][:-2] if label is not None]


def choose_example(labels: Sequence[str]) -> str:
    """Return the label in the middle, a range with two ends where there is one.

    The end of the domain may cut the last of equal ranges, which is then no example.

    >>> choose_example(["<0", "0-19", "20-29"])
    '0-19'
    """
    closed = [
        (label, match)
        for label in labels
        if label[-1:] in "])" or "-" in label or " to " in label  # most values are no ranges
        if (match := _CLOSED.fullmatch(label))
    ]
    if not closed:
        return labels[(len(labels) - 1) // 2]
    spans = [_measure_span(match) for _, match in closed]
    if len(set(spans[:-1])) == 1 and spans[-1] < spans[0]:
        closed.pop()
    return closed[(len(closed) - 1) // 2][0]


def _measure_square(label: str) -> str:
    """Return the size of a square, by its latitudes."""
    south, north = label.partition(" ")[0].split("..")
    return f"{(Decimal(north) - Decimal(south)).normalize():f}"


def _measure_span(match: re.Match[str]) -> Decimal:
    low, high = (end for end in match.groups() if end is not None)
    return Decimal(high) - Decimal(low)


def describe_numbers(labels: Sequence[str]) -> str:
    """Return what numbers at equal distances are, as those of intervals; empty if they are not.

    Values between them are cut, so that they are not called unchanged.

    >>> describe_numbers(["0", "1", "2", ">2"]), describe_numbers(["0", "0.5", "1"])
    ('whole numbers (such as 1)', 'steps of 0.5 (such as 0.5)')
    """
    open_ends = list_open_ends(labels)
    numbers = [label for label in labels if label not in open_ends] if open_ends else labels
    if len(numbers) < 2 or find_form(numbers) != "numbers":
        return ""
    steps = {high - low for low, high in pairwise(map(Decimal, numbers))}
    if len(steps) > 1 or (step := steps.pop()) <= 0:
        return ""
    example = f" (such as {choose_example(numbers)})"
    is_whole = step == 1 and "." not in numbers[0]
    return f"{'whole numbers' if is_whole else f'steps of {step.normalize():f}'}{example}"


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
    example = f" (such as {choose_example(labels)})"
    if all(value.startswith(label.rstrip(ROOT)) and len(value) >= length for value, label in pairs):
        return f"first {length} {'character' if length == 1 else 'characters'}{example}"
    if all(label.startswith(ROOT) and value.endswith(label.lstrip(ROOT)) for value, label in pairs):
        return f"last {length} {'character' if length == 1 else 'characters'}{example}"
    return ""


def _describe_groups(labels: Sequence[str], example: str, noun: str) -> str:
    listed, number = ", ".join(labels), len(labels)
    if _is_short(labels):
        return f"{number} {noun}s ({listed})"
    return f"{number:,} {noun}{'' if number == 1 else 's'}{example}"
