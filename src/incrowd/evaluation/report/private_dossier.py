"""The private part of a dossier: attacks, utility and subgroups, by the questions of frameworks.

It is made from the figures that a judgment wrote for programs, so that it can be made again from
the curator's folder alone.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from incrowd.errors import IncrowdError
from incrowd.evaluation.attacks.catalog import QUESTIONS
from incrowd.findings import format_percent
from incrowd.release.certificate import Certificate
from incrowd.release.metadata.assertions import Assertions
from incrowd.release.render import render_page

FILE = "dossier-private.html"
_MOST_SUBGROUPS = 20
_Figures = dict[str, Any]


def write_private_dossier(
    folder: Path, certificate: Certificate, assertions: Assertions, *, attacks: Path | None = None
) -> None:
    """Write the private part into the curator's folder, from the figures that lie there.

    ``attacks`` is a file of further attacks, as ``incrowd attack --json`` prints them.
    """
    figures = _read_figures(folder / "evaluation.json")
    reports = [_read_figures(folder / "attacks.json")]
    if attacks is not None:
        reports.insert(0, _read_figures(attacks))
    page = render_page(
        "incrowd.evaluation.report",
        "private_dossier.html",
        certificate=certificate,
        title=assertions.about.read_text("title"),
        facts=_list_facts(figures),
        subgroups=_list_subgroups(figures),
        findings=figures.get("findings", []),
        questions=_group_attacks(reports),
        reports=[report for report in reports if report.get("attacks")],
        control=any(report.get("control") for report in reports),
        notes=list(dict.fromkeys(note for report in reports for note in report.get("notes", []))),
    )
    (folder / FILE).write_text(page, encoding="utf-8")


def _read_figures(path: Path) -> _Figures:
    try:
        figures = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise IncrowdError(
            f"File '{path}': cannot be read. Name a file that `incrowd` has written as JSON."
        ) from error
    return figures if isinstance(figures, dict) else {}


def _group_attacks(reports: Sequence[_Figures]) -> list[tuple[str, list[_Figures]]]:
    """Return the attacks that were tried, by the question that they answer.

    An attack that an earlier report has tried is not repeated from a later one.
    """
    tried: list[_Figures] = []
    for report in reports:
        kinds = {entry["attack"] for entry in tried}
        tried += [entry for entry in report.get("attacks", []) if entry["attack"] not in kinds]
    return [
        (question, [entry for entry in tried if entry["attack"] in names])
        for question, names in QUESTIONS.items()
    ]


def _list_facts(figures: _Figures) -> list[tuple[str, str]]:
    """Return what was measured of utility and of risk, as names and texts."""
    facts = [
        ("Rows of the original table", f"{figures['rows_original']:,}"),
        ("Rows of the release", f"{figures['rows_released']:,}"),
    ]
    loss = figures.get("loss")
    if isinstance(loss, float) and math.isfinite(loss):
        facts.append(("Information loss (0 none, 1 everything)", f"{loss:.4f}"))
    for name, words in (
        ("mean_distance", "Mean distance of the shares of a column (0 equal, 1 disjoint)"),
        ("mean_pair_distance", "Mean distance of the shares of a pair of columns"),
        ("association_error", "Mean error of associations between columns (Cramér's V)"),
    ):
        value = figures.get(name)
        if isinstance(value, float) and math.isfinite(value):
            facts.append((words, f"{value:.4f}"))
    useful = figures.get("utility") or {}
    for name, words in (
        ("association_error", "Mean error of associations (Cramér's V)"),
        ("query_error", "Median error of range counts"),
    ):
        value = useful.get(name)
        if isinstance(value, float) and math.isfinite(value):
            facts.append((words, f"{value:.4f}"))
    risk = figures.get("risk") or {}
    for name, words in (
        ("highest", "Prosecutor risk, highest"),
        ("mean", "Prosecutor risk, mean"),
        ("journalist", "Journalist risk, highest"),
        ("marketer", "Marketer risk"),
        ("uniques", "Share of unique rows in the release"),
    ):
        if isinstance(risk.get(name), int | float):
            facts.append((words, format_percent(risk[name], 2)))
    return facts


def _list_subgroups(figures: _Figures) -> list[tuple[str, str, str, str]]:
    """Return the values that lost most rows: value, rows, published rows, share lost."""
    lost = (figures.get("lost") or {}).get("values", [])
    return [
        (
            ", ".join(
                f"{name} = {'null' if label is None else label}"
                for name, label in zip(entry["columns"], entry["labels"], strict=True)
            ),
            f"{entry['rows']:,}",
            f"{entry['released']:,}",
            format_percent(entry["lost"]),
        )
        for entry in lost[:_MOST_SUBGROUPS]
    ]
