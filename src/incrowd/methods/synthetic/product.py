"""From a synthesis to what is published: the table of rows, and the measured tables beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from incrowd.anonymize.synthetic.domain import Columns, Levels
from incrowd.anonymize.synthetic.measurement import Measurement, centered_axes
from incrowd.anonymize.synthetic.model import Model
from incrowd.anonymize.synthetic.rows import draw_rows
from incrowd.anonymize.synthetic.synthesize import Synthesis
from incrowd.arrays import Codes, Places
from incrowd.codes.counted_table import CountedTable, PublishedTable
from incrowd.codes.frequency import merge_tuples
from incrowd.engine.table import Table
from incrowd.measure.synthetic import SyntheticEvaluation, evaluate_synthetic
from incrowd.methods.base import MakeContext, published_columns
from incrowd.methods.synthetic.columns import SyntheticColumns
from incrowd.methods.synthetic.references import draw_references
from incrowd.methods.synthetic.rows import choose_type, make_tables, publish_columns
from incrowd.release.parameters import synthetic_parameters
from incrowd.release.product import Product
from incrowd.release.synthetic_part import (
    MeasuredNumbers,
    PointsColumn,
    ReferencedKey,
    SyntheticPart,
    SyntheticProduct,
)
from incrowd.spec.file import SpecFile
from incrowd.spec.model import Spec
from incrowd.spec.release import SyntheticSpec


@dataclass(frozen=True, eq=False)
class RowsProduct(Product):
    """Synthetic rows: ``data`` is their text, ``typed`` the same as numbers, days and so on.

    ``draw`` draws other rows from the same model, where that is known. ``file`` is the spec.
    """

    typed: Table | None = None
    draw: Callable[[], Codes] | None = None
    file: SpecFile | None = None

    @cached_property
    def second_rows(self) -> Codes | None:
        """The rows of a second draw: what chance alone explains."""
        return None if self.draw is None else self.draw()

    @property
    def table(self) -> Table:
        """The rows with the types that their declarations give."""
        assert self.typed is not None
        return self.typed

    def measure(self) -> SyntheticEvaluation:
        """How far the rows are from their table."""
        return evaluate_synthetic(self.original, self.shown, self.second_rows)


def make_product(
    columns: SyntheticColumns,
    synthesis: Synthesis,
    original: CountedTable,
    spec: Spec,
    context: MakeContext,
    references: Mapping[str, ReferencedKey],
) -> tuple[RowsProduct, SyntheticProduct]:
    """Return the rows as a product, and what is published beside them."""
    assert isinstance(spec.release, SyntheticSpec)
    draw_values = spec.release.values == "drawn"
    part = make_part(columns, spec, references)
    types, keys = part.types, part.keys
    rng = np.random.default_rng([int(word) for word in context.bits.draw_words(4)])
    rows = columns.obey_orders(synthesis.model, synthesis.rows, rng)
    published = publish_columns(columns, rows, types, draw_values=draw_values, rng=rng)
    order = [name for name in spec.columns if name in {*published, *keys, *references}]
    made_up = draw_references(references, len(rows))
    text, typed = make_tables(published, keys, made_up, order, context.engine)
    ones = np.ones(len(rows), dtype=np.int64)
    labels = tuple(columns.hierarchies[name].labels[0] for name in columns.names)
    modeled = published_columns(spec, "quasi", "sensitive")
    original = replace(
        original,
        frequencies=merge_tuples(
            columns.settle_codes(original.frequencies.codes), original.frequencies.counts
        ),
    )
    product = RowsProduct(
        data=text,
        original=original,
        shown=PublishedTable(labels, merge_tuples(rows, ones), (0,) * len(columns.names)),
        columns=modeled,
        axes=original.axes,
        parameters=synthetic_parameters(list(synthesis.events)) or {},
        target=spec.release.target,
        typed=typed,
        draw=lambda: draw_again(columns, synthesis),
    )
    return product, SyntheticProduct(part, list_measured(columns, synthesis), columns.value_columns)


def draw_again(columns: SyntheticColumns, synthesis: Synthesis) -> Codes:
    """Draw as many rows from the same model, for what chance alone explains."""
    rng = np.random.default_rng(0)  # of nobody: no secret hangs on it
    codes = columns.domain.decode(draw_rows(synthesis.model, len(synthesis.rows), rng))
    return columns.obey_orders(synthesis.model, codes, rng)


def make_part(
    columns: SyntheticColumns, spec: Spec, references: Mapping[str, ReferencedKey]
) -> SyntheticPart:
    """Return what the certificate says besides, before the measured tables are written."""
    release = spec.release
    assert isinstance(release, SyntheticSpec)
    draw_values = release.values == "drawn"
    points: dict[str, PointsColumn] = {}
    for name, leaves in columns.leaves.items():
        column = spec.columns[name]
        assert column.hierarchy is not None
        if column.hierarchy.intervals is None and column.hierarchy.dates is None:
            continue
        points[name] = PointsColumn(
            rule=column.hierarchy.model_dump(mode="json", by_alias=True, exclude_none=True),
            precision=None if column.precision is None else str(column.precision),
            drawn=leaves.has_spans and draw_values,
        )
    return SyntheticPart(
        fit=1,
        columns=list(columns.names),
        types={name: choose_type(name, columns, draw_values=draw_values) for name in columns.names},
        points=points,
        keys=[
            name
            for name, column in spec.columns.items()
            if column.role == "key" and name not in references
        ],
        references=dict(references) or None,
        written={
            name: form.model_dump(mode="json", exclude_defaults=True)
            for name, form in columns.formats.items()
        }
        or None,
        rules=[rule.as_dict() for rule in release.rules],
        tables=[list(part) for part in release.tables],
        target=release.target,
    )


def list_measured(columns: SyntheticColumns, synthesis: Synthesis) -> tuple[MeasuredNumbers, ...]:
    """Return the measured tables, all measurements of each as one entry, in their first order."""
    by_key: dict[tuple[Columns, Levels], list[Measurement]] = {}
    for measurement in synthesis.measurements:
        by_key.setdefault((measurement.columns, measurement.levels), []).append(measurement)
    return tuple(
        _measured(columns, key, some, synthesis.model, in_model=key not in synthesis.aside)
        for key, some in by_key.items()
    )


def _measured(
    columns: SyntheticColumns,
    key: tuple[Columns, Levels],
    some: list[Measurement],
    model: Model,
    *,
    in_model: bool,
) -> MeasuredNumbers:
    places, levels = key
    names = tuple(columns.names[place] for place in places)
    parts = [columns.domain.columns[place] for place in places]
    numbers = tuple(part.level_numbers[level] for part, level in zip(parts, levels, strict=True))
    expected = model.table(places, levels) * model.rows if places else np.array(model.rows)
    orders = [columns.order_groups(place, level) for place, level in zip(*key, strict=True)]
    return MeasuredNumbers(
        columns=names,
        levels=numbers,
        centered=centered_axes(some[0].numbers.shape),
        numbers=tuple(_reorder(measurement.numbers, orders) for measurement in some),
        variances=tuple(measurement.variance for measurement in some),
        held=in_model,
        labels=tuple(
            columns.value_columns[name].list_labels(number)
            for name, number in zip(names, numbers, strict=True)
        ),
        model=_reorder(expected, orders),
    )


def _reorder(table: npt.NDArray[Any], orders: Sequence[Places]) -> npt.NDArray[Any]:
    """Return a table along the declared order of its groups."""
    for axis, order in enumerate(orders):
        table = np.take(table, order, axis=axis)
    return table
