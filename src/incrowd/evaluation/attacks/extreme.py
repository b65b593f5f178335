"""The end of an interval is the value of a person, where intervals are drawn around people.

Paper A, section 3.2, has the person worth 35 million: :mod:`incrowd.papers.extreme_value`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from incrowd.arrays import Bools, Places
from incrowd.codes.frequency import Frequencies
from incrowd.evaluation.attacks.view import AttackerView, subsample
from incrowd.measure.estimate import CONFIDENCE, Estimate, Rate


def attack_interval_ends(
    seen: AttackerView,
    everybody: Frequencies,
    *,
    ordered: Sequence[int],
    control: Frequencies | None = None,
    tries: int,
    rng: np.random.Generator,
    confidence: float = CONFIDENCE,
) -> Estimate | None:
    """Say of classes that somebody in them has exactly the value at which an interval ends.

    A try is a random class and one end of its interval in one of the columns ``ordered``. He is
    right if a row of the table that fits the class has this value. Where intervals are drawn around
    the people of a class he always is; where they are public, as often as he would be with other
    people: the control group, thinned as the table is so that both have as many rows. Guessing says
    any value of the interval. None if no column shows an interval.
    """
    pairs = np.array(
        [
            (place, at, end)
            for at in ordered
            for place in np.flatnonzero(_find_wide_classes(seen, at)).tolist()
            for end in (0, 1)
        ],
        dtype=np.int64,
    ).reshape(-1, 3)
    if not len(pairs):
        return None
    some = pairs[rng.choice(len(pairs), min(tries, len(pairs)), replace=False)]
    sizes = [everybody.total] if control is None else [everybody.total, control.total]
    tables = [subsample(table, min(sizes), rng) for table in (everybody, control) if table]
    ends = np.array([_get_interval(seen, int(place), int(at))[int(end)] for place, at, end in some])
    inside = [
        rng.integers(low, high + 1)
        for low, high in (_get_interval(seen, int(p), int(a)) for p, a, _ in some)
    ]
    homes = [seen.find_class(table.codes) for table in tables]
    hits = [
        sum(_match_values(seen, table, home, some, ends))
        for table, home in zip(tables, homes, strict=True)
    ]
    guessed = sum(_match_values(seen, tables[0], homes[0], some, np.array(inside)))
    return Estimate(
        attack="extreme",
        name="ends of intervals",
        knows="nothing",
        success=Rate.from_hits(hits[0], len(some), confidence),
        guess=Rate.from_hits(guessed, len(some), confidence),
        control=None if control is None else Rate.from_hits(hits[1], len(some), confidence),
        says="A person of the class has exactly the value at which its interval ends.",
    )


def _find_wide_classes(seen: AttackerView, at: int) -> Bools:
    """Return which classes show more than one value of a column, and not all of them."""
    cover, labels = seen.covers[at], seen.codes[:, at]
    wide_classes: Bools = (cover.low < cover.high) & (cover.loss < 1)
    return wide_classes[labels]


def _get_interval(seen: AttackerView, place: int, at: int) -> tuple[int, int]:
    label = seen.codes[place, at]
    return int(seen.covers[at].low[label]), int(seen.covers[at].high[label])


def _match_values(
    seen: AttackerView, table: Frequencies, homes: Places | None, some: Places, values: Places
) -> list[bool]:
    """Return whether a row of the table fits each class and has the value said in the column.

    ``homes`` are the classes of its rows, where each fits one class at most.
    """
    if homes is not None:
        return _match_homes(homes, table, some, values)
    order = {at: np.argsort(table.codes[:, at], kind="stable") for at in set(some[:, 1].tolist())}
    matches = []
    for (place, at, _), value in zip(some.tolist(), values.tolist(), strict=True):
        column = table.codes[:, at]
        first, last = np.searchsorted(column, [value, value + 1], sorter=order[at])
        rows = table.codes[order[at][first:last]]
        for other, cover in enumerate(seen.covers):
            if not len(rows):
                break
            label = seen.codes[place, other]
            if label in cover.sets:
                rows = rows[np.isin(rows[:, other], cover.sets[int(label)])]
            else:
                low, high = int(cover.low[label]), int(cover.high[label])
                rows = rows[(low <= rows[:, other]) & (rows[:, other] <= high)]
        matches.append(len(rows) > 0)
    return matches


def _match_homes(homes: Places, table: Frequencies, some: Places, values: Places) -> list[bool]:
    """Return the same where every row fits one class at most: that of its ``homes``."""
    matches = np.zeros(len(some), dtype=bool)
    for at in np.unique(some[:, 1]).tolist():
        request = some[:, 1] == at
        column = table.codes[:, at].astype(np.int64)
        most = int(max(column.max(initial=0), values.max(initial=0))) + 1
        keys = (homes * most + column)[homes >= 0]
        matches[request] = np.isin(some[request, 0] * most + values[request], keys)
    return matches.tolist()
