"""Real tables from a draft to the recommended release: what is left of it, beside k-anonymity.

    python benchmarks/journeys.py --export FOLDER     (in the environment of trials.txt)
    python benchmarks/useful.py FOLDER [--output FILE] [--only FILE ...]

Of each table four fifths are published: drafted, with every question answered by yes but the
roles that a curator knows, and the number of people stated. Published are counts of whole rows
(the default), what is recommended, and k-anonymity at k = 5 (Mondrian). Measured are

- ``rows``: the share of rows, and of how many columns something is shown;
- ``two-way``: the mean total variation distance of pairs of columns, over up to 60 of them;
- ``rare``: of values of 0.5 to 10 % of the rows, in columns of at most 16, the median and the least
  share that is left of them (1 is all);
- ``AUC``: of a logistic regression for the target, tested on the other fifth, beside that of a
  model of the original;

and what the recommendation forecast of columns and rows. A label of a release stands for the values
that it covers, by their share in the original. At the end stands where the recommended release is
worse than k-anonymity by more than 0.05 of AUC or twice its two-way distance, and whether the
recommendation has said so.
"""

from __future__ import annotations

import argparse
import json
import random
import time
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import incrowd as ic
from incrowd.curate.confirm_answers import ColumnChange, ColumnChanger
from incrowd.curate.draft.draft import draft
from incrowd.curate.question_group import confirm_group, group_questions
from incrowd.curate.recommend import recommend_method
from incrowd.engine.count import count_tuples, read_labels
from incrowd.engine.source import open_table
from incrowd.engine.table import Table
from incrowd.errors import IncrowdError
from incrowd.measure.label_evaluation import assign_levels, build_pair
from incrowd.measure.prediction import compute_accuracy
from incrowd.measure.utility import TablePair, compute_implied_rows
from incrowd.methods.expect import count_people
from incrowd.spec.build import ColumnHierarchies
from incrowd.spec.file import SpecFile, parse_spec

PAIRS = 60
RELEASES: dict[str, dict[str, Any]] = {
    "counts": {"method": "safe", "epsilon": 1.0, "delta": 1e-6},
    "synthetic": {"method": "synthetic", "epsilon": 1.0, "delta": 1e-6},
    "k-anonymity": {"method": "k-anonymity", "k": 5, "algorithm": "mondrian"},
}


@dataclass(frozen=True)
class Remainder:
    """What a release has kept of a table."""

    method: str
    rows: float
    informative: int
    columns: int
    two_way: float
    rare_median: float | None
    rare_least: float | None
    auc: float | None
    auc_original: float | None
    seconds: float


