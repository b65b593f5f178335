"""Tables of any engine as counted tuples of values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from incrowd.engine.table import Coder, Table, Tally


def count_tuples(tally: Tally) -> Counter[tuple[object, ...]]:
    counts: Counter[tuple[object, ...]] = Counter()
    for codes, rows in zip(tally.codes.tolist(), tally.counts.tolist(), strict=True):
        counts[tuple(tally.values[at][code] for at, code in enumerate(codes))] += rows
    return counts


def count_table_rows(table: Table) -> Counter[tuple[object, ...]]:
    total: Counter[tuple[object, ...]] = Counter()
    for tally in table.iter_tallies(table.columns):
        total += count_tuples(tally)
    return total


def make_coder(values: Sequence[object]) -> Coder:
    """Codes by the place in a list; a reader of files may ask for null where there is none."""
    places = {value: at for at, value in enumerate(values)}
    return lambda met: np.array([places[x] if x is not None else places.get(x, 0) for x in met])
