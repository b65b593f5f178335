"""Small public tables and figures of other tools: a survey of ten people, Adult's group sizes."""

from __future__ import annotations

import numpy as np

from incrowd.arrays import Codes
from incrowd.codes.frequency import Frequencies, merge_tuples
from incrowd.measure.uniqueness import SizeHistogram

# "Statistical Disclosure Control: A Practice Guide" (IHSN), table 4.1: residence, gender,
# education, labor status, weight; tables 4.3 and 4.5 have the same people.
GUIDE_COLUMNS = ("residence", "gender", "education", "labor")
GUIDE = (
    ("urban", "female", "secondary incomplete", "employed", 180),
    ("urban", "female", "secondary incomplete", "employed", 180),
    ("urban", "female", "primary incomplete", "non-LF", 215),
    ("urban", "male", "secondary complete", "employed", 76),
    ("rural", "female", "secondary complete", "unemployed", 186),
    ("urban", "male", "secondary complete", "employed", 76),
    ("urban", "female", "primary complete", "non-LF", 180),
    ("urban", "male", "post-secondary", "unemployed", 215),
    ("urban", "female", "secondary incomplete", "non-LF", 186),
    ("urban", "female", "secondary incomplete", "non-LF", 76),
)  # fmt: skip

# Groups of Adult (30,162 rows, nine columns of ARX's copy) by their size.
ADULT_GROUPS = {
    1: 15512, 2: 2098, 3: 754, 4: 375, 5: 189, 6: 155, 7: 97, 8: 73, 9: 39, 10: 37, 11: 29, 12: 18,
    13: 23, 14: 14, 15: 15, 16: 9, 17: 11, 18: 10, 19: 10, 20: 5, 21: 3, 22: 4, 23: 3, 24: 2, 25: 1,
    26: 3, 27: 5, 29: 1, 30: 2, 32: 1, 34: 1, 35: 1, 36: 1, 45: 1,
}  # fmt: skip


def adult_histogram() -> SizeHistogram:
    """Return the group sizes of Adult."""
    return SizeHistogram(np.array([*ADULT_GROUPS]), np.array([*ADULT_GROUPS.values()]))


def guide_table(households: list[int] | None = None) -> dict[str, list[object]]:
    """Return the ten people as columns."""
    columns = zip(*GUIDE, strict=True)
    table = {
        name: [*column] for name, column in zip((*GUIDE_COLUMNS, "weight"), columns, strict=True)
    }
    return table if households is None else {**table, "household": [*households]}


def count_rows(rows: list[tuple[object, ...]]) -> tuple[Codes, Frequencies]:
    """Return the codes of each row, and the distinct tuples with counts."""
    codes = []
    for column in zip(*rows, strict=True):
        values = sorted(set(column), key=str)
        codes.append([values.index(value) for value in column])
    array = np.array(codes, dtype=np.int32).T
    return array, merge_tuples(array, np.ones(len(rows), dtype=np.int64))


def guide_rows() -> tuple[Codes, Frequencies]:
    """Return the ten people without their weights, counted."""
    return count_rows([row[:4] for row in GUIDE])


def spread_by_row(codes: Codes, frequencies: Frequencies, figures: object) -> list[float]:
    """Return the figure of each row, from those of the tuples."""
    array = np.asarray(figures, dtype=np.float64)
    return [float(array[(frequencies.codes == row).all(axis=1)][0]) for row in codes]
