"""A k-anonymous release of a table: counted once, put into classes, recoded, shown.

**Rows on other machines.** Classes of a table whose rows are on other machines: formed here from
counts, recoded there.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, replace

import numpy as np

from incrowd.arrays import Codes, Members
from incrowd.codes.counted_table import CountedTable, DistinctRows, PublishedTable
from incrowd.codes.frequency import Frequencies, map_levels, merge_tuples, pack_columns
from incrowd.codes.hierarchy import ROOT
from incrowd.engine.count import count_tuples_with_kept, make_coders
from incrowd.engine.table import (
    ChunkResult,
    ClassChunk,
    Engine,
    ProcessedRows,
    RemoteTable,
    Table,
    TooManyTuplesError,
    Work,
)
from incrowd.errors import IncrowdError
from incrowd.measure.lost_values import KeptRows
from incrowd.methods.base import (
    MakeContext,
    PlannedRelease,
    get_unit_fields,
    make_cell_table,
    published_columns,
)
from incrowd.methods.k_anonymity.aggregates import (
    ShownRows,
    aggregate_classes,
    group_rows,
    list_aggregates,
)
from incrowd.methods.k_anonymity.cells import make_suppressed_rows
from incrowd.methods.k_anonymity.classes import EquivalenceClasses, KAnonymityColumns, form_classes
from incrowd.methods.k_anonymity.payout import make_payout_model
from incrowd.methods.k_anonymity.population import scale_to_population
from incrowd.privacy.amplification import Guarantee
from incrowd.privacy.events import Event
from incrowd.privacy.randomness import Randomness
from incrowd.release.certificate import CertifiedGuarantee
from incrowd.release.parameters import get_class_kind
from incrowd.release.product import MethodResult, Product
from incrowd.spec.file import SpecFile
from incrowd.spec.release import KAnonymitySpec


@dataclass(frozen=True, eq=False)
class RemoteRows:
    """The tuples that decide classes, counted here, and the table whose rows are elsewhere.

    ``rows`` has the generalized columns, and of the kept ones those alone whose values have to be
    diverse or close in each class.
    """

    rows: DistinctRows
    table: RemoteTable

    @property
    def names(self) -> tuple[str, ...]:
        """The generalized columns."""
        return self.rows.counted.names

    def column(self, at: int) -> CountedTable:
        """Return the tuples of one of them."""
        return self.rows.counted.select_columns([self.names[at]])

    def process_classes(
        self,
        classes: EquivalenceClasses,
        work: Work,
        bits: Randomness,
        *,
        through: tuple[str, ...],
        work_columns: tuple[str, ...] = (),
    ) -> ProcessedRows:
        """Return what a work makes of the rows of each class, where they are."""
        counted_table, members = _merge_tuples(self.rows.counted, classes)
        return self.table.process_classes(
            make_coders(counted_table),
            counted_table.frequencies,
            np.asarray(members, dtype=np.int64),
            through=through,
            work_columns=work_columns,
            work=work,
            bits=bits,
        )


def count_remote_rows(
    table: Table, columns: KAnonymityColumns, *, by_row: bool = False
) -> RemoteRows | None:
    """Count the tuples that decide classes, of a table whose rows are elsewhere; else None."""
    if not isinstance(table, RemoteTable):
        return None
    if aggregated := [*list_aggregates(columns.kept)]:
        raise IncrowdError(
            f"Column '{aggregated[0]}': `aggregate` needs all rows, and those of this table are on "
            "other machines. Remove it."
        )
    if columns.release.algorithm in ("duplicate", "mdav", "suppress"):
        raise IncrowdError(
            f"Algorithm `{columns.release.algorithm}` needs all rows, and those of this table are "
            "on other machines. Use `ola` or `mondrian`."
        )
    rule_columns = tuple(name for name, column in columns.kept.items() if column.has_class_rules)
    rows = count_tuples_with_kept(table, columns.declared, rule_columns)
    return RemoteRows(columns.count_people(rows, table, by_row=by_row), table)


def _merge_tuples(
    counted_table: CountedTable, classes: EquivalenceClasses
) -> tuple[CountedTable, Members]:
    """Return the fewest tuples that tell the class of a row, and the class of each.

    Of a full-domain scheme those are the tuples at its levels: all that are alike there are of one
    class, or of none.
    """
    if classes.levels is None:
        return counted_table, classes.members
    coarse = [
        lookup[counted_table.frequencies.codes[:, at]]
        for at, lookup in enumerate(
            map_levels(counted_table.hierarchies, counted_table.levels, classes.levels)
        )
    ]
    _, starts, tuples = np.unique(
        pack_columns(coarse, len(classes.members)), return_index=True, return_inverse=True
    )
    members = classes.members[starts]  # in the order that rolled tuples have
    assert (members[tuples] == classes.members).all(), "tuples that look alike are of two classes"
    return counted_table.roll_up(classes.levels), members


def lookup_class_codes(classes: EquivalenceClasses, members: Members) -> Codes:
    """Return what rows show in the generalized columns, by class: all of one show the same."""
    places = np.flatnonzero(classes.published_mask)
    codes_by_class = np.zeros(
        (int(classes.members.max(initial=-1)) + 1, classes.codes.shape[1]), np.int32
    )
    codes_by_class[classes.members[places]] = classes.codes[places]
    looks: Codes = codes_by_class[members]
    return looks


def keep_rows(chunk: ClassChunk, _bits: Randomness) -> ChunkResult:
    """Keep every row as it is: a work that changes nothing."""
    return ChunkResult(np.ones(len(chunk.members), dtype=bool), {}, None)


class KAnonymity:
    """Quasi columns generalized so that every row is alike to k - 1 others; no privacy budget."""

    def __init__(self, file: SpecFile) -> None:
        assert isinstance(file.spec.release, KAnonymitySpec)
        self._columns = KAnonymityColumns(file, file.spec.release)
        self._release = self._columns.release
        self.events: list[Event] = []
        self.joint_guarantee: Guarantee | None = None
        kind = get_class_kind(self._columns.parameters())
        self.promise = CertifiedGuarantee(kind=kind, **get_unit_fields(file.spec))
        noisy = published_columns(file.spec, "noisy")
        if noisy:
            raise IncrowdError(
                f"Column '{next(iter(noisy))}': the role `noisy` is for `method: k-epsilon`. Use "
                "`quasi`, `sensitive`, `keep` or `drop`."
            )

    @property
    def columns(self) -> KAnonymityColumns:
        """The columns, and the spec of the release as it can be searched."""
        return self._columns

    @property
    def planned_release(self) -> PlannedRelease:
        """Classes of at least k."""
        return self._columns.planned_release

    def count(self, table: Table, *, by_row: bool = False) -> DistinctRows | RemoteRows:
        """Count tuples of generalized and kept columns; of too many, those that decide classes."""
        try:
            rows = count_tuples_with_kept(table, self._columns.declared, tuple(self._columns.kept))
            return self._columns.count_people(rows, table, by_row=by_row)
        except TooManyTuplesError:
            remote_rows = count_remote_rows(table, self._columns, by_row=by_row)
            if remote_rows is None:
                raise
            return remote_rows

    def at_size(self, total: int) -> KAnonymity:
        """Return the method for a table of so many rows; they decide where k counts people."""
        columns = scale_to_population(self._columns, total)
        if columns is self._columns:
            return self
        method = copy(self)
        method._columns, method._release = columns, columns.release
        return method

    def make(self, counts: DistinctRows | RemoteRows, context: MakeContext) -> MethodResult:
        """Search, recode."""
        rows = counts.rows if isinstance(counts, RemoteRows) else counts
        return self.at_size(rows.frequencies.total)._make_classes(counts, context)

    def _make_classes(
        self, counts: DistinctRows | RemoteRows, context: MakeContext
    ) -> MethodResult:
        """Search, recode, for as many rows as a class needs."""
        rows = counts.rows if isinstance(counts, RemoteRows) else counts
        columns, original = self._columns, rows.counted
        context.step("search")
        if self._release.algorithm == "suppress":
            return self._suppress_cells(rows, context)
        all_columns = {**columns.quasi, **columns.kept}
        if self._release.algorithm == "mdav":
            shown_rows = group_rows(rows, all_columns, columns.k, progress=context.progress)
            context.step("recode")
            return self._publish_aggregates(rows, shown_rows, context)
        classes = form_classes(
            rows,
            all_columns,
            self._release,
            bits=context.bits,
            folder=columns.folder,
            progress=context.progress,
        )
        context.step("recode")
        has_stars = self._release.suppressed == "starred"
        visible_classes = _drop_starred_classes(classes) if has_stars else classes
        if list_aggregates(all_columns):
            shown_rows = _list_shown_rows(rows, visible_classes)
            return self._publish_aggregates(rows, shown_rows, context, classes)
        kept_values: Mapping[str, list[object]] = rows.kept
        if isinstance(counts, RemoteRows):
            kept_values, published = self._recode_remotely(counts, visible_classes, context)
        else:
            published = _list_published_rows(rows, visible_classes)
        stars = rows.frequencies.total - published.total if has_stars else 0
        looks = merge_tuples(published.codes[:, : len(original.names)], published.counts)
        labels: dict[str, list[object]] = dict(
            zip(original.names, map(list, classes.labels), strict=True)
        )
        labels |= kept_values
        product = Product(
            data=self._make_table(labels, published, stars, context.engine),
            original=original,
            shown=PublishedTable(classes.labels, looks, classes.levels or ()),
            columns=columns.quasi,
            axes=original.axes,
            parameters=columns.parameters(),
            stars=stars,
            kept=tuple(columns.kept),
            search=classes.search,
            payout=make_payout_model(
                self._release, columns.quasi, original.names, rows.frequencies.total
            ),
            findings=columns.findings(kept_values, rows.frequencies.total),
            beside=None
            if isinstance(counts, RemoteRows)
            else KeptRows(kept_values, rows.frequencies, published, columns.weight),
        )
        return MethodResult(
            (product,), self.promise, self.events, original, reasons=self._columns.reasons
        )

    def _publish_aggregates(
        self,
        rows: DistinctRows,
        shown_rows: ShownRows,
        context: MakeContext,
        classes: EquivalenceClasses | None = None,
    ) -> MethodResult:
        """Publish rows whose aggregated columns show one number for each class."""
        columns, original = self._columns, rows.counted
        aggregates = list_aggregates(columns.kept)
        aggregated = aggregate_classes(shown_rows, aggregates, columns.k)
        published, width = aggregated.published, len(original.names)
        looks = merge_tuples(published.codes[:, :width], published.counts)
        if len(looks) and int(looks.counts.min()) < columns.k:
            raise AssertionError(f"a class of {looks.counts.min()} rows, fewer than {columns.k}")
        has_stars = self._release.suppressed == "starred"
        stars = rows.frequencies.total - published.total if has_stars else 0
        labels: dict[str, list[object]] = dict(
            zip(original.names, map(list, aggregated.labels), strict=True)
        )
        labels |= aggregated.kept_values
        product = Product(
            data=self._make_table(*_drop_unused(labels, published), stars, context.engine),
            original=original,
            shown=PublishedTable(
                aggregated.labels, looks, () if classes is None else classes.levels or ()
            ),
            columns=columns.quasi,
            axes=original.axes,
            parameters=columns.parameters(),
            stars=stars,
            kept=tuple(columns.kept),
            search=None if classes is None else classes.search,
            payout=make_payout_model(
                self._release, columns.quasi, original.names, rows.frequencies.total
            ),
            findings=columns.findings(rows.kept, rows.frequencies.total),
            beside=KeptRows(
                aggregated.kept_values, rows.frequencies, published, columns.weight,
                tuple(aggregates), _pair_numbers(rows, aggregated, aggregates),
            ),
        )  # fmt: skip
        return MethodResult(
            (product,), self.promise, self.events, original, reasons=self._columns.reasons
        )

    def _suppress_cells(self, rows: DistinctRows, context: MakeContext) -> MethodResult:
        """Suppress single cells."""
        columns, original = self._columns, rows.counted
        assert isinstance(self._release, KAnonymitySpec)
        all_columns = {**columns.quasi, **columns.kept}
        suppressed = make_suppressed_rows(
            rows, all_columns, self._release, bits=context.bits, progress=context.progress
        )
        context.step("recode")
        published = suppressed.published
        looks = merge_tuples(published.codes[:, : len(original.names)], published.counts)
        labels: dict[str, list[object]] = {
            **dict(zip(original.names, map(list, suppressed.labels), strict=True)),
            **suppressed.kept_values,
        }
        weighted = self._release.rows == "counted"
        product = Product(
            data=make_cell_table(labels, published, weighted=weighted, engine=context.engine),
            original=original,
            shown=PublishedTable(suppressed.labels, looks),
            columns=columns.quasi,
            axes=original.axes,
            parameters=columns.parameters(),
            kept=tuple(columns.kept),
            suppression=suppressed.suppression,
            findings=columns.findings(rows.kept, rows.frequencies.total),
            beside=KeptRows(
                suppressed.kept_values, rows.frequencies, published, self._columns.weight
            ),
        )
        return MethodResult(
            (product,), self.promise, self.events, original, reasons=self._columns.reasons
        )

    def _recode_remotely(
        self, remote_rows: RemoteRows, classes: EquivalenceClasses, context: MakeContext
    ) -> tuple[dict[str, list[object]], Frequencies]:
        """Recode the rows that are shown where they are: kept values, codes with counts."""
        through = tuple(self._columns.kept)
        processed = remote_rows.process_classes(classes, keep_rows, context.bits, through=through)
        codes = [
            lookup_class_codes(classes, processed.members),
            *(processed.kept[name][1] for name in through),
        ]
        ones = np.ones(len(processed.members), dtype=np.int64)
        published = merge_tuples(np.column_stack(codes).astype(np.int32), ones)
        return {name: list(processed.kept[name][0]) for name in through}, published

    def _make_table(
        self, labels: dict[str, list[object]], published: Frequencies, stars: int, engine: Engine
    ) -> Table:
        if stars:
            row = []
            for name in labels:
                star = ROOT if name in self._columns.quasi else None
                labels[name] = [*labels[name], *([] if star in labels[name] else [star])]
                row.append(labels[name].index(star))
            codes = np.vstack([published.codes, np.array([row], dtype=np.int32)])
            published = merge_tuples(codes, np.append(published.counts, stars))
        weighted = self._release.rows == "counted"
        return make_cell_table(labels, published, weighted=weighted, engine=engine)


def _list_shown_rows(rows: DistinctRows, classes: EquivalenceClasses) -> ShownRows:
    """Return the rows that are shown, by the tuples that they come from."""
    source = np.flatnonzero(classes.published_mask[rows.owner])
    return ShownRows(
        classes.labels,
        classes.codes[rows.owner[source]],
        rows.frequencies.codes[source, len(rows.counted.names) :],
        rows.frequencies.counts[source],
        source,
        {name: list(values) for name, values in rows.kept.items()},
    )


def _drop_unused(
    labels: dict[str, list[object]], published: Frequencies
) -> tuple[dict[str, list[object]], Frequencies]:
    """Return labels and codes without values that no row shows, whose type may be another."""
    codes = published.codes.copy()
    used_labels = {}
    for at, (name, listed) in enumerate(labels.items()):
        used, places = np.unique(codes[:, at], return_inverse=True)
        used_labels[name] = [listed[code] for code in used.tolist()]
        codes[:, at] = places.ravel()
    return used_labels, Frequencies(codes, published.counts)


def _pair_numbers(
    rows: DistinctRows, aggregated: ShownRows, names: Mapping[str, object]
) -> Frequencies:
    """Return the codes of the own numbers of each row, and of those that it shows."""
    width = len(rows.counted.names)
    places = [at for at, name in enumerate(rows.kept) if name in names]
    originals = rows.frequencies.codes[aggregated.source][:, [width + at for at in places]]
    return merge_tuples(
        np.column_stack([originals, aggregated.kept_codes[:, places]]).astype(np.int32),
        aggregated.counts,
    )


def _drop_starred_classes(classes: EquivalenceClasses) -> EquivalenceClasses:
    """Count a class that shows ``*`` everywhere as suppressed: it looks like suppressed rows."""
    stars = np.ones(len(classes.codes), dtype=bool)
    for at, texts in enumerate(classes.labels):
        stars &= np.array([text == ROOT for text in texts])[classes.codes[:, at]]
    return replace(classes, members=np.where(stars, -1, classes.members))


def _list_published_rows(rows: DistinctRows, classes: EquivalenceClasses) -> Frequencies:
    """Return the rows that are shown: codes of labels, then of kept values."""
    kept_codes = rows.frequencies.codes[:, len(rows.counted.names) :]
    codes = np.column_stack([classes.codes[rows.owner], kept_codes]).astype(np.int32)
    if classes.published is not None:
        places, counts = np.flatnonzero(classes.published), classes.published
    else:
        places, counts = np.flatnonzero(classes.published_mask[rows.owner]), rows.frequencies.counts
    return merge_tuples(codes[places], counts[places])
