"""The recoder is k-anonymous and minimal, held against all steps that there are on small tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np
import pytest

from incrowd.arrays import Codes
from incrowd.codes.hierarchy import Hierarchy, build_from_rows
from incrowd.errors import ParameterError
from incrowd.papers.minimal_recoder import Recoding, recode_minimally

TREE = build_from_rows([(f"{a}{b}", a, "*") for a in "xyz" for b in "12"])
FLAT = build_from_rows([(a, "*") for a in "pqr"])


def label(tree: Hierarchy, level: int, code: int) -> tuple[int, int]:
    return level, int(tree.groups[level][code])


def labels(recoding: Recoding) -> list[tuple[tuple[int, int], ...]]:
    """What each record shows."""
    levels, codes = (
        recoding.classes.levels[recoding.members],
        recoding.classes.codes[recoding.members],
    )
    return [
        tuple(zip(a, b, strict=True)) for a, b in zip(levels.tolist(), codes.tolist(), strict=True)
    ]


def steps(
    trees: Sequence[Hierarchy], codes: Codes, record_labels: list[tuple[tuple[int, int], ...]]
) -> Iterator[list[tuple[tuple[int, int], ...]]]:
    """Every table in which some records of one class are finer by one step in one column."""
    for class_label in set(record_labels):
        rows = [row for row, label in enumerate(record_labels) if label == class_label]
        for at, (level, _) in enumerate(class_label):
            for size in range(1, len(rows) + 1) if level else ():
                for some in combinations(rows, size):
                    finer = list(record_labels)
                    for row in some:
                        step = label(trees[at], level - 1, codes[row, at])
                        finer[row] = (*class_label[:at], step, *class_label[at + 1 :])
                    yield finer


@pytest.mark.parametrize("k", [2, 3])
def test_no_step_leaves_it_k_anonymous(k: int) -> None:
    rng = np.random.default_rng(k)
    trees = (TREE, FLAT, TREE)
    tried = 0
    for _ in range(60):
        number = int(rng.integers(k, 10))
        values = np.column_stack([rng.integers(0, len(tree.values), number) for tree in trees])
        values[:, 1:] //= rng.integers(1, 4)  # some tables have people who are alike
        codes = values.astype(np.int32)
        minimally = recode_minimally(trees, codes, k=k)
        record_labels = labels(minimally)
        assert minimally.classes.counts.tolist() == np.bincount(minimally.members).tolist()
        for row, record_label in enumerate(record_labels):  # true of the record
            for at, (level, code) in enumerate(record_label):
                assert (level, code) == label(trees[at], level, codes[row, at])
        assert min(Counter(record_labels).values()) >= k
        for finer in steps(trees, codes, record_labels):
            tried += 1
            assert min(Counter(finer).values()) < k
    assert tried > 1000


def test_records_are_not_all_generalized_alike() -> None:
    """Local: of three at x1, two at x2 and one at y1, some show a value and some do not."""
    codes = np.array([[0], [0], [0], [1], [1], [2]], dtype=np.int32)
    record_labels = labels(recode_minimally([TREE], codes, k=2))
    assert Counter(level for ((level, _),) in record_labels) == {0: 2, 1: 2, 2: 2}


def test_what_cannot_be_recoded_is_refused() -> None:
    codes = np.zeros((2, 1), dtype=np.int32)
    with pytest.raises(ParameterError, match="at most the number of rows"):
        recode_minimally([TREE], codes, k=3)
    with pytest.raises(ParameterError, match="single root"):
        recode_minimally([build_from_rows([("a", "x"), ("b", "y")])], codes, k=2)
