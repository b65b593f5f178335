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


def labels(found: Recoding) -> list[tuple[tuple[int, int], ...]]:
    """What each record shows."""
    levels, codes = found.classes.levels[found.members], found.classes.codes[found.members]
    return [
        tuple(zip(a, b, strict=True)) for a, b in zip(levels.tolist(), codes.tolist(), strict=True)
    ]


def steps(
    trees: Sequence[Hierarchy], codes: Codes, shown: list[tuple[tuple[int, int], ...]]
) -> Iterator[list[tuple[tuple[int, int], ...]]]:
    """Every table in which some records of one class are finer by one step in one column."""
    for item in set(shown):
        rows = [row for row, label in enumerate(shown) if label == item]
        for at, (level, _) in enumerate(item):
            for size in range(1, len(rows) + 1) if level else ():
                for some in combinations(rows, size):
                    finer = list(shown)
                    for row in some:
                        step = label(trees[at], level - 1, codes[row, at])
                        finer[row] = (*item[:at], step, *item[at + 1 :])
                    yield finer


@pytest.mark.parametrize("k", [2, 3])
def test_no_step_leaves_it_k_anonymous(k: int) -> None:
    rng = np.random.default_rng(k)
    trees = (TREE, FLAT, TREE)
    tried = 0
    for _ in range(60):
        number = int(rng.integers(k, 10))
        drawn = np.column_stack([rng.integers(0, len(tree.values), number) for tree in trees])
        drawn[:, 1:] //= rng.integers(1, 4)  # some tables have people who are alike
        codes = drawn.astype(np.int32)
        minimally = recode_minimally(trees, codes, k=k)
        shown = labels(minimally)
        assert minimally.classes.counts.tolist() == np.bincount(minimally.members).tolist()
        for row, own in enumerate(shown):  # true of the record
            for at, (level, code) in enumerate(own):
                assert (level, code) == label(trees[at], level, codes[row, at])
        assert min(Counter(shown).values()) >= k
        for finer in steps(trees, codes, shown):
            tried += 1
            assert min(Counter(finer).values()) < k
    assert tried > 1000


def test_records_are_not_all_generalized_alike() -> None:
    """Local: of three at x1, two at x2 and one at y1, some show a value and some do not."""
    codes = np.array([[0], [0], [0], [1], [1], [2]], dtype=np.int32)
    shown = labels(recode_minimally([TREE], codes, k=2))
    assert Counter(level for ((level, _),) in shown) == {0: 2, 1: 2, 2: 2}


def test_what_cannot_be_recoded_is_refused() -> None:
    codes = np.zeros((2, 1), dtype=np.int32)
    with pytest.raises(ParameterError, match="at most the number of rows"):
        recode_minimally([TREE], codes, k=3)
    with pytest.raises(ParameterError, match="single root"):
        recode_minimally([build_from_rows([("a", "x"), ("b", "y")])], codes, k=2)
