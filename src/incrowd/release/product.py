"""What a method hands over to be published: tables, what is promised of them, what to measure.

Nothing is measured while a table is made. All of it is measured here, afterwards and in one way,
for the curator alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np

from incrowd.arrays import Counts
from incrowd.codes.axis import Axis
from incrowd.codes.counted_table import CountedTable, PublishedTable, SuppressedCells
from incrowd.codes.frequency import Frequencies
from incrowd.codes.hierarchy import Hierarchy
from incrowd.codes.label_form import Form, find_axis_form, find_level_form, parse_number_labels
from incrowd.engine.table import Table
from incrowd.findings import Finding
from incrowd.measure.evaluation import Evaluation
from incrowd.measure.fineness import find_selection
from incrowd.measure.label_evaluation import Covered, evaluate_labels, locate_tuples
from incrowd.measure.lost_values import KeptRows
from incrowd.measure.outcome import evaluate_outcome
from incrowd.measure.payout import PayoutModel
from incrowd.measure.slices import compare_slices
from incrowd.privacy.events import Event
from incrowd.release.certificate import CertifiedGuarantee, CertifiedResponse, NoisyColumn
from incrowd.release.household_links import HouseholdLinks
from incrowd.release.layout import Layout
from incrowd.release.parameters import has_free_labels
from incrowd.spec.build import is_open
from incrowd.spec.model import Column

if TYPE_CHECKING:
    from incrowd.measure.noise_loss import NoiseEvaluation
    from incrowd.measure.outcome import SearchResult, SuppressionResult
    from incrowd.release.shares_part import ShareTable
    from incrowd.release.synthetic_part import SyntheticProduct
    from incrowd.release.tables_part import TabulationProduct

Parameters: TypeAlias = dict[str, float | str]


@dataclass(frozen=True, eq=False)
class ColumnRecoding:
    """How one column was generalized: to a level, or locally (then whether it is ordered).

    Labels that are ``is_free`` may be sets of values.
    """

    column: Column
    hierarchy: Hierarchy
    level: int | None
    ordered: bool | None = None
    is_free: bool = False

    @cached_property
    def form(self) -> Form:
        """The form of its labels, by its rule or by its listed values."""
        if is_open(self.column):
            assert self.column.hierarchy is not None
            return "text" if self.column.hierarchy.mask is None else "masked"
        if self.level is None:
            axis = Axis(self.hierarchy, bool(self.ordered))
            return find_axis_form(axis, is_free=self.is_free)
        return find_level_form(self.hierarchy, self.level)


@dataclass(frozen=True, eq=False)
class RemoteCells:
    """What is known of cells that were drawn on other machines and are not among ``original``.

    ``rest`` sums them up, ``some`` are cells of the whole table to measure on, and ``target`` has
    the rows of each label of the target, if there is one.
    """

    rest: SuppressedCells
    some: CountedTable
    target: Frequencies | None


@dataclass(frozen=True, eq=False)
class Product:
    """One table: its rows, the tuples that they were made from, and how they look to a reader.

    ``shown`` has the generalized columns alone; ``stars`` more rows show nothing in any of them.
    A safe release by levels names the ``crowd`` that survives as often as not, and the ``target``
    if it has one; one with noisy columns says how its ``noise`` is measured. Where cells were drawn
    elsewhere, ``original`` has those that are shown, and ``apart`` tells of the others.
    Where a scheme was searched for among all, ``search`` tells how good it is, and where single
    cells were suppressed, ``suppression`` how few; ``beside`` are both
    tables with the columns that are kept as they are. ``payout`` says what records pay.
    ``findings`` are those of the method itself; ``file_name`` is that of the file, where it is not
    the usual one.
    """

    data: Table
    original: CountedTable
    shown: PublishedTable
    columns: Mapping[str, Column]
    axes: tuple[Axis, ...]
    parameters: Parameters
    stars: int = 0
    kept: tuple[str, ...] = ()
    noisy: dict[str, NoisyColumn] = field(default_factory=dict)
    randomized: dict[str, CertifiedResponse] = field(default_factory=dict)
    crowd: float | None = None
    target: str | None = None
    noise: Callable[[], NoiseEvaluation] | None = None
    search: SearchResult | None = None
    suppression: SuppressionResult | None = None
    findings: tuple[Finding, ...] = ()
    apart: RemoteCells | None = None
    beside: KeptRows | None = None
    payout: PayoutModel | None = None
    file_name: str | None = None

    @property
    def rows(self) -> int:
        """How many rows are published."""
        return self.shown.frequencies.total + self.stars

    @property
    def classes(self) -> int:
        """How many classes of rows that look alike there are."""
        return len(self.shown.frequencies)

    @property
    def smallest_class(self) -> int:
        """How many rows the smallest class has; 0 where there is none."""
        return int(self.shown.frequencies.counts.min()) if self.classes else 0

    @cached_property
    def numbers(self) -> dict[str, dict[str, int | float]]:
        """For the columns that show nothing but numbers: the number of each label shown."""
        label_numbers = {}
        for at, (name, recoded) in enumerate(self.scheme.items()):
            if recoded.form != "numbers" or self.stars:
                continue
            used = np.unique(self.shown.frequencies.codes[:, at]).tolist()
            labels = [self.shown.labels[at][code] for code in used]
            plain = parse_number_labels(labels, recoded.hierarchy.labels[recoded.level or 0][:-2])
            if plain is not None:
                pairs = zip(labels, plain, strict=True)
                label_numbers[name] = {
                    text: x for text, x in pairs if text is not None and x is not None
                }
        return label_numbers

    @cached_property
    def table(self) -> Table:
        """The rows with numbers as numbers, where a column shows nothing else."""
        return self.data.convert_labels(self.numbers) if self.numbers else self.data

    @cached_property
    def scheme(self) -> dict[str, ColumnRecoding]:
        """How each column was generalized."""
        levels = self.shown.levels or (None,) * len(self.axes)
        return {
            name: ColumnRecoding(
                self.columns[name],
                hierarchy,
                level,
                axis.ordered if level is None else None,
                has_free_labels(self.parameters),
            )
            for name, hierarchy, level, axis in zip(
                self.original.names, self.original.hierarchies, levels, self.axes, strict=True
            )
        }

    @cached_property
    def _label_coverage(self) -> Covered:
        """What the labels of the table cover."""
        return locate_tuples(self.original, self.axes, self.shown)

    def measure(self) -> Evaluation:
        """Measure what the table keeps, loses and risks."""
        if self.crowd is not None:
            frequencies = self.shown.frequencies
            if self.apart is None:
                return evaluate_outcome(
                    self.original, frequencies, crowd=self.crowd, target=self.target,
                    noise=self.shown.noise,
                )  # fmt: skip
            return evaluate_outcome(
                self.original, frequencies, crowd=self.crowd, target=self.target,
                noise=self.shown.noise, remote_cells=self.apart.rest, before=self.apart.target,
            )  # fmt: skip
        evaluation = evaluate_labels(
            self.original, self.axes, self.shown,
            stars=False, covered=self._label_coverage, kept_rows=self.beside,
            payout=self.payout,
        )  # fmt: skip
        noise = None if self.noise is None else self.noise()
        return replace(evaluation, search=self.search, suppression=self.suppression, noise=noise)

    def list_findings(self, evaluation: Evaluation) -> tuple[Finding, ...]:
        """Return what the curator should know of the table, having measured it."""
        local: tuple[Finding, ...] = ()
        if self.shown.is_local:
            points, _, covers = self._label_coverage
            local = find_selection(self.original, self.shown, points, covers)
        stopped = () if self.search is None else self.search.findings()
        return (
            *self.findings,
            *stopped,
            *local,
            *(evaluation.noise.findings if evaluation.noise else ()),
        )


class TrueCounts(Protocol):
    """The private table of tables of counts, for the curator's figures alone."""

    @property
    def excluded(self) -> int | None:
        """The number of rows that no table counts; None if it is not known."""
        ...

    def __call__(self, quantity: int, columns: tuple[int, ...], levels: tuple[int, ...]) -> Counts:
        """Return a dense table with an axis for each column, ascending."""
        ...


