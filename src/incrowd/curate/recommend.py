"""Which method serves a table, from public facts alone: its columns, their domains and its size.

Each method is forecast for a table of the stated size with concentrated, independent columns, as
most tables of people are about (see :mod:`incrowd.measure.forecast`). No row is read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from math import comb
from typing import Any, Final

import numpy as np

from incrowd.arrays import Floats
from incrowd.errors import IncrowdError
from incrowd.findings import Finding, format_percent, format_points, make_finding
from incrowd.measure.forecast import Levels, TableForecast
from incrowd.methods.base import published_columns
from incrowd.methods.expect import aim_search, expect, forecast_table
from incrowd.methods.registry import make_method
from incrowd.methods.synthetic.expect import LOST_RELATIONS, SyntheticExpectation
from incrowd.methods.tables.expect import TablesExpectation
from incrowd.release.tables_part import WITHIN
from incrowd.spec.build import ColumnHierarchies
from incrowd.spec.file import SpecFile, SpecSource, load_spec

EPSILON, DELTA, K = 1.0, 1e-6, 5  # where the spec asks for none
_SUPPRESSION = 0.05  # of the rows, by k-anonymity
_MOST_TABULATED = 20  # columns that tables of every two are forecast for
_ASSUMPTION: Final = "concentrated"  # the values of most tables of people
_SERVES = 0.85  # of the rows: a release of groups with fewer is recommended to nobody
_GROUPS = 5  # for each column beyond two: fewer show hardly more than the most frequent values
_MOST_NAMED = 3
_MOST_PAIRS = 20  # of columns, whose distance is forecast
_VARIED_RELATIONS = 0.01  # noise of a pair, from which on models of a rare value varied in trials
_LARGE_ERROR = 0.05  # of a share: synthetic rows with more are of little use


@dataclass(frozen=True)
class MethodForecast:
    """What a method would keep of a table of some size.

    Attributes:
        method: "counts", "synthetic", "tables" (of every two columns, no rows) or "k-anonymity".
        columns: Number of published columns.
        informative: Number of columns of which something is published.
        rows: Share of rows that are published.
        groups: Number of published groups; None of synthetic rows, which have none.
        error: Bound of the error of the share of a single value: by suppressed rows, or, of
            synthetic rows and tables, by noise (95 %); of tables, of the worst pair of values.
        rare: Smallest share of a value that survives, roughly.
        two_way: Total variation distance of the table of two columns. Of synthetic rows and tables
            it is what noise makes of a measured pair; of groups it is what missing rows make of it,
            in the mean over pairs, and 1 of each pair with a column of which nothing is published.
            None where there is one column.
        private: Whether the release is differentially private.
        fine: Columns with more values than synthetic rows can tell apart at this size.
    """

    method: str
    columns: int
    informative: int
    rows: float
    groups: int | None
    error: float
    rare: float
    private: bool
    two_way: float | None = None
    fine: tuple[str, ...] = ()

    def __str__(self) -> str:
        groups = "" if self.groups is None else f", {self.groups:,} groups"
        which = "noise of a pair" if self.groups is None else "distance of a pair"
        pairs = "" if self.two_way is None else f", {which} {self.two_way:.2f}"
        return (
            f"{self.method}: {self.informative} of {self.columns} columns, "
            f"{format_percent(self.rows, 0)} of rows{groups}; shares of single values within "
            f"±{format_points(self.error)}{pairs}; values below {format_percent(self.rare)} may "
            "vanish"
        )


def _format_pairs(forecast: MethodForecast) -> str:
    """Format what becomes of pairs of columns, for a cell of a table."""
    if forecast.two_way is None:
        return "-"
    return f"{'noise' if forecast.groups is None else 'distance'} {forecast.two_way:.2f}"


@dataclass(frozen=True)
class Recommendation:
    """The method that serves a table of some size, and the forecast of each method.

    Attributes:
        method: The recommended method.
        reason: Why, in a sentence.
        size: Number of people that the forecasts are for.
        forecasts: What each method would keep.
    """

    method: str
    reason: str
    size: int
    forecasts: tuple[MethodForecast, ...]

    def tabulate(self) -> list[tuple[str, ...]]:
        """Return the forecasts as lines of a table, the first with the names of its columns."""
        heads = ("method", "columns", "rows", "groups", "single values", "pairs", "rare values",
                 "promise")  # fmt: skip
        return [heads, *(self._format_line(forecast) for forecast in self.forecasts)]

    def _format_line(self, forecast: MethodForecast) -> tuple[str, ...]:
        mark = " (recommended)" if forecast.method == self.method else ""
        return (
            f"{forecast.method}{mark}", f"{forecast.informative} of {forecast.columns}",
            format_percent(forecast.rows, 0),
            "-" if forecast.groups is None else f"{forecast.groups:,}",
            f"±{format_points(forecast.error)}",
            _format_pairs(forecast),
            f"may vanish below {format_percent(forecast.rare)}",
            "differential privacy" if forecast.private else "k-anonymity",
        )  # fmt: skip

    def find(self) -> Finding:
        """Return the recommendation as a finding of ``check``."""
        return make_finding(
            "METHOD_RECOMMENDED", method=self.method, reason=self.reason, size=self.size,
            listed=[str(forecast) for forecast in self.forecasts],
        )  # fmt: skip


def recommend_method(spec: SpecSource, *, size: int | None = None) -> Recommendation | None:
    """Recommend a method for a spec and a size; None where neither states a size.

    The table is not read, and the answer depends on no value of it.

    Args:
        spec: Path of a spec, its YAML text, a mapping, or a draft.
        size: Number of people; by default the one that the spec states.

    Returns:
        The method, the reason, and what each method would keep.

    Raises:
        IncrowdError: The spec publishes no column that any method could be forecast for.

    Examples:
        >>> import incrowd as ic
        >>> flag = {"role": "quasi", "hierarchy": {"flat": {"values": ["no", "yes"]}}}
        >>> ic.recommend_method({"columns": {"smoker": flag, "insured": flag}}, size=4000).method
        'counts'
    """
    file = load_spec(spec).with_all_confirmed()
    people = size if size is not None else file.spec.size
    if not isinstance(people, int):
        return None
    forecasts = tuple(_forecast_methods(file, people))
    if not forecasts:
        raise IncrowdError("No method fits these columns. Give each published column a hierarchy.")
    method, reason = _choose_method({forecast.method: forecast for forecast in forecasts})
    return Recommendation(method, reason, people, forecasts)


def _forecast_methods(file: SpecFile, size: int) -> Iterator[MethodForecast]:
    """Yield a forecast of each method that the columns allow; a further method is a line here."""
    for forecast in (_forecast_counts, _forecast_synthetic, _forecast_tables, _forecast_classes):
        try:
            yield forecast(file, size)
        except IncrowdError:
            continue


def _choose_method(by_name: dict[str, MethodForecast]) -> tuple[str, str]:
    """Return the method to recommend, and why, with what a curator may miss of its release."""
    counts, synthetic = by_name.get("counts"), by_name.get("synthetic")
    if counts is not None and _serves(counts):
        reason = "groups of all columns are large enough to be published"
        return "counts", f"{reason}; {_describe_missing(counts)}"
    if synthetic is not None and synthetic.error <= _LARGE_ERROR:
        is_lost = synthetic.two_way is not None and synthetic.two_way > LOST_RELATIONS
        if counts is not None and is_lost and _shows_pairs(counts, synthetic):
            return "counts", (
                "synthetic rows would lose relations between columns, which groups of all columns "
                f"show; but the groups are few and coarse, and {_describe_missing(counts)}"
            )
        return "synthetic", _explain_synthetic(counts, synthetic, is_lost=is_lost)
    if "k-anonymity" in by_name:
        return "k-anonymity", (
            "the table is too small for differential privacy at this budget (k-anonymity promises "
            "less)"
        )
    return next(iter(by_name)), "no other method fits these columns"


def _explain_synthetic(
    counts: MethodForecast | None, synthetic: MethodForecast, *, is_lost: bool
) -> str:
    """Return why synthetic rows are recommended, and what they may lose."""
    is_coarse = counts is not None and _keeps_columns(counts)
    lack = "are few and coarse" if is_coarse else "lose too many rows"
    reason = f"groups of all columns {lack}, and single values are measured well"
    if is_lost:
        reason += (
            "; but relations between columns, and models for a target, may be lost: name them "
            "(`target`, `tables`), publish fewer columns, or use k-anonymity, which keeps "
            "relations and promises less"
        )
    elif synthetic.two_way is not None and synthetic.two_way > _VARIED_RELATIONS:
        reason += (
            "; but relations with rare values vary from draw to draw and can vanish: name a column "
            "to be predicted (`target`), or use k-anonymity, which keeps relations and promises "
            "less"
        )
    if synthetic.fine:
        reason += (
            f"; but within ranges of {_list_names(synthetic.fine)} relations are lost (too many "
            "values to be measured one by one): round the values, or use k-anonymity, which keeps "
            "more of them and promises less"
        )
    return reason


def _describe_missing(counts: MethodForecast) -> str:
    """Describe the rows that groups lose."""
    missing = format_percent(max(1 - counts.rows, 0.01), 0)
    return f"about {missing} of the rows, those with rare values, are suppressed"


def _shows_pairs(counts: MethodForecast, synthetic: MethodForecast) -> bool:
    """Return whether groups show all columns, and pairs of them better than synthetic rows do."""
    if counts.two_way is None or synthetic.two_way is None:
        return False
    return counts.two_way < synthetic.two_way and _keeps_columns(counts)


def _list_names(names: tuple[str, ...]) -> str:
    """Return the first names of columns, and how many more there are."""
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return f"{', '.join(names[:_MOST_NAMED])}{more}"


def _serves(counts: MethodForecast) -> bool:
    """Return whether groups show every column, most rows, and more than a few combinations."""
    groups = 0 if counts.groups is None else counts.groups
    return _keeps_columns(counts) and groups >= _GROUPS * (counts.columns - 2)


def _keeps_columns(counts: MethodForecast) -> bool:
    """Return whether groups show every column, and most rows."""
    return counts.informative == counts.columns and counts.rows >= _SERVES


def _get_budget(file: SpecFile) -> tuple[float, float]:
    budget = None if file.spec.release is None else file.spec.release.budget
    if budget is None or not budget.epsilon or not budget.delta:
        return EPSILON, DELTA
    return budget.epsilon, budget.delta


def _set_release(file: SpecFile, method: str) -> SpecFile:
    epsilon, delta = _get_budget(file)
    return _replace_release(file, {"method": method, "epsilon": epsilon, "delta": delta})


def _replace_release(file: SpecFile, release: dict[str, Any]) -> SpecFile:
    """Return a spec with another release, and without what is for `method: safe` alone."""
    changes: dict[tuple[str | int, ...], Any] = {("release",): release}
    if release["method"] != "safe":
        changes |= {("columns", name, "rare"): None for name in file.spec.columns_with_shares}
    return file.preview_entries(changes).with_all_confirmed()


def _forecast_counts(file: SpecFile, size: int) -> MethodForecast:
    planned = make_method(_set_release(file, "safe")).planned_release
    limits = dict(planned.tables[0])
    return _forecast_groups("counts", planned.declared, limits, planned.likely, size, planned.crowd)


def _forecast_classes(file: SpecFile, size: int) -> MethodForecast:
    declared = ColumnHierarchies(published_columns(file.spec, "quasi"), file.folder)
    unchanged = len(published_columns(file.spec, "sensitive", "keep"))
    limits = {name: (0, declared.height(name) - 1) for name in declared.names}

    def publish_class(rows: Floats) -> Floats:
        return np.where(rows >= K, 1.0, 0.0)

    forecast = _forecast_groups("k-anonymity", declared, limits, publish_class, size, K, unchanged)
    return replace(
        forecast,
        columns=forecast.columns + unchanged,
        informative=forecast.informative + unchanged,
    )


def _forecast_groups(
    method: str,
    declared: ColumnHierarchies,
    limits: dict[str, tuple[int, int]],
    likely: Callable[[Floats], Floats],
    size: int,
    crowd: float,
    unchanged: int = 0,
) -> MethodForecast:
    """Return what a method that publishes groups of at least some rows would keep.

    ``unchanged`` columns are published beside the others, as they are.
    """
    outlook = forecast_table(declared, limits, likely, _ASSUMPTION)
    private = method == "counts"
    if private:
        levels = outlook.find_chosen_levels(size, aim_search(declared, limits, _ASSUMPTION, 1))
    else:
        levels = outlook.find_finest_levels(size, 1 - _SUPPRESSION)
    share = outlook.predict_share(levels, size)
    groups = max(round(share.groups), 0)
    return MethodForecast(
        method, len(limits), len(outlook.list_informative_columns(levels)), share.rows, groups,
        error=max(1 - share.rows, crowd / size),
        rare=min(crowd * max(groups, 2) / 2 / size, 1.0), private=private,
        two_way=_expect_pair_distance(outlook, levels, size, unchanged),
    )  # fmt: skip


def _expect_pair_distance(
    outlook: TableForecast, levels: Levels, size: int, unchanged: int
) -> float | None:
    """Return the mean distance of the tables of two columns, some of which are unchanged.

    Those are independent of the others in the forecast: missing rows leave them as they are.
    """
    pairs = comb(len(levels) + unchanged, 2)
    if not pairs:
        return None
    informative = outlook.list_informative_columns(levels)
    beside = _average(outlook, levels, size, [(name,) for name in informative]) * unchanged
    within = _average(outlook, levels, size, list(combinations(informative, 2)))
    lost = pairs - comb(len(informative) + unchanged, 2)
    return (lost + beside * len(informative) + within * comb(len(informative), 2)) / pairs


def _average(
    outlook: TableForecast, levels: Levels, size: int, parts: list[tuple[str, ...]]
) -> float:
    """Return the mean distance of some columns or pairs; of many, of some that lie evenly."""
    some = parts[:: -(-len(parts) // _MOST_PAIRS)] if parts else []
    distances = [outlook.predict_pair_distance(levels, size, names) for names in some]
    return float(np.mean(distances)) if distances else 0.0


def _forecast_tables(file: SpecFile, size: int) -> MethodForecast:
    """Return what tables of every two columns would keep; statistics, and no rows."""
    columns = len(published_columns(file.spec, "quasi", "sensitive"))
    if columns > _MOST_TABULATED:
        raise IncrowdError("Too many columns for tables of every two. Name the tables.")
    epsilon, delta = _get_budget(file)
    release = {"method": "tables", "epsilon": epsilon, "delta": delta, "all": 2}
    stated = _replace_release(file, release).preview_entries({("size",): size})
    expectation = expect(None, stated.with_all_confirmed())
    assert isinstance(expectation, TablesExpectation)
    error = min(max(table.error for table in expectation.errors) / size, 1.0)
    distances = [
        min(table.cells * table.error / (WITHIN * math.sqrt(2 * math.pi) * size), 1.0)
        for table in expectation.errors
    ]
    return MethodForecast(
        "tables", columns, columns, 1.0, None, error, error, private=True,
        two_way=float(np.mean(distances)),
    )  # fmt: skip


def _forecast_synthetic(file: SpecFile, size: int) -> MethodForecast:
    stated = _set_release(file, "synthetic").preview_entries({("size",): size})
    expectation = expect(None, stated.with_all_confirmed())
    assert isinstance(expectation, SyntheticExpectation)
    columns = len(published_columns(file.spec, "quasi", "sensitive"))
    error = min(expectation.error / size, 1.0)
    return MethodForecast(
        "synthetic", columns, columns, 1.0, None, error, error, private=True,
        two_way=expectation.pair_error, fine=tuple(column.name for column in expectation.fine),
    )  # fmt: skip
