"""A figure reaches every kind of release that has it, as it is published and read from its files.

A new field of ``Evaluation`` gets its line in ``FIGURES``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.readers import METHODS, format_columns, make_reader_table
from support.synthetic import make_patients, make_spec

from incrowd.codes.counted_table import CountedTable
from incrowd.codes.frequency import Frequencies, merge_tuples
from incrowd.codes.hierarchy import build_from_rows
from incrowd.evaluation.evaluate import evaluate
from incrowd.measure import outcome
from incrowd.measure.evaluation import Evaluation
from incrowd.measure.synthetic import SyntheticEvaluation
from incrowd.privacy.randomness import SeededRandomness
from incrowd.publication import publish
from incrowd.spec.file import parse_spec

ROWS = 1500
BY_LABELS = {"cuts", "ola", "k-epsilon"}
BY_LEVELS = {"counts"}
KINDS = (*sorted(BY_LABELS | BY_LEVELS), "slices", "synthetic")
# The kinds of which a publication measures a figure; what it measures, its files tell as well
FIGURES = {
    "loss_by_column": BY_LABELS | BY_LEVELS,
    "precision_by_column": BY_LABELS,
    "losses": BY_LABELS,
    "risk": BY_LABELS,
    "utility": BY_LABELS | BY_LEVELS | {"synthetic"},
    "subgroups": BY_LABELS | BY_LEVELS | {"synthetic"},
    "noise": {"k-epsilon"},
    "cells_original": BY_LEVELS,
    "cells_released": BY_LEVELS,
    "likely_share": BY_LEVELS,
    "detail_by_column": BY_LEVELS,
    "sizes_original": BY_LEVELS,
    "sizes_released": BY_LEVELS,
    "advice": BY_LEVELS,
    "slices": {"slices"},
    "columns": {"slices"},
    "associations": {"slices"},
    "association_error": {"slices"},
}
# Besides, the files of a release by levels tell what labels tell
FROM_FILES = dict.fromkeys(("precision_by_column", "losses", "risk"), BY_LEVELS)
# Fields that need a release of their own: a target, a value that is lost, a column that is missing
ELSEWHERE = {
    "search", "suppression", "weighted", "numbers", "payout", "lost", "missing_columns",
    "readings", "target", "shifts", "utility_of_values", "utility_of_levels",
}  # fmt: skip

Evaluations = tuple[Evaluation, Evaluation]


def has_figure(evaluation: Evaluation, field: Field[Any]) -> bool:
    """Whether a field holds anything but its default."""
    default = field.default
    if field.default_factory is not MISSING:
        default = field.default_factory()
    return bool(getattr(evaluation, field.name) != default)


@pytest.fixture(scope="module")
def evaluate_kind(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Evaluations]:
    """The evaluation of a publication of a kind, and that of its files; each made once."""
    evaluations: dict[str, Evaluations] = {}

    def make_evaluations(kind: str) -> Evaluations:
        table, spec = make_patients(ROWS), make_spec()
        if kind != "synthetic":
            table = make_reader_table().head(ROWS)
            spec = parse_spec(f"{format_columns(kind)}\nrelease: {{{METHODS[kind]}}}\n")
        folder: Path = tmp_path_factory.mktemp("evaluation") / "out"
        release = publish(table, spec, output=folder, bits=SeededRandomness(1))
        return release.evaluation, evaluate(table, release, spec)

    def get_evaluations(kind: str) -> Evaluations:
        if kind not in evaluations:
            evaluations[kind] = make_evaluations(kind)
        return evaluations[kind]

    return get_evaluations


@pytest.mark.parametrize("kind", KINDS)
def test_the_figure_reaches_every_kind_of_release(
    kind: str, evaluate_kind: Callable[[str], Evaluations]
) -> None:
    published, from_files = evaluate_kind(kind)
    for field in fields(Evaluation):
        if field.name in FIGURES:
            is_measured = kind in FIGURES[field.name]
            is_told = is_measured or kind in FROM_FILES.get(field.name, ())
            assert has_figure(published, field) == is_measured, field.name
            assert has_figure(from_files, field) == is_told, field.name


def test_every_field_has_its_line_among_the_figures() -> None:
    optional = {
        field.name
        for field in fields(Evaluation)
        if field.default is not MISSING or field.default_factory is not MISSING
    }
    assert optional - {"surplus"} == {*FIGURES, *ELSEWHERE}


def test_no_field_is_lost_on_a_release_by_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is measured by levels, kept from the labels, or filled when both are done.

    ``measure_at_levels`` takes over every field of an outcome but those listed: one that is neither
    listed nor measured would come as its default, and hide what labels told.
    """
    passed: set[str] = set()

    def record_fields(**values: Any) -> Evaluation:
        passed.update(values)
        return Evaluation(**values)

    table, released = make_small_outcome()
    monkeypatch.setattr(outcome, "Evaluation", record_fields)
    outcome.evaluate_outcome(table, released, crowd=5.0)
    names = {field.name for field in fields(Evaluation)}
    assert passed | outcome._BY_LABELS | outcome._AFTERWARDS == names
    assert not outcome._AFTERWARDS & (passed | outcome._BY_LABELS)


def make_small_outcome() -> tuple[CountedTable, Frequencies]:
    """Return a table of one column at its values, and all of it as released."""
    hierarchy = build_from_rows([("a", "*"), ("b", "*")])
    rows = merge_tuples(np.array([[0], [1]], dtype=np.int32), np.array([7, 9], dtype=np.int64))
    return CountedTable(("x",), (hierarchy,), (0,), rows), rows


def test_synthetic_figures_are_all_written(evaluate_kind: Callable[[str], Evaluations]) -> None:
    published, _ = evaluate_kind("synthetic")
    common = {field.name for field in fields(Evaluation)}
    figures = {field.name for field in fields(SyntheticEvaluation)} - common
    assert figures
    assert figures <= published.as_dict().keys()
