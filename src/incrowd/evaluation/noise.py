"""Noise and linking risk of a released table, held against its original.

With a column that names the same row in both tables, errors and links are those of the rows.
Without one the file still tells something: which values stand in which class. That is measured;
what the spec's noise would do is simulated beside it, and called so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from incrowd.arrays import Counts, Steps
from incrowd.codes.axis import Axis
from incrowd.codes.counted_table import COUNT, DistinctRows, PublishedTable
from incrowd.codes.frequency import number_tuples
from incrowd.codes.grid import Grid, build_grid
from incrowd.codes.values import canonicalize_value
from incrowd.engine.count import count_tuples_with_kept, make_value_coder, read_labels
from incrowd.engine.table import Table, TableError
from incrowd.errors import IncrowdError
from incrowd.findings import Finding, make_finding
from incrowd.measure.category_loss import CategoryLoss, measure_categories
from incrowd.measure.label_evaluation import assign_levels, locate_tuples
from incrowd.measure.linkage import linking_risk
from incrowd.measure.noise_loss import (
    ClassMatcher,
    NoiseEvaluation,
    NoiseLoss,
    NoiseSimulation,
    SimulatedLoss,
    compute_least_distance,
)
from incrowd.methods.k_anonymity.classes import form_classes
from incrowd.methods.k_epsilon.categories import encode_categories
from incrowd.methods.k_epsilon.loss import make_exact_mean, measure_column_noise, simulate_linking
from incrowd.methods.k_epsilon.method import KEpsilon
from incrowd.methods.k_epsilon.rows import make_noisy_rows
from incrowd.privacy.randomness import Randomness
from incrowd.spec.build import ColumnHierarchies
from incrowd.spec.file import SpecFile
from incrowd.spec.model import Column

_CELLS = 500_000_000  # so many comparisons of a class with a tuple are made
_FEWEST = 100  # but so many classes are looked at in any case


def simulate_noise(file: SpecFile, table: Table, *, bits: Randomness) -> NoiseSimulation:
    """Simulate what the spec's noise does to the table, over runs with fresh noise."""
    method = KEpsilon(file)
    release = method.release
    rows = method.count_tuples(table)
    classes = form_classes(
        rows, method.all_columns, release, bits=bits, folder=method.columns.folder
    )
    data = make_noisy_rows(rows, classes, method.noisy, release)
    everyone = np.ones(len(data.members), dtype=bool)
    columns = {}
    for column in data.columns:
        lost = measure_column_noise(column, data, column.add_noise(data.members, bits), everyone)
        columns[column.name] = SimulatedLoss(
            error=lost.measured_error or 0.0,
            expected_error=lost.expected_error or 0.0,
            classes_without_noise=lost.classes_without_noise or 0,
            mean_scale=lost.mean_scale or 0.0,
        )
    guessing = len(np.unique(data.members)) / max(len(data.members), 1)
    return NoiseSimulation(*simulate_linking(data, bits), columns=columns, guessing=guessing)


# Without knowing which row is whose ---------------------------------------------------------


def measure_file_noise(
    file: SpecFile, original: Table, released: Table, levels: Mapping[str, int] | None = None
) -> NoiseEvaluation:
    """Measure what a file tells by itself of the noise in it: by the values in each class.

    ``levels`` are those that quasi columns are known to be published at.
    """
    method = KEpsilon(file)
    names = [name for name in method.numbers if name in released.columns]
    file_noise = [
        make_finding("NOISY_COLUMN_MISSING", name) for name in method.numbers if name not in names
    ]
    rows = count_tuples_with_kept(
        original, ColumnHierarchies(method.columns.quasi, file.folder), names
    )
    weighted = COUNT in released.columns and COUNT not in file.spec.columns
    published = read_labels(released, (*method.columns.quasi, *names), weighted=weighted)
    quasi, _ = assign_levels(rows.counted, published, levels or {})
    table = _ClassComparison(rows, quasi, rows.counted.axes)
    columns = {}
    for at, name in enumerate(names):
        listed = [*rows.kept[name], *published.labels[len(method.columns.quasi) + at]]
        grid, steps = build_grid(
            name, listed, method.numbers[name].precision, method.numbers[name].bounds
        )
        empty = np.array([canonicalize_value(value) is None for value in listed], dtype=bool)
        original_count = len(rows.kept[name])
        values = (
            _ListedSteps(steps[:original_count], empty[:original_count]),
            _ListedSteps(steps[original_count:], empty[original_count:]),
        )
        columns[name], doubts = _compare_column(
            name, grid, table.count_nulls(at, values[1]), table.pair_values(at, *values)
        )
        file_noise += doubts
    return NoiseEvaluation(
        columns, None, None, None, tuple(file_noise),
        categories=_compare_categories(method, original, released),
    )  # fmt: skip


