"""Running totals of a table that was released period by period, with the error of each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from incrowd.codes.values import make_sort_key
from incrowd.engine.count import read_labels
from incrowd.engine.released import open_released
from incrowd.engine.source import local_engine
from incrowd.engine.table import Table
from incrowd.errors import IncrowdError, Refusal
from incrowd.privacy.amplification import Guarantee
from incrowd.privacy.draw_parameters import build_noise_spread, make_series_event
from incrowd.privacy.series import TotalError, compute_total_error
from incrowd.release.certificate import Certificate
from incrowd.release.formulas import unescape_formula
from incrowd.release.release import Release
from incrowd.release.verify import is_mark, read_certificate
from incrowd.verification import verify

THROUGH, TOTAL, ERROR, WITHIN = "through", "total", "standard_error", "within_95"
_NORMAL_95 = 1.96


@dataclass(frozen=True)
class PeriodTotals:
    """The running totals up to one period.

    Attributes:
        period: The last period.
        groups: Number of groups that every release up to it shows.
        error: Standard error of each total.
        within: 95 % of totals are off by no more.
        bound: No total is off by more.
    """

    period: str
    groups: int
    error: float
    within: int
    bound: int


@dataclass(frozen=True, eq=False)
class RunningTotals:
    """Running totals of releases of one table, period by period.

    Attributes:
        table: A row for each group and period: the columns, ``through``, ``total``,
            ``standard_error`` and ``within_95``.
        periods: What holds for the totals up to each period.
        incomplete: Number of groups that some releases show and others suppress. They have totals
            up to the first release that suppresses them.
        guarantee: The (epsilon, delta) of all releases together, for a person within one period.
    """

    table: Table
    periods: tuple[PeriodTotals, ...]
    incomplete: int
    guarantee: Guarantee

    @property
    def data(self) -> Any:
        """The rows as a data frame."""
        return self.table.to_frame()

    def write(self, path: Path | str) -> None:
        """Write the rows as CSV, Parquet or Arrow, by the ending of the name."""
        self.table.write(Path(path))


def cumulate(releases: Sequence[Release | Path | str]) -> RunningTotals:
    """Add up releases of one table, period by period, with the error of each running total.

    The releases are those of a series (``series: {of: …}``), or others of noisy counts with a
    ``part`` each. They are verified first. Totals follow from them, so no budget is spent. A person
    who is present in several periods counts in each of them.

    Args:
        releases: Releases or their folders, in any order.

    Returns:
        The totals, as a table, and their errors.

    Raises:
        IncrowdError: The releases are not those of one table, or one of them does not hold.

    Examples:
        >>> import tempfile
        >>> from pathlib import Path
        >>> import polars as pl
        >>> import incrowd as ic
        >>> home = Path(tempfile.mkdtemp())
        >>> ledger = ic.Ledger(home / "visits.ledger")
        >>> ledger.set_budget(epsilon=1.0, delta=1e-6)
        >>> flat = {"flat": {"values": ["eye", "ear"]}}
        >>> spec = {
        ...     "unit": {"id": "who", "period": {"column": "year", "every": "value"}},
        ...     "columns": {"who": {"role": "identifier"}, "year": {"role": "drop"},
        ...                 "ward": {"role": "quasi", "hierarchy": flat}},
        ...     "release": {"method": "safe", "epsilon": 1.0, "delta": 1e-6, "levels": {"ward": 0},
        ...                 "series": {"of": 2}},
        ... }
        >>> for year in ("2025", "2026"):
        ...     people = pl.DataFrame({"who": range(2000), "ward": ["eye", "ear"] * 1000})
        ...     people = people.with_columns(year=pl.lit(year))
        ...     part = {"part": {"column": "year", "value": year}}
        ...     _ = ic.publish(people, {**spec, **part}, output=home / year, ledger=ledger)
        >>> totals = ic.cumulate([home / "2025", home / "2026"])
        >>> [(period.period, period.groups) for period in totals.periods]
        [('2025', 2), ('2026', 2)]
    """
    folders = [part.folder if isinstance(part, Release) else Path(part) for part in releases]
    certificates = [_read_release(folder) for folder in folders]
    _refuse_strangers(folders, certificates)
    is_series = "series" in certificates[0].parameters
    order = sorted(range(len(folders)), key=lambda at: _find_place(certificates[at]))
    ordered = [certificates[at] for at in order]
    names = tuple(ordered[0].table.scheme)
    counts = [_read_counts(folders[at], certificates[at], names) for at in order]
    columns: dict[str, list[Any]] = {name: [] for name in (*names, THROUGH, TOTAL, ERROR, WITHIN)}
    cells, periods = set(counts[0]), []
    totals = dict.fromkeys(cells, 0)
    for number, (certificate, part) in enumerate(zip(ordered, counts, strict=True), 1):
        cells &= set(part)
        totals = {cell: totals[cell] + part[cell] for cell in cells}
        error = _compute_error(ordered[:number], is_series=is_series)
        within = math.ceil(_NORMAL_95 * error.spread)
        period = certificate.guarantee.part or ""
        periods.append(PeriodTotals(period, len(cells), error.spread, within, error.bound))
        for cell in sorted(cells, key=lambda labels: tuple(map(make_sort_key, labels))):
            values = (*cell, period, totals[cell], round(error.spread, 2), within)
            for name, value in zip(columns, values, strict=True):
                columns[name].append(value)
    everywhere = {cell for part in counts for cell in part}
    return RunningTotals(
        table=local_engine().from_columns(columns),
        periods=tuple(periods),
        incomplete=len(everywhere) - len(cells),
        guarantee=Guarantee(
            max(certificate.guarantee.epsilon or 0.0 for certificate in ordered),
            max(certificate.guarantee.delta or 0.0 for certificate in ordered),
        ),
    )


def _read_release(folder: Path) -> Certificate:
    """Return the certificate of a release of noisy counts of one period, which holds."""
    problems = [finding for finding in verify(folder) if not is_mark(finding)]
    if problems:
        raise Refusal(f"Release '{folder.name}': it does not hold. {problems[0]}")
    certificate = read_certificate(folder)
    fits = certificate.has_noisy_counts and len(certificate.tables) == 1
    if not fits or certificate.guarantee.part is None:
        raise IncrowdError(
            f"Release '{folder.name}': it is no table of noisy counts of one period. Publish it "
            "with `part` and `draw: counts`."
        )
    reserved = {THROUGH, TOTAL, ERROR, WITHIN} & set(certificate.table.scheme)
    if reserved:
        raise IncrowdError(
            f"Column '{min(reserved)}': running totals have a column of this name. Rename yours."
        )
    return certificate


def _refuse_strangers(folders: Sequence[Path], certificates: Sequence[Certificate]) -> None:
    """Refuse releases that are not those of one table, or two of one period."""
    if len(folders) < 2:
        raise IncrowdError("Running totals need two releases or more. Name their folders.")
    first = certificates[0]
    for folder, certificate in zip(folders[1:], certificates[1:], strict=True):
        if certificate.parameters.get("series") != first.parameters.get("series"):
            raise IncrowdError(
                f"Release '{folder.name}': it is not of the series of '{folders[0].name}', so "
                "that the error of a sum is not known. Name releases of one series."
            )
        if (certificate.guarantee.period, _list_levels(certificate)) != (
            first.guarantee.period, _list_levels(first)
        ):  # fmt: skip
            raise IncrowdError(
                f"Release '{folder.name}': its columns, levels or kind of period are not those of "
                f"'{folders[0].name}'. Name releases of one table."
            )
        if certificate.rows_per_group != first.rows_per_group:
            raise IncrowdError(
                f"Release '{folder.name}': it counts {_describe_counting(certificate)}, but "
                f"'{folders[0].name}' counts {_describe_counting(first)}. Name releases that count "
                "the same."
            )
    periods = [certificate.guarantee.part for certificate in certificates]
    for folder, period in zip(folders, periods, strict=True):
        if periods.count(period) > 1:
            raise IncrowdError(
                f"Release '{folder.name}': the period {period} is there twice. Name it once."
            )


def _describe_counting(certificate: Certificate) -> str:
    rows = certificate.rows_per_group
    return certificate.counted_unit if rows == 1 else f"up to {rows} rows of a person in a group"


def _list_levels(certificate: Certificate) -> list[tuple[str, int | None, str | None]]:
    """Return the columns, with their levels and the hashes of their labels."""
    return [(name, x.level, x.sha256) for name, x in certificate.table.scheme.items()]


def _find_place(certificate: Certificate) -> tuple[float, str]:
    """Return where a release stands: by its number in the series, or by its period."""
    number = float(certificate.parameters.get("series_number", 0.0))
    return number, certificate.guarantee.part or ""


def _read_counts(
    folder: Path, certificate: Certificate, names: tuple[str, ...]
) -> dict[tuple[object, ...], int]:
    """Return the noisy count of each group, by its labels."""
    release = certificate.table.release
    table = open_released(folder / release.file)
    if release.formulas:
        table = table.respell_texts(unescape_formula)
    if not table.rows():
        return {}
    published = read_labels(table, names, weighted=release.form == "counted")
    counts: dict[tuple[object, ...], int] = {}
    pairs = zip(
        published.frequencies.codes.tolist(), published.frequencies.counts.tolist(), strict=True
    )
    for codes, count in pairs:
        cell = tuple(labels[code] for labels, code in zip(published.labels, codes, strict=True))
        counts[cell] = count
    return counts


def _compute_error(certificates: Sequence[Certificate], *, is_series: bool) -> TotalError:
    """Return the error of the sum of some releases."""
    if is_series:
        event = make_series_event(certificates[0].parameters)
        numbers = [int(float(part.parameters["series_number"])) for part in certificates]
        return compute_total_error(event, numbers)
    spreads = [build_noise_spread(part.parameters) for part in certificates]
    variance = sum(spread.variance for spread in spreads)
    return TotalError(math.sqrt(variance), sum(spread.reach for spread in spreads))
