"""Synthetic rows of real tables: error of one-, two- and three-way tables, and what they took.

    python benchmarks/synthetic.py FOLDER [--only NAME ...] [--epsilon 0.2 1 5] [--seeds 3]
                                   [--peers PYTHON] [--mechanism NAME ...] [--rows N]
                                   [--few [--whole] | --large | --splits N]

``FOLDER`` holds the tables of ``synthetic_tables.py``, made with ``make trials``' environment:

    .venv-trials/bin/python benchmarks/synthetic_tables.py build/synthetic --adult FOLDER

``--peers`` names the Python of an environment with the packages of ``synthetic.txt``, in which AIM
and MST of dpmm are run on the same rows (``synthetic_peers.py``):

    python -m venv .venv-peers && .venv-peers/bin/pip install -r benchmarks/synthetic.txt

``--mechanism`` runs some of ``ours``, ``independent``, ``aim`` and ``mst`` alone.

Of Adult, fair and caravan the first four fifths of a fixed random order are synthesized. Errors are
mean total variation distances between the shares of the rows and of the table, at the leaves, over
all tables of so many columns (400 at most, drawn once). "independent" is this package with all of
the budget on one-way tables. Range queries: the mean error of the share of rows in 200 random
boxes over two columns. V: the mean absolute error of Cramer's V over all pairs. AUC: of a boosted
classifier of the target, trained on the synthetic rows, on the rows held back (nan if none are).
"original" is that classifier trained on the rows that are synthesized: what an AUC can be
expected to reach. No target is declared to the synthesis, nor to AIM and MST. Seconds are of the
processor; memory is the peak of the process so far.

``--few`` compares few rows, and many columns, with independent columns instead (with ``--whole``
all rows of each table); ``--large``
synthesizes generated tables, and prints seconds, memory and the gap of the fit. ``--splits`` takes
other rows to hold back, and prints the AUC alone.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score

from incrowd.anonymize.synthetic import stage, synthesize
from incrowd.anonymize.synthetic.allocation import TOTAL_SHARE, count_choices
from incrowd.anonymize.synthetic.domain import Domain, TableCounter, make_column
from incrowd.arrays import Codes
from incrowd.privacy.information import InformationPlan, plan_information
from incrowd.privacy.randomness import SeededRandomness

DELTA = 1e-6
SPLIT = {"adult", "fair", "caravan"}  # the target is the last column: above its first leaf or not
PEERS = ("aim", "mst")
FEW_ROWS = (500, 1000, 3000)
MANY_COLUMNS = 40
GENERATED_ROWS, GENERATED_COLUMNS = (1000, 3000, 20_000), 50
LARGE = ((823, 171), (100_000, 100), (1_000_000, 30))  # rows and columns


@dataclass(frozen=True)
class Result:
    """One synthesis: its rows, and what they took."""

    rows: Codes
    seconds: float
    gap: float = 0.0


def load(path: Path, rows: int) -> tuple[Domain, Codes, Codes]:
    """Return a table of the folder: its rows that are synthesized, and those held back."""
    with np.load(path, allow_pickle=True) as file:
        codes, levels = file["codes"].astype(np.int32), list(file["levels"])
    order = np.random.default_rng(12345).permutation(len(codes))
    most = round(0.8 * len(codes) - 0.4) if path.stem in SPLIT else len(codes)
    domain = Domain(tuple(make_column(level) for level in levels))
    return domain, codes[order[: rows or most]], codes[order[max(rows, most) :]]


def run_ours(
    domain: Domain, codes: Codes, epsilon: float, seed: int, size: int | None = None
) -> Result:
    """Rows of this package; ``size`` is stated in the spec, or not."""
    begin = time.process_time()
    plan = synthesize.plan_synthesis(domain, epsilon=epsilon, delta=DELTA, size=size)
    count = TableCounter(domain, codes)
    synthesis = synthesize.synthesize(domain, count, plan, bits=SeededRandomness(seed + 1))
    return Result(synthesis.rows, time.process_time() - begin, synthesis.model.gap)


def run_independent(domain: Domain, codes: Codes, epsilon: float, seed: int) -> Result:
    """Independent columns: no choices are made or paid for, and one-ways get everything."""
    alone = plan_information(epsilon=epsilon, delta=DELTA, choices=0)
    plan = InformationPlan(alone.information, count_choices(len(domain)).total, 1e-9)
    begin = time.process_time()
    with (
        mock.patch.object(stage, "limit_choices", return_value=0),
        mock.patch.object(synthesize, "share_one_ways", return_value=1 - TOTAL_SHARE),
    ):
        synthesis = synthesize.synthesize(
            domain, TableCounter(domain, codes), plan, bits=SeededRandomness(seed + 1)
        )
    return Result(synthesis.rows, time.process_time() - begin, synthesis.model.gap)


def run_peer(python: Path, name: str, domain: Domain, codes: Codes, epsilon: float) -> Result:
    """Return a mechanism of dpmm, in an environment of its own."""
    with tempfile.TemporaryDirectory() as folder:
        input_path, output_path = Path(folder, "input.npz"), Path(folder, "output.npz")
        sizes = [column.sizes[0] for column in domain.columns]
        np.savez(input_path, codes=codes, sizes=sizes)
        script = Path(__file__).with_name("synthetic_peers.py")
        done = subprocess.run(
            [python, script, name, str(epsilon), str(DELTA), input_path, output_path],
            check=True,
            capture_output=True,
            text=True,
        )
        answer = json.loads(done.stdout.splitlines()[-1])
        with np.load(output_path) as file:
            return Result(file["codes"].astype(np.int32), answer["seconds"])


def list_tables(domain: Domain, ways: int, most: int = 400) -> list[tuple[int, ...]]:
    """Return the tables of so many columns, or some of them."""
    every = list(combinations(range(len(domain)), ways))
    if len(every) <= most:
        return every
    places = np.random.default_rng(0).choice(len(every), most, replace=False)
    return [every[at] for at in places]


def measure_distance(domain: Domain, first: Codes, second: Codes, ways: int) -> float:
    """Return the mean total variation distance of tables of so many columns."""
    distance = []
    for columns in list_tables(domain, ways):
        shape = domain.shape(columns, (0,) * ways)
        keys = [np.ravel_multi_index([x[:, c] for c in columns], shape) for x in (first, second)]
        _, places = np.unique(np.concatenate(keys), return_inverse=True)
        size = int(places.max()) + 1
        shares = [
            np.bincount(part, minlength=size) / len(part)
            for part in (places[: len(first)], places[len(first) :])
        ]
        distance.append(float(np.abs(shares[0] - shares[1]).sum()) / 2)
    return float(np.mean(distance)) if distance else math.nan


def measure_ranges(domain: Domain, first: Codes, second: Codes) -> float:
    """Return the mean error of the share of rows in random boxes over two columns."""
    rng = np.random.default_rng(1)
    if len(domain) < 2:
        return math.nan
    result = []
    for _ in range(200):
        pair = rng.choice(len(domain), 2, replace=False)
        inside = [np.ones(len(rows), dtype=bool) for rows in (first, second)]
        for column in pair:
            low, high = np.sort(rng.integers(0, domain.columns[column].sizes[0], 2))
            for rows, mask in zip((first, second), inside, strict=True):
                mask &= (rows[:, column] >= low) & (rows[:, column] <= high)
        result.append(abs(float(inside[0].mean()) - float(inside[1].mean())))
    return float(np.mean(result))


def compute_cramers_v(domain: Domain, rows: Codes, pair: tuple[int, int]) -> float:
    """Return Cramer's V of two columns; 0 if one of them has a single value."""
    shape = domain.shape(pair, (0, 0))
    keys = np.ravel_multi_index([rows[:, column] for column in pair], shape)
    table = np.bincount(keys, minlength=math.prod(shape)).reshape(shape) / len(rows)
    table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
    expected = np.outer(table.sum(axis=1), table.sum(axis=0))
    smaller = min(table.shape) - 1
    return math.sqrt(float(((table - expected) ** 2 / expected).sum()) / smaller) if smaller else 0


