"""Read synthetic rows again, beside their table: from a folder with its certificate, or any file.

A folder has the measured tables. The model is fitted to them again, as ``incrowd verify`` does, so
that a second draw tells what chance explains. Rows of another tool have no model: what needs one is
left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import numpy as np

from incrowd.anonymize.synthetic.rows import draw_rows as draw_model_rows
from incrowd.arrays import Codes
from incrowd.codes.counted_table import CountedTable, PublishedTable
from incrowd.codes.frequency import Frequencies, merge_tuples
from incrowd.codes.hierarchy import Hierarchy
from incrowd.engine.released import ReleasedTable
from incrowd.engine.table import Table, TableError
from incrowd.errors import IncrowdError
from incrowd.methods.base import published_columns
from incrowd.methods.synthetic.method import Synthetic
from incrowd.methods.synthetic.product import RowsProduct
from incrowd.methods.synthetic.verify import read_synthetic_columns, refit
from incrowd.privacy.events import Event, parse_event
from incrowd.release.certificate import Certificate
from incrowd.release.product import MethodResult
from incrowd.release.synthetic_part import SyntheticProduct
from incrowd.release.synthetic_verify import count_rows, open_rows, read_tables
from incrowd.spec.file import SpecFile
from incrowd.spec.release import SyntheticSpec


@dataclass(frozen=True, eq=False)
class RowsReader:
    """What reads tables by the columns of a spec, as its method does."""

    file: SpecFile
    method: Synthetic

    @classmethod
    def from_spec(cls, file: SpecFile, certificate: Certificate | None) -> RowsReader:
        """Return the reader of a spec, whose release is that of the certificate if there is one."""
        if certificate is not None:
            assert certificate.synthetic is not None
            part, promise = certificate.synthetic, certificate.guarantee
            has_points = any(column.drawn for column in part.points.values())
            release = SyntheticSpec(
                method="synthetic", epsilon=promise.epsilon, delta=promise.delta,
                target=part.target, values="drawn" if has_points else None,
            )  # fmt: skip
            file = replace(file, spec=file.spec.model_copy(update={"release": release}))
        return cls(file, Synthetic(file))

    def count(self, table: Table) -> CountedTable:
        """Count a table of people, values outside the domain as the method takes them."""
        missing = [name for name in self.method.columns.names if name not in table.columns]
        if missing:
            raise TableError(
                f"Column '{missing[0]}': not in the original table. Correct the table or the spec."
            )
        counts = self.method.count(table)
        if not isinstance(counts, CountedTable):
            counts = counts.collect_sample()
        codes = self.method.columns.settle_codes(counts.frequencies.codes)
        return replace(counts, frequencies=merge_tuples(codes, counts.frequencies.counts))

    def read_folder(
        self, folder: Path, certificate: Certificate, data: Table, original: Table
    ) -> MethodResult:
        """Return the rows of a release, with its measured tables and its model."""
        assert certificate.synthetic is not None
        columns = read_synthetic_columns(folder, certificate)
        self._compare_columns(columns.hierarchies)
        tables = read_tables(folder, certificate, columns.value_columns)
        rows = count_rows(
            open_rows(folder, certificate), certificate.synthetic, columns.value_columns
        )

        def draw() -> Codes:
            model = refit(columns, tables)
            rng = np.random.default_rng(0)  # of nobody: no secret hangs on it
            return columns.domain.decode(draw_model_rows(model, rows.total, rng))

        product = replace(self._make_product(data, rows, original), draw=draw)
        events: list[Event] = [parse_event(event) for event in certificate.events]
        extra = SyntheticProduct(certificate.synthetic, tuple(tables), columns.value_columns)
        return MethodResult(
            (product,), certificate.guarantee, events, product.original, synthetic=extra
        )

    def read_rows(self, data: Table, original: Table) -> MethodResult:
        """Return rows without a certificate, of which no model is known."""
        columns = self.method.columns
        missing = [name for name in columns.names if name not in data.columns]
        if missing:
            raise TableError(
                f"Column '{missing[0]}': not in the released table. Synthetic rows have all columns"
                " of the spec: name the right spec."
            )
        # It asks of a table what every engine's has.
        rows = count_rows(cast(ReleasedTable, data), self.method.part, columns.value_columns)
        product = self._make_product(data, rows, original)
        return MethodResult((product,), self.method.promise, [], product.original)

    def _make_product(self, data: Table, rows: Frequencies, original: Table) -> RowsProduct:
        counts, columns = self.count(original), self.method.columns
        release = self.file.spec.release
        assert isinstance(release, SyntheticSpec)
        labels = tuple(columns.hierarchies[name].labels[0] for name in columns.names)
        return RowsProduct(
            data=data,
            original=counts,
            shown=PublishedTable(labels, rows, (0,) * len(columns.names)),
            columns=published_columns(self.file.spec, "quasi", "sensitive"),
            axes=counts.axes,
            parameters={},
            target=release.target,
            file=self.file,
        )

    def _compare_columns(self, declared: Mapping[str, Hierarchy]) -> None:
        """Refuse a spec that declares other values than the release."""
        in_spec = self.method.columns.hierarchies
        for name in (*declared, *in_spec):
            is_in_both = name in in_spec and name in declared
            if not is_in_both or in_spec[name].list_rows() != declared[name].list_rows():
                raise IncrowdError(
                    f"Column '{name}': the spec and the release declare different values. Name the "
                    "spec of the release."
                )
