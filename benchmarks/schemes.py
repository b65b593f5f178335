"""What safe releases keep: by each scheme and budget, and in slices beside one wide table.

    python benchmarks/schemes.py [DATA [RELEASES]]

On the sample tables and, if DATA names a folder with it in ARX's form, on the Adult table: the
normalized loss (an unreleased row counts 1; choices included) of RELEASES whole releases (30 by
default), with the spread of single ones, the rows released, and how often the last column of the
census tables, a salary class, is predicted rightly by a classifier that was trained on a release
(mean of five). "few, fine" is a search for detail that keeps a quarter of the rows. What is not
called counts is a sample; benchmarks/counts.py holds the two side by side more closely.

Then eight columns of the census tables in slices of three, of two, and in one wide table, at
epsilon = 1 in all: the mean error of the associations of all pairs of columns, of those whose
association is above 0.2, and the largest.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from incrowd.curate.demo_tables import SPECS, make_demo_table
from incrowd.engine.source import open_table
from incrowd.engine.table import Table
from incrowd.evaluation.evaluate import evaluate
from incrowd.publication import publish
from incrowd.spec.file import SpecFile, load_spec, parse_spec

STRONG = 0.2
SETTINGS: dict[str, dict[str, Any]] = {
    "counts, fixed": {"draw": "counts", "scheme": "fixed"},
    "counts, search": {"draw": "counts", "scheme": "search"},
    "fixed": {"draw": "sample", "scheme": "fixed"},
    "search": {"draw": "sample", "scheme": "search"},
    "mondrian": {"draw": "sample", "scheme": "mondrian"},
    "few, fine": {"scheme": "search", "objective": "detail", "keep": 0.25},
}


@dataclass(frozen=True)
class BenchmarkTable:
    """A table and its spec; ``target`` is what a classifier predicts, if anything."""

    name: str
    table: Table
    spec: SpecFile
    target: str | None = None
    left_out: str = ""

    def change_release(self, **changes: Any) -> SpecFile:
        """Return the spec with other entries under ``release``."""
        spec = self.spec
        for name, value in changes.items():
            spec = spec.with_entry(("release", name), value)
        return spec

    def drop_one_column(self) -> BenchmarkTable:
        """Return the same with eight columns."""
        dropped = self.spec.with_entry(("columns", self.left_out), {"role": "drop"})
        return BenchmarkTable(self.name, self.table, dropped)


def load_benchmark_tables(data: Path | None) -> list[BenchmarkTable]:
    """Return the sample tables, and Adult."""
    benchmark_tables = [
        BenchmarkTable(
            "census",
            make_demo_table("census"),
            parse_spec(SPECS["census"]),
            "salary_class",
            "native_country",
        ),
        BenchmarkTable("voters", make_demo_table("voters"), parse_spec(SPECS["voters"])),
        BenchmarkTable("patients", make_demo_table("patients"), parse_spec(SPECS["patients"])),
    ]
    if data is None:
        return benchmark_tables
    path = next(x for x in data.glob("*.csv") if "_hierarchy_" not in x.name)
    table = open_table(path)
    columns = {
        name: {
            "role": "quasi",
            "hierarchy": {"csv": str((data / f"{path.stem}_hierarchy_{name}.csv").resolve())},
        }
        for name in table.columns
    }
    spec = load_spec({"columns": columns, "release": {"epsilon": 1.0, "delta": 1e-6}})
    return [
        BenchmarkTable("Adult", table, spec, "salary-class", "native-country"),
        *benchmark_tables,
    ]


def print_kept_rows(subject: BenchmarkTable, setting: str, epsilon: float, number: int) -> None:
    """Publish so often, and print what was kept."""
    spec = subject.change_release(**SETTINGS[setting], epsilon=epsilon)
    releases = [publish(subject.table, spec) for _ in range(number)]
    losses = [release.evaluation.loss for release in releases]
    rows = np.mean([release.evaluation.rows_released for release in releases])
    line = (
        f"{subject.name:10}{setting:16}{epsilon:8g}{np.mean(losses):9.4f} +- {np.std(losses):.4f}"
        f"{rows:10,.0f}"
    )
    if subject.target is not None:
        result = [
            evaluate(subject.table, x.data, spec, target=subject.target) for x in releases[:5]
        ]
        accuracies = [x.utility.accuracy for x in result if x.utility and x.utility.accuracy]
        line += f"{np.mean([release.released for release in accuracies]):8.1%}"
        line += f" (original {accuracies[0].original:.1%}, guessing {accuracies[0].majority:.1%})"
    print(line, flush=True)


def print_associations(subject: BenchmarkTable, name: str, number: int, **changes: Any) -> None:
    """Publish eight columns so often, and print what is left of their associations."""
    narrow = subject.drop_one_column()
    spec = narrow.change_release(**changes)
    errors, strong, largest = [], [], []
    for _ in range(number):
        release = publish(narrow.table, spec)
        result = evaluate(narrow.table, release, spec)
        pairs: Any = result.utility.associations if result.utility else result.associations
        off = {pair: abs(pair.original - pair.released) for pair in pairs}
        errors.append(np.mean(list(off.values())))
        strong.append(np.mean([error for pair, error in off.items() if pair.original > STRONG]))
        largest.append(max(off.values()))
    parameters = release.certificate.tables[0].parameters
    print(
        f"{subject.name:10}{name:34}{len(release.certificate.tables):4} tables"
        f"{np.mean(errors):9.4f}{np.mean(strong):9.4f}{np.mean(largest):9.4f}   "
        f"k = {int(float(parameters['k']))}, "
        + (f"r = {parameters['r']}" if "r" in parameters else f"beta = {parameters['beta']}"),
        flush=True,
    )


def main() -> None:
    data = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    number = int(sys.argv[2]) if len(sys.argv) > 2 else 30
    tables = load_benchmark_tables(data)
    print(f"{'table':10}{'scheme':16}{'epsilon':>8}{'loss':>9}{'spread':>10}{'rows':>10}  accuracy")
    for subject in tables:
        for setting in SETTINGS:
            for epsilon in (0.5, 1.0, 2.0):
                print_kept_rows(subject, setting, epsilon, number)
    print(f"\n{'table':10}{'eight columns in':45}{'all':>9}{'strong':>9}{'largest':>9}")
    for subject in tables:
        if subject.left_out:
            for name, changes in (
                ("one table, search", {"scheme": "search"}),
                ("one table, mondrian", {"scheme": "mondrian"}),
                ("slices: 3", {"slices": 3}),
                ("slices: 3, mondrian", {"slices": 3, "scheme": "mondrian"}),
                ("slices: 2, all pairs", {"slices": {"columns": 2, "tables": "all"}}),
                ("6 tables of 3, chosen", {"slices": {"columns": 3, "tables": 6}}),
                ("3 tables of 3, chosen", {"slices": {"columns": 3, "tables": 3}}),
            ):
                for draw in ("counts", "sample"):
                    if draw == "sample" or changes.get("scheme") != "mondrian":
                        title = f"{draw}: {name}"
                        print_associations(
                            subject, title, max(number // 3, 1), draw=draw, **changes
                        )


if __name__ == "__main__":
    main()
