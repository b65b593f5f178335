"""Attacks on synthetic rows and on the measured tables beside them.

- *linkage*: is the row of a person among the published ones? It may be, by chance: beside it stands
  how often the person's row is among those of a second draw from the same model.
- *singling out*: do a few values of a published row fit exactly one person? Beside it, how often
  they fit exactly one row of a second draw, in which nobody is.
- *inference*: is a sensitive value guessed better from the rows?
- *membership*: the strongest attacker there is, who knows everybody else and reads the measured
  tables.

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

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from incrowd.arrays import Codes, Counts, Floats
from incrowd.codes.axis import locate_points
from incrowd.codes.frequency import Frequencies, merge_tuples, number_tuples
from incrowd.evaluation.attacks.membership import ATTACK as MEMBERSHIP
from incrowd.evaluation.attacks.membership import max_success_of_events
from incrowd.evaluation.attacks.scene import make_scene
from incrowd.evaluation.attacks.trial import run_attacks
from incrowd.measure.estimate import AttackReport, Estimate, Rate
from incrowd.release.product import MethodResult
from incrowd.release.synthetic_part import MeasuredNumbers
from incrowd.release.value_column import ValueColumn

_TUPLES = 300_000
_NOTE = (
    "Every row was drawn from a model, so that no row is a person's. Chance is a second draw from "
    "the same model, in which nobody of the table is."
)


def attack_synthetic(
    made: MethodResult, again: Codes, *, tries: int, seed: int = 0
) -> AttackReport:
    """Attack synthetic rows; ``again`` are the rows of a second draw from their model."""
    (product,) = made.products
    assert made.synthetic is not None
    rng = np.random.default_rng(seed)
    original, shown = product.original.frequencies, product.shown.frequencies
    other = merge_tuples(again, np.ones(len(again), dtype=np.int64))
    people = _draw(original, tries, rng)
    synthetic = [_link(people, shown, other)]
    notes = [_NOTE]
    if len(original) <= _TUPLES and len(shown) <= _TUPLES:
        synthetic += _single_out_and_infer(made, other, tries, rng)
    else:
        notes.append("The table is too large for attacks by singling out and inference.")
    synthetic.append(
        find_members(
            made.synthetic.measured, made.synthetic.columns, original, people,
            _mix(original, tries, rng), bound=max_success_of_events(made.events),
        )
    )  # fmt: skip
    return AttackReport(tuple(synthetic), len(people), 0, tuple(notes))


def _draw(table: Frequencies, tries: int, rng: np.random.Generator) -> Codes:
    """Rows of a table at random."""
    rows = np.repeat(np.arange(len(table)), table.counts)
    chosen: Codes = table.codes[rng.choice(rows, min(tries, len(rows)), replace=False)]
    return chosen


def _mix(table: Frequencies, tries: int, rng: np.random.Generator) -> Codes:
    """Made-up rows: each value is that of some row of a table."""
    rows = _draw(table, tries, rng)
    return np.column_stack([rng.permutation(column) for column in rows.T]).astype(np.int32)


def _link(people: Codes, shown: Frequencies, other: Frequencies) -> Estimate:
    return Estimate(
        attack="linkage",
        name="a row equal to the person's",
        knows="every value of each person",
        success=Rate.from_hits(_count_among(people, shown), len(people)),
        guess=Rate.from_hits(_count_among(people, other), len(people)),
        says="The row of the person is among the published ones.",
    )


def _count_among(people: Codes, table: Frequencies) -> int:
    both = number_tuples(np.concatenate([people, table.codes]).astype(np.int32))
    return int(np.isin(both[: len(people)], both[len(people) :]).sum())


def _single_out_and_infer(
    made: MethodResult, other: Frequencies, tries: int, rng: np.random.Generator
) -> list[Estimate]:
    (product,) = made.products
    original = product.original
    secrets = [
        name for name in original.names
        if product.columns[name].role == "sensitive" or name == product.target
    ]  # fmt: skip
    wanted = tuple(secrets) if len(secrets) < len(original.names) else ()
    scene = make_scene(original, product.shown, secrets=wanted, events=tuple(made.events))
    chance = replace(
        scene, everybody=Frequencies(locate_points(original.axes, other.codes), other.counts)
    )
    singled = [
        run_attacks(
            item, only=("singling-out",), tries=tries, rng=np.random.default_rng(1)
        ).estimates
        for item in (scene, chance)
    ]
    estimates = [
        replace(item, control=beside.success, details={**item.details, "control": "a second draw"})
        for item, beside in zip(*singled, strict=False)
    ]
    if wanted:
        inferred = run_attacks(scene, only=("inference",), tries=tries, rng=rng).estimates
        estimates += [item for item in inferred if "knowing everybody else" not in item.name]
    return estimates


# Membership -----------------------------------------------------------------------------------


def find_members(
    measured: Sequence[MeasuredNumbers],
    columns: Mapping[str, ValueColumn],
    table: Frequencies,
    inside: Codes,
    outside: Codes,
    *,
    bound: float | None,
) -> Estimate:
    """Tell who is in a table from its measured tables, knowing everybody else.

    Args:
        measured: the measured tables.
        columns: the columns, in the order of the codes.
        table: the table, by the codes of its values.
        inside: rows that are in the table.
        outside: rows that are not taken to be in it.
        bound: the most that the guarantee allows.

    """
    scores = _Scores(measured, columns, table)
    hits = int((scores.compute(inside, present=True) > 0).sum())
    hits += int((scores.compute(outside, present=False) <= 0).sum())
    return Estimate(
        attack=MEMBERSHIP,
        name="by the measured tables",
        knows="every row of the table but the person's, and every value of the person",
        success=Rate.from_hits(hits, len(inside) + len(outside)),
        guess=Rate.from_value(0.5),
        says="Whether the person is in the table is said rightly.",
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
        self._residuals = [self._residual(item, table) for item in measured]

    def compute(self, people: Codes, *, present: bool) -> Floats:
        """Return the score of each person, who is in the table or not."""
        result = np.zeros(len(people))
        for first, residuals in zip(self._tables, self._residuals, strict=True):
            cells = self._cells(first, people)
            length = first.squared_length
            for residual, variance in zip(residuals, first.variances, strict=True):
                moved = residual.ravel()[cells] if first.columns else float(residual)
                shift = length if present else 0.0
                result += (moved + shift) / variance - length / (2 * variance)
        return result

    def _residual(self, one: MeasuredNumbers, table: Frequencies) -> list[Floats]:
        """For each cell the product of the noise with the vector of a row in that cell."""
        cells = self._cells(one, table.codes)
        counts = np.bincount(cells, table.counts, minlength=max(int(np.prod(one.shape)), 1))
        query = _query(counts.reshape(one.shape).astype(np.float64), one.centered)
        return [_query(numbers - query, one.centered) for numbers in one.numbers]

    def _cells(self, one: MeasuredNumbers, codes: Codes) -> Counts:
        if not one.columns:
            return np.zeros(len(codes), dtype=np.int64)
        groups = [
            self._columns[name].list_groups(level)[codes[:, self._names.index(name)]]
            for name, level in zip(one.columns, one.levels, strict=True)
        ]
        return np.ravel_multi_index(groups, one.shape).astype(np.int64)


def _query(table: Floats, axes: Sequence[int]) -> Floats:
    """Return a table times its size, less its sums, along some axes."""
    for axis in axes:
        table = table.shape[axis] * table - table.sum(axis=axis, keepdims=True)
    return table