@dataclass(frozen=True, eq=False)
class MethodResult:
    """All that a method has made: one table or slices, and what holds for them together.

    ``events`` are what it spends, ``promise`` what it guarantees; ``shares`` are the columns that
    are counted beside the tables; ``original`` are the tuples of all columns. ``layout`` names what
    several tables are, if they are no slices, ``links`` what keys link. ``reasons`` tell why a
    scheme was used; they depend on no data. ``synthetic`` is what is published beside synthetic
    rows. Tables of counts have no products: ``tabulation`` is all that is published of them, and
    ``true_counts`` counts the cells of the private table.
    """

    products: tuple[Product, ...]
    promise: CertifiedGuarantee
    events: list[Event]
    original: CountedTable
    parameters: Parameters = field(default_factory=dict)
    reasons: tuple[str, ...] = ()
    synthetic: SyntheticProduct | None = None
    tabulation: TabulationProduct | None = None
    true_counts: TrueCounts | None = None
    layout: Layout | None = None
    links: HouseholdLinks | None = None
    shares: tuple[ShareTable, ...] = ()

    @property
    def tables(self) -> tuple[Table, ...]:
        """The released tables."""
        if self.tabulation is not None:
            return self.tabulation.tables
        return tuple(product.table for product in self.products)

    def measure(self) -> tuple[Evaluation, tuple[Finding, ...]]:
        """Measure what the tables keep, lose and risk; and what the curator should know, once."""
        evaluations = [product.measure() for product in self.products]
        all_findings = (
            finding
            for product, evaluation in zip(self.products, evaluations, strict=True)
            for finding in product.list_findings(evaluation)
        )
        findings = tuple(dict.fromkeys(all_findings))
        if len(evaluations) == 1:
            return evaluations[0], findings
        parts = [(product.original.names, product.shown) for product in self.products]
        return compare_slices(self.original, parts, evaluations), findings
