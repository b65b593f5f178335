"""Draw the pictures of the guide, docs/understand/schemes.md, from releases of the census sample.

    python benchmarks/pictures.py FOLDER [RELEASES]

- crowds.png: the chance that a cell of so many people is shown, at epsilon = 1, delta = 1e-6
- schemes.png: which cells of age and education each way shows, at epsilon = 1
- loss.png: normalized loss against epsilon, mean of RELEASES (5 by default), on each sample table
- slices.png: associations of eight columns in the table, in one wide release, and in slices
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from schemes import BenchmarkTable, load_benchmark_tables
from scipy.stats import binom

from incrowd.codes.axis import Axis
from incrowd.evaluation.evaluate import evaluate
from incrowd.measure.labels import LabelReader
from incrowd.privacy.counts import build_event_law
from incrowd.privacy.events import GeometricCounts
from incrowd.privacy.plan import plan
from incrowd.privacy.plan_counts import plan_counts
from incrowd.publication import publish
from incrowd.spec.build import build_hierarchy

WAYS: dict[str, tuple[dict[str, str], str]] = {
    "noisy counts": ({"draw": "counts", "scheme": "search"}, "#0b4f8a"),
    "sample": ({"draw": "sample", "scheme": "search"}, "#e9a23b"),
    "sample, Mondrian": ({"draw": "sample", "scheme": "mondrian"}, "#c1440e"),
}


def draw_crowds() -> Figure:
    """Return the chance that a cell of so many people is shown, by each draw at epsilon = 1."""
    epsilon, delta = 1.0, 1e-6
    people = np.arange(1, 421)
    figure = Figure(figsize=(9, 3.8), layout="constrained")
    axes = figure.subplots()
    limit, chance = [], 0.0
    for _ in people:  # the most that any release of one table can show
        chance = min(
            np.exp(epsilon) * chance + delta, 1 - np.exp(-epsilon) * (1 - chance - delta), 1.0
        )
        limit.append(chance)
    axes.plot(people, limit, color="#cccccc", linewidth=6, label="limit of any release")
    for k, color in ((1, "#2a9d8f"), (5, "#0b4f8a")):
        counts = plan_counts(epsilon=epsilon, delta=delta, k=k)
        sides = [(counts.noise, 1 - counts.chance)]
        if counts.chance and isinstance(counts.noise, GeometricCounts):
            sides.append((GeometricCounts(counts.r - 1, counts.noise.epsilon), counts.chance))
        chances = [
            sum(
                share * build_event_law(event).compute_tail(event.r + k - int(n))
                for event, share in sides
            )
            for n in people
        ]
        axes.plot(people, chances, color=color, label=f"noisy counts, k = {k}")
    for words, first, color in (
        ("sample, smallest crowd size", plan(epsilon=epsilon, delta=delta), "#e9a23b"),
        ("sample of 90 % of rows", plan(epsilon=epsilon, delta=delta, keep=0.9), "#c1440e"),
    ):
        axes.plot(people, binom.sf(first.k - 1, people, first.beta), color=color, label=words)
    axes.axhline(0.5, color="#dddddd", linewidth=1, zorder=0)
    axes.set(xscale="log", xlim=(5, 420), ylim=(0, 1.01))
    axes.set_xlabel("group size (people)")
    axes.set_xticks([5, 10, 20, 50, 100, 200, 400], ["5", "10", "20", "50", "100", "200", "400"])
    axes.set_ylabel("probability of being published")
    axes.legend(frameon=False, loc="center", bbox_to_anchor=(0.76, 0.5))
    return figure


def draw_planes(census: BenchmarkTable) -> Figure:
    """Boxes over age and education, as dark as rows are dense."""
    names = ("age", "education")
    spec = census.spec
    for name, column in spec.spec.columns.items():
        if column.role in ("quasi", "sensitive") and name not in names:
            spec = spec.with_entry(("columns", name), {"role": "drop"})
    figure = Figure(figsize=(11, 3.9), layout="constrained")
    panels = figure.subplots(1, 3, sharey=True)
    readers = []
    for name in names:
        column = spec.spec.columns[name]
        hierarchy = build_hierarchy(column, folder=Path())
        readers.append(LabelReader(name, Axis(hierarchy, hierarchy.ordered)))
    for axes, (way, (changes, _)) in zip(panels, WAYS.items(), strict=True):
        release = publish(census.table, replace(census, spec=spec).change_release(**changes))
        data = release.data.group_by(names).len()
        boxes = []
        for age, school, rows in data.iter_rows():
            x, y = (
                reader.read_label(value)[0]
                for reader, value in zip(readers, (age, school), strict=True)
            )
            boxes.append((x.min(), y.min(), len(x), len(y), rows / (len(x) * len(y))))
        darkest = max(box[-1] for box in boxes)
        for x0, y0, width, height, density in boxes:
            axes.add_patch(
                Rectangle(
                    (x0 + 15, y0), width, height, edgecolor="white", linewidth=0.6,
                    facecolor="#0b4f8a", alpha=0.12 + 0.88 * (density / darkest) ** 0.5,
                )
            )  # fmt: skip
        axes.set(
            xlim=(15, 95), ylim=(0, 16), xlabel="age",
            title=f"{way}: {release.certificate.table.release.rows:,} rows in {len(boxes)} groups",
        )  # fmt: skip
        axes.title.set_fontsize(10)
    panels[0].set_ylabel("education, Preschool to Doctorate")
    return figure


def draw_losses(tables: list[BenchmarkTable], number: int) -> Figure:
    """Loss against epsilon, a panel for each table."""
    figure = Figure(figsize=(11, 3.4), layout="constrained")
    budgets = (0.25, 0.5, 1.0, 2.0, 4.0)
    for axes, subject in zip(figure.subplots(1, len(tables), sharey=True), tables, strict=True):
        for way, (changes, color) in WAYS.items():
            values = [
                np.mean(
                    [
                        publish(
                            subject.table, subject.change_release(epsilon=e, **changes)
                        ).evaluation.loss
                        for _ in range(number)
                    ]
                )
                for e in budgets
            ]
            axes.plot(budgets, values, marker="o", markersize=4, color=color, label=way)
            print(subject.name, way, [round(float(x), 4) for x in values], flush=True)
        axes.set_xscale("log")
        axes.set_xticks(budgets, [f"{e:g}" for e in budgets])
        axes.minorticks_off()
        axes.set(title=subject.name, xlabel="ε", ylim=(0, 1))
        axes.spines[["top", "right"]].set_visible(False)
    figure.axes[0].set_ylabel("normalized loss")
    figure.axes[0].legend(frameon=False)
    return figure


def draw_heat_map(census: BenchmarkTable) -> Figure:
    """Cramér's V of every two columns: in the table, one wide release, slices of three."""
    spec = census.spec.with_entry(("columns", census.left_out), {"role": "drop"})
    wide = publish(census.table, spec)
    narrow = publish(census.table, spec.with_entry(("release", "slices"), 3))
    useful = evaluate(census.table, wide, spec).utility
    assert useful is not None  # of one table
    associations: Any = useful.associations
    many: Any = narrow.evaluation.associations
    names = list(dict.fromkeys(name for pair in many for name in (pair.first, pair.second)))
    # Both against the table at its own values; a pair that the wide release suppresses counts as 0.
    published = {frozenset((pair.first, pair.second)): pair.released for pair in associations}
    error = [
        np.mean(
            [abs(p.original - published.get(frozenset((p.first, p.second)), 0.0)) for p in many]
        ),
        np.mean([abs(p.original - p.released) for p in many]),
    ]
    figure = Figure(figsize=(12, 4.6), layout="constrained")
    panels = figure.subplots(1, 3, sharey=True)
    titles = (
        "table",
        f"one wide release: mean error {error[0]:.3f}",
        f"{len(narrow.certificate.tables)} slices of three columns: mean error {error[1]:.3f}",
    )
    for axes, title, pairs, which in zip(
        panels,
        titles,
        (many, associations, many),
        ("original", "released", "released"),
        strict=True,
    ):
        grid = np.full((len(names), len(names)), np.nan)
        for pair in pairs:
            at, place = names.index(pair.first), names.index(pair.second)
            grid[at, place] = grid[place, at] = getattr(pair, which)
        image = axes.imshow(grid, vmin=0, vmax=0.5, cmap="Blues")
        axes.set_title(title, fontsize=10)
        axes.set_xticks(range(len(names)), names, rotation=45, ha="right")
        axes.set_yticks(range(len(names)), names)
    figure.colorbar(image, ax=panels, shrink=0.8, label="Cramér's V")
    return figure


def main() -> None:
    folder = Path(sys.argv[1])
    number = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    tables = load_benchmark_tables(None)
    for name, figure in (
        ("crowds", draw_crowds()),
        ("schemes", draw_planes(tables[0])),
        ("slices", draw_heat_map(tables[0])),
        ("loss", draw_losses(tables, number)),
    ):
        figure.savefig(folder / f"{name}.png", dpi=110)


if __name__ == "__main__":
    main()
