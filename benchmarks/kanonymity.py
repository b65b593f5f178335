"""Classical k-anonymity beside the public Python packages that offer it, in the same run.

    python benchmarks/kanonymity.py DATA [--quick] [--limit SECONDS] [--envs FOLDER]
    python benchmarks/kanonymity.py DATA --search [--baseline SRC]

DATA is a folder with the Adult table in ARX's form: a ``;``-separated table with a header, and
``<table>_hierarchy_<column>.csv`` for each column. Each peer has an environment of its own under
FOLDER, kept for the next run. Every way runs in a process of its own, in turn; those
of the peers have no Incrowd, so that this file imports it where it is used.
The seconds are those of reading the file and anonymizing it. ``incrowd publish`` also measures,
certifies and writes a whole release; the peers write nothing. Importing is timed apart. Memory is
the peak of the largest process of the way. The loss is the mean of (a - 1) / (m - 1) over rows and
columns, for a value that stands for a of m leaves, and 1 for a row left out. The last column is
the time over ours. pycanon only checks k, on a table that has it already.

``--search`` has the search for the best scheme (OLA) alone, on tables of different shape, beside
that of another version, whose ``src`` folder is SRC: see ``lattices.py``, which has more options.
"""

from __future__ import annotations

import argparse
import csv
import importlib
import importlib.metadata
import json
import logging
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

ENVS = Path(__file__).resolve().parent.parent / "build" / "bench-envs"
FOUR = ["sex", "age", "race", "marital-status"]
PROCESSES = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
LIGHTHOUSE, ROWS, MADE_ROWS = "project_lighthouse_anonymize", 3_000_000, 1_200_000
# How many values a label stands for, up to "*", in a table that has 25,920 schemes.
WIDTHS = [[5, 10, 20, 40, 80], [3, 9, 27, 81], [2, 4, 8], [2, 4, 8], [3, 6], [3, 6], [2, 4], [2]]


@dataclass(frozen=True)
class AnonymizationJob:
    """A table on disk, the columns to anonymize with their hierarchies, and how."""

    name: str
    table: str
    hierarchies: dict[str, str]
    algorithm: str
    k: int
    suppression: float = 0.0
    checked: str = ""  # a table that is anonymous already

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self.hierarchies)

    def read_hierarchy(self, column: str) -> list[list[str]]:
        """Return a column's hierarchy: from each value to ``*``."""
        with Path(self.hierarchies[column]).open(newline="") as file:
            return list(csv.reader(file, delimiter=";"))

    def is_numeric(self, column: str) -> bool:
        """Whether the column holds whole numbers."""
        return all(line[0].isdigit() for line in self.read_hierarchy(column))


# What a way returns: the rows released, and their loss, to be computed when the clock is off.
Answer = tuple[int, Callable[[], float | None]]


def run_incrowd_free(job: AnonymizationJob, api: Any) -> Answer:
    """Return the same with sets of values in place of groups of hierarchies."""
    return run_incrowd(job, api, labels="free")


def run_incrowd(job: AnonymizationJob, api: Any, **more: str) -> Answer:
    """From the file to what every row shows, as the peers do."""
    from incrowd.codes.counted_table import PublishedTable
    from incrowd.codes.frequency import merge_tuples
    from incrowd.engine.count import count_tuples_with_kept
    from incrowd.engine.source import open_table
    from incrowd.measure.label_evaluation import evaluate_labels
    from incrowd.privacy.randomness import SystemRandomness
    from incrowd.spec.build import ColumnHierarchies
    from incrowd.spec.model import Column
    from incrowd.spec.release import KAnonymitySpec

    columns = {c: Column(role="quasi", hierarchy=declare_hierarchy(job, c)) for c in job.columns}
    how = {"algorithm": job.algorithm, "k": job.k, "suppression": job.suppression, **more}
    rows = count_tuples_with_kept(open_table(job.table), ColumnHierarchies(columns), ())
    axes = rows.counted.axes
    release = KAnonymitySpec.model_validate({"method": "k-anonymity", **how})
    result = api.form_classes(rows, columns, release, bits=SystemRandomness())
    counts = rows.counted.frequencies.counts[result.published_mask]

    def lost() -> float:
        cells = merge_tuples(result.codes[result.published_mask], counts)
        return evaluate_labels(rows.counted, axes, PublishedTable(result.labels, cells)).loss

    return int(counts.sum()), lost


