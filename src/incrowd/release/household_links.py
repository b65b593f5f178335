"""Households and people that a key links: what a certificate states of them, and its check.

A household is published whole: its own row, and a row for each of its people, with one key. What
is counted is its *type*, all labels of these rows; each published type is a crowd.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from incrowd.arrays import Codes, Counts
from incrowd.codes.household_type import HOUSEHOLD_KEY
from incrowd.codes.person_sets import merge_codes
from incrowd.findings import Finding, make_finding
from incrowd.release.formulas import unescape_formula
from incrowd.release.layout import PEOPLE_PER_HOUSEHOLD

if TYPE_CHECKING:
    from incrowd.engine.released import ReleasedTable
    from incrowd.release.certificate import Certificate, Slice

Number = Annotated[int, Field(ge=0)]


class HouseholdLinks(BaseModel):
    """Facts about linked files, recomputable from them.

    ``types`` is the number of different households, by all labels of theirs and of their people,
    ``smallest_type`` the households of the smallest; ``largest_household`` the most people that
    one has.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    types: Number
    smallest_type: Number
    largest_household: Number


def check_links(folder: Path, certificate: Certificate) -> list[Finding]:
    """Check the keys of both files, and that every type of household is a crowd."""
    from incrowd.engine.released import open_released  # of the certificate alone none is asked

    assert certificate.links is not None
    names = [table.release.file for table in certificate.tables]
    households, people = (open_released(folder / name) for name in names)
    if certificate.tables[0].release.formulas:
        households, people = (x.respell_texts(unescape_formula) for x in (households, people))
    keys = [_read_keys(table) for table in (households, people)]
    for name, found_keys in zip(names, keys, strict=True):
        if found_keys is None:
            return [make_finding("KEYS_INVALID", file=name)]
    household_keys, person_keys = keys
    assert household_keys is not None
    assert person_keys is not None
    number = certificate.tables[0].release.rows
    if not np.array_equal(np.sort(household_keys), np.arange(1, number + 1)):
        return [make_finding("KEYS_INVALID", file=names[0])]
    if not np.array_equal(np.unique(person_keys), np.arange(1, number + 1)):
        return [make_finding("KEYS_DIFFER", households=names[0], people=names[1])]
    codes = _code_rows((households, people), certificate.tables)
    by_key = codes[0][np.argsort(household_keys)]
    is_other = codes[1][:, : by_key.shape[1]] != by_key[person_keys - 1]
    strangers = int(is_other.any(axis=1).sum())
    if strangers:
        return [make_finding("HOUSEHOLD_VALUES_DIFFER", rows=strangers, file=names[1])]
    sizes = _count_types(person_keys, codes[1])
    return _check_sizes(certificate, person_keys, sizes)


def _check_sizes(certificate: Certificate, keys: Counts, sizes: Counts) -> list[Finding]:
    """Check the crowds, and what is certified of them."""
    findings, least = [], certificate.threshold
    largest = int(np.bincount(keys).max()) if len(keys) else 0
    most = int(float(certificate.parameters.get(PEOPLE_PER_HOUSEHOLD, 0)))
    if largest > most:
        findings.append(make_finding("HOUSEHOLDS_TOO_LARGE", largest=largest, most=most))
    smallest = int(sizes.min()) if len(sizes) else 0
    if (small := int((sizes < least).sum())) > 0:
        what = certificate.threshold_formula if certificate.has_noisy_counts else "k"
        findings.append(
            make_finding(
                "HOUSEHOLD_TYPES_TOO_SMALL", types=small, what=what, least=least, smallest=smallest
            )
        )
    recomputed = HouseholdLinks(types=len(sizes), smallest_type=smallest, largest_household=largest)
    if recomputed != certificate.links:
        findings.append(
            make_finding(
                "LINKS_DIFFER", types=len(sizes), smallest_type=smallest, largest_household=largest
            )
        )
    return findings


def _read_keys(table: ReleasedTable) -> Counts | None:
    """Return the key of each row; None if one is no whole number from 1."""
    if HOUSEHOLD_KEY not in table.columns:
        return None
    if not table.rows():
        return np.zeros(0, dtype=np.int64)
    keys: list[int] = []
    for frame in table.iter_frames(1 << 20):
        for value in frame[HOUSEHOLD_KEY].to_list():
            text = str(value)
            if not (text.isascii() and text.isdigit() and text[0] != "0" and len(text) < 16):
                return None
            keys.append(int(text))
    return np.array(keys, dtype=np.int64)


def _code_rows(tables: Sequence[ReleasedTable], parts: Sequence[Slice]) -> tuple[Codes, Codes]:
    """Return the labels of both files as codes, those of a column the same in both."""
    shared = sorted(parts[0].scheme)
    names = [*shared, *sorted(set(parts[1].scheme) - set(shared))]
    places: dict[str, dict[object, int]] = {name: {} for name in names}
    coded = []
    for table, columns in zip(tables, (shared, names), strict=True):
        rows = [np.zeros((0, len(columns)), dtype=np.int32)]
        for frame in table.iter_frames(1 << 20) if table.rows() else ():
            chunk = [
                [places[name].setdefault(value, len(places[name])) for value in frame[name]]
                for name in columns
            ]
            rows.append(np.array(chunk, dtype=np.int32).T)
        coded.append(np.concatenate(rows))
    return coded[0], coded[1]


def _count_types(keys: Counts, codes: Codes) -> Counts:
    """Return how many households have each type, from the key and the labels of each person."""
    if not len(keys):
        return np.zeros(0, dtype=np.int64)
    _, people = merge_codes(codes)
    order = np.lexsort((people, keys))
    people = people[order]
    sizes = np.bincount(keys)[1:]
    starts = np.cumsum(sizes) - sizes
    counts = []
    for size in np.unique(sizes).tolist():
        rows = people[starts[sizes == size][:, None] + np.arange(size)]
        counts.append(np.unique(rows, axis=0, return_counts=True)[1])
    return np.concatenate(counts).astype(np.int64)
