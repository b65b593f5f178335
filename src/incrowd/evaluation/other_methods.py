"""What counts and k-anonymity would have kept of a table, beside its synthetic rows.

Both methods are run on the same table, with the declared hierarchies, at their defaults. Nothing of
them is published, so that nothing is spent; the result is for the curator alone. Judging must not
take longer than making: where a private search of levels would, counts get levels that are chosen
by the table, column with the most labels first, until nine rows of ten are in groups that survive.
A release may not do that, so that counts would keep less.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from incrowd.codes.counted_table import CountedTable, DistinctRows, PublishedTable
from incrowd.engine.source import local_engine
from incrowd.engine.table import RemoteTable, Table
from incrowd.evaluation.attacks.quick import add_kept_columns
from incrowd.measure.evaluation import Evaluation
from incrowd.measure.label_evaluation import build_pair
from incrowd.measure.synthetic import MethodOutcome, SyntheticEvaluation, mean_pair_distance
from incrowd.measure.utility import TablePair
from incrowd.methods.base import MakeContext, Method
from incrowd.methods.registry import make_method
from incrowd.privacy.plan_counts import USUAL_K
from incrowd.privacy.randomness import SeededRandomness
from incrowd.release.product import Product
from incrowd.spec.file import SpecFile
from incrowd.spec.release import KAnonymitySpec, SafeSpec, SyntheticSpec

_MOST_TUPLES = 100_000  # distinct rows of a table on which other methods are run
_MOST_COLUMNS = 40
_MOST_SEARCHED = 20_000, 30_000  # schemes, and distinct rows, of a table whose levels are searched
_ENOUGH = 0.9  # of the rows


def compare_methods(
    file: SpecFile, source: Table, evaluation: SyntheticEvaluation, tuples: int
) -> list[MethodOutcome]:
    """Return what synthetic rows keep of a table, then what other methods would have kept.

    Args:
        file: the spec of the synthetic rows.
        source: the rows that they were made from.
        evaluation: what the synthetic rows keep.
        tuples: the number of distinct rows of the table; of very many nothing is compared.

    """
    release = file.spec.release
    assert isinstance(release, SyntheticSpec)
    width = len(evaluation.distance_by_column)
    synthetic = MethodOutcome("synthetic", width, width, 1.0, evaluation.mean_pair_distance)
    if tuples > _MOST_TUPLES or width > _MOST_COLUMNS or isinstance(source, RemoteTable):
        return [synthetic]
    counts = SafeSpec(method="safe", epsilon=release.epsilon, delta=release.delta, draw="counts")
    chosen = _choose_levels(file, counts, source)
    if chosen is not None:
        counts = counts.model_copy(update={"scheme": "fixed", "levels": chosen})
    classes = KAnonymitySpec(method="k-anonymity", k=USUAL_K)
    return [
        synthetic,
        replace(_try_method("counts", file, counts, source, width), searched=chosen is None),
        _try_method(f"k-anonymity, k = {USUAL_K}", file, classes, source, width),
    ]


def _try_method(
    name: str, file: SpecFile, release: SafeSpec | KAnonymitySpec, source: Table, width: int
) -> MethodOutcome:
    """Run a method; a release that is paid for must not fail by it."""
    try:
        method = _make_other(file, release)
        table = method.count(source)
        # Nothing of it is published, so that no secret hangs on the bits.
        outcome = method.make(table, MakeContext(SeededRandomness(0), local_engine()))
        (product,) = outcome.products
        return _describe_outcome(name, product, outcome.measure()[0], table, width)
    except Exception as error:  # noqa: BLE001 - whatever a table can do to another method
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        return MethodOutcome(name, width, problem=reason[:200])


def _make_other(file: SpecFile, release: SafeSpec | KAnonymitySpec) -> Method:
    columns = {name: column for name, column in file.spec.columns.items() if column.role != "key"}
    spec = file.spec.model_copy(update={"release": release, "columns": columns})
    return make_method(replace(file, spec=spec))


def _choose_levels(file: SpecFile, release: SafeSpec, source: Table) -> dict[str, int] | None:
    """Return levels chosen by the table; None if a private search takes little time."""
    try:
        method = _make_other(file, release)
        table = method.count(source)
    except Exception:  # noqa: BLE001 - said when the method is run
        return None
    if not isinstance(table, CountedTable):
        return None
    tops = [hierarchy.height - 1 for hierarchy in table.hierarchies]
    rows = table.frequencies
    if math.prod(top + 1 for top in tops) <= _MOST_SEARCHED[0] and len(rows) <= _MOST_SEARCHED[1]:
        return None
    levels = [0] * len(tops)
    while True:
        maps = [h.groups[level] for h, level in zip(table.hierarchies, levels, strict=True)]
        rows = table.frequencies.roll_up(maps)
        surviving = rows.counts[rows.counts >= method.planned_release.crowd].sum()
        left = [at for at, level in enumerate(levels) if level < tops[at]]
        if surviving >= _ENOUGH * rows.total or not left:
            return dict(zip(table.names, levels, strict=True))
        labels = [len(np.unique(column)) for column in rows.codes.T]
        levels[max(left, key=lambda at: labels[at])] += 1


def _describe_outcome(
    name: str, product: Product, evaluation: Evaluation, table: object, width: int
) -> MethodOutcome:
    silent = tuple(evaluation.lost.nothing_shown)
    if not product.rows:
        return MethodOutcome(name, width, 0, 0.0, None, tuple(product.original.names))
    kept_share = 1 - evaluation.suppressed / max(evaluation.rows_original, 1)
    distance = mean_pair_distance(_pair(product, table))
    return MethodOutcome(name, width, width - len(silent), kept_share, distance, silent)


def _pair(product: Product, table: object) -> TablePair:
    """Return the table and the release by the finest values, sensitive columns included."""
    original: CountedTable = product.original
    published: PublishedTable = product.shown
    if product.kept and isinstance(table, DistinctRows):
        original, published = add_kept_columns(product, table, product.kept)
    return build_pair(original, original.axes, published)
