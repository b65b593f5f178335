"""Inference: what a release tells of a value that the attacker does not know.

The attacker knows some columns of a person and wants another, the secret. A release that shows
how people are tells something of everybody, in the table or not: that is what it is made for. So
success counts by what it exceeds the same attack on people who are not in the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from incrowd.arrays import Bools, Codes, Floats, Places
from incrowd.codes.frequency import Frequencies
from incrowd.evaluation.attacks.scene import AttackScene
from incrowd.evaluation.attacks.view import AttackerView, NearestClasses, People
from incrowd.findings import format_percent
from incrowd.measure.estimate import CONFIDENCE, Estimate, Rate
from incrowd.measure.labels import LabelCover, assign_bins
from incrowd.measure.prediction import compute_accuracy
from incrowd.measure.risk import find_label
from incrowd.measure.utility import TablePair

if TYPE_CHECKING:
    from scipy import sparse

ATTACK = "inference"
NOTHING = -1  # what is said of a person of whom nothing is said
_Decided: TypeAlias = Callable[[NearestClasses, Floats], Bools]


@dataclass(frozen=True, eq=False)
class Secret:
    """A column to be found out, of a release that is seen by other columns.

    ``held[c, l]`` rows of class c show label l of it, and ``cover`` says what the labels cover.
    What is said of a person is a bin of values, and right if it is that of the person's value.
    """

    name: str
    held: sparse.csr_matrix
    cover: LabelCover

    @property
    def prior(self) -> Floats:
        """The share of the rows expected in each bin."""
        rows = np.asarray(self.held.sum(axis=0)).ravel() @ self.cover.shares
        return np.asarray(rows / max(float(rows.sum()), 1.0), dtype=np.float64)

    def choose_bins(self, rows: Floats, decided: Bools) -> Places:
        """Return the likeliest bin by rows of each label (across); of equals the most frequent."""
        weights = rows @ self.cover.shares + self.prior * 1e-6
        return np.where(decided, np.argmax(weights, axis=1), NOTHING)


@dataclass(frozen=True, eq=False)
class InferenceTargets:
    """People by the columns that the attacker knows, and where their secrets lie, by bin, too."""

    people: People
    places: Codes
    truth: Places

    def __len__(self) -> int:
        return len(self.truth)

    def rate_answers(self, result: Places, confidence: float) -> Rate:
        """Return how often it is right."""
        return Rate.from_hits(int((result == self.truth).sum()), len(self), confidence)


def split_secret(seen: AttackerView, known: Sequence[int], at: int) -> tuple[AttackerView, Secret]:
    """Return a release seen by the columns ``known``, and another column of it as a secret."""
    from scipy import sparse  # slow to load, and only secrets need it

    part, becomes = seen.select_columns(known)
    shape = (len(part), len(seen.covers[at].labels))
    held = sparse.csr_matrix((seen.counts, (becomes, seen.codes[:, at])), shape=shape)
    return part, Secret(seen.names[at], held, seen.covers[at])


def make_targets(people: People, known: Sequence[int], at: int, bins: Places) -> InferenceTargets:
    """Return people by the columns ``known``, with another column as their secret."""
    places = people.points[:, at]
    return InferenceTargets(people.select_columns(known), places, bins[places])


def guess_mode(secret: Secret, victims: InferenceTargets, confidence: float) -> Rate:
    """Rate saying the most frequent value of everybody, the usual baseline of a secret."""
    mode = np.full(len(victims), int(np.argmax(secret.prior)))
    return victims.rate_answers(mode, confidence)


@dataclass(frozen=True, eq=False)
class InferenceProblem:
    """One secret of a scene, in column ``at``: the release without it, the secret, and people."""

    at: int
    view: AttackerView
    secret: Secret
    victims: InferenceTargets
    control: InferenceTargets | None


def iterate_secrets(
    scene: AttackScene, targets: People, control: People | None
) -> Iterator[InferenceProblem]:
    """Yield every secret in turn, with the targets and the control group who have it."""
    for at in scene.secrets:
        bins = assign_bins(scene.axes[at])
        view, secret = split_secret(scene.release, scene.quasi, at)
        victims = make_targets(targets, scene.quasi, at, bins)
        others = None if control is None else make_targets(control, scene.quasi, at, bins)
        yield InferenceProblem(at, view, secret, victims, others)


def infer_by_rows(
    seen: AttackerView,
    secret: Secret,
    victims: InferenceTargets,
    *,
    control: InferenceTargets | None = None,
    confidence: float = CONFIDENCE,
) -> Estimate:
    """Say of each person what most of the rows show that fit best."""

    def guess_secrets(some: InferenceTargets) -> Places:
        return _infer_by_nearest(seen, secret, some, lambda _near, rows: rows.sum(axis=1) > 0)

    return Estimate(
        attack=ATTACK,
        name=f"{secret.name}, by matching rows",
        knows=f"{', '.join(seen.names)} of each person",
        success=victims.rate_answers(guess_secrets(victims), confidence),
        guess=guess_mode(secret, victims, confidence),
        control=None
        if control is None
        else control.rate_answers(guess_secrets(control), confidence),
        says=f"The most frequent {secret.name} of the best matching rows is the person's.",
    )


def infer_by_homogeneity(
    seen: AttackerView,
    secret: Secret,
    victims: InferenceTargets,
    *,
    control: InferenceTargets | None = None,
    confidence: float = CONFIDENCE,
) -> Estimate:
    """Say something only of people all of whose rows show one and the same value.

    Success is the share of all people of whom it is said and right. Guessing says the most frequent
    value of the same people.
    """
    single = np.count_nonzero(secret.cover.shares, axis=1) == 1

    def certain(near: NearestClasses, rows: Floats) -> Bools:
        whole = near.most == len(seen.names)
        values = np.count_nonzero(rows, axis=1) == 1
        return np.asarray(whole & values & single[np.argmax(rows, axis=1)])

    def guess_secrets(some: InferenceTargets) -> Places:
        return _infer_by_nearest(seen, secret, some, certain)

    estimate = guess_secrets(victims)
    mode = np.where(estimate == NOTHING, NOTHING, int(np.argmax(secret.prior)))
    share = float((estimate != NOTHING).mean()) if len(estimate) else 0.0
    return Estimate(
        attack=ATTACK,
        name=f"{secret.name}, by homogeneous classes",
        knows=f"{', '.join(seen.names)} of each person",
        success=victims.rate_answers(estimate, confidence),
        guess=victims.rate_answers(mode, confidence),
        control=None
        if control is None
        else control.rate_answers(guess_secrets(control), confidence),
        says=f"All matching rows have one {secret.name}, as for {format_percent(share)} of the "
        "people, and it is the person's.",
        details={"certain": share},
    )


def infer_by_background(
    seen: AttackerView,
    secret: Secret,
    victims: InferenceTargets,
    everybody: Frequencies,
    *,
    control: InferenceTargets | None = None,
    confidence: float = CONFIDENCE,
) -> Estimate | None:
    """Take everybody else whom one knows out of a class, and weigh what is left.

    The attacker knows the whole table but for the person: ``everybody`` by positions, the secret
    last. The others have ``o`` rows of a label in the class, and it shows ``z``. With the person's
    row the label is expected to show ``d`` more than ``d * o``, d the chance to be drawn; so with a
    spread s**2 of draws and noise the evidence for the label is ``(d * (z - d * o) - d**2 / 2) /
    s**2``, the logarithm of a ratio of normal likelihoods, added to that of how frequent the label
    is among the others. Without draws and noise s vanishes, and the class tells the label for
    certain; d is no more than the share of the others' rows that the class shows. A label that is
    not shown of a release with draws or noise is no evidence. Where the class is not shown the most
    frequent value is said; where labels overlap, so that nobody can say which class others are in,
    the whole release is taken as one class. None if labels of the secret overlap.
    """
    from scipy import sparse

    labels = find_label(secret.cover, everybody.codes[:, -1])
    apart = seen.find_class(victims.people.points) is not None
    if labels is None or not len(seen):
        return None
    home = _find_homes(seen, everybody.codes[:, :-1], apart=apart)
    inside = (home >= 0) & (labels >= 0)
    shape = (len(seen) if apart else 1, secret.held.shape[1])
    known = sparse.csr_matrix(
        (everybody.counts[inside], (home[inside], labels[inside])), shape=shape
    )
    held = secret.held if apart else sparse.csr_matrix(secret.held.sum(axis=0))

    def guess_secrets(some: InferenceTargets, *, present: bool) -> Places:
        at = _find_homes(seen, some.people.points, apart=apart)
        shown, others = (_select_rows(part, np.maximum(at, 0)) for part in (held, known))
        if present:  # the person is one of everybody, whom the attacker does not count
            others -= _mark_labels(secret, some.places)
        chance = _compute_chance(seen, shown.sum(axis=1), others.sum(axis=1))[:, None]
        spread = chance * (1 - chance) * others + seen.noise
        evidence = (chance * (shown - chance * others) - chance**2 / 2) / np.maximum(spread, 1e-6)
        blurred = (chance < 1) | (seen.noise > 0)
        evidence = np.where((shown > 0) | ~blurred, evidence, 0.0)
        score = evidence + np.log(np.maximum(others, 0) + 0.5)
        best = secret.cover.shares[np.argmax(score, axis=1)] + secret.prior * 1e-6
        return np.where(at >= 0, np.argmax(best, axis=1), int(np.argmax(secret.prior)))

    return Estimate(
        attack=ATTACK,
        name=f"{secret.name}, knowing all other rows",
        knows=f"every row of the table but the person's, and {', '.join(seen.names)} of the person",
        success=victims.rate_answers(guess_secrets(victims, present=True), confidence),
        guess=guess_mode(secret, victims, confidence),
        control=None
        if control is None
        else control.rate_answers(guess_secrets(control, present=False), confidence),
        says=f"Removing the known rows from the class leaves the person's {secret.name}.",
    )


def infer_by_classifier(
    secret: Secret,
    victims: InferenceTargets,
    tried: Frequencies,
    pair: TablePair,
    *,
    confidence: float = CONFIDENCE,
) -> Estimate:
    """Let a classifier learn from the release.

    ``pair`` has the control group as its original, and the release, over the known columns and the
    secret; ``tried`` are the people attacked, by bins. The control is the same classifier, tried on
    the control group: what it knows better of the people attacked, it knows because they are in the
    release. What a classifier knows of them that learned from the control group is said beside it.
    """
    accuracy = compute_accuracy(pair, target=secret.name, held_out=tried)
    outside = compute_accuracy(pair, target=secret.name, held_out=pair.original)

    def rate(share: float, people: Frequencies) -> Rate:
        return Rate.from_hits(round(share * people.total), people.total, confidence)

    return Estimate(
        attack=ATTACK,
        name=f"{secret.name}, by a classifier",
        knows=f"{', '.join(n for n in pair.names if n != secret.name)} of each person",
        success=rate(accuracy.released, tried),
        guess=guess_mode(secret, victims, confidence),
        control=rate(outside.released, pair.original),
        says=f"A classifier trained on the release predicts the person's {secret.name}. Trained on "
        f"people outside the table, it predicts {format_percent(accuracy.original)}.",
        details={"trained_on_control": accuracy.original},
    )


def _infer_by_nearest(
    seen: AttackerView, secret: Secret, some: InferenceTargets, decided: _Decided
) -> Places:
    """Return what is said of each person by the rows that fit best."""
    from scipy import sparse

    result = np.full(len(some), NOTHING)
    if not len(seen):
        return result
    for near in seen.find_nearest(some.people.points):
        chosen = sparse.csr_matrix(
            (np.ones(len(near.place)), near.place, near.ends), shape=(len(near.most), len(seen))
        )
        rows = np.asarray((chosen @ secret.held).todense(), dtype=np.float64)
        result[near.part] = secret.choose_bins(rows, decided(near, rows))
    return result


def _find_homes(seen: AttackerView, points: Codes, *, apart: bool) -> Places:
    """Return the class that each person stands in, -1 if none; one for all if labels overlap."""
    homes = seen.find_class(points) if apart else None
    return np.zeros(len(points), dtype=np.int64) if homes is None else homes


def _compute_chance(seen: AttackerView, shown: Floats, others: Floats) -> Floats:
    """Return the chance that a row of a class is shown: as drawn, or less if rows are missing."""
    if seen.noise:
        return np.full(len(shown), seen.drawn)
    return np.minimum(seen.drawn, shown / np.maximum(others, 1))


def _select_rows(table: sparse.csr_matrix, places: Places) -> Floats:
    return np.asarray(table[places].todense(), dtype=np.float64)


def _mark_labels(secret: Secret, places: Codes) -> Floats:
    """Return for each person a row with 1 at the label that shows the secret."""
    labels = find_label(secret.cover, places)
    assert labels is not None
    rows = np.zeros((len(places), secret.held.shape[1]))
    shown = labels >= 0
    rows[np.flatnonzero(shown), labels[shown]] = 1.0
    return rows
