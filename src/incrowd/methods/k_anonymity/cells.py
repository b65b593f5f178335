"""Rows of which single cells are suppressed: made, and counted again before they are published."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from incrowd.anonymize.cell_classes import suppress_cells
from incrowd.anonymize.suppression import list_patterns, suppress_by_row
from incrowd.arrays import Bools, Codes, Counts, Floats, Members, Places, Progress
from incrowd.codes.axis import Axis
from incrowd.codes.counted_table import DistinctRows
from incrowd.codes.frequency import Frequencies, merge_tuples
from incrowd.codes.hierarchy import ROOT
from incrowd.errors import IncrowdError
from incrowd.measure.compatible_rows import find_incompatible_sets
from incrowd.measure.outcome import SuppressionResult
from incrowd.privacy.randomness import Randomness, sample_permutation
from incrowd.spec.model import Column
from incrowd.spec.release import KAnonymitySpec


@dataclass(frozen=True, eq=False)
class SuppressedRows:
    """Rows with suppressed cells: the labels of generalized columns, the values of kept ones.

    ``published`` has codes of both, in this order.
    """

    labels: tuple[list[str | None], ...]
    kept_values: dict[str, list[object]]
    published: Frequencies
    suppression: SuppressionResult


def make_suppressed_rows(
    rows: DistinctRows,
    columns: Mapping[str, Column],
    release: KAnonymitySpec,
    *,
    bits: Randomness,
    progress: Progress = lambda _done, _all: None,
) -> SuppressedRows:
    """Suppress cells of the generalized columns, and those of kept columns that follow them."""
    assert release.k is not None
    names = rows.counted.names
    if rows.frequencies.total < release.k:
        raise IncrowdError(
            f"Table: {rows.frequencies.total} rows, fewer than k = {release.k}. Nothing was "
            "written."
        )
    labels, codes = _label_tuples(rows, release)
    tuples, owner = _merge_labels(codes[rows.owner], rows.frequencies.counts)
    weights = np.array([columns[name].weight for name in names])
    hidden, entry_of, counts, suppression = _choose_cells(
        names, tuples, owner, rows.frequencies.counts, weights, release, bits, progress
    )
    marks = [texts.index(ROOT) for texts in labels]
    label_codes = np.where(hidden, np.array(marks, dtype=np.int32), tuples.codes[owner[entry_of]])
    kept_values, kept_codes = _hide_linked(rows, columns, hidden, entry_of)
    published = merge_tuples(np.column_stack([label_codes, kept_codes]).astype(np.int32), counts)
    _check_rows(published, len(names), marks, release)
    return SuppressedRows(labels, kept_values, published, suppression)


def _label_tuples(
    rows: DistinctRows, release: KAnonymitySpec
) -> tuple[tuple[list[str | None], ...], Codes]:
    """Return the labels of each column at its fixed level, and their codes for each tuple."""
    table, labels, codes = rows.counted, [], []
    for at, (name, axis) in enumerate(zip(table.names, table.axes, strict=True)):
        level = release.levels.get(name, 0)
        fixed = level if isinstance(level, int) else level[0]
        if fixed >= axis.hierarchy.height:
            raise IncrowdError(
                f"Column '{name}': level {fixed} does not exist, the highest is "
                f"{axis.hierarchy.height - 1}. Lower it under `levels`."
            )
        texts, places = _label_level(axis, fixed)
        labels.append(texts if ROOT in texts else [*texts, ROOT])
        codes.append(places[table.frequencies.codes[:, at]])
    return tuple(labels), np.column_stack(codes).astype(np.int32)


def _label_level(axis: Axis, level: int) -> tuple[list[str | None], Codes]:
    """Return the labels of a level as local recoding writes them, and that of each value."""
    group, positions = axis.hierarchy.groups[level], axis.positions
    width = len(axis.hierarchy.labels[level])
    low = np.full(width, len(positions), dtype=np.int32)
    high = np.full(width, -1, dtype=np.int32)
    np.minimum.at(low, group, positions)
    np.maximum.at(high, group, positions)
    is_met = high >= 0
    texts, places = axis.make_labels(low[is_met], high[is_met])
    numbers = np.zeros(width, dtype=np.int32)
    numbers[is_met] = places
    return texts, numbers[group]


def _merge_labels(codes: Codes, counts: Counts) -> tuple[Frequencies, Places]:
    """Return the distinct tuples of labels, and the tuple of each tuple of all columns."""
    tuples = merge_tuples(codes, counts)
    _, owner = np.unique(codes, axis=0, return_inverse=True)
    return tuples, owner.ravel()


def _choose_cells(
    names: tuple[str, ...],
    tuples: Frequencies,
    owner: Places,
    counts: Counts,
    weights: Floats,
    release: KAnonymitySpec,
    bits: Randomness,
    progress: Progress,
) -> tuple[Bools, Places, Counts, SuppressionResult]:
    """Return entries: which cells they hide, their tuple of all columns, and how many rows."""
    assert release.k is not None
    everything = float(weights.sum()) * tuples.total
    if release.reading == "wildcard":
        patterns = list_patterns(tuples.codes, weights)
        chosen = suppress_by_row(
            tuples.codes, tuples.counts, patterns,
            k=release.k, subsets=release.subsets or {}, progress=progress,
        )  # fmt: skip
        cost = float((patterns.costs[chosen] * tuples.counts).sum())
        least = cost if patterns.complete else 0.0
        hidden, entry_of, rows = (
            patterns.hidden[chosen[owner]], np.arange(len(counts)), counts,
        )  # fmt: skip
    else:
        classes = suppress_cells(
            tuples.codes, tuples.counts, k=release.k, weights=weights, progress=progress
        )
        cost, least, patterns = classes.cost, classes.least, classes.patterns
        entry_of, pattern, rows = _share_out(
            owner, counts, classes.owner, classes.pattern, classes.counts, bits
        )
        hidden = patterns.hidden[pattern]
    cells = (hidden * rows[:, None]).sum(axis=0)
    suppression = SuppressionResult(
        dict(zip(names, cells.tolist(), strict=True)), tuples.total, cost / everything,
        least / everything,
    )  # fmt: skip
    return hidden, entry_of, rows, suppression


def _share_out(
    owner: Places, counts: Counts, tuples: Places, pattern: Members, rows: Counts, bits: Randomness
) -> tuple[Places, Members, Counts]:
    """Give each row one of the patterns of its tuple, so many rows each.

    Where a tuple has several, chance decides which of its rows has which: nothing that is kept may.
    """
    number = int(owner.max()) + 1
    is_single = np.bincount(tuples, minlength=number) == 1
    only = np.zeros(number, dtype=np.int64)
    only[tuples] = pattern
    places = np.flatnonzero(is_single[owner])
    parts = [(places, only[owner[places]], counts[places])]
    by_owner = np.argsort(owner, kind="stable")
    bounds = np.append(0, np.cumsum(np.bincount(owner, minlength=number)))
    for place in np.flatnonzero(~is_single).tolist():
        members = by_owner[bounds[place] : bounds[place + 1]]
        each = np.repeat(members, counts[members])
        each = each[sample_permutation(len(each), bits)]
        listed = np.flatnonzero(tuples == place)
        given_patterns = np.repeat(pattern[listed], rows[listed])
        pairs, sums = np.unique(np.column_stack([each, given_patterns]), axis=0, return_counts=True)
        parts.append((pairs[:, 0], pairs[:, 1], sums.astype(np.int64)))
    entry_of, patterns, sums = (np.concatenate(part) for part in zip(*parts, strict=True))
    return entry_of, patterns, sums


def _hide_linked(
    rows: DistinctRows, columns: Mapping[str, Column], hidden: Bools, entry_of: Places
) -> tuple[dict[str, list[object]], Codes]:
    """Return the values of the kept columns and their codes; null where a linked cell is hidden."""
    names, kept_values = rows.counted.names, {}
    codes = rows.frequencies.codes[entry_of, len(names) :].copy()
    for at, (name, values) in enumerate(rows.kept.items()):
        kept_values[name] = list(values)
        linked = columns[name].linked
        if linked is None:
            continue
        if None not in values:
            kept_values[name].append(None)
        codes[hidden[:, names.index(linked)], at] = kept_values[name].index(None)
    return kept_values, codes


def _check_rows(
    published: Frequencies, quasi: int, marks: list[int], release: KAnonymitySpec
) -> None:
    """Count what is published, in all sets of columns that matter; raise if one is too small."""
    assert release.k is not None
    label_codes = merge_tuples(published.codes[:, :quasi], published.counts)
    if release.reading != "wildcard":
        if int(label_codes.counts.min()) < release.k:
            raise AssertionError(
                f"a class of {label_codes.counts.min()} rows, fewer than {release.k}"
            )
        return
    hidden, subsets = label_codes.codes == np.array(marks), release.subsets or {}
    demands = {**subsets, quasi: max(release.k, subsets.get(quasi, 1))}
    for size, least in demands.items():
        sets = combinations(range(quasi), size)
        if find_incompatible_sets(label_codes.codes, hidden, label_codes.counts, sets, least):
            raise AssertionError(f"a row is compatible with fewer than {least} rows")
