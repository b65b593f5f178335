"""Rules on sensitive columns on Adult, beside ARX: the loss of each column at its published scheme.

The table is not part of the repository: INCROWD_ADULT names a folder with it in ARX's form (see
benchmarks/arx_rules.py). The figures are those of ARX 3.9's own tests, cut off after ten digits.
"""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import incrowd as ic
from incrowd.arrays import Floats
from incrowd.codes.hierarchy import Hierarchy, build_from_rows
from incrowd.engine.source import open_table
from incrowd.measure.loss import compute_average_class_size
from incrowd.measure.payout import PayoutModel, compute_bit_loss
from incrowd.methods.k_anonymity.class_rules import list_protected
from incrowd.methods.k_anonymity.classes import make_rollups
from incrowd.methods.k_anonymity.method import KAnonymity
from incrowd.spec.file import load_spec

DATA = Path(os.environ.get("INCROWD_ADULT", "no folder is named"))
# Rows of each age from 17 to 90 in the sample of 3,016 rows of Adult that ARX's tests publish
SAMPLE_AGES = (
    26, 54, 60, 66, 57, 69, 84, 69, 86, 66, 70, 77, 88, 97, 106, 89, 90, 66, 97, 86, 88, 66, 61,
    74, 76, 78, 58, 70, 82, 72, 72, 53, 51, 59, 50, 44, 43, 32, 46, 34, 39, 41, 36, 20, 24, 23,
    10, 14, 15, 14, 11, 11, 6, 3, 4, 2, 1, 5, 4, 7, 2, 2, 3, 2, 0, 2, 1, 0, 0, 0, 0, 0, 0, 2,
)  # fmt: skip
pytestmark = pytest.mark.skipif(
    not (DATA / "adult.csv").exists(), reason="INCROWD_ADULT names no folder with the Adult table"
)


def measure_columns(rule: dict[str, Any], node: tuple[int, ...], k: int) -> Floats:
    """The loss of each column, largest first; rows that a rule suppresses lose everything."""
    with (DATA / "adult.csv").open(encoding="utf-8") as file:
        names = next(csv.reader(file, delimiter=";"))
    columns: dict[str, Any] = {
        name: {"role": "quasi", "hierarchy": {"csv": str(DATA / f"adult_hierarchy_{name}.csv")}}
        for name in names
    }
    columns["occupation"] = {
        "role": "sensitive", **rule,
        "hierarchy": {"csv": str(DATA / "adult_hierarchy_occupation.csv")},
    }  # fmt: skip
    method = KAnonymity(
        load_spec({"columns": columns, "release": {"method": "k-anonymity", "k": k}})
    )
    rows: Any = method.count(open_table(DATA / "adult.csv"))
    protected = list_protected(rows, {**method.columns.quasi, **method.columns.kept})
    rollups = make_rollups(rows, protected)
    classes = rollups.count_classes(node, k=k)
    assert classes is not None
    codes = rollups.decode_keys(node, classes.keys)
    losses = []
    for at, hierarchy in enumerate(rollups.hierarchies):
        covered = hierarchy.normalize_loss(hierarchy.count_covered(node[at]))[codes[:, at]]
        lost = np.where(classes.lost, 1.0, covered) * classes.sizes
        losses.append(float(lost.sum()) / rollups.total)
    return -np.sort(-np.array(losses))


def test_recursive_diversity() -> None:
    """ARX 3.9, TestUtilityMetricsLoss: recursive-(4,5), any number of rows suppressed."""
    losses = measure_columns(
        {"diversity": {"recursive": {"c": 4, "l": 5}}}, (0, 3, 0, 0, 1, 1, 1, 0), 1
    )
    published = [0.4133583411, 0.4042130826, 0.3444444444, 0.3363245879]
    assert losses[:4] == pytest.approx(published, abs=1.1e-10)


def test_hierarchical_closeness() -> None:
    """ARX 3.9, TestUtilityMetricsLoss: hierarchical t = .2, k = 5."""
    losses = measure_columns({"closeness": {"hierarchical": 0.2}}, (0, 3, 0, 0, 2, 1, 1, 0), 5)
    published = [0.8630926331, 0.838230697, 0.8357221006]
    assert losses[:3] == pytest.approx(published, abs=1.1e-10)


def test_likeness() -> None:
    """ARX 3.9, TestAnonymizationBLikeness: basic, beta = 3; the geometric mean of 1 + loss."""
    losses = measure_columns({"likeness": {"basic": 3}}, (0, 3, 0, 0, 2, 0, 1, 0), 1)
    geometric = float(np.prod(1 + losses) ** (1 / len(losses)) - 1)
    assert geometric == pytest.approx(0.34883856157237925, abs=6e-11)


