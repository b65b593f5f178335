"""The end of an interval is somebody's value: the person worth 35 million (paper A, section 3.2).

:func:`extreme` makes towns up, :func:`at_ends` reads the intervals of any release.

It is known that one person of a town has more than 10 million. A release shows intervals of worth;
the attacker takes the highest end and says that this is what the rich person has. If all ends are
below what is known, he guesses.

**Claim.** Against any release whose intervals end at values of the data and hold every row, he is
always right. The highest end is the largest value of the table; that is the rich person's, and
nobody else has it.

**Claim.** If intervals are public, the ends say nothing about the value: given which interval is
shown, each value is as likely as before, so no attacker does better than one in so many values,
times e^epsilon, plus delta.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np

from incrowd.arrays import Bools, Codes, Places
from incrowd.attacks.baselines import line
from incrowd.attacks.seen import Seen, fewer
from incrowd.codes.axis import Axis, Boxes
from incrowd.codes.frequency import Frequencies
from incrowd.measure.estimate import CONFIDENCE, Estimate, Rate

Publish = Callable[[Codes, np.random.Generator], Boxes]

AREAS = 100
TOP = 500  # worth is told in steps of 200,000, up to 100 million
KNOWN = 50  # 10 million: one person has more
VALUES = TOP - KNOWN  # so many may be the rich person's
WORTH = 1


@cache
def axes() -> tuple[Axis, Axis]:
    """The columns of a town: area and worth."""
    return line(AREAS), line(TOP + 1)


def town(people: int, rng: np.random.Generator) -> Codes:
    """A town of people none of whom is rich; last among them, the one who is.

    Worth is log-normal around 540,000; that of the rich person is uniform above what is
    known, so that nobody can know it beforehand.
    """
    worth = np.minimum(np.exp(rng.normal(1.0, 1.0, people)), KNOWN).astype(np.int32)
    worth[-1] = rng.integers(KNOWN + 1, TOP + 1)
    return np.column_stack([rng.integers(0, AREAS, people), worth]).astype(np.int32)


def extreme(
    publish: Publish,
    *,
    name: str,
    rng: np.random.Generator,
    towns: int = 200,
    people: int = 200,
    bound: float | None = None,
) -> Estimate:
    """How often the highest end of a release is the rich person's worth, over many towns.

    ``control`` is the same attack on the table of the same town from which the rich person was
    left out, ``guess`` a value at random above what is known.
    """
    hits = control = guess = 0
    for _ in range(towns):
        points = town(people, rng)
        worth = points[:, WORTH]
        hits += _alone(_said(publish(points, rng), rng), worth)
        control += _alone(_said(publish(points[:-1], rng), rng), worth)
        guess += _alone(_any(rng), worth)
    return Estimate(
        attack="extreme value",
        name=name,
        knows="that one person of the town has more than 10 million",
        success=Rate.of(hits, towns),
        guess=Rate.of(guess, towns),
        control=Rate.of(control, towns),
        says="The highest end of an interval is exactly what one person has.",
        bound=bound,
    )


def _said(shown: Boxes, rng: np.random.Generator) -> int:
    """What the attacker says: the highest end, or any value if no end is above what is known."""
    highest = int(shown.high[:, WORTH].max(initial=0))
    return highest if highest > KNOWN else _any(rng)


def _any(rng: np.random.Generator) -> int:
    return int(rng.integers(KNOWN + 1, TOP + 1))


def _alone(said: int, worth: Codes) -> bool:
    """Whether exactly one person has what was said."""
    return int((worth == said).sum()) == 1


def at_ends(
    seen: Seen,
    everybody: Frequencies,
    *,
    ordered: Sequence[int],
    control: Frequencies | None = None,
    tries: int,
    rng: np.random.Generator,
    confidence: float = CONFIDENCE,
) -> Estimate | None:
    """Says of classes that somebody in them has exactly the value at which their interval ends.

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
            for place in np.flatnonzero(_wide(seen, at)).tolist()
            for end in (0, 1)
        ],
        dtype=np.int64,
    ).reshape(-1, 3)
    if not len(pairs):
        return None
    some = pairs[rng.choice(len(pairs), min(tries, len(pairs)), replace=False)]
    sizes = [everybody.total] if control is None else [everybody.total, control.total]
    tables = [fewer(table, min(sizes), rng) for table in (everybody, control) if table]
    ends = np.array([_reach(seen, int(place), int(at))[int(end)] for place, at, end in some])
    inside = [
        rng.integers(low, high + 1)
        for low, high in (_reach(seen, int(p), int(a)) for p, a, _ in some)
    ]
    homes = [seen.class_of(table.codes) for table in tables]
    hits = [
        sum(_held(seen, table, home, some, ends)) for table, home in zip(tables, homes, strict=True)
    ]
    guessed = sum(_held(seen, tables[0], homes[0], some, np.array(inside)))
    return Estimate(
        attack="extreme",
        name="ends of intervals",
        knows="nothing of anybody",
        success=Rate.of(hits[0], len(some), confidence),
        guess=Rate.of(guessed, len(some), confidence),
        control=None if control is None else Rate.of(hits[1], len(some), confidence),
        says="Somebody of the class has exactly the value at which its interval ends.",
    )


def _wide(seen: Seen, at: int) -> Bools:
    """Which classes show more than one value of a column, and not all of them."""
    cover, labels = seen.covers[at], seen.codes[:, at]
    found: Bools = (cover.low < cover.high) & (cover.loss < 1)
    return found[labels]


def _reach(seen: Seen, place: int, at: int) -> tuple[int, int]:
    label = seen.codes[place, at]
    return int(seen.covers[at].low[label]), int(seen.covers[at].high[label])


def _held(
    seen: Seen, table: Frequencies, homes: Places | None, some: Places, values: Places
) -> list[bool]:
    """Whether a row of the table fits each class and has the value said in the column.

    ``homes`` are the classes of its rows, where each fits one class at most.
    """
    if homes is not None:
        return _at_home(homes, table, some, values)
    order = {at: np.argsort(table.codes[:, at], kind="stable") for at in set(some[:, 1].tolist())}
    found = []
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
        found.append(len(rows) > 0)
    return found


def _at_home(homes: Places, table: Frequencies, some: Places, values: Places) -> list[bool]:
    """The same where every row fits one class at most: that of its ``homes``."""
    found = np.zeros(len(some), dtype=bool)
    for at in np.unique(some[:, 1]).tolist():
        asked = some[:, 1] == at
        column = table.codes[:, at].astype(np.int64)
        most = int(max(column.max(initial=0), values.max(initial=0))) + 1
        known = (homes * most + column)[homes >= 0]
        found[asked] = np.isin(some[asked, 0] * most + values[asked], known)
    return found.tolist()