def declare_hierarchy(job: AnonymizationJob, column: str) -> Any:
    """Return a column's hierarchy as a spec declares it."""
    from incrowd.spec.hierarchies import HierarchyChoice

    return HierarchyChoice.model_validate({"csv": job.hierarchies[column]})


def run_publish(job: AnonymizationJob, api: Any) -> Answer:
    """Return a whole release: measured, certified, with a report, written to a folder."""
    with Path(job.table).open() as file:
        columns: Any = {c: {"role": "drop"} for c in next(csv.reader(file, delimiter=";"))}
    columns |= {c: {"role": "quasi", "hierarchy": {"csv": job.hierarchies[c]}} for c in job.columns}
    how = {"algorithm": job.algorithm, "k": job.k, "suppression": job.suppression}
    spec = {"table": job.table, "columns": columns, "release": {"method": "k-anonymity", **how}}
    with tempfile.TemporaryDirectory() as folder:
        release = api.publish(None, spec, output=Path(folder) / "release")
    return release.certificate.release.rows, lambda: release.evaluation.loss


def run_anjana(job: AnonymizationJob, api: Any) -> Answer:
    """One column is made coarser at a time, the one with the most values first."""
    frame = read_frame(job)
    levels = {
        c: dict(enumerate(map(list, zip(*job.read_hierarchy(c), strict=True)))) for c in job.columns
    }
    released = api.k_anonymity(frame, [], job.columns, job.k, 100 * job.suppression, levels)
    return len(released), lambda: compute_loss(job, count_covered_leaves(job, released), len(frame))


def run_crowds(job: AnonymizationJob, api: Any) -> Answer:
    """OLA. It keeps what it found for the next call, so a process may call it only once."""
    rule, rules = importlib.import_module("crowds.kanonymity.generalizations").GenRule, {}
    frame = read_frame(job)
    for column in job.columns:
        values, *levels, _ = zip(*job.read_hierarchy(column), strict=True)  # it adds the top itself
        rules[column] = rule([dict(zip(values, to, strict=True)).__getitem__ for to in levels])
    released, _ = api.anonymize(frame, rules, k=job.k, max_sup=100 * job.suppression)
    return len(released), lambda: compute_loss(
        job, count_covered_leaves(job, released.fillna("*")), len(frame)
    )


def run_anonypy(job: AnonymizationJob, api: Any) -> Answer:
    """Mondrian without hierarchies: sets of values, and ranges of numbers."""
    frame = read_frame(job, numbers=True)
    frame["all"] = "all"  # it wants a sensitive column, and groups by it
    texts = [c for c in frame if c == "all" or not job.is_numeric(c)]
    frame = frame.astype(dict.fromkeys(texts, "category"))
    rows = api.Preserver(frame, job.columns, "all").anonymize_k_anonymity(k=job.k)

    def covers(column: str, text: str) -> int:
        ends = text.split("-")
        return text.count(",") + 1 if column in texts else int(ends[-1]) - int(ends[0]) + 1

    def lost() -> float:
        every = [row for row in rows for _ in range(row["count"])]
        return compute_loss(
            job, {c: [covers(c, r[c][0]) for r in every] for c in job.columns}, len(frame)
        )

    return sum(row["count"] for row in rows), lost