def test_k_map() -> None:
    """ARX 3.9, TestAnonymizationKMap: 5-map of a sample of Adult, the average class size.

    The optimum shows ages as they are and nothing else, so that classes are ages: it holds if at
    least 5 people of Adult have each age of the sample, and no age is suppressed.
    """
    with (DATA / "adult.csv").open(encoding="utf-8") as file:
        people = pl.DataFrame(
            {"age": [int(row["age"]) for row in csv.DictReader(file, delimiter=";")]}
        )
    rows = np.array(SAMPLE_AGES)
    assert rows.sum() == 3016
    ages = np.arange(17, 17 + len(rows))
    in_adult = np.bincount(people["age"].to_numpy(), minlength=ages[-1] + 1)[ages]
    assert (rows <= in_adult).all()
    sample = pl.DataFrame({"age": np.repeat(ages, rows)})
    result = ic.risk(sample, columns=["age"], population=people, k=5)
    assert result.below_map[5] == 0
    least = int(in_adult[rows > 0].min())
    too_few = ic.risk(sample, columns=["age"], population=people, k=least + 1)
    assert too_few.below_map[least + 1] > 0
    assert compute_average_class_size(rows[rows > 0]) == pytest.approx(
        45.014925373134325, rel=1e-12
    )


def read_columns() -> dict[str, Hierarchy]:
    """The hierarchies of all columns but occupation, in ARX's order."""
    with (DATA / "adult.csv").open(encoding="utf-8") as file:
        names = next(csv.reader(file, delimiter=";"))
    columns = {}
    for name in names:
        with (DATA / f"adult_hierarchy_{name}.csv").open(encoding="utf-8") as file:
            columns[name] = build_from_rows([*csv.reader(file, delimiter=";")])
    del columns["occupation"]
    return columns


def lose_bits(model: PayoutModel, node: tuple[int, ...], **labels: str) -> float:
    """The information loss of a record at a node, whose labels are named where they differ."""
    columns = read_columns()
    total, shares = 0.0, model.weigh_columns([*columns.values()])
    for share, (name, hierarchy), level in zip(shares, columns.items(), node, strict=True):
        label = labels.get(name)
        at = 0 if label is None else hierarchy.labels[level].index(label)
        covered = hierarchy.count_covered(level)
        total += float(share * compute_bit_loss(covered, hierarchy.size)[at])
    return total


def list_whole(numbers: dict[tuple[int, ...], float]) -> list[tuple[int, ...]]:
    """Those that are whole numbers of rows, up to rounding."""
    return [
        (*key, round(x))
        for key, x in numbers.items()
        if 0 <= x <= 3016 and abs(x % 1 - 0.5) > 0.5 - 1e-8
    ]


def test_payouts() -> None:
    """ARX 3.9, TestAnonymizationProfitability: what schemes of the sample of Adult miss.

    The sample is 3,016 rows, of which some are suppressed (at most 4 % in the first case). By the
    model a figure is a sum of whole numbers of rows and of attacked classes, each times what it
    misses. One triple of numbers fits to ten digits; of figures that follow another model, one
    in 30,000 would fit some triple.
    """
    model = PayoutModel(1200, 300, 1200, 2, (1.0,) * 8)
    node, missed = (1, 3, 1, 1, 3, 2, 1, 1), 2974380.2122727702
    married, single = (
        lose_bits(model, node, **{"marital-status": label, "workclass": "Non-Government"})
        for label in ("spouse present", "spouse not present")
    )
    attack = model.publisher_loss * model.count_reidentified(np.array([100]))
    fitting = list_whole({
        (suppressed, attacked): (
            (missed - attack * attacked) / model.benefit - suppressed - (3016 - suppressed) * single
        ) / (married - single)
        for suppressed in range(121)
        for attacked in range(12)
    })  # fmt: skip
    assert fitting == [(114, 9, 1397)]  # suppressed, attacked classes, with a spouse present

    model = PayoutModel(120, 3000, 120, 20, (1.0,) * 8)
    node, missed = (0, 1, 1, 2, 3, 2, 1, 1), 289703.2817537615
    loss = lose_bits(model, node, workclass="Non-Government")
    attack = model.publisher_loss * model.count_reidentified(np.array([5]))
    fitting = list_whole({
        (attacked,): ((missed - attack * attacked) / model.benefit - 3016 * loss) / (1 - loss)
        for attacked in range(97)
    })  # fmt: skip
    assert fitting == [(7, 3)]  # attacked classes, suppressed rows
