"""Check a table with suppressed cells: rows that fit too few, cells that must be hidden."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from incrowd.codes.frequency import merge_tuples
from incrowd.codes.hierarchy import ROOT
from incrowd.engine.count import read_labels
from incrowd.engine.table import Table
from incrowd.findings import Finding, make_finding
from incrowd.measure.compatible_rows import find_incompatible_sets
from incrowd.release.certificate import Certificate
from incrowd.release.parameters import list_links, list_subsets


def find_small_sets(table: Table, certificate: Certificate) -> list[Finding]:
    """Find columns in which a row is compatible with too few rows, suppressed cells as wildcards.

    The release cannot tell how many rows of the input a row fits. It tells that none fits too many:
    the rows that those became are compatible with it.
    """
    if not table.rows():
        return []
    names = tuple(certificate.table.scheme)
    weighted = certificate.table.release.form == "counted"
    published = read_labels(table, names, weighted=weighted)
    frequencies = published.frequencies
    hidden = np.column_stack([
        np.array([label == ROOT for label in labels])[frequencies.codes[:, at]]
        for at, labels in enumerate(published.labels)
    ])  # fmt: skip
    subsets = list_subsets(certificate.parameters)
    demands = {**subsets, len(names): max(certificate.k, subsets.get(len(names), 1))}
    findings = []
    for size, least in demands.items():
        sets = find_incompatible_sets(
            frequencies.codes,
            hidden,
            frequencies.counts,
            combinations(range(len(names)), size),
            least,
        )
        if sets:
            columns = [names[at] for at in sets[0]]
            findings.append(
                make_finding("ROWS_NOT_COMPATIBLE", columns=columns, least=least, sets=len(sets))
            )
    return findings


def find_class_numbers(table: Table, certificate: Certificate) -> list[Finding]:
    """Find numbers of classes that fewer than k rows show, or several of them in one class.

    Groups of near rows may have the same labels; their numbers tell them apart.
    """
    aggregated, names = [*certificate.aggregates], tuple(certificate.table.scheme)
    if not aggregated or not table.rows():
        return []
    weighted = certificate.table.release.form == "counted"
    published = read_labels(table, (*names, *aggregated), weighted=weighted)
    codes, counts = published.frequencies.codes, published.frequencies.counts
    if certificate.parameters.get("suppressed") == "starred":
        marks = [
            np.array([label == ROOT for label in published.labels[at]])[codes[:, at]]
            for at in range(len(names))
        ]
        is_class = ~np.all(marks, axis=0)
        codes, counts = codes[is_class], counts[is_class]
    combinations_shown = merge_tuples(codes, counts)
    if (combinations_shown.counts < certificate.k).any():
        return [make_finding("CLASS_NUMBERS_RARE", names=", ".join(aggregated), k=certificate.k)]
    classes = merge_tuples(codes[:, : len(names)], counts)
    is_by_label = certificate.parameters.get("algorithm") != "mdav"
    if is_by_label and len(combinations_shown) > len(classes):
        return [make_finding("CLASS_SHOWS_NUMBERS", names=", ".join(aggregated))]
    return []


def find_shown_links(table: Table, certificate: Certificate) -> list[Finding]:
    """Find kept columns that show a value where the cell that they are linked to is suppressed."""
    findings = []
    weighted = certificate.table.release.form == "counted"
    for name, linked in list_links(certificate.parameters).items():
        if not table.rows():
            continue
        published = read_labels(table, (linked, name), weighted=weighted)
        codes = merge_tuples(published.frequencies.codes, published.frequencies.counts).codes
        shown_values = [
            published.labels[1][value]
            for label, value in codes.tolist()
            if published.labels[0][label] == ROOT and published.labels[1][value] is not None
        ]
        if shown_values:
            findings.append(make_finding("LINKED_CELL_SHOWN", name=name, linked=linked))
    return findings
