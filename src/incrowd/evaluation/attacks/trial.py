"""One scene, every attack on it.

Each attack is made on people of the table, and, if there is a control group, on people who are not
in it: what works as well on those is not told by the release of anybody's row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from incrowd.codes.frequency import Frequencies, merge_tuples
from incrowd.errors import IncrowdError, ParameterError, check_choice, check_fraction, check_whole
from incrowd.evaluation.attacks import inference
from incrowd.evaluation.attacks.catalog import ATTACKS, BOUNDED_BY_CONTROL
from incrowd.evaluation.attacks.extreme import attack_interval_ends
from incrowd.evaluation.attacks.inference import InferenceProblem
from incrowd.evaluation.attacks.join import join_by_nearest
from incrowd.evaluation.attacks.linkage import attack_linkage, find_worst_columns
from incrowd.evaluation.attacks.membership import (
    MembershipTargets,
    attack_by_fit,
    attack_by_law,
    list_table_events,
    max_success_of_events,
    relies_on_sampling,
)
from incrowd.evaluation.attacks.scene import NO_SECRET, ROWS_UNKNOWN, AttackScene
from incrowd.evaluation.attacks.singling_out import isolate_by_classes, isolate_by_rows
from incrowd.evaluation.attacks.view import People, sample_people
from incrowd.measure.estimate import CONFIDENCE, AttackReport, Estimate
from incrowd.measure.labels import assign_bins
from incrowd.measure.utility import TablePair

_COLUMNS = 4  # that a predicate is about
_PREDICATES = 300
_LARGE = 0.5  # of the people of the table; a control group is then compared person by person
TRIES = 2000


def run_attacks(
    scene: AttackScene,
    *,
    knows: int | None = None,
    errors: float = 0.0,
    only: Sequence[str] = ATTACKS,
    tries: int = TRIES,
    confidence: float = CONFIDENCE,
    classifier: bool = False,
    rng: np.random.Generator,
) -> AttackReport:
    """Run each attack of ``only``, on at most ``tries`` people from each side of the scene."""
    for name in only:
        check_choice("attack", name, ATTACKS)
    if errors:
        check_fraction("errors", errors)
    number = int(check_whole("tries", tries))
    targets = sample_people(scene.everybody, number, rng)
    control = None if scene.control is None else sample_people(scene.control, number, rng)
    trial = _Trial(scene, targets, control, knows, errors, confidence, classifier, rng)
    if not len(targets):
        raise IncrowdError("Original table: no rows to attack. Name a table with rows.")
    result = [item for name in only for item in trial.try_attack(name)]
    notes = [item for item in result if isinstance(item, str)]
    if scene.control is not None and trial.is_control_small:
        notes.append(
            "The control group is smaller than half of the table: singling out and ends of "
            "intervals are compared with guessing only."
        )
    if not scene.whole:
        notes.append(
            f"The attacks used a random sample of {scene.everybody.total:,} rows; attacks that "
            "need all rows were not run."
        )
    if not scene.rows_known:
        notes.append(ROWS_UNKNOWN)
    if any(map(relies_on_sampling, scene.events)):
        notes.append(
            "The certified ε and δ protect membership in the population from which the table was "
            "sampled. These attacks are on people of the table: their bounds do not include the "
            "sampling and are larger."
        )
    if control is None:
        notes.append(
            "Without a control group, success is compared with guessing only. It includes what the "
            "release reveals about people in general, whether or not they are in the table."
        )
    estimates = tuple(add_bound(item, scene) for item in result if isinstance(item, Estimate))
    return AttackReport(estimates, len(targets), len(control or ()), tuple(notes))


def add_bound(one: Estimate, scene: AttackScene) -> Estimate:
    """Add the most that the promise allows.

    Claim: whatever counts as a success against a person, its chance is at most ``exp(epsilon)``
    times the chance without the person's row, plus delta: that is what differential privacy says of
    the event. Without their row the people of the table are like those of the control group. So it
    is said of attacks that are about one person who could as well be one of the control group
    (``BOUNDED_BY_CONTROL``), and where there is one.
    """
    if scene.promise is None or one.control is None or one.bound is not None:
        return one
    if one.attack not in BOUNDED_BY_CONTROL:
        return one
    epsilon, delta = scene.promise
    within = [part for event in scene.events for part in list_table_events(event)]
    if within:  # a promise may be about people of a population, from which the table was drawn
        from incrowd.privacy.accountant import Accountant

        epsilon = max(epsilon, Accountant(within).epsilon(delta=delta))
    return replace(one, bound=min(1.0, math.exp(epsilon) * one.control.high + delta))


@dataclass(frozen=True, eq=False)
class _Trial:
    """The attacks on one scene: each yields estimates, and words on what was not tried."""

    scene: AttackScene
    targets: People
    others: People | None
    knows: int | None
    errors: float
    confidence: float
    classifier: bool
    rng: np.random.Generator

    def try_attack(self, name: str) -> Iterator[Estimate | str]:
        """Run one of ``ATTACKS``: ``singling-out`` is the method ``try_singling_out``."""
        attack: Callable[[], Iterator[Estimate | str]] = getattr(
            self, f"try_{name.replace('-', '_')}"
        )
        return attack()

    def try_linkage(self) -> Iterator[Estimate | str]:
        """Link people, knowing all quasi columns, and those that help most."""
        quasi = self.scene.quasi
        view, _ = self.scene.release.select_columns(quasi)
        request = len(quasi) if self.knows is None else int(check_whole("knows", self.knows))
        if request > len(quasi):
            raise ParameterError(
                "knows", f"be at most {len(quasi)}, the number of quasi-identifiers", request
            )
        own = self.targets.select_columns(quasi)
        every = tuple(range(len(quasi)))
        choices = [(own, every)]
        if request < len(quasi):  # found on one half of the people, tried on the other
            half = len(own) // 2
            first, second = People(own.points[:half]), People(own.points[half:])
            choices.append((second, find_worst_columns(view, first, request, rng=self.rng)))
        everybody = None
        if self.scene.whole:
            rows = self.scene.everybody
            everybody = merge_tuples(rows.codes[:, list(quasi)], rows.counts)
        for some, known in choices:
            yield attack_linkage(
                view,
                some,
                known_columns=known,
                everybody=everybody,
                control=None if self.others is None else self.others.select_columns(quasi),
                errors=self.errors,
                private=bool(self.scene.events),
                rng=self.rng,
                confidence=self.confidence,
            )

    def try_join(self) -> Iterator[Estimate | str]:
        """Join two tables with every other quasi column each."""
        quasi = self.scene.quasi
        if len(quasi) < 2:
            yield "The join attack was skipped: it needs two quasi-identifiers."
            return
        width = range(len(quasi))
        yield join_by_nearest(
            self.scene.release.select_columns(quasi)[0],
            (width[::2], width[1::2]),
            self.targets.select_columns(quasi),
            None if self.others is None else self.others.select_columns(quasi),
            rng=self.rng,
            confidence=self.confidence,
        )

    def try_singling_out(self) -> Iterator[Estimate | str]:
        """Single people out by a few columns of a row, and by a class."""
        scene, tries = self.scene, min(len(self.targets), _PREDICATES)
        ordered = [len(axis.hierarchy.values) if axis.ordered else 0 for axis in scene.axes]
        tables = scene.release, scene.everybody, self._get_large_control()
        width = min(_COLUMNS, len(scene.axes))
        how: dict[str, Any] = {"tries": tries, "rng": self.rng, "confidence": self.confidence}
        yield isolate_by_rows(*tables, columns=width, ordered=ordered, **how)
        yield isolate_by_classes(*tables, **how)

    @property
    def is_control_small(self) -> bool:
        """Whether there are too few people outside to compare numbers of people."""
        return self._get_large_control() is None

    def _get_large_control(self) -> Frequencies | None:
        """Return the control, thinned like the table, if it has half of its people."""
        control = self.scene.control
        large = control is not None and control.total >= _LARGE * self.scene.everybody.total
        return control if large else None

    def try_inference(self) -> Iterator[Estimate | str]:
        """Infer every secret in turn, by all quasi columns."""
        scene = self.scene
        if not scene.secrets:
            yield NO_SECRET
        for problem in inference.iterate_secrets(scene, self.targets, self.others):
            asked = problem.view, problem.secret, problem.victims
            ways: dict[str, Any] = {"control": problem.control, "confidence": self.confidence}
            yield inference.infer_by_rows(*asked, **ways)
            yield inference.infer_by_homogeneity(*asked, **ways)
            if scene.rows_known and scene.whole:
                rows = scene.everybody
                everybody = merge_tuples(rows.codes[:, [*scene.quasi, problem.at]], rows.counts)
                knowing = inference.infer_by_background(*asked, everybody, **ways)
                if knowing is not None:
                    yield knowing
            if self.classifier and self.others is not None:
                yield self._infer_by_classifier(problem)
            elif self.classifier:
                yield "No classifier was trained: it needs a control group."

    def try_membership(self) -> Iterator[Estimate | str]:
        """Test membership by the law where it is known, and by rows that fit beside a control."""
        scene = self.scene
        if scene.cells is not None:
            number = len(self.targets)
            some = sample_people(scene.cells.table, number, self.rng).points
            own = np.arange(len(some))
            if scene.cells.control is not None:
                some = np.vstack(
                    [some, sample_people(scene.cells.control, number, self.rng).points]
                )
            every = MembershipTargets.from_tables(scene.cells.table, scene.cells.shown, some)
            outside = (
                every.select_targets(np.arange(len(own), len(some)))
                if len(some) > len(own)
                else None
            )
            try:
                yield attack_by_law(
                    scene.cells.law, every.select_targets(own), outside, rng=self.rng,
                    bound=max_success_of_events(scene.events), confidence=self.confidence,
                )  # fmt: skip
            except ParameterError:
                yield "The optimal membership test was skipped: the release is not of this table."
        if self.others is not None:
            yield attack_by_fit(
                scene.release.select_columns(scene.quasi)[0],
                self.targets.select_columns(scene.quasi),
                self.others.select_columns(scene.quasi),
                rng=self.rng,
                bound=max_success_of_events(scene.events, replaced=True),
                confidence=self.confidence,
            )
        elif scene.cells is None:
            yield "Membership was not tested: it needs a control group (or --shadows)."

    def try_extreme(self) -> Iterator[Estimate | str]:
        """Try the ends of intervals, where a column shows any."""
        scene, control = self.scene, self._get_large_control()
        if not scene.whole:
            return
        view = scene.release.select_columns(scene.quasi)[0]
        interval_ends = attack_interval_ends(
            view,
            merge_tuples(scene.everybody.codes[:, list(scene.quasi)], scene.everybody.counts),
            ordered=[at for at, axis in enumerate(scene.quasi) if scene.axes[axis].ordered],
            control=None
            if control is None
            else merge_tuples(control.codes[:, list(scene.quasi)], control.counts),
            tries=min(len(self.targets), 500),
            rng=self.rng,
            confidence=self.confidence,
        )
        if interval_ends is not None:
            yield interval_ends

    def _infer_by_classifier(self, problem: InferenceProblem) -> Estimate:
        """Infer by a classifier; the control group must be there."""
        scene, columns = self.scene, [*self.scene.quasi, problem.at]
        release = scene.release
        axes = [scene.axes[column] for column in columns]

        def bin_tuples(some: Frequencies) -> Frequencies:
            codes = [
                assign_bins(axis)[some.codes[:, c]] for axis, c in zip(axes, columns, strict=True)
            ]
            return merge_tuples(np.column_stack(codes).astype(np.int32), some.counts)

        assert scene.control is not None
        pair = TablePair(
            tuple(release.names[column] for column in columns),
            bin_tuples(scene.control),
            merge_tuples(release.codes[:, columns], release.counts),
            tuple(release.covers[column].shares for column in columns),
            tuple(axis.ordered for axis in axes),
        )
        tried = Frequencies(self.targets.points, np.ones(len(self.targets), dtype=np.int64))
        return inference.infer_by_classifier(
            problem.secret, problem.victims, bin_tuples(tried), pair, confidence=self.confidence
        )