def _compare_categories(
    method: KEpsilon, original: Table, released: Table
) -> dict[str, CategoryLoss]:
    """Compare the shares of randomized categories; nobody knows which row is whose."""
    losses = {}
    for name, response in method.randomized.items():
        if name in released.columns:
            before, after = (
                _count_categories(table, name, method.noisy[name], len(response.values))
                for table in (original, released)
            )
            losses[name] = measure_categories(response.values, before, after, response.keep, None)
    return losses


def _count_categories(table: Table, name: str, column: Column, number: int) -> Counts:
    values = list(table.values(name))
    codes = encode_categories(name, column, values)
    frequencies = table.gather_columns([name]).count([name], {name: make_value_coder(values)})
    sums = np.bincount(codes[frequencies.codes[:, 0]], weights=frequencies.counts, minlength=number)
    return sums.astype(np.int64)


@dataclass(frozen=True, eq=False)
class _ListedSteps:
    """The distinct values of a noisy column: their steps, and which of them is null."""

    steps: Steps
    empty: npt.NDArray[np.bool_]


class _ClassComparison:
    """The rows of both tables by class: those released, and the original ones that fit."""

    def __init__(self, rows: DistinctRows, published: PublishedTable, axes: Sequence[Axis]) -> None:
        self._width = width = len(rows.counted.names)
        self._original, self._released = rows.frequencies, published.frequencies
        codes = self._released.codes[:, :width]
        quasi = PublishedTable(published.labels[:width], self._released, published.levels)
        points, _, covers = locate_tuples(rows.counted, axes, quasi)
        _, first, owner = np.unique(number_tuples(codes), return_index=True, return_inverse=True)
        self._fitting = ClassMatcher(np.column_stack(points), codes[first], covers)
        self._order = np.argsort(owner, kind="stable")
        self._ends = np.searchsorted(owner[self._order], np.arange(len(first) + 1))
        self._starts = np.searchsorted(rows.owner, np.arange(len(rows.counted.frequencies) + 1))
        self._classes = np.arange(len(first))
        most = max(_FEWEST, _CELLS // max(len(points[0]) * width, 1))
        if not self._fitting.is_indexed and len(first) > most:
            self._classes = np.random.default_rng(0).choice(len(first), most, replace=False)

    def count_nulls(self, at: int, released: _ListedSteps) -> int:
        """Count the released rows that have no value in a noisy column."""
        empty = released.empty[self._released.codes[:, self._width + at]]
        return int(self._released.counts[empty].sum())

    def pair_values(
        self, at: int, original: _ListedSteps, released: _ListedSteps
    ) -> Iterator[tuple[Steps, Steps]]:
        """Yield for each class the values of original rows that fit it, and the released ones."""
        before = self._original.codes[:, self._width + at]
        after = self._released.codes[:, self._width + at]
        original_counts = np.where(original.empty[before], 0, self._original.counts)
        counts = np.where(released.empty[after], 0, self._released.counts)
        for number in self._classes.tolist():
            tuples = self._fitting.find_tuples(number)
            inside = np.concatenate(
                [np.arange(self._starts[x], self._starts[x + 1]) for x in tuples.tolist()]
                or [np.zeros(0, dtype=np.int64)]
            )
            rows = self._order[self._ends[number] : self._ends[number + 1]]
            yield (
                np.repeat(original.steps[before[inside]], original_counts[inside]),
                np.repeat(released.steps[after[rows]], counts[rows]),
            )


def _compare_column(
    name: str, grid: Grid, nulls: int, pairs: Iterable[tuple[Steps, Steps]]
) -> tuple[NoiseLoss, list[Finding]]:
    """Compare a column by its classes; return what must be said aloud of it, too."""
    apart, rows, alike, strangers = 0.0, 0, 0, 0
    for original, released in pairs:
        if not len(original):
            strangers += len(released)
            continue
        least, among = compute_least_distance(original, released)
        apart += least
        rows += len(released)
        alike += len(released) if among else 0
    loss = NoiseLoss(
        measured_error=None,
        zeros=None,
        nulls=nulls,
        least_error=apart / rows * float(grid.step) if rows else None,
        rows_as_original=alike,
        rows_compared=rows,
    )
    noise_losses = []
    if rows and alike == rows:
        noise_losses.append(make_finding("TRUE_VALUES_PUBLISHED", name))
    elif alike:
        noise_losses.append(make_finding("TRUE_VALUES_IN_CLASSES", name, rows=alike, compared=rows))
    if strangers:
        noise_losses.append(make_finding("VALUES_NOT_COMPARED", name, values=strangers))
    return loss, noise_losses


# Knowing which row is whose -----------------------------------------------------------------


def relink_rows(file: SpecFile, original: Table, released: Table, identity: str) -> NoiseEvaluation:
    """Link the rows of a release that still names each person, in a column of both tables."""
    method = KEpsilon(file)
    for table, which in ((original, "original"), (released, "released")):
        missing = {identity, *method.numbers} - set(table.columns)
        if missing:
            raise TableError(
                f"Column '{sorted(missing)[0]}': not in the {which} table. Correct the table or "
                "the spec."
            )
    names = list(method.numbers)
    quasi = [name for name in method.columns.quasi if name in released.columns]
    before = _read_by_person(original, identity, names)
    after = _read_by_person(released, identity, [*quasi, *names])
    people = [person for person in after if person in before]
    if not people:
        raise IncrowdError(
            f"Column '{identity}': no value occurs in both tables. Name another column with --id."
        )
    labels = [tuple(after[person][: len(quasi)]) for person in people]
    places = {label: at for at, label in enumerate(dict.fromkeys(labels))}
    members = np.array([places[label] for label in labels])
    originals, published, losses, findings = [], [], {}, []
    usable = np.ones(len(people), dtype=bool)
    for at, name in enumerate(names):
        values = [before[person][at] for person in people]
        noisy = [after[person][len(quasi) + at] for person in people]
        _, steps = build_grid(
            name, [*values, *noisy], method.numbers[name].precision, method.numbers[name].bounds
        )
        first, other = steps[: len(people)], steps[len(people) :]
        pairs = zip(values, noisy, strict=True)
        there = np.array([x is not None and y is not None for x, y in pairs])
        usable &= there
        originals.append(first)
        published.append(other)
        is_comparable = there & (first != 0)
        error = np.abs(other[is_comparable] - first[is_comparable]) / np.abs(first[is_comparable])
        losses[name] = NoiseLoss(
            measured_error=float(error.mean()) if len(error) else 0.0,
            zeros=int((there & (first == 0)).sum()),
            nulls=int((~there).sum()),
            unchanged=int((there & (first == other)).sum()),
        )
        if there.any() and losses[name].unchanged == int(there.sum()):
            findings.append(make_finding("TRUE_VALUES_OF_PEOPLE", name))
    _, members = np.unique(members[usable], return_inverse=True)
    noise_evaluation = linking_risk(
        classes=members,
        originals=[x[usable] for x in originals],
        released=[x[usable] for x in published],
    )
    return NoiseEvaluation(
        losses,
        make_exact_mean(noise_evaluation.risk),
        make_exact_mean(noise_evaluation.shared),
        None,
        findings=tuple(findings),
    )


def _read_by_person(table: Table, identity: str, names: list[str]) -> dict[str, list[object]]:
    values_by_person: dict[str, list[object]] = {}
    for tally in table.iter_tallies([identity, *names]):
        for codes, count in zip(tally.codes.tolist(), tally.counts.tolist(), strict=True):
            person = canonicalize_value(tally.values[0][codes[0]])
            if person is None or person in values_by_person or count > 1:
                raise TableError(
                    f"Column '{identity}': {person!r} occurs twice, or a row has no value. Name a "
                    "column that identifies rows."
                )
            values_by_person[person] = [tally.values[at][code] for at, code in enumerate(codes)][1:]
    return values_by_person
