"""What the report takes of a release: measures, quick attacks, pages; and how large they are.

    python benchmarks/report.py [ROWS] [WAY ...]

Publishes sample tables of ROWS people who do not exist (1,000,000 by default), each way in a
process of its own, and prints the seconds of the steps of ``publish`` that make the report, their
sum, their sum in seconds of the processor (on a busy machine the better measure), the seconds of
the whole release, and the sizes of ``report.html`` and ``certificate.html``.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
import warnings
from itertools import pairwise
from pathlib import Path
from typing import Any

from incrowd.curate.demo_tables import SPECS, make_demo_table
from incrowd.publication import publish
from incrowd.spec.file import parse_spec

STEPS = ("measure", "attack", "report")
CLASSES = {"k": 10, "suppression": 0.05}
WAYS: dict[str, tuple[str, dict[str, Any]]] = {
    "counts": ("voters", {}),
    "counts, target": ("census", {"target": "salary_class"}),
    "sample": ("voters", {"draw": "sample"}),
    "slices": ("census", {"slices": 3}),
    "k-anonymity": ("patients", {"method": "k-anonymity", **CLASSES}),
    "mondrian": ("patients", {"method": "k-anonymity", "k": 10, "algorithm": "mondrian"}),
    "k-epsilon": ("patients", {"method": "k-epsilon", "epsilon": 1.0, **CLASSES}),
}  # fmt: skip


def measure_release(way: str, rows: int) -> dict[str, float]:
    """Seconds of the steps, and bytes of the pages."""
    kind, release = WAYS[way]
    file = parse_spec(SPECS[kind])
    settings = dict(file.document["release"])
    if release.get("method", "safe") != "safe":
        settings = {}
    document = {**json.loads(json.dumps(file.document)), "release": {**settings, **release}}
    document.pop("table", None)
    if release.get("method") == "k-epsilon":
        document["columns"]["weight"] = {"role": "noisy", "precision": 0.1, "bounds": [20, 300]}
    table = make_demo_table(kind, rows=rows).to_frame()
    began: list[tuple[str, float, float]] = []

    def step(name: str) -> None:
        began.append((name, time.perf_counter(), time.process_time()))

    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.perf_counter()
        published = publish(
            table, document, output=Path(folder) / "release",
            step=step,
        )  # fmt: skip
        step("end")
        seconds = dict.fromkeys(STEPS, 0.0)
        busy = 0.0
        for (name, since, used), (_, until, then) in pairwise(began):
            if name in seconds:
                seconds[name] += until - since
                busy += then - used
        sizes = {
            "report.html": (published.curator / "report.html").stat().st_size,
            "certificate.html": (published.folder / "certificate.html").stat().st_size,
        }
    return {
        **seconds,
        "sum": sum(seconds.values()),
        "cpu": busy,
        "publish": began[-1][1] - start,
        **sizes,
    }


def main() -> None:
    """Measure every way, or those that are named."""
    rows = int(sys.argv[1].replace(",", "")) if len(sys.argv) > 1 else 1_000_000
    if sys.argv[2:3] == ["--one"]:
        print(json.dumps(measure_release(sys.argv[3], rows)))
        return
    print(f"{rows:,} rows; seconds, then kilobytes")
    print(f"{'':16}{'measure':>9}{'attack':>9}{'report':>9}{'sum':>9}{'cpu':>9}{'publish':>9}{'report':>10}"
          f"{'certificate':>13}")  # fmt: skip
    for way in sys.argv[2:] or WAYS:
        command = [sys.executable, __file__, str(rows), "--one", way]
        result = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        seconds = "".join(f"{result[name]:9.2f}" for name in (*STEPS, "sum", "cpu", "publish"))
        print(f"{way:16}{seconds}{result['report.html'] / 1000:10.0f}"
              f"{result['certificate.html'] / 1000:13.1f}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
