"""The figures of docs/understand, drawn from the laws that releases follow; a few seconds.

    python benchmarks/explain.py docs/images

Nothing is drawn at random: the same versions write the same files.

- one-person.svg: what may be shown of a cell, with one person's row and without it
- odds.svg: what an observer can believe after a release, by what they believed before
- crowd-size.svg: the crowd that is shown more often than not, against epsilon
- everybody-else.svg: who knows four of five people, before a k-anonymous class and before a count
- many-releases.svg: epsilon of many releases about the same people, by what they are made of
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyBboxPatch

from incrowd.privacy.accountant import Accountant
from incrowd.privacy.counts import NoiseLaw, build_geometric_law
from incrowd.privacy.events import Event, GaussianCounts, SafeRelease
from incrowd.privacy.plan import plan
from incrowd.privacy.plan_counts import plan_counts

BLUE, ORANGE, RED, GREEN, GRAY = "#0b4f8a", "#e9a23b", "#c1440e", "#2a9d8f", "#6b7280"
EPSILON, DELTA, K = 1.0, 1e-6, 5


def compute_shown_law(law: NoiseLaw, n: int, least: int, most: int) -> npt.NDArray[np.float64]:
    """Return the probabilities that a cell of n rows shows 0, or ``least`` to ``most`` rows."""
    numbers = range(least, most + 1)
    chances = [law.compute_tail(x - n) - law.compute_tail(x + 1 - n) for x in numbers]
    return np.array([1 - law.compute_tail(least - n), *chances])


def draw_one_person() -> Figure:
    """Two bars for every outcome, with one person and without, at two values of epsilon."""
    figure = Figure(figsize=(11, 3.9), layout="constrained")
    for axes, epsilon, alike, ticks in zip(
        figure.subplots(1, 2), (1.0, 0.25), (30, 100), (2, 10), strict=True
    ):
        r = plan_counts(epsilon=epsilon, delta=DELTA, k=K).r
        law, reach = build_geometric_law(epsilon, r), int(8 / epsilon)
        numbers = np.arange(alike - 1 - reach, alike + reach + 1)
        for n, shift, color, words in (
            (alike - 1, -0.2, ORANGE, f"without Anna's row: group of {alike - 1}"),
            (alike, 0.2, BLUE, f"with Anna's row: group of {alike}"),
        ):
            chances = compute_shown_law(law, n, int(numbers[0]), int(numbers[-1]))[1:]
            axes.bar(numbers + shift, chances, 0.4, color=color, label=words)
        axes.set_title(
            f"ε = {epsilon:g}: at most {np.exp(epsilon):.2f} times as likely, either way",
            fontsize=11,
        )
        axes.set(xlabel="published count", ylabel="probability")
        axes.set_ylim(0, 1.35 * axes.get_ylim()[1])
        axes.set_xticks([x for x in numbers if x % ticks == 0])
        axes.legend(frameon=False, loc="upper left")
    return _hide_spines(figure)


def draw_odds() -> Figure:
    """Return the largest and the smallest belief after a release, for several epsilon."""
    before = np.linspace(0, 1, 401)
    figure = Figure(figsize=(5.6, 5.2), layout="constrained")
    axes = figure.subplots()
    for epsilon, color in ((4.0, RED), (2.0, ORANGE), (1.0, GREEN), (0.5, BLUE)):
        low, high = (
            before * np.exp(sign * epsilon) / (before * np.exp(sign * epsilon) + 1 - before)
            for sign in (-1, 1)
        )
        axes.fill_between(before, low, high, color=color, alpha=0.16, linewidth=0)
        axes.plot(before, high, color=color, label=f"ε = {epsilon:g}")
        axes.plot(before, low, color=color)
    axes.plot(before, before, color="#333333", linewidth=1, linestyle=":", label="nothing learned")
    percent = [0, 0.25, 0.5, 0.75, 1]
    axes.set_xticks(percent, [f"{x:.0%}" for x in percent])
    axes.set_yticks(percent, [f"{x:.0%}" for x in percent])
    axes.set(
        xlabel="belief before the release", ylabel="belief after it, at most and at least",
        xlim=(0, 1), ylim=(0, 1), aspect="equal",
    )  # fmt: skip
    axes.legend(frameon=True, framealpha=0.9, edgecolor="none", loc="lower right")
    return _hide_spines(figure)


def draw_crowd_size() -> Figure:
    """People alike from which a cell is shown more often than not."""
    epsilons = np.array([0.1, 0.15, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 4, 6, 8])
    figure = Figure(figsize=(8, 3.8), layout="constrained")
    axes = figure.subplots()
    for words, color, crowds in (
        ("a sample", ORANGE, [plan(epsilon=float(e), delta=DELTA).crowd for e in epsilons]),
        (
            "counts, k = 5",
            BLUE,
            [plan_counts(epsilon=float(e), delta=DELTA, k=K).crowd for e in epsilons],
        ),
    ):
        axes.plot(epsilons, crowds, marker="o", markersize=4, color=color, label=words)
    axes.set(xscale="log", yscale="log", xlabel="ε (δ = 1e-6)", ylabel="crowd size (people)")
    axes.set_xticks([0.1, 0.2, 0.5, 1, 2, 4, 8], ["0.1", "0.2", "0.5", "1", "2", "4", "8"])
    axes.set_yticks([5, 10, 20, 50, 100, 200, 500], ["5", "10", "20", "50", "100", "200", "500"])
    axes.minorticks_off()
    axes.grid(alpha=0.25)
    axes.legend(frameon=False)
    return _hide_spines(figure)


def draw_everybody_else() -> Figure:
    """Return the same five people, published as a class of five and as a noisy count."""
    result = plan_counts(epsilon=EPSILON, delta=DELTA, k=K)
    law, least = build_geometric_law(EPSILON, result.r), result.r + K
    figure = Figure(figsize=(10, 4.3), layout="constrained")
    left, right = figure.subplots(1, 2)
    _draw_class(left)
    places = np.array([17.5, *range(least, 34)])
    for n, shift, color, words in (
        (23, -0.2, ORANGE, "without Anna's row"),
        (24, 0.2, BLUE, "with Anna's row, which has it"),
    ):
        right.bar(
            places + shift, compute_shown_law(law, n, least, 33), 0.4, color=color, label=words
        )
    right.set_xticks([17.5, *range(20, 34, 2)], ["nothing", *map(str, range(20, 34, 2))])
    right.set_title("A noisy count: 23 others have the diagnosis", fontsize=11)
    right.set(xlabel="published count of the diagnosis", ylabel="probability")
    right.legend(frameon=False, fontsize=9)
    right.spines[["top", "right"]].set_visible(False)
    return figure


def _draw_class(axes: Axes) -> None:
    """Draw a class of five people; the observer knows four of them."""
    people = ("Ben", "Cleo", "Dan", "Eva", "Anna")
    secrets = ("asthma", "healthy", "healthy", "diabetes", "?")
    axes.set_title("A class of five: the observer knows four of them", fontsize=11)
    for at, (name, secret) in enumerate(zip(people, secrets, strict=True)):
        y = 4 - at
        color = RED if name == "Anna" else GRAY
        axes.add_patch(Circle((0.3, y), 0.26, color=color))
        axes.text(0.3, y, name[0], color="white", ha="center", va="center", fontsize=11)
        axes.text(0.75, y, f"{name}: {secret}", va="center", fontsize=11, color=color)
    published = ("asthma", "cancer", "diabetes", "healthy", "healthy")
    for at, secret in enumerate(published):
        y = 4 - at
        left_over = secret == "cancer"
        axes.add_patch(
            FancyBboxPatch(
                (3.2, y - 0.3), 2.5, 0.6, boxstyle="round,pad=0.02",
                facecolor="#fbe3da" if left_over else "#eef2f6", edgecolor="none",
            )
        )  # fmt: skip
        axes.text(
            4.45, y, f"40-49, 481**, {secret}", ha="center", va="center", fontsize=9.5,
            color=RED if left_over else "#333333",
        )  # fmt: skip
    axes.text(3.0, -0.95, "one row is left over: Anna has cancer", ha="center", color=RED)
    axes.set(xlim=(-0.1, 6), ylim=(-1.3, 4.6))
    axes.axis("off")


def draw_many_releases() -> Figure:
    """Epsilon of 1 to 32 releases, each of which costs 0.25 alone."""
    numbers, delta = [1, 2, 4, 8, 16, 32], 1e-6
    counts = plan_counts(epsilon=0.25, delta=1e-8, k=K).noise
    sample_plan = plan(epsilon=0.25, delta=delta)
    figure = Figure(figsize=(8, 3.8), layout="constrained")
    axes = figure.subplots()
    events: tuple[tuple[str, str, Event], ...] = (
        ("counts, geometric noise: as in one table", ORANGE, counts),
        ("counts, Gaussian noise: as in slices", GREEN, GaussianCounts(r=100, variance=238)),
        ("samples", BLUE, SafeRelease(k=sample_plan.k, beta=sample_plan.beta)),
    )
    axes.plot(
        numbers, [0.25 * m for m in numbers], color=RED, linestyle=":", label="0.25 times as many"
    )
    for words, color, event in events:
        spent = [Accountant([event] * m).epsilon(delta=delta) for m in numbers]
        print(f"{words}: {dict(zip(numbers, np.round(spent, 3).tolist(), strict=True))}")
        axes.plot(numbers, spent, marker="o", markersize=4, color=color, label=words)
    axes.set(xlabel="releases about the same people", ylabel="ε of all together, at δ = 1e-6")
    axes.set_xticks(numbers)
    axes.grid(alpha=0.25)
    axes.legend(frameon=False)
    return _hide_spines(figure)


def _hide_spines(figure: Figure) -> Figure:
    for axes in figure.axes:
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def main() -> None:
    folder = Path(sys.argv[1])
    mpl.rcParams["svg.hashsalt"] = "incrowd"  # names inside a file, the same each time
    for name, draw in (
        ("one-person", draw_one_person),
        ("odds", draw_odds),
        ("crowd-size", draw_crowd_size),
        ("everybody-else", draw_everybody_else),
        ("many-releases", draw_many_releases),
    ):
        draw().savefig(folder / f"{name}.svg", facecolor="white", metadata={"Date": None})


if __name__ == "__main__":
    main()
