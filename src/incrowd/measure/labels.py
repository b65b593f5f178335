"""What a published label covers: which values of the domain a row that shows it may have.

Labels are read as a reader would: a group of the hierarchy, a value, an interval ("18-64",
"[18, 64]", "[18, 65)", "low to high"), a set ("a,b", "{a, b}"), or the root. So tables that
other tools made can be measured too.

A hierarchy may use one label for two things, such as a group and the root. What was published by
levels is read at its level; of a column of which nothing is known, :func:`read_level` finds the
level that fits all its labels, and elsewhere such a label is read as the widest that it means.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property, partial
from itertools import pairwise
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from incrowd.arrays import Floats, Places
from incrowd.codes.axis import Axis
from incrowd.codes.hierarchy import ROOT, Hierarchy
from incrowd.codes.interval_label import parse_span
from incrowd.codes.set_label import parse_set
from incrowd.codes.values import canonicalize_value, parse_number
from incrowd.errors import IncrowdError
from incrowd.findings import Finding, make_finding
from incrowd.measure.loss import compute_precision_loss

MOST_BINS = 256

_BRACKETS = re.compile(r"([\[\](])\s*([^,;]+?)\s*[,;]\s*([^,;]+?)\s*([\[\])])")
_HALF_OPEN = re.compile(r"\s*(\[.*[)\[]|[(\]].*\]|\].*\[)\s*")
_JOINTS = (" to ", " - ", "..", "–", "~", "-")


class LabelError(IncrowdError):
    """A label that no recipient with the hierarchy would understand."""


def iterate_groups(hierarchy: Hierarchy) -> Iterator[tuple[int, str | None, Places]]:
    """Yield every group of values with its level, label and codes; the lowest level first."""
    values = len(hierarchy.values)
    for level, labels in enumerate(hierarchy.labels):
        groups = hierarchy.groups[level][:values]
        order = np.argsort(groups, kind="stable")
        ends = np.searchsorted(groups[order], np.arange(len(labels) + 1))
        for code, label in enumerate(labels):
            codes = order[ends[code] : ends[code + 1]]
            if len(codes):
                yield level, label, codes.astype(np.int64)


def find_ambiguous_labels(hierarchy: Hierarchy) -> dict[str, dict[int, int]]:
    """Return labels that cover different values at different levels: how many at each of them."""
    values = len(hierarchy.values)
    texts = [
        labels[code]
        for groups, labels in zip(hierarchy.groups, hierarchy.labels, strict=True)
        for code in np.unique(groups[:values]).tolist()
    ]
    if len(set(texts)) == len(texts):  # each stands at one level, and there for one group
        return {}
    met: dict[str | None, dict[bytes, None]] = {}
    sizes: dict[str | None, dict[int, int]] = {}
    for level, label, codes in iterate_groups(hierarchy):
        met.setdefault(label, {})[codes.tobytes()] = None
        sizes.setdefault(label, {})[level] = len(codes)
    return {label: sizes[label] for label, means in met.items() if label and len(means) > 1}


def read_level(
    name: str, hierarchy: Hierarchy, labels: Sequence[object]
) -> tuple[int | None, tuple[Finding, ...]]:
    """Return the level at which to read a column with labels of two meanings, and any doubt.

    That is the lowest at which every label of the column is a label; where several fit and mean
    different things, the one whose labels cover most. None where no label has two meanings, or
    no level fits: then each is read by itself. ``*`` fits anywhere, as suppressed rows show it.
    """
    ambiguous = find_ambiguous_labels(hierarchy)
    texts = {label if isinstance(label, str) else canonicalize_value(label) for label in labels}
    met = sorted(text for text in texts if text in ambiguous)
    if not met:
        return None, ()
    texts -= {ROOT} if texts != {ROOT} else set()
    fitting = [
        level for level, level_labels in enumerate(hierarchy.labels) if texts <= set(level_labels)
    ]
    # Where such a label is no group, it stands for what is outside the domain.
    fitting = [
        level for level in fitting if all(level in ambiguous[text] for text in met)
    ] or fitting
    if not fitting:
        return None, (make_finding("LABEL_LEVEL_UNKNOWN", name, label=met[0]),)
    wide = {level: sum(ambiguous[text].get(level, 0) for text in met) for level in fitting}
    level = max(fitting, key=lambda level: (wide[level], -level))
    if len(fitting) == 1:
        return level, ()
    level_list = " and ".join(f"level {number}" for number in fitting)
    finding = make_finding(
        "LABEL_LEVEL_ASSUMED", name, levels=level_list, label=met[0], level=level
    )
    return level, (finding,)


class LabelMeaning(NamedTuple):
    """The meaning of one label: where its values lie, and what it loses.

    It covers the positions from ``low`` to ``high``, or the ``places`` among them where it is no
    run. ``whole`` labels tell nothing.
    """

    text: str | None
    low: int
    high: int
    places: Places | None
    loss: float
    precision: float
    whole: bool


class LabelReader:
    """Reads the labels of one column; those of its ``level`` first, where that is known."""

    def __init__(self, name: str, axis: Axis, level: int | None = None) -> None:
        self._name, self._axis = name, axis
        self._level = level
        # A group comes before what is outside the domain and may be called the same.
        self._codes: list[dict[str | None, int]] = [
            dict(zip(reversed(labels), range(len(labels) - 1, -1, -1), strict=True))
            for labels in axis.hierarchy.labels
        ]

    def _find_group(self, label: str | None) -> tuple[Places, int] | None:
        """Return the positions and the level of a group or value; None if it is neither.

        A label that stands for different groups is read at the level that is known, or as the
        widest of them. Only what is asked for is looked at: a column may have many values.
        """
        hierarchy = self._axis.hierarchy
        values = len(hierarchy.values)
        widest: tuple[Places, int] | None = None
        for level, codes in enumerate(self._codes):
            code = codes.get(label)
            if code is None:
                continue
            members = np.flatnonzero(hierarchy.groups[level][:values] == code)
            if not len(members):
                continue
            group = np.sort(self._axis.positions[members].astype(np.int64)), level
            if level == self._level:
                return group
            if widest is None or len(members) > len(widest[0]):
                widest = group
        if widest is not None:
            return widest
        if label in (hierarchy.root, ROOT):
            return np.arange(values, dtype=np.int64), hierarchy.height - 1
        if label is None:
            return np.array([hierarchy.null]), 0
        if label == hierarchy.labels[0][-1]:
            return np.array([hierarchy.outside]), 0
        return None

    def read_label(self, label: object) -> tuple[Places, int | None]:
        """Return the positions that a label covers, and its level if it is a group or a value."""
        text = label if isinstance(label, str) else canonicalize_value(label)
        group = self._find_group(text)
        if group is not None:
            return group
        if isinstance(label, str) and (run := self._read_usual_interval(label)) is not None:
            return run, None
        if isinstance(label, str) and (places := self._read_written_set(label)) is not None:
            return places, None
        group = self._find_group(canonicalize_value(text))
        if group is not None:
            return group
        code = self._find_value(label)
        if code is not None:
            return np.array([code]), 0
        places = self._read_interval(text) if text is not None and self._axis.ordered else None
        if places is None and text is not None and not _HALF_OPEN.fullmatch(text):
            places = self._read_set(text)
        if places is None or not len(places):
            raise LabelError(
                f"Column '{self._name}': '{text}' is not a label of its hierarchy. Name the spec "
                "that the table was made with."
            )
        return places, None

    def _read_usual_interval(self, text: str) -> Places | None:
        """Return the positions of an interval of numbers written as this axis writes them."""
        first, _, last = text.partition(self._joint)
        low, high = self._number_positions.get(first), self._number_positions.get(last)
        if low is None or high is None or low > high:
            return None
        hierarchy = self._axis.hierarchy
        if hierarchy.encode_value(text) != hierarchy.outside:  # as it may be a value
            return None
        return np.arange(low, high + 1, dtype=np.int64)

    @cached_property
    def _joint(self) -> str:
        return self._axis.spans.joint if self._axis.ordered else " to "

    def interpret_label(self, label: object) -> LabelMeaning:
        """Return what a label means."""
        hierarchy = self._axis.hierarchy
        values, top = len(hierarchy.values), hierarchy.height - 1
        places, level = self.read_label(label)
        low, high = int(places[0]), int(places[-1])  # they are in order
        loss = hierarchy.normalize_loss(_count_covered(hierarchy, places, level))
        if self._axis.ordered:
            precision = self.compute_width(low, high)
        else:
            precision = loss if level is None else compute_precision_loss(hierarchy, level)
        root = level == top and (hierarchy.is_rooted or label == ROOT)
        is_root = values > 1 and (root or len(places) == values == hierarchy.size)
        if is_root:
            loss = precision = 1.0
        run = high - low + 1 == len(places)
        return LabelMeaning(
            canonicalize_value(label), low, high, None if run else places, loss, precision, is_root
        )

    def compute_width(self, low: int, high: int) -> float:
        """Return the width from one position to another, over the range of the domain."""
        if high >= len(self._axis.hierarchy.values):
            return 0.0
        return float((self._line[high] - self._line[low]) / self._range)

    @cached_property
    def _line(self) -> list[Decimal]:
        """Where the values lie on the axis: by number, or one after the other."""
        return self._starts or [Decimal(x) for x in range(len(self._axis.hierarchy.values))]

    @cached_property
    def _range(self) -> Decimal:
        return self._line[-1] - self._line[0] or Decimal(1)

    def _find_value(self, label: object) -> int | None:
        """Return the position of a value of the domain, or None."""
        hierarchy = self._axis.hierarchy
        text = label.strip() if isinstance(label, str) else label
        if text in (None, ""):
            return None
        code = self._places.get(text) if isinstance(text, str) else None
        if code is None:
            code = hierarchy.encode_value(label)
        inside = code not in (hierarchy.outside, hierarchy.null)
        return int(self._axis.positions[code]) if inside else None

    @cached_property
    def _places(self) -> dict[str, int]:
        """The code of each value as it is written in the hierarchy."""
        return {value: code for code, value in enumerate(self._axis.hierarchy.values)}

    @cached_property
    def _starts(self) -> list[Decimal] | None:
        """The values as numbers in the order of the axis, if they are; 5-9 counts as 5.

        What lies below or above a number counts as the next whole number.
        """
        values, numbers = self._axis.hierarchy.values, self._axis.hierarchy.numbers
        by_place: list[Decimal] = [Decimal(0)] * len(values)
        for code, value in enumerate(values):
            decimal = numbers[code]
            if decimal is None:
                low, high = parse_span(value)
                if low is None or high is None:
                    return None
                decimal = Decimal(int(low if low > -math.inf else high))
            by_place[self._axis.positions[code]] = decimal
        return by_place

    @cached_property
    def _number_positions(self) -> dict[str, int]:
        """The positions of values that are numbers, by their text, where they all differ."""
        starts = (self._starts if self._axis.ordered else None) or []
        if any(first >= second for first, second in pairwise(starts)):
            return {}
        places = self._axis.positions.tolist()
        hierarchy = self._axis.hierarchy
        numbered = zip(hierarchy.values, hierarchy.numbers, places, strict=False)
        return {value: place for value, number, place in numbered if number is not None}

    def _read_interval(self, text: str) -> Places | None:
        match = _BRACKETS.fullmatch(text.strip())
        if match:
            opens, first, last, closes = match.groups()
            return self._find_run(first, last, above=opens in "(]", below=closes in ")[")
        for first, last in _split_ends(text):
            places = self._find_run(first, last)
            if places is not None:
                return places
        return None

    def _find_run(
        self, first: str, last: str, *, above: bool = False, below: bool = False
    ) -> Places | None:
        """Return the positions from one value to another, without an end that is open."""
        begin_at, end_at = self._number_positions.get(first), self._number_positions.get(last)
        if begin_at is not None and end_at is not None:
            return np.arange(begin_at + above, end_at + 1 - below, dtype=np.int64)
        low, high = parse_number(canonicalize_value(first)), parse_number(canonicalize_value(last))
        if first.startswith("<") and self._find_value(first) is not None:
            low = Decimal("-Infinity")
        if last.startswith(">") and self._find_value(last) is not None:
            high = Decimal("Infinity")
        if self._starts is not None and low is not None and high is not None:
            begin = (bisect_right if above else bisect_left)(self._starts, low)
            end = (bisect_left if below else bisect_right)(self._starts, high)
            return np.arange(begin, end, dtype=np.int64)
        ends = [self._find_value(first), self._find_value(last)]
        if ends[0] is None or ends[1] is None:
            return None
        return np.arange(ends[0] + above, ends[1] + 1 - below, dtype=np.int64)

    def _read_written_set(self, text: str) -> Places | None:
        """Return the positions of a set that is written as a release writes it."""
        codes = [self._places.get(value) for value in parse_set(text) or ()]
        if not codes or None in codes:
            return None
        return np.unique(self._axis.positions[np.array(codes)].astype(np.int64))

    def _read_set(self, text: str) -> Places | None:
        parts = re.split(r"\s*[,;|]\s*", text.strip("{}[]() "))
        places = [self._find_value(part.strip("'\" ")) for part in parts]
        if len(places) < 2 or any(place is None for place in places):
            return None
        return np.unique(np.array(places, dtype=np.int64))


def _split_ends(text: str) -> Iterator[tuple[str, str]]:
    """Yield ways to read a text as two ends with something between."""
    for joint in _JOINTS:
        start = text.find(joint, 1)
        while start > 0:
            ends = text[:start].strip(), text[start + len(joint) :].strip()
            if all(ends):
                yield ends
            start = text.find(joint, start + 1)


# What labels were read as, by hierarchy: a release is read several times, by each who measures it.
_READ: WeakKeyDictionary[Hierarchy, dict[tuple[bool, int | None], dict[str, LabelMeaning]]] = (
    WeakKeyDictionary()
)


@dataclass(frozen=True, eq=False)
class LabelCover:
    """For each label of a column: its loss, its precision, and where its rows may lie.

    ``loss`` and ``precision`` are those of :mod:`incrowd.measure.loss`; on an ordered column
    precision is the width over the range. ``shares`` says
    for each bin of values how likely a row is there, if it is uniform in what its label
    covers; ``spread`` is that, or what computes it, as not everybody asks. ``rows`` is how many
    original rows have a value that it covers. ``starred`` marks the labels that tell nothing. A
    label fits the positions from ``low`` to ``high``, or those of ``sets`` where it is none of a
    run; the root fits all.
    """

    labels: tuple[str | None, ...]
    loss: Floats
    precision: Floats
    spread: Floats | Callable[[], Floats]
    rows: Floats
    starred: npt.NDArray[np.bool_]
    low: Places
    high: Places
    sets: dict[int, Places]

    @cached_property
    def shares(self) -> Floats:
        """For each label (down) and bin (across), how likely a row is there."""
        return self.spread() if callable(self.spread) else self.spread


def read_labels(
    name: str, axis: Axis, labels: Sequence[object], value_counts: Floats, level: int | None = None
) -> LabelCover:
    """Read all labels of a column; raises :class:`LabelError` for one that has no meaning.

    ``value_counts`` is how many original rows there are at each position, ``level`` the one that
    the labels are known to belong to.
    """
    meanings = _interpret_labels(name, axis, labels, level)
    low, high = (
        np.fromiter((getattr(meaning, end) for meaning in meanings), np.int64, len(meanings))
        for end in ("low", "high")
    )
    loss, precision = (
        np.fromiter(
            (getattr(meaning, attribute) for meaning in meanings), np.float64, len(meanings)
        )
        for attribute in ("loss", "precision")
    )
    sets = {
        at: label_meaning.places
        for at, label_meaning in enumerate(meanings)
        if label_meaning.places is not None
    }
    before = np.append(0.0, np.cumsum(value_counts))
    rows = before[high + 1] - before[low]
    for at, places in sets.items():
        rows[at] = value_counts[places].sum()
    spread = partial(_compute_shares, assign_bins(axis), low.copy(), high.copy(), sets)
    roots = [at for at, label_meaning in enumerate(meanings) if label_meaning.whole]
    rows[roots], low[roots], high[roots] = value_counts.sum(), 0, len(axis.hierarchy.values) + 1
    is_starred = np.array([label == ROOT for label in labels], dtype=bool)
    texts = tuple(meaning.text for meaning in meanings)
    return LabelCover(texts, loss, precision, spread, rows, is_starred, low, high, sets)


def _interpret_labels(
    name: str, axis: Axis, labels: Sequence[object], level: int | None
) -> list[LabelMeaning]:
    """Return what each label means; every text is read once, however often it is asked for."""
    met = _READ.setdefault(axis.hierarchy, {}).setdefault((axis.ordered, level), {})
    reader: LabelReader | None = None
    label_meanings = []
    for label in labels:
        meaning = met.get(label) if isinstance(label, str) else None  # 1 and True are one key
        if meaning is None:
            reader = LabelReader(name, axis, level) if reader is None else reader
            meaning = reader.interpret_label(label)
            if isinstance(label, str):
                met[label] = meaning
        label_meanings.append(meaning)
    return label_meanings


def _compute_shares(bins: Places, low: Places, high: Places, sets: dict[int, Places]) -> Floats:
    """Return the share of each bin in what labels cover; bins are runs of positions."""
    count = int(bins.max()) + 1
    ends = np.searchsorted(bins, np.arange(count + 1))
    shares = np.zeros((len(low), count))
    # Of many labels most cover few bins, and only those are looked at.
    number = bins[high] - bins[low] + 1
    label = np.repeat(np.arange(len(low)), number)
    within = np.arange(len(label)) - np.repeat(np.cumsum(number) - number, number)
    bin_ = bins[low][label] + within
    overlap = np.minimum(high[label] + 1, ends[bin_ + 1]) - np.maximum(low[label], ends[bin_])
    shares[label, bin_] = overlap / (high - low + 1)[label]
    for at, places in sets.items():
        shares[at] = np.bincount(bins[places], minlength=count) / len(places)
    return shares


def _count_covered(hierarchy: Hierarchy, places: Places, level: int | None) -> float:
    """Return how many values a label covers, by the rule where the domain is open."""
    if level is not None and hierarchy.open:
        return hierarchy.count_by_rule(level)
    return len(places)


def assign_bins(axis: Axis) -> Places:
    """Return the bin of each position: its own, or neighbors together where there are many.

    Null and what is outside the domain have bins of their own.
    """
    values = len(axis.hierarchy.values)
    inner = min(values, MOST_BINS)
    bins = np.arange(values, dtype=np.int64) * inner // values
    return np.append(bins, [inner, inner + 1])