def measure_associations(domain: Domain, first: Codes, second: Codes) -> float:
    """Return the mean absolute error of Cramer's V over all pairs of columns."""
    pairs = combinations(range(len(domain)), 2)
    errors = [
        abs(compute_cramers_v(domain, first, pair) - compute_cramers_v(domain, second, pair))
        for pair in pairs
    ]
    return float(np.mean(errors)) if errors else math.nan


def measure_classifier(rows: Codes, held_out: Codes) -> float:
    """Return the AUC on held-back rows of a classifier of the last column; nan without a target."""
    labels, truth = rows[:, -1] > 0, held_out[:, -1] > 0
    if not len(held_out) or labels.all() or not labels.any() or truth.all() or not truth.any():
        return math.nan
    classifier = HistGradientBoostingClassifier(random_state=0).fit(rows[:, :-1], labels)
    return float(roc_auc_score(truth, classifier.predict_proba(held_out[:, :-1])[:, 1]))


def list_runs(
    python: Path | None,
) -> Iterator[tuple[str, Callable[[Domain, Codes, float, int], Result]]]:
    """Return what is compared."""
    yield "ours", run_ours
    yield "independent", run_independent
    if python is not None:
        for name in PEERS:
            yield name, partial(_run_peer_seeded, python, name)


def _run_peer_seeded(
    python: Path, name: str, domain: Domain, codes: Codes, epsilon: float, _: int
) -> Result:
    return run_peer(python, name, domain, codes, epsilon)


