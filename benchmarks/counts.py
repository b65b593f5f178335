"""What counts keep beside samples of the same budget: loss, models, marginals, associations.

    python benchmarks/counts.py [DATA [RELEASES]]

On the sample tables and, if DATA names a folder with it in ARX's form, on the Adult table, by
`scheme: search` at delta = 1e-6, choices included:

1. Normalized loss of RELEASES releases (30 by default) at each epsilon; a row missing and a row too
   many count 1, and their shares are said apart.
2. At epsilon = 1, from four fifths of the rows: accuracy and AUC of a classifier on the other
   fifth, and by how much all one-, two- and three-way marginals are off (total variation, values
   uniform within labels), mean of five releases.
3. Eight columns in slices of three, at epsilon = 1 in all: the mean error of Cramér's V.
"""

from __future__ import annotations

import sys
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from schemes import BenchmarkTable, load_benchmark_tables

from incrowd.codes.counted_table import CountedTable
from incrowd.codes.frequency import Frequencies, merge_tuples
from incrowd.engine.source import local_engine, open_table
from incrowd.measure.label_evaluation import build_pair, evaluate_labels
from incrowd.measure.prediction import Accuracy
from incrowd.measure.utility import TablePair
from incrowd.methods.base import MakeContext
from incrowd.methods.registry import make_method
from incrowd.privacy.randomness import SystemRandomness
from incrowd.release.product import MethodResult, Product
from incrowd.spec.file import SpecFile

WAYS: dict[str, dict[str, Any]] = {
    "sample": {"draw": "sample"},
    "counts, k = 1": {"draw": "counts", "k": 1},
    "counts, k = 5": {"draw": "counts", "k": 5},
}


def make_release(spec: SpecFile, counted_table: CountedTable) -> MethodResult:
    """Return a release, nothing of it written."""
    return make_method(spec).make(counted_table, MakeContext(SystemRandomness(), local_engine()))


def print_losses(subject: BenchmarkTable, number: int) -> None:
    """Print the loss of each way at each epsilon."""
    counted_table = make_method(subject.change_release(scheme="search")).count(subject.table)
    assert isinstance(counted_table, CountedTable)
    for name, way in WAYS.items():
        line = f"{subject.name:10}{name:16}"
        for epsilon in (0.5, 1.0, 2.0):
            spec = subject.change_release(scheme="search", epsilon=epsilon, **way)
            result = [
                make_release(spec, counted_table).products[0].measure() for _ in range(number)
            ]
            loss = [evaluation.loss for evaluation in result]
            missing, surplus = (
                np.mean(
                    [getattr(evaluation, what) / evaluation.rows_original for evaluation in result]
                )
                for what in ("suppressed", "surplus")
            )
            line += (
                f"{np.mean(loss):8.4f} +- {np.std(loss):.4f} "
                f"({missing:6.1%} missing, {surplus:5.2%} too many)"
            )
        print(line, flush=True)


def print_usefulness(subject: BenchmarkTable, number: int) -> None:
    """Print what a model learns from each way, and how far marginals are off."""
    frame = subject.table.to_frame()
    apart = np.random.default_rng(0).random(len(frame)) < 0.2
    ways = dict(WAYS)
    if subject.target is not None:
        ways["counts, target"] = {"draw": "counts", "k": 5, "target": subject.target}
    training, unseen = frame.filter(pl.Series(~apart)), frame.filter(pl.Series(apart))
    for name, way in ways.items():
        spec = subject.change_release(scheme="search", epsilon=1.0, **way)
        counted_table = make_method(spec).count(open_table(training))
        assert isinstance(counted_table, CountedTable)
        test = _count_tuples(counted_table, unseen)
        accuracies: list[Accuracy] = []
        off = []
        for _ in range(number):
            (product,) = make_release(spec, counted_table).products
            off.append(compute_marginal_errors(_make_pair(counted_table, product)))
            if subject.target is not None:
                accuracy = evaluate_labels(
                    counted_table,
                    counted_table.axes,
                    product.shown,
                    target=subject.target,
                    held_out=test,
                ).utility.accuracy
                assert accuracy is not None
                accuracies.append(accuracy)
        line = f"{subject.name:10}{name:16}"
        line += "".join(f"{value:8.4f}" for value in np.mean(off, axis=0))
        if accuracies:
            right = np.mean([figures.released for figures in accuracies])
            area = np.mean([figures.auc_released or 0.0 for figures in accuracies])
            line += f"   accuracy {right:.4f} (original {accuracies[0].original:.4f})"
            line += f", AUC {area:.4f} (original {accuracies[0].auc_original or 0.0:.4f})"
        print(line, flush=True)


def _count_tuples(counted_table: CountedTable, frame: pl.DataFrame) -> Frequencies:
    coders = {
        name: hierarchy.encode
        for name, hierarchy in zip(counted_table.names, counted_table.hierarchies, strict=True)
    }
    return open_table(frame).count(counted_table.names, coders)


def _make_pair(counted_table: CountedTable, product: Product) -> TablePair:
    return build_pair(counted_table, counted_table.axes, product.shown)


def compute_marginal_errors(pair: TablePair) -> list[float]:
    """Return the mean total variation of all one-, two- and three-way marginals."""
    return [
        float(
            np.mean(
                [_compute_distance(pair, columns) for columns in combinations(range(width), ways)]
            )
        )
        for width in [len(pair.names)]
        for ways in (1, 2, 3)
    ]


def _compute_distance(pair: TablePair, columns: tuple[int, ...]) -> float:
    joint = _compute_joint(pair.original, [pair.exact_shares[at] for at in columns], columns)
    other = _compute_joint(pair.released, [pair.shares[at] for at in columns], columns)
    return float(np.abs(joint / joint.sum() - other / max(other.sum(), 1)).sum() / 2)


def _compute_joint(table: Frequencies, shares: list[Any], columns: tuple[int, ...]) -> Any:
    cells = merge_tuples(table.codes[:, list(columns)], table.counts)
    joint = np.zeros([len(share) for share in shares])
    joint[tuple(cells.codes.T)] = cells.counts
    for share in shares:  # each turns the first axis, and puts it last
        joint = np.tensordot(joint, share, axes=(0, 0))
    return joint


def print_slice_errors(subject: BenchmarkTable, number: int) -> None:
    """Print the error of associations in slices."""
    narrow = subject.drop_one_column()
    for name in ("sample", "counts"):
        spec = narrow.change_release(draw=name, slices=3, epsilon=1.0)
        counted_table = make_method(spec).count(narrow.table)
        assert isinstance(counted_table, CountedTable)
        result = [make_release(spec, counted_table).measure()[0] for _ in range(number)]
        error = np.mean([evaluation.association_error for evaluation in result])
        loss = np.mean([evaluation.loss for evaluation in result])
        print(f"{subject.name:10}{name:10}{error:8.4f} of V, loss {loss:.4f}", flush=True)


def main() -> None:
    data = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    number = int(sys.argv[2]) if len(sys.argv) > 2 else 30
    tables = load_benchmark_tables(data)
    print(f"{'table':10}{'way':16}loss at epsilon = 0.5, 1, 2")
    for subject in tables:
        print_losses(subject, number)
    print(f"\n{'table':10}{'way':16}one-, two- and three-way marginals at epsilon = 1")
    for subject in tables:
        print_usefulness(subject, min(number, 5))
    print("\nslices of three, eight columns, epsilon = 1 in all")
    for subject in tables:
        if subject.left_out:
            print_slice_errors(subject, max(number // 3, 1))


if __name__ == "__main__":
    main()
