"""Paper A (Li, Qardaji, Su) computed again: its tables, the data of its figures, a page.

The figures set the paper's delta beside the tight one on the same axes, and one figure of
our own shows what composition costs. :func:`reproduce` writes everything to a folder.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from incrowd.privacy.amplification import amplify_guarantee, invert_amplification
from incrowd.privacy.sample import delta
from incrowd.privacy.smooth import expected_failures
from incrowd.release.folder import fill_folder

if TYPE_CHECKING:
    from incrowd.papers.paper_a_figures import Figure

TABLE_1_K = 20
TABLE_1_EPSILONS = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0)
TABLE_1_PRINTED = {
    0.05: (6.83e-10, 2.50e-14, 3.19e-17, 1.76e-19, 3.97e-22, 2.00e-24),
    0.1: (4.19e-06, 1.61e-09, 3.44e-12, 4.07e-14, 3.22e-16, 1.89e-18),
    0.2: (2.16e-03, 8.02e-06, 1.89e-07, 6.03e-09, 4.79e-11, 1.59e-12),
}


@dataclass(frozen=True)
class DeltaCell:
    """One cell of the long version's Table 1 (Table 2 of the short version)."""

    beta: float
    epsilon: float
    printed: float
    paper: float
    tight: float

    @property
    def ratio(self) -> float:
        """Ours over the printed value; the printed ones have three digits, some cut short."""
        return self.paper / self.printed


def compute_table_1() -> list[DeltaCell]:
    """Compute delta for k = 20: printed, by the paper's definition, and tight."""
    return [
        DeltaCell(
            beta=beta,
            epsilon=epsilon,
            printed=printed,
            paper=delta(k=TABLE_1_K, beta=beta, epsilon=epsilon, definition="paper"),
            tight=delta(k=TABLE_1_K, beta=beta, epsilon=epsilon),
        )
        for beta, row in TABLE_1_PRINTED.items()
        for epsilon, printed in zip(TABLE_1_EPSILONS, row, strict=True)
    ]


@dataclass(frozen=True)
class Amplification:
    """One line of the short version's Table 1: a guarantee on samples of three rates."""

    stated: str
    whole: float
    tenth: float
    hundredth: float


def compute_amplification() -> list[Amplification]:
    """Compute what (epsilon, delta) becomes when the table is a sample of 10 % or 1 %."""
    by_epsilon = [
        Amplification(
            stated=f"ε = {name}",
            whole=epsilon,
            tenth=amplify_guarantee(epsilon=epsilon, rate=0.1).epsilon,
            hundredth=amplify_guarantee(epsilon=epsilon, rate=0.01).epsilon,
        )
        for name, epsilon in (("ln 11", 2.3978952727983707), ("1", 1.0))
    ]
    by_delta = Amplification(
        stated="δ = 1e-05",
        whole=1e-5,
        tenth=amplify_guarantee(epsilon=1.0, delta=1e-5, rate=0.1).delta,
        hundredth=amplify_guarantee(epsilon=1.0, delta=1e-5, rate=0.01).delta,
    )
    return [*by_epsilon, by_delta]


def reproduce(folder: Path, progress: Callable[[str], None] = lambda _: None) -> None:
    """Write tables, figures (SVG and PNG) and ``index.html`` to a folder.

    The folder appears whole or not at all; one that holds an earlier reproduction is
    replaced, one that holds anything else is left alone. ``progress`` hears of each
    figure before it is drawn.
    """
    from incrowd.papers import paper_a_figures

    figures = paper_a_figures.FIGURES
    names = [f"{figure.name}.{form}" for figure in figures for form in ("svg", "png")]
    with fill_folder(folder, replacing=[*names, "index.html"]) as draft:
        for figure in figures:
            progress(figure.title)
            paper_a_figures.save_figure(figure, draft)
        (draft / "index.html").write_text(_render_page(figures), encoding="utf-8")


def _render_page(figures: Sequence[Figure]) -> str:
    from incrowd.release.render import render_page

    cells = compute_table_1()
    return render_page(
        "incrowd.papers",
        "paper_a.html",
        k=TABLE_1_K,
        epsilons=TABLE_1_EPSILONS,
        rows={beta: [cell for cell in cells if cell.beta == beta] for beta in TABLE_1_PRINTED},
        worst=max(abs(cell.ratio - 1) for cell in cells),
        amplification=compute_amplification(),
        allowed=invert_amplification(epsilon=0.1, rate=0.01).epsilon,
        exposed=expected_failures(delta=1e-7, n=50_000_000),
        figures=figures,
    )
