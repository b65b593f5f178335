"""Hold a spec against its table: everything wrong or doubtful, in one go, with counts."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any, Literal, TypeAlias

import numpy as np

from incrowd.codes.grid import grid_of
from incrowd.codes.hierarchy import Hierarchy, HierarchyError
from incrowd.codes.values import canonical
from incrowd.curate.expect_losses import describe_losses
from incrowd.engine.source import open_for
from incrowd.engine.table import Engine, Table, TableError, Tally
from incrowd.errors import IncrowdError
from incrowd.measure.labels import ambiguous
from incrowd.methods.base import Method
from incrowd.methods.expect import expect
from incrowd.methods.exposure import find_exposures
from incrowd.methods.outlay import outlay_of
from incrowd.methods.person_id import describe_rows, find_ids
from incrowd.methods.registry import method_of
from incrowd.methods.weak_guarantee import describe_weak_parameters
from incrowd.privacy.randomness import SystemRandomness
from incrowd.spec.base import quoted
from incrowd.spec.build import build, is_open
from incrowd.spec.file import SpecFile, SpecSource, taken
from incrowd.spec.model import Column, PersonId, Spec
from incrowd.spec.release import KEpsilonSpec, ReleaseSpec, SafeSpec

_SHOWN = 5
_NOISY_ROWS = 20_000  # that the error of noise is expected by
_UNCONFIRMED = "read from the data, not confirmed"


Kind: TypeAlias = Literal["wrong", "doubtful", "note"]


@dataclass(frozen=True)
class Finding:
    """Something the curator should know about a column or the whole table.

    ``wrong`` must be put right before publishing; ``doubtful`` must be looked at; ``note``
    is good to know.
    """

    kind: Kind
    column: str | None
    message: str

    def __str__(self) -> str:
        return f"{self.column}: {self.message}" if self.column else self.message

    @property
    def unconfirmed(self) -> bool:
        """Whether it is about what nobody has confirmed yet."""
        return self.message.startswith(_UNCONFIRMED)


def check(table: Any, spec: SpecSource, *, engine: Engine | None = None) -> list[Finding]:
    """Return all findings, the wrong ones first. The table is read one column at a time.

    ``table`` is whatever :func:`incrowd.publish` takes, or None for the one that the spec names;
    it is opened by ``engine``, if one is given.
    """
    file = taken(spec)
    table = open_for(file, table, engine=engine)
    order = {"wrong": 0, "doubtful": 1, "note": 2}
    found = [*_findings(file, table), *_expected(file, table), *_expected_noise(file, table)]
    return sorted(found, key=lambda finding: order[finding.kind])


def _expected(file: SpecFile, table: Table) -> Iterator[Finding]:
    """What to expect of the release; nothing where it would be refused."""
    if file.spec.release is None:
        return
    try:
        expectation = expect(table, file)
    except IncrowdError:
        return
    for one, line in zip_longest(expectation.each, expectation.lines()):
        yield Finding("doubtful" if one and one.doubtful else "note", None, f"expect: {line}")
    try:
        lost = describe_losses(file, table)
    except IncrowdError:
        return
    if lost:
        yield Finding("doubtful", None, lost)


def _expected_noise(file: SpecFile, table: Table) -> Iterator[Finding]:
    """Noise that is as large as the values, by the first rows; nothing if it would be refused."""
    if not isinstance(file.spec.release, KEpsilonSpec):
        return
    from incrowd.methods.k_epsilon.loss import LARGE_ERROR, describe_error
    from incrowd.methods.k_epsilon.method import KEpsilon

    try:
        method = KEpsilon(file.confirmed())
        errors = method.expect_errors(method.tuples(table.head(_NOISY_ROWS)), SystemRandomness())
    except IncrowdError:
        return
    for name, error in errors.items():
        if error > LARGE_ERROR:
            yield Finding("doubtful", name, describe_error(error))


def _findings(file: SpecFile, table: Table) -> Iterator[Finding]:
    spec = file.spec
    yield from _names(spec, table)
    if spec.confirm:
        yield Finding("doubtful", None, f"{_UNCONFIRMED}: {', '.join(spec.confirm)}")
    yield from _unit(spec, table)
    for exposure in find_exposures(spec, table):
        kind: Kind = "wrong" if exposure.refused else "doubtful"
        yield Finding(kind, exposure.column, exposure.message)
    for message in describe_weak_parameters(spec.release):
        yield Finding("doubtful", None, f"release: {message}")
    for name, column in spec.columns.items():
        if column.confirm:
            listed = ", ".join(column.confirm)
            yield Finding("doubtful", name, f"{_UNCONFIRMED}: {listed}")
        if column.role == "noisy" and name in table.columns:
            yield from _noisy(name, column, table)
        if column.hierarchy is None or name not in table.columns:
            continue
        try:
            found = list(_coverage(file, name, column, table))
        except (HierarchyError, TableError) as error:
            found = [Finding("wrong", name, str(error))]
        # What is kept as it is has no use for its hierarchy, so that publishing does not refuse.
        keeps = spec.release is not None and spec.release.keeps_sensitive
        unused = column.role == "sensitive" and keeps
        for finding in found:
            yield replace(finding, kind="doubtful") if unused else finding


def foreseen(file: SpecFile) -> list[Finding]:
    """What publishing would refuse or warn of, whatever the table; :func:`check` cannot know it."""
    try:
        method = method_of(file)
    except IncrowdError as error:
        return [Finding("wrong", None, f"release: {error}")]
    known = method.promise
    said = describe_weak_parameters(file.spec.release)
    weak = describe_weak_parameters(file.spec.release, known.epsilon, known.delta)
    found = [Finding("doubtful", None, f"release: {one}") for one in weak if one not in said]
    return [*found, *_check_ledger(file, method)]


def _check_ledger(file: SpecFile, method: Method) -> list[Finding]:
    """What the ledger of a spec has left, and whether it allows the release."""
    try:
        known = outlay_of(file, method=method)
    except IncrowdError as error:
        return [Finding("wrong", None, f"ledger: {error}")]
    if known is None:
        return []
    *left, last = known.lines()
    kind: Kind = "wrong" if known.refused else "note"
    return [*(Finding("note", None, f"ledger: {one}") for one in left),
            Finding(kind, None, f"ledger: {last}")]  # fmt: skip


def _names(spec: Spec, table: Table) -> Iterator[Finding]:
    for name in table.columns:
        if name not in spec.columns:
            close = difflib.get_close_matches(name, list(spec.columns), n=1)
            hint = f" Did you mean '{close[0]}'?" if close else ""
            yield Finding("wrong", name, f"is in the table but has no role in the spec.{hint}")
    for name in spec.columns:
        if name not in table.columns:
            close = difflib.get_close_matches(name, list(table.columns), n=1)
            hint = f" Did you mean '{close[0]}'?" if close else ""
            kind: Kind = "note" if spec.columns[name].role == "drop" else "wrong"
            yield Finding(kind, name, f"is in the spec but not in the table.{hint}")


def _unit(spec: Spec, table: Table) -> Iterator[Finding]:
    """Whether a row is a person: repeated identifiers speak against it."""
    rows = table.rows()
    if isinstance(spec.unit, PersonId):
        if spec.unit.id in table.columns:
            counts, missing = table.count_rows_per_id(spec.unit.id), table.missing(spec.unit.id)
            people = f"{counts.ids:,} people in {rows:,} rows; {describe_rows(counts, 'person')}"
            yield Finding("note", spec.unit.id, people)
            if missing and not spec.unit.without_id:
                message = (
                    f"{missing:,} rows have no id. Give them one, or leave "
                    f"them out: unit: {{id: {spec.unit.id}, without_id: drop}}"
                )
                yield Finding("wrong", spec.unit.id, message)
        return
    repeated = {name: known for name, known in find_ids(table).items() if known.is_unit}
    for name, known in repeated.items():
        message = (
            f"looks like an id that several rows share ({known.describe()}). The release would "
            f"protect one row, not one person: say 'unit: {{id: {quoted(name)}}}' if it is one."
        )
        yield Finding("doubtful", name, message)
    if repeated:
        return
    identifiers = [name for name in spec.with_role("identifier") if name in table.columns]
    if identifiers:
        distinct = table.distinct(identifiers)
        if distinct < rows:
            message = (
                f"{rows - distinct:,} of {rows:,} rows repeat all identifiers of another "
                f"({', '.join(identifiers)}). If several rows can belong to one person, say "
                "'unit: {id: COLUMN}'."
            )
            yield Finding("doubtful", None, message)


def _noisy(name: str, column: Column, table: Table) -> Iterator[Finding]:
    """Whether noise can be added to a column: its values are numbers of its precision, or days."""
    try:
        values = [value for tally in table.tallies([name]) for value in tally.values[0]]
        grid_of(name, values, column.precision, column.bounds)
    except IncrowdError as error:
        yield Finding("wrong", name, str(error))


def _coverage(file: SpecFile, name: str, column: Column, table: Table) -> Iterator[Finding]:
    """How the values of a column lie in its domain."""
    tallies = list(table.tallies([name]))
    met = [value for tally in tallies for value in tally.values[0]] if is_open(column) else ()
    hierarchy = build(column, folder=file.folder, values=met)
    release = file.spec.release
    asked = release.levels.get(name, 0) if release else 0
    level = asked if isinstance(asked, int) else asked[1]
    if level >= hierarchy.height:
        message = f"level {level} is asked for, but the highest is {hierarchy.height - 1}"
        yield Finding("wrong", name, message)
    yield from _labels(name, column, hierarchy, release)
    outside: dict[str, int] = {}
    nulls = 0
    for tally in tallies:
        counts = _value_counts(tally)
        codes = hierarchy.encode(tally.values[0])
        nulls += int(counts[codes == hierarchy.null].sum())
        for at in np.flatnonzero(codes == hierarchy.outside).tolist():
            text = canonical(tally.values[0][at]) or ""
            outside[text] = outside.get(text, 0) + int(counts[at])
    if outside:
        often = sorted(outside, key=lambda text: (-outside[text], text))
        listed = ", ".join(f"'{text}' ({outside[text]:,})" for text in often[:_SHOWN])
        more = f" and {len(often) - _SHOWN:,} more" if len(often) > _SHOWN else ""
        to = f"'{column.other}'" if column.other else "the root"
        rows, held = sum(outside.values()), sum(int(tally.counts.sum()) for tally in tallies)
        message = (
            f"{rows:,} rows ({rows / held:.1%}) hold {len(outside):,} values outside the domain: "
            f"{listed}{more}. They will be published as {to}."
        )
        # At the root nothing is shown of a column, whatever its values are.
        root = isinstance(asked, int) and hierarchy.rooted and level == hierarchy.height - 1
        wrong = rows + nulls == held and not root
        yield Finding("wrong" if wrong else "doubtful", name, message)
    if nulls:
        yield Finding("note", name, f"{nulls:,} rows are null, which is a value of its own")


def _labels(
    name: str, column: Column, hierarchy: Hierarchy, release: ReleaseSpec | None
) -> Iterator[Finding]:
    """Labels that mean different things at different levels, and whom that could mislead."""
    twice = ambiguous(hierarchy)
    if not twice:
        return
    label, sizes = next(iter(twice.items()))
    every = len(hierarchy.values)
    listed = " and ".join(
        f"{'all ' if size == every else ''}{size:,}{' values' if at == 0 else ''} at level {level}"
        for at, (level, size) in enumerate(sizes.items())
    )
    more = f" (and {len(twice) - 1:,} labels more)" if len(twice) > 1 else ""
    words = f"One label for different things: '{label}' is {listed}{more}."
    levels = _publishable(name, hierarchy, release)
    both = [level for level in sizes if level in levels]
    grouped = [level for level in both if level < hierarchy.height - 1]
    if release is not None and release.is_local and name not in release.levels:
        misled = "In a release by cuts both stand side by side, and nobody can tell which is meant."
    elif len(both) > 1:
        named = " and ".join(map(str, both))
        misled = (
            f"The levels {named} may both be published, and a reader who does not look at the "
            "certificate cannot tell which it was."
        )
    elif grouped and label == hierarchy.root and column.other is None:
        misled = (
            f"At level {grouped[0]} values outside the domain are shown as '{label}' too, as if "
            "they were of that group. Declare 'other'."
        )
    else:
        misled = ""
    if misled:
        yield Finding("doubtful", name, f"{words} {misled} Rename one of them.")
    else:
        shown = "only one of them" if both else "none of them"
        yield Finding(
            "note", name, f"{words} Of its meanings {shown} can be published, so no reader of "
            "this release is misled."
        )  # fmt: skip


def _publishable(name: str, hierarchy: Hierarchy, release: ReleaseSpec | None) -> range:
    """The levels that a column may be published at."""
    if release is None:
        return range(hierarchy.height)
    fixed = isinstance(release, SafeSpec) and release.scheme == "fixed"
    if fixed and name not in release.levels:
        middle = (hierarchy.height - 1) // 2
        return range(middle, middle + 1)
    level = release.levels.get(name, (0, hierarchy.height - 1))
    low, high = (level, level) if isinstance(level, int) else level
    return range(low, high + 1)


def _value_counts(tally: Tally) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    counts = np.zeros(len(tally.values[0]), dtype=np.int64)
    np.add.at(counts, tally.codes[:, 0], tally.counts)
    return counts
