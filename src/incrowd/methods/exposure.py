"""Find what a release would expose or get wrong, from the table, before anything is spent.

Columns that are published value by value and hold free text, ids of people that are published, and
noisy values outside their declared bounds.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator

import numpy as np

from incrowd.codes.grid import build_grid
from incrowd.engine.count import make_value_coder, read_positive_numbers
from incrowd.engine.table import Table, TableError
from incrowd.errors import IncrowdError
from incrowd.findings import Finding, make_finding
from incrowd.methods.person_id import find_ids, identify_kind_by_name, list_texts, simplify_name
from incrowd.methods.table_fit import refuse_errors
from incrowd.privacy.protection import LARGE_DELTA
from incrowd.spec.build import is_open
from incrowd.spec.model import Column, Spec
from incrowd.spec.release import KEpsilonSpec, ReleaseSpec, RequestedBudget, SafeSpec


def find_weak_parameters(
    release: ReleaseSpec | None, epsilon: float | None = None, delta: float | None = None
) -> list[Finding]:
    """Find parameters that are allowed and guarantee next to nothing.

    ``epsilon`` and ``delta`` are what was settled, where that is known.
    """
    if release is None:
        return []
    findings = [] if release.budget is None else _find_weak_budget(release.budget, epsilon, delta)
    counts = False
    if isinstance(release, SafeSpec):
        from incrowd.methods.safe.auto import choose_draw  # is loaded where it is asked for

        counts = choose_draw(release)[0].draw == "counts"
    if release.k == 1 and not counts:  # of counts, the noise asks for a crowd
        findings.append(make_finding("K_IS_ONE"))
    return findings


def _find_weak_budget(
    budget: RequestedBudget, epsilon: float | None, delta: float | None
) -> list[Finding]:
    findings = []
    epsilon = budget.epsilon if epsilon is None else epsilon
    delta = budget.delta if delta is None else delta
    if epsilon is not None and epsilon > budget.most:
        meaning = budget.beyond.format(epsilon)
        findings.append(
            make_finding("EPSILON_TOO_LARGE", epsilon=epsilon, meaning=meaning, most=budget.most)
        )
    if delta is not None and delta > LARGE_DELTA:
        findings.append(make_finding("DELTA_TOO_LARGE", delta=delta))
    return findings


_HEAD = 20_000  # rows whose values are looked at
_FEWEST = 20  # rows: of fewer, nothing is judged
_UNIQUE = 0.5  # free text: share of rows that have a value of their own,
_SPACED = 0.8  # share of values with three words or more,
_LONG = 20  # and median number of characters


def find_exposures(spec: Spec, table: Table) -> Iterator[Finding]:
    """Find every exposure of a spec with a release; nothing is drawn."""
    if spec.release is None:
        return
    columns = {name: column for name, column in spec.columns.items() if name in table.columns}
    if spec.release.keeps_sensitive:
        for name, column in columns.items():
            if column.role in ("sensitive", "keep") and "free_text" not in column.allow:
                yield from _find_free_text(name, table)
    yield from _find_published_ids(columns, table)
    for name, column in columns.items():
        if column.role == "weight":
            yield from _find_weight_problems(name, spec.release, table)
        elif column.role == "keep" and (rows := _count_rare_rows(name, spec.release, table)):
            yield make_finding("KEPT_VALUES_ARE_RARE", name, rows=rows, k=spec.release.k or 1)
    if isinstance(spec.release, KEpsilonSpec):
        for name, column in columns.items():
            if column.role == "noisy" and column.bounds is not None:
                yield from _find_outside_bounds(name, column, spec.release, table)


def refuse_exposures(spec: Spec, table: Table) -> tuple[Finding, ...]:
    """Raise an error for the first exposure that is refused; return the others as warnings."""
    return refuse_errors(find_exposures(spec, table))


def is_free_text(texts: list[str], rows: int) -> bool:
    """Return whether different values are sentences: mostly unique, long, with several words."""
    if rows < _FEWEST or len(texts) <= _UNIQUE * rows:
        return False
    sentences = sum(text.count(" ") >= 2 for text in texts)
    return sentences >= _SPACED * len(texts) and statistics.median(map(len, texts)) >= _LONG


def _find_free_text(name: str, table: Table) -> Iterator[Finding]:
    head = table.head(_HEAD)
    try:
        texts = list_texts(head.values(name))
        rows = head.rows() - head.count_missing(name)
    except TableError:  # lists or bytes, which are refused elsewhere
        return
    if is_free_text(texts, rows):
        yield make_finding("FREE_TEXT_PUBLISHED", name, texts=len(texts), rows=rows)


def _find_published_ids(columns: dict[str, Column], table: Table) -> Iterator[Finding]:
    candidates = [
        name
        for name, column in columns.items()
        if column.role in ("quasi", "sensitive", "keep", "noisy")
        if "id" not in column.allow
        if identify_kind_by_name(simplify_name(name)) or _is_value_by_value(column)
    ]
    for name, person_ids in find_ids(table, candidates, strict=True).items():
        yield make_finding(
            "ID_PUBLISHED", name, ids=person_ids.ids, rows=person_ids.rows,
            median=person_ids.counts.median, largest=person_ids.counts.largest,
        )  # fmt: skip


def _find_weight_problems(name: str, release: ReleaseSpec, table: Table) -> Iterator[Finding]:
    """Find weights that are no positive numbers, are not published, or that few rows share."""
    try:
        read_positive_numbers(name, list(table.values(name)))
    except TableError as error:
        yield make_finding("WEIGHT_NOT_POSITIVE", name, problem=str(error).partition(": ")[2])
        return
    if not release.keeps_sensitive:
        yield make_finding("WEIGHT_NOT_PUBLISHED", name, method=release.method)
        return
    if rows := _count_rare_rows(name, release, table):
        yield make_finding("WEIGHTS_ARE_RARE", name, rows=rows, k=release.k or 1)


def _count_rare_rows(name: str, release: ReleaseSpec, table: Table) -> int:
    """Return the number of rows with a value of the column that fewer than k rows share."""
    coder = make_value_coder(list(table.values(name)))
    frequencies = table.gather_columns([name]).count([name], {name: coder})
    return int(frequencies.counts[frequencies.counts < (release.k or 1)].sum())


def _is_value_by_value(column: Column) -> bool:
    """Return whether values that no spec lists may be published as they are."""
    return column.role != "noisy" and (column.hierarchy is None or is_open(column))


def _find_outside_bounds(
    name: str, column: Column, release: KEpsilonSpec, table: Table
) -> Iterator[Finding]:
    assert column.bounds is not None
    outside, ends = 0, []
    try:
        for tally in table.iter_tallies([name]):
            grid, steps = build_grid(name, tally.values[0], column.precision, column.bounds)
            counts = np.zeros(len(steps), dtype=np.int64)
            np.add.at(counts, tally.codes[:, 0], tally.counts)
            full = np.array([value is not None for value in tally.values[0]], dtype=bool)
            if full.any():
                ends += [steps[full].min() * grid.step, steps[full].max() * grid.step]
            outside += int(counts[full & (grid.clamp_steps(steps) != steps)].sum())
    except IncrowdError:  # no numbers, which is found elsewhere
        return
    if not outside:
        return
    low, high = map(str, column.bounds)
    smallest, largest = str(min(ends)), str(max(ends))
    if release.bounds == "declared":
        yield make_finding(
            "VALUES_CLAMPED_BEFORE_NOISE", name, rows=outside, low=low, high=high, least=smallest,
            most=largest,
        )  # fmt: skip
    elif release.clamp:
        yield make_finding(
            "VALUES_CLAMPED", name, rows=outside, low=low, high=high, least=smallest, most=largest
        )
    else:
        yield make_finding(
            "VALUES_OUTSIDE_BOUNDS",
            name,
            rows=outside,
            low=low,
            high=high,
            least=smallest,
            most=largest,
        )
