"""The whole command on a small table, in a cold process, beside what no release can do without.

    PYTHONPATH=src python benchmarks/command.py DATA [--repeat 15] [--baseline SRC]

DATA is a folder with the Adult table in ARX's form: NAME.csv, and NAME_hierarchy_COLUMN.csv for
each column. ``publish`` is k-anonymity by the best scheme (k 5, at most 5 % suppressed); SRC is the
``src`` folder of another version. In the same run, in turn: a Python that does nothing, one that
loads the libraries, and one that has Polars read the table and write it as Parquet. Each starts
cold, with compiled modules on disk; seconds are of the clock and of the processor, the least and
the median. Last, the steps of one release, each at its least.
"""

from __future__ import annotations

import argparse
import csv
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

LIBRARIES = "import numpy, polars, pyarrow.parquet, pydantic, typer, jinja2, ruamel.yaml"
STEPS = """
import sys, time
begun = time.perf_counter()
from incrowd.publication import publish
marks = [("load", begun)]
heard = lambda name: marks.append((name, time.perf_counter()))
heard("open")
publish(None, sys.argv[1], output=sys.argv[2], step=heard)
heard("end")
for (name, start), (_, end) in zip(marks, marks[1:]):
    print(name, end - start)
"""


@dataclass(frozen=True)
class TimedCommand:
    """What is started, and how long it took: by the clock, by the processor."""

    name: str
    command: list[str]
    source: Path
    clock: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)

    def run(self, home: Path) -> str:
        """Run it in an empty folder, and return what it said."""
        shutil.rmtree(home / "run", ignore_errors=True)
        (home / "run").mkdir()
        state = str(home / "run" / "state")  # a table that was released before is looked at longer
        variables = {**os.environ, "PYTHONPATH": str(self.source), "XDG_STATE_HOME": state}
        variables.pop("PYTHONDONTWRITEBYTECODE", None)
        before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        process = subprocess.run(
            self.command,
            cwd=home / "run",
            env=variables,
            check=True,
            capture_output=True,
            text=True,
        )
        self.clock.append(time.perf_counter() - begun)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used = (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)
        self.processor.append(used)
        return process.stdout


def write_spec(data: Path, home: Path) -> tuple[Path, Path]:
    """Return the table, and a spec by which all of its columns are generalized."""
    table = next(x for x in sorted(data.glob("*.csv")) if "_hierarchy_" not in x.name)
    with table.open(encoding="utf-8") as file:
        names = next(csv.reader(file, delimiter=";"))
    lines = [f"table: {table}", "columns:"]
    for name in names:
        hierarchy = data / f"{table.stem}_hierarchy_{name}.csv"
        lines.append(f"  {name}: {{role: quasi, hierarchy: {{csv: {hierarchy}}}}}")
    lines.append("release: {method: k-anonymity, algorithm: ola, k: 5, suppression: 0.05}")
    (home / "spec.yaml").write_text("\n".join(lines), encoding="utf-8")
    return table, home / "spec.yaml"


def main() -> None:
    """Run everything in turn, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--repeat", type=int, default=15)
    parser.add_argument("--baseline", type=Path)
    args = parser.parse_args()
    source = Path(__file__).resolve().parent.parent / "src"
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        table, spec = write_spec(args.data.resolve(), home)
        publish = [sys.executable, "-m", "incrowd", "publish", str(spec), "-o", "release"]
        copied = (
            f"import polars; polars.read_csv({str(table)!r}, separator=';', infer_schema=False)"
            ".write_parquet('table.parquet')"
        )
        jobs = [
            TimedCommand("publish", publish, source),
            *([TimedCommand("publish, baseline", publish, args.baseline)] if args.baseline else []),
            TimedCommand("nothing", [sys.executable, "-c", "pass"], source),
            TimedCommand("load the libraries", [sys.executable, "-c", LIBRARIES], source),
            TimedCommand("Polars reads and writes", [sys.executable, "-c", copied], source),
        ]
        steps: dict[str, list[float]] = {}
        walk = TimedCommand("steps", [sys.executable, "-c", STEPS, str(spec), "release"], source)
        for job in (*jobs, walk):  # so that modules are compiled
            job.run(home)
        for _ in range(args.repeat):
            for job in jobs:
                job.run(home)
            for line in walk.run(home).splitlines():
                name, seconds = line.split()
                steps.setdefault(name, []).append(float(seconds))
    print(f"{'seconds':24} {'clock':>7} {'median':>7} {'cpu':>7} {'median':>7}")
    for job in jobs:
        both = job.clock[1:], job.processor[1:]
        text = [
            f"{figure(timings):7.3f}" for timings in both for figure in (min, statistics.median)
        ]
        print(f"{job.name:24} {' '.join(text)}")
    print("steps: " + ", ".join(f"{name} {min(timings):.3f}" for name, timings in steps.items()))


if __name__ == "__main__":
    main()
