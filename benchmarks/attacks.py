"""Every attack on every method: what k-anonymity does not stop, and what safe releases do.

    python benchmarks/attacks.py [DATA [FOLDER]]

On half of each sample table and, if DATA names a folder with it in ARX's form, of the Adult table;
the other half are the people who are not in it. k = 5; epsilon = 1 and delta = 1e-6; 2,000 people.
A line for each attack: success, guessing and people not in the table, for each way to publish. Two
stars mark where an attack does better than both, beyond the intervals; one star, where that is
within what the guarantee allows. FOLDER gets a picture, attacks.png, and attacks.json.

Then a million rows of the census: how long linkage and inference take.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from schemes import BenchmarkTable, load_benchmark_tables

from incrowd.curate.demo_tables import make_demo_table
from incrowd.evaluation.attacks.attack import attack
from incrowd.measure.estimate import AttackReport, Estimate
from incrowd.publication import publish
from incrowd.spec.file import SpecFile

WAYS: dict[str, dict[str, Any]] = {
    "k-anonymity, OLA": {"method": "k-anonymity", "algorithm": "ola", "k": 5},
    "k-anonymity, Mondrian": {"method": "k-anonymity", "algorithm": "mondrian", "k": 5},
    "(k, ε)-anonymity": {"method": "k-epsilon", "k": 5, "epsilon": 1.0},
    "safe, sample": {"epsilon": 1.0, "delta": 1e-6, "draw": "sample"},
    "safe, noisy counts": {"epsilon": 1.0, "delta": 1e-6, "draw": "counts"},
}
COLORS = ("#8c2d04", "#d94801", "#fd8d3c", "#4292c6", "#08519c")
SECRETS = {
    "Adult": "salary-class",
    "census": "salary_class",
    "patients": "diagnosis",
    "voters": "race",
}
NOISY: dict[str, tuple[str, dict[str, Any]]] = {
    "Adult": ("age", {"precision": 1, "bounds": [17, 90]}),
    "census": ("height", {"precision": 1, "bounds": [100, 230]}),
    "patients": ("weight", {"precision": 0.1, "bounds": [20, 300]}),
    "voters": ("height", {"precision": 1, "bounds": [100, 230]}),
}


def make_attack_spec(subject: BenchmarkTable, way: dict[str, Any]) -> SpecFile:
    """Return the subject's spec for a way to publish; (k,ε) has a noisy column."""
    changes: dict[tuple[str | int, ...], Any] = {
        ("columns", SECRETS[subject.name], "role"): "sensitive",
        ("release",): way,
    }
    if way.get("method") == "k-epsilon":
        column, more = NOISY[subject.name]
        changes["columns", column] = {"role": "noisy", **more}
    return subject.spec.with_entries(changes)


def attack_releases(subject: BenchmarkTable) -> dict[str, AttackReport]:
    """Return what was tried against each way to publish half of the table."""
    frame = subject.table.to_frame()
    order = np.random.default_rng(1).permutation(len(frame))
    half = len(frame) // 2
    people, others = frame[order[:half]], frame[order[half:]]
    releases = {}
    for name, way in WAYS.items():
        spec = make_attack_spec(subject, way)
        release = publish(people, spec)
        start = time.perf_counter()
        releases[name] = attack(
            people, release, spec, control=others, knows=3, classifier=True, seed=1
        )
        took = time.perf_counter() - start
        print(
            f"{subject.name}, {name}: {release.certificate.tables[0].release.rows:,} rows of "
            f"{half:,}; attacks {took:.1f} s",
            flush=True,
        )
    return releases


def group_estimates(reports: dict[str, AttackReport]) -> dict[str, dict[str, Estimate]]:
    """Return the estimates of each attack, by way to publish."""
    rows: dict[str, dict[str, Estimate]] = {}
    for way, tried in reports.items():
        for first in tried.estimates:
            name = (
                first.name
                if first.attack != "linkage" or "columns" not in first.name
                else "3 columns"
            )
            rows.setdefault(f"{first.attack}: {name}", {})[way] = first
    return rows


def format_estimate(estimate: Estimate | None) -> str:
    """One cell of the table."""
    if estimate is None:
        return ""
    allowed = estimate.bound is not None and estimate.success.low <= estimate.bound
    mark = ("*" if allowed else "**") if estimate.succeeds else ""
    rest = f"{estimate.guess.value:.3f}" + (
        "" if estimate.control is None else f", {estimate.control.value:.3f}"
    )
    return f"{mark}{estimate.success.value:.3f}{mark} ({rest})"


def draw_figure(rows: dict[str, dict[str, Estimate]], path: Path, title: str) -> None:
    """Success of each attack against each way to publish, beside what needs no release."""
    figure = Figure(figsize=(9, 0.62 * len(rows) + 1.4), layout="constrained")
    axes = figure.subplots()
    for place, result in enumerate(rows.values()):
        for at, (way, color) in enumerate(zip(WAYS, COLORS, strict=True)):
            first = result.get(way)
            if first is None:
                continue
            y = place + (at - 2) * 0.15
            axes.plot([first.success.low, first.success.high], [y, y], color=color, lw=2)
            axes.plot(
                first.success.value, y, "o", color=color, ms=5, label=way if not place else None
            )
            axes.plot(
                first.baseline.value,
                y,
                "|",
                color="#555555",
                ms=8,
                mew=1.6,
                label="without the release" if not place and not at else None,
            )
    axes.set_yticks(range(len(rows)), list(rows))
    axes.invert_yaxis()
    axes.set_xlim(-0.02, 1.02)
    axes.set_xlabel("share of successful attempts, with 95 % interval")
    axes.grid(axis="x", color="#e6e6e6")
    axes.set_axisbelow(True)
    axes.set_title(title, loc="left")
    figure.legend(
        *axes.get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False
    )
    figure.savefig(path, dpi=110)


def time_million_rows() -> None:
    """How long linkage and inference take on a million rows."""
    table, others = (
        make_demo_table("census", rows=1_000_000),
        make_demo_table("census", rows=1_000_000, seed=2),
    )
    (subject,) = (
        candidate for candidate in load_benchmark_tables(None) if candidate.name == "census"
    )
    for name, way in WAYS.items():
        if name == "(k, ε)-anonymity":
            continue
        spec = make_attack_spec(subject, way)
        release = publish(table, spec)
        for only in ("linkage", "inference"):
            start = time.perf_counter()
            attack(table, release, spec, control=others, only=[only], knows=3, seed=1)
            print(
                f"a million rows, {name}, {only}: {time.perf_counter() - start:.1f} s", flush=True
            )


def main() -> None:
    """Print all tables."""
    warnings.simplefilter("ignore")
    data = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    folder = Path(sys.argv[2]) if len(sys.argv) > 2 else None
    every = {}
    for subject in load_benchmark_tables(data):
        releases = attack_releases(subject)
        rows = group_estimates(releases)
        print(f"\n| {subject.name} | {' | '.join(WAYS)} |\n| --- |{' --- |' * len(WAYS)}")
        for name, by_way in rows.items():
            print(f"| {name} | {' | '.join(format_estimate(by_way.get(way)) for way in WAYS)} |")
        print(flush=True)
        every[subject.name] = {way: tried.as_dict() for way, tried in releases.items()}
        if folder is not None:
            draw_figure(
                rows,
                folder / f"attacks-{subject.name.lower()}.png",
                f"{subject.name}: success rate of each attack",
            )
    if folder is not None:
        (folder / "attacks.json").write_text(json.dumps(every, indent=1), encoding="utf-8")
    time_million_rows()


if __name__ == "__main__":
    main()