def run_lighthouse(job: AnonymizationJob, api: Any) -> Answer:
    """Mondrian with hierarchies; numbers become means. More cores are slower on small tables."""
    tree = importlib.import_module(f"{api.__name__}.gtrees").GTree
    frame = read_frame(job, numbers=True)
    frame["row"] = range(len(frame))
    trees = {c: tree() for c in job.columns if not job.is_numeric(c)}
    for column in trees:
        nodes: dict[tuple[str, ...], Any] = {(): None}
        for line in job.read_hierarchy(column):
            for at in reversed(range(len(line))):
                path = tuple(line[at:])
                if path not in nodes:
                    nodes[path] = trees[column].create_node(path[0], parent=nodes[path[1:]])
        trees[column].add_default_geometric_sizes()
    log, cores = logging.getLogger(), os.cpu_count() if len(frame) > 1_000_000 else None
    released, *_ = api.k_anonymize(log, frame, job.columns, job.k, trees, "row", parallelism=cores)
    return len(released), lambda: None


def run_pycanon(job: AnonymizationJob, api: Any) -> Answer:
    """How many rows the smallest class has, in a table that is anonymous already."""
    frame = read_frame(replace(job, table=job.checked))
    assert api.k_anonymity(frame, job.columns) >= job.k
    return len(frame), lambda: None


# A function, the module that it is given, the algorithms, and what to install if not ours.
WAYS: dict[str, tuple[Callable[[AnonymizationJob, Any], Answer], str, str, str]] = {
    "incrowd": (run_incrowd, "incrowd.methods.k_anonymity.classes", "ola mondrian", ""),
    "incrowd, free labels": (
        run_incrowd_free,
        "incrowd.methods.k_anonymity.classes",
        "mondrian",
        "",
    ),
    "incrowd publish": (run_publish, "incrowd.publication", "ola mondrian", ""),
    "anjana": (run_anjana, "anjana.anonymity", "ola", "anjana"),
    "crowds": (run_crowds, "crowds.kanonymity.ola", "ola", "crowds"),
    "pycanon, check": (run_pycanon, "pycanon.anonymity", "ola", "pycanon"),
    "anonypy": (run_anonypy, "anonypy", "mondrian", "anonypy pandas"),
    "lighthouse": (run_lighthouse, LIGHTHOUSE, "mondrian", LIGHTHOUSE),
}


def read_frame(job: AnonymizationJob, *, numbers: bool = False) -> Any:
    """Return the columns of the job as a pandas data frame, as text or with numbers as numbers."""
    import pandas as pd

    types = {c: int if numbers and job.is_numeric(c) else str for c in job.columns}
    frame = pd.read_csv(job.table, sep=";", usecols=job.columns, dtype=types, na_filter=False)
    return frame[job.columns]


def count_covered_leaves(job: AnonymizationJob, released: Any) -> dict[str, Any]:
    """How many leaves each row covers, where a data frame shows labels of hierarchies."""
    covered = {}
    for column in job.columns:
        counter: Counter[str] = Counter()
        for level in zip(*job.read_hierarchy(column), strict=True):
            counter |= Counter(level)  # the larger, where two levels have the same label
        covered[column] = released[column].map(counter)
    return covered


def compute_loss(job: AnonymizationJob, covered: dict[str, Any], total: int) -> float:
    """Return the mean loss, where ``covered`` tells how many leaves each row released covers."""
    lost = 0.0
    for column, cover in covered.items():
        lost += (
            (sum(cover) - len(cover)) / (len(job.read_hierarchy(column)) - 1) + total - len(cover)
        )
    return float(lost / total / len(covered))


def run_way(name: str, job: AnonymizationJob) -> None:
    """Be the process of one way: print what was measured, then the loss."""
    out, sys.stdout = sys.stdout, sys.stderr  # some peers print
    way, module, _, packages = WAYS[name]
    start = time.perf_counter()
    api, imported = importlib.import_module(module), time.perf_counter()
    rows, lost = way(job, api)
    seconds = time.perf_counter() - imported
    memory = max(resource.getrusage(who).ru_maxrss for who in PROCESSES) / 2**20
    version = importlib.metadata.version((packages or "incrowd").split()[0])
    print(json.dumps([version, imported - start, seconds, memory, rows]), file=out, flush=True)
    print(json.dumps(lost()), file=out)


