"""Assess the risk of a table before anything is published: records, population, sets of columns."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from incrowd.arrays import Codes, Counts, Floats, Members, Progress
from incrowd.codes.counted_table import COUNT
from incrowd.codes.frequency import Frequencies, merge_tuples, number_tuples
from incrowd.codes.values import canonicalize_value
from incrowd.engine.count import make_value_coder, read_positive_numbers
from incrowd.engine.source import open_spec_table, open_table
from incrowd.engine.table import Coder, Engine, Table, TableError
from incrowd.errors import IncrowdError, ParameterError, check_fraction, check_whole, require_single
from incrowd.measure.column_sets import count_column_sets
from incrowd.measure.table_risk import (
    MOST_SETS,
    Basis,
    RiskInput,
    TableRisk,
    choose_largest_set,
    measure_table_risk,
)
from incrowd.methods.people import draw_rows
from incrowd.privacy.randomness import SystemRandomness
from incrowd.spec.file import SpecFile, SpecSource, load_spec

_USUAL_K = 3


def risk(
    table: Any = None,
    spec: SpecSource | None = None,
    *,
    columns: Sequence[str] | None = None,
    weight: str | None = None,
    household: str | None = None,
    population: Any = None,
    k: int | None = None,
    threshold: float = 0.05,
    largest_set: int | None = None,
    engine: Engine | None = None,
    progress: Progress = lambda _done, _all: None,
) -> TableRisk:
    """Estimate the risk of reidentification in a table, before or after it is generalized.

    The result is for the curator alone: it is computed from the table. It rests on the model that
    an attacker knows all columns of a set without errors; it is no guarantee.

    Args:
        table: The table, in any form that :func:`incrowd.publish` takes; by default that of the
            spec. A released table is judged by its labels.
        spec: The spec; its quasi-identifiers are the columns that an attacker knows.
        columns: These columns instead. Needed without a spec.
        weight: A column of survey weights: how many people of the population each record stands
            for. By default the column with the role ``weight``.
        household: A column that tells the household of each record.
        population: The population: its size, or a table of all its people with the same columns.
        k: The k of the sets of columns; by default that of the spec, or 3.
        threshold: The risk from which records are counted.
        largest_set: The largest number of columns in a set; by default 3.
        engine: The engine that opens the tables.
        progress: Hears how many sets of columns are done.

    Returns:
        All figures; ``records`` has those of every combination of values.

    Raises:
        IncrowdError: A table cannot be opened, a column is missing, or a weight is no number.

    Examples:
        >>> import polars as pl
        >>> import incrowd as ic
        >>> people = pl.DataFrame({"sex": ["f", "f", "m"], "weight": [180, 180, 76]})
        >>> result = ic.risk(people, columns=["sex"], weight="weight")
        >>> result.uniques, round(result.individual.highest, 4)
        (1, 0.0577)
    """
    file = None if spec is None else load_spec(spec)
    source = _open_source(table, file, engine)
    names = _choose_columns(file, columns)
    if weight is None and isinstance(population, int | float | None):
        weight = _find_weight(file, source)  # a table of the population says more
    if weight is not None and not isinstance(population, int | float | None):
        raise ParameterError(
            "population", "be a number where there are weights", population,
            "A population table says more than weights: leave out the weights.",
        )  # fmt: skip
    sample = source if file is None else draw_rows(source, file.spec, SystemRandomness())
    width = len(names)
    chosen_set = choose_largest_set(width, _check_optional("largest_set", largest_set))
    if count_column_sets(width, chosen_set) > MOST_SETS:
        raise ParameterError(
            "largest_set", f"leave at most {MOST_SETS:,} sets of {width} columns", chosen_set
        )
    size = population if isinstance(population, int | float) else None
    reader = _TableReader(file, names, weight, household)
    inputs = reader.read_sample(sample, _check_optional("population", size))
    if population is not None and size is None:
        inputs = reader.read_population(inputs, _open_population(population, file, engine))
    release_k = None if file is None or file.spec.release is None else file.spec.release.k
    return measure_table_risk(
        inputs,
        k=int(require_single("k", check_whole("k", k or release_k or _USUAL_K))),
        threshold=require_single("threshold", check_fraction("threshold", threshold)),
        largest_set=chosen_set,
        progress=progress,
    )


def _check_optional(name: str, value: float | None) -> int | None:
    return None if value is None else int(require_single(name, check_whole(name, value)))


def _open_source(table: Any, file: SpecFile | None, engine: Engine | None) -> Table:
    if file is not None:
        return open_spec_table(file, table, engine=engine)
    if table is None:
        raise IncrowdError("No table is named. Give a table, or a spec that names one.")
    return open_table(table, engine=engine)


def _open_population(population: Any, file: SpecFile | None, engine: Engine | None) -> Table:
    """Open a population table, with its values read as those of the sample."""
    if isinstance(population, str | os.PathLike) and file is not None:
        path = Path(population)
        beside = file.folder / path
        population = beside if not path.exists() and beside.exists() else population
    if file is not None:
        return open_spec_table(file, population, engine=engine)
    return open_table(population, engine=engine)


def _choose_columns(file: SpecFile | None, columns: Sequence[str] | None) -> tuple[str, ...]:
    if columns:
        return tuple(dict.fromkeys(columns))
    if file is None:
        raise IncrowdError("No quasi-identifiers are named. Name columns, or a spec that has some.")
    names = file.spec.columns_with_role("quasi")
    if not names:
        raise IncrowdError("Spec: no quasi-identifier. Give a column the role `quasi`.")
    return names


def _find_weight(file: SpecFile | None, table: Table) -> str | None:
    """Return the column with the role `weight`, if the table has it."""
    names = () if file is None else file.spec.columns_with_role("weight")
    return next((name for name in names if name in table.columns), None)


class _TableReader:
    """Reads tables as tuples of values; equal values of two tables have one code."""

    def __init__(
        self, file: SpecFile | None, names: tuple[str, ...], weight: str | None,
        household: str | None,
    ) -> None:  # fmt: skip
        self._names, self._weight, self._household = names, weight, household
        self._declared = () if file is None else tuple(file.spec.columns)
        self._values: list[list[str | None]] = []
        self._places: list[dict[str | None, int]] = []

    def read_sample(self, table: Table, size: int | None) -> RiskInput:
        """Count the sample; its population is told by weights, by a size, or not at all."""
        extra = [name for name in (self._weight, self._household) if name is not None]
        has_counts = COUNT in table.columns and COUNT not in (*self._declared, *self._names)
        extra += [COUNT] if has_counts else []
        _refuse_missing(table, [*self._names, *extra])
        if self._weight is not None and self._weight == self._household:
            raise ParameterError("household", "be another column than the weight", self._weight)
        for role, name in (("weight", self._weight), ("household", self._household)):
            if name in self._names:
                raise ParameterError(role, "be none of the quasi-identifiers", name)
        for name in self._names:
            texts: dict[str | None, int] = {}
            for value in table.values(name):
                texts.setdefault(canonicalize_value(value), len(texts))
            self._values.append(list(texts))
            self._places.append(texts)
        wide, values = self._count(table, extra)
        rows = wide.counts
        if has_counts:
            rows = rows * read_positive_numbers(COUNT, values[COUNT])[wide.codes[:, -1]].astype(
                np.int64
            )
        tuples, owner = _split_tuples(wide.codes[:, : len(self._names)], rows)
        people, basis = self._estimate_people(tuples, owner, wide, values, rows, size)
        entries: tuple[Members, Members, Counts] | None = None
        households: tuple[str, list[str | None]] | None = None
        if self._household is not None:
            texts_of = [canonicalize_value(value) for value in values[self._household]]
            listed = sorted({text for text in texts_of if text is not None})
            homes = _number_households(texts_of, listed)
            at = len(self._names) + extra.index(self._household)
            entries = _merge_entries(owner, homes[wide.codes[:, at]], rows)
            households = (self._household, [*listed])
        total = max(float(people.sum()) if size is None else float(size), float(tuples.total))
        return RiskInput(
            self._names, tuple(self._values), tuples, basis, people, total, entries, households
        )

    def _estimate_people(
        self, tuples: Frequencies, owner: Members, wide: Frequencies,
        values: Mapping[str, list[object]], rows: Counts, size: int | None,
    ) -> tuple[Floats, Basis]:  # fmt: skip
        """Return the people of each tuple in the population, and what they come from."""
        if self._weight is not None:
            weights = read_positive_numbers(self._weight, values[self._weight])
            each = weights[wide.codes[:, len(self._names)]] * rows
            return np.bincount(owner, weights=each).astype(np.float64), "weights"
        people = tuples.counts.astype(np.float64)
        if size is not None:
            return people * max(size / max(tuples.total, 1), 1.0), "size"
        return people, "sample"

    def read_population(self, sample: RiskInput, table: Table) -> RiskInput:
        """Count each tuple of the sample in the population."""
        _refuse_missing(table, self._names, "population table")
        people = self._count(table, [])[0]
        codes = np.vstack([sample.frequencies.codes, people.codes])
        numbers = number_tuples(codes)
        ours, theirs = numbers[: len(sample.frequencies)], numbers[len(sample.frequencies) :]
        order = np.argsort(theirs, kind="stable")
        at = np.minimum(np.searchsorted(theirs[order], ours), max(len(theirs) - 1, 0))
        matching = np.zeros(len(ours))
        if len(theirs):
            matching = np.where(theirs[order][at] == ours, people.counts[order][at], 0.0)
        total = float(max(people.total, sample.frequencies.total))
        return replace(sample, basis="table", population=matching, size=total)

    def _count(
        self, table: Table, extra: Sequence[str]
    ) -> tuple[Frequencies, dict[str, list[object]]]:
        """Count tuples of the columns and of others, whose values are returned."""
        gathered = table.gather_columns([*self._names, *extra])
        coders: dict[str, Coder] = {
            name: _make_text_coder(texts)
            for name, texts in zip(self._names, self._places, strict=True)
        }
        values: dict[str, list[object]] = {}
        for name in extra:
            values[name] = list(gathered.values(name))
            coders[name] = make_value_coder(values[name])
        return gathered.count([*self._names, *extra], coders), values


def _refuse_missing(table: Table, names: Sequence[str], what: str = "table") -> None:
    for name in names:
        if name not in table.columns:
            raise TableError(f"Column '{name}': not in the {what}. Correct the name.")


def _make_text_coder(texts: dict[str | None, int]) -> Coder:
    """Return codes of canonical texts; what the sample lacks has a code of its own."""
    return lambda values: np.array(
        [texts.get(canonicalize_value(value), len(texts)) for value in values], dtype=np.int32
    )


def _split_tuples(codes: Codes, rows: Counts) -> tuple[Frequencies, Members]:
    """Return distinct tuples of the first columns, and to which of them each entry belongs."""
    return merge_tuples(codes, rows), np.unique(number_tuples(codes), return_inverse=True)[1]


def _number_households(texts: Sequence[str | None], listed: Sequence[str]) -> Members:
    """Return the number of each household, by its place in the list; -1 for null."""
    places = {text: at for at, text in enumerate(listed)}
    return np.array([-1 if text is None else places[text] for text in texts], dtype=np.int64)


def _merge_entries(owner: Members, homes: Members, rows: Counts) -> tuple[Members, Members, Counts]:
    """Return tuple, household and rows; weights that differ within a household are one entry."""
    pairs, places = np.unique(np.column_stack([owner, homes]), axis=0, return_inverse=True)
    merged = np.bincount(places.ravel(), weights=rows).astype(np.int64)
    return pairs[:, 0], pairs[:, 1], merged
