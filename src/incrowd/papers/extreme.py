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
from incrowd.codes.axis import Axis, Boxes
from incrowd.measure.estimate import Estimate, Rate
from incrowd.papers.baselines import line

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
