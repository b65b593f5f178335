"""Distinction and separation of sets of columns: the paper's table, and pairs by brute force."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from support.survey import count_rows

from incrowd.measure.column_sets import count_column_sets, measure_column_sets

# Motwani and Xu 2007, table 1, which ARX shows in its example of quasi-identifiers
PEOPLE: list[tuple[object, ...]] = [
    (20, "female", "CA"), (30, "female", "CA"), (40, "female", "TX"), (20, "male", "NY"),
    (40, "male", "CA"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("columns", "distinction", "separation"),
    [
        (("sex",), 0.4, 0.6), (("state",), 0.6, 0.7), (("age",), 0.6, 0.8),
        (("sex", "state"), 0.8, 0.9),
    ],
)  # fmt: skip
def test_figures_of_the_paper(
    columns: tuple[str, ...], distinction: float, separation: float
) -> None:
    sets = measure_column_sets(("age", "sex", "state"), count_rows(PEOPLE)[1], most=3, k=2)
    risk = next(risk for risk in sets if risk.columns == columns)
    assert (risk.distinction, risk.separation) == pytest.approx((distinction, separation))


def test_sets_against_brute_force() -> None:
    rng = np.random.default_rng(8)
    rows = [tuple(row) for row in rng.integers(0, [2, 3, 4], (30, 3)).tolist()]
    sets = measure_column_sets(("a", "b", "c"), count_rows(rows)[1], most=3, k=4)
    assert len(sets) == count_column_sets(3, 3) == 7
    for risk in sets:
        places = ["abc".index(name) for name in risk.columns]
        looks = [tuple(row[at] for at in places) for row in rows]
        assert risk.groups == len(set(looks))
        assert risk.uniques == sum(looks.count(look) == 1 for look in looks)
        assert risk.violating == sum(looks.count(look) < 4 for look in looks)
        pairs = [*combinations(looks, 2)]
        assert risk.separation == pytest.approx(sum(a != b for a, b in pairs) / len(pairs))
    assert [risk.violating for risk in sets] == sorted(
        (risk.violating for risk in sets), reverse=True
    )


def test_one_row_has_no_pairs() -> None:
    (risk,) = measure_column_sets(("a",), count_rows([("x",)])[1], most=3, k=2)
    assert (risk.distinction, risk.separation) == (1.0, 0.0)