def make_large(source: str, path: str) -> None:
    """Repeat a table, with other ages and educations among those it has."""
    import numpy as np
    import polars as pl

    draw, frame = np.random.default_rng(0), pl.read_csv(source, separator=";")
    ages = frame["age"].unique().sort().to_numpy()
    frame = frame[np.arange(ROWS) % len(frame)]
    near = np.searchsorted(ages, frame["age"].to_numpy()) + draw.integers(-3, 4, ROWS)
    other = np.where(draw.random(ROWS) < 0.2, draw.integers(0, ROWS, ROWS), np.arange(ROWS))
    age = pl.Series("age", ages[near.clip(0, len(ages) - 1)])
    frame.with_columns(age, frame["education"][other]).write_csv(path, separator=";")


def make_wide(path: str) -> None:
    """Write a table of people who do not exist, about 1.1 million of them unlike each other."""
    import numpy as np
    import polars as pl

    draw, columns = np.random.default_rng(0), {}
    for at, (*widths, size) in enumerate(WIDTHS):
        values = [f"{'v' * (at % 2)}{code}" for code in range(size)]  # numbers, or text
        columns[f"c{at}"] = np.array(values)[(size * draw.random(MADE_ROWS) ** 2).astype(int)]
        with Path(path).with_name(f"wide_hierarchy_c{at}.csv").open("w") as file:
            for code, value in enumerate(values):
                spans = [f"{code // w * w}-{code // w * w + w - 1}" for w in widths]
                file.write(";".join([value, *spans, "*\n"]))
    pl.DataFrame(columns).write_csv(path, separator=";")


def make_checked(text: str) -> None:
    """Write the table that is checked: every column one below its top, small classes left out."""
    import polars as pl

    job = AnonymizationJob(**json.loads(text))
    below = {c: {line[0]: line[-2] for line in job.read_hierarchy(c)} for c in job.columns}
    frame = pl.read_csv(job.table, separator=";", infer_schema=False).select(job.columns)
    frame = frame.with_columns(pl.col(c).replace_strict(below[c]) for c in job.columns)
    frame.filter(pl.len().over(job.columns) >= job.k).write_csv(job.checked, separator=";")


def make_table(what: str, *arguments: str) -> None:
    """Make a table in another process: one starts with its parent's peak, so this stays small."""
    subprocess.run([sys.executable, __file__, "--make", what, *arguments], check=True)


def make_jobs(data: Path, folder: Path, *, quick: bool) -> Iterator[AnonymizationJob]:
    """Make the tables, and tell the jobs on them."""
    source = next(path for path in data.glob("*.csv") if "_hierarchy_" not in path.name).resolve()
    large, wide, checked = (folder / f"{name}.csv" for name in ("large", "wide", "checked"))
    ola: dict[str, Any] = {"algorithm": "ola", "k": 5, "suppression": 0.05}

    def job(
        name: str, table: Path, columns: list[str], home: Path = source, **how: Any
    ) -> AnonymizationJob:
        paths = {c: str(home.with_name(f"{home.stem}_hierarchy_{c}.csv")) for c in columns}
        return AnonymizationJob(f"{name}, {len(columns)} columns", str(table), paths, **how)

    header = source.read_text().partition("\n")[0].split(";")
    tables = [("Adult", source, FOUR, FOUR), ("Adult", source, header, header[:-1])]
    if not quick:
        make_table("large", str(source), str(large))
        tables.append(("3 million", large, header, header[:-1]))
    for name, table, more, fewer in tables:
        first = job(name, table, more, **ola, checked=str(checked))
        make_table("checked", json.dumps(asdict(first)))
        yield from (first, job(name, table, fewer, algorithm="mondrian", k=10))
    if not quick:
        make_table("wide", str(wide))
        yield job("25,920 schemes", wide, [f"c{at}" for at in range(len(WIDTHS))], wide, **ola)


