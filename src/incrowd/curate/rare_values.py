"""Which values a release could lose, before anything is spent: from the spec and a size alone.

A release of groups publishes a row if its group is large enough. Of a value that a share s of the
people have, groups are s times as large as those of all people, so that its rows survive where
those of frequent values do. For each column the share is found below which a value loses half of
its rows, in a table of the stated size with concentrated, independent columns, at the levels that
a search would choose. Of synthetic rows, which lose no group, it is the share that is within the
noise of its count. No row is read, so the answer may be published and acted upon.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from incrowd.anonymize.target_score import CROWDS
from incrowd.findings import Finding, format_percent, make_finding
from incrowd.measure.forecast import Levels, TableForecast
from incrowd.methods.expect import (
    aim_search,
    expect,
    find_power,
    forecast_release,
)
from incrowd.methods.registry import make_method
from incrowd.methods.safe.method import Safe
from incrowd.methods.synthetic.expect import SyntheticExpectation
from incrowd.spec.file import SpecFile, SpecSource, load_spec
from incrowd.spec.release import SafeSpec, SyntheticSpec, TablesSpec

_HALF = 0.5  # of the rows of a value: with fewer it is at risk
_SHARES = [10 ** (-at / 20) for at in range(81)]  # from 1 to 1 in 10,000
_NAMED = 6


@dataclass(frozen=True)
class ColumnRisk:
    """The share below which the values of a column are at risk.

    Attributes:
        column: The column.
        share: Values that fewer people have lose half of their rows or, of synthetic rows, are
            within the noise; 1 where nothing is published of the column.
    """

    column: str
    share: float

    def __str__(self) -> str:
        if self.share >= 1:
            return f"{self.column} (nothing of it is likely to be published)"
        return f"{self.column} below {format_percent(self.share)}"


def find_values_at_risk(spec: SpecSource, *, size: int | None = None) -> tuple[ColumnRisk, ...]:
    """Find for each column which values a release of a table of some size could lose.

    The table is not read.

    Args:
        spec: Path of a spec with a release, its YAML text, a mapping, or a draft.
        size: Number of people; by default the one that the spec states.

    Returns:
        One risk for each column, the largest share first; none without a size, and none of tables
        of counts, which hold every value.

    Raises:
        IncrowdError: The release cannot be planned.
    """
    file = load_spec(spec).with_all_confirmed()
    people = size if size is not None else file.spec.size
    if not isinstance(people, int) or isinstance(file.spec.release, TablesSpec):
        return ()
    planned = make_method(file).planned_release
    if isinstance(file.spec.release, SyntheticSpec):
        stated = file.preview_entries({("size",): people}).with_all_confirmed()
        expectation = expect(None, stated)
        assert isinstance(expectation, SyntheticExpectation)
        share = min(expectation.error / people, 1.0)
        return tuple(ColumnRisk(name, share) for name in planned.declared.names)
    limits = dict(planned.tables[0] if planned.whole is None else planned.tables[-1])
    forecast = forecast_release(planned, limits, "concentrated")
    power = find_power(file.spec.release)
    levels = (
        forecast.find_finest_levels(people, _HALF)
        if power is None
        else forecast.find_chosen_levels(
            people, aim_search(planned.declared, limits, "concentrated", power)
        )
    )
    risks = [ColumnRisk(name, _find_share(forecast, levels, name, people)) for name in limits]
    return tuple(sorted(risks, key=lambda risk: -risk.share))


def _find_share(forecast: TableForecast, levels: Levels, name: str, people: int) -> float:
    """Return the smallest share of a value of which half of the rows survive; 1 if of none."""
    if name not in forecast.list_informative_columns(levels):
        return 1.0
    others = {column: level for column, level in levels.items() if column != name}
    return next(
        (
            share
            for share in reversed(_SHARES)
            if forecast.predict_share(others, max(share * people, 1)).rows >= _HALF
        ),
        1.0,
    )


def find_risk_of_values(spec: SpecSource) -> list[Finding]:
    """Return a finding that names the columns whose values are at risk at the stated size."""
    file = load_spec(spec)
    if file.spec.release is None:
        return []
    risks = find_values_at_risk(file)
    if not risks:
        return []
    findings = _find_target_at_risk(file)
    listed = [str(risk) for risk in risks[:_NAMED]]
    more = max(len(risks) - _NAMED, 0)
    return [make_finding("VALUES_AT_RISK", listed=listed, more=more), *findings]


def _find_target_at_risk(file: SpecFile) -> list[Finding]:
    """Return how many people a value of the target of a search needs, so as not to be lost."""
    release, size = file.spec.release, file.spec.size
    if not isinstance(release, SafeSpec) or release.target is None or not isinstance(size, int):
        return []
    method = make_method(file.with_all_confirmed())
    rows = math.ceil(CROWDS * method.planned_release.crowd)
    assert isinstance(method, Safe)
    error = method.find_count_error(release.target)
    unit = method.planned_release.counted_unit
    # How many rows people have together is not stated.
    part = f"{format_percent(min(rows / size, 1.0))} of {size:,}" if unit == "people" else None
    return [
        make_finding(
            "TARGET_VALUES_AT_RISK", release.target, rows=rows, unit=unit, part=part,
            error=None if error is None else f"{error:,} {unit}",
        )
    ]  # fmt: skip
