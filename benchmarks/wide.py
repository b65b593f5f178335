"""Releases of tables with few and with many columns: how time grows from 4 to 171 columns.

    python benchmarks/wide.py [--columns 4 16 64 171] [--rows 823] [--methods NAME ...]
                              [--baseline SRC] [--limit 300] [--table FILE.csv]

The table is drawn by a fixed seed: numbers with a long tail, numbers around a mean, yes or no, and
five answers in turn, all of which depend on one hidden number; some values are missing. FILE is a
table to take the first columns of instead, by the spec that ``incrowd init`` drafts, with ids as
quasi-identifiers. SRC is the ``src`` folder of another version: both publish in turn. Every release
is a new process, ``incrowd publish`` with a fixed seed; the seconds are those of the processor.
One that takes longer than the limit is stopped, and larger ones of its kind are not begun.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl

METHODS = {
    "k-anonymity": "{method: k-anonymity, k: 5}",
    "safe": "{method: safe, epsilon: 1.0, delta: 1.0e-6}",
    "slices": "{method: safe, epsilon: 1.0, delta: 1.0e-6, slices: 3}",
}
KINDS = (
    "intervals: {from: 0, to: 9999, widths: [10, 100, 1000], open: upper}",
    "intervals: {from: 0, to: 199, widths: [5, 20, 100], open: both}",
    "flat: {values: ['no', 'yes']}",
    "order: {values: [never, seldom, sometimes, often, always], runs: [2]}",
)
ANSWERS = np.array(["never", "seldom", "sometimes", "often", "always"])


def draw_table(rows: int, columns: int) -> pl.DataFrame:
    """Draw a table whose columns depend on one hidden number."""
    rng = np.random.default_rng(171)
    hidden, values = rng.normal(size=rows), {}
    for at in range(columns):
        point = 0.6 * hidden + 0.8 * rng.normal(size=rows)
        column = (
            np.rint(np.exp(4 + point)).astype(int),
            np.rint(100 + 30 * point).astype(int),
            np.where(point > 0.5, "yes", "no"),
            ANSWERS[np.digitize(point, [-1.5, -0.5, 0.5, 1.5])],
        )[at % len(KINDS)]
        is_missing = pl.Series(rng.random(rows) < 0.02 * (at % 3))
        values[f"c{at:03d}"] = pl.select(pl.when(~is_missing).then(pl.Series(column))).to_series()
    return pl.DataFrame(values)


def write_drawn(rows: int, columns: int, home: Path) -> str:
    """Write a table that was drawn; return its columns as a spec has them."""
    draw_table(rows, columns).write_csv(home / "table.csv")
    return "".join(
        f"  c{at:03d}: {{role: quasi, hierarchy: {{{KINDS[at % len(KINDS)]}}}}}\n"
        for at in range(columns)
    )


def write_first_columns(table: Path, columns: int, home: Path) -> str:
    """Write the first columns of a table; return them as a draft has them, nothing to confirm."""
    frame = pl.read_csv(table, infer_schema=False)
    frame[:, :columns].write_csv(home / "table.csv")
    draft = [sys.executable, "-m", "incrowd", "init", "table.csv", "-o", "draft.yaml"]
    subprocess.run(draft, cwd=home, env=make_environment(None, home), check=True,
                   capture_output=True)  # fmt: skip
    text = (home / "draft.yaml").read_text(encoding="utf-8")
    lines = re.search(r"^columns:\n((?:  .*\n)+)", text, re.MULTILINE)
    assert lines is not None
    entries = re.sub(r",? *confirm: \[[^\]]*\]", "", lines[1])
    return re.sub(r"role: identifier", "role: quasi, hierarchy: flat", entries)


def make_environment(source: Path | None, home: Path) -> dict[str, str]:
    """Return the variables of a process that uses a version, and remembers no releases."""
    newest = Path(__file__).resolve().parent.parent / "src"
    variables = {
        **os.environ,
        "PYTHONPATH": str(source or newest),
        "XDG_STATE_HOME": str(home / "s"),
    }
    variables.pop("PYTHONDONTWRITEBYTECODE", None)
    return variables


def time_release(entries: str, release: str, home: Path, source: Path | None, limit: float) -> str:
    """Publish, and return the processor seconds that it took, or why it did not end."""
    (home / "spec.yaml").write_text(
        f"table: table.csv\ncolumns:\n{entries}release: {release}\n", encoding="utf-8"
    )
    output = Path(tempfile.mkdtemp(dir=home)) / "release"
    command = [sys.executable, "-m", "incrowd", "publish", "spec.yaml", "--seed", "1", "-o"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    try:
        done = subprocess.run(
            [*command, str(output)], cwd=home, env=make_environment(source, home),
            capture_output=True, text=True, timeout=limit, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"> {limit:.0f}"
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 4):  # 4: there is a release, of few rows
        return f"status {done.returncode}: {done.stderr.strip()[:60]}"
    return f"{after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime:.1f}"


def main() -> None:
    """Publish each table by each method, and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--columns", type=int, nargs="+", default=[4, 16, 64, 171])
    parser.add_argument("--rows", type=int, default=823)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--baseline", type=Path)
    parser.add_argument("--limit", type=float, default=300.0)
    parser.add_argument("--table", type=Path)
    args = parser.parse_args()
    sources = {"seconds": None, **({"baseline": args.baseline} if args.baseline else {})}
    print(f"{'method':12} {'columns':>7} " + " ".join(f"{name:>10}" for name in sources))
    stopped: set[tuple[str, str]] = set()
    for columns in args.columns:
        with tempfile.TemporaryDirectory() as folder:
            home = Path(folder)
            entries = (
                write_first_columns(args.table.resolve(), columns, home)
                if args.table
                else write_drawn(args.rows, columns, home)
            )
            for method in args.methods:
                texts = []
                for name, source in sources.items():
                    text = "-"
                    if (method, name) not in stopped:
                        text = time_release(entries, METHODS[method], home, source, args.limit)
                    if text.startswith(">"):
                        stopped.add((method, name))
                    texts.append(text)
                print(f"{method:12} {columns:7} " + " ".join(f"{x:>10}" for x in texts), flush=True)


if __name__ == "__main__":
    main()