def prepare_environment(packages: list[str], envs: Path) -> str:
    """Return the interpreter of a peer, in an environment made for it.

    A RuntimeError says why not.
    """
    home = envs.resolve() / packages[0]
    python, ready = str(home / "bin" / "python"), home / "ready"
    create = [sys.executable, "-m", "venv", "--clear", str(home)]
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages]
    for command in [] if ready.exists() else [create, install]:
        process = subprocess.run(command, capture_output=True, text=True)
        if process.returncode:
            raise RuntimeError("not installed, " + "".join(process.stderr.splitlines()[-1:]))
    ready.touch()
    return python


def measure_way(name: str, job: AnonymizationJob, envs: Path, limit: float) -> list[Any]:
    """Version, seconds to import, seconds, gigabytes, rows and loss, or a RuntimeError."""
    packages, pipe = WAYS[name][3].split(), subprocess.PIPE
    python = prepare_environment(packages, envs) if packages else sys.executable
    command = [python, "-W", "ignore", __file__, "--way", name, json.dumps(asdict(job))]
    # In a session of its own, so that the processes it starts can be stopped with it.
    child = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, start_new_session=True)
    try:
        out, text = child.communicate(timeout=limit)
    except (subprocess.TimeoutExpired, KeyboardInterrupt) as why:
        os.killpg(child.pid, 9)
        out, text = child.communicate()[0], f"over {limit:g} s"
        if isinstance(why, KeyboardInterrupt):
            raise
    if not out:
        raise RuntimeError((text.strip() or "ended").splitlines()[-1])
    measured, *lost = map(json.loads, out.splitlines())
    return [*measured, *(lost or [None])]


def main() -> None:
    """Print a line for each way of each job, ours first."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--quick", action="store_true", help="small tables only, 60 s at most")
    parser.add_argument("--limit", type=float, default=300, help="seconds for each way")
    parser.add_argument("--envs", type=Path, default=ENVS, help="where to install the peers")
    parser.add_argument("--search", action="store_true", help="the search of schemes alone")
    parser.add_argument("--baseline", type=Path, help="the src folder of another version")
    args = parser.parse_args()
    if args.search:
        import lattices

        more = [] if args.baseline is None else ["--baseline", str(args.baseline)]
        lattices.main(["--data", str(args.data), *more])
        return
    limit = min(args.limit, 60) if args.quick else args.limit
    head = f"{'import s':>9}{'seconds':>9}{'peak GB':>9}{'rows':>11}{'loss':>8}{'/ ours':>8}"
    print(f"{'job':28}{'':10}{'way':24}{head}")
    with tempfile.TemporaryDirectory() as folder:
        for job in make_jobs(args.data, Path(folder), quick=args.quick):
            ours = None
            for name, (_, _, algorithms, packages) in WAYS.items():
                if job.algorithm not in algorithms or (packages and "schemes" in job.name):
                    continue
                print(f"{job.name:28}{job.algorithm:10}", end="", flush=True)
                try:
                    version, load, seconds, peak, rows, lost = measure_way(
                        name, job, args.envs, limit
                    )
                except RuntimeError as error:
                    print(f"{name:24}{error}")
                    continue
                ours = seconds if name == "incrowd" else ours
                ratio = f"{seconds / ours:.1f}" if ours else "-"
                print(f"{f'{name} {version}':24}{load:9.2f}{seconds:9.2f}{peak:9.2f}", end="")
                print(f"{rows:11,}{'-' if lost is None else f'{lost:.4f}':>8}{ratio:>8}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--way"]:
        run_way(sys.argv[2], AnonymizationJob(**json.loads(sys.argv[3])))
    elif sys.argv[1:2] == ["--make"]:
        globals()[f"make_{sys.argv[2]}"](*sys.argv[3:])
    else:
        main()