def make_table(rows: int, columns: int) -> tuple[Domain, Codes]:
    """Return a generated table: columns of 2 to 50 values that follow four hidden factors."""
    rng = np.random.default_rng(7)
    factors = rng.normal(size=(rows, 4)).astype(np.float32)
    table: list[Codes] = []
    domain = []
    for at in range(columns):
        leaves = int(rng.choice([2, 2, 3, 4, 5, 6, 8, 10, 16, 32, 50]))
        weights = rng.normal(size=4) * rng.choice([0, 0.3, 1], size=4)
        values = factors @ weights.astype(np.float32) + rng.normal(size=rows).astype(np.float32)
        if at > 2 and rng.random() < 0.5:
            values += table[rng.integers(0, at)] * 0.3
        cuts = np.quantile(values[:20_000], np.sort(rng.random(leaves - 1)))
        table.append(np.searchsorted(cuts, values).astype(np.int32))
        levels = [np.arange(leaves)]
        while levels[-1].max() >= 7:
            levels.append(levels[-1] // 2)
        domain.append(make_column(levels))
    return Domain(tuple(domain)), np.column_stack(table)


def find_peak() -> int:
    """Return the most memory that the process has held so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def print_large() -> None:
    """Print what generated tables take."""
    print("rows columns: seconds, gap, MB")
    for rows, columns in LARGE:
        result = run_ours(*make_table(rows, columns), 1.0, 0)
        print(
            f"{rows} {columns}: {result.seconds:.1f} s, gap {result.gap:.2f}, {find_peak()} MB",
            flush=True,
        )


def print_few(paths: list[Path], seeds: int, *, all_rows: bool, generated: bool) -> None:
    """Print errors over those of independent columns, of few rows and of many columns."""
    print("table, stated size or not: one-way two-way over those of independent columns, +- errors")
    for path in paths:
        many = len(load(path, 0)[0]) >= MANY_COLUMNS
        for rows in (0,) if all_rows else (0, *FEW_ROWS[1:]) if many else FEW_ROWS:
            domain, codes, _ = load(path, rows)
            if len(codes) >= rows:
                print_ratios(path.stem, domain, codes, seeds)
    for rows in GENERATED_ROWS if generated else ():
        print_ratios("generated", *make_table(rows, GENERATED_COLUMNS), seeds)


def print_ratios(name: str, domain: Domain, codes: Codes, seeds: int) -> None:
    """Print errors over those of independent columns, with the size stated and not.

    Once, if what is stated changes nothing. After each ratio comes its standard error.
    """
    plans = [
        synthesize.plan_synthesis(domain, epsilon=1.0, delta=DELTA, size=size)
        for size in (None, len(codes))
    ]
    runs = {"not stated": run_ours, "stated": partial(run_ours, size=len(codes))}
    if plans[0] == plans[1]:
        runs = {"stated or not": run_ours}
    below, first_errors = measure_mean(domain, codes, run_independent, seeds)
    for state, run in runs.items():
        mean, errors = measure_mean(domain, codes, run, seeds)
        ratios, spread = mean / below, np.hypot(errors / mean, first_errors / below)
        listing = " ".join(f"{a:.3f}+-{a * b:.3f}" for a, b in zip(ratios, spread, strict=True))
        print(f"{name} {len(codes)} rows, {len(domain)} columns, {state}: {listing}", flush=True)


def measure_mean(
    domain: Domain, codes: Codes, run: Callable[..., Result], seeds: int
) -> tuple[Any, Any]:
    """Return the mean error of one-way and of two-way tables over seeds, and their errors."""
    errors = []
    for seed in range(seeds):
        rows = run(domain, codes, 1.0, seed).rows
        errors.append([measure_distance(domain, codes, rows, ways) for ways in (1, 2)])
    return np.mean(errors, axis=0), np.std(errors, axis=0) / math.sqrt(max(seeds - 1, 1))


def print_splits(path: Path, splits: int) -> None:
    """Print the AUC over several splits into rows that are synthesized and rows held back.

    Of the rows themselves, of as many of them drawn with replacement (what independent draws of
    the true distribution reach), and of synthetic rows.
    """
    domain, first_rows, held_out = load(path, 0)
    rows = np.concatenate([first_rows, held_out])
    print(f"{path.stem}, split: original, drawn with replacement, ours")
    figures = []
    for split in range(splits):
        rng = np.random.default_rng(100 + split)
        order = rng.permutation(len(rows)) if split else np.arange(len(rows))
        codes, test = rows[order[: len(first_rows)]], rows[order[len(first_rows) :]]
        bootstrap = [codes[rng.integers(0, len(codes), len(codes))] for _ in range(3)]
        synthetic = [run_ours(domain, codes, 1.0, seed).rows for seed in range(2)]
        tables = ([codes], bootstrap, synthetic)
        aucs = [np.mean([measure_classifier(table, test) for table in each]) for each in tables]
        figures.append(aucs)
        print(f"{split}: " + " ".join(f"{auc:.4f}" for auc in aucs), flush=True)
    print("mean: " + " ".join(f"{auc:.4f}" for auc in np.mean(figures, axis=0)))


def print_table(path: Path, options: argparse.Namespace) -> None:
    """Print a line for each epsilon and mechanism."""
    domain, codes, held_out = load(path, options.rows)
    print(f"{path.stem} original: AUC {measure_classifier(codes, held_out):.4f}", flush=True)
    for epsilon in options.epsilon:
        for name, run in list_runs(options.peers):
            if options.mechanism and name not in options.mechanism:
                continue
            figures = []
            for seed in range(options.seeds):
                result = run(domain, codes, epsilon, seed)
                errors = [measure_distance(domain, codes, result.rows, n) for n in (1, 2, 3)]
                ranges = measure_ranges(domain, codes, result.rows)
                association = measure_associations(domain, codes, result.rows)
                auc = measure_classifier(result.rows, held_out)
                figures.append([*errors, ranges, association, auc, result.seconds, result.gap])
            mean = np.mean(figures, axis=0)
            listing = " ".join(f"{error:.4f}" for error in mean[:6])
            print(
                f"{path.stem} {epsilon:g} {name}: {listing}, {mean[6]:.1f} s, "
                f"gap {np.max(figures, axis=0)[7]:.2f}, {find_peak()} MB",
                flush=True,
            )


def main() -> None:
    """Print a line for each table, epsilon and mechanism."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--epsilon", nargs="*", type=float, default=[0.2, 1.0, 5.0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=0)
    parser.add_argument("--peers", type=Path)
    parser.add_argument("--mechanism", nargs="*", default=[])
    parser.add_argument("--few", action="store_true")
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--splits", type=int, default=0)
    options = parser.parse_args()
    if options.large:
        print_large()
        return
    files = sorted(options.folder.glob("*.npz"))
    paths = [path for path in files if not options.only or path.stem in options.only]
    if options.few:
        generated = not (options.only or options.whole)
        print_few(paths, options.seeds, all_rows=options.whole, generated=generated)
        return
    if options.splits:
        for path in paths:
            print_splits(path, options.splits)
        return
    print("table epsilon mechanism: one-way two-way three-way ranges V AUC, seconds, gap, MB")
    for path in paths:
        print_table(path, options)


if __name__ == "__main__":
    main()
