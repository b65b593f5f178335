"""Hold a spec against its table: everything wrong or doubtful, in one go, with counts.

**Expected losses.** Which values a release would lose, before it is made: read from the table, for
the curator alone.

Nothing that is published may depend on it. It is computed where the spec fixes the level of every
column, so that nothing remains to be chosen by looking at the result.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from incrowd.codes.grid import build_grid
from incrowd.codes.hierarchy import Hierarchy, HierarchyError
from incrowd.codes.values import canonicalize_value
from incrowd.curate.alike_values import find_alike_values
from incrowd.engine.count import count_tuples
from incrowd.engine.source import open_spec_table
from incrowd.engine.table import Engine, Table, TableError, Tally
from incrowd.errors import IncrowdError
from incrowd.findings import Finding, Severity, make_finding, sort_findings
from incrowd.measure.labels import find_ambiguous_labels
from incrowd.measure.lost_values import LostValues, find_lost_labels
from incrowd.measure.outcome import build_published_table
from incrowd.methods.base import Method
from incrowd.methods.expect import expect
from incrowd.methods.exposure import find_exposures, find_weak_parameters
from incrowd.methods.people import draw_rows
from incrowd.methods.person_id import find_ids
from incrowd.methods.registry import make_method
from incrowd.methods.safe.budget import SMALL_TABLE_SHARES
from incrowd.methods.safe.method import Safe
from incrowd.methods.spec_ledger import preview_spec_budget
from incrowd.methods.table_fit import (
    find_missing_ids,
    find_other_parts,
    find_unmatched_columns,
    find_unmatched_households,
)
from incrowd.privacy.events import PersonCounts, RowCounts, Selection
from incrowd.privacy.randomness import SystemRandomness
from incrowd.spec.base import quote_scalar
from incrowd.spec.build import build_hierarchy, is_open
from incrowd.spec.dependency import ColumnDependencies
from incrowd.spec.file import SpecFile, SpecSource, load_spec
from incrowd.spec.model import HARMLESS_ENTRIES, Column, PersonId, Spec
from incrowd.spec.release import KEpsilonSpec, ReleaseSpec, SafeSpec
from incrowd.spec.slices import Slicing

_NAMED = 6


def expect_losses(file: SpecFile, table: Table) -> LostValues | None:
    """Find the values that a release would lose; None where levels are open, or there are slices.

    Each cell is taken to keep its rows as often as it is shown.
    """
    settled = make_method(file.with_all_confirmed()).planned_release
    (limits, *slices) = settled.tables
    if slices or any(low != high for low, high in limits.values()):
        return None
    levels = tuple(limits[name][0] for name in settled.declared.names)
    rows = draw_rows(table, file.spec, SystemRandomness())
    counted_table = count_tuples(rows, settled.declared, levels=levels).merge_labels()
    frequencies = counted_table.frequencies
    sizes, place = np.unique(frequencies.counts, return_inverse=True)
    expected = settled.likely(sizes.astype(np.float64))[place] * frequencies.counts
    published = replace(frequencies, counts=np.rint(expected).astype(np.int64))
    return find_lost_labels(counted_table, build_published_table(counted_table, published))


def find_expected_losses(file: SpecFile, table: Table) -> Iterator[Finding]:
    """Find the values that a release would lose; nothing where none would be lost."""
    lost = expect_losses(file, table)
    named = [] if lost is None else [*lost.values, *lost.pairs]
    if lost is None or not named:
        return
    rest = len(named) + lost.more_values + lost.more_pairs - _NAMED
    listed = [loss.description for loss in named[:_NAMED]]
    yield make_finding("VALUES_EXPECTED_LOST", listed=listed, more=max(rest, 0))


_SHOWN = 5
_NOISY_ROWS = 20_000  # that the error of noise is expected by


def check(table: Any, spec: SpecSource, *, engine: Engine | None = None) -> list[Finding]:
    """Return every finding about a table and its spec, errors first.

    The table is read one column at a time. Nothing is published and no budget is spent.

    Args:
        table: The table, in any form that :func:`incrowd.publish` takes; None for the table that
            the spec names.
        spec: Path of a spec, its YAML text, a mapping, or a draft.
        engine: The engine that opens the table; by default the one for tables of its kind.

    Returns:
        The findings, errors first, then warnings, then notes. A spec can be published if none of
        them is an error.

    Raises:
        IncrowdError: The spec is invalid, or the table cannot be opened.

    Examples:
        >>> import polars as pl
        >>> import incrowd as ic
        >>> people = pl.DataFrame({"sex": ["female", "male"], "age": [31, 40]})
        >>> sex = {"role": "quasi", "hierarchy": {"flat": {"values": ["female", "male"]}}}
        >>> spec = {"columns": {"sex": sex}, "release": {"method": "k-anonymity", "k": 2}}
        >>> [(finding.code, finding.column) for finding in ic.check(people, spec)][0]
        ('COLUMN_NOT_DECLARED', 'age')
    """
    file = load_spec(spec)
    table = open_spec_table(file, table, engine=engine)
    findings = [
        *_find_problems(file, table),
        *_find_expectations(file, table),
        *_find_expected_noise(file, table),
    ]
    return sort_findings(findings)


def _find_expectations(file: SpecFile, table: Table) -> Iterator[Finding]:
    """Yield what to expect of the release; nothing where it would be refused."""
    if file.spec.release is None:
        return
    try:
        expectation = expect(table, file)
    except IncrowdError:
        return
    yield from expectation.findings()
    if file.spec.household is not None:
        from incrowd.curate.whole_households import find_kept_households  # what few specs ask for

        yield from find_kept_households(file, table)
    if file.spec.size is not None:
        yield from _find_forecasts(file)
    try:
        yield from find_expected_losses(file, table)
    except IncrowdError:
        return


def _find_forecasts(file: SpecFile) -> Iterator[Finding]:
    """Yield what the stated size says: which method serves, and which values are at risk."""
    from incrowd.curate.rare_values import find_risk_of_values
    from incrowd.curate.recommend import recommend_method

    with suppress(IncrowdError):
        recommendation = recommend_method(file)
        if recommendation is not None and file.spec.household is None:  # which has one method
            yield recommendation.find()
    with suppress(IncrowdError):
        yield from find_risk_of_values(file)


def _find_expected_noise(file: SpecFile, table: Table) -> Iterator[Finding]:
    """Yield columns whose noise would be as large as their values, by the first rows."""
    if not isinstance(file.spec.release, KEpsilonSpec):
        return
    from incrowd.methods.k_epsilon.loss import find_large_error
    from incrowd.methods.k_epsilon.method import KEpsilon

    try:
        method = KEpsilon(file.with_all_confirmed())
        errors = method.expect_errors(
            method.count_tuples(table.head(_NOISY_ROWS)), SystemRandomness()
        )
    except IncrowdError:
        return
    for name, error in errors.items():
        yield from find_large_error(name, error)


def _find_problems(file: SpecFile, table: Table) -> Iterator[Finding]:
    spec = file.spec
    yield from find_unmatched_columns(spec, table)
    yield from find_unmatched_households(spec, table)
    if spec.confirm:
        yield make_finding("UNIT_NOT_CONFIRMED", spec=file.shell_name)
    yield from _find_repeated_ids(spec, table)
    yield from find_exposures(spec, table)
    yield from _find_hipaa_violations(spec, table)
    yield from find_weak_parameters(spec.release)
    yield from _find_false_functions(spec, table)
    yield from _find_redundant_slices(spec)
    if kept_columns := spec.columns_with_role("keep"):
        yield make_finding("KEEP_ASSERTED", columns=list(kept_columns))
    for name, column in spec.columns.items():
        if column.confirm:
            yield _make_unconfirmed(file, name, column.confirm)
        if column.role == "noisy" and not column.values and name in table.columns:
            yield from _find_noisy_problems(name, column, table)
        if column.hierarchy is None or name not in table.columns:
            continue
        try:
            domain_problems = list(_find_domain_problems(file, name, column, table))
        except (HierarchyError, TableError) as error:
            problem = str(error).removeprefix(f"Column '{name}': ")
            domain_problems = [make_finding("HIERARCHY_INVALID", name, problem=problem)]
        # What is kept as it is has no use for its hierarchy, so that publishing does not refuse.
        keeps = spec.release is not None and spec.release.keeps_sensitive
        unused = column.role == "sensitive" and keeps
        for finding in domain_problems:
            yield replace(finding, severity=Severity.WARNING) if unused else finding


def _find_false_functions(spec: Spec, table: Table) -> Iterator[Finding]:
    """Yield columns that the table has with several values for the same values of their sources."""
    for name, sources in ColumnDependencies.from_columns(spec.columns).sources.items():
        if not {name, *sources} <= {*table.columns}:
            continue
        with suppress(TableError):
            tuples = table.count_distinct(list(sources))
            if (more := table.count_distinct([*sources, name])) > tuples:
                yield make_finding(
                    "FUNCTION_CONTRADICTED", name, sources=list(sources), tuples=tuples, more=more
                )


def _find_redundant_slices(spec: Spec) -> Iterator[Finding]:
    """Yield declared slices that have a column together with those that determine it."""
    release = spec.release
    if not isinstance(release, SafeSpec) or isinstance(release.slices, Slicing):
        return
    dependencies = ColumnDependencies.from_columns(spec.columns)
    for part in release.slices:
        if determined := dependencies.find_determined(part):
            name = determined[-1]
            yield make_finding(
                "SLICE_REDUNDANT", name, slice=list(part),
                sources=dependencies.find_sources(name, part),
            )  # fmt: skip


def _find_hipaa_violations(spec: Spec, table: Table) -> Iterator[Finding]:
    """Yield what breaks the list of the safe harbor, or that nothing does."""
    if spec.hipaa is None:
        return
    from incrowd.methods.safe_harbor import find_violations

    violations = list(find_violations(spec, table))
    yield from violations
    if not violations:
        yield make_finding("HIPAA_LIST_HELD")


def _make_unconfirmed(file: SpecFile, name: str, entries: Sequence[str]) -> Finding:
    """Return what is to be confirmed of a column: that it is correct, or that it is public."""
    correct: list[str] = [entry for entry in entries if entry in HARMLESS_ENTRIES]
    public: list[str] = [entry for entry in entries if entry not in HARMLESS_ENTRIES]
    return make_finding(
        "COLUMN_NOT_CONFIRMED", name, correct=correct, public=public,
        both=int(bool(correct and public)), spec=file.shell_name,
    )  # fmt: skip


def find_refusals(file: SpecFile) -> list[Finding]:
    """Find what publishing would refuse or warn of, whatever the table holds."""
    try:
        method = make_method(file)
    except IncrowdError as error:
        return [make_finding("RELEASE_REFUSED", problem=str(error))]
    promise = method.promise
    by_spec = find_weak_parameters(file.spec.release)
    weak = find_weak_parameters(file.spec.release, promise.epsilon, promise.delta)
    asserted = getattr(method, "asserted", {}).get("size")
    printed = [] if asserted is None else [make_finding("SIZE_PRINTED", size=int(asserted))]
    weak = [finding for finding in weak if finding not in by_spec]
    notes = []
    if isinstance(method, Safe):
        notes = [*method.notes, *_find_noisy_search(method), *_find_counted_rows(file)]
    return [*weak, *printed, *notes, *_check_ledger(file, method)]


def _find_noisy_search(method: Safe) -> Iterator[Finding]:
    """Yield that a search is as noisy as in a smaller table, where people have several rows."""
    events = [part for event in method.events for part in getattr(event, "events", [event])]
    kinds = PersonCounts | RowCounts
    rows = max((event.rows for event in events if isinstance(event, kinds)), default=1)
    if rows > 1 and any(isinstance(event, Selection) for event in events):
        _, (below, _) = SMALL_TABLE_SHARES
        yield make_finding("SEARCH_NOISIER", rows=rows, people=rows * below)


def _find_counted_rows(file: SpecFile) -> Iterator[Finding]:
    """Yield what counting rows costs against counting people, where rows are counted."""
    unit = file.spec.unit
    if isinstance(unit, PersonId) and unit.per_group > 1:
        from incrowd.curate.person_rows import compare_rows_per_group

        people, rows = compare_rows_per_group(file, (1,))
        yield make_finding(
            "ROWS_COUNTED", per_group=rows.per_group, noise=rows.noise, crowd=rows.crowd,
            people_noise=people.noise, people_crowd=people.crowd,
        )  # fmt: skip


def _check_ledger(file: SpecFile, method: Method) -> list[Finding]:
    """Find what the ledger of a spec has left, and whether it allows the release."""
    try:
        ledger = preview_spec_budget(file, method=method)
    except IncrowdError as error:
        return [make_finding("LEDGER_REFUSED", problem=str(error))]
    return [] if ledger is None else ledger.findings()


def _find_repeated_ids(spec: Spec, table: Table) -> Iterator[Finding]:
    """Find identifiers that repeat, so that a row may not be a person."""
    rows = table.rows()
    if isinstance(spec.unit, PersonId):
        if spec.unit.id in table.columns:
            counts = table.count_rows_per_id(spec.unit.id)
            yield make_finding(
                "PEOPLE_COUNTED", spec.unit.id, people=counts.ids, rows=rows,
                median=counts.median, largest=counts.largest,
            )  # fmt: skip
            yield from find_missing_ids(spec, table)
            yield from find_other_parts(spec, table)
            yield from _find_other_ids(spec.unit.id, counts.ids, table)
        return
    repeated = {name: id_counts for name, id_counts in find_ids(table).items() if id_counts.is_unit}
    for name, id_counts in repeated.items():
        yield make_finding(
            "ID_REPEATED", name, ids=id_counts.ids, rows=id_counts.rows,
            median=id_counts.counts.median, largest=id_counts.counts.largest,
            id=quote_scalar(name),
        )  # fmt: skip
    if repeated:
        return
    identifiers = [name for name in spec.columns_with_role("identifier") if name in table.columns]
    if identifiers:
        distinct = table.count_distinct(identifiers)
        if distinct < rows:
            yield make_finding(
                "IDENTIFIERS_REPEATED", repeated=rows - distinct, rows=rows, columns=identifiers
            )


def _find_other_ids(unit: str, people: int, table: Table) -> Iterator[Finding]:
    """Find ids besides that of the unit that fewer people or households have."""
    for name, id_counts in find_ids(table).items():
        if name != unit and id_counts.is_unit and id_counts.ids < people:
            yield make_finding(
                "ID_REPEATED_BESIDE", name, ids=id_counts.ids, rows=id_counts.rows,
                median=id_counts.counts.median, largest=id_counts.counts.largest, unit=unit,
                people=people,
            )  # fmt: skip


def _find_noisy_problems(name: str, column: Column, table: Table) -> Iterator[Finding]:
    """Find a column to which noise cannot be added: its values are no numbers or days."""
    try:
        values = [value for tally in table.iter_tallies([name]) for value in tally.values[0]]
        build_grid(name, values, column.precision, column.bounds)
    except IncrowdError as error:
        problem = str(error).removeprefix(f"Column '{name}': ")
        yield make_finding("NOISY_VALUES_INVALID", name, problem=problem)


def _find_domain_problems(
    file: SpecFile, name: str, column: Column, table: Table
) -> Iterator[Finding]:
    """Find how the values of a column lie in its domain."""
    tallies = list(table.iter_tallies([name]))
    met = [value for tally in tallies for value in tally.values[0]] if is_open(column) else ()
    hierarchy = build_hierarchy(column, folder=file.folder, values=met)
    release = file.spec.release
    request = release.levels.get(name, 0) if release else 0
    level = request if isinstance(request, int) else request[1]
    if level >= hierarchy.height:
        yield make_finding("LEVEL_TOO_HIGH", name, level=level, highest=hierarchy.height - 1)
    if 0 in _list_publishable_levels(name, hierarchy, release):
        yield from find_alike_values(name, column)
    yield from _find_ambiguous_labels(name, column, hierarchy, release)
    outside: dict[str, int] = {}
    nulls = 0
    for tally in tallies:
        counts = _count_values(tally)
        codes = hierarchy.encode(tally.values[0])
        nulls += int(counts[codes == hierarchy.null].sum())
        for at in np.flatnonzero(codes == hierarchy.outside).tolist():
            text = canonicalize_value(tally.values[0][at]) or ""
            outside[text] = outside.get(text, 0) + int(counts[at])
    if outside:
        often = sorted(outside, key=lambda text: (-outside[text], text))
        listed = [f"'{text}' ({outside[text]:,})" for text in often[:_SHOWN]]
        more = max(len(often) - _SHOWN, 0)
        rows, total = sum(outside.values()), sum(int(tally.counts.sum()) for tally in tallies)
        has_null = release is not None and release.method in ("synthetic", "tables")
        root_label = "null" if has_null else hierarchy.root  # where nothing is suppressed
        # At the root nothing is shown of a column, whatever its values are.
        root = isinstance(request, int) and hierarchy.is_rooted and level == hierarchy.height - 1
        if rows + nulls == total and not root:
            yield make_finding(
                "ALL_VALUES_OUTSIDE_DOMAIN", name, rows=rows, values=len(outside), listed=listed,
                more=more,
            )  # fmt: skip
        else:
            yield make_finding(
                "VALUES_OUTSIDE_DOMAIN", name, rows=rows, share=rows / total, values=len(outside),
                listed=listed, more=more, label=column.other or root_label,
            )  # fmt: skip
    if nulls:
        yield make_finding("VALUES_NULL", name, rows=nulls)


def _find_ambiguous_labels(
    name: str, column: Column, hierarchy: Hierarchy, release: ReleaseSpec | None
) -> Iterator[Finding]:
    """Find labels that mean different things at different levels."""
    twice = find_ambiguous_labels(hierarchy)
    if not twice:
        return
    label, sizes = next(iter(twice.items()))
    every = len(hierarchy.values)
    meanings = " and ".join(
        f"{'all ' if size == every else ''}{size:,}{' values' if at == 0 else ''} at level {level}"
        for at, (level, size) in enumerate(sizes.items())
    )
    more = len(twice) - 1
    levels = _list_publishable_levels(name, hierarchy, release)
    both = [level for level in sizes if level in levels]
    grouped = [level for level in both if level < hierarchy.height - 1]
    if release is not None and release.is_local and name not in release.levels:
        yield make_finding("LABELS_SIDE_BY_SIDE", name, label=label, meanings=meanings, more=more)
    elif len(both) > 1:
        named = " and ".join(map(str, both))
        yield make_finding(
            "LABEL_AT_SEVERAL_LEVELS", name, label=label, meanings=meanings, more=more, levels=named
        )
    elif grouped and label == hierarchy.root and column.other is None:
        yield make_finding(
            "LABEL_OF_OUTSIDE_VALUES", name, label=label, meanings=meanings, more=more,
            level=grouped[0],
        )  # fmt: skip
    else:
        yield make_finding(
            "LABEL_AMBIGUOUS", name, label=label, meanings=meanings, more=more,
            published=len(both), unpublished=int(not both),
        )  # fmt: skip


def _list_publishable_levels(name: str, hierarchy: Hierarchy, release: ReleaseSpec | None) -> range:
    """Return the levels that a column may be published at."""
    if release is None:
        return range(hierarchy.height)
    fixed = isinstance(release, SafeSpec) and release.scheme == "fixed"
    if fixed and name not in release.levels:
        middle = (hierarchy.height - 1) // 2
        return range(middle, middle + 1)
    level = release.levels.get(name, (0, hierarchy.height - 1))
    low, high = (level, level) if isinstance(level, int) else level
    return range(low, high + 1)


def _count_values(tally: Tally) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    counts = np.zeros(len(tally.values[0]), dtype=np.int64)
    np.add.at(counts, tally.codes[:, 0], tally.counts)
    return counts
