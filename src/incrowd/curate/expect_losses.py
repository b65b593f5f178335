"""Which values a release would lose, before it is made: read from the table, for the curator alone.

Nothing that is published may depend on it. It is computed where the spec fixes the level of every
column, so that nothing remains to be chosen by looking at the result.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from incrowd.engine.count import count
from incrowd.engine.table import Table
from incrowd.findings import Finding, make_finding
from incrowd.measure.lost_values import LostValues, lost_by_labels
from incrowd.measure.outcome import shown_at
from incrowd.methods.people import draw_rows
from incrowd.methods.registry import method_of
from incrowd.privacy.randomness import SystemRandomness
from incrowd.spec.file import SpecFile

_NAMED = 6


def expect_losses(file: SpecFile, table: Table) -> LostValues | None:
    """Find the values that a release would lose; None where levels are open, or there are slices.

    Each cell is taken to keep its rows as often as it is shown.
    """
    settled = method_of(file.confirmed()).settled
    (limits, *slices) = settled.tables
    if slices or any(low != high for low, high in limits.values()):
        return None
    levels = tuple(limits[name][0] for name in settled.declared.names)
    rows = draw_rows(table, file.spec, SystemRandomness())
    counted = count(rows, settled.declared, levels=levels).by_label()
    held = counted.frequencies
    sizes, place = np.unique(held.counts, return_inverse=True)
    shown = settled.likely(sizes.astype(np.float64))[place] * held.counts
    kept = replace(held, counts=np.rint(shown).astype(np.int64))
    return lost_by_labels(counted, shown_at(counted, kept))


def find_expected_losses(file: SpecFile, table: Table) -> Iterator[Finding]:
    """Find the values that a release would lose; nothing where none would be lost."""
    lost = expect_losses(file, table)
    named = [] if lost is None else [*lost.values, *lost.pairs]
    if lost is None or not named:
        return
    rest = len(named) + lost.more_values + lost.more_pairs - _NAMED
    listed = [one.words for one in named[:_NAMED]]
    yield make_finding("VALUES_EXPECTED_LOST", listed=listed, more=max(rest, 0))
