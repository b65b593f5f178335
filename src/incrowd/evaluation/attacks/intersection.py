"""Two releases of one table, intersected (composition: what k-anonymity does not survive).

Each release shows classes of people and, with each class, the sensitive values of its rows. The
attacker knows a person's other columns. In either release the person's value is among those of
the classes that fit; so it is among those that both releases have in common. If only one value is
left, he says it.

**Claim.** If both releases hold every row, the value of a person in the table is always among those
left, so whatever is determined is right. Each release alone may leave k values or more.

**Claim.** Two safe releases are one release with composed epsilon and delta; so of a person in the
table he is right with chance at most e^epsilon p + delta, where p is his chance with a person who
is not (:func:`incrowd.papers.safe_steps.bound_attack_success`). The control measures p beside a
table of all n people instead of n - 1.

:func:`intersect_boxes` takes boxes, :func:`intersect_views` releases as they are seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from incrowd.arrays import Bools, Codes, Members, Places
from incrowd.codes.axis import ClassBounds
from incrowd.evaluation.attacks.inference import NOTHING, InferenceTargets, Secret
from incrowd.evaluation.attacks.view import AttackerView
from incrowd.findings import format_percent
from incrowd.measure.estimate import CONFIDENCE, Estimate, Rate

ATTACK = "intersection"


@dataclass(frozen=True, eq=False)
class SensitiveBoxes:
    """A release: the boxes of its classes, and which sensitive values (across) each class has."""

    low: Codes
    high: Codes
    held: Bools

    @classmethod
    def from_classes(
        cls, classes: ClassBounds, members: Members, sensitive: Codes, values: int
    ) -> SensitiveBoxes:
        """Return classes that are published with the sensitive values of their rows."""
        sensitive_values = np.zeros((len(classes.sizes), values), dtype=bool)
        sensitive_values[members, sensitive] = True
        return cls(classes.low, classes.high, sensitive_values)

    @classmethod
    def from_cells(cls, cells: ClassBounds, values: int) -> SensitiveBoxes:
        """Return cells whose last column is the sensitive one."""
        places = np.arange(values)
        last = (cells.low[:, -1:] <= places) & (places <= cells.high[:, -1:])
        return cls(cells.low[:, :-1], cells.high[:, :-1], last)

    def list_candidates(self, points: Codes) -> Bools:
        """Return the sensitive values (across) that each person (down) may have."""
        candidates = np.zeros((len(points), self.held.shape[1]), dtype=bool)
        for at, point in enumerate(points):
            fits = ((self.low <= point) & (point <= self.high)).all(axis=1)
            candidates[at] = self.held[fits].any(axis=0)
        return candidates


@dataclass(frozen=True, eq=False)
class KnownPeople:
    """Some people: what is known of them, and the sensitive value that is not."""

    points: Codes
    sensitive: Codes


def intersect_boxes(
    releases: Sequence[SensitiveBoxes],
    members: KnownPeople,
    others: KnownPeople,
    *,
    name: str,
    bound: float | None = None,
) -> Estimate:
    """Estimate for how many people the releases determine the sensitive value, rightly.

    ``members`` are people of the table, ``others`` people like them who are not in it. ``guess``
    says for everybody the value that is most common among the others. People of one class hang
    together; so that the intervals hold, take few people for each class.
    """
    common = np.bincount(others.sensitive).argmax()
    alone = [_rate_determined([release], members) for release in releases]
    return Estimate(
        attack=ATTACK,
        name=name,
        knows="every column except the sensitive one",
        success=_rate_determined(releases, members),
        guess=Rate.from_hits(int((members.sensitive == common).sum()), len(members.sensitive)),
        control=_rate_determined(releases, others),
        says="All releases together allow one sensitive value, and it is that of the person.",
        bound=bound,
        details={f"release {at} alone": rate.value for at, rate in enumerate(alone, start=1)},
    )


def _rate_determined(releases: Sequence[SensitiveBoxes], people: KnownPeople) -> Rate:
    """Return how often exactly one value is left, and is right."""
    left = np.logical_and.reduce([release.list_candidates(people.points) for release in releases])
    right = left[np.arange(len(left)), people.sensitive] & (left.sum(axis=1) == 1)
    return Rate.from_hits(int(right.sum()), len(right))


@dataclass(frozen=True, eq=False)
class ReleaseView:
    """One release by the columns that are known, its secret column, and people by these columns.

    The people, and those who are not in the table if there are any, are the same in every view.
    """

    seen: AttackerView
    secret: Secret
    members: InferenceTargets
    others: InferenceTargets | None = None

    def list_candidates(self, some: InferenceTargets) -> Bools:
        """Return the bins of the secret (across) that each person (down) may have.

        All of them where no row fits the person: then the release tells nothing of the person.
        """
        from scipy import sparse

        covered = self.secret.cover.shares > 0
        candidates = np.ones((len(some), covered.shape[1]), dtype=bool)
        for near in self.seen.find_nearest(some.people.points) if len(self.seen) else ():
            shape = (len(near.most), len(self.seen))
            chosen = sparse.csr_matrix((np.ones(len(near.place)), near.place, near.ends), shape)
            secret_values = np.asarray((chosen @ self.secret.held).todense()) > 0
            fits_fully = near.most == len(self.seen.names)
            candidates[near.part] = np.where(fits_fully[:, None], secret_values @ covered, True)
        return candidates


def intersect_views(views: Sequence[ReleaseView], *, confidence: float = CONFIDENCE) -> Estimate:
    """Estimate for how many people the releases together leave one value, the right one.

    What each release leaves alone is said beside it. Guessing says the most frequent value of the
    same people.
    """
    first = views[0]

    def guess_secrets(some: Sequence[InferenceTargets], through: Sequence[ReleaseView]) -> Places:
        allowed = [view.list_candidates(people) for view, people in zip(through, some, strict=True)]
        left = np.logical_and.reduce(allowed)
        return np.where(left.sum(axis=1) == 1, np.argmax(left, axis=1), NOTHING)

    members = [view.members for view in views]
    others = [view.others for view in views if view.others is not None]
    alone = [
        view.members.rate_answers(guess_secrets([view.members], [view]), confidence).value
        for view in views
    ]
    estimate = guess_secrets(members, views)
    common = np.where(estimate == NOTHING, NOTHING, int(np.argmax(first.secret.prior)))
    return Estimate(
        attack=ATTACK,
        name=f"{first.secret.name}, by {len(views)} releases",
        knows=f"{', '.join(dict.fromkeys(n for view in views for n in view.seen.names))} of each "
        "person",
        success=first.members.rate_answers(estimate, confidence),
        guess=first.members.rate_answers(common, confidence),
        control=others[0].rate_answers(guess_secrets(others, views), confidence)
        if len(others) == len(views)
        else None,
        says=f"All releases together allow one {first.secret.name}, and it is that of the person. "
        f"Each release alone: {', '.join(map(format_percent, alone))}.",
        details={f"release {at} alone": x for at, x in enumerate(alone, 1)},
    )
