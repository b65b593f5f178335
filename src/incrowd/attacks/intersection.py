"""Two releases of one table, intersected (composition: what k-anonymity does not survive).

Each release shows classes of people and, with each class, the sensitive values of its rows. The
attacker knows a person's other columns. In either release the person's value is among those of
the classes that fit; so it is among those that both releases have in common. If only one value is
left, he says it.

**Claim.** If both releases hold every row, the value of a person in the table is always among those
left, so whatever is determined is right. Each release alone may leave k values or more.

**Claim.** Two safe releases are one release with composed epsilon and delta; so of a person in the
table he is right with chance at most e^epsilon p + delta, where p is his chance with a person who
is not (:func:`incrowd.attacks.scheme.most`). The control measures p beside a table of all n people
instead of n - 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from incrowd.arrays import Bools, Codes, Members
from incrowd.codes.axis import Boxes
from incrowd.measure.estimate import Estimate, Rate


@dataclass(frozen=True, eq=False)
class Listed:
    """A release: the boxes of its classes, and which sensitive values (across) each class has."""

    low: Codes
    high: Codes
    held: Bools

    @classmethod
    def of_classes(cls, found: Boxes, members: Members, sensitive: Codes, values: int) -> Listed:
        """Classes that are published with the sensitive values of their rows."""
        held = np.zeros((len(found.sizes), values), dtype=bool)
        held[members, sensitive] = True
        return cls(found.low, found.high, held)

    @classmethod
    def of_cells(cls, shown: Boxes, values: int) -> Listed:
        """Cells whose last column is the sensitive one."""
        places = np.arange(values)
        last = (shown.low[:, -1:] <= places) & (places <= shown.high[:, -1:])
        return cls(shown.low[:, :-1], shown.high[:, :-1], last)

    def candidates(self, points: Codes) -> Bools:
        """The sensitive values (across) that each person (down) may have."""
        found = np.zeros((len(points), self.held.shape[1]), dtype=bool)
        for at, point in enumerate(points):
            fits = ((self.low <= point) & (point <= self.high)).all(axis=1)
            found[at] = self.held[fits].any(axis=0)
        return found


@dataclass(frozen=True, eq=False)
class Targets:
    """Some people: what is known of them, and the sensitive value that is not."""

    points: Codes
    sensitive: Codes


def intersection(
    releases: Sequence[Listed],
    members: Targets,
    others: Targets,
    *,
    name: str,
    bound: float | None = None,
) -> Estimate:
    """For how many people the releases together determine the sensitive value, rightly.

    ``members`` are people of the table, ``others`` people like them who are not in it. ``guess``
    says for everybody the value that is most common among the others. People of one class hang
    together; so that the intervals hold, take few people for each class.
    """
    common = np.bincount(others.sensitive).argmax()
    alone = [_determined([release], members) for release in releases]
    return Estimate(
        attack="intersection",
        name=name,
        knows="every column but the sensitive one",
        success=_determined(releases, members),
        guess=Rate.of(int((members.sensitive == common).sum()), len(members.sensitive)),
        control=_determined(releases, others),
        says="Only one sensitive value is left that all releases allow, and it is the person's.",
        bound=bound,
        details={f"release {at} alone": rate.value for at, rate in enumerate(alone, start=1)},
    )


def _determined(releases: Sequence[Listed], people: Targets) -> Rate:
    """How often exactly one value is left, and is right."""
    left = np.logical_and.reduce([release.candidates(people.points) for release in releases])
    right = left[np.arange(len(left)), people.sensitive] & (left.sum(axis=1) == 1)
    return Rate.of(int(right.sum()), len(right))
