"""Scenes for tests of attacks: small tables, releases of them by whatever rows, control groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from incrowd.codes.counted_table import CountNoise
from incrowd.engine.count import count_tuples, read_labels
from incrowd.engine.source import local_engine
from incrowd.evaluation.attacks.scene import AttackScene, make_scene
from incrowd.measure.label_evaluation import assign_levels
from incrowd.spec.build import ColumnHierarchies
from incrowd.spec.model import Column

Rows = Sequence[Sequence[object]]


def make_columns(names: Sequence[str], rows: Rows) -> dict[str, list[object]]:
    """Rows as columns, which may be none."""
    return {name: [row[at] for row in rows] for at, name in enumerate(names)}


def build_scene(
    columns: Mapping[str, Any],
    original: Rows,
    released: Rows,
    *,
    control: Rows | None = None,
    secrets: Sequence[str] = (),
    sample_rate: float = 1.0,
    variance: float = 0.0,
    levels: Mapping[str, int] | None = None,
) -> AttackScene:
    """The scene of a table and of what was released of it; ``columns`` have hierarchies by name."""
    names, engine = list(columns), local_engine()
    declared = ColumnHierarchies(
        {
            name: Column.model_validate({"role": "quasi", "hierarchy": hierarchy})
            for name, hierarchy in columns.items()
        }
    )
    counted_table = count_tuples(engine.from_columns(make_columns(names, original)), declared)
    published = read_labels(
        engine.from_columns(make_columns(names, released)), tuple(names), weighted=False
    )
    published, _ = assign_levels(counted_table, published, levels or {})
    if variance:
        published = replace(published, noise=CountNoise(variance, 1.0))
    others = None
    if control is not None:
        coders = dict(zip(names, (h.encode for h in counted_table.hierarchies), strict=True))
        others = engine.from_columns(make_columns(names, control)).count(names, coders)
    return make_scene(
        counted_table, published, secrets=secrets, control=others, sample_rate=sample_rate
    )
