"""Check that a model follows from measured tables, and rows from the model.

The model is fitted again, by the code that fitted it. That shows no more than it says: what is
published beside the measured tables was computed from them, so that nothing else of the input is
in it. The guarantee itself is checked without that code, in :mod:`incrowd.release`.

**Tolerance.** The counts a that the release states for a table, and b of the model fitted here,
differ by at most ``TOLERANCE`` in sum (a - b)^2 / (a + 1); see
:mod:`incrowd.anonymize.synthetic.refit`. Counts are written with three digits, which adds less than
0.01 for tables of a hundred thousand cells.

**Rows.** For every clique of the model's tree, and every column, X^2 = sum (n - e)^2 / e, with n
the rows in a cell and e what the model expects, cells of small e taken together. Rows are drawn
with less variance than independent draws (:mod:`incrowd.anonymize.synthetic.rows`), for which X^2
is chi-square distributed: a release is accepted if every X^2 is below the quantile 1 - ``CHANCE`` /
(number of tests). Columns whose values were drawn again to obey an order are tested by the groups
within which they were (:mod:`incrowd.methods.synthetic.orders`). Claim: an honest release is
rejected with probability at most about ``CHANCE``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np

from incrowd.anonymize.synthetic.domain import RulesError
from incrowd.anonymize.synthetic.measurement import Measurement, centered_axes
from incrowd.anonymize.synthetic.model import Model
from incrowd.anonymize.synthetic.refit import TOLERANCE, fit_measurements
from incrowd.anonymize.synthetic.released import Key
from incrowd.arrays import Codes, Counts, Floats
from incrowd.errors import IncrowdError
from incrowd.findings import Finding, make_finding
from incrowd.methods.synthetic.columns import SyntheticColumns
from incrowd.release.certificate import Certificate
from incrowd.release.synthetic_part import MeasuredNumbers
from incrowd.release.synthetic_verify import count_rows, open_rows, read_columns, read_tables
from incrowd.spec.row_rules import Rule

CHANCE = 1e-6
_LEAST_EXPECTED = 5.0


def check_model(folder: Path, certificate: Certificate) -> list[Finding]:
    """Return what contradicts that rows come from a model of the measured tables.

    ``certificate`` is that of a release that holds otherwise.
    """
    assert certificate.synthetic is not None
    try:
        columns = read_synthetic_columns(folder, certificate)
        tables = read_tables(folder, certificate, columns.value_columns)
        model = refit(columns, tables)
    except (RulesError, IncrowdError, ValueError, LookupError, ArithmeticError) as error:
        return [make_finding("MODEL_NOT_FITTED", problem=str(error))]
    for entry, table in zip(certificate.synthetic.measured, tables, strict=True):
        distance = _distance(table.model, expected_counts(columns, model, table))
        if not distance <= TOLERANCE:
            return [
                make_finding(
                    "MODEL_DIFFERS", file=entry.file, distance=distance, tolerance=TOLERANCE
                )
            ]
    rows = count_rows(open_rows(folder, certificate), certificate.synthetic, columns.value_columns)
    return list(_check_rows(columns, model, rows.codes, rows.counts))


def read_synthetic_columns(folder: Path, certificate: Certificate) -> SyntheticColumns:
    """Return the columns and rules that a certificate declares."""
    assert certificate.synthetic is not None
    synthetic_columns = read_columns(folder, certificate)
    return SyntheticColumns(
        {name: column.hierarchy for name, column in synthetic_columns.items()},
        {name: column.leaves for name, column in synthetic_columns.items()},
        {
            name: column.other
            for name, column in synthetic_columns.items()
            if column.other is not None
        },
        tuple(Rule.model_validate(rule) for rule in certificate.synthetic.rules),
        {
            name: column.written
            for name, column in synthetic_columns.items()
            if column.written is not None
        },
    )


def refit(columns: SyntheticColumns, tables: Sequence[MeasuredNumbers]) -> Model:
    """Return the model of measured tables."""
    measurements: list[Measurement] = []
    aside: set[Key] = set()
    for table in tables:
        places, levels = locate_table(columns, table)
        if not table.held:
            aside.add((places, levels))
        orders = [columns.order_groups(*pair) for pair in zip(places, levels, strict=True)]
        for numbers, variance in zip(table.numbers, table.variances, strict=True):
            for axis, order in enumerate(orders):
                numbers = np.take(numbers, np.argsort(order), axis=axis)
            measurements.append(
                Measurement(places, levels, numbers, variance, Fraction(1, variance))
            )
    return fit_measurements(columns.domain, measurements, aside)


def locate_table(
    columns: SyntheticColumns, table: MeasuredNumbers
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the places of a table's columns in the model, and its levels there.

    Raises:
        ValueError: if the model has no such level, or centers other axes.

    """
    if table.centered != centered_axes(table.shape):
        raise ValueError(f"the table of {', '.join(table.columns)} is centered otherwise")
    places = columns.list_places(table.columns)
    model_columns = [columns.domain.columns[place] for place in places]
    levels = tuple(
        part.level_numbers.index(number)
        for part, number in zip(model_columns, table.levels, strict=True)
    )
    return places, levels


