"""What to expect of a release before anything is spent: from the spec, its budget and a size.

Nothing is read from the table, unless the spec says that its size is public.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from incrowd.arrays import Floats
from incrowd.engine.source import open_spec_table
from incrowd.engine.table import Table
from incrowd.findings import Finding, Severity, make_finding
from incrowd.measure.forecast import (
    ASSUMPTIONS,
    OPEN_VALUES,
    Assumption,
    GroupShares,
    SearchAim,
    TableForecast,
    build_group_shares,
    build_mask_shares,
    compute_shares,
)
from incrowd.measure.loss import compute_normalized_costs
from incrowd.methods.base import PlannedRelease
from incrowd.methods.registry import make_method
from incrowd.privacy.presentation import round_crowd_size
from incrowd.spec.build import ColumnHierarchies
from incrowd.spec.file import SpecFile, SpecSource, load_spec
from incrowd.spec.model import PersonId
from incrowd.spec.release import ReleaseSpec, SafeSpec

SHARE = 0.9
_LIKELY_EMPTY = 0.05
_NAMED = 6
_MOST_PEOPLE = 1e12
_OUT_OF_REACH = 10_000_000  # people that hardly a table has
_SPREAD = {"concentrated": "concentrated", "skewed": "skewed"}


@dataclass(frozen=True)
class SizeForecast:
    """A forecast for a table of some size, under one assumption.

    Attributes:
        assumption: Concentrated values ("concentrated"), or skewed ones ("skewed").
        size: Number of people; None if it is not known.
        columns: Number of published columns.
        told: What is published of each informative column, at the levels that a search would
            choose, at the finest ones at which 90 % of rows are published, or at those of the spec.
        rows: Expected share of published rows; None without a size.
        empty: Probability of an empty release; None without a size.
        whole: Number of people needed for every column to be informative.
    """

    assumption: Assumption
    size: int | None
    columns: int
    told: dict[str, str]
    rows: float | None
    empty: float | None
    whole: float

    @property
    def is_doubtful(self) -> bool:
        """Whether the release may well be empty, or say nothing."""
        return self.empty is not None and (self.empty > _LIKELY_EMPTY or not self.told)


@dataclass(frozen=True)
class Expectation:
    """A forecast of a release under each assumption.

    Attributes:
        crowd: The group size that is published with probability 1/2 or more.
        each: One forecast per assumption.
        tables: Number of tables.
        fixed: Whether the spec fixes every level.
        unsliced: Whether the release could be made by slices, and is not.
        counted_unit: What the crowd is a number of: people, or rows.
    """

    crowd: float
    each: tuple[SizeForecast, ...]
    tables: int
    fixed: bool
    unsliced: bool = False
    counted_unit: Literal["people", "rows"] = "people"

    @property
    def crowd_size(self) -> int:
        """The crowd as a whole number, the same that a plan of the same setting says."""
        return round_crowd_size(self.crowd)

    @property
    def is_doubtful(self) -> bool:
        """Whether an empty or silent release is to be expected under some assumption."""
        return any(forecast.is_doubtful for forecast in self.each)

    def warnings(self) -> list[Finding]:
        """Return the findings of an empty or silent release."""
        return [finding for finding in self.findings() if finding.severity is Severity.WARNING]

    def summarize(self) -> str:
        """Return the shortest that can be said, in one sentence."""
        size, columns = self.each[0].size, self.each[0].columns
        if size is None:
            return (
                f"Forecast: groups need about {self.crowd_size:,} {self.counted_unit} "
                "to be published."
            )
        if max(forecast.empty or 0.0 for forecast in self.each) > 0.5:
            return (
                f"Forecast for {size:,} people: an empty release, because groups need about "
                f"{self.crowd_size:,} {self.counted_unit}."
            )
        informative = _format_range([len(forecast.told) for forecast in self.each], "d")
        rows = _format_range([100 * (forecast.rows or 0.0) for forecast in self.each], ".0f") + " %"
        if self.fixed:
            return f"Forecast for {size:,} people: {rows} of rows, at the levels of the spec."
        part = "" if self._slice_count is None else " of the widest slice"
        return (
            f"Forecast for {size:,} people: {rows} of rows can be published with values of "
            f"{informative} of {columns} columns{part}, or fewer rows in more detail."
        )

    def findings(self) -> list[Finding]:
        """Return the table size that is needed or, where a size is known, a forecast of each."""
        if any(forecast.size is not None for forecast in self.each):
            return [self._find_forecast(forecast) for forecast in self.each]
        needed_size = self._find_needed_size()
        crowd = make_finding("CROWD_SIZE", crowd=self.crowd_size, unit=self.counted_unit)
        return [needed_size, crowd]

    @property
    def _slice_count(self) -> int | None:
        return self.tables if self.tables > 1 else None

    def _find_needed_size(self) -> Finding:
        concentrated, skewed = (_round_people(forecast.whole) for forecast in self.each)
        if concentrated is None:
            return make_finding("NO_TABLE_LARGE_ENOUGH")
        if concentrated > _OUT_OF_REACH:
            return make_finding(
                "TABLE_SIZE_OUT_OF_REACH", concentrated=concentrated, fixed=int(self.fixed),
                open=int(not self.fixed), slices=self._slice_count, unsliced=int(self.unsliced),
            )  # fmt: skip
        beyond = int(skewed is None)
        if self.fixed:
            return make_finding(
                "TABLE_SIZE_AT_LEVELS", concentrated=concentrated, skewed=skewed, beyond=beyond,
                slices=self._slice_count,
            )  # fmt: skip
        return make_finding(
            "TABLE_SIZE_NEEDED",
            concentrated=concentrated,
            skewed=skewed,
            beyond=beyond,
            slices=self._slice_count,
        )

    def _find_forecast(self, forecast: SizeForecast) -> Finding:
        assert forecast.size is not None
        assert forecast.rows is not None
        assert forecast.empty is not None
        size, spread, slices = forecast.size, _SPREAD[forecast.assumption], self._slice_count
        needed_size = _round_people(forecast.whole)
        if forecast.empty > 0.5:
            return make_finding(
                "RELEASE_LIKELY_EMPTY", size=size, spread=spread, slices=slices,
                empty=forecast.empty, crowd=self.crowd_size, unit=self.counted_unit,
            )  # fmt: skip
        if forecast.empty > _LIKELY_EMPTY:
            return make_finding(
                "RELEASE_MAY_BE_EMPTY", size=size, spread=spread, slices=slices, rows=forecast.rows,
                empty=forecast.empty, needed=needed_size,
            )  # fmt: skip
        if not forecast.told:
            return make_finding(
                "RELEASE_UNINFORMATIVE", size=size, spread=spread, slices=slices,
                rows=forecast.rows, needed=needed_size, unsliced=int(self.unsliced),
            )  # fmt: skip
        if self.fixed:
            return make_finding(
                "RELEASE_FORECAST_AT_LEVELS", size=size, spread=spread, slices=slices,
                rows=forecast.rows, needed=needed_size if forecast.rows < SHARE else None,
            )  # fmt: skip
        names = [f"{name} → {words}" for name, words in forecast.told.items()]
        lacks = len(forecast.told) < forecast.columns and needed_size is not None
        return make_finding(
            "RELEASE_FORECAST", size=size, spread=spread, slices=slices, rows=forecast.rows,
            informative=len(forecast.told), columns=forecast.columns, listed=names[:_NAMED],
            more=max(len(names) - _NAMED, 0),
            needed=needed_size if lacks else None, unsliced=int(lacks and self.unsliced),
        )  # fmt: skip


def expect(table: Any, spec: SpecSource) -> Expectation:
    """Forecast what a release will publish, from its spec and a table size.

    The forecast is computed for two tables that are not yours: one with concentrated values, as
    most tables of people have them, and a skewed one. The table is counted only if the spec
    declares its size as public.

    Args:
        table: The table, in any form that :func:`incrowd.publish` takes; None for the table that
            the spec names.
        spec: Path of a spec, its YAML text, a mapping, or a draft.

    Returns:
        The crowd size and one forecast per assumption.

    Raises:
        IncrowdError: The spec is invalid or asks for no release.

    Examples:
        >>> import incrowd as ic
        >>> sex = {"role": "quasi", "hierarchy": {"flat": {"values": ["female", "male"]}}}
        >>> asked = {"method": "safe", "epsilon": 1.0, "delta": 1e-6}
        >>> spec = {"size": 5000, "columns": {"sex": sex}, "release": asked}
        >>> [forecast.assumption for forecast in ic.expect(None, spec).each]
        ['concentrated', 'skewed']
    """
    file = load_spec(spec)
    method = make_method(file.with_all_confirmed())
    size = resolve_size(file, table)
    if file.spec.release is not None and file.spec.release.method == "synthetic":
        from incrowd.methods.synthetic import expect as synthetic

        return synthetic.expect_synthetic(method, size)
    if file.spec.release is not None and file.spec.release.method == "tables":
        from incrowd.methods.tables import expect as tables

        return tables.expect_tables(method, size)
    planned = method.planned_release
    widest = max(planned.tables, key=lambda limits: _sum_heights(planned.declared, limits))
    return Expectation(
        crowd=planned.crowd,
        each=tuple(
            _make_forecast(planned, widest, size, assumption, find_power(file.spec.release))
            for assumption in ASSUMPTIONS
        ),
        # Of households and people, the table of people has the columns of both.
        tables=len(planned.tables) if file.spec.household is None else 1,
        fixed=all(low == high for low, high in widest.values()),
        unsliced=isinstance(file.spec.release, SafeSpec)
        and not file.spec.release.slices
        and file.spec.household is None,
        counted_unit=planned.counted_unit,
    )


def expect_with_draw(draw: str, table: Any, file: SpecFile) -> Expectation:
    """Say what to expect of a safe release by this draw, whichever its spec asks for."""
    return expect(table, file.preview_entries({("release", "draw"): draw}))


def _make_forecast(
    planned: PlannedRelease,
    limits: Mapping[str, tuple[int, int]],
    size: int | None,
    assumption: Assumption,
    power: int | None,
) -> SizeForecast:
    declared = planned.declared
    outlook = forecast_release(planned, limits, assumption)
    if size is None:
        levels = outlook.find_informative_levels()
    elif power is None:
        levels = outlook.find_finest_levels(size, SHARE)
    else:
        aim = aim_search(declared, limits, assumption, power)
        levels = outlook.find_chosen_levels(size, aim)
    share = None if size is None else outlook.predict_share(levels, size)
    return SizeForecast(
        assumption=assumption,
        size=size,
        columns=len(limits),
        told={
            name: declared.describe_level(name, levels[name])
            for name in outlook.list_informative_columns(levels)
        },
        rows=None if share is None else share.rows,
        empty=None if share is None else share.empty,
        whole=outlook.find_table_size(outlook.find_informative_levels(), SHARE),
    )


def find_power(release: ReleaseSpec | None) -> int | None:
    """Return the power of detail that a search of levels maximizes; None where none is searched."""
    if not isinstance(release, SafeSpec) or release.scheme == "fixed":
        return None
    return release.detail_power


def aim_search(
    declared: ColumnHierarchies,
    limits: Mapping[str, tuple[int, int]],
    assumption: Assumption,
    power: int,
) -> SearchAim:
    """Return what a search makes large, of a table under an assumption."""
    detail = {
        name: {
            level: _expect_detail(declared, name, level, assumption)
            for level in range(low, high + 1)
        }
        for name, (low, high) in limits.items()
    }
    return SearchAim(power, detail, {name: declared.columns[name].weight for name in limits})


def _expect_detail(
    declared: ColumnHierarchies, name: str, level: int, assumption: Assumption
) -> float:
    """Return the mean detail that values of a column keep at a level."""
    if declared.is_open(name):
        hierarchy = declared.columns[name].hierarchy
        if hierarchy is not None and hierarchy.mask is not None:
            letters, length = len(set(hierarchy.mask.alphabet)), hierarchy.mask.length
            return 1 - float(letters**level - 1) / float(letters**length - 1)
        return float(level == 0)
    listed = declared.get_hierarchy(name, tuple)
    values = len(listed.values)
    costs = compute_normalized_costs(listed)[level][listed.groups[level][:values]]
    return float(compute_shares(values, assumption) @ (1 - costs))


def forecast_release(
    planned: PlannedRelease, limits: Mapping[str, tuple[int, int]], assumption: Assumption
) -> TableForecast:
    """Return what a planned release can be expected to publish of some columns."""
    if planned.whole is None:
        return forecast_table(planned.declared, limits, planned.likely, assumption)
    from incrowd.measure.household_forecast import HouseholdForecast  # which few releases need

    columns = _expect_columns(planned.declared, limits, assumption)
    return HouseholdForecast(
        columns, planned.likely, planned.whole.own_columns, planned.whole.people
    )


def forecast_table(
    declared: ColumnHierarchies,
    limits: Mapping[str, tuple[int, int]],
    likely: Callable[[Floats], Floats],
    assumption: Assumption,
) -> TableForecast:
    """Return what tables with some columns can be expected to publish, under an assumption."""
    return TableForecast(_expect_columns(declared, limits, assumption), likely)


def _expect_columns(
    declared: ColumnHierarchies, limits: Mapping[str, tuple[int, int]], assumption: Assumption
) -> dict[str, dict[int, GroupShares]]:
    """Return the groups of each level that columns may take, under an assumption."""
    return {
        name: {
            level: _expect_groups(declared, name, level, assumption)
            for level in range(low, high + 1)
        }
        for name, (low, high) in limits.items()
    }


def _expect_groups(
    declared: ColumnHierarchies, name: str, level: int, assumption: Assumption
) -> GroupShares:
    if not declared.is_open(name):
        return build_group_shares(declared.get_hierarchy(name, tuple), level, assumption)
    hierarchy = declared.columns[name].hierarchy
    if hierarchy is not None and hierarchy.mask is not None:
        return build_mask_shares(hierarchy.mask, level, assumption)
    return GroupShares.from_shares(compute_shares(1 if level else OPEN_VALUES, assumption))


def _sum_heights(declared: ColumnHierarchies, limits: Mapping[str, tuple[int, int]]) -> int:
    return sum(declared.height(name) for name in limits)


def resolve_size(file: SpecFile, table: Any = None) -> int | None:
    """Return the size that the spec states or, where it says 'public', count the table.

    What is counted serves expectations alone. It never goes back into the spec: there it would
    decide how the budget is split, which is published, and a neighbor at a threshold of the split
    would be told apart with certainty.
    """
    if file.spec.size != "public":
        return file.spec.size
    return max(count_people(file, open_spec_table(file, table)), 1)


def count_people(file: SpecFile, table: Table) -> int:
    """Count the people in a table, by the unit of the spec."""
    if not isinstance(file.spec.unit, PersonId):
        return table.rows()
    return table.count_people(file.spec.unit.id)


def _format_range(values: list[int] | list[float], form: str) -> str:
    """Format what holds under the assumptions, from the least to the most."""
    return " to ".join(dict.fromkeys(format(value, form) for value in (min(values), max(values))))


def _round_people(number: float) -> int | None:
    """Round a number of people up, to two digits; None where there are not so many people."""
    if number > _MOST_PEOPLE:
        return None
    digits = max(len(str(int(number))) - 2, 0)
    return int(math.ceil(number / 10**digits) * 10**digits)
