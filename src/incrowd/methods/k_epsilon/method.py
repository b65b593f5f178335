"""A (k,epsilon)-anonymous release: classes of quasi columns, noise on others inside each class."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt

from incrowd.arrays import Bools, Codes, Places, Steps
from incrowd.codes.counted_table import CountedTable, DistinctRows, PublishedTable
from incrowd.codes.frequency import merge_tuples, pack_columns
from incrowd.codes.grid import Grid
from incrowd.engine.count import count_tuples_with_kept
from incrowd.engine.table import Engine, Table
from incrowd.errors import IncrowdError
from incrowd.findings import Finding
from incrowd.measure.lost_values import KeptRows
from incrowd.measure.noise_loss import NoiseEvaluation
from incrowd.measure.outcome import SearchResult
from incrowd.methods.base import (
    MakeContext,
    PlannedRelease,
    get_unit_fields,
    published_columns,
    sort_labels,
)
from incrowd.methods.k_anonymity.classes import EquivalenceClasses, KAnonymityColumns, form_classes
from incrowd.methods.k_anonymity.method import RemoteRows, count_remote_rows, lookup_class_codes
from incrowd.methods.k_epsilon.categories import (
    RandomizedColumn,
    choose_keep_rates,
    list_categories,
    make_randomized_columns,
)
from incrowd.methods.k_epsilon.loss import compute_expected_error, measure_noise
from incrowd.methods.k_epsilon.remote_noise import NoisePart, NoiseTask, merge_grids, merge_noise
from incrowd.methods.k_epsilon.rows import NoisyRows, make_noisy_rows
from incrowd.privacy.amplification import Guarantee
from incrowd.privacy.events import Event
from incrowd.privacy.randomness import Randomness
from incrowd.release.certificate import CertifiedGuarantee, CertifiedResponse, NoisyColumn
from incrowd.release.product import MethodResult, Product
from incrowd.spec.file import SpecFile
from incrowd.spec.model import Column
from incrowd.spec.release import KEpsilonSpec


class KEpsilon:
    """k-anonymity of the quasi columns, and noise on the noisy ones, as wide as each class."""

    def __init__(self, file: SpecFile) -> None:
        assert isinstance(file.spec.release, KEpsilonSpec)
        self.columns = KAnonymityColumns(file, file.spec.release)
        algorithm = self.columns.release.algorithm
        self.release = file.spec.release.model_copy(update={"algorithm": algorithm})
        self.noisy = published_columns(file.spec, "noisy")
        self._order = tuple(file.spec.columns)
        self.events: list[Event] = []
        self.joint_guarantee: Guarantee | None = None
        self.promise = CertifiedGuarantee(kind="(k, ε)-anonymity", **get_unit_fields(file.spec))
        _refuse_conflicts(self.release, self.noisy)

    @property
    def planned_release(self) -> PlannedRelease:
        """Classes of at least k."""
        return self.columns.planned_release

    def count(self, table: Table, *, by_row: bool = False) -> DistinctRows | RemoteRows:
        """Count the tuples of all columns; of rows elsewhere, those that decide classes."""
        remote_rows = count_remote_rows(table, self.columns, by_row=by_row)
        if remote_rows is not None and self.randomized:
            raise IncrowdError(
                f"Column '{next(iter(self.randomized))}': randomized response needs all rows, and "
                "those of this table are on other machines. Drop the column."
            )
        return remote_rows or self.columns.count_people(
            self.count_tuples(table), table, by_row=by_row
        )

    def count_tuples(self, table: Table) -> DistinctRows:
        """Count the tuples of generalized, kept and noisy columns, here."""
        return count_tuples_with_kept(
            table, self.columns.declared, (*self.columns.kept, *self.noisy)
        )

    def expect_errors(self, rows: DistinctRows, bits: Randomness) -> dict[str, float]:
        """Return the mean relative error to expect of each noisy column; no noise is drawn."""
        classes = form_classes(
            rows, self.all_columns, self.release, bits=bits, folder=self.columns.folder
        )
        data = make_noisy_rows(rows, classes, self.noisy, self.release)
        return {
            column.name: compute_expected_error(column, data.members) for column in data.columns
        }

    @property
    def all_columns(self) -> dict[str, Column]:
        """All columns that are shown."""
        return {**self.columns.quasi, **self.columns.kept, **self.noisy}

    def make(self, rows: DistinctRows | RemoteRows, context: MakeContext) -> MethodResult:
        """Search, draw noise, put the rows in the order of what they show."""
        if isinstance(rows, RemoteRows):
            return self._make_remotely(rows, context)
        context.step("search")
        classes = form_classes(
            rows,
            self.all_columns,
            self.release,
            bits=context.bits,
            folder=self.columns.folder,
            progress=context.progress,
        )
        context.step("draw")
        data = make_noisy_rows(rows, classes, self.noisy, self.release)
        released = data.add_noise(context.bits)
        is_kept = data.select_rows(released, k=self.columns.k, confidence=self.release.confidence)
        categories = DrawnCategories.draw(
            make_randomized_columns(rows, data.tuples, self.noisy, self.epsilon), context.bits
        )
        looks = merge_tuples(
            classes.codes[rows.owner[data.tuples[is_kept]]], np.ones(is_kept.sum(), np.int64)
        )
        return self._make_result(
            rows.counted,
            PublishedTable(classes.labels, looks, classes.levels or ()),
            self._make_table(
                rows, classes, data, released, categories, np.flatnonzero(is_kept), context.engine
            ),
            {column.name: column.grid for column in data.columns},
            partial(_measure_all, data, released, categories, is_kept, context.bits),
            classes.search,
            self.columns.findings(rows.kept, rows.frequencies.total),
            self._pair_kept_rows(rows, classes, data.tuples[is_kept]),
        )

    def _pair_kept_rows(
        self, rows: DistinctRows, classes: EquivalenceClasses, published_tuples: Places
    ) -> KeptRows:
        """Return both tables with the columns that are kept as they are."""
        kept_values = {name: rows.kept[name] for name in self.columns.kept}
        codes = rows.frequencies.codes[:, : len(rows.counted.names) + len(kept_values)]
        looks = np.column_stack([classes.codes[rows.owner], codes[:, len(rows.counted.names) :]])
        after = merge_tuples(
            looks[published_tuples].astype(np.int32), np.ones(len(published_tuples), np.int64)
        )
        before = merge_tuples(codes, rows.frequencies.counts)
        return KeptRows(kept_values, before, after, self.columns.weight)

    def _make_remotely(self, remote_rows: RemoteRows, context: MakeContext) -> MethodResult:
        """Make the same where the rows are: classes from counts, noise there."""
        rows = remote_rows.rows
        context.step("search")
        classes = form_classes(
            rows,
            self.all_columns,
            self.release,
            bits=context.bits,
            folder=self.columns.folder,
            progress=context.progress,
        )
        context.step("draw")
        work = NoiseTask(self.noisy, self.release, self.columns.k, rows.frequencies.total)
        through, noisy_names = tuple(self.columns.kept), tuple(self.noisy)
        processed = remote_rows.process_classes(
            classes, work, context.bits, through=through, work_columns=noisy_names
        )
        parts = [part for part in processed.parts if isinstance(part, NoisePart)]
        grids = merge_grids(parts, self.noisy)
        looks = lookup_class_codes(classes, processed.members)
        coded_columns: dict[str, tuple[Sequence[object], Codes]] = {}
        for at, name in enumerate(rows.counted.names):
            labels, rank = sort_labels(classes.labels[at])
            coded_columns[name] = labels, rank[looks[:, at]]
        for name in through:
            values, codes = processed.kept[name]
            labels, rank = sort_labels(values)
            coded_columns[name] = labels, rank[codes]
        members, counts = np.unique(processed.members, return_counts=True)
        return self._make_result(
            rows.counted,
            PublishedTable(
                classes.labels,
                merge_tuples(lookup_class_codes(classes, members), counts),
                classes.levels or (),
            ),
            self._sort_rows(coded_columns, processed.columns, grids, context.engine),
            grids,
            partial(merge_noise, parts),
            classes.search,
            self.columns.findings(
                {name: processed.kept[name][0] for name in through}, rows.frequencies.total
            ),
        )

    def _make_result(
        self,
        original: CountedTable,
        published: PublishedTable,
        data: Table,
        grids: Mapping[str, Grid],
        noise: Callable[[], NoiseEvaluation],
        search: SearchResult | None,
        findings: tuple[Finding, ...],
        kept_rows: KeptRows | None = None,
    ) -> MethodResult:
        product = Product(
            data=data,
            original=original,
            shown=published,
            columns=self.columns.quasi,
            axes=original.axes,
            parameters=self.parameters(),
            kept=tuple(self.columns.kept),
            noisy={
                name: NoisyColumn(
                    kind=grid.kind, step=format(grid.step, "f"), bounds=self._format_bounds(name)
                )
                for name, grid in grids.items()
            },
            randomized=self.randomized,
            noise=noise,
            search=search,
            findings=findings,
            beside=kept_rows,
        )
        return MethodResult(
            (product,), self.promise, self.events, original, reasons=self.columns.reasons
        )

    def parameters(self) -> dict[str, float | str]:
        """Return what the certificate says, all of it settled before the table is seen."""
        release = self.release
        assert release.epsilon is not None
        entries = self.columns.parameters()
        entries["epsilon"] = float(release.epsilon)
        entries["noise"] = release.noise or "laplace"
        entries["bounds"] = release.bounds or "class"
        if release.delta is not None:
            entries["delta"] = release.delta
        if release.confidence is not None:
            entries["confidence"] = release.confidence
        return entries

    @property
    def numbers(self) -> dict[str, Column]:
        """The noisy columns of numbers and dates."""
        return {name: column for name, column in self.noisy.items() if not column.values}

    @property
    def epsilon(self) -> float:
        """The epsilon that noisy columns share."""
        assert self.release.epsilon is not None
        return float(self.release.epsilon)

    @property
    def randomized(self) -> dict[str, CertifiedResponse]:
        """The columns of categories, as the certificate states them; no data decides it."""
        return {
            name: CertifiedResponse(values=[*list_categories(self.noisy[name])], keep=keep)
            for name, keep in choose_keep_rates(self.noisy, self.epsilon).items()
        }

    def _format_bounds(self, name: str) -> tuple[str, str] | None:
        bounds = self.noisy[name].bounds
        if not self.release.clamp or bounds is None:
            return None
        return format(bounds[0], "f"), format(bounds[1], "f")

    def _make_table(
        self,
        rows: DistinctRows,
        classes: EquivalenceClasses,
        data: NoisyRows,
        released: Sequence[Steps],
        categories: DrawnCategories,
        places: Places,
        engine: Engine,
    ) -> Table:
        """Make a table of the rows, of which some are kept."""
        tuples = data.tuples[places]
        owner = rows.owner[tuples]
        width = len(self.columns.quasi)
        coded_columns: dict[str, tuple[Sequence[object], Codes]] = {}
        for at, name in enumerate(rows.counted.names):
            labels, rank = sort_labels(classes.labels[at])
            coded_columns[name] = labels, rank[classes.codes[owner, at]]
        for at, name in enumerate(self.columns.kept):
            labels, rank = sort_labels(rows.kept[name])
            coded_columns[name] = labels, rank[rows.frequencies.codes[tuples, width + at]]
        noisy_columns = {
            column.name: (noisy[places], column.null[places])
            for column, noisy in zip(data.columns, released, strict=True)
        }
        for randomized, codes in categories.pairs:
            labels, rank = sort_labels(randomized.values)
            coded_columns[randomized.name] = labels, rank[codes[places]]
        grids = {column.name: column.grid for column in data.columns}
        return self._sort_rows(coded_columns, noisy_columns, grids, engine)

    def _sort_rows(
        self,
        coded_columns: Mapping[str, tuple[Sequence[object], Codes]],
        noisy_columns: Mapping[str, tuple[Steps, Bools]],
        grids: Mapping[str, Grid],
        engine: Engine,
    ) -> Table:
        """Return the rows in the order of what they show, which tells nothing else of them."""
        names = [name for name in self._order if name in coded_columns or name in noisy_columns]
        keys: list[npt.NDArray[np.integer]] = []
        for name in names:
            if name in coded_columns:
                keys.append(coded_columns[name][1])
            else:
                steps, null = noisy_columns[name]
                keys += [null.astype(np.int8), _rank_steps(steps, null)]  # nulls are last
        order = np.argsort(pack_columns(keys, len(keys[0])), kind="stable")
        return engine.from_rows(
            {name: (labels, codes[order]) for name, (labels, codes) in coded_columns.items()},
            {
                name: (grids[name].decode_steps(steps[order]), null[order])
                for name, (steps, null) in noisy_columns.items()
            },
            names,
        )


@dataclass(frozen=True, eq=False)
class DrawnCategories:
    """Columns of categories, each with what its rows show."""

    pairs: tuple[tuple[RandomizedColumn, Codes], ...]

    @classmethod
    def draw(cls, columns: Sequence[RandomizedColumn], bits: Randomness) -> DrawnCategories:
        """Draw what the rows of each column show."""
        return cls(tuple((column, column.draw(bits)) for column in columns))


def _measure_all(
    data: NoisyRows,
    released: Sequence[Steps],
    categories: DrawnCategories,
    is_kept: Bools,
    bits: Randomness,
) -> NoiseEvaluation:
    """Measure what noise did to numbers, and randomized response to categories."""
    noise = measure_noise(data, released, is_kept, bits)
    losses = {column.name: column.measure(codes, is_kept) for column, codes in categories.pairs}
    return replace(noise, categories=losses)


def _rank_steps(steps: Steps, null: Bools) -> Steps:
    """Return numbers from 0 on in the order of the steps; all nulls have the same."""
    values = np.where(null, 0, steps)
    lowest, highest = int(values.min(initial=0)), int(values.max(initial=0))
    if highest - lowest >= 2**40:
        return np.unique(values, return_inverse=True)[1].astype(np.int64)
    return values - lowest


def _refuse_conflicts(release: KEpsilonSpec, noisy: Mapping[str, Column]) -> None:
    """Refuse what does not go together, whatever the table."""
    if release.epsilon is None or release.epsilon <= 0:
        raise IncrowdError("Method `k-epsilon` needs ε above 0. Add `epsilon` under `release`.")
    if release.noise == "gaussian" and release.delta is None:
        raise IncrowdError("Gaussian noise needs δ. Add `delta` under `release`, such as 1e-6.")
    if release.noise != "gaussian" and release.delta is not None:
        raise IncrowdError("`delta` is for `noise: gaussian`. Remove it.")
    if release.rows == "counted":
        raise IncrowdError("Method `k-epsilon` does not support `rows: counted`. Remove it.")
    if release.suppressed == "starred":
        raise IncrowdError("Method `k-epsilon` does not support `suppressed: starred`. Remove it.")
    if not noisy:
        raise IncrowdError(
            "Method `k-epsilon` needs a noisy column. Give a column the role `noisy`."
        )
    if release.bounds == "declared" and release.confidence is not None:
        raise IncrowdError(
            "`bounds: declared` and `confidence` exclude each other: suppression would break the "
            "local guarantee. Remove one."
        )
    for name, column in noisy.items():
        if column.values:
            continue  # which have no bounds
        if column.bounds is None and release.bounds == "declared":
            raise IncrowdError(
                f"Column '{name}': `bounds: declared` needs its bounds. Add them, such as "
                "`bounds: [50, 250]`."
            )
        if column.bounds is None and release.clamp:
            raise IncrowdError(f"Column '{name}': `clamp` needs its bounds. Add `bounds`.")
