"""The end of an interval is somebody's value: the person worth 35 million (paper A, section 3.2).

:mod:`incrowd.evaluation.attacks.extreme` reads the intervals of any release.

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

from collections.abc import Callable
from functools import cache

import numpy as np

from incrowd.arrays import Codes
from incrowd.codes.axis import Axis, ClassBounds
from incrowd.measure.estimate import Estimate, Rate
from incrowd.papers.baselines import make_number_axis

Publish = Callable[[Codes, np.random.Generator], ClassBounds]

AREAS = 100
TOP = 500  # worth is told in steps of 200,000, up to 100 million
KNOWN = 50  # 10 million: one person has more
VALUES = TOP - KNOWN  # so many may be the rich person's
WORTH = 1


@cache
def make_town_axes() -> tuple[Axis, Axis]:
    """Return the columns of a town: area and worth."""
    return make_number_axis(AREAS), make_number_axis(TOP + 1)


def draw_town(people: int, rng: np.random.Generator) -> Codes:
    """Draw a town of people none of whom is rich, but for the last one.

    Worth is log-normal around 540,000; that of the rich person is uniform above what is
    known, so that nobody can know it beforehand.
    """
    worth = np.minimum(np.exp(rng.normal(1.0, 1.0, people)), KNOWN).astype(np.int32)
    worth[-1] = rng.integers(KNOWN + 1, TOP + 1)
    return np.column_stack([rng.integers(0, AREAS, people), worth]).astype(np.int32)


def attack_extreme_value(
    publish: Publish,
    *,
    name: str,
    rng: np.random.Generator,
    towns: int = 200,
    people: int = 200,
    bound: float | None = None,
) -> Estimate:
    """Estimate how often the highest end of a release is the rich person's worth.

    ``control`` is the same attack on the table of the same town from which the rich person was
    left out, ``guess`` a value at random above what is known.
    """
    hits = control = guess = 0
    for _ in range(towns):
        points = draw_town(people, rng)
        worth = points[:, WORTH]
        hits += _is_unique_worth(_guess_worth(publish(points, rng), rng), worth)
        control += _is_unique_worth(_guess_worth(publish(points[:-1], rng), rng), worth)
        guess += _is_unique_worth(_draw_worth(rng), worth)
    return Estimate(
        attack="extreme value",
        name=name,
        knows="that one person of the town has more than 10 million",
        success=Rate.from_hits(hits, towns),
        guess=Rate.from_hits(guess, towns),
        control=Rate.from_hits(control, towns),
        says="The highest end of an interval is exactly what one person has.",
        bound=bound,
    )


def _guess_worth(published: ClassBounds, rng: np.random.Generator) -> int:
    """Return the attacker's guess: the highest end, or any value above what is known."""
    highest = int(published.high[:, WORTH].max(initial=0))
    return highest if highest > KNOWN else _draw_worth(rng)


def _draw_worth(rng: np.random.Generator) -> int:
    return int(rng.integers(KNOWN + 1, TOP + 1))


def _is_unique_worth(unique_worth: int, worth: Codes) -> bool:
    """Return whether exactly one person has the guessed worth."""
    return int((worth == unique_worth).sum()) == 1
