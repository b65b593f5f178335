"""Attacks on synthetic rows and on the measured tables beside them.

- *linkage*: is the row of a person among the published ones? It may be, by chance: beside it stands
  how often the person's row is among those of a second draw from the same model.
- *join*: do two tables of the same people meet in a published row? Beside it, how often they meet
  in a row of the second draw.
- *singling out*: do a few values of a published row fit exactly one person? Beside it, how often
  they fit exactly one row of the second draw, in which nobody is.
- *inference*: is a sensitive value guessed better from the rows?
- *membership*: the strongest attacker there is, who knows everybody else and reads the measured
  tables.

Attacks on published groups do not apply, because no group of rows stands for a group of people.

**Membership.** Let the attacker know all rows but one, that of a person who is in the table or not.
A measurement of a query with noise of variance v, less the query of the others, is noise plus the
vector a by which the person's row moves it, or noise alone. The logarithm of the likelihood ratio
is (residual . a) / v - |a|^2 / (2 v), summed over all measurements; saying "in" where it is above
0 is the best test. (The noise is normal up to its rounding.) As many people of the table are tried
as made-up ones, whose values are each those of some person of the table: they know nothing of the
noise, as rows of the model would, which lie where noise was positive. Rows, model and choices are
functions of the measured tables, but for the choices, whose results the test leaves out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from incrowd.arrays import Codes, Counts, Floats
from incrowd.codes.axis import locate_points
from incrowd.codes.frequency import Frequencies, merge_tuples, number_tuples
from incrowd.errors import IncrowdError, check_choice, check_whole
from incrowd.evaluation.attacks import inference
from incrowd.evaluation.attacks.catalog import ATTACKS, NEEDS_SECRET, ON_SYNTHETIC_ROWS
from incrowd.evaluation.attacks.join import join_by_nearest
from incrowd.evaluation.attacks.membership import ATTACK as MEMBERSHIP
from incrowd.evaluation.attacks.membership import max_success_of_events
from incrowd.evaluation.attacks.scene import NO_SECRET, VALUES, AttackScene, make_scene
from incrowd.evaluation.attacks.singling_out import isolate_by_rows
from incrowd.evaluation.attacks.trial import add_bound
from incrowd.evaluation.attacks.view import People
from incrowd.measure.estimate import CONFIDENCE, AttackReport, Estimate, Rate
from incrowd.methods.synthetic.product import RowsProduct
from incrowd.release.product import MethodResult
from incrowd.release.synthetic_part import MeasuredNumbers, SyntheticProduct
from incrowd.release.value_column import ValueColumn

_TUPLES = 300_000  # of a table whose rows are matched with published ones
_PREDICATES, _COLUMNS = 300, 4  # of singling out, and columns of each
_NOTE = (
    "No published row is a person's: every row was drawn from a model. For linkage, join and "
    "singling out, guessing is the success with a second draw from that model, which contains "
    "nobody of the table. Attacks on published groups do not apply."
)


def attack_synthetic(
    outcome: MethodResult,
    *,
    tries: int,
    only: Sequence[str] = ATTACKS,
    secrets: Sequence[str] | None = None,
    control: Frequencies | None = None,
    confidence: float = CONFIDENCE,
    seed: int | None = 0,
) -> AttackReport:
    """Attack synthetic rows whose model is known.

    Args:
        outcome: the rows, with their table, their model and the measured tables.
        tries: the largest number of people to attack.
        only: the attacks to try.
        secrets: columns to infer; by default the sensitive ones and the target.
        control: people who are not in the table, by codes of level 0.
        confidence: the confidence of the intervals.
        seed: the seed of the choice of people.

    """
    for name in only:
        check_choice("attack", name, ATTACKS)
    number = int(check_whole("tries", tries))
    trial = _SyntheticTrial(
        outcome, number, secrets, control, confidence, np.random.default_rng(seed)
    )
    attacks = [name for name in ON_SYNTHETIC_ROWS if name in only]
    notes = [_NOTE]
    if not trial.is_small:
        attacks = [name for name in attacks if name in ("linkage", "membership")]
        notes.append(
            f"The table has more than {_TUPLES:,} distinct rows: join, singling out and inference "
            "were not run."
        )
    elif not trial.secrets and any(name in NEEDS_SECRET for name in attacks):
        notes.append(NO_SECRET)
    estimates = tuple(
        replace(estimate, bound=add_bound(estimate, trial.scene).bound)
        if trial.is_small
        else estimate
        for name in attacks
        for estimate in trial.run(name)
    )
    outside = 0 if trial.outside is None else len(trial.outside)
    return AttackReport(estimates, len(trial.people), outside, tuple(notes))


class _SyntheticTrial:
    """The attacks on one release of synthetic rows."""

    def __init__(
        self,
        outcome: MethodResult,
        tries: int,
        secrets: Sequence[str] | None,
        control: Frequencies | None,
        confidence: float,
        rng: np.random.Generator,
    ) -> None:
        (product,) = outcome.products
        assert isinstance(product, RowsProduct)
        again = product.second_rows
        assert again is not None
        assert outcome.synthetic is not None
        self._made, self._product, self._control = outcome, product, control
        self._synthetic: SyntheticProduct = outcome.synthetic
        self._confidence, self._rng, self._tries = confidence, rng, tries
        self._table, self._shown = product.original.frequencies, product.shown.frequencies
        if not self._table.total:
            raise IncrowdError("Original table: no rows to attack. Name a table with rows.")
        self._second = merge_tuples(again, np.ones(len(again), dtype=np.int64))
        self.secrets = self._choose_secrets(secrets)
        self.people = _draw(self._table, tries, rng)
        self.outside = None if control is None else _draw(control, tries, rng)

    def _choose_secrets(self, requested: Sequence[str] | None) -> tuple[str, ...]:
        """Return the columns named; else the target and the sensitive ones with few values."""
        names, columns = self._product.original.names, self._product.columns
        if requested is not None:
            return tuple(check_choice("secret", name, names) for name in requested)
        # Values of the table, as for other methods: a public domain may list thousands
        sizes = [len(np.unique(codes)) for codes in self._table.codes.T]
        secrets = tuple(
            name for name, size in zip(names, sizes, strict=True)
            if columns[name].role == "sensitive" or name == self._product.target
            if size <= VALUES
        )  # fmt: skip
        return secrets if len(secrets) < len(names) else ()

    @property
    def is_small(self) -> bool:
        """Whether rows can be matched with published ones in little time."""
        return len(self._table) <= _TUPLES and len(self._shown) <= _TUPLES

    @cached_property
    def scene(self) -> AttackScene:
        """The table and its rows, for attacks that match them."""
        promise = self._made.promise
        guarantee = None if promise.epsilon is None else (promise.epsilon, promise.delta or 0.0)
        return make_scene(
            self._product.original, self._product.shown, secrets=self.secrets,
            control=self._control, promise=guarantee, events=tuple(self._made.events),
        )  # fmt: skip

    @cached_property
    def _second_scene(self) -> AttackScene:
        """The same table with the rows of the second draw."""
        published = replace(self._product.shown, frequencies=self._second)
        return make_scene(self._product.original, published, secrets=self.secrets)

    def _locate(self, codes: Codes) -> People:
        return People(locate_points(self.scene.axes, codes))

    def run(self, name: str) -> Iterator[Estimate]:
        """Run one of the attacks."""
        attacks: dict[str, Callable[[], Iterator[Estimate]]] = {
            "linkage": self._link,
            "join": self._join,
            "singling-out": self._single_out,
            "inference": self._infer,
            "membership": self._find_members,
        }
        return attacks[name]()

    def _rate(self, people: Codes, table: Frequencies) -> Rate:
        return Rate.from_hits(_count_among(people, table), len(people), self._confidence)

    def _link(self) -> Iterator[Estimate]:
        yield Estimate(
            attack="linkage",
            name="a row equal to the person's",
            knows="every value of each person",
            success=self._rate(self.people, self._shown),
            guess=self._rate(self.people, self._second),
            control=None if self.outside is None else self._rate(self.outside, self._shown),
            says="A published row equals the row of the person in every column.",
        )

    def _join(self) -> Iterator[Estimate]:
        quasi = self.scene.quasi
        if len(quasi) < 2:
            return
        width = range(len(quasi))
        halves = width[::2], width[1::2]
        control = None if self.outside is None else self._locate(self.outside)
        first, second = (
            join_by_nearest(
                scene.release.select_columns(quasi)[0],
                halves,
                self._locate(self.people).select_columns(quasi),
                None if control is None else control.select_columns(quasi),
                rng=self._rng,
                confidence=self._confidence,
            )
            for scene in (self.scene, self._second_scene)
        )
        yield replace(first, guess=second.success)

    def _single_out(self) -> Iterator[Estimate]:
        scene = self.scene
        ordered = [len(axis.hierarchy.values) if axis.ordered else 0 for axis in scene.axes]
        again = Frequencies(locate_points(scene.axes, self._second.codes), self._second.counts)
        first, second = (
            isolate_by_rows(
                scene.release, table, None, columns=min(_COLUMNS, len(scene.axes)),
                tries=min(self._tries, _PREDICATES), rng=np.random.default_rng(1),
                ordered=ordered, confidence=self._confidence,
            )
            for table in (scene.everybody, again)
        )  # fmt: skip
        details = {**first.details, "random_condition": first.guess.value}
        yield replace(first, guess=second.success, details=details)

    def _infer(self) -> Iterator[Estimate]:
        outside = None if self.outside is None else self._locate(self.outside)
        for problem in inference.iterate_secrets(self.scene, self._locate(self.people), outside):
            yield inference.infer_by_rows(
                problem.view, problem.secret, problem.victims,
                control=problem.control, confidence=self._confidence,
            )  # fmt: skip

    def _find_members(self) -> Iterator[Estimate]:
        outside = self.outside
        yield find_members(
            self._synthetic.measured,
            self._synthetic.columns,
            self._table,
            self.people,
            _mix(self._table, self._tries, self._rng) if outside is None else outside,
            bound=max_success_of_events(self._made.events),
            confidence=self._confidence,
        )


def _draw(table: Frequencies, tries: int, rng: np.random.Generator) -> Codes:
    """Draw rows of a table at random."""
    rows = np.repeat(np.arange(len(table)), table.counts)
    chosen: Codes = table.codes[rng.choice(rows, min(tries, len(rows)), replace=False)]
    return chosen


def _mix(table: Frequencies, tries: int, rng: np.random.Generator) -> Codes:
    """Make up rows: each value is that of some row of a table."""
    rows = _draw(table, tries, rng)
    return np.column_stack([rng.permutation(column) for column in rows.T]).astype(np.int32)


def _count_among(people: Codes, table: Frequencies) -> int:
    both = number_tuples(np.concatenate([people, table.codes]).astype(np.int32))
    return int(np.isin(both[: len(people)], both[len(people) :]).sum())


# Membership -----------------------------------------------------------------------------------


def find_members(
    measured: Sequence[MeasuredNumbers],
    columns: Mapping[str, ValueColumn],
    table: Frequencies,
    inside: Codes,
    outside: Codes,
    *,
    bound: float | None,
    confidence: float = CONFIDENCE,
) -> Estimate:
    """Find out who is in a table from its measured tables, knowing everybody else.

    Args:
        measured: the measured tables.
        columns: the columns, in the order of the codes.
        table: the table, by the codes of its values.
        inside: rows that are in the table.
        outside: rows that are not taken to be in it.
        bound: the most that the guarantee allows.
        confidence: the confidence of the interval.

    """
    scores = _Scores(measured, columns, table)
    hits = int((scores.compute(inside, present=True) > 0).sum())
    hits += int((scores.compute(outside, present=False) <= 0).sum())
    return Estimate(
        attack=MEMBERSHIP,
        name="by the measured tables",
        knows="every row of the table but the person's, and every value of the person",
        success=Rate.from_hits(hits, len(inside) + len(outside), confidence),
        guess=Rate.from_value(0.5),
        says="The attacker says correctly whether the person is in the table.",
        bound=bound,
    )


class _Scores:
    """The logarithms of likelihood ratios; see the module's text."""

    def __init__(
        self,
        measured: Sequence[MeasuredNumbers],
        columns: Mapping[str, ValueColumn],
        table: Frequencies,
    ) -> None:
        self._names = list(columns)
        self._columns = columns
        self._tables = measured
        self._residuals = [self._residual(numbers, table) for numbers in measured]

    def compute(self, people: Codes, *, present: bool) -> Floats:
        """Return the score of each person, who is in the table or not."""
        scores = np.zeros(len(people))
        for first, residuals in zip(self._tables, self._residuals, strict=True):
            cells = self._cells(first, people)
            length = first.squared_length
            for residual, variance in zip(residuals, first.variances, strict=True):
                moved = residual.ravel()[cells] if first.columns else float(residual)
                shift = length if present else 0.0
                scores += (moved + shift) / variance - length / (2 * variance)
        return scores

    def _residual(self, measured: MeasuredNumbers, table: Frequencies) -> list[Floats]:
        """For each cell the product of the noise with the vector of a row in that cell."""
        cells = self._cells(measured, table.codes)
        counts = np.bincount(cells, table.counts, minlength=max(int(np.prod(measured.shape)), 1))
        query = _query(counts.reshape(measured.shape).astype(np.float64), measured.centered)
        return [_query(numbers - query, measured.centered) for numbers in measured.numbers]

    def _cells(self, measured: MeasuredNumbers, codes: Codes) -> Counts:
        if not measured.columns:
            return np.zeros(len(codes), dtype=np.int64)
        groups = [
            self._columns[name].list_groups(level)[codes[:, self._names.index(name)]]
            for name, level in zip(measured.columns, measured.levels, strict=True)
        ]
        return np.ravel_multi_index(groups, measured.shape).astype(np.int64)


def _query(table: Floats, axes: Sequence[int]) -> Floats:
    """Return a table times its size, less its sums, along some axes."""
    for axis in axes:
        table = table.shape[axis] * table - table.sum(axis=axis, keepdims=True)
    return table
