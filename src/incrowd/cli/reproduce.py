"""The command that computes both papers again."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from incrowd.cli import terminal
from incrowd.cli.terminal import print_text as print  # noqa: A004 - names and values come from anywhere
from incrowd.errors import IncrowdError, check_choice


def reproduce(
    paper: Annotated[str, typer.Argument(metavar="PAPER", help="a, b, attacks or all.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FOLDER", help="Folder of the pages.")
    ],
    adult: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Real Adult table (CSV), for paper b.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Use small tables, for paper b.")] = False,
) -> None:
    """Reproduce tables and figures of both papers, and attacks on them."""
    check_choice("paper", paper, ("a", "b", "attacks", "all"))
    if paper in ("a", "attacks") and (adult is not None or quick):
        raise IncrowdError("--adult and --quick apply to paper b only. Drop them.")
    if find_spec("matplotlib") is None:
        raise IncrowdError("Figures need matplotlib. Install it: pip install 'incrowd[papers]'.")
    if paper in ("a", "all"):
        from incrowd.papers import paper_a, paper_a_figures

        number = len(paper_a_figures.FIGURES)
        with terminal.show_steps(number) as step:
            folder = output / "a" if paper == "all" else output
            paper_a.reproduce(folder, progress=step)
        print(f"Wrote {folder / 'index.html'} and {number} figures (SVG, PNG)")
    if paper in ("b", "all"):
        from incrowd.papers import paper_b

        number = paper_b.QUICK_STEPS if quick else paper_b.STEPS
        with terminal.show_steps(number) as step:
            folder = output / "b" if paper == "all" else output
            paper_b.reproduce(folder, adult=adult, quick=quick, progress=step)
        print(f"Wrote {folder / 'index.html'} and {paper_b.FIGURES} figures (SVG, PNG)")
    if paper in ("attacks", "all"):
        from incrowd.papers import paper_a_attacks

        with terminal.show_steps(paper_a_attacks.STEPS) as step:
            folder = output / "attacks" if paper == "all" else output
            paper_a_attacks.reproduce(folder, progress=step)
        print(f"Wrote {folder / 'index.html'} and 1 figure (SVG, PNG)")
