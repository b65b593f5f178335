"""What counts and k-anonymity would have kept of a table, beside its synthetic rows.

Both methods are run on the same table, with the declared hierarchies, at their defaults. Nothing of
them is published, so that nothing is spent; the result is for the curator alone.
"""

from __future__ import annotations

from dataclasses import replace

from incrowd.codes.counted_table import CountedTable, DistinctRows, PublishedTable
from incrowd.engine.source import local_engine
from incrowd.engine.table import RemoteTable, Table
from incrowd.evaluation.attacks.quick import add_kept_columns
from incrowd.measure.evaluation import Evaluation
from incrowd.measure.label_evaluation import build_pair
from incrowd.measure.synthetic import MethodOutcome, SyntheticEvaluation, mean_pair_distance
from incrowd.measure.utility import TablePair
from incrowd.methods.base import MakeContext
from incrowd.methods.registry import make_method
from incrowd.privacy.plan_counts import USUAL_K
from incrowd.privacy.randomness import SeededRandomness
from incrowd.release.product import Product
from incrowd.spec.file import SpecFile
from incrowd.spec.release import KAnonymitySpec, SafeSpec, SyntheticSpec

_MOST_TUPLES = 100_000  # distinct rows of a table on which other methods are run
_MOST_COLUMNS = 40


def compare_methods(
    file: SpecFile, source: Table, found: SyntheticEvaluation, tuples: int
) -> list[MethodOutcome]:
    """Return what synthetic rows keep of a table, then what other methods would have kept.

    Args:
        file: the spec of the synthetic rows.
        source: the rows that they were made from.
        found: what the synthetic rows keep.
        tuples: the number of distinct rows of the table; of very many nothing is compared.

    """
    release = file.spec.release
    assert isinstance(release, SyntheticSpec)
    width = len(found.distance_by_column)
    own = MethodOutcome("synthetic", width, width, 1.0, found.mean_pair_distance)
    if tuples > _MOST_TUPLES or width > _MOST_COLUMNS or isinstance(source, RemoteTable):
        return [own]
    counts = SafeSpec(method="safe", epsilon=release.epsilon, delta=release.delta, draw="counts")
    classes = KAnonymitySpec(method="k-anonymity", k=USUAL_K)
    return [
        own,
        _try_method("counts", file, counts, source, width),
        _try_method(f"k-anonymity, k = {USUAL_K}", file, classes, source, width),
    ]


def _try_method(
    name: str, file: SpecFile, release: SafeSpec | KAnonymitySpec, source: Table, width: int
) -> MethodOutcome:
    """Run a method; a release that is paid for must not fail by it."""
    columns = {key: item for key, item in file.spec.columns.items() if item.role != "key"}
    spec = file.spec.model_copy(update={"release": release, "columns": columns})
    try:
        method = make_method(replace(file, spec=spec))
        counted = method.count(source)
        # Nothing of it is published, so that no secret hangs on the bits.
        made = method.make(counted, MakeContext(SeededRandomness(0), local_engine()))
        (product,) = made.products
        return _describe_outcome(name, product, made.measure()[0], counted, width)
    except Exception as error:  # noqa: BLE001 - whatever a table can do to another method
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        return MethodOutcome(name, width, problem=reason[:200])


def _describe_outcome(
    name: str, product: Product, found: Evaluation, counted: object, width: int
) -> MethodOutcome:
    silent = tuple(found.lost.nothing_shown)
    if not product.rows:
        return MethodOutcome(name, width, 0, 0.0, None, tuple(product.original.names))
    return MethodOutcome(
        name, width, width - len(silent), 1 - found.suppressed / max(found.rows_original, 1),
        mean_pair_distance(_pair(product, counted)), silent,
    )  # fmt: skip


def _pair(product: Product, counted: object) -> TablePair:
    """Return the table and the release by the finest values, sensitive columns included."""
    original: CountedTable = product.original
    shown: PublishedTable = product.shown
    if product.kept and isinstance(counted, DistinctRows):
        original, shown = add_kept_columns(product, counted, product.kept)
    return build_pair(original, original.axes, shown)