def expected_counts(columns: SyntheticColumns, model: Model, table: MeasuredNumbers) -> Floats:
    """Return the counts that a model expects of a table, along its declared groups."""
    places, levels = locate_table(columns, table)
    if not places:
        return np.array(model.rows)
    counts = model.table(places, levels) * model.rows
    for axis, pair in enumerate(zip(places, levels, strict=True)):
        counts = np.take(counts, columns.order_groups(*pair), axis=axis)
    return counts


def _distance(stated: Floats, expected: Floats) -> float:
    """Return how far apart two tables of counts are; see the module's text."""
    if not np.isfinite(stated).all() or (stated < 0).any():
        return float("inf")
    return float(((stated - expected) ** 2 / (stated + 1)).sum())


def _check_rows(
    columns: SyntheticColumns, model: Model, codes: Codes, counts: Counts
) -> Iterator[Finding]:
    """Return a finding if the number of rows, or a table of them, is not the model's."""
    from scipy.stats import chi2

    total = int(counts.sum())
    if total != max(round(model.rows), 1):
        yield make_finding("ROWS_NOT_OF_MODEL", columns="all rows", chance=CHANCE)
        return
    positions = columns.domain.encode(codes)
    tree, levels, loose = model.structure.tree, model.structure.levels, columns.order_levels
    tested = [
        (clique, tuple(max(levels[x], loose.get(x, 0)) for x in clique)) for clique in tree.cliques
    ]
    tested += [((column,), (loose.get(column, 0),)) for column in range(len(columns.names))]
    for places, of in tested:
        groups = [
            columns.domain.columns[place].groups[level][positions[:, place]]
            for place, level in zip(places, of, strict=True)
        ]
        expected = model.table(places, of)
        cells = np.ravel_multi_index(groups, expected.shape)
        seen = np.bincount(cells, counts, minlength=expected.size).astype(np.float64)
        statistic, freedom = _chi_square(seen, expected.ravel() * total)
        if statistic > chi2.isf(CHANCE / len(tested), max(freedom, 1)):
            names = ", ".join(columns.names[place] for place in places)
            yield make_finding("ROWS_NOT_OF_MODEL", columns=names, chance=CHANCE)
            return


def _chi_square(seen: Floats, expected: Floats) -> tuple[float, int]:
    """Return X^2 and its degrees of freedom; cells that expect little are taken together."""
    if (seen[expected <= 0] > 0).any():
        return float("inf"), 1
    large = expected >= _LEAST_EXPECTED
    rest = seen[~large].sum(), expected[~large].sum()
    statistic = float(((seen[large] - expected[large]) ** 2 / expected[large]).sum())
    if rest[1] > 0:
        statistic += float((rest[0] - rest[1]) ** 2 / rest[1])
    return statistic, int(large.sum()) + (1 if rest[1] > 0 else 0) - 1