def main() -> None:
    """Publish every table in three ways, printing a line for each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--output", type=Path, help="a JSON file with everything")
    parser.add_argument("--only", nargs="+", default=[], help="files of tables")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    print(
        f"{'table':24}{'rows x columns':>15}{'asked':>8}  {'release':14}{'rows':>6}{'shown':>9}"
        f"{'two-way':>9}{'rare':>12}{'AUC':>12}{'seconds':>9}"
    )
    results = []
    for entry in json.loads((args.folder / "tables.json").read_text()):
        if args.only and entry["file"] not in args.only:
            continue
        result = run_table(args.folder, entry)
        results.append(result)
        if args.output:
            args.output.write_text(json.dumps(results, indent=1) + "\n")
    print()
    for result in results:
        for shortfall in list_shortfalls(result):
            is_told = any(words in result["reason"] for words in ("but ", "suppressed"))
            verdict = "said before" if is_told else "NOT SAID BEFORE"
            print(f"{result['name']}: {result['recommended']}, {shortfall}: {verdict}")


def list_shortfalls(result: dict[str, Any]) -> Iterator[str]:
    """Yield in what the recommended release of a table is far worse than k-anonymity."""
    releases = {release["method"]: release for release in result["releases"]}
    ours, classes = (releases.get(name) for name in (result["recommended"], "k-anonymity"))
    if ours is None or classes is None:
        return
    if None not in (ours["auc"], classes["auc"]) and ours["auc"] < classes["auc"] - 0.05:
        yield f"AUC {ours['auc']:.2f} against {classes['auc']:.2f}"
    if ours["two_way"] > 2 * classes["two_way"]:
        yield f"two-way {ours['two_way']:.3f} against {classes['two_way']:.3f}"


def run_table(folder: Path, entry: dict[str, Any]) -> dict[str, Any]:
    """Draft, confirm and publish one table in each way; print what is left."""
    frame = pl.read_csv(folder / entry["file"], infer_schema_length=None)
    frame = frame.with_row_index("__at").with_columns(
        held=pl.Series(np.random.default_rng(1).random(frame.height) < 0.2)
    )
    parts = [
        frame.filter(pl.col("held") == is_test).drop("held", "__at") for is_test in (False, True)
    ]
    train, test = map(open_table, parts)
    file, questions, entries = answer_draft(train, entry)
    size = count_people(file, train)
    file = file.with_entry(("size",), size)
    recommendation = recommend_method(file)
    assert recommendation is not None
    shape = f"{parts[0].height:,} x {len(file.spec.columns)}"
    counts = f"{questions:>4}/{entries:<4}"
    why = f"{recommendation.method}, because {recommendation.reason}"
    print(f"{entry['name']:24}{shape:>15}{counts} {why}", flush=True)
    for forecast in recommendation.forecasts:
        print(f"{'':49}expected {forecast}", flush=True)
    left: list[Remainder] = []
    for method, release in RELEASES.items():
        try:
            result = publish_and_measure(file, train, test, method, release, entry["target"])
        except IncrowdError as error:
            print(f"{'':49}{method}: {str(error)[:120]}", flush=True)
        else:
            left.append(result)
            print_left(result, recommended=method == recommendation.method)
    return {
        "name": entry["name"], "rows": parts[0].height, "columns": len(file.spec.columns),
        "questions": questions, "entries": entries, "recommended": recommendation.method,
        "reason": recommendation.reason,
        "forecasts": [asdict(forecast) for forecast in recommendation.forecasts],
        "releases": [asdict(release) for release in left],
    }  # fmt: skip


def print_left(left: Remainder, *, recommended: bool) -> None:
    """Print what a release has kept, with a star if it is the recommended one."""
    rare = "-" if left.rare_median is None else f"{left.rare_median:.2f}, {left.rare_least:.2f}"
    auc = "-" if left.auc is None else f"{left.auc:.2f} ({left.auc_original:.2f})"
    star = "*" if recommended else ""
    informative = f"{left.informative:>5}/{left.columns:<3}"
    print(
        f"{'':49}{left.method + star:14}{left.rows:>6.0%}{informative}"
        f"{left.two_way:>9.3f}{rare:>12}{auc:>12}{left.seconds:>9.1f}",
        flush=True,
    )


def answer_draft(table: Table, entry: dict[str, Any]) -> tuple[SpecFile, int, int]:
    """Answer the questions of a draft; return the spec, and how many there were."""
    file = parse_spec(draft(table).yaml())
    groups = group_questions(file, table)
    changer = ColumnChanger(file, table)
    roles = dict.fromkeys(entry["identifiers"], "identifier")
    roles |= dict.fromkeys(entry["dropped"], "drop") | {entry["target"]: "sensitive"}
    for name, role in roles.items():
        if file.spec.columns[name].role != role:
            changer.change(name, ColumnChange.model_validate({"role": role}))
    file = changer.file
    if entry["person"]:
        file = file.with_entry(("unit",), {"id": entry["person"]})
    for group in group_questions(file, table):
        file = confirm_group(file, group)
    return file, len(groups), sum(len(group.questions) for group in groups)


def publish_and_measure(
    file: SpecFile, train: Table, test: Table, method: str, release: dict[str, Any], target: str
) -> Remainder:
    """Publish by a method, without a report, and measure what is left."""
    start = time.process_time()
    published = ic.publish(train, file.with_entry(("release",), release))
    seconds = time.process_time() - start
    columns = {
        name: column for name, column in file.spec.columns.items()
        if column.role in ("quasi", "sensitive")
    }  # fmt: skip
    data = open_table(published.data)
    declared = ColumnHierarchies(columns)
    counts = count_tuples(train, declared)
    labels, _ = assign_levels(counts, read_labels(data, tuple(columns), weighted=False), {})
    pair = build_pair(counts, counts.axes, labels.drop_unused_labels())
    informative = sum(
        name in data.columns and len({*data.values(name)} - {"*", None}) > 1 for name in columns
    )
    rare = list(list_rare_shares(pair))
    accuracy = None
    if train.rows() and data.rows():
        coders = {
            name: hierarchy.encode
            for name, hierarchy in zip(counts.names, counts.hierarchies, strict=True)
        }
        accuracy = compute_accuracy(pair, target=target, held_out=bin_rows(test, counts, coders))
    return Remainder(
        method, rows=min(data.rows() / max(count_people(file, train), 1), 1.0),
        informative=informative,
        columns=len(columns), two_way=measure_two_way(pair),
        rare_median=float(np.median(rare)) if rare else None,
        rare_least=min(rare) if rare else None,
        auc=None if accuracy is None else accuracy.auc_released,
        auc_original=None if accuracy is None else accuracy.auc_original, seconds=seconds,
    )  # fmt: skip


def bin_rows(test: Table, counts: Any, coders: Any) -> Any:
    """Return the rows held out by the bins of the pair."""
    from incrowd.codes.frequency import merge_tuples
    from incrowd.measure.labels import assign_bins

    unseen = test.count(counts.names, coders)
    bins = [
        assign_bins(axis)[np.minimum(unseen.codes[:, at], len(axis.positions) - 1)]
        for at, axis in enumerate(counts.axes)
    ]
    return merge_tuples(np.column_stack(bins).astype(np.int32), unseen.counts)


def measure_two_way(pair: TablePair) -> float:
    """Return the mean total variation distance of pairs of columns."""
    places = list(combinations(range(len(pair.names)), 2))
    random.Random(1).shuffle(places)
    distances = []
    for a, b in places[:PAIRS]:
        before = sum_pairs(pair.original, pair.exact_shares[a], pair.exact_shares[b], a, b)
        after = sum_pairs(pair.released, pair.shares[a], pair.shares[b], a, b)
        distances.append(float(np.abs(before - after).sum() / 2))
    return float(np.mean(distances)) if distances else 0.0


def sum_pairs(table: Any, first: Any, second: Any, a: int, b: int) -> Any:
    """Return the share of each pair of bins; all of it missing where there are no rows."""
    joint = np.zeros((len(first), len(second)))
    np.add.at(joint, (table.codes[:, a], table.codes[:, b]), table.counts)
    return first.T @ joint @ second / max(table.total, 1)


def list_rare_shares(pair: TablePair) -> Iterator[float]:
    """Yield of each rare value the part of its share that is left, 1 at most."""
    for at in range(len(pair.names)):
        before = compute_implied_rows(pair.original, pair.exact_shares[at], at)
        after = compute_implied_rows(pair.released, pair.shares[at], at)
        if np.count_nonzero(before) > 16 or not after.sum():
            continue
        was, is_now = before / before.sum(), after / after.sum()
        for share, after_share in zip(was.tolist(), is_now.tolist(), strict=True):
            if 0.005 <= share <= 0.1 and share * before.sum() >= 20:
                yield min(after_share / share, 1.0)


if __name__ == "__main__":
    main()
