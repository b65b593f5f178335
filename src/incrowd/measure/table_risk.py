"""Risk of a table before release, as figures: by record, by table, by set of columns."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np

from incrowd.arrays import Floats, Members, Progress
from incrowd.codes.frequency import Frequencies
from incrowd.measure.column_sets import ColumnSetRisk, count_column_sets, measure_column_sets
from incrowd.measure.individual_risk import (
    RiskSummary,
    compute_household_risk,
    compute_individual_risk,
    summarize_risk,
)
from incrowd.measure.k_map import derive_sample_threshold
from incrowd.measure.loglinear_risk import MOST_CELLS, LoglinearRisk, count_cells
from incrowd.measure.loglinear_risk import measure_loglinear_risk as fit_model
from incrowd.measure.special_uniques import SpecialUniques, find_special_uniques
from incrowd.measure.uniqueness import PopulationUniqueness, SizeHistogram, estimate_uniqueness

MOST_SETS = 20_000  # sets of columns that are gone through
_LISTED = 20

Basis: TypeAlias = Literal["sample", "weights", "size", "table"]


@dataclass(frozen=True)
class SpecialUniqueSummary:
    """Special uniques of a table, in few figures.

    Attributes:
        records: Records with a minimal sample unique of the columns searched.
        sizes: Number of minimal sample uniques of 1, 2, ... columns.
        highest_score: Highest SUDA score.
        highest_dis: Highest DIS-SUDA score; None without a sampling fraction.
        contributions: Share of all scores that comes from minimal sample uniques with each column.
    """

    records: int
    sizes: tuple[int, ...]
    highest_score: float
    highest_dis: float | None
    contributions: dict[str, float]


@dataclass(frozen=True)
class TableRisk:
    """Risk of reidentification in a table, estimated before anything is published.

    Every figure is for the curator alone, and none is a guarantee.

    Attributes:
        columns: The quasi-identifiers that an attacker is taken to know.
        rows: Number of records.
        groups: Number of distinct combinations of their values.
        uniques: Records that are alone with their combination.
        basis: What the population counts come from: "table" counts them in a population table,
            "weights" adds up survey weights, "size" spreads a size evenly, and "sample" takes the
            table for the whole population.
        population: Size of the population, counted, given or estimated.
        individual: Summary of the risks of single records.
        household: Summary of the risk that somebody of a record's household is reidentified; None
            without a household column.
        violating: Records in groups of fewer than k, by k.
        smallest_map: Fewest people of the population that a group matches (k-map).
        below_map: Records in groups that match fewer people of the population than each k.
        sample_threshold: Records from which a group may be taken for one of k people of the
            population, by k; empty unless the population is known by its size alone.
        uniqueness: Population uniqueness by several models; None if the table is the population.
        loglinear: Risk of unique records by a log-linear model of main effects; None likewise.
        pairs: The same with all pairs of columns; None also where that has too many cells, or
            fewer than three columns.
        special: Special uniques (SUDA2, DIS-SUDA).
        sets: Sets of columns, those first that put most records at risk.
        largest_set: The largest number of columns in a set.
        k: The k of the sets.
        missing: Records that match nobody of a population table.
        riskiest: The riskiest combinations, with their figures.
        records: One entry for each combination of values (and household), riskiest first, as
            columns: values, ``rows``, ``sample_frequency``, ``population_frequency``, ``risk``,
            ``household_risk``, ``suda``, ``dis_suda``.
    """

    columns: tuple[str, ...]
    rows: int
    groups: int
    uniques: int
    basis: Basis
    population: float
    individual: RiskSummary
    household: RiskSummary | None
    violating: dict[int, int]
    smallest_map: float
    below_map: dict[int, int]
    sample_threshold: dict[int, int]
    uniqueness: PopulationUniqueness | None
    loglinear: LoglinearRisk | None
    pairs: LoglinearRisk | None
    special: SpecialUniqueSummary
    sets: tuple[ColumnSetRisk, ...]
    largest_set: int
    k: int
    missing: int = 0
    riskiest: tuple[dict[str, Any], ...] = ()
    records: dict[str, list[Any]] = field(default_factory=dict, repr=False)

    def as_dict(self) -> dict[str, Any]:
        """Return the figures as plain values, for JSON, without the list of all combinations."""
        fields = asdict(self)
        del fields["records"]
        return fields


@dataclass(frozen=True, eq=False)
class RiskInput:
    """A table as risk is measured on it: tuples of quasi-identifiers and how often they occur.

    ``values`` lists the values behind the codes of each column. ``population`` has the people of
    each tuple in the population; None takes the table for the population. ``entries`` are the
    rows of each tuple by household: tuple, household (-1 for none) and rows.
    """

    names: tuple[str, ...]
    values: tuple[list[str | None], ...]
    frequencies: Frequencies
    basis: Basis
    population: Floats
    size: float
    entries: tuple[Members, Members, Members] | None = None
    households: tuple[str, list[str | None]] | None = None


def measure_table_risk(
    table: RiskInput,
    *,
    k: int,
    threshold: float,
    largest_set: int,
    progress: Progress = lambda _done, _all: None,
) -> TableRisk:
    """Return all figures of a table."""
    frequencies, counts = table.frequencies, table.frequencies.counts
    risk = compute_record_risk(table)
    fraction = min(frequencies.total / table.size, 1.0) if table.size else 1.0
    sampled = table.basis != "sample" and fraction < 1
    special = find_special_uniques(
        frequencies, most=largest_set, fraction=fraction if sampled else None
    )
    by_entry = household_risk = None
    if table.entries is not None:
        by_entry, household_risk = _measure_households(table, risk, threshold)
    thresholds = sorted({2, 3, 5, k})
    share = counts / np.maximum(table.population, counts)
    cells = count_cells(frequencies)
    records = _list_records(table, risk, special, by_entry)
    return TableRisk(
        columns=table.names,
        rows=frequencies.total,
        groups=len(frequencies),
        uniques=int((counts == 1).sum()),
        basis=table.basis,
        population=table.size,
        individual=summarize_risk(risk, counts, threshold),
        household=household_risk,
        violating={least: int(counts[counts < least].sum()) for least in thresholds},
        smallest_map=float(table.population.min(initial=np.inf)) if len(counts) else 0.0,
        below_map={least: int(counts[table.population < least].sum()) for least in thresholds},
        sample_threshold={least: derive_sample_threshold(least, fraction) for least in thresholds}
        if table.basis == "size"
        else {},
        uniqueness=estimate_uniqueness(SizeHistogram.from_counts(counts), table.size)
        if sampled
        else None,
        loglinear=fit_model(frequencies, share) if sampled else None,
        pairs=fit_model(frequencies, share, interactions=2)
        if sampled and len(table.names) > 2 and cells <= MOST_CELLS
        else None,
        special=SpecialUniqueSummary(
            records=special.records,
            sizes=special.sizes,
            highest_score=float(special.scores.max(initial=0.0)),
            highest_dis=None if special.dis is None else float(special.dis.max(initial=0.0)),
            contributions=dict(zip(table.names, special.contributions, strict=True)),
        ),
        sets=measure_column_sets(
            table.names, frequencies, most=largest_set, k=k, progress=progress
        ),
        largest_set=largest_set,
        k=k,
        missing=int(counts[table.population == 0].sum()),
        riskiest=tuple(
            {name: column[at] for name, column in records.items()}
            for at in range(min(_LISTED, len(next(iter(records.values())))))
        ),
        records=records,
    )


def compute_record_risk(table: RiskInput) -> Floats:
    """Return the risk of the records of each tuple."""
    counts, population = table.frequencies.counts, table.population
    if table.basis in ("table", "sample"):  # then the number of people is known
        return 1.0 / np.maximum(population, counts)
    return compute_individual_risk(counts, population)


def choose_largest_set(width: int, requested: int | None) -> int:
    """Return the largest size of sets: as requested, or 3, or fewer where that is too many sets."""
    if requested is not None:
        return min(requested, width)
    sizes = (size for size in (3, 2) if count_column_sets(width, size) <= MOST_SETS)
    return min(next(sizes, 1), width)


def _measure_households(
    table: RiskInput, risk: Floats, threshold: float
) -> tuple[Floats, RiskSummary]:
    """Return the household risk of each entry, and its summary over all records."""
    assert table.entries is not None
    tuples, households, rows = table.entries
    by_entry = risk[tuples]
    has_household = households >= 0
    joint = compute_household_risk(
        by_entry[has_household], rows[has_household], households[has_household]
    )
    by_entry[has_household] = joint[households[has_household]]
    return by_entry, summarize_risk(by_entry, rows, threshold)


def _list_records(
    table: RiskInput, risk: Floats, special: SpecialUniques, by_entry: Floats | None
) -> dict[str, list[Any]]:
    """Return one entry for each combination, or combination and household, riskiest first."""
    counts, places = table.frequencies.counts, np.arange(len(table.frequencies))
    rows = counts
    if table.entries is not None:
        places, _, rows = table.entries
    worst = risk[places] if by_entry is None else by_entry
    order = np.lexsort([-special.scores[places], -risk[places], -worst])
    places, rows = places[order], rows[order]
    columns: dict[str, list[Any]] = {}
    for at, name in enumerate(table.names):
        codes = table.frequencies.codes[places, at].tolist()
        columns[name] = [table.values[at][code] for code in codes]
    if table.entries is not None and table.households is not None:
        name, values = table.households
        homes = table.entries[1][order].tolist()
        columns[name] = [values[at] if at >= 0 else None for at in homes]
    figures = {
        "rows": rows,
        "sample_frequency": counts[places],
        "population_frequency": table.population[places],
        "risk": risk[places],
        "household_risk": None if by_entry is None else by_entry[order],
        "suda": special.scores[places],
        "dis_suda": None if special.dis is None else special.dis[places],
    }
    for name, figure in figures.items():
        if figure is not None:
            while name in columns:  # a column of the table may be called so
                name += "_"
            columns[name] = figure.tolist()
    return columns
